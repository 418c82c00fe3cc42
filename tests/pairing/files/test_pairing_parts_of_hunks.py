"""Deciding lines, splitting and editing: what the disk, undo and a resumed session make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.edits.hunks import HunkState
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.journal import Journal
from tests.helpers.pairing import numbered
from tests.helpers.stepped import SteppedModel

BEFORE = numbered(12)
FILES = {"run.py": BEFORE}
OLD = "    step_02 = work(2)\n    step_03 = work(3)\n    step_04 = work(4)\n"
NEW = "    two\n    three\n    four\n"


async def proposed(root: Path, endpoint: Endpoint, model: SteppedModel) -> PairingSession:
    """A session with one undecided hunk: three lines replaced by three others."""
    session = await PairingSession.open(root, settings=Settings(), endpoint=endpoint, watch=False)
    model.give(BEFORE.replace(OLD, NEW))
    model.end()
    await session.turns.instruct(Question("change", path="run.py", cursor=3))
    await session.turns.finished()
    assert [h.new for h in session.hunks.undecided()] == [("    two", "    three", "    four")]
    return session


def on_disk(root: Path) -> str:
    return (root / "run.py").read_text()


def resume(root: Path, endpoint: Endpoint, state: Path):
    journal = Journal.latest(state, root)
    assert journal is not None
    return PairingSession.open(
        root, settings=Settings(), endpoint=endpoint, watch=False, resume=journal
    )


async def test_some_lines_are_written_and_the_rest_waits(
    root: Path, endpoint: Endpoint, model: SteppedModel, state: Path
) -> None:
    wanted = BEFORE.replace("    step_02 = work(2)\n", "    step_02 = work(2)\n    two\n")
    async with await proposed(root, endpoint, model) as session:
        assert await session.decisions.decide_lines(1, 3, 4, accept=True)
        assert on_disk(root) == wanted
        assert sum(len(h.new) for h in session.hunks.undecided()) == 2
        await session.decisions.undo()
        assert on_disk(root) == BEFORE
        assert [h.id for h in session.hunks.undecided()] == [1]
        await session.decisions.redo()
        assert on_disk(root) == wanted
        left = [(h.id, h.old, h.new) for h in session.hunks.undecided()]
    async with await resume(root, endpoint, state) as session:
        assert [(h.id, h.old, h.new) for h in session.hunks.undecided()] == left
        assert await session.decisions.accept_rest("run.py") == 2
        assert on_disk(root) == BEFORE.replace(OLD, NEW)


async def test_rejected_lines_keep_their_reason(
    root: Path, endpoint: Endpoint, model: SteppedModel, state: Path
) -> None:
    async with await proposed(root, endpoint, model) as session:
        assert await session.decisions.decide_lines(1, 3, 4, accept=False, note="no two")
        assert on_disk(root) == BEFORE
    async with await resume(root, endpoint, state) as session:
        rejected = [h for h in session.hunks if h.state is HunkState.REJECTED]
        assert [(h.new, h.note) for h in rejected] == [(("    two",), "no two")]


async def test_a_split_hunk_is_decided_in_parts(
    root: Path, endpoint: Endpoint, model: SteppedModel, state: Path
) -> None:
    async with await proposed(root, endpoint, model) as session:
        first, second = await session.decisions.split(1, [(1, 1)])
        assert await session.decisions.accept(second)
        wanted = BEFORE.replace(OLD, "    step_02 = work(2)\n    three\n    four\n")
        assert on_disk(root) == wanted
    async with await resume(root, endpoint, state) as session:
        assert [h.id for h in session.hunks.undecided()] == [first]
        await session.decisions.undo()
        await session.decisions.undo()
        assert [h.id for h in session.hunks.undecided()] == [1]
        assert on_disk(root) == BEFORE


async def test_an_edited_hunk_writes_what_the_person_wrote(
    root: Path, endpoint: Endpoint, model: SteppedModel, state: Path
) -> None:
    async with await proposed(root, endpoint, model) as session:
        assert await session.decisions.edit(1, ["    mine", "    four"])
    async with await resume(root, endpoint, state) as session:
        assert session.hunks.get(1).new == ("    mine", "    four")
        assert await session.decisions.accept(1)
        assert on_disk(root) == BEFORE.replace(OLD, "    mine\n    four\n")
        await session.decisions.undo()
        await session.decisions.undo()
        assert session.hunks.get(1).new == ("    two", "    three", "    four")


async def test_a_file_saved_meanwhile_is_kept(
    root: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    async with await proposed(root, endpoint, model) as session:
        (root / "run.py").write_text("# mine\n" + BEFORE)
        assert await session.decisions.decide_lines(1, 0, 1, accept=True)
        assert on_disk(root) == "# mine\n" + BEFORE.replace("    step_02 = work(2)\n", "")


async def test_a_decided_hunk_says_why_it_cannot_be_changed(
    root: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    async with await proposed(root, endpoint, model) as session:
        await session.decisions.accept(1)
        assert not await session.decisions.edit(1, ["x"])
        assert await session.decisions.split(1, [(1, 1)]) == ()
        assert not await session.decisions.decide_lines(1, 0, 1, accept=False)
        assert "decided already" in session.status.notices[-1].text
        assert not await session.decisions.edit(99, ["x"])
        assert "no hunk 99" in session.status.notices[-1].text
        await session.decisions.undo()
        with pytest.raises(ValueError, match="order"):
            await session.decisions.split(1, [(9, 9)])
