"""Review of what other programs write: hunks that are on disk already, kept or put back."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from midstream.edits.hunks import Hunk, HunkState
from midstream.pairing.external import MOST_FILES
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.journal import Journal
from tests.helpers.pairing import Witness, git, make_repo, numbered

BEFORE = numbered(30)
AFTER = BEFORE.replace("work(3)", "work(33)").replace("work(20)", "work(220)")
SECRET = 'TOKEN = "ghp_' + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8" + '"\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {"run.py": BEFORE, "other.py": "x = 1\n", "latin.txt": "one\ntwo\n"}
    return make_repo(tmp_path / "work", files)


@pytest.fixture
async def watched(root: Path, settings: Settings, endpoint: Endpoint) -> AsyncIterator[Reviewed]:
    """A session that watches the folder and reviews what is written there."""
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        reviewed = Reviewed(session)
        await reviewed.until(lambda: session.external.watching == "native")
        await session.review.start(since_commit=True)
        yield reviewed


class Reviewed(Witness):
    """A session with a review."""

    async def waiting(self, count: int, path: str | None = None) -> list[Hunk]:
        """Wait until so many hunks wait for a decision."""
        store = self.session.hunks
        await self.until(lambda: len(store.undecided(path)) == count)
        return store.undecided(path)


async def test_what_another_program_writes_is_kept_or_put_back(
    watched: Reviewed, root: Path
) -> None:
    (root / "run.py").write_text(AFTER)
    first, second = await watched.waiting(2)
    assert (first.external, first.new) == (True, ("    step_03 = work(33)",))
    files = watched.session.files
    assert await files.accept(first.id)
    assert (root / "run.py").read_text() == AFTER
    assert await files.reject(second.id, "20 was right")
    assert (root / "run.py").read_text() == AFTER.replace("work(220)", "work(20)")
    assert await files.undo() == (second.id,)
    assert (root / "run.py").read_text() == AFTER


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
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        (root / "run.py").write_text(AFTER)
        await session.review.start(since_commit=True)
        first, second = session.hunks.undecided()
        (root / "run.py").write_text(AFTER.replace("work(9)", "work(99)"))
        assert await session.files.reject(first.id)
        text = (root / "run.py").read_text()
        assert text == AFTER.replace("work(9)", "work(99)").replace("work(33)", "work(3)")
        assert [h.new for h in session.hunks.undecided()] == [
            ("    step_09 = work(99)",),
            second.new,
        ]
        (root / "run.py").write_text(text.replace("work(220)", "work(2220)"))
        assert not await session.files.reject(second.id), "other lines than those that were seen"
        assert "work(2220)" in (root / "run.py").read_text()


async def test_a_dirty_tree_is_reviewed_against_the_index(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    (root / "run.py").write_text(AFTER.replace("work(220)", "work(20)"))
    git(root, "add", "run.py")
    (root / "run.py").write_text(AFTER)
    (root / "new.py").write_text("y = 2\n")
    (root / "other.py").unlink()
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.start(since_commit=True)
        hunks = {hunk.path: hunk for hunk in session.hunks.undecided()}
        assert sorted(hunks) == ["new.py", "other.py", "run.py"]
        assert hunks["run.py"].new == ("    step_20 = work(220)",)
        assert await session.files.accept(hunks["run.py"].id)
        await session.commit.stage("run.py")
        assert "work(220)" in git(root, "diff", "--cached", "run.py")
        assert await session.files.reject(hunks["new.py"].id)
        assert not (root / "new.py").exists()
        assert await session.files.undo()
        assert (root / "new.py").read_text() == "y = 2\n"
        assert await session.files.reject(hunks["other.py"].id)
        assert (root / "other.py").read_text() == "x = 1\n"


async def test_only_what_is_kept_is_staged(watched: Reviewed, root: Path) -> None:
    (root / "run.py").write_text(AFTER)
    first, _ = await watched.waiting(2)
    await watched.session.files.accept(first.id)
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
    await watched.session.files.accept(hunk.id)
    (root / "latin.txt").unlink()
    (gone,) = await watched.waiting(1)
    assert gone.new == ()
    assert await watched.session.files.reject(gone.id)
    assert (root / "latin.txt").read_bytes() == data


async def test_a_checkout_needs_no_review(watched: Reviewed, root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side")
    (root / "run.py").write_text(AFTER)
    first, _ = await watched.waiting(2)
    await watched.session.files.accept(first.id)
    git(root, "commit", "-qam", "side")
    await watched.until(lambda: len(watched.session.hunks.undecided()) == 1)
    git(root, "checkout", "-q", "main")
    await watched.until(lambda: not watched.session.hunks.undecided())
    assert (root / "run.py").read_text() == BEFORE
    (root / "other.py").write_text("x = 2\n")
    (hunk,) = await watched.waiting(1)
    assert hunk.old == ("x = 1",)


async def test_a_commit_by_the_other_program_decides_nothing(watched: Reviewed, root: Path) -> None:
    (root / "run.py").write_text(AFTER)
    git(root, "commit", "-qam", "by an agent")
    hunks = await watched.waiting(2)
    assert all(hunk.external for hunk in hunks)


async def test_many_files_at_once_are_opened_when_asked(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.start(since_commit=True)
        (root / "run.py").write_text(AFTER)
        await session.review.changed({"run.py"})
        many = [f"many_{number}.py" for number in range(MOST_FILES + 10)]
        for name in many:
            (root / name).write_text("x = 1\n")
        await session.review.changed({*many[:-5], "run.py"})
        await session.review.changed(many[-5:])  # The watcher may tell of one write in parts.
        assert session.review.aside == set(many)
        assert f"{len(many)} files" in session.status.notices[-1].text
        assert list(session.files) == ["run.py"]
        assert await session.review.look() == len(many)
        assert len(session.hunks.undecided()) == 2 + len(many)
        assert not session.review.aside


async def test_what_the_guard_finds_is_quarantined(watched: Reviewed, root: Path) -> None:
    (root / "other.py").write_text("x = 1\n" + SECRET)
    session = watched.session
    await watched.until(
        lambda: [h.state for h in session.hunks.for_path("other.py")] == [HunkState.QUARANTINED]
    )
    (hunk,) = session.hunks.for_path("other.py")
    assert not await session.files.accept(hunk.id)
    assert await session.files.reject(hunk.id)
    assert (root / "other.py").read_text() == "x = 1\n"


async def test_a_review_is_resumed(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        (root / "run.py").write_text(AFTER)
        await session.review.start(since_commit=True)
        first, second = session.hunks.undecided()
        await session.files.reject(first.id)
    journal = Journal.latest(state, root)
    assert journal is not None
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal
    ) as session:
        (waits,) = session.hunks.undecided()
        assert (waits.id, waits.external, waits.new) == (second.id, True, second.new)
        assert await session.files.reject(waits.id)
        assert (root / "run.py").read_text() == BEFORE


async def test_files_that_are_no_text_are_named(watched: Reviewed, root: Path) -> None:
    (root / "image.png").write_bytes(b"\x89PNG\0\1")
    await watched.until(lambda: "image.png" in watched.notice)
    assert "image.png" not in watched.session.files


async def test_the_mode_of_a_changed_file_stays(watched: Reviewed, root: Path) -> None:
    (root / "run.py").chmod(0o755)
    (root / "run.py").write_text(AFTER)
    first, _ = await watched.waiting(2)
    await watched.session.files.reject(first.id)
    assert stat.S_IMODE((root / "run.py").stat().st_mode) == 0o755
