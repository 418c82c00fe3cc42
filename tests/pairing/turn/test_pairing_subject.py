"""The message that a commit begins with: what was asked, in the words of the instructions."""

from __future__ import annotations

import pytest

from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.turn.subject import commit_message
from tests.helpers.stepped import SteppedModel

CODE = """\
def count(items):
    total = 0
    for item in items:
        total += 1
    return total
"""
FILES = {"things.py": CODE}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("no, call it seen", "Rename total to seen"),
        ("seen, not found", "Rename total to found; seen, not found"),
        ("use seen instead of found", "Rename total to found; use seen instead of found"),
        (
            "use the name seen instead of found",
            "Rename total to found\n\nuse the name seen instead of found",
        ),
    ],
)
async def test_what_was_asked_first_is_told_where_a_comment_went_over_it(
    session: PairingSession, model: SteppedModel, said: str, message: str
) -> None:
    for text, name in (("rename total to found", "found"), (said, "seen")):
        model.give(CODE.replace("total", name))
        model.end()
        await session.turns.instruct(Question(text, path="things.py", cursor=1))
        await session.turns.finished()
    for hunk in session.hunks.undecided("things.py"):
        assert await session.decisions.accept(hunk.id)
    assert commit_message(session.turns, session.hunks) == message


@pytest.mark.parametrize(("length", "begun"), [(50, True), (72, True), (73, False)])
async def test_an_instruction_is_a_subject_up_to_what_git_shows(
    session: PairingSession, model: SteppedModel, length: int, begun: bool
) -> None:
    said = "rename total to found".ljust(length - 1, "x") + "."
    model.give(CODE.replace("total", "found"))
    model.end()
    await session.turns.instruct(Question(said, path="things.py", cursor=1))
    await session.turns.finished()
    for hunk in session.hunks.undecided("things.py"):
        assert await session.decisions.accept(hunk.id)
    subject = said[:1].upper() + said[1:] if begun else ""
    assert commit_message(session.turns, session.hunks) == subject


async def test_an_instruction_that_failed_is_not_told(
    session: PairingSession, model: SteppedModel
) -> None:
    model.give(CODE.replace("total", "found"))
    model.end()
    await session.turns.instruct(Question("rename total to found", path="things.py", cursor=1))
    await session.turns.finished()
    for hunk in session.hunks.undecided("things.py"):
        assert await session.decisions.accept(hunk.id)
    model.end()
    await session.turns.instruct(Question("rename nothing", path="things.py", cursor=1))
    await session.turns.finished()
    assert session.turns[-1].status == "failed"
    assert commit_message(session.turns, session.hunks) == "Rename total to found"
