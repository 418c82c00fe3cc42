"""The summary at the end of a session: decided, committed, left, and how to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.pairing.journal.journal import earlier_sessions
from midstream.pairing.leaving import resuming, summary
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from tests.helpers.full_disk import full_disk
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import Witness

COMMITTED = {"one.py": "A = 1\n", "two.py": "B = 1\n", "three.py": "C = 1\n"}


def edit(name: str) -> str:
    line = COMMITTED[name].strip()
    new = line.replace("1", "2")
    return f"{name}\n<<<<<<< SEARCH\n{line}\n=======\n{new}\n>>>>>>> REPLACE\n"


async def opened(hosted: Hosted, url: str, root: Path) -> PairingSession:
    settings = hosted.settings(url, "search-replace", attention=False)
    return await PairingSession.open(root, settings=settings, watch=False)


async def asked(session: PairingSession, hosted: Hosted) -> None:
    """Ask for a change of one file, and wait for the answer."""
    hosted.say(edit("one.py"))
    hosted.end()
    await session.turns.instruct(Question("make them 2", "one.py"))
    await session.turns.finished()


async def test_what_was_decided_committed_and_left_is_said(
    hosted: Hosted, url: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hosted.say("\n".join(map(edit, COMMITTED)))
    hosted.end()
    async with await opened(hosted, url, root) as session:
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


async def test_a_journal_that_a_full_disk_cuts_off_keeps_nothing_more(
    hosted: Hosted, url: str, root: Path
) -> None:
    async with await opened(hosted, url, root) as session:
        await asked(session, hosted)
        assert "brings it back" in list(summary(session, "midstream --resume"))[-1]
        (hunk,) = session.hunks.undecided()
        with full_disk():
            assert not await session.decisions.accept(hunk.id)
            assert (root / "one.py").read_text() == COMMITTED["one.py"]
            left, trouble = summary(session, "midstream --resume")
        assert left == "1 hunk undecided in one.py; no journal keeps it."
        assert trouble.startswith("The journal could not be written (File too large)")
        assert await session.decisions.accept(hunk.id)
        (told,) = summary(session, "midstream --resume")
        assert "accepted and written" in told


def without_journal(session: PairingSession) -> list[str]:
    """The notices that the session has no journal."""
    told = "This session has no journal and cannot be resumed (File too large)."
    return [notice.text for notice in session.status.notices if notice.text == told]


async def test_a_session_on_a_full_disk_has_no_journal_from_its_middle(
    hosted: Hosted, url: str, root: Path
) -> None:
    """A later part of a journal refers to hunks of the first part."""
    async with await opened(hosted, url, root) as session:
        witness = Witness(session)
        with full_disk():
            await asked(session, hosted)
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
    hosted: Hosted, url: str, root: Path, first: str
) -> None:
    async with await opened(hosted, url, root) as session:
        witness = Witness(session)
        with full_disk():
            if first == "question":
                hosted.say("It is a number.")
                hosted.end()
                await session.chat.ask_question(Question("what is A?", "one.py"))
                await session.chat.finished()
            else:
                session.chat.steps.replace(["make A two", "make B two"])
            await witness.until(lambda: without_journal(session))
        await asked(session, hosted)
        assert len(without_journal(session)) == 1
        assert list(summary(session, "midstream --resume")) == [
            "1 hunk undecided in one.py; no journal keeps it."
        ]
    assert earlier_sessions(root) == []


async def test_what_a_review_kept_and_nobody_committed_is_asked_again(
    hosted: Hosted, url: str, root: Path
) -> None:
    async with await opened(hosted, url, root) as session:
        (root / "one.py").write_text("B = 2\n")
        await session.review.switch_on(since_commit=True)
        (hunk,) = session.hunks.undecided()
        again = (
            "Until it is committed, a new review asks about what you have kept as well; "
            "`midstream --resume` does not."
        )
        assert again not in list(summary(session, "midstream --resume"))
        assert await session.decisions.accept(hunk.id)
        assert list(summary(session, "midstream --resume"))[-1] == again
        assert again not in list(summary(session, ""))
        await session.commit.stage("one.py")
        await session.commit.commit("Keep it")
        assert again not in list(summary(session, "midstream --resume"))
