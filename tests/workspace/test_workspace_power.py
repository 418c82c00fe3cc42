"""A power cut: what was not flushed to the device is lost, and a batch is still whole or undone.

The model of a disk is the harshest that a system may have: a file has the bytes of its last flush,
or none, and a folder the names of its last flush.  At every flush the power may fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from midstream.workspace.content import content_digest
from midstream.workspace.files import Workspace
from midstream.workspace.journal import Journal

pytestmark = pytest.mark.system

OLD = {"a": b"old a", "sub/b": b"old b", "gone": b"old gone", "new/n": None}
NEW = {"a": b"new a", "sub/b": b"new b", "gone": None, "new/n": b"new n"}


class Device:
    """What of some folders is on the device."""

    def __init__(self, *tops: Path) -> None:
        self._tops = tops
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._folders: dict[int, bool] = {}
        self._roots = {top: top.stat().st_ino for top in tops}
        for top in tops:
            for folder, _, files in os.walk(top):
                self.flush_folder(Path(folder))
                for name in files:
                    self.flush_file(Path(folder, name))

    def flush_folder(self, folder: Path) -> None:
        entries = {entry.name: entry for entry in os.scandir(folder)}
        self._names[folder.stat().st_ino] = {name: e.inode() for name, e in entries.items()}
        for entry in entries.values():
            self._folders[entry.inode()] = entry.is_dir(follow_symlinks=False)

    def flush_file(self, path: Path) -> None:
        self._bytes[path.stat().st_ino] = path.read_bytes()

    def flush(self, descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            self.flush_folder(path)
        else:
            self.flush_file(path)

    def write_out(self, copies: dict[Path, Path]) -> None:
        """Make of the folders what is there after the power cut."""
        for top, copy in copies.items():
            shutil.rmtree(copy, ignore_errors=True)
            self._make(self._roots[top], copy)

    def _make(self, inode: int, at: Path) -> None:
        at.mkdir()
        for name, below in self._names.get(inode, {}).items():
            if self._folders.get(below):
                self._make(below, at / name)
            else:
                (at / name).write_bytes(self._bytes.get(below, b""))


def prepare(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    for name, data in OLD.items():
        if data is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)


def held(root: Path) -> dict[str, bytes | None]:
    return {n: (root / n).read_bytes() if (root / n).exists() else None for n in OLD}


class PowerCutError(BaseException):
    pass


def run_until_flush(
    monkeypatch: pytest.MonkeyPatch, device: Device, count: int, work: Callable[[], object]
) -> bool:
    """Run ``work`` until the power fails at a flush; whether it came to its end."""
    left = [count]

    def fsync(descriptor: int) -> None:
        if left[0] == 0:
            raise PowerCutError
        left[0] -= 1
        device.flush(descriptor)

    with monkeypatch.context() as set_:
        set_.setattr(os, "fsync", fsync)
        # A process without power tidies nothing up: names only change on the device by a flush.
        try:
            work()
        except PowerCutError:
            return False
    return True


def test_a_batch_is_whole_or_undone_after_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, state = tmp_path / "project", tmp_path / "state"
    seen: set[str] = set()
    for count in range(100):
        prepare(root)
        shutil.rmtree(state, ignore_errors=True)
        workspace = Workspace(root, state=state)
        (workspace.state / "pending").mkdir(parents=True)
        device = Device(root, state)
        expected = {n: None if d is None else content_digest(d) for n, d in OLD.items()}
        finished = run_until_flush(
            monkeypatch,
            device,
            count,
            lambda: workspace.write_all(NEW, expected, "batch"),  # noqa: B023
        )
        device.write_out({root: tmp_path / "after", state: tmp_path / "state-after"})
        shutil.rmtree(root)
        shutil.rmtree(state)
        (tmp_path / "after").rename(root)
        (tmp_path / "state-after").rename(state)
        again = Workspace(root, state=state)
        assert not any("cannot be read" in told for told in again.recovery)
        now = held(root)
        assert now in (OLD, NEW), f"half a batch after flush {count}"
        assert not list(root.rglob(".midstream-*"))
        seen.add("new" if now == NEW else "old")
        if finished:
            assert now == NEW, "what was said to be written is on the device"
            break
        again.write("a", b"next", expected=content_digest(now["a"] or b""))
    assert finished
    assert seen == {"old", "new"}
    assert count > 8


def test_a_decision_is_on_the_device_before_its_write(tmp_path: Path) -> None:
    """A file that a power cut leaves new must not wait for a decision again."""
    from midstream.pairing.journal.entries import WritingEntry
    from midstream.pairing.journal.journal import SessionJournal

    flushed: list[bool] = []
    journal = Journal.create(tmp_path, tmp_path)
    real = journal.flush

    def flush(*, sync: bool = False) -> None:
        flushed.append(sync)
        real(sync=sync)

    journal.flush = flush  # type: ignore[method-assign]
    written = SessionJournal(None, journal)
    written.add(WritingEntry({"a": "1"}))
    assert True in flushed
    journal.close()
