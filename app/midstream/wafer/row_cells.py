"""Cells of a table of measurements as people write them: counts, numbers, ranges, grids, units.

Every function reads one cell and says in one sentence, with the column, what it cannot read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from midstream.wafer.cost import Rectangle
from midstream.wafer.errors import RowError

_TIME_UNITS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
_COUNT = r"(\d[\d,]*(?:\.\d+)?)\s*(k?)"
_RANGE = re.compile(r"\s*(?:k|tok/s)?\s*(?:-|–|—|\bto\b|\.\.\.?|…)\s*(?=[\d.])", re.IGNORECASE)
_AT_LEAST = re.compile(r"^\W*(?:>|≥|over|above|at least|more than|min)|\d\s*\+", re.IGNORECASE)
_AT_MOST = re.compile(r"^\W*(?:<|≤|up to|under|below|at most|less than|max)", re.IGNORECASE)


def read_unit(unit: str) -> tuple[str, float, bool]:
    """Quantity, scale and whether it is per token, of a unit such as ``tok/s`` or ``ms/token``."""
    plain = re.sub(r"\s*\bper\b\s*", "/", unit).replace(" ", "")
    rate = re.match(r"(t|toks?|tokens?)/(s|secs?|seconds?)(/|$)", plain)
    if rate or plain in ("tps", "tpr"):
        return "rate", 1.0, False
    base, _, rest = plain.partition("/")
    base = {"seconds": "s", "second": "s"}.get(base, base)
    per_token = bool(re.fullmatch(r"toks?|tokens?", rest))
    if base in _TIME_UNITS and (not rest or per_token):
        return "time", _TIME_UNITS[base], per_token
    if match := re.fullmatch(r"([km]?)cycles?", base):
        return "cycles", {"": 1.0, "k": 1e3, "m": 1e6}[match[1]], per_token
    raise RowError("unit", f"Unit '{unit}' is not modelled; use tok/s, s, ms, us, ns or cycles.")


def read_count(record: Mapping[str, str], column: str, notes: list[str]) -> int | None:
    """A count such as ``4096``, ``4,096``, ``4k`` or ``20-26``; None when empty or ``n/a``."""
    text = record.get(column, "").strip().lower()
    if text in ("", "-", "n/a", "na", "none", "?", "auto", "unknown", "undisclosed"):
        return None
    first, last = rf"[^\d-]{{0,3}}{_COUNT}", r"(?![a-z.\d])"
    match = re.match(first + last, text)
    if match is None:
        raise RowError(column, f"It has '{record[column]}'; write a number such as 4096 or 4k.")
    value = _thousands(match[1], match[2])
    if other := re.match(rf"{first}\s*(?:-|–|\bto\b)\s*{_COUNT}{last}", text):
        value = (value + _thousands(other[3], other[4])) / 2
        notes.append(f"{column} {record[column]} read as {value:,.0f}")
    if value < 1:
        raise RowError(column, f"It has '{record[column]}'; it must be at least 1.")
    return int(value)


def _thousands(digits: str, suffix: str) -> float:
    return float(digits.replace(",", "")) * (1024 if suffix else 1)


def read_published(text: str) -> tuple[float, tuple[float, float]]:
    """The number of the cell and the range it allows."""
    found = _NUMBER.search(text)
    if found is None:
        raise RowError("published", f"It has '{text}'; write the measured number.")
    low, stop = _thousandfold(text, found)
    between = _RANGE.match(text, stop)
    second = _NUMBER.match(text, between.end()) if between else None
    high = _thousandfold(text, second)[0] if second else low
    if low * 1000 <= high and _k_once(text, found, second):
        low *= 1000  # "1-2k": the suffix is meant for both
    if low <= 0 or not math.isfinite(low + high):
        raise RowError("published", f"It has '{text}'; it must be positive.")
    if high > low:
        return (low + high) / 2, (low, high)
    if _AT_LEAST.search(text):
        return low, (low, math.inf)
    return low, (0.0, low) if _AT_MOST.search(text) else (low, low)


def _thousandfold(text: str, found: re.Match[str]) -> tuple[float, int]:
    """A number with its ``k``, and where it ends."""
    value = float(found[0].replace(",", ""))
    suffix = re.compile(r"\s*k(?![a-z])", re.IGNORECASE).match(text, found.end())
    return (value * 1000, suffix.end()) if suffix else (value, found.end())


def _k_once(text: str, first: re.Match[str], second: re.Match[str] | None) -> bool:
    """Whether only the second number of a range has a ``k`` behind it."""
    ends = [_thousandfold(text, found)[1] > found.end() for found in (first, second) if found]
    return ends == [False, True]


def read_bits(text: str) -> int | None:
    """Bits per weight of ``fp8``, ``int4`` or ``16``; None when not said."""
    plain = text.strip().lower()
    if plain in ("", "undisclosed", "unknown", "native", "?", "-", "n/a"):
        return None
    found = re.search(r"(16|8|4)", plain)
    if found is None:
        raise RowError("weight_bits", f"Precision '{text}' is unknown; use 16, 8 or 4 bit.")
    return int(found[0])


def read_grids(record: Mapping[str, str]) -> tuple[Rectangle, Rectangle] | None:
    """Grids for prefill and decode, from one column or two."""
    parts = [record.get("prefill_grid", ""), record.get("decode_grid", "")]
    named = [parse_grid(part) if part else None for part in parts]
    prefill, decode = named
    text = record.get("grid", "").strip().lower()
    if text in ("", "-", "n/a", "na"):
        if prefill is None and decode is None:
            return None
        return prefill or decode or Rectangle(1, 1), decode or prefill or Rectangle(1, 1)
    squares = re.sub(r"\^\s*2|²|\*\*\s*2", "", text)
    sizes = re.findall(r"\d+(?:\s*[x×*]\s*\d+)?", squares)
    if not 1 <= len(sizes) <= 2:
        raise RowError("grid", f"Grid '{text}' cannot be read; write 480, 480x480 or 660/360.")
    first, last = parse_grid(sizes[0]), parse_grid(sizes[-1])
    decode_first = re.search(r"d(ecode)?\W*\d.*p(refill)?\W*\d", squares) is not None
    return (last, first) if decode_first else (first, last)


def parse_grid(text: str) -> Rectangle:
    """``480``, ``480x360`` (columns x rows), ``480^2``, ``480²``.

    Raises:
        RowError: The text cannot be read.
    """
    plain = (
        re.sub(r"[()\[\]\s]", "", text.lower())
        .removesuffix("^2")
        .removesuffix("²")
        .removesuffix("**2")
    )
    match = re.fullmatch(r"(\d+)(?:[x×*](\d+))?", plain)
    if match is None or int(match[1]) < 1 or int(match[2] or 1) < 1:
        raise RowError("grid", f"Grid '{text}' cannot be read; write 480, 480x480 or 660/360.")
    width = int(match[1])
    return Rectangle(width, int(match[2] or width))
