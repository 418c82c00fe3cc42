"""Replies of every format applied to files: bytes out, levels, structured errors."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.apply import apply_events, apply_reply
from midstream.edits.documents import SourceText, join_lines
from midstream.edits.formats import names
from midstream.edits.formats.v4a import operation_events
from midstream.edits.matching import Matcher, MatchLevel
from midstream.edits.outcome import ApplyResult, FailureReason, HunkStatus
from tests.helpers.property import examples
from tests.helpers.strategies import LINES

PY = """import os


class First:
    def target(self):
        return 0

    def helper(self):
        return os.name


class Second:
    def target(self):
        return 0
"""


def apply(reply: str, files: dict[str, str | bytes], **options: object) -> ApplyResult:
    data = {k: v.encode() if isinstance(v, str) else v for k, v in files.items()}
    return apply_reply(reply, data.get, **options)  # pyright: ignore[reportArgumentType]


def text_of(result: ApplyResult, path: str) -> str:
    assert result.ok, result.message()
    data = result.changes[path]
    assert data is not None
    return data.decode()


def patch(body: str, path: str = "a.py") -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n{body}*** End Patch\n"


def search(old: str, new: str, path: str = "a.py") -> str:
    return f"{path}\n```\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"


def error_of(result: ApplyResult, number: int = 0):
    assert not result.ok
    assert not result.changes
    error = result.hunks[number].error
    assert error is not None
    return error


# V4A


@pytest.mark.parametrize("around", ["", "a\n"])
def test_a_merge_conflict_can_be_searched_for(around: str) -> None:
    conflict = "<<<<<<< HEAD\none\n||||||| base\n0\n=======\ntwo\n>>>>>>> other\n"
    reply = search(around + conflict, f"{around}both\n")
    assert text_of(apply(reply, {"a.py": f"a\n{conflict}z\n"}), "a.py") == "a\nboth\nz\n"


def test_a_conflict_without_end_is_no_reason_to_miss_the_next_block() -> None:
    reply = search("<<<<<<< HEAD\none\n", "both\n") + search("z\n", "y\n")
    result = apply(reply, {"a.py": "<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> other\nz\n"})
    assert not result.ok
    assert [hunk.status for hunk in result.hunks] == [HunkStatus.FAILED, HunkStatus.DROPPED]


def test_v4a_files_added_deleted_moved_updated() -> None:
    result = apply(
        "*** Begin Patch\n*** Add File: n/new.txt\n+one\n+\n+two\n*** Delete File: gone\n"
        "*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** End Patch",
        {"gone": "1\n", "a": "x\nz\n"},
    )
    assert result.ok
    assert result.changes == {"n/new.txt": b"one\n\ntwo\n", "gone": None, "a": None, "b": b"y\nz\n"}


def test_v4a_move_alone() -> None:
    result = apply(patch("*** Move to: b.py\n"), {"a.py": "x\n"})
    assert result.changes == {"a.py": None, "b.py": b"x\n"}


def test_v4a_stacked_contexts_name_the_place() -> None:
    body = "@@ class Second:\n@@     def target(self):\n-        return 0\n+        return 2\n"
    result = apply(patch(body), {"a.py": PY})
    assert text_of(result, "a.py") == PY[:-9] + "return 2\n"


def test_v4a_context_limits_the_search_to_its_block() -> None:
    body = "@@ class First:\n-        return 0\n+        return 1\n"
    assert text_of(apply(patch(body), {"a.py": PY}), "a.py") == PY.replace("0", "1", 1)


def test_v4a_ambiguous_without_context() -> None:
    error = error_of(apply(patch("@@\n-        return 0\n+        return 1\n"), {"a.py": PY}))
    assert error.reason is FailureReason.AMBIGUOUS
    assert [place.scope for place in error.places] == [
        "class First, def target(self)",
        "class Second, def target(self)",
    ]


def test_v4a_a_later_hunk_tells_places_apart() -> None:
    body = "@@\n-        return 0\n+        return 1\n@@\n-        return os.name\n+        pass\n"
    result = apply(patch(body), {"a.py": PY})
    assert text_of(result, "a.py") == PY.replace("0", "1", 1).replace("return os.name", "pass")


def test_v4a_missing_stacked_context_is_an_error() -> None:
    body = "@@ class Third:\n@@     def target(self):\n-        return 0\n+        return 2\n"
    assert "class Third" in error_of(apply(patch(body), {"a.py": PY})).message


def test_v4a_single_missing_context_is_only_a_hint() -> None:
    assert text_of(apply(patch("@@ nope\n-b\n+B\n"), {"a.py": "a\nb\n"}), "a.py") == "a\nB\n"


def test_v4a_end_of_file_chooses_the_last_place() -> None:
    body = "@@\n x\n-y\n+z\n*** End of File\n"
    assert text_of(apply(patch(body), {"a.py": "x\ny\nx\ny\n"}), "a.py") == "x\ny\nx\nz\n"


def test_v4a_additions_go_to_the_end_or_after_their_context() -> None:
    assert text_of(apply(patch("@@\n+new\n"), {"a.py": "a\nb\n"}), "a.py") == "a\nb\nnew\n"
    assert text_of(apply(patch("@@ a\n+new\n"), {"a.py": "a\nb\n"}), "a.py") == "a\nnew\nb\n"


@pytest.mark.parametrize(
    "reply",
    [
        patch("@@\n-b\n+B\n"),
        patch("-b\n+B\n"),
        patch("@@\n a\n-b\n+B\n\n"),
        patch("@@ -1,9 +1,9 @@ whatever\n a\n-b\n+B\n"),
        patch("@@\n-b\n+B\n").replace("*** Begin Patch", "  *** Begin Patch "),
        patch("@@\n-b\n+B\n").replace("*** End Patch\n", " *** End Patch"),
        patch("@@\n-b\n+B\n").replace("\n", "\r\n"),
        "apply_patch <<'EOF'\n" + patch("@@\n-b\n+B\n") + "EOF\n",
        "Some words.\n```\n" + patch("@@\n-b\n+B\n") + "```\nMore words.",
        "*** Update File: a.py\n@@\n-b\n+B",
        json.dumps({"input": patch("@@\n-b\n+B\n")}),
        json.dumps({"command": ["apply_patch", patch("@@\n-b\n+B\n")]}),
    ],
)
def test_v4a_habits(reply: str) -> None:
    assert text_of(apply(reply, {"a.py": "a\nb\nc\n"}), "a.py") == "a\nB\nc\n"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (patch("@@\n-b\n+B\n").replace("*** End Patch\n", ""), "without a line '*** End Patch'"),
        (patch(""), "has no lines"),
        (patch("@@\n"), "has no lines"),
        (patch("@@\n-b\nwrong\n+B\n"), "'wrong' is not a line of a hunk"),
        (patch("*** Rename File: x\n"), "'*** Rename File: x' is not a line of a hunk"),
        ("*** Begin Patch\nwhat\n*** End Patch", "'what' is not a file header"),
        ("*** Begin Patch\n*** End Patch\n", "no edit in it"),
    ],
)
def test_v4a_malformed(reply: str, message: str) -> None:
    result = apply(reply, {"a.py": "a\nb\nc\n"})
    assert not result.ok
    assert not result.changes
    assert message in result.message()


def test_v4a_last_line_is_terminated_when_written() -> None:
    assert text_of(apply(patch("@@\n-b\n+B\n"), {"a.py": "a\nb"}), "a.py") == "a\nB\n"
    assert text_of(apply(patch("@@\n-a\n+A\n"), {"a.py": "a\nb"}), "a.py") == "A\nb"


def test_hosted_operations() -> None:
    def run(kind: str, diff: str, before: bytes | None) -> bytes | None:
        events = operation_events(kind, "f", diff)  # pyright: ignore[reportArgumentType]
        result = apply_events(events, lambda path: before, "v4a")
        assert result.ok, result.message()
        return result.changes["f"]

    assert run("create_file", "+a\n+b", None) == b"a\nb"
    assert run("create_file", "+a\n+b\n+\n", None) == b"a\nb\n"
    assert run("update_file", "@@\n-a\r\n+A\r\n", b"a\r\nb\r\n") == b"A\r\nb\r\n"
    assert run("delete_file", "", b"x") is None


# SEARCH/REPLACE


def test_search_replace_two_files_and_inherited_name() -> None:
    reply = search("a\n", "A\n", "x.py") + "and\n\n<<<<<<< SEARCH\nc\n=======\n>>>>>>> REPLACE\n"
    result = apply(reply + search("q\n", "Q\n", "y.ts"), {"x.py": "a\nb\nc\n", "y.ts": "q"})
    assert result.ok
    assert result.changes == {"x.py": b"A\nb\n", "y.ts": b"Q"}


@pytest.mark.parametrize(
    "name",
    [
        "src/a.py\n```python\n",
        "```python\nsrc/a.py\n",
        "### src/a.py\n```\n",
        "**src/a.py**:\n\n"[:-1],
        "`src/a.py`\n```py\n",
        "```src/a.py\n",
        "```python:src/a.py\n",
        " ```python\nsrc/a.py\n```\n```python\n",
        "File: src/a.py\n````\n",
        "src/a.py\n<source>python\n",
        "<path>src/a.py</path>\n",
    ],
)
def test_search_replace_names(name: str) -> None:
    reply = f"I change it:\n\n{name}<<<<<<< SEARCH\na\n=======\nA\n>>>>>>> REPLACE\n```\n"
    assert text_of(apply(reply, {"src/a.py": "a\n"}), "src/a.py") == "A\n"


@pytest.mark.parametrize(
    ("head", "divider", "tail"),
    [
        ("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"),
        ("<<<<< SEARCH>", "=====", ">>>>> REPLACE"),
        ("<<<<<<<<< SEARCH", "=========", ">>>>>>>>> REPLACE"),
        ("------- SEARCH", "=======", "+++++++ REPLACE"),
        ("--- SEARCH", "===", "+++ REPLACE>"),
        ("<<<<<<< SEARCH  ", "======= ", "  >>>>>>> REPLACE"),
        ("------- SEARCH", "=======", ""),
        ("<<<<<<< SEARCH", "=======", "======="),
    ],
)
def test_search_replace_spellings(head: str, divider: str, tail: str) -> None:
    reply = f"a.py\n{head}\nb\n{divider}\nB\n{tail}"
    assert text_of(apply(reply, {"a.py": "a\nb\nc\n"}), "a.py") == "a\nB\nc\n"


def test_search_replace_creates_and_appends() -> None:
    assert text_of(apply(search("", "x\n", "new.py"), {}), "new.py") == "x\n"
    assert text_of(apply(search("", "x\n"), {"a.py": "a\n"}), "a.py") == "a\nx\n"
    dashes = "a.py\n------- SEARCH\n=======\nx\n+++++++ REPLACE\n"
    assert text_of(apply(dashes, {"a.py": ""}), "a.py") == "x\n"
    assert error_of(apply(dashes, {"a.py": "a\n"})).reason is FailureReason.NOT_EMPTY


def test_search_replace_out_of_order_and_on_new_text() -> None:
    reply = search("d\n", "D\n") + search("b\n", "B\n") + search("B\n", "BB\n")
    assert text_of(apply(reply, {"a.py": "a\nb\nc\nd\n"}), "a.py") == "a\nBB\nc\nD\n"


def test_search_replace_identical_blocks_take_one_place_each() -> None:
    reply = search("x\n", "y\n") * 2
    assert text_of(apply(reply, {"a.py": "x\na\nx\n"}), "a.py") == "y\na\ny\n"


def test_search_replace_elision() -> None:
    reply = search("a\n...\nd\n", "A\n...\nD\n")
    assert text_of(apply(reply, {"a.py": "a\nb\nc\nd\ne\n"}), "a.py") == "A\nb\nc\nD\ne\n"


def test_search_replace_fenced_halves() -> None:
    reply = search("```python\nb\n```\n", "```python\nB\n```\n")
    assert text_of(apply(reply, {"a.py": "a\nb\nc\n"}), "a.py") == "a\nB\nc\n"


def test_search_replace_headings_are_no_dividers() -> None:
    reply = "a.rst\n<<<<<<< SEARCH\nTitle\n=====\n=======\nOther\n=====\n>>>>>>> REPLACE\n"
    assert text_of(apply(reply, {"a.rst": "Title\n=====\n"}), "a.rst") == "Other\n=====\n"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("a.py\n<<<<<<< SEARCH\na\n=======\nb\n\nThat is all.\n", "expected '>>>>>>> REPLACE'"),
        ("a.py\n<<<<<<< SEARCH\na\n", "expected '======='"),
        ("a.py\n<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", "comes before a '=======' line"),
        ("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "names no file"),
        ("a.py\n<<-- SEARCH\na\n=======\nb\n+++++++ REPLACE\n", "without a SEARCH block"),
        ("No changes are needed.", "no fenced file"),
    ],
)
def test_search_replace_malformed(reply: str, message: str) -> None:
    edit_format = "search-replace" if "REPLACE" in reply else "auto"
    result = apply(reply, {"a.py": "a\n"}, format=edit_format)
    assert not result.ok
    assert message.lower() in result.message().lower()


@pytest.mark.parametrize(
    "name",
    [
        "- `b/a.py`\n```",
        "* **b/a.py**:\n```python",
        "=== b/a.py ===\n```python",
        '```python title="b/a.py"',
        "```python {file_name='b/a.py'}",
        "\ufeffb/a.py\n```python",
    ],
)
def test_ways_to_name_a_file(name: str) -> None:
    result = apply(f"{name}\nx = 1\n```\n", {})
    assert dict(result.changes) == {"b/a.py": b"x = 1\n"}


def test_items_of_the_responses_api() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+x\n*** End Patch\n"
    calls = [
        {"type": "custom_tool_call", "name": "apply_patch", "input": patch},
        {
            "type": "apply_patch_call",
            "operation": {"type": "update_file", "path": "a.py", "diff": "@@\n-b\n+y\n"},
        },
        {
            "type": "apply_patch_call",
            "operation": {"type": "create_file", "path": "n.py", "diff": "+n\n+"},
        },
        {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "d.py"}},
    ]
    files: dict[str, str | bytes] = {"a.py": "a\nb\n", "d.py": "d\n"}
    for reply in (
        json.dumps(calls),
        json.dumps(calls, indent=2),
        "\n".join(map(json.dumps, calls)),
    ):
        result = apply(reply, files)
        assert dict(result.changes) == {"a.py": b"x\ny\n", "n.py": b"n\n", "d.py": None}
        numbers = [hunk.number for hunk in result.hunks]
        assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("name", ["C:\\\\a.py", "C:/a.py", "~/a.py", "a\\nb.py", "a\\u007fb.py"])
def test_names_that_start_elsewhere_are_refused(name: str) -> None:
    reply = f'{{"command": "create", "path": "{name}", "file_text": "x"}}'
    result = apply(reply, {})
    assert (result.ok, dict(result.changes)) == (False, {})
    assert result.message().count("not below this folder") == 1


def test_backslashes_in_a_name_are_slashes() -> None:
    reply = "*** Begin Patch\n*** Update File: b\\a.py\n*** Move to: c\\d.py\n@@\n-a\n+x\n"
    result = apply(f"{reply}*** End Patch\n", {"b/a.py": "a\n"})
    assert dict(result.changes) == {"b/a.py": None, "c/d.py": b"x\n"}


def test_the_only_file_with_these_last_parts_is_meant() -> None:
    reply = "a.py\n<<<<<<< SEARCH\na\n=======\nx\n>>>>>>> REPLACE\n"
    files = {"b/a.py": b"a\n", "c/a.py": b"a\n"}
    one = apply_reply(reply, files.get, find=lambda _: ["b/a.py"])
    assert dict(one.changes) == {"b/a.py": b"x\n"}
    two = apply_reply(reply, files.get, find=lambda _: ["b/a.py", "c/a.py"])
    assert not two.changes
    assert "meant may be b/a.py or c/a.py" in two.message()
    new = apply_reply(reply.replace("\na\n=", "\n="), files.get, find=lambda _: ["b/a.py"])
    assert dict(new.changes) == {"a.py": b"x\n"}, "a new file is written where it was named"


# JSON


@pytest.mark.parametrize(
    "edit",
    [
        {"command": "str_replace", "path": "a.py", "old_str": "b(1)", "new_str": "c(2)"},
        {"file_path": "a.py", "old_string": "b(1)", "new_string": "c(2)", "replace_all": True},
        {"new_str": "c(2)", "old_str": "b(1)", "path": "a.py"},
        {"path": "a.py", "edits": [{"old_text": "x = b(1)\n", "new_text": "x = c(2)\n"}]},
        {"edits": [{"oldText": "b(1", "newText": "c(2"}], "path": "a.py"},
        {"type": "tool_use", "input": {"path": "a.py", "old_str": "b(1", "new_str": "c(2"}},
        {"function": {"arguments": '{"path": "a.py", "old_str": "b(1", "new_str": "c(2"}'}},
        {"path": "./a.py", "old_str": "x = b(1)\n\n", "new_str": "x = c(2)\n\n"},
    ],
)  # fmt: skip
def test_json_edits(edit: dict[str, object]) -> None:
    reply = "I will do it:\n\n```json\n" + json.dumps(edit, indent=1) + "\n```\nDone."
    assert text_of(apply(reply, {"a.py": "x = b(1)\n\ny\n"}), "a.py") == "x = c(2)\n\ny\n"


def test_json_create_and_insert() -> None:
    create = {"command": "create", "path": "n", "file_text": "a\nb"}
    insert = {"command": "insert", "path": "a.py", "insert_line": 1, "insert_text": "new\n"}
    result = apply(json.dumps(create) + json.dumps(insert), {"a.py": "a\nb\n"})
    assert result.changes == {"n": b"a\nb", "a.py": b"a\nnew\nb\n"}
    insert["insert_line"] = 9
    assert error_of(apply(json.dumps(insert), {"a.py": "a\nb\n"})).reason is FailureReason.NOT_FOUND


def test_json_calls_count_lines_one_after_the_other() -> None:
    calls = [
        {"command": "insert", "path": "a", "insert_line": 1, "insert_text": "1b\n"},
        {"command": "insert", "path": "a", "insert_line": 2, "insert_text": "1c\n"},
        {"command": "insert", "path": "a", "insert_line": 0, "insert_text": "0\n"},
    ]
    result = apply("\n".join(map(json.dumps, calls)), {"a": "1\n2\n"})
    assert text_of(result, "a") == "0\n1\n1b\n1c\n2\n"


def test_json_delete_lines_and_parts_of_lines() -> None:
    def run(old: str, new: str) -> str:
        edit = {"path": "a", "old_str": old, "new_str": new}
        return text_of(apply(json.dumps(edit), {"a": "one two\nthree\nfour"}), "a")

    assert run("three\n", "") == "one two\nfour"
    assert run(" two\nthr", "-") == "one-ee\nfour"
    assert run("\nfour", "\n4\n") == "one two\nthree\n4\n"
    assert run("one", "1\n1") == "1\n1 two\nthree\nfour"


def test_json_must_occur_once() -> None:
    edit = {"path": "a.py", "old_str": "return 0", "new_str": "return 1"}
    error = error_of(apply(json.dumps(edit), {"a.py": PY}))
    assert error.reason is FailureReason.AMBIGUOUS
    assert "line 6 in class First, def target(self)" in error.message
    both = apply(json.dumps({**edit, "replace_all": True}), {"a.py": PY})
    assert text_of(both, "a.py") == PY.replace("return 0", "return 1")


def test_json_whitespace_is_forgiven_as_whole_lines() -> None:
    edit = {"path": "a.py", "old_str": "def helper(self):\n    return os.name",
            "new_str": "def helper(self):\n    return os.sep"}  # fmt: skip
    result = apply(json.dumps(edit), {"a.py": PY})
    assert text_of(result, "a.py") == PY.replace("os.name", "os.sep")
    assert result.hunks[0].level is MatchLevel.INDENTATION


def test_json_half_surrogates_do_no_harm() -> None:
    reply = '{"path": "a", "old_str": "x", "new_str": "\\ud83d\\ude00 \\ud83d!"}'
    assert text_of(apply(reply, {"a": "x\n"}), "a") == "😀 \ufffd!\n"


# Unified diff


def test_udiff_wrong_numbers_and_prose() -> None:
    reply = (
        "Here:\n```diff\n--- a/a.py\n+++ b/a.py\n@@ -40,2 +40,2 @@ def target\n"
        "     def helper(self):\n-        return os.name\n+        return os.sep\n```\nDone.\n"
    )
    assert text_of(apply(reply, {"a.py": PY}), "a.py") == PY.replace("os.name", "os.sep")


def test_udiff_number_chooses_among_equal_places() -> None:
    def at(line: int) -> str:
        body = f"--- a.py\n+++ a.py\n@@ -{line} +{line} @@\n-x\n+y\n"
        return text_of(apply(body, {"a.py": "x\na\nx\nb\nx\n"}), "a.py")

    assert [at(1), at(3), at(5), at(9)] == [
        "y\na\nx\nb\nx\n",
        "x\na\ny\nb\nx\n",
        "x\na\nx\nb\ny\n",
        "x\na\nx\nb\ny\n",
    ]


def test_udiff_add_delete_rename_and_no_newline() -> None:
    reply = (
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-bye\n"
        "diff --git a/old b/new\nsimilarity index 50%\nrename from old\nrename to new\n"
        "--- a/old\n+++ b/new\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n\\ No newline at end of file\n"
        "diff --git a/p b/q\nsimilarity index 100%\nrename from p\nrename to q\n"
        "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\n+\n"
    )
    result = apply(reply, {"gone": "bye\n", "old": "a\nb\n", "p": "same"})
    assert result.ok, result.message()
    assert result.changes == {
        "gone": None,
        "old": None,
        "new": b"a\nB",
        "p": None,
        "q": b"same",
        "n": b"x\n\n",
    }


def test_udiff_deleted_sql_comment_is_no_header() -> None:
    reply = "--- a/q.sql\n+++ b/q.sql\n@@ -1,3 +1,2 @@\n one\n--- comment\n two\n"
    result = apply(reply, {"q.sql": "one\n-- comment\ntwo\n"})
    assert text_of(result, "q.sql") == "one\ntwo\n"


def test_udiff_delete_checks_the_text() -> None:
    reply = "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
    assert not apply(reply, {"gone": "other\n"}).ok


# Whole files and regions


def test_whole_files() -> None:
    reply = "a.py\n```python\nx = 1\ny = 2\n```\n\nb.md:\n````\n```sh\nls\n```\n````\n"
    result = apply(reply, {"a.py": "x = 1\r\ny = 1\r\n"})
    assert result.changes == {"a.py": b"x = 1\r\ny = 2\r\n", "b.md": b"```sh\nls\n```\n"}


def test_whole_file_named_by_the_caller() -> None:
    result = apply("```python\nx = 2\n```\n", {"src/a.py": "x = 1\n"}, file="src/a.py")
    assert text_of(result, "src/a.py") == "x = 2\n"
    bare = apply("x = 2\n", {"src/a.py": "x = 1\n"}, file="src/a.py", format="whole")
    assert text_of(bare, "src/a.py") == "x = 2\n"


def test_whole_files_mentioned_in_sentences_and_examples() -> None:
    reply = (
        "Here is the new `a.py`, which uses `numpy.array`:\n\n```\nnew a\n```\n"
        "And `b.py` for you to consider:\n\n```python\nnew b\n```\n"
        "Run it:\n```bash\npython a.py\n```\n"
    )
    result = apply(reply.replace(", which uses `numpy.array`", ""), {"a.py": "a\n", "b.py": "b\n"})
    assert result.changes == {"a.py": b"new a\n", "b.py": b"new b\n"}
    assert "numpy.array" not in apply(reply, {"a.py": "a\n"}, file="a.py").changes
    extra = "Now `a.py`:\n\n```\nnew a\n```\nUse it so:\n\n```\nimport a\n```\n"
    assert apply(extra, {"a.py": "a\n"}, file="a.py").changes == {"a.py": b"new a\n"}
    prefixed = apply("path/to/a.py\n```\nnew a\n```\n", {"a.py": "a\n"})
    assert prefixed.changes == {"a.py": b"new a\n"}


def test_commands_before_blocks_do_not_hide_the_format() -> None:
    reply = "First:\n```bash\npip install x\n```\nThen:\n```py\nx = 1\n```\n" + search("a\n", "A\n")
    assert text_of(apply(reply, {"a.py": "a\n"}), "a.py") == "A\n"


def test_cut_whole_file_is_not_applied() -> None:
    assert not apply("a.py\n```python\nx = 2\n", {"a.py": "x = 1\ny = 1\n"}).ok


def test_region_is_the_whole_of_the_named_file() -> None:
    reply = "Here:\n<region>\nx = 2\n</region>\n"
    assert text_of(apply(reply, {"a.py": "x = 1\n"}, file="a.py"), "a.py") == "x = 2\n"


# The ladder


@pytest.mark.parametrize(
    ("old", "new", "after", "level"),
    [
        ("    b = 1", "    b = 2", "    b = 2", MatchLevel.EXACT),
        ("    b = 1  ", "    b = 2", "    b = 2", MatchLevel.TRAILING),
        ("b = 1", "b = 2", "    b = 2", MatchLevel.INDENTATION),
        ("        b = 1", "        b = 2", "    b = 2", MatchLevel.INDENTATION),
        ("    b = “1”", "    b = 2", None, None),
    ],
)
def test_ladder(old: str, new: str, after: str | None, level: MatchLevel | None) -> None:
    result = apply(search(f"{old}\n", f"{new}\n", "a.js"), {"a.js": "a\n    b = 1\nc\n"})
    if after is None:
        assert not result.ok
    else:
        assert text_of(result, "a.js") == f"a\n{after}\nc\n"
        assert result.hunks[0].level is level


def test_ladder_punctuation() -> None:
    result = apply(search('s = "it\'s - ok"\n', "s = 1\n"), {"a.py": "s = “it’s — ok”\n"})
    assert text_of(result, "a.py") == "s = 1\n"
    assert result.hunks[0].level is MatchLevel.PUNCTUATION


def test_ladder_inconsistent_white_space_depends_on_the_language() -> None:
    files: dict[str, str | bytes] = {
        "a.js": "  if (x) {\n    y;\n  }\n",
        "a.py": "  if x:\n    y\n",
    }
    result = apply(search("if (x) {\n       y;\n}\n", "if (z) {\n y;\n}\n", "a.js"), files)
    assert result.hunks[0].level is MatchLevel.WHITESPACE
    assert not apply(search("if x:\n       y\n", "if z:\n y\n", "a.py"), files).ok


def test_first_line_may_lose_its_indentation_alone() -> None:
    reply = search("def f(self):\n        return 1\n", "def f(self):\n        return 2\n")
    result = apply(reply, {"a.py": "class A:\n    def f(self):\n        return 1\n"})
    assert text_of(result, "a.py") == "class A:\n    def f(self):\n        return 2\n"


def test_spaces_for_tabs() -> None:
    reply = search("if x:\n    y\n", "if x:\n    if z:\n        y\n", "a.go")
    result = apply(reply, {"a.go": "\tif x:\n\t\ty\n".replace("\tif", "if").replace("\t\t", "\t")})
    assert text_of(result, "a.go") == "if x:\n\tif z:\n\t\ty\n"


def test_context_lines_keep_the_files_own_text() -> None:
    result = apply(patch("@@\n a\n-b\n+B\n c\n"), {"a.py": "a  \nb\nc\t\n"})
    assert text_of(result, "a.py") == "a  \nB\nc\t\n"
    assert result.hunks[0].level is MatchLevel.TRAILING


def test_fuzzy_is_only_a_proposal() -> None:
    old = "def total(items):\n    result = 0\n    for item in items:\n        result += item\n"
    result = apply(search(old.replace("result = 0", "result = 0.0"), "x\n"), {"a.py": old})
    assert not result.ok
    assert result.hunks[0].status is HunkStatus.PROPOSED
    error = error_of(result)
    assert (error.reason, error.line, error.expected, error.found) == (
        FailureReason.FUZZY,
        1,
        "    result = 0.0",
        "    result = 0",
    )


def test_broken_python_is_refused_where_indentation_was_guessed() -> None:
    reply = search("y = 1\n", "y = 1\n    z = (\n")
    error = error_of(apply(reply, {"a.py": "if x:\n    y = 1\n"}))
    assert error.reason is FailureReason.SYNTAX


# Errors and transactions


def test_already_applied() -> None:
    error = error_of(apply(search("old line\n", "new line\n"), {"a.py": "new line\n"}))
    assert error.reason is FailureReason.ALREADY_APPLIED
    assert "drop this hunk" in error.message


def test_message_for_the_model_names_everything() -> None:
    reply = search("a\n", "A\n") + search("def g():\n    return 2\n    # end\n", "x\n")
    text = "a\ndef g():\n    return 1\n    # done\nz\n"
    result = apply(reply, {"a.py": text})
    message = result.message()
    assert "Hunk 2 of a.py (version " in message
    assert "expected:     return 2" in message
    assert "found:        return 1" in message
    assert "Hunk 1 would apply" in message
    assert [h.status for h in result.hunks] == [HunkStatus.DROPPED, HunkStatus.PROPOSED]
    partial = apply(reply, {"a.py": text}, partial=True)
    assert not partial.ok
    assert partial.changes == {"a.py": text.replace("a", "A", 1).encode()}
    assert "Hunk 1 applied; do not send it again." in partial.message()
    data = json.loads(json.dumps(partial.to_json()))
    assert data["hunks"][0] == {
        "hunk": 1,
        "path": "a.py",
        "status": "applied",
        "match_level": 1,
        "match": "exact",
        "start_line": 1,
        "stop_line": 1,
        "added": 1,
        "deleted": 1,
        "error": None,
    }
    assert data["hunks"][1]["error"]["line"] == 3


def test_missing_and_binary_files() -> None:
    assert error_of(apply(patch("@@\n-a\n+b\n"), {})).reason is FailureReason.NO_FILE
    assert error_of(apply(patch("@@\n-a\n+b\n"), {"a.py": b"a\0"})).reason is FailureReason.NOT_TEXT
    latin = b"# coding: latin-1\na\n"
    assert (
        error_of(apply(patch("@@\n-a\n+\u2192\n"), {"a.py": latin})).reason
        is FailureReason.NOT_TEXT
    )


def test_unknown_format() -> None:
    with pytest.raises(ValueError, match="xml"):
        apply_reply("", {}.get, format="xml")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_files_keep_their_encoding_and_line_ends(encoding: str, newline: str, end: str) -> None:
    text = f"é\x0cone\ntwo\u2028\n\tthree{end}"
    before = text.replace("\n", newline).encode(encoding)
    result = apply(search("two\u2028\n", "2\n2b\n"), {"a.py": before})
    after = text.replace("two\u2028", "2\n2b").replace("\n", newline).encode(encoding)
    assert result.changes == {"a.py": after}


@examples(150)
@given(LINES, LINES, st.sampled_from(names()))
def test_a_rendered_difference_gives_the_new_text(
    old: list[str], new: list[str], edit_format: str
) -> None:
    """What a perfect model would send, in each format, turns the old text into the new one."""
    before, after = join_lines(old), join_lines(new)
    if not old or not new or before == after:
        return
    whole_old = "".join(f"-{line}\n" for line in old)
    whole_new = "".join(f"+{line}\n" for line in new)
    replies = {
        "v4a": patch(f"@@\n{whole_old}{whole_new}", "f"),
        "udiff": f"--- a/f\n+++ b/f\n@@ -1,{len(old)} +1,{len(new)} @@\n" + whole_old + whole_new,
        "search-replace": search(before, after, "f.x"),
        "str-replace": json.dumps({"path": "f", "old_str": before, "new_str": after}),
        "whole": f"f.x\n```\n{after}```\n",
        "region": f"<region>\n{after}</region>\n",
    }
    path = "f.x" if edit_format in ("search-replace", "whole") else "f"
    if edit_format == "region":
        result = apply(replies[edit_format], {path: before}, file=path)
    else:
        result = apply(replies[edit_format], {path: before}, format=edit_format)
    assert result.ok, result.message()
    data = result.changes.get(path, before.encode())
    assert data is not None
    assert SourceText.from_bytes(data).lines == tuple(new)


@pytest.mark.parametrize("change", ["too few", "too many"])
def test_a_block_with_a_line_too_few_or_too_many_is_proposed(change: str) -> None:
    lines = [
        "alpha = load(path)",
        "if not alpha:",
        "    raise ValueError(kind)",
        "for row in table:",
        "    print(row, end='')",
        "return sorted(names)",
    ]
    middle = [] if change == "too few" else ["    raise ValueError(kind)", "  # a note of its own"]
    place = Matcher(["", *lines, ""]).nearest([*lines[:2], *middle, *lines[3:]])[0]
    assert (place.start, place.stop) == (1, 7)
    assert place.similarity > 0.8


def test_udiff_copies_leave_the_old_file() -> None:
    head = "diff --git a/a.py b/b.py\nsimilarity index 60%\ncopy from a.py\ncopy to b.py\n"
    result = apply(head, {"a.py": "1\n2\n"})
    assert result.ok, result.message()
    assert result.changes == {"b.py": b"1\n2\n"}
    body = "index 1..2 100644\n--- a/a.py\n+++ b/b.py\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"
    result = apply(head + body, {"a.py": "1\n2\n"})
    assert result.ok, result.message()
    assert result.changes == {"b.py": b"1\n3\n"}
    rename = head.replace("copy", "rename")
    assert apply(rename + body, {"a.py": "1\n2\n"}).changes == {"a.py": None, "b.py": b"1\n3\n"}


def test_udiff_deletes_an_empty_file() -> None:
    reply = "diff --git a/e b/e\ndeleted file mode 100644\nindex e69de29..0000000\n"
    assert apply(reply, {"e": ""}).changes == {"e": None}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("new file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a.py\n", "symbolic link"),
        ("index 1..2 100644\nGIT binary patch\nliteral 3\nabc\n", "is binary here"),
        ("index 1..2 100644\nBinary files a/l and b/l differ\n", "is binary here"),
    ],
)
def test_udiff_what_only_git_can_apply_is_said(header: str, message: str) -> None:
    change = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+two\n"
    reply = f"diff --git a/l b/l\n{header}{change}"
    result = apply(reply, {"a.py": "one\n"})
    assert not result.ok
    assert not result.changes
    assert message in result.message()
    # A link must not be written as a plain file that holds the name it points to.
    assert "l" not in apply(reply, {"a.py": "one\n"}, partial=True).changes


def test_udiff_modes() -> None:
    reply = (
        "diff --git a/a.py b/a.py\nold mode 100644\nnew mode 100755\n"
        "diff --git a/b.py b/c.py\nold mode 100755\nnew mode 100644\n"
        "similarity index 100%\nrename from b.py\nrename to c.py\n"
        "diff --git a/d.py b/d.py\nold mode 100644\nnew mode 100755\nindex 1..2\n"
        "--- a/d.py\n+++ b/d.py\n@@ -1 +1 @@\n-d\n+D\n"
    )
    files = {"a.py": "a\n", "b.py": "b\n", "d.py": "d\n"}
    result = apply(reply, files)
    assert result.ok, result.message()
    assert result.executable == {"a.py": True, "c.py": False, "d.py": True}
    assert result.changes == {"b.py": None, "c.py": b"b\n", "d.py": b"D\n"}
    failing = apply(reply.replace("-d", "-e"), files)
    assert not failing.executable


def test_a_diff_copied_from_a_terminal_comes_without_its_colours() -> None:
    reply = (
        "\x1b[1m--- a/a.py\x1b[m\n\x1b[1m+++ b/a.py\x1b[m\n\x1b[36m@@ -1,2 +1,2 @@\x1b[m\n"
        " one\x1b[m\n\x1b[31m-two\x1b[m\n\x1b[32m+\x1b[m\x1b[32mTWO\x1b[m\n"
    )
    assert text_of(apply(reply, {"a.py": "one\ntwo\n"}), "a.py") == "one\nTWO\n"
    # Where the reply is understood as it stands, what looks like a colour is code.
    code = "\x1b[31mred\n"
    assert text_of(apply(search("two\n", code), {"a.py": "two\n"}), "a.py") == code
