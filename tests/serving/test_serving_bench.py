"""`midstream bench wire` measures everything it promises."""

from __future__ import annotations

import json

import pytest

from midstream.bench.wire import run


def test_the_wire_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--quick", "--json", "--rtt", "10", "--no-model"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["stale_events"] == 0
    assert set(report["turns"]) == {"0", "10"}
    for kinds in report["turns"].values():
        assert set(kinds) == {"persistent", "new WebSocket", "HTTP + SSE"}
    assert report["turns"]["10"]["persistent"]["first_text_ms"] >= 10
    assert report["turns"]["10"]["HTTP + SSE"]["first_text_ms"] >= 20, "a handshake comes on top"
    for name in ("interrupt_ms", "redirect_ms", "events_per_second", "joined_tokens_per_second"):
        assert report[name] > 0
    assert report["served_spread"] >= 1
