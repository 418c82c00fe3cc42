"""What ``midstream bench tui`` measures: keys in a stream, starts, large files, saves, slow links.

The whole program runs as people run it: its screen, its session with the guard on, and its server,
which replays a rewrite of a long function at a given rate.  A key counts as answered when what it
typed has come out of the terminal side.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from midstream.bench.figures import Figure, at_most, beside, percentile
from midstream.bench.terminal import TerminalProgram
from midstream.processes import resident_bytes

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_KEY_EVERY_S: Final = 0.045
"""Time between two keys: a held key repeats some 22 times a second."""
_LINES: Final = 1_990
"""Lines of the long function."""
_TOKENS: Final = 20 * _LINES
"""What the rewrite of the long function comes to, about."""
_WIDE: Final = (160, 48)
"""Columns and rows of the terminal, unless a caller says otherwise."""


def long_function(lines: int) -> str:
    """Return the source of a function with this number of lines."""
    body = "".join(
        f'    value_{n} = compute(items[{n}], "text {n}", total - {n % 7})\n' for n in range(lines)
    )
    return f"def work(items, total):\n{body}    return total\n"


@dataclass(frozen=True, slots=True)
class ScratchFolder:
    """A folder with a long file and a script that rewrites it.

    Attributes:
        folder: The folder.
        bytecode: Where Python keeps what it has compiled, as an installed program has it.
    """

    folder: Path
    bytecode: Path

    @property
    def file(self) -> Path:
        """The long file."""
        return self.folder / "work" / "long.py"

    @property
    def beats(self) -> Path:
        """The readings of the program's pulse."""
        return self.folder / "beats.json"

    def start(
        self,
        path: str,
        size: tuple[int, int] = _WIDE,
        *,
        beat: bool = False,
        wrapper: Sequence[str] = (),
    ) -> TerminalProgram:
        """Start the program on a path, with the pulse of ``bench.beat`` if ``beat``.

        ``wrapper`` is a command that runs it.
        """
        module = ["midstream.bench.beat", str(self.beats)] if beat else ["midstream"]
        command = [sys.executable, "-m", *module, path, "--replay", "script.json"]
        environment = {
            "MIDSTREAM_STATE_DIR": str(self.folder / "state"),
            "MIDSTREAM_THEME": "midnight",
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.bytecode),
        }
        return TerminalProgram(
            [*wrapper, *command], size=size, environment=environment, folder=self.folder
        )

    def readings(self, program: TerminalProgram) -> dict[str, list[float]]:
        """The readings of the pulse since the last time."""
        return readings(program, self.beats)


def readings(program: TerminalProgram, beats: Path) -> dict[str, list[float]]:
    """The readings of a program's pulse since the last time, which it writes to a file."""
    beats.unlink(missing_ok=True)
    os.kill(program.pid, signal.SIGUSR1)
    deadline = time.perf_counter() + 10
    while not beats.exists() and time.perf_counter() < deadline:
        program.drain(0.02)
    return json.loads(beats.read_text())


@contextmanager
def prepared(bytecode: Path, lines: int = _LINES, rate: float = 1_000) -> Generator[ScratchFolder]:
    """A folder whose file has ``lines`` lines and is rewritten at ``rate`` tokens a second."""
    with tempfile.TemporaryDirectory() as name:
        place = ScratchFolder(Path(name), bytecode)
        place.file.parent.mkdir()
        place.file.write_text(long_function(lines))
        edit = [["compute(items[1", "measure(items[1"], ["total - 3", "total + 3"]]
        script = [{"match": "", "edit": edit, "rate": rate}]
        (place.folder / "script.json").write_text(json.dumps(script))
        yield place


def _ready(program: TerminalProgram) -> None:
    program.wait_for("ready", 60)
    program.settle()


@contextmanager
def streaming(
    bytecode: Path, rate: float, *, beat: bool = False, wrapper: Sequence[str] = ()
) -> Generator[tuple[ScratchFolder, TerminalProgram]]:
    """The program on its long file, in the middle of a rewrite at ``rate`` tokens a second."""
    with (
        prepared(bytecode, rate=rate) as place,
        place.start("work/long.py", beat=beat, wrapper=wrapper) as program,
    ):
        _ready(program)
        program.write("go\r")
        program.wait_for("writing", 30)
        program.write("i")
        program.drain(min(1.0, _TOKENS / rate / 4))
        if beat:
            place.readings(program)
        yield place, program


def typed_times(program: TerminalProgram, keys: int, seconds: float) -> list[float]:
    """Milliseconds that each key took."""
    times: list[float] = []
    typed, began = "", time.perf_counter()
    for number in range(keys):
        if time.perf_counter() - began > seconds:
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
    return times


def keys(
    bytecode: Path, rate: float, goals: tuple[float, float, float], count: int
) -> list[Figure]:
    """Key to terminal while text streams at ``rate`` tokens a second, and what that costs."""
    with streaming(bytecode, rate) as (_, program):
        cpu, began, before = program.cpu_seconds(), time.perf_counter(), len(program.output)
        times = typed_times(program, count, _TOKENS / rate * 0.7)
        seconds = time.perf_counter() - began
        used = program.cpu_seconds() - cpu
        sent_kb = (len(program.output) - before) / 1000 / seconds
    at = f"at {rate:,.0f} tok/s"
    return [
        at_most(f"key to terminal, median, {at}", median(times), "ms", goals[0]),
        at_most(f"key to terminal, p99, {at}", percentile(times, 99), "ms", goals[1]),
        at_most(f"processor, {at}", used / seconds * 100, "% of a core", goals[2]),
        at_most(f"output, {at}", sent_kb, "kB/s", 800),
    ]


STOCK_STARTED: Final = "fed from here on"
"""What the input line of ``bench.stock`` says once it runs."""

STOCK_WIDGETS: Final = {"richlog": "RichLog", "textarea": "TextArea"}
"""What ``bench.stock`` can feed, and what Textual calls it."""


def stock(bytecode: Path, rate: float, count: int) -> list[Figure]:
    """The same for Textual's own widgets, fed as fast, on the same terminal."""
    found: list[Figure] = []
    for widget, name in STOCK_WIDGETS.items():
        command = [sys.executable, "-m", "midstream.bench.stock", widget, f"{rate}", f"{_LINES}"]
        environment = {"PYTHONPYCACHEPREFIX": str(bytecode)}
        with TerminalProgram(command, size=_WIDE, environment=environment) as program:
            program.wait_for(STOCK_STARTED, 60)
            program.drain(1.0)
            cpu, began = program.cpu_seconds(), time.perf_counter()
            times = typed_times(program, count, _TOKENS / rate * 0.6)
            seconds = time.perf_counter() - began
            used = program.cpu_seconds() - cpu
        at = f"{name} of Textual, at {rate:,.0f} tok/s"
        found += [
            beside(f"key to terminal, median, {at}", median(times), "ms"),
            beside(f"key to terminal, p99, {at}", percentile(times, 99), "ms"),
            beside(f"processor, {at}", used / seconds * 100, "% of a core"),
        ]
    return found


def loop(bytecode: Path, rate: float) -> list[Figure]:
    """Processor time for which the loop cannot answer a key."""
    with streaming(bytecode, rate, beat=True) as (place, program):
        typed_times(program, 1_000, _TOKENS / rate * 0.6)
        busy = [1000 * seconds for seconds in place.readings(program)["busy_s"]]
    return [at_most(f"loop held, p99, at {rate:,.0f} tok/s", percentile(busy, 99), "ms cpu", 8)]


def frames(bytecode: Path, rate: float) -> list[Figure]:
    """Processor time of a frame, and rows that were decided and then shown as something else."""
    with streaming(bytecode, rate, beat=True) as (place, program):
        program.drain(_TOKENS / rate * 0.6)
        taken = place.readings(program)
    work = [1000 * seconds for seconds in taken["frames_s"]]
    at = f"at {rate:,.0f} tok/s"
    return [
        at_most(f"frame, mean, {at}", sum(work) / len(work), "ms cpu", 2.5),
        at_most(f"frame, p99, {at}", percentile(work, 99), "ms cpu", 8),
        at_most(f"decided rows that changed, {at}", taken["flips"][0], "rows", 0),
    ]


def stops(bytecode: Path, count: int) -> list[Figure]:
    """Ctrl+C in a stream of 5,000 tokens a second, until the screen says that it stops."""
    times: list[float] = []
    # Half as long: what is left undecided each time counts as well where the model's limit is.
    with prepared(bytecode, _LINES // 2, 5_000) as place, place.start("work/long.py") as program:
        _ready(program)
        for _ in range(count):
            since = len(program.output)
            program.write("go\r")
            program.wait_for("writing", 30, since=since)
            program.drain(0.5)
            since = len(program.output)
            pressed = program.write("\x03")
            times.append((program.wait_for("topp", 10, since=since) - pressed) * 1000)
            program.settle(0.4)
            program.write("i")
            program.drain(0.1)
    return [at_most("stop to screen, median", median(times), "ms", 16.7)]


def slow_link(bytecode: Path, kb_per_s: int) -> list[Figure]:
    """Whether the loop waits for a terminal that takes only so much."""
    step = 0.01
    with streaming(bytecode, 5_000, beat=True) as (place, program):
        end = time.perf_counter() + 5
        while time.perf_counter() < end:
            program.read(0, round(kb_per_s * 1000 * step))
            time.sleep(step)
        late = [1000 * seconds for seconds in place.readings(program)["late_s"]]
    return [at_most(f"loop late over {kb_per_s} kB/s, p99", percentile(late, 99), "ms", 10)]


def through_tmux(bytecode: Path, count: int) -> list[Figure]:
    """Key to terminal through tmux at 5,000 tokens a second; nothing where there is no tmux."""
    tmux = shutil.which("tmux")
    if tmux is None:
        return []
    socket = f"midstream-bench-{os.getpid()}"
    wrapper = [tmux, "-L", socket, "-f", os.devnull, "new-session"]
    try:
        with streaming(bytecode, 5_000, wrapper=wrapper) as (_, program):
            times = typed_times(program, count, _TOKENS / 5_000 * 0.7)
    finally:
        with contextlib.suppress(OSError):
            subprocess.run([tmux, "-L", socket, "kill-server"], capture_output=True, check=False)
    return [at_most("key to terminal through tmux, p99", percentile(times, 99), "ms", 12)]


def start(bytecode: Path, rounds: int) -> list[Figure]:
    """Start to the first frame, and to the first key that is answered; the first round warms up."""
    paints: list[float] = []
    usable: list[float] = []
    with prepared(bytecode, 40) as place:
        for _ in range(rounds + 1):
            with place.start("work", (120, 40)) as program:
                painted = program.wait_for("Instruct", 60)
                paints.append((painted - program.started) * 1000)
                program.write("zqx")
                usable.append((program.wait_for("zqx", 60) - program.started) * 1000)
    return [
        at_most("start to first paint, best", min(paints[1:]), "ms", 320),
        at_most("start to usable, best", min(usable[1:]), "ms", 500),
    ]


def _open_file(program: TerminalProgram) -> float:
    """Open the long file with the file picker; the milliseconds that took."""
    _ready(program)
    program.write("\x1b")
    program.drain(0.4)
    program.write("o")
    program.settle()
    since = len(program.output)
    sent = program.write("\r")
    return (program.wait_for("value_20", 60, since=since) - sent) * 1000


def large_file(bytecode: Path) -> list[Figure]:
    """A file of 100,000 lines: opening it and paging through it; and idling."""
    with prepared(bytecode, 99_998) as place, place.start("work") as program:
        opened = _open_file(program)
        program.settle(0.5)
        pages: list[float] = []
        for _ in range(60):
            sent = program.write(" ")
            program.read(5)
            pages.append((time.perf_counter() - sent) * 1000)
            program.drain(0.03)
        program.settle(1.0, 30)
        program.drain(10)
        # One window would be too noisy for so small a share.
        windows: list[float] = []
        for _ in range(3):
            cpu = program.cpu_seconds()
            program.drain(6)
            windows.append((program.cpu_seconds() - cpu) / 6 * 100)
        memory = resident_bytes(program.pid) / 1e6
    with prepared(bytecode, 49_998) as place, place.start("work") as program:
        _open_file(program)
        program.settle(1.0, 30)
        half = resident_bytes(program.pid) / 1e6
    return [
        at_most("open 100,000 lines", opened, "ms", 300),
        at_most("page through 100,000 lines, median", median(pages), "ms", 16),
        at_most("page through 100,000 lines, p99", percentile(pages, 99), "ms", 16),
        at_most("processor, idle, median", median(windows), "% of a core", 0.5),
        at_most("memory, 50,000 lines", half, "MB", 100),
        at_most("memory, 100,000 lines", memory, "MB", 160),
    ]


def saves(bytecode: Path, count: int) -> list[Figure]:
    """A save by an editor, until the new line, and with it the hunks below, stand on screen."""
    times: list[float] = []
    with prepared(bytecode, 20, 5_000) as place, place.start("work/long.py") as program:
        _ready(program)
        program.write("go\r")
        program.wait_for("to decide", 30)
        program.settle(0.5)
        head, _, rest = place.file.read_text().partition("\n")
        for number in range(count):
            beside = place.file.with_suffix(".tmp")
            beside.write_text(f"{head}\n    saved_{number:03} = 1\n{rest}")
            since, saved = len(program.output), time.perf_counter()
            beside.replace(place.file)
            times.append((program.wait_for(f"saved_{number:03}", 10, since=since) - saved) * 1000)
            program.drain(0.35)
    return [at_most("save by an editor to screen, p95", percentile(times, 95), "ms", 60)]
