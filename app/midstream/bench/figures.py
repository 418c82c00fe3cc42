"""Figures that the benchmarks report, beside their targets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import quantiles
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One measured figure beside its target."""

    name: str
    value: float
    unit: str
    target: str
    met: bool


def percentile(values: Sequence[float], percent: int) -> float:
    """The value below which ``percent`` of the values lie, interpolated; 0 without values."""
    if len(values) < 2:
        return float(next(iter(values), 0.0))
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def at_most(name: str, value: float, unit: str, goal: float) -> Figure:
    """A figure that should not exceed ``goal``."""
    return Figure(name, value, unit, f"<= {goal:g}", value <= goal)


def at_least(name: str, value: float, unit: str, goal: float) -> Figure:
    """A figure that should reach ``goal``."""
    return Figure(name, value, unit, f">= {goal:g}", value >= goal)


def beside(name: str, value: float, unit: str) -> Figure:
    """A figure to compare others with, which has no target itself."""
    return Figure(name, value, unit, "", True)


def print_figures(figures: Sequence[Figure], *, as_json: bool, **more: Any) -> int:
    """Print figures as a table or as one JSON object with ``more`` in it; 1 if a target is
    missed.
    """
    if as_json:
        print(json.dumps({**more, "figures": [asdict(figure) for figure in figures]}, indent=1))
    else:
        width = max((len(figure.name) for figure in figures), default=0)
        for f in figures:
            mark = ("met" if f.met else "MISSED") if f.target else "for comparison"
            print(f"{f.name:<{width}}  {f.value:>10,.2f} {f.unit:<12} {f.target:<8} {mark}")
    return int(not all(figure.met for figure in figures))
