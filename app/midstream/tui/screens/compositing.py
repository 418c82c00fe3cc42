"""A compositor that asks only those widgets for their lines that will be seen in what is repainted.

Textual's asks every widget whose container overlaps the repainted region for all its lines, on
every frame: on a full screen of nested containers that is most of a frame's work.  Here a widget is
asked when some repainted line has a place that no widget above it has filled.

Overrides one underscored method of Textual, held by a contract test; see ``eager`` for the switch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import cast

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip


class SparingCompositor(Compositor):
    """Renders the same lines as its parent, with fewer widgets asked."""

    def _render_chops(
        self, crop: Region, is_rendered_line: Callable[[int], bool]
    ) -> Sequence[Mapping[int, Strip]]:
        """Pieces of lines by their first column, for the lines that are repainted.

        Args:
            crop: Region around all that is repainted.
            is_rendered_line: Whether a line is repainted.
        """
        cuts = self.cuts
        left, right = crop.column_span
        chops: list[dict[int, Strip | None]] = [{} for _ in cuts]
        lines = [y for y in range(*crop.line_span) if is_rendered_line(y)]
        # What lies beside the crop is not written out, so nobody is asked for it.
        missing = {
            y: {cut for cut, end in pairwise(cuts[y]) if cut < right and end > left} for y in lines
        }
        for widget, (region, clip) in self.visible_widgets.items():
            if not crop.overlaps(region):
                continue
            seen = region if clip.contains_region(region) else region.intersection(clip)
            first, last = seen.column_span
            above, below = seen.line_span
            strips: list[Strip] | None = None
            for y in lines:
                if not above <= y < below:
                    continue
                wanted = missing[y]
                if not any(first <= cut < last for cut in wanted):
                    continue
                if strips is None:
                    asked = Region(seen.x - region.x, seen.y - region.y, seen.width, seen.height)
                    strips = widget.render_lines(asked)
                if y - seen.y >= len(strips):
                    continue
                line = chops[y]
                inside = [cut for cut in cuts[y] if first <= cut <= last]
                pieces = strips[y - seen.y].divide([cut - seen.x for cut in inside[1:]])
                for cut, piece in zip(inside, pieces, strict=False):
                    if cut in wanted:
                        wanted.discard(cut)
                        line[cut] = piece
        # In the order of their columns, as whoever writes them out expects.
        for y in lines:
            line = chops[y]
            chops[y] = {cut: line.get(cut) for cut in cuts[y][:-1]}
        # A place that nobody fills is ``None``, in the parent as well, whose type leaves that out.
        return cast("Sequence[Mapping[int, Strip]]", chops)
