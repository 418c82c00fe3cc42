"""Processes: whether one is running, its memory, and ending one cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any


def resident_bytes(pid: int | str = "self") -> int:
    """Resident memory of a process; 0 where the system does not report it (Linux reports it)."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def runs(pid: int) -> bool:
    """Whether a process runs, ours or another user's."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


async def uninterrupted(work: Callable[[], Awaitable[object]]) -> None:
    """Await something to its end; a cancellation begins it anew, and takes effect after that.

    For what must be closed: a process whose end is not seen, and pipes that are not read to their
    end, would outlive the event loop.  One cancellation may follow another, as it does where an
    app cancels its workers and the end of the event loop cancels every task.
    """
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            await work()
            break
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def start(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """Start a process as ``asyncio.create_subprocess_exec`` does; a cancellation ends it first.

    asyncio leaves its pipes open where the start is cancelled.

    Raises:
        OSError: It cannot be started.
    """
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*command, **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:

        async def ended() -> None:
            if not starting.cancelled():
                with contextlib.suppress(OSError):
                    await end(await asyncio.shield(starting))

        await uninterrupted(ended)
        raise


async def end(process: asyncio.subprocess.Process, *, kill: bool = True) -> None:
    """Wait for the end of a process that has no children of its own, and close its pipes.

    A cancellation waits for this (see ``uninterrupted``).

    Args:
        process: The process; it may have ended.
        kill: Whether to end it; otherwise it ends by itself, at the latest when its input does.
    """
    if kill and process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await uninterrupted(process.communicate)  # wait() leaves the pipes open
