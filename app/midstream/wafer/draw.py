"""Drawings of a placement as text: who owns which PE, how full it is, and where a token is.

:func:`cells` gives the picture as numbers for any screen; :func:`wafer_text` draws it with half
blocks (in colour) or letters (without).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from midstream.wafer.plan import Placed, Plan

View = Literal["layers", "fill", "kv"]
VIEWS: tuple[View, ...] = ("layers", "fill", "kv")

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SHADES = " .:-=+*#%@"
_IDLE = (38, 40, 46)
_EMBEDDING = (112, 116, 128)
_HEAD = (222, 184, 96)
_HOT = (236, 96, 72)


@dataclass(frozen=True, slots=True)
class Cells:
    """A wafer sampled on a coarse grid.

    Attributes:
        owners: Rows of indices into ``items``; -1 where nothing is placed.
        items: The wafer's items.
        values: For every item a number between 0 and 1: position of the layer, SRAM fill or cache
            fill.
    """

    owners: list[list[int]]
    items: list[Placed]
    values: list[float]


def cells(
    plan: Plan,
    *,
    wafer: int = 0,
    columns: int = 64,
    rows: int = 64,
    view: View = "layers",
    context: int = 0,
) -> Cells:
    """Sample one wafer of a plan on ``columns x rows`` cells.

    Args:
        plan: The placement.
        wafer: Which wafer.
        columns: Cells across.
        rows: Cells down (two per text line with half blocks).
        view: What ``values`` mean.
        context: Cached tokens, for the ``kv`` view.
    """
    width, height = plan.hw.fabric(halo=plan.kernels.halo)
    items = [item for item in plan.items if item.wafer == wafer]
    if plan.mode == "time-mux":
        items = items[:1]
    owners = [[-1] * columns for _ in range(rows)]
    for row in range(rows):
        y = (row + 0.5) * height / rows
        for column in range(columns):
            x = (column + 0.5) * width / columns
            for index, item in enumerate(items):
                rect = item.rect
                if rect.x <= x < rect.x + rect.width and rect.y <= y < rect.y + rect.height:
                    owners[row][column] = index
                    break
    return Cells(owners, items, [_value(plan, item, view, context) for item in items])


def _value(plan: Plan, item: Placed, view: View, context: int) -> float:
    if view == "fill":
        return min(1.0, plan.used_bytes(item) / plan.hw.count("sram_bytes"))
    if item.layer is None:
        return 0.0
    if view == "kv":
        free = plan.free_bytes(item) * item.rect.height
        return min(1.0, context * plan.kv_bytes_per_token(item) / free) if free > 0 else 1.0
    return item.layer / max(1, plan.shape.layers - 1)


def wafer_text(
    plan: Plan,
    *,
    wafer: int = 0,
    columns: int = 64,
    view: View = "layers",
    context: int = 0,
    active: int | None = None,
    colour: bool = False,
) -> str:
    """Draw one wafer.

    Args:
        plan: The placement.
        wafer: Which wafer.
        columns: Width in characters.
        view: ``layers``, ``fill`` or ``kv``.
        context: Cached tokens, for the ``kv`` view.
        active: Layer that is working now; it is highlighted.
        colour: Half blocks in 24-bit colour instead of letters.
    """
    width, height = plan.hw.fabric(halo=plan.kernels.halo)
    lines = max(1, round(columns * height / width / 2))
    if colour:
        picture = cells(
            plan, wafer=wafer, columns=columns, rows=2 * lines, view=view, context=context
        )
        return "\n".join(
            _coloured(picture, picture.owners[2 * n], picture.owners[2 * n + 1], view, active)
            for n in range(lines)
        )
    picture = cells(plan, wafer=wafer, columns=columns, rows=lines, view=view, context=context)
    return "\n".join(
        "".join(_letter(picture, owner, view, active) for owner in row) for row in picture.owners
    )


def _letter(picture: Cells, owner: int, view: View, active: int | None) -> str:
    if owner < 0:
        return "·"
    item = picture.items[owner]
    if item.layer is not None and item.layer == active:
        return "█"
    if view != "layers":
        return _SHADES[min(len(_SHADES) - 1, int(picture.values[owner] * len(_SHADES)))]
    if item.layer is None:
        return "~" if item.name == "embedding" else "^"
    return _LETTERS[item.layer % len(_LETTERS)]


def _coloured(
    picture: Cells, upper: list[int], lower: list[int], view: View, active: int | None
) -> str:
    parts: list[str] = []
    for top, bottom in zip(upper, lower, strict=True):
        r, g, b = colour_of(picture, top, view, active)
        s, t, u = colour_of(picture, bottom, view, active)
        parts.append(f"\x1b[38;2;{r};{g};{b};48;2;{s};{t};{u}m▀")
    return "".join(parts) + "\x1b[0m"


def colour_of(
    picture: Cells, owner: int, view: View, active: int | None = None
) -> tuple[int, int, int]:
    """Colour of a cell: a cool-to-green ramp over layers, a dark-to-hot ramp over fill, one hot
    colour for activity.
    """
    if owner < 0:
        return _IDLE
    item, value = picture.items[owner], picture.values[owner]
    if item.layer is not None and item.layer == active:
        return _HOT
    if view != "layers":
        return _blend((30, 58, 95), (240, 170, 70), value)
    if item.layer is None:
        return _EMBEDDING if item.name == "embedding" else _HEAD
    base = _blend((52, 92, 168), (74, 176, 128), value)
    return _blend(base, (255, 255, 255), 0.10) if item.layer % 2 else base


def _blend(a: tuple[int, int, int], b: tuple[int, int, int], share: float) -> tuple[int, int, int]:
    return (
        round(a[0] + (b[0] - a[0]) * share),
        round(a[1] + (b[1] - a[1]) * share),
        round(a[2] + (b[2] - a[2]) * share),
    )


def legend(plan: Plan, view: View = "layers") -> str:
    """One line that explains the letters."""
    if view == "layers":
        return (
            "digits and letters: layers in order (repeating after 62); ~ embedding; ^ output head; "
            "· unused PEs"
        )
    what = "SRAM fill" if view == "fill" else "cache fill"
    room = plan.hw.count("sram_bytes") // 1024
    return f"{what} of {room} KB per PE, from '{_SHADES[0]}' (empty) to '{_SHADES[-1]}' (full)"
