"""Processes of tests: started so that they end, found when they do not.

Run as a program this module is the *reaper*: it waits until its standard input ends, which it does
however its parent ended, and then kills every process that carries the mark of the run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

RUN = "MIDSTREAM_TEST_RUN"
"""The environment variable that marks what belongs to a run of the tests."""
PROC = Path("/proc")


@contextlib.contextmanager
def started(command: Sequence[object], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process that is killed at the end of the block if it still runs.

    The block of a bare ``Popen`` waits for its process, forever if an assertion has failed.
    """
    with subprocess.Popen([str(part) for part in command], **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = (PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"


def descendants(pid: int) -> set[int]:
    """The running children of a process, and theirs."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in (PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                for child in map(int, (task / "children").read_text().split()):
                    if running(child):
                        found |= {child, *descendants(child)}
    return found


def marked(run: str) -> set[int]:
    """The running processes that belong to a run."""
    mark = f"{RUN}={run}".encode()
    found: set[int] = set()
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
    return {pid for pid in found if running(pid)}


def command_line(pid: int) -> str:
    """What a process was started with."""
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
    return ""


def kill(pids: Iterable[int]) -> None:
    """Kill processes; those that are gone are no error."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def start_reaper(run: str) -> subprocess.Popen[bytes]:
    """Start the reaper of a run; closing its standard input makes it work and end."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, run],
        stdin=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != RUN},
        start_new_session=True,
    )


def _reap(run: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    while left := marked(run):
        kill(left)
        time.sleep(0.05)


if __name__ == "__main__":
    _reap(sys.argv[1])
