"""The guard in a session: a real server, real ruff, real files; only the model is scripted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import ClassVar

import pytest

from midstream.edits.hunks import Hunk, HunkState
from midstream.errors import UsageError
from midstream.guard.ruff import Diagnostic, RuffServer
from midstream.pairing.guard import CORRECTIONS, LightState
from midstream.pairing.headless import EditFailedError, Job, Sink, run_job
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession, TurnStatus
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.broken_ruff import BrokenRuff
from tests.helpers.pairing import Witness, follow_ups
from tests.helpers.stepped import SteppedModel
from tests.helpers.waiting import PATIENCE_S

BEFORE = """\
import subprocess


def find(db, name, limit=10):
    rows = db.all()
    found = [row for row in rows if row.name == name]
    found.sort()
    return found[:limit]


def run(name):
    return subprocess.run(["ls", name])
"""
FILES = {"m.py": BEFORE}
HEAD = ["def find(db, name, limit=10):\n", '    """Find rows by name."""\n']
BAD_SQL = "    rows = db.execute(f\"select * from t where name = '{name}'\")\n"
GOOD_SQL = '    rows = db.execute("select * from t where name = ?", (name,))\n'
TAIL = ["    found = list(rows)\n", "    found.sort()\n", "    return found[:limit]\n"]
KEY = "AKIA" + "QX7ZL2MWPNV4RT6B"


def give(model: SteppedModel, *lines: str, end: bool = True) -> None:
    for line in lines:
        model.give(line)
    if end:
        model.end()


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_switched_off_for_a_file_it_lets_that_file_be(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    guard = session.guard
    assert not guard.switch(session.files, "m.py")
    assert guard.light("m.py").words == "unguarded: off for this file"
    give(model, *HEAD, BAD_SQL, *TAIL)
    turn = await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
    await Witness(session).until(lambda: not turn.running)
    await guard.caught_up()
    assert turn.status is TurnStatus.DONE
    assert {hunk.state for hunk in session.hunks} == {HunkState.SETTLED}
    assert guard.light("other.py").words != guard.light("m.py").words

    assert guard.switch(session.files, "m.py")
    witness = Witness(session)
    await witness.until(lambda: any(h.state is HunkState.HELD for h in session.hunks))
    assert not guard.switch(session.files, "m.py")
    assert {hunk.state for hunk in session.hunks} == {HunkState.SETTLED}


async def test_an_undo_holds_nothing_back_in_a_file_for_which_it_is_off(
    session: PairingSession, model: SteppedModel
) -> None:
    guard = session.guard
    guard.switch(session.files, "m.py")
    give(model, *HEAD, BAD_SQL, *TAIL)
    await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
    await session.turns.finished()
    assert guard.switch(session.files, "m.py")
    witness = Witness(session)
    await witness.until(lambda: any(h.state is HunkState.HELD for h in session.hunks))
    [held] = [hunk for hunk in session.hunks if hunk.state is HunkState.HELD]
    assert await session.decisions.release(held.id, "the name is checked above")
    assert not guard.switch(session.files, "m.py")
    assert await session.decisions.undo() == (held.id,)
    assert held.state is HunkState.SETTLED
    assert held.note == "the guard is off for this file"

    assert guard.switch(session.files, "m.py")
    await witness.until(lambda: held.state is HunkState.HELD)


@pytest.mark.parametrize("off_when", ["before", "during"])
async def test_switched_on_again_during_an_answer_it_scans_the_rest(
    session: PairingSession, model: SteppedModel, off_when: str
) -> None:
    guard = session.guard
    if off_when == "before":
        guard.switch(session.files, "m.py")
    give(model, *HEAD, end=False)
    await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
    if off_when == "during":
        await stopped_at(session, model, 1)
        await guard.caught_up()
        assert not guard.switch(session.files, "m.py")
    assert guard.switch(session.files, "m.py")
    give(model, BAD_SQL, end=False)
    await stopped_at(session, model, 2)
    assert "(S608)" in follow_ups(model.request)[-1]
    give(model, GOOD_SQL, *TAIL)
    await session.turns.finished()


async def stopped_at(session: PairingSession, model: SteppedModel, count: int) -> None:
    """Wait until the model has been asked ``count`` times."""
    witness = Witness(session)
    await witness.until(lambda: len(model.requests) >= count)


async def test_string_built_sql_is_halted_held_back_and_corrected(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    give(model, *HEAD, BAD_SQL, end=False)
    turn = await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
    await stopped_at(session, model, 2)
    assert turn.status is TurnStatus.STOPPED
    said = follow_ups(model.request)[-1]
    assert said.startswith("use the database\nLine 6 must not be written like that:")
    assert "(S608)" in said
    told = model.request.correction
    assert told is not None
    assert (told.asked, told.correction.line, told.correction.rule) == (
        "use the database",
        6,
        "S608",
    )
    assert told.instruction == said
    assert told.correction.advice in session.status.notices[-1].text
    assert "query parameters" in said
    assert [m.text for m in model.request.messages if m.role == "assistant"] == ["".join(HEAD)]
    assert "S608" in session.status.notices[-1].text
    assert "line 6 of m.py" in session.status.notices[-1].text
    give(model, GOOD_SQL, *TAIL)
    await session.turns.finished()
    assert session.turns.last is not None
    assert session.turns.last.status is TurnStatus.DONE
    assert (root / "m.py").read_text() == BEFORE, "the disk is untouched until an accept"
    assert not [h for h in session.hunks.for_path("m.py") if h.state is HunkState.HELD]
    assert await session.decisions.accept_rest("m.py") == len(session.hunks.for_path("m.py"))
    text = (root / "m.py").read_text()
    assert text == BEFORE.replace(
        BEFORE[BEFORE.index("def find") : BEFORE.index("\n\ndef run")],
        "".join([*HEAD, GOOD_SQL, *TAIL]),
    )
    assert session.guard.light("m.py").state is LightState.GUARDED


async def test_settled_hunks_before_it_stay_with_their_decisions(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    start = ["def find(db, name, limit=20):\n", "    rows = db.all()\n"]
    first = ["    found = [row for row in rows if row.name == name]\n", "    found.sort()\n"]
    give(model, *start, *first, end=False)
    await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
    [hunk_id] = await Witness(session).decidable(1)
    assert await session.decisions.accept(hunk_id)
    give(model, "    eval(name)\n", end=False)
    await stopped_at(session, model, 2)
    assert session.hunks.get(hunk_id).state is HunkState.ACCEPTED
    give(model, "    return found[:limit]\n")
    await session.turns.finished()
    assert session.hunks.get(hunk_id).state is HunkState.ACCEPTED
    assert (root / "m.py").read_text() == BEFORE.replace("limit=10", "limit=20")
    assert not session.hunks.undecided()


async def test_after_two_corrections_the_person_decides(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    give(model, *HEAD, BAD_SQL, end=False)
    await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
    await stopped_at(session, model, 2)
    give(model, BAD_SQL, end=False)
    await stopped_at(session, model, 3)
    give(model, BAD_SQL, end=False)
    await session.turns.finished()
    assert len(model.requests) == 3
    held = [h for h in session.hunks if h.state is HunkState.HELD]
    assert len(held) == 1
    assert held[0].note.endswith(" (S608)")
    assert "held back" in session.status.notices[-1].text
    assert not await session.decisions.accept(held[0].id)
    await session.decisions.accept_rest("m.py")
    assert "select" not in (root / "m.py").read_text()
    assert [f.rule for f in session.guard.findings(held[0])] == ["S608"]
    with pytest.raises(UsageError, match="say why it is safe"):
        await session.decisions.release(held[0].id, "  ")
    await session.decisions.release(held[0].id, "the name is checked above")
    assert await session.decisions.accept(held[0].id)
    assert BAD_SQL in (root / "m.py").read_text()
    # a released line does not halt again
    give(
        model,
        BEFORE[BEFORE.index("def find") :]
        .split("    found", 1)[0]
        .replace("    rows = db.all()\n", BAD_SQL),
        *TAIL,
    )
    await session.decisions.undo()
    await session.turns.instruct(Question("again", path="m.py", cursor=4))
    await session.turns.finished()
    assert len(model.requests) == 4


async def test_the_last_line_of_an_answer_is_judged_before_it_can_be_accepted(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    give(model, "def run(name):\n", "    return subprocess.run(input(), shell=True)")
    give(model, "    return subprocess.run([name])\n")
    await session.turns.instruct(Question("let it run the name", path="m.py", cursor=10))
    await session.turns.finished()
    assert len(model.requests) == 2
    assert await session.decisions.accept_rest("m.py") == 1
    assert (root / "m.py").read_text().endswith("    return subprocess.run([name])\n")


async def test_a_key_is_masked_in_notice_request_and_journal(
    root: Path,
    endpoint: Endpoint,
    model: SteppedModel,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(tmp_path / "state"))
    opened = await PairingSession.open(root, settings=Settings(), endpoint=endpoint, watch=False)
    async with opened as session:
        give(model, *HEAD, f'    key = "{KEY[:9]}', f'{KEY[9:]}"\n', end=False)
        await session.turns.instruct(Question("use the service", path="m.py", cursor=4))
        await stopped_at(session, model, 2)
        assert KEY not in "".join(m.text for m in model.request.messages)
        assert "environment" in follow_ups(model.request)[-1]
        assert all(KEY not in notice.text for notice in session.status.notices)
        give(model, '    key = os.environ["KEY"]\n', *TAIL)
        await session.turns.finished()
        texts = {h.id: h.new for h in session.hunks.for_path("m.py")}
    journals = files_below(tmp_path / "state")
    kept = b"".join(p.read_bytes() for p in journals)
    assert b'"hold"' in kept
    assert KEY.encode() not in kept
    assert b"AKIA\\u2026" in kept
    journal = next(p for p in journals if b'"begin"' in p.read_bytes())
    again = await PairingSession.open(
        root, settings=Settings(), endpoint=endpoint, watch=False, resume=journal
    )
    async with again:
        assert {h.id: h.new for h in again.hunks.for_path("m.py")} == texts


async def test_warnings_mark_the_hunk_and_levels_can_be_set(
    root: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    settings = Settings(journal=False, guard_levels=(("S608", "warn"),))
    opened = await PairingSession.open(root, settings=settings, endpoint=endpoint, watch=False)
    async with opened as session:
        give(model, *HEAD, BAD_SQL, *TAIL)
        await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
        await session.turns.finished()
        assert len(model.requests) == 1
        marked = [h for h in session.hunks if session.guard.findings(h)]
        assert len(marked) == 1
        assert BAD_SQL.rstrip("\n") in marked[0].new
        assert await session.decisions.accept(marked[0].id)


async def test_switched_off_it_does_nothing_and_says_so(
    root: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    settings = Settings(journal=False, guard=False)
    opened = await PairingSession.open(root, settings=settings, endpoint=endpoint, watch=False)
    async with opened as session:
        give(model, *HEAD, BAD_SQL, *TAIL)
        await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
        await session.turns.finished()
        assert len(model.requests) == 1
        assert session.guard.light("m.py").words == "unguarded: the guard is switched off"


async def test_the_light_says_the_truth(
    session: PairingSession, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert session.guard.light("").words == "scanning nothing"
    assert session.guard.light("m.py").words == "scanning nothing"
    assert session.guard.light("notes.md").state is LightState.UNGUARDED
    monkeypatch.setattr("midstream.guard.ruff.find_ruff", lambda: None)
    give(model, *HEAD, BAD_SQL, end=False)
    await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
    await stopped_at(session, model, 2)  # queries are read without ruff
    give(model, GOOD_SQL, *TAIL)
    await session.turns.finished()
    assert "ruff is not installed" in session.guard.light("m.py").words


async def test_a_ruff_that_does_not_work_is_said_once_and_guards_nothing(
    session: PairingSession, model: SteppedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    BrokenRuff(tmp_path, "exit 2", monkeypatch)
    give(model, *HEAD, "    return eval(name)\n")
    await session.turns.instruct(Question("evaluate the name", path="m.py", cursor=4))
    await session.turns.finished()
    await session.guard.caught_up()
    said = "ruff does not work (exit code 2)"
    assert session.guard.light("m.py").words == f"unguarded: {said}"
    assert session.guard.unread("m.py") == said
    assert session.guard.unread("m.js") == ""
    sentence = f"{said}, so of Python only credentials and queries are checked."
    assert [n.text for n in session.status.notices].count(sentence) == 1


async def test_a_guard_that_does_not_answer_in_time_is_told(
    session: PairingSession, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(RuffServer, "check", never)
    monkeypatch.setattr("midstream.pairing.guard.VERDICT_S", 0.1)
    give(model, *HEAD, GOOD_SQL, *TAIL)
    await session.turns.instruct(Question("use the index", path="m.py", cursor=4))
    await session.turns.finished()
    await session.guard.caught_up()
    said = "The guard has not answered within 0.1 s, so what is decided now is not checked in full."
    assert [n.text for n in session.status.notices].count(said) == 1


async def test_a_guard_that_fails_itself_is_told(
    session: PairingSession, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("midstream.guard.stream.StreamScan.look", broken)
    give(model, *HEAD, GOOD_SQL, *TAIL)
    await session.turns.instruct(Question("use the index", path="m.py", cursor=4))
    await session.turns.finished()
    why = "the guard itself failed (RuntimeError('a defect'))"
    assert session.guard.light("m.py").words == f"unguarded: {why}"
    said = f"The guard has stopped, so lines are not checked any more: {why}."
    assert said in [notice.text for notice in session.status.notices]


async def test_a_hunk_that_ruff_has_not_looked_at_again_stays_held_back(
    session: PairingSession, model: SteppedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    give(model, *HEAD, "    return eval(name)\n")
    for _ in range(CORRECTIONS):
        give(model, "    return eval(name)\n")
    await session.turns.instruct(Question("evaluate the name", path="m.py", cursor=4))
    await session.turns.finished()
    [held] = [hunk for hunk in session.hunks if hunk.state is HunkState.HELD]
    scanner = session.guard._scanner
    assert scanner is not None
    await scanner.close()
    BrokenRuff(tmp_path, "exit 2", monkeypatch)
    await session.guard.look_again(session.files)
    assert held.state is HunkState.HELD


async def test_garbage_and_a_killed_ruff_do_not_stop_the_stream(
    session: PairingSession, model: SteppedModel
) -> None:
    give(model, *HEAD, end=False)
    await session.turns.instruct(Question("break it", path="m.py", cursor=4))
    witness = Witness(session)
    await witness.until(lambda: session.guard._scanner.ruff.pid is not None)
    await session.guard.caught_up()
    assert session.guard.light("m.py").state is LightState.GUARDED
    os.kill(session.guard._scanner.ruff.pid, signal.SIGKILL)
    give(model, "    x = 1\n", "    \x00\x01 ) = =\n", end=False)
    await witness.until(lambda: session.turns.last.tokens >= 4)
    await session.guard.caught_up()
    assert session.guard.light("m.py").words == "unguarded: the text does not parse as Python"
    give(model, "(" * 1_000_000 + "\n", "\ud7ff é\r\n", *TAIL)
    await session.turns.finished()
    assert session.turns.last.status is TurnStatus.DONE
    assert "too long to scan" in session.guard.light("m.py").words


async def test_stop_and_redirect_by_the_person_still_work_beside_it(
    session: PairingSession, model: SteppedModel
) -> None:
    give(model, *HEAD, end=False)
    await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
    await Witness(session).until(lambda: session.turns.last.tokens >= 2)
    await session.turns.redirect("use sql")
    await stopped_at(session, model, 2)
    give(model, BAD_SQL, end=False)
    await stopped_at(session, model, 3)
    # The docstring was still undecided at the redirect, so it is gone.
    assert follow_ups(model.request)[-1].startswith("use sql\nLine 5")
    found = BEFORE.splitlines(keepends=True)[5]  # The next old line settles the hunk.
    give(model, GOOD_SQL, found, end=False)
    await Witness(session).until(lambda: session.turns.last.tokens >= 2)
    await session.turns.redirect("sort it")
    await stopped_at(session, model, 4)
    written = [m.text for m in model.request.messages if m.role == "assistant"]
    assert written[-1] == GOOD_SQL + found
    give(model, *TAIL[1:])
    await session.turns.finished()
    assert session.turns.last.status is TurnStatus.DONE
    new = [line for h in session.hunks.for_path("m.py") for line in h.new]
    assert GOOD_SQL.rstrip("\n") in new
    assert BAD_SQL.rstrip("\n") not in new


@pytest.mark.parametrize(
    ("bad", "good", "rule"),
    [
        (BAD_SQL, GOOD_SQL, "S608"),
        (f'    rows = db.open("{KEY}")\n', '    rows = db.open(os.environ["KEY"])\n', "aws-key"),
        (
            "    rows = subprocess.run(input(), shell=True)\n",
            "    rows = subprocess.run([name])\n",
            "S602",
        ),
    ],
)
async def test_a_served_script_end_to_end(
    root: Path, tmp_path: Path, bad: str, good: str, rule: str
) -> None:
    """The embedded server at 1,000 tokens a second: nothing but text, port and disk between."""
    after = "".join(f"    step_{n} = rows[{n}]\n" for n in range(1000))  # 8 s: it must be stopped
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps(
            [
                {"match": "must not be written", "text": "".join([*HEAD, good, *TAIL])},
                {"match": "", "text": "".join([*HEAD, bad, after, *TAIL]), "rate": 1000},
            ]
        )
    )
    async with await PairingSession.open(
        root, settings=Settings(journal=False), replay=script, watch=False
    ) as session:
        witness = Witness(session)
        turn = await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
        await session.turns.finished()
        assert turn.status is TurnStatus.STOPPED
        assert rule in session.status.notices[0].text
        assert "written" not in {type(e).__name__ for e in witness.events}
        assert (root / "m.py").read_text() == BEFORE
        assert session.turns.last is not None
        assert session.turns.last.status is TurnStatus.DONE
        states = [h.state for h in session.hunks if rule in h.note]
        assert HunkState.SETTLED not in states
        assert await session.decisions.accept_rest("m.py")
        text = (root / "m.py").read_text()
        assert good in text
        assert bad not in text
        assert "step_0" not in text


class HunkSink(Sink):
    hunks: ClassVar[list[str]] = []

    def hunk(self, hunk: Hunk) -> None:
        self.hunks.extend(hunk.new)


async def test_headless_gives_the_corrected_answer(
    root: Path, endpoint: Endpoint, model: SteppedModel
) -> None:
    give(model, *HEAD, BAD_SQL, end=False)
    job = Job(root, Question("use the database", "m.py", 4), apply=True)
    running = asyncio.create_task(
        run_job(job, HunkSink(), settings=Settings(journal=False), endpoint=endpoint)
    )
    while len(model.requests) < 2:  # noqa: ASYNC110 (nobody tells)
        await asyncio.sleep(0.01)
    give(model, GOOD_SQL, *TAIL)
    outcome = await running
    assert outcome.written
    assert GOOD_SQL.rstrip("\n") in HunkSink.hunks
    assert BAD_SQL.rstrip("\n") not in HunkSink.hunks
    assert GOOD_SQL in (root / "m.py").read_text()
    assert BAD_SQL not in (root / "m.py").read_text()


@pytest.mark.parametrize("unsure", [False, True])
async def test_headless_writes_nothing_of_an_answer_with_a_secret(
    root: Path, tmp_path: Path, unsure: bool
) -> None:
    lines = ["def find(db, name, limit=20):\n", f'    rows = db.open("{KEY}")\n', *TAIL]
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"match": "", "text": "".join(lines), "rate": 1000}]))
    asked = Question("use the key", "m.py", 4)
    job = Job(root, asked, apply=True, unsure=unsure, anyway=True)
    with pytest.raises(EditFailedError):
        await run_job(job, HunkSink(), settings=Settings(journal=False), replay=script)
    assert (root / "m.py").read_text() == BEFORE


@pytest.mark.parametrize("unsure", [False, True])
async def test_headless_writes_what_ruff_has_not_looked_at_only_when_told_to(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsure: bool
) -> None:
    BrokenRuff(tmp_path, "exit 2", monkeypatch)
    script = tmp_path / "script.json"
    text = "".join([HEAD[0], "    rows = eval(name)\n", *TAIL])
    script.write_text(json.dumps([{"match": "", "text": text, "rate": 1000}]))
    job = Job(root, Question("evaluate it", "m.py", 4), apply=True, unsure=unsure)
    outcome = await run_job(job, HunkSink(), settings=Settings(journal=False), replay=script)
    assert outcome.written is unsure
    said = "ruff does not work (exit code 2), so m.py is not checked"
    assert (outcome.left, outcome.refused) == (
        (f"{said}.", "") if unsure else ("", f"{said}; --unsure writes it")
    )


async def test_what_comes_while_a_verdict_is_awaited_is_not_accepted_with_the_rest(
    session: PairingSession, model: SteppedModel, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answered, check = asyncio.Event(), asyncio.Event(), RuffServer.check

    async def slow(server: RuffServer, text: str) -> list[Diagnostic]:
        if "limit=20" in text:
            asked.set()
            await answered.wait()
        return await check(server, text)

    monkeypatch.setattr(RuffServer, "check", slow)
    give(model, "def find(db, name, limit=20):\n", "    rows = db.all()\n", end=False)
    await session.turns.instruct(Question("use the database", path="m.py", cursor=4))
    witness = Witness(session)
    [first] = await witness.decidable(1)
    await asyncio.wait_for(asked.wait(), PATIENCE_S)
    accepting = asyncio.create_task(session.decisions.accept_rest("m.py"))
    await asyncio.sleep(0)
    give(model, "    found = sorted(rows)\n", "    found.sort()\n", end=False)
    [_, second] = await witness.decidable(2)
    answered.set()
    assert await accepting == 1
    assert session.hunks.get(first).state is HunkState.ACCEPTED
    assert session.hunks.get(second).state is HunkState.SETTLED
    assert (root / "m.py").read_text() == BEFORE.replace("limit=10", "limit=20")
