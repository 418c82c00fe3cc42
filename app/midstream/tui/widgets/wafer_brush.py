"""The colours and letters of the wafer map."""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip

from midstream.tui.themes import Palette
from midstream.tui.widgets.wafer_layout import Grid, MapFacts, Tile, filling

LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
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
