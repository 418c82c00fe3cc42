"""Pipes and devices in place of files: nothing waits for a writer, nothing is read without end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from midstream.commands.apply import Reader
from midstream.edits.apply import apply_reply
from midstream.pairing.journal.journal import Replay, ResumeError, earlier_sessions, summarize
from midstream.resources import read_small
from midstream.settings.store import ConfigFileError, change_file
from midstream.workspace import atomic, repo
from midstream.workspace.checkpoints import FolderStore
from midstream.workspace.drafts import Drafts, write_drafts
from midstream.workspace.errors import StateFolderError
from midstream.workspace.files import Workspace
from midstream.workspace.journal import Journal, sessions
from midstream.workspace.paths import root_state_dir
from midstream.workspace.repo import (
    GitFailedError,
    find_repository,
    recent_subjects,
    work_tree_changes,
)

Put = Callable[[Path], None]


def put_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def put_device(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


EACH = pytest.mark.parametrize("put", [put_pipe, put_device])


@EACH
@pytest.mark.parametrize(
    "name", ["config", "HEAD", "index", "packed-refs", "info/exclude", "objects/info/alternates"]
)
def test_a_repository_with_no_regular_file_in_place_of_one_is_not_asked(
    repository: Path, put: Put, name: str
) -> None:
    put(repository / ".git" / name)
    assert find_repository(repository) is None
    with pytest.raises(GitFailedError, match=r"\.git/.* is no regular file"):
        repo.run_git(repository, ["status"])
    assert recent_subjects(repository) == []
    workspace = Workspace(repository)
    workspace.write("a.py", b"a = 2\n", expected=workspace.digest("a.py"))
    assert (repository / "a.py").read_bytes() == b"a = 2\n"


@EACH
def test_a_pipe_in_place_of_the_repository(repository: Path, put: Put) -> None:
    shutil.rmtree(repository / ".git")
    put(repository / ".git")
    assert find_repository(repository) is None
    assert Workspace(repository).read("a.py") == b"a = 1\n"


@pytest.mark.parametrize("name", [".gitignore", "src/.gitignore", ".gitattributes", ".git/inc"])
def test_git_that_waits_for_a_pipe_is_ended_and_not_asked_again(
    repository: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(repo, "STUCK_S", 1.0)
    if name == ".git/inc":
        repo.run_git(repository, ["config", "include.path", "inc"])
    put_pipe(repository / name)
    (repository / "src/new.py").write_text("")
    (repository / "a.py").write_text("a = 2\n")
    for _ in range(20):
        with pytest.raises(GitFailedError, match=r"a pipe among the files"):
            repo.run_git(repository, ["status"])
    # A file may have been there: "unknown" is not the same as "none".
    if name != ".git/inc":
        with pytest.raises(GitFailedError):
            work_tree_changes(repository, repo.RepositoryPlace(*[repository] * 3))


@EACH
def test_a_journal_that_is_none(tmp_path: Path, root: Path, put: Put) -> None:
    state = tmp_path / "state"
    journal = Journal.create(state, root)
    journal.append("x", n=1)
    journal.close()
    second = Journal.create(state, root)
    second.close()
    put(journal.path)
    assert [info.path for info in sessions(state, root)] == [second.path]
    assert [info.path for info in earlier_sessions(root)] == [second.path]
    with pytest.raises(ResumeError, match="cannot be read"):
        Replay.read(journal.path)
    assert "cannot be read" in summarize(journal.path).trouble
    with pytest.raises(OSError, match="no regular file"):
        Journal.open(journal.path)
    # A later part is read as the first one is.
    put(second.path.with_suffix(".1.jsonl"))
    with pytest.raises(OSError, match="no regular file"):
        list(Journal.read(second.path))
    with pytest.raises(OSError, match="no regular file"):
        Journal.open(second.path)


@EACH
def test_a_record_that_is_none_is_set_aside(root: Path, put: Put) -> None:
    workspace = Workspace(root)
    pending = workspace.state / "pending"
    pending.mkdir(parents=True)
    put(pending / "1-1-aa.open")
    assert "cannot be read" in " ".join(Workspace(root).recovery)
    workspace.write("new", b"x", expected=None)
    assert (root / "new").read_bytes() == b"x"


@EACH
def test_a_checkpoint_that_is_none_counts_as_missing(tmp_path: Path, root: Path, put: Put) -> None:
    (root / "a").write_bytes(b"old")
    workspace = Workspace(root)
    workspace.write("a", b"new", expected=workspace.digest("a"))
    (description,) = (workspace.state / "checkpoints").glob("*/*/checkpoint.json")
    put(description.with_name("0"))
    with pytest.raises(KeyError):
        FolderStore(workspace.state / "checkpoints").load(description.parent.name)
    with pytest.raises(StateFolderError, match="no longer kept"):
        workspace.undo_write()
    assert (root / "a").read_bytes() == b"new"


def test_no_pipe_or_device_is_replaced(tmp_path: Path, root: Path) -> None:
    """A write replaces the target of a link; for ``/dev/null`` that would break the system."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = root_state_dir(tmp_path / "state", root) / "drafts.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(pipe)
    write_drafts(tmp_path / "state", root, Drafts("text"))
    with pytest.raises(OSError, match="no regular file"):
        atomic.overwrite(pipe, b"x")
    with pytest.raises(ConfigFileError, match="no regular file"):
        change_file(pipe, {("theme",): "x"})
    assert pipe.is_fifo()


def test_no_pipe_is_waited_for_to_make_room(root: Path) -> None:
    os.mkfifo(root / "a.py")
    (root / "b.py/empty").mkdir(parents=True)
    workspace = Workspace(root)
    for name in ("a.py", "b.py"):
        workspace.make_room(name)
    assert (root / "a.py").is_fifo()
    assert not (root / "b.py").exists()


@EACH
def test_small_files_are_regular_ones(tmp_path: Path, put: Put) -> None:
    put(tmp_path / "x")
    with pytest.raises(OSError, match="no regular file"):
        read_small(tmp_path / "x")


@EACH
def test_a_new_file_beside_what_is_no_file_any_more(repository: Path, put: Put) -> None:
    """A model names the new file by its whole path."""
    put(repository / "a.py")
    reader = Reader(Workspace(repository))
    reply = f"--- /dev/null\n+++ {repository}/new.py\n@@ -0,0 +1 @@\n+one\n"
    result = reader.conformed(apply_reply(reply, reader, find=reader.ending_in))
    assert list(result.changes.values()) == [b"one\n"]
