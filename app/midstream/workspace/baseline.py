"""The contents of a folder's files before a review began.

A clean file need not be copied: its text is in the last commit.  Changed and untracked files are
kept in memory, and so is every file of a folder without commits.  Symbolic links of such a folder
count from the first change on.  Everything blocks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from midstream.workspace.content import Entry
from midstream.workspace.repo import (
    GitFailedError,
    RecordedModes,
    RepositoryPlace,
    find_repository,
    recorded_modes,
    run_git,
    work_tree_changes,
)

if TYPE_CHECKING:
    from midstream.workspace.files import Workspace

MAX_BYTES: Final = 64_000_000
"""How many bytes are kept; what does not fit is taken as it is when it first changes."""
MAX_RECORDED: Final = 8_000_000
"""How many bytes a journal keeps of it."""
MAX_FILE_BYTES: Final = 16 << 20
"""What a larger file holds is not kept, bytes."""
MOMENT_S: Final = 2.0
"""How long after a move of HEAD a file that is as committed counts as part of the move."""


LOCK_S: Final = 10.0
"""A lock of the index that is older was left behind by a git that was killed."""


class BaselineRecord(NamedTuple):
    """A baseline as a journal keeps it.

    Attributes:
        head: The commit that clean files are taken from, ``""`` without one.
        log: How many bytes of the reflog of HEAD were looked at.
        kept: What other files held, ``None`` for no file.
    """

    head: str
    log: int
    kept: Mapping[str, Entry | None]


class Baseline:
    """The files of a workspace as they were.

    Attributes:
        head: The commit that clean files are taken from, ``""`` without one.
        changed: Files that differ from the baseline already.
        complete: Whether everything that had to be kept fitted.
    """

    def __init__(
        self, workspace: Workspace, *, since_commit: bool, record: BaselineRecord | None = None
    ) -> None:
        """Take it.

        Args:
            workspace: The folder.
            since_commit: Whether changes that are not staged yet count as made after the baseline.
            record: One that was taken earlier and is to go on, if it still can.
        """
        self._workspace = workspace
        self._root = workspace.root
        self._place = find_repository(self._root)
        self._log = _HeadLog(self._place)
        self.head, tracked, new = work_tree_changes(self._root, self._place)
        self._moved = -MOMENT_S
        self.changed: frozenset[str] = frozenset()
        self.complete = True
        self._kept: dict[str, Entry | None] = {}
        self._of_commit: RecordedModes | None = None
        self._left_out: set[str] = set()
        self._size = 0
        if record is not None and self._go_on(record, new):
            return
        if not self.head:
            self._keep(workspace.files())
            return
        if not since_commit:
            self._keep((*tracked, *new))
            return
        self.changed = tracked | new
        self._kept.update(dict.fromkeys(new))
        staged = recorded_modes(self._root) if tracked else RecordedModes()
        for rel in tracked:
            self._kept[rel] = self._recorded(f":./{rel}", rel, staged)

    def _go_on(self, record: BaselineRecord, new: frozenset[str]) -> bool:
        """Take up an earlier baseline; False if its commit is gone."""
        present = frozenset(self._workspace.files())
        if record.head:
            command = ["diff", "--name-only", "--no-renames", "--relative", "-z", record.head]
            try:
                answer = run_git(self._root, [*command, "--", "."])
            except GitFailedError:
                return False
            present = frozenset(os.fsdecode(answer).split("\0")) - {""} | new
        self.head = record.head
        self._kept = dict(record.kept)
        self._log.go_on(record.log)
        self.changed = present.union(self._kept)
        return True

    def record(self) -> BaselineRecord | None:
        """What a journal should keep; ``None`` if it is too much, or not all is known."""
        size = sum(len(entry.data) for entry in self._kept.values() if entry is not None)
        if size > MAX_RECORDED or not self.complete:
            return None
        return BaselineRecord(self.head, self._log.offset, dict(self._kept))

    def read(self, rel: str) -> Entry | None:
        """What a name stood for, ``None`` if there was nothing.

        Args:
            rel: Path below the root, as the workspace names it.
        """
        unknown = rel in self._left_out or (
            not self.head and rel not in self._kept and (self._root / rel).is_symlink()
        )
        if unknown:  # Nobody knows what it held: it counts from now on.
            self._left_out.discard(rel)
            self._kept[rel] = self._peek(rel)
        if rel in self._kept:
            return self._kept[rel]
        return self._recorded(f"{self.head}:./{rel}", rel, self._modes()) if self.head else None

    def executable(self, rel: str) -> bool:
        """Whether a file was executable, or git knows it so; tells also of one that is deleted."""
        kept = self._kept.get(rel)
        if kept is not None and kept.executable is not None:
            return kept.executable
        return bool(self.head) and rel in self._modes().programs

    def _recorded(self, name: str, rel: str, modes: RecordedModes) -> Entry | None:
        """A file as a commit or the index has it under a name."""
        data = _blob(self._root, name)
        return None if data is None else modes.entry(rel, data)

    def _modes(self) -> RecordedModes:
        """The modes that the commit has."""
        if self._of_commit is None:
            self._of_commit = recorded_modes(self._root, self.head)
        return self._of_commit

    def git_writes(self) -> bool:
        """Whether git is in the middle of a write, as of a checkout: it holds the index's lock."""
        if self._place is None:
            return False
        try:
            written = (self._place.git_dir / "index.lock").stat().st_mtime
        except OSError:
            return False
        return time.time() - written < LOCK_S

    def follow_head(self, paths: Collection[str]) -> frozenset[str]:
        """Follow the repository to another commit, if it was moved there.

        A new commit on top is no move: it changes no file, and what it contains is not reviewed by
        that.  Git writes files before and after it moves HEAD, so a moment after a move counts.

        Returns:
            Those of ``paths`` that are as in the commit it was moved to.
        """
        if not self.head:
            return frozenset()
        moved = self._log.moved()
        if moved:
            self._moved = time.monotonic()
        if time.monotonic() - self._moved > MOMENT_S:
            return frozenset()
        head, tracked, new = work_tree_changes(self._root, self._place)
        if moved:
            self.head = head
            self._of_commit = None
        clean = frozenset(paths) - tracked - new
        for rel in clean:
            self._kept.pop(rel, None)
        return clean

    def _keep(self, paths: Collection[str]) -> None:
        for rel in sorted(paths, key=self._bytes):  # Many texts rather than one picture.
            room = min(MAX_FILE_BYTES, MAX_BYTES - self._size)
            if self._bytes(rel) > room:
                self._left_out.add(rel)
                self.complete = False
                continue
            entry = self._kept[rel] = self._peek(rel)
            self._size += 0 if entry is None else len(entry.data)

    def _peek(self, rel: str) -> Entry | None:
        from midstream.workspace.errors import WorkspaceError

        try:
            return self._workspace.peek_entry(rel)
        except WorkspaceError:
            return None

    def _bytes(self, rel: str) -> int:
        try:
            return (self._root / rel).stat().st_size
        except OSError:
            return 0


class _HeadLog:
    """The reflog of HEAD, which says what moved it: one line for each move (git-reflog(1))."""

    def __init__(self, place: RepositoryPlace | None) -> None:
        self._path = None if place is None else place.git_dir / "logs/HEAD"
        self.offset = 0
        self._new_lines()

    def go_on(self, offset: int) -> None:
        """Count what was added after an earlier look as new."""
        self.offset = min(offset, self.offset)

    def moved(self) -> bool:
        """Whether anything but a commit has moved HEAD since the last call."""
        return any(not line.partition(b"\t")[2].startswith(b"commit") for line in self._new_lines())

    def _new_lines(self) -> list[bytes]:
        """The complete lines that were added since the last call; none of a log that was cut."""
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                if size < self.offset:
                    self.offset = size
                log.seek(self.offset)
                new = log.read(size - self.offset)
        except OSError:
            return []
        complete = new[: new.rfind(b"\n") + 1]
        self.offset += len(complete)
        return complete.splitlines()


def _blob(root: Path, name: str) -> bytes | None:
    """A file of a commit or the index as git would check it out."""
    try:
        return run_git(root, ["cat-file", "--filters", name])
    except GitFailedError:
        return None
