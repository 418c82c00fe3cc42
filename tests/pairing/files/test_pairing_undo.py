"""Undo and redo over one turn and over several, and what they cannot take back."""

from __future__ import annotations

from pathlib import Path

from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.status import FileWritten, HunkDecided
from tests.helpers.pairing import Witness
from tests.helpers.rewriting import BEFORE, give, rewrite
from tests.helpers.stepped import SteppedModel


async def test_undo_and_redo_rewrite_the_file(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    witness = Witness(session)
    give(model, rewrite((2, "    A\n"), (20, "    B\n")))
    model.end()
    await session.turns.instruct(Question("one", path="run.py", cursor=3))
    await session.turns.finished()
    await session.decisions.accept(1)
    await session.decisions.accept(2)
    both = (root / "run.py").read_text()
    assert await session.decisions.undo() == (2,)
    assert (root / "run.py").read_text() == "".join(rewrite((2, "    A\n")))
    assert await session.decisions.undo() == (1,)
    assert (root / "run.py").read_text() == BEFORE
    assert await session.decisions.undo() == ()
    assert await session.decisions.redo() == (1,)
    assert await session.decisions.redo() == (2,)
    assert (root / "run.py").read_text() == both
    assert await session.decisions.reject(1), "an accepted hunk can still be rejected"
    assert (root / "run.py").read_text() == "".join(rewrite((20, "    B\n")))
    assert witness.count(FileWritten) == 7
    assert witness.count(HunkDecided) == 7


async def test_undo_reaches_over_a_later_turn(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    (root / "run.py").write_text(BEFORE + "\n\ndef other():\n    return 1\n")
    give(model, rewrite((2, "    A\n")))
    model.end()
    await session.turns.instruct(Question("change run", path="run.py", cursor=3))
    await session.turns.finished()
    await session.decisions.accept(1)
    model.give("def other():\n    return 2\n")
    model.end()
    await session.turns.instruct(Question("change `other`", path="run.py"))
    await session.turns.finished()
    await session.decisions.accept(2)
    assert (root / "run.py").read_text().endswith("return 2\n")
    assert await session.decisions.undo() == (2,)
    assert await session.decisions.undo() == (1,)
    assert (root / "run.py").read_text() == BEFORE + "\n\ndef other():\n    return 1\n"


async def test_undo_reaches_what_was_accepted_before_a_later_answer(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    give(model, rewrite((2, "    A\n")))
    model.end()
    await session.turns.instruct(Question("change run", path="run.py", cursor=3))
    await session.turns.finished()
    assert await session.decisions.accept(1)
    give(model, rewrite((2, "    A\n"), (20, "    B\n")))
    model.end()
    await session.turns.instruct(Question("more of it", path="run.py", cursor=3))
    await session.turns.finished()
    assert await session.decisions.undo() == (1,)
    assert (root / "run.py").read_text() == BEFORE
    waiting = [hunk.new for hunk in session.hunks.undecided("run.py")]
    assert waiting == [("    A",), ("    B",)]
    assert await session.decisions.redo() == (1,)
    assert (root / "run.py").read_text() == "".join(rewrite((2, "    A\n")))
    give(model, rewrite((2, "    AA\n")))
    model.end()
    await session.turns.instruct(Question("otherwise", path="run.py", cursor=3))
    await session.turns.finished()
    assert await session.decisions.undo() == (1,)
    assert (root / "run.py").read_text() == BEFORE
    assert session.status.notices[-1].text == (
        "1 waiting hunk that changes the same lines went with it; redo brings it back."
    )
    assert await session.decisions.redo() == (1,)
    assert [hunk.new for hunk in session.hunks.undecided("run.py")] == [("    AA",)]


async def test_undo_waits_where_the_model_is_writing(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    give(model, rewrite((2, "    A\n")))
    model.end()
    await session.turns.instruct(Question("change run", path="run.py", cursor=3))
    await session.turns.finished()
    assert await session.decisions.accept(1)
    text = (root / "run.py").read_text()
    model.give("def run():\n")
    await session.turns.instruct(Question("more of it", path="run.py", cursor=3))
    for _ in range(2):
        assert await session.decisions.undo() == ()
        assert session.status.notices[-1].text == (
            "`A` was accepted where the model is writing now; stop it or wait until it ends, "
            "then undo."
        )
        assert (root / "run.py").read_text() == text
    await session.turns.stop_turn()
    assert await session.decisions.undo() == (1,)
    assert (root / "run.py").read_text() == BEFORE


async def test_undo_says_what_stays_before_it_goes_past_it(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    (root / "run.py").write_text(BEFORE + "\n\ndef other():\n    return 1\n")
    model.give("def other():\n    return 2\n")
    model.end()
    await session.turns.instruct(Question("change `other`", path="run.py"))
    await session.turns.finished()
    assert await session.decisions.accept(1)
    give(model, rewrite((2, "    A\n")))
    model.end()
    await session.turns.instruct(Question("change run", path="run.py", cursor=3))
    await session.turns.finished()
    assert await session.decisions.accept(2)
    text = (root / "run.py").read_text().replace("    A\n", "    my own\n")
    (root / "run.py").write_text(text)
    await session.external.refresh()
    assert await session.decisions.undo() == ()
    assert session.status.notices[-1].text.startswith(
        "`A` was accepted in run.py, and its lines have changed since"
    )
    assert (root / "run.py").read_text() == text
    assert await session.decisions.undo() == (1,)
    assert (root / "run.py").read_text() == text.replace("return 2", "return 1")
    assert await session.decisions.redo() == (1,)
    assert (root / "run.py").read_text() == text


async def test_what_a_later_answer_covers_is_committed_beside_the_persons_own(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    give(model, rewrite((2, "    A\n")))
    model.end()
    await session.turns.instruct(Question("change run", path="run.py", cursor=3))
    await session.turns.finished()
    assert await session.decisions.accept(1)
    own = (root / "run.py").read_text() + "\n# mine\n"
    (root / "run.py").write_text(own)
    await session.external.refresh()
    give(model, rewrite((2, "    A\n"), (20, "    B\n")))
    model.end()
    await session.turns.instruct(Question("more of it", path="run.py", cursor=3))
    await session.turns.finished()
    texts = session.commit.texts("run.py")
    assert texts is not None
    assert [text.text() for text in texts] == [f"{BEFORE}\n# mine\n", own]
