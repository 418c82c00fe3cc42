"""Review of files that are no text, or too long: kept or put back as a whole."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from midstream.edits.hunks import Hunk, HunkState
from midstream.pairing import journal_entries, put_backs
from midstream.pairing.contents import LONGEST_TEXT, NotTextFileError
from midstream.pairing.journal import Replay
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace import baseline
from midstream.workspace.journal import Journal
from tests.helpers.pairing import Witness, git, make_repo
from tests.helpers.property import examples

OLD = b"\x89PNG\0" + bytes(range(256)) * 4
NEW = b"\x89PNG\0" + bytes(reversed(range(256))) * 5
PICTURE = "logo.png"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_repo(tmp_path / "work", {"run.py": "x = 1\n"})
    (root / PICTURE).write_bytes(OLD)
    git(root, "add", ".")
    git(root, "commit", "-qm", "picture")
    return root


@pytest.fixture(autouse=True)
def quiet_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program is done as soon as it has written."""
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)


@pytest.fixture
async def session(
    root: Path, settings: Settings, endpoint: Endpoint
) -> AsyncIterator[PairingSession]:
    """A review that is told what was written."""
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.start(since_commit=True)
        yield session


async def _written(session: PairingSession, data: bytes | None, path: str = PICTURE) -> Hunk:
    """Another program writes or deletes a file; the one hunk of it."""
    place = session.root / path
    if data is None:
        place.unlink()
    else:
        place.write_bytes(data)
    await session.review.changed({path})
    (hunk,) = session.hunks.undecided(path)
    return hunk


async def test_a_changed_picture_is_one_hunk(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        seen = Witness(session)
        await seen.until(lambda: session.external.watching == "native")
        await session.review.start(since_commit=True)
        (root / PICTURE).write_bytes(NEW)
        await seen.until(lambda: session.hunks.undecided(PICTURE))
        (hunk,) = session.hunks.undecided(PICTURE)
        assert hunk.old[0].startswith("binary file, 1,029 bytes")
        assert hunk.new[0].startswith("binary file, 1,285 bytes")
        assert await session.files.reject(hunk.id, "the old logo")
        assert (root / PICTURE).read_bytes() == OLD
        assert await session.files.undo() == (hunk.id,)
        assert (root / PICTURE).read_bytes() == NEW
        assert await session.files.accept(hunk.id)
        assert await session.files.reject(hunk.id), "it was kept, and is put back after all"
        assert (root / PICTURE).read_bytes() == OLD


async def test_new_and_deleted_pictures(session: PairingSession, root: Path) -> None:
    new = await _written(session, NEW, "new.png")
    assert await session.files.reject(new.id)
    assert not (root / "new.png").exists()
    await session.files.undo()
    assert (root / "new.png").read_bytes() == NEW
    gone = await _written(session, None)
    assert gone.new == ()
    assert await session.files.reject(gone.id)
    assert (root / PICTURE).read_bytes() == OLD
    await session.files.undo()
    assert not (root / PICTURE).exists()


async def test_a_long_text_is_decided_as_a_whole(session: PairingSession, root: Path) -> None:
    long = b"1234567\n" * (LONGEST_TEXT // 8 + 1)
    hunk = await _written(session, long, "run.py")
    assert (hunk.deleted, hunk.added) == (1, 1)
    assert await session.files.reject(hunk.id)
    assert (root / "run.py").read_bytes() == b"x = 1\n"


async def test_a_text_that_becomes_a_picture_comes_back(
    session: PairingSession, root: Path
) -> None:
    await session.files.open("run.py")
    hunk = await _written(session, NEW, "run.py")
    assert await session.files.reject(hunk.id)
    assert (root / "run.py").read_bytes() == b"x = 1\n"
    await session.files.undo()
    assert (root / "run.py").read_bytes() == NEW
    again = await _written(session, b"x = 2\n", "run.py")
    assert again.new[0].startswith("text file, 6 bytes"), "still as a whole"
    assert await session.files.reject(again.id)
    assert (root / "run.py").read_bytes() == b"x = 1\n"


async def test_parts_of_it_are_not_decided(session: PairingSession, root: Path) -> None:
    hunk = await _written(session, NEW)
    files = session.files
    assert not await files.decide_lines(hunk.id, 0, 1, accept=False)
    assert not await files.split(hunk.id, [(1, 0)])
    assert not await files.edit(hunk.id, ["something else"])
    assert "as a whole" in session.status.notices[-1].text
    with pytest.raises(NotTextFileError):
        await files.open_text(PICTURE)
    assert hunk.state is HunkState.SETTLED
    assert (root / PICTURE).read_bytes() == NEW


async def test_a_write_at_the_moment_of_a_decision_is_not_lost(
    session: PairingSession, root: Path
) -> None:
    hunk = await _written(session, NEW)
    (root / PICTURE).write_bytes(NEW + b"more")
    assert not await session.files.reject(hunk.id)
    assert (root / PICTURE).read_bytes() == NEW + b"more"
    (waits,) = session.hunks.undecided(PICTURE)
    assert waits.id != hunk.id
    assert await session.files.reject(waits.id)
    assert (root / PICTURE).read_bytes() == OLD


async def test_what_is_kept_can_be_committed(session: PairingSession, root: Path) -> None:
    hunk = await _written(session, NEW)
    await session.files.accept(hunk.id)
    (change,) = (await session.commit.look()).files
    assert change.diff.binary
    await session.commit.stage(PICTURE)
    assert git(root, "status", "--porcelain") == f"M  {PICTURE}\n"


async def test_what_was_too_large_to_keep_counts_from_its_first_change(
    root: Path, settings: Settings, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was not committed is ever replaced by the commit, or taken for a new file."""
    monkeypatch.setattr(baseline, "LARGEST", 1000)
    (root / PICTURE).write_bytes(NEW)
    (root / "new.png").write_bytes(NEW)
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.start(since_commit=False)
        for path in (PICTURE, "new.png"):
            (root / path).write_bytes(NEW + b"1")
            await session.review.changed({path})
            assert not session.hunks.undecided(path)
            hunk = await _written(session, NEW + b"2", path)
            assert await session.files.reject(hunk.id)
            assert (root / path).read_bytes() == NEW + b"1"


@pytest.mark.parametrize("recorded", [True, False])
async def test_a_put_back_is_undone_after_a_resume(
    root: Path,
    settings: Settings,
    endpoint: Endpoint,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    recorded: bool,
) -> None:
    if not recorded:
        monkeypatch.setattr(journal_entries, "MOST_RECORDED", 100)
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.start(since_commit=True)
        hunk = await _written(session, NEW)
        await session.files.reject(hunk.id)
    journal = Journal.latest(state, root)
    assert journal is not None
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal
    ) as session:
        undone = await session.files.undo()
        assert bool(undone) is recorded
        assert (root / PICTURE).read_bytes() == (NEW if recorded else OLD)
        if not recorded:
            assert "is not kept" in session.status.notices[-1].text


@pytest.mark.fuzz
@given(seed=st.integers(0, 2**32))
@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_only_what_was_there_is_ever_written(
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
    endpoint: Endpoint,
) -> None:
    """Whatever the order, a file holds what some program wrote, and all of it can go back."""
    rng = random.Random(seed)
    root = make_repo(tmp_path_factory.mktemp("whole"), {"run.py": "x = 1\n"})
    place = root / "a.bin"
    first = rng.choice([None, OLD, b"text\n"])
    if first is not None:
        place.write_bytes(first)
        git(root, "add", ".")
        git(root, "commit", "-qm", "file")
    states = [None, OLD, NEW, b"\0", b"other text\n"]
    session = await PairingSession.open(root, settings=Settings(), endpoint=endpoint, watch=False)
    async with session:
        await session.review.start(since_commit=True)

        async def write() -> None:
            data = rng.choice(states)
            if data is not None:
                place.write_bytes(data)
            else:
                place.unlink(missing_ok=True)
            await session.review.changed({"a.bin"})
            assert (place.read_bytes() if place.exists() else None) == data

        async def decide() -> None:
            before = place.read_bytes() if place.exists() else None
            for hunk in session.hunks.undecided()[:1]:
                if rng.random() < 0.4:
                    await session.files.accept(hunk.id)
                    assert (place.read_bytes() if place.exists() else None) == before
                else:
                    await session.files.reject(hunk.id)

        for _ in range(rng.randint(2, 12)):
            await rng.choice([write, write, decide, session.files.undo, session.files.redo])()
            held = place.read_bytes() if place.exists() else None
            assert held in states or held == first, "nothing else is ever written"
        session.journal.flush()
        if (path := session.journal.path) is not None:
            known = Replay.read(path).hunks
            assert [(h.id, h.state, h.old, h.new) for h in known if h.live] == [
                (h.id, h.state, h.old, h.new) for h in session.hunks if h.live
            ]
        for hunk in session.hunks.undecided():
            await session.files.reject(hunk.id)
        assert not session.hunks.undecided(), "every hunk can be put back"
        if all(h.state in (HunkState.REJECTED, HunkState.SUPERSEDED) for h in session.hunks):
            assert (place.read_bytes() if place.exists() else None) == first
