"""Checks that several wafer tests share."""

from __future__ import annotations

import json

import pytest


def check_trace(events: list[dict]) -> None:
    """The Chrome trace rules that Perfetto's importer needs, and ours: complete, monotone,
    labelled.
    """
    assert isinstance(events, list)
    json.dumps(events, allow_nan=False)
    check_nesting(events)
    check_counters(events)
    last_end: dict[tuple[int, int], float] = {}
    for event in events:
        assert event["ph"] in ("M", "X", "C")
        assert isinstance(event["pid"], int)
        assert isinstance(event["name"], str)
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert event["args"]["simulated"] is True
            if event["cat"] == "Node":
                key = (event["pid"], event["tid"])
                assert event["ts"] >= last_end.get(key, 0.0) - 1e-3, "no overlap within a rectangle"
                last_end[key] = event["ts"] + event["dur"]
                assert event["name"].endswith("_kernel_time")
                args = event["args"]
                causes = sum(v for k, v in args.items() if k.endswith("_cycles"))
                assert causes == pytest.approx(args["cycles"], abs=1.0)
                assert 0 <= args["util"] <= 1
                if args["bound_by"] != "host":
                    assert args["cycles"] / 1100 == pytest.approx(event["dur"], abs=2e-3)
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} <= named
    assert any("simulated" in str(e["args"]) for e in events if e["name"] == "process_name")


COUNTERS = {
    "active PEs (simulated)",
    "SRAM in use (simulated)",
    "nameplate power",
    "energy at nameplate power (simulated)",
}


def check_counters(events: list[dict]) -> None:
    """Counter tracks as Perfetto reads them: a number per series, times that never go back, a
    process with a name; and what they must say.
    """
    tracks: dict[tuple[int, str], list[dict]] = {}
    for event in events:
        if event["ph"] == "C":
            assert event["args"]
            assert all(type(value) in (int, float) for value in event["args"].values())
            tracks.setdefault((event["pid"], event["name"]), []).append(event)
    wafers = {pid for pid, _ in tracks}
    assert wafers <= {e["pid"] for e in events if e["name"] == "process_name"}
    assert {name for _, name in tracks} == COUNTERS
    end = max(e["ts"] + e["dur"] for e in events if e["ph"] == "X")
    for (_, name), track in tracks.items():
        times = [event["ts"] for event in track]
        assert times == sorted(times)
        assert times[0] >= 0
        assert times[-1] <= end + 2e-3
        series = {tuple(event["args"]) for event in track}
        assert len(series) == 1, "a series does not come and go"
        if name == "nameplate power":
            assert len({event["args"]["W"] for event in track}) == 1
        if name.startswith("energy"):
            power = next(e for (_, n), t in tracks.items() if n == "nameplate power" for e in t)
            for event in track:
                joules = power["args"]["W"] * event["ts"] * 1e-6
                assert event["args"]["J"] == pytest.approx(joules, abs=1e-3)
        if name.startswith("active"):
            assert track[-1]["args"]["PEs"] == 0
            assert max(event["args"]["PEs"] for event in track) > 0
        if name.startswith("SRAM"):
            assert all(event["args"]["weights MB"] < 44_000 for event in track)


def check_nesting(events: list[dict]) -> None:
    """On every thread, slices are apart or one inside the other, in whole nanoseconds as Perfetto
    cuts them.
    """
    threads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "X":
            begin = int(event["ts"] * 1000)
            slices = threads.setdefault((event["pid"], event["tid"]), [])
            slices.append((begin, begin + int(event["dur"] * 1000)))
    for slices in threads.values():
        open_until: list[int] = []
        for begin, end in sorted(slices, key=lambda pair: (pair[0], -pair[1])):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1]
            open_until.append(end)
