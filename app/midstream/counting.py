"""Numbers with their nouns."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 hunk``, ``3 hunks``, ``1,200 tokens``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
