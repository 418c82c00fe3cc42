"""The card of a model folder: written from reports, and again from what it was written from."""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from models.training import card, evaluate
from models.training.items import Item
from models.training.regression import with_section

BEFORE = "def half(item):\n    return item / 2\n"


@pytest.fixture
def folder(copyist: Path, tmp_path: Path) -> Path:
    """A calibrated folder with a report, shards and sources beside it."""
    made = tmp_path / "river"
    shutil.copytree(copyist, made)
    facts = made / "midstream.toml"
    calibration = {"threshold": 0.5, "bias": 3.0, "weights": {"mean": 0.1}}
    text = with_section(facts.read_text("utf-8"), calibration)
    if "card" not in tomllib.loads(text):
        text += "\n[card]\nparameters = 2_000_000\n"
    facts.write_text(text, "utf-8")
    after = BEFORE.replace("item", "entry")
    items = [
        Item("1", "rename", "", BEFORE, "rename `item` to `entry`", (after,), False),
        Item("2", "rename", "", BEFORE, "rename `half` to `third`", (after,), False),
    ]
    rows = evaluate.answers(made, items, "python", 1)
    report = {"river hand": {"figures": evaluate.figures(rows), "rows": rows}}
    (tmp_path / "report.json").write_text(json.dumps(report))
    (tmp_path / "shards").mkdir()
    row = {"region": "x = 1\n", "edits": [["kind", "two", "1|x = 2\n"]] * 3}
    (tmp_path / "shards" / "wishes-a.jsonl").write_text(json.dumps(row) + "\n")
    package = {"package": "attrs", "licence": "MIT", "split": "train", "snippets": 7}
    (tmp_path / "sources.json").write_text(json.dumps([package]))
    return made


def written(monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> str:
    monkeypatch.setattr(sys, "argv", ["card", str(folder), *options])
    card.main()
    return (folder / "MODEL_CARD.md").read_text("utf-8")


def test_a_card_tells_what_was_measured(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = folder.parent
    text = written(
        monkeypatch,
        folder,
        *("--reports", str(beside / "report.json"), "--shards", str(beside / "shards")),
        *("--sources", str(beside / "sources.json")),
    )
    found = json.loads((folder / "evaluation.json").read_text())
    assert found["sets"]["hand"]["right"] == 1
    assert found["sets"]["hand"]["by_confidence"]["0.8"] == "1 of 2"
    assert "| by hand | 2 | 1 (50 %) | 0 | 0 of 0 | 2 | 1 |" in text
    assert "| wishes | 1 | 3 |" in text
    assert "| attrs | MIT | 7 |" in text
    assert "| twisted/twisted | MIT | 784 |" in text
    assert "{" not in text
    assert "83 of 107" in text, "the README has what other weights reached"
    assert written(monkeypatch, folder) == text


def test_what_was_trained_on_must_be_said_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="--shards"):
        written(monkeypatch, folder, "--reports", str(folder.parent / "report.json"))
