"""The guess of what a GPU run adds, from the ends of the phases."""

from __future__ import annotations

from typing import Any

from models.training.expected import ends_of_phases, extrapolated, told


def point(tokens: float, known: float, new: float, *, end: bool) -> dict[str, Any]:
    return {"tokens": tokens, "known": known, "new": new, "end": end}


CURVE = [
    point(4e7, 40.0, 30.0, end=False),
    point(8e7, 60.0, 50.0, end=True),
    point(1.2e8, 70.0, 55.0, end=False),
    point(1.6e8, 80.0, 60.0, end=True),
]


def test_only_the_ends_of_phases_count() -> None:
    assert [row["tokens"] for row in ends_of_phases(CURVE)] == [8e7, 1.6e8]


def test_errors_fall_with_the_power_that_the_ends_show() -> None:
    low, high = extrapolated(CURVE, "known")
    # Half the errors for twice the tokens; ten times as many tokens leave a tenth of them.
    assert round(high, 6) == 98.0
    assert 80.0 < low < high


def test_it_is_told_as_a_guess() -> None:
    text = told(CURVE)
    assert "nothing of it was measured" in text
    assert "80 M (60.0 % / 50.0 %), 160 M (80.0 % / 60.0 %)" in text


def test_one_phase_tells_nothing() -> None:
    assert told(CURVE[:2]) == ""
