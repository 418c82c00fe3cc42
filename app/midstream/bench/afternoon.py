"""An afternoon with a large model: a conversation beside the code, and four files that stream.

A server of our own plays the model over a network link, so that the session treats it as a hosted
one: questions get prose, instructions get SEARCH/REPLACE blocks for several files. A real model on
the same processors can take its place.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from midstream.bench.figures import Figure, at_most, beside, percentile
from midstream.bench.screen_runs import typed_times
from midstream.bench.terminal import TerminalProgram
from midstream.processes import resident_bytes

FILES: Final = tuple(f"part_{letter}.py" for letter in "abcd")
TURNS: Final = 200
"""Turns of the afternoon, unless the command line names another number."""
_WARM: Final = 10
"""Turns in which everything is loaded that a session needs."""
_READS_EVERY: Final = 5
"""Exchanges after which the user reads for a while."""
_SIZE: Final = (160, 48)
"""Columns and rows of the terminal."""
_FUNCTIONS: Final = 100
"""Functions of each file."""
_ADDRESS: Final = re.compile(r"ws://\S+")
_ANSWER: Final = (
    "".join(
        f"{n}. `work_{n}` in part_a.py:{4 * n + 1} adds what it is given, **as told** before.\n\n"
        for n in range(40)
    )
    + "Enough"
)


def afternoon(bytecode: Path, rate: float, count: int) -> list[Figure]:
    """Key to terminal while four files stream beside a conversation."""
    with _session(bytecode, rate) as (_, program):
        _ask(program, "? how does it work")
        since = len(program.output)
        program.write("rework all four\r")
        program.wait_for("to decide", 30, since=since)
        program.write("i")
        program.drain(0.5)
        cpu, began = program.cpu_seconds(), time.perf_counter()
        times = typed_times(program, count, 20)
        seconds = time.perf_counter() - began
        used = program.cpu_seconds() - cpu
    at = f"four files beside a conversation, at {rate:,.0f} tok/s"
    return [
        at_most(f"key to terminal, median, {at}", median(times), "ms", 2),
        at_most(f"key to terminal, p99, {at}", percentile(times, 99), "ms", 8),
        at_most(f"processor, {at}", used / seconds * 100, "% of a core", 22),
    ]


def beside_model(bytecode: Path, model: Path, count: int) -> list[Figure]:
    """Key to terminal while a chat model on the same processors reads and answers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _program(bytecode, folder, "--model", str(model.resolve())) as program:
            program.drain(10.0)  # The model's memory is arranged after some seconds.
            program.write("i")
            alone = typed_times(program, count, 20)
            program.write("\x15? explain at length what each function does, with examples\r")
            program.drain(0.5)
            program.write("i")
            program.drain(0.5)
            times = typed_times(program, count, 40)
    at = f"while {model.name} answers"
    return [
        beside("key to terminal, p99, before the question", percentile(alone, 99), "ms"),
        at_most(f"key to terminal, median, {at}", median(times), "ms", 2),
        at_most(f"key to terminal, p99, {at}", percentile(times, 99), "ms", 8),
        at_most(f"key to terminal, longest, {at}", max(times), "ms", 50),
    ]


def memory(bytecode: Path, turns: int) -> list[Figure]:
    """Memory of the screen's process after so many turns, questions and edits in equal parts."""
    with _session(bytecode, 0) as (folder, program):
        before = 0
        for number in range(turns // 2):
            if number == _WARM // 2:
                before = resident_bytes(program.pid)
            _ask(program, f"? what about {number}")
            program.write("i")  # The answer has the keys.
            program.settle(0.1)
            since = len(program.output)
            program.write(f"turn {number}\r")
            program.wait_for("to decide", 30, since=since)
            program.settle(0.1)
            program.write("AA")
            program.settle(0.1)
            program.write("i")
            if number % _READS_EVERY == 0:  # Garbage is collected while no key is typed.
                program.drain(8.0)
        after = resident_bytes(program.pid)
        kept = sum(path.stat().st_size for path in (folder / "state").rglob("*") if path.is_file())
    return [
        at_most(f"memory after {turns} turns", after / 1e6, "MB", 200),
        at_most("memory that a turn adds", (after - before) / 1e3 / (turns - _WARM), "kB", 100),
        at_most("journal that a turn adds", kept / 1e3 / turns, "kB", 50),
    ]


def _ask(program: TerminalProgram, question: str) -> None:
    since = len(program.output)
    program.write(f"{question}\r")
    program.wait_for("Enough", 60, since=since)
    program.settle(0.2)


@contextmanager
def _session(bytecode: Path, rate: float) -> Generator[tuple[Path, TerminalProgram]]:
    """The program on a folder of four files, with a model that answers at ``rate``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "script.json"
        script.write_text(json.dumps(_script(rate)))
        with _served(folder, script) as url:
            (folder / "config.toml").write_text(
                'endpoint = "far"\n[endpoints.far]\nkind = "custom"\nmodel = "replay"\n'
                f'url = "{url}"\nedit_format = "search-replace"\n'
            )
            with _program(bytecode, folder) as program:
                yield folder, program


@contextmanager
def _program(bytecode: Path, folder: Path, *arguments: str) -> Generator[TerminalProgram]:
    """The program, ready, on four files below ``folder`` with the settings that are there."""
    work = folder / "work"
    work.mkdir()
    for path in FILES:
        (work / path).write_text(_text())
    environment = {
        "MIDSTREAM_CONFIG": str(folder / "config.toml"),
        "MIDSTREAM_STATE_DIR": str(folder / "state"),
        "MIDSTREAM_THEME": "midnight",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(bytecode),
    }
    command = [sys.executable, "-m", "midstream", f"work/{FILES[0]}", *arguments]
    with TerminalProgram(command, size=_SIZE, environment=environment, folder=folder) as program:
        program.wait_for("ready", 60)
        program.settle()
        yield program


@contextmanager
def _served(folder: Path, script: Path) -> Generator[str]:
    """A server that plays the script; its address."""
    command = [sys.executable, "-m", "midstream", "serve", "--replay", str(script), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
        try:
            line = server.stdout.readline() if server.stdout is not None else ""
            if (found := _ADDRESS.search(line)) is None:
                raise RuntimeError("the server that plays the model did not start")
            yield found[0]
        finally:
            server.terminate()


def _text() -> str:
    return "".join(
        f"def work_{n}(items):\n    return sum(items) + {n}\n\n\n" for n in range(_FUNCTIONS)
    )


def _script(rate: float) -> list[Mapping[str, str | float]]:
    places = [(path, n) for path in FILES for n in range(_FUNCTIONS)]
    every = "".join(_block(path, n) for path, n in places)
    single: list[Mapping[str, str | float]] = [
        {"match": rf"\bturn {turn}\b", "text": _block(path, n)}
        for turn, (path, n) in enumerate(places)
    ]
    return [
        {"match": r"\brework all four\b", "text": every, "rate": rate},
        *single,
        {"match": "", "text": _ANSWER, "rate": rate * 4},
    ]


def _block(path: str, number: int) -> str:
    old = f"    return sum(items) + {number}\n"
    return (
        f"{path}\n<<<<<<< SEARCH\ndef work_{number}(items):\n{old}=======\n"
        f"def work_{number}(items):\n    found = sum(items)\n    return found + {number}\n"
        ">>>>>>> REPLACE\n\n"
    )
