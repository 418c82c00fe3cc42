"""Calls of agents' edit tools, and the same call with only some of its hunks."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.agent_input import PlannedFile, UnplacedError, planned, rewritten
from midstream.edits.documents import SourceText, join_lines
from midstream.edits.lcs import line_edits
from tests.helpers.property import examples
from tests.helpers.strategies import code, mutate

BEFORE = "one\ntwo\nthree\nfour\nfive\n"


def reader(files: Mapping[str, str]) -> Any:
    return lambda path: files[path].encode() if path in files else None


def codex(files: Mapping[str, str], patch: str) -> dict[str, list[str]]:
    """What Codex's applier makes of a patch: each hunk at the first place of its old lines."""
    result = {path: text.splitlines() for path, text in files.items()}
    lines = patch.split("\n")
    assert (lines[0], lines[-1]) == ("*** Begin Patch", "*** End Patch")
    path, floor, at = "", 0, 1
    while at < len(lines) - 1:
        head, _, name = lines[at].partition(": ")
        at += 1
        if head.startswith("*** "):
            path, floor = name, 0
            if head == "*** Delete File":
                del result[path]
            if head == "*** Add File":
                result[path] = []
                while lines[at].startswith("+"):
                    result[path].append(lines[at][1:])
                    at += 1
            continue
        assert head == "@@"
        old: list[str] = []
        new: list[str] = []
        while lines[at][:1] in (" ", "+", "-"):
            old += [lines[at][1:]] * (lines[at][0] != "+")
            new += [lines[at][1:]] * (lines[at][0] != "-")
            at += 1
        text = result[path]
        place = (
            next(n for n in range(floor, len(text)) if text[n : n + len(old)] == old)
            if old
            else len(text)
        )
        text[place : place + len(old)] = new
        floor = place + len(new)
    return result


def claude(text: str, arguments: Mapping[str, Any]) -> str:
    """What Claude Code's tools make of a text."""
    if "content" in arguments:
        return arguments["content"]
    for edit in arguments.get("edits", [arguments]):
        old, new = edit["old_string"], edit["new_string"]
        assert old != new
        if not old:
            assert not text
            text = new
            continue
        assert text.count(old) == 1 or edit.get("replace_all")
        text = text.replace(old, new)
    return text


def some_of(rng: random.Random, before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """A text with only some of the changes between two."""
    edits = [edit for edit in line_edits(before, after) if rng.random() < 0.5]
    return SourceText.from_text(join_lines(before)).replace(edits).lines


def test_a_call_is_read_as_the_lines_that_it_leaves() -> None:
    read = reader({"a.py": BEFORE})
    edit = {"file_path": "a.py", "old_string": "wo\nth", "new_string": "WO\nTH"}
    (file,) = planned("Edit", edit, read)
    assert file.after == ("one", "tWO", "THree", "four", "five")
    again = [edit, {"old_string": "e", "new_string": "E", "replace_all": True}]
    (file,) = planned("MultiEdit", {"file_path": "a.py", "edits": again}, read)
    assert file.after == ("onE", "tWO", "THrEE", "four", "fivE")
    (file,) = planned("Write", {"file_path": "new.py", "content": "x\n"}, read)
    assert file == PlannedFile("new.py", None, ("x",))
    patch = "*** Begin Patch\n*** Delete File: a.py\n*** Add File: b.py\n+x\n*** End Patch"
    assert set(planned("apply_patch", {"command": patch}, read)) == {
        PlannedFile("a.py", tuple(BEFORE.split()), None),
        PlannedFile("b.py", None, ("x",)),
    }


@pytest.mark.parametrize(
    "edit",
    [
        {"old_string": "six", "new_string": "6"},
        {"old_string": "o", "new_string": "0"},
        {"old_string": "", "new_string": "0"},
        {"new_string": "0"},
    ],
)
def test_a_call_that_does_not_fit_is_not_guessed_at(edit: dict[str, str]) -> None:
    with pytest.raises(UnplacedError):
        planned("Edit", {"file_path": "a.py", **edit}, reader({"a.py": BEFORE}))


def test_carriage_returns_do_not_hide_the_text_to_replace() -> None:
    read = reader({"a.py": BEFORE.replace("\n", "\r\n")})
    (file,) = planned(
        "Edit", {"file_path": "a.py", "old_string": "two\nthree", "new_string": "2"}, read
    )
    assert file.after == ("one", "2", "four", "five")


@given(st.integers(0, 1 << 30), st.sampled_from(["Edit", "MultiEdit", "Write"]), st.booleans())
@examples(400)
def test_what_is_kept_of_a_file_is_exactly_what_the_tool_writes(
    seed: int, tool: str, ended: bool
) -> None:
    rng = random.Random(seed)
    lines = code(rng, rng.randint(1, 30))
    text = join_lines(lines) if ended else join_lines(lines).removesuffix("\n")
    if not text.strip():
        return
    before = SourceText.from_text(text).lines
    kept = some_of(rng, before, mutate(rng, list(before), 4))
    if kept == before or (not ended and kept[-1:] == ("",)):
        return  # Without a final newline, an empty last line is no line.
    original = {"file_path": "a.py", "content": text, "old_string": "?", "new_string": "?"}
    try:
        call = rewritten(tool, original, [PlannedFile("a.py", before, kept)])
    except UnplacedError:
        # Only where the text has, or had, nothing but blanks.
        assert tool != "Write"
        assert not ("".join(kept) and "".join(before))
        return
    if tool != "Write":
        del call["content"]
    written = SourceText.from_text(claude(text, call)).lines
    assert written == kept
    (again,) = planned(tool, call, reader({"a.py": text}))
    assert again.after == kept


@given(st.integers(0, 1 << 30))
@examples(400)
def test_what_is_kept_of_a_patch_is_exactly_what_codex_writes(seed: int) -> None:
    rng = random.Random(seed)
    names = ["a.py", "b.py", "c.py"]
    files = {name: join_lines(code(rng, rng.randint(1, 40))) for name in names}
    wanted: list[PlannedFile] = []
    for name in names:
        before = SourceText.from_text(files[name]).lines
        kept = some_of(rng, before, mutate(rng, list(before), 5))
        after = None if rng.random() < 0.2 else kept
        if after != before:
            wanted.append(PlannedFile(name, before, after))
    if rng.random() < 0.5:
        wanted.append(PlannedFile("new.py", None, tuple(code(rng, 3))))
    if not wanted:
        return
    call = rewritten("apply_patch", {"command": "?", "workdir": "x"}, wanted)
    assert call["workdir"] == "x"
    expected = {name: text.splitlines() for name, text in files.items()}
    for path, _, after in wanted:
        if after is None:
            del expected[path]
        else:
            expected[path] = list(after)
    assert codex(files, call["command"]) == expected
    assert sorted(planned("apply_patch", call, reader(files)), key=lambda f: f.path) == sorted(
        wanted, key=lambda f: f.path
    )
