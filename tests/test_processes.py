"""The end of child processes."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from midstream import processes


async def test_a_process_is_over_also_where_its_end_is_cancelled_twice() -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(600)"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
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


async def test_a_process_that_is_about_to_end_is_not_killed() -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(7)"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    await processes.end(child, kill=False)
    assert child.returncode == 7
