"""Replies as models write them: prose, two files, CRLF, tabs, odd characters, every format."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from midstream.edits.formats.region import RegionParser
from midstream.edits.formats.search_replace import SearchReplaceParser
from midstream.edits.formats.str_replace import JsonEditParser
from midstream.edits.formats.udiff import UnifiedDiffParser
from midstream.edits.formats.v4a import V4AParser
from midstream.edits.formats.whole import WholeFileParser
from midstream.edits.parsing import ReplyParser
from midstream.edits.sniffing import SniffingParser

OLD = ["def área(r):", "\treturn 3 * r", "", "x = 1"]


class Case(NamedTuple):
    """A parser and a reply for it."""

    name: str
    make: Callable[[], ReplyParser]
    reply: str


def _region() -> RegionParser:
    return RegionParser(OLD)


def _auto() -> SniffingParser:
    return SniffingParser("whole")


V4A = """Sure, here is the patch:

*** Begin Patch
*** Update File: src/a.py
*** Move to: src/b.py
@@ class Área
@@     def f(self):
 \tkeep = "—"
-\told = 1
+\tnew = 2\f

 tail
@@
-x
+y
*** End of File

*** Add File: neu/ü.txt
+first 😀

+
+last
*** Delete File: gone.txt
*** End Patch
That was all."""

SEARCH_REPLACE = """I will change two files.

src/a.py
```python
<<<<<<< SEARCH
def área(r):
\treturn 3 * r
=======
def área(r):
+ not a marker
<<<<<< neither
\treturn π * r ** 2  # 😀
>>>>>>> REPLACE
```

**lib/b.ts**:
------- SEARCH
let a = 1;
=======
====
let a = 2;
+++++++ REPLACE

<<<<<<< SEARCH
again
=======
>>>>>>> REPLACE
"""

JSON = (
    '{"command": "str_replace", "path": "a.py", "old_str": "a\\u00e9\\n\\tb\\\\n\\"", '
    '"new_str": "\\ud83d\\ude00 x\\r\\ny\\/\\u2028z\\n"}\n'
    '```json\n[{"file_path": "b.py", "new_string": "later", "old_string": "early", '
    '"replace_all": true}, {"edits": [{"old_text": "1", "new_text": "2"}], "path": "c.py"}]\n```\n'
    '{"command": "insert", "path": "d", "insert_line": 3, "new_str": "n\\n"} '
    '{"command": "create", "path": "e", "file_text": "é\\n\\ud800!"}'
)

UDIFF = """Here:
```diff
diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py\t2026-01-01
+++ b/src/a.py
@@ -1,4 +1,4 @@ def área
 one

--- sql comment
+++i;
+four 😀
\\ No newline at end of file
@@ ... @@
-five

```
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+hello
diff --git a/x b/y
similarity index 100%
rename from x
rename to y
"""

TAGGED = """Here:
```python
<file path="a.py">
x = 1 < 2
</file>
```
<file path="b.py">
</fil
y = 2
</file>
"""
WHOLE = """### src/a.py
```python
def f():
    '''
    ```sh
    ls é
    ```
    '''
```

And `b.md`:
````markdown
# Title
```
code 😀
```
````
Done.
"""

FILES = """First:

new.py
```
<<<<<<< SEARCH
=======
fresh = "π"
>>>>>>> REPLACE
```
*** Delete File: old.py
*** Move File: `lib/a b.py` to lib/c.py
*** Move File: x.py -> y.py
*** Move File
"""

CASES = [
    Case("region bare", lambda: RegionParser(OLD, bare=True), "a\n```\n<region>é\r\n\tb"),
    Case("region sniffed bare", _region, "def área(r):\n\treturn π\n\n```\nx = 2\n"),
    Case(
        "region fence",
        _region,
        "Here it is:\n\n```python\ndef área(r):\n  `` \n``not\n\treturn 😀\n```\nI changed π.\n",
    ),
    Case("region nested fence", _region, "```md\na\n```py\nb\n```\nc\n```\nrest ```\n"),
    Case(
        "region tag",
        _region,
        'OK.\n<region path="a.py">\ndef <r>:\n</regio\n  x</region2>\n  </region>\nDone: <region>',
    ),
    Case("region tag inline", _region, "<region-2>é one</region-2> rest\nmore\n"),
    Case("region fence in tag", _region, "<region>\n```python\nx\n```\n</region>\n"),
    Case("region tag in fence", _region, "```\n<region>\nx\n</region>\n```\n"),
    Case("region owed fence", lambda: RegionParser(["```", "x", "```"]), "<region>\n```\ny\n```\n"),
    Case("region prose only", _region, "I cannot do that, sorry. The code is right.\n"),
    Case("region unfinished", _region, "```python\nx = 1\ny"),
    Case("v4a", V4AParser, V4A),
    Case("v4a crlf", V4AParser, V4A.replace("\n", "\r\n")),
    Case("v4a heredoc", V4AParser, f"apply_patch <<'EOF'\n{V4A.split('patch:')[1]}\nEOF\n"),
    Case("v4a indented end", V4AParser, "*** Begin Patch\n*** Update File: a\n-x\n *** End Patch"),
    Case(
        "v4a end as content",
        V4AParser,
        "*** Begin Patch\n*** Update File: a\n-x\n *** End Patch\n y\n*** End Patch\n",
    ),
    Case("v4a no begin", V4AParser, "*** Update File: a\n@@ -1,2 +1,2 @@ f\n-x\n+y\n+"),
    Case("v4a cut", V4AParser, "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y"),
    Case("v4a bad line", V4AParser, "*** Begin Patch\n*** Update File: a\n-x\nwhat\n+y\n@@\n-z\n"),
    Case("search-replace", SearchReplaceParser, SEARCH_REPLACE),
    Case("search-replace crlf", SearchReplaceParser, SEARCH_REPLACE.replace("\n", "\r\n")),
    Case("search-replace cut", SearchReplaceParser, SEARCH_REPLACE[:190]),
    Case("search-replace headings", SearchReplaceParser, "a.rst\n<<<<<<< SEARCH\nTitle\n=====\n"
         "=======\nOther\n=====\nx\n>>>>>>> REPLACE\n"),
    Case("search-replace malformed", SearchReplaceParser, "a.py\n<<<<<<< SEARCH\nx\n>>>>>>> "
         "REPLACE\n<<<<<<< SEARCH\na\n=======\nb\n<<<<<<< SEARCH\nc\n=======\n"),
    Case("search-replace files", SearchReplaceParser, FILES),
    Case("search-replace files crlf", SearchReplaceParser, FILES.replace("\n", "\r\n")),
    Case("search-replace files cut", SearchReplaceParser, FILES[: FILES.index(" -> ") + 1]),
    Case("whole files", WholeFileParser, FILES),
    Case("json", JsonEditParser, JSON),
    Case("json held path", JsonEditParser, '{"edits":[{"new_str":"b","old_str":"a"}],"path":"p"}'),
    Case("json cut", JsonEditParser, JSON[:100]),
    Case("json patch", JsonEditParser, '{"input": "*** Begin Patch\\n*** Add File: a\\n+\\u00e9'
         '\\n*** End Patch\\n"}'),
    Case("json command", JsonEditParser, '{"command": ["apply_patch", "*** Begin Patch\\n*** '
         'Delete File: a\\n*** End Patch"]}'),
    Case("udiff", UnifiedDiffParser, UDIFF),
    Case("udiff crlf", UnifiedDiffParser, UDIFF.replace("\n", "\r\n")),
    Case("udiff cut", UnifiedDiffParser, UDIFF[:150]),
    Case("whole", WholeFileParser, WHOLE),
    Case("whole with a tag", WholeFileParser, TAGGED),
    Case("whole bare", lambda: WholeFileParser(bare=True), "é = 1\r\n\r\nx"),
    Case("auto v4a", _auto, V4A),
    Case("auto search-replace", _auto, SEARCH_REPLACE.replace("\n", "\r\n")),
    Case("auto json", _auto, JSON),
    Case("auto udiff", _auto, UDIFF),
    Case("auto whole", _auto, WHOLE),
    Case("auto region", _auto, "Fine.\n<region>\nx\n</region>\n"),
    Case("auto nothing", _auto, "I would not change anything."),
]  # fmt: skip
