"""The end of child processes."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from midstream import processes


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


async def test_a_process_that_is_about_to_end_is_not_killed() -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(7)"),
        stdin=PIPE,
        stdout=PIPE,
    )
    await processes.end(child, kill=False)
    assert child.returncode == 7
