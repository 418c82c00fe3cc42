"""How one row of the code pane is painted: gutter, sign, tokens, marks, background, wrapping.

A ``RowPainter`` is made for one theme, one glyph set and one width; it turns a row and its
marks into a strip of exactly that width, or into several where long lines are wrapped.  It knows no
widget: keeping strips is the pane's business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise, zip_longest
from typing import Final

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from midstream.code.lexing import Span, plain_runs
from midstream.edits.hunks import HunkState
from midstream.tui.diff.view import FOLDS, Look, Range, ViewRow
from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible, visible_with_columns

_BEHIND: Final = (frozenset(" ,;([{"), frozenset("._/-=:"))
"""Where a line may break, the better places first."""
_FIGURE: Final = re.compile(r"\d[,.]\d")
"""Characters within a figure, at which no line breaks."""
_NEAR: Final = 0.35
"""Share of a line's room that may stay empty to break at a better place."""
_STEP: Final = 2
"""Cells that a wrapped line's rest is indented by, behind the line's own indentation."""
_GAP: Final = 2
"""Cells between code and a note at the right edge."""
_SIGN: Final = 3
"""Cells of the sign that a note begins with."""


def hanging(text: str, room: int) -> int:
    """Cells that the lines after the first are indented by."""
    return min(len(text) - len(text.lstrip(" ")) + _STEP, room // 3)


@lru_cache(maxsize=1_024)
def breaks(text: str, room: int) -> tuple[int, ...]:
    """The offsets at which ``text`` goes on in the next line; none where it fits.

    Args:
        text: What is shown, without tabs and control characters.
        room: Cells of the first line; further ones have ``hanging`` less.
    """
    if len(text) <= room and (text.isascii() or cell_len(text) <= room):
        return ()
    widths = [1] * len(text) if text.isascii() else _widths(text)
    places: list[int] = []
    start = used = 0
    limit = max(1, room)
    for at, width in enumerate(widths):
        while used + width > limit and at > start:
            place = _place(text, start, at, limit)
            places.append(place)
            start, limit = place, max(1, room - hanging(text, room))
            used = sum(widths[start:at])
        used += width
    return tuple(places)


def _widths(text: str) -> list[int]:
    """The cells of each character; a combining one counts the cells that it adds."""
    widths: list[int] = []
    for index, character in enumerate(text):
        width = cell_len(character)
        if not width and index:
            width = max(0, cell_len(text[index - 1 : index + 1]) - cell_len(text[index - 1]))
        widths.append(width)
    return widths


def _place(text: str, start: int, at: int, limit: int) -> int:
    """The best offset to break at, not behind ``at``."""
    nearest = max(start + 1, at - int(limit * _NEAR))
    for behind in _BEHIND:
        for place in range(at, nearest - 1, -1):
            if text[place - 1] in behind and text[start:place].strip():
                if _FIGURE.fullmatch(text, max(0, place - 2), place + 1):
                    continue
                return place
    # A mark that joins the character before it stays with it.
    place = at
    while place > start + 1 and not cell_len(text[place]):
        place -= 1
    return place


def wrapped(segments: Sequence[Segment], room: int, ground: Style) -> list[list[Segment]]:
    """The segments of one line, wrapped into as many lines as it takes."""
    text = "".join(segment.text for segment in segments)
    places = breaks(text, room)
    if not places:
        return [list(segments)]
    indent = Segment(" " * hanging(text, room), ground)
    lines: list[list[Segment]] = []
    for start, stop in pairwise((0, *places, len(text))):
        line = cut(segments, start, stop)
        lines.append([indent, *line] if lines else line)
    return lines


def cut(segments: Sequence[Segment], start: int, stop: int) -> list[Segment]:
    """The characters ``[start, stop)`` of some segments, as segments."""
    parts: list[Segment] = []
    at = 0
    for text, style, _ in segments:
        low, high = max(start - at, 0), min(stop - at, len(text))
        if low < high:
            parts.append(Segment(text[low:high], style))
        at += len(text)
    return parts


_STATE_ROLES: Final = {
    HunkState.STREAMING: "muted",
    HunkState.SETTLED: "accent",
    HunkState.ACCEPTED: "success",
    HunkState.REJECTED: "error",
    HunkState.CONFLICT: "warning",
    HunkState.HELD: "error",
    HunkState.SUPERSEDED: "muted",
}


class Marks(Struct, frozen=True):
    """The marks on a row besides its own text.

    Attributes:
        cursor: The cursor stands on it.
        selected: It is among the marked lines.
        scope: The next instruction would get it.
        changed: Ranges that an intra-line comparison found.
        found: Ranges that match the search.
        note: What is said of its hunk.
        fact: Whether the note states a mere fact, which needs no sign.
        brief: What stands for the note where the code needs the room, beside its sign if it has
            one; ``None``: the code gives way.
    """

    cursor: bool = False
    selected: bool = False
    scope: bool = False
    changed: tuple[Range, ...] = ()
    found: tuple[Range, ...] = ()
    note: str = ""
    fact: bool = False
    brief: str | None = None


class Inks:
    """The styles on one background, by the kind of text.

    Attributes:
        tokens: Styles by kind of token; ``!`` behind it for a changed word, ``?`` for a match.
    """

    def __init__(self, palette: Palette, ground: Style) -> None:
        self.ground = ground
        self.tokens: Mapping[str, Style] = _Tokens(palette, ground)
        self._palette = palette
        self._roles: dict[tuple[str, bool | None], Style] = {}

    def role(self, role: str, *, bold: bool | None = None) -> Style:
        style = self._roles.get((role, bold))
        if style is None:
            style = self._palette.style(role, bold=bold) + self.ground
            self._roles[role, bold] = style
        return style


class _Tokens(dict[str, Style]):
    """Styles by kind of token, made as they are asked for."""

    def __init__(self, palette: Palette, ground: Style) -> None:
        super().__init__()
        self._palette = palette
        self._ground = ground

    def __missing__(self, kind: str) -> Style:
        style = self[kind] = self._made(kind)
        return style

    def _made(self, kind: str) -> Style:
        palette = self._palette
        style = palette.token_styles[kind.rstrip("+-!?")] + self._ground
        if kind.endswith("?"):
            return style + palette.style("background", "warning")
        if kind.endswith("!"):
            if palette.ansi:
                return style + Style(bold=True, underline=True)
            role = "added_strong" if kind.endswith("+!") else "deleted_strong"
            return style + palette.style("foreground", role)
        return style


class RowPainter:
    """Paints rows for one theme and one width.

    Args:
        digits: Digits of the largest line number.
        focused: Whether the pane has the focus; the cursor row is calmer without it.
        wrap: Whether a line that does not fit goes on below.
    """

    def __init__(
        self,
        palette: Palette,
        glyphs: Glyphs,
        width: int,
        digits: int,
        *,
        focused: bool,
        wrap: bool = False,
    ) -> None:
        self.palette = palette
        self.glyphs = glyphs
        self.width = width
        self.digits = digits
        self.focused = focused
        self.wrap = wrap
        self._by_ground: dict[tuple[str, bool, bool], Inks] = {}

    @cached_property
    def gutter(self) -> int:
        """Cells before the code."""
        return self.digits + 6

    @property
    def code_width(self) -> int:
        """Cells for the code."""
        return max(1, self.width - self.gutter)

    def paint(
        self, row: ViewRow, spans: Sequence[Span], marks: Marks, *, left: int = 0
    ) -> list[Strip]:
        """One row as a strip, or as several where it is wrapped.

        ``left`` cells of code are scrolled out to the left; none where lines wrap.
        """
        inks = self._inks(row, marks)
        lead = self._gutter_segments(row, marks, inks)
        if row.look in FOLDS:
            return [self._fit([*lead, *self._fold_segments(row, inks)], inks.ground, self.width)]
        code, note = self._code(row, spans, marks, inks), self._note(row, marks, inks)
        if row.look is Look.WRITING and not row.text.strip():
            code.append(Segment(" writing here", inks.role("muted")))
        if not self.wrap:
            keep = self._extent(row, marks)[1] - left
            code = self._beside(self._scrolled(code, left, inks), note, marks, inks, keep)
            return [self._fit([*lead, *code], inks.ground, self.width)]
        first, *more = self._wrapped(code, note, marks, inks)
        below = self._gutter_below(row, marks, inks) if more else []
        lines = [[*lead, *first], *([*below, *line] for line in more)]
        return [self._fit(line, inks.ground, self.width) for line in lines]

    @cached_property
    def blank(self) -> Strip:
        """The row below the end of the file."""
        return Strip.blank(self.width, self.palette.ground("background"))

    def _fit(self, segments: list[Segment], ground: Style, width: int) -> Strip:
        """A strip of exactly ``width`` cells; what does not fit ends in a mark.

        The mark looks like what stands out in the part that is cut, such as a changed word.
        """
        line = "".join([text for text, _, _ in segments])
        used = len(line) if line.isascii() else cell_len(line)
        if used > width:
            strip = Strip(segments)
            cut = strip.crop(0, width - 1)
            styles = (style for _, style, _ in strip.crop(width - 1) if style is not None)
            plain = self.palette.style("muted") + ground
            mark = next((style for style in styles if _stands_out(style, ground)), plain)
            return Strip([*cut, Segment(self.glyphs.ellipsis, mark)], width)
        if used < width:
            segments.append(Segment(" " * (width - used), ground))
        return Strip(segments, width)

    def _scrolled(self, code: list[Segment], left: int, inks: Inks) -> list[Segment]:
        """Code without its first cells; a mark shows that text is hidden to the left."""
        if not left or not code:
            return code
        strip = Strip(code)
        mark = Segment(self.glyphs.ellipsis, inks.role("muted"))
        return [mark, *strip.crop(min(left + 1, strip.cell_length), left + self.width)]

    def _gutter_segments(self, row: ViewRow, marks: Marks, inks: Inks) -> list[Segment]:
        numbers = inks.role("muted")
        if marks.cursor:
            numbers = self._cursor_numbers(inks)
            if self.palette.ansi:
                numbers += Style(reverse=True)
        sign, role = self._sign(row)
        return [
            self._edge(marks, inks),
            Segment(self._number(row), numbers),
            self._bar_of(row, inks),
            Segment(f" {sign} ", inks.role(role)),
        ]

    def _gutter_below(self, row: ViewRow, marks: Marks, inks: Inks) -> list[Segment]:
        """The gutter of a line that goes on from the one above."""
        edge = self._edge(marks, inks, below=True)
        mark = f"{self.glyphs.wrapped:>{self.gutter - 6}} "
        return [
            edge,
            Segment(mark, inks.role("muted")),
            self._bar_of(row, inks, below=True),
            Segment("   ", inks.ground),
        ]

    def _edge(self, marks: Marks, inks: Inks, *, below: bool = False) -> Segment:
        glyphs = self.glyphs
        edge = glyphs.cursor if marks.cursor and self.focused and not below else " "
        if edge == " " and (marks.scope or marks.selected):
            edge = glyphs.scope
        return Segment(edge, inks.role("accent", bold=marks.selected))

    def _cursor_numbers(self, inks: Inks) -> Style:
        return inks.role("accent" if self.focused else "foreground", bold=True)

    def _bar_of(self, row: ViewRow, inks: Inks, *, below: bool = False) -> Segment:
        """The hunk bar: its glyph, and its colour by the hunk's state."""
        glyphs, hunk = self.glyphs, row.hunk
        bar, role = " ", "muted"
        if hunk is not None:
            role = _STATE_ROLES[hunk.state]
            settled = hunk.state is not HunkState.STREAMING
            bar = glyphs.states[hunk.state] if row.first and settled and not below else glyphs.bar
            if bar == glyphs.bar and hunk.state is HunkState.REJECTED:
                bar, role = glyphs.rejected, "muted"
        elif row.look in (Look.PENDING, Look.WRITING):
            bar = glyphs.bar
        return Segment(bar, inks.role(role, bold=True))

    def _number(self, row: ViewRow) -> str:
        """The line's number in the proposed text, or in the base text where it is not in that.

        An unread line has that of the base text, too: the other grows with every line above it.
        """
        line = row.old if row.new is None or row.look is Look.UNREAD else row.new
        if line is None or row.look is Look.REJECTED or row.look in FOLDS:
            return " " * (self.digits + 1)
        return f"{line + 1:>{self.digits}} "

    def _sign(self, row: ViewRow) -> tuple[str, str]:
        if row.look is Look.ADDED:
            return "+", "added_sign"
        if row.look is Look.DELETED:
            return "-", "deleted_sign"
        if row.look in (Look.PENDING, Look.WRITING):
            return self.glyphs.pending, "muted"
        return "+" if row.look is Look.REJECTED else " ", "muted"

    def _fold_segments(self, row: ViewRow, inks: Inks) -> list[Segment]:
        words = f"{self.glyphs.fold} {row.text} "
        room = max(0, self.width - self.gutter - len(words))
        rule = Segment(self.glyphs.rule * room, inks.role("border"))
        return [Segment(words, inks.role("muted")), rule]

    def _code(self, row: ViewRow, spans: Sequence[Span], marks: Marks, inks: Inks) -> list[Segment]:
        """The text of a row in the colours of its tokens, with the mark of the writing."""
        text, columns = visible_with_columns(row.text, ascii_only=self.glyphs.ellipsis == "~")
        code = self._code_segments(row, text, columns, spans, marks, inks)
        if row.look is Look.WRITING:
            code.append(Segment(self.glyphs.writing, inks.role("accent")))
        return code

    def _note(self, row: ViewRow, marks: Marks, inks: Inks) -> list[Segment]:
        """The note beside a row."""
        if not marks.note or row.look in (Look.PENDING, Look.WRITING):
            return []
        state = None if row.hunk is None else row.hunk.state
        if state is HunkState.REJECTED:
            sign = self.glyphs.states[HunkState.REJECTED]
            return [Segment(f"  {sign} {visible(marks.note)}", inks.role("error"))]
        if marks.fact:
            # On a ground of its own: it is no part of the line.
            return [Segment(f" {visible(marks.note)} ", self.palette.style("muted", "raised"))]
        sign = self.glyphs.states[HunkState.HELD]
        role = "error" if state is HunkState.HELD else "warning"
        return [Segment(f"  {sign} {visible(marks.note)}", inks.role(role, bold=True))]

    def _wrapped(
        self, code: list[Segment], note: list[Segment], marks: Marks, inks: Inks
    ) -> list[list[Segment]]:
        """The lines that code and its note take where long lines go on below."""
        if not marks.fact:
            return wrapped([*code, *note], self.code_width, inks.ground)
        lines = wrapped(code, self.code_width, inks.ground)
        if (beside := self._at_the_edge(lines[-1], note, inks)) is not None:
            return [*lines[:-1], beside]
        alone = self._at_the_edge([], note, inks)
        return lines if alone is None else [*lines, alone]

    def _at_the_edge(
        self, code: list[Segment], note: list[Segment], inks: Inks
    ) -> list[Segment] | None:
        """Code with a note at the right edge; ``None`` where there is no room for both."""
        room = self.code_width - _cells(code) - _cells(note)
        if room < (_GAP if code else 0):
            return None
        return [*code, Segment(" " * room, inks.ground), *note]

    def _beside(
        self, code: list[Segment], note: list[Segment], marks: Marks, inks: Inks, keep: int
    ) -> list[Segment]:
        """Code with a note.

        A fact stands at the right edge, in full or in short, if there is room.  Other notes follow
        the code; where there is no short form, long code gives way, up to half the room, but not
        its first ``keep`` cells.
        """
        if not note:
            return code
        if marks.fact:
            beside = self._at_the_edge(code, note, inks)
            if beside is None and marks.brief:
                words = f" {visible(marks.brief)} "
                beside = self._at_the_edge(code, [Segment(words, note[0].style)], inks)
            elif beside is None and marks.brief is None:
                room = max(1, self.code_width - _GAP - _cells(note))
                beside = self._at_the_edge(list(self._fit(code, inks.ground, room)), note, inks)
            return code if beside is None else beside
        used = _cells(code)
        # The longest form for which there is room; without any the mark alone covers code.
        sign = self.glyphs.states[HunkState.HELD]
        shorter = [] if marks.brief is None else [f"  {sign} {marks.brief}".rstrip()]
        if marks.brief is not None and not marks.cursor:
            shorter.append(f"  {sign}")
        for words in shorter:
            if used + _cells(note) > self.code_width:
                note = [Segment(words, note[0].style)]
        room = self.code_width - min(_cells(note), self.code_width // 2)
        room = max(room, min(keep, self.code_width - _SIGN))
        if used > room:
            code = list(self._fit(code, inks.ground, room))
        left = self.code_width - _cells(code)
        if left <= _SIGN + 1:
            note = [Segment(note[0].text[:_SIGN], note[0].style)]
        elif left < _cells(note):
            note = list(self._fit(note, inks.ground, left))
        return [*code, *note]

    @staticmethod
    def _extent(row: ViewRow, marks: Marks) -> Range:
        """The cells of a row from the first changed word to the end of the last; empty at 0."""
        if not marks.changed:
            return 0, 0
        first = min(start for start, _ in marks.changed)
        last = max(stop for _, stop in marks.changed)
        return cell_len(visible(row.text[:first])), cell_len(visible(row.text[:last]))

    def _code_segments(
        self,
        row: ViewRow,
        text: str,
        columns: list[int] | None,
        spans: Sequence[Span],
        marks: Marks,
        inks: Inks,
    ) -> list[Segment]:
        neutral = row.look in (Look.UNREAD, Look.PENDING, Look.WRITING)
        faded = (
            row.hunk is not None
            and row.look is Look.DELETED
            and row.hunk.state is HunkState.ACCEPTED
        )
        faded |= row.look in (Look.UNREAD, Look.REJECTED)
        if neutral or faded:
            role = "muted" if faded else "foreground"
            if faded or not spans:
                return [Segment(text, inks.role(role))] if text else []
        runs = plain_runs(spans, len(row.text))
        if marks.changed:
            runs = _overlay(runs, marks.changed, "+!" if row.look is Look.ADDED else "-!")
        if marks.found:
            runs = _overlay(runs, marks.found, "?")
        tokens = inks.tokens
        if columns is None:
            return [Segment(text[start:stop], tokens[kind]) for start, stop, kind in runs]
        return [
            Segment(text[columns[start] : columns[stop]], tokens[kind])
            for start, stop, kind in runs
        ]

    def _inks(self, row: ViewRow, marks: Marks) -> Inks:
        role = row.look.value if row.look in (Look.ADDED, Look.DELETED) else "background"
        return self._inks_on(role, marks.cursor, marks.selected)

    def _inks_on(self, role: str, cursor: bool, selected: bool = False) -> Inks:
        key = (role, cursor, selected)
        inks = self._by_ground.get(key)
        if inks is None:
            inks = self._by_ground[key] = Inks(self.palette, self._make_ground(*key))
        return inks

    def _make_ground(self, role: str, cursor: bool, selected: bool) -> Style:
        palette = self.palette
        color = palette.colors[role]
        if not palette.ansi:
            if selected:
                color = color.blend(palette.colors["selection"], 0.75)
            if cursor:
                color = color.blend(palette.colors["cursor"], 0.4 if role != "background" else 1)
        return Style(bgcolor=color.rich_color)


def _overlay(runs: Sequence[Span], ranges: Sequence[Range], mark: str) -> list[Span]:
    """Split runs at the ends of ranges and append ``mark`` to the kinds inside."""
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


def _cells(segments: Sequence[Segment]) -> int:
    return sum(cell_len(text) for text, _, _ in segments)


def _stands_out(style: Style, ground: Style) -> bool:
    """Whether a style has more than a foreground colour."""
    return bool(style.underline) or style.bgcolor != ground.bgcolor


_RIGHT_ONLY: Final = frozenset({Look.ADDED, Look.REJECTED, Look.PENDING, Look.WRITING})


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
    ) -> list[Strip]:
        """One row as a strip, or as several where one of its sides is wrapped.

        The row's ``beside`` is what it replaces, with spans and marks of its own.
        """
        if row.look in FOLDS:
            return self.paint(row, spans, marks, left=left)
        old, new = row.beside, row
        old_spans, old_marks = beside_spans, beside_marks
        if row.look not in _RIGHT_ONLY:
            old, old_spans, old_marks = row, spans, marks
        right = None if row.look is Look.DELETED else new
        if not self.wrap:
            left = max(left, self._shift((old, old_marks), (right, marks)))
        olds = self._side(old, old_spans, old_marks, marks, row, left, is_left=True)
        news = self._side(right, spans, marks, marks, row, left, is_left=False)
        line = Segment(self.glyphs.side, self._divider)
        shorter = olds if len(olds) < len(news) else news
        empty = self._below(old if shorter is olds else right, marks, row, is_left=shorter is olds)
        lines = zip_longest(olds, news, fillvalue=empty)
        return [
            Strip([*first, line, *second]).adjust_cell_length(self.width, line.style)
            for first, second in lines
        ]

    def _shift(self, *sides: tuple[ViewRow | None, Marks]) -> int:
        """Cells to scroll both sides by, so that what has changed in them can be seen."""
        extents = [self._extent(row, marks) for row, marks in sides if row is not None]
        extents = [(start, stop) for start, stop in extents if stop]
        wanted = max((stop for _, stop in extents), default=0) + 1 - self.code_width
        # The mark for hidden text to the left takes a cell.
        most = min((start for start, _ in extents), default=0) - 1
        return max(0, min(wanted, most))

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
        # Lines put back have no number in the base text: another program took them out of it.
        number = shown.old if is_left and shown.old is not None else shown.new
        if shown.look is Look.UNREAD and not is_left:
            number = None  # It grows with every line above, see ``_number``.
        digits = " " * self.digits if number is None else f"{number + 1:>{self.digits}}"
        numbers = self._cursor_numbers(inks) if marks.cursor else inks.role("muted")
        sign, role = self._sign(shown)
        lead += [Segment(f"{digits} ", numbers), Segment(f"{sign} ", inks.role(role))]
        code = self._code(shown, spans, own_marks, inks)
        own = is_left == (row.look is Look.DELETED)
        note = self._note(row, marks, inks) if own else []
        if not self.wrap:
            keep = self._extent(shown, own_marks)[1] - left
            code = self._beside(self._scrolled(code, left, inks), note, marks, inks, keep)
            return [self._fit([*lead, *code], inks.ground, self.side)]
        first, *more = self._wrapped(code, note, marks, inks)
        mark = Segment(f"{self.glyphs.wrapped:>{self.digits}}   ", inks.role("muted"))
        edge = self._edge_below(marks, row, inks, is_left=is_left)
        lines = [[*lead, *first], *([edge, mark, *line] for line in more)]
        return [self._fit(line, inks.ground, self.side) for line in lines]

    def _below(self, shown: ViewRow | None, marks: Marks, row: ViewRow, *, is_left: bool) -> Strip:
        """The filling below the side that takes fewer lines."""
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
