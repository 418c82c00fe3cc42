"""Calibration of the model that rewrites regions: what it is fitted on, and what is written."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from midstream.engine.confidence import weighed
from midstream.engine.folder import Calibration
from models.training.rewriting import confidence
from models.training.rewriting.confidence import KEYS, USED, digest, fit, taken, wished

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
