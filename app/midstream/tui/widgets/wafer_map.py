"""The wafer map: every rectangle of a simulated placement, what fills it, and what works now.

The map is drawn as the wafer is, a square, with half blocks; where colours cannot be told apart
(ASCII, sixteen colours, ``NO_COLOR``) letters and shades stand for them.  Several wafers stand
beside each other; a model that needs little of one is drawn enlarged, and the line above says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rich.segment import Segment
from textual.app import App
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.widgets.line_api import filtered
from midstream.tui.widgets.wafer_brush import Brush
from midstream.tui.widgets.wafer_layout import (
    GAP,
    MapFacts,
    Tile,
    arrange,
    item_lines,
    number_places,
    paint_grid,
    used_window,
)

if TYPE_CHECKING:
    from midstream.wafer.plan import Plan


class WaferMap(Widget):
    """The map; nothing is computed that did not change: activity repaints the lines it is on."""

    DEFAULT_CSS = """
    WaferMap { height: 1fr; width: 1fr; background: $ms-background; }
    """

    def __init__(self, palette: Palette, glyphs: Glyphs, name: str) -> None:
        super().__init__(id=name)
        self.facts: MapFacts | None = None
        self._palette = palette
        self._glyphs = glyphs
        self._tiles: tuple[Tile, ...] = ()
        self._strips: list[Strip] = []
        self._brush: Brush | None = None

    @property
    def lettered(self) -> bool:
        """Whether letters stand for colours."""
        app = cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]
        return self._glyphs.spark.isascii() or self._palette.ansi or app.no_color

    def set_palette(self, palette: Palette) -> None:
        """Draw with other colours."""
        self._palette = palette
        self._strips, self._brush = [], None
        self.refresh()

    def show(self, facts: MapFacts | None) -> None:
        """Show this from now on."""
        if facts == self.facts:
            return
        old, self.facts = self.facts, facts
        if old is not None and facts is not None and old.same_picture(facts):
            self._show_activity(old, facts)
            return
        if (
            old is None
            or facts is None
            or (old.plan is not facts.plan or old.enlarge != facts.enlarge)
        ):
            self._tiles = ()
        self._strips, self._brush = [], None
        self.refresh()

    def _show_activity(self, old: MapFacts, facts: MapFacts) -> None:
        """Paint the lines of the items that began or ceased to work."""
        if not self._strips or self._brush is None:
            return  # nothing is painted yet; all of it will be
        self._brush.facts = facts
        changed = old.active ^ facts.active | {old.working, facts.working} - {None}
        head = self._head
        dirty: set[int] = set()
        for tile in self._tiles:
            lines = {y for index in changed if index in tile.lines for y in tile.lines[index]}
            if lines and head:
                lines.add(-head)  # its heading says that it works
            dirty |= {1 + tile.y + head + line for line in lines}
        width = self.size.width
        for y in dirty:
            strips = [self._line(self._brush, y - 1, width)]
            self._strips[y] = filtered(self, strips, self._palette.colors["background"])[0]
        self.refresh(*(Region(0, y, width, 1) for y in dirty))

    @property
    def _head(self) -> int:
        """Lines of text above each wafer."""
        return 1 if self.facts is not None and self.facts.plan.wafers > 1 else 0

    def on_resize(self) -> None:
        """Everything is laid out anew."""
        self._tiles, self._strips, self._brush = (), [], None

    def render_lines(self, crop: Region) -> list[Strip]:
        """The strips of a region."""
        width, height = self.size
        if len(self._strips) != height:
            strips = self._paint(width, height)
            self._strips = filtered(self, strips, self._palette.colors["background"])
        return [strip.crop(crop.x, crop.right) for strip in self._strips[crop.y : crop.bottom]]

    def text(self) -> str:
        """What is shown, without style."""
        return "\n".join(strip.text.rstrip() for strip in self._paint(*self.size))

    # laying out

    def _lay_out(self, facts: MapFacts, width: int, height: int) -> tuple[Tile, ...]:
        plan = facts.plan
        window = used_window(plan, enlarge=facts.enlarge)
        head = self._head
        per_row, wide, high = arrange(plan.wafers, width, height - 2, head)
        rows_per_cell = 1 if self.lettered else 2
        tiles: list[Tile] = []
        for wafer in range(plan.wafers):
            down, across = divmod(wafer, per_row)
            grid = paint_grid(plan, wafer, window, wide, high * rows_per_cell)
            tiles.append(
                Tile(
                    wafer,
                    across * (wide + GAP),
                    down * (high + head),
                    wide,
                    high,
                    grid,
                    _label(plan, wafer, wide),
                    {} if self.lettered else number_places(plan, wafer, window, wide, high),
                    item_lines(grid, rows_per_cell),
                )
            )
        return tuple(tiles)

    def _paint(self, width: int, height: int) -> list[Strip]:
        ground = self._palette.ground("background")
        facts = self.facts
        if facts is None:
            return [Strip.blank(width, ground)] * height
        if not self._tiles:
            self._tiles = self._lay_out(facts, width, height)
        if self._brush is None:
            self._brush = Brush(facts, self._palette, lettered=self.lettered)
        brush = self._brush
        brush.facts = facts
        strips = [self._caption(facts, width)]
        strips += [self._line(brush, y, width) for y in range(max(0, height - 2))]
        strips.append(Strip(brush.legend(width)).adjust_cell_length(width, ground))
        return strips[:height]

    def _line(self, brush: Brush, y: int, width: int) -> Strip:
        """A line of all wafers on it, counted from below the caption."""
        ground = self._palette.ground("background")
        head = self._head
        segments: list[Segment] = []
        at = 0
        for tile in self._tiles:
            line = y - tile.y - head
            if not -head <= line < tile.height:
                continue
            if tile.x > at:
                segments.append(Segment(" " * (tile.x - at), ground))
            at = tile.x + tile.width
            segments.extend(brush.heading(tile) if line < 0 else brush.line(tile, line))
        return Strip(segments).adjust_cell_length(width, ground)

    def _caption(self, facts: MapFacts, width: int) -> Strip:
        palette, plan = self._palette, facts.plan
        whole = plan.hw.fabric(halo=plan.kernels.halo)
        window = used_window(plan, enlarge=facts.enlarge)
        size = f"{whole[0]} x {whole[1]:,} PEs"
        if window != whole:
            used = f"enlarged: {window[0]} x {window[1]}"
            size = f"{used} of {size}" if len(used) + len(size) + 15 <= width else f"{used} PEs"
        elif plan.wafers > 1:
            size = f"{plan.wafers} wafers" + (f" of {size}" if width >= 42 else "")
        what = {"layers": "placement", "fill": "SRAM fill", "kv": "cache fill"}[facts.view]
        ground = palette.ground("background")
        title = f"{what} simulated" if len(what) + len(size) + 12 <= width else "simulated"
        segments = [
            Segment(title, palette.style("foreground") + ground),
            Segment(f"  {size}", palette.style("muted") + ground),
        ]
        return Strip(segments).adjust_cell_length(width, ground)


def _label(plan: Plan, wafer: int, width: int) -> str:
    if plan.wafers == 1:
        return ""
    layers = [item.layer for item in plan.items if item.wafer == wafer and item.layer is not None]
    number = str(wafer + 1)
    if not layers:
        return number[:width]
    span = f"{layers[0]}-{layers[-1]}" if len(layers) > 1 else f"{layers[0]}"
    for text in (f"wafer {number}  layers {span}", f"{number}: {span}", number):
        if len(text) <= width:
            return text
    return ""
