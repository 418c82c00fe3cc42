"""`midstream bench wire` measures everything it promises."""

from __future__ import annotations

import json

import pytest

from midstream.bench.wire import (
    CrowdFigures,
    TurnFigures,
    TurnSamples,
    WireReport,
    print_report,
    run,
)

pytestmark = pytest.mark.system


def test_the_wire_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--quick", "--json", "--rtt", "10"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["stale_events"] == 0
    assert set(report["turns"]) == {"0", "10"}
    for kinds in report["turns"].values():
        assert set(kinds) == {"persistent", "new WebSocket", "HTTP + SSE", "kept HTTP"}
        for figures in kinds.values():
            savings = figures.pop("savings")
            assert set(savings) == {"round_trip_ms", "first_text_ms", "per_token_us"}
            assert all(figure > 0 for figure in figures.values())
            figures["savings"] = savings
        assert set(kinds["HTTP + SSE"]["savings"].values()) == {0}
    assert report["turns"]["10"]["persistent"]["first_text_ms"] >= 10
    assert report["turns"]["10"]["HTTP + SSE"]["first_text_ms"] >= 20, "a handshake comes on top"
    kept = report["turns"]["10"]["kept HTTP"]["first_text_ms"]
    assert 10 <= kept < report["turns"]["10"]["HTTP + SSE"]["first_text_ms"]
    for name in ("interrupt_ms", "redirect_ms", "events_per_second", "joined_tokens_per_second"):
        assert report[name] > 0
    assert report["crowd"]["spread"] >= 1
    assert report["turns"]["10"]["persistent"]["savings"]["round_trip_ms"] < 0
    again = WireReport(
        turns={
            rtt: {name: TurnFigures(**figures) for name, figures in kinds.items()}
            for rtt, kinds in report["turns"].items()
        },
        crowd=CrowdFigures(**report["crowd"]),
    )
    print_report(again)
    printed = capsys.readouterr().out
    assert "round trip          -" in printed
    assert "8 clients: " in printed
    assert "queue wait p50" in printed
    assert "(fair)" in printed


def test_an_owner_with_a_fraction_of_the_turns_starves() -> None:
    assert not CrowdFigures(64, 600, 1, 2, 1, 2, spread=1.3).starved
    assert CrowdFigures(64, 600, 1, 2, 1, 2, spread=9.0).starved


def test_savings_are_of_neighbours_and_not_of_medians() -> None:
    """A machine that is four times slower in half of the rounds leaves the ratio as it is."""
    own = TurnSamples([1, 4, 1, 4], [1, 4, 1, 4], [1, 4, 1, 4], [1])
    other = TurnSamples([2, 8, 2, 8], [2, 8, 2, 8], [2, 8, 2, 8], [4])
    savings = own.figures(other).savings
    assert savings == {"round_trip_ms": -50, "first_text_ms": -50, "per_token_us": -75}
