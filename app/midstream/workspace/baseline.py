"""The one owner of the state before a review began: content, no file, or unknown.

A clean file need not be copied: its text is in the last commit.  Everything else is kept in memory
as it was found: changed files, files that git does not know, and every file of a folder without
commits.  Where neither git nor memory has an answer (a filter fails, the repository is gone, git
ignored the file, a merge conflict), ``Baseline.read`` says so instead of guessing "nothing",
because what was nothing is deleted when it is put back.  Everything blocks.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from midstream.resources import open_regular
from midstream.workspace.atomic import is_temporary
from midstream.workspace.content import Entry
from midstream.workspace.errors import (
    MissingFileError,
    OtherRepositoryError,
    UnknownFormerError,
    WorkspaceError,
)
from midstream.workspace.listing import files_of_folder
from midstream.workspace.paths import folders_of, shown
from midstream.workspace.repo import (
    GitFailedError,
    RecordedFiles,
    RepositoryPlace,
    checked_out_files,
    find_repository,
    ignored_paths,
    passed_over_files,
    recorded_files,
    run_git,
    sparse_files,
    unmerged_files,
    work_tree_changes,
)

if TYPE_CHECKING:
    from midstream.workspace.files import Workspace

_SUBMODULE: Final = "160000"
_MERGED: Final = "AUTO_MERGE"
"""The result of a merge that stopped, conflict markers included (gitrevisions(7))."""

MAX_BYTES: Final = 64_000_000
"""How many bytes are kept; a file that did not fit is reviewed from its first change on."""
MAX_RECORDED: Final = 8_000_000
"""How many bytes a journal keeps of it."""
MAX_AHEAD: Final = 64 << 20
"""How many bytes are read ahead."""
MAX_FILE_BYTES: Final = 16 << 20
"""Bytes of a file; the content of a larger one is not kept."""
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
        unknown: Files that git does not know and that count as they are.
        complete: Whether everything that had to be kept fitted.
    """

    def __init__(
        self, workspace: Workspace, *, since_commit: bool, record: BaselineRecord | None = None
    ) -> None:
        """Take it.

        Args:
            workspace: The folder.
            since_commit: Whether changes of files that git knows, as far as they are not staged
                yet, count as made after the baseline.
            record: One that was taken earlier and is to go on, if it still can.
        """
        self._workspace = workspace
        self._root = workspace.root
        self._place = find_repository(self._root)
        self._log = _HeadLog(self._place)
        self._moved = -MOMENT_S
        self.changed: frozenset[str] = frozenset()
        self.unknown: frozenset[str] = frozenset()
        self.complete = True
        self._kept: dict[str, Entry | None] = {}
        self._untold: dict[str, str] = {}
        """Why the earlier contents of files, or of whole folders, are unknown."""
        self._ahead: tuple[str, dict[str, bytes]] = "", {}
        """A commit, and what was read ahead of its files."""
        self._of_commit: tuple[str, RecordedFiles] | None = None
        """A commit and its files."""
        self._folders: frozenset[str] = frozenset()
        """The folders of the commit."""
        self._sparse: frozenset[str] | None = None
        self._size = 0
        self._conflicts: tuple[tuple[int, int], frozenset[str]] | None = None
        """The files in conflict, with the state of the index that says so."""
        self._stopped_at: frozenset[str] | None = None
        """Those of them that were there at the last look; ``None`` before the first."""
        self.new_conflicts()
        try:
            self.head, tracked, new, inner = work_tree_changes(self._root, self._place)
        except GitFailedError:
            self.head, tracked, new, inner = "", *(frozenset[str](),) * 3
        new = frozenset(path for path in new if not is_temporary(path.rpartition("/")[2]))
        self._note_ignored()
        why = "it was in a repository of its own when the review began"
        self._untold.update(dict.fromkeys(inner, why))
        if record is not None and self._go_on(record, new):
            return
        if not self.head:
            self._keep(self._all_files())
            return
        self.unknown = new
        with contextlib.suppress(GitFailedError):  # The user's own text is in no commit.
            self._keep(passed_over_files(self._root))
        if not since_commit:
            self._keep((*tracked, *new))
            return
        self._keep(new)
        self._take_index(
            tracked - new
        )  # The index has lost the one that is there: `git rm --cached`.

    def _take_index(self, tracked: frozenset[str]) -> None:
        """Take the contents in the index as the former contents of changed files."""
        if not tracked:
            return
        try:
            staged = recorded_files(self._root)
        except GitFailedError as error:
            self._untold.update(dict.fromkeys(tracked, f"git cannot read the index: {error}"))
            return
        # The index has several versions of a file in conflict, so the one on disk counts.
        self._keep(staged.unmerged & tracked)
        self.changed = tracked - staged.unmerged
        found = self._checked_out_together("", staged.regular(self.changed))
        for rel in self.changed:
            if rel not in staged.modes:
                self._kept[rel] = None
                continue
            try:
                data = found.pop(rel, None)
                data = self._checked_out(f":./{rel}") if data is None else data
                self._kept[rel] = staged.entry(rel, data)
            except GitFailedError as error:
                self._untold[rel] = f"git cannot give its old text: {error}"

    def _note_ignored(self) -> None:
        """Note the files that git ignores now, whose contents are kept nowhere."""
        why = "git ignored it when the review began"
        with contextlib.suppress(GitFailedError):
            if self._place is not None:
                self._untold.update(dict.fromkeys(ignored_paths(self._root), why))

    def _all_files(self) -> list[str]:
        """The files of a folder without commits; notes which folders are left out."""
        if self._place is not None:
            return self._workspace.files()
        files, left_out = files_of_folder(self._root)
        why = "it is in a folder of generated or ignored files"
        self._untold.update(dict.fromkeys(left_out, why))
        return files

    def _go_on(self, record: BaselineRecord, new: frozenset[str]) -> bool:
        """Take up an earlier baseline; False if its commit is gone."""
        present = frozenset(self._all_files())
        if record.head:
            try:
                present = self._differing(record.head) | new
            except GitFailedError:
                return False
        self.head = record.head
        self._kept = dict(record.kept)
        self._log.go_on(record.log)
        self.changed = present.union(self._kept)
        return True

    @property
    def ignored(self) -> bool:
        """Whether git ignores the whole folder."""
        return "." in self._untold

    def record(self) -> BaselineRecord | None:
        """What a journal should keep; ``None`` if it is too much, or not all is known."""
        size = sum(len(entry.data) for entry in self._kept.values() if entry is not None)
        if size > MAX_RECORDED or not self.complete:
            return None
        return BaselineRecord(self.head, self._log.offset, dict(self._kept))

    def read_ahead(self, paths: Collection[str]) -> None:
        """Read what files of the commit held with one process, before they are asked for.

        Contents beyond ``MAX_AHEAD`` are read on demand.
        """
        self._ahead = "", {}
        if not (head := self.head):
            return
        with contextlib.suppress(GitFailedError):
            recorded = self._recorded(head)
            files = recorded.regular(path for path in paths if path not in self._kept)
            self._ahead = head, self._checked_out_together(head, files)

    def read(self, rel: str) -> Entry | None:
        """The former entry of a name, ``None`` if there was none.

        Args:
            rel: Path below the root, as the workspace names it.

        Raises:
            UnknownFormerError: It is unknown; the present content is the baseline from here on.
            OtherRepositoryError: It belongs to a repository inside this folder.
        """
        if (inner := self._workspace.inner_repository(rel)) is not None:
            raise _other_repository(inner)
        if rel in self._kept:
            return self._kept[rel]
        for name in (".", *_with_folders(rel)):
            if name in self._untold:
                raise self._cannot_tell(rel, self._untold[name])
        if not (head := self.head):
            return None
        try:
            if rel in self._unmerged():
                raise self._cannot_tell(rel, "a merge has left it in conflict")
            recorded = self._recorded(head)
        except GitFailedError as error:
            raise self._cannot_tell(rel, f"git cannot read its records: {error}") from error
        for name in _with_folders(rel):
            if recorded.modes.get(name) == _SUBMODULE:
                raise _other_repository(name)
        if rel not in recorded.modes:
            return None
        try:
            commit, texts = self._ahead
            data = texts.pop(rel, None) if commit == head else None
            if data is None:
                data = self._checked_out(f"{head}:./{rel}")
            return recorded.entry(rel, data)
        except GitFailedError as error:
            raise self._cannot_tell(rel, f"git cannot give its old text: {error}") from error

    def displaced(self, paths: Collection[str]) -> frozenset[str]:
        """Files of the baseline that may be gone after some changes.

        Args:
            paths: Names that changed, appeared or went: a folder that is gone, or became a file or
                a link, takes its files along; a folder may have taken the place of a file.
        """
        modes: Mapping[str, str] = {}
        if self.head:
            with contextlib.suppress(GitFailedError):
                modes = self._recorded(self.head).modes
        above = {folder for path in paths for folder in _with_folders(path)}
        found = {name for name in above.difference(paths) if name in modes or name in self._kept}
        folders = self._folders | {folder for name in self._kept for folder in folders_of(name)}
        if went := folders.intersection(paths):
            for name in (*modes, *self._kept):
                if not went.isdisjoint(folders_of(name)):
                    found.add(name)
        if found and self._sparse is None:
            self._sparse = sparse_files(self._root) if self.head else frozenset()
        return frozenset(found - (self._sparse or frozenset()))

    def executable(self, rel: str) -> bool:
        """Whether a file was executable, or git knows it so; tells also of one that is deleted."""
        kept = self._kept.get(rel)
        if kept is not None and kept.executable is not None:
            return kept.executable
        with contextlib.suppress(GitFailedError):
            return bool(head := self.head) and self._recorded(head).executable(rel)
        return False

    def _cannot_tell(self, rel: str, why: str) -> UnknownFormerError:
        """The error about a file, whose present content is its baseline from here on."""
        with contextlib.suppress(UnknownFormerError):
            if (entry := self._peek(rel)) is not None:
                self._kept[rel] = entry
        return UnknownFormerError(
            f"What {shown(rel)} held before is not known ({shown(why)}), so this change cannot be "
            "put back",
            "later changes of it are reviewed",
        )

    def _checked_out(self, name: str) -> bytes:
        """A file of a commit or the index as git would check it out; raises GitFailedError."""
        return run_git(self._root, ["cat-file", "--filters", name])

    def _checked_out_together(self, tree: str, files: Collection[str]) -> dict[str, bytes]:
        """Regular files as git would check them out, as many as can be read at once."""
        with contextlib.suppress(GitFailedError):
            return checked_out_files(self._root, tree, files, limit=MAX_AHEAD, place=self._place)
        return {}

    def _recorded(self, head: str) -> RecordedFiles:
        """The files of a commit; raises GitFailedError.

        Threads ask while another one follows HEAD, so what is known goes by the commit.
        """
        known = self._of_commit
        if known is None or known[0] != head:
            known = self._of_commit = head, recorded_files(self._root, head)
            folders = frozenset(folder for path in known[1].modes for folder in folders_of(path))
            self._folders = folders
        return known[1]

    def _unmerged(self) -> frozenset[str]:
        """The files that are in conflict now; raises GitFailedError."""
        if self._place is None:
            return frozenset()
        try:
            index = (self._place.git_dir / "index").stat()
        except OSError:
            return frozenset()
        state = (index.st_mtime_ns, index.st_size)
        if self._conflicts is None or self._conflicts[0] != state:
            self._conflicts = state, unmerged_files(self._root)
        return self._conflicts[1]

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
        try:
            head, tracked, new, _ = work_tree_changes(self._root, self._place)
        except GitFailedError:
            return frozenset()
        if moved:
            self.head = head
            self._sparse = None
        clean = frozenset(paths) - tracked - new
        for rel in clean:
            self._kept.pop(rel, None)
        return clean

    def new_conflicts(self) -> frozenset[str]:
        """Files at which a merge or the like has stopped since the last call, as git left them.

        If git fails, no file counts as new, and the next call tries again.
        """
        try:
            now = self._unmerged()
            new = frozenset[str]() if self._stopped_at is None else now - self._stopped_at
            if new:  # A file that was edited since holds more than the merge.
                new -= self._differing(_MERGED)
        except GitFailedError:
            return frozenset()
        self._stopped_at = now
        return new

    def _differing(self, tree: str) -> frozenset[str]:
        """The files that differ from those of a commit or tree; raises GitFailedError."""
        command = ["diff", "--name-only", "--no-renames", "--relative", "-z", tree, "--", "."]
        return frozenset(os.fsdecode(run_git(self._root, command)).split("\0")) - {""}

    def _keep(self, paths: Collection[str]) -> None:
        for rel in sorted(paths, key=self._bytes):  # Many texts rather than one picture.
            room = min(MAX_FILE_BYTES, MAX_BYTES - self._size)
            if self._bytes(rel) > room:
                self._untold[rel] = "too much to keep"
                self.complete = False
                continue
            try:
                entry = self._kept[rel] = self._peek(rel)
            except UnknownFormerError as error:
                self._untold[rel] = error.problem
                continue
            self._size += 0 if entry is None else len(entry.data)

    def _peek(self, rel: str) -> Entry | None:
        """The entry of a name now, ``None`` if there is none.

        Raises:
            UnknownFormerError: It cannot be read.
        """
        try:
            return self._workspace.peek_entry(rel)
        except MissingFileError:
            return None
        except WorkspaceError as error:
            raise UnknownFormerError(str(error)) from error

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
            with open_regular(self._path) as log:
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


def _with_folders(rel: str) -> list[str]:
    """A path, and the folders that it is in."""
    return [*folders_of(rel), rel]


def _other_repository(folder: str) -> OtherRepositoryError:
    return OtherRepositoryError(
        f"{shown(folder)} is a repository of its own, so its files are not part of this review",
        "review them with `midstream review` in that folder",
    )
