"""Accepted hunks of a file whose place a later rewrite took: where their lines stand since.

Such a hunk has no rows of its own any more, but as long as its lines stand in the base in one piece
its decision can be taken back.  Putting it back into the picture is ``proposal``'s.
"""

from __future__ import annotations

from collections.abc import Sequence

from midstream.edits.hunks import Hunk, HunkState, Move
from midstream.edits.rebase import Rebase


class CoveredHunks:
    """The covered hunks of one file.

    The range of each is where its lines were last seen, or what stands in their place now; a
    later undo may bring them back there.
    """

    def __init__(self) -> None:
        self._hunks: list[Hunk] = []
        self._lost: set[int] = set()
        """Those whose lines are not there now."""
        self._between: dict[int, tuple[str, ...]] = {}
        """The lines around each that only took lines away, and so has none of its own."""
        self._aside: dict[int, list[tuple[Hunk, HunkState]]] = {}

    def __contains__(self, hunk: Hunk) -> bool:
        return hunk in self._hunks

    @property
    def standing(self) -> list[Hunk]:
        """Those whose lines are there as they were accepted."""
        return [hunk for hunk in self._hunks if hunk.id not in self._lost]

    def add(self, hunk: Hunk, lines: Sequence[str]) -> None:
        """A rewrite takes the place of an accepted hunk that is part of the base ``lines``."""
        self._hunks.append(hunk)
        if hunk.start == hunk.stop:
            self._between[hunk.id] = _around(lines, hunk.start)

    def remove(self, hunk: Hunk, aside: list[tuple[Hunk, HunkState]]) -> None:
        """A hunk is back in the picture; ``aside`` are those that gave way to it, as they were."""
        self._hunks.remove(hunk)
        self._aside[hunk.id] = aside

    def gave_way(self, hunk: Hunk) -> list[tuple[Hunk, HunkState]]:
        """What gave way to a hunk while the base is the same, once."""
        return self._aside.pop(hunk.id, [])

    def where(
        self, hunk: Hunk, live: Sequence[Hunk], rebase: Rebase, lines: Sequence[str]
    ) -> tuple[int, int] | None:
        """Where the lines of a hunk stand in a new base, if they are there and only once.

        Args:
            hunk: One of the covered.
            live: The hunks that are in the picture.
            rebase: The way to the new base.
            lines: Those of the new base.
        """
        low, high, found = self._follow(hunk, live, rebase, lines)
        return (low, high) if found else None

    def moves(self, live: Sequence[Hunk], rebase: Rebase, lines: Sequence[str]) -> list[Move]:
        """The base is replaced: where the hunks go; arguments as for ``where``."""
        self._aside.clear()
        moves: list[Move] = []
        for hunk in self._hunks:
            low, high, found = self._follow(hunk, live, rebase, lines)
            moves.append(Move(hunk, low, high, tuple(lines[low:high])))
            (self._lost.discard if found else self._lost.add)(hunk.id)
            if found and low == high:
                self._between[hunk.id] = _around(lines, low)
        return moves

    def _follow(
        self, hunk: Hunk, live: Sequence[Hunk], rebase: Rebase, lines: Sequence[str]
    ) -> tuple[int, int, bool]:
        """Where a hunk goes and whether its lines are there, else what stands in their place."""
        edits = [(other, edit) for other in live if (edit := other.edit()) is not None]
        start, stop, lost = hunk.start, hunk.stop, hunk.id in self._lost
        between = self._between.get(hunk.id)
        if start == stop and not lost:
            here = [other for other, edit in edits if edit.start <= start <= edit.stop]
            # Parts of the same hunk have an order; of other lines that come there nobody knows.
            kin = all(other.rank[0] == hunk.rank[0] for other in here)
            if kin or not any(edit.start < start < edit.stop for _, edit in edits):
                place = rebase.start_of(start, {h.id for h in here if h.rank > hunk.rank})
                if (here and kin) or _around(lines, place) == between:
                    return place, place, True
            lost = True
        # Lines that are to come back may do so at either end of what stands in their place.
        for _, edit in edits:
            if edit.start < stop + lost and start < edit.stop + lost:
                start, stop = min(start, edit.start), max(stop, edit.stop)
        own = None if lost else ()
        low, high = rebase.start_of(start, own), rebase.stop_of(stop, own)
        size = hunk.added
        if any(map(str.strip, hunk.new)) or (size and not lost):
            places = range(low, high - size + 1)
            found = [at for at in places if tuple(lines[at : at + size]) == hunk.new]
        else:
            found = [at for at in range(low, high + 1) if _around(lines, at) == between]
        return (found[0], found[0] + size, True) if len(found) == 1 else (low, high, False)


def _around(lines: Sequence[str], at: int) -> tuple[str, ...]:
    """The lines before and after a place between lines."""
    return tuple(lines[max(0, at - 1) : at + 1])
