"""Where the rectangles of a simulated placement lie on the screen: plain geometry, no colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from midstream.wafer.plan import Placed, Plan

MapView = Literal["layers", "fill", "kv"]
MAP_VIEWS: Final[tuple[MapView, ...]] = ("layers", "fill", "kv")

ENLARGE_BELOW: Final = 0.5
"""A model that uses less than this share of a wafer's width and height is drawn enlarged."""
GAP: Final = 2
"""Blank cells between two wafers."""
Grid = list[list[int]]
"""Rows of item indices; -1 where nothing is placed."""


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
    """What the map shows; two of the same picture differ only in what works.

    Attributes:
        plan: The placement.
        view: Layers, SRAM fill or cache fill.
        context: Tokens in the cache.
        enlarge: Whether a small model is drawn enlarged.
        working: Index of the item that works now, ``None`` while none does.
        passed: Items the token has left since the last picture.
    """

    plan: Plan
    view: MapView = "layers"
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


def filling(plan: Plan, item: Placed, view: MapView, context: int) -> float:
    """How full an item is, 0 to 1.

    Args:
        plan: The placement.
        item: One of its items.
        view: ``kv`` for the share of its cache room that ``context`` takes, otherwise the share of
            the fullest PE's SRAM that is taken before anything is cached.
        context: Tokens in the cache.
    """
    if view != "kv":
        return min(1.0, plan.used_bytes(item) / plan.hw.count("sram_bytes"))
    if item.layer is None:
        return 0.0
    room = plan.free_bytes(item) * item.rect.height
    return min(1.0, context * plan.kv_bytes_per_token(item) / room) if room > 0 else 1.0


def used_window(plan: Plan, *, enlarge: bool) -> tuple[int, int]:
    """Columns and rows of PEs that the map shows of every wafer: all, or what is used."""
    width, height = plan.hw.fabric(halo=plan.kernels.halo)
    right = max(item.rect.x + item.rect.width for item in plan.items)
    bottom = max(item.rect.y + item.rect.height for item in plan.items)
    small = right < width * ENLARGE_BELOW and bottom < height * ENLARGE_BELOW
    return (right, bottom) if enlarge and small else (width, height)


def paint_grid(plan: Plan, wafer: int, window: tuple[int, int], columns: int, rows: int) -> Grid:
    """Which item owns each sample of a ``columns x rows`` grid over the window."""
    grid = [[-1] * columns for _ in range(rows)]
    across, down = columns / window[0], rows / window[1]
    for index, item in enumerate(plan.items):
        if item.wafer != wafer:
            continue
        rect = item.rect
        left, right = round(rect.x * across), round((rect.x + rect.width) * across)
        top, bottom = round(rect.y * down), round((rect.y + rect.height) * down)
        for row in grid[top : max(bottom, top + 1)]:
            row[left:right] = [index] * (min(right, columns) - left)
    return grid


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
    """How wafers stand beside each other in ``width x height`` cells.

    Args:
        count: Wafers.
        width: Cells across.
        height: Lines.
        head: Lines of text above each wafer.

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
