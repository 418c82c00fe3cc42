"""`midstream bench wire` measures everything it promises."""

from __future__ import annotations

import json

import pytest

from midstream.bench.wire import run
from midstream.bench.wire_report import Report, TurnFigures, print_report


def test_the_wire_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--quick", "--json", "--rtt", "10", "--no-model"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["stale_events"] == 0
    assert set(report["turns"]) == {"0", "10"}
    for kinds in report["turns"].values():
        assert set(kinds) == {"persistent", "new WebSocket", "HTTP + SSE", "kept HTTP"}
        assert all(figure > 0 for figures in kinds.values() for figure in figures.values())
    assert report["turns"]["10"]["persistent"]["first_text_ms"] >= 10
    assert report["turns"]["10"]["HTTP + SSE"]["first_text_ms"] >= 20, "a handshake comes on top"
    kept = report["turns"]["10"]["kept HTTP"]["first_text_ms"]
    assert 10 <= kept < report["turns"]["10"]["HTTP + SSE"]["first_text_ms"]
    for name in ("interrupt_ms", "redirect_ms", "events_per_second", "joined_tokens_per_second"):
        assert report[name] > 0
    assert report["crowd"]["spread"] >= 1
    assert (report["ray"], report["ray_left_out"]) == (None, "as was asked")
    print_report(Report(turns={rtt: figures(kinds) for rtt, kinds in report["turns"].items()}))
    printed = capsys.readouterr().out
    assert "OpenAI's claim -80 %" in printed


def figures(kinds: dict[str, dict[str, float]]) -> dict[str, TurnFigures]:
    return {name: TurnFigures(**values) for name, values in kinds.items()}
