"""Child processes: the memory that one takes, and an end that leaves nothing open."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path


def resident_bytes(pid: int | str = "self") -> int:
    """Resident memory of a process; 0 where the system does not report it (Linux reports it)."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


async def end(process: asyncio.subprocess.Process, *, kill: bool = True) -> None:
    """Wait for the end of a process that has no children of its own, and close its pipes.

    A cancellation waits for this: a process whose end is not seen, and pipes that are not read to
    their end, would outlive the event loop.

    Args:
        process: The process; it may have ended.
        kill: Whether to end it; otherwise it ends by itself, at the latest when its input does.
    """
    if kill and process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if process.stdin is not None:
        process.stdin.close()
    ending = asyncio.ensure_future(process.communicate())  # wait() leaves the pipes open
    cancelled: asyncio.CancelledError | None = None
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
