"""A power cut: data not flushed to the device is lost, and a batch is still whole or undone.

The model of a disk is the harshest that a system may have: a file has the bytes of its last flush,
or none, and a folder the names of its last flush, or those of the moment.  At every flush the power
may fail.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from midstream.settings.store import change_file, check_document, file_text
from midstream.workspace import atomic, handles
from midstream.workspace.checkpoints import FolderStore, GitStore, SavedFile
from midstream.workspace.content import content_digest
from midstream.workspace.drafts import Drafts, read_drafts, write_drafts
from midstream.workspace.files import Workspace
from midstream.workspace.journal import Journal, sessions

pytestmark = pytest.mark.system

OLD = {"a": b"old a", "sub/b": b"old b", "gone": b"old gone", "new/n": None}
NEW = {"a": b"new a", "sub/b": b"new b", "gone": None, "new/n": b"new n"}


class Device:
    """The part of some folders that is on the device."""

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

    def flush_names(self) -> None:
        """Flush the names and no bytes, as some systems do at any time."""
        for top in self._tops:
            for folder, _, _ in os.walk(top):
                self.flush_folder(Path(folder))

    def flush(self, descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            self.flush_folder(path)
        else:
            self.flush_file(path)

    def write_out(self, copies: dict[Path, Path]) -> None:
        """Bring the folders to their state after the power cut."""
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
    monkeypatch: pytest.MonkeyPatch,
    device: Device,
    count: int,
    work: Callable[[], object],
    *,
    eager: bool = False,
) -> bool:
    """Run ``work`` until the power fails at a flush; whether it came to its end.

    With ``eager`` the names are on the device as they are at that moment.
    """
    left = [count]

    def fsync(descriptor: int) -> None:
        if left[0] == 0:
            if eager:
                device.flush_names()
            left[0] -= 1
            raise PowerCutError
        if left[0] < 0:
            return  # The process is gone; its cleaning up does not happen.
        left[0] -= 1
        device.flush(descriptor)

    with monkeypatch.context() as set_:
        set_.setattr(os, "fsync", fsync)
        # A process without power tidies nothing up: names only change on the device by a flush.
        try:
            work()
        except PowerCutError:
            return False
    return left[0] >= 0  # Otherwise it failed in another thread.


def come_back(device: Device, *tops: Path) -> None:
    """Give the folders the content of the device."""
    device.write_out({top: top.with_name(f"{top.name}-after") for top in tops})
    for top in tops:
        shutil.rmtree(top)
        top.with_name(f"{top.name}-after").rename(top)


@pytest.mark.parametrize(("eager", "most_open"), [(False, 200), (True, 200), (False, 1)])
def test_a_batch_is_whole_or_undone_after_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eager: bool, most_open: int
) -> None:
    monkeypatch.setattr(handles, "_MAX_OPEN", most_open)
    root, state = tmp_path / "project", tmp_path / "state"
    seen: set[str] = set()
    for count in range(100):
        prepare(root)
        shutil.rmtree(state, ignore_errors=True)
        workspace = Workspace(root, state=state)
        state.mkdir(exist_ok=True)
        device = Device(root, state)
        expected = {n: None if d is None else content_digest(d) for n, d in OLD.items()}
        finished = run_until_flush(
            monkeypatch,
            device,
            count,
            lambda: workspace.write_all(NEW, expected, "batch"),  # noqa: B023
            eager=eager,
        )
        come_back(device, root, state)
        device = Device(root, state)
        recovering = partial(Workspace, root, state=state)
        told: list[str] = []
        run_until_flush(monkeypatch, device, 1000, lambda: told.extend(recovering().recovery))  # noqa: B023
        # The record may be gone from the device before anything else is flushed.
        for folder in state.rglob("pending"):
            device.flush_folder(folder)
        come_back(device, root, state)
        again = recovering()
        assert not any("cannot be read" in sentence for sentence in (*told, *again.recovery))
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


TEXT = b"bytes before the batch " * 50


@dataclass(frozen=True)
class Kind:
    """One kind of record: what is there before, what is done, and whether that is seen whole.

    ``found`` reads it after the power cut: False for what was there before, True for the new; it
    raises for anything else.
    """

    prepare: Callable[[Path], object]
    write: Callable[[Path], object]
    found: Callable[[Path], bool]


def set_theme(top: Path, theme: str) -> None:
    change_file(top / "config.toml", {("theme",): theme})


def theme_of(top: Path) -> str:
    text = file_text(top / "config.toml")
    check_document(text, "config.toml")
    return tomllib.loads(text)["theme"]


def new_journal(top: Path) -> None:
    # Its thread ends with it, or would write into the folder of the next try; the power may fail
    # while it is closed.
    with contextlib.closing(Journal.create(top, top, max_bytes=2000)) as journal:
        for number in range(40):
            journal.append("step", number=number, text="x" * 100)
            journal.flush(sync=number == 0)
        journal.close()


def steps_of(top: Path) -> bool:
    paths = [info.path for info in sessions(top, top)]
    steps = [e.data["number"] for path in paths for e in Journal.read(path) if e.kind == "step"]
    assert steps == list(range(len(steps))), "a hole"
    return len(steps) == 40


def save_checkpoint(top: Path) -> None:
    FolderStore(top / "kept").save("batch", [SavedFile("a", TEXT, None)])


def checkpoint_of(top: Path) -> bool:
    if not (top / "kept").exists():
        return False
    store = FolderStore(top / "kept")
    known = store.checkpoints()
    assert all(store.load(kept.id)[0].before == TEXT for kept in known)
    return bool(known)


def arriving_model(top: Path) -> None:
    for name in ("onnx/model.onnx", "tokenizer.json"):
        path = top / ".m.partial" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(TEXT)


def model_of(top: Path) -> bool:
    if not (top / "m").exists():
        return False
    files = {path: path.read_bytes() for path in (top / "m").rglob("*") if path.is_file()}
    assert set(files.values()) == {TEXT}
    assert len(files) == 2
    return True


KINDS = {
    "settings": Kind(
        lambda top: set_theme(top, "dusk"),
        lambda top: set_theme(top, "midnight"),
        lambda top: theme_of(top) == "midnight",
    ),
    "drafts": Kind(
        lambda top: write_drafts(top, top, Drafts("one")),
        lambda top: write_drafts(top, top, Drafts("two")),
        lambda top: {"one": False, "two": True}[read_drafts(top, top).draft],
    ),
    "journal": Kind(lambda top: None, new_journal, steps_of),
    "checkpoint": Kind(lambda top: None, save_checkpoint, checkpoint_of),
    "model": Kind(
        arriving_model, lambda top: atomic.rename_whole(top / ".m.partial", top / "m"), model_of
    ),
}


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_old_or_new_after_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, eager: bool
) -> None:
    record = KINDS[kind]
    top, after = tmp_path / "top", tmp_path / "after"
    for count in range(60):
        shutil.rmtree(top, ignore_errors=True)
        top.mkdir()
        record.prepare(top)
        device = Device(top)
        work = partial(record.write, top)
        finished = run_until_flush(monkeypatch, device, count, work, eager=eager)
        if finished and eager:
            device.flush_names()
        device.write_out({top: after})
        shutil.rmtree(top)
        after.rename(top)
        new = record.found(top)
        if finished:
            # A file that is always replaced as a whole may come back in its old state.
            assert new or kind in ("settings", "drafts")
            break
    assert finished
    assert count > 0


def test_a_checkpoint_in_a_repository_is_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ref to an object that a power cut has emptied stops git in the whole repository."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "r")], check=True)
    trace = tmp_path / "trace"
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
    GitStore(tmp_path / "r").save("batch", [SavedFile("a", TEXT, None)])
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    # Newer versions of git report a counter.
    told = [e["value"] for e in events if e.get("key") == "fsync/hardware-flush"]
    told += [e["count"] for e in events if e.get("name") == "hardware-flush"]
    objects = list((tmp_path / "r/.git/objects").glob("??/*"))
    assert sum(map(int, told)) >= len(objects) + 1, "each object and the ref"
