"""How many tokens to draft: what one more row of a run costs, as measured, against how often drafts
turned out right.
"""

from __future__ import annotations

STEP = 0.05
"""A measurement moves what is known by this share of it at most, once there were many: so it comes
to rest at the median, and runs that other work on the machine made late weigh no more than others.
"""

FORGETTING = 0.6
"""Weight of earlier drafts against the newest one: edits go from copied to new text abruptly."""

LEAST_SHARE = 0.01
"""No row is quite for nothing."""

FREE_ROWS = 2
"""Rows that a run has anyway where drafting may be used (see `decoder.Decoder.run`)."""


class RowCost:
    """What one more row adds to a run of the fewest rows, as a share of it.

    Where products take rows one or two at a time, a row of small weights, which are computed with
    and not waited for, costs a good part of a step more. Integer products take many rows in the
    time of a few; and of large weights the reading takes the time.
    """

    def __init__(self, share: float = 0.15) -> None:
        """Start with a guess."""
        self._share = _Typical(share)
        self._narrow = _Typical(0.0)

    @property
    def share(self) -> float:
        """What is known by now."""
        return self._share.value

    def note(self, rows: int, seconds: float) -> None:
        """Take note of a run that returned logits."""
        if rows <= FREE_ROWS:
            self._narrow.note(seconds)
        elif self._narrow.value:
            share = (seconds / self._narrow.value - 1) / (rows - FREE_ROWS)
            self._share.note(max(LEAST_SHARE, share))


class _Typical:
    """A running median of positive numbers, which follows them where they drift."""

    def __init__(self, value: float) -> None:
        self.value = value
        self._count = 0

    def note(self, measured: float) -> None:
        self._count += 1
        step = 1 + max(STEP, 1 / self._count)
        known = self.value or measured
        self.value = min(max(measured, known / step), known * step)


class Pace:
    """Chooses how many tokens to draft, for one generation.

    With every drafted token right with chance q, independently, n of them give 1 + q + ... + q^n
    tokens (Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding"); the
    n is taken that gives the most per time.
    """

    def __init__(self, cost: RowCost, most: int) -> None:
        """Draft at most `most` tokens; start as if three of four had been right."""
        self._cost = cost
        self._most = most
        self._right, self._wrong = 3.0, 1.0

    def length(self, given: int = 1) -> int:
        """Return how many tokens to draft next, behind so many that are known."""
        chance = self._right / (self._right + self._wrong)
        share = self._cost.share
        best, length = 0.0, 1
        tokens = whole = 1.0
        for count in range(1, self._most + 1):
            whole *= chance
            tokens += whole
            rows = count + given
            if rows % 2:
                # Rows run by twos: the next token costs nothing more.
                continue
            rate = tokens / (1 + share * (rows - FREE_ROWS))
            if rate < best:
                # It only falls from here on.
                break
            best, length = rate, count
        return length

    def learn(self, proposed: int, accepted: int) -> None:
        """Take note of a verification."""
        if proposed:
            self._right = FORGETTING * self._right + accepted
            self._wrong = FORGETTING * self._wrong + (accepted < proposed)
