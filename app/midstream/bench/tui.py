"""`midstream bench tui`: how fast the screen answers, on a real pseudo-terminal.

The whole program runs: its screen, its session and its server, which replays a rewrite of a long
function at a given rate.  A key counts as answered when what it typed has come out of the terminal
side.  Figures of machines that do other work at the same time are noisy; the best of some runs is
the honest one for the program, all of them are in the JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from midstream.arguments import Parser
from midstream.bench.terminal import TerminalProgram

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_KEY_EVERY_S: Final = 0.045
_TOKENS: Final = 40_000
"""What the rewrite of the long function comes to, about."""


@dataclass(slots=True)
class Figure:
    """One measured thing against its goal.

    Attributes:
        name: What was measured.
        value: The figure.
        unit: Its unit.
        goal: What it should be at most.
    """

    name: str
    value: float
    unit: str
    goal: float

    @property
    def met(self) -> bool:
        """Whether the goal is met."""
        return self.value <= self.goal


@dataclass(slots=True)
class Report:
    """All figures of a run."""

    figures: list[Figure] = field(default_factory=list[Figure])

    def add(self, name: str, value: float, unit: str, goal: float) -> None:
        """Add a figure."""
        self.figures.append(Figure(name, round(value, 2), unit, goal))


def _long_function(lines: int) -> str:
    body = "".join(
        f'    value_{n} = compute(items[{n}], "text {n}", total - {n % 7})\n' for n in range(lines)
    )
    return f"def work(items, total):\n{body}    return total\n"


def _project(folder: Path, lines: int, rate: float) -> Path:
    """A folder with a long file, and a script that rewrites it; returns the script."""
    (folder / "work").mkdir()
    (folder / "work" / "long.py").write_text(_long_function(lines))
    script = folder / "script.json"
    edit = [["compute(items[1", "measure(items[1"], ["total - 3", "total + 3"]]
    script.write_text(json.dumps([{"match": "", "edit": edit, "rate": rate}]))
    return script


def _start(folder: Path, script: Path, path: str, size: tuple[int, int]) -> TerminalProgram:
    command = [sys.executable, "-m", "midstream", path, "--replay", str(script)]
    state = {"MIDSTREAM_STATE_DIR": str(folder / "state"), "MIDSTREAM_THEME": "midnight"}
    return TerminalProgram(command, size=size, environment=state, folder=folder)


def _ready(program: TerminalProgram) -> None:
    program.wait_for("ready", 20)
    program.settle()


def _percentile(values: Sequence[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else 0.0


def measure_keys(
    report: Report, rate: float, goals: tuple[float, float, float], *, keys: int = 120
) -> None:
    """Key to terminal while text streams at ``rate`` tokens a second."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = _project(folder, 1_990, rate)
        with _start(folder, script, "work/long.py", (160, 48)) as program:
            _ready(program)
            program.write("go\r")
            program.wait_for("streaming", 10)
            program.write("i")
            program.drain(min(1.0, _TOKENS / rate / 4))
            times: list[float] = []
            typed = ""
            cpu, began = program.cpu_seconds(), time.perf_counter()
            before = len(program.output)
            for number in range(keys):
                if time.perf_counter() - began > _TOKENS / rate * 0.7:
                    break
                if len(typed) >= 60:
                    program.write("\x15")
                    program.drain(0.05)
                    typed = ""
                typed += _LETTERS[number % 26]
                since = len(program.output)
                sent = program.write(typed[-1])
                times.append((program.wait_for(typed[-8:], 5, since=since) - sent) * 1000)
                program.drain(max(0.0, _KEY_EVERY_S - times[-1] / 1000))
            seconds = time.perf_counter() - began
            used = program.cpu_seconds() - cpu
            sent_kb = (len(program.output) - before) / 1000 / seconds
    label = f"at {rate:,.0f} tok/s"
    report.add(f"key to terminal, median, {label}", median(times), "ms", goals[0])
    report.add(f"key to terminal, p99, {label}", _percentile(times, 99), "ms", goals[1])
    report.add(f"processor, {label}", used / seconds * 100, "% of a core", goals[2])
    report.add(f"output, {label}", sent_kb, "kB/s", 800)


def measure_start(report: Report, rounds: int) -> None:
    """Start to the first frame, and to the first key that is answered."""
    paints: list[float] = []
    usable: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = _project(folder, 40, 1000)
        for _ in range(rounds):
            with _start(folder, script, "work", (120, 40)) as program:
                painted = program.wait_for("Instruct", 10)
                paints.append((painted - program.started) * 1000)
                program.write("zqx")
                usable.append((program.wait_for("zqx", 10) - program.started) * 1000)
    report.add("start to first paint, best", min(paints), "ms", 320)
    report.add("start to usable, best", min(usable), "ms", 500)


def measure_large(report: Report) -> None:
    """A file of 100,000 lines: opening it and paging through it; and idling."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = _project(folder, 99_998, 1000)
        with _start(folder, script, "work", (160, 48)) as program:
            _ready(program)
            program.write("\x1b")
            program.drain(0.4)
            program.write("o")
            program.settle()
            since = len(program.output)
            sent = program.write("\r")
            opened = program.wait_for("value_20", 20, since=since)
            report.add("open 100,000 lines", (opened - sent) * 1000, "ms", 300)
            program.settle(0.5)
            pages: list[float] = []
            for _ in range(60):
                since = len(program.output)
                sent = program.write(" ")
                program.read(5)
                pages.append((time.perf_counter() - sent) * 1000)
                program.drain(0.03)
            report.add("page through 100,000 lines, median", median(pages), "ms", 16)
            report.add("page through 100,000 lines, p99", _percentile(pages, 99), "ms", 16)
            program.settle(1.0, 30)
            program.drain(10)
            cpu = program.cpu_seconds()
            program.drain(6)
            report.add(
                "processor, idle", (program.cpu_seconds() - cpu) / 6 * 100, "% of a core", 0.5
            )
            report.add("memory, 100,000 lines", program.memory_mb(), "MB", 160)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--quick", action="store_true", help="fewer keys and starts")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(argv: Sequence[str]) -> int:
    """Measure and print; 1 when a goal is missed."""
    parser = Parser(prog="midstream bench tui", description="Measure the screen.")
    add_arguments(parser)
    options = parser.parse_args(argv)
    report = Report()
    keys = 40 if options.quick else 150
    measure_start(report, 2 if options.quick else 6)
    measure_keys(report, 5_000, (2, 8, 22), keys=keys)
    if not options.quick:
        measure_keys(report, 20_000, (4, 16, 45), keys=keys)
    measure_large(report)
    if options.json:
        print(json.dumps([asdict(figure) for figure in report.figures]))
    else:
        width = max(len(figure.name) for figure in report.figures)
        for f in report.figures:
            mark = "met" if f.met else "MISSED"
            print(f"{f.name:<{width}}  {f.value:>9,.2f} {f.unit:<12} goal {f.goal:g}  {mark}")
    return 0 if all(figure.met for figure in report.figures) else 1
