"""A finished diff of two texts as styled text, painted like the rows of the code pane."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich.text import Text

from midstream.code.lexing import LineLexer
from midstream.counting import counted
from midstream.edits.rows import Row, RowKind
from midstream.tui.diff.painter import Marks, RowPainter
from midstream.tui.diff.strips import MAX_COMPARED_LINES, compare_rows
from midstream.tui.diff.syntax import advance_for
from midstream.tui.diff.view import LOOKS, Look, Range, ViewRow
from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette

if TYPE_CHECKING:
    from midstream.pairing.files.commit import FileDiff

LEX_BUDGET_S: Final = 0.1
"""How long the two texts of one diff may take to lex; what lies below stays without colours."""


class DiffWriter:
    """Writes one diff, for one theme and width.

    Args:
        path: The file's path; its language is that of the colours.
        diff: The diff.
    """

    def __init__(self, path: str, diff: FileDiff) -> None:
        self._diff = diff
        self._sides = [LineLexer(path, text.lines) for text in (diff.before, diff.after)]
        self._lexed = False

    def write(self, text: Text, palette: Palette, glyphs: Glyphs, width: int, most: int) -> None:
        """Append the first ``most`` rows of the diff, each exactly ``width`` cells wide."""
        if not self._lexed:
            self._lexed = True
            for side, lexer in enumerate(self._sides):
                advance_for(lexer, self._last_line(side) + 1, LEX_BUDGET_S / 2)
        digits = len(str(max(len(self._diff.before.lines), len(self._diff.after.lines), 1)))
        painter = RowPainter(palette, glyphs, width, digits, focused=False)
        count = 0
        for row, changed in self._rows():
            count += row.look is not Look.FOLDED_CONTEXT
            if count > most:
                continue
            spans = ()
            if row.new is not None:
                spans = self._sides[1].spans(row.new)
            elif row.old is not None:
                spans = self._sides[0].spans(row.old)
            for strip in painter.paint(row, spans, Marks(changed=changed)):
                for segment in strip:
                    text.append(segment.text, segment.style)
            text.append("\n")
        if count > most:
            text.append(f"{count - most:,} more lines\n", palette.style("muted"))

    def _last_line(self, side: int) -> int:
        lines = ((row.old, row.new)[side] for group in self._diff.groups for row in group)
        return max((line for line in lines if line is not None), default=0)

    def _rows(self) -> Iterator[tuple[ViewRow, tuple[Range, ...]]]:
        """The rows with their changed words; a fold stands for the lines in between."""
        at = 0
        for group in self._diff.groups:
            first = group[0]
            start = first.old if first.old is not None else at
            if start > at:
                words = counted(start - at, "unchanged line")
                yield ViewRow(Look.FOLDED_CONTEXT, at, None, words), ()
            for context, rows in groupby(group, lambda row: row.kind is RowKind.CONTEXT):
                block = list(rows)
                words = {} if context or len(block) > MAX_COMPARED_LINES else compare_rows(block)
                for number, row in enumerate(block):
                    yield self._view_row(row), words.get(number, ())
            at = max((row.old + 1 for row in group if row.old is not None), default=at)

    @staticmethod
    def _view_row(row: Row) -> ViewRow:
        return ViewRow(LOOKS[row.kind], row.old, row.new, row.text)
