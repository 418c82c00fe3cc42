"""What is said when a session has ended: decided, committed, left, and how to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.pairing.journal.journal import earlier_sessions
from midstream.pairing.leaving import resuming, summary
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from tests.helpers.full_disk import full_disk
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import Witness, make_repo

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


async def asked(session: PairingSession) -> None:
    await session.turns.instruct(Question("make them 2", "one.py"))
    await session.turns.finished()


async def test_a_journal_that_a_full_disk_cuts_off_keeps_nothing_more(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "work", FILES)
    hosted = Hosted()
    hosted.say(edit("one.py"))
    hosted.end()
    async with (
        hosted.running() as url,
        await PairingSession.open(
            root, settings=hosted.settings(url, "search-replace", attention=False), watch=False
        ) as session,
    ):
        await asked(session)
        assert "brings it back" in list(summary(session, "midstream --resume"))[-1]
        (hunk,) = session.hunks.undecided()
        with full_disk():
            assert not await session.decisions.accept(hunk.id)
            assert (root / "one.py").read_text() == FILES["one.py"]
            left, trouble = summary(session, "midstream --resume")
        assert left == "1 hunk undecided in one.py; no journal keeps it."
        assert trouble.startswith("The journal could not be written (File too large)")
        assert await session.decisions.accept(hunk.id)
        (told,) = summary(session, "midstream --resume")
        assert "accepted and written" in told


def without_journal(session: PairingSession) -> list[str]:
    """The notices that it has none."""
    told = "This session has no journal and cannot be resumed (File too large)."
    return [notice.text for notice in session.status.notices if notice.text == told]


async def test_a_session_on_a_full_disk_has_no_journal_from_its_middle(tmp_path: Path) -> None:
    """A later part of a session refers to what the first part has made."""
    root = make_repo(tmp_path / "work", FILES)
    hosted = Hosted()
    hosted.say(edit("one.py"))
    hosted.end()
    async with (
        hosted.running() as url,
        await PairingSession.open(
            root, settings=hosted.settings(url, "search-replace", attention=False), watch=False
        ) as session,
    ):
        witness = Witness(session)
        with full_disk():
            await asked(session)
        await witness.until(lambda: without_journal(session))
        (hunk,) = session.hunks.undecided()
        assert await session.decisions.accept(hunk.id)
        assert await session.decisions.undo()
        assert list(summary(session, "midstream --resume")) == [
            "1 hunk undecided in one.py; no journal keeps it."
        ]
    assert earlier_sessions(root) == []


@pytest.mark.parametrize("first", ["question", "plan"])
async def test_a_question_or_a_plan_on_a_full_disk_tells_that_there_is_no_journal(
    tmp_path: Path, first: str
) -> None:
    root = make_repo(tmp_path / "work", FILES)
    hosted = Hosted()
    async with (
        hosted.running() as url,
        await PairingSession.open(
            root, settings=hosted.settings(url, "search-replace", attention=False), watch=False
        ) as session,
    ):
        witness = Witness(session)
        with full_disk():
            if first == "question":
                hosted.say("It is a number.")
                hosted.end()
                await session.chat.ask(Question("what is A?", "one.py"))
                await session.chat.finished()
            else:
                session.chat.steps.replace(["make A two", "make B two"])
            await witness.until(lambda: without_journal(session))
        hosted.say(edit("one.py"))
        hosted.end()
        await asked(session)
        assert len(without_journal(session)) == 1
        assert list(summary(session, "midstream --resume")) == [
            "1 hunk undecided in one.py; no journal keeps it."
        ]
    assert earlier_sessions(root) == []
