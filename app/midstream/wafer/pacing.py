"""Pacing: when a token may be shown, so that the simulated speed can be experienced.

A ``Pacer`` is pure: it is given the wall time and how many tokens exist, and answers how many
to show.  ``off`` shows everything at once; ``wafer`` and ``gpu`` release tokens at the simulated
rate.  If the computing machine is slower than that, tokens are shown as they come and the label
says by what factor they are late; with ``replay`` they are buffered and shown at the simulated
speed afterwards.

Only here do two clocks meet: ``now`` is wall time, the schedule is simulated time laid over it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from midstream.wafer.errors import WaferUsageError
from midstream.wafer.quantity import compact

PaceMode = Literal["off", "wafer", "gpu"]
PACE_MODES: tuple[PaceMode, ...] = ("off", "wafer", "gpu")

LATE_TOLERANCE = 1.05
"""Up to this factor behind the schedule still counts as being at speed."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A simulated schedule.

    Attributes:
        mode: What it imitates.
        seconds_per_step: Time between emissions.
        first_seconds: Time until the first emission.
        burst: Tokens per emission, repeating (speculation emits unevenly).
        name: What is imitated, for labels.
    """

    mode: PaceMode
    seconds_per_step: float = 0.0
    first_seconds: float = 0.0
    burst: tuple[int, ...] = (1,)
    name: str = ""

    def __post_init__(self) -> None:
        if self.mode not in PACE_MODES:
            raise WaferUsageError(f"Pacing '{self.mode}' is unknown; use {', '.join(PACE_MODES)}.")
        if self.mode != "off" and (
            self.seconds_per_step <= 0
            or self.first_seconds < 0
            or not self.burst
            or min(self.burst) < 1
        ):
            raise WaferUsageError(
                "Pacing needs a positive time per step and bursts of at least one token."
            )

    @classmethod
    def at_rate(cls, mode: PaceMode, tokens_per_second: float, name: str = "") -> Pace:
        """One token at a time at a simulated rate, the first one a step after the start."""
        if tokens_per_second <= 0:
            raise WaferUsageError("Pacing needs a positive rate.")
        seconds = 1.0 / tokens_per_second
        return cls(mode, seconds, first_seconds=seconds, name=name)

    @property
    def tokens_per_second(self) -> float:
        """Average simulated rate."""
        return sum(self.burst) / (len(self.burst) * self.seconds_per_step)

    def due(self, token: int) -> float:
        """Simulated seconds from the start until token ``token`` (0-based) is out."""
        cycle = sum(self.burst)
        steps, rest = divmod(token, cycle)
        steps *= len(self.burst)
        for size in self.burst:
            if rest < size:
                break
            rest -= size
            steps += 1
        return self.first_seconds + steps * self.seconds_per_step

    def released(self, elapsed: float) -> int:
        """Tokens that are out after ``elapsed`` simulated seconds."""
        if elapsed < self.first_seconds:
            return 0
        emissions = int((elapsed - self.first_seconds) / self.seconds_per_step + 1e-9) + 1
        cycles, rest = divmod(emissions, len(self.burst))
        return cycles * sum(self.burst) + sum(self.burst[:rest])


OFF = Pace("off")


@dataclass(slots=True)
class Pacer:
    """Applies a ``Pace`` to one stream of tokens.

    Call ``produced`` whenever tokens arrive, ``finished`` at the end, and ``visible``
    whenever the screen may change; ``next_at`` says when to ask again.
    """

    pace: Pace
    started_at: float
    replay: bool = False
    total: int = 0
    shown: int = 0
    done: bool = False
    _replay_from: float | None = field(default=None, init=False)
    _late_by: float = field(default=1.0, init=False)

    def produced(self, now: float, tokens: int) -> None:
        """``tokens`` more tokens exist at wall time ``now``."""
        if tokens < 0:
            raise WaferUsageError("Pacing counts new tokens; the number cannot be negative.")
        self.total += tokens
        if self.pace.mode != "off" and self.total > 0:
            due = self.pace.due(self.total - 1)
            elapsed = now - self.started_at
            self._late_by = elapsed / due if due > 0 else 1.0

    def finished(self, now: float) -> None:
        """No more tokens will come; a replay may begin."""
        self.done = True
        if self.replay and self._replay_from is None:
            self._replay_from = now

    def visible(self, now: float) -> int:
        """How many tokens may be seen at wall time ``now``; never falls."""
        self.shown = max(self.shown, min(self.total, self._allowed(now)))
        return self.shown

    def _allowed(self, now: float) -> int:
        if self.pace.mode == "off":
            return self.total
        if self.replay:
            return 0 if self._replay_from is None else self.pace.released(now - self._replay_from)
        return self.pace.released(now - self.started_at)

    def next_at(self, now: float) -> float | None:
        """Wall time at which the next existing token may be shown, or None."""
        if self.visible(now) >= self.total:
            return None
        if self.replay:
            return (
                None if self._replay_from is None else self._replay_from + self.pace.due(self.shown)
            )
        return self.started_at + self.pace.due(self.shown)

    @property
    def slower_by(self) -> float:
        """By what factor tokens come slower than on the simulated machine; at least 1."""
        return max(1.0, self._late_by)

    def label(self) -> str:
        """What to show beside the text; empty without pacing."""
        if self.pace.mode == "off":
            return ""
        what = self.pace.name or ("wafer" if self.pace.mode == "wafer" else "GPU")
        rate = f"{compact(self.pace.tokens_per_second)} tok/s simulated"
        if self.replay:
            return (
                f"replayed at {what} speed ({rate})"
                if self.done
                else f"buffering for a replay at {what} speed"
            )
        if self.slower_by > LATE_TOLERANCE:
            return f"{self.slower_by:.1f}x slower than the {what} ({rate})"
        return f"at {what} speed ({rate})"
