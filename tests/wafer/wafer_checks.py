"""Checks that several wafer tests share."""

from __future__ import annotations

import pytest


def check_trace(events: list[dict]) -> None:
    """The Chrome trace rules that Perfetto's importer needs, and ours: complete, monotone,
    labelled.
    """
    assert isinstance(events, list)
    check_nesting(events)
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
        if event["ph"] == "C":
            assert all(isinstance(v, (int, float)) for v in event["args"].values())
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} <= named
    assert any("simulated" in str(e["args"]) for e in events if e["name"] == "process_name")


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
