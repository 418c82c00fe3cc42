"""Records of writes that were cut off: finished or undone once, or set aside with a sentence."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from midstream.workspace import atomic, transaction
from midstream.workspace.content import content_digest
from midstream.workspace.files import Workspace
from tests.helpers.system_calls import between_system_calls


@pytest.fixture
def two_files(root: Path) -> None:
    for name in ("a", "b"):
        (root / name).write_bytes(b"old")


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed(write: Callable[[], object]) -> None:
    """Write in a process that is killed before it is done."""
    child = os.fork()
    if not child:
        try:
            write()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def killed_write(workspace: Workspace, batch: dict[str, bytes], after: int) -> None:
    """Write a batch in a process that is killed when so many of its files were exchanged."""
    expected = {name: workspace.digest(name) for name in batch}

    def write() -> None:
        exchange, left = transaction._exchange, [after]

        def until_then(plan: transaction.PlannedWrite) -> None:
            if left[0] == 0:
                die()
            left[0] -= 1
            exchange(plan)

        transaction._exchange = until_then
        transaction._IntentRecord.commit = die  # type: ignore[method-assign]
        workspace.write_all(batch, expected, "batch")

    killed(write)


@pytest.mark.usefixtures("two_files")
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_batch_that_has_replaced_a_file_is_finished(root: Path, after: int) -> None:
    killed_write(Workspace(root), {"a": b"new", "b": b"new"}, after)
    again = Workspace(root)
    wanted = b"new" if after else b"old"
    assert [(root / name).read_bytes() for name in ("a", "b")] == [wanted, wanted]
    assert sorted(os.listdir(root)) == ["a", "b"]  # noqa: PTH208
    assert ("is finished" in " ".join(again.recovery)) == (after == 1)
    # Only once: the record says nothing about later changes.
    (root / "a").write_bytes(b"old")
    assert Workspace(root).recovery == []
    assert (root / "a").read_bytes() == b"old"


@pytest.mark.usefixtures("two_files")
def test_a_batch_that_failed_is_undone_also_by_the_next_process(root: Path) -> None:
    """One file could not be written, and the process was killed before it had undone the other."""
    workspace = Workspace(root)
    expected = {name: workspace.digest(name) for name in ("a", "b")}

    def write() -> None:
        exchange = transaction._exchange

        def fails(plan: transaction.PlannedWrite) -> None:
            if plan.target.endswith("/b"):
                raise OSError(5, "Input/output error")
            exchange(plan)

        transaction._exchange = fails
        transaction._roll_back = die
        workspace.write_all({"a": b"new", "b": b"new"}, expected, "batch")

    killed(write)
    assert (root / "a").read_bytes() == b"new"
    assert Workspace(root).recovery == []
    assert [(root / name).read_bytes() for name in ("a", "b")] == [b"old", b"old"]
    assert sorted(os.listdir(root)) == ["a", "b"]  # noqa: PTH208


@pytest.mark.usefixtures("two_files")
def test_what_was_accepted_is_not_rolled_back_late(root: Path) -> None:
    """Others have gone on with the folder before it is opened again."""
    killed_write(Workspace(root), {"a": b"new", "b": b"new"}, 1)
    (root / "b").write_bytes(b"user's")
    workspace = Workspace(root)
    workspace.write("c", b"1", expected=None)
    assert (root / "a").read_bytes() == b"new"
    assert (root / "b").read_bytes() == b"user's"
    assert sorted(os.listdir(root)) == ["a", "b", "c"]  # noqa: PTH208


def test_what_a_failing_disk_left_is_finished_the_next_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails once while a folder is opened after a kill, at any system call."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    for step in itertools.count():
        (root / "a").write_bytes(b"old")
        (root / "n").unlink(missing_ok=True)
        killed_write(Workspace(root), {"a": b"new", "n": b"new"}, 1)
        reached = False

        def fail(number: int, step: int = step) -> None:
            nonlocal reached
            if number == step:
                reached = True
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        with between_system_calls(fail):
            Workspace(root)
        again = Workspace(root)
        assert [(root / name).read_bytes() for name in ("a", "n")] == [b"new", b"new"], step
        assert sorted(os.listdir(root)) == ["a", "n"], step  # noqa: PTH208
        assert os.listdir(again.state / "pending") == ["lock"], step  # noqa: PTH208
        if not reached:
            break
    assert step > 10


PLAN = {"target": "TARGET", "token": "ab", "before": None, "after": None, "folders": []}
UNREADABLE = {
    "empty": b"",
    "torn": b'[{"target": "/tmp/x", "tok',
    "zeros": b"\0" * 200,
    "lists": b"[[1]]",
    "a number": b"5",
    "nothing": b"null",
    "numbers": b"[5]",
    "a table": b'{"more": 1}',
    "deep": b"[" * 100_000,
    "newer": json.dumps([{**PLAN, "more": 1}]).encode(),
    "another folder": json.dumps([{**PLAN, "target": "/etc/passwd"}]).encode(),
    "a way out": json.dumps([{**PLAN, "token": "../../x"}]).encode(),
    "types": json.dumps([{**PLAN, "before": [1]}]).encode(),
}


@pytest.mark.parametrize("suffix", [".open", ".back", ".done", ""])
@pytest.mark.parametrize("content", [*UNREADABLE, "a folder", "a pipe", "a link"])
def test_a_record_that_cannot_be_read_blocks_nothing(root: Path, content: str, suffix: str) -> None:
    (root / "f").write_bytes(b"old")
    pending = Workspace(root).state / "pending"
    pending.mkdir(parents=True)
    record = pending / f"1-1-aa{suffix}"
    match content:
        case "a folder":
            record.mkdir()
        case "a pipe":
            os.mkfifo(record)
        case "a link":
            record.symlink_to("/dev/zero")
        case _:
            record.write_bytes(UNREADABLE[content].replace(b"TARGET", f"{root}/f".encode()))
    workspace = Workspace(root)
    (told,) = workspace.recovery
    assert "cannot be read" in told
    workspace.write("f", b"new", expected=content_digest(b"old"))
    assert (root / "f").read_bytes() == b"new"
    assert Workspace(root).recovery == [], "it is said once"


def cut_off(root: Path, name: str, suffix: str) -> Path:
    """A record of a write of a file; where the file that was replaced lies."""
    pending = Workspace(root).state / "pending"
    pending.mkdir(parents=True)
    digests = {"before": content_digest(b"old"), "after": content_digest(b"new")}
    plan = {**PLAN, **digests, "target": f"{root}/{name}"}
    (pending / f"1-1-aa{suffix}").write_text(json.dumps([plan]))
    return root / f"{atomic.TEMPORARY_PREFIX}ab{atomic.SWAP_SUFFIX}"


def put_folder(path: Path) -> None:
    path.mkdir()
    (path / "theirs").write_bytes(b"theirs")


def put_sparse_file(path: Path) -> None:
    """A file of a terabyte, as far as its size goes."""
    with path.open("wb") as stream:
        stream.truncate(1 << 40)


@pytest.mark.parametrize("suffix", [".open", ".back", ".done"])
@pytest.mark.parametrize("put", [put_folder, os.mkfifo, put_sparse_file])
def test_what_was_caught_in_an_exchange_is_not_lost(
    root: Path, put: Callable[[Path], object], suffix: str
) -> None:
    """The name belonged to no regular file when the process was killed."""
    swap = cut_off(root, "f", suffix)
    (root / "f").write_bytes(b"new")
    put(swap)
    kind = stat.S_IFMT(swap.lstat().st_mode)
    workspace = Workspace(root)
    kept = [root / name for name in os.listdir(root) if name != "f"]  # noqa: PTH208
    assert len(workspace.recovery) == len(kept)
    (found,) = kept or [root / "f"]
    assert stat.S_IFMT(found.lstat().st_mode) == kind
    assert os.listdir(found) == ["theirs"] if found.is_dir() else True  # noqa: PTH208
    workspace.write("other", b"1", expected=None)


@pytest.mark.parametrize("suffix", [".open", ".back"])
def test_a_save_that_was_caught_in_an_exchange_is_put_back(root: Path, suffix: str) -> None:
    cut_off(root, "f", suffix).write_bytes(b"theirs")
    (root / "f").write_bytes(b"new")
    assert Workspace(root).recovery == []
    assert (root / "f").read_bytes() == b"theirs"
    assert os.listdir(root) == ["f"]  # noqa: PTH208


@pytest.mark.parametrize("suffix", [".open", ".back", ".done"])
def test_a_save_is_kept_beside_a_file_whose_name_is_as_long_as_can_be(
    root: Path, suffix: str
) -> None:
    name = "é" * 127
    cut_off(root, name, suffix).write_bytes(b"theirs")
    (root / name).write_bytes(b"saved again")
    workspace = Workspace(root)
    assert len(workspace.recovery) == 1
    (kept,) = root.glob("*.midstream-kept-*")
    assert kept.name.startswith("é" * 100)
    assert kept.read_bytes() == b"theirs"
    workspace.write("other", b"1", expected=None)


def test_a_write_that_can_be_neither_finished_nor_undone_blocks_no_other(root: Path) -> None:
    """Here a folder with a file in it stands in the way; lost permissions would do the same."""
    swap = cut_off(root, "f", ".done")
    part = swap.with_suffix(atomic.PART_SUFFIX)
    put_folder(part)
    workspace = Workspace(root)
    (told,) = workspace.recovery
    assert "neither finished nor undone" in told
    workspace.write("other", b"1", expected=None)
    (part / "theirs").unlink()
    part.rmdir()
    assert Workspace(root).recovery == []
    assert os.listdir(workspace.state / "pending") == ["lock"]  # noqa: PTH208


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_meanwhile_does_not_keep_the_records_locked(root: Path) -> None:
    """Between fork and exec every child has the parent's descriptors, close-on-exec or not."""
    workspace = Workspace(root)
    workspace.write("a", b"old", expected=None)
    may_end, end = os.pipe()
    with transaction._records_locked(workspace.state / "pending", fcntl.LOCK_EX):
        child = os.fork()
        if child == 0:
            os.close(end)
            os.read(may_end, 1)
            os._exit(0)
    try:
        workspace.write("a", b"new", expected=content_digest(b"old"))
    finally:
        os.close(end)
        os.close(may_end)
        os.waitpid(child, 0)
