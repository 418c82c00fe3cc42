"""Hunks that the guard holds back: rejected, let go, and taken up again from a journal."""

from __future__ import annotations

import asyncio
from pathlib import Path

from midstream.edits.hunks import Hunk, HunkState
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import Witness
from tests.helpers.stepped import SteppedModel

BEFORE = "def find(db, name):\n    rows = db.all()\n    return rows\n"
HEAD = "def find(db, name):\n"
FILES = {"m.py": BEFORE}
BAD = "    rows = db.execute(f\"select * from t where name = '{name}'\")\n"
KEY = "AKIA" + "QX7ZL2MWPNV4RT6B"


def opened(root: Path, endpoint: Endpoint, journal: Path | None = None, **settings: object):
    return PairingSession.open(
        root,
        settings=Settings(**settings),  # type: ignore[arg-type]
        endpoint=endpoint,
        watch=False,
        resume=journal,
    )


async def held(session: PairingSession, model: SteppedModel, bad: str = BAD) -> Hunk:
    """Have the model write a dangerous line until the person is to decide."""
    model.give(HEAD)
    model.give(bad)
    await session.turns.instruct(Question("use sql", path="m.py", cursor=0))
    for count in (2, 3):
        while len(model.requests) < count:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)
        model.give(bad)
    await session.turns.finished()
    [hunk] = [h for h in session.hunks if h.state is HunkState.HELD]
    return hunk


def journal_of(state: Path) -> Path:
    files = (state / "roots").rglob("*")  # other files come and go
    return next(p for p in files if p.is_file() and b'"begin"' in p.read_bytes())


async def test_a_held_hunk_can_be_rejected_but_not_accepted_after_that(
    root: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    async with await opened(root, endpoint) as session:
        hunk = await held(session, model)
        assert not await session.decisions.accept(hunk.id)
        assert await session.decisions.reject(hunk.id, "no SQL here")
        assert (hunk.state, hunk.note) == (HunkState.REJECTED, "no SQL here")
        assert not await session.decisions.accept(hunk.id)
        assert (root / "m.py").read_text() == BEFORE
        await session.decisions.undo()
        assert hunk.state is HunkState.HELD
        assert hunk.note.endswith("(S608)")
        await session.decisions.release(hunk.id, "checked")
        assert await session.decisions.accept(hunk.id)
        assert BAD in (root / "m.py").read_text()


async def test_undo_takes_a_release_back(
    root: Path, state: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    async with await opened(root, endpoint) as session:
        hunk = await held(session, model)
        assert await session.decisions.release(hunk.id, "checked")
        assert await session.decisions.undo() == (hunk.id,)
        assert hunk.state is HunkState.HELD
        assert not await session.decisions.accept(hunk.id)
        await session.guard.look_again(session.files)  # it halts again, as before the release
        assert hunk.state is HunkState.HELD
        assert await session.decisions.redo() == (hunk.id,)
        await session.guard.look_again(session.files)
        assert hunk.state is HunkState.SETTLED
        assert await session.decisions.accept(hunk.id)
    async with await opened(root, endpoint, journal_of(state)) as session:
        hunk = session.hunks.get(hunk.id)
        assert hunk.state is HunkState.ACCEPTED
        for expected in (HunkState.SETTLED, HunkState.HELD):
            assert await session.decisions.undo() == (hunk.id,)
            assert hunk.state is expected
            assert (root / "m.py").read_text() == BEFORE
        await session.guard.look_again(session.files)
        assert hunk.state is HunkState.HELD
    async with await opened(root, endpoint, journal_of(state)) as session:
        assert session.hunks.get(hunk.id).state is HunkState.HELD
        assert await session.decisions.redo() == (hunk.id,)
        await session.guard.look_again(session.files)
        assert session.hunks.get(hunk.id).state is HunkState.SETTLED


async def test_a_held_hunk_stays_held_after_resume(
    root: Path, state: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    async with await opened(root, endpoint) as session:
        number = (await held(session, model)).id
    async with await opened(root, endpoint, journal_of(state)) as session:
        hunk = session.hunks.get(number)
        assert hunk.state is HunkState.HELD
        assert not await session.decisions.accept(number)
        assert "S608" in session.guard.reason(hunk)


async def test_one_that_is_dangerous_no_more_is_let_go(
    root: Path, state: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    async with await opened(root, endpoint) as session:
        number = (await held(session, model)).id
    off = (("S608", "off"),)
    async with await opened(root, endpoint, journal_of(state), guard_levels=off) as session:
        assert session.hunks.get(number).state is HunkState.SETTLED
        assert await session.decisions.accept(number)


async def test_one_that_the_journal_does_not_know_to_be_dangerous_is_held(
    root: Path, state: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    async with await opened(root, endpoint, guard=False) as session:
        model.give(HEAD + BAD + "    return rows\n")
        model.end()
        await session.turns.instruct(Question("use sql", path="m.py", cursor=0))
        await session.turns.finished()
        [number] = [h.id for h in session.hunks.undecided()]
    async with await opened(root, endpoint, journal_of(state)) as session:
        assert session.hunks.get(number).state is HunkState.HELD
    async with await opened(root, endpoint, journal_of(state)) as session:
        assert session.hunks.get(number).state is HunkState.HELD
        await session.decisions.release(number, "it is a test")
    async with await opened(root, endpoint, journal_of(state)) as session:
        assert session.hunks.get(number).state is HunkState.SETTLED


async def test_a_masked_credential_is_never_let_go(
    root: Path, state: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    async with await opened(root, endpoint) as session:
        number = (await held(session, model, f'    rows = db.open("{KEY}")\n')).id
    async with await opened(root, endpoint, journal_of(state)) as session:
        hunk = session.hunks.get(number)
        assert hunk.state is HunkState.HELD
        assert KEY not in "".join(hunk.new)


async def test_a_rejected_credential_is_masked_in_the_next_request(
    root: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    model.facts["prompt"] = "chat"
    async with await opened(root, endpoint, journal=None) as session:
        witness = Witness(session)
        model.give(f'<region>\n{HEAD}    rows = db.open("{KEY}")\n')
        await session.turns.instruct(Question("use sql", path="m.py", cursor=0))
        for count in (2, 3):
            await witness.until(lambda count=count: len(model.requests) >= count)
            model.give(f'<region>\n{HEAD}    rows = db.open("{KEY}")\n')
        await session.turns.finished()
        [hunk] = [h for h in session.hunks if h.state is HunkState.HELD]
        await session.decisions.reject(hunk.id, "no")
        model.give(f"<region>\n{BEFORE}</region>")
        model.end()
        await session.turns.instruct(Question("again", path="m.py", cursor=0))
        await session.turns.finished()
        said = "".join(message.text for message in model.request.messages)
        assert "turned down because: no" in said
        assert KEY not in said
