"""Which place an instruction goes to, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.errors import UsageError, UserError
from midstream.pairing.request.question import Question
from midstream.pairing.request.target import Candidate, TargetUnclearError
from midstream.pairing.session import PairingSession
from midstream.pairing.turn.runner import NoTurnError, TurnRunningError
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.rewriting import BEFORE
from tests.helpers.stepped import SteppedModel


async def test_instructions_that_go_nowhere(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    with pytest.raises(UsageError, match="empty"):
        await session.turns.instruct(Question("  ", path="run.py"))
    with pytest.raises(NoTurnError):
        await session.turns.redirect("more")
    with pytest.raises(UserError, match=r"no file gone\.py"):
        await session.turns.instruct(Question("change", path="gone.py"))
    with pytest.raises(TargetUnclearError, match=r"no `walk_all` in run\.py"):
        await session.turns.instruct(Question("add a docstring to `walk_all`", path="run.py"))
    with pytest.raises(TargetUnclearError, match="Which file"):
        await session.turns.instruct(Question("make it faster"))
    with pytest.raises(UserError, match="outside"):
        await session.turns.instruct(Question("change", path="../escape.py"))
    (root / "data.py").write_bytes(b"a = 1\x00\n")
    with pytest.raises(UserError, match=r"data\.py is not a text file \(it has a NUL byte"):
        await session.turns.instruct(Question("change", path="data.py", cursor=0))
    (root / "notes.md").write_text("# Notes\n")
    with pytest.raises(UserError, match=r"edits Python only, and notes\.md is markdown"):
        await session.turns.instruct(Question("change", path="notes.md", cursor=0))
    assert not model.requests
    await session.turns.instruct(Question("change run"))
    with pytest.raises(TurnRunningError):
        await session.turns.instruct(Question("again", path="run.py", cursor=3))
    await session.turns.stop_turn()


async def test_a_name_that_another_file_has_is_found_there(
    session: PairingSession, root: Path
) -> None:
    (root / "walks.py").write_text("def walk_all(tree):\n    return tree\n")
    with pytest.raises(
        TargetUnclearError, match=r"not defined in run\.py but in walks\.py"
    ) as caught:
        await session.turns.instruct(Question("add a docstring to `walk_all`", path="run.py"))
    assert caught.value.candidates == (Candidate("walks.py", "walk_all"),)
    assert str(caught.value).endswith("in walks.py; ask for it there.")
    assert caught.value.question.endswith("in walks.py; go there?")
    (root / "run.py").write_text("from walks import walk_all\n" + BEFORE)
    with pytest.raises(TargetUnclearError, match=r"not defined in run\.py but in walks\.py"):
        await session.turns.instruct(
            Question("rename tree to node in walk_all", path="run.py", cursor=0)
        )
    (root / "more.py").write_text("def walk_all():\n    pass\n")
    with pytest.raises(TargetUnclearError, match=r"in more\.py and walks\.py") as caught:
        await session.turns.instruct(
            Question("add a docstring to walk_all", path="run.py", cursor=3)
        )
    assert caught.value.candidates == (
        Candidate("more.py", "walk_all"),
        Candidate("walks.py", "walk_all"),
    )


@pytest.mark.parametrize(
    "said",
    [
        "raise ValueError in average when rows is empty",
        "add a check for empty rows in the average function",
        "average should round to 2 digits",
        "make average() return 0 for no rows",
        "make average return 0 for no rows",
    ],
)
async def test_a_plain_word_for_a_place_that_only_another_file_has_is_asked_about(
    session: PairingSession, root: Path, said: str
) -> None:
    (root / "report.py").write_text("def average(rows):\n    return sum(rows) / len(rows)\n")
    with pytest.raises(TargetUnclearError) as caught:
        await session.turns.instruct(Question(said, path="run.py", cursor=3))
    assert caught.value.candidates == (Candidate("report.py", "average"),)
    assert caught.value.question.endswith("in report.py; go there?")


@pytest.mark.parametrize(
    "said",
    ["sort them in production", "print it in upper case", "work in memory", "use an average"],
)
async def test_a_plain_word_is_no_place_elsewhere(
    session: PairingSession, root: Path, said: str
) -> None:
    (root / "report.py").write_text("production = 1\ndef upper():\n    average = memory = 2\n")
    turn = await session.turns.instruct(Question(said, path="run.py", cursor=3))
    assert turn.symbol == "run"
    await session.turns.stop_turn()


async def test_instruction_without_a_path_finds_the_file(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    turn = await session.turns.instruct(Question("add a docstring to `run`"))
    assert (turn.path, turn.symbol) == ("run.py", "run")
    await session.turns.stop_turn()


async def test_empty_folder(tmp_path: Path, settings: Settings, endpoint: Endpoint) -> None:
    async with await PairingSession.open(
        tmp_path, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        with pytest.raises(TargetUnclearError, match="no code in"):
            await session.turns.instruct(Question("add a docstring to `run`"))
    with pytest.raises(UserError, match="no folder"):
        await PairingSession.open(tmp_path / "gone", settings=settings, endpoint=endpoint)


@pytest.mark.parametrize("model", [SteppedModel({"max_region_lines": "20"})])
async def test_region_that_is_too_long(session: PairingSession, model: SteppedModel) -> None:
    with pytest.raises(TargetUnclearError, match="`run` has 40 lines and the model takes 20"):
        await session.turns.instruct(Question("change", path="run.py", cursor=3))
    turn = await session.turns.instruct(Question("change", path="run.py", selection=(5, 20)))
    assert (turn.start, turn.stop) == (5, 20)
    await session.turns.stop_turn()
