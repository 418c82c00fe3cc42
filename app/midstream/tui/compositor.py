"""A compositor that renders only the widget lines a repaint will show.

On every frame, Textual's compositor renders all lines of every widget that overlaps the bounding
box of the dirty regions; on a full screen of nested containers that is most of a frame's work.
This one renders only dirty lines that no widget above covers, and looks up once per layout which
widget is on top where.

Overrides one underscored method of Textual and its caller, held by contract tests; see ``eager``
for the switch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from rich.console import Console
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate
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


class PiecesUpdate(CompositorUpdate):
    """Pieces of lines, written out each in its place.

    Args:
        lines: For each span that is repainted, its line, and pieces by their first column.
    """

    def __init__(self, lines: Sequence[tuple[int, Sequence[tuple[int, Strip]]]]) -> None:
        self._lines = lines

    def render_segments(self, console: Console) -> str:
        """The terminal output."""
        last = self._lines[-1][0]
        written: list[str] = []
        for y, pieces in self._lines:
            written += [f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for x, strip in pieces]
            if y != last:
                written.append("\n")
        return "".join(written)


class SparingCompositor(Compositor):
    """Renders the same lines as its parent, from fewer widgets."""

    _spans: Mapping[int, Sequence[tuple[int, int]]] | None = None
    """Columns that are repainted, by line; ``None`` where all of them are."""
    _layout: tuple[object, object] = (None, None)
    """What the parts of lines were looked up in."""
    _chops_of: dict[int, list[_Chop]]
    """The parts of lines, from left to right, as far as they have been asked for."""

    def render_partial_update(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
    ) -> CompositorUpdate | None:
        """Render what has changed, ``None`` if nothing has; callers accept any update."""
        regions = self._dirty_regions.copy()
        self._dirty_regions.clear()
        if not regions:
            return None
        spans = list(self._regions_to_spans(regions))
        return self._pieces(spans) or self._any_chops(regions, spans)

    def _pieces(self, spans: Sequence[tuple[int, int, int]]) -> PiecesUpdate | None:
        """The update, if each widget fills its whole region; ``None`` otherwise."""
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
        made: list[tuple[int, list[tuple[int, Strip]]]] = []
        for y, chops, end in wanted:
            pieces: list[tuple[int, Strip]] = []
            for x, stop, widget, _, seen in chops:
                first, given = strips[widget]
                strip, left, right = given[y - first], x - seen.x, min(stop, end) - seen.x
                whole = not left and right == strip.cell_length
                pieces.append((x, strip if whole else strip.crop(left, right)))
            made.append((y, pieces))
        return PiecesUpdate(made)

    def _line(self, y: int) -> list[_Chop]:
        """The parts of a line, each with the widget that fills it."""
        visible, cuts = self.visible_widgets, self.cuts
        if self._layout[0] is not visible or self._layout[1] is not cuts:
            self._layout, self._chops_of = (visible, cuts), {}
        chops = self._chops_of.get(y)
        if chops is None:
            chops = self._chops_of[y] = []
            for x, stop in pairwise(cuts[y]):
                for widget, (region, clip) in visible.items():
                    seen = region if clip.contains_region(region) else region.intersection(clip)
                    if seen.contains(x, y):
                        chops.append(_Chop(x, stop, widget, region, seen))
                        break
        return chops

    def _any_chops(self, regions: set[Region], spans: list[tuple[int, int, int]]) -> ChopsUpdate:
        """The update for widgets that do not fill their regions."""
        columns: dict[int, list[tuple[int, int]]] = {}
        for y, first, last in spans:
            columns.setdefault(y, []).append((first, last))
        self._spans = columns
        try:
            crop = Region.from_union(regions).intersection(self.size.region)
            chops = self._render_chops(crop, columns.__contains__)
        finally:
            self._spans = None
        return ChopsUpdate(chops, spans, [cuts[1:] for cuts in self.cuts])

    def _render_chops(
        self, crop: Region, is_rendered_line: Callable[[int], bool]
    ) -> Sequence[Mapping[int, Strip]]:
        """Pieces of lines by their first column, for the lines that are repainted.

        Args:
            crop: Region around all that is repainted.
            is_rendered_line: Whether a line is repainted.
        """
        cuts = self.cuts
        spans, around = self._spans, (crop.column_span,)
        chops: list[dict[int, Strip | None]] = [{} for _ in cuts]
        lines = [y for y in range(*crop.line_span) if is_rendered_line(y)]
        # What lies beside the spans is not written, so it need not be rendered.
        missing = {
            y: {
                cut
                for cut, end in pairwise(cuts[y])
                for left, right in (around if spans is None else spans[y])
                if cut < right and end > left
            }
            for y in lines
        }
        left_open = sum(map(len, missing.values()))
        for widget, (region, clip) in self.visible_widgets.items():
            if not left_open:
                break  # Below lie only those that hold the others.
            if not crop.overlaps(region):
                continue
            seen = region if clip.contains_region(region) else region.intersection(clip)
            first, last = seen.column_span
            above, below = seen.line_span
            mine = [
                y
                for y in lines
                if above <= y < below
                and (first in missing[y] or any(first <= cut < last for cut in missing[y]))
            ]
            if not mine:
                continue
            top = mine[0]
            asked = Region(seen.x - region.x, top - region.y, seen.width, mine[-1] + 1 - top)
            strips = widget.render_lines(asked)
            for y in mine:
                if y - top >= len(strips):
                    break
                line, wanted = chops[y], missing[y]
                inside = [cut for cut in cuts[y] if first <= cut <= last]
                pieces = strips[y - top].divide([cut - seen.x for cut in inside[1:]])
                for cut, piece in zip(inside, pieces, strict=False):
                    if cut in wanted:
                        wanted.discard(cut)
                        left_open -= 1
                        line[cut] = piece
        # In the order of their columns, as the writer expects.
        for y in lines:
            line = chops[y]
            chops[y] = {cut: line.get(cut) for cut in cuts[y][:-1]}
        # An unfilled place is ``None``, as in the parent, whose type does not say so.
        return cast("Sequence[Mapping[int, Strip]]", chops)
