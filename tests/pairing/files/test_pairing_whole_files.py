"""Review of files that are no text, or too long: kept or put back as a whole."""

from __future__ import annotations

import contextlib
import random
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from midstream.edits import stand_ins
from midstream.edits.hunks import Hunk, HunkState
from midstream.errors import UserError
from midstream.pairing.contents import MAX_TEXT_BYTES, NotTextFileError
from midstream.pairing.journal import entries
from midstream.pairing.session import PairingSession
from midstream.pairing.status import Notice
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace import baseline
from midstream.workspace.errors import GitError
from midstream.workspace.journal import Journal
from tests.helpers.pairing import Witness, git, make_repo
from tests.helpers.property import examples

pytestmark = pytest.mark.usefixtures("quiet_at_once")
OLD = b"\x89PNG\0" + bytes(range(256)) * 4
NEW = b"\x89PNG\0" + bytes(reversed(range(256))) * 5
PICTURE = "logo.png"
COMMITTED = {"run.py": "x = 1\n", PICTURE: OLD}


@pytest.fixture
async def session(session: PairingSession) -> PairingSession:
    """A review that is told what was written."""
    await session.review.switch_on(since_commit=True)
    return session


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
        await session.review.switch_on(since_commit=True)
        (root / PICTURE).write_bytes(NEW)
        await seen.until(lambda: session.hunks.undecided(PICTURE))
        (hunk,) = session.hunks.undecided(PICTURE)
        assert hunk.old[0].startswith("binary file, 1,029 bytes")
        assert hunk.new[0].startswith("binary file, 1,285 bytes")
        assert await session.decisions.reject(hunk.id, "the old logo")
        assert (root / PICTURE).read_bytes() == OLD
        assert await session.decisions.undo() == (hunk.id,)
        assert (root / PICTURE).read_bytes() == NEW
        assert await session.decisions.accept(hunk.id)
        assert await session.decisions.reject(hunk.id), "it was kept, and is put back after all"
        assert (root / PICTURE).read_bytes() == OLD


async def test_new_and_deleted_pictures(session: PairingSession, root: Path) -> None:
    new = await _written(session, NEW, "new.png")
    assert await session.decisions.reject(new.id)
    assert not (root / "new.png").exists()
    await session.decisions.undo()
    assert (root / "new.png").read_bytes() == NEW
    gone = await _written(session, None)
    assert gone.new == ()
    assert await session.decisions.reject(gone.id)
    assert (root / PICTURE).read_bytes() == OLD
    await session.decisions.undo()
    assert not (root / PICTURE).exists()


async def test_a_long_text_is_decided_as_a_whole(session: PairingSession, root: Path) -> None:
    long = b"1234567\n" * (MAX_TEXT_BYTES // 8 + 1)
    hunk = await _written(session, long, "run.py")
    assert (hunk.deleted, hunk.added) == (1, 1)
    assert await session.decisions.reject(hunk.id)
    assert (root / "run.py").read_bytes() == b"x = 1\n"


async def test_a_text_that_becomes_a_picture_comes_back(
    session: PairingSession, root: Path
) -> None:
    await session.files.open("run.py")
    hunk = await _written(session, NEW, "run.py")
    assert await session.decisions.reject(hunk.id)
    assert (root / "run.py").read_bytes() == b"x = 1\n"
    await session.decisions.undo()
    assert (root / "run.py").read_bytes() == NEW
    again = await _written(session, b"x = 2\n", "run.py")
    assert (again.old, again.new) == (("x = 1",), ("x = 2",)), "it has lines again"
    assert await session.decisions.reject(again.id)
    assert (root / "run.py").read_bytes() == b"x = 1\n"


async def test_parts_of_it_are_not_decided(session: PairingSession, root: Path) -> None:
    hunk = await _written(session, NEW)
    files, decisions = session.files, session.decisions
    assert not await decisions.decide_lines(hunk.id, 0, 1, accept=False)
    assert not await decisions.split(hunk.id, [(1, 0)])
    assert not await decisions.edit(hunk.id, ["something else"])
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
    assert not await session.decisions.reject(hunk.id)
    assert (root / PICTURE).read_bytes() == NEW + b"more"
    (waits,) = session.hunks.undecided(PICTURE)
    assert waits.id != hunk.id
    assert await session.decisions.reject(waits.id)
    assert (root / PICTURE).read_bytes() == OLD


async def test_what_is_kept_can_be_committed(session: PairingSession, root: Path) -> None:
    hunk = await _written(session, NEW)
    await session.decisions.accept(hunk.id)
    (change,) = (await session.commit.look()).files
    assert change.compared.diff().binary
    await session.commit.stage(PICTURE)
    assert git(root, "status", "--porcelain") == f"M  {PICTURE}\n"


@pytest.mark.parametrize("staged_by", ["nobody", "others", "others, then rewritten"])
async def test_a_file_whose_bytes_are_not_kept_is_committed_or_said(
    session: PairingSession, root: Path, monkeypatch: pytest.MonkeyPatch, staged_by: str
) -> None:
    monkeypatch.setattr(stand_ins, "MAX_KEPT_BYTES", 1000)
    commit, newer = session.commit, NEW + b"newer"
    await session.decisions.accept((await _written(session, NEW)).id)
    if staged_by != "nobody":
        git(root, "add", PICTURE)
    if staged_by == "others, then rewritten":
        (root / PICTURE).write_bytes(newer)
        await session.decisions.accept((await _written(session, newer)).id)
        with pytest.raises(GitError, match="were not kept"):
            await commit.commit("Old form")
        await commit.forget_staged(PICTURE)
    (change,) = (await commit.look()).files
    assert change.compared.diff().binary
    assert not change.trouble
    await commit.stage(PICTURE)
    await commit.commit("New logo")
    assert git(root, "diff", "HEAD", "--stat") == ""
    # The bytes of two commits ago are gone, but those to stage are known.
    (root / PICTURE).write_bytes(OLD * 2)
    await session.decisions.accept((await _written(session, OLD * 2)).id)
    await commit.stage(PICTURE)
    await commit.commit("Newest logo")
    assert git(root, "diff", "HEAD", "--stat") == ""
    # It is gone from the disk before it is staged.
    await session.decisions.accept((await _written(session, NEW)).id)
    (root / PICTURE).write_bytes(OLD * 3)
    (change,) = (await commit.look()).files
    assert "is not kept" in change.trouble
    with pytest.raises(GitError, match="is not kept"):
        await commit.stage(PICTURE)
    await _written(session, OLD * 3)
    await session.decisions.accept_rest(PICTURE)
    await commit.stage(PICTURE)
    await commit.commit("What is there")
    assert git(root, "diff", "HEAD", "--stat") == ""


async def test_a_kept_file_whose_bytes_are_not_recorded_is_committed_after_a_resume(
    root: Path,
    settings: Settings,
    endpoint: Endpoint,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entries, "MAX_RECORDED", 100)
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        await session.decisions.accept((await _written(session, NEW)).id)
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=Journal.latest(state, root)
    ) as session:
        await session.commit.stage(PICTURE)
        await session.commit.commit("New logo")
        assert git(root, "status", "--porcelain") == ""


async def test_what_was_too_large_to_keep_counts_from_its_first_change(
    root: Path, settings: Settings, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was not committed is ever replaced by the commit, or taken for a new file."""
    monkeypatch.setattr(baseline, "MAX_FILE_BYTES", 1000)
    (root / PICTURE).write_bytes(NEW)
    (root / "new.png").write_bytes(NEW)
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=False)
        for path in (PICTURE, "new.png"):
            (root / path).write_bytes(NEW + b"1")
            await session.review.changed({path})
            assert not session.hunks.undecided(path)
            hunk = await _written(session, NEW + b"2", path)
            assert await session.decisions.reject(hunk.id)
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
        monkeypatch.setattr(entries, "MAX_RECORDED", 100)
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        hunk = await _written(session, NEW)
        await session.decisions.reject(hunk.id)
    journal = Journal.latest(state, root)
    assert journal is not None
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal
    ) as session:
        undone = await session.decisions.undo()
        assert bool(undone) is recorded
        assert (root / PICTURE).read_bytes() == (NEW if recorded else OLD)
        if not recorded:
            assert "is not kept" in session.status.notices[-1].text


# Changes that no line shows


State = tuple[bytes | str, bool | str] | None


def _make(place: Path, state: State) -> None:
    """Write a file, delete it, or make it a link."""
    place.unlink(missing_ok=True)
    if state is not None and isinstance(state[0], bytes):
        place.write_bytes(state[0])
        place.chmod(0o755 if state[1] else 0o644)
    elif state is not None:
        place.symlink_to(str(state[1]))


def _state(place: Path) -> State:
    """All that a decision may change: content, permission to run, or where a link points."""
    if place.is_symlink():
        return ("link", str(place.readlink()))
    if not place.exists():
        return None
    return (place.read_bytes(), bool(place.stat().st_mode & stat.S_IXUSR))


def _link(place: Path, target: str) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to(target)


CHANGES: dict[str, tuple[str, Callable[[Path], object], str, str]] = {
    "line ends": (
        "run.py",
        lambda p: p.write_bytes(b"x = 1\r\n"),
        "LF line ends",
        "CRLF line ends",
    ),
    "final newline": ("run.py", lambda p: p.write_bytes(b"x = 1"), "LF line ends", "no line end"),
    "mark": ("run.py", lambda p: p.write_bytes(b"\xef\xbb\xbfx = 1\n"), "", "byte order mark"),
    "program": ("run.py", lambda p: p.chmod(0o755), "", "executable"),
    "no program": ("tool.sh", lambda p: p.chmod(0o644), "executable", ""),
    "picture program": (PICTURE, lambda p: p.chmod(0o755), "binary file", "executable"),
    "to a link": ("tool.sh", lambda p: _link(p, "run.py"), "executable", "link to run.py"),
    "other target": ("link", lambda p: _link(p, "tool.sh"), "link to run.py", "link to tool.sh"),
    "outside": ("link", lambda p: _link(p, "/etc/passwd"), "run.py", "link to /etc/passwd"),
    "nowhere": ("link", lambda p: _link(p, "a\nb"), "run.py", "link to a\\nb"),
    "to a file": ("link", lambda p: (p.unlink(), p.write_text("text\n")), "link to", "text file"),
    "new link": ("new", lambda p: _link(p, "run.py"), "", "link to run.py"),
    "no link": ("link", lambda p: p.unlink(), "link to run.py", ""),
}


@pytest.fixture
def forms(root: Path) -> Path:
    """A folder with a program and a link, too."""
    (root / "tool.sh").write_text("#!/bin/sh\n")
    (root / "tool.sh").chmod(0o755)
    (root / "link").symlink_to("run.py")
    git(root, "add", ".")
    git(root, "commit", "-qm", "forms")
    return root


@pytest.mark.parametrize("name", CHANGES)
async def test_what_no_line_shows_is_one_row(
    forms: Path, settings: Settings, endpoint: Endpoint, name: str
) -> None:
    path, change, old, new = CHANGES[name]
    place = forms / path
    before = _state(place)
    async with await PairingSession.open(
        forms, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        change(place)
        after = _state(place)
        assert after != before
        await session.review.changed({path})
        (hunk,) = session.hunks.undecided()
        assert (hunk.path, hunk.deleted, hunk.added) == (
            path,
            before is not None,
            after is not None,
        )
        assert old in "".join(hunk.old)
        assert new in "".join(hunk.new)
        assert await session.decisions.reject(hunk.id), session.status.notices
        assert _state(place) == before
        assert git(forms, "status", "--porcelain") == ""
        assert await session.decisions.undo()
        assert _state(place) == after
        assert await session.decisions.redo()
        assert _state(place) == before
        assert await session.decisions.accept(hunk.id)
        assert _state(place) == after
        assert (forms / "run.py").exists(), "nothing is written through a link"


@pytest.mark.parametrize("keep", [True, False])
async def test_after_the_decision_lines_are_lines_again(
    session: PairingSession, root: Path, keep: bool
) -> None:
    hunk = await _written(session, b"x = 1\r\n", "run.py")
    with pytest.raises(NotTextFileError, match="reviewed as a whole"):
        await session.files.open_text("run.py")
    await (session.decisions.accept if keep else session.decisions.reject)(hunk.id)
    end = b"\r\n" if keep else b"\n"
    again = await _written(session, b"x = 1" + end + b"y = 2" + end, "run.py")
    assert (again.old, again.new) == ((), ("y = 2",))
    assert await session.decisions.reject(again.id)
    assert (root / "run.py").read_bytes() == b"x = 1" + end
    assert (await session.files.open_text("run.py")).base.lines


@pytest.mark.parametrize("path", ["run.py", "tool.sh", "link", PICTURE])
async def test_lines_that_change_after_such_a_change_are_shown(
    forms: Path, settings: Settings, endpoint: Endpoint, path: str
) -> None:
    """An undecided row does not hide them; it gives way where both ends are texts."""
    place = forms / path
    before = _state(place)
    async with await PairingSession.open(
        forms, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        _make(place, (b"#!/bin/sh\n", path == "run.py"))
        await session.review.changed({path})
        _make(place, (b"#!/bin/sh\nx = 1\n", False))
        await session.review.changed({path})
        (hunk,) = session.hunks.undecided()
        by_lines = {"run.py": ("#!/bin/sh",), "tool.sh": ("x = 1",)}
        if path in by_lines:
            assert hunk.new == by_lines[path]
        else:
            assert hunk.new[0].startswith("text file, 16 bytes")
        assert await session.decisions.reject(hunk.id)
        assert place.is_symlink() or place.read_bytes() == (
            b"x = 1\n" if path == "run.py" else OLD if path == PICTURE else b"#!/bin/sh\n"
        )
        if path not in by_lines:
            assert _state(place) == before
        assert not session.hunks.undecided()


async def test_lines_beside_a_chmod_come_back_after_a_resume(
    root: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        (root / "run.py").chmod(0o755)
        await session.review.changed({"run.py"})
        (row,) = session.hunks.undecided()
        assert "executable" in row.new[0]
        hunk = await _written(session, b"x = 2\n", "run.py")
        assert (hunk.old, hunk.new) == (("x = 1",), ("x = 2",))
        assert row.state is HunkState.SUPERSEDED
        told = [notice.text for notice in session.status.notices]
        assert any("permissions (it is executable now)" in text for text in told)
    journal = Journal.latest(state, root)
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False, resume=journal, review=True
    ) as session:
        await Witness(session).until(lambda: session.review.on)
        (hunk,) = session.hunks.undecided()
        assert (hunk.old, hunk.new) == (("x = 1",), ("x = 2",))
        assert await session.decisions.reject(hunk.id)
        assert (root / "run.py").read_bytes() == b"x = 1\n"


async def test_a_model_may_write_once_it_is_decided(session: PairingSession, root: Path) -> None:
    (root / "run.py").chmod(0o755)
    await session.review.changed({"run.py"})
    (hunk,) = session.hunks.undecided()
    await session.decisions.accept(hunk.id)
    proposal = await session.files.open_text("run.py")
    assert proposal.base.lines == ("x = 1",)
    assert _state(root / "run.py") == (b"x = 1\n", True)


async def test_a_change_in_the_way_of_hunks_is_told(session: PairingSession, root: Path) -> None:
    (hunk,) = [await _written(session, b"x = 2\n", "run.py")]
    (root / "run.py").chmod(0o755)
    await session.review.changed({"run.py"})
    assert session.hunks.undecided() == [hunk], "it keeps its place"
    told = (
        "run.py: another program changed the permissions (it is executable now); no hunk shows "
        "that."
    )
    assert [n.text for n in session.status.notices if "no hunk" in n.text] == [told]
    assert await session.decisions.reject(hunk.id)
    assert _state(root / "run.py") == (b"x = 1\n", False), "it goes back with the last hunk"


async def test_a_chmod_is_noticed(root: Path, settings: Settings, endpoint: Endpoint) -> None:
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        seen = Witness(session)
        await seen.until(lambda: session.external.watching == "native")
        await session.review.switch_on(since_commit=True)
        await session.files.open("run.py")
        (root / "run.py").chmod(0o755)
        await seen.until(lambda: session.hunks.undecided("run.py"))
        (hunk,) = session.hunks.undecided()
        assert await session.decisions.reject(hunk.id)
        (root / PICTURE).chmod(0o755)
        await seen.until(lambda: session.hunks.undecided(PICTURE))
        assert not session.hunks.undecided("run.py"), "our own chmod is no news"


async def test_a_mode_that_changes_at_the_moment_of_a_decision_stays(
    session: PairingSession, root: Path
) -> None:
    place = root / "run.py"
    place.chmod(0o755)
    await session.review.changed({"run.py"})
    (hunk,) = session.hunks.undecided()
    place.write_bytes(b"x = 1\r\n")
    assert not await session.decisions.reject(hunk.id)
    assert _state(place) == (b"x = 1\r\n", True)
    (waits,) = session.hunks.undecided()
    assert await session.decisions.reject(waits.id)
    assert _state(place) == (b"x = 1\n", False)


async def test_modes_that_git_does_not_trust_are_not_reviewed(
    root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    git(root, "config", "core.fileMode", "false")
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        (root / "run.py").chmod(0o755)
        await session.review.changed({"run.py"})
        assert not session.hunks.undecided()


async def test_a_folder_without_git_has_such_rows_too(
    tmp_path: Path, settings: Settings, endpoint: Endpoint
) -> None:
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "link").symlink_to("run.sh")
    async with await PairingSession.open(
        tmp_path, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=False)
        (tmp_path / "run.sh").chmod(0o755)
        for target in ("one", "two"):
            _link(tmp_path / "link", target)
            await session.review.changed({"run.sh", "link"})
        for hunk in session.hunks.undecided():
            assert await session.decisions.reject(hunk.id)
        assert _state(tmp_path / "run.sh") == (b"#!/bin/sh\n", False)
        assert _state(tmp_path / "link") == ("link", "run.sh")


@pytest.mark.parametrize("name", ["line ends", "program", "to a link", "other target", "no link"])
async def test_such_a_row_comes_back_after_a_kill(
    forms: Path, settings: Settings, endpoint: Endpoint, state: Path, name: str
) -> None:
    path, change, _, _ = CHANGES[name]
    place = forms / path
    before = _state(place)
    options = {"settings": settings, "endpoint": endpoint, "watch": False}
    async with await PairingSession.open(forms, **options) as session:
        await session.review.switch_on(since_commit=True)
        change(place)
        after = _state(place)
        await session.review.changed({path})
        (hunk,) = session.hunks.undecided()
    for put_back in (True, False):
        journal = Journal.latest(state, forms)
        assert journal is not None
        async with await PairingSession.open(
            forms, **options, resume=journal, review=True
        ) as session:
            await Witness(session).until(lambda: session.review.on)
            if put_back:
                assert [h.id for h in session.hunks.undecided()] == [hunk.id]
                assert await session.decisions.reject(hunk.id)
                assert _state(place) == before
            else:
                assert not session.hunks.undecided()
                assert await session.decisions.undo() == (hunk.id,)
                assert _state(place) == after


async def test_what_changed_while_nobody_looked_waits_after_a_resume(
    forms: Path, settings: Settings, endpoint: Endpoint, state: Path
) -> None:
    options = {"settings": settings, "endpoint": endpoint, "watch": False}
    async with await PairingSession.open(forms, **options) as session:
        await session.review.switch_on(since_commit=True)
        (forms / "run.py").write_text("x = 2\n")
        await session.review.changed({"run.py"})
    (forms / "tool.sh").chmod(0o644)
    _link(forms / "link", "tool.sh")
    journal = Journal.latest(state, forms)
    assert journal is not None
    async with await PairingSession.open(forms, **options, resume=journal, review=True) as session:
        await Witness(session).until(lambda: len(session.hunks.undecided()) == 3)
        await session.decisions.reject_all()
        assert git(forms, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("program", "100755"),
        ("no program", "100644"),
        ("other target", "120000"),
        ("new link", "120000"),
        ("to a link", "120000"),
        ("to a file", "100644"),
        ("line ends", "100644"),
    ],
)
async def test_such_a_change_is_committed(
    forms: Path, settings: Settings, endpoint: Endpoint, name: str, mode: str
) -> None:
    path, change, _, _ = CHANGES[name]
    async with await PairingSession.open(
        forms, settings=settings, endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        change(forms / path)
        await session.review.changed({path})
        (hunk,) = session.hunks.undecided()
        await session.decisions.accept(hunk.id)
        (change_now,) = (await session.commit.look()).files
        assert (change_now.path, change_now.state) == (path, "unstaged")
        await session.commit.stage(path)
        assert git(forms, "ls-files", "-s", path).startswith(mode)
        (change_now,) = (await session.commit.look()).files
        assert change_now.state == "staged"
        await session.commit.unstage(path)
        (change_now,) = (await session.commit.look()).files
        assert change_now.state == "unstaged"
        assert git(forms, "diff", "--cached", "--name-only") == ""
        await session.commit.stage(path)
        await session.commit.commit("Change it")
        assert git(forms, "status", "--porcelain") == ""


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("name", ["program", "no program", "line ends", "mark"])
async def test_such_a_change_is_committed_after_lines_are_lines_again(
    forms: Path, settings: Settings, endpoint: Endpoint, state: Path, name: str, resumed: bool
) -> None:
    """Also with lines that were kept and others that wait, and after a resume."""
    path, change, _, _ = CHANGES[name]
    place = forms / path
    first = _state(place)
    options = {"settings": settings, "endpoint": endpoint, "watch": False}
    session = await PairingSession.open(forms, **options)
    try:
        await session.review.switch_on(since_commit=True)
        change(place)
        kept = _state(place)
        await session.review.changed({path})
        (hunk,) = session.hunks.undecided()
        await session.decisions.accept(hunk.id)
        await session.files.open_text(path)
        if resumed:
            await session.close()
            session = await PairingSession.open(
                forms, **options, resume=Journal.latest(state, forms), review=True
            )
        (change_now,) = (await session.commit.look()).files
        assert (change_now.path, change_now.state) == (path, "unstaged")
        assert change_now.program == {"program": True, "no program": False}.get(name)
        await session.commit.stage(path)
        assert git(forms, "status", "--porcelain") == f"M  {path}\n"
        await session.commit.unstage(path)
        assert git(forms, "status", "--porcelain") == f" M {path}\n"

        end = b"\r\n" if name == "line ends" else b"\n"
        more = place.read_bytes() + b"y = 2" + end
        lines = await _written(session, more, path)
        await session.decisions.accept(lines.id)
        await session.commit.stage(path)
        assert git(forms, "status", "--porcelain") == f"M  {path}\n"
        await session.commit.unstage(path)
        assert git(forms, "status", "--porcelain") == f" M {path}\n"

        await session.decisions.reject(lines.id)
        assert _state(place) == kept != first
        waits = await _written(session, b"z = 3" + end + place.read_bytes(), path)
        await session.commit.stage(path)
        assert git(forms, "show", f":{path}").encode() == kept[0].replace(b"\r\n", b"\n")
        assert git(forms, "ls-files", "-s", path).startswith("100755" if kept[1] else "100644")
        assert not waits.decided
    finally:
        await session.close()


@pytest.mark.fuzz
@given(seed=st.integers(0, 2**32))
@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_only_what_was_there_is_ever_written(
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
    endpoint: Endpoint,
) -> None:
    """In any order, a file has only states that some program gave it, and all of it can go back."""
    rng = random.Random(seed)
    root = make_repo(tmp_path_factory.mktemp("whole"), {"run.py": "x = 1\n"})
    place = root / "a.bin"
    contents = [OLD, NEW, b"\0", b"other text\n", b"other text\r\n", b"other text", b"more\ntext\n"]
    states: list[State] = [None, ("link", "run.py"), ("link", "nowhere")]
    states += [(data, program) for data in contents for program in (False, True)]
    first = rng.choice(states)
    if first is not None:
        _make(place, first)
        git(root, "add", ".")
        git(root, "commit", "-qm", "file")
    options = {"settings": Settings(), "endpoint": endpoint, "watch": False}
    session = await PairingSession.open(root, **options)
    await session.review.switch_on(since_commit=True)

    async def write() -> None:
        state = rng.choice(states)
        _make(place, state)
        if rng.random() < 0.8:
            await session.review.changed({"a.bin"})
        assert _state(place) == state, "looking writes nothing"

    async def chmod() -> None:
        now = _state(place)
        if now is not None and now[0] != "link":
            _make(place, (now[0], not now[1]))
            await session.review.changed({"a.bin"})

    async def decide() -> None:
        before = _state(place)
        for hunk in session.hunks.undecided()[:1]:
            if rng.random() < 0.4:
                await session.decisions.accept(hunk.id)
                assert _state(place) == before, "keeping writes nothing"
            else:
                await session.decisions.reject(hunk.id)

    async def travel() -> None:
        await rng.choice([session.decisions.undo, session.decisions.redo])()

    async def read() -> None:
        """A model is about to write into it."""
        before = _state(place)
        with contextlib.suppress(UserError):
            await session.files.open_text("a.bin")
        assert _state(place) == before

    async def resume() -> None:
        nonlocal session
        await session.review.changed({"a.bin"})
        journal, before = session.journal.path, _state(place)
        live = [(h.id, h.state, h.old, h.new) for h in session.hunks if h.live]
        if journal is None:
            return
        notices.extend(session.status.notices)
        await session.close()
        session = await PairingSession.open(root, **options, resume=journal, review=True)
        await Witness(session).until(lambda: session.review.on)
        assert _state(place) == before, "coming back writes nothing"
        assert [(h.id, h.state, h.old, h.new) for h in session.hunks if h.live] == live

    def told() -> bool:
        """Whether a notice has said that something stays that no hunk shows."""
        return any("no hunk shows" in notice.text for notice in notices + session.status.notices)

    done: list[str] = []
    notices: list[Notice] = []
    try:
        for _ in range(rng.randint(2, 12)):
            step = rng.choice([write, write, chmod, decide, decide, travel, read, resume])
            done.append(step.__name__)
            await step()
            held = _state(place)
            done[-1] += f" {held}"
            assert held in states or told(), "nothing else is ever written"
        await session.review.changed({"a.bin"})
        for hunk in session.hunks.undecided():
            await session.decisions.reject(hunk.id)
        assert not session.hunks.undecided(), "every hunk can be put back"
        gone = (HunkState.REJECTED, HunkState.SUPERSEDED)
        if all(hunk.state in gone for hunk in session.hunks) and not told():
            assert _state(place) == first
    except BaseException as error:
        error.add_note(f"seed {seed}: first {first}; {done}; {notices + session.status.notices}")
        raise
    finally:
        await session.close()


async def test_a_file_does_not_get_the_mode_of_an_earlier_one_of_its_name(
    session: PairingSession,
) -> None:
    """A program was made and put back; an empty file of that name is brought back as it was."""
    place = session.root / "tool"
    place.touch(0o755)
    assert await session.decisions.reject((await _written(session, b"one\n", "tool")).id)
    assert not place.exists()
    assert await session.decisions.accept((await _written(session, b"", "tool")).id)
    assert not place.stat().st_mode & stat.S_IXUSR
    assert await session.decisions.reject((await _written(session, None, "tool")).id)
    assert place.read_bytes() == b""
    assert not place.stat().st_mode & stat.S_IXUSR
