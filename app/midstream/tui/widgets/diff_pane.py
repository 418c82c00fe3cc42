"""The code pane: a whole file with the rewrite streaming in place, painted row by row.

A change repaints the lines that differ and nothing else.  The pane moves its cursor and says so; it
decides no hunk and talks to no session.  The painted rows are ``diff.strips``'.

Uses of Textual's internals, checked by contract tests: ``render_lines`` is overridden (no style
cache in between) and ``virtual_size`` is set without announcing it, because announcing would lay
the screen out on every frame.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import Hunk, HunkState
from midstream.tui.diff.painter import RowPainter, SplitPainter
from midstream.tui.diff.parts import HunkPart, parts_in
from midstream.tui.diff.strips import RowStrips
from midstream.tui.diff.syntax import AHEAD, FileSyntax
from midstream.tui.diff.view import FileView, NoFile, ViewRow
from midstream.tui.glyphs import UNICODE, Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.line_api import Staying, filtered, set_silently

MARGIN: Final = 3
"""Lines kept visible above and below the cursor."""

Place = tuple[int, int]
"""A row, and how many of its lines lie above."""


class PaneWindow(Staying, ScrollView):
    """Geometry of a pane whose rows may be wrapped."""

    wrap = False
    """Whether rows can take several lines."""
    skip = 0
    """Lines of the first row that are scrolled out."""

    @property
    @abstractmethod
    def row_count(self) -> int:
        """Rows there are."""

    @abstractmethod
    def row_height(self, y: int) -> int:
        """Lines that a row takes."""

    @property
    def height(self) -> int:
        return max(1, self.size.height)

    @property
    def top(self) -> int:
        return round(self.scroll_y)

    @property
    def bottom(self) -> int:
        """The row after the last one that is at least partly visible."""
        if not self.wrap:
            return self.top + self.height
        return self.walk((self.top, self.skip), self.height - 1)[0] + 1

    def row_at(self, line: int) -> int:
        """The row at a line of the window; beyond the last row where nothing is shown."""
        if not self.wrap:
            return self.top + line
        lines = self.lines_between(self.top, self.row_count, line + self.skip)
        if line >= lines - self.skip:
            return self.row_count
        return self.walk((self.top, self.skip), line)[0]

    def lines_above(self, row: int) -> int:
        """Lines between the top of the window and a row; negative where the row is above it."""
        if not self.wrap:
            return row - self.top
        if row < self.top:
            return -self.lines_between(row, self.top, self.height) - self.skip
        return self.lines_between(self.top, row, 2 * self.height) - self.skip

    def lines_between(self, first: int, stop: int, most: int) -> int:
        """Lines that the rows ``[first, stop)`` take, counted until they are more than ``most``."""
        if not self.wrap:
            return stop - first
        lines = 0
        for y in range(first, stop):
            lines += self.row_height(y)
            if lines > most:
                break
        return lines

    def walk(self, place: Place, lines: int) -> Place:
        """The place some lines below another (above, if negative), within the file."""
        y, part = place
        last = max(0, self.row_count - 1)
        if not self.wrap:
            return max(0, min(y + lines, last)), 0
        part += lines
        while part < 0 and y > 0:
            y -= 1
            part += self.row_height(y)
        if part < 0:
            return 0, 0
        while part >= (height := self.row_height(y)):
            if y >= last:
                return last, height - 1
            part -= height
            y += 1
        return y, part

    def shows(self, first: int, stop: int) -> bool:
        """Whether rows are in the window."""
        return self.top <= first and stop <= self.bottom

    def show_rows(self, first: int, stop: int, *, high: bool = False) -> None:
        """Bring rows into the window: all of them, or else from its upper part on.

        The cursor stays, and so does the window where it has them already.

        Args:
            first: The first row.
            stop: The row after the last.
            high: Whether they are also to begin in the upper half.
        """
        height = self.height
        above, size = self.lines_above(first), self.lines_between(first, stop, height)
        lowest = height - MARGIN - size
        if high:
            lowest = min(lowest, height // 2)
        if size <= height - 2 * MARGIN and MARGIN <= above <= lowest:
            return
        lead = max(MARGIN, min(height // 4, height - MARGIN - size))
        self.scroll_to_place(self.walk((first, 0), -lead))

    def reveal(self, row: int, *, centre: bool = False) -> None:
        """Bring a row into the window with some lines around it."""
        height = self.height
        margin = min(MARGIN, (height - 1) // 2)
        above, size = self.lines_above(row), self.row_height(row)
        if size > height - 2 * margin:
            margin = 0
            if size > height and -size < above < height:
                return  # It cannot be shown as a whole, and some of it is.
        inside = margin <= above and above + size <= height - margin
        if centre and not inside:
            self.scroll_to_place(self.walk((row, 0), -(height // 3)))
        elif above < margin:
            self.scroll_to_place(self.walk((row, 0), -margin))
        elif above + size > height - margin:
            end = (row + margin, 0)
            if self.wrap:
                end = self.walk((row, size - 1), margin)
            self.scroll_to_place(self._so_that_last(end))

    def scroll_to_row(self, row: int) -> None:
        """Make a row the first visible one, as far as the file allows."""
        self.scroll_to_place((row, 0))

    def scroll_lines(self, lines: int) -> None:
        """Move the window down, or up."""
        if self.wrap:
            self.scroll_to_place(self.walk((self.top, self.skip), lines))
        else:
            self.scroll_to_row(self.top + lines)

    def scroll_to_place(self, place: Place) -> None:
        """Begin the window at a place, as far as the file allows."""
        y, part = max(0, place[0]), max(0, place[1])
        if self.wrap:
            y, part = min((y, part), self._so_that_last((max(0, self.row_count - 1), 1 << 30)))
        else:
            y, part = min(y, self.max_scroll_y), 0
        if part != self.skip:
            self.skip = part
            self.refresh()
        self.scroll_to(y=y, animate=False, force=True)

    def _so_that_last(self, place: Place) -> Place:
        """Where the window begins when it ends with a place."""
        if not self.wrap:
            return place[0] - self.height + 1, 0
        y = min(place[0], max(0, self.row_count - 1))
        part = min(place[1], self.row_height(y) - 1)
        return self.walk((y, part), 1 - self.height)

    def fit_size(self) -> None:
        """Let the window reach the last row; a wrapped one may begin with it while it grows."""
        rows = self.row_count
        if self.wrap:
            rows += self.height - 1
        size = Size(self.size.width, rows)
        if size != self.virtual_size:
            set_silently(self, size)


SPLIT_FROM: Final = 150
"""Cells from which on the automatic layout shows both sides."""


class DiffPane(PaneWindow, can_focus=True):
    """Shows one ``FileView``."""

    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Moved(Message):
        """The cursor, the marked lines or the follow state changed by the user."""

        pane: DiffPane

    @dataclass
    class DoubleClicked(Message):
        """A row was double-clicked."""

        pane: DiffPane

    def __init__(
        self, palette: Palette, glyphs: Glyphs = UNICODE, *, widget_id: str | None = None
    ) -> None:
        super().__init__(id=widget_id)
        self.view = FileView(NoFile(), HunkStore())
        self.cursor = 0
        self.mark: int | None = None
        """The row where marking began, while lines are marked."""
        self.following = False
        self._pressed: int | None = None
        """The row where the mouse button went down, while it is held."""
        self._dragged: int | None = None
        """The mark that a drag has made; the next press removes it."""
        self.layout_choice = "auto"
        self._palette = palette
        self._glyphs = glyphs
        self._syntax = FileSyntax(self.view)
        self.strips = RowStrips(self.view, self._syntax)
        self._painted: list[Strip] = []
        self._seen_rows = 0
        self._laid_out = 0
        """The height of the window when it was laid out last."""
        self._next: tuple[object, list[Strip]] | None = None
        """The strips of the next frame, and what they were made from."""

    # what is shown

    def show(
        self, view: FileView, syntax: FileSyntax, *, cursor: int = 0, top: int | None = None
    ) -> None:
        """Show a file from now on, with the cursor on a row."""
        self.view, self._syntax = view, syntax
        self.mark, self.strips.left, self.strips.found = None, 0, {}
        self.strips.show(view, syntax)
        view.refresh()
        self._seen_rows = view.size
        self._apply_layout()
        syntax.sync()
        self.fit_size()
        self.cursor = max(0, min(cursor, view.size - 1))
        if top is None:
            self.scroll_to_place(self.walk((self.cursor, 0), -(self.size.height // 3)))
        else:
            self.scroll_to_row(top)
        self.refresh()

    def clear(self) -> None:
        view = FileView(NoFile(), HunkStore())
        self.show(view, FileSyntax(view))

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        self._forget_paint()

    def sync(self) -> None:
        """Take in what the session has done since the last time, and repaint what differs."""
        view = self.view
        cursor_row, top_row, top = view.row(self.cursor), view.row(self.top), self.top
        changed = view.refresh()
        if changed:
            self._apply_layout()
            self._syntax.sync()
            self.fit_size()
            before = self.cursor
            self.cursor = self._place_of(cursor_row, before)
            if self.following:
                self._follow()
            else:
                # Nothing moves under a reader: the first visible line stays, or else the cursor's.
                moved = self._place_of(top_row, top, missing=top + self.cursor - before)
                if moved != top:
                    self.scroll_to_place((moved, self.skip))
        if changed or self.strips.unlexed:
            self.repaint()

    def repaint(self) -> None:
        """Mark the visible rows that differ from what was painted last."""
        height, width = self.size.height, self.size.width
        if not height:
            return
        painted = self._painted
        if len(painted) != height:
            self._next = None
            self.refresh()
            return
        strips = self._visible_strips()
        dirty: list[Region] = []
        for y in range(height):
            if strips[y] is not painted[y]:
                if dirty and dirty[-1].bottom == y:
                    dirty[-1] = Region(0, dirty[-1].y, width, dirty[-1].height + 1)
                else:
                    dirty.append(Region(0, y, width, 1))
        self._next = (self._state(), strips)
        if dirty:
            self.refresh(*dirty)

    def lex_ahead(self) -> bool:
        """Spend a moment on syntax colours; says whether there is more to do."""
        more = self._syntax.advance(self.view.base_at(self.top) + AHEAD)
        if self.strips.unlexed:
            self.repaint()
        return more

    def lex_along(self) -> None:
        """Between two frames of a stream: take some work off the next one."""
        self._syntax.go_along()

    # the cursor and the window

    @property
    def row_count(self) -> int:
        return self.view.size

    def row_height(self, y: int) -> int:
        return len(self._strips_of(y)) if self.wrap else 1

    @property
    def selection_rows(self) -> tuple[int, int] | None:
        """Marked rows, end exclusive."""
        if self.mark is None:
            return None
        return min(self.mark, self.cursor), max(self.mark, self.cursor) + 1

    @property
    def cut(self) -> bool:
        """Whether the row under the cursor does not fit."""
        row = self.view.row(self.cursor)
        if row is None or self.wrap or not self.size:
            return False
        return cell_len(visible(row.text)) - self.strips.left > self._painter.code_width

    @property
    def hunk(self) -> Hunk | None:
        """The hunk under the cursor."""
        return self.view.hunk_at(self.cursor)

    @property
    def undecided_hunk(self) -> Hunk | None:
        """The hunk under the cursor if it waits for a decision."""
        hunk = self.hunk
        return hunk if hunk is not None and hunk.state is HunkState.SETTLED else None

    @property
    def marked_parts(self) -> list[HunkPart]:
        """The parts of hunks that are marked."""
        rows = self.selection_rows
        return [] if rows is None else parts_in(self.view, *rows)

    def unmark(self) -> None:
        self.mark = None
        self.go_to(self.cursor, detach=False)

    def show_hunk_at(self, row: int, *, high: bool = False) -> bool:
        """Show all of the hunk at a row, if it fits; returns whether there is one.

        Args:
            row: The row.
            high: See ``show_rows``.
        """
        hunk = self.view.hunk_at(row)
        rows = None if hunk is None else self.view.rows_of(hunk.id)
        if rows is not None:
            self.show_rows(*rows, high=high)
        return rows is not None

    @property
    def new_rows(self) -> int:
        """Rows that came since following ended."""
        return 0 if self.following else max(0, self.view.size - self._seen_rows)

    def go_to(self, row: int, *, centre: bool = False, detach: bool = True) -> None:
        """Put the cursor on a row and show it."""
        if not self.view.size:
            return
        if detach:
            self.detach()
        self.cursor = max(0, min(row, self.view.size - 1))
        self.reveal(self.cursor, centre=centre)
        self.repaint()
        self.post_message(self.Moved(self))

    def page(self, lines: int) -> None:
        """Move window and cursor by some lines."""
        self.detach()
        row = self.walk((self.cursor, 0), lines)[0]
        self.scroll_lines(lines)
        self.go_to(row)

    def detach(self) -> None:
        """Stop following: the user reads elsewhere."""
        if self.following:
            self.following = False
            self._seen_rows = self.view.size

    def follow(self) -> None:
        """Keep the writing in view from now on."""
        self.following = True
        self._follow(force=True)
        self.repaint()
        self.post_message(self.Moved(self))

    def scroll_columns(self, cells: int) -> None:
        """Show code further left or right, no further than the longest visible line."""
        if cells > 0 and self.strips.left + cells > self._widest() - self._painter.code_width // 2:
            return
        self.strips.left = max(0, self.strips.left + cells)
        self.repaint()

    def _widest(self) -> int:
        """Cells of the longest visible line of code."""
        rows = [self.view.row(y) for y in range(self.top, self.bottom)]
        return max((cell_len(visible(row.text)) for row in rows if row is not None), default=0)

    def set_wrap(self, wrap: bool) -> None:
        """Let long lines go on below, or scroll them sideways; the cursor's row stays in place."""
        above = self.lines_above(self.cursor)
        self.wrap, self.strips.left = wrap, 0
        self._forget_paint()
        self.fit_size()
        self.scroll_to_place(self.walk((self.cursor, 0), -above))
        self.reveal(self.cursor)

    def set_by_tokens(self, by_tokens: bool) -> None:
        """Mark the tokens of a hunk that differ, or the words of its lines."""
        self.strips.by_tokens = by_tokens
        self._forget_paint()

    def _follow(self, *, force: bool = False) -> None:
        view = self.view
        if view.writing is None:
            return
        row, height = view.writing, self.height
        above, size = self.lines_above(row), self.row_height(row)
        away = above + size >= height or above < 0 or force
        # Half a page at once: a window that moves on every line costs twice the output.
        if away and not MARGIN <= above <= height - MARGIN - size:
            self.scroll_to_place(self.walk((row, 0), -(height // 2)))

    def _place_of(self, row: ViewRow | None, y: int, *, missing: int | None = None) -> int:
        """Where the row that was at ``y`` is now; ``missing`` where it is gone."""
        view = self.view
        here = view.row(y)
        last = max(0, view.size - 1)
        if row is None or (here is not None and here.same_line(row)):
            return min(y, last)
        found = view.find_line(row, near=y)
        return max(0, min(last, found if found is not None else y if missing is None else missing))

    # painting

    def render_lines(self, crop: Region) -> list[Strip]:
        height = self.size.height
        strips: list[Strip] = []
        if self._next is not None and self._next[0] == self._state():
            self._painted = self._next[1]
        else:
            self._painted = self._visible_strips()
        self._next = None
        right = crop.x + crop.width
        for y in range(crop.y, crop.bottom):
            strip = self._painted[y] if y < height else self._painter.blank
            if crop.x or right != strip.cell_length:
                # With a style: the filter of NO_COLOR cannot take a segment that has none.
                width = max(right, strip.cell_length)
                strip = strip.adjust_cell_length(width, Style.null()).crop(crop.x, right)
            strips.append(strip)
        return filtered(self, strips, self._palette.colors["background"])

    @property
    def lines(self) -> list[str]:
        """The text of the visible lines."""
        return [strip.text.rstrip() for strip in self._visible_strips()]

    def _state(self) -> object:
        """Everything that the visible strips depend on, but for the tokens."""
        return (
            self.view.seen,
            self.scroll_offset.y,
            self.skip,
            self.size,
            self.cursor,
            self.mark,
            self.strips.scope,
            self.strips.left,
            self.strips.found,
            self.strips.painter,
        )

    def _visible_strips(self) -> list[Strip]:
        top, height, cursor = self.top, self.size.height, self.cursor
        self._syntax.begin_frame()
        rows = self._prepared
        rows.unlexed = False
        low, high = self.selection_rows or (0, 0)
        y = top
        strips = rows.of(y, cursor=y == cursor, selected=low <= y < high)[self.skip :]
        while len(strips) < height:
            y += 1
            strips += rows.of(y, cursor=y == cursor, selected=low <= y < high)
        return strips[:height]

    def _strips_of(self, y: int) -> list[Strip]:
        low, high = self.selection_rows or (0, 0)
        return self._prepared.of(y, cursor=y == self.cursor, selected=low <= y < high)

    @property
    def _prepared(self) -> RowStrips:
        """The rows, with a painter."""
        if self.strips.painter is None:
            self.strips.forget(self._make_painter())
        return self.strips

    @property
    def _painter(self) -> RowPainter:
        painter = self._prepared.painter
        assert painter is not None
        return painter

    def _make_painter(self) -> RowPainter:
        lines = len(self.view.proposal.base.lines)
        kind = SplitPainter if self.view.split else RowPainter
        return kind(
            self._palette,
            self._glyphs,
            self.size.width,
            max(3, len(str(lines + 99))),
            focused=self.has_focus,
            wrap=self.wrap,
        )

    def set_layout(self, layout: str) -> None:
        """``unified``, ``split``, or ``auto``: split where there are changes and room for both."""
        self.layout_choice = layout
        self._apply_layout()

    @property
    def automatic_layout(self) -> str:
        """What ``auto`` is for this file and this width: ``unified`` or ``split``."""
        view = self.view
        changed = bool(view.segments) and not view.one_sided
        return "split" if changed and self.size.width >= SPLIT_FROM else "unified"

    def _apply_layout(self) -> None:
        view = self.view
        choice = self.automatic_layout if self.layout_choice == "auto" else self.layout_choice
        split = choice == "split" and not view.one_sided
        if split == view.split:
            return
        here = view.row(self.cursor)
        old, new = (None, None) if here is None else (here.old, here.new)
        above = self.lines_above(self.cursor)
        view.split = split
        view.refresh()
        self.fit_size()
        self._forget_paint()
        if new is not None:
            self.cursor = view.row_of_line(new)
        elif old is not None:
            self.cursor = view.row_of_base(old)
        self.cursor = max(0, min(self.cursor, view.size - 1))
        self.scroll_to_place(self.walk((self.cursor, 0), -above))

    def _forget_paint(self) -> None:
        self.strips.forget(None)
        self.refresh()

    # events

    def on_resize(self) -> None:
        self.fit_size()
        self._apply_layout()
        self._forget_paint()
        lost, self._laid_out = self._laid_out - self.height, self.height
        if self.row_count:
            self.scroll_to_place((self.top, self.skip))
            if lost > 0 and not self.following:
                self._keep_shown(lost)

    def _keep_shown(self, lost: int) -> None:
        """Keep the last row of the cursor's hunk in a window that has become lower."""
        hunk = self.hunk
        rows = None if hunk is None else self.view.rows_of(hunk.id)
        first, stop = rows or (self.cursor, self.cursor + 1)
        size = self.lines_between(first, stop, self.height + lost)
        above = self.lines_above(first)
        hidden = above + size - self.height
        if 0 < hidden <= lost and above >= 0:
            self.scroll_lines(min(hidden, above))

    def on_focus(self) -> None:
        self._forget_paint()

    def on_blur(self) -> None:
        self._forget_paint()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        row = self.row_at(event.y)
        self._pressed = row if event.button == 1 and row < self.row_count else None
        if self._pressed is not None and self.mark is not None and self.mark == self._dragged:
            self.mark = None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark lines from where the button went down; beyond the window, it scrolls."""
        if self._pressed is None or not self.row_count:
            return
        if event.button != 1:
            self._pressed = None  # It was let go of outside.
            return
        row = min(self.row_at(max(0, event.y)) + min(0, event.y), self.row_count - 1)
        if row == self.cursor or (self.mark is None and row == self._pressed):
            return
        if self.mark is None:
            self.mark = self._dragged = self._pressed
            self.capture_mouse()
        self.go_to(max(0, row))

    def on_mouse_up(self) -> None:
        if self._pressed is not None:
            self._pressed = None
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        row = self.row_at(event.y)
        if not 0 <= row < self.row_count:
            return
        if event.shift and self.mark is None:
            self.mark = self.cursor
        self.go_to(row)
        if event.chain == 2:
            self.post_message(self.DoubleClicked(self))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -3)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self.scroll_columns(4)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self.scroll_columns(-4)

    def _wheel(self, event: events.MouseEvent, lines: int) -> None:
        event.stop()
        event.prevent_default()
        self.detach()
        self.scroll_lines(lines)
        self.cursor = max(self.top, min(self.cursor, self.bottom - 1))
        self.repaint()
        self.post_message(self.Moved(self))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Text selection by the screen is off; ``y`` copies code without the gutter."""
        return None
