"""The wafer map: every rectangle of a simulated placement, what fills it, and what is active now.

The map is drawn as the wafer is, a square, with half blocks; where colours cannot be told apart
(ASCII, sixteen colours, ``NO_COLOR``) letters and shades stand for them.  Several wafers stand
beside each other; a model that needs little of one is drawn enlarged, and the line above says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.geometry import Region
from textual.strip import Strip

from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.widgets.line_api import Painted, filtered
from midstream.wafer.picture import LETTERS, Grid, View, filling, paint_grid

if TYPE_CHECKING:
    from midstream.pairing.models.simulating import Simulated
    from midstream.pairing.status import Meter
    from midstream.wafer.plan import Plan

ENLARGE_BELOW: Final = 0.5
"""A model that uses less than this share of a wafer's width and height is drawn enlarged."""
GAP: Final = 2
"""Blank cells between two wafers."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One wafer on the screen; ``x`` and ``y`` are cells, the grid has two rows for each cell."""

    wafer: int
    x: int
    y: int
    width: int
    height: int
    grid: Grid
    label: str
    numbers: dict[int, list[tuple[int, str, int]]]
    """Layer numbers to write, by line: column, text, item."""
    lines: dict[int, range]
    """The lines that each item is drawn on."""


@dataclass(frozen=True, slots=True)
class MapFacts:
    """What the map shows; two of the same picture differ only in activity.

    Attributes:
        context: Tokens in the cache.
        enlarge: Whether a small model is drawn enlarged.
        working: Index of the item that is working, ``None`` while none is.
        passed: Items the token has left since the last picture.
    """

    plan: Plan
    view: View = "layers"
    context: int = 1
    enlarge: bool = True
    working: int | None = None
    passed: frozenset[int] = frozenset()

    def same_picture(self, other: MapFacts) -> bool:
        """Whether only activity differs."""
        return self.plan is other.plan and (self.view, self.context, self.enlarge) == (
            other.view,
            other.context,
            other.enlarge,
        )

    @property
    def active(self) -> frozenset[int]:
        """Items drawn as working or just passed."""
        return self.passed if self.working is None else self.passed | {self.working}


def used_window(plan: Plan, *, enlarge: bool) -> tuple[int, int]:
    """Columns and rows of PEs that the map shows of every wafer: all, or what is used."""
    width, height = plan.hw.fabric(halo=plan.kernels.halo)
    right = max(item.rect.x + item.rect.width for item in plan.items)
    bottom = max(item.rect.y + item.rect.height for item in plan.items)
    small = right < width * ENLARGE_BELOW and bottom < height * ENLARGE_BELOW
    return (right, bottom) if enlarge and small else (width, height)


def item_lines(grid: Grid, rows_per_line: int) -> dict[int, range]:
    """The lines on which each item of a grid is drawn."""
    found: dict[int, range] = {}
    for row, items in enumerate(grid):
        line = row // rows_per_line
        for index in set(items):
            begin = found[index].start if index in found else line
            found[index] = range(begin, line + 1)
    return found


def number_places(
    plan: Plan, wafer: int, window: tuple[int, int], width: int, height: int
) -> dict[int, list[tuple[int, str, int]]]:
    """Where layer numbers fit into their rectangles, in cells."""
    places: dict[int, list[tuple[int, str, int]]] = {}
    across, down = width / window[0], 2 * height / window[1]
    for index, item in enumerate(plan.items):
        rect = item.rect
        text = "" if item.layer is None else str(item.layer)
        if item.wafer != wafer or not text or rect.width * across < len(text) + 3:
            continue
        # A line is free for writing when both its halves belong to the rectangle.
        first = -(-round(rect.y * down) // 2)
        stop = round((rect.y + rect.height) * down) // 2
        if stop > first:
            middle = (rect.x + rect.width / 2) * across - len(text) / 2
            places.setdefault((first + stop - 1) // 2, []).append((round(middle), text, index))
    return places


def arrange(count: int, width: int, height: int, head: int) -> tuple[int, int, int]:
    """How wafers, each with ``head`` lines of text above it, stand in ``width x height`` cells.

    Returns:
        Wafers in a row, and the width and height of each in cells (its text not included); a wafer
        is twice as many cells wide as high.
    """
    best = (1, 2, 1)
    for per_row in range(1, count + 1):
        lines = -(-count // per_row)
        room = (width - GAP * (per_row - 1)) // per_row
        high = min(height // lines - head, room // 2)
        if high > best[2] or (high == best[2] and per_row < best[0]):
            best = (per_row, 2 * high, high)
    return best


SHADES: Final = ".:-=+*%@"
_STEPS: Final = 16
"""Tints between the emptiest and the fullest PE."""


class Brush:
    """Colours and letters of one picture; what works in it may change."""

    def __init__(self, facts: MapFacts, palette: Palette, *, lettered: bool) -> None:
        self.facts = facts
        self._palette = palette
        self._lettered = lettered
        plan, items = facts.plan, facts.plan.items
        self._values = [filling(plan, item, facts.view, facts.context) for item in items]
        self._last = max(1, plan.shape.layers - 1)
        self._colors = [self._resting(index) for index in range(len(items))]
        self._at_work = palette.colors["warning"]
        self._passed = _mix(palette, "raised", "warning", 0.5)
        self._idle = palette.colors["panel"] if lettered else _mix(palette, "panel", "border", 0.5)
        self._made: dict[tuple[Color, Color], Style] = {}

    def heading(self, tile: Tile) -> list[Segment]:
        working = self.facts.working
        here = working is not None and self.facts.plan.items[working].wafer == tile.wafer
        style = self._palette.style("warning" if here else "muted")
        style += self._palette.ground("background")
        return [Segment(tile.label.ljust(tile.width), style)]

    def line(self, tile: Tile, y: int) -> list[Segment]:
        if self._lettered:
            return self._letters(tile.grid[y])
        segments = self._blocks(tile.grid[2 * y : 2 * y + 2])
        for x, text, index in tile.numbers.get(y, ()):
            left, _, right = Strip(segments).divide([x, x + len(text), tile.width])
            number = Segment(text, self._number_style(index))
            segments = [*left, number, *right]
        return segments

    def _number_style(self, index: int) -> Style:
        color = self._of(index)
        inks = (self._palette.colors["foreground"], self._palette.colors["background"])
        best = max(inks, key=lambda ink: abs(ink.brightness - color.brightness))
        return Style(color=color.blend(best, 0.75).rich_color, bgcolor=color.rich_color)

    def _blocks(self, pair: Grid) -> list[Segment]:
        segments: list[Segment] = []
        upper, lower = pair
        start, here = 0, (upper[0], lower[0])
        for x in range(1, len(upper) + 1):
            next_ = (upper[x], lower[x]) if x < len(upper) else None
            if next_ != here:
                text = (" " if here[0] == here[1] else "▀") * (x - start)
                segments.append(Segment(text, self._style(*here)))
                start = x
                if next_ is not None:
                    here = next_
        return segments

    def _style(self, top: int, bottom: int) -> Style:
        colors = self._of(top), self._of(bottom)
        style = self._made.get(colors)
        if style is None:
            style = Style(color=colors[0].rich_color, bgcolor=colors[1].rich_color)
            self._made[colors] = style
        return style

    def _of(self, index: int) -> Color:
        if index < 0:
            return self._idle
        if index == self.facts.working:
            return self._at_work
        return self._passed if index in self.facts.passed else self._colors[index]

    def _resting(self, index: int) -> Color:
        """Colour of an item that does not work."""
        facts, palette = self.facts, self._palette
        item = facts.plan.items[index]
        if facts.view != "layers":
            share = round(self._values[index] * _STEPS) / _STEPS
            return _mix(palette, "raised", "accent", 0.08 + 0.92 * share)
        if item.layer is None:
            role = "muted" if item.name == "embedding" else "success"
            return _mix(palette, "raised", role, 0.55)
        share = 0.28 + 0.34 * item.layer / self._last + (0.14 if item.layer % 2 else 0.0)
        return _mix(palette, "raised", "accent", share)

    def _letters(self, row: list[int]) -> list[Segment]:
        segments: list[Segment] = []
        ground = self._palette.ground("background")
        for index in row:
            text, role, bold = self._letter(index)
            style = self._palette.style(role, bold=bold) + ground
            if segments and segments[-1].style == style:
                segments[-1] = Segment(segments[-1].text + text, style)
            else:
                segments.append(Segment(text, style))
        return segments

    def _letter(self, index: int) -> tuple[str, str, bool]:
        if index < 0:
            return (" " if self.facts.view != "layers" else "."), "muted", False
        item = self.facts.plan.items[index]
        if index == self.facts.working or index in self.facts.passed:
            return "#", "warning", index == self.facts.working
        if self.facts.view != "layers":
            shade = round(self._values[index] * (len(SHADES) - 1))
            return SHADES[shade], "accent", False
        if item.layer is None:
            return ("~", "muted", False) if item.name == "embedding" else ("^", "success", False)
        role = "accent" if item.layer % 2 else "foreground"
        return LETTERS[item.layer % len(LETTERS)], role, False

    def legend(self, width: int) -> list[Segment]:
        """What the colours or letters mean; the last ones give way when it is narrow."""
        palette = self._palette
        muted = palette.style("muted") + palette.ground("background")
        keys = self._letter_keys() if self._lettered else self._color_keys()
        segments: list[Segment] = []
        for text, style, words in keys:
            width -= len(text) + (len(words) + 1 if words else 0)
            if width < 0:
                break
            segments.append(Segment(text, palette.ground("background") + style))
            if words:
                segments.append(Segment(f" {words}  ", muted))
                width -= 2
        return segments

    def _scale(self) -> str:
        if self.facts.view == "kv":
            return "0-100 % of the cache"
        room = self.facts.plan.hw.count("sram_bytes") // 1024
        return f"0-100 % of {room} KB"

    def _letter_keys(self) -> list[tuple[str, Style, str]]:
        style = self._palette.style
        work = ("#", style("warning", bold=True), "at work")
        if self.facts.view != "layers":
            return [(SHADES, style("accent"), self._scale()), work]
        return [
            ("0-Z", style("foreground"), "layers"),
            work,
            ("^", style("success"), "head"),
            ("~", style("muted"), "embedding"),
        ]

    def _color_keys(self) -> list[tuple[str, Style, str]]:
        palette = self._palette

        def patch(color: Color, words: str) -> tuple[str, Style, str]:
            return " ", Style(bgcolor=color.rich_color), words

        work = patch(palette.colors["warning"], "at work")
        if self.facts.view != "layers":
            shades = [_mix(palette, "raised", "accent", 0.08 + 0.92 * n / 5) for n in range(6)]
            return [patch(s, "") for s in shades[:-1]] + [patch(shades[-1], self._scale()), work]
        tints = [_mix(palette, "raised", "accent", share) for share in (0.28, 0.52, 0.76)]
        return [
            *(patch(tint, "") for tint in tints[:-1]),
            patch(tints[-1], "layers"),
            work,
            patch(_mix(palette, "raised", "success", 0.55), "head"),
            patch(_mix(palette, "raised", "muted", 0.55), "embedding"),
        ]


def _mix(palette: Palette, low: str, high: str, share: float) -> Color:
    return palette.colors[low].blend(palette.colors[high], min(1.0, share))


SWEEP_S: Final = 1.0
"""A sweep takes at least about this many seconds."""


class Sweep:
    """The position of the drawn token.

    Attributes:
        tokens_per_sweep: Tokens that one sweep stands for, a power of two.
    """

    def __init__(self) -> None:
        self.tokens_per_sweep = 1
        self._share = 0.0
        self._seen: int | None = None

    def advance(self, simulated: Simulated, meter: Meter) -> tuple[int | None, frozenset[int]]:
        """Move on by the tokens that came since the last call.

        Returns:
            The item that works now (``None`` on the way between two), and those that were passed.
        """
        tokens = meter.output_tokens
        came = 0 if self._seen is None else max(0, tokens - self._seen)
        self._seen = tokens
        wanted = max(1.0, (meter.turn_rate or 1.0) * SWEEP_S)
        self.tokens_per_sweep = 1 << (int(wanted) - 1).bit_length()
        before = self._share
        self._share = (before + came / self.tokens_per_sweep) % 1.0
        items = simulated.stage_items
        first, last = (int(share * len(items)) for share in (before, self._share))
        passed = frozenset(items[first:last]) if last >= first else frozenset(items[:last])
        return simulated.working_item(self._share), passed


class WaferMap(Painted):
    """The map; nothing is computed that did not change: activity repaints the lines it is on."""

    DEFAULT_CSS = """
    WaferMap { height: 1fr; width: 1fr; background: $ms-background; }
    """

    def __init__(self, palette: Palette, glyphs: Glyphs, *, widget_id: str) -> None:
        super().__init__(palette, glyphs, widget_id=widget_id)
        self.facts: MapFacts | None = None
        self._tiles: tuple[Tile, ...] = ()
        self._strips: list[Strip] = []
        self._brush: Brush | None = None

    @property
    def lettered(self) -> bool:
        """Whether letters stand for colours."""
        app = cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]
        return self._glyphs.spark.isascii() or self._palette.ansi or app.no_color

    def set_palette(self, palette: Palette) -> None:
        self._strips, self._brush = [], None
        super().set_palette(palette)

    def show(self, facts: MapFacts | None) -> None:
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
        self._tiles, self._strips, self._brush = (), [], None

    def render_lines(self, crop: Region) -> list[Strip]:
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
        rows = max((tile.y + self._head + tile.height for tile in self._tiles), default=0)
        strips += [self._line(brush, y, width) for y in range(max(0, min(rows, height - 2)))]
        strips.append(Strip(brush.legend(width)).adjust_cell_length(width, ground))
        strips += [Strip.blank(width, ground)] * (height - len(strips))
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
