"""Checks before a write: a file that stops parsing is written only when asked for again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from midstream.codebase import references
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from tests.helpers.pairing import Witness
from tests.helpers.stepped import SteppedModel

BEFORE = """\
def check(path):
    if path:
        with open(path) as file:
            return file.read()
    return None
"""
FILES = {"run.py": BEFORE}


async def propose(session: PairingSession, model: SteppedModel, text: str) -> Witness:
    model.give(text)
    model.end()
    await session.turns.instruct(Question("change it", path="run.py", cursor=0))
    await session.turns.finished()
    return Witness(session)


async def test_some_lines_of_a_hunk_that_leave_no_python(
    root: Path, session: PairingSession, model: SteppedModel
) -> None:
    witness = await propose(session, model, BEFORE.replace("    if path:\n", "    if not path:\n"))
    (hunk,) = session.hunks.undecided()
    assert not await session.decisions.decide_lines(hunk.id, 0, 1, accept=True)
    assert (root / "run.py").read_text() == BEFORE
    assert "Nothing was written: run.py would not parse any more (line 4: " in witness.notice
    assert [h.id for h in session.hunks.undecided()] == [hunk.id]
    assert await session.decisions.decide_lines(hunk.id, 0, 1, accept=True)
    assert (root / "run.py").read_text() == BEFORE.replace("    if path:\n", "")


async def test_some_lines_of_a_hunk_that_leave_what_only_the_compiler_refuses(
    root: Path, session: PairingSession, model: SteppedModel
) -> None:
    before = f"class Checker:\n    size = 1\n\n\n{BEFORE}"
    (root / "run.py").write_text(before)
    model.give(BEFORE.replace("check(path)", "check(path, deep)"))
    model.end()
    await session.turns.instruct(Question("change it", path="run.py", cursor=4))
    await session.turns.finished()
    (hunk,) = session.hunks.undecided()
    assert not await session.decisions.decide_lines(hunk.id, 0, 1, accept=True)
    assert (root / "run.py").read_text() == before
    why = "run.py would not parse any more (line 7: 'return' outside function)"
    assert why in session.status.notices[-1].text


async def test_a_hunk_and_all_hunks(
    root: Path, session: PairingSession, model: SteppedModel
) -> None:
    witness = await propose(session, model, BEFORE.replace("return None", "return (None"))
    (hunk,) = session.hunks.undecided()
    assert not await session.decisions.accept(hunk.id)
    assert "would not parse" in witness.notice
    # Another decision in between begins anew.
    assert await session.decisions.edit(hunk.id, ["    return ["])
    assert not await session.decisions.accept_rest("run.py")
    assert (root / "run.py").read_text() == BEFORE
    assert await session.decisions.accept_rest("run.py") == 1
    assert "return [" in (root / "run.py").read_text()


async def test_a_file_that_does_not_parse_already_is_not_asked_about(
    root: Path, session: PairingSession, model: SteppedModel
) -> None:
    (root / "run.py").write_text(BEFORE + "\n\n(\n")
    await propose(session, model, BEFORE.replace("None", "''"))
    (hunk,) = session.hunks.undecided()
    assert await session.decisions.accept(hunk.id)
    assert "return ''" in (root / "run.py").read_text()


async def test_redo_asks_as_well(root: Path, session: PairingSession, model: SteppedModel) -> None:
    await propose(session, model, BEFORE.replace("return None", "return (None"))
    (hunk,) = session.hunks.undecided()
    assert not await session.decisions.accept(hunk.id)
    assert await session.decisions.accept(hunk.id)
    assert await session.decisions.undo() == (hunk.id,)
    assert (root / "run.py").read_text() == BEFORE
    assert not await session.decisions.redo()
    assert (root / "run.py").read_text() == BEFORE


async def test_uses_of_a_renamed_function_are_listed(
    root: Path, session: PairingSession, model: SteppedModel
) -> None:
    (root / "main.py").write_text("import run\n\nprint(run.check('a'))\n")
    (root / "run.py").write_text(f'{BEFORE}\n\nprint(f"{{check(1)}}")\n')
    witness = await propose(session, model, BEFORE.replace("def check", "def verify"))
    await witness.until(lambda: "Not in this change" in witness.notice)
    assert "`check` is still used in main.py:3, run.py:8. Change these as well." in witness.notice
    assert session.status.notices[-1].action == "hunk.elsewhere"
    assert await session.decisions.accept_rest("run.py") == 1
    await witness.until(lambda: witness.notice.startswith("`check` is still used"))
    assert witness.notice.startswith("`check` is still used in main.py:3, run.py:8.")
    assert session.status.notices[-1].action == "hunk.elsewhere"


async def test_a_decision_ends_the_search_that_was_to_precede_it(
    root: Path,
    session: PairingSession,
    model: SteppedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, ended, going = asyncio.Event(), asyncio.Event(), list[str]()

    async def endless(_root: Path, _files: object, name: str, *_: object, **__: object) -> None:
        began.set()
        going.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            going.remove(name)
            ended.set()

    (root / "main.py").write_text("import run\n\nprint(run.check('a'))\n")
    monkeypatch.setattr(references, "find_uses", endless)
    await propose(session, model, BEFORE.replace("def check", "def verify"))
    await asyncio.wait_for(began.wait(), 30)
    began.clear()
    assert await session.decisions.accept_rest("run.py") == 1
    await asyncio.wait_for(ended.wait(), 30)
    await asyncio.wait_for(began.wait(), 30)
    assert going == ["check"], "only the search for what is left after the decision goes on"
