"""The workspace: the only door through which user files are read and written.

Every write is a batch: checked against the content the caller believed in, kept in a checkpoint,
put in place file by file without a torn moment, and rolled back as a whole when one file fails.
Content is bytes here; encodings, line endings and byte order marks are nobody's business but
:mod:`midstream.edits.documents`.

All methods block (call them in a thread) and are safe to call from several threads.  What the parts
do: :mod:`~midstream.workspace.boundary` says which paths are allowed,
:mod:`~midstream.workspace.atomic` replaces one file, :mod:`~midstream.workspace.pending` tidies up
after a killed process, :mod:`~midstream.workspace.checkpoints` remembers,
:mod:`~midstream.workspace.listing` lists.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

from midstream.workspace import atomic, boundary, pending
from midstream.workspace.checkpoints import Checkpoint, CheckpointStore, FileChange, FolderStore
from midstream.workspace.errors import (
    BusyFileError,
    FileTooLargeError,
    MissingFileError,
    NotAFileError,
    OutsideWorkspaceError,
    ReadOnlyFileError,
    StaleFileError,
    StateFolderError,
    UnreadableFileError,
    WorkspaceError,
    WriteFailedError,
)
from midstream.workspace.ledger import Ledger, content_digest
from midstream.workspace.listing import list_files
from midstream.workspace.paths import root_state_dir, shown, state_dir

__all__ = [
    "MAX_FILE_BYTES",
    "BusyFileError",
    "Checkpoint",
    "FileTooLargeError",
    "MissingFileError",
    "NotAFileError",
    "OutsideWorkspaceError",
    "ReadOnlyFileError",
    "StaleFileError",
    "StateFolderError",
    "UnreadableFileError",
    "Workspace",
    "WorkspaceError",
    "WriteFailedError",
    "content_digest",
]

MAX_FILE_BYTES = 20_000_000
"""Largest file that is read or written."""

_LIMIT = f"{MAX_FILE_BYTES // 1_000_000} MB"
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}


@dataclass(slots=True)
class _Change:
    """One file of a batch on its way to disk."""

    rel: str
    real: str
    before: bytes | None
    after: bytes | None
    status: os.stat_result | None
    like: os.stat_result | None
    plan: pending.PlannedChange

    def remembered(self) -> FileChange:
        mode = 0o644 if self.status is None else stat.S_IMODE(self.status.st_mode)
        root = self.real[: -len(self.rel)]
        folders = tuple(folder.removeprefix(root) for folder in self.plan.folders)
        return FileChange(self.rel, self.before, self.plan.after, mode, folders)


class Workspace:
    """The files below one folder.

    Args:
        root: the folder; symlinks in its own path are resolved once, here.
        state: Midstream's state folder; None takes :func:`~midstream.workspace.paths.state_dir`.

    Raises:
        MissingFileError: the root is no folder.
        OutsideWorkspaceError: the root lies inside a ``.git`` folder.
    """

    def __init__(self, root: Path, *, state: Path | None = None) -> None:
        self._root = boundary.check_root(root)
        self.root = Path(self._root)
        if not self.root.is_dir():
            raise MissingFileError(
                f"There is no folder {shown(root)}; create it or open another one."
            )
        self.state = root_state_dir(state_dir() if state is None else state, self.root)
        self.ledger = Ledger()
        self._store: CheckpointStore | None = None
        self._undo: list[str] = []
        self._recovered = False
        self.files_notice = ""

    # -- looking ---------------------------------------------------------------------------------

    def relative(self, path: str | Path) -> str:
        """The one name of a file: relative to the root, ``/`` between parts, symlinks resolved.

        Raises:
            OutsideWorkspaceError: the path leaves the root or belongs to git.
        """
        return boundary.resolve_inside(self._root, path)

    def read(self, rel: str) -> bytes:
        """Content of a file.

        Raises:
            OutsideWorkspaceError: see :meth:`relative`.
            MissingFileError: there is no such file.
            NotAFileError: a folder, pipe, device or socket.
            FileTooLargeError: more than :data:`MAX_FILE_BYTES`.
            UnreadableFileError: the system refuses.
        """
        name = self.relative(rel)
        data, _ = self._load(name)
        self.ledger.open(name)
        return data

    def digest(self, rel: str) -> str | None:
        """Digest of the content on disk now, None when there is no file; raises like
        :meth:`read`.
        """
        try:
            return content_digest(self._load(self.relative(rel))[0])
        except MissingFileError:
            return None

    def owns(self, rel: str, digest: str | None) -> bool:
        """Whether this workspace's last write of ``rel`` left exactly this content."""
        return self.ledger.owns(self.relative(rel), digest)

    def files(self) -> list[str]:
        """Paths a person may want to open, sorted; :attr:`files_notice` says when the list was
        cut.
        """
        paths, self.files_notice = list_files(self.root)
        return paths

    # -- writing ---------------------------------------------------------------------------------

    def write(self, rel: str, data: bytes, *, expected: str | None) -> str:
        """Replace one file's content if it is still what the caller believes.

        Mode, owner (as far as allowed), extended attributes and an inside symlink are kept; missing
        folders are made.

        Args:
            rel: path below the root.
            data: the whole new content.
            expected: digest of the content being replaced; None for "there is no such file".

        Returns:
            Digest of ``data``, which is now on disk.

        Raises:
            StaleFileError: the disk holds something else; ``BusyFileError`` if another program is
                writing it.
            ReadOnlyFileError: the file or its folder may not be written.
            WriteFailedError: disk full and the like.
        """
        name = self.relative(rel)
        self._transact({name: data}, {name: expected}, f"write {name}")
        return content_digest(data)

    def write_all(
        self,
        batch: Mapping[str, bytes | None],
        expected: Mapping[str, str | None],
        label: str,
        *,
        modes_from: Mapping[str, str] | None = None,
    ) -> Checkpoint:
        """Write several files, all or none.

        Args:
            batch: new content by path; None deletes the file.
            expected: for every path of ``batch`` the digest that must be on disk, None for "no such
                file".
            label: what the batch is, for people.
            modes_from: for a file that moves, new path -> old path whose mode it keeps.

        Returns:
            The checkpoint of the state before; its ``id`` is empty when every file already held its
            new content.

        Raises:
            StaleFileError, ReadOnlyFileError, WriteFailedError: as :meth:`write`; every file is as
            it was before,
                except one the user changed meanwhile, which keeps the user's bytes.
        """
        names = {rel: self.relative(rel) for rel in batch}
        if len(set(names.values())) != len(names):
            raise OutsideWorkspaceError("Two paths of one change are the same file; name it once.")
        return self._transact(
            {names[rel]: data for rel, data in batch.items()},
            {names[rel]: expected[rel] for rel in batch},
            label,
            {names[new]: self.relative(old) for new, old in (modes_from or {}).items()},
        )

    def undo_write(self) -> list[str]:
        """Restore the bytes that the last batch replaced; again and again goes further back.

        Returns:
            The paths restored; empty when this workspace has written nothing (more).

        Raises:
            StaleFileError: the user changed one of the files since; nothing is restored.
        """
        with self.ledger.lock:
            if not self._undo:
                return []
            changes = self.checkpoint_store().load(self._undo[-1])
            done = self._restore(changes, f"undo of {len(changes)} file(s)")
            self._undo.pop()
            return done

    # -- checkpoints -----------------------------------------------------------------------------

    def checkpoint_store(self) -> CheckpointStore:
        """Where checkpoints are kept: the repository, or the state folder; chosen at first use."""
        with self.ledger.lock:
            if self._store is None:
                self._store = FolderStore(self.state / "checkpoints", "no git repository")
            return self._store

    def recover(self) -> list[str]:
        """Tidy up after a process that was killed while it wrote below this root; runs by itself
        before the first write.

        Returns:
            Files that were kept because they hold bytes that are nowhere else (normally none).
        """
        with self.ledger.lock:
            self._recovered = True
            return pending.recover(self.state / "pending")

    # -- inside ----------------------------------------------------------------------------------

    def _load(self, rel: str) -> tuple[bytes, os.stat_result]:
        try:
            return atomic.read_regular(self._real(rel), MAX_FILE_BYTES)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise MissingFileError(f"There is no file {shown(rel)}; check the name.") from error
        except atomic.NotRegularError as error:
            raise NotAFileError(f"{shown(rel)} is not a regular file; name a text file.") from error
        except atomic.TooLargeError as error:
            raise FileTooLargeError(
                f"{shown(rel)} is larger than {_LIMIT}; split it or work on another file."
            ) from error
        except OSError as error:
            raise UnreadableFileError(
                f"{shown(rel)} cannot be read ({error.strerror}); check its permissions."
            ) from error

    def _real(self, rel: str) -> str:
        return self._root if rel == "." else f"{self._root.rstrip('/')}/{rel}"

    def _transact(
        self,
        batch: Mapping[str, bytes | None],
        expected: Mapping[str, str | None],
        label: str,
        modes_from: Mapping[str, str] | None = None,
        *,
        undoable: bool = True,
        modes: Mapping[str, int] | None = None,
    ) -> Checkpoint:
        with self.ledger.lock:
            if not self._recovered:
                self.recover()
            changes = [
                self._prepare(rel, data, expected[rel], (modes_from or {}).get(rel))
                for rel, data in batch.items()
            ]
            changes = [change for change in changes if change.before != change.after]
            if not changes:
                return Checkpoint("", label, 0.0, ())
            store = self.checkpoint_store()
            try:
                checkpoint = store.save(label, [change.remembered() for change in changes])
            except OSError as error:
                raise self._state_refused(error) from error
            self._put_in_place(changes, modes or {}, lambda: store.forget(checkpoint))
            if undoable:
                self._undo.append(checkpoint.id)
            return checkpoint

    def _prepare(
        self, rel: str, data: bytes | None, expected: str | None, mode_from: str | None
    ) -> _Change:
        """Check one file of a batch; nothing is touched yet."""
        if rel == ".":
            raise NotAFileError("The workspace folder itself is not a file; name a file in it.")
        if data is not None and len(data) > MAX_FILE_BYTES:
            raise FileTooLargeError(f"{shown(rel)} would be larger than {_LIMIT}; split it.")
        real = self._real(rel)
        before: bytes | None
        status: os.stat_result | None
        try:
            before, status = self._load(rel)
        except MissingFileError:
            before, status = None, None
        if (None if before is None else content_digest(before)) != expected:
            raise self._stale(rel)
        if status is not None and (not status.st_mode & 0o222 or not os.access(real, os.W_OK)):
            raise ReadOnlyFileError(
                f"{shown(rel)} is read-only; make it writable (chmod u+w) and try again."
            )
        like = status
        if mode_from is not None:
            like = self._load(mode_from)[1]
        plan = pending.PlannedChange(
            real,
            secrets.token_hex(6),
            expected,
            None if data is None else content_digest(data),
            _missing_folders(real),
        )
        return _Change(rel, real, before, data, status, like, plan)

    def _put_in_place(
        self, changes: list[_Change], modes: Mapping[str, int], not_happened: Callable[[], None]
    ) -> None:
        """Write all of ``changes`` or none; ``not_happened`` is called when everything is as it
        was.
        """
        try:
            record = pending.PendingBatch(
                self.state / "pending", [change.plan for change in changes]
            )
        except OSError as error:
            not_happened()
            raise self._state_refused(error) from error
        swapped: list[_Change] = []
        try:
            for change in changes:
                self._stage(change, modes.get(change.rel))
            for change in changes:
                self._swap(change)
                swapped.append(change)
            record.commit()
        except BaseException:
            undone = [self._roll_back(change) for change in reversed(swapped)]
            if all(undone):
                not_happened()
            raise
        finally:
            for change in reversed(changes):
                for leftover in (change.plan.part, change.plan.swap):
                    with contextlib.suppress(OSError):
                        Path(leftover).unlink()
                pending.remove_empty(change.plan.folders)
            record.close()

    def _roll_back(self, change: _Change) -> bool:
        undone = pending.roll_back(change.plan)
        if undone:
            self.ledger.record(change.rel, change.plan.before)
        return undone

    def _stage(self, change: _Change, mode: int | None) -> None:
        """Write the new bytes beside the target."""
        if change.after is None:
            return
        with self._explained(change.rel):
            for folder in change.plan.folders:
                Path(folder).mkdir(exist_ok=True)
            atomic.write_part(
                change.plan.part, change.after, change.like, change.real if change.status else None
            )
            if mode is not None and change.status is None:
                Path(change.plan.part).chmod(mode)
            Path(change.plan.part).rename(change.plan.swap)

    def _swap(self, change: _Change) -> None:
        """The moment of truth for one file."""
        plan = change.plan
        with self._explained(change.rel):
            if plan.after is None:
                assert plan.before is not None
                atomic.remove(plan.swap, plan.target, plan.before)
            elif plan.before is None:
                atomic.create(plan.swap, plan.target)
            else:
                atomic.replace(plan.swap, plan.target, plan.before, plan.after)
        self.ledger.record(change.rel, plan.after)

    @contextlib.contextmanager
    def _explained(self, rel: str) -> Generator[None]:
        try:
            yield
        except atomic.OpenForWritingError as error:
            raise BusyFileError(
                f"{shown(rel)} is open for writing in another program; close it there and retry."
            ) from error
        except atomic.ChangedOnDiskError as error:
            raise self._stale(rel) from error
        except OSError as error:
            if error.errno in _DENIED:
                raise ReadOnlyFileError(
                    f"The folder of {shown(rel)} cannot be written ({error.strerror}); "
                    "check its permissions."
                ) from error
            raise WriteFailedError(
                f"{shown(rel)} was not written ({error.strerror}); its old content is in place."
            ) from error

    def _restore(self, changes: list[FileChange], label: str) -> list[str]:
        """Bring every file of ``changes`` back to its bytes before, provided it still holds the
        bytes after.
        """
        batch = {change.rel: change.before for change in changes}
        expected = {change.rel: change.after for change in changes}
        for change in changes:
            before = None if change.before is None else content_digest(change.before)
            if before != change.after and self.digest(change.rel) == before:
                # The user went back by hand.
                expected[change.rel] = before
        modes = {change.rel: change.mode for change in changes if change.before is not None}
        self._transact(batch, expected, label, undoable=False, modes=modes)
        for change in reversed(changes):
            pending.remove_empty(tuple(self._real(folder) for folder in change.folders))
        return sorted(batch)

    @staticmethod
    def _stale(rel: str) -> StaleFileError:
        return StaleFileError(
            f"{shown(rel)} has changed on disk; nothing was written, look at the new content first."
        )

    def _state_refused(self, error: OSError) -> StateFolderError:
        return StateFolderError(
            f"Midstream cannot keep a checkpoint in {shown(self.state)} ({error.strerror}); "
            "set MIDSTREAM_STATE_DIR to a folder that can be written."
        )


def _missing_folders(real: str) -> tuple[str, ...]:
    """Folders above ``real`` that do not exist, outermost first."""
    missing: list[str] = []
    for folder in Path(real).parents:
        if folder.exists():
            break
        missing.append(str(folder))
    return tuple(reversed(missing))
