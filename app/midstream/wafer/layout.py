"""Rectangles on a wafer: an order-keeping treemap of weighted items, and nothing else.

Items keep their order (a layer's neighbour is the next layer), every row of rectangles is as wide
as the wafer, and areas are proportional to weights up to rounding to whole PEs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from midstream.wafer.cost import Rectangle

TIE = 1e-6
"""Costs closer than this are equal: the earlier cut stays, whatever the rounding."""


def treemap(weights: Sequence[float], width: int, height: int) -> list[Rectangle]:
    """Cut ``width x height`` PEs into one rectangle per weight, in order, as square as rows allow.

    Rows run boustrophedon (left to right, then right to left), so consecutive items always touch.
    The rows are the ones that minimise the sum of squared log aspect ratios (dynamic programme over
    contiguous rows).

    Returns:
        One rectangle per weight; empty when an item would get no PE.
    """
    if not weights:
        return []
    weights = [max(weight, 1.0) for weight in weights]  # every item gets at least a PE's worth
    groups = _best_rows(weights, width, height)
    total = sum(weights)
    cut: list[Rectangle] = []
    top, used = 0, 0.0
    for index, group in enumerate(groups):
        used += sum(group)
        bottom = height if index == len(groups) - 1 else round(height * used / total)
        row = _row(group, width, top, bottom)
        if not row:
            return []
        if index % 2:
            row = [Rectangle(r.width, r.height, width - r.x - r.width, r.y) for r in row]
        cut.extend(row)
        top = bottom
    return cut


def _row(group: Sequence[float], width: int, top: int, bottom: int) -> list[Rectangle]:
    row: list[Rectangle] = []
    left, placed, whole = 0, 0.0, sum(group)
    for position, weight in enumerate(group):
        placed += weight
        right = width if position == len(group) - 1 else round(width * placed / whole)
        if right <= left or bottom <= top:
            return []
        row.append(Rectangle(right - left, bottom - top, left, top))
        left = right
    return row


def _best_rows(weights: Sequence[float], width: int, height: int) -> list[Sequence[float]]:
    """Contiguous rows with the squarest rectangles.

    A rectangle of weight w in a row of weight s is ``width w / s`` by ``height s / total``; its log
    aspect ratio is ``log w + f`` with ``f = log(width total / (height s^2))``, so a row of n costs
    ``sum((log w)^2) + 2 f sum(log w) + n f^2``, which running totals give at once.
    """
    count, total = len(weights), sum(weights)
    longest = 2 * math.ceil(math.sqrt(count * width / height)) + 2
    logs = [math.log(weight) for weight in weights]
    sums = [0.0, *accumulate(weights)]
    log_sums = [0.0, *accumulate(logs)]
    square_sums = [0.0, *accumulate(value * value for value in logs)]
    shape = math.log(width * total / height)
    best = [0.0] + [math.inf] * count
    start = [0] * (count + 1)
    for end in range(1, count + 1):
        for begin in range(max(0, end - longest), end):
            factor = shape - 2 * math.log(sums[end] - sums[begin])
            cost = best[begin] + square_sums[end] - square_sums[begin]
            cost += factor * (2 * (log_sums[end] - log_sums[begin]) + (end - begin) * factor)
            if cost < best[end] - TIE:
                best[end], start[end] = cost, begin
    rows: list[Sequence[float]] = []
    end = count
    while end:
        rows.append(weights[start[end] : end])
        end = start[end]
    return rows[::-1]


@lru_cache(maxsize=1024)
def partition(sizes: tuple[float, ...], parts: int) -> tuple[range, ...]:
    """Cut a sequence into at most ``parts`` contiguous parts with the smallest possible largest
    part.

    Returns:
        Indices per part; trailing parts may be missing when there are fewer items than parts.
    """
    sums = [0.0, *accumulate(sizes)]
    low, high = max(sizes), sums[-1]
    while high - low > 1e-7 * high:
        limit = (low + high) / 2
        if len(_greedy(sums, limit)) <= parts:
            high = limit
        else:
            low = limit
    return tuple(_greedy(sums, high * (1 + 1e-9)))


def _greedy(sums: list[float], limit: float) -> list[range]:
    """Fill part after part up to ``limit``; ``sums`` are running totals starting with 0."""
    parts: list[range] = []
    start, last = 0, len(sums) - 1
    while start < last:
        stop = max(start + 1, bisect_right(sums, sums[start] + limit, start) - 1)
        parts.append(range(start, stop))
        start = stop
    return parts
