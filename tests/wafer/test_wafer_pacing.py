"""Pacing: nothing is shown before its simulated time, nothing is hidden longer, and the label is
honest.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.wafer.errors import WaferUsageError
from midstream.wafer.pacing import OFF, Pace, Pacer


def test_off_shows_everything_without_a_label() -> None:
    pacer = Pacer(OFF, 0.0)
    pacer.produced(0.1, 7)
    assert pacer.visible(0.1) == 7
    assert pacer.next_at(0.1) is None
    assert pacer.label() == ""


def test_a_fast_machine_waits_for_the_wafer() -> None:
    pacer = Pacer(Pace("wafer", 0.001, first_seconds=0.5, name="WSE-3"), started_at=100.0)
    pacer.produced(100.01, 50)
    assert pacer.visible(100.4) == 0
    assert pacer.next_at(100.4) == pytest.approx(100.5)
    assert pacer.visible(100.5) == 1
    assert pacer.visible(100.5101) == 11
    assert pacer.visible(101.0) == 50
    assert pacer.label() == "at WSE-3 speed (1,000 tok/s simulated)"


def test_a_slow_machine_says_by_how_much() -> None:
    pacer = Pacer(Pace("wafer", 0.001), started_at=0.0)
    for i in range(1, 11):
        pacer.produced(i * 0.004, 1)
        assert pacer.visible(i * 0.004) == i, "nothing to wait for"
    assert pacer.slower_by == pytest.approx(4.4, abs=0.2)
    assert pacer.label().startswith("4.4x slower than the wafer")


def test_replay_buffers_then_runs_at_speed() -> None:
    pacer = Pacer(Pace("wafer", 0.001), started_at=0.0, replay=True)
    pacer.produced(2.0, 100)
    assert pacer.visible(2.0) == 0
    assert pacer.label().startswith("buffering")
    pacer.finished(3.0)
    assert pacer.visible(3.05) == 51
    assert pacer.next_at(3.05) == pytest.approx(3.051)
    assert pacer.visible(4.0) == 100
    assert pacer.label().startswith("replayed at wafer speed")


def test_gpu_speed_feels_different() -> None:
    wafer, gpu = Pace.at_rate("wafer", 2000), Pace.at_rate("gpu", 70, "8 x H200")
    assert wafer.released(1.0) == 2000
    assert gpu.released(1.0) == 70
    assert "8 x H200" in Pacer(gpu, 0.0).label()


def test_bursts() -> None:
    pace = Pace("wafer", 0.01, burst=(3, 1, 5))
    assert [pace.released(t) for t in (0.0, 0.0101, 0.0201, 0.0301)] == [3, 4, 9, 12]
    assert [pace.due(n) for n in (0, 2, 3, 4, 8, 9)] == pytest.approx(
        [0, 0, 0.01, 0.02, 0.02, 0.03]
    )
    assert pace.tokens_per_second == pytest.approx(300)


@given(
    step=st.floats(1e-4, 0.1),
    first=st.floats(0.0, 1.0),
    burst=st.lists(st.integers(1, 6), min_size=1, max_size=5).map(tuple),
    token=st.integers(0, 2000),
)
def test_due_and_released_are_inverse(
    step: float, first: float, burst: tuple[int, ...], token: int
) -> None:
    pace = Pace("wafer", step, first, burst)
    due = pace.due(token)
    assert pace.released(due + step * 1e-3) > token
    assert pace.released(due - step * 1e-3) <= token


@given(st.lists(st.tuples(st.floats(0.0, 0.05), st.integers(0, 9)), max_size=40))
def test_visible_never_falls_nor_exceeds(steps: list[tuple[float, int]]) -> None:
    pacer, now, before = Pacer(Pace("wafer", 0.002, 0.01), 0.0), 0.0, 0
    for wait, tokens in steps:
        now += wait
        pacer.produced(now, tokens)
        seen = pacer.visible(now)
        assert before <= seen <= pacer.total
        assert seen == pacer.total or seen == pacer.pace.released(now)
        at = pacer.next_at(now)
        assert at is None or at > now - 1e-9
        before = seen


def test_wrong_paces_are_refused() -> None:
    for wrong in (
        {"mode": "warp"},
        {"mode": "gpu"},
        {"mode": "wafer", "seconds_per_step": 0.1, "burst": ()},
    ):
        with pytest.raises(WaferUsageError):
            Pace(**wrong)
