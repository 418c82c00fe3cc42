"""What the benches report: a measured figure beside its target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured figure beside its target."""

    name: str
    value: float
    unit: str
    target: str
    met: bool
