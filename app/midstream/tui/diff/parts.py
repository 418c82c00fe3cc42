"""The hunk lines that rows of the code pane show, and the places where a hunk can be split.

Positions in a hunk are counted as its owner counts them: old lines and new lines before a place.
Decides nothing.
"""

from __future__ import annotations

from msgspec import Struct

from midstream.edits.hunks import Hunk
from midstream.edits.intraline import pair_lines
from midstream.edits.rows import RowKind
from midstream.tui.diff.view import FileView

Place = tuple[int, int]
"""How many old and how many new lines of a hunk lie before a place."""


class HunkPart(Struct, frozen=True):
    """The lines of a hunk between two places."""

    hunk: Hunk
    first: Place
    last: Place

    @property
    def whole(self) -> bool:
        return self.first == (0, 0) and self.last == (self.hunk.deleted, self.hunk.added)

    @property
    def size(self) -> int:
        """Lines in it, old and new ones."""
        return self.last[0] - self.first[0] + self.last[1] - self.first[1]

    @property
    def lines(self) -> tuple[int, int] | None:
        """The range, counting old lines and then new ones; ``None`` for several ranges."""
        deleted = self.hunk.deleted
        (old, new), (old_stop, new_stop) = self.first, self.last
        if new == new_stop:
            return old, old_stop
        if old == old_stop:
            return deleted + new, deleted + new_stop
        return (old, deleted + new_stop) if old_stop == deleted and new == 0 else None

    @property
    def cuts(self) -> list[Place]:
        """Where the hunk is to be cut so that these lines are a hunk of their own."""
        ends = ((0, 0), (self.hunk.deleted, self.hunk.added))
        return [place for place in (self.first, self.last) if place not in ends]


def parts_in(view: FileView, first: int, stop: int) -> list[HunkPart]:
    """The parts of hunks that the rows ``[first, stop)`` show, from top to bottom."""
    offsets: dict[int, set[int]] = {}
    hunks: dict[int, Hunk] = {}
    for y in range(first, stop):
        row = view.row(y)
        if row is None or row.hunk is None:
            continue
        hunks[row.hunk.id] = row.hunk
        mine = offsets.setdefault(row.hunk.id, set())
        mine.add(row.offset)
        if row.beside is not None:
            mine.add(row.beside.offset)
    return [_part(view, hunk, offsets[hunk.id]) for hunk in hunks.values()]


def _part(view: FileView, hunk: Hunk, offsets: set[int]) -> HunkPart:
    olds: list[int] = []
    news: list[int] = []
    old = new = 0
    for offset, row in enumerate(view.hunk_rows(hunk.id)):
        deleted = row.kind is RowKind.DELETED
        if offset in offsets:
            (olds if deleted else news).append(old if deleted else new)
        old, new = old + deleted, new + (not deleted)
    if not olds:
        # New lines alone come behind all the old ones.
        return HunkPart(hunk, (hunk.deleted, news[0]), (hunk.deleted, news[-1] + 1))
    if not news:
        return HunkPart(hunk, (olds[0], 0), (olds[-1] + 1, 0))
    return HunkPart(hunk, (olds[0], news[0]), (olds[-1] + 1, news[-1] + 1))


def cut_at(view: FileView, y: int) -> tuple[Hunk, Place] | None:
    """Where the hunk at a row would be cut so that its second part begins with that row.

    Lines that replace each other stay together.  ``None`` where nothing would lie before the cut.
    """
    parts = parts_in(view, y, y + 1)
    if not parts:
        return None
    part = parts[0]
    hunk, (old, new) = part.hunk, part.first
    pairs = pair_lines(hunk.old, hunk.new)
    if part.last[0] > old and part.last[1] > new:
        place = (old, new)
    elif part.last[0] > old:
        below = [b for a, b in pairs if a >= old]
        place = (old, below[0] if below else pairs[-1][1] + 1 if pairs else 0)
    else:
        below = [a for a, b in pairs if b >= new]
        place = (below[0] if below else hunk.deleted, new)
    ends = ((0, 0), (hunk.deleted, hunk.added))
    return None if place in ends else (hunk, place)
