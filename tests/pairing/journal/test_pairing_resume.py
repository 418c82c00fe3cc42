"""Taking up a session from its journal, cut at every place a crash could have cut it."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest

from midstream.edits.hunks import HunkState
from midstream.errors import UserError
from midstream.pairing.journal.journal import Replay, ResumeError
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession, TurnStatus
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.journal import Journal, JournalInUseError
from tests.helpers.pairing import Witness, numbered
from tests.helpers.property import thorough
from tests.helpers.stepped import SteppedModel

BEFORE = numbered(24)
FILES = {"run.py": BEFORE}
DATA = Path(__file__).parent / "data"


def changed(*changes: tuple[str, str], text: str = BEFORE) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


A = ("    step_02 = work(2)\n", "    A\n")
B = ("    step_10 = work(10)\n", "    B\n")
C = ("    step_18 = work(18)\n", "    C\n")


async def play(root: Path, endpoint: Endpoint, model: SteppedModel) -> list[tuple[bytes, str]]:
    """A session with every kind of step; returns the file after each, and the name of the step."""
    steps: list[tuple[bytes, str]] = []

    def note(what: str) -> None:
        steps.append(((root / "run.py").read_bytes(), what))

    session = await PairingSession.open(root, settings=Settings(), endpoint=endpoint, watch=False)
    async with session:
        witness = Witness(session)
        lines = changed(A, B).splitlines(keepends=True)
        model.give("".join(lines[:14]))
        turn = await session.turns.instruct(Question("one", path="run.py", cursor=3))
        await witness.until(lambda: turn.tokens == 1)
        await session.turns.redirect("two")
        await witness.until(lambda: model.asked == "two")
        model.give("".join(lines[14:]))
        model.end()
        await session.turns.finished()
        await session.decisions.accept(1)
        note("accept")
        await session.decisions.reject(2, "no")
        await session.decisions.undo()
        note("reject, undo")
        (root / "run.py").write_bytes(b"# the person's\n" + (root / "run.py").read_bytes())
        await session.decisions.accept(2)
        note("save, accept")
        await session.decisions.undo()
        note("undo")
        await session.decisions.redo()
        note("redo")
        model.give(changed(A, B, C).split("    step_22")[0])
        turn = await session.turns.instruct(Question("three", path="run.py", cursor=3))
        await witness.until(lambda: bool(session.hunks.undecided()))
        await witness.until(lambda: turn.tokens == 1)
        await session.turns.stop_turn()
        note("stopped turn")
    model.drop()
    return steps


async def played(root: Path, endpoint: Endpoint, model: SteppedModel, state: Path) -> Path:
    """The journal of such a session."""
    await play(root, endpoint, model)
    journal = Journal.latest(state, root)
    assert journal is not None
    return journal


async def test_everything_comes_back(
    root: Path, settings: Settings, endpoint: Endpoint, model: SteppedModel, state: Path
) -> None:
    steps = await play(root, endpoint, model)
    on_disk = steps[-1][0]
    assert on_disk.decode() == "# the person's\n" + changed(A, B)
    journal = Journal.latest(state, root)
    assert journal is not None
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal
    ) as session:
        assert [t.status for t in session.turns] == [
            TurnStatus.STOPPED,
            TurnStatus.DONE,
            TurnStatus.STOPPED,
        ]
        assert session.turns[1].redirected_from == 1
        undecided = session.hunks.undecided("run.py")
        assert [h.new for h in undecided] == [("    C",)]
        with pytest.raises(JournalInUseError):
            await PairingSession.open(root, settings=settings, endpoint=endpoint, resume=journal)
        assert await session.decisions.accept_rest("run.py") == 1
        assert (root / "run.py").read_text() == "# the person's\n" + changed(A, B, C)
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal
    ) as session:
        assert session.hunks.undecided() == []
        assert "every hunk in it is decided" in session.status.notices[0].text
        await session.decisions.undo()
        assert (root / "run.py").read_bytes() == on_disk


async def test_a_hunk_in_conflict_that_was_put_away_stays_so_and_comes_back(
    root: Path, settings: Settings, endpoint: Endpoint, model: SteppedModel, state: Path
) -> None:
    users = changed((A[0], "    mine = 2\n")).encode()
    opened = PairingSession.open
    async with await opened(root, settings=settings, endpoint=endpoint, watch=False) as session:
        model.give(changed(A, B))
        model.end()
        await session.turns.instruct(Question("one", path="run.py", cursor=3))
        await session.turns.finished()
        (root / "run.py").write_bytes(users)
        assert not await session.decisions.accept(1)
        assert session.hunks.get(1).state is HunkState.CONFLICT
        assert await session.decisions.reject(1)
        assert (root / "run.py").read_bytes() == users
    journal = Journal.latest(state, root)
    assert journal is not None
    async with await opened(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal
    ) as session:
        hunk = session.hunks.get(1)
        assert (hunk.state, hunk.displaced) == (HunkState.REJECTED, True)
        assert (root / "run.py").read_bytes() == users
        assert await session.decisions.undo() == (1,)
        assert hunk.state is HunkState.CONFLICT
        assert await session.decisions.redo() == (1,)
        assert await session.decisions.accept(2)
        assert (root / "run.py").read_text() == changed(B, text=users.decode())


@pytest.mark.fuzz
async def test_a_journal_cut_anywhere_is_taken_up(
    root: Path, settings: Settings, endpoint: Endpoint, model: SteppedModel, state: Path
) -> None:
    """Whatever the last entries were, resuming writes nothing and agrees with the disk."""
    steps = await play(root, endpoint, model)
    contents = list(dict.fromkeys([BEFORE.encode(), *(data for data, _ in steps)]))
    journal = Journal.latest(state, root)
    assert journal is not None
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert len(lines) > 20
    cuts = [b"".join(lines[:n]) for n in range(1, len(lines) + 1)]
    cuts += [cut[: -len(cut) // 50 - 3] for cut in cuts[::3]]
    chosen = list(enumerate(cuts))
    for number, cut in chosen if thorough() else chosen[::5]:
        for data in {contents[-1], contents[number % len(contents)]}:
            (root / "run.py").write_bytes(data)
            copy = state / "copies" / f"{number}.jsonl"
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(cut)
            async with await PairingSession.open(
                root, settings=settings, endpoint=endpoint, watch=False, resume=copy
            ) as session:
                assert (root / "run.py").read_bytes() == data, "resuming writes nothing"
                assert not any(turn.running for turn in session.turns)
                if proposal := session.files.get("run.py"):
                    assert proposal.composed().to_bytes() == data
                    assert proposal.current is None
                undecided = [h.id for h in session.hunks.undecided()]
                for hunk_id in undecided:
                    assert await session.decisions.accept(hunk_id), session.status.notices
                for _ in undecided:
                    await session.decisions.undo()
                assert (root / "run.py").read_bytes() == data
            shutil.rmtree(copy.parent)


@pytest.mark.parametrize(
    "damage",
    [
        '{"k":"decide","t":1,"d":{"ids":[99],"state":"accepted","note":""}}',
        '{"k":"riddle","t":1,"d":{}}',
    ],
)
async def test_a_journal_that_makes_no_sense_is_left_aside(
    root: Path,
    settings: Settings,
    endpoint: Endpoint,
    model: SteppedModel,
    tmp_path: Path,
    damage: str,
    state: Path,
) -> None:
    journal = await played(root, endpoint, model, state)
    with journal.open("a") as file:
        file.write(damage + "\n")
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal
    ) as session:
        assert "cannot be resumed" in session.status.notices[0].text
        assert len(session.hunks) == 0
        model.give(BEFORE.replace("step_05", "five"))
        model.end()
        await session.turns.instruct(Question("go on", path="run.py", cursor=4))
        await session.turns.finished()
        assert session.hunks.undecided()


async def test_a_write_that_was_cut_off_is_seen_on_the_disk(
    root: Path, settings: Settings, endpoint: Endpoint, model: SteppedModel, state: Path
) -> None:
    """The journal ends between the intent and its completion."""
    journal = await played(root, endpoint, model, state)
    lines = journal.read_text().splitlines(keepends=True)
    intent = next(n for n, line in enumerate(lines) if json.loads(line).get("k") == "writing")
    for data, expected in ((BEFORE, HunkState.SETTLED), (changed(A), HunkState.ACCEPTED)):
        (root / "run.py").write_text(data)
        journal.write_text("".join(lines[: intent + 1]))
        async with await PairingSession.open(
            root, settings=settings, endpoint=endpoint, watch=False, resume=journal
        ) as session:
            assert session.hunks.get(1).state is expected
            assert (root / "run.py").read_text() == data


async def test_a_session_that_asked_nothing_leaves_no_journal(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.files.open("run.py")
    assert Journal.latest(state, root) is None


async def test_no_journal_when_it_is_switched_off(
    root: Path, endpoint: Endpoint, model: SteppedModel, state: Path
) -> None:
    model.give(BEFORE)
    model.end()
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint, watch=False
    ) as session:
        await session.turns.instruct(Question("one", path="run.py", cursor=3))
        await session.turns.finished()
    assert Journal.latest(state, root) is None


async def test_a_journal_that_is_a_pipe_is_a_sentence(
    root: Path, settings: Settings, endpoint: Endpoint, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "20260101T000000-000000-aaaaaa.jsonl")
    journal = tmp_path / "20260101T000000-000000-aaaaaa.jsonl"
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal
    ) as session:
        assert "it is no regular file" in session.status.notices[0].text
        assert journal.is_fifo()


@pytest.mark.parametrize("name", ["x" * 300, "y/" * 300 + "z", "run.py/x", "loop", "pipe", "a\nb"])
async def test_a_journal_of_a_file_that_cannot_be_is_resumed(
    root: Path,
    settings: Settings,
    endpoint: Endpoint,
    model: SteppedModel,
    state: Path,
    name: str,
) -> None:
    journal = await played(root, endpoint, model, state)
    journal.write_text(journal.read_text().replace(json.dumps("run.py"), json.dumps(name)))
    before = (root / "run.py").read_bytes()
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal, review=True
    ) as session:
        assert "is back" in session.status.notices[-1].text
        for decide in (session.decisions.undo, session.decisions.redo):
            with suppress(UserError):
                await decide()
        for hunk in session.hunks.undecided():
            with suppress(UserError):
                await session.decisions.accept(hunk.id)
    assert (root / "run.py").read_bytes() == before
    assert {name for _, _, names in os.walk(root) for name in names} == {"run.py", "loop", "pipe"}


@pytest.mark.parametrize(
    "name",
    [
        "../out.py",
        "/etc/hosts",
        "",
        ".",
        "a//b",
        "a/./b",
        ".GIT/config",
        "a\0b",
        "\ud800",
        "x/" * 2500 + "x",
    ],
)
async def test_a_journal_of_a_name_that_no_file_of_the_folder_has_is_refused(
    root: Path, endpoint: Endpoint, model: SteppedModel, state: Path, name: str
) -> None:
    journal = await played(root, endpoint, model, state)
    journal.write_text(journal.read_text().replace(json.dumps("run.py"), json.dumps(name)))
    with pytest.raises(ResumeError, match="breaks at entry"):
        Replay.read(journal)


ODD = [None, True, -1, 10**30, 1e308, "", "\x1b]0;x\x07", "\ud800", [], [[1]], {}, {"a": [1]}]


@pytest.mark.fuzz
async def test_a_journal_of_any_content_is_replayed_or_refused(
    root: Path, settings: Settings, endpoint: Endpoint, model: SteppedModel, state: Path
) -> None:
    """Each value of each entry is replaced; at worst a sentence refuses the journal."""
    journal = await played(root, endpoint, model, state)
    lines = journal.read_text().splitlines()
    odds = cycle(ODD)
    said: set[str] = set()
    for at, line in enumerate(lines):
        record = json.loads(line)
        for name in record.get("d", {}):
            for odd in ODD if thorough() else [next(odds)]:
                changed = {**record, "d": {**record["d"], name: odd}}
                journal.write_text("\n".join([*lines[:at], json.dumps(changed), *lines[at + 1 :]]))
                try:
                    Replay.read(journal)
                except ResumeError as error:
                    said.add(str(error))
    assert said
    assert all(sentence.isprintable() and len(sentence) < 500 for sentence in said)
