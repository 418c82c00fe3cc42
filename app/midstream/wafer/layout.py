"""Rectangles on a wafer: an order-keeping treemap of weighted items, and nothing else.

Items keep their order (a layer's neighbour is the next layer), every row of rectangles is as wide as the wafer, and
areas are proportional to weights up to rounding to whole PEs.
"""

from __future__ import annotations

from collections.abc import Sequence

from midstream.wafer.cost import Rectangle


def treemap(weights: Sequence[float], width: int, height: int) -> list[Rectangle]:
    """Cut ``width x height`` PEs into one rectangle per weight, in order, as square as rows allow.

    Rows run boustrophedon (left to right, then right to left), so consecutive items always touch.
    """
    if not weights:
        return []
    best: list[Rectangle] = []
    best_score = float("inf")
    ideal = max(1, round((len(weights) * height / width) ** 0.5))
    for rows in range(max(1, ideal - 2), min(len(weights), ideal + 3) + 1):
        cut = _rows(weights, rows, width, height)
        score = max(max(r.width / r.height, r.height / r.width) for r in cut) if cut else float("inf")
        if score < best_score:
            best, best_score = cut, score
    return best


def _rows(weights: Sequence[float], rows: int, width: int, height: int) -> list[Rectangle]:
    """The treemap with a given number of rows; empty when an item would vanish."""
    total = sum(weights)
    groups: list[list[float]] = [[] for _ in range(rows)]
    seen = 0.0
    for weight in weights:
        middle = (seen + weight / 2) / total
        groups[min(rows - 1, int(middle * rows))].append(weight)
        seen += weight
    groups = [group for group in groups if group]
    cut: list[Rectangle] = []
    top = 0
    used = 0.0
    for index, group in enumerate(groups):
        used += sum(group)
        bottom = height if index == len(groups) - 1 else round(height * used / total)
        row: list[Rectangle] = []
        left, placed = 0, 0.0
        for position, weight in enumerate(group):
            placed += weight
            right = width if position == len(group) - 1 else round(width * placed / sum(group))
            if right <= left or bottom <= top:
                return []
            row.append(Rectangle(right - left, bottom - top, left, top))
            left = right
        if index % 2:
            row = [Rectangle(r.width, r.height, width - r.x - r.width, r.y) for r in row]
        cut.extend(row)
        top = bottom
    return cut


def partition(sizes: Sequence[float], parts: int) -> list[list[int]]:
    """Cut a sequence into at most ``parts`` contiguous parts with the smallest possible largest part.

    Returns:
        Indices per part; trailing parts may be missing when there are fewer items than parts.
    """
    low, high = max(sizes), sum(sizes)
    for _ in range(60):
        limit = (low + high) / 2
        if len(_greedy(sizes, limit)) <= parts:
            high = limit
        else:
            low = limit
    return _greedy(sizes, high * (1 + 1e-9))


def _greedy(sizes: Sequence[float], limit: float) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    filled = 0.0
    for index, size in enumerate(sizes):
        if parts[-1] and filled + size > limit:
            parts.append([])
            filled = 0.0
        parts[-1].append(index)
        filled += size
    return parts
