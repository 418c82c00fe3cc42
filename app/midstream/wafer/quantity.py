"""Numbers that remember where they come from, and bands instead of bare points.

``Trust`` says how good a *source* is (vendor, independent, press, derived).  ``Mark`` says what a
*result* rests on: a specification, a calibration on published rows, or an assumption.  A result is
as weak as its weakest ingredient (``weakest``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

Trust = Literal["P", "A", "S", "D"]
"""P primary (vendor, paper, code, measurement), A independent, S secondary or press, D derived
here.
"""

Mark = Literal["spec", "calibrated", "assumed"]
"""What a simulated number rests on."""

MARKS: tuple[Mark, ...] = ("spec", "calibrated", "assumed")
"""The marks, from firm to weak."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number with its unit, trust mark and source."""

    value: float
    unit: str
    trust: Trust
    source: str

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Band:
    """A simulated value as an interval: ``low <= mid <= high``, in one unit.

    Bands are multiplicative, since what is uncertain (kernel software, clock, speculation) scales a
    rate.
    """

    low: float
    mid: float
    high: float
    unit: str
    mark: Mark

    @classmethod
    def around(cls, mid: float, factor: float, unit: str, mark: Mark) -> Band:
        """The band ``mid / factor .. mid * factor``; ``factor`` is at least 1."""
        return cls(mid / factor, mid, mid * factor, unit, mark)

    def contains(self, value: float) -> bool:
        """Whether ``value`` lies in the closed interval."""
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        """Ratio of the upper to the lower end."""
        return self.high / self.low if self.low > 0 else float("inf")

    def scaled(self, factor: float, unit: str | None = None) -> Band:
        """The band times a positive factor, optionally in another unit."""
        low, mid, high = (value * factor for value in (self.low, self.mid, self.high))
        return Band(low, mid, high, unit or self.unit, self.mark)

    def inverted(self, numerator: float, unit: str) -> Band:
        """``numerator / value`` as a band: a rate from a time or a time from a rate."""
        return Band(
            numerator / self.high, numerator / self.mid, numerator / self.low, unit, self.mark
        )

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "simulated": True}

    def text(self) -> str:
        """Short form for people, for example ``1,900 tok/s [940-2,700] (assumed)``."""
        return (
            f"{compact(self.mid)} {self.unit} [{compact(self.low)}-{compact(self.high)}]"
            f" ({self.mark})"
        )


def weakest(marks: Iterable[Mark]) -> Mark:
    """The weakest of several marks; ``spec`` when there are none."""
    found: list[Mark] = ["spec", *marks]
    return max(found, key=MARKS.index)


def compact(value: float) -> str:
    """About three significant figures, with thousands separators, never scientific above 0.001."""
    magnitude = abs(value)
    if magnitude >= 100:
        return f"{value:,.0f}"
    if magnitude >= 10:
        return f"{value:.1f}"
    if magnitude >= 0.1 or magnitude == 0:
        return f"{value:.2f}"
    return f"{value:.3g}"
