"""A session that is killed: a hook that waits means no, a batch of put-backs is never half done."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from midstream.edits.hunks import HunkState
from midstream.pairing.files import put_backs
from midstream.pairing.journal.journal import earlier_sessions
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.files import Workspace
from tests.helpers.pairing import Witness, git, make_repo, numbered
from tests.helpers.waiting import PATIENCE_S

pytestmark = pytest.mark.system  # each kills a session in a process of its own

OLD = numbered(12)
NEW = OLD.replace("work(3)", "work(33)")
FILES = ("one.py", "two.py")

SESSION = """
import asyncio, contextlib, os, signal, socket, sys
from pathlib import Path
from midstream.agents import hook_client
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace import transaction

moment, journalled, happened = sys.argv[2], sys.argv[3], []

def die():
    if journalled == "all":
        session.journal.flush()
    os.kill(os.getpid(), signal.SIGKILL)

def killed_at(owner, name):
    real = getattr(owner, name)
    def call(*arguments, **options):
        happened.append(name)
        if f"before {name} {happened.count(name)}" == moment:
            die()
        result = real(*arguments, **options)
        if f"after {name} {happened.count(name)}" == moment:
            die()
        return result
    setattr(owner, name, call)

killed_at(transaction, "_swap")
killed_at(transaction._IntentRecord, "commit")
killed_at(transaction._IntentRecord, "close")

def listens():
    prefix = hook_client.socket_prefix(os.path.realpath(sys.argv[1]))
    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
        connection.connect(f"{hook_client.socket_folder()}/{prefix}{os.getpid()}")
        return True

async def main():
    global session
    unreachable = Endpoint("ws://127.0.0.1:9/v1", None, "none")
    session = await PairingSession.open(
        Path(sys.argv[1]), settings=Settings(), endpoint=unreachable, watch=False
    )
    await session.review.switch_on(since_commit=True)
    while not listens():
        await asyncio.sleep(0.01)
    print("ready", flush=True)
    if moment == "never":
        while not session.gate.waiting:
            await asyncio.sleep(0.01)
        print("held", flush=True)
        await asyncio.Event().wait()
    hunks = session.hunks.undecided()
    session.decisions.put_backs.to_postpone = lambda ids: [h for h in hunks if h.id in ids]
    for hunk in hunks:
        assert await session.decisions.reject(hunk.id, "not so")
    session.journal.flush()
    await session.decisions.put_backs.apply()
    die()

asyncio.run(main())
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_repo(tmp_path / "work", dict.fromkeys(FILES, OLD))
    for name in FILES:
        (root / name).write_text(NEW)
    return root


async def start(*command: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, *command, stdin=pipe, stdout=pipe, stderr=pipe
    )


async def run_session(
    root: Path, moment: str, journalled: str = "all"
) -> asyncio.subprocess.Process:
    """A session in a process of its own, which reviews the folder."""
    process = await start("-c", SESSION, str(root), moment, journalled)
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        line = await process.stdout.readline()
    assert line == b"ready\n", await process.communicate()
    return process


async def test_an_edit_that_waits_when_the_session_is_killed_is_refused(root: Path) -> None:
    session = await run_session(root, "never")
    call = {"file_path": str(root / "one.py"), "content": NEW.replace("work(9)", "work(99)")}
    event = {"hook_event_name": "PreToolUse", "cwd": str(root), "tool_name": "Write"}
    try:
        hook = await start("-m", "midstream", "hook")
        talk = asyncio.create_task(
            hook.communicate(json.dumps({**event, "tool_input": call}).encode())
        )
        assert session.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            assert await session.stdout.readline() == b"held\n"
    finally:
        session.kill()
        await session.communicate()
    out, trouble = await talk
    assert (hook.returncode, trouble) == (0, b"")
    answer = json.loads(out)["hookSpecificOutput"]
    assert answer["permissionDecision"] == "deny"
    assert "Midstream exited" in answer["permissionDecisionReason"]
    assert (root / "one.py").read_text() == NEW
    # With the session gone for good, the next edit passes as if there were no hook.
    again = await start("-m", "midstream", "hook")
    event["hook_event_name"] = "PreToolUse"
    assert await again.communicate(json.dumps({**event, "tool_input": call}).encode()) == (b"", b"")
    assert again.returncode == 0


MOMENTS = (
    *("before _swap 1", "after _swap 1", "before _swap 2", "after _swap 2"),
    *("before commit 1", "after commit 1", "before close 1", "after close 1", "at the end"),
)


@pytest.mark.parametrize("journalled", ["all", "marks"])
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_batch_of_put_backs_is_whole_or_undone(
    root: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, moment: str, journalled: str
) -> None:
    """The journal has everything up to the kill, or only the marks."""
    monkeypatch.setattr(put_backs, "QUIET_S", 600.0)
    process = await run_session(root, moment, journalled)
    _, trouble = await process.communicate()
    assert process.returncode == -signal.SIGKILL, trouble
    await asyncio.to_thread(Workspace(root).recover)
    texts = {(root / name).read_text() for name in FILES}
    assert texts in ({OLD}, {NEW}), "never half"
    assert sorted(os.listdir(root)) == [".git", *FILES]  # noqa: PTH208

    (journal,) = earlier_sessions(root)
    async with await PairingSession.open(
        root,
        settings=Settings(),
        endpoint=endpoint,
        watch=False,
        resume=journal.path,
        review=True,
    ) as session:
        witness = Witness(session)
        await witness.until(lambda: session.review.on)
        # Hunks that went back are rejected; the others go back now, or wait for a decision.
        hunks = {hunk.path: hunk for hunk in session.hunks if hunk.live}
        assert hunks.keys() == set(FILES)
        await session.decisions.put_backs.finish()
        texts = {(root / name).read_text() for name in FILES}
        states = {hunk.state for hunk in hunks.values()}
        if states == {HunkState.SETTLED}:
            assert texts == {NEW}
            assert session.hunks.undecided() == list(hunks.values())
            assert await session.decisions.reject_all() == 2
        else:
            assert states == {HunkState.REJECTED}
        assert git(root, "status", "--porcelain") == ""
        for _ in range(2):
            await session.decisions.undo()
        assert {(root / name).read_text() for name in FILES} == {NEW}
