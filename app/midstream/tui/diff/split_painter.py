"""Painting a row in the split layout: the base text on the left, the proposed text on the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from midstream.edits.lexing import Span
from midstream.tui.diff.painter import Marks, RowPainter
from midstream.tui.diff.rows import Look, ViewRow
from midstream.tui.visible import visible_with_columns

_LEFT_ONLY: Final = frozenset({Look.DELETED, Look.UNREAD})
_RIGHT_ONLY: Final = frozenset({Look.ADDED, Look.PENDING, Look.WRITING})


class SplitPainter(RowPainter):
    """Paints both sides of a row."""

    @property
    def side(self) -> int:
        """Cells of one side."""
        return (self.width - 1) // 2

    @property
    def code_width(self) -> int:
        """Cells for the code of one side."""
        return max(1, self.side - self.digits - 4)

    def paint_both(
        self,
        row: ViewRow,
        spans: Sequence[Span],
        marks: Marks,
        beside_spans: Sequence[Span],
        beside_marks: Marks,
        *,
        left: int = 0,
    ) -> Strip:
        """One row as a strip.

        Args:
            row: The row; its ``beside`` is what it replaces.
            spans: Tokens of its text.
            marks: What lies on it.
            beside_spans: Tokens of the row beside it.
            beside_marks: What lies on that.
            left: Cells of code that are scrolled out to the left.
        """
        if row.look in (Look.FOLDED_HUNK, Look.FOLDED_CONTEXT):
            return self.paint(row, spans, marks, left=left)
        old, new = row.beside, row
        old_spans, old_marks = beside_spans, beside_marks
        if row.look in _LEFT_ONLY or row.look not in _RIGHT_ONLY:
            old, old_spans, old_marks = row, spans, marks
        right = None if row.look in _LEFT_ONLY else new
        first = self._side(old, old_spans, old_marks, marks, row, left, is_left=True)
        second = self._side(right, spans, marks, marks, row, left, is_left=False)
        line = Segment("\u2502" if self.glyphs.ellipsis != "~" else "|", self._divider)
        return Strip([*first, line, *second]).adjust_cell_length(self.width)

    @property
    def _divider(self) -> Style:
        return self.palette.style("border", "background")

    def _side(
        self,
        shown: ViewRow | None,
        spans: Sequence[Span],
        own_marks: Marks,
        marks: Marks,
        row: ViewRow,
        left: int,
        *,
        is_left: bool,
    ) -> Strip:
        palette = self.palette
        target = row if shown is None else shown
        ground = self._ground(target, marks)
        if shown is None:
            ground = palette.ground("panel" if not marks.cursor else "cursor")
        lead = self._lead(row, marks, ground) if is_left else self._bar(row, ground)
        segments = [*lead]
        if shown is None:
            return Strip(segments).adjust_cell_length(self.side, ground)
        number = shown.old if is_left else shown.new
        digits = " " * self.digits if number is None else f"{number + 1:>{self.digits}}"
        numbers = palette.style("muted")
        if marks.cursor:
            numbers = palette.style("accent" if self.focused else "foreground", bold=True)
        sign, role = self._sign(shown)
        segments.append(Segment(f"{digits} ", numbers + ground))
        segments.append(Segment(f"{sign} ", palette.style(role) + ground))
        text, columns = visible_with_columns(shown.text, ascii_only=self.glyphs.ellipsis == "~")
        code = self._code_segments(shown, text, columns, spans, own_marks, ground)
        if left:
            code = list(Strip(code).crop(left, left + self.width))
        segments += code
        if shown.look is Look.WRITING:
            segments.append(Segment(self.glyphs.writing, palette.style("accent") + ground))
        return self._fit_to(segments, ground, self.side)

    def _lead(self, row: ViewRow, marks: Marks, ground: Style) -> list[Segment]:
        return self._gutter_segments(row, marks, ground)[:1]

    def _bar(self, row: ViewRow, ground: Style) -> list[Segment]:
        return [Segment(*self._bar_of(row, ground))]
