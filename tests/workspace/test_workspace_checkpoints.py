"""Checkpoints in the repository and as copies: exact bytes back, nothing of the user's touched."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from midstream.workspace import checkpoints as module
from midstream.workspace.files import (
    StaleFileError,
    Workspace,
    content_digest,
)
from tests.helpers.repositories import git

ODD = 'odd "näme"\n\t\\.py'


@pytest.fixture(params=["git", "copies", "git-subfolder"])
def workspace(request: pytest.FixtureRequest, root: Path) -> Workspace:
    if request.param == "copies":
        return Workspace(root)
    folder = request.getfixturevalue("repository")
    if request.param == "git":
        return Workspace(folder)
    return Workspace(folder / "src")


def write(workspace: Workspace, rel: str, data: bytes | None) -> str:
    """Write over whatever is there; returns the checkpoint's id."""
    digest = workspace.digest(rel)
    return workspace.write_all({rel: data}, {rel: digest}, f"{rel} <- {data!r}").id


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


def test_undo_goes_back_through_all_states(workspace: Workspace) -> None:
    root = workspace.root
    (root / "keep").write_bytes(b"user's own")
    states = [tree(root)]
    for rel, data in (
        ("f", b"1\r\n\0\xff"),
        ("d/e/g", b""),
        (ODD, b"odd"),
        ("f", b"2"),
        ("d/e/g", None),
        ("f", None),
        ("d/e/g", b"again"),
    ):
        write(workspace, rel, data)
        states.append(tree(root))
    for before in reversed(states[:-1]):
        workspace.undo_write()
        assert tree(root) == before
    assert (root / "keep").read_bytes() == b"user's own"


def test_checkpoints_outlive_the_process(workspace: Workspace) -> None:
    first = write(workspace, "f", b"1")
    second = write(workspace, "f", b"2")
    again = Workspace(workspace.root)
    assert [item.label for item in again.log.checkpoints()] == ["f <- b'1'", "f <- b'2'"]
    write(again, "g", b"3")
    assert len(workspace.log.checkpoints()) == 3
    log = Workspace(workspace.root).log
    assert [[change.before for change in log.load(name)] for name in (first, second)] == [
        [None],
        [b"1"],
    ]


def test_an_undo_refuses_to_overwrite_the_user(workspace: Workspace) -> None:
    workspace.write_all({"f": b"1", "g": b"1"}, {"f": None, "g": None}, "both")
    (workspace.root / "f").write_bytes(b"user")
    before = tree(workspace.root)
    with pytest.raises(StaleFileError):
        workspace.undo_write()
    assert tree(workspace.root) == before


def test_a_user_edit_between_two_batches_is_in_a_checkpoint(workspace: Workspace) -> None:
    write(workspace, "f", b"1")
    (workspace.root / "f").write_bytes(b"user")
    write(workspace, "f", b"2")
    workspace.undo_write()
    assert (workspace.root / "f").read_bytes() == b"user"


def test_nothing_of_the_users_repository_changes(repository: Path) -> None:
    (repository / "staged.py").write_text("s\n")
    git(repository, "add", "staged.py")
    (repository / "a.py").write_text("dirty\n")

    def picture() -> dict[str, object]:
        return {
            "index": (repository / ".git/index").read_bytes(),
            "head": (repository / ".git/HEAD").read_bytes(),
            "branches": git(repository, "for-each-ref", "refs/heads", "refs/tags", "refs/stash"),
            "status": git(repository, "status", "--porcelain"),
            "reflog": git(repository, "reflog"),
        }

    before = picture()
    workspace = Workspace(repository)
    write(workspace, "a.py", b"ours\n")
    write(workspace, "new/x.py", b"x\n")
    workspace.undo_write()
    workspace.undo_write()
    assert workspace.log.mode == "git"
    assert picture() == before
    refs = git(repository, "for-each-ref", "--format=%(refname)", "refs/midstream").split()
    assert len(refs) == 1
    git(repository, "fsck", "--strict")
    git(repository, "gc", "-q", "--prune=now")
    assert len(workspace.log.checkpoints()) == 4
    command = (
        "git for-each-ref --format='delete %(refname)' refs/midstream | git update-ref --stdin"
    )
    subprocess.run(command, shell=True, cwd=repository, check=True)
    assert workspace.log.checkpoints() == []


def test_checkpoints_before_the_first_commit_and_in_a_work_tree(root: Path, tmp_path: Path) -> None:
    git(root, "init", "-q")
    workspace = Workspace(root)
    write(workspace, "f", b"1")
    assert workspace.log.mode == "git"
    assert workspace.undo_write() == ["f"]
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    other = Workspace(tmp_path / "tree")
    write(other, "f", b"2")
    assert other.log.mode == "git"
    assert len(other.log.checkpoints()) == 1
    assert len(workspace.log.checkpoints()) == 2
    assert other.undo_write() == ["f"]


def test_a_sha256_repository(root: Path) -> None:
    git(root, "init", "-q", "--object-format=sha256")
    workspace = Workspace(root)
    write(workspace, "f", b"1")
    write(workspace, "f", b"2")
    assert workspace.log.mode == "git"
    workspace.undo_write()
    assert (root / "f").read_bytes() == b"1"


def test_copies_take_over_when_the_repository_breaks(repository: Path) -> None:
    workspace = Workspace(repository)
    write(workspace, "f", b"1")
    write(workspace, "f", b"2")
    shutil.rmtree(repository / ".git/objects")
    (repository / ".git/objects").write_text("broken")
    write(workspace, "f", b"3")
    assert workspace.log.mode.startswith("copies: ")
    assert workspace.undo_write() == ["f"]
    assert (repository / "f").read_bytes() == b"2"


def test_without_git_copies_are_kept(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    workspace = Workspace(repository)
    write(workspace, "f", b"1")
    assert workspace.log.mode == "copies: no git repository"
    assert workspace.undo_write() == ["f"]
    assert workspace.files() == [".gitignore", "a.py", "src/b.py"]


def test_old_sessions_are_dropped(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_SESSIONS", 3)
    names = iter(f"20260101T00000{n}-aaaaaa" for n in range(99))
    monkeypatch.setattr(module, "new_session_id", lambda: next(names))
    for number in range(6):
        write(Workspace(workspace.root), "f", b"%d" % number)
    assert [item.label for item in workspace.log.checkpoints()] == [
        "f <- b'3'",
        "f <- b'4'",
        "f <- b'5'",
    ]


def test_digests_name_content() -> None:
    assert content_digest(b"") != content_digest(b"\n")
    assert len(content_digest(b"x")) == 32
