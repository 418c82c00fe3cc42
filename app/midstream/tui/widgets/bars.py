"""Bars of characters: shares as horizontal bars, rates as a small graph, bands as two shades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from midstream.tui.glyphs import Glyphs

_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_FULL, _LIGHT = "█", "░"
_ASCII_FULL, _ASCII_LIGHT = "#", "-"


def bar(share: float, width: int, glyphs: Glyphs) -> str:
    """A bar as long as ``share`` (0 to 1) of ``width`` cells; something small is never nothing."""
    share = min(1.0, max(0.0, share))
    if share == 0.0 or width < 1:
        return ""
    if _plain(glyphs):
        return _ASCII_FULL * max(1, round(share * width))
    full, eighths = divmod(max(1, round(share * width * 8)), 8)
    return _FULL * full + (_EIGHTHS[eighths] if eighths else "")


def band_bar(low: float, high: float, width: int, glyphs: Glyphs) -> tuple[str, str]:
    """A bar for an interval of shares: the certain part up to ``low``, the rest up to ``high``."""
    full, light = (_ASCII_FULL, _ASCII_LIGHT) if _plain(glyphs) else (_FULL, _LIGHT)
    certain = max(1, round(min(1.0, low) * width))
    return full * certain, light * max(0, round(min(1.0, high) * width) - certain)


def graph(values: Sequence[float], width: int, height: int, glyphs: Glyphs) -> list[str]:
    """The last ``width`` values as columns over ``height`` lines, scaled to the largest of all.

    Returns:
        Lines from the top; all blank where there is nothing to show.
    """
    shown = list(values)[-width:]
    peak = max(shown, default=0.0)
    if peak <= 0:
        return [" " * width] * height
    levels = len(glyphs.spark)
    filled = [max(int(v > 0), round(v / peak * height * levels)) for v in shown]
    lines: list[str] = []
    for row in range(height - 1, -1, -1):
        cells = (min(levels, amount - row * levels) for amount in filled)
        line = "".join(glyphs.spark[n - 1] if n > 0 else " " for n in cells)
        lines.append(line.rjust(width))
    return lines


def _plain(glyphs: Glyphs) -> bool:
    return glyphs.spark.isascii()
