"""A compositor that renders only the widget lines that a repaint will show.

On every frame, Textual's compositor renders all lines of every widget that overlaps the bounding
box of the dirty regions; on a full screen of nested containers that is most of a frame's work.
This one renders only dirty lines that no widget above covers, and looks up once per layout which
widget is on top where.

Where a widget does not fill its region, Textual's own way is taken.  Checked by contract tests; see
``eager`` for the switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.console import Console
from textual._compositor import Compositor, CompositorUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

# pyright: reportPrivateUsage=false


class _Chop(NamedTuple):
    """A part of a line that one widget fills: its columns, and where the widget is and is seen."""

    x: int
    stop: int
    widget: Widget
    region: Region
    seen: Region


PaintedLines = list[tuple[int, list[tuple[int, Strip]]]]
"""For each span that is repainted, its line, and pieces by their first column."""


class PiecesUpdate(CompositorUpdate):
    """Pieces of lines, written out each in its place."""

    def __init__(self, lines: PaintedLines) -> None:
        self._lines = lines

    def render_segments(self, console: Console) -> str:
        last = self._lines[-1][0]
        written: list[str] = []
        for y, pieces in self._lines:
            written += [f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for x, strip in pieces]
            if y != last:
                written.append("\n")
        return "".join(written)


class SparingCompositor(Compositor):
    """Renders the same lines as its parent, from fewer widgets."""

    _layout: tuple[object, object] = (None, None)
    """The map in which the parts of lines were looked up."""
    _seen: list[tuple[Widget, Region, Region]]
    """Widgets from the top, where each is, and the part that is seen."""
    _chops_of: dict[int, list[_Chop]]
    """The parts of lines, from left to right, as far as they have been asked for."""

    def render_partial_update(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
    ) -> CompositorUpdate | None:
        """Render what has changed, ``None`` if nothing has; callers accept any update."""
        regions = self._dirty_regions.copy()
        self._dirty_regions.clear()
        pieces = self._pieces(list(self._regions_to_spans(regions)))
        if pieces is None:
            self._dirty_regions |= regions
            return super().render_partial_update()
        return PiecesUpdate(pieces) if pieces else None

    def render_full_update(self, simplify: bool = False) -> LayoutUpdate:
        """Render everything; ``simplify`` joins segments, for exports."""
        self._dirty_regions.clear()
        screen = self.size.region
        pieces = [] if simplify else self._pieces([(y, 0, screen.width) for y in screen.line_range])
        filled = pieces and all(
            sum(strip.cell_length for _, strip in line) == screen.width for _, line in pieces
        )
        if not pieces or not filled:
            return super().render_full_update(simplify)
        return LayoutUpdate([[strip for _, strip in line] for _, line in pieces], screen)

    def _pieces(self, spans: Sequence[tuple[int, int, int]]) -> PaintedLines | None:
        """The content of the spans, if each widget fills its whole region; ``None`` otherwise."""
        wanted = [
            (y, [chop for chop in self._line(y) if chop.x < stop and chop.stop > start], stop)
            for y, start, stop in spans
        ]
        rows: dict[Widget, tuple[_Chop, int, int]] = {}
        for y, chops, _ in wanted:
            for chop in chops:
                _, first, _ = rows.get(chop.widget, (chop, y, y))
                rows[chop.widget] = chop, first, y
        strips: dict[Widget, tuple[int, list[Strip]]] = {}
        for widget, (chop, first, last) in rows.items():
            region, seen = chop.region, chop.seen
            lines = last + 1 - first
            asked = Region(seen.x - region.x, first - region.y, seen.width, lines)
            given = widget.render_lines(asked)
            if len(given) < lines or any(strip.cell_length < seen.width for strip in given):
                return None
            strips[widget] = first, given
        made: PaintedLines = []
        for y, chops, end in wanted:
            pieces: list[tuple[int, Strip]] = []
            for x, stop, widget, _, seen in chops:
                first, given = strips[widget]
                strip, left, right = given[y - first], x - seen.x, min(stop, end) - seen.x
                whole = not left and right == strip.cell_length
                pieces.append((x, strip if whole else strip.crop(left, right)))
            made.append((y, pieces))
        return made

    def _line(self, y: int) -> list[_Chop]:
        """The parts of a line, each with the widget that fills it."""
        visible, cuts = self.visible_widgets, self.cuts
        if self._layout[0] is not visible or self._layout[1] is not cuts:
            self._layout, self._chops_of = (visible, cuts), {}
            self._seen = [
                (widget, region, region.intersection(clip))
                for widget, (region, clip) in visible.items()
            ]
        chops = self._chops_of.get(y)
        if chops is None:
            chops = self._chops_of[y] = []
            here = [
                (seen.x, seen.right, widget, region, seen)
                for widget, region, seen in self._seen
                if seen.y <= y < seen.bottom
            ]
            for x, stop in pairwise(cuts[y]):
                for left, right, widget, region, seen in here:
                    if left <= x < right:
                        chops.append(_Chop(x, stop, widget, region, seen))
                        break
        return chops
