"""``midstream bench guard`` measures what it says, on little."""

from __future__ import annotations

import json

import pytest

from midstream.bench.guard import run


@pytest.mark.system
def test_figures(capsys: pytest.CaptureFixture[str]) -> None:
    run(["--files", "12", "--regions", "1", "--json"])
    figures = {f["name"]: f for f in json.loads(capsys.readouterr().out)["figures"]}
    assert figures["random line prefixes that parse after repair"]["value"] == 100
    assert figures["secrets found of 102 synthetic lines"]["value"] >= 90
    assert figures["line to verdict p50, 3,000-line files"]["value"] > 0
    assert figures["memory of the ruff child"]["value"] > 0
    assert len(figures) == 12
