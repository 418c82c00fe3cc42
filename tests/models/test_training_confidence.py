"""Calibration of how sure a model may be: the fit, the threshold, and what is written of it."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import numpy as np
import pytest

from midstream.engine.confidence import weighed
from models.training.confidence import (
    FALSE_ALARMS,
    FREE,
    Case,
    calibrate,
    measured,
    outside,
    reworded,
    told,
)
from models.training.regression import (
    RIGHT_UNFLAGGED,
    area,
    expected_from,
    fitted,
    trusted_from,
    with_section,
)

GROUPS = ("known", "new", "other")


def made_up(count: int = 3000) -> list[Case]:
    """Answers that are right with a probability that two of their three features set."""
    rng = np.random.default_rng(4)
    cases: list[Case] = []
    for number in range(count):
        doubt, broken, idle = rng.normal(), float(rng.random() < 0.2), rng.normal()
        chance = 1 / (1 + np.exp(-(1.0 - 2.0 * doubt - 3.0 * broken)))
        cases.append(
            Case(
                GROUPS[number % 3],
                f"package-{number % 7}",
                bool(rng.random() < chance),
                number % 10 > 0,
                {"doubt": doubt, "broken": broken, "idle": idle},
            )
        )
    return cases


def test_the_fit_finds_the_weights_that_the_answers_were_made_with() -> None:
    changed = [case for case in made_up(12_000) if case.changed]
    table = calibrate(changed).table
    assert table.bias == pytest.approx(1.0, abs=0.15)
    assert table.weights["doubt"] == pytest.approx(-2.0, abs=0.2)
    assert table.weights["broken"] == pytest.approx(-3.0, abs=0.3)
    assert table.weights["idle"] == pytest.approx(0.0, abs=0.1)
    chances = np.array([weighed(table, case.found) for case in changed])
    right = np.array([case.right for case in changed])
    for low, high in ((0.0, 0.2), (0.4, 0.6), (0.8, 1.0)):
        inside = (chances >= low) & (chances < high)
        assert chances[inside].mean() == pytest.approx(right[inside].mean(), abs=0.05)


def test_a_ridge_keeps_weights_finite_where_a_feature_decides_all() -> None:
    inputs = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    weights = fitted(inputs, np.array([0.0, 0.0, 1.0, 1.0]))
    assert np.isfinite(weights).all()
    assert weights[1] > 0


def test_the_threshold_flags_no_more_right_answers_than_it_may() -> None:
    cases = made_up()
    report = measured(cases, calibrate([case for case in cases if case.changed]))
    shares = [report["sets"][name]["right_flagged"] for name in ("known", "new")]
    assert max(shares) == pytest.approx(100 * FALSE_ALARMS, abs=0.5)
    assert report["sets"]["new"]["wrong_flagged"] > 40
    assert report["sets"]["known"]["left_alone"] == pytest.approx(10, abs=1)
    assert all(name in told(report) for name in GROUPS)


def test_free_words_may_need_a_higher_threshold() -> None:
    free = [replace(case, group=FREE[0]) for case in made_up() if case.changed]
    cases = [case for case in made_up() if case.changed]
    without, with_free = calibrate(cases).table, calibrate([*cases, *free])
    assert with_free.table.threshold > without.threshold
    chances = with_free.chances[len(cases) :]
    right = np.array([case.right for case in free], float)
    high = chances >= trusted_from(chances, right)
    good, bad = right[high].sum() / right.sum(), (1 - right)[high].sum() / (1 - right).sum()
    assert good / (good + bad) == pytest.approx(RIGHT_UNFLAGGED, abs=0.01)
    assert trusted_from(chances, np.ones(len(free))) == 0.0


def test_a_threshold_that_calibrated_chances_promise() -> None:
    rng = np.random.default_rng(5)
    chances = rng.beta(0.6, 1.4, 20_000)
    right = (rng.random(len(chances)) < chances).astype(float)
    high = chances >= expected_from(chances, float(right.mean()))
    good, bad = right[high].sum() / right.sum(), (1 - right)[high].sum() / (1 - right).sum()
    assert good / (good + bad) == pytest.approx(RIGHT_UNFLAGGED, abs=0.01)
    assert expected_from(np.array([0.1, 0.2]), 0.5) == 0.2


def test_the_area_is_how_often_a_right_answer_stands_above_a_wrong_one() -> None:
    rng = np.random.default_rng(2)
    chances = rng.integers(0, 20, 300) / 20  # many are equal
    right = (rng.random(300) < chances).astype(float)
    good, bad = chances[right > 0], chances[right == 0]
    pairs = [(a > b) + 0.5 * (a == b) for a in good for b in bad]
    assert area(chances, right) == pytest.approx(np.mean(pairs))


def test_too_little_to_calibrate_on() -> None:
    with pytest.raises(SystemExit, match="too little"):
        calibrate(made_up(50))
    with pytest.raises(SystemExit, match="too little"):
        calibrate([case for case in made_up() if case.right])


@pytest.mark.parametrize(
    "text",
    [
        'name = "m"\n\n[codec]\nlines = 64\n\n[card]\nparameters = 3\n',
        'name = "m"\n\n[codec]\nlines = 64\n',
    ],
)
def test_a_section_replaces_the_one_before(text: str) -> None:
    report = {"threshold": 0.6, "bias": 1.5, "weights": {"doubt": -1.0, "broken": -2.5}}
    once = with_section(text, report)
    found = tomllib.loads(once)
    assert found.pop("confidence") == report
    assert found == tomllib.loads(text)
    assert with_section(once, report) == once
    other = with_section(once, report | {"threshold": 0.7})
    assert tomllib.loads(other)["confidence"]["threshold"] == 0.7
    assert other.count("[confidence]") == 1


def test_requests_that_are_outside_and_reworded() -> None:
    text = (
        "def load(self, path, limit=None):\n    data = read(path)\n    check(data)\n    return 1\n"
    )
    rows = [{"package": "p", "text": text}, {"package": "p", "text": "x = 1\n"}]
    made = outside(rows, 1)
    assert len(made) > 80
    assert all(region == text for _, _, region in made)
    assert not any("{" in words for _, words, _ in made)
    assert any("path" in words or "limit" in words for _, words, _ in made)
    again = reworded([{"instruction": "rename a to b.", "target": "t"}], 5)
    assert len(again) == 1
    assert again[0]["target"] == "t"
    assert "rename a to b" in again[0]["instruction"]
    assert again[0]["instruction"] != "rename a to b."
