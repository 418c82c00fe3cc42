"""Waiting until an event loop has nothing left to do, without guessing from processor time.

Textual's pilot takes a process that uses little processor time for one that is idle.  On a loaded
machine that is wrong both ways: a process that gets no time looks idle, and one beside a running
server never does.  The loop itself knows: it is idle when it is about to block.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from selectors import SelectorKey
from typing import Any

from textual.pilot import Pilot

QUIET_S = 0.004
"""Time in which nothing may arrive, such as an answer of another thread."""
SOON_S = 0.02
"""A timer that is due within this time belongs to the work, like the paint after a key."""
JOB_S = 0.5
"""Work in a thread is waited for unless it has run for longer: then it waits for the test."""
LIMIT_S = 1.0
_WATCH = "midstream_test_watch"
_wait_for_screen = Pilot._wait_for_screen

Ready = list[tuple[SelectorKey, int]]


class _LoopWatch:
    """Tells when a loop is about to block with no work of its own under way."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waiting: list[tuple[asyncio.Future[bool], float]] = []
        self._jobs: dict[asyncio.Future[Any], float] = {}
        selector = loop._selector  # type: ignore[attr-defined]
        self._block: Callable[[float | None], Ready] = selector.select
        selector.select = self._select
        self._run_job = loop.run_in_executor
        loop.run_in_executor = self._run_in_executor  # type: ignore[method-assign]

    async def idle(self) -> bool:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        self._waiting.append((done, time.monotonic()))
        limit = loop.call_later(LIMIT_S, lambda: done.done() or done.set_result(False))
        try:
            return await done
        finally:
            limit.cancel()

    def _select(self, timeout: float | None = None) -> Ready:
        self._waiting = [entry for entry in self._waiting if not entry[0].done()]
        if not self._waiting or (timeout is not None and timeout <= 0):
            return self._block(timeout)
        now = time.monotonic()
        timer_soon = timeout is not None and timeout <= SOON_S
        if timer_soon and now - self._waiting[0][1] < SOON_S:
            return self._block(timeout)
        ready = self._block(QUIET_S if timeout is None else min(QUIET_S, timeout))
        if not ready and not any(now - since < JOB_S for since in self._jobs.values()):
            for done, _ in self._waiting:
                done.set_result(True)
        return ready

    def _run_in_executor(self, *arguments: Any) -> asyncio.Future[Any]:
        job = self._run_job(*arguments)
        self._jobs[job] = time.monotonic()
        job.add_done_callback(self._jobs.pop)
        return job


async def idle(*_: float) -> bool:
    """Wait until the running loop has nothing to do, and tell whether that came.

    Takes and ignores Textual's own limits.
    """
    loop = asyncio.get_running_loop()
    watch = vars(loop).get(_WATCH)
    if watch is None:
        watch = _LoopWatch(loop)
        setattr(loop, _WATCH, watch)
    return await watch.idle()


async def handled(pilot: Pilot[Any]) -> bool:
    """``Pilot._wait_for_screen``, which asks every widget, where the loop never becomes idle."""
    return await idle() or await _wait_for_screen(pilot)


async def pause(pilot: Pilot[Any], delay: float | None = None) -> None:
    """``Pilot.pause``: wait for a time, if one is given, and then until all is shown."""
    if delay:
        await asyncio.sleep(delay)
    await handled(pilot)
    pilot.app.screen._on_timer_update()
