"""Saves from outside while a session runs: nothing of them is lost, hunks move or conflict."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from midstream.edits.hunks import HunkState
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.status import FileChangedOnDisk, RepoChanged, WatchingChanged
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import Witness, git, numbered
from tests.helpers.stepped import SteppedModel

BEFORE = numbered()
COMMITTED = {"run.py": BEFORE, "other.py": "x = 1\n"}


def changed(*changes: tuple[str, str], text: str = BEFORE) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


A = ("    step_02 = work(2)\n", "    A\n")
B = ("    step_20 = work(20)\n", "    B\n")
USER = ("    step_10 = work(10)\n", "    step_10 = user(10)\n    more_from_user()\n")


async def streamed(session: PairingSession, model: SteppedModel, text: str) -> None:
    model.give(text)
    model.end()
    await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await session.turns.finished()


async def test_a_save_between_hunk_and_accept_is_kept(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    await streamed(session, model, changed(A, B))
    (root / "run.py").write_text(changed(USER))
    assert await session.decisions.accept(1)
    assert (root / "run.py").read_text() == changed(A, USER)
    assert await session.decisions.accept(2)
    assert (root / "run.py").read_text() == changed(A, B, USER)
    assert await session.decisions.undo() == (2,)
    assert await session.decisions.undo() == (1,)
    assert (root / "run.py").read_text() == changed(USER)


async def test_a_save_in_the_place_of_a_hunk_makes_a_conflict(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    await streamed(session, model, changed(A, B))
    users = changed(("    step_02 = work(2)\n", "    mine = 2\n"))
    (root / "run.py").write_text(users)
    assert not await session.decisions.accept(1)
    assert session.hunks.get(1).state is HunkState.CONFLICT
    assert any("in conflict" in notice.text for notice in session.status.notices)
    assert (root / "run.py").read_text() == users
    assert await session.decisions.accept(2)
    assert (root / "run.py").read_text() == changed(B, text=users)
    assert witness.count(FileChangedOnDisk) == 1


async def test_a_save_in_the_middle_of_a_stream(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    lines = changed(A, B).splitlines(keepends=True)
    model.give("".join(lines[:12]))
    await session.turns.instruct(Question("change", path="run.py", cursor=3))
    first = (await witness.decidable(1))[0]
    (root / "run.py").write_text("# top\n" + changed(USER))
    assert await session.decisions.accept(first)
    assert (root / "run.py").read_text() == "# top\n" + changed(A, USER)
    model.give("".join(lines[12:]))
    model.end()
    await session.turns.finished()
    assert (root / "run.py").read_text() == "# top\n" + changed(A, USER)
    assert await session.decisions.accept_rest("run.py") == 1
    assert (root / "run.py").read_text() == "# top\n" + changed(A, USER, B)


async def test_a_save_that_holds_the_hunk_already_counts_as_accept(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    await streamed(session, model, changed(A, B))
    (root / "run.py").write_text(changed(A))
    await session.external.refresh()
    assert session.hunks.get(1).state is HunkState.ACCEPTED
    assert session.hunks.get(2).state is HunkState.SETTLED
    assert (root / "run.py").read_text() == changed(A)


async def test_an_accepted_hunk_that_the_person_took_out_stays_out(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    await streamed(session, model, changed(A, B))
    assert await session.decisions.accept(1)
    (root / "run.py").write_text(BEFORE)
    assert await session.decisions.accept(2)
    assert (root / "run.py").read_text() == changed(B)
    assert session.hunks.get(1).state is not HunkState.ACCEPTED


async def test_a_deleted_file_is_not_brought_back(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    await streamed(session, model, changed(A, B))
    (root / "run.py").unlink()
    assert not await session.decisions.accept(1)
    assert not (root / "run.py").exists()
    assert session.hunks.get(1).state is HunkState.SETTLED
    assert "run.py" in witness.notice
    (root / "run.py").write_text(BEFORE)
    await session.external.refresh()
    assert await session.decisions.accept(1)
    assert (root / "run.py").read_text() == changed(A)


async def test_a_file_that_is_not_text_any_more_is_left_alone(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    await streamed(session, model, changed(A, B))
    (root / "run.py").write_bytes(b"\x00\x01")
    assert not await session.decisions.accept(1)
    assert (root / "run.py").read_bytes() == b"\x00\x01"
    assert (
        "not a text file" in session.status.notices[-1].text
        or "gone" in session.status.notices[-1].text
    )


async def test_undo_meets_a_save(session: PairingSession, model: SteppedModel, root: Path) -> None:
    await streamed(session, model, changed(A, B))
    assert await session.decisions.accept_rest("run.py") == 2
    (root / "run.py").write_text(changed(A, B, USER))
    assert sorted(await session.decisions.undo()) == [1, 2]
    assert (root / "run.py").read_text() == changed(USER)


async def test_many_decisions_at_once_stay_in_order(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    changes = [(f"    step_{n:02d} = work({n})\n", f"    NEW_{n}\n") for n in range(2, 38, 4)]
    await streamed(session, model, changed(*changes))
    ids = [hunk.id for hunk in session.hunks]
    assert len(ids) == len(changes)
    decisions = session.decisions
    results = await asyncio.gather(*(decisions.accept(i) for i in ids), decisions.undo())
    assert all(results)
    assert (root / "run.py").read_text() == changed(*changes[:-1])


async def test_a_folder_that_is_taken_away_is_told(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        witness = Witness(session)
        await session.files.open("run.py")
        await witness.until(lambda: not session.external.watching.startswith("off"))
        shutil.rmtree(root)
        await witness.until(lambda: "no longer noticed" in witness.notice)
        assert [notice.level for notice in session.status.notices][-1] == "warning"


@pytest.mark.parametrize("review", [False, True])
async def test_it_is_told_when_changes_are_noticed_from_now_on(
    root: Path, settings: Settings, endpoint: Endpoint, review: bool
) -> None:
    heard: list[str] = []
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, review=review
    ) as session:
        session.status.subscribe(
            lambda event: (
                heard.append(session.external.watching)
                if isinstance(event, WatchingChanged)
                else None
            )
        )
        witness = Witness(session)
        await witness.until(lambda: heard[-1:] == [session.external.watching])
        assert not heard[-1].startswith("off")
        await witness.until(lambda: session.external.repo is not None)


async def test_watching_moves_hunks_and_reads_the_repository(
    root: Path, settings: Settings, endpoint: Endpoint, model: SteppedModel
) -> None:
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        witness = Witness(session)
        await witness.until(lambda: session.external.repo is not None)
        assert session.external.repo is not None
        assert (session.external.repo.branch, session.external.repo.dirty) == ("main", 0)
        await streamed(session, model, changed(A, B))
        await witness.until(lambda: not session.external.watching.startswith("off"))
        (root / "run.py").write_text("# top\n" + BEFORE)
        await witness.seen(FileChangedOnDisk)
        assert session.hunks.get(1).start == 3
        await witness.until(
            lambda: session.external.repo is not None and session.external.repo.dirty == 1
        )
        git(root, "checkout", "-q", "run.py")
        await witness.seen(FileChangedOnDisk, 2)
        assert session.hunks.get(1).start == 2
        await witness.until(
            lambda: session.external.repo is not None and session.external.repo.dirty == 0
        )
        seen = witness.count(FileChangedOnDisk)
        assert await session.decisions.accept(1)
        await witness.until(
            lambda: session.external.repo is not None and session.external.repo.dirty == 1
        )
        assert witness.count(FileChangedOnDisk) == seen, "own writes are not news"
        assert witness.count(RepoChanged) >= 4
