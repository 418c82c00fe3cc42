"""Mending new lines while they stream, where the quoted old ones were found but for white space.

A line that the model repeats from its quotation comes out as the file has it; a new line gets the
indentation that the quoted lines turned out to lack.
"""

from __future__ import annotations

from collections.abc import Sequence

from midstream.edits.indent import BlockShift


class QuotedRepair:
    """Turns the lines of a replacement into the file's terms, one complete line after another."""

    def __init__(
        self, quoted: Sequence[str], found: Sequence[str], shift: BlockShift | None
    ) -> None:
        """Start a replacement.

        Args:
            quoted: The old lines as the model wrote them.
            found: The same lines as the file has them.
            shift: How indentation must be shifted, None where it fits.
        """
        self._quoted = quoted
        self._found = found
        self._shift = shift
        self._at = 0  # the first quoted line that was not repeated yet
        self._first = True
        self._rest = ""

    def feed(self, text: str) -> str:
        """Take more text; returns the lines that it completes, mended."""
        *lines, self._rest = (self._rest + text).split("\n")
        return "".join(f"{self._line(line)}\n" for line in lines)

    def finish(self) -> str:
        """The replacement has ended; returns its last line if nothing terminated it."""
        rest, self._rest = self._rest, ""
        return self._line(rest) if rest else ""

    def _line(self, line: str) -> str:
        if not line.strip():
            return line
        for number in range(self._at, len(self._quoted)):
            if self._quoted[number] == line:
                self._at = number + 1
                self._first = False
                return self._found[number]
        first, self._first = self._first, False
        if self._shift is None:
            return line
        return (self._shift.first if first else self._shift.rest).apply(line)
