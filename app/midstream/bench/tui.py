"""`midstream bench tui`: how fast the screen answers, on a real pseudo-terminal.

Figures of machines that do other work at the same time are noisy: what part of the processors was
busy is printed beside them.  What is measured, and how, is ``screen_runs``'s.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from midstream.arguments import Parser
from midstream.bench import screen_runs
from midstream.bench.figures import Figure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--quick", action="store_true", help="fewer keys, starts and situations")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(argv: Sequence[str]) -> int:
    """Measure and print; 1 when a goal is missed."""
    parser = Parser(prog="midstream bench tui", description="Measure the screen.")
    add_arguments(parser)
    options = parser.parse_args(argv)
    before = _processors()
    with tempfile.TemporaryDirectory() as bytecode:
        figures = _measure(Path(bytecode), quick=options.quick)
    busy = _busy(before, _processors())
    if options.json:
        print(json.dumps({"busy": busy, "figures": [asdict(figure) for figure in figures]}))
    else:
        width = max(len(figure.name) for figure in figures)
        for f in figures:
            mark = "met" if f.met else "MISSED"
            print(f"{f.name:<{width}}  {f.value:>9,.2f} {f.unit:<12} {f.target:<7} {mark}")
        if busy is not None:
            print(f"The processors of this machine were busy for {busy:.0%} of the time.")
    return int(not all(figure.met for figure in figures))


def _measure(bytecode: Path, *, quick: bool) -> list[Figure]:
    count = 40 if quick else 150
    figures = screen_runs.start(bytecode, 2 if quick else 6)
    figures += screen_runs.keys(bytecode, 5_000, (2, 8, 22), count)
    if not quick:
        figures += screen_runs.keys(bytecode, 20_000, (4, 16, 45), count)
        figures += screen_runs.through_tmux(bytecode, count)
        figures += screen_runs.loop(bytecode, 20_000)
        figures += screen_runs.slow_link(bytecode, 200)
    figures += screen_runs.loop(bytecode, 5_000)
    figures += screen_runs.saves(bytecode, 5 if quick else 20)
    figures += screen_runs.large_file(bytecode)
    return figures


def _processors() -> tuple[int, int] | None:
    """Ticks of all processors together, and how many of them were idle; None if nobody tells."""
    try:
        total, _, _ = Path("/proc/stat").read_text(encoding="ascii").partition("\n")
    except OSError:
        return None
    ticks = [int(field) for field in total.split()[1:]]
    return sum(ticks[:8]), ticks[3] + ticks[4]


def _busy(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    if before is None or after is None or after[0] == before[0]:
        return None
    return 1 - (after[1] - before[1]) / (after[0] - before[0])
