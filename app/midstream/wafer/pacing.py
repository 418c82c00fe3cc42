"""Pacing: when a token is due, so that the simulated speed can be experienced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from midstream.wafer.errors import WaferUsageError

PaceMode = Literal["wafer", "gpu"]

LATE_TOLERANCE = 1.05
"""Up to this factor behind the schedule still counts as being at speed."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A simulated schedule.

    Attributes:
        mode: What it imitates.
        seconds_per_token: Time between two tokens.
        first_seconds: Time until the first one.
    """

    mode: PaceMode
    seconds_per_token: float
    first_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.seconds_per_token <= 0 or self.first_seconds < 0:
            raise WaferUsageError("Pacing needs a positive time per token.")

    @property
    def tokens_per_second(self) -> float:
        """Average simulated rate."""
        return 1 / self.seconds_per_token

    def due(self, token: int) -> float:
        """Simulated seconds from the start until token ``token`` (0-based) is out."""
        return self.first_seconds + token * self.seconds_per_token
