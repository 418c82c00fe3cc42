"""A full disk: files stay, none is left half written, and work goes on once there is space."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from midstream.workspace import atomic, transaction
from midstream.workspace.checkpoints import FolderStore, SavedFile
from midstream.workspace.content import content_digest
from midstream.workspace.errors import StateFolderError, WriteFailedError
from midstream.workspace.files import Workspace
from midstream.workspace.journal import Journal, sessions
from tests.helpers.full_disk import full_disk
from tests.helpers.waiting import until

OLD = content_digest(b"old")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def names_below(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_a_write_leaves_the_old_content_and_nothing_besides(root: Path) -> None:
    (root / "f").write_bytes(b"old")
    workspace = Workspace(root)
    for _ in range(2):
        with full_disk(), pytest.raises((StateFolderError, WriteFailedError)):
            workspace.write("f", b"new", expected=OLD)
        assert (root / "f").read_bytes() == b"old"
        assert names_below(root) == {"f"}
        assert names_below(workspace.state) <= {"lock"}
    workspace.write("f", b"new", expected=OLD)
    assert (root / "f").read_bytes() == b"new"


def test_a_record_that_cannot_be_made_is_not_left_open(root: Path) -> None:
    plan = transaction.plan_change(f"{root}/f", None, b"new")
    pending = root.parent / "pending"
    transaction._IntentRecord(pending, [plan]).close(delete=True)
    before = open_files()
    for _ in range(3):
        with full_disk(), pytest.raises(OSError, match="too large"):
            transaction._IntentRecord(pending, [plan])
    assert names_below(pending) == {"lock"}
    assert open_files() == before


def test_half_a_checkpoint_takes_no_space(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "kept")
    for _ in range(3):
        with full_disk(1000), pytest.raises(OSError, match="too large"):
            store.save(
                "batch", [SavedFile("a", b"x" * 900, None), SavedFile("b", b"x" * 2000, None)]
            )
    assert names_below(tmp_path) == set()
    saved = store.save("batch", [SavedFile("a", b"x", None)])
    assert [one.id for one in store.checkpoints()] == [saved.id]


def test_a_file_of_our_own_stays_as_it_was(tmp_path: Path) -> None:
    atomic.overwrite(tmp_path / "settings", b"old")
    with full_disk(), pytest.raises(OSError, match="too large"):
        atomic.overwrite(tmp_path / "settings", b"new")
    assert (tmp_path / "settings").read_bytes() == b"old"
    assert names_below(tmp_path) == {"settings"}


def test_a_journal_that_cannot_be_begun_is_none(tmp_path: Path, root: Path) -> None:
    threads = threading.active_count()
    with full_disk(), pytest.raises(OSError, match="too large"):
        Journal.create(tmp_path, root)
    assert sessions(tmp_path, root) == []
    assert threading.active_count() == threads


def test_a_journal_tells_once_that_it_cannot_be_written(tmp_path: Path, root: Path) -> None:
    journal, told = Journal.create(tmp_path, root), list[str]()
    journal.on_trouble = lambda: told.append(journal.trouble)
    with full_disk():
        for number in range(3):
            journal.append("step", n=number)
            until(lambda: bool(told))
        assert "too large" in journal.trouble
    journal.flush()
    assert journal.trouble == ""
    assert len(told) == 1
    journal.close()
    assert [entry.data for entry in Journal.read(journal.path)] == [{"n": n} for n in range(3)]


@pytest.mark.parametrize("room", [0, 10, 200])
def test_a_journal_loses_no_part_while_the_next_one_cannot_be_begun(
    tmp_path: Path, root: Path, room: int
) -> None:
    journal = Journal.create(tmp_path, root, max_bytes=2000, max_parts=4)
    for number in range(40):  # The journal has more than one part.
        journal.append("step", n=number, text="x" * 60)
        journal.flush()
    assert len(sessions(tmp_path, root)) == 1
    with full_disk(room):
        for number in range(40, 60):
            journal.append("step", n=number, text="x" * 60)
            with pytest.raises(OSError, match=r"too large|No space"):
                journal.flush()
    journal.flush()
    journal.close()
    assert [entry.data["n"] for entry in Journal.read(journal.path)] == list(range(60))
