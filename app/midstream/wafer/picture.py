"""A placement as a picture: which item owns each sample of a wafer, and how full an item is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from midstream.wafer.plan import Placed, Plan

View = Literal["layers", "fill", "kv"]
"""What a picture shows: the layers, the SRAM taken before anything is cached, or the cache."""
VIEWS: Final[tuple[View, ...]] = ("layers", "fill", "kv")
LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Letters of the layers, in order; they repeat after 62 layers."""
Grid = list[list[int]]
"""Rows of item indices; -1 where nothing is placed."""


def filling(plan: Plan, item: Placed, view: View, context: int) -> float:
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


def paint_grid(plan: Plan, wafer: int, window: tuple[int, int], columns: int, rows: int) -> Grid:
    """Which item owns each sample of a ``columns x rows`` grid over the window.

    Items that take turns on the same PEs are drawn as the first of them.
    """
    grid = [[-1] * columns for _ in range(rows)]
    across, down = columns / window[0], rows / window[1]
    for index, item in reversed([*enumerate(plan.items)]):
        if item.wafer != wafer:
            continue
        rect = item.rect
        left, right = round(rect.x * across), round((rect.x + rect.width) * across)
        top, bottom = round(rect.y * down), round((rect.y + rect.height) * down)
        for row in grid[top : max(bottom, top + 1)]:
            row[left:right] = [index] * (min(right, columns) - left)
    return grid
