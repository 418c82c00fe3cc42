"""The end of child processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest

from midstream import processes
from tests.helpers.waiting import until


async def test_a_process_is_over_also_where_its_end_is_cancelled_twice() -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(600)"),
        stdin=PIPE,
        stdout=PIPE,
    )
    assert child.stdout is not None
    await child.stdout.readline()
    ending = asyncio.create_task(processes.end(child))
    for _ in range(2):
        await asyncio.sleep(0)
        ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert child.returncode is not None
    assert child.stdout.at_eof()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


async def test_a_start_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    begun = f"import os, time; open({str(noted)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    for steps in range(8):
        noted.unlink(missing_ok=True)
        starting = asyncio.create_task(
            processes.start(sys.executable, "-c", begun, stdin=PIPE, stdout=PIPE)
        )
        for _ in range(steps):
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        if noted.exists() and noted.read_text():
            with pytest.raises(ProcessLookupError):
                os.kill(int(noted.read_text()), 0)


async def test_a_start_that_is_cancelled_ends_what_was_started_meanwhile(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    script = f"sleep 604 & sleep 604 & touch {noted}; wait"
    before = children()
    starting = asyncio.create_task(processes.start("sh", "-c", script, start_new_session=True))
    while children() == before:  # noqa: ASYNC110 - it is no news for the loop
        await asyncio.sleep(0)
    until(noted.exists)  # This blocks the event loop, so that the start is not complete.
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    until(lambda: not set(asleep(604)))


async def test_a_process_that_is_about_to_end_is_not_killed() -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(7)"),
        stdin=PIPE,
        stdout=PIPE,
    )
    await processes.end(child, kill=False)
    assert child.returncode == 7


def children() -> list[str]:
    """The children of the calling thread."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()


DAEMON = ["sh", "-c", "(setsid sleep 600 &); echo done; echo trouble >&2"]


@pytest.fixture
def daemons() -> Iterator[None]:
    """End the processes that the tests leave behind."""
    before = set(asleep())
    yield
    for pid in set(asleep()) - before:
        os.kill(pid, signal.SIGKILL)


def asleep(seconds: int = 600) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                yield int(folder.name)


@pytest.mark.usefixtures("daemons")
def test_a_daemon_that_holds_the_pipes_is_not_waited_for() -> None:
    done = processes.run(DAEMON, timeout=60)
    assert (done.code, done.output, done.errors) == (0, b"done\n", b"trouble\n")


def test_a_daemon_that_goes_on_writing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "HELD_S", 0.5)
    writes = "(setsid sh -c 'while echo more; do :; done' &)"  # It ends with the pipe.
    assert processes.run(["sh", "-c", f"{writes}; exit 3"], timeout=10).code == 3


async def test_the_last_of_endless_errors_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_MAX_ERRORS", 1000)
    failing = ["sh", "-c", "yes no | head -c 1000000 >&2; printf end >&2"]
    for done in (processes.run(failing, timeout=60), await processes.collect(*failing)):
        assert len(done.errors) == 1000
        assert done.errors.endswith(b"end")


@pytest.mark.usefixtures("daemons")
async def test_the_end_of_a_process_is_not_that_of_its_daemon() -> None:
    done = await processes.collect(*DAEMON)
    assert (done.code, done.output, done.errors) == (0, b"done\n", b"trouble\n")
    child = await processes.start(*DAEMON, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    await processes.end(child, kill=False)
    assert child.returncode == 0


def test_output_without_end_is_cut() -> None:
    done = processes.run(["yes"], timeout=60, limit=100_000)
    assert done.cut
    assert len(done.output) == 100_000
    with pytest.raises(TimeoutError):
        processes.run(["sleep", "600"], timeout=0.1)
    assert processes.run(["cat"], stdin=b"x" * 3_000_000, timeout=60).output == b"x" * 3_000_000


async def test_what_a_process_that_is_cut_has_started_ends_with_it() -> None:
    endless = ["sh", "-c", "sleep 607 & exec yes"]
    assert processes.run(endless, timeout=60, limit=1000).cut
    assert (await processes.collect(*endless, limit=1000)).cut
    until(lambda: not set(asleep(607)))


def test_a_process_that_is_no_longer_wanted_ends_with_what_it_started(tmp_path: Path) -> None:
    tidied, deaf = tmp_path / "tidied", tmp_path / "deaf"
    script = (
        "(trap exit TERM; while :; do sleep 0.05; done) & child=$!; "
        f"trap 'wait $child; touch {tidied}; exit 1' TERM; "
        f"(trap '' TERM; touch {deaf}; exec sleep 603) & while :; do sleep 0.05; done"
    )
    stop = threading.Event()

    def stop_once_it_runs() -> None:
        try:
            until(deaf.exists)
        finally:
            stop.set()

    stopper = threading.Thread(target=stop_once_it_runs, daemon=True)
    stopper.start()
    with pytest.raises(processes.UnwantedError):
        processes.run(["sh", "-c", script], timeout=600, stop=stop)
    stopper.join()
    assert tidied.exists()
    until(lambda: not set(asleep(603)))  # A killed process goes when the system gets to it.


HANGS = """
import threading, time
from midstream import processes
work = lambda: processes.run(["sh", "-c", "exec sleep 604"], timeout=600)
threading.Thread(target=work).start()
while not processes._blocking: time.sleep(0.01)
processes.end_soon()
"""


def test_what_a_thread_that_hangs_waits_for_ends_with_the_program() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"")
    until(lambda: not set(asleep(604)))


async def test_output_without_end_is_cut_while_it_comes() -> None:
    done = await processes.collect("yes", limit=100_000)
    assert done.cut
    assert len(done.output) == 100_000


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system does not tell")
def test_a_process_that_nothing_wakes_is_stuck(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(processes.StuckError):
        processes.run(["cat", str(tmp_path / "pipe")], timeout=600, stuck_after=0.5)


@pytest.mark.system
def test_a_process_that_works_or_wakes_is_not_stuck() -> None:
    for works in ("while time.time() < until: pass", "while time.time() < until: time.sleep(0.1)"):
        script = f"import time\nuntil = time.time() + 3\n{works}\nprint('done')"
        done = processes.run([sys.executable, "-c", script], timeout=600, stuck_after=1.0)
        assert (done.code, done.output) == (0, b"done\n")
