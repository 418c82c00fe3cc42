"""What a session says when half of a change was accepted and does not hold without the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.turn import checks
from tests.helpers.pairing import Witness
from tests.helpers.stepped import SteppedModel

BEFORE = """\
def total(rows):
    found = []
    # first those that are paid
    # then those that are not
    for row in rows:
        found.append(row)
    return len(rows), known
"""
FILES = {"run.py": BEFORE}


async def answered(session: PairingSession, model: SteppedModel, text: str) -> None:
    model.give(text)
    model.end()
    await session.turns.instruct(Question("rename it", path="run.py", cursor=1))
    await session.turns.finished()


def said(session: PairingSession) -> list[str]:
    return [notice.text for notice in session.status.notices if "no longer defined" in notice.text]


async def test_half_a_rename_is_told_and_told_once(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    await answered(session, model, BEFORE.replace("found", "kept"))
    assert await session.decisions.accept(1)
    assert said(session) == [], "a hunk still waits"
    assert await session.decisions.reject(2)
    await witness.until(lambda: bool(said(session)))
    (sentence,) = said(session)
    assert "`found` (run.py, line 6) is no longer defined" in sentence
    assert "known" not in sentence, "that was so before"
    await session.decisions.undo()
    assert await session.decisions.reject(2)
    await session.decisions.undo()
    assert await session.decisions.accept(2)
    assert len(said(session)) == 1


async def test_what_was_rejected_of_another_request_is_no_half_of_this_one(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    await answered(session, model, BEFORE.replace("# first", "# at first"))
    assert await session.decisions.reject(1)
    await answered(session, model, BEFORE.replace("found = []", "kept = []"))
    assert await session.decisions.accept_rest("run.py") == 1
    await witness.until(lambda: bool(said(session)))
    (sentence,) = said(session)
    assert "only part" not in sentence
    assert sentence.endswith("Change it where it is still used.")


async def test_a_rename_that_was_stopped_is_told_after_accepting_all(
    root: Path, session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    model.give("".join(BEFORE.replace("found", "kept").splitlines(keepends=True)[:4]))
    await session.turns.instruct(Question("rename it", path="run.py", cursor=1))
    (hunk,) = await witness.decidable(1)
    await session.turns.stop_turn()
    await session.turns.finished()
    assert await session.decisions.accept_rest("run.py") == 1
    assert "    kept = []\n" in (root / "run.py").read_text()
    await witness.until(lambda: bool(said(session)))
    assert said(session) == [
        "`found` (run.py, line 6) is no longer defined. Change it where it is still used."
    ]
    assert session.status.notices[-1].action == "hunk.elsewhere"
    assert await session.background.elsewhere(hunk) == 1
    await session.background.finished()
    assert await session.decisions.accept_rest("run.py") == 1
    assert (root / "run.py").read_text() == BEFORE.replace("found", "kept")


async def test_halves_that_hold_are_not_told(session: PairingSession, model: SteppedModel) -> None:
    witness = Witness(session)
    await answered(
        session, model, BEFORE.replace("found = []", "found = list()").replace("len(rows)", "0")
    )
    assert await session.decisions.accept(1)
    assert await session.decisions.reject(2)
    await answered(session, model, BEFORE.replace("found = []", "x = []"))
    assert await session.decisions.reject_rest("run.py") == 1
    kept = BEFORE.replace("found = []", "found = list()")
    await answered(session, model, kept.replace("found", "paid"))
    first, second = await witness.decidable(2)
    assert await session.decisions.reject(first)
    assert await session.decisions.accept(second)
    await witness.until(lambda: bool(said(session)))
    assert len(said(session)) == 1
    assert "`paid`" in said(session)[0]


async def test_an_answer_without_hunks_has_nothing_looked_at(
    session: PairingSession, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = Witness(session)
    looked: list[str] = []
    look_at_each = checks.look_at_each

    async def counted(before: checks.Lines, after: checks.Lines) -> dict[str, checks.Verdict]:
        looked.extend(after)
        return await look_at_each(before, after)

    monkeypatch.setattr(checks, "look_at_each", counted)
    await answered(session, model, BEFORE.replace("found", "kept"))
    assert await session.decisions.accept_rest("run.py") == 2
    await witness.until(lambda: bool(looked))
    looked.clear()
    await answered(session, model, BEFORE.replace("found", "kept"))
    await answered(session, model, BEFORE.replace("found", "kept").replace("paid", "due"))
    assert await session.decisions.accept_rest("run.py") == 1
    await witness.until(lambda: bool(looked))
    assert len(looked) == 1, "for the answer with a hunk"
