"""How well one colour can be told from another."""

from __future__ import annotations

from textual.color import Color


def contrast(first: Color, second: Color) -> float:
    """WCAG 2.2 contrast ratio (relative luminance, 1.4.3)."""

    def luminance(color: Color) -> float:
        parts = [c / 255 for c in color.rgb]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)
