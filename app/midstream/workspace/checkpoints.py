"""Checkpoints: the bytes that files had before each batch of writes, kept so that every batch can
be taken back.

A store only remembers; :class:`~midstream.workspace.files.Workspace` decides and writes.  Order
matters: a batch is saved before its first file is touched, and forgotten again when it did not
happen.

:class:`FolderStore` keeps copies in Midstream's state folder;
:class:`~midstream.workspace.git_checkpoints.GitStore` keeps commits on a private ref.
:class:`CheckpointLog` uses the repository where there is one and copies where there is none or
where git fails.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from midstream.workspace.gitcmd import GitFailedError, find_repository
from midstream.workspace.paths import make_private

KEPT_SESSIONS = 20
"""Chains of checkpoints kept per root; older ones are dropped when a new one begins."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What one batch does to one file."""

    rel: str
    before: bytes | None
    """Content before the batch; None when there was no file."""
    after: str | None
    """Digest after the batch; None when the batch deletes the file."""
    mode: int = 0o644
    """Permission bits before the batch."""
    folders: tuple[str, ...] = ()
    """Folders that the batch creates, relative, outermost first."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state before one batch of writes."""

    id: str
    """Sorts by time; ``""`` for a batch that changed nothing."""
    label: str
    time: float
    """Seconds since the epoch."""
    paths: tuple[str, ...]


class CheckpointStore(Protocol):
    """Keeps batches; blocking, called under the workspace's lock."""

    def save(self, label: str, changes: Sequence[FileChange]) -> Checkpoint:
        """Remember ``changes``, durable against the end of this process."""
        ...

    def forget(self, checkpoint: Checkpoint) -> None:
        """Drop the newest checkpoint of this store, because its batch did not happen."""
        ...

    def load(self, checkpoint_id: str) -> list[FileChange]:
        """The changes of one checkpoint; KeyError when it is not there."""
        ...

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint of this root, oldest first, earlier sessions included."""
        ...


def new_session_id() -> str:
    """Name of one chain of checkpoints or one journal: UTC time and a random part, so it sorts."""
    now = time.time_ns()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 10**9))
    return f"{stamp}-{now % 10**9 // 1000:06d}-{secrets.token_hex(3)}"


def new_checkpoint_id() -> str:
    """Nanoseconds since the epoch in fixed width, then a random part: sorts by time across
    processes.
    """
    return f"{time.time_ns():020d}-{secrets.token_hex(3)}"


def describe(checkpoint: Checkpoint, changes: Sequence[FileChange]) -> dict[str, Any]:
    """The JSON form of a checkpoint without file contents."""
    return {
        "version": 1,
        "id": checkpoint.id,
        "label": checkpoint.label,
        "time": checkpoint.time,
        "files": [
            {
                "path": change.rel,
                "existed": change.before is not None,
                "after": change.after,
                "mode": change.mode,
                "folders": list(change.folders),
            }
            for change in changes
        ],
    }


def parse_description(data: Mapping[str, Any]) -> Checkpoint:
    """Inverse of :func:`describe` as far as the checkpoint itself goes."""
    paths = tuple(str(file["path"]) for file in data["files"])
    return Checkpoint(str(data["id"]), str(data["label"]), float(data["time"]), paths)


def parse_change(file: Mapping[str, Any], before: bytes | None) -> FileChange:
    """One file of :func:`describe`, with its content."""
    folders = tuple(str(folder) for folder in file["folders"])
    after = file["after"]
    return FileChange(
        str(file["path"]), before, None if after is None else str(after), int(file["mode"]), folders
    )


class CheckpointLog:
    """All checkpoints of one root: new ones go to the repository if it takes them, else to the
    state folder.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._copies = FolderStore(folder)
        self._git: CheckpointStore | None = None
        self._reason = ""
        place = find_repository(root)
        if place is None:
            self._reason = "no git repository"
        else:
            # Imported here because it needs this module's types.
            from midstream.workspace.git_checkpoints import GitStore

            self._git = GitStore(root)
        self._saved_in: dict[str, CheckpointStore] = {}

    @property
    def mode(self) -> str:
        """Where new checkpoints go: ``"git"`` or ``"copies: why"``."""
        return f"copies: {self._reason}" if self._reason else "git"

    def save(self, label: str, changes: Sequence[FileChange]) -> Checkpoint:
        """Remember ``changes``; OSError when not even a copy can be made."""
        if self._git is not None and not self._reason:
            try:
                return self._note(self._git.save(label, changes), self._git)
            except GitFailedError as error:
                # One failure is enough: a broken repository would slow every write down.
                self._reason = str(error)
        return self._note(self._copies.save(label, changes), self._copies)

    def forget(self, checkpoint: Checkpoint) -> None:
        """Drop the newest checkpoint, because its batch did not happen."""
        with contextlib.suppress(GitFailedError):
            self._saved_in.pop(checkpoint.id).forget(checkpoint)

    def load(self, checkpoint_id: str) -> list[FileChange]:
        """The changes of one checkpoint; KeyError when it is nowhere."""
        for store in self._stores():
            with contextlib.suppress(KeyError, GitFailedError):
                return store.load(checkpoint_id)
        raise KeyError(checkpoint_id)

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint of this root, oldest first, earlier sessions included."""
        found: list[Checkpoint] = []
        for store in self._stores():
            with contextlib.suppress(GitFailedError):
                found += store.checkpoints()
        return sorted(found, key=lambda checkpoint: checkpoint.id)

    def _stores(self) -> list[CheckpointStore]:
        return [self._copies] if self._git is None else [self._git, self._copies]

    def _note(self, checkpoint: Checkpoint, store: CheckpointStore) -> Checkpoint:
        self._saved_in[checkpoint.id] = store
        return checkpoint


class FolderStore:
    """Copies in the state folder: ``<folder>/<session>/<checkpoint
    id>/{checkpoint.json,0,1,…}``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session = new_session_id()
        self._started = False

    def save(self, label: str, changes: Sequence[FileChange]) -> Checkpoint:
        """Remember ``changes``; the folder appears under its name only when it is complete."""
        checkpoint = Checkpoint(
            new_checkpoint_id(), label, time.time(), tuple(change.rel for change in changes)
        )
        session = self._session_folder()
        half = session / f"{checkpoint.id}.half"
        half.mkdir(mode=0o700)
        for number, change in enumerate(changes):
            if change.before is not None:
                (half / str(number)).write_bytes(change.before)
        (half / "checkpoint.json").write_text(json.dumps(describe(checkpoint, changes)))
        half.rename(session / checkpoint.id)
        return checkpoint

    def forget(self, checkpoint: Checkpoint) -> None:
        """Drop a checkpoint whose batch did not happen."""
        shutil.rmtree(self._session_folder() / checkpoint.id, ignore_errors=True)

    def load(self, checkpoint_id: str) -> list[FileChange]:
        """The changes of one checkpoint; KeyError when it is not there."""
        for folder in self._folder.glob(f"*/{checkpoint_id}"):
            data = json.loads((folder / "checkpoint.json").read_text())
            return [
                parse_change(file, (folder / str(number)).read_bytes() if file["existed"] else None)
                for number, file in enumerate(data["files"])
            ]
        raise KeyError(checkpoint_id)

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint of this root, oldest first."""
        found = [
            parse_description(json.loads(file.read_text()))
            for file in self._folder.glob("*/*/checkpoint.json")
            if file.parent.suffix != ".half"
        ]
        return sorted(found, key=lambda checkpoint: checkpoint.id)

    def _session_folder(self) -> Path:
        session = make_private(self._folder / self._session)
        if not self._started:
            self._started = True
            for old in sorted(self._folder.iterdir())[:-KEPT_SESSIONS]:
                shutil.rmtree(old, ignore_errors=True)
        return session
