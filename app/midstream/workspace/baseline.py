"""What the files of a folder held before a review began.

A clean file need not be copied: its text is in the last commit.  Changed and untracked files are
kept in memory, and so is every file of a folder without commits.  Everything blocks.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.workspace.repo import GitFailedError, run_git
from midstream.workspace.staging import changed_files

if TYPE_CHECKING:
    from midstream.workspace.files import Workspace

MOST_BYTES: Final = 64_000_000
"""How many bytes are kept; what does not fit is taken as it is when it first changes."""
LARGEST: Final = 1_000_000
"""Larger files are not reviewed, bytes."""
MOMENT_S: Final = 2.0
"""How long after a move of HEAD a file that is as committed counts as part of the move."""


class Baseline:
    """The files of a workspace as they were.

    Attributes:
        head: The commit that clean files are taken from, ``""`` without one.
        changed: Files that differ from the baseline already.
        complete: Whether everything that had to be kept fitted.
    """

    def __init__(self, workspace: Workspace, *, since_commit: bool) -> None:
        """Take it.

        Args:
            workspace: The folder.
            since_commit: Whether changes that are not staged yet count as made after the baseline.
        """
        self._workspace = workspace
        self._root = workspace.root
        self.head = _head(self._root)
        self._log = _HeadLog(self._root)
        self._moved = -MOMENT_S
        self.changed: frozenset[str] = frozenset()
        self.complete = True
        self._kept: dict[str, bytes | None] = {}
        self._size = 0
        if not self.head:
            self._keep(workspace.files())
            return
        tracked, new = changed_files(self._root)
        if not since_commit:
            self._keep((*tracked, *new))
            return
        self.changed = tracked | new
        self._kept.update(dict.fromkeys(new))
        for rel in tracked:
            self._kept[rel] = _blob(self._root, f":./{rel}")

    def read(self, rel: str) -> bytes | None:
        """What a file held, ``None`` if it did not exist.

        Args:
            rel: Path below the root, as the workspace names it.
        """
        if rel in self._kept:
            return self._kept[rel]
        return _blob(self._root, f"{self.head}:./{rel}") if self.head else None

    def follow_head(self, paths: Collection[str]) -> frozenset[str]:
        """Follow the repository to another commit, if it was moved there.

        A new commit on top is no move: it changes no file, and what it contains is not reviewed by
        that.  Git writes files before and after it moves HEAD, so a moment after a move counts.

        Returns:
            Those of ``paths`` that are as in the commit it was moved to.
        """
        if not self.head:
            return frozenset()
        if self._log.moved():
            self.head = _head(self._root)
            self._moved = time.monotonic()
        if time.monotonic() - self._moved > MOMENT_S:
            return frozenset()
        tracked, new = changed_files(self._root)
        clean = frozenset(paths) - tracked - new
        for rel in clean:
            self._kept.pop(rel, None)
        return clean

    def _keep(self, paths: Collection[str]) -> None:
        from midstream.workspace.errors import WorkspaceError

        for rel in paths:
            try:
                data = self._workspace.peek(rel)
            except WorkspaceError:
                self._kept[rel] = None
                continue
            if len(data) > LARGEST or self._size + len(data) > MOST_BYTES:
                self.complete = False
                continue
            self._size += len(data)
            self._kept[rel] = data


def _head(root: Path) -> str:
    try:
        return os.fsdecode(run_git(root, ["rev-parse", "--verify", "--quiet", "HEAD"])).strip()
    except GitFailedError:
        return ""


class _HeadLog:
    """The reflog of HEAD, which says what moved it: one line for each move (git-reflog(1))."""

    def __init__(self, root: Path) -> None:
        self._path: Path | None = None
        with contextlib.suppress(GitFailedError):
            name = run_git(root, ["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
            self._path = Path(os.fsdecode(name).rstrip("\n"))
        self._read = len(self._lines())

    def moved(self) -> bool:
        """Whether anything but a commit has moved HEAD since the last call."""
        lines = self._lines()
        new, self._read = lines[self._read :], len(lines)
        return any(not line.partition(b"\t")[2].startswith(b"commit") for line in new)

    def _lines(self) -> list[bytes]:
        try:
            return [] if self._path is None else self._path.read_bytes().splitlines()
        except OSError:
            return []


def _blob(root: Path, name: str) -> bytes | None:
    """A file of a commit or the index as git would check it out."""
    try:
        return run_git(root, ["cat-file", "--filters", name])
    except GitFailedError:
        return None
