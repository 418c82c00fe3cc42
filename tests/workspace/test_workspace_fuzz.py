"""Random interleavings of the user's saves with our writes, undos and restores.

The user acts between any two system calls of ours.  Whatever the interleaving: what the user saved
is what is on disk afterwards, what we replaced is in a checkpoint, and what we report is what
happened.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import BinaryIO

import pytest

from midstream.workspace import atomic
from midstream.workspace.errors import WorkspaceError
from midstream.workspace.files import StaleFileError, Workspace, content_digest
from midstream.workspace.watch import Inspector
from tests.helpers.system_calls import between_system_calls

FILES = ["a", "b", "d/c"]
State = dict[str, bytes | None]


class User:
    """Saves files the way editors and scripts do, each time with content never seen before."""

    def __init__(self, root: Path, random_: random.Random) -> None:
        self.root = root
        self.random = random_
        self.number = 0
        self.saved: State = {}
        self._open: list[tuple[str, BinaryIO, bytes]] = []

    def act(self) -> None:
        name = self.random.choice(FILES)
        path = self.root / name
        if any(name == other for other, _, _ in self._open) or leased(path):
            return
        self.number += 1
        data = b"user %d " % self.number * self.random.randrange(1, 40)
        way = self.random.choice(
            ["in place", "rename", "rename", "truncate", "update", "delete", "backup", "append"]
        )
        if way in {"update", "delete", "backup", "append"} and not path.exists():
            way = "in place"
        path.parent.mkdir(exist_ok=True)
        self.saved[name] = data
        match way:
            case "in place":
                path.write_bytes(data)
            case "rename":
                temporary = path.with_name(f"{path.name}.user")
                temporary.write_bytes(data)
                temporary.replace(path)
            case "backup":
                backup = path.with_name(f"{path.name}~")
                path.rename(backup)
                path.write_bytes(data)
                backup.unlink()
            case "delete":
                path.unlink()
                self.saved[name] = None
            case "append":
                self.saved[name] = path.read_bytes() + data
                with path.open("ab") as file:
                    file.write(data)
            case "truncate":
                self._open.append((name, path.open("wb", buffering=0), data))
            case _:
                self._open.append((name, path.open("r+b", buffering=0), data))

    def finish(self) -> None:
        """Write and close what is still open in an editor."""
        for _, file, data in self._open:
            file.write(data)
            file.truncate()
            file.close()
        self._open.clear()


class Case:
    """One workspace, its user, and what the disk must hold."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.root = root
        self.workspace = Workspace(root)
        self.user = User(root, self.random)
        self.told: set[str] = set()
        self.inspector = Inspector(self.workspace, None, self.told.update)
        self.batches: list[tuple[str, State, set[str]]] = []
        self.number = 0
        self.refused = 0
        self.raced = 0

    def disk(self) -> State:
        return {
            name: (self.root / name).read_bytes() if (self.root / name).is_file() else None
            for name in FILES
        }

    def step(self) -> None:
        """One operation of ours with up to two acts of the user somewhere in it."""
        before = self.disk()
        self.user.saved.clear()
        steps = {self.random.randrange(90) for _ in range(self.random.choice([0, 1, 1, 2]))}
        finish = self.random.randrange(120)

        def at_step(number: int) -> None:
            if number in steps:
                self.user.act()
            if number == finish:
                self.user.finish()

        expected: State = before
        operation = self.random.choice(["write", "write", "batch", "undo"])
        known = {checkpoint.id for checkpoint in self.workspace.log.checkpoints()}
        try:
            with between_system_calls(at_step):
                expected = self._operate(operation, before)
            failed = False
        except StaleFileError:
            failed = True
            self.refused += 1
        self.user.finish()
        self.raced += bool(self.user.saved)

        after = self.disk()
        wanted = dict(before if failed else expected) | self.user.saved
        for name, data in self.user.saved.items():
            # Deleting a file that is to be created leaves just what the operation believed in.
            believed_in_none = operation == "undo" or before[name] is None
            if data is None and believed_in_none and after[name] == expected[name]:
                wanted[name] = expected[name]
        done = "failed" if failed else "done"
        assert after == wanted, f"{operation} {done} in case {self.root.name}"
        assert not list(self.root.rglob(".midstream-*"))
        fresh = [item for item in self.workspace.log.checkpoints() if item.id not in known]
        if failed:
            # Kept only where the user saved over one of our files while it was being taken back.
            assert not fresh or self.user.saved
        for item in fresh:
            deleted = {name for name, data in self.user.saved.items() if data is None}
            self.batches.append((item.id, before, deleted))

    def _operate(self, operation: str, before: State) -> State:
        """Carry out an operation; returns the state of the disk if the user does nothing."""
        self.number += 1
        if operation in {"write", "batch"}:
            count = 1 if operation == "write" else 3
            names = self.random.sample(FILES, count)
            new: State = {name: b"ours %d %b" % (self.number, name.encode()) for name in names}
            if operation == "batch" and before[names[0]] is not None:
                new[names[0]] = None
            self.workspace.write_all(new, {name: digest(before[name]) for name in names}, "x")
            return before | new
        undo = self.workspace._undo
        changes = self.workspace.log.load(undo[-1][0]) if undo else []
        self.workspace.undo_write()
        return before | {change.rel: change.before for change in changes}

    def check_checkpoints(self) -> None:
        """What a batch replaced is in its checkpoint, byte for byte."""
        for checkpoint_id, before, deleted in self.batches:
            for change in self.workspace.log.load(checkpoint_id):
                user_deleted = change.before is None and change.rel in deleted
                assert user_deleted or change.before == before[change.rel]

    def check_watcher(self) -> None:
        """A look at all files reports exactly those that differ from the last known state."""
        self.inspector.check()
        self.told.clear()
        self.inspector.check()
        assert self.told == set()


def leased(path: Path) -> bool:
    """Whether opening would wait: a lease is ours, and both run in this one thread here."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def digest(data: bytes | None) -> str | None:
    return None if data is None else content_digest(data)


def run(tmp_path: Path, seeds: range) -> tuple[int, int]:
    raced = refused = 0
    for seed in seeds:
        root = tmp_path / f"case{seed}"
        root.mkdir()
        case = Case(root, seed)
        for _ in range(10):
            case.step()
        case.check_checkpoints()
        case.check_watcher()
        raced += case.raced
        refused += case.refused
    return raced, refused


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk's cache or for a user who will not act meanwhile."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(atomic, "_BUSY_PATIENCE_S", 0.0)
    monkeypatch.setattr("midstream.workspace.watch.SETTLE_S", 0.0)
    monkeypatch.setattr("midstream.workspace.checkpoints.find_repository", lambda _: None)


def test_no_interleaving_loses_a_users_save(tmp_path: Path) -> None:
    raced, refused = run(tmp_path, range(25))
    # The cases mean something only if the writes really meet.
    assert raced > 60
    assert refused > 20


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_interleaving_of_ten_thousand_loses_a_users_save(tmp_path: Path) -> None:
    raced, _ = run(tmp_path, range(10_000, 11_000))
    assert raced > 3000


def test_every_refusal_is_a_sentence(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    with pytest.raises(WorkspaceError, match=r"^[a-z].*; .*\.$"):
        workspace.write("x", b"", expected=content_digest(b"y"))
