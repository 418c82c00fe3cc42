"""A list of one-line rows with a cursor, used by the file rail and every picker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from msgspec import Struct, field
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.widgets.line_api import filtered, set_silently

Piece = tuple[str, str]
"""Text and the palette role it is painted in; a role with ``!`` appended is bold."""


class ListRow(Struct, frozen=True):
    """One row.

    Attributes:
        value: What choosing the row gives; ``None`` for a heading, which cannot be chosen.
        left: Pieces from the left.
        right: Pieces from the right; they give way when there is no room, unless the list keeps
            them.
        also: Words that a search finds the row by, besides those of ``left``.
        later: Whether a search shows it behind other rows that fit.
    """

    value: str | None
    left: tuple[Piece, ...]
    right: tuple[Piece, ...] = field(default=())
    also: str = ""
    later: bool = False


class RowList(ScrollView, can_focus=True):
    """Rows, of which one is under the cursor.

    Args:
        selects: A click moves the cursor; only one on the row under the cursor chooses it.
    """

    DEFAULT_CSS = """
    RowList { scrollbar-size: 0 0; background: $ms-panel; }
    """

    @dataclass
    class RowEvent(Message):
        """Something happened to the row of a value."""

        rows: RowList
        value: str

        @property
        def control(self) -> RowList:
            return self.rows

    class Chosen(RowEvent):
        """A row was chosen with Enter or the mouse."""

    class Highlighted(RowEvent):
        """The cursor moved to another row."""

    def __init__(
        self,
        palette: Palette,
        glyphs: Glyphs,
        *,
        ground: str = "panel",
        keep_right: bool = False,
        selects: bool = False,
        widget_id: str | None = None,
    ) -> None:
        # The compositor asks for these rows whenever anything beside them changes.
        self._strips: dict[tuple[int, bool, int], Strip] = {}
        super().__init__(id=widget_id)
        self.rows: Sequence[ListRow] = ()
        self.cursor = 0
        self._palette = palette
        self._glyphs = glyphs
        self._ground = ground
        self._keep_right = keep_right
        self._selects = selects

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        self.refresh()

    def show(self, rows: Sequence[ListRow], *, select: str | None = None) -> None:
        """Show these rows, with the cursor on the one called ``select`` or where it was."""
        before, cursor = self.rows, self.cursor
        near = cursor if select is None else 0  # several rows may have the same value
        if select is None:
            select = self.value
        self.rows = rows
        set_silently(self, Size(self.size.width, len(rows)))
        places = [index for index, row in enumerate(rows) if row.value is not None]
        wanted = [index for index in places if rows[index].value == select]
        self.cursor = min(wanted or places or [0], key=lambda index: abs(index - near))
        self._reveal()
        grown = self.styles.auto_dimensions and len(rows) != len(before)
        if grown or cursor != self.cursor:
            self.refresh(layout=grown)
        else:
            self._refresh_changed(before)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The number of rows, where a stylesheet leaves the height to them."""
        return len(self.rows)

    def _refresh_changed(self, before: Sequence[ListRow]) -> None:
        """Paint the rows anew that are not as they were, and leave the others as they are."""

        def changed(y: int) -> bool:
            was = before[y] if y < len(before) else None
            row = self.rows[y] if y < len(self.rows) else None
            return row is not was and row != was

        for key in [key for key in self._strips if changed(key[0])]:
            del self._strips[key]
        top, (width, height) = self.scroll_offset.y, self.size
        seen = [Region(0, y, width, 1) for y in range(height) if changed(top + y)]
        if seen:
            self.refresh(*seen)

    @property
    def value(self) -> str | None:
        """The value under the cursor."""
        return self.rows[self.cursor].value if 0 <= self.cursor < len(self.rows) else None

    def move(self, step: int) -> None:
        """Move the cursor, over headings."""
        direction = 1 if step > 0 else -1
        start = max(0, min(self.cursor + step, len(self.rows) - 1))
        y = self._beyond_headings(start, direction)
        if not 0 <= y < len(self.rows):
            y = self._beyond_headings(start, -direction)
        if 0 <= y < len(self.rows) and y != self.cursor:
            self.cursor = y
            self._reveal()
            self.refresh()
            value = self.value
            if value is not None:
                self.post_message(self.Highlighted(self, value))

    def _beyond_headings(self, y: int, direction: int) -> int:
        while 0 <= y < len(self.rows) and self.rows[y].value is None:
            y += direction
        return y

    def choose(self) -> None:
        value = self.value
        if value is not None:
            self.post_message(self.Chosen(self, value))

    def _reveal(self) -> None:
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if self.cursor < top:
            above = self.cursor - 1
            heading = above >= 0 and self.rows[above].value is None
            self.scroll_to(y=above if heading else self.cursor, animate=False, force=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, force=True)

    def render_lines(self, crop: Region) -> list[Strip]:
        top = self.scroll_offset.y
        strips: list[Strip] = []
        for y in range(crop.y, crop.bottom):
            strip = self._strip(top + y).adjust_cell_length(max(crop.right, self.size.width))
            strips.append(strip.crop(crop.x, crop.right))
        return filtered(self, strips, self._palette.colors[self._ground])

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        if repaint and not regions:
            self._strips.clear()
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _strip(self, y: int) -> Strip:
        key = (y, y == self.cursor, self.size.width)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = self._paint(y)
        return strip

    @property
    def edged(self) -> bool:
        """Whether a line at the right divides the rows from what they lie over."""
        return False

    @property
    def columns(self) -> int:
        """Cells of a row."""
        return max(0, self.size.width - self.edged)

    def _paint(self, y: int) -> Strip:
        strip = self._paint_row(y)
        if not self.edged:
            return strip
        line = self._palette.style("accent", self._ground)
        return Strip([*strip, Segment(self._glyphs.side, line)])

    def _paint_row(self, y: int) -> Strip:
        palette, width = self._palette, self.columns
        if not 0 <= y < len(self.rows):
            return Strip.blank(width, palette.ground(self._ground))
        row = self.rows[y]
        marked = y == self.cursor and row.value is not None and self.show_cursor
        ground = palette.ground("selection" if marked else self._ground)
        if palette.ansi and marked:
            ground += Style(reverse=True)
        segments = [_segment(palette, (self._glyphs.cursor if marked else " ", "accent"), ground)]
        left = [_segment(palette, piece, ground) for piece in row.left]
        right = [_segment(palette, piece, ground) for piece in row.right]
        used = sum(cell_len(s.text) for s in left)
        least = min(used, width // 3) if self._keep_right else used
        while right and 2 + least + sum(cell_len(s.text) for s in right) > width:
            right.pop(0)
        room = width - 2 - sum(cell_len(s.text) for s in right)
        body = Strip([*segments, *left])
        if body.cell_length > room + 1:
            cut = _segment(palette, (self._glyphs.ellipsis, "muted"), ground)
            body = Strip([*body.crop(0, room), cut])
        body = body.adjust_cell_length(room + 1, ground)
        return Strip([*body, *right, Segment(" ", ground)]).adjust_cell_length(width, ground)

    @property
    def show_cursor(self) -> bool:
        """Whether the cursor row is marked; a picker's list shows it without the focus."""
        return True

    def on_resize(self) -> None:
        set_silently(self, Size(self.size.width, len(self.rows)))
        if self.cursor < self.size.height:  # from the first row on, as far as there is room
            self.scroll_to(y=0, animate=False, force=True)
        self._reveal()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        y = self.scroll_offset.y + event.y
        if not 0 <= y < len(self.rows) or (value := self.rows[y].value) is None:
            return
        moved, self.cursor = y != self.cursor, y
        self.refresh()
        if moved and self._selects:
            self.post_message(self.Highlighted(self, value))
        else:
            self.choose()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        event.prevent_default()
        self.scroll_to(
            y=min(self.scroll_offset.y + 3, self.max_scroll_y), animate=False, force=True
        )

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        event.prevent_default()
        self.scroll_to(y=max(self.scroll_offset.y - 3, 0), animate=False, force=True)


def _segment(palette: Palette, piece: Piece, ground: Style) -> Segment:
    text, role = piece
    if ground.reverse:
        # Colours would turn into blocks.
        return Segment(text, ground)
    return Segment(text, palette.style(role.rstrip("!"), bold=role.endswith("!")) + ground)
