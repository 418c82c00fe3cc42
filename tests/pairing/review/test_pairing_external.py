"""Review of what other programs write: hunks that are on disk already, kept or put back."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from midstream.edits.hunks import HoldReason, Hunk, HunkState
from midstream.pairing.files import put_backs
from midstream.pairing.journal.journal import Replay, session_to_resume
from midstream.pairing.leaving import behind, left_behind
from midstream.pairing.request.question import Question
from midstream.pairing.review.external import MAX_FILES
from midstream.pairing.session import PairingSession
from midstream.pairing.turn.factory import NotReviewedError
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.content import Entry
from midstream.workspace.journal import Journal
from tests.helpers.pairing import Witness, git, make_repo, numbered

BEFORE = numbered(30)
pytestmark = pytest.mark.usefixtures("quiet_at_once")
COMMITTED = {"run.py": BEFORE, "other.py": "x = 1\n", "latin.txt": "one\ntwo\n"}
AFTER = BEFORE.replace("work(3)", "work(33)").replace("work(20)", "work(220)")
SECRET = 'TOKEN = "ghp_' + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8" + '"\n'


@pytest.fixture
async def watched(root: Path, settings: Settings, endpoint: Endpoint) -> AsyncIterator[Reviewed]:
    """A session that watches the folder and reviews what is written there."""
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        reviewed = Reviewed(session)
        await reviewed.until(lambda: session.external.watching == "native")
        await session.review.switch_on(since_commit=True)
        yield reviewed


class Reviewed(Witness):
    """A session with a review."""

    async def waiting(self, count: int, path: str | None = None) -> list[Hunk]:
        """Wait until so many hunks wait for a decision."""
        store = self.session.hunks
        await self.until(lambda: len(store.undecided(path)) == count)
        return store.undecided(path)


@asynccontextmanager
async def reviewing(
    root: Path, settings: Settings, endpoint: Endpoint
) -> AsyncIterator[PairingSession]:
    """A session that reviews the present ``run.py``, and hears of no further changes."""
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        (root / "run.py").write_text(AFTER)
        await session.review.switch_on(since_commit=True)
        yield session


async def test_what_another_program_writes_is_kept_or_put_back(
    watched: Reviewed, root: Path
) -> None:
    (root / "run.py").write_text(AFTER)
    first, second = await watched.waiting(2)
    assert (first.external, first.new) == (True, ("    step_03 = work(33)",))
    decisions = watched.session.decisions
    assert await decisions.accept(first.id)
    assert (root / "run.py").read_text() == AFTER
    assert await decisions.reject(second.id, "20 was right")
    assert (root / "run.py").read_text() == AFTER.replace("work(220)", "work(20)")
    assert await decisions.undo() == (second.id,)
    assert (root / "run.py").read_text() == AFTER


@pytest.mark.parametrize("how", ["gone", "broken"])
async def test_removing_the_repository_hides_no_change(
    watched: Reviewed, root: Path, how: str
) -> None:
    """The former text of the files is in the repository: without it, a notice names each file."""
    if how == "gone":
        shutil.rmtree(root / ".git")
    else:
        (root / ".git/HEAD").write_bytes(b"\0" * 40)
    for name in ("run.py", "new.py"):
        (root / name).write_text(AFTER)
    (root / "other.py").unlink()
    for name in ("run.py", "new.py", "other.py"):
        said = f"Not reviewed: What {name} held before is not known (git cannot read its records"
        await watched.until(
            lambda said=said: any(said in n.text for n in watched.session.status.notices)
        )


async def test_an_instruction_replaces_no_unreviewed_change(watched: Reviewed, root: Path) -> None:
    """Else it would be on disk, with nothing to decide, once the answer is rejected."""
    (root / "run.py").write_text(AFTER)
    first, second = await watched.waiting(2)
    watched.session.hunks.hold_back(second.id, HoldReason("S608", "SQL"))
    turns = watched.session.turns
    line = second.start + 1
    for lines, said in (
        ((0, 42), "2 changes of other programs in run of run.py wait for you"),
        ((second.start, second.stop), f"1 change of other programs in line {line} of run.py waits"),
    ):
        with pytest.raises(NotReviewedError, match=f"^{said}"):
            await turns.instruct(Question("rename it", "run.py", selection=lines))
    assert [hunk.id for hunk in watched.session.hunks.waiting()] == [first.id, second.id]
    assert await watched.session.decisions.reject_all() == 2, "what is held back as well"
    assert (root / "run.py").read_text() == BEFORE


async def test_more_writes_leave_the_hunks_that_they_do_not_touch(
    watched: Reviewed, root: Path
) -> None:
    (root / "run.py").write_text(AFTER)
    first, second = await watched.waiting(2)
    (root / "run.py").write_text(AFTER.replace("work(220)", "work(2220)"))
    await watched.until(lambda: second.state is HunkState.SUPERSEDED)
    kept, changed = await watched.waiting(2)
    assert kept is first
    assert changed.new == ("    step_20 = work(2220)",)


async def test_a_write_at_the_moment_of_a_decision_is_not_lost(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    """The watcher has not said anything yet when a hunk is put back."""
    async with reviewing(root, settings, endpoint) as session:
        first, second = session.hunks.undecided()
        (root / "run.py").write_text(AFTER.replace("work(9)", "work(99)"))
        assert await session.decisions.reject(first.id)
        text = (root / "run.py").read_text()
        assert text == AFTER.replace("work(9)", "work(99)").replace("work(33)", "work(3)")
        assert [h.new for h in session.hunks.undecided()] == [
            ("    step_09 = work(99)",),
            second.new,
        ]
        (root / "run.py").write_text(text.replace("work(220)", "work(2220)"))
        assert not await session.decisions.reject(second.id), (
            "other lines than those that were seen"
        )
        assert "work(2220)" in (root / "run.py").read_text()


async def test_a_dirty_tree_is_reviewed_against_the_index(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    (root / "run.py").write_text(AFTER.replace("work(220)", "work(20)"))
    git(root, "add", "run.py")
    (root / "run.py").write_text(AFTER)
    (root / "new.py").write_text("y = 2\n")
    git(root, "add", "-N", "new.py")
    (root / "users.py").write_text("z = 3\n")
    (root / "other.py").unlink()
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        hunks = {hunk.path: hunk for hunk in session.hunks.undecided()}
        assert sorted(hunks) == ["new.py", "other.py", "run.py"]
        assert hunks["run.py"].new == ("    step_20 = work(220)",)
        assert await session.decisions.accept(hunks["run.py"].id)
        await session.commit.stage("run.py")
        assert "work(220)" in git(root, "diff", "--cached", "run.py")
        assert await session.decisions.reject(hunks["new.py"].id)
        assert (root / "new.py").read_text() == ""
        assert await session.decisions.undo()
        assert (root / "new.py").read_text() == "y = 2\n"
        assert await session.decisions.reject(hunks["other.py"].id)
        assert (root / "other.py").read_text() == "x = 1\n"


async def test_only_what_is_kept_is_staged(watched: Reviewed, root: Path) -> None:
    (root / "run.py").write_text(AFTER)
    first, _ = await watched.waiting(2)
    await watched.session.decisions.accept(first.id)
    (change,) = (await watched.session.commit.look()).files
    assert change.undecided == 1
    await watched.session.commit.stage("run.py")
    staged = git(root, "show", ":run.py")
    assert staged == BEFORE.replace("work(3)", "work(33)")
    assert (root / "run.py").read_text() == AFTER


@pytest.mark.parametrize("data", [b"1\r\n2\r\n", "\ufeffeins\nzwei".encode(), b"1\r\n2"])
async def test_a_deleted_file_comes_back_byte_for_byte(
    watched: Reviewed, root: Path, data: bytes
) -> None:
    (root / "latin.txt").write_bytes(data)
    (hunk,) = await watched.waiting(1)
    await watched.session.decisions.accept(hunk.id)
    (root / "latin.txt").unlink()
    (gone,) = await watched.waiting(1)
    assert gone.new == ()
    assert await watched.session.decisions.reject(gone.id)
    assert (root / "latin.txt").read_bytes() == data


async def test_a_checkout_needs_no_review(watched: Reviewed, root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side")
    (root / "run.py").write_text(AFTER)
    first, _ = await watched.waiting(2)
    await watched.session.decisions.accept(first.id)
    git(root, "commit", "-qam", "side")
    await watched.until(lambda: len(watched.session.hunks.undecided()) == 1)
    git(root, "checkout", "-q", "main")
    await watched.until(lambda: not watched.session.hunks.undecided())
    assert (root / "run.py").read_text() == BEFORE
    (root / "other.py").write_text("x = 2\n")
    (hunk,) = await watched.waiting(1)
    assert hunk.old == ("x = 1",)


async def test_what_is_written_while_a_move_of_head_is_followed_is_reviewed(
    session: PairingSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await session.review.switch_on(since_commit=True)
    (root / "run.py").write_text(AFTER)
    await session.review.changed({"run.py"})
    before = [hunk.new for hunk in session.hunks.waiting()]
    assert before
    git(root, "stash", "-q")
    current, popped = session.workspace.current, list[str]()

    def late(rel: str) -> Entry | None:
        if not popped:
            popped.append(git(root, "stash", "pop"))
        return current(rel)

    monkeypatch.setattr(session.workspace, "current", late)
    await session.review.changed({"run.py"})
    monkeypatch.undo()
    await session.review.changed({"run.py"})
    assert popped
    assert (root / "run.py").read_text() == AFTER
    assert [hunk.new for hunk in session.hunks.waiting()] == before


async def test_a_checkout_of_many_files_leaves_the_hunks_of_others_alone(
    root: Path, settings: Settings, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 600.0)
    many = [root / f"part_{number}.py" for number in range(500)]
    for branch, text in (("main", "x = 1\n"), ("side", "x = 2\n")):
        git(root, "checkout", "-q", "-B", branch)
        for path in many:
            path.write_text(text)
        git(root, "add", ".")
        git(root, "commit", "-qm", branch)
    git(root, "checkout", "-q", "main")
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        reviewed = Reviewed(session)
        await reviewed.until(lambda: session.external.watching == "native")
        await session.review.switch_on(since_commit=True)
        (root / "run.py").write_text(AFTER)
        hunks = await reviewed.waiting(2)
        assert await session.decisions.reject(hunks[1].id)
        told = len(session.status.notices)
        git(root, "checkout", "-q", "side")
        await reviewed.until(
            lambda: session.external.repo and session.external.repo.branch == "side"
        )
        (root / "other.py").write_text("x = 2\n")
        last, *same = sorted(await reviewed.waiting(3), key=lambda hunk: hunk.path)
        assert last.path == "other.py"
        assert same == hunks
        assert session.hunks.postponed() == [hunks[1]]
        assert (root / "run.py").read_text() == AFTER
        news = [notice.text for notice in session.status.notices[told:]]
        assert not any("part_" in text or "500" in text for text in news)


async def diverge(watched: Reviewed, root: Path) -> None:
    """Have two branches that conflict in a file that is open, and reviewed."""
    path, session = root / "run.py", watched.session
    path.write_text(AFTER)
    for hunk in await watched.waiting(2):
        await session.decisions.accept(hunk.id)
    git(root, "commit", "-qam", "Ours")
    git(root, "checkout", "-q", "-b", "side", "HEAD^")
    await watched.until(lambda: session.files["run.py"].base.text() == BEFORE)
    path.write_text(BEFORE.replace("work(3)", "work(333)"))
    (theirs,) = await watched.waiting(1)
    await session.decisions.accept(theirs.id)
    git(root, "commit", "-qam", "Theirs")


async def test_a_conflict_in_an_open_file_counts_as_it_is_and_its_resolution_is_reviewed(
    watched: Reviewed, root: Path
) -> None:
    path, session = root / "run.py", watched.session
    await diverge(watched, root)
    # `git merge` ends with an error.
    git(root, "-c", "alias.stopped=!git merge -q main || true", "stopped")
    await watched.until(lambda: "<<<<<<<" in session.files["run.py"].base.text())
    await watched.waiting(0)
    path.write_text(AFTER)
    above, below = await watched.waiting(2)
    assert (above.old[0], above.new) == ("<<<<<<< HEAD", ())
    assert (below.old, below.new) == ((">>>>>>> main",), ())


async def test_a_conflict_that_is_edited_before_anybody_has_noticed_it_is_reviewed(
    watched: Reviewed, root: Path
) -> None:
    await diverge(watched, root)
    resolved = AFTER.replace("work(33)", "work(3333)")
    (root / "resolved").write_text(resolved)
    git(root, "-c", "alias.at-once=!git merge -q main; mv resolved run.py", "at-once")
    above, below = await watched.waiting(2, "run.py")
    assert (above.old, above.new) == (("    step_03 = work(333)",), ("    step_03 = work(3333)",))
    assert below.new == ("    step_20 = work(220)",)
    assert await watched.session.decisions.reject(above.id)
    assert (root / "run.py").read_text() == resolved.replace("work(3333)", "work(333)")


async def test_a_checkout_in_progress_is_waited_for(watched: Reviewed, root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side")
    (root / "other.py").write_text("x = 2\n")
    git(root, "commit", "-qam", "side")
    notices = len(watched.session.status.notices)
    # The steps of `git checkout main`, slowly: it locks, writes files, then moves HEAD.
    git(root, "read-tree", "--index-output=.git/index.new", "main")
    index, lock = root / ".git/index", root / ".git/index.lock"
    lock.touch()
    (root / "other.py").write_text("x = 1\n")
    looking = asyncio.create_task(watched.session.review.changed({"other.py"}))
    await asyncio.sleep(0.3)
    assert not looking.done()
    index.with_name("index.new").replace(index)
    git(root, "symbolic-ref", "-m", "checkout: moving from side to main", "HEAD", "refs/heads/main")
    lock.unlink()
    await looking
    assert not watched.session.hunks.undecided()
    told = [notice.text for notice in watched.session.status.notices[notices:]]
    assert not any("to keep or put back" in text for text in told)


async def test_a_lock_that_was_left_behind_delays_nothing(watched: Reviewed, root: Path) -> None:
    lock = root / ".git/index.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    (root / "other.py").write_text("x = 2\n")
    (hunk,) = await watched.waiting(1)
    assert hunk.new == ("x = 2",)


async def test_a_commit_by_the_other_program_decides_nothing(watched: Reviewed, root: Path) -> None:
    (root / "run.py").write_text(AFTER)
    git(root, "commit", "-qam", "by an agent")
    hunks = await watched.waiting(2)
    assert all(hunk.external for hunk in hunks)


async def test_many_files_at_once_are_opened_when_asked(
    session: PairingSession, root: Path
) -> None:
    await session.review.switch_on(since_commit=True)
    (root / "run.py").write_text(AFTER)
    await session.review.changed({"run.py"})
    many = [f"many_{number}.py" for number in range(MAX_FILES + 10)]
    for name in many:
        (root / name).write_text("x = 1\n")
    await session.review.changed({*many[:-5], "run.py"})
    await session.review.changed(many[-5:])  # The watcher may tell of one write in parts.
    assert session.review.aside == set(many)
    assert f"{len(many)} files" in session.status.notices[-1].text
    assert list(session.files) == ["run.py"]
    assert f"{len(many)} files" in await session.review.look()
    assert len(session.hunks.undecided()) == 2 + len(many)
    assert not session.review.aside


async def many_written(session: PairingSession, root: Path) -> list[str]:
    """New files in a review, more than it opens by itself."""
    await session.review.switch_on(since_commit=True)
    many = [f"many_{number}.py" for number in range(MAX_FILES + 10)]
    for name in many:
        (root / name).write_text("x = 1\n")
    await session.review.changed(many)
    return many


@pytest.mark.parametrize(("left", "said"), [(0, "Nothing to decide"), (1, "1 file ")])
async def test_files_that_were_put_back_before_they_are_opened_are_not_counted(
    session: PairingSession, root: Path, left: int, said: str
) -> None:
    many = await many_written(session, root)
    for name in many[left:]:
        (root / name).unlink()
    assert said in await session.review.look()


async def test_one_message_tells_of_all_open_files_that_changed(
    session: PairingSession, root: Path
) -> None:
    for name in ("run.py", "other.py"):
        await session.files.open(name)
        (root / name).write_text("x = 5\n")
    await session.files.changed(["run.py", "other.py"])
    assert session.files.change_message(["run.py"]) == (
        "run.py changed on disk; this is the new text."
    )
    assert session.files.change_message(["run.py", "other.py"]) == (
        "2 files changed on disk; these are the new texts."
    )


async def test_a_file_written_after_it_was_read_ahead_is_read_again(
    session: PairingSession, root: Path
) -> None:
    await session.review.switch_on(since_commit=True)
    (root / "other.py").write_text("x = 22\n")
    (root / "run.py").write_text(AFTER)
    looked_at = session.files.unopened_changes(["other.py", "run.py"])
    (root / "other.py").write_text("x = 333\n")
    (root / "run.py").write_text(BEFORE)
    (hunk,) = await session.files.review("other.py", looked_at)
    assert hunk.new == ("x = 333",)
    assert not await session.files.review("run.py", looked_at)


async def test_a_review_that_stops_opens_no_further_file(
    session: PairingSession, root: Path
) -> None:
    many = await many_written(session, root)
    looking = asyncio.create_task(session.review.look())
    await Witness(session).until(lambda: len(session.files) > 1)
    session.review.switch_off()
    opened = len(session.files)
    await looking
    assert len(session.files) <= opened + 1, "one may be on its way"
    assert opened < len(many)


async def test_what_the_guard_finds_is_held_back(watched: Reviewed, root: Path) -> None:
    (root / "other.py").write_text("x = 1\n" + SECRET)
    session = watched.session
    await watched.until(
        lambda: [h.state for h in session.hunks.for_path("other.py")] == [HunkState.HELD]
    )
    (hunk,) = session.hunks.for_path("other.py")
    assert session.guard.on_disk() == [hunk]
    assert not await session.decisions.accept(hunk.id)
    assert await session.decisions.reject(hunk.id)
    assert (root / "other.py").read_text() == "x = 1\n"
    assert not session.guard.on_disk()


async def test_what_the_guard_flags_is_on_disk_until_it_is_decided(
    watched: Reviewed, root: Path
) -> None:
    """Quitting asks about it, as about a hunk that is held back."""
    session = watched.session
    (root / "other.py").write_text("import hashlib\n\nx = hashlib.md5(b'')\n")
    await watched.until(lambda: bool(session.guard.on_disk()))
    (hunk,) = session.guard.on_disk()
    assert hunk.state is HunkState.SETTLED
    assert "md5" in session.guard.reason(hunk).lower()
    assert await session.decisions.accept(hunk.id)
    assert not session.guard.on_disk()


async def test_a_review_is_resumed(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    async with reviewing(root, settings, endpoint) as session:
        first, second = session.hunks.undecided()
        await session.decisions.reject(first.id)
    journal = Journal.latest(state, root)
    assert journal is not None
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal
    ) as session:
        await session.review.begun()
        assert session.review.on, "what is written from now on waits as well"
        (waits,) = session.hunks.undecided()
        assert (waits.id, waits.external, waits.new) == (second.id, True, second.new)
        assert await session.decisions.reject(waits.id)
        assert (root / "run.py").read_text() == BEFORE


async def test_what_is_resumed_is_the_last_review_in_which_something_was_decided(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    assert session_to_resume(root) is None
    async with reviewing(root, settings, endpoint):
        pass
    looked_at = Journal.latest(state, root)
    assert session_to_resume(root) == looked_at
    async with reviewing(root, settings, endpoint) as session:
        await session.decisions.accept(session.hunks.undecided()[0].id)
    decided = Journal.latest(state, root)
    async with reviewing(root, settings, endpoint):
        assert session_to_resume(root) == decided
    assert Journal.latest(state, root) not in (looked_at, decided)
    assert session_to_resume(root) == decided


async def test_leaving_a_review_says_that_what_was_written_stays(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    async with reviewing(root, settings, endpoint) as session:
        left = "2 hunks undecided in run.py"
        assert behind(session, "") == f" and leaves {left}; they stay on disk"
        assert left_behind(session, "midstream --resume") == (
            f"{left}; they stay on disk, and `midstream --resume` asks again."
        )
        assert left_behind(session, "") == f"{left}; they stay on disk."


async def test_a_write_found_by_a_decision_is_in_the_journal(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.files.open("run.py")
        await session.review.switch_on(since_commit=False)
        (root / "run.py").write_text(AFTER)
        async with session.files.lock:  # As at the start of a turn.
            await session.files.refreshed("run.py")
        waits = session.hunks.undecided()
        session.journal.flush()
        assert session.journal.path is not None
        known = Replay.read(session.journal.path).hunks.undecided()
    assert [(h.start, h.new) for h in known] == [(h.start, h.new) for h in waits]
    assert len(waits) == 2


async def test_the_mode_of_a_changed_file_stays(watched: Reviewed, root: Path) -> None:
    (root / "run.py").chmod(0o755)
    (root / "run.py").write_text(AFTER)
    first, _ = await watched.waiting(2)
    await watched.session.decisions.reject(first.id)
    assert stat.S_IMODE((root / "run.py").stat().st_mode) == 0o755


@pytest.fixture
async def busy(
    root: Path,
    settings: Settings,
    endpoint: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> AsyncIterator[PairingSession]:
    """A review in which another program has just written two hunks, and may go on."""
    monkeypatch.setattr(put_backs, "QUIET_S", getattr(request, "param", 60.0))
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        (root / "run.py").write_text(AFTER)
        await session.review.changed({"run.py"})
        yield session


async def test_while_another_program_writes_put_backs_wait(
    busy: PairingSession, root: Path
) -> None:
    first, second = busy.hunks.undecided()
    assert await busy.decisions.reject(first.id, "3 was right")
    assert (root / "run.py").read_text() == AFTER
    assert (first.state, first.postponed) == (HunkState.SETTLED, "3 was right")
    assert await busy.decisions.accept(second.id), "keeping is at once"
    assert await busy.decisions.undo() == (second.id,), "the last decision first"
    assert await busy.decisions.undo() == (first.id,)
    assert first.postponed is None
    assert await busy.decisions.reject_rest("run.py") == 2
    assert await busy.decisions.put_backs.apply() == 2
    assert (root / "run.py").read_text() == BEFORE
    assert set(await busy.decisions.undo()) == {first.id, second.id}, "one step"
    assert (root / "run.py").read_text() == AFTER
    assert first.postponed is None


@pytest.mark.parametrize("busy", [0.3], indirect=True)
async def test_put_backs_are_applied_when_the_writer_is_quiet(
    busy: PairingSession, root: Path
) -> None:
    first, _ = busy.hunks.undecided()
    assert await busy.decisions.reject(first.id)
    assert (root / "run.py").read_text() == AFTER
    await Witness(busy).until(lambda: first.state is HunkState.REJECTED)
    await Witness(busy).until(
        lambda: (root / "run.py").read_text() == AFTER.replace("work(33)", "work(3)")
    )
    await Witness(busy).until(lambda: "1 hunk was put back" in busy.status.notices[-1].text)


async def test_a_marked_hunk_that_is_changed_stays_open(busy: PairingSession, root: Path) -> None:
    """Ten lines above them move two; the third is written anew."""
    (root / "run.py").write_text(AFTER.replace("work(27)", "work(277)"))
    await busy.review.changed({"run.py"})
    assert len(busy.hunks.undecided()) == 3
    for hunk in busy.hunks.undecided():
        assert await busy.decisions.reject(hunk.id)
    above = "".join(f"# {number}\n" for number in range(10))
    put_back = above + BEFORE.replace("work(20)", "work(2220)")
    text = put_back.replace("work(3)", "work(33)").replace("work(27)", "work(277)")
    (root / "run.py").write_text(text)  # Nobody has noticed yet.
    assert await busy.decisions.put_backs.apply() == 2
    assert (root / "run.py").read_text() == put_back
    assert "changed meanwhile" in busy.status.notices[-1].text
    assert ("    step_20 = work(2220)",) in [hunk.new for hunk in busy.hunks.undecided()]


async def test_some_lines_of_a_hunk_are_marked(busy: PairingSession, root: Path) -> None:
    (root / "other.py").write_text("x = 2\ny = 3\n")
    await busy.review.changed({"other.py"})
    (hunk,) = busy.hunks.undecided("other.py")
    assert await busy.decisions.decide_lines(hunk.id, 2, 3, accept=False)  # y = 3
    assert (root / "other.py").read_text() == "x = 2\ny = 3\n"
    assert await busy.decisions.put_backs.apply() == 1
    assert (root / "other.py").read_text() == "x = 2\n"


async def test_marks_survive_a_kill(busy: PairingSession, root: Path) -> None:
    first, second = busy.hunks.undecided()
    await busy.decisions.reject(first.id, "why")
    await busy.decisions.reject(second.id)
    await busy.decisions.undo()
    busy.journal.flush()
    assert busy.journal.path is not None
    hunks = Replay.read(busy.journal.path).hunks
    assert [(hunk.id, hunk.postponed) for hunk in hunks.postponed()] == [(first.id, "why")]


@pytest.mark.parametrize("commits", [True, False])
async def test_what_is_written_while_the_program_does_not_run_is_reviewed(
    tmp_path: Path, settings: Settings, endpoint: Endpoint, state: Path, commits: bool
) -> None:
    """Also where git cannot tell: the lines were there before the review, or were committed."""
    root = tmp_path / "work"
    files = {"run.py": BEFORE, "other.py": "x = 1\n", "mine.py": "m = 1\n"}
    if commits:
        make_repo(root, files)
    else:
        root.mkdir()
        for name, text in files.items():
            (root / name).write_text(text)
    (root / "mine.py").write_text("m = 2\n")  # The user's own change, before the review.
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=False)
        (root / "run.py").write_text(AFTER)
        await session.review.changed({"run.py"})
        first, second = session.hunks.undecided()
        await session.decisions.accept(first.id)
    (root / "other.py").write_text("x = 2\n")
    (root / "new.py").write_text("n = 1\n")
    (root / "mine.py").write_text("m = 3\n")
    if commits:
        git(root, "commit", "-qam", "by an agent")
    journal = Journal.latest(state, root)
    assert journal is not None
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal, review=True
    ) as session:
        await Witness(session).until(lambda: len(session.hunks.undecided()) == 4)
        waits = {hunk.path: hunk for hunk in session.hunks.undecided()}
        assert waits.keys() == {"run.py", "other.py", "new.py", "mine.py"}
        assert waits["run.py"].id == second.id
        assert (waits["mine.py"].old, waits["mine.py"].new) == (("m = 2",), ("m = 3",))
        assert await session.decisions.reject(waits["other.py"].id)
        assert (root / "other.py").read_text() == "x = 1\n"


async def test_a_review_knows_the_session_in_which_its_hunks_were_kept(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    make_binary = (root / "logo.bin").write_bytes
    make_binary(b"\0one")
    git(root, "add", "logo.bin")
    make_binary(b"\0two")
    async with reviewing(root, settings, endpoint) as session:
        assert await session.earlier_review() is None, "its own journal is no earlier one"
        first, *rest = session.hunks.undecided("run.py")
        (logo,) = session.hunks.undecided("logo.bin")
        assert await session.decisions.accept(first.id)
        assert await session.decisions.accept(logo.id)
    kept = Journal.latest(state, root)
    make_binary(b"\0six")
    async with reviewing(root, settings, endpoint) as session:
        earlier = await session.earlier_review()
        assert earlier is not None
        assert (earlier.path, str(earlier)) == (kept, "1 of these 3 hunks was kept")
        assert await session.decisions.reject(rest[0].id)
    (root / "run.py").write_text(AFTER.replace("work(33)", "work(34)"))
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        assert session.hunks.undecided("run.py")
        assert await session.earlier_review() is None, "what was kept has changed since"


async def test_what_is_written_meanwhile_to_an_open_file_is_reviewed(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=False)
        (root / "run.py").write_text(AFTER)
        await session.review.changed({"run.py"})
        known = {hunk.id for hunk in session.hunks.undecided()}
    (root / "run.py").write_text(AFTER.replace("work(9)", "work(99)"))
    journal = Journal.latest(state, root)
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal, review=True
    ) as session:
        await Witness(session).until(lambda: session.review.on)
        waits = session.hunks.undecided()
        assert known <= {hunk.id for hunk in waits}
        (new,) = (hunk for hunk in waits if hunk.id not in known)
        assert new.new == ("    step_09 = work(99)",)
        assert await session.decisions.reject(new.id)
        assert (root / "run.py").read_text() == AFTER


async def test_a_new_file_without_lines_takes_no_decision_back(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    """As when an agent has made an empty ``__init__.py``."""
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=False)
        (root / "run.py").write_text(AFTER)
        await session.review.changed({"run.py"})
        first, _ = session.hunks.undecided()
        assert await session.decisions.accept(first.id)
        (root / "__init__.py").touch()
        await session.review.changed({"__init__.py"})
    async with await PairingSession.open(
        root,
        settings=settings,
        endpoint=endpoint,
        watch=False,
        resume=Journal.latest(state, root),
        review=True,
    ) as session:
        assert session.hunks.get(first.id).state is HunkState.ACCEPTED
        assert (root / "__init__.py").exists()


async def test_keeping_that_a_new_file_was_emptied_leaves_the_file(
    session: PairingSession, root: Path
) -> None:
    await session.review.switch_on(since_commit=False)
    new = root / "new.py"
    new.write_text("x = 1\n")
    await session.review.changed({"new.py"})
    (hunk,) = session.hunks.undecided()
    assert await session.decisions.accept(hunk.id)
    new.write_text("")
    await session.review.changed({"new.py"})
    (emptied,) = session.hunks.undecided()
    assert await session.decisions.accept(emptied.id)
    assert new.read_bytes() == b""
    assert await session.decisions.undo() == (emptied.id,)
    assert await session.decisions.reject(emptied.id)
    assert new.read_text() == "x = 1\n"


async def test_a_checkout_while_the_program_does_not_run_needs_no_review(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    git(root, "checkout", "-q", "-b", "side")
    (root / "other.py").write_text("x = 2\n")
    git(root, "commit", "-qam", "side")
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=False)
        (root / "run.py").write_text(AFTER)
        await session.review.changed({"run.py"})
    git(root, "checkout", "-q", "main")
    journal = Journal.latest(state, root)
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal, review=True
    ) as session:
        await Witness(session).until(lambda: session.review.on)
        await session.review.changed({"other.py"})
        assert {hunk.path for hunk in session.hunks.undecided()} == {"run.py"}


@pytest.mark.parametrize("staged", [False, True])
async def test_a_deleted_program_is_executable_when_it_comes_back(
    root: Path, settings: Settings, endpoint: Endpoint, staged: bool
) -> None:
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    git(root, "add", "run.sh")
    git(root, "commit", "-qm", "program")
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=False)
        git(root, "rm", "-q", "run.sh") if staged else (root / "run.sh").unlink()
        await session.review.changed({"run.sh"})
        (hunk,) = session.hunks.undecided()
        assert await session.decisions.reject(hunk.id)
        assert (root / "run.sh").stat().st_mode & 0o111 == 0o111


async def test_a_formatter_joins_the_hunk_that_it_changes(
    session: PairingSession, root: Path
) -> None:
    await session.review.switch_on(since_commit=True)
    (root / "other.py").write_text("x = 1\ny=[1,\n2]\n")
    await session.review.changed({"other.py"})
    (root / "other.py").write_text("x = 1\ny = [1, 2]\n")
    await session.review.changed({"other.py"})
    (hunk,) = session.hunks.undecided()
    assert (hunk.old, hunk.new) == ((), ("y = [1, 2]",))
    assert await session.decisions.reject(hunk.id)
    assert (root / "other.py").read_text() == "x = 1\n"


async def test_a_program_that_git_does_not_know_is_executable_when_it_comes_back(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    (root / "new.sh").write_text("#!/bin/sh\n")
    (root / "new.sh").chmod(0o755)
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=False)
        (root / "new.sh").unlink()
        await session.review.changed({"new.sh"})
        (hunk,) = session.hunks.undecided()
        assert await session.decisions.reject(hunk.id)
        assert (root / "new.sh").stat().st_mode & 0o111 == 0o111


async def test_undo_brings_a_file_back_with_its_permissions(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=False)
        (root / "secret.sh").write_text("#!/bin/sh\n")
        (root / "secret.sh").chmod(0o700)
        await session.review.changed({"secret.sh"})
        (hunk,) = session.hunks.undecided()
        for _ in range(2):
            assert await session.decisions.reject(hunk.id)
            assert not (root / "secret.sh").exists()
            assert await session.decisions.undo()
            assert stat.S_IMODE((root / "secret.sh").stat().st_mode) == 0o700
        assert await session.decisions.reject(hunk.id)
    journal = Journal.latest(state, root)
    assert journal is not None
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal
    ) as session:
        assert await session.decisions.undo()
        assert stat.S_IMODE((root / "secret.sh").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"one\r\n2\r\n", "line endings (LF to CRLF)"),
        (b"\xef\xbb\xbfone\n2\n", "byte order mark (added)"),
        (b"one\n2", "final newline (removed)"),
        (b"one\n2\n", ""),
    ],
)
async def test_what_no_hunk_shows_is_told_and_goes_back_with_the_last_one(
    root: Path,
    settings: Settings,
    endpoint: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    data: bytes,
    told: str,
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    before = b"zero\none\ntwo\n"
    (root / "few.txt").write_bytes(before)
    git(root, "add", "few.txt")
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        (root / "few.txt").write_bytes(data)
        await session.review.changed({"few.txt"})
        said = [notice.text for notice in session.status.notices if "no hunk shows" in notice.text]
        wanted = f"few.txt: another program changed the {told}; no hunk shows that."
        assert said == ([wanted] if told else [])
        first, second = session.hunks.undecided("few.txt")
        assert await session.decisions.reject(first.id)
        assert (root / "few.txt").read_bytes() != before
        assert await session.decisions.reject(second.id)
        assert (root / "few.txt").read_bytes() == before
        assert await session.decisions.undo()
        assert await session.decisions.undo()
        assert (root / "few.txt").read_bytes() == data


async def test_line_ends_that_change_after_a_decision_are_a_row_of_their_own(
    session: PairingSession, root: Path
) -> None:
    """The kept lines are committed without them, and they can be put back."""
    await session.review.switch_on(since_commit=True)
    (root / "latin.txt").write_bytes(b"one\n2\n")
    await session.review.changed({"latin.txt"})
    assert await session.decisions.accept_rest("latin.txt")
    (root / "latin.txt").write_bytes(b"one\r\n2\r\n")
    await session.review.changed({"latin.txt"})
    (row,) = session.hunks.undecided()
    assert "CRLF" in row.new[0]
    await session.commit.stage(*(await session.commit.look()).stageable)
    await session.commit.commit("2")
    assert git(root, "show", "HEAD:latin.txt") == "one\n2\n"
    assert await session.decisions.reject(row.id)
    assert (root / "latin.txt").read_bytes() == b"one\n2\n"


async def test_a_permission_that_changes_with_lines_goes_with_them(
    session: PairingSession, root: Path
) -> None:
    await session.review.switch_on(since_commit=True)
    place = root / "latin.txt"
    place.write_bytes(b"one\n2\n")
    place.chmod(0o755)
    await session.review.changed({"latin.txt"})
    assert await session.decisions.reject_rest("latin.txt")
    assert not place.stat().st_mode & stat.S_IXUSR
    assert await session.decisions.undo()
    assert place.stat().st_mode & stat.S_IXUSR
    assert await session.decisions.accept_rest("latin.txt")
    await session.commit.stage(*(await session.commit.look()).stageable)
    await session.commit.commit("2")
    assert git(root, "ls-tree", "HEAD", "latin.txt").startswith("100755")


async def test_a_hard_linked_file_is_reviewed_by_all_its_names_and_written_by_one(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    outside = root.parent / "store.py"
    os.link(root / "run.py", outside)
    os.link(outside, root / "two.py")
    git(root, "add", "two.py")
    session = await PairingSession.open(root, settings=settings, endpoint=endpoint, watch=False)
    async with session:
        await session.review.switch_on(since_commit=True)
        (root / "run.py").write_text(AFTER)
        await session.review.changed({"run.py"})  # all that a watcher hears of
        assert len(session.hunks.undecided("two.py")) == 2
        for hunk in session.hunks.undecided("run.py"):
            assert await session.decisions.reject(hunk.id)
        assert (root / "run.py").read_text() == BEFORE
        assert (root / "two.py").read_text() == outside.read_text() == AFTER
        assert len(session.hunks.undecided("two.py")) == 2
