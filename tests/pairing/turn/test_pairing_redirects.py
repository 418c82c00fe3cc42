"""Redirects in the middle of a replacement, and chains of them."""

from __future__ import annotations

from pathlib import Path

from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.journal import Journal
from midstream.workspace.paths import state_dir
from tests.helpers.pairing import Witness, follow_ups, numbered
from tests.helpers.stepped import SteppedModel

OLD = numbered(12)
COMMITTED = {"a.py": OLD}


async def test_a_redirect_leaves_no_half_of_a_replacement(
    session: PairingSession, model: SteppedModel, root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    witness = Witness(session)
    await session.turns.instruct(Question("rewrite the first steps of run", path="a.py", cursor=0))
    model.give("def run():\n    entirely = different(1)\n    another = thing(2)\n    thi")
    await witness.until(lambda: len(session.files["a.py"].segments[0].new_lines) == 3)
    await session.turns.read_ahead(Question("leave the rest", path="a.py"))
    await witness.until(lambda: model.ahead)
    await session.turns.redirect("leave the rest")
    await witness.until(lambda: len(model.requests) == 2)
    assert [m.text for m in model.request.messages if m.role == "assistant"] == ["def run():\n"]
    assert model.request.messages == model.ahead[0].messages
    model.give("".join(OLD.splitlines(keepends=True)[1:]))
    model.end()
    await session.turns.finished()
    assert not session.hunks.undecided()
    assert session.files["a.py"].segments[0].new_text == OLD
    await session.close()
    journal = Journal.latest(state_dir(), root)
    assert journal is not None
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal
    ) as again:
        assert again.files["a.py"].segments[0].new_text == OLD
        assert not again.hunks.undecided()


async def test_what_an_edit_model_is_not_told_any_more_is_said(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    await session.turns.instruct(Question("rename step_01 in run", path="a.py"))
    # A redirect can overtake a request, which the model then never sees.
    await witness.until(lambda: len(model.requests) == 1)
    chain = ["also add a docstring", "also make it async", "also log it"]
    for number, said in enumerate(chain, 2):
        await session.turns.redirect(said)
        await witness.until(lambda count=number: len(model.requests) == count)
        left = [n.text for n in session.status.notices if "left out" in n.text]
        assert len(left) == max(0, number - 2)
    assert '"add a docstring" and "make it async" are left out' in witness.notice
    # The conversation has all; the codec carries what the model was trained for.
    assert follow_ups(model.request) == chain
    model.end()
    await session.turns.finished()


async def test_a_stop_takes_lines_whose_place_is_undecided_off_the_screen(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    await session.turns.instruct(Question("rewrite the first steps of run", path="a.py", cursor=0))
    model.give("def run():\n    entirely = different(1)\n    another = thing(2)\n    thi")
    segments = session.files["a.py"].segments
    await witness.until(lambda: len(segments[0].new_lines) == 3)
    await session.turns.stop_turn()
    rows = session.files["a.py"].segments[0].settled
    assert [row.text for row in rows] == OLD.splitlines()
    assert [row.new for row in rows] == list(range(len(rows)))
    assert not session.hunks.undecided()
