"""Which KV cache rows of one sequence can serve another one at other positions: a pure search.

When the oldest turns of a conversation are dropped, what follows them is the same text further in
front. When a file goes along with the newest question only, it stands further behind each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MIN_RUN = 128
"""Tokens of a run: a shorter one is soon read, and more likely the same by chance."""


@dataclass(frozen=True, slots=True)
class Run:
    """Rows [source, source + length) of a sequence that go to ``target``."""

    source: int
    target: int
    length: int


def find_runs(
    cached: Sequence[int], prompt: Sequence[int], start: int, least: int = MIN_RUN
) -> list[Run]:
    """Find a sequence's rows for what a prompt continues with.

    Args:
        cached: The sequence.
        prompt: The tokens.
        start: Length of the prefix that they share.
        least: Tokens of the shortest run.

    Returns:
        Runs whose tokens are the prompt's, one behind the other from ``start`` on, the longest
        there is each time; in the sequence they may lie anywhere.
    """
    there, wanted = np.asarray(cached, np.int64), np.asarray(prompt, np.int64)
    runs: list[Run] = []
    while len(wanted) - start >= least:
        source, length = _longest(there, wanted[start:], least)
        if length < least:
            break
        runs.append(Run(source, start, length))
        start += length
    return runs


def _longest(there: Array, wanted: Array, least: int) -> tuple[int, int]:
    """The first longest place of the beginning of ``wanted``, of at least so many tokens."""
    places = np.arange(len(there) - least + 1)
    for offset in range(least):
        places = places[there[places + offset] == wanted[offset]]
    best, longest = 0, 0
    for place in map(int, places):
        limit = min(len(there) - place, len(wanted))
        differs = there[place : place + limit] != wanted[:limit]
        length = int(differs.argmax()) if differs.any() else limit
        if length > longest:
            best, longest = place, length
    return best, longest
