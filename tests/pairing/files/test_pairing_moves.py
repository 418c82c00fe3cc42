"""Files that another program has moved: two hunks that are shown and decided as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.edits.documents import join_lines
from midstream.edits.hunks import Hunk, HunkState
from midstream.pairing.files import put_backs
from midstream.pairing.session import PairingSession
from midstream.pairing.status import SessionEvent
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.journal import Journal
from tests.helpers.pairing import Witness, git, make_repo

pytestmark = pytest.mark.usefixtures("quiet_at_once")
LINES = [f"line {number}" for number in range(10)]
TEXT = join_lines(LINES)
PICTURE = b"\x89PNG\0" + bytes(range(256))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_repo(tmp_path / "work", {"old.txt": TEXT, "other.txt": "other\n"})
    (root / "logo.png").write_bytes(PICTURE)
    git(root, "add", ".")
    git(root, "commit", "-qm", "picture")
    return root


@pytest.fixture
async def session(session: PairingSession) -> PairingSession:
    """A review that is told what was written."""
    await session.review.switch_on(since_commit=True)
    return session


def _changed(count: int) -> str:
    """The text with so many lines changed."""
    return join_lines([*(f"changed {n}" for n in range(count)), *LINES[count:]])


async def _move(session: PairingSession, text: str) -> None:
    """Another program moves a file and changes it."""
    (session.root / "old.txt").unlink()
    (session.root / "new.txt").write_text(text)
    await session.review.changed({"old.txt", "new.txt"})


def _shown(session: PairingSession) -> list[Hunk]:
    return session.files.moves.shown(session.hunks.undecided())


def _said(session: PairingSession, hunk: Hunk) -> str:
    move = session.files.moves.of(hunk)
    return "" if move is None else move.said_of(hunk)


@pytest.mark.parametrize("changed", [0, 4])
async def test_a_moved_file_is_one_row(session: PairingSession, root: Path, changed: int) -> None:
    await _move(session, _changed(changed))
    assert len(session.hunks.undecided()) == 2
    (hunk,) = _shown(session)
    share = "60 % of the lines" if changed else "unchanged"
    assert _said(session, hunk) == f"moved from old.txt, {share}"
    (gone,) = session.hunks.undecided("old.txt")
    assert _said(session, gone) == "moved to new.txt"
    assert await session.decisions.reject(hunk.id, "leave it there")
    assert git(root, "status", "--porcelain") == ""
    assert [h.note for h in session.hunks if h.state is HunkState.REJECTED] == [
        "leave it there",
        "leave it there",
    ]
    assert set(await session.decisions.undo()) == {hunk.id, gone.id}, "one step"
    assert not (root / "old.txt").exists()
    assert (root / "new.txt").read_text() == _changed(changed)
    assert await session.decisions.accept(gone.id), "by the other half"
    assert not session.hunks.undecided()
    assert not (root / "old.txt").exists()
    assert (root / "new.txt").read_text() == _changed(changed)
    await session.commit.stage("old.txt", "new.txt")
    assert git(root, "status", "--porcelain").startswith("R  old.txt -> new.txt")


async def test_looking_in_the_middle_of_an_undo_does_no_harm(session: PairingSession) -> None:
    """The screen looks at every event, even after the hunks and before the files have changed."""

    def look(event: SessionEvent) -> None:
        _shown(session)

    session.status.subscribe(look)
    await _move(session, TEXT)
    (hunk,) = _shown(session)
    for _ in range(2):
        assert await session.decisions.reject(hunk.id)
        assert await session.decisions.undo()
        assert len(_shown(session)) == 1
    assert await session.decisions.accept(hunk.id)
    assert not session.hunks.undecided()
    files = (await session.commit.look()).files
    assert [file.path for file in files] == ["new.txt", "old.txt"]


async def test_a_put_back_is_one_write(session: PairingSession, root: Path) -> None:
    """Where half of it cannot be written, nothing is."""
    await _move(session, TEXT)
    (hunk,) = _shown(session)
    (root / "old.txt").write_text("somebody needs the name\n")
    assert not await session.decisions.reject(hunk.id)
    assert (root / "old.txt").read_text() == "somebody needs the name\n"
    assert (root / "new.txt").read_text() == TEXT


async def test_files_with_less_in_common_are_two_rows(session: PairingSession, root: Path) -> None:
    await _move(session, _changed(5))
    assert len(_shown(session)) == 2
    assert not any(map(session.files.moves.of, session.hunks.undecided()))
    (hunk,) = session.hunks.undecided("new.txt")
    await session.decisions.reject(hunk.id)
    assert git(root, "status", "--porcelain") == " D old.txt\n"


async def test_a_moved_picture_is_one_row(session: PairingSession, root: Path) -> None:
    (root / "logo.png").rename(root / "brand.png")
    await session.review.changed({"logo.png", "brand.png"})
    (hunk,) = _shown(session)
    assert _said(session, hunk) == "moved from logo.png, unchanged"
    assert await session.decisions.reject(hunk.id)
    assert git(root, "status", "--porcelain") == ""


async def test_each_file_goes_with_the_most_similar_one(
    session: PairingSession, root: Path
) -> None:
    near, far = _changed(1), _changed(3)
    (root / "old.txt").unlink()
    (root / "far.txt").write_text(far)
    (root / "near.txt").write_text(near)
    await session.review.changed({"old.txt", "far.txt", "near.txt"})
    said = {hunk.path: _said(session, hunk) for hunk in _shown(session)}
    assert said == {"far.txt": "", "near.txt": "moved from old.txt, 90 % of the lines"}


async def test_a_part_of_it_is_decided_by_itself(session: PairingSession, root: Path) -> None:
    await _move(session, TEXT)
    (hunk,) = _shown(session)
    assert await session.decisions.decide_lines(hunk.id, 0, 1, accept=False)
    assert (root / "new.txt").read_text() == join_lines(LINES[1:])
    assert len(_shown(session)) == 2, "what is left is no move any more"
    for other in session.hunks.undecided():
        await session.decisions.reject(other.id)
    assert git(root, "status", "--porcelain") == ""


async def test_both_wait_for_the_agent(
    session: PairingSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 60.0)
    await _move(session, TEXT)
    (hunk,) = _shown(session)
    assert await session.decisions.reject(hunk.id)
    assert len(session.hunks.postponed()) == 2
    assert not (root / "old.txt").exists()
    assert await session.decisions.put_backs.apply() == 2
    assert git(root, "status", "--porcelain") == ""


async def test_accepting_all_that_is_shown_takes_both(session: PairingSession) -> None:
    await _move(session, TEXT)
    assert await session.decisions.accept_all({hunk.id for hunk in _shown(session)}) == 2


async def test_a_move_comes_back_after_a_kill(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        await _move(session, _changed(2))
    journal = Journal.latest(state, root)
    assert journal is not None
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal, review=True
    ) as session:
        await Witness(session).until(lambda: session.review.on)
        (hunk,) = _shown(session)
        assert await session.decisions.reject(hunk.id)
        assert git(root, "status", "--porcelain") == ""
