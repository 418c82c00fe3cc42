"""Where the drawn token is: one sweep over the stages stands for many tokens that really came.

A simulated token passes the wafer in well under a millisecond and a thousand come each second, so
not every one can be drawn.  The drawn one moves exactly as far as tokens arrive, and stands still
when none do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from midstream.pairing.meter import Meter
    from midstream.pairing.simulating import Simulated

SWEEP_S: Final = 1.0
"""A sweep takes at least about this many seconds."""


class Sweep:
    """The position of the drawn token.

    Attributes:
        tokens_per_sweep: Tokens that one sweep stands for, a power of two.
    """

    def __init__(self) -> None:
        self.tokens_per_sweep = 1
        self._share = 0.0
        self._seen: int | None = None

    def advance(self, simulated: Simulated, meter: Meter) -> tuple[int | None, frozenset[int]]:
        """Move on by the tokens that came since the last call.

        Returns:
            The item that works now (``None`` on the way between two), and those that were passed.
        """
        tokens = meter.output_tokens
        came = 0 if self._seen is None else max(0, tokens - self._seen)
        self._seen = tokens
        wanted = max(1.0, (meter.turn_rate or 1.0) * SWEEP_S)
        self.tokens_per_sweep = 1 << (int(wanted) - 1).bit_length()
        before = self._share
        self._share = (before + came / self.tokens_per_sweep) % 1.0
        items = simulated.stage_items
        first, last = (int(share * len(items)) for share in (before, self._share))
        passed = frozenset(items[first:last]) if last >= first else frozenset(items[:last])
        return simulated.working_item(self._share), passed
