"""A folder that becomes a link while it is written to leads nothing out of the root."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from midstream.workspace import atomic, handles, transaction
from midstream.workspace.content import Entry, content_digest
from midstream.workspace.errors import StaleFileError, WorkspaceError, WriteFailedError
from midstream.workspace.files import Workspace
from midstream.workspace.repo import files_diff, repo_status, work_tree_changes
from tests.helpers.pairing import git, make_repo
from tests.helpers.system_calls import between_system_calls

linux = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")


@pytest.fixture
def outside(root: Path, tmp_path: Path) -> Path:
    """A folder beside the root with a file of the same name."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"old")
    (root / "sub").mkdir()
    (root / "sub/f").write_bytes(b"old")
    return outside


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def swap_for_link(root: Path, outside: Path) -> None:
    (root / "sub").rename(root / "moved")
    (root / "sub").symlink_to(outside, target_is_directory=True)


def restore(root: Path) -> None:
    if (root / "sub").is_symlink():
        (root / "sub").unlink()
        (root / "moved").rename(root / "sub")
    shutil.rmtree(root / "sub")
    (root / "sub").mkdir()
    (root / "sub/f").write_bytes(b"old")


WRITES: dict[str, Callable[[Workspace], object]] = {
    "replace": lambda w: w.write("sub/f", b"new", expected=content_digest(b"old")),
    "create": lambda w: w.write("sub/n", b"new", expected=None),
    "create below": lambda w: w.write("sub/deep/er/n", b"new", expected=None),
    "delete": lambda w: w.write_all({"sub/f": None}, {"sub/f": content_digest(b"old")}, "x"),
    "set a mode": lambda w: w.set_executable("sub/f", True),
    "undo": lambda w: w.undo_write(),
}


@linux
@pytest.mark.parametrize("what", WRITES)
def test_no_moment_of_a_write_follows_a_folder_out_of_the_root(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    workspace = Workspace(root)
    assert workspace.log.mode.startswith("copies")
    there = b"new" if what == "undo" else b"old"  # the text that the write would replace
    (outside / "f").write_bytes(there)
    mode = (outside / "f").stat().st_mode
    moment, refused = 0, 0
    while True:
        reached = False
        if what == "undo":
            workspace.write("sub/f", b"new", expected=content_digest(b"old"))

        def at_step(number: int, moment: int = moment) -> None:
            nonlocal reached
            if number == moment:
                reached = True
                swap_for_link(root, outside)

        with between_system_calls(at_step):
            try:
                WRITES[what](workspace)
            except WorkspaceError:
                refused += 1
        assert (outside / "f").read_bytes() == there, f"moment {moment}"
        assert (outside / "f").stat().st_mode == mode, f"moment {moment}"
        assert os.listdir(outside) == ["f"], f"moment {moment}"  # noqa: PTH208
        restore(root)
        if not reached:
            break
        moment += 1
    assert moment > 10
    assert refused


@linux
def test_a_mode_is_not_changed_behind_a_link(root: Path, outside: Path) -> None:
    workspace = Workspace(root)
    before = (outside / "f").stat().st_mode
    with handles.FolderHandles(str(root)) as open_folders:
        path = open_folders.path(f"{root}/sub/f")
        swap_for_link(root, outside)
        (root / "moved/f").unlink()
        (root / "moved/f").symlink_to(outside / "f")
        with pytest.raises(OSError, match="symbolic links"):
            atomic.change_mode(path, 0o777)
        with pytest.raises(handles.LinkedFolderError):
            handles.FolderHandles(str(root)).path(f"{root}/sub/f")
    assert (outside / "f").stat().st_mode == before
    with pytest.raises(WorkspaceError):
        workspace.write("sub/f", b"new", expected=content_digest(b"old"))


@linux
@pytest.mark.parametrize("swapped", ["project", "."])
def test_neither_the_root_nor_a_folder_above_it_is_followed_elsewhere(
    tmp_path: Path, swapped: str
) -> None:
    above = tmp_path / "above"
    root, outside = above / "project", tmp_path / "outside"
    for folder in (root, outside / "project", outside):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "f").write_bytes(b"old")
    with handles.FolderHandles(str(root)) as held:
        assert Path(held.path(f"{root}/f")).read_bytes() == b"old"
    place = above / swapped
    place.rename(tmp_path / "moved")
    place.symlink_to(outside, target_is_directory=True)
    with handles.FolderHandles(str(root)) as held, pytest.raises(handles.LinkedFolderError):
        held.path(f"{root}/f")


@linux
@pytest.mark.parametrize("read", [Workspace.read, Workspace.peek, Workspace.look])
def test_no_moment_of_reading_follows_a_folder_out_of_the_root(
    root: Path, outside: Path, read: Callable[[Workspace, str], bytes | Entry]
) -> None:
    workspace = Workspace(root)
    (outside / "f").write_bytes(b"secret")
    for moment in itertools.count():
        reached = False

        def at_step(number: int, moment: int = moment) -> None:
            nonlocal reached
            if number == moment:
                reached = True
                swap_for_link(root, outside)

        with between_system_calls(at_step), contextlib.suppress(WorkspaceError):
            found = read(workspace, "sub/f")
            assert (found.data if isinstance(found, Entry) else found) == b"old", moment
        if not reached:
            break
        restore(root)
    assert moment > 3


@linux
def test_no_moment_of_making_room_removes_folders_outside(root: Path, outside: Path) -> None:
    workspace = Workspace(root)
    (outside / "name/in/in").mkdir(parents=True)
    for moment in itertools.count():
        (root / "sub/name/in/in").mkdir(parents=True, exist_ok=True)
        reached = False

        def at_step(number: int, moment: int = moment) -> None:
            nonlocal reached
            if number == moment:
                reached = True
                swap_for_link(root, outside)

        with between_system_calls(at_step):
            workspace.make_room("sub/name")
        assert (outside / "name/in/in").is_dir(), f"moment {moment}"
        if not reached:
            break
        restore(root)
    assert not (root / "sub/name").exists()
    assert moment > 3


def test_the_mode_of_a_file_that_has_a_name_outside_is_not_changed(
    root: Path, outside: Path
) -> None:
    (root / "sub/f").unlink()
    (root / "sub/f").hardlink_to(outside / "f")
    mode = (outside / "f").stat().st_mode
    workspace = Workspace(root)
    with pytest.raises(WriteFailedError, match="more than one name"):
        workspace.set_executable("sub/f", True)
    assert (outside / "f").stat().st_mode == mode
    workspace.write("sub/f", b"new", expected=content_digest(b"old"))
    workspace.set_executable("sub/f", True)
    assert (outside / "f").read_bytes() == b"old"
    assert (outside / "f").stat().st_mode == mode


@linux
def test_handles_stay_below_the_root_are_few_and_are_closed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handles, "_MAX_OPEN", 3)
    for number in range(10):
        (root / f"sub{number}").mkdir()
        (root / f"sub{number}/f").write_text(f"{number}")
    (root / "file").touch()
    before = open_files()
    with handles.FolderHandles(str(root)) as held:
        for number in range(10):
            assert Path(held.path(f"{root}/sub{number}/f")).read_text() == f"{number}"
            assert open_files() <= before + 3
        with pytest.raises(handles.LinkedFolderError):
            held.path(f"{root.parent}/beside/f")
        with pytest.raises(NotADirectoryError) as refused:
            held.path(f"{root}/file/f")
        assert not isinstance(refused.value, handles.LinkedFolderError), "it is no link"
    assert open_files() == before


def test_a_folder_that_is_a_link_is_news_for_a_write(root: Path, outside: Path) -> None:
    swap_for_link(root, outside)
    with pytest.raises(StaleFileError), transaction._explained("sub/f"):
        handles.FolderHandles(str(root)).path(f"{root}/sub/f")


@pytest.mark.parametrize("scope", ["--local", "--worktree"])
@pytest.mark.parametrize(
    "settings",
    [
        {"core.fsmonitor": "EVIL"},
        {"filter.x.clean": "EVIL", "filter.x.smudge": "EVIL", "filter.x.required": "true"},
        {"filter.x=y.process": "EVIL", "filter.x=y.required": "true"},
        {"diff.external": "EVIL", "diff.x.command": "EVIL", "diff.x.textconv": "EVIL"},
        {"core.hooksPath": "HOOKS", "log.showSignature": "true", "gpg.program": "EVIL"},
    ],
)
def test_opening_a_folder_runs_nothing_that_its_repository_names(
    tmp_path: Path, evil: Path, ran: Path, settings: dict[str, str], scope: str
) -> None:
    root = make_repo(tmp_path / "work", {"a.txt": "one\n"})
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "pre-commit", "post-checkout"):
        (hooks / name).symlink_to(evil)
    git(root, "config", "extensions.worktreeConfig", "true")
    for name, value in settings.items():
        given = value.replace("EVIL", str(evil)).replace("HOOKS", str(hooks))
        git(root, "config", scope, name, given)
    (root / ".gitattributes").write_text("* filter=x diff=x\n*.txt filter=x=y\n")
    (root / "a.txt").write_text("one\ntwo\n")
    ran.unlink(missing_ok=True)
    workspace = Workspace(root)
    assert "a.txt" in workspace.files()
    status = repo_status(root)
    assert status is not None
    assert status.dirty
    assert "a.txt" in work_tree_changes(root).tracked
    assert "+two" in files_diff(root, ["a.txt"])
    workspace.ignores("a.txt")
    digest = content_digest(b"one\ntwo\n")
    workspace.write("a.txt", b"three\n", expected=digest)  # a checkpoint is made by git, too
    assert workspace.log.checkpoints()
    assert not ran.exists()
