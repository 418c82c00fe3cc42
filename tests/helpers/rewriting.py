"""Whole rewrites of the numbered function, as a scripted model gives them."""

from __future__ import annotations

from tests.helpers.pairing import numbered
from tests.helpers.stepped import SteppedModel

BEFORE = numbered()


def rewrite(*changes: tuple[int, str], source: str = BEFORE) -> list[str]:
    """The lines of ``source`` with some replaced."""
    lines = source.splitlines(keepends=True)
    for number, text in changes:
        lines[number] = text
    return lines


def give(model: SteppedModel, lines: list[str]) -> None:
    """Let the model write these lines."""
    for line in lines:
        model.give(line)
