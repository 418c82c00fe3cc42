"""The embedded server as a real child process: replayed models, death, and what survives it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from midstream.edits.hunks import HunkState
from midstream.errors import UserError
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession, SessionState, TurnStatus
from midstream.pairing.status import HunkSettled
from midstream.settings import Settings
from midstream.workspace.journal import Journal
from tests.helpers.pairing import Witness, numbered
from tests.helpers.waiting import PATIENCE_S

pytestmark = pytest.mark.system

BEFORE = numbered()
FILES = {"run.py": BEFORE}
A = ("    step_02 = work(2)\n", "    A\n")
B = ("    step_35 = work(35)\n", "    B\n")


def changed(*changes: tuple[str, str], text: str = BEFORE) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.json"
    entries = [
        {"match": "slow", "edit": [A, B], "rate": 150},
        {"match": "fast", "edit": [A, B]},
        {"match": "other", "edit": [["step_35 = work(35)", "other = 35"]]},
    ]
    path.write_text(json.dumps(entries))
    return path


def pid_of(session: PairingSession) -> int | None:
    """Process id of the embedded server while it runs."""
    server = session.server.server
    return server.process.pid if server is not None and server.process is not None else None


async def test_replayed_model_through_the_child(
    root: Path, script: Path, settings: Settings
) -> None:
    async with await PairingSession.open(
        root, settings=settings, replay=script, watch=False
    ) as session:
        assert session.status.state is SessionState.STARTING
        turn = await session.turns.instruct(Question("fast", path="run.py", cursor=3))
        pid = pid_of(session)
        assert pid is not None
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE
        assert session.server.model_name == "replay"
        assert session.server.model_info.edit_format == "region"
        assert turn.tokens == session.status.meter.output_tokens > 100
        assert await session.decisions.accept_rest("run.py") == 2
        assert (root / "run.py").read_text() == changed(A, B)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_server_killed_in_the_middle_of_a_stream(
    root: Path, script: Path, settings: Settings
) -> None:
    async with await PairingSession.open(
        root, settings=settings, replay=script, watch=False
    ) as session:
        witness = Witness(session)
        turn = await session.turns.instruct(Question("slow", path="run.py", cursor=3))
        await witness.seen(HunkSettled)
        first = pid_of(session)
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await session.turns.finished()
        assert session.status.state is SessionState.OFFLINE
        assert turn.status is TurnStatus.FAILED
        assert "connection to the model server was lost" in turn.error
        assert turn.again == "starts it again"
        assert "the next instruction starts it again" in witness.notice
        assert len(session.status.notices) == 1
        assert [h.state for h in session.hunks] == [HunkState.SETTLED]
        assert await session.decisions.accept(1)
        assert (root / "run.py").read_text() == changed(A)
        turn = await session.turns.instruct(Question("other", path="run.py", cursor=3))
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE
        assert pid_of(session) not in (None, first)
        assert await session.decisions.accept_rest("run.py") == 1
        assert (root / "run.py").read_text() == changed(A, ("step_35 = work(35)", "other = 35"))


@pytest.mark.parametrize("pause", [0, 0.02, 0.05])
async def test_closing_while_the_server_starts(
    root: Path, script: Path, settings: Settings, pause: float
) -> None:
    """The person quits before the model is there: no wait, no process left."""
    before = children()
    session = await PairingSession.open(root, settings=settings, replay=script, watch=False)
    asking = asyncio.create_task(session.turns.instruct(Question("fast", path="run.py", cursor=3)))
    await asyncio.sleep(pause)
    async with asyncio.timeout(PATIENCE_S):
        await session.close()
    with pytest.raises(UserError):
        await asking
    assert children() <= before


def children() -> set[int]:
    """Process ids of this process's children, all threads'."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for path in tasks for pid in path.read_text().split()}


async def test_server_killed_while_idle(root: Path, script: Path, settings: Settings) -> None:
    async with await PairingSession.open(
        root, settings=settings, replay=script, watch=False
    ) as session:
        witness = Witness(session)
        await witness.until(lambda: session.status.state is SessionState.READY)
        pid = pid_of(session)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await witness.until(lambda: session.status.state is SessionState.OFFLINE)
        assert witness.notice == ("The model server has exited; the next instruction restarts it.")
        turn = await session.turns.instruct(Question("fast", path="run.py", cursor=3))
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE


SCENE = """
import asyncio, sys
from pathlib import Path
from midstream.pairing.request.question import Question
from midstream.pairing.status import HunkSettled
from midstream.pairing.session import PairingSession
from midstream.settings import Settings

async def main():
    root, script = map(Path, sys.argv[1:])
    session = await PairingSession.open(root, settings=Settings(), replay=script)
    settled = asyncio.Event()
    session.status.subscribe(lambda e: isinstance(e, HunkSettled) and settled.set())
    await session.turns.instruct(Question("fast", path="run.py", cursor=3))
    await session.turns.finished()
    await session.decisions.accept(1)
    settled.clear()
    await session.turns.instruct(Question("slow", path="run.py", cursor=3))
    await settled.wait()
    await asyncio.sleep(0.2)
    print(session.server.server.process.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


TWENTY = ("    step_20 = work(20)\n", "    pass\n")
FIVE = ("    step_05 = work(5)\n", "    five = 5\n")


@pytest.fixture
def killed(root: Path, script: Path) -> Iterator[int]:
    """A session that accepted a hunk and was killed while it streamed; its server's process id."""
    (root / "run.py").write_text(changed(TWENTY))
    entries = [
        {"match": "fast", "edit": [A, B]},
        {"match": "slow", "edit": [FIVE], "rate": 60},
    ]
    script.write_text(json.dumps(entries))
    command = [sys.executable, "-c", SCENE, str(root), str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        server = int(program.stdout.readline())
        program.kill()
        program.wait(PATIENCE_S)
        yield server


async def test_killed_session_is_taken_up_again(
    root: Path, script: Path, settings: Settings, state: Path, killed: int
) -> None:
    """SIGKILL while it streams: no orphan server, accepted hunks on disk, the others come back."""
    on_disk = changed(A, TWENTY)
    assert (root / "run.py").read_text() == on_disk
    journal = Journal.latest(state, root)
    assert journal is not None
    async with await PairingSession.open(
        root, settings=settings, replay=script, watch=False, resume=journal
    ) as session:
        assert (root / "run.py").read_text() == on_disk
        assert [turn.status for turn in session.turns] == [TurnStatus.DONE, TurnStatus.STOPPED]
        assert session.hunks.get(1).state is HunkState.ACCEPTED
        undecided = session.hunks.undecided("run.py")
        assert ("    five = 5",) in [h.new for h in undecided]
        # The first answer's other hunk waits again: the second answer never reached its lines.
        assert len(undecided) == 2
        assert (
            session.status.notices[0].text
            == "The last session is back: 2 undecided hunks in 1 file."
        )
        assert await session.decisions.accept_rest("run.py") == 2
        assert (root / "run.py").read_text() == changed(A, B, TWENTY, FIVE)
        await session.decisions.undo()
        assert (root / "run.py").read_text() == on_disk
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.to_thread(wait_gone, killed)


def wait_gone(pid: int) -> None:
    """Wait until a process that is nobody's child has ended."""
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.01)
