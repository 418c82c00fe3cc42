"""Effort over a real server with a scripted model: checks, one correction, ranked candidates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midstream.errors import UsageError
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession, TurnStatus
from midstream.settings import Settings
from tests.helpers.pairing import Witness
from tests.helpers.stepped import SteppedModel, served

BEFORE = "def area(r):\n    value = 3 * r * r\n    return value\n"
FILES = {"area.py": BEFORE}
GOOD = BEFORE.replace("3 *", "3.14 *")
UNDEFINED = BEFORE.replace("3 *", "pi *")
BROKEN = BEFORE.replace("3 *", "(3 *")


def answer(model: SteppedModel, *texts: str) -> None:
    for text in texts:
        for line in text.splitlines(keepends=True):
            model.give(line)
        model.end()


async def run(root: Path, model: SteppedModel, settings: Settings) -> PairingSession:
    async with served(model) as endpoint:
        session = await PairingSession.open(root, settings=settings, endpoint=endpoint, watch=False)
        async with session:
            await session.turns.instruct(Question("be exact", path="area.py", cursor=1))
            await session.turns.finished()
            await session.decisions.accept_rest("area.py")
    return session


async def test_medium_has_a_finding_corrected_once(root: Path, model: SteppedModel) -> None:
    answer(model, UNDEFINED, GOOD)
    session = await run(root, model, Settings(effort="medium", guard=False))
    assert len(model.requests) == 2
    assert "F821" in model.asked
    assert "be exact" in model.asked
    assert (root / "area.py").read_text() == GOOD
    assert [t.status for t in session.turns] == [TurnStatus.DONE, TurnStatus.DONE]
    assert session.turns[1].redirected_from == 1
    assert "its correction helped (no findings)" in session.turns[1].tried
    assert any("Asking the model once to fix it." in n.text for n in session.status.notices)
    assert session.turns[1].tried in session.status.notices[-1].text


@pytest.mark.parametrize(("first", "accepted"), [(UNDEFINED, UNDEFINED), (BROKEN, BEFORE)])
async def test_a_correction_that_does_not_help_is_taken_back(
    root: Path, first: str, accepted: str
) -> None:
    model = SteppedModel({"must_change": "1"})
    answer(model, first, BROKEN)
    session = await run(root, model, Settings(effort="medium", guard=False))
    assert len(model.requests) == 2
    assert (root / "area.py").read_text() == accepted
    assert "did not help" in session.turns[1].tried
    assert "the first stands" in session.turns[1].tried


async def test_medium_leaves_a_clean_answer_alone(root: Path, model: SteppedModel) -> None:
    answer(model, GOOD)
    session = await run(root, model, Settings(effort="medium", guard=False))
    assert len(model.requests) == 1
    assert session.turns[0].tried == "1 pass, checked: no findings"


async def test_high_streams_the_best_of_several_candidates(root: Path, model: SteppedModel) -> None:
    answer(model, UNDEFINED, BROKEN, GOOD, UNDEFINED)
    session = await run(root, model, Settings(effort="high", guard=False))
    assert [r.temperature for r in model.requests] == [0.0, 0.7, 0.7, 0.7]
    assert len({r.seed for r in model.requests[1:]}) == 3
    assert (root / "area.py").read_text() == GOOD
    (turn,) = session.turns
    assert turn.tried == "4 candidates, 3 different: number 3 won (no findings)"
    assert any("number 3 won" in n.text for n in session.status.notices)


async def test_high_asks_the_projects_own_test(root: Path, model: SteppedModel) -> None:
    (root / "check.py").write_text("import area\nassert area.area(1) == 2.5\n")
    wanted = BEFORE.replace("3 *", "2.5 *")
    answer(model, GOOD, wanted, GOOD, BROKEN)
    settings = Settings(effort="high", guard=False, check_command="python3 check.py")
    session = await run(root, model, settings)
    assert (root / "area.py").read_text() == wanted
    assert "tests pass" in session.turns[0].tried
    assert not (root / "__pycache__").exists(), "it ran elsewhere"


@pytest.mark.parametrize("command", ["no-such-program -q", "pytest 'unclosed"])
async def test_a_test_that_cannot_be_started_is_said_once(
    root: Path, model: SteppedModel, command: str
) -> None:
    answer(model, GOOD, UNDEFINED, BROKEN, GOOD)
    settings = Settings(effort="high", guard=False, check_command=command)
    session = await run(root, model, settings)
    assert (root / "area.py").read_text() == GOOD
    said = [n.text for n in session.status.notices if "The test command did not run" in n.text]
    assert len(said) == 1
    assert "cannot be started" in said[0]


async def test_a_candidate_that_goes_on_and_on_is_left_out(root: Path) -> None:
    model = SteppedModel(CHAT | {"edit_format": "search-replace"})
    async with served(model) as endpoint:
        settings = Settings(effort="high", guard=False)
        session = await PairingSession.open(root, settings=settings, endpoint=endpoint, watch=False)
        async with session:
            witness = Witness(session)
            model.give("There is one more thing. " * 2_000)
            turn = await session.turns.instruct(Question("be exact", path="area.py", cursor=1))
            await witness.until(lambda: session.turns.trying == (2, 4))
            assert model.stopped == 1
            answer(model, *[block(LINE, GOOD_LINE)] * 3)
            await session.turns.finished()
            assert turn.status is TurnStatus.DONE
            assert turn.tried.startswith("4 candidates, 1 different")
            await session.decisions.accept_rest("area.py")
    assert (root / "area.py").read_text() == GOOD


async def test_stop_while_candidates_are_written(root: Path, model: SteppedModel) -> None:
    async with served(model) as endpoint:
        settings = Settings(effort="high", guard=False)
        session = await PairingSession.open(root, settings=settings, endpoint=endpoint, watch=False)
        async with session:
            witness = Witness(session)
            answer(model, GOOD)
            turn = await session.turns.instruct(Question("be exact", path="area.py", cursor=1))
            await witness.until(lambda: session.turns.trying == (2, 4))
            await session.turns.stop_turn()
            assert turn.status is TurnStatus.STOPPED
            assert session.turns.trying is None
            assert not list(session.hunks)
            answer(model, GOOD)
            session.turns.effort = "low"
            await session.turns.instruct(Question("be exact", path="area.py", cursor=1))
            await session.turns.finished()
            assert len(session.hunks) == 1
            with pytest.raises(UsageError, match="choose one of"):
                session.turns.effort = "most"


CHAT = {"prompt": "chat"}
WORDS = "area.py\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n"
LINE = "    value = 3 * r * r\n"


def block(old: str, new: str, edit_format: str = "search-replace") -> str:
    """One edit of ``area.py`` in a format in which the model names the place."""
    if edit_format == "search-replace":
        return WORDS.format(old, new)
    if edit_format == "v4a":
        return f"*** Begin Patch\n*** Update File: area.py\n@@\n-{old}+{new}*** End Patch\n"
    if edit_format == "udiff":
        return f"--- a/area.py\n+++ b/area.py\n@@ @@\n def area(r):\n-{old}+{new}"
    if edit_format == "str-replace":
        return json.dumps({"edits": [{"path": "area.py", "old_str": old, "new_str": new}]})
    whole = BEFORE.replace(LINE, new)
    return f"area.py\n```python\n{whole}```\n"


FORMATS = ["search-replace", "v4a", "udiff", "str-replace", "whole"]
GOOD_LINE, UNDEFINED_LINE = LINE.replace("3 *", "3.14 *"), LINE.replace("3 *", "pi *")


@pytest.mark.parametrize("edit_format", FORMATS)
async def test_medium_corrects_edits_of_every_format(root: Path, edit_format: str) -> None:
    model = SteppedModel(CHAT | {"edit_format": edit_format})
    answer(
        model,
        block(LINE, UNDEFINED_LINE, edit_format),
        block(UNDEFINED_LINE, GOOD_LINE, edit_format),
    )
    session = await run(root, model, Settings(effort="medium", guard=False))
    assert len(model.requests) == 2
    assert "F821" in model.asked
    assert "quote the lines as they are now" in model.asked
    assert (root / "area.py").read_text() == GOOD
    assert [t.status for t in session.turns] == [TurnStatus.DONE, TurnStatus.DONE]
    assert "its correction helped (no findings)" in session.turns[1].tried


@pytest.mark.parametrize(
    "correction",
    [
        block(UNDEFINED_LINE, LINE.replace("3 *", "(3 *")),
        block("    no such line\n", GOOD_LINE),
        "I would not change that.\n",
    ],
)
async def test_a_correction_without_better_edits_is_not_shown(root: Path, correction: str) -> None:
    model = SteppedModel(CHAT | {"edit_format": "search-replace"})
    answer(model, block(LINE, UNDEFINED_LINE), correction)
    session = await run(root, model, Settings(effort="medium", guard=False))
    assert len(model.requests) == 2
    assert (root / "area.py").read_text() == UNDEFINED
    assert [t.status for t in session.turns] == [TurnStatus.DONE, TurnStatus.DONE]
    assert "did not help" in session.turns[1].tried
    assert "the first stands" in session.turns[1].tried
    assert len(session.hunks) == 1


async def test_medium_leaves_clean_edits_alone(root: Path) -> None:
    model = SteppedModel(CHAT | {"edit_format": "search-replace"})
    answer(model, block(LINE, GOOD_LINE))
    session = await run(root, model, Settings(effort="medium", guard=False))
    assert len(model.requests) == 1
    assert session.turns[0].tried == "1 pass, checked: no findings"


async def test_high_ranks_candidates_of_every_format_with_the_projects_test(root: Path) -> None:
    """Two files; a candidate without a place for its edit loses, and one that fails the test."""
    (root / "other.py").write_text("FACTOR = 1\n")
    (root / "check.py").write_text("import area, other\nassert area.area(other.FACTOR) == 12.56\n")
    model = SteppedModel(CHAT | {"edit_format": "search-replace"})
    second = "other.py\n<<<<<<< SEARCH\nFACTOR = 1\n=======\nFACTOR = 2\n>>>>>>> REPLACE\n"
    answer(
        model,
        block("    no such line\n", GOOD_LINE),
        block(LINE, GOOD_LINE),
        block(LINE, GOOD_LINE) + second,
        block(LINE, UNDEFINED_LINE) + second,
    )
    settings = Settings(effort="high", guard=False, check_command="python3 check.py")
    session = await run(root, model, settings)
    (turn,) = session.turns
    assert turn.tried == "4 candidates: number 3 won (tests pass)"
    assert set(session.files) == {"area.py", "other.py"}
    assert (root / "area.py").read_text() == GOOD


async def test_levels_of_hosted_models_mean_the_nearest_one_of_our_own(
    root: Path, model: SteppedModel
) -> None:
    answer(model, *[GOOD] * 8)
    session = await run(root, model, Settings(effort="max", guard=False))
    assert session.turns[0].tried.startswith("8 candidates, 1 different: number 1 won")
