"""Confidence of a model in its rewrite of a region, from the probabilities of its tokens.

While an answer is written, the rows of logits that its tokens were chosen from are kept. When it is
complete, features of the probabilities are weighed as ``[confidence]`` in the model folder says.
The weights are those of a logistic regression on answers to held-out requests
(``models/training/confidence.py``), so the result is the share of right ones among such answers.
Chat models whose folder has no such table are judged by ``CHAT_CALIBRATION``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from midstream.edits.lcs import equal_blocks
from midstream.engine.folder import Calibration

Array = np.ndarray[Any, Any]

CHUNK: Final = 64
"""Rows that are kept at most before their probabilities are computed."""
CHUNK_NUMBERS: Final = 1 << 21
"""Numbers of all rows that are kept: 8 MiB, 13 rows of a vocabulary of 152,000 tokens."""
_MIN_DOUBT: Final = 1e-3
"""Added to the doubt: the logarithm of zero is infinite."""


class TokenTrace:
    """Log-probabilities of the tokens of one generation.

    Rows are computed in chunks that depend on the number of tokens alone, so the values are the
    same to the bit however the tokens came, drafted or one by one.
    """

    def __init__(self) -> None:
        self._rows: Array = np.empty((0, 0), np.float32)
        self._tokens: list[int] = []
        self._used = 0
        self._done: list[Array] = []

    def take(self, logits: Array, tokens: Sequence[int]) -> None:
        """Note tokens and the rows that they were chosen from.

        Args:
            logits: float32 [len(tokens) or more, vocab]; copied.
            tokens: What was chosen.
        """
        if not self._rows.size:
            vocab = logits.shape[1]
            self._rows = np.empty((max(1, min(CHUNK, CHUNK_NUMBERS // vocab)), vocab), np.float32)
        self._tokens += tokens
        at = 0
        while at < len(tokens):
            count = min(len(tokens) - at, len(self._rows) - self._used)
            self._rows[self._used : self._used + count] = logits[at : at + count]
            self._used += count
            at += count
            if self._used == len(self._rows):
                self._compute()

    def read(self) -> Array:
        """Return the log-probability of every token so far, softmax over the whole vocabulary.

        Returns:
            float32 [tokens], each 0 at most. Nothing may be taken afterwards.
        """
        if self._used:
            self._compute()
        return np.concatenate(self._done) if self._done else np.empty(0, np.float32)

    def _compute(self) -> None:
        rows = self._rows[: self._used]
        first = sum(len(done) for done in self._done)
        tokens = self._tokens[first : first + self._used]
        rows -= rows.max(axis=1, keepdims=True)
        chosen = rows[np.arange(len(tokens)), tokens]
        np.exp(rows, out=rows)
        self._done.append(chosen - np.log(rows.sum(axis=1)))
        self._used = 0


def doubt(chances: Array) -> float:
    """Logarithm of minus the log-probability of some tokens together.

    Args:
        chances: Their log-probabilities, float32 [tokens].
    """
    return math.log(_MIN_DOUBT - float(chances.sum()))


def features(chances: Array, tokens: Sequence[int], draft: Sequence[int]) -> dict[str, float]:
    """Return the features of an answer that are weighed.

    Most tokens copy the region and are nearly certain. Tokens that change something therefore have
    features of their own.

    Args:
        chances: Log-probabilities of the answer's tokens, float32 [tokens], at least one.
        tokens: The answer.
        draft: The tokens of an answer that changes nothing.

    Returns:
        ``mean``: of all log-probabilities. ``doubt`` and ``changes``: the ``doubt`` of the whole
        answer, and of the tokens that change something. ``size``: the logarithm of how many these
        are.
    """
    new = np.ones(len(tokens), bool)
    for _, start, size in equal_blocks(draft, tokens):
        new[start : start + size] = False
    return {
        "mean": float(chances.mean()),
        "doubt": doubt(chances),
        "changes": doubt(chances[new]),
        "size": math.log1p(int(new.sum())),
    }


def weighed(table: Calibration, found: Mapping[str, float]) -> float:
    """Calibrated probability, 0 to 1, that an answer with these features is right."""
    total = table.bias + sum(
        weight * found.get(name, 0.0) for name, weight in table.weights.items()
    )
    return 1 / (1 + math.exp(-min(max(total, -50.0), 50.0)))


class EditJudge:
    """Judges one answer while it is written; a ``plan.Judge``."""

    def __init__(self, table: Calibration, draft: Sequence[int]) -> None:
        """Judge an answer.

        Args:
            table: How its features are weighed.
            draft: The tokens of an answer that changes nothing.
        """
        self._table = table
        self._draft = draft
        self._trace = TokenTrace()
        self._tokens: list[int] = []

    def take(self, logits: Array, tokens: Sequence[int]) -> None:
        self._trace.take(logits, tokens)
        self._tokens += tokens

    def features(self) -> dict[str, float]:
        """Features of the complete answer, which has at least one token."""
        return features(self._trace.read(), self._tokens, self._draft)

    def confidence(self) -> float:
        return weighed(self._table, self.features())
