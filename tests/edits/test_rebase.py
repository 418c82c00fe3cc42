"""Moving hunks to a new base where one lies within the range of another."""

from __future__ import annotations

import pytest

from midstream.edits.documents import SourceText
from midstream.edits.hunk import Hunk
from midstream.edits.hunks import HunkState, HunkStore
from midstream.edits.rebase import Rebase


def text(*lines: str) -> SourceText:
    return SourceText.from_bytes("".join(f"{line}\n" for line in lines).encode())


@pytest.mark.parametrize(
    ("after", "start", "stop"),
    [
        (("a", "b", "c"), 0, 3),
        (("new", "a", "b", "c"), 1, 4),
        (("a", "b", "c", "new"), 0, 3),
    ],
)
def test_a_conflict_is_as_much_shorter_as_what_is_taken_out_within_it(
    after: tuple[str, ...], start: int, stop: int
) -> None:
    base = text("a", "mine", "b", "c")
    store = HunkStore()
    conflict = Hunk(1, "f", 0)
    conflict.rewrite(["x"], ["y"])
    conflict.place(0, 4, base.lines)
    conflict.state = HunkState.CONFLICT
    # Folded into the base and rejected after that: its line is to go again.
    rejected = Hunk(2, "f", 1)
    rejected.rewrite([], ["mine"])
    rejected.place(1, 2, ("mine",))
    rejected.state = HunkState.REJECTED
    Rebase([conflict, rejected], base, text(*after)).move_hunks(store, None)
    assert (conflict.start, conflict.stop, conflict.state) == (start, stop, HunkState.CONFLICT)
    assert conflict.held == after[start:stop] == ("a", "b", "c")
