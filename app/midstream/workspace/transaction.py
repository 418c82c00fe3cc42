"""Writes a batch of files all or nothing, even if the process is killed in between.

First all new bytes are written beside their targets, where most failures happen and cost nothing;
then the targets are replaced one after another; a failure there takes the earlier ones back.

What a batch is about to do stands in an intent record: a small JSON file in the state folder,
locked by the process that works on it.  The lock ends with the process, so an unlocked record
belongs to a batch that was cut off, and :func:`recover` finishes the job.  The record's name says
how far the batch had come: ``.open`` means roll every file back, ``.done`` means only temporary
files are left to delete.

The order that makes this safe: record, temporary files, exchanges, ``.open`` -> ``.done`` (the
commit point), deletion of the temporary files, deletion of the record.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from midstream.workspace import atomic
from midstream.workspace.content import LinkTarget, content_digest
from midstream.workspace.errors import (
    BusyFileError,
    ReadOnlyFileError,
    StaleFileError,
    StateFolderError,
    WriteFailedError,
)
from midstream.workspace.ledger import Ledger
from midstream.workspace.paths import make_private, shown

_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_RECORDS_LOCK = "lock"


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One file of a batch, as the intent record has it; a digest of None means no such file."""

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


class _IntentRecord:
    """The record of one batch on disk; :meth:`close` deletes it."""

    def __init__(self, folder: Path, changes: list[PlannedWrite]) -> None:
        make_private(folder)
        stem = f"{time.time_ns()}-{os.getpid()}-{secrets.token_hex(4)}"
        fresh = folder / f"{stem}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with _records_locked(folder, fcntl.LOCK_SH):
            self._descriptor = os.open(fresh, flags, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            os.write(self._descriptor, json.dumps([asdict(c) for c in changes]).encode())
            self._path = fresh.rename(fresh.with_suffix(".open"))

    def commit(self) -> None:
        """Mark the batch as complete: recovery no longer rolls it back."""
        self._path = self._path.rename(self._path.with_suffix(".done"))

    def close(self) -> None:
        """Delete the record."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        os.close(self._descriptor)


@dataclass(frozen=True, slots=True)
class FileWrite:
    """One file of a batch on its way to disk; bytes are None where there is no file."""

    rel: str
    before: bytes | None
    after: bytes | None
    status: os.stat_result | None
    """Of the file that is replaced; None where there is none, or a symlink."""
    like: os.stat_result | None
    """Of the file whose mode and owner the new one takes; None for the usual mode."""
    mode: int | None
    """Permission bits for a file that does not exist now; None leaves them to ``like``."""
    plan: PlannedWrite


def plan_change(target: str, before: bytes | None, after: bytes | None) -> PlannedWrite:
    """Plan a change of ``target`` (a real path)."""
    return PlannedWrite(
        target,
        secrets.token_hex(6),
        None if before is None else content_digest(before),
        None if after is None else content_digest(after),
        _missing_folders(target),
    )


def write_batch(
    changes: Sequence[FileWrite], ledger: Ledger, records: Path, not_happened: Callable[[], None]
) -> None:
    """Write all of ``changes`` or none.

    Args:
        changes: Files of the batch, all different.
        ledger: Records what is on disk afterwards; the caller holds its lock.
        records: Folder of the intent records.
        not_happened: Called before an exception is raised if no byte of the batch is left on disk.

    Raises:
        StaleFileError: One file has changed, or another program is writing it (``BusyFileError``).
            Here and below, the other files are back to what they were, except one that the user
            changed at this moment, which keeps the user's bytes.
        ReadOnlyFileError: One file may not be written.
        WriteFailedError: The system failed a write.
        StateFolderError: No record could be made; nothing was touched.
    """
    try:
        record = _IntentRecord(records, [change.plan for change in changes])
    except OSError as error:
        not_happened()
        raise state_refused(records, error) from error
    tried: list[FileWrite] = []
    try:
        for change in changes:
            _stage(change)
        for change in changes:
            tried.append(change)
            _swap(change)
            _record(ledger, change, change.after)
        record.commit()
    except BaseException:
        undone = [_roll_back(change, ledger) for change in reversed(tried)]
        # The last one tried failed: what it holds now was never ours.
        if all(undone[1:]):
            not_happened()
        raise
    finally:
        for change in reversed(changes):
            for leftover in (change.plan.part, change.plan.swap):
                with contextlib.suppress(OSError):
                    Path(leftover).unlink()
            remove_empty(change.plan.folders)
        record.close()


def stale(rel: str) -> StaleFileError:
    """The error for a file that is not what its writer believed."""
    return StaleFileError(
        f"{shown(rel)} has changed on disk", "nothing was written, look at the new content first"
    )


def state_refused(folder: Path, error: OSError) -> StateFolderError:
    """The error for a state folder that cannot be used."""
    return StateFolderError(
        f"Midstream cannot keep a checkpoint in {shown(folder)} ({error.strerror})",
        "set MIDSTREAM_STATE_DIR to a writable folder",
    )


def _stage(change: FileWrite) -> None:
    """Write the new bytes beside the target."""
    if change.after is None:
        return
    plan = change.plan
    with _explained(change.rel):
        for folder in plan.folders:
            Path(folder).mkdir(exist_ok=True)
        source = plan.target if change.status else None
        atomic.write_part(plan.part, change.after, change.like, source)
        plain = not isinstance(change.after, LinkTarget)
        if change.mode is not None and change.status is None and plain:
            Path(plan.part).chmod(change.mode)
        Path(plan.part).rename(plan.swap)


def _swap(change: FileWrite) -> None:
    plan = change.plan
    with _explained(change.rel):
        if plan.before is None:
            atomic.create(plan.swap, plan.target)
        elif plan.after is None:
            atomic.remove(plan.swap, plan.target, plan.before)
        else:
            atomic.replace(plan.swap, plan.target, plan.before, plan.after)


def _roll_back(change: FileWrite, ledger: Ledger) -> bool:
    undone = _undo_change(change.plan)
    if undone:
        _record(ledger, change, change.before)
    return undone


def _record(ledger: Ledger, change: FileWrite, data: bytes | None) -> None:
    """Note what is on disk for a file now."""
    digest = None if data is None else content_digest(data)
    executable = data is not None and atomic.is_executable(change.plan.target)
    ledger.record(change.rel, digest, len(data or b""), executable)


@contextlib.contextmanager
def _explained(rel: str) -> Generator[None]:
    try:
        yield
    except atomic.OpenForWritingError as error:
        raise BusyFileError(
            f"{shown(rel)} is open for writing in another program", "close it there and retry"
        ) from error
    except atomic.ChangedOnDiskError as error:
        raise stale(rel) from error
    except OSError as error:
        if error.errno in _DENIED:
            raise ReadOnlyFileError(
                f"The folder of {shown(rel)} cannot be written ({error.strerror})",
                "check its permissions",
            ) from error
        raise WriteFailedError(
            f"{shown(rel)} was not written ({error.strerror})", "its old content is in place"
        ) from error


def _missing_folders(target: str) -> tuple[str, ...]:
    missing: list[str] = []
    for folder in Path(target).parents:
        if folder.exists():
            break
        missing.append(str(folder))
    return tuple(reversed(missing))


def _undo_change(change: PlannedWrite) -> bool:
    """Restore the target's old bytes if it still holds ours; True when it is as before.

    A target that the user has changed since is left alone.
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
            # After a kill in the middle of a creation both names are one file, and renaming would
            # do nothing.
            Path(change.swap).unlink(missing_ok=True)
            atomic.remove(change.swap, change.target, change.after)
        else:
            atomic.replace(change.swap, change.target, change.after, change.before)
        return True
    return False


def _delete_temporaries(change: PlannedWrite) -> str | None:
    """Delete the temporary files of ``change``; the path of one kept for its unknown bytes, if any.

    Unknown bytes can only be a user's save that was caught in the exchange when the process was
    killed and that could not be put back because the user has saved again since.
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
    """Clean up after processes that were killed in the middle of a batch.

    Args:
        folder: Folder of the intent records.

    Returns:
        Paths of files kept because they hold bytes that are nowhere else (normally none).
    """
    kept: list[str] = []
    # No folder: nothing was ever written.  Locked: another process is recovering.
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError, BlockingIOError),
        _records_locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB),
    ):
        for record in sorted(folder.iterdir()):
            if record.name != _RECORDS_LOCK:
                kept += _recover_record(record)
    return kept


@contextlib.contextmanager
def _records_locked(folder: Path, lock: int) -> Generator[None]:
    """Lock the folder: shared to make a record, exclusive to recover.

    Without it a record between its creation and its own lock would look abandoned.
    """
    descriptor = os.open(folder / _RECORDS_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
            entries: list[dict[str, Any]] = json.load(stream)
        for entry in entries:
            entry["folders"] = tuple(entry["folders"])
        changes = [PlannedWrite(**entry) for entry in entries]
        kept: list[str] = []
        for change in reversed(changes):
            if record.suffix == ".open":
                _undo_change(change)
            kept += filter(None, [_delete_temporaries(change)])
            if record.suffix == ".open":
                remove_empty(change.folders)
        record.unlink()
        return kept
    except (BlockingIOError, FileNotFoundError):
        return []
    finally:
        os.close(descriptor)


def remove_empty(folders: tuple[str, ...]) -> None:
    """Delete those of ``folders`` (outermost first) that are empty."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
