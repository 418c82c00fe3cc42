"""The code pane: a whole file with the rewrite streaming in place, painted row by row.

Every visible row is one cached strip; a change repaints the rows that differ and nothing else.  The
pane moves its cursor and its window and says so; it decides no hunk and talks to no session.

Semi-internal touches of Textual, held by contract tests: ``render_lines`` is overridden (no style
cache in between) and ``virtual_size`` is set without announcing it, because announcing would lay
the screen out on every frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from rich.cells import cell_len
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from midstream.edits.hunks import Hunk, HunkState
from midstream.tui.diff.intraline import Range, compare_rows
from midstream.tui.diff.painter import Marks, RowPainter
from midstream.tui.diff.rows import Look, ViewRow
from midstream.tui.diff.split_painter import SplitPainter
from midstream.tui.diff.syntax import AHEAD, FileSyntax
from midstream.tui.diff.view import FileView
from midstream.tui.glyphs import UNICODE, Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.line_api import filtered, set_silently

KEPT_STRIPS: Final = 6_000
MARGIN: Final = 3
"""Rows kept visible above and below the cursor."""
SPLIT_FROM: Final = 150
"""Cells from which on the automatic layout shows both sides."""
TWO_NUMBERS_FROM: Final = 96
"""Cells from which on both line numbers are shown."""
_CHANGED: Final = frozenset({Look.ADDED, Look.DELETED})
LARGEST_COMPARED: Final = 200
"""Hunks with more rows get no intra-line marks."""


class DiffPane(ScrollView, can_focus=True):
    """Shows one :class:`FileView`."""

    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Moved(Message):
        """The cursor, the marked lines or the follow state changed by the person's hand."""

        pane: DiffPane

    @dataclass
    class Chosen(Message):
        """A row was double-clicked."""

        pane: DiffPane

    def __init__(self, palette: Palette, glyphs: Glyphs = UNICODE) -> None:
        super().__init__()
        self.view: FileView | None = None
        self.cursor = 0
        self.mark: int | None = None
        """The row where marking began, while lines are marked."""
        self.following = False
        self.scope: tuple[int, int] | None = None
        """Lines of the base text that the next instruction would get."""
        self.found: dict[int, tuple[Range, ...]] = {}
        """Search matches by row."""
        self.note_of: Callable[[Hunk], str] = lambda hunk: ""
        """What is to be said beside the first row of a hunk."""
        self.left = 0
        self.layout_choice = "auto"
        self._palette = palette
        self._glyphs = glyphs
        self._syntax: FileSyntax | None = None
        self._painter: RowPainter | None = None
        self._strips: dict[object, Strip] = {}
        self._painted: list[Strip] = []
        self._changed: dict[tuple[int, int], dict[int, tuple[Range, ...]]] = {}
        self._seen_rows = 0
        self._unlexed = False
        """Whether a visible row waits for its colours."""
        self._next: tuple[object, list[Strip]] | None = None
        """The strips of the next frame, and what they were made from."""

    # what is shown

    def show(
        self, view: FileView, syntax: FileSyntax, *, cursor: int = 0, top: int | None = None
    ) -> None:
        """Show a file from now on, with the cursor on a row."""
        self.view, self._syntax = view, syntax
        self.mark, self.left, self.found = None, 0, {}
        self._changed.clear()
        self._strips.clear()
        self._painter = None
        view.refresh()
        self._apply_layout()
        syntax.sync()
        self._fit_size()
        self.cursor = max(0, min(cursor, view.size - 1))
        self.scroll_to_row(self.cursor - self.size.height // 3 if top is None else top)
        self.refresh()

    def clear(self) -> None:
        """Show nothing."""
        self.view = self._syntax = None
        self._strips.clear()
        self._fit_size()
        self.refresh()

    def set_palette(self, palette: Palette, glyphs: Glyphs) -> None:
        """Paint with other colours or characters."""
        self._palette, self._glyphs = palette, glyphs
        self._forget_paint()

    def sync(self) -> None:
        """Take in what the session has done since the last time, and repaint what differs."""
        view, syntax = self.view, self._syntax
        if view is None or syntax is None:
            return
        cursor_row, top_row, top = view.row(self.cursor), view.row(self.top), self.top
        changed = view.refresh()
        if changed:
            self._apply_layout()
            syntax.sync()
            self._fit_size()
            before = self.cursor
            self.cursor = self._place_of(cursor_row, before)
            if self.following:
                self._follow()
            else:
                # Nothing moves under a reader: the first visible line stays, or else the cursor's.
                moved = self._place_of(top_row, top, missing=top + self.cursor - before)
                if moved != top:
                    self.scroll_to_row(moved)
        if changed or self._unlexed:
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
        self._unlexed = False
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
        view, syntax = self.view, self._syntax
        if view is None or syntax is None:
            return False
        more = syntax.advance(view.base_at(self.top) + AHEAD)
        self.repaint()
        return more

    # the cursor and the window

    @property
    def height(self) -> int:
        """Visible rows."""
        return max(1, self.size.height)

    @property
    def top(self) -> int:
        """The first visible row."""
        return self.scroll_offset.y

    @property
    def selection_rows(self) -> tuple[int, int] | None:
        """Marked rows, end exclusive."""
        if self.mark is None:
            return None
        return min(self.mark, self.cursor), max(self.mark, self.cursor) + 1

    @property
    def cut(self) -> bool:
        """Whether the row under the cursor does not fit."""
        row = None if self.view is None else self.view.row(self.cursor)
        if row is None or self._painter is None:
            return False
        room = self._painter.code_width
        return cell_len(visible(row.text)) - self.left > room

    @property
    def hunk(self) -> Hunk | None:
        """The hunk under the cursor."""
        return None if self.view is None else self.view.hunk_at(self.cursor)

    @property
    def new_rows(self) -> int:
        """Rows that came since following ended."""
        return (
            0 if self.view is None or self.following else max(0, self.view.size - self._seen_rows)
        )

    def go_to(self, row: int, *, centre: bool = False, detach: bool = True) -> None:
        """Put the cursor on a row and show it."""
        if self.view is None or not self.view.size:
            return
        if detach:
            self.detach()
        self.cursor = max(0, min(row, self.view.size - 1))
        top, height = self.top, self.height
        margin = min(MARGIN, (height - 1) // 2)
        if centre and not top + margin <= self.cursor < top + height - margin:
            self.scroll_to_row(self.cursor - height // 3)
        elif self.cursor < top + margin:
            self.scroll_to_row(self.cursor - margin)
        elif self.cursor >= top + height - margin:
            self.scroll_to_row(self.cursor - height + margin + 1)
        self.repaint()
        self.post_message(self.Moved(self))

    def shows(self, first: int, stop: int) -> bool:
        """Whether rows are in the window."""
        return self.top <= first and stop <= self.top + self.height

    def show_rows(self, first: int, stop: int) -> None:
        """Bring rows into the window, moving no further than needed; the cursor stays."""
        top, height = self.top, self.height
        if stop - first > height - 2 * MARGIN or first - MARGIN < top:
            self.scroll_to_row(first - MARGIN)
        elif stop + MARGIN > top + height:
            self.scroll_to_row(stop + MARGIN - height)

    def page(self, rows: int) -> None:
        """Move window and cursor by some rows."""
        if self.view is None:
            return
        self.detach()
        self.scroll_to_row(self.top + rows)
        self.go_to(self.cursor + rows)

    def scroll_to_row(self, row: int) -> None:
        """Make a row the first visible one, as far as the file allows."""
        self.scroll_to(y=max(0, min(row, self.max_scroll_y)), animate=False, force=True)

    def detach(self) -> None:
        """Stop following: the person reads elsewhere."""
        if self.following:
            self.following = False
            self._seen_rows = 0 if self.view is None else self.view.size

    def follow(self) -> None:
        """Keep the writing in view from now on."""
        self.following = True
        self._follow(force=True)
        self.repaint()
        self.post_message(self.Moved(self))

    def scroll_columns(self, cells: int) -> None:
        """Show code further left or right."""
        self.left = max(0, self.left + cells)
        self.repaint()

    def _follow(self, *, force: bool = False) -> None:
        view = self.view
        if view is None or view.writing is None:
            return
        row, top, height = view.writing, self.top, self.height
        away = row >= top + height - 1 or row < top or force
        # Half a page at once: a window that moves on every line costs twice the output.
        if away and not top + MARGIN <= row < top + height - MARGIN:
            self.scroll_to_row(row - height // 2)

    def _place_of(self, row: ViewRow | None, y: int, *, missing: int | None = None) -> int:
        """Where the row that was at ``y`` is now; ``missing`` where it is gone."""
        view = self.view
        if view is None:
            return y
        here = view.row(y)
        last = max(0, view.size - 1)
        if row is None or (here is not None and here.same_line(row)):
            return min(y, last)
        found = view.find_line(row, near=y)
        return max(0, min(last, found if found is not None else y if missing is None else missing))

    def _fit_size(self) -> None:
        rows = 0 if self.view is None else self.view.size
        set_silently(self, Size(self.size.width, rows))

    # painting

    def render_lines(self, crop: Region) -> list[Strip]:
        """The strips of a region of the pane."""
        height = self.size.height
        strips: list[Strip] = []
        if self._next is not None and self._next[0] == self._state():
            self._painted = self._next[1]
        else:
            self._painted = self._visible_strips()
        self._next = None
        right = crop.x + crop.width
        for y in range(crop.y, crop.bottom):
            strip = self._painted[y] if y < height else self._strip(-1)
            if crop.x or right != strip.cell_length:
                strip = strip.adjust_cell_length(max(right, strip.cell_length)).crop(crop.x, right)
            strips.append(strip)
        return filtered(self, strips, self._palette.colors["background"])

    def _state(self) -> object:
        """Everything that the visible strips depend on, but for the tokens."""
        view = self.view
        return (
            None if view is None else view.seen,
            self.scroll_offset.y,
            self.size,
            self.cursor,
            self.mark,
            self.scope,
            self.left,
            self.found,
            self._painter,
        )

    def _visible_strips(self) -> list[Strip]:
        top = self.scroll_offset.y
        selection = self.selection_rows or (0, 0)
        return [self._strip(y, selection) for y in range(top, top + self.size.height)]

    def _strip(self, y: int, selection: tuple[int, int] | None = None) -> Strip:
        view, syntax = self.view, self._syntax
        painter = self._painter or self._make_painter()
        row = None if view is None else view.row(y)
        if row is None or syntax is None:
            return painter.blank()
        hunk = row.hunk
        marked = selection or self.selection_rows or (0, 0)
        scope = self.scope
        cursor = y == self.cursor
        selected = marked[0] <= y < marked[1]
        line = row.old if row.old is not None or hunk is None else hunk.start
        scoped = scope is not None and line is not None and scope[0] <= line < scope[1]
        found = self.found.get(y, ())
        note = ""
        if hunk is not None and row.first:
            held = hunk.state is HunkState.QUARANTINED
            note = f"quarantined: {hunk.note}" if held else self.note_of(hunk)
        ready = syntax.is_ready(row)
        self._unlexed |= not ready
        key = (
            row.look,
            row.old,
            row.new,
            row.text,
            None if hunk is None else (hunk.id, hunk.state, row.offset, row.first),
            (cursor, selected, scoped, found, self.left, note),
            ready,
        )
        strip = self._strips.get(key)
        if strip is None:
            if len(self._strips) > KEPT_STRIPS:
                self._strips.clear()
            marks = Marks(cursor, selected, scoped, self._changed_words(row), found, note)
            spans = syntax.spans(row)
            if isinstance(painter, SplitPainter):
                beside = row.beside
                beside_spans = () if beside is None else syntax.spans(beside)
                beside_changed = () if beside is None else self._changed_words(beside)
                other = replace(marks, changed=beside_changed, found=(), note="")
                strip = painter.paint_both(row, spans, marks, beside_spans, other, left=self.left)
            else:
                strip = painter.paint(row, spans, marks, left=self.left)
            if syntax.is_ready(row) or not key[-1]:
                self._strips[(*key[:-1], syntax.is_ready(row))] = strip
        return strip

    def _changed_words(self, row: ViewRow) -> tuple[Range, ...]:
        hunk, view = row.hunk, self.view
        if hunk is None or view is None or not hunk.decidable:
            return ()
        if row.look not in _CHANGED or hunk.deleted + hunk.added > LARGEST_COMPARED:
            return ()
        key = (hunk.id, view.structure)
        ranges = self._changed.get(key)
        if ranges is None:
            ranges = self._changed[key] = compare_rows(view.hunk_rows(hunk.id))
        return ranges.get(row.offset, ())

    def _make_painter(self) -> RowPainter:
        lines = 0 if self.view is None else len(self.view.proposal.base.lines)
        split = self.view is not None and self.view.split
        kind = SplitPainter if split else RowPainter
        self._painter = kind(
            self._palette,
            self._glyphs,
            self.size.width,
            max(3, len(str(lines + 99))),
            two_numbers=not split and self.size.width >= TWO_NUMBERS_FROM,
            focused=self.has_focus,
        )
        return self._painter

    def set_layout(self, layout: str) -> None:
        """``unified``, ``split``, or ``auto``: split where there are changes and room for both."""
        self.layout_choice = layout
        self._apply_layout()

    def _apply_layout(self) -> None:
        view = self.view
        if view is None:
            return
        wide = self.size.width >= SPLIT_FROM and bool(view.segments)
        split = self.layout_choice == "split" or (self.layout_choice == "auto" and wide)
        if split == view.split:
            return
        here = view.row(self.cursor)
        old, new = (None, None) if here is None else (here.old, here.new)
        offset = self.cursor - self.top
        view.split = split
        view.refresh()
        self._fit_size()
        self._forget_paint()
        if new is not None:
            self.cursor = view.row_of_line(new)
        elif old is not None:
            self.cursor = view.row_of_base(old)
        self.cursor = max(0, min(self.cursor, view.size - 1))
        self.scroll_to_row(self.cursor - offset)

    def _forget_paint(self) -> None:
        self._painter = None
        self._strips.clear()
        self.refresh()

    # events

    def on_resize(self) -> None:
        """The width decides how every row is painted."""
        self._fit_size()
        self._apply_layout()
        self._forget_paint()
        if self.view is not None:
            self.scroll_to_row(self.top)

    def on_focus(self) -> None:
        """The cursor row is marked more clearly."""
        self._forget_paint()

    def on_blur(self) -> None:
        """The cursor row is marked more calmly."""
        self._forget_paint()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll by three rows; the cursor stays in the window."""
        self._wheel(event, 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll by three rows; the cursor stays in the window."""
        self._wheel(event, -3)

    def _wheel(self, event: events.MouseEvent, rows: int) -> None:
        event.stop()
        event.prevent_default()
        self.detach()
        self.scroll_to_row(self.top + rows)
        self.cursor = max(self.top, min(self.cursor, self.top + self.height - 1))
        self.repaint()
        self.post_message(self.Moved(self))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked row; with Shift, mark up to it."""
        row = self.top + event.y
        if self.view is None or row >= self.view.size:
            return
        if event.shift and self.mark is None:
            self.mark = self.cursor
        self.go_to(row)
        if event.chain == 2:
            self.post_message(self.Chosen(self))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Text selection by the screen is off; ``y`` copies code without the gutter."""
        return None
