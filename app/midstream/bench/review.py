"""``midstream bench review``: how fast a review follows other programs' writes, on a real pty.

The repository has ten thousand committed files.  Times run from the last byte that another process
has written until the change, or the sentence about it, has come out of the pseudo-terminal.  What a
hook adds is the whole life of the process that an agent starts for it.  The kinds of a large change
are found without a screen, while a coroutine notes for how long it is kept from running; and with
one, while keys are typed.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from midstream.arguments import CommandParser
from midstream.bench.figures import Figure, at_most, beside, percentile, print_figures
from midstream.bench.screen_runs import readings, typed_times
from midstream.bench.terminal import TerminalProgram
from midstream.codebase.kinds import find_facts
from midstream.edits.groups import arrange
from midstream.edits.kinds import ChangedBlock, ChangedFile, HunkFacts
from midstream.processes import resident_bytes
from midstream.workspace.repo import run_git

_FILES: Final = 10_000
_FOLDERS: Final = 100
"""Files of the large project, and the folders that they are spread over."""
_BURST: Final = 500
"""Files that change at once."""
_IDLE_S: Final = 5.0
"""How long the idle review is measured."""
_LINES: Final = 40
"""Changed lines of each file."""
_HOOKS: Final = 20
_STARTS: Final = 10
"""Samples of a hook and of a start."""


def run(argv: Sequence[str]) -> int:
    """Measure and print; 1 if a target is missed."""
    parser = CommandParser(prog="midstream bench review", description=__doc__)
    parser.add_argument("--writes", type=int, default=30, help="single writes to measure")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(list(argv))
    walk = asyncio.run(_kinds())
    with _committed(_wide_files()) as folder:
        walk += _keys(folder)
    with _committed(_small_files()) as folder:
        figures = [*_measure(folder, options.writes), *walk]
    return print_figures(figures, as_json=options.json)


def _measure(folder: Path, writes: int) -> list[Figure]:
    _start(folder)  # Warms up.
    starts = [_start(folder) for _ in range(_STARTS)]
    with _review(folder) as program:
        program.wait_for("ready", 60)
        program.settle(1.0)
        memory = resident_bytes(program.pid) / 1e6
        before = program.cpu_seconds()
        program.drain(_IDLE_S)
        idle = 100 * (program.cpu_seconds() - before) / _IDLE_S
        # The review has nothing to say about a command: it answers at once.
        answered = percentile([_hook(folder, _state(folder), "Bash") for _ in range(_HOOKS)], 95)
        elsewhere = folder.parent / "elsewhere"
        alone = percentile([_hook(folder, elsewhere, "Write") for _ in range(_HOOKS)], 95)
        single = percentile([_write(program, folder, number) for number in range(writes)], 95)
        return [
            at_most("first paint to review, 10,000 files, best", min(starts), "ms", 500),
            beside("first paint to review, 10,000 files, median", median(starts), "ms"),
            at_most("memory of the screen's process", memory, "MB", 150),
            at_most("idle", idle, "% of a core", 0.5),
            at_most("change on disk to hunk on screen, p95", single, "ms", 80),
            at_most("500 files written, until it is said", _burst(program, folder), "ms", 300),
            at_most("hook of an agent, no review, p95", alone, "ms", 60),
            at_most("hook of an agent, answered by the review, p95", answered, "ms", 60),
        ]


def _start(folder: Path) -> float:
    """Milliseconds from the first paint of a new process until it reviews the folder."""
    with _review(folder) as program:
        program.wait_for("reviewing", 60)
        opened = time.perf_counter() - program.started
        return 1000 * (opened - (program.first_paint_s or opened))


def _keys(folder: Path) -> list[Figure]:
    """Key to terminal while a large change is opened and its kinds are found."""
    for number in range(_BURST):
        file = _changed_file(number)
        lines = list(file.lines)
        for block in file.blocks:
            lines[block.start : block.start + len(block.old)] = block.new
        (folder / file.path).write_text("".join(f"{line}\n" for line in lines))
    beats = folder.parent / "beats.json"
    with _review(folder, beats=beats) as program:
        said = program.wait_for(f"{_BURST} files changed", 120) - program.started
        program.wait_for("ready", 120)
        program.settle(1.0)
        program.write("\x1b")
        program.drain(0.3)
        readings(program, beats)
        since = len(program.output)
        program.write("Vi")
        times: list[float] = []
        deadline = time.perf_counter() + 30
        opened = f"{(_BURST - 1) * _LINES:,} in other files".encode()
        begun = time.perf_counter()
        while opened not in program.output[since:] and time.perf_counter() < deadline:
            times += typed_times(program, 10, 10)
            program.write("\x15")
            program.drain(0.1)
        took = time.perf_counter() - begun
        memory = resident_bytes(program.pid) / 1e6
        busy = [1000 * seconds for seconds in readings(program, beats)["busy_s"]]
    what = f"while {_BURST * _LINES:,} changed lines are opened and read"
    return [
        at_most(f"key to terminal, p99, {what}", percentile(times, 99), "ms", 8),
        beside(f"key to terminal, median, {what}", median(times), "ms"),
        beside(f"keys typed {what}", len(times), "keys"),
        beside(f"start of a review, until it says that {_BURST} files are changed", said, "s"),
        beside(f"until {_BURST} files with {_BURST * _LINES:,} changed lines are open", took, "s"),
        at_most("memory of the screen's process then", memory, "MB", 300),
        at_most(f"loop held, p99, {what}", percentile(busy, 99), "ms cpu", 8),
    ]


@contextmanager
def _committed(files: Iterable[tuple[str, str]]) -> Generator[Path]:
    """A repository with these files, by path and text."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "work"
        for path, text in files:
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
        run_git(folder, ["init", "-q"])
        run_git(folder, ["add", "."])
        run_git(folder, [*identity, "commit", "-q", "-m", "start"])
        yield folder


def _small_files() -> Iterator[tuple[str, str]]:
    for number in range(_FILES):
        yield f"part_{number % _FOLDERS:02}/module_{number:05}.py", _text(number)


def _wide_files() -> Iterator[tuple[str, str]]:
    for number in range(_BURST):
        file = _changed_file(number)
        yield file.path, "".join(f"{line}\n" for line in file.lines)


def _text(number: int) -> str:
    return "".join(f"value_{line} = {number + line}\n" for line in range(_LINES))


def _review(folder: Path, *, beats: Path | None = None) -> TerminalProgram:
    module = ["midstream"] if beats is None else ["midstream.bench.beat", str(beats)]
    command = [sys.executable, "-m", *module, "review", "."]
    return TerminalProgram(command, environment=_environment(_state(folder)), folder=folder)


def _state(folder: Path) -> Path:
    return folder.parent / "state"


def _environment(state: Path) -> dict[str, str]:
    return {
        "MIDSTREAM_STATE_DIR": str(state),
        "MIDSTREAM_CONFIG": str(state / "config.toml"),
        "PYTHONDONTWRITEBYTECODE": "",
    }


def _hook(folder: Path, state: Path, tool: str) -> float:
    """Milliseconds that a hook takes which has nothing to hold."""
    call = {"file_path": str(folder / "new.py"), "content": "x = 1\n", "command": "ls"}
    event = {"hook_event_name": "PreToolUse", "cwd": str(folder), "tool_name": tool}
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "midstream", "hook"],
        input=json.dumps({**event, "tool_input": call}).encode(),
        env={**os.environ, **_environment(state)},
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return 1000 * (time.perf_counter() - begun)


def _write(program: TerminalProgram, folder: Path, number: int) -> float:
    """Milliseconds until a line that another program writes stands on screen."""
    path = folder / "part_00" / "module_00000.py"
    beside = path.with_suffix(".tmp")
    beside.write_text(f"written_{number:04} = 1\n{_text(0)}")
    since = len(program.output)
    beside.replace(path)
    written = time.perf_counter()
    shown = program.wait_for(f"written_{number:04}", 10, since=since)
    program.drain(0.35)
    return 1000 * (shown - written)


async def _kinds() -> list[Figure]:
    """What a large change takes until its kinds are known."""
    files = [_changed_file(number) for number in range(_BURST)]
    lines = sum(len(block.old) for file in files for block in file.blocks)
    delays: list[float] = []

    async def stand_by() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.001)
            delays.append(1000 * (time.perf_counter() - begun - 0.001))

    watch = asyncio.create_task(stand_by())
    spent, held = _processor_s(), resident_bytes()
    begun = time.perf_counter()
    first = 0.0
    facts: list[HunkFacts] = []
    async for found in find_facts(files):
        facts += found
        first = first or time.perf_counter() - begun
    walk = await asyncio.to_thread(arrange, facts)
    every = time.perf_counter() - begun
    spent = [after - before for before, after in zip(spent, _processor_s(), strict=True)]
    held = resident_bytes() - held
    watch.cancel()
    what = f"kinds of {lines:,} lines in {len(files)} files"
    return [
        at_most(f"{what}, first", 1000 * first, "ms", 300),
        at_most(f"{what}, all", 1000 * every, "ms", 3_000),
        at_most("held up meanwhile, p99", percentile(delays, 99), "ms", 8),
        beside("held up meanwhile, longest", max(delays), "ms"),
        at_most("processor time of the readers, a file", 1000 * spent[1] / len(files), "ms", 12),
        beside("processor time of the asker, a file", 1000 * spent[0] / len(files), "ms"),
        at_most(f"memory of the walk, {len(walk.evidence):,} hunks", held / 1e6, "MB", 300),
    ]


def _processor_s() -> tuple[float, float]:
    """Seconds of a processor that this process has used, and those of it that have ended."""
    times = os.times()
    return times.user + times.system, times.children_user + times.children_system


def _changed_file(number: int) -> ChangedFile:
    """A file of 200 lines, of which 40 change: names and quotes."""
    lines: list[str] = []
    blocks: list[ChangedBlock] = []
    for part in range(_LINES // 2):
        old = (f"    value = old_name({part}, {number})", f"    kind = {{'part': '{part}'}}")
        new = (f"    value = new_name({part}, {number})", f'    kind = {{"part": "{part}"}}')
        lines += ["", "", f"def work_{part}(rows):", "    rows.sort()"]
        for before, after in zip(old, new, strict=True):
            hunk_id = 1 + len(blocks) + number * _LINES
            blocks.append(ChangedBlock(hunk_id, len(lines), (before,), (after,)))
            lines += [before, f"    if value > {part}:", f"        rows.append(kind)  # {part}"]
    return ChangedFile(f"pkg/module_{number:03}.py", tuple(lines), tuple(blocks))


def _burst(program: TerminalProgram, folder: Path) -> float:
    """Milliseconds until many written files are mentioned."""
    since = len(program.output)
    for number in range(1, _BURST + 1):
        path = folder / f"part_{number % _FOLDERS:02}" / f"module_{number:05}.py"
        path.write_text(_text(number).replace("value_7 ", "changed_7 "))
    written = time.perf_counter()
    return 1000 * (program.wait_for(f"{_BURST} files changed", 30, since=since) - written)
