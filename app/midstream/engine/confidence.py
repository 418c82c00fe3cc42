"""Confidence of an edit model in an answer, from its token probabilities and the text.

While an answer is written, the rows of logits that its tokens were chosen from are kept; when it is
complete, the probabilities and the signs of ``edits.signs`` are weighed as ``[confidence]`` in the
model folder says. The weights are those of a logistic regression on answers to held-out requests
(``models/training/confidence.py``), so the result is the share of right ones among such answers.
A folder without that table costs nothing: no row is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from midstream.edits.signs import read_signs
from midstream.engine.edit_request import EditRequest
from midstream.engine.folder import Calibration
from midstream.engine.vocabulary import Vocabulary

Array = np.ndarray[Any, Any]

CHUNK: Final = 64
"""Rows that are kept before their probabilities are computed."""
MAX_OF_A_SIGN: Final = 2
"""A sign that is seen more often than that does not count for more."""
_MIN_DOUBT: Final = 1e-3


class TokenTrace:
    """Log-probabilities of the tokens of one generation.

    Rows are computed in chunks that depend on the number of tokens alone, so the values are the
    same to the bit however the tokens came, drafted or one by one.

    Attributes:
        opening: Probability of the first token, 1 before it is there.
    """

    def __init__(self) -> None:
        self._rows: Array = np.empty((0, 0), np.float32)
        self._tokens: list[int] = []
        self._used = 0
        self._done: list[Array] = []
        self.opening = 1.0

    def take(self, logits: Array, tokens: Sequence[int]) -> None:
        """Note tokens and the rows that they were chosen from.

        Args:
            logits: float32 [len(tokens) or more, vocab]; copied.
            tokens: What was chosen.
        """
        if not self._rows.size:
            self._rows = np.empty((CHUNK, logits.shape[1]), np.float32)
            self.opening = float(1 / np.exp(logits[0] - logits[0, tokens[0]]).sum())
        self._tokens += tokens
        at = 0
        while at < len(tokens):
            count = min(len(tokens) - at, CHUNK - self._used)
            self._rows[self._used : self._used + count] = logits[at : at + count]
            self._used += count
            at += count
            if self._used == CHUNK:
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


def features(
    chances: Array, decisions: Sequence[bool], signs: Mapping[str, int]
) -> dict[str, float]:
    """Return what is weighed.

    Args:
        chances: Log-probabilities of the answer's tokens, at least one.
        decisions: For each of them, whether it says what changes (not which line comes next).
        signs: Counts of ``Signs``.

    Returns:
        ``doubt``: the logarithm of minus the log-probability of the whole answer; ``changes``: the
        same of the tokens that say what changes; ``opening``: the log-probability of the first
        token; and the signs.
    """
    return {
        "doubt": doubt(chances),
        "changes": doubt(chances[np.asarray(decisions, bool)]),
        "opening": float(chances[0]),
        **capped(signs),
    }


def capped(signs: Mapping[str, int]) -> dict[str, float]:
    """Return the counts of signs as features."""
    return {name: float(min(count, MAX_OF_A_SIGN)) for name, count in signs.items()}


def weighed(table: Calibration, found: Mapping[str, float]) -> float:
    """Calibrated probability, 0 to 1, that an answer with these features is right."""
    total = table.bias + sum(
        weight * found.get(name, 0.0) for name, weight in table.weights.items()
    )
    return 1 / (1 + math.exp(-min(max(total, -50.0), 50.0)))


class AnswerFacts(Protocol):
    """Facts that a codec derives from the tokens of an answer."""

    def gave_up(self, tokens: Sequence[int]) -> bool:
        """Return whether the answer says that the request is beyond the model."""
        ...

    def features(
        self, chances: Array, tokens: Sequence[int], draft: Sequence[int]
    ) -> dict[str, float]:
        """Return what is weighed beside the signs in the text.

        Args:
            chances: Log-probabilities of the answer's tokens, float32 [tokens], at least one.
            tokens: The answer.
            draft: What it would have been without a change.
        """
        ...


class AnchorReading:
    """Reads answers of the edit codec; an ``AnswerFacts``."""

    def __init__(self, vocab: Vocabulary) -> None:
        self._vocab = vocab

    def gave_up(self, tokens: Sequence[int]) -> bool:
        return self._vocab.end_id in tokens

    def features(
        self, chances: Array, tokens: Sequence[int], draft: Sequence[int]
    ) -> dict[str, float]:
        return features(chances, list(map(self._vocab.decides, tokens)), {})


class EditJudge:
    """Judges one answer while it is written; a ``plan.Judge``."""

    def __init__(
        self,
        request: EditRequest,
        reading: AnswerFacts,
        table: Calibration,
        draft: Sequence[int] = (),
    ) -> None:
        """Judge the answer to a request.

        Args:
            request: The request.
            reading: Reads its tokens.
            table: How what is found is weighed.
            draft: The tokens of an answer that changes nothing.
        """
        self._request = request
        self._reading = reading
        self._table = table
        self._draft = draft
        self._trace = TokenTrace()
        self._tokens: list[int] = []
        self._text = [request.kept]

    def take(self, logits: Array, tokens: Sequence[int], text: str) -> None:
        self._trace.take(logits, tokens)
        self._tokens += tokens
        self._text.append(text)

    @property
    def gave_up(self) -> bool:
        return self._reading.gave_up(self._tokens)

    @property
    def opening(self) -> float:
        return self._trace.opening

    def features(self) -> dict[str, float]:
        """Features of the complete answer, of whose tokens there is at least one."""
        request = self._request
        signs = read_signs(request.asked, request.region, "".join(self._text)).counts
        found = self._reading.features(self._trace.read(), self._tokens, self._draft)
        return found | capped(signs)

    def confidence(self) -> float:
        return weighed(self._table, self.features())
