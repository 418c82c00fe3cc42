"""A compositor that asks only those widgets for their lines that will be seen in what is repainted.

Textual's asks every widget whose container overlaps the rectangle around all that is repainted for
all its lines, on every frame: on a full screen of nested containers that is most of a frame's work.
Here a widget is asked for those lines that are repainted in a place which no widget above it fills.

Overrides one underscored method of Textual and its caller, held by contract tests; see ``eager``
for the switch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import cast

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.strip import Strip


class SparingCompositor(Compositor):
    """Renders the same lines as its parent, with fewer widgets asked."""

    _spans: Mapping[int, Sequence[tuple[int, int]]] | None = None
    """Columns that are repainted, by line; ``None`` where all of them are."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """Render what has changed, ``None`` if nothing has."""
        regions = self._dirty_regions.copy()
        self._dirty_regions.clear()
        if not regions:
            return None
        spans = list(self._regions_to_spans(regions))
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
        # What lies beside the spans is not written out, so nobody is asked for it.
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
        # In the order of their columns, as whoever writes them out expects.
        for y in lines:
            line = chops[y]
            chops[y] = {cut: line.get(cut) for cut in cuts[y][:-1]}
        # A place that nobody fills is ``None``, in the parent as well, whose type leaves that out.
        return cast("Sequence[Mapping[int, Strip]]", chops)
