"""Intent records: what a batch of writes is about to do, so that a killed process can be tidied up
after.

A record is a small JSON file in the state folder, locked by the process that works on it.  The lock
ends with the process, so an unlocked record belongs to a batch that was cut off.  Its name tells
how far it had come: ``.open`` means roll every file back, ``.done`` means only temporary files are
left to delete.

The order that makes this safe: record, temporary files, exchanges, ``.open`` -> ``.done`` (the
commit point), deletion of the temporary files, deletion of the record.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from midstream.workspace import atomic
from midstream.workspace.paths import make_private

_DOOR = "lock"


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One file of a batch: digests before and after (None: no such file) and the stem of its
    temporary names.
    """

    target: str
    token: str
    before: str | None
    after: str | None
    folders: tuple[str, ...] = ()
    """Folders the batch creates for this file, outermost first."""

    @property
    def part(self) -> str:
        """Name under which the new bytes are written."""
        return self._temporary(atomic.PART_SUFFIX)

    @property
    def swap(self) -> str:
        """Name of the complete new bytes, then of the replaced file."""
        return self._temporary(atomic.SWAP_SUFFIX)

    def _temporary(self, suffix: str) -> str:
        return f"{os.path.dirname(self.target)}/{atomic.TEMPORARY_PREFIX}{self.token}{suffix}"  # noqa: PTH120


class PendingBatch:
    """The record of one batch; :meth:`close` deletes it."""

    def __init__(self, folder: Path, changes: list[PlannedChange]) -> None:
        make_private(folder)
        stem = f"{time.time_ns()}-{os.getpid()}-{secrets.token_hex(4)}"
        fresh = folder / f"{stem}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with _door(folder, fcntl.LOCK_SH):
            self._descriptor = os.open(fresh, flags, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            os.write(self._descriptor, json.dumps([asdict(c) for c in changes]).encode())
            self._path = fresh.rename(fresh.with_suffix(".open"))

    def commit(self) -> None:
        """From here on the batch stands."""
        self._path = self._path.rename(self._path.with_suffix(".done"))

    def close(self) -> None:
        """Nothing is left to tidy up."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        os.close(self._descriptor)


def roll_back(change: PlannedChange) -> bool:
    """Bring the target back to its old bytes if it still holds ours; True when it is as it was
    before.

    A target that the user changed since is left alone.
    """
    with contextlib.suppress(OSError, atomic.NotRegularError, atomic.ChangedOnDiskError):
        now = atomic.digest_of(change.target)
        if now == change.before:
            return True
        if now != change.after:
            return False
        if change.after is None:
            return atomic.put_back(change.swap, change.target)
        if change.before is None:
            # Killed in the middle of a creation both names are one file, and renaming would do
            # nothing.
            Path(change.swap).unlink(missing_ok=True)
            atomic.remove(change.swap, change.target, change.after)
        else:
            atomic.replace(change.swap, change.target, change.after, change.before)
        return True
    return False


def tidy(change: PlannedChange) -> str | None:
    """Delete the temporary files of ``change``; returns the path of one kept because it holds
    unknown bytes.

    Unknown bytes can only be a user's save that was caught in the exchange when the process was
    killed and that could not be put back because the user has saved once more since.
    """
    kept: str | None = None
    folder, stem = os.path.split(change.part.removesuffix(atomic.PART_SUFFIX))
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for entry in list(os.scandir(folder)):
            if not entry.name.startswith(stem) or not atomic.is_temporary(entry.name):
                continue
            torn = entry.name.endswith(atomic.PART_SUFFIX)
            if torn or atomic.digest_of(entry.path) in {change.before, change.after}:
                Path(entry.path).unlink()
            else:
                kept = f"{change.target}.midstream-kept-{change.token}"
                Path(entry.path).rename(kept)
    return kept


def recover(folder: Path) -> list[str]:
    """Roll back or tidy up after processes that were killed in the middle of a batch.

    Args:
        folder: where :class:`PendingBatch` puts its records.

    Returns:
        Paths of files kept because they hold bytes that are nowhere else (normally none).
    """
    kept: list[str] = []
    # No folder: nothing was ever written.  Door locked: another process is at it.
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError, BlockingIOError),
        _door(folder, fcntl.LOCK_EX | fcntl.LOCK_NB),
    ):
        for record in sorted(folder.iterdir()):
            if record.name != _DOOR:
                kept += _recover_record(record)
    return kept


@contextlib.contextmanager
def _door(folder: Path, lock: int) -> Generator[None]:
    """Holds the folder's lock: shared while a record is made, exclusive while records are judged.

    Without it a record between its creation and its own lock would look abandoned.
    """
    descriptor = os.open(folder / _DOOR, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, lock)
        yield
        # Closing is not enough: a child that is being forked has the descriptor until its exec.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _recover_record(record: Path) -> list[str]:
    try:
        descriptor = os.open(record, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if record.suffix == ".new":
            record.unlink()
            return []
        with open(descriptor, "rb", closefd=False) as stream:
            entries = json.load(stream)
        changes = [_planned(entry) for entry in entries]
        kept: list[str] = []
        for change in reversed(changes):
            if record.suffix == ".open":
                roll_back(change)
            kept += filter(None, [tidy(change)])
            if record.suffix == ".open":
                remove_empty(change.folders)
        record.unlink()
        return kept
    except (BlockingIOError, FileNotFoundError):
        return []
    finally:
        os.close(descriptor)


def _planned(entry: dict[str, Any]) -> PlannedChange:
    return PlannedChange(
        entry["target"],
        entry["token"],
        entry["before"],
        entry["after"],
        tuple(entry["folders"]),
    )


def remove_empty(folders: tuple[str, ...]) -> None:
    """Delete those of ``folders`` (outermost first) that are empty."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
