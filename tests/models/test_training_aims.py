"""The table of aims: every figure is read from the report that is shipped, and judged."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

from models.training.aims import AIMS, table

REPORT = json.loads(
    (Path(__file__).parents[2] / "models" / "brook-4m" / "evaluation.json").read_text()
)


def test_every_aim_has_its_row_with_the_measured_figures() -> None:
    rows = table(REPORT).splitlines()
    assert len(rows) == len(AIMS) + 1
    assert f"{REPORT['groups']['next edit']['known']} %" in next(r for r in rows if "next" in r)


def test_what_is_short_of_its_aim_is_marked() -> None:
    report = deepcopy(REPORT)
    report["sets"]["eval_known"]["parses"] = 98.9
    report["sets"]["eval_new"]["parses"] = 99.0
    report["sets"]["eval_known"]["exact_match"] = 90.0
    report["sets"]["eval_new"]["exact_match"] = 74.9
    rows = table(report).splitlines()
    assert "| result parses | 99 % | *98.9 %* | 99.0 % |" in rows
    assert rows[-1].endswith("| *15.1* |")
