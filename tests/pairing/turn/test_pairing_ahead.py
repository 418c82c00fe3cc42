"""What the model server reads while an instruction is typed is what Enter then sends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from midstream.edits.request import parse_request
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.status import HunkSettled, TurnStatus
from midstream.settings import Settings
from tests.helpers.pairing import Witness, follow_ups, numbered
from tests.helpers.stepped import SteppedModel, served

COMMITTED = {"a.py": numbered(30), "b.py": "x = 1\n"}


async def test_an_instruction_is_read_as_it_is_sent(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    model.end()
    await session.turns.instruct(Question("rename step_01 in run", path="a.py"))
    await session.turns.finished()
    events = len(witness.events)
    await session.turns.read_ahead(Question("rename step_02 in run", path="a.py"))
    await witness.until(lambda: model.ahead)
    await session.turns.read_ahead(Question("rename step_02 in run", path="a.py"))
    await session.turns.read_ahead(Question("rename step_03 in run", path="a.py"))
    await witness.until(lambda: len(model.ahead) == 2)
    # Nothing has begun, and nobody was told anything.
    assert len(model.ahead) == 2
    assert len(session.turns) == 1
    assert len(witness.events) == events
    model.end()
    await session.turns.instruct(Question("rename step_03 in run", path="a.py"))
    await session.turns.finished()
    assert model.ahead[1].messages == model.request.messages
    assert model.ahead[1].instructions == model.request.instructions


async def test_a_redirect_is_read_behind_the_lines_that_are_settled(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    await session.turns.instruct(Question("rename step_01 in run", path="a.py"))
    model.give("def run():\n    step_01 = other(1)\n    step_02 = work(2)\n    step_0")
    await witness.decidable(1)
    await session.turns.read_ahead(Question("call it first", path="a.py"))
    await witness.until(lambda: model.ahead)
    ahead = model.ahead[0]
    assert follow_ups(ahead) == ["call it first"]
    turn = session.turns.last
    assert turn is not None
    assert turn.status is TurnStatus.STREAMING
    await session.turns.redirect("call it first")
    await witness.until(lambda: len(model.requests) == 2)
    assert model.request.messages == ahead.messages
    model.end()
    await session.turns.finished()


async def test_what_cannot_be_asked_is_not_read_and_not_told(
    session: PairingSession, model: SteppedModel
) -> None:
    await session.turns.read_ahead(Question("   ", path="a.py"))
    await session.turns.read_ahead(Question("rename nothing_there in nowhere", path="missing.py"))
    assert not session.status.notices
    model.end()
    await session.turns.instruct(Question("rename step_01 in run", path="a.py"))
    await session.turns.finished()
    assert model.ahead == []


async def test_a_region_that_stands_first_is_read_before_there_is_a_word(root: Path) -> None:
    model = SteppedModel({"prompt": "edit-rewrite", "region_first": "1", "max_region_lines": "99"})
    async with (
        served(model) as endpoint,
        await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=False
        ) as session,
    ):
        witness = Witness(session)
        await session.server.ready()
        await session.turns.read_ahead(Question("", path="a.py", cursor=4))
        await witness.until(lambda: model.ahead)
        ahead = parse_request(model.ahead[0].messages[-1].text)
        assert ahead is not None
        assert ahead.instruction == ""
        await session.turns.instruct(Question("rename step_01", path="a.py", cursor=4))
        await witness.until(lambda: model.requests)
        sent = parse_request(model.request.messages[-1].text)
        assert sent is not None
        assert sent.region == ahead.region
        model.end()
        await session.turns.finished()


async def test_a_chat_model_is_left_alone_while_it_writes(root: Path) -> None:
    model = SteppedModel({"prompt": "chat", "edit_format": "region"})
    async with (
        served(model) as endpoint,
        await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=False
        ) as session,
    ):
        witness = Witness(session)
        await session.turns.read_ahead(Question("rename step_01 in run", path="a.py"))
        await session.turns.instruct(Question("rename step_01 in run", path="a.py"))
        model.give("def run():\n    step_01 = other(1)\n    step_02 = work(2)\n")
        await witness.seen(HunkSettled)
        before = len(model.ahead)
        await session.turns.read_ahead(Question("call it first", path="a.py"))
        await asyncio.sleep(0.05)
        assert len(model.ahead) == before
        model.end()
        await session.turns.finished()


async def test_nothing_leaves_this_machine_before_it_is_sent(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("midstream.responses.endpoint._LOOPBACK", ())  # It could be anywhere.
    monkeypatch.setenv("NO_PROXY", "*")
    model = SteppedModel()
    async with (
        served(model) as endpoint,
        await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=False
        ) as session,
    ):
        model.end()
        await session.turns.instruct(Question("rename step_01 in run", path="a.py"))
        await session.turns.finished()
        await session.turns.read_ahead(Question("rename step_02 in run", path="a.py"))
        await asyncio.sleep(0.05)
        assert len(model.requests) == 1
        assert not model.ahead
