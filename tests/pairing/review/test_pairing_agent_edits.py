"""What an agent's edit changes: exact for what is quick to compare, the beginning of the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.lcs import line_edits
from midstream.pairing.review import agent_edits
from midstream.pairing.review.agent_edits import changed_lines, place_of_edit

TEXTS = st.lists(
    st.sampled_from(["a\n", "b\n", "c\r\n", "\r", "d\x0c", "\n", "é", "e"]), max_size=12
)


def expected(old: str, new: str) -> list[tuple[str, str]]:
    before = old.splitlines()
    changed: list[tuple[str, str]] = []
    for edit in line_edits(before, new.splitlines()):
        changed += [("-", line) for line in before[edit.start : edit.stop]]
        changed += [("+", line) for line in edit.lines]
    return changed


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_a_small_edit_is_compared_exactly(
    head: list[str], old: list[str], new: list[str], tail: list[str]
) -> None:
    before, after = ("".join([*head, *part, *tail]) for part in (old, new))
    changed = changed_lines(before, after)
    assert changed.whole
    assert list(changed.lines) == expected(before, after)


def numbered(word: str, count: int) -> str:
    return "".join(f"{word} {number}\n" for number in range(count))


@pytest.mark.parametrize("ends", ["", "same\n" * 50_000])
def test_no_more_of_a_large_edit_is_compared_than_is_quick(
    monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    compared: list[int] = []

    def counted(old: list[str], new: list[str]) -> object:
        compared.append(max(len(old), len(new)))
        return line_edits(old, new)

    monkeypatch.setattr(agent_edits, "line_edits", counted)
    old, new = numbered("old", 100_000), numbered("new", 200_000)
    changed = changed_lines(f"{ends}{old}kept\n{ends}", f"{ends}first\n{new}kept\n{ends}")
    assert not changed.whole
    assert changed.lines[0] == ("-", "old 0")
    assert ("+", "first") in changed.lines
    small = changed_lines(f"{old}was\n{ends}{new}", f"{old}is\n{ends}{new}")
    assert small.lines == (("-", "was"), ("+", "is"))
    assert small.whole
    long = changed_lines("a" * 10_000_000, "b" * 10_000_000)
    assert not long.whole
    assert max(compared) <= 4_000


def test_lines_that_are_cut_off_are_not_told_as_deleted() -> None:
    old = numbered("line", 10_000)
    changed = changed_lines(old, f"first\n{old}last\n")
    assert changed.lines == (("+", "first"),)
    assert not changed.whole


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("b\nc", "b\nX", 2),
        ("b\nc\n", "X\nb\nc\n", 1),
        ("d", "d\ne", 4),
        ("d\na", "d\na\ne", 4),
        ("a", "X", None),
        ("c\nb", "X", None),
        ("b", "b", None),
        ("", "X", None),
        ("b\nc\nd\na\nmore", "X", None),
    ],
)
def test_an_edit_is_shown_where_its_old_text_is_once(old: str, new: str, place: int | None) -> None:
    lines = ["a", "b", "c", "d", "a"]
    assert place_of_edit(lines, old, new) == place


def test_a_text_that_nearly_repeats_is_found() -> None:
    """Comparing it at every line would take a minute."""
    lines = ["{}"] * 60_000 + ["end"] + ["{}"] * 60_000
    old = "{}\n" * 40_000 + "end\n"
    assert place_of_edit(lines, old, f"{old}more\n") == 60_001
