"""How one row of the code pane is painted: gutter, sign, tokens, marks, background.

A :class:`RowPainter` is made for one theme, one glyph set and one width; it turns a row and its
marks into a strip of exactly that width.  It keeps nothing and knows no widget: caching is the
pane's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from midstream.edits.hunks import HunkState
from midstream.edits.lexing import Span, plain_runs
from midstream.tui.diff.intraline import Range
from midstream.tui.diff.rows import Look, ViewRow
from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible, visible_with_columns

_SIGNS: Final = {Look.ADDED: "+", Look.DELETED: "-"}
_STATE_ROLES: Final = {
    HunkState.STREAMING: "muted",
    HunkState.SETTLED: "accent",
    HunkState.ACCEPTED: "success",
    HunkState.REJECTED: "error",
    HunkState.CONFLICT: "warning",
    HunkState.QUARANTINED: "error",
    HunkState.SUPERSEDED: "muted",
}


@dataclass(frozen=True, slots=True)
class Marks:
    """What lies on a row besides its own text.

    Attributes:
        cursor: The cursor stands on it.
        selected: It is among the marked lines.
        scope: The next instruction would get it.
        changed: Ranges that an intra-line comparison found.
        found: Ranges that match the search.
        note: What the guard says of its hunk.
    """

    cursor: bool = False
    selected: bool = False
    scope: bool = False
    changed: tuple[Range, ...] = ()
    found: tuple[Range, ...] = ()
    note: str = ""


class RowPainter:
    """Paints rows for one theme and one width.

    Args:
        palette: The theme.
        glyphs: The characters.
        width: Cells of a strip.
        digits: Digits of the largest line number.
        two_numbers: Whether both line numbers are shown, or only that of the proposed text.
        focused: Whether the pane has the focus; the cursor row is calmer without it.
    """

    def __init__(
        self,
        palette: Palette,
        glyphs: Glyphs,
        width: int,
        digits: int,
        *,
        two_numbers: bool,
        focused: bool,
    ) -> None:
        self.palette = palette
        self.glyphs = glyphs
        self.width = width
        self.digits = digits
        self.two_numbers = two_numbers
        self.focused = focused
        self._grounds: dict[tuple[str, bool, bool], Style] = {}
        self._text_styles: dict[tuple[str, Style], Style] = {}

    @property
    def gutter(self) -> int:
        """Cells before the code."""
        return 1 + (self.digits + 1) * (2 if self.two_numbers else 1) + 4

    @property
    def code_width(self) -> int:
        """Cells for the code."""
        return max(1, self.width - self.gutter)

    def paint(self, row: ViewRow, spans: Sequence[Span], marks: Marks, *, left: int = 0) -> Strip:
        """One row as a strip.

        Args:
            row: The row.
            spans: Tokens of its text.
            marks: What lies on it.
            left: Cells of code that are scrolled out to the left.
        """
        ground = self._ground(row, marks)
        segments = self._gutter_segments(row, marks, ground)
        if row.look in (Look.FOLDED_HUNK, Look.FOLDED_CONTEXT):
            segments += self._fold_segments(row, ground)
            return self._fit(segments, ground)
        text, columns = visible_with_columns(row.text, ascii_only=self.glyphs.ellipsis == "~")
        code = self._code_segments(row, text, columns, spans, marks, ground)
        if left:
            code = list(Strip(code).crop(left, left + self.width))
        segments += code
        if marks.note and row.look not in (Look.PENDING, Look.WRITING):
            held = row.hunk is not None and row.hunk.state is HunkState.QUARANTINED
            style = self.palette.style("error" if held else "warning", bold=True) + ground
            sign = self.glyphs.states[HunkState.QUARANTINED]
            segments.append(Segment(f"  {sign} {visible(marks.note)}", style))
        if row.look is Look.WRITING:
            segments.append(Segment(self.glyphs.writing, self.palette.style("accent") + ground))
            if not row.text.strip():
                segments.append(Segment(" writing here", self.palette.style("muted") + ground))
        return self._fit(segments, ground)

    def blank(self) -> Strip:
        """The row below the end of the file."""
        return Strip.blank(self.width, self.palette.ground("background"))

    def _fit(self, segments: list[Segment], ground: Style) -> Strip:
        return self._fit_to(segments, ground, self.width)

    def _fit_to(self, segments: list[Segment], ground: Style, width: int) -> Strip:
        strip = Strip(segments)
        if strip.cell_length > width:
            cut = strip.crop(0, width - 1)
            mark = Segment(self.glyphs.ellipsis, self.palette.style("muted") + ground)
            return Strip([*cut, mark], width)
        return strip.adjust_cell_length(width, ground)

    def _gutter_segments(self, row: ViewRow, marks: Marks, ground: Style) -> list[Segment]:
        palette, glyphs = self.palette, self.glyphs
        muted = palette.style("muted") + ground
        numbers = muted
        if marks.cursor:
            numbers = palette.style("accent" if self.focused else "foreground", bold=True) + ground
            if palette.ansi:
                numbers += Style(reverse=True)
        edge = glyphs.cursor if marks.cursor and self.focused else " "
        if edge == " " and (marks.scope or marks.selected):
            edge = glyphs.scope
        edge_style = palette.style("accent", bold=marks.selected) + ground
        segments = [Segment(edge, edge_style), Segment(self._numbers(row), numbers)]
        segments.append(Segment(*self._bar_of(row, ground)))
        sign = self._sign(row)
        segments.append(Segment(f" {sign[0]} ", palette.style(sign[1]) + ground))
        return segments

    def _bar_of(self, row: ViewRow, ground: Style) -> tuple[str, Style]:
        """The hunk bar: its glyph, and its colour by the hunk's state."""
        glyphs, hunk = self.glyphs, row.hunk
        bar, role = " ", "muted"
        if hunk is not None:
            role = _STATE_ROLES[hunk.state]
            settled = hunk.state is not HunkState.STREAMING
            bar = glyphs.states[hunk.state] if row.first and settled else glyphs.bar
        elif row.look in (Look.PENDING, Look.WRITING):
            bar = glyphs.bar
        return bar, self.palette.style(role, bold=True) + ground

    def _numbers(self, row: ViewRow) -> str:
        def number(line: int | None) -> str:
            return " " * self.digits if line is None else f"{line + 1:>{self.digits}}"

        if row.look in (Look.FOLDED_HUNK, Look.FOLDED_CONTEXT):
            return " " * (self.digits * (1 + self.two_numbers) + 1 + self.two_numbers)
        if not self.two_numbers:
            return f"{number(row.old if row.new is None else row.new)} "
        old = row.old if row.look in (Look.CONTEXT, Look.DELETED, Look.UNREAD) else None
        new = row.new if row.look is not Look.UNREAD else None
        return f"{number(old)} {number(new)} "

    def _sign(self, row: ViewRow) -> tuple[str, str]:
        if row.look is Look.ADDED:
            return "+", "added_sign"
        if row.look is Look.DELETED:
            return "-", "deleted_sign"
        if row.look in (Look.PENDING, Look.WRITING):
            return self.glyphs.pending, "muted"
        return " ", "muted"

    def _fold_segments(self, row: ViewRow, ground: Style) -> list[Segment]:
        muted = self.palette.style("muted") + ground
        words = f"{self.glyphs.fold} {row.text} "
        room = max(0, self.width - self.gutter - len(words))
        return [Segment(words, muted), Segment(self.glyphs.rule * room, self._faint + ground)]

    @property
    def _faint(self) -> Style:
        return self.palette.style("border")

    def _code_segments(
        self,
        row: ViewRow,
        text: str,
        columns: list[int] | None,
        spans: Sequence[Span],
        marks: Marks,
        ground: Style,
    ) -> list[Segment]:
        neutral = row.look in (Look.UNREAD, Look.PENDING, Look.WRITING)
        faded = (
            row.hunk is not None
            and row.look is Look.DELETED
            and row.hunk.state is HunkState.ACCEPTED
        )
        if neutral or faded:
            role = "muted" if row.look is Look.UNREAD or faded else "foreground"
            base = self.palette.style(role) + ground
            if row.look is Look.UNREAD or faded or not spans:
                return [Segment(text, base)] if text else []
        runs = plain_runs(spans, len(row.text))
        if marks.changed:
            runs = _overlay(runs, marks.changed, "!")
        if marks.found:
            runs = _overlay(runs, marks.found, "?")
        segments: list[Segment] = []
        strong = "added_strong" if row.look is Look.ADDED else "deleted_strong"
        for start, stop, kind in runs:
            if columns is not None:
                start, stop = columns[start], columns[stop]
            style = self._token(kind.rstrip("!?"), ground)
            if kind.endswith("?"):
                style += self.palette.style("background", "warning")
            elif kind.endswith("!"):
                style = self._strong(strong, style)
            segments.append(Segment(text[start:stop], style))
        return segments

    def _strong(self, role: str, style: Style) -> Style:
        if self.palette.ansi:
            return style + Style(bold=True, underline=True)
        return style + self.palette.style("foreground", role)

    def _token(self, kind: str, ground: Style) -> Style:
        key = (kind, ground)
        style = self._text_styles.get(key)
        if style is None:
            style = self._text_styles[key] = self.palette.token_styles[kind] + ground
        return style

    def _ground(self, row: ViewRow, marks: Marks) -> Style:
        role = "background"
        if row.look in (Look.ADDED, Look.DELETED):
            role = row.look.value
        key = (role, marks.cursor, marks.selected)
        ground = self._grounds.get(key)
        if ground is None:
            ground = self._grounds[key] = self._make_ground(*key)
        return ground

    def _make_ground(self, role: str, cursor: bool, selected: bool) -> Style:
        palette = self.palette
        color = palette.colors[role] if role in palette.colors else palette.diff[role]
        if not palette.ansi:
            if selected:
                color = color.blend(palette.colors["selection"], 0.75)
            if cursor:
                color = color.blend(palette.colors["cursor"], 0.4 if role != "background" else 1)
        return Style(bgcolor=color.rich_color)


def _overlay(runs: Sequence[Span], ranges: Sequence[Range], mark: str) -> list[Span]:
    """Split runs at the ends of ranges and append ``mark`` to the kind of what lies inside."""
    result: list[Span] = []
    for start, stop, kind in runs:
        at = start
        for low, high in ranges:
            low, high = max(low, at), min(high, stop)
            if low >= high:
                continue
            if low > at:
                result.append((at, low, kind))
            result.append((low, high, kind + mark))
            at = high
        if at < stop:
            result.append((at, stop, kind))
    return result
