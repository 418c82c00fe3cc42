"""The workspace: the only way to read and write user files.

Every write is a batch: compared with the content the caller expects, kept in a checkpoint, put in
place file by file without a torn moment, and rolled back as a whole when one file fails.  Content
is bytes here; encodings and line endings belong to ``edits.documents``.

All methods block (call them in a thread) and are thread-safe.  ``workspace.boundary``
decides which paths are allowed, ``workspace.transaction`` writes a batch and recovers
from a kill, ``workspace.checkpoints`` remembers, ``workspace.listing``
lists.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

from midstream.workspace import atomic, boundary
from midstream.workspace.checkpoints import Checkpoint, CheckpointLog, SavedFile
from midstream.workspace.content import (
    MAX_FILE_BYTES,
    Entry,
    LinkTarget,
    content_digest,
    is_link_digest,
)
from midstream.workspace.errors import (
    BusyFileError,
    FileTooLargeError,
    MissingFileError,
    NotAFileError,
    OutsideWorkspaceError,
    ReadOnlyFileError,
    SnapshotError,
    StaleFileError,
    StateFolderError,
    UnreadableFileError,
    WorkspaceError,
    WriteFailedError,
)
from midstream.workspace.handles import FolderHandles
from midstream.workspace.ledger import Ledger
from midstream.workspace.listing import IgnoreRules, files_outside, list_files
from midstream.workspace.paths import folders_of, root_state_dir, shown, state_dir
from midstream.workspace.repo import GitFailedError, find_repository, run_git
from midstream.workspace.transaction import (
    FileWrite,
    plan_change,
    recover,
    remove_empty,
    stale,
    state_refused,
    write_batch,
)

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

_LIMIT = f"{MAX_FILE_BYTES // 1_000_000} MB"


class Workspace:
    """The files below one folder.

    Opening it finishes or undoes writes that were cut off by a kill.

    Args:
        root: The folder; symlinks in its own path are resolved once, here.
        state: Midstream's state folder, by default ``state_dir``.
        snapshot_of: The range of commits whose files the folder has; then nothing is written.

    Attributes:
        snapshot_of: See above; ``""`` for files of the user.
        recovery: What to tell the user about writes that were cut off.

    Raises:
        MissingFileError: The root is not a folder.
        OutsideWorkspaceError: The root lies inside a ``.git`` folder.
    """

    def __init__(self, root: Path, *, state: Path | None = None, snapshot_of: str = "") -> None:
        self._root = boundary.check_root(root)
        self.root = Path(self._root)
        if not self.root.is_dir():
            raise MissingFileError(
                f"There is no folder {shown(root)}", "create it or open another one"
            )
        self.state = root_state_dir(state_dir() if state is None else state, self.root)
        self.snapshot_of = snapshot_of
        self.ledger = Ledger()
        self._log: CheckpointLog | None = None
        self._undo: list[tuple[str, str]] = []
        self._recovered = False
        self.recovery: list[str] = []
        # Nothing is shown or written before what a killed process left is in order.
        with contextlib.suppress(StateFolderError):
            self.recover()

    # -- looking ---------------------------------------------------------------------------------

    def relative(self, path: str | Path) -> str:
        """The one name of a file: relative to the root, ``/`` between parts, symlinks resolved.

        Raises:
            OutsideWorkspaceError: The path leaves the root or belongs to git.
        """
        return boundary.resolve_inside(self._root, path)

    def entry_name(self, path: str | Path) -> str:
        """As ``relative``, but a symlink in last place stands for itself; raises as that."""
        return boundary.resolve_entry(self._root, path)

    def read(self, rel: str) -> bytes:
        """Content of a file, which the watcher follows from now on, ignored or not.

        Raises:
            OutsideWorkspaceError: See ``relative``.
            MissingFileError: There is no such file.
            NotAFileError: A folder, pipe, device or socket.
            FileTooLargeError: More than ``MAX_FILE_BYTES``.
            UnreadableFileError: The system refuses.
        """
        return self._follow(self.relative(rel)).data

    def look(self, rel: str) -> Entry:
        """What a name stands for, a symlink for itself; followed and raises as ``read``."""
        return self._follow(self.entry_name(rel))

    def current(self, name: str) -> Entry | None:
        """What a name that this workspace gave out stands for now; followed and raises as ``read``.

        Returns:
            ``None`` if no file has the name: it is gone, a folder took its place, or a folder above
            it became a link, behind which other files are.
        """
        if not self.stands(name):
            return None
        try:
            return self._follow(name)
        except MissingFileError:
            return None

    def stands(self, name: str) -> bool:
        """Whether a file or link has the name now; the rest as ``current``."""
        return self.is_free(name) and os.path.lexists(self._real(name))

    def is_free(self, name: str) -> bool:
        """Whether a file can have this name: no folder has it, and none of its own is a link."""
        try:
            place = self._real(name)  # Methods of ``Path`` fail for a name that is too long.
            taken = os.path.isdir(place) and not os.path.islink(place)  # noqa: PTH112, PTH114
            return self.entry_name(name) == name and not taken
        except OutsideWorkspaceError:
            return False

    def inner_repository(self, name: str) -> str | None:
        """The folder on the way to a name that is a repository of its own, if there is one."""
        return boundary.inner_repository(self._root, name)

    def check_room(self, name: str, gone: Collection[str] = ()) -> None:
        """Check that a file can be made.

        Args:
            name: The file.
            gone: Files that are deleted before.

        Raises:
            NotAFileError: A file has the name of one of its folders.
            ReadOnlyFileError: The folder may not be written.
        """
        for folder in reversed(list(folders_of(name))):
            place = Path(self._real(folder))
            if folder in gone or not os.path.lexists(place):
                continue
            if not place.is_dir():
                raise NotAFileError(
                    f"{shown(folder)} is no folder, so {shown(name)} cannot be made",
                    "choose another name, or remove it first",
                )
            if not os.access(place, os.W_OK):
                raise ReadOnlyFileError(
                    f"{shown(name)} cannot be made: {shown(folder)} may not be written",
                    "change its permissions",
                )
            return

    def make_room(self, name: str) -> None:
        """Remove a folder without files, and those in it, where a file is to be."""
        with contextlib.suppress(OSError), FolderHandles(self._root) as handles:
            place = handles.path(self._real(name))
            # ``os.fwalk`` waits for a pipe.
            if Path(place).is_dir() and not any(files for _, _, files, _ in os.fwalk(place)):
                for _, folders, _, handle in os.fwalk(place, topdown=False):
                    for folder in folders:
                        os.rmdir(folder, dir_fd=handle)
                Path(place).rmdir()

    def _follow(self, name: str) -> Entry:
        with self.ledger.lock:
            data, status = self._load(name)
            entry = Entry(data, atomic.may_run(status))
            self.ledger.opened(name, entry.digest, len(data), atomic.may_run(status))
        return entry

    def peek(self, rel: str) -> bytes:
        """Like ``read``, but the watcher does not follow the file."""
        return self._load(self.relative(rel))[0]

    def peek_entry(self, rel: str) -> Entry:
        """Like ``look``, but the watcher does not follow the name."""
        data, status = self._load(self.entry_name(rel))
        return Entry(data, atomic.may_run(status))

    def digest(self, rel: str) -> str | None:
        """Digest of the content on disk, None when there is no file; raises as ``read``.

        A symlink in last place stands for itself.
        """
        try:
            return self.peek_entry(rel).digest
        except MissingFileError:
            return None

    def mode(self, rel: str) -> int | None:
        """Permissions of a file, None for a symlink or no file; raises as ``read``."""
        try:
            data, status = self._load(self.entry_name(rel))
        except MissingFileError:
            return None
        return None if isinstance(data, LinkTarget) else stat.S_IMODE(status.st_mode)

    def ignores(self, rel: str) -> bool:
        """Whether git ignores a file; a tracked one never is.

        Raises:
            OutsideWorkspaceError: See ``relative``.
        """
        name = self.relative(rel)
        place = find_repository(self.root)
        if not IgnoreRules(self.root, place).ignores(name):
            return False
        try:
            run_git(self.root, ["ls-files", "--error-unmatch", "--", name])
        except GitFailedError:
            return True
        return False

    def files(self) -> list[str]:
        """Paths of the files, sorted; at most ``listing.MAX_FILES``."""
        return list_files(self.root)[0]

    def other_names(self, paths: Collection[str]) -> frozenset[str]:
        """Further names of files below the root (hard links): a write to one changes them all.

        A watcher hears of the name that was used only.
        """
        linked: set[tuple[int, int]] = set()
        for path in paths:
            with contextlib.suppress(OSError, ValueError):
                status = (self.root / path).lstat()
                if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                    linked.add((status.st_dev, status.st_ino))
        found: set[str] = set()
        for path in list_files(self.root)[0] if linked else ():
            with contextlib.suppress(OSError):
                status = (self.root / path).lstat()
                if (status.st_dev, status.st_ino) in linked:
                    found.add(path)
        return frozenset(found)

    def files_outside(self, word: str) -> list[str]:
        """Python files of the repository around the root that have a word, such as ``../a.py``."""
        return files_outside(self.root, word)

    # -- writing ---------------------------------------------------------------------------------

    @property
    def read_only(self) -> bool:
        """Whether the files are those of a range of commits."""
        return bool(self.snapshot_of)

    @property
    def refusal(self) -> str:
        """Why nothing may change here, files or repository; ``""`` for files of the user."""
        if not self.read_only:
            return ""
        return (
            f"A review of {shown(self.snapshot_of)} is read-only: keeping a hunk marks it as read; "
            "nothing is put back, written or committed."
        )

    def require_writable(self) -> None:
        """Refuse what would change a file or the repository.

        Raises:
            SnapshotError: The files are those of a range of commits.
        """
        if refusal := self.refusal:
            raise SnapshotError(refusal)

    def write(self, rel: str, data: bytes, *, expected: str | None) -> str:
        """Replace one file's content if it is still what the caller expects.

        Mode, owner (as far as allowed), extended attributes and an inside symlink are kept; missing
        folders are made.  Another hard link to the file keeps the old content, since it may lie
        outside the root.

        Args:
            rel: Path below the root.
            data: The whole new content.
            expected: Digest of the content being replaced; None for "there is no such file".

        Returns:
            Digest of ``data``, which is now on disk.

        Raises:
            StaleFileError: The disk holds something else; ``BusyFileError`` if another program is
                writing it.
            ReadOnlyFileError: The file or its folder may not be written.
            WriteFailedError: Disk full and the like.
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
        modes: Mapping[str, int] | None = None,
    ) -> Checkpoint:
        """Write several files, all or none; raises as ``write``.

        After an error every file is as before, except one that the user changed at this moment,
        which keeps the user's bytes.

        Args:
            batch: New content by path; None deletes the file, a ``LinkTarget`` makes a symlink.
            expected: Digest that must be on disk for every path, None for "no such file".
            label: Name of the batch, for the list of checkpoints.
            modes_from: For a file that moves, new path -> old path whose mode it keeps.
            modes: Permissions of files that are made; of others they stay.

        Returns:
            The checkpoint of the state before; its ``id`` is empty when every file already held its
            new content.
        """
        names = {rel: self._written_name(rel, batch[rel], expected[rel]) for rel in batch}
        if len(set(names.values())) != len(names):
            raise OutsideWorkspaceError("Two paths in one change are the same file", "name it once")
        return self._transact(
            {names[rel]: data for rel, data in batch.items()},
            {names[rel]: expected[rel] for rel in batch},
            label,
            {names[new]: self.relative(old) for new, old in (modes_from or {}).items()},
            modes={names[rel]: mode for rel, mode in (modes or {}).items()},
        )

    def set_executable(self, path: str, executable: bool) -> None:
        """Make a file executable for all who may read it, or for none, as git does.

        Checkpoints do not hold modes: an undo restores bytes only.  Raises as ``read``, and
        WriteFailedError if the system refuses.
        """
        self.require_writable()
        rel = self.relative(path)
        _, status = self._load(rel)
        mode = stat.S_IMODE(status.st_mode) & ~0o111
        if executable:
            mode |= (mode & 0o444) >> 2
        with self.ledger.lock:
            try:
                with FolderHandles(self._root) as handles:
                    atomic.change_mode(handles.path(self._real(rel)), mode)
            except OSError as error:
                raise WriteFailedError(
                    f"The mode of {shown(rel)} cannot be changed ({error.strerror})",
                    "its content is already as intended",
                ) from error
            data, status = self._load(rel)
            self.ledger.record(rel, content_digest(data), len(data), atomic.may_run(status))

    def undo_write(self) -> list[str]:
        """Restore the bytes that the last batch replaced; each call goes one batch further back.

        Returns:
            The paths restored; empty when nothing is left to undo.

        Raises:
            StaleFileError: The user changed one of the files since; nothing is restored.
            StateFolderError: The checkpoint is gone.
        """
        with self.ledger.lock:
            if not self._undo:
                return []
            checkpoint_id, label = self._undo[-1]
            try:
                changes = self.log.load(checkpoint_id)
            except KeyError:
                raise StateFolderError(
                    f"What {shown(label)} replaced is no longer kept", "undo it by hand"
                ) from None
            done = self._restore(changes, f"undo of {label}")
            self._undo.pop()
            return done

    # -- checkpoints -----------------------------------------------------------------------------

    @property
    def log(self) -> CheckpointLog:
        """All checkpoints of this root; asks git at first use."""
        with self.ledger.lock:
            if self._log is None:
                self._log = CheckpointLog(self.root, self.state / "checkpoints")
            return self._log

    def recover(self) -> list[str]:
        """Clean up after a process that was killed while writing; done when a folder is opened.

        Returns:
            Files that were kept because they hold bytes that are nowhere else (normally none).

        Raises:
            StateFolderError: The records of writes cannot be looked at.
        """
        with self.ledger.lock:
            try:
                found = recover(self.state / "pending", self._root)
            except OSError as error:
                raise state_refused(self.state, error) from error
            self._recovered = True
            self.recovery += found.sentences()
            return found.kept

    # -- inside ----------------------------------------------------------------------------------

    def _load(self, rel: str) -> tuple[bytes, os.stat_result]:
        try:
            with FolderHandles(self._root) as handles:
                path = self._real(rel)
                there = path if rel == "." else handles.path(path)
                return atomic.read_entry(there, MAX_FILE_BYTES)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise MissingFileError(f"There is no file {shown(rel)}", "check the name") from error
        except atomic.NotRegularError as error:
            raise NotAFileError(
                f"{shown(rel)} is not a regular file", "name a text file"
            ) from error
        except atomic.TooLargeError as error:
            raise FileTooLargeError(
                f"{shown(rel)} is larger than {_LIMIT}", "split it or work on another file"
            ) from error
        except OSError as error:
            raise UnreadableFileError(
                f"{shown(rel)} cannot be read ({error.strerror})", "check its permissions"
            ) from error

    def _written_name(self, rel: str, data: bytes | None, expected: str | None) -> str:
        """The one name of a file to write; a link is replaced itself where it is meant."""
        if isinstance(data, LinkTarget) or is_link_digest(expected):
            return self.entry_name(rel)
        return self.relative(rel)

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
                self._prepare(
                    rel, data, expected[rel], (modes_from or {}).get(rel), (modes or {}).get(rel)
                )
                for rel, data in batch.items()
            ]
            changes = [change for change in changes if change.before != change.after]
            if not changes:
                return Checkpoint("", label, 0.0, ())
            self.require_writable()
            try:
                checkpoint = self.log.save(label, [self._remembered(c) for c in changes])
            except OSError as error:
                raise state_refused(self.state, error) from error
            self._recovered = False  # A batch that fails may leave what the next one has to undo.
            write_batch(
                self._root,
                changes,
                self.ledger,
                self.state / "pending",
                lambda: self.log.forget(checkpoint),
            )
            self._recovered = True
            if undoable:
                self._undo.append((checkpoint.id, label))
            return checkpoint

    def _prepare(
        self,
        rel: str,
        data: bytes | None,
        expected: str | None,
        mode_from: str | None,
        mode: int | None,
    ) -> FileWrite:
        if rel == ".":
            raise NotAFileError("The workspace folder itself is not a file", "name a file in it")
        if data is not None and len(data) > MAX_FILE_BYTES:
            raise FileTooLargeError(f"{shown(rel)} would be larger than {_LIMIT}", "split it")
        before: bytes | None
        status: os.stat_result | None
        try:
            before, status = self._load(rel)
        except MissingFileError:
            before, status = None, None
        plan = plan_change(self._real(rel), before, data)
        if plan.before != expected:
            raise stale(rel)
        if isinstance(before, LinkTarget):
            status = None  # Its own mode is meaningless.
        if status is not None and not (status.st_mode & 0o222 and os.access(plan.target, os.W_OK)):
            if not Path(plan.target).exists():
                # Deleted since it was read.
                raise stale(rel)
            raise ReadOnlyFileError(
                f"{shown(rel)} is read-only", "make it writable (chmod u+w) and try again"
            )
        like = status if mode_from is None else self._load(mode_from)[1]
        return FileWrite(rel, before, data, status, like, mode, plan)

    def _remembered(self, change: FileWrite) -> SavedFile:
        mode = 0o644 if change.status is None else stat.S_IMODE(change.status.st_mode)
        folders = tuple(os.path.relpath(folder, self._root) for folder in change.plan.folders)
        return SavedFile(change.rel, change.before, change.plan.after, mode, folders)

    def _restore(self, changes: list[SavedFile], label: str) -> list[str]:
        """Restore the bytes before ``changes`` in every file that still holds the bytes after."""
        batch = {change.rel: change.before for change in changes}
        expected = {change.rel: change.after for change in changes}
        for change in changes:
            before = None if change.before is None else content_digest(change.before)
            if before != change.after and self.digest(change.rel) == before:
                # The user has already restored it by hand.
                expected[change.rel] = before
        modes = {change.rel: change.mode for change in changes if change.before is not None}
        self._transact(batch, expected, label, undoable=False, modes=modes)
        with FolderHandles(self._root) as handles:
            for change in reversed(changes):
                remove_empty(tuple(self._real(folder) for folder in change.folders), handles)
        return sorted(batch)
