"""Chooses the next token from one row of logits: greedy, or temperature with top-k, top-p and
min-p.

Every output position uses exactly one random number, drawn in order. A drafted token is accepted
when the choice at its position equals it, which happens with the probability the model gives it;
otherwise the choice stands, and it is distributed as the model's other tokens are. That is
rejection sampling with a draft that is certain of itself (Leviathan et al. 2023, "Fast Inference
from Transformers via Speculative Decoding", with q a point mass), and with a seed the text is the
same whether drafts were used or not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Sampler:
    """Picks tokens for one generation."""

    def __init__(
        self,
        *,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        seed: int | None = None,
    ) -> None:
        self._temperature = temperature
        self._top_p = top_p
        self._top_k = top_k
        self._min_p = min_p
        # Only if needed: creating a generator takes as long as a small run.
        # Seeds of clients are signed, and the generator's are not.
        start = None if seed is None else seed % 2**64
        self._random = None if self.greedy else np.random.Generator(np.random.PCG64(start))

    @property
    def greedy(self) -> bool:
        return self._temperature <= 0

    def pick(self, logits: Array) -> int:
        """Return the next token for float32 logits [vocab]; equal ones go to the lower id."""
        if self._random is None:
            return int(logits.argmax())
        chances = self.probabilities(logits)
        # Inverse transform: always one uniform number.
        total: Array = np.cumsum(chances)
        draw = self._random.random() * float(total[-1])
        return int(np.count_nonzero(total <= draw))

    def probabilities(self, logits: Array) -> Array:
        """Return the float64 distribution [vocab] that ``pick`` draws from (temperature above
        0).
        """
        # The best is 0 first, so that no temperature is too small for the others.
        with np.errstate(over="ignore"):
            scaled = (logits.astype(np.float64) - float(logits.max())) / self._temperature
        if 0 < self._top_k < len(scaled):
            kept = np.argpartition(-scaled, self._top_k - 1)[: self._top_k]
            filtered = np.full_like(scaled, -np.inf)
            filtered[kept] = scaled[kept]
            scaled = filtered
        chances = np.exp(scaled - scaled.max())
        chances /= chances.sum()
        if self._top_p < 1:
            order = np.argsort(-chances, kind="stable")
            before = np.cumsum(chances[order]) - chances[order]
            # The token that crosses the threshold stays; so does the likeliest, whatever it is.
            beyond = before >= self._top_p
            beyond[0] = False
            chances[order[beyond]] = 0
        if self._min_p > 0:
            chances[chances < self._min_p * chances.max()] = 0
        return chances / chances.sum()
