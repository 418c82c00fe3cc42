"""Plays one whole session again and again, kills it at a system call, and resumes it.

Run as a program, which stays without threads, so that it can fork: ``python -m
tests.helpers.killed_sessions FOLDER STEP...`` prints a line of JSON per step, after one of a
session that is not killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from midstream.pairing.files import put_backs
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.settings import Settings
from midstream.workspace.journal import Journal
from midstream.workspace.paths import state_dir
from tests.helpers.pairing import git, make_repo, numbered
from tests.helpers.stepped import SteppedModel, served
from tests.helpers.system_calls import between_system_calls

BEFORE: Final = numbered(24)
A: Final = ("    step_02 = work(2)\n", "    A\n")
B: Final = ("    step_10 = work(10)\n", "    B\n")
C: Final = ("    step_18 = work(18)\n", "    C\n")
CHANGES: Final = {"A": A, "B": B, "C": C}
MINE: Final = "# the person's\n"
FILES: Final = ("run.py", "one.py", "two.py", "late.py", "new.py")
OTHERS: Final = ("one.py", "two.py", "new.py")
KILLED: Final = -signal.SIGKILL
_BECOME_PARENT: Final = 36
"""``PR_SET_CHILD_SUBREAPER``: processes whose parent has been killed become ours."""

Say = Callable[[str], None]


def changed(*changes: tuple[str, str], text: str = BEFORE) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def on_disk(root: Path) -> dict[str, str]:
    """The content of each file, as the marks of its changes; ``""`` where there is no file."""
    paths = {name: root / name for name in FILES}
    return {
        name: _told_by_marks(path.read_text() if path.exists() else None)
        for name, path in paths.items()
    }


def committed(root: Path) -> dict[str, str]:
    """The content of each file in the last commit, in the form of ``on_disk``."""
    names = git(root, "ls-tree", "--name-only", "HEAD").splitlines()
    return {
        name: _told_by_marks(git(root, "show", f"HEAD:{name}") if name in names else None)
        for name in FILES
    }


def _told_by_marks(text: str | None) -> str:
    if text is None:
        return ""
    found = [(mark, change) for mark, change in CHANGES.items() if change[1] in text]
    whole = changed(*(change for _, change in found), text=MINE * (MINE in text) + BEFORE)
    marks = "".join(mark for mark, _ in found)
    return f"{'mine ' * (MINE in text)}{marks or 'before'}" if text == whole else f"torn: {text!r}"


def save(root: Path, name: str, text: str) -> None:
    """Save a file as a careful editor does: whole, at one moment."""
    beside = root.with_name("saved")
    beside.write_text(text)
    beside.replace(root / name)


async def play(root: Path, say: Say) -> None:
    """A session with every action that writes; ``say`` is called after each."""
    model = SteppedModel()
    async with served(model) as endpoint:
        session = await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=False
        )
        async with session:
            decisions = session.decisions
            model.give(changed(A, B))
            model.end()
            await session.turns.instruct(Question("one", path="run.py", cursor=3))
            await session.turns.finished()
            say("asked")
            assert await decisions.accept(1)
            say("accept")
            await decisions.reject(2, "no")
            say("reject")
            await decisions.undo()
            say("undo the rejection")
            save(root, "run.py", MINE + (root / "run.py").read_text())
            say("the person saves")
            assert await decisions.accept(2)
            say("accept after a save")
            await decisions.undo()
            say("undo")
            await decisions.redo()
            say("redo")
            # What others have written, put back in three files at once.
            await session.review.switch_on(since_commit=False)
            for name in OTHERS:
                save(root, name, changed(C))
                say(f"others write {name}")
            await session.review.changed(OTHERS)
            external = [hunk.id for hunk in session.hunks.undecided()]
            assert len(external) == len(OTHERS)
            for hunk in external:
                await decisions.reject(hunk, "not so")
            say("marked")
            await decisions.put_backs.apply()
            say("put back")
            await decisions.undo()
            say("undo a put-back")
            (one,) = session.hunks.undecided("one.py")
            assert await decisions.accept(one.id)
            say("keep")
            await commit(session)
            say("commit")
            model.give(changed(C))
            model.end()
            await session.turns.instruct(Question("three", path="late.py", cursor=3))
            await session.turns.finished()
            say("asked again")
    say("closed")


async def commit(session: PairingSession) -> None:
    """Commit the accepted changes that can be staged."""
    changes = await session.commit.look()
    await session.commit.stage(*changes.stageable)
    if changes.staged or changes.stageable:
        await session.commit.commit("kept")


async def resume(root: Path) -> dict[str, Any]:
    """Open the folder as ``--resume`` does, and write something else; returns the findings."""
    model = SteppedModel()
    journal = Journal.latest(state_dir(), root)
    async with served(model) as endpoint:
        session = await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=False, resume=journal
        )
        async with session:
            opened = on_disk(root)
            hunks = [
                {
                    "path": hunk.path,
                    "state": str(hunk.state),
                    "change": next(
                        (k for k, (_, new) in CHANGES.items() if new.rstrip() in hunk.new), ""
                    ),
                    "external": hunk.external,
                    "postponed": hunk.postponed is not None,
                }
                for hunk in session.hunks
                if hunk.live
            ]
            told = [notice.text for notice in session.status.notices]
            await commit(session)
            found = committed(root)
            (root / "later.py").write_text(BEFORE)
            await session.files.open("later.py")
            for hunk in session.hunks.waiting("later.py"):  # In a review, of another program.
                await session.decisions.accept(hunk.id)
            model.give(changed(A))
            model.end()
            await session.turns.instruct(Question("later", path="later.py", cursor=3))
            await session.turns.finished()
            (later,) = session.hunks.undecided("later.py")
            written = await session.decisions.accept(later.id)
            assert (root / "later.py").read_text() == changed(A)
    return {
        "journal": journal is not None,
        "opened": opened,
        "hunks": hunks,
        "committed": found,
        "told": told,
        "written": written,
        "at the end": on_disk(root),
        "names": sorted(os.listdir(root)),  # noqa: PTH208
    }


def in_child(work: Callable[[Say], object]) -> tuple[list[str], int]:
    """Run something in a forked process; returns what it said, and its exit code."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        code = 1
        ours.close()

        def say(text: str) -> None:
            theirs.sendall(json.dumps(text).encode() + b"\n")

        try:
            work(say)
            code = 0
        except BaseException:
            say(traceback.format_exc())
        finally:
            os._exit(code)
    theirs.close()
    said = b""
    while data := ours.recv(1 << 16):
        said += data
    ours.close()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [json.loads(line) for line in said.splitlines()], status


def wait_for_orphans() -> None:
    """Wait for what a killed session had begun, such as a commit of git."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def main() -> None:
    """See the module."""
    put_backs.QUIET_S = 600.0
    ctypes.CDLL(None).prctl(_BECOME_PARENT, 1)
    folder, steps = Path(sys.argv[1]), [int(step) for step in sys.argv[2:]]
    state, root, template = folder / "state", folder / "project", folder / "template"
    os.environ["MIDSTREAM_STATE_DIR"] = str(state)
    make_repo(template, dict.fromkeys(("run.py", "one.py", "two.py", "late.py"), BEFORE))
    for key in ("name", "email"):
        git(template, "config", f"user.{key}", "t@example.org")
    for step in [-1, *steps]:
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(template, root)

        def killed(say: Say, step: int = step) -> None:
            count = 0

            def at_step(number: int) -> None:
                nonlocal count
                count = number
                if number == step:
                    os.kill(os.getpid(), signal.SIGKILL)

            def told(done: str) -> None:
                say(json.dumps([done, on_disk(root), count]))

            with between_system_calls(at_step, all_threads=True):
                asyncio.run(play(root, told))

        def resumed(say: Say) -> None:
            say(json.dumps(asyncio.run(resume(root))))

        said, code = in_child(killed)
        wait_for_orphans()
        found: dict[str, Any] = {"step": step, "code": code, "said": said, "raw": on_disk(root)}
        found["resumed"], found["resume code"] = in_child(resumed)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
