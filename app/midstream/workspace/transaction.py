"""Writes a batch of files all or nothing, even if the process is killed in between.

First all new bytes are written beside their targets, where most failures happen and cost nothing;
then the targets are replaced one after another; a failure there takes the earlier ones back.

What a batch is about to do stands in an intent record: a small JSON file in the state folder,
locked by the process that works on it.  The lock ends with the process, so an unlocked record
belongs to a batch that was cut off, and ``recover`` finishes or undoes it.  The record's name
says what is to be done: ``.open`` means finish, if a file was replaced already, since whoever
began the batch had decided it; ``.back`` means roll every file back, because one of them could not
be written; ``.done`` means that only temporary files are left to delete.

The order that makes this safe, also where the power fails and what was not flushed is lost: record
(flushed), temporary files (flushed, with their names), exchanges, a flush of their folders,
``.open`` -> ``.done`` (flushed; the commit point), deletion of the temporary files, deletion of the
record.

All files are reached through handles of their folders (``workspace.handles``).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from midstream.workspace import atomic
from midstream.workspace.content import LinkTarget, content_digest
from midstream.workspace.errors import (
    BusyFileError,
    ReadOnlyFileError,
    StaleFileError,
    StateFolderError,
    WriteFailedError,
)
from midstream.workspace.handles import FolderHandles, LinkedFolderError
from midstream.workspace.ledger import Ledger
from midstream.workspace.paths import make_private, shown, sync_folder

_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_RECORD = {errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV, *_DENIED}
_RECORDS_LOCK = "lock"
_UNREADABLE = ".unreadable"
_LOCK_PATIENCE_S = 0.5
"""How long another process may hold the records."""
_MAX_RECORD = 64_000_000
"""Bytes of a record."""


class PlannedWrite(Struct, frozen=True, forbid_unknown_fields=True):
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
    """The record of one batch on disk; ``close`` deletes it."""

    def __init__(self, folder: Path, changes: list[PlannedWrite]) -> None:
        make_private(folder)
        stem = f"{time.time_ns()}-{os.getpid()}-{secrets.token_hex(4)}"
        fresh = folder / f"{stem}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with _records_locked(folder, fcntl.LOCK_SH):
            self._descriptor = os.open(fresh, flags, 0o600)
            self._path = fresh
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
                rest = memoryview(json.dumps(to_builtins(changes)).encode())
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
                os.fsync(self._descriptor)
                self._rename(".open")
            except OSError:
                self.close(delete=True)
                raise

    def commit(self) -> None:
        """Mark the batch as complete: only its temporary files are left to delete."""
        self._rename(".done")

    def back_out(self) -> None:
        """Mark the batch as failed: recovery rolls it back."""
        self._rename(".back")

    def _rename(self, suffix: str) -> None:
        self._path = self._path.rename(self._path.with_suffix(suffix))
        sync_folder(self._path.parent)

    def close(self, *, delete: bool) -> None:
        """Let go of the record, which recovery finds if it is not deleted."""
        with contextlib.suppress(OSError):
            if delete:
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
    root: str,
    changes: Sequence[FileWrite],
    ledger: Ledger,
    records: Path,
    not_happened: Callable[[], None],
) -> None:
    """Write all of ``changes`` or none.

    Args:
        root: Real path of the folder that holds them all.
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
    tidy = True
    with FolderHandles(root) as handles:
        try:
            for change in changes:
                _stage(change, handles)
            handles.sync()  # Everything needed to finish the batch is there before it begins.
            for change in changes:
                tried.append(change)
                _swap(change, handles)
                _record(ledger, change, change.after)
            handles.sync()
            _commit(record, records)
        except BaseException:
            with contextlib.suppress(OSError):
                record.back_out()
            undone = [_roll_back(change, ledger, handles) for change in reversed(tried)]
            tidy = None not in undone
            # The last one tried failed: its present content was never ours.
            if all(undone[1:]):
                not_happened()
            raise
        finally:
            for change in reversed(changes) if tidy else ():
                tidy &= _tidy(change.plan, handles)
            # Steps that the system refuses now are done when the folder is opened again.
            record.close(delete=tidy)


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


def _placed(plan: PlannedWrite, handles: FolderHandles) -> PlannedWrite:
    """The plan of a file by the handle of its folder; raises as ``FolderHandles.path``."""
    return replace(plan, target=handles.path(plan.target))


def _stage(change: FileWrite, handles: FolderHandles) -> None:
    """Write the new bytes beside the target."""
    if change.after is None:
        return
    with _explained(change.rel):
        for folder in change.plan.folders:
            Path(handles.path(folder)).mkdir(exist_ok=True)
        plan = _placed(change.plan, handles)
        source = plan.target if change.status else None
        atomic.write_part(plan.part, change.after, change.like, source)
        plain = not isinstance(change.after, LinkTarget)
        if change.mode is not None and change.status is None and plain:
            atomic.change_mode(plan.part, change.mode)
        Path(plan.part).rename(plan.swap)


def _swap(change: FileWrite, handles: FolderHandles) -> None:
    with _explained(change.rel):
        _exchange(_placed(change.plan, handles))


def _exchange(plan: PlannedWrite) -> None:
    """Put the new bytes of a file in place; ``plan`` is placed."""
    if plan.before is None:
        atomic.create(plan.swap, plan.target)
    elif plan.after is None:
        atomic.remove(plan.swap, plan.target, plan.before)
    else:
        atomic.replace(plan.swap, plan.target, plan.before, plan.after)


def _commit(record: _IntentRecord, records: Path) -> None:
    try:
        record.commit()
    except OSError as error:
        raise state_refused(records, error) from error


def _roll_back(change: FileWrite, ledger: Ledger, handles: FolderHandles) -> bool | None:
    """Whether a file is as before; None where the system refuses that."""
    try:
        undone = _undo_change(_placed(change.plan, handles))
    except OSError:
        return None
    if undone:
        _record(ledger, change, change.before)
    return undone


def _tidy(plan: PlannedWrite, handles: FolderHandles) -> bool:
    """Delete what a write needed beside its file; whether nothing of it is left."""
    try:
        placed = _placed(plan, handles)
        for leftover in (placed.part, placed.swap):
            Path(leftover).unlink(missing_ok=True)
    except FileNotFoundError:  # The folder is gone.
        pass
    except OSError:
        return False
    remove_empty(plan.folders, handles)
    return True


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
    except (atomic.ChangedOnDiskError, LinkedFolderError) as error:
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


def _undo_change(plan: PlannedWrite) -> bool:
    """Restore the target's old bytes if it still holds ours; True when it is as before.

    A target that the user has changed since is left alone; ``plan`` is placed.

    Raises:
        OSError: The system refuses.
    """
    with contextlib.suppress(atomic.ChangedOnDiskError):
        now = atomic.digest_of(plan.target)
        if now == plan.before:
            return True
        if now != plan.after:
            return False
        if plan.after is None:
            return atomic.put_back(plan.swap, plan.target)
        if plan.before is None:
            # After a kill in the middle of a creation both names are one file, and renaming would
            # do nothing.
            Path(plan.swap).unlink(missing_ok=True)
            atomic.remove(plan.swap, plan.target, plan.after)
        else:
            atomic.replace(plan.swap, plan.target, plan.after, plan.before)
        return True
    return False


def _delete_temporaries(plan: PlannedWrite) -> str | None:
    """Delete the temporary files of a placed plan; the name of one kept for its unknown bytes.

    Unknown bytes can only be a user's save that was caught in the exchange when the process was
    killed and that could not be put back because the user has saved again since.
    """
    kept: str | None = None
    folder, stem = os.path.split(plan.part.removesuffix(atomic.PART_SUFFIX))
    for entry in list(os.scandir(folder)):
        if not entry.name.startswith(stem) or not atomic.is_temporary(entry.name):
            continue
        torn = entry.name.endswith(atomic.PART_SUFFIX)
        if torn or atomic.digest_of(entry.path) in {plan.before, plan.after}:
            Path(entry.path).unlink()
        else:
            # A name has 255 bytes at most.
            name = os.fsencode(os.path.basename(plan.target))[:200].decode(errors="ignore")  # noqa: PTH119
            kept = f"{name}.midstream-kept-{plan.token}"
            Path(entry.path).rename(f"{folder}/{kept}")
    return kept


# Recovery


class _WriteState(Enum):
    """How far the write of one file had come."""

    OLD = "it holds its old bytes"
    NEW = "it holds the new ones"
    CAUGHT = "it holds the new ones, and a save of the user's was caught in the exchange"
    OTHER = "it was changed since"


@dataclass(slots=True)
class Recovery:
    """What was cleaned up after processes that were killed.

    Attributes:
        kept: Files kept because they hold bytes that are nowhere else (normally none).
        finished: Files whose write was finished.
        unreadable: Records that were set aside because they cannot be read.
        waiting: Why the system refused what other records say; these stay for the next time.
    """

    kept: list[str] = field(default_factory=list[str])
    finished: list[str] = field(default_factory=list[str])
    unreadable: list[str] = field(default_factory=list[str])
    waiting: list[str] = field(default_factory=list[str])

    def sentences(self) -> list[str]:
        """The sentence for the user."""
        told = [
            f"{shown(path)} holds what you saved while Midstream was killed; compare it with the "
            f"file beside it."
            for path in self.kept
        ]
        if self.finished:
            files = ", ".join(map(shown, self.finished[:5]))
            files += f" and {len(self.finished) - 5} more" if len(self.finished) > 5 else ""
            told.append(f"A write that was cut off when Midstream was killed is finished: {files}.")
        told += [
            f"The record {shown(path)} of a write that was cut off cannot be read and was set "
            f"aside; files named {atomic.TEMPORARY_PREFIX}* in the folder may belong to it."
            for path in self.unreadable
        ]
        told += [
            f"A write that was cut off when Midstream was killed can be neither finished nor "
            f"undone ({why}); check the permissions of the folders and open this one again."
            for why in self.waiting
        ]
        return told


def recover(folder: Path, root: str) -> Recovery:
    """Clean up after processes that were killed in the middle of a batch.

    Args:
        folder: Folder of the intent records.
        root: Real path of the folder that holds the files of all batches.

    Raises:
        OSError: The records cannot be looked at.
    """
    found = Recovery()
    # No folder: nothing was ever written.  Locked: another process is recovering.
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError, BlockingIOError),
        _records_locked(folder, fcntl.LOCK_EX),
    ):
        for record in sorted(folder.iterdir()):
            if record.name != _RECORDS_LOCK and record.suffix != _UNREADABLE:
                try:
                    _recover_record(record, root, found)
                except OSError as error:
                    found.waiting.append(error.strerror or "")
    return found


@contextlib.contextmanager
def _records_locked(folder: Path, lock: int) -> Generator[None]:
    """Lock the folder: shared to make a record, exclusive to recover.

    Without it a record between its creation and its own lock would look abandoned.

    Raises:
        BlockingIOError: Another process has had it locked for a while.
    """
    descriptor = os.open(folder / _RECORDS_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + _LOCK_PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, lock | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        yield
        # Closing is not enough: a child that is being forked has the descriptor until its exec.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _recover_record(record: Path, root: str, found: Recovery) -> None:
    """Finish or undo the batch of a record that no process works on, and delete it."""
    try:
        descriptor = os.open(record, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in _NO_RECORD:
            raise
        _set_aside(record, found)
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if record.suffix == ".new":
            record.unlink()
            return
        try:
            plans = _read_record(descriptor, root)
        except (ValueError, RecursionError):
            _set_aside(record, found)
            return
        with FolderHandles(root) as handles:
            if record.suffix == ".open":
                _finish(plans, handles, found)
            for plan in reversed(plans):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    placed = _placed(plan, handles)
                    if record.suffix == ".back":
                        _undo_change(placed)
                    if kept := _delete_temporaries(placed):
                        found.kept.append(f"{os.path.dirname(plan.target)}/{kept}")  # noqa: PTH120
                if record.suffix != ".done":
                    remove_empty(plan.folders, handles)
            handles.sync()
        record.unlink()
    except (BlockingIOError, FileNotFoundError):
        return
    finally:
        os.close(descriptor)


def _finish(plans: Sequence[PlannedWrite], handles: FolderHandles, found: Recovery) -> None:
    """Finish a batch of which a file was replaced; where that is impossible, the file stays.

    A decided batch is never rolled back: other programs may have built on it since.

    Raises:
        OSError: The system refuses now.
    """
    states = [_state_of(plan, handles) for plan in plans]
    for plan, state in zip(plans, states, strict=True):
        if state is _WriteState.CAUGHT:
            _undo_change(_placed(plan, handles))
    left = [plan for plan, state in zip(plans, states, strict=True) if state is _WriteState.OLD]
    if _WriteState.NEW not in states or not all(_can_follow(plan, handles) for plan in left):
        return
    if not all(state in (_WriteState.OLD, _WriteState.NEW) for state in states):
        return
    for plan in left:
        with contextlib.suppress(atomic.ChangedOnDiskError):
            _exchange(_placed(plan, handles))
            found.finished.append(plan.target)


def _state_of(plan: PlannedWrite, handles: FolderHandles) -> _WriteState:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        placed = _placed(plan, handles)
        now = atomic.digest_of(placed.target)
        if now == plan.before:
            return _WriteState.OLD
        if now == plan.after:
            digest = atomic.digest_of(placed.swap)
            caught = digest not in (None, plan.before, plan.after)
            return _WriteState.CAUGHT if caught else _WriteState.NEW
    return _WriteState.OTHER


def _can_follow(plan: PlannedWrite, handles: FolderHandles) -> bool:
    """Whether a file that holds its old bytes can still get the new ones."""
    if plan.after is None:
        return True
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return atomic.digest_of(_placed(plan, handles).swap) == plan.after
    return False


def _read_record(descriptor: int, root: str) -> list[PlannedWrite]:
    """The plans in a record; ValueError or RecursionError if it has none."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_RECORD:
        raise ValueError("no record")
    with open(descriptor, "rb", closefd=False) as stream:
        plans = convert(json.load(stream), list[PlannedWrite])
    below = f"{root.rstrip('/')}/"
    for plan in plans:
        if not re.fullmatch("[0-9a-f]+", plan.token):
            raise ValueError("no plan")
        if not all(f"{path}/".startswith(below) for path in (plan.target, *plan.folders)):
            raise ValueError("another folder")
    return plans


def _set_aside(record: Path, found: Recovery) -> None:
    """Set an unreadable record aside, so that it blocks nothing."""
    aside = record.with_name(f"{record.name}{_UNREADABLE}")
    with contextlib.suppress(OSError):
        record.rename(aside)
        found.unreadable.append(str(aside))


def remove_empty(folders: tuple[str, ...], handles: FolderHandles) -> None:
    """Delete those of ``folders`` (outermost first) that are empty."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            Path(handles.path(folder)).rmdir()
