"""Where a text occurs in the open file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from midstream.tui.diff.intraline import Range
from midstream.tui.diff.rows import FOLDS
from midstream.tui.diff.view import FileView


class MatchFinder:
    """The rows of a view that hold a text; capitals count only if the text has some.

    Args:
        view: The rows.
        text: What to look for.
    """

    def __init__(self, view: FileView, text: str) -> None:
        self.text = text
        self.matches: dict[int, tuple[Range, ...]] = {}
        exact = text != text.lower()
        wanted = text if exact else text.lower()
        for y in range(view.size):
            row = view.row(y)
            if row is None or row.look in FOLDS:
                continue
            line = row.text if exact else row.text.lower()
            if wanted in line and len(line) == len(row.text):
                self.matches[y] = _ranges(line, wanted)
        self._rows = sorted(self.matches)

    def next(self, row: int, *, forward: bool) -> int | None:
        """The nearest row with a match after (or before) ``row``, around the end of the file."""
        if not self._rows:
            return None
        if forward:
            index = bisect_right(self._rows, row)
            return self._rows[index % len(self._rows)]
        return self._rows[bisect_left(self._rows, row) - 1]

    def place(self, row: int) -> tuple[int, int]:
        """Which match a row is, counted from 1, and how many there are."""
        return bisect_right(self._rows, row), len(self._rows)


def _ranges(line: str, wanted: str) -> tuple[Range, ...]:
    found: list[Range] = []
    at = line.find(wanted)
    while at >= 0:
        found.append((at, at + len(wanted)))
        at = line.find(wanted, at + len(wanted))
    return tuple(found)
