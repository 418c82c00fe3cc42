"""Replies as tools and models really write them: every dialect, wrapper and habit, applied whole.

Each case is a reply, the files that must come out, and nothing else; ``None`` is a deleted file.
"""

# ruff: noqa: E501 - a reply is easier to compare with its source when its lines stay whole

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from midstream.edits.apply import apply_reply

CALC = '''"""Calculator."""

import math
import os


class Calc:
    """A calculator."""

    def __init__(self, start=0):
        self.total = start

    def add(self, x):
        self.total += x
        return self.total

    def sub(self, x):
        self.total -= x
        return self.total

    def mul(self, x):
        self.total *= x
        return self.total


def main():
    c = Calc()
    c.add(1)
    print(c.total)


if __name__ == "__main__":
    main()
'''
FILES = {
    "calc.py": CALC,
    "src/util.js": "function a() {\n\treturn 1;\n}\n\nfunction b() {\n\treturn 2;\n}\n",
    "README.md": "# Title\n\nSome text.\n\n```python\nx = 1\n```\n\nEnd.\n",
    "my file.txt": "one\ntwo\nthree\n",
    "crlf.txt": "a\r\nb\r\nc\r\n",
    "nonl.txt": "a\nb\nc",
    "empty.py": "",
    "tabs.go": "package main\n\nfunc main() {\n\tif x {\n\t\tfoo()\n\t}\n}\n",
}
AFTER = CALC.replace("self.total += x", "self.total = self.total + x")


@dataclass(frozen=True)
class Case:
    name: str
    reply: str
    want: dict[str, str | None] | None
    file: str | None


CASES: list[Case] = []


def case(
    name: str,
    reply: str,
    want: dict[str, str | None] | None,
    file: str | None = None,
    *,
    ok: bool = True,
) -> None:
    """A reply; without ``want`` it must be refused."""
    assert ok == (want is not None)
    CASES.append(Case(name, reply, want, file))


# aider
SR = "<<<<<<< SEARCH\n        self.total += x\n=======\n        self.total = self.total + x\n>>>>>>> REPLACE\n"
case("aider plain", "calc.py\n```python\n" + SR + "```\n", {"calc.py": AFTER})
case("aider diff-fenced", "```python\ncalc.py\n" + SR + "```\n", {"calc.py": AFTER})
case("aider bold name", "**calc.py**\n```\n" + SR + "```\n", {"calc.py": AFTER})
case("aider numbered heading", "### 1. calc.py\n\n```python\n" + SR + "```\n", {"calc.py": AFTER})
case(
    "aider 'In `calc.py`:'",
    "In `calc.py`, change this:\n\n```python\n" + SR + "```\n",
    {"calc.py": AFTER},
)
case(
    "aider File: heading backtick", "#### `calc.py`\n```python\n" + SR + "```\n", {"calc.py": AFTER}
)
case("aider quadruple fence", "calc.py\n````python\n" + SR + "````\n", {"calc.py": AFTER})
case("aider source tags", "calc.py\n<source>\n" + SR + "</source>\n", {"calc.py": AFTER})
case("aider leading slash ./", "./calc.py\n```python\n" + SR + "```\n", {"calc.py": AFTER})
case("aider colon after name", "calc.py:\n```python\n" + SR + "```\n", {"calc.py": AFTER})
case("aider python comment name", "# calc.py\n```python\n" + SR + "```\n", {"calc.py": AFTER})
case(
    "aider name inside fence as comment",
    "```python\n# calc.py\n" + SR + "```\n",
    {"calc.py": AFTER},
)
case(
    "aider // name js",
    "```js\n// src/util.js\n<<<<<<< SEARCH\n\treturn 1;\n=======\n\treturn 10;\n>>>>>>> REPLACE\n```\n",
    {"src/util.js": FILES["src/util.js"].replace("return 1;", "return 10;")},
)
case(
    "aider name inside search",
    "<<<<<<< SEARCH calc.py\n        self.total += x\n=======\n        self.total = self.total + x\n>>>>>>> REPLACE\n",
    {"calc.py": AFTER},
)
case(
    "aider ORIGINAL/UPDATED",
    "calc.py\n<<<<<<< ORIGINAL\n        self.total += x\n=======\n        self.total = self.total + x\n>>>>>>> UPDATED\n",
    {"calc.py": AFTER},
)
case(
    "aider HEAD/updated",
    "calc.py\n<<<<<<< HEAD\n        self.total += x\n=======\n        self.total = self.total + x\n>>>>>>> updated\n",
    {"calc.py": AFTER},
)
case(
    "aider basename only",
    "util.js\n<<<<<<< SEARCH\n\treturn 1;\n=======\n\treturn 10;\n>>>>>>> REPLACE\n",
    {"src/util.js": FILES["src/util.js"].replace("return 1;", "return 10;")},
    file="src/util.js",
)
case(
    "aider new file",
    "new.py\n```python\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n```\n",
    {"new.py": "x = 1\n"},
)
case(
    "aider indented all",
    "  calc.py\n  ```python\n  <<<<<<< SEARCH\n          self.total += x\n  =======\n          self.total = self.total + x\n  >>>>>>> REPLACE\n  ```\n",
    {"calc.py": AFTER},
)
case("aider whole", "calc.py\n```\n" + AFTER + "```\n", {"calc.py": AFTER})
case(
    "whole with the request's tag in the fence",
    'calc.py\n```python\n<file path="calc.py">\n' + AFTER + "</file>\n```\n",
    {"calc.py": AFTER},
)
case(
    "whole between the request's tags",
    'Here it is.\n\n<file-2 path="calc.py">\n' + AFTER + "</file-2>\nDone.\n",
    {"calc.py": AFTER},
)
case(
    "whole with a tag that is another file's",
    'new.xml\n```xml\n<file path="a">\n<x/>\n</file>\n```\n',
    {"new.xml": '<file path="a">\n<x/>\n</file>\n'},
)
case(
    "whole beside a quoted part",
    'See:\n<file path="empty.py" part="lines 1-2 of 300">\n1 x\n</file>\n\ncalc.py\n```\n'
    + AFTER
    + "```\n",
    {"calc.py": AFTER},
)
case(
    "whole with such a tag as code",
    'new.xml\n```xml\n<files>\n<file path="a">\n</file>\n</files>\n```\n',
    {"new.xml": '<files>\n<file path="a">\n</file>\n</files>\n'},
)
case(
    "aider whole bold",
    "Here:\n\n**calc.py**\n\n```python\n" + AFTER + "```\n\nDone.\n",
    {"calc.py": AFTER},
)
case(
    "aider whole two",
    "calc.py\n```python\n" + AFTER + "```\n\nempty.py\n```python\ny = 2\n```\n",
    {"calc.py": AFTER, "empty.py": "y = 2\n"},
)
case(
    "aider whole readme with inner fences",
    "README.md\n````markdown\n" + FILES["README.md"].replace("x = 1", "x = 2") + "````\n",
    {"README.md": FILES["README.md"].replace("x = 1", "x = 2")},
)
case(
    "aider whole readme same fences",
    "README.md\n```markdown\n" + FILES["README.md"].replace("x = 1", "x = 2") + "```\n",
    {"README.md": FILES["README.md"].replace("x = 1", "x = 2")},
)
case(
    "aider udiff",
    "```diff\n--- calc.py\n+++ calc.py\n@@ ... @@\n     def add(self, x):\n-        self.total += x\n+        self.total = self.total + x\n         return self.total\n```\n",
    {"calc.py": AFTER},
)
case(
    "aider udiff no @@",
    "```diff\n--- calc.py\n+++ calc.py\n     def add(self, x):\n-        self.total += x\n+        self.total = self.total + x\n         return self.total\n```\n",
    {"calc.py": AFTER},
)
case(
    "aider udiff lost leading space",
    "```diff\n--- calc.py\n+++ calc.py\n@@ ... @@\n    def add(self, x):\n-        self.total += x\n+        self.total = self.total + x\n        return self.total\n```\n",
    {"calc.py": AFTER},
)
case(
    "aider udiff new",
    "```diff\n--- /dev/null\n+++ new.py\n@@ ... @@\n+x = 1\n+\n+y = 2\n```\n",
    {"new.py": "x = 1\n\ny = 2\n"},
)
# cline / roo
case(
    "cline xml replace_in_file",
    "<replace_in_file>\n<path>calc.py</path>\n<diff>\n------- SEARCH\n        self.total += x\n=======\n        self.total = self.total + x\n+++++++ REPLACE\n</diff>\n</replace_in_file>\n",
    {"calc.py": AFTER},
)
case(
    "roo start_line",
    "<apply_diff>\n<path>calc.py</path>\n<diff>\n<<<<<<< SEARCH\n:start_line:14\n-------\n        self.total += x\n=======\n        self.total = self.total + x\n>>>>>>> REPLACE\n</diff>\n</apply_diff>\n",
    {"calc.py": AFTER},
)
case(
    "roo start/end_line",
    "<apply_diff>\n<path>calc.py</path>\n<diff>\n<<<<<<< SEARCH\n:start_line:14\n:end_line:14\n-------\n        self.total += x\n=======\n        self.total = self.total + x\n>>>>>>> REPLACE\n</diff>\n</apply_diff>\n",
    {"calc.py": AFTER},
)
case(
    "roo start_line picks ambiguous",
    "<apply_diff>\n<path>calc.py</path>\n<diff>\n<<<<<<< SEARCH\n:start_line:19\n-------\n        return self.total\n=======\n        return -self.total\n>>>>>>> REPLACE\n</diff>\n</apply_diff>\n",
    {
        "calc.py": CALC.replace(
            "self.total -= x\n        return self.total",
            "self.total -= x\n        return -self.total",
        )
    },
)
case(
    "roo numbered lines in both",
    "<path>calc.py</path>\n<<<<<<< SEARCH\n13 |     def add(self, x):\n14 |         self.total += x\n=======\n13 |     def add(self, x):\n14 |         self.total = self.total + x\n>>>>>>> REPLACE\n",
    {"calc.py": AFTER},
)
case(
    "roo escaped markers",
    "calc.py\n<<<<<<< SEARCH\n# x\n=======\ny\n>>>>>>> REPLACE\n",
    None,
    ok=False,
)
case(
    "roo write_to_file",
    "<write_to_file>\n<path>empty.py</path>\n<content>\ny = 2\n</content>\n<line_count>1</line_count>\n</write_to_file>\n",
    {"empty.py": "y = 2\n"},
)
case(
    "roo args wrapper multi",
    "<apply_diff>\n<args>\n<file>\n<path>calc.py</path>\n<diff>\n<content><![CDATA[\n<<<<<<< SEARCH\n        self.total += x\n=======\n        self.total = self.total + x\n>>>>>>> REPLACE\n]]></content>\n<start_line>14</start_line>\n</diff>\n</file>\n</args>\n</apply_diff>\n",
    {"calc.py": AFTER},
)
# codex
P = "*** Begin Patch\n*** Update File: calc.py\n@@ def add(self, x):\n-        self.total += x\n+        self.total = self.total + x\n*** End Patch\n"
case("codex plain", P, {"calc.py": AFTER})
case("codex heredoc", "apply_patch <<'EOF'\n" + P + "EOF\n", {"calc.py": AFTER})
case(
    "codex bash -lc json",
    json.dumps({"command": ["bash", "-lc", "apply_patch <<'EOF'\n" + P + "EOF\n"]}),
    {"calc.py": AFTER},
)
case("codex json command list", json.dumps({"command": ["apply_patch", P]}), {"calc.py": AFTER})
case(
    "codex json cmd string",
    json.dumps({"cmd": "cd . && apply_patch <<'PATCH'\n" + P + "PATCH"}),
    {"calc.py": AFTER},
)
case("codex json input", json.dumps({"input": P}), {"calc.py": AFTER})
case("codex shell fence", "```bash\napply_patch <<'EOF'\n" + P + "EOF\n```\n", {"calc.py": AFTER})
case("codex absolute", P.replace("calc.py", "/repo/calc.py"), None, ok=False)
case(
    "codex eof marker",
    '*** Begin Patch\n*** Update File: calc.py\n@@ if __name__ == "__main__":\n-    main()\n+    raise SystemExit(main())\n*** End of File\n*** End Patch\n',
    {"calc.py": CALC[: -len("    main()\n")] + "    raise SystemExit(main())\n"},
)
case(
    "codex apply_patch function call",
    json.dumps(
        {"type": "function_call", "name": "apply_patch", "arguments": json.dumps({"input": P})}
    ),
    {"calc.py": AFTER},
)
case("codex missing end", P.replace("*** End Patch\n", ""), None, ok=False)
case(
    "codex empty add",
    "*** Begin Patch\n*** Add File: pkg/__init__.py\n*** End Patch\n",
    {"pkg/__init__.py": ""},
)
case(
    "codex blank ctx no space",
    "*** Begin Patch\n*** Update File: calc.py\n@@\n         return self.total\n\n     def sub(self, x):\n-        self.total -= x\n+        self.total = self.total - x\n*** End Patch\n",
    {"calc.py": CALC.replace("self.total -= x", "self.total = self.total - x")},
)
case(
    "codex move",
    "*** Begin Patch\n*** Update File: nonl.txt\n*** Move to: moved.txt\n@@\n a\n-b\n+B\n*** End Patch\n",
    {"nonl.txt": None, "moved.txt": "a\nB\nc"},
)
# anthropic / gemini json
case(
    "claude str_replace",
    json.dumps(
        {
            "command": "str_replace",
            "path": "calc.py",
            "old_str": "        self.total += x",
            "new_str": "        self.total = self.total + x",
        }
    ),
    {"calc.py": AFTER},
)
case(
    "claude tool_use block",
    json.dumps(
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "str_replace_based_edit_tool",
            "input": {
                "command": "str_replace",
                "path": "calc.py",
                "old_str": "self.total += x",
                "new_str": "self.total = self.total + x",
            },
        },
        indent=1,
    ),
    {"calc.py": AFTER},
)
case(
    "claude array of tool_use",
    json.dumps(
        [
            {"type": "text", "text": "ok"},
            {
                "type": "tool_use",
                "name": "str_replace_based_edit_tool",
                "input": {"command": "view", "path": "calc.py"},
            },
            {
                "type": "tool_use",
                "name": "str_replace_based_edit_tool",
                "input": {
                    "command": "str_replace",
                    "path": "calc.py",
                    "old_str": "self.total += x",
                    "new_str": "self.total = self.total + x",
                },
            },
        ]
    ),
    {"calc.py": AFTER},
)
case(
    "claude code Edit",
    json.dumps(
        {
            "file_path": "calc.py",
            "old_string": "self.total += x",
            "new_string": "self.total = self.total + x",
            "replace_all": False,
        }
    ),
    {"calc.py": AFTER},
)
case(
    "claude code MultiEdit",
    json.dumps(
        {
            "file_path": "calc.py",
            "edits": [
                {"old_string": "self.total += x", "new_string": "self.total = self.total + x"}
            ],
        }
    ),
    {"calc.py": AFTER},
)
case(
    "gemini replace functionCall",
    json.dumps(
        {
            "functionCall": {
                "name": "replace",
                "args": {
                    "file_path": "calc.py",
                    "instruction": "x",
                    "old_string": "        self.total += x\n",
                    "new_string": "        self.total = self.total + x\n",
                    "expected_replacements": 1,
                },
            }
        }
    ),
    {"calc.py": AFTER},
)
case(
    "gemini write_file",
    json.dumps(
        {
            "functionCall": {
                "name": "write_file",
                "args": {"file_path": "empty.py", "content": "y = 2\n"},
            }
        }
    ),
    {"empty.py": "y = 2\n"},
)
case(
    "json create",
    json.dumps({"command": "create", "path": "n.py", "file_text": "z = 1\n"}),
    {"n.py": "z = 1\n"},
)
case(
    "json insert 0",
    json.dumps({"command": "insert", "path": "my file.txt", "insert_line": 0, "new_str": "zero\n"}),
    {"my file.txt": "zero\none\ntwo\nthree\n"},
)
case(
    "json in fence with prose",
    "I'll edit:\n\n```json\n"
    + json.dumps(
        {"path": "calc.py", "old_str": "self.total += x", "new_str": "self.total = self.total + x"},
        indent=2,
    )
    + "\n```\nDone.\n",
    {"calc.py": AFTER},
)
case(
    "jsonl calls",
    "\n".join(
        json.dumps({"path": "my file.txt", "old_str": a, "new_str": a.upper()})
        for a in ("one", "two")
    )
    + "\n",
    {"my file.txt": "ONE\nTWO\nthree\n"},
)
case(
    "json path after",
    json.dumps(
        {"old_str": "self.total += x", "new_str": "self.total = self.total + x", "path": "calc.py"}
    ),
    {"calc.py": AFTER},
)
case(
    "openai tool_calls",
    json.dumps(
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {
                        "name": "edit",
                        "arguments": json.dumps(
                            {
                                "path": "calc.py",
                                "old_str": "self.total += x",
                                "new_str": "self.total = self.total + x",
                            }
                        ),
                    },
                }
            ],
        }
    ),
    {"calc.py": AFTER},
)
# cursor elision
case(
    "cursor elision whole",
    "```python:calc.py\n# ... existing code ...\n    def add(self, x):\n        self.total = self.total + x\n        return self.total\n# ... existing code ...\n```\n",
    {"calc.py": AFTER},
)
case(
    "cursor elision header js",
    "```js:src/util.js\n// ... existing code ...\n\nfunction b() {\n\treturn 20;\n}\n```\n",
    {"src/util.js": FILES["src/util.js"].replace("return 2;", "return 20;")},
)
case(
    "SR elision with comment",
    "calc.py\n<<<<<<< SEARCH\n    def add(self, x):\n        # ... existing code ...\n        return self.total\n\n    def sub\n=======\nx\n>>>>>>> REPLACE\n",
    None,
    ok=False,
)
# git
G = "diff --git a/calc.py b/calc.py\nindex 111..222 100644\n--- a/calc.py\n+++ b/calc.py\n@@ -13,3 +13,3 @@ class Calc:\n     def add(self, x):\n-        self.total += x\n+        self.total = self.total + x\n         return self.total\n"
case("git diff", G, {"calc.py": AFTER})
case(
    "git format-patch",
    "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\nFrom: A B <a@b.c>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\nSubject: [PATCH] Change add\n\nBody text.\n---\n calc.py | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n\n"
    + G
    + "-- \n2.43.0\n\n",
    {"calc.py": AFTER},
)
case("git wrong counts", G.replace("@@ -13,3 +13,3 @@", "@@ -10,9 +10,4 @@"), {"calc.py": AFTER})
case(
    "git wrong counts small",
    G.replace("@@ -13,3 +13,3 @@", "@@ -13,1 +13,1 @@"),
    {"calc.py": AFTER},
)
case(
    "git quoted path",
    'diff --git "a/my file.txt" "b/my file.txt"\n--- "a/my file.txt"\n+++ "b/my file.txt"\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n',
    {"my file.txt": "one\nTWO\nthree\n"},
)
case(
    "git unquoted space path with tab",
    "--- a/my file.txt\t\n+++ b/my file.txt\t\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
    {"my file.txt": "one\nTWO\nthree\n"},
)
case(
    "git timestamps",
    "--- calc.py\t2024-01-01 00:00:00.000000000 +0000\n+++ calc.py\t2024-01-01 00:00:01.000000000 +0000\n"
    + G[G.index("@@") :],
    {"calc.py": AFTER},
)
case(
    "git timestamps space",
    "--- calc.py 2024-01-01 00:00:00\n+++ calc.py 2024-01-01 00:00:01\n" + G[G.index("@@") :],
    {"calc.py": AFTER},
)
case(
    "git mode change and edit",
    G.replace("index 111..222 100644\n", "old mode 100644\nnew mode 100755\nindex 111..222\n"),
    {"calc.py": AFTER},
)
case(
    "git new file",
    "diff --git a/n.txt b/n.txt\nnew file mode 100644\nindex 0000000..e69de29\n--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n",
    {"n.txt": "a\nb\n"},
)
case(
    "git new empty file",
    "diff --git a/n.txt b/n.txt\nnew file mode 100644\nindex 0000000..e69de29\n",
    {"n.txt": ""},
)
case(
    "git delete",
    "diff --git a/my file.txt b/my file.txt\ndeleted file mode 100644\nindex 1..0\n--- a/my file.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n",
    {"my file.txt": None},
)
case(
    "git delete empty",
    "diff --git a/empty.py b/empty.py\ndeleted file mode 100644\nindex e69de29..0000000\n",
    {"empty.py": None},
)
case(
    "git rename pure",
    "diff --git a/nonl.txt b/dir/re.txt\nsimilarity index 100%\nrename from nonl.txt\nrename to dir/re.txt\n",
    {"nonl.txt": None, "dir/re.txt": "a\nb\nc"},
)
case(
    "git rename edit",
    "diff --git a/my file.txt b/re.txt\nsimilarity index 66%\nrename from my file.txt\nrename to re.txt\nindex 1..2 100644\n--- a/my file.txt\n+++ b/re.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
    {"my file.txt": None, "re.txt": "one\nTWO\nthree\n"},
)
case(
    "git no newline add",
    "--- a/nonl.txt\n+++ b/nonl.txt\n@@ -1,3 +1,3 @@\n a\n b\n-c\n\\ No newline at end of file\n+c\n",
    {"nonl.txt": "a\nb\nc\n"},
)
case(
    "git no newline both",
    "--- a/nonl.txt\n+++ b/nonl.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n\\ No newline at end of file\n",
    {"nonl.txt": "a\nB\nc"},
)
case(
    "git no newline remove",
    "--- a/my file.txt\n+++ b/my file.txt\n@@ -1,3 +1,3 @@\n one\n two\n-three\n+three\n\\ No newline at end of file\n",
    {"my file.txt": "one\ntwo\nthree"},
)
case(
    "crlf diff",
    "--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
    {"crlf.txt": "a\r\nB\r\nc\r\n"},
)
case("crlf reply", G.replace("\n", "\r\n"), {"calc.py": AFTER})
case(
    "no prefix",
    G.replace("a/calc.py", "calc.py").replace("b/calc.py", "calc.py"),
    {"calc.py": AFTER},
)
case(
    "diff --git no prefix only hunks",
    "diff --git calc.py calc.py\n"
    + G[G.index("--- ") :].replace("a/calc", "calc").replace("b/calc", "calc"),
    {"calc.py": AFTER},
)
case(
    "svn Index",
    "Index: calc.py\n===================================================================\n--- calc.py\t(revision 1)\n+++ calc.py\t(working copy)\n"
    + G[G.index("@@") :],
    {"calc.py": AFTER},
)
case(
    "i/ w/ prefixes",
    G.replace("a/calc.py", "i/calc.py").replace("b/calc.py", "w/calc.py"),
    {"calc.py": AFTER},
)
case(
    "context trailing ws stripped",
    "--- a/calc.py\n+++ b/calc.py\n@@ -24,6 +24,6 @@\n         self.total *= x\n         return self.total\n\n\n def main():\n-    c = Calc()\n+    c = Calc(1)\n     c.add(1)\n",
    {"calc.py": CALC.replace("c = Calc()", "c = Calc(1)")},
)
case(
    "tabs as spaces udiff",
    "--- a/tabs.go\n+++ b/tabs.go\n@@ -3,5 +3,5 @@\n func main() {\n     if x {\n-        foo()\n+        bar()\n     }\n }\n",
    {"tabs.go": FILES["tabs.go"].replace("foo()", "bar()")},
)
case(
    "hunks only with --file",
    "@@ -13,3 +13,3 @@\n     def add(self, x):\n-        self.total += x\n+        self.total = self.total + x\n         return self.total\n",
    {"calc.py": AFTER},
    file="calc.py",
)
case(
    "fence diff prose between two",
    "First:\n\n```diff\n"
    + G
    + "```\n\nThen the other:\n\n```diff\n--- a/my file.txt\n+++ b/my file.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n```\nOK?\n",
    {"calc.py": AFTER, "my file.txt": "one\nTWO\nthree\n"},
)
case(
    "outside root",
    G.replace("a/calc.py", "a/../x.py").replace("b/calc.py", "b/../x.py"),
    None,
    ok=False,
)
case("V4A in prose with fence", "Sure:\n```\n" + P + "```\nbye\n", {"calc.py": AFTER})
case(
    "V4A two patches",
    P + "\nand\n\n*** Begin Patch\n*** Update File: my file.txt\n@@\n-two\n+TWO\n*** End Patch\n",
    {"calc.py": AFTER, "my file.txt": "one\nTWO\nthree\n"},
)
case(
    "V4A line numbers",
    "*** Begin Patch\n*** Update File: calc.py\n@@\n 13 |     def add(self, x):\n-14 |         self.total += x\n+14 |         self.total = self.total + x\n*** End Patch\n",
    {"calc.py": AFTER},
)


@pytest.mark.parametrize("given", CASES, ids=lambda given: given.name)
def test_reply(given: Case) -> None:
    files = {path: text.encode() for path, text in FILES.items()}
    result = apply_reply(given.reply, files.get, file=given.file)
    if given.want is None:
        assert not result.ok
        assert not result.changes
        return
    assert result.ok, result.message()
    changes = {p: None if data is None else data.decode() for p, data in result.changes.items()}
    assert changes == given.want
