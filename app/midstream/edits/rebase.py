"""Moving hunks from one base to another: accepted hunks were folded in, or the file changed on
disk.

The base maps to *base + decisions* exactly, by the hunks' own edits, and from there to the new base
by a longest common subsequence of lines.  A hunk whose lines survive in one piece moves with them;
one whose lines changed is in conflict, unless the change is the one that the hunk wanted.

A hunk that a later rewrite covered has no rows any more, but its accept can be undone as long as
its lines stand in the base in one piece (``CoveredHunks``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from midstream.edits.documents import SourceText
from midstream.edits.hunks import Hunk, HunkState, Move
from midstream.edits.lcs import line_map

_CHANGED = "these lines were changed in the file"
_APPLIED = "the same change was made in the file"
_REVERTED = "the change was undone in the file"


class Rebase:
    """The mapping of a file's live hunks to a new base.

    Attributes:
        lines: For each line of the former base its line in the new base, or -1.
    """

    def __init__(self, hunks: Sequence[Hunk], base: SourceText, new_base: SourceText) -> None:
        """Compute the mapping; nothing is moved.

        Args:
            hunks: The live hunks, by position.
            base: The base that they refer to.
            new_base: The base to move them to.
        """
        self._hunks = hunks
        self._new = new_base.lines
        self._growth: list[tuple[Hunk, int]] = []  # by how many lines each decision grows the base
        composed: list[str] = []
        to_composed: list[int] = []
        at = 0
        for hunk in hunks:
            edit = hunk.edit()
            if edit is None:
                continue
            to_composed += range(len(composed), len(composed) + edit.start - at)
            composed += base.lines[at : edit.start]
            to_composed += [-1] * (edit.stop - edit.start)
            composed += edit.lines
            at = edit.stop
            self._growth.append((hunk, len(edit.lines) - (edit.stop - edit.start)))
        to_composed += range(len(composed), len(composed) + len(base.lines) - at)
        composed += base.lines[at:]
        self._composed = tuple(composed)
        self._map = self._lines_map()
        self._before, self._after = _surroundings(self._map, len(self._new))
        self.lines = [-1 if number < 0 else self._map[number] for number in to_composed]

    def moves(self, streaming: Hunk | None = None) -> list[Move]:
        """The new position of every hunk and, where its lines changed, its new state.

        Args:
            streaming: The hunk that still grows; it is never taken for accepted by the file.
        """
        moves: list[Move] = []
        growth = passed = 0
        for hunk in self._hunks:
            edit = hunk.edit()
            start = hunk.start + growth
            if edit is None:
                length = hunk.stop - hunk.start + self._inside(hunk, passed)
            else:
                length = len(edit.lines)
                growth += length - (hunk.stop - hunk.start)
                passed += 1
            lines = self._composed[start : start + length]
            place = self._place(start, start + length)
            if place is None:
                moves.append(self._changed(hunk, start, start + length, hunk is streaming))
            else:
                moves.append(Move(hunk, *place, None if hunk is streaming else lines))
        return moves

    def start_of(self, line: int, own: Collection[int] | None = None) -> int:
        """Where a range that starts at ``line`` starts in the new base.

        Args:
            line: First line of the range in the former base.
            own: Ids of the hunks in the range (default: insertions at its ends are in it).
        """
        line = self._composed_at(line, False, lambda hunk: own is not None and hunk.id not in own)
        if line < len(self._map) and self._map[line] >= 0:
            return self._map[line]
        return self._before[line]

    def stop_of(self, line: int, own: Collection[int] | None = None) -> int:
        """Where a range that ends before ``line`` ends in the new base; see ``start_of``."""
        line = self._composed_at(line, True, lambda hunk: own is None or hunk.id in own)
        if line > 0 and self._map[line - 1] >= 0:
            return self._map[line - 1] + 1
        return self._after[line]

    def _composed_at(self, line: int, end: bool, passed: Callable[[Hunk], bool]) -> int:
        """Where a boundary before a base line is in the composed lines.

        Args:
            line: The line.
            end: Whether a boundary within lines that are replaced goes to the end of what replaces
                them; else to its start.
            passed: Whether an insertion at the boundary lies before it.
        """
        grown = 0
        for hunk, growth in self._growth:
            if hunk.start < line < hunk.stop:
                return grown + (hunk.stop + growth if end else hunk.start)
            if hunk.stop <= line and (hunk.start < line or passed(hunk)):
                grown += growth
        return line + grown

    def _lines_map(self) -> Sequence[int]:
        if self._composed == self._new:
            return range(len(self._new))
        return line_map(self._composed, self._new)

    def _inside(self, hunk: Hunk, passed: int) -> int:
        """By how many lines decisions on hunks within this one (a wide conflict) grow it."""
        grown = 0
        for at in range(passed, len(self._growth)):
            other, growth = self._growth[at]
            if other.start >= hunk.stop:
                break
            grown += growth
        return grown

    def _place(self, start: int, stop: int) -> tuple[int, int] | None:
        """The range in the new base of composed lines, if they survived in one piece."""
        if start < stop:
            first = self._map[start]
            if first < 0 or any(self._map[start + k] != first + k for k in range(stop - start)):
                return None
            return first, first + stop - start
        left = 0 if start == 0 else self._map[start - 1] + 1 or None
        right = len(self._new) if start == len(self._map) else self._map[start]
        if right < 0:
            return None if left is None else (left, left)
        return (right, right) if left is None or left == right else None

    def _changed(self, hunk: Hunk, start: int, stop: int, growing: bool) -> Move:
        """The state of a hunk after a change to its lines."""
        low, high = self._before[start], self._after[stop]
        found = self._new[low:high]
        if hunk.decided:
            if hunk.state is HunkState.ACCEPTED and found == hunk.old and not hunk.external:
                return Move(hunk, low, high, state=HunkState.SETTLED, note=_REVERTED)
            return Move(hunk, low, high, detached=True)
        if growing:
            return Move(hunk, low, high, found, disturbed=True)
        applied = _find(hunk.new, found)
        if applied is not None:
            low += applied
            high = low + hunk.added
            return Move(hunk, low, high, hunk.new, HunkState.ACCEPTED, _APPLIED)
        if hunk.state is HunkState.CONFLICT and found == hunk.old:
            return Move(hunk, low, high, state=HunkState.SETTLED)
        return Move(hunk, low, high, found, HunkState.CONFLICT, _CHANGED)


def _surroundings(moves: Sequence[int], total: int) -> tuple[list[int], list[int]]:
    """For each boundary: the end of the last mapped line before it, the first mapped line after."""
    before = [0] * (len(moves) + 1)
    after = [total] * (len(moves) + 1)
    for i, target in enumerate(moves):
        before[i + 1] = before[i] if target < 0 else target + 1
    for i in range(len(moves) - 1, -1, -1):
        after[i] = after[i + 1] if moves[i] < 0 else moves[i]
    return before, after


def _find(wanted: tuple[str, ...], lines: tuple[str, ...]) -> int | None:
    """Where ``wanted`` stands in ``lines``, which it must equal unless it has a non-blank line."""
    if lines == wanted:
        return 0
    if not any(line.strip() for line in wanted):
        return None
    size = len(wanted)
    for offset in range(len(lines) - size + 1):
        if lines[offset : offset + size] == wanted:
            return offset
    return None


class CoveredHunks:
    """Accepted hunks of a file that later rewrites covered, and where their lines are since.

    The range of each is where its lines were last seen, or what replaced them: a later undo may
    bring them back there.
    """

    def __init__(self) -> None:
        self._hunks: list[Hunk] = []
        self._lost: set[int] = set()
        """Ids of those whose lines are not in the base now."""
        self._between: dict[int, tuple[str, ...]] = {}
        """The lines around each hunk that only removed lines, so has none of its own."""
        self._aside: dict[int, list[tuple[Hunk, HunkState]]] = {}

    def __len__(self) -> int:
        return len(self._hunks)

    def __contains__(self, hunk: Hunk) -> bool:
        return hunk in self._hunks

    def add(self, hunk: Hunk, lines: Sequence[str]) -> None:
        """A rewrite takes the place of an accepted hunk that is part of the base ``lines``."""
        self._hunks.append(hunk)
        if hunk.start == hunk.stop:
            self._between[hunk.id] = _around(lines, hunk.start)

    def remove(self, hunk: Hunk, aside: list[tuple[Hunk, HunkState]]) -> None:
        """A hunk is on screen again; ``aside`` are the hunks that gave way to it, with their
        states.
        """
        self._hunks.remove(hunk)
        self._aside[hunk.id] = aside

    def gave_way(self, hunk: Hunk) -> list[tuple[Hunk, HunkState]]:
        """The hunks that gave way to a hunk while the base was the same; forgotten now."""
        return self._aside.pop(hunk.id, [])

    def where(
        self, hunk: Hunk, live: Sequence[Hunk], rebase: Rebase, lines: Sequence[str]
    ) -> tuple[int, int] | None:
        """Where the lines of a hunk are in a new base, if they occur there once.

        Args:
            hunk: One of the covered hunks.
            live: The hunks that are on screen.
            rebase: The mapping to the new base.
            lines: The lines of the new base.
        """
        low, high, found = self._follow(hunk, live, rebase, lines)
        return (low, high) if found else None

    def moves(self, live: Sequence[Hunk], rebase: Rebase, lines: Sequence[str]) -> list[Move]:
        """Where the hunks go when the base is replaced; arguments as for ``where``."""
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
        """Where a hunk goes, and whether that is its lines (else what replaced them)."""
        edits = [(other, edit) for other in live if (edit := other.edit()) is not None]
        start, stop, lost = hunk.start, hunk.stop, hunk.id in self._lost
        between = self._between.get(hunk.id)
        if start == stop and not lost:
            here = [other for other, edit in edits if edit.start <= start <= edit.stop]
            # Parts of the same hunk have an order; that of other insertions is unknown.
            kin = all(other.rank[0] == hunk.rank[0] for other in here)
            if kin or not any(edit.start < start < edit.stop for _, edit in edits):
                place = rebase.start_of(start, {h.id for h in here if h.rank > hunk.rank})
                if (here and kin) or _around(lines, place) == between:
                    return place, place, True
            lost = True
        # Lines may come back at either end of what replaced them.
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
    return tuple(lines[max(0, at - 1) : at + 1])
