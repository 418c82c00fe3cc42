"""The likeliest change of a region that a model would leave as it is.

Small models copy: what they read just before is the likeliest text, so a rewrite often repeats its
region although the model has an idea of the change. The idea shows in the probabilities: at one
token of the copy, another one is likely, too. The copy is verified as a draft, which takes one or a
few runs, and the answer leaves it where the likeliest other token is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

ROWS: Final = 32
"""Tokens of the copy in a run: the logits of that many rows are 20 MB at 152,000 tokens."""
MIN_CHANCE: Final = 0.17
"""Probability of a token below which the model had no other idea.

Measured: of 15 requests with nothing to do, the shipped model had 0.16 at most; of the 11 answers
of three models that were right, none had less than 0.17.
"""
_AHEAD: Final = 16
"""Tokens of the copy that one other token may spell."""


class Departure:
    """Finds where an answer best leaves a copy of its region.

    Args:
        draft: The tokens of the copy, at least one.
        text_of: The text of some tokens.
        stop_ids: Tokens that end an answer.
    """

    def __init__(
        self,
        draft: Sequence[int],
        text_of: Callable[[Sequence[int]], str],
        stop_ids: frozenset[int],
    ) -> None:
        self._draft = draft
        self._text_of = text_of
        self._stop_ids = stop_ids
        self._seen = 0
        self._found: list[tuple[float, int, int]] = []

    def take(self, logits: Array) -> None:
        """Look at the rows that the next tokens of the copy would be chosen from.

        Args:
            logits: float32 [rows, vocab]; not changed.
        """
        rows = np.arange(len(logits))
        tokens = np.asarray(self._draft[self._seen : self._seen + len(logits)])
        scaled = logits - logits.max(axis=1, keepdims=True)
        total = np.exp(scaled).sum(axis=1)
        scaled[rows, tokens] = -np.inf
        others = scaled.argmax(axis=1)
        for row, token in enumerate(others.tolist()):
            chance = float(np.exp(scaled[row, token]) / total[row])
            self._found.append((chance, self._seen + row, token))
        self._seen += len(logits)

    def best(self) -> tuple[int, int] | None:
        """How many tokens of the copy stay, and the one behind them; None if none is likely."""
        first, last = self._opening(), self._closing()
        for chance, place, token in sorted(self._found, key=lambda found: (-found[0], found[1])):
            if chance < MIN_CHANCE:
                break
            if first <= place <= last and self._changes(place, token):
                return place, token
        return None

    def _opening(self) -> int:
        """How many tokens are the opening fence."""
        if not self._text_of(self._draft[:_AHEAD]).startswith("```"):
            return 0
        count = 1
        while count < len(self._draft) and "\n" not in self._text_of(self._draft[:count]):
            count += 1
        return count

    def _closing(self) -> int:
        """How many tokens there are in front of the closing fence."""
        count = len(self._draft)
        while count and not self._text_of(self._draft[count - 1 :]).rstrip("\n").strip("`"):
            count -= 1
        return count

    def _changes(self, place: int, token: int) -> bool:
        """Whether a token in this place spells other code than the copy, and not only space."""
        text = self._text_of([token])
        if token in self._stop_ids or not text.strip() or text.startswith("`"):
            return False
        ahead = self._text_of(self._draft[place : place + _AHEAD])
        return not ahead.lstrip().startswith(text.lstrip())
