"""Calibration: what it is fitted on, what it finds, and what is written."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from midstream.engine.confidence import weighed
from midstream.engine.folder import Calibration
from models.training import confidence
from models.training.confidence import (
    KEYS,
    USED,
    digest,
    fit,
    outside,
    reworded,
    taken,
    wished,
)
from models.training.regression import (
    RIGHT_UNFLAGGED,
    area,
    expected_from,
    fitted,
    with_section,
)

WISHES = """\
%%python
def half(x):
    return x / 2
> integers | whole numbers
2|    return x // 2
> of zero it is zero
=
"""


def answers(count: int = 600) -> list[dict[str, Any]]:
    """Answers that are the likelier right the less they are doubted."""
    rng = np.random.default_rng(3)
    rows: list[dict[str, Any]] = []
    for number in range(count):
        doubt = float(rng.normal())
        rows.append(
            {
                "before": f"x = {number // 3}\n",
                "instruction": "two",
                "text": f"x = {number}\n",
                "changed": number % 10 > 0,
                "right": bool(rng.random() < 1 / (1 + np.exp(3 * doubt))),
                "features": dict.fromkeys(USED, 0.0) | {"doubt": doubt},
            }
        )
    return rows


def test_the_fit_is_written_into_the_folder(tmp_path: Path) -> None:
    (tmp_path / "midstream.toml").write_text('name = "m"\n\n[card]\nparameters = 3\n')
    rows = answers()
    lines = fit({"m apart": {"rows": rows}, "m hand": {"rows": rows[:100]}}, tmp_path)
    card = tomllib.loads((tmp_path / "midstream.toml").read_text())
    assert json.loads(lines[0]) == card["confidence"]
    table = Calibration(**card["confidence"])
    assert table.weights["doubt"] == pytest.approx(-3, abs=1)
    used = [row for row in rows if row["changed"]]
    sure = [row for row in used if weighed(table, row["features"]) >= table.threshold]
    good = sum(row["right"] for row in sure) / sum(row["right"] for row in used)
    bad = sum(not row["right"] for row in sure) / sum(not row["right"] for row in used)
    assert good / (good + bad) == pytest.approx(0.85, abs=0.03)
    assert any(line.startswith("hand: 90 answers") for line in lines)
    hand = confidence.sets_of({"m hand": {"rows": rows[:100]}})
    assert list(confidence.tell(hand, table)) == lines[-len(list(confidence.tell(hand, table))) :]


def test_an_answer_that_was_read_and_found_right_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = answers(20)
    wrong = next(row for row in rows if row["changed"] and not row["right"])
    known = frozenset([digest(*(wrong[key] for key in KEYS))])
    monkeypatch.setattr(confidence, "accepted", lambda: known)
    before = sum(row["right"] for row in rows if row["changed"])
    assert sum(row["right"] for row in taken(rows)) == before + 1


def test_too_little_to_fit_on(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no set apart"):
        fit({"m hand": {"rows": answers(20)}}, None)
    with pytest.raises(SystemExit, match="too few"):
        fit({"m apart": {"rows": answers(20)}}, None)


def test_a_wish_is_asked_in_one_of_its_wordings(tmp_path: Path) -> None:
    path = tmp_path / "wishes.txt"
    path.write_text(WISHES)
    rows = {row["instruction"]: row for row in wished([path], {}, 5)}
    assert len(rows) == 2
    assert rows["of zero it is zero"]["target"] is None
    (asked,) = rows.keys() - {"of zero it is zero"}
    assert asked in ("integers", "whole numbers")
    assert rows[asked]["target"] == "def half(x):\n    return x // 2\n"
    assert rows[asked]["language"] == "python"


def test_a_ridge_keeps_weights_finite_where_a_feature_decides_all() -> None:
    inputs = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    weights = fitted(inputs, np.array([0.0, 0.0, 1.0, 1.0]))
    assert np.isfinite(weights).all()
    assert weights[1] > 0


def test_a_threshold_that_calibrated_chances_promise() -> None:
    rng = np.random.default_rng(5)
    chances = rng.beta(0.6, 1.4, 20_000)
    right = (rng.random(len(chances)) < chances).astype(float)
    high = chances >= expected_from(chances)
    assert right[high].mean() == pytest.approx(RIGHT_UNFLAGGED, abs=0.03)
    assert expected_from(np.array([0.1, 0.2])) == 0.2


def test_the_area_is_how_often_a_right_answer_stands_above_a_wrong_one() -> None:
    rng = np.random.default_rng(2)
    chances = rng.integers(0, 20, 300) / 20  # many are equal
    right = (rng.random(300) < chances).astype(float)
    good, bad = chances[right > 0], chances[right == 0]
    pairs = [(a > b) + 0.5 * (a == b) for a in good for b in bad]
    assert area(chances, right) == pytest.approx(np.mean(pairs))


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
    made = outside(rows)
    assert len(made) > 80
    assert all(row["region"] == text and row["target"] is None for row in made)
    asked = [row["instruction"] for row in made]
    assert not any("{" in words for words in asked)
    assert any("path" in words or "limit" in words for words in asked)
    again = reworded([{"instruction": "rename a to b.", "target": "t"}], 5)
    assert len(again) == 1
    assert again[0]["target"] == "t"
    assert "rename a to b" in again[0]["instruction"]
    assert again[0]["instruction"] != "rename a to b."
