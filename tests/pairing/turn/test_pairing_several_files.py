"""One answer about several files, in each format that can say so."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.edits.hunks import HoldReason, HunkState
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession, TurnStatus
from midstream.settings import Settings
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import Witness
from tests.helpers.several_files import AFTER, FILES, accept_all_and_undo, on_disk

COMMITTED = FILES


def v4a() -> str:
    return (
        "*** Begin Patch\n"
        "*** Update File: run.py\n@@\n-import old\n+import new\n \n step = 1\n"
        "*** Update File: util.js\n@@\n export const a = 1\n \n-export const b = 2\n"
        "+export const b = 3\n"
        "*** Add File: pkg/fresh.go\n"
        + "".join(f"+{line}\n" for line in AFTER["pkg/fresh.go"].splitlines())
        + "*** Delete File: gone.txt\n"
        "*** Update File: old.py\n*** Move to: new.py\n"
        "*** End Patch\n"
    )


def udiff() -> str:
    return (
        "--- a/run.py\n+++ b/run.py\n@@ -1,3 +1,3 @@\n-import old\n+import new\n \n step = 1\n"
        "--- a/util.js\n+++ b/util.js\n@@ -1,3 +1,3 @@\n export const a = 1\n \n"
        "-export const b = 2\n+export const b = 3\n"
        "--- /dev/null\n+++ b/pkg/fresh.go\n@@ -0,0 +1,3 @@\n"
        + "".join(f"+{line}\n" for line in AFTER["pkg/fresh.go"].splitlines())
        + "--- a/gone.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"
        "diff --git a/old.py b/new.py\nsimilarity index 100%\n"
        "rename from old.py\nrename to new.py\n"
    )


def search_replace() -> str:
    def block(path: str, old: str, new: str) -> str:
        return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n\n"

    return (
        "I change four files.\n\n"
        + block("run.py", "import old\n", "import new\n")
        + block("util.js", "export const b = 2\n", "export const b = 3\n")
        + block("pkg/fresh.go", "", AFTER["pkg/fresh.go"])
        + "*** Delete File: gone.txt\n*** Move File: old.py -> new.py\n"
    )


def whole() -> str:
    def file(path: str) -> str:
        return f"{path}\n```\n{AFTER[path]}```\n\n"

    return (
        f"{file('run.py')}{file('util.js')}{file('pkg/fresh.go')}"
        "*** Delete File: gone.txt\n*** Move File: old.py -> new.py\n"
    )


def str_replace() -> str:
    return json.dumps(
        {
            "edits": [
                {"path": "run.py", "old_str": "import old", "new_str": "import new"},
                {"path": "util.js", "old_str": "b = 2", "new_str": "b = 3"},
                {"path": "pkg/fresh.go", "file_text": AFTER["pkg/fresh.go"]},
                {"type": "delete_file", "path": "gone.txt"},
                {"type": "delete_file", "path": "old.py"},
                {"path": "new.py", "file_text": AFTER["new.py"]},
            ]
        }
    )


FORMATS: dict[str, Callable[[], str]] = {
    "v4a": v4a,
    "udiff": udiff,
    "search-replace": search_replace,
    "whole": whole,
    "str-replace": str_replace,
}


@asynccontextmanager
async def opened(root: Path, settings: Settings) -> AsyncIterator[PairingSession]:
    async with await PairingSession.open(root, settings=settings, watch=False) as session:
        yield session


@pytest.mark.parametrize("edit_format", FORMATS)
async def test_every_format_edits_adds_deletes_and_moves(edit_format: str, root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url, opened(root, hosted.settings(url, edit_format)) as session:
        hosted.say(FORMATS[edit_format]())
        hosted.end()
        turn = await session.turns.instruct(Question("rework it", path="run.py"))
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE, turn.error
        assert not turn.failures
        assert len(session.turns) == 1, "nothing had to be asked for again"
        assert not turn.unsure
        assert set(session.files) == {*FILES, *AFTER}
        await accept_all_and_undo(session, root)


async def test_a_file_that_an_answer_empties_is_flagged(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url, opened(root, hosted.settings(url, "whole")) as session:
        hosted.say("util.js\n```\n```\n")
        hosted.end()
        turn = await session.turns.instruct(Question("rework it", path="run.py"))
        await session.turns.finished()
        (hunk,) = session.hunks.undecided()
        assert turn.unsure == "The answer empties util.js. Look closely."
        assert session.turns.doubts(hunk)


async def test_a_patch_tool_writes_several_files(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url, opened(root, hosted.settings(url, "v4a")) as session:
        hosted.call(v4a())
        hosted.end()
        await session.turns.instruct(Question("rework it", path="run.py"))
        await session.turns.finished()
        assert set(session.files) == {*FILES, *AFTER}
        await accept_all_and_undo(session, root)


@pytest.mark.parametrize("edit_format", ["v4a", "udiff", "search-replace", "whole"])
async def test_files_are_decided_while_the_next_ones_stream(edit_format: str, root: Path) -> None:
    text = FORMATS[edit_format]()
    cut = text.index("func Fresh") + 5
    hosted = Hosted()
    async with hosted.running() as url, opened(root, hosted.settings(url, edit_format)) as session:
        witness = Witness(session)
        hosted.say(text[:cut])
        turn = await session.turns.instruct(Question("rework it", path="run.py"))
        await witness.until(
            lambda: session.turns.writing is not None and session.turns.writing[0] == "pkg/fresh.go"
        )
        assert await session.decisions.accept_rest("run.py") == 1
        assert await session.decisions.reject_rest("util.js") == 1
        assert (root / "run.py").read_text() == AFTER["run.py"], "while a third file streams"
        assert not (root / "pkg").exists()
        hosted.say(text[cut:])
        hosted.end()
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE, turn.error
        assert not turn.failures
        states = {hunk.path: hunk.state for hunk in session.hunks if hunk.live}
        assert states["run.py"] is HunkState.ACCEPTED
        assert states["util.js"] is HunkState.REJECTED
        for path in ("pkg/fresh.go", "gone.txt", "old.py", "new.py"):
            assert states[path] is HunkState.SETTLED, path
        assert await session.decisions.accept_rest("pkg/fresh.go") == 1
        assert await session.decisions.accept_rest("gone.txt") == 1
        assert await session.decisions.accept_rest("new.py") == 2, "a move is decided as one"
        assert on_disk(root) == {**AFTER, "util.js": FILES["util.js"]}


@pytest.mark.parametrize("half", ["old.py", "new.py"])
@pytest.mark.parametrize("edit_format", ["v4a", "udiff", "search-replace", "whole"])
async def test_no_half_of_a_move_is_decided_alone(edit_format: str, half: str, root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url, opened(root, hosted.settings(url, edit_format)) as session:
        hosted.say(FORMATS[edit_format]())
        hosted.end()
        await session.turns.instruct(Question("rework it", path="run.py"))
        await session.turns.finished()
        (hunk,) = session.hunks.undecided(half)
        move = session.files.moves.of(hunk)
        assert move is not None
        assert (move.gone.path, move.made.path, move.share) == ("old.py", "new.py", 1)
        assert await session.decisions.accept_all({hunk.id}) == 2
        moved = {**FILES, "new.py": FILES["old.py"]}
        del moved["old.py"]
        assert on_disk(root) == moved
        assert await session.decisions.undo()
        assert on_disk(root) == FILES
        assert await session.decisions.reject(hunk.id)
        assert not session.hunks.undecided("old.py")
        assert not session.hunks.undecided("new.py")


async def test_lines_that_go_into_a_new_file_are_no_move(root: Path) -> None:
    """Also in a file whose deletion was proposed and rejected before."""
    hosted = Hosted()
    async with hosted.running() as url, opened(root, hosted.settings(url, "v4a")) as session:
        for patch in (
            "*** Delete File: run.py\n",
            "*** Update File: run.py\n@@\n-step = 1\n-last = 2\n"
            "*** Add File: steps.py\n+step = 1\n+last = 2\n",
        ):
            hosted.say(f"*** Begin Patch\n{patch}*** End Patch\n")
            hosted.end()
            await session.turns.instruct(Question("rework it", path="run.py"))
            await session.turns.finished()
            hunks = session.hunks.undecided()
            assert not any(map(session.files.moves.of, hunks))
            await session.decisions.reject_all()
        assert len(hunks) == 2


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../outside.py", "lies outside"),
        ("pkg/../../outside.py", "lies outside"),
        ("/etc/outside.py", "lies outside"),
        ("link/outside.py", "lies outside"),
        (".git/hooks/pre-commit", "belongs to git itself"),
        (".GIT/config", "belongs to git itself"),
    ],
)
@pytest.mark.parametrize("what", ["update", "add", "delete", "move"])
async def test_what_lies_outside_is_refused_in_one_sentence(
    path: str, why: str, what: str, root: Path
) -> None:
    outside = root.parent / "elsewhere"
    outside.mkdir()
    (outside / "outside.py").write_text("x = 1\n")
    (root.parent / "outside.py").write_text("x = 1\n")
    (root / "link").symlink_to(outside)
    section = {
        "update": f"*** Update File: {path}\n@@\n-x = 1\n+x = 2\n",
        "add": f"*** Add File: {path}\n+x = 2\n",
        "delete": f"*** Delete File: {path}\n",
        "move": f"*** Update File: old.py\n*** Move to: {path}\n",
    }[what]
    patch = f"*** Begin Patch\n{section}*** Update File: run.py\n@@\n-step = 1\n+step = 2\n"
    before = {each: each.read_bytes() for each in (root / ".git").rglob("*") if each.is_file()}
    hosted = Hosted()
    async with hosted.running() as url, opened(root, hosted.settings(url, "v4a")) as session:
        hosted.say(f"{patch}*** End Patch\n")
        hosted.end()
        hosted.say("*** Begin Patch\n*** End Patch\n")  # if it is asked again
        hosted.end()
        await session.turns.instruct(Question("rework it", path="run.py"))
        await session.turns.finished()
        told = [n.text for n in session.status.notices if why in n.text]
        assert len(told) == 1
        assert told[0].startswith(f"The answer does not get {path}: ")
        assert set(session.files) <= {"run.py", "old.py"}
        for open_path in list(session.files):
            await session.decisions.accept_rest(open_path)
        assert (root / "run.py").read_text() == FILES["run.py"].replace("step = 1", "step = 2")
        assert (root / "old.py").exists()
    assert (outside / "outside.py").read_text() == "x = 1\n"
    assert (root.parent / "outside.py").read_text() == "x = 1\n"
    assert {each: each.read_bytes() for each in before} == before


async def test_a_file_that_is_only_shown_again_is_not_made(root: Path) -> None:
    """A block that quotes lines of a missing file creates no file."""
    hosted = Hosted()
    async with (
        hosted.running() as url,
        opened(root, hosted.settings(url, "search-replace")) as session,
    ):
        hosted.say("none.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n")
        hosted.end()
        hosted.say("I cannot.")
        hosted.end()
        turn = await session.turns.instruct(Question("rework it", path="run.py"))
        await session.turns.finished()
        assert turn.failures == ("none.py: none.py does not exist.",)
        assert "none.py" not in session.files


async def test_all_files_are_one_step(root: Path) -> None:
    """Also for a session that is taken up again."""
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url, "v4a")
        async with opened(root, settings) as session:
            hosted.say(v4a())
            hosted.end()
            await session.turns.instruct(Question("rework it", path="run.py"))
            await session.turns.finished()
            ids = {hunk.id for hunk in session.hunks.undecided()}
            assert await session.decisions.accept_all(ids) == len(ids) == 6
            assert on_disk(root) == AFTER
            assert session.journal.path is not None
            journal = session.journal.path
        async with await PairingSession.open(
            root, settings=settings, watch=False, resume=journal
        ) as session:
            assert len(await session.decisions.undo()) == 6
            assert on_disk(root) == FILES
            assert len(await session.decisions.redo()) == 6
            assert on_disk(root) == AFTER
            assert await session.decisions.undo()
            assert await session.decisions.reject_all() == 6
            assert on_disk(root) == FILES
            assert not session.hunks.undecided()


SAID = "old.py moves to new.py, which is held back: release that first, then both can be accepted."


async def test_a_move_waits_for_the_release_of_its_new_file(root: Path) -> None:
    hosted = Hosted()
    settings = hosted.settings
    async with hosted.running() as url, opened(root, settings(url, "search-replace")) as session:
        hosted.say(search_replace())
        hosted.end()
        await session.turns.instruct(Question("rework it", path="run.py"))
        await session.turns.finished()
        files, hunks, decisions = session.files, session.hunks, session.decisions
        (gone,), (made,) = hunks.undecided("old.py"), hunks.undecided("new.py")
        hunks.hold_back(made.id, HoldReason("S307", "eval runs any text"))
        move = files.moves.of(gone)
        assert move is not None
        assert move.said_of(gone) == "moved to new.py, which is held back"
        assert gone in files.moves.shown(hunks.undecided()), "it can be looked at"
        assert not await decisions.accept(gone.id)
        assert session.status.notices[-1].text == SAID
        assert not await decisions.accept_rest("old.py")
        assert not await decisions.decide_lines(gone.id, 0, 2, accept=True)
        others = len(hunks.undecided()) - 1
        assert await decisions.accept_all({hunk.id for hunk in hunks.undecided()}) == others
        assert hunks.undecided() == [gone]
        assert (root / "old.py").read_text() == FILES["old.py"]
        assert not (root / "new.py").exists()
        hunks.release(made.id, "it is a test")
        assert await decisions.accept(gone.id)
        assert on_disk(root) == AFTER
        assert await decisions.undo()
        hunks.hold_back(made.id, HoldReason("S307", "eval runs any text"))
        assert await decisions.reject(gone.id), "a rejection needs no release"
        assert not hunks.undecided()
        assert made.state is HunkState.REJECTED
        assert (root / "old.py").read_text() == FILES["old.py"]


async def test_a_move_to_what_the_guard_finds_waits(root: Path) -> None:
    query = "def find(db, name):\n    return db.execute(f\"select 1 where n = '{name}'\")\n"
    (root / "old.py").write_text(query)
    patch = "*** Delete File: old.py\n*** Add File: new.py\n"
    patch += "".join(f"+{line}\n" for line in query.splitlines())
    hosted = Hosted()
    async with hosted.running() as url:
        settings = replace(hosted.settings(url, "v4a"), guard=True)
        async with opened(root, settings) as session:
            for _ in range(3):  # It is asked to write it better twice.
                hosted.say(f"*** Begin Patch\n{patch}*** End Patch\n")
                hosted.end()
            await session.turns.instruct(Question("move it", path="old.py"))
            await session.turns.finished()
            (gone,) = session.hunks.undecided()
            assert not await session.decisions.accept(gone.id)
            assert session.status.notices[-1].text == SAID
            (made,) = session.hunks.for_path("new.py")
            await session.decisions.release(made.id, "the name is checked")
            assert await session.decisions.accept(gone.id)
            assert (root / "new.py").read_text() == query
            assert not (root / "old.py").exists()
