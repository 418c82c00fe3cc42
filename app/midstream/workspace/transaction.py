"""All or nothing: puts the files of one batch in place, or leaves every one as it was.

First all new bytes are written beside their targets, where most failures happen and cost nothing;
then the targets are replaced one after another; a failure there takes the earlier ones back.  A
process killed in between leaves a record from which :func:`midstream.workspace.pending.recover`
finishes the job.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from midstream.workspace import atomic, pending
from midstream.workspace.errors import (
    BusyFileError,
    ReadOnlyFileError,
    StaleFileError,
    StateFolderError,
    WriteFailedError,
)
from midstream.workspace.ledger import Ledger, content_digest
from midstream.workspace.paths import shown

_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}


@dataclass(frozen=True, slots=True)
class Change:
    """One file of a batch on its way to disk; bytes are None where there is no file."""

    rel: str
    before: bytes | None
    after: bytes | None
    status: os.stat_result | None
    """Of the file that is replaced."""
    like: os.stat_result | None
    """Of the file whose mode and owner the new one takes; None for the usual mode."""
    mode: int | None
    """Permission bits for a file that does not exist now; None leaves them to ``like``."""
    plan: pending.PlannedChange


def plan_change(target: str, before: bytes | None, after: bytes | None) -> pending.PlannedChange:
    """What a record needs to know of a change of ``target`` (a real path)."""
    return pending.PlannedChange(
        target,
        secrets.token_hex(6),
        None if before is None else content_digest(before),
        None if after is None else content_digest(after),
        _missing_folders(target),
    )


def put_in_place(
    changes: Sequence[Change], ledger: Ledger, records: Path, not_happened: Callable[[], None]
) -> None:
    """Write all of ``changes`` or none.

    Args:
        changes: files of the batch, each another one.
        ledger: learns what is on disk afterwards; its lock is held by the caller.
        records: folder of the intent records.
        not_happened: called before an exception leaves when no byte of the batch is left on disk.

    Raises:
        StaleFileError, BusyFileError, ReadOnlyFileError, WriteFailedError: one file failed; the
        others are back to what
            they were, except one that the user changed in this moment, which keeps the user's
            bytes.
        StateFolderError: no record could be made; nothing was touched.
    """
    try:
        record = pending.PendingBatch(records, [change.plan for change in changes])
    except OSError as error:
        not_happened()
        raise state_refused(records, error) from error
    tried: list[Change] = []
    try:
        for change in changes:
            _stage(change)
        for change in changes:
            tried.append(change)
            _swap(change)
            ledger.record(change.rel, change.plan.after, len(change.after or b""))
        record.commit()
    except BaseException:
        undone = [_roll_back(change, ledger) for change in reversed(tried)]
        # The last one tried is the one that failed: what it holds now was never ours.
        if all(undone[1:]):
            not_happened()
        raise
    finally:
        for change in reversed(changes):
            for leftover in (change.plan.part, change.plan.swap):
                with contextlib.suppress(OSError):
                    Path(leftover).unlink()
            pending.remove_empty(change.plan.folders)
        record.close()


def stale(rel: str) -> StaleFileError:
    """The error for a file that is not what its writer believed."""
    return StaleFileError(
        f"{shown(rel)} has changed on disk; nothing was written, look at the new content first."
    )


def state_refused(folder: Path, error: OSError) -> StateFolderError:
    """The error for a state folder that cannot be used."""
    return StateFolderError(
        f"Midstream cannot keep a checkpoint in {shown(folder)} ({error.strerror}); "
        "set MIDSTREAM_STATE_DIR to a folder that can be written."
    )


def _stage(change: Change) -> None:
    """Write the new bytes beside the target."""
    if change.after is None:
        return
    plan = change.plan
    with _explained(change.rel):
        for folder in plan.folders:
            Path(folder).mkdir(exist_ok=True)
        source = plan.target if change.status else None
        atomic.write_part(plan.part, change.after, change.like, source)
        if change.mode is not None and change.status is None:
            Path(plan.part).chmod(change.mode)
        Path(plan.part).rename(plan.swap)


def _swap(change: Change) -> None:
    """The moment of truth for one file."""
    plan = change.plan
    with _explained(change.rel):
        if plan.before is None:
            atomic.create(plan.swap, plan.target)
        elif plan.after is None:
            atomic.remove(plan.swap, plan.target, plan.before)
        else:
            atomic.replace(plan.swap, plan.target, plan.before, plan.after)


def _roll_back(change: Change, ledger: Ledger) -> bool:
    undone = pending.roll_back(change.plan)
    if undone:
        ledger.record(change.rel, change.plan.before, len(change.before or b""))
    return undone


@contextlib.contextmanager
def _explained(rel: str) -> Generator[None]:
    try:
        yield
    except atomic.OpenForWritingError as error:
        raise BusyFileError(
            f"{shown(rel)} is open for writing in another program; close it there and retry."
        ) from error
    except atomic.ChangedOnDiskError as error:
        raise stale(rel) from error
    except OSError as error:
        if error.errno in _DENIED:
            raise ReadOnlyFileError(
                f"The folder of {shown(rel)} cannot be written ({error.strerror}); "
                "check its permissions."
            ) from error
        raise WriteFailedError(
            f"{shown(rel)} was not written ({error.strerror}); its old content is in place."
        ) from error


def _missing_folders(target: str) -> tuple[str, ...]:
    """Folders above ``target`` that do not exist, outermost first."""
    missing: list[str] = []
    for folder in Path(target).parents:
        if folder.exists():
            break
        missing.append(str(folder))
    return tuple(reversed(missing))
