"""Moving hunks to a new base where one lies within the range of another."""

from __future__ import annotations

import pytest

from midstream.edits.documents import SourceText
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import HunkState
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
    conflict = store.open("f", 0)
    store.remove_line(conflict, "x", 1)
    store.add_line(conflict, "y")
    store.settle(conflict, conflict="these lines were changed in the file")
    store.place(conflict, 0, 4, base.lines)
    # Folded into the base and rejected after that: its line is to go again.
    rejected = store.open("f", 1)
    store.add_line(rejected, "mine")
    store.settle(rejected)
    store.reject(rejected.id)
    store.place(rejected, 1, 2, ("mine",))
    store.move(Rebase([conflict, rejected], base, text(*after)).moves())
    assert (conflict.start, conflict.stop, conflict.state) == (start, stop, HunkState.CONFLICT)
    assert conflict.base_lines == after[start:stop] == ("a", "b", "c")
