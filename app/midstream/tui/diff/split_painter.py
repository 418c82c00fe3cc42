"""Painting a row in the split layout: the base text on the left, the proposed text on the right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from midstream.edits.lexing import Span
from midstream.tui.diff.painter import Inks, Marks, RowPainter
from midstream.tui.diff.rows import FOLDS, Look, ViewRow
from midstream.tui.diff.wrapping import wrapped

_LEFT_ONLY: Final = frozenset({Look.DELETED, Look.UNREAD})
_RIGHT_ONLY: Final = frozenset({Look.ADDED, Look.REFUSED, Look.PENDING, Look.WRITING})


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

    @property
    def numbers_unread_by_base(self) -> bool:
        """An unread row stands on the left only, with its number there."""
        return True

    def paint_both(
        self,
        row: ViewRow,
        spans: Sequence[Span],
        marks: Marks,
        beside_spans: Sequence[Span],
        beside_marks: Marks,
        *,
        left: int = 0,
    ) -> list[Strip]:
        """One row as a strip, or as several where one of its sides is wrapped.

        Args:
            row: The row; its ``beside`` is what it replaces.
            spans: Tokens of its text.
            marks: What lies on it.
            beside_spans: Tokens of the row beside it.
            beside_marks: What lies on that.
            left: Cells of code that are scrolled out to the left; none where lines wrap.
        """
        if row.look in FOLDS:
            return self.paint(row, spans, marks, left=left)
        old, new = row.beside, row
        old_spans, old_marks = beside_spans, beside_marks
        if row.look in _LEFT_ONLY or row.look not in _RIGHT_ONLY:
            old, old_spans, old_marks = row, spans, marks
        right = None if row.look in _LEFT_ONLY else new
        olds = self._side(old, old_spans, old_marks, marks, row, left, is_left=True)
        news = self._side(right, spans, marks, marks, row, left, is_left=False)
        line = Segment("\u2502" if self.glyphs.ellipsis != "~" else "|", self._divider)
        shorter = olds if len(olds) < len(news) else news
        empty = self._below(old if shorter is olds else right, marks, row, is_left=shorter is olds)
        lines = zip_longest(olds, news, fillvalue=empty)
        return [
            Strip([*first, line, *second]).adjust_cell_length(self.width, line.style)
            for first, second in lines
        ]

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
    ) -> list[Strip]:
        inks = self._side_inks(shown, marks)
        lead = [self._edge(marks, inks) if is_left else self._bar_of(row, inks)]
        if shown is None:
            return [self._fit(lead, inks.ground, self.side)]
        number = shown.old if is_left else shown.new
        digits = " " * self.digits if number is None else f"{number + 1:>{self.digits}}"
        numbers = self._cursor_numbers(inks) if marks.cursor else inks.role("muted")
        sign, role = self._sign(shown)
        lead += [Segment(f"{digits} ", numbers), Segment(f"{sign} ", inks.role(role))]
        code = self._code(shown, spans, own_marks, inks)
        own = is_left == (row.look in _LEFT_ONLY)
        note = self._note(row, marks, inks) if own else []
        if not self.wrap:
            code = self._beside(self._scrolled(code, left, inks), note, marks, inks)
            return [self._fit([*lead, *code], inks.ground, self.side)]
        first, *more = wrapped([*code, *note], self.code_width, inks.ground)
        mark = Segment(f"{self.glyphs.wrapped:>{self.digits}}   ", inks.role("muted"))
        edge = self._edge_below(marks, row, inks, is_left=is_left)
        lines = [[*lead, *first], *([edge, mark, *line] for line in more)]
        return [self._fit(line, inks.ground, self.side) for line in lines]

    def _below(self, shown: ViewRow | None, marks: Marks, row: ViewRow, *, is_left: bool) -> Strip:
        """What stands below the end of the side that takes fewer lines."""
        inks = self._side_inks(shown, marks)
        edge = self._edge_below(marks, row, inks, is_left=is_left)
        return self._fit([edge], inks.ground, self.side)

    def _edge_below(self, marks: Marks, row: ViewRow, inks: Inks, *, is_left: bool) -> Segment:
        edge = self._edge(marks, inks, below=True)
        return edge if is_left else self._bar_of(row, inks, below=True)

    def _side_inks(self, shown: ViewRow | None, marks: Marks) -> Inks:
        if shown is None:
            return self._inks_on("cursor" if marks.cursor else "panel", cursor=False)
        return self._inks(shown, marks)
