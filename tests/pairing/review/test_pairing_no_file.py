"""No file, an empty file and a file with lines are three states, whatever was decided before."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.journal import Journal
from tests.helpers.pairing import git

pytestmark = pytest.mark.usefixtures("quiet_at_once")
COMMITTED = {"base.txt": "b\n"}

STATES = {"none": None, "empty": b"", "lines": b"x\ny\n", "binary": b"\0\1"}


@pytest.fixture
async def session(session: PairingSession) -> PairingSession:
    """A review that is told what was written."""
    await session.review.switch_on(since_commit=True)
    return session


async def become(session: PairingSession, root: Path, path: str, state: bytes | None) -> None:
    """Another program brings a file to a state."""
    place = root / path
    if state is None:
        place.unlink(missing_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(state)
    await session.review.changed({path})


def on_disk(root: Path, path: str) -> bytes | None:
    return (root / path).read_bytes() if (root / path).exists() else None


@pytest.mark.parametrize("first", STATES)
@pytest.mark.parametrize("second", STATES)
@pytest.mark.parametrize("third", STATES)
async def test_putting_back_leads_to_the_state_that_was_kept(
    session: PairingSession, root: Path, first: str, second: str, third: str
) -> None:
    """Also where the file passes through another state before anybody decides."""
    await become(session, root, "f.txt", STATES[first])
    await session.decisions.accept_rest("f.txt", anyway=True)
    await become(session, root, "f.txt", STATES[second])
    await become(session, root, "f.txt", STATES[third])
    assert bool(session.hunks.undecided("f.txt")) is (first != third)
    await session.decisions.reject_rest("f.txt")
    assert on_disk(root, "f.txt") == STATES[first]


@pytest.mark.parametrize("first", STATES)
@pytest.mark.parametrize("second", STATES)
async def test_a_commit_has_the_state_that_was_kept(
    session: PairingSession, root: Path, first: str, second: str
) -> None:
    for state in (first, second):
        await become(session, root, "f.txt", STATES[state])
        await session.decisions.accept_rest("f.txt", anyway=True)
    if stageable := (await session.commit.look()).stageable:
        await session.commit.stage(*stageable)
        await session.commit.commit("kept")
    listed = git(root, "ls-tree", "-l", "HEAD", "f.txt").split()
    there = STATES[second]
    assert listed[3:4] == ([] if there is None else [str(len(there))])


@pytest.mark.parametrize("first", STATES)
@pytest.mark.parametrize("second", STATES)
async def test_a_resumed_review_tells_them_apart(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path, first: str, second: str
) -> None:
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        await become(session, root, "base.txt", b"c\n")
        await become(session, root, "f.txt", STATES[first])
        await session.decisions.accept_rest("f.txt", anyway=True)
        await become(session, root, "f.txt", STATES[second])
    async with await PairingSession.open(
        root,
        settings=settings,
        endpoint=endpoint,
        watch=False,
        resume=Journal.latest(state, root),
        review=True,
    ) as session:
        await session.decisions.reject_rest("f.txt")
        assert on_disk(root, "f.txt") == STATES[first]


async def test_an_empty_folder_gives_way_to_the_file_that_was_there(
    session: PairingSession, root: Path
) -> None:
    await become(session, root, "a", b"a\n")
    await session.decisions.accept_rest("a")
    (root / "a").unlink()
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "c").write_bytes(b"c\n")
    await session.review.changed({"a", "a/b/c"})
    assert await session.decisions.reject_rest("a/b/c")
    assert (root / "a").is_dir()
    assert await session.decisions.reject_rest("a")
    assert on_disk(root, "a") == b"a\n"


async def test_a_file_is_not_committed_in_the_place_of_a_folder_that_waits(
    session: PairingSession, root: Path
) -> None:
    """Git would drop the folder's files from the commit without a word."""
    await become(session, root, "f/z", b"z\n")
    await session.decisions.accept_rest("f/z")
    await session.commit.stage("f/z")
    await session.commit.commit("z")
    (root / "f" / "z").unlink()
    (root / "f").rmdir()
    (root / "f").write_bytes(b"f\n")
    await session.review.changed({"f"})
    assert await session.decisions.accept_rest("f")
    [place] = [file for file in (await session.commit.look()).files if file.path == "f"]
    assert place.state == "conflict"
    assert "f/z" in place.trouble
    assert await session.decisions.accept_rest("f/z")
    await session.commit.stage(*(await session.commit.look()).stageable)
    await session.commit.commit("f")
    assert git(root, "ls-tree", "-r", "--name-only", "HEAD").split() == ["base.txt", "f"]
