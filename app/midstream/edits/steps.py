"""The undoable steps of a hunk store, as data: hunks before and after.

Taking them, and taking them back, is ``hunks``'s.
"""

from __future__ import annotations

from midstream.edits.hunk import Hunk, HunkState


class Snapshot:
    """What a decision can change in a hunk."""

    __slots__ = ("displaced", "new", "note", "own", "state")

    def __init__(self, hunk: Hunk) -> None:
        self.state = hunk.state
        self.note = hunk.note
        self.new = hunk.new
        self.own = hunk.own
        self.displaced = hunk.displaced

    def same(self, other: Snapshot) -> bool:
        """Whether a hunk stands alike in both."""
        return (self.state, self.note, self.new) == (other.state, other.note, other.new)

    def restructured(self, hunk: Hunk) -> bool:
        """Whether the hunk has other lines since, or came into the picture or out of it."""
        superseded = HunkState.SUPERSEDED
        moved = (self.state is superseded) != (hunk.state is superseded)
        return moved or self.new != hunk.new or self.displaced != hunk.displaced


class Step:
    """One undoable step: hunks before and after, and for a split which hunk became which."""

    def __init__(self) -> None:
        self.before: dict[int, Snapshot] = {}
        self.after: dict[int, Snapshot] = {}
        self.parent: Hunk | None = None
        self.children: tuple[Hunk, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is otherwise after it than before."""
        return all(before.same(self.after[i]) for i, before in self.before.items())

    def forget_split(self) -> None:
        """Its parts cannot be joined again; what was decided about them can be taken back."""
        if self.parent is None:
            return
        del self.before[self.parent.id], self.after[self.parent.id]
        for child in self.children:
            self.before[child.id].state = HunkState.SETTLED
        self.parent, self.children = None, ()
