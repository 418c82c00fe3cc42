"""Staging and committing what was accepted, in this session or an earlier one.

Which change of a file came from a session is worked out here; where the index stands with it, and
changing the index, is ``workspace.staging``'s.  Whatever else the user has edited in the same file,
or has staged, stays as it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import threading
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.edits.documents import NotTextError, SourceText, UnencodableError
from midstream.edits.external import waiting_hunks
from midstream.edits.lcs import line_edits, line_map, matching_pairs
from midstream.edits.rows import Row, RowKind
from midstream.edits.stand_ins import is_whole
from midstream.errors import UserError
from midstream.pairing.contents import mode_changed
from midstream.pairing.files.staged import StagedFile, Standing, content_bytes, standings
from midstream.pairing.files.unified import CONTEXT
from midstream.pairing.journal.journal import Replay, earlier_sessions
from midstream.pairing.status import RepoChanged
from midstream.resources import MAX_TEXT_BYTES, read_small
from midstream.workspace.errors import GitError
from midstream.workspace.paths import few_shown
from midstream.workspace.repo import GitFailedError, recent_subjects, work_tree_changes

if TYPE_CHECKING:
    from midstream.edits.origin import Origin
    from midstream.pairing.files.attention import Attention
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.status import SessionStatus
    from midstream.workspace.staging import (
        AcceptedChange,
        BlobChange,
        ChangePlace,
        IndexEntry,
        IndexState,
        LastCommit,
        Staged,
    )


MAX_READ_BYTES: Final = 24_000_000
"""Bytes of journals that are read, the newest first."""
MAX_QUICK: Final = 20_000
"""Lines of both sides together that are compared in a few hundredths of a second."""
MAX_QUICK_BYTES: Final = 1_000_000
"""Texts of at most this size are compared without counting their lines."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A changed file before and after, and the lines that differ with those around them.

    Attributes:
        before: The text before.
        after: The text after.
        groups: Rows of neighbouring changes, from top to bottom.
        binary: Whether one of them is no text; both are empty then.
    """

    before: SourceText
    after: SourceText
    groups: tuple[tuple[Row, ...], ...] = ()
    binary: bool = False

    @classmethod
    def between(cls, before: SourceText, after: SourceText) -> FileDiff:
        """The difference of two texts."""
        edits: list[tuple[int, int, int, int]] = []
        at = at_new = 0
        ends = (len(before.lines), len(after.lines))
        for i, j in [*matching_pairs(before.lines, after.lines), ends]:
            if i > at or j > at_new:
                edits.append((at, i, at_new, j))
            at, at_new = i + 1, j + 1
        together: list[list[tuple[int, int, int, int]]] = []
        for edit in edits:
            if together and edit[0] - together[-1][-1][1] <= 2 * CONTEXT:
                together[-1].append(edit)
            else:
                together.append([edit])
        groups = tuple(tuple(_rows(before, after, group)) for group in together)
        return cls(before, after, groups)

    @classmethod
    def of_blobs(cls, change: BlobChange) -> FileDiff:
        """The difference that a commit makes."""
        try:
            texts = [SourceText.from_bytes(blob) for blob in (change.before, change.after)]
        except NotTextError:
            return cls(SourceText((), ()), SourceText((), ()), binary=True)
        return cls.between(*texts)

    def count(self, kind: RowKind) -> int:
        """How many rows are of a kind."""
        return sum(row.kind is kind for group in self.groups for row in group)


def _rows(
    before: SourceText, after: SourceText, edits: Sequence[tuple[int, int, int, int]]
) -> Iterator[Row]:
    """The rows of neighbouring edits: each puts new lines ``[c, d)`` for old ``[a, b)``."""
    shift = edits[0][2] - edits[0][0]
    at = max(0, edits[0][0] - CONTEXT)
    end = min(len(before.lines), edits[-1][1] + CONTEXT)
    for a, b, c, d in (*edits, (end, end, 0, 0)):
        for line in range(at, a):
            yield Row(RowKind.CONTEXT, line, line + shift, before.lines[line])
        for line in range(a, b):
            yield Row(RowKind.DELETED, line, None, before.lines[line])
        for line in range(c, d):
            yield Row(RowKind.ADDED, None, line, after.lines[line])
        at, shift = b, d - b


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the diff of a file with an accepted change is made of.

    Attributes:
        commit: What the next commit changes in the file, ``None`` for nothing.
        accepted: The file without and with what was accepted.
    """

    commit: BlobChange | None
    accepted: tuple[SourceText, SourceText]

    @property
    def is_long(self) -> bool:
        """Whether the diff takes long enough to be noticed."""
        lines = sum(len(text.lines) for text in self.accepted)
        blobs = 0 if self.commit is None else len(self.commit.before) + len(self.commit.after)
        return lines > MAX_QUICK or blobs > MAX_QUICK_BYTES

    def diff(self) -> FileDiff:
        """What the commit changes; if no line of that differs, what was accepted (blocking)."""
        if self.commit is not None:
            diff = FileDiff.of_blobs(self.commit)
            if diff.groups or diff.binary:
                return diff
        return FileDiff.between(*self.accepted)


@dataclass(frozen=True, slots=True)
class FileChange:
    """The accepted changes in one file.

    Attributes:
        path: The file, relative to the root.
        state: Whether the index has it.
        compared: What the next commit changes in the file, once the change is staged if nothing of
            it is; if it changes nothing, what was accepted.
        diff: The diff of that; ``None`` if it takes long and has to be asked for.
        undecided: Hunks of the file that wait for a decision.
        trouble: Why it cannot be staged, ``""`` if it can.
        own: Lines of the file that the user changed and that stay out of a commit.
        new: Whether a commit adds the whole file, because git does not have it yet.
        earlier: Whether it was accepted in an earlier session.
        whole: Whether it was staged whole here, which can be taken back.
        program: Whether it may be run with what was accepted, if that changes.
        unkept: Whether another program has staged a change of it that was not kept.
    """

    path: str
    state: IndexState
    compared: Comparison
    diff: FileDiff | None
    undecided: int = 0
    trouble: str = ""
    own: int = 0
    new: bool = False
    earlier: bool = False
    whole: bool = False
    program: bool | None = None
    unkept: bool = False


@dataclass(frozen=True, slots=True)
class OtherChange:
    """A change that a commit has although nothing of the file was accepted.

    Attributes:
        path: The file, relative to the top of the repository.
        rel: The file, relative to the root.
        standing: Whose change it is.
    """

    path: str
    rel: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class Changes:
    """State of everything that was accepted, compared with the index.

    Attributes:
        files: Files with an accepted change, by path.
        others: What else a commit changes, by path.
        branch: Where a commit would go.
        trouble: Why nothing can be staged, ``""`` if it can.
        amends: The commit that the next one replaces, ``None`` if it follows it.
    """

    files: tuple[FileChange, ...] = ()
    others: tuple[OtherChange, ...] = ()
    branch: str = ""
    trouble: str = ""
    amends: LastCommit | None = None

    @property
    def staged(self) -> int:
        """How many files a commit would include."""
        return sum(file.state in ("staged", "partly") for file in self.files) + len(self.others)

    @property
    def unkept(self) -> int:
        """The number of files with a staged change that was not kept."""
        return sum(file.unkept for file in self.files) + sum(
            other.standing is Standing.UNKEPT for other in self.others
        )

    @property
    def stageable(self) -> tuple[str, ...]:
        """Files with an accepted change that can be staged."""
        return tuple(f.path for f in self.files if f.state in ("unstaged", "partly"))

    @property
    def replaceable(self) -> tuple[str, ...]:
        """Files whose staged change was not kept, and another one was that can take its place."""
        states = ("unstaged", "partly", "staged")
        return tuple(f.path for f in self.files if f.unkept and f.state in states)

    @property
    def chosen(self) -> bool:
        """Whether an accepted change is staged."""
        return any(file.state in ("partly", "staged") for file in self.files)


@dataclass(frozen=True, slots=True)
class _Accepted:
    """An accepted change whose bytes are looked up in a thread.

    Attributes:
        path: The file.
        before: The file without it.
        after: The file with it.
        programs: Whether the file may be run before and after, if that is known.
        parts: What was staged and committed of it, with what was accepted until then.
        undone: What was staged of a change that was undone since.
    """

    path: str
    before: SourceText
    after: SourceText
    programs: tuple[bool | None, bool | None]
    parts: tuple[tuple[IndexEntry | None, SourceText], ...]
    undone: Staged | None

    def change(self, root: Path, *, programs: bool) -> AcceptedChange:
        """The change in bytes; ``programs`` says whether filters may run (blocking)."""
        from midstream.workspace.staging import AcceptedChange

        before, after, trouble = None, None, ""
        parts: list[tuple[IndexEntry | None, bytes | None]] = []
        for entry, text in self.parts:
            with contextlib.suppress(UnencodableError):  # The index has something else by now.
                parts.append((entry, content_bytes(root, self.path, text, programs=programs)))
        try:
            after = content_bytes(root, self.path, self.after, programs=programs)
            before = content_bytes(root, self.path, self.before, programs=programs)
        except UnencodableError as error:
            trouble = str(error)
        return AcceptedChange(
            self.path, before, after, self.programs, tuple(parts), self.undone, trouble
        )


class AcceptedChanges:
    """The accepted changes of a session and of earlier ones, and their way into git.

    Args:
        files: The open files.
        attention: What was read.
        reviewed: Waits until all undecided changes of other programs are known.
        status: Told when git begins to commit, and when it has ended.

    Attributes:
        made: Ids of the commits of this session, oldest first.
        cut_off: Whether git was stopped before it had made the last one.
    """

    def __init__(
        self,
        files: OpenFiles,
        attention: Attention,
        reviewed: Callable[[], Awaitable[None]],
        status: SessionStatus,
    ) -> None:
        self.made: list[str] = []
        self.cut_off = False
        self._git: asyncio.Future[str] | None = None
        """Git and its hooks, while they make a commit."""
        self._checking = False
        """Whether the index is being checked for changes that were not kept, before git commits."""
        self._closed = False
        self._stop = threading.Event()
        """Ends the commit that was begun last."""
        self._by_hooks: list[str] = []
        """Files that hooks changed in the index while that commit was made."""
        self._awaited = False
        """Whether a caller waits for that commit and reports its outcome."""
        self._status = status
        self._root = root = files.workspace.root
        self._files = files
        self._attention = attention
        self._reviewed = reviewed
        self._earlier = EarlierChanges(root)
        self._staged: dict[str, tuple[Staged, Origin]] = {}
        """What was staged of files since the last commit, and what was accepted until then."""
        self._committed: dict[str, tuple[Staged, Origin]] = {}
        """The same of commits."""
        self._wholes: dict[str, Staged] = {}
        """Files that were staged with the user's own lines, since the last commit."""

    def texts(self, path: str) -> tuple[SourceText, SourceText] | None:
        """A file without and with what was accepted in it; ``None`` if both are the same."""
        return self._own_texts(path) or self._earlier.texts(path)

    def _own_texts(self, path: str) -> tuple[SourceText, SourceText] | None:
        proposal = self._files.get(path)
        if proposal is None:
            return None
        before, after = proposal.accepted()
        if before != after:
            return before, after
        return None if self._undone(path) is None else (self._left_in_index(path)[0][1].text, after)

    def _accepted(self, paths: Mapping[str, object]) -> list[_Accepted]:
        found: list[_Accepted] = []
        for path in sorted(paths):
            if texts := self.texts(path):
                proposal = self._files.get(path)
                programs = (None, None) if proposal is None else proposal.accepted_programs()
                parts = tuple((staged.after, m.text) for staged, m in self._left_in_index(path))
                found.append(_Accepted(path, *texts, programs, parts, self._undone(path)))
        return found

    async def _changes(
        self, accepted: Sequence[_Accepted], *, programs: bool
    ) -> list[AcceptedChange]:
        return await asyncio.to_thread(
            lambda: [one.change(self._root, programs=programs) for one in accepted]
        )

    def _becomes_program(self, path: str) -> bool | None:
        before, after = self._files[path].accepted_programs()
        return after if mode_changed(before, after) else None

    def _left_in_index(self, path: str) -> list[tuple[Staged, Origin]]:
        """What was staged and committed of a file last, with what was accepted until then."""
        return [known[path] for known in (self._staged, self._committed) if path in known]

    def _undone(self, path: str) -> Staged | None:
        """What was staged or committed of a file in which nothing is accepted any more."""
        left = self._left_in_index(path)
        if not left:
            return None
        before, after = self._files[path].accepted()
        if before != after or all(mark.text == after for _, mark in left):
            return None
        (last, _), (first, _) = left[0], left[-1]
        return replace(last, before=first.before) if last.before == first.after else last

    async def look(self, *, amend: bool = False) -> Changes:
        """Compare the accepted changes, of earlier sessions uncommitted ones, with the index.

        Args:
            amend: Whether the next commit is to replace the last one, if there is one.

        Raises:
            SnapshotError: The files are those of a range of commits.
        """
        from midstream.workspace.staging import compare_changes, last_commit

        self._files.workspace.require_writable()

        await self._reviewed()
        last = await asyncio.to_thread(last_commit, self._root) if amend else None
        own = {path for path in self._files if self._own_texts(path) is not None}
        waits = {hunk.path for hunk in waiting_hunks(self._files.hunks)}
        await asyncio.to_thread(self._earlier.look, own | waits)
        paths = dict.fromkeys((*own, *self._earlier.paths))
        changes = await self._changes(self._accepted(paths), programs=False)
        view = await asyncio.to_thread(compare_changes, self._root, changes, amend=last is not None)
        found = await self._standings(programs=False)
        whose = {path: one.standing for path, one in found.items()}
        files: list[FileChange] = []
        for place in view.files:
            earlier = place.rel not in own
            if earlier and place.state == "committed":
                continue
            if texts := self.texts(place.rel):
                compared = Comparison(place.commit, texts)
                files.append(
                    FileChange(
                        place.rel,
                        place.state,
                        compared,
                        None if compared.is_long else await asyncio.to_thread(compared.diff),
                        undecided=len(self._files.hunks.undecided(place.rel)),
                        trouble=place.trouble,
                        own=place.own,
                        new=place.new,
                        earlier=earlier,
                        whole=self._is_whole(place),
                        program=None if earlier else self._becomes_program(place.rel),
                        unkept=whose.get(place.rel) is Standing.UNKEPT,
                    )
                )
        others = tuple(
            OtherChange(path, rel, whose.get(rel, Standing.YOURS))
            for path, rel in view.others.items()
        )
        return Changes(tuple(files), others, view.branch, view.trouble, last)

    async def other(self, path: str, *, amend: bool = False) -> FileDiff:
        """What a commit changes in a file without accepted changes, one of ``Changes.others``.

        Raises:
            GitError: Git's own message.
        """
        from midstream.workspace.staging import staged_change

        change = await asyncio.to_thread(staged_change, self._root, path, amend=amend)
        return await asyncio.to_thread(FileDiff.of_blobs, change)

    async def recent(self) -> list[str]:
        """Subjects of the newest commits, newest first, as examples for a message."""
        return await asyncio.to_thread(recent_subjects, self._root)

    async def stage(self, *paths: str) -> None:
        """Put the accepted change of files into the index, all or none.

        Raises:
            GitError: No repository, a conflict with what is staged already, or git's own message.
            SnapshotError: As ``look``.
        """
        from midstream.workspace.staging import IndexState, compare_changes, stage_changes

        self._files.workspace.require_writable()
        accepted = self._accepted(dict.fromkeys(paths))
        marks = {a.path: self._files[a.path].mark() for a in accepted if a.path in self._files}
        try:
            changes = await self._changes(accepted, programs=True)
            view = await asyncio.to_thread(compare_changes, self._root, changes)
            files = await asyncio.to_thread(stage_changes, self._root, changes)
        except BaseException:
            for path, mark in marks.items():
                self._files[path].unmark(mark)
            raise
        in_index = {IndexState.STAGED, IndexState.PARTLY}
        again = {place.rel for place in view.files if place.state in in_index}
        for file in files:
            earlier = self._forget_staged(file.rel)
            goes_on = earlier is not None and file.rel in again and file.before == earlier.after
            first = earlier.before if earlier is not None and goes_on else file.before
            if file.rel in marks:
                self._staged[file.rel] = replace(file, before=first), marks[file.rel]

    def _forget_staged(self, path: str) -> Staged | None:
        if path not in self._staged:
            return None
        staged, mark = self._staged.pop(path)
        self._files[path].unmark(mark)
        return staged

    async def stage_instead(self, *paths: str) -> None:
        """Put the accepted change of files into the index in place of all that it has of them.

        Where one cannot be staged, the index keeps what it had of all of them.

        Raises:
            GitError: As ``stage``.
        """
        from midstream.workspace.staging import unstage

        taken: list[Staged] = []
        try:
            for path in paths:
                taken.append(await self._take_out(path))
            await self.stage(*paths)
        except BaseException:
            for staged in taken:
                with contextlib.suppress(GitError):  # Another program has staged it since.
                    await asyncio.to_thread(unstage, self._root, staged)
            raise

    async def stage_whole(self, path: str) -> None:
        """Put a file into the index as it is on disk, the user's own lines included.

        Raises:
            GitError: Git's own message.
        """
        from midstream.workspace.staging import stage_whole

        earlier = self._wholes.pop(path, None)
        whole = await asyncio.to_thread(stage_whole, self._root, path)
        if whole is not None and earlier is not None and whole.before == earlier.after:
            whole = replace(whole, before=earlier.before)
        if whole is not None:
            self._wholes[path] = whole

    async def unstage_whole(self, path: str) -> None:
        """Take back that a file was staged whole: the user's own lines stay out again.

        Raises:
            GitError: The index has changed since, or git's own message.
        """
        from midstream.workspace.staging import unstage

        if (whole := self._wholes.pop(path, None)) is not None:
            await asyncio.to_thread(unstage, self._root, whole)

    def _is_whole(self, place: ChangePlace) -> bool:
        whole = self._wholes.get(place.rel)
        return whole is not None and whole.after == place.entry and place.state != "committed"

    async def unstage(self, path: str) -> None:
        """Take the accepted change of a file out of the index again; the file stays as it is.

        Raises:
            GitError: As ``stage``.
        """
        from midstream.workspace.staging import is_staged, stage_changes, unstage

        staged = self._forget_staged(path)
        if staged is not None and await asyncio.to_thread(is_staged, self._root, staged):
            await asyncio.to_thread(unstage, self._root, staged)
            return
        back = [
            replace(c, before=c.after, after=c.before, programs=c.programs[::-1], undone=None)
            for c in await self._changes(self._accepted({path: None}), programs=True)
        ]
        await asyncio.to_thread(stage_changes, self._root, back)

    async def commit(self, message: str, *, trailer: bool = False, amend: bool = False) -> str:
        """Commit what is staged, with the user's hooks.

        Args:
            message: The message.
            trailer: Whether to add how many hunks were accepted unread.
            amend: Whether to replace the last commit; then nothing needs to be staged.

        Returns:
            The id of the commit.

        Raises:
            GitError: A commit is being made already, the session has ended, nothing is staged, a
                staged change was not kept, the message is empty, or a hook refused;
                ``output`` is everything that git wrote.
        """
        from midstream.workspace.staging import changed_by_hooks, commit_staged, staged_tree

        if self._closed:
            raise GitError("The session has ended: nothing is committed", "what is staged stays")
        if self._checking or self._git is not None:
            raise GitError("A commit is being made already", "wait for git and its hooks")
        # A new event for each commit: a late stop of an earlier one must not end this one.
        stop = self._stop = threading.Event()
        self._checking = True
        try:
            await self._reviewed()
            await self._refuse_unkept()
        finally:
            self._checking = False
        if stop.is_set():
            raise GitError("The commit was stopped: nothing is committed", "what is staged stays")
        words = self.trailer if trailer else ""
        text = message.rstrip()
        whole = f"{text}\n\n{words}\n" if words and text else f"{text}\n"

        def make() -> str:
            tree = staged_tree(self._root)
            made = commit_staged(self._root, whole, amend=amend, stop=stop)
            self._by_hooks = changed_by_hooks(self._root, tree, made)
            return made

        self._by_hooks = []
        work = asyncio.to_thread(make)
        self._git = asyncio.ensure_future(work)
        self._git.add_done_callback(self._git_ended)
        self._status.emit(RepoChanged())
        self._awaited = True
        try:
            # A page that closes does not end what git does in its thread.
            return await asyncio.shield(self._git)
        except asyncio.CancelledError:
            self._awaited = False
            raise

    async def _refuse_unkept(self) -> None:
        """Raise GitError if a staged change was not kept."""
        whose = await self._standings(programs=True)
        unkept = [path for path, one in whose.items() if one.standing is Standing.UNKEPT]
        if not unkept:
            return
        back = f"run `git restore --staged {' '.join(map(shlex.quote, unkept))}`"
        for path in unkept:
            if trouble := whose[path].trouble.rstrip("."):
                raise GitError(
                    f"What is staged of {path} cannot be compared with what was kept: {trouble}",
                    f"{back}, or commit it with git itself",
                )
        raise GitError(
            f"Another program has staged changes of {counted(len(unkept), 'file')} that were "
            "not kept, and a commit would have them",
            f"keep them, or {back}",
        )

    @property
    def from_hooks(self) -> str:
        """A sentence about what hooks added to the last commit, or ``""``."""
        if not self._by_hooks:
            return ""
        return (
            f"A hook changed what is committed of {few_shown(self._by_hooks)}, so it is not "
            "exactly what you kept: `git show` shows it."
        )

    @property
    def committing(self) -> bool:
        """Whether git and the hooks of the repository are running."""
        return self._git is not None

    def stop_git(self) -> None:
        """End git and its hooks, if they run; a finished commit stays."""
        self._stop.set()

    async def finished(self) -> bool:
        """Wait for git and its hooks; whether they made the commit."""
        if (git := self._git) is None:
            return True
        await asyncio.wait({git})
        return git.exception() is None

    async def close(self) -> None:
        """As ``stop_git``, and wait for their end; nothing is committed after it."""
        self._closed = True
        self.stop_git()
        await self.finished()

    def _git_ended(self, git: asyncio.Future[str]) -> None:
        self._git = None
        if git.cancelled():
            return
        error = git.exception()
        self.cut_off = error is not None and self._stop.is_set()
        if error is None:
            self._note_commit(git.result())
        if not self._awaited and not self._closed:
            if error is None:
                self._status.inform(f"Committed {git.result()[:8]}. {self.from_hooks}".rstrip())
            else:
                self._status.fail(str(error))
        self._status.emit(RepoChanged())

    def _note_commit(self, commit: str) -> None:
        self._wholes.clear()
        for path, (staged, mark) in self._staged.items():
            if path in self._committed:
                earlier, old = self._committed[path]
                self._files[path].unmark(old)
                if earlier.after == staged.before:
                    staged = replace(staged, before=earlier.before)
            self._committed[path] = staged, mark
        self._staged.clear()
        self.made.append(commit)

    async def _standings(self, *, programs: bool) -> dict[str, StagedFile]:
        """The owner of each staged change, by path from the root."""
        staged = {path: one for path, (one, _) in self._staged.items()}
        ours = [{path: one.after for path, one in m.items()} for m in (self._wholes, staged)]
        return await standings(self._files, ours, programs=programs)

    async def forget_staged(self, path: str) -> None:
        """Take out of the index whatever it has of a file; the file stays as it is.

        Args:
            path: The file, relative to the root.

        Raises:
            GitError: Git's own message.
        """
        await self._take_out(path)

    async def _take_out(self, path: str) -> Staged:
        from midstream.workspace.staging import forget_staged

        self._forget_staged(path)
        self._wholes.pop(path, None)
        return await asyncio.to_thread(forget_staged, self._root, path)

    @property
    def trailer(self) -> str:
        """A commit message trailer about how much was accepted unread."""
        return self._attention.trailer(self._files.hunks)


class EarlierChanges:
    """Changed files with lines that an earlier session accepted and no commit has.

    A journal is replayed as for resuming, and its hunks are moved to the file as it is on disk:
    only lines that are still as they were accepted count.  They do not where a later session left
    the file with a change that waits, nor where git has checked the file out since: its lines were
    written again, and were not accepted in that form. Nothing is written.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._texts: dict[str, SourceText] = {}
        self._found: dict[str, tuple[SourceText, SourceText]] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of these files, relative to the root."""
        return tuple(sorted(self._found))

    def texts(self, path: str) -> tuple[SourceText, SourceText] | None:
        """A file without and with what was accepted in it, ``None`` for any other file."""
        return self._found.get(path)

    def look(self, apart: Collection[str]) -> None:
        """Find them again if a file has changed since (blocking).

        Args:
            apart: Files of which the current session knows better: it has accepted something in
                them, or has found changes that wait for a decision.
        """
        from midstream.workspace.staging import committed_file, last_clean

        try:
            _, tracked, new, _ = work_tree_changes(self._root)
        except GitFailedError:
            tracked = new = frozenset[str]()
        texts = {
            path: text
            for path in (tracked | new).difference(apart)
            if (text := self._read(path)) is not None
        }
        if texts == self._texts:
            return
        before = dict(texts)
        clean = last_clean(self._root, texts) if texts else {}
        doubtful: set[str] = set()
        for ended, replay in _sessions(self._root, tuple(texts)):
            doubtful |= {path for path, seen in clean.items() if seen > ended}
            for path in (texts.keys() & replay.files.keys()) - doubtful:
                committed = committed_file(self._root, path) if path in tracked else b""
                before[path] = _without(replay, path, before[path], _lines(committed))
            doubtful |= {hunk.path for hunk in waiting_hunks(replay.hunks)}
        self._texts = texts
        # An untracked file is committed as a whole, so all of it must have been accepted.
        self._found = {
            path: (before[path], text)
            for path, text in texts.items()
            if before[path] != text and (path in tracked or not before[path].lines)
        }

    def _read(self, path: str) -> SourceText | None:
        place = self._root / path
        try:
            return (
                None
                if place.is_symlink()
                else SourceText.from_bytes(read_small(place, MAX_TEXT_BYTES))
            )
        except (OSError, NotTextError):
            return None


def _sessions(root: Path, paths: Collection[str]) -> list[tuple[float, Replay]]:
    """Finished sessions whose journals name one of the files, with their ends, last used first."""
    names = [json.dumps(path).encode() for path in paths]
    found: list[tuple[float, Replay]] = []
    left = MAX_READ_BYTES
    for info in sorted(earlier_sessions(root), key=lambda info: info.changed, reverse=True):
        if not names or info.live or info.size > left:
            continue
        try:
            data = read_small(info.path, MAX_READ_BYTES)
            # A journal in parts may name it in any of them.
            if len(data) == info.size and not any(name in data for name in names):
                continue
            left -= info.size
            found.append((info.changed, Replay.read(info.path)))
        except (OSError, UserError):
            continue
    return found


def _without(replay: Replay, path: str, text: SourceText, committed: tuple[str, ...]) -> SourceText:
    """A text without what a session accepted in it, unless it is committed."""
    if not any(hunk.path == path and hunk.state == "accepted" for hunk in replay.hunks):
        return text
    proposal = replay.files[path]
    if proposal.current is not None:
        proposal.abandon()
    proposal.advance(text)
    proposal.drop_external()
    before, after = proposal.accepted()
    if is_whole(before) or is_whole(after):
        return text
    moves = line_map(after.lines, committed)
    edits = line_edits(after.lines, before.lines)
    return after.replace(
        [edit for edit in edits if not _has(moves, len(committed), edit.start, edit.stop)]
    )


def _has(moves: Collection[int], total: int, start: int, stop: int) -> bool:
    """Whether lines ``[start, stop)`` (if none, their neighbours) are in the other text, too."""
    ends = [-1, *moves, total]
    if start < stop:
        return all(line >= 0 for line in ends[start + 1 : stop + 1])
    return ends[start] + 1 == ends[start + 1]


def _lines(data: bytes) -> tuple[str, ...]:
    try:
        return SourceText.from_bytes(data).lines
    except NotTextError:
        return ()
