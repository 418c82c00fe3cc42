"""What is said when a session has ended: decided, committed, left, and how to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.pairing.leaving import resuming, summary
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import make_repo

FILES = {"one.py": "A = 1\n", "two.py": "B = 1\n", "three.py": "C = 1\n"}


def edit(name: str) -> str:
    line = FILES[name].strip()
    new = line.replace("1", "2")
    return f"{name}\n<<<<<<< SEARCH\n{line}\n=======\n{new}\n>>>>>>> REPLACE\n"


async def test_what_was_decided_committed_and_left_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_repo(tmp_path / "work", FILES)
    monkeypatch.chdir(tmp_path)
    hosted = Hosted()
    hosted.say("\n".join(map(edit, FILES)))
    hosted.end()
    async with (
        hosted.running() as url,
        await PairingSession.open(
            root,
            settings=hosted.settings(url, "search-replace", attention=False),
            watch=False,
        ) as session,
    ):
        assert list(summary(session, "")) == []
        await session.turns.instruct(Question("make them 2", "one.py"))
        await session.turns.finished()
        first, second, third = session.hunks.undecided()
        await session.decisions.accept(first.id)
        await session.decisions.reject(second.id)
        await session.commit.stage(first.path)
        commit = await session.commit.commit("Make it 2")
    told = [
        f"1 hunk accepted and written to {first.path}; 1 hunk rejected in {second.path}. "
        f"The files are in {root}.",
        f"Committed: {commit[:8]}.",
    ]
    left = f"1 hunk undecided in {third.path}"
    command = resuming(root)
    assert command == f"midstream {root} --resume"
    assert list(summary(session, command)) == [*told, f"{left}; `{command}` brings it back."]
    monkeypatch.chdir(root)
    assert resuming(root) == "midstream --resume"
    assert list(summary(session, ""))[-1] == f"{left}; no journal keeps it."
    assert next(iter(summary(session, ""))) == told[0].partition(" The files")[0]
