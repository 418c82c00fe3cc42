"""What the live guard costs while a stream runs: CPU, memory, and how long it holds the event loop.

A long region streams into a file of 3,000 lines at 5,000 tokens a second, once watched and once
not; the guard works as in a session: one look at a time, always of the newest lines.  Memory is
the ruff child's; the rest of the guard lives in the process that shows the screen.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from midstream.bench.figures import Figure
from midstream.guard.scanner import Scanner
from midstream.guard.stream import StreamScan

TOKENS_PER_S: Final = 5_000
TOKENS_PER_LINE: Final = 8
"""Mean of Python source (measured on the standard library)."""
_FRAME_S: Final = 0.02
_BEAT_S: Final = 0.002


@dataclass(frozen=True, slots=True)
class _Load:
    seconds: float
    own_cpu_s: float
    child_cpu_s: float
    child_bytes: int
    held_p99_ms: float


async def load_figures(
    scanner: Scanner, above: Sequence[str], region: Sequence[str]
) -> list[Figure]:
    """Stream ``region`` below ``above`` and compare with the same stream unguarded."""
    bare = await _stream(None, above, region)
    watched = await _stream(scanner, above, region)
    own = 100 * (watched.own_cpu_s / watched.seconds - bare.own_cpu_s / bare.seconds)
    child = 100 * watched.child_cpu_s / watched.seconds
    held = watched.held_p99_ms - bare.held_p99_ms
    memory = watched.child_bytes / 2**20
    at = f"at {TOKENS_PER_S:,} tokens/s"
    return [
        Figure(f"CPU of the screen's process {at}", own, "% core", "<= 5", own <= 5),
        Figure(f"CPU of the ruff child {at}", child, "% core", "<= 20", child <= 20),
        Figure("event loop held longer than unguarded, p99", held, "ms", "<= 2", held <= 2),
        Figure("memory of the ruff child", memory, "MiB", "<= 64", memory <= 64),
    ]


async def _stream(scanner: Scanner | None, above: Sequence[str], region: Sequence[str]) -> _Load:
    written: list[str] = []
    news = asyncio.Event()
    over = False
    late: list[float] = []

    async def look(scan: StreamScan) -> None:
        while not over or scan.seen < len(written):
            await news.wait()
            news.clear()
            await scan.look(list(written))

    async def beat() -> None:
        while not over:
            due = time.perf_counter() + _BEAT_S
            await asyncio.sleep(_BEAT_S)
            late.append(1000 * (time.perf_counter() - due))

    tasks = [asyncio.create_task(beat())]
    if scanner is not None:
        scan = StreamScan(scanner, "m.py", above, [])
        await scan.look([])
        tasks.append(asyncio.create_task(look(scan)))
    pid = None if scanner is None else scanner.ruff.pid
    child, own, begun = _cpu_s(pid), time.process_time(), time.perf_counter()
    rate = TOKENS_PER_S / TOKENS_PER_LINE
    while len(written) < len(region):
        await asyncio.sleep(_FRAME_S / 4)
        due = min(len(region), int((time.perf_counter() - begun) * rate))
        if due > len(written):
            written.extend(region[len(written) : due])
            news.set()
    over = True
    news.set()
    await asyncio.gather(*tasks)
    seconds = time.perf_counter() - begun
    late.sort()
    return _Load(
        seconds,
        time.process_time() - own,
        _cpu_s(pid) - child,
        _resident_bytes(pid),
        late[int(0.99 * (len(late) - 1))],
    )


def _cpu_s(pid: int | None) -> float:
    """CPU time of a process so far; 0.0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int | None) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
