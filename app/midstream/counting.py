"""Numbers with their nouns."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 hunk``, ``3 hunks``, ``1,200 tokens``; ``plural`` is for nouns that take no mere s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
