"""Changes by other programs: watching the folder, and reviewing what they write.

In a review, every change of an agent, a formatter, a script or your own editor becomes hunks that
are in the file already and wait for a decision: accepting one keeps its lines, rejecting one puts
the old lines back.  The watcher is all that this needs, so it works for any program in any
terminal.  What a file held before comes from the workspace's ``Baseline``; from then on the hunks
say what is reviewed and what is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.errors import UserError
from midstream.pairing.journal.entries import BaselineEntry
from midstream.pairing.slices import pause
from midstream.pairing.status import (
    ExternalHunksAdded,
    FilesTouched,
    FileWritten,
    RepoChanged,
    ReviewSwitched,
    SessionEvent,
    WatchingChanged,
)
from midstream.workspace.paths import folders_of, shown
from midstream.workspace.repo import repo_status
from midstream.workspace.watch import REPO_CHANGED, Watcher

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.files.put_backs import PutBackQueue, RecentWrites
    from midstream.pairing.guard import Guard
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.status import SessionStatus, Spawn
    from midstream.workspace.baseline import Baseline, BaselineRecord
    from midstream.workspace.repo import RepoStatus
    from midstream.workspace.snapshot import Snapshot

REPO_DELAY_S: Final = 0.15
"""Changes within this time cause one look at the repository."""
MAX_FILES: Final = 40
"""More files that change at once are not opened by themselves."""
MAX_AT_START: Final = 200
"""The same for files that are changed when a review begins."""
BURST_S: Final = 1.0
"""Files that change within this time after that belong to the same write."""
LOOKED_AT: Final = 20
"""Files that are read together before the first of them is shown."""

GIT_POLL_S: Final = 0.05
"""How often to look whether git has ended, and how long after that HEAD should have moved."""


class ExternalReview:
    """Reviews what other programs write, once it is switched on.

    Attributes:
        on: Whether it is.
        aside: Files that were written many at once and are not open.
    """

    def __init__(
        self,
        files: OpenFiles,
        put_backs: PutBackQueue,
        guard: Guard,
        status: SessionStatus,
        journal: SessionJournal,
        writes: RecentWrites,
    ) -> None:
        self.aside: frozenset[str] = frozenset()
        self._files = files
        self._put_backs = put_backs
        self._guard = guard
        self._status = status
        self._journal = journal
        self._writes = writes
        self._baseline: Baseline | None = None
        self._burst_until = 0.0
        self._said: set[str] = set()
        """Why changes are not reviewed, each of which is said once."""
        self._begun = asyncio.Event()
        self._begun.set()
        status.subscribe(self._hear)

    @property
    def on(self) -> bool:
        """Whether external changes wait for decisions."""
        return self._baseline is not None

    @property
    def begins(self) -> bool:
        """Whether a review is starting: what is found now was there before."""
        return not self._begun.is_set()

    def expect(self) -> None:
        """A review is about to start."""
        self._begun.clear()

    async def begun(self) -> None:
        """Wait for a review that is starting, since its hunks are not known before."""
        await self._begun.wait()

    async def switch_on(self, *, since_commit: bool, record: BaselineRecord | None = None) -> None:
        """Review from now on.

        Args:
            since_commit: Whether what is changed and not staged already waits for a decision, too.
            record: The baseline of an earlier session, whose review goes on.

        Raises:
            SnapshotError: The files are those of a range of commits.
        """
        self._files.workspace.require_writable()
        self.expect()
        try:
            baseline = await self._begin(since_commit, record)
            await self._take_up(await self._without_moves(baseline, baseline.changed), MAX_AT_START)
        finally:
            self._begun.set()

    async def start_range(self, snapshot: Snapshot, record: BaselineRecord | None = None) -> None:
        """Review the changes of a range of commits, all of them at once.

        Args:
            snapshot: Its files, which are those of the session.
            record: The baseline of an earlier session, whose review goes on.
        """
        self.expect()
        try:
            baseline = await self._begin(True, record or snapshot.record)
            for path, commits in snapshot.submodules.items():
                self._not_reviewed(f"submodule {shown(path)} ({commits}); review it in its folder.")
            files = baseline.changed - snapshot.submodules.keys()
            await self._review(sorted(files))
        finally:
            self._begun.set()
        what = shown(snapshot.label)
        if left := len(self._files.hunks.waiting()):
            note = snapshot.note or "Keeping one marks it as read; nothing on disk changes."
            self._status.inform(f"{what}: {counted(left, 'hunk')} to read. {note}")
        elif len(self._files.hunks):
            self._status.inform(f"{what}: everything is read.")
        else:
            self._status.inform(f"{what}: no file differs that can be reviewed here.")

    async def _begin(self, since_commit: bool, record: BaselineRecord | None) -> Baseline:
        from midstream.workspace.baseline import Baseline
        from midstream.workspace.staging import staged_entries

        workspace = self._files.workspace
        baseline, staged = await asyncio.gather(
            asyncio.to_thread(Baseline, workspace, since_commit=since_commit, record=record),
            asyncio.to_thread(staged_entries, workspace.root),
        )
        self._baseline = baseline
        self._files.follower.reviewing = True
        self._files.follower.before = baseline.read
        self._files.follower.staged = staged
        self._files.disk.was_executable = baseline.executable
        self._status.emit(ReviewSwitched(True))
        if not self._record(baseline):
            self._status.warn(
                "This review is too large for a journal: a resumed session will not see what was "
                "written while Midstream was not running."
            )
        if unknown := baseline.unknown:
            one, name = len(unknown) == 1, min(unknown)
            what = f"{name} was" if one else f"{len(unknown):,} files, such as {name}, were"
            self._status.inform(
                f"{what} here before this review and not in git, so only what changes in "
                f"{'it' if one else 'them'} from now on is reviewed; after `git add -N` all of "
                f"{'it' if one else 'them'} is."
            )
        if baseline.ignored:
            self._status.warn(
                "Git ignores this folder, so nothing in it is reviewed; take its name out of the "
                "ignore rules, or run git init in it."
            )
        if not baseline.complete:
            self._status.warn(
                "This folder is too large to keep a copy of every file: some files are reviewed "
                "only from their second change on. Review a subfolder, or commit first."
            )
        return baseline

    def _record(self, baseline: Baseline) -> bool:
        """Note in the journal what files held; False if that is too much."""
        if (record := baseline.record()) is None:
            return False
        self._journal.add(BaselineEntry.of(record))
        return True

    async def _without_moves(self, baseline: Baseline, paths: Collection[str]) -> frozenset[str]:
        """Those of the paths that did not change with a move of HEAD, which is followed.

        Nor where a merge has stopped at an open file and left it as it is.
        """
        head, files = baseline.head, self._files
        seen = await asyncio.to_thread(files.signatures, [*files])
        # Git writes files first, so some of them may have been looked at before HEAD was moved.
        clean = await asyncio.to_thread(baseline.follow_head, frozenset((*paths, *files)))
        if baseline.head != head:
            self._record(baseline)
        conflicts = (await asyncio.to_thread(baseline.new_conflicts)).intersection(files)
        seen |= files.signatures(conflicts)
        followed = clean | conflicts
        written = await files.take_as_reviewed(
            {path: seen[path] for path in followed & seen.keys()}
        )
        return (frozenset(paths) - followed) | written

    def switch_off(self) -> None:
        """Review nothing new; hunks that wait stay.

        Raises:
            SnapshotError: There is nothing else to do in a range of commits.
        """
        self._files.workspace.require_writable()
        self._baseline = None
        self._files.follower.reviewing = False
        self._files.follower.before = None
        self.aside = frozenset()
        self._status.emit(ReviewSwitched(False))

    async def changed(self, paths: Collection[str]) -> None:
        """Follow what other programs have written: files that changed, appeared or went."""
        if (baseline := self._baseline) is None:
            await self._files.changed(paths)
            return
        await self._git_to_end(baseline)
        paths = await asyncio.to_thread(self._with_others, baseline, frozenset(paths))
        if await self._take_up(await self._without_moves(baseline, paths), MAX_FILES):
            self._writes.wrote()

    def _with_others(self, baseline: Baseline, paths: frozenset[str]) -> frozenset[str]:
        """The paths and what goes with them (blocking).

        These are other names of the files (hard links), and files that went with a folder, or whose
        name a folder has.
        """
        workspace = self._files.workspace
        stands = workspace.stands
        paths |= workspace.other_names(paths)
        gone = {name for name in baseline.displaced(paths) if not stands(name)}
        gone |= {name for name in self._files if not paths.isdisjoint(folders_of(name))}
        return paths | gone

    @staticmethod
    async def _git_to_end(baseline: Baseline) -> None:
        """Wait for a checkout that runs: its files are no news, but git moves HEAD after them."""
        while await asyncio.to_thread(baseline.git_writes):
            await asyncio.sleep(GIT_POLL_S)
            if not baseline.git_writes():
                await asyncio.sleep(GIT_POLL_S)

    async def finish(self) -> None:
        """Put back the marked hunks as soon as no program writes."""
        await self._put_backs.finish()

    async def look(self) -> str:
        """Open the files that were set aside, as far as they differ; says what came of it."""
        paths, self.aside = self.aside, frozenset()
        await self._review(sorted(paths))
        if opened := sum(path in self._files for path in paths):
            return f"Opened {counted(opened, 'file')} that another program wrote."
        return "Nothing to decide: those files are as they were before."

    async def _take_up(self, paths: Collection[str], most: int) -> int:
        """Review files; set aside those that are not open, if there are more than ``most``.

        Returns:
            How many new hunks there are.
        """
        closed = frozenset(path for path in paths if path not in self._files) - self.aside
        now = asyncio.get_running_loop().time()
        if len(closed) > most or (closed and now < self._burst_until):
            self._burst_until = now + BURST_S
            self.aside |= closed
            self._status.warn(
                f"{counted(len(self.aside), 'file')} changed at once; they are left as they are "
                f"unless you open them for review.",
                "review.external",
            )
            paths = frozenset(paths).difference(closed)
        return await self._review(sorted(paths))

    async def _review(self, paths: Sequence[str]) -> int:
        """Make hunks of what differs from the reviewed text; how many are new."""
        if (baseline := self._baseline) is None:
            return 0
        paths = [path for path in paths if self._can_be_named(path)]
        if len(closed := [path for path in paths if path not in self._files]) > 1:
            await asyncio.to_thread(baseline.read_ahead, closed)
        added: list[Hunk] = []
        head, changes = "", None
        for number, path in enumerate(paths):
            if number % LOOKED_AT == 0:
                head, some = baseline.head, paths[number : number + LOOKED_AT]
                changes = await asyncio.to_thread(self._files.unopened_changes, some)
            else:
                await pause()
            if self._baseline is not baseline:
                break  # The review was stopped.
            try:
                added += await self._files.review(path, changes if baseline.head == head else None)
            except UserError as error:
                self._not_reviewed(str(error))
        if not added:
            return 0
        if self._files.workspace.read_only:
            return len(added)
        places = dict.fromkeys(hunk.path for hunk in added)
        where = next(iter(places)) if len(places) == 1 else counted(len(places), "file")
        self._status.inform(
            f"{self._writes.author or 'Another program'} changed {where}: "
            f"{counted(len(added), 'hunk')} to keep or put back.",
            passing=True,
        )
        return len(added)

    def _can_be_named(self, path: str) -> bool:
        """Whether a journal can keep the name of a file; says so if not."""
        try:
            path.encode()
        except UnicodeEncodeError:
            self._not_reviewed(f"the name of {shown(path)} is not UTF-8.")
            return False
        return True

    def _not_reviewed(self, why: str) -> None:
        if why not in self._said:
            self._said.add(why)
            self._status.warn(f"Not reviewed: {why}")

    def _hear(self, event: SessionEvent) -> None:
        if isinstance(event, ExternalHunksAdded):
            self._guard.look_soon(self._files, event.path)


class ExternalChanges:
    """Follows the folder and its repository.

    Args:
        on_saved: Called with the files that another program has saved.

    Attributes:
        repo: Branch and dirty state, or ``None`` where there is no repository.
    """

    def __init__(
        self,
        files: OpenFiles,
        review: ExternalReview,
        status: SessionStatus,
        spawn: Spawn,
        on_saved: Callable[[frozenset[str]], Awaitable[None]],
    ) -> None:
        self.repo: RepoStatus | None = None
        self._files = files
        self._review = review
        self._status = status
        self._spawn = spawn
        self._on_saved = on_saved
        self._watcher: Watcher | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        status.subscribe(self._hear)

    @property
    def watching(self) -> str:
        """How changes are noticed: ``native``, ``polling: why`` or ``off: why``."""
        return self._watcher.mode if self._watcher is not None else "off: not enabled"

    def start(self, *, reviewing: bool = False) -> None:
        """Follow changes from now on, and read the state of the repository.

        Args:
            reviewing: Whether a review begins, too: it goes first, as git takes as long for each.
        """
        self._spawn(self._watch())
        if not reviewing:
            self._spawn(self._read_repo())

    async def refresh(self) -> None:
        """Compare every open file with the disk now, as when the terminal regains the focus."""
        await self._review.changed(list(self._files))
        self._read_repo_soon()

    def close(self) -> None:
        """Stop watching."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    async def _watch(self) -> None:
        watcher = self._watcher = Watcher(
            self._files.workspace, lambda: self._status.emit(WatchingChanged()), self._status.warn
        )
        async for paths in watcher.changes():
            files = paths - {REPO_CHANGED}
            try:
                await self._review.changed(files)
            except Exception as error:  # Whatever it was, later changes are to be followed.
                self._status.warn(
                    f"A change of {counted(len(files), 'file')} was not followed: {error!r}."
                )
            if files:
                self._status.emit(FilesTouched(files))
            self._read_repo_soon()
            await self._on_saved(paths)
        if not self._closed:
            self._status.warn(f"Changes by other programs are no longer noticed ({watcher.mode}).")

    def _hear(self, event: SessionEvent) -> None:
        if isinstance(event, FileWritten):
            self._read_repo_soon()
        elif isinstance(event, ReviewSwitched) and event.on and self.repo is None:
            self._repo_due()

    def _read_repo_soon(self) -> None:
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(REPO_DELAY_S, self._repo_due)

    def _repo_due(self) -> None:
        self._timer = None
        if self._closed:
            return
        self._spawn(self._read_repo())

    async def _read_repo(self) -> None:
        status = await asyncio.to_thread(repo_status, self._files.workspace.root)
        if status != self.repo:
            self.repo = status
            self._status.emit(RepoChanged())
