"""The column right of the code, showing where the window and the hunks are; a click goes there."""

from __future__ import annotations

from dataclasses import dataclass

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from midstream.edits.hunks import HunkState
from midstream.tui.diff.view import FileView
from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.widgets.diff_pane import PaneWindow
from midstream.tui.widgets.line_api import Painted, filtered

_ROLES = {
    HunkState.STREAMING: ("accent", 2),
    HunkState.SETTLED: ("accent", 4),
    HunkState.CONFLICT: ("warning", 5),
    HunkState.HELD: ("error", 5),
    HunkState.ACCEPTED: ("success", 3),
    HunkState.REJECTED: ("error", 1),
}


class Ruler(Painted):
    """A map of the file, one cell wide."""

    DEFAULT_CSS = """
    Ruler { width: 1; height: 1fr; background: $ms-background; }
    """

    @dataclass
    class Picked(Message):
        """A place was clicked or dragged to; ``row`` is a row of the file."""

        row: int

    def __init__(self, palette: Palette, glyphs: Glyphs, *, widget_id: str | None = None) -> None:
        super().__init__(palette, glyphs, widget_id=widget_id)
        self._cells: list[str | None] = []
        self._window = (0, 0)
        self._size_rows = 0
        self._beside: PaneWindow | None = None
        """The pane, where the whole file is seen in it and marks stand beside its lines."""
        self._dragging = False
        # The compositor asks for these whenever anything beside them changes.
        self._strips: list[Strip] = []

    def set_palette(self, palette: Palette) -> None:
        self._strips = []
        super().set_palette(palette)

    def show(self, view: FileView, pane: PaneWindow) -> None:
        """Show where the window of the pane lies, and the hunks of the file."""
        cells, window = self._map(view, pane)
        if (cells, window) != (self._cells, self._window):
            self._cells, self._window, self._strips = cells, window, []
            self.refresh()

    def _map(self, view: FileView, pane: PaneWindow) -> tuple[list[str | None], tuple[int, int]]:
        rows = self.size.height
        cells: list[str | None] = [None] * rows
        self._size_rows = view.size
        self._beside = None
        if not rows or not view.size:
            return cells, (0, 0)
        top, height = pane.top, pane.bottom - pane.top
        span = max(view.size, rows)
        # Where the whole file is seen, marks stand beside its lines, wrapped or not.
        whole = pane.lines_between(0, view.size, rows) <= rows
        self._beside = pane if whole else None
        weight = [0] * rows
        for first, stop, hunk in view.places():
            role, importance = _ROLES.get(hunk.state, ("muted", 0))
            low, high = first * rows // span, -(-stop * rows // span)
            if whole:
                low, high = (pane.lines_between(0, row, rows) for row in (first, stop))
            high = max(low + 1, high)
            for y in range(low, min(high, rows)):
                if importance > weight[y]:
                    weight[y], cells[y] = importance, role
        if whole or view.size <= height:
            return cells, (0, 0)
        start = top * rows // span
        return cells, (start, max(start + 1, -(-(top + height) * rows // span)))

    def render_lines(self, crop: Region) -> list[Strip]:
        if len(self._strips) != self.size.height:
            self._strips = self._paint(self.size.height)
        return self._strips[crop.y : crop.bottom]

    def _paint(self, height: int) -> list[Strip]:
        low, high = self._window
        cells = [*self._cells[:height], *[None] * (height - len(self._cells))]
        looks = [(role, low <= y < high) for y, role in enumerate(cells)]
        made = {look: self._cell(*look) for look in set(looks)}
        return [made[look] for look in looks]

    def _cell(self, role: str | None, inside: bool) -> Strip:
        """One place of the map: what is there, and whether the window shows it."""
        palette = self._palette
        ground = palette.ground("raised" if inside else "background")
        glyph = self._glyphs.bar if role or (inside and palette.ansi) else " "
        strip = Strip([Segment(glyph, palette.style(role or "muted") + ground)], 1)
        return filtered(self, [strip], palette.colors["background"])[0]

    def _pick(self, y: int) -> None:
        rows = max(1, self.size.height)
        row = y * max(self._size_rows, rows) // rows
        if self._beside is not None:
            row = self._beside.walk((0, 0), y)[0]
        self.post_message(self.Picked(row))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._dragging = True
        self.capture_mouse()
        self._pick(event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            self._pick(max(0, min(event.y, self.size.height - 1)))

    def on_mouse_up(self) -> None:
        self._dragging = False
        self.release_mouse()
