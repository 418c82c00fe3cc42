"""Detects answers that loop: small chat models may repeat one line or tag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MIN_REPEATED: Final = 192
"""Tokens that repeat before it counts: rows of a table and rulers are shorter."""
ROUNDS: Final = 6
"""How often a stretch is written before it counts."""
MAX_PERIOD: Final = 128
"""Tokens of the longest stretch that is looked for."""
EVERY: Final = 32
"""Output tokens between two looks."""


class RepetitionWatch:
    """Reads an answer token by token until it does nothing but repeat itself.

    What the prompt repeats just so may be repeated: that is a copy. Whether an answer is one
    depends on its tokens alone, however many of them came at once.

    Attributes:
        found: Whether the answer goes round in circles.
    """

    def __init__(self, prompt: Sequence[int]) -> None:
        self.found = False
        self._prompt = prompt
        self._tail: list[int] = []
        self._count = 0

    def feed(self, token: int) -> bool:
        """Take the next token; returns ``found``."""
        self._tail.append(token)
        self._count += 1
        if self._count % EVERY == 0 and not self.found:
            del self._tail[: -MAX_PERIOD * ROUNDS]
            self.found = circles(self._tail) and not self._is_copy()
        return self.found

    def _is_copy(self) -> bool:
        end, prompt = self._tail[-MIN_REPEATED:], self._prompt
        return any(
            token == end[0] and list(prompt[at : at + MIN_REPEATED]) == end
            for at, token in enumerate(prompt)
        )


def circles(tokens: Sequence[int]) -> bool:
    """Whether tokens end with a stretch of at most ``MAX_PERIOD`` often enough behind each other.

    From the end, each length's longest border (Knuth, Morris, Pratt 1977, "Fast Pattern Matching in
    Strings") gives its shortest period.
    """
    backwards = tokens[::-1]
    borders = [0] * len(backwards)
    length = 0
    for at in range(1, len(backwards)):
        while length and backwards[at] != backwards[length]:
            length = borders[length - 1]
        length += backwards[at] == backwards[length]
        borders[at] = length
        size, period = at + 1, at + 1 - length
        if size >= MIN_REPEATED and period <= MAX_PERIOD and size >= ROUNDS * period:
            return True
    return False
