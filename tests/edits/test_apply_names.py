"""Files as diffs name them, what is there already, and how new files end their lines."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.apply import apply_reply
from midstream.edits.outcome import ApplyResult, FailureReason


def applied(reply: str, files: Mapping[str, str]) -> ApplyResult:
    data = {path: text.encode() for path, text in files.items()}
    return apply_reply(reply, data.get)


def git_diff(folder: Path, old: Mapping[str, str], new: Mapping[str, str], *options: str) -> str:
    """What git says of a change, in a repository of its own."""

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return done.stdout.decode()

    git("init", "-q")
    for files in (old, new):
        for path in folder.rglob("*"):
            if path.is_file() and ".git" not in path.parts:
                path.unlink()
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        git("add", "-A")
        git("commit", "-q", "--allow-empty", "-m", "x")
    return git("diff", "-M", *options, "HEAD^", "HEAD")


@pytest.mark.parametrize(
    "options", [(), ("--no-prefix",), ("--src-prefix=old/", "--dst-prefix=new/")]
)
@pytest.mark.parametrize(
    "name",
    ["naïve.txt", "with space.txt", "tab\there.txt", 'quo"te.txt', "back\\slash", "a/b/c.txt"],
)
def test_a_diff_of_git_changes_the_file_that_it_names(
    tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    old, new = "one\ntwo\nthree\n", "one\n2\nthree\n"
    result = applied(git_diff(tmp_path, {name: old}, {name: new}, *options), {name: old})
    assert result.changes == {name: new.encode()}, result.message()


@pytest.mark.parametrize("name", ["naïve.txt", "with space.txt", 'quo"te.txt'])
def test_a_renamed_file_is_renamed(tmp_path: Path, name: str) -> None:
    text = "".join(f"line {n}\n" for n in range(20))
    diff = git_diff(tmp_path, {"plain.txt": text}, {f"sub/{name}": text})
    result = applied(diff, {"plain.txt": text})
    assert result.changes == {"plain.txt": None, f"sub/{name}": text.encode()}


@given(name=st.text(st.characters(blacklist_characters="/\0", codec="utf-8"), min_size=1))
def test_what_git_quotes_is_read_as_it_was(name: str) -> None:
    from midstream.edits.formats.udiff import _unquoted  # pyright: ignore[reportPrivateUsage]

    quoted = "".join(f"\\{byte:03o}" for byte in name.encode())
    assert _unquoted(f'"{quoted}"') == name


ONTO = {
    "add": "*** Begin Patch\n*** Add File: b.txt\n+hello\n*** End Patch\n",
    "move": "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n*** End Patch\n",
    "new": "--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+hello\n",
    "copy": "diff --git a/a.txt b/b.txt\ncopy from a.txt\ncopy to b.txt\n",
}


@pytest.mark.parametrize("way", ONTO)
def test_nothing_that_exists_is_overwritten(way: str) -> None:
    result = applied(ONTO[way], {"a.txt": "a\n", "b.txt": "keep me\n"})
    assert not result.ok
    assert not result.changes
    assert [file.error.reason for file in result.files if file.error] == [FailureReason.EXISTS]


def test_a_name_that_the_same_reply_frees_can_be_taken() -> None:
    reply = "*** Begin Patch\n*** Delete File: b.txt\n*** Add File: b.txt\n+hello\n*** End Patch\n"
    assert applied(reply, {"b.txt": "old\n"}).changes == {"b.txt": b"hello\n"}


PLACEHOLDERS = [
    "// ... existing code ...",
    "# ...",
    "// rest of the code unchanged",
    "/* ... */",
    "// other code stays the same",
    "[rest of the file unchanged]",
    "-- snip --",
    "# no changes below",
    "pass  # ... existing code ...",
]


@pytest.mark.parametrize("line", PLACEHOLDERS)
@pytest.mark.parametrize("form", ["search", "udiff", "v4a", "json"])
def test_a_placeholder_is_never_written(line: str, form: str) -> None:
    replies = {
        "search": f"a.js\n<<<<<<< SEARCH\nb();\nc();\n=======\n{line}\nd();\n>>>>>>> REPLACE\n",
        "udiff": f"--- a/a.js\n+++ b/a.js\n@@ -2,2 +2,2 @@\n a();\n-b();\n-c();\n+{line}\n+d();\n",
        "v4a": f"*** Begin Patch\n*** Update File: a.js\n@@\n-b();\n-c();\n+{line}\n+d();\n",
        "json": '{"path":"a.js","old_str":"b();\\nc();","new_str":"' + line + '\\nd();"}',
    }
    before = "a();\nb();\nc();\n"
    result = applied(replies[form], {"a.js": before})
    assert line.encode() not in (result.changes.get("a.js") or b"")
    assert b"b();" in (result.changes.get("a.js") or before.encode())


def test_a_placeholder_that_is_in_the_file_already_is_kept() -> None:
    reply = "a.js\n<<<<<<< SEARCH\n// ...\nb();\n=======\n// ...\nc();\n>>>>>>> REPLACE\n"
    assert applied(reply, {"a.js": "// ...\nb();\n"}).changes == {"a.js": b"// ...\nc();\n"}


def test_a_byte_order_mark_is_no_part_of_a_line() -> None:
    diff = "--- a/a.cs\n+++ b/a.cs\n@@ -1,2 +1,2 @@\n-\ufeffusing A;\n+\ufeffusing X;\n using B;\n"
    result = applied(diff, {"a.cs": "\ufeffusing A;\nusing B;\n"})
    assert result.changes == {"a.cs": "\ufeffusing X;\nusing B;\n".encode()}


@pytest.mark.parametrize("path", ["src/b.c", "lib/a/b.py", "data/w/x", "b/i.py", "a.py"])
def test_only_the_prefix_of_a_new_name_goes(path: str) -> None:
    """Not the end of a folder that looks like one."""
    made = applied(f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n", {})
    assert dict(made.changes) == {path: b"x\n"}
    gone = applied(f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", {path: "x\n"})
    assert dict(gone.changes) == {path: None}
