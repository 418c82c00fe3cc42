"""The open files of a session: proposals, and decisions about their hunks.

One lock orders everything that reads or writes the disk: decisions, undo, external changes and the
start of a turn.  Streaming does not take it, so text keeps arriving while a file is written.  Knows
no model and no turn.

A hunk action is one method of :class:`OpenFiles` that takes a step of the hunk store through
``_apply``, with the :class:`~midstream.pairing.journal.journal.SessionEntry` that replays it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from midstream.codebase.syntax_check import breaks, where_broken
from midstream.edits.documents import SourceText, join_lines
from midstream.edits.stand_ins import is_whole
from midstream.errors import UserError
from midstream.pairing.contents import (
    NotTextFileError,
    content_part,
    decoded,
    encode,
    former_text,
    mode_changed,
    same,
    text_now,
    unseen_change,
)
from midstream.pairing.files.disk import FilesOnDisk
from midstream.pairing.files.moves import Moves
from midstream.pairing.files.put_backs import PutBackQueue
from midstream.pairing.journal.entries import (
    AnswerEntry,
    BaseEntry,
    DecideEntry,
    DecideLinesEntry,
    DropCallEntry,
    EditEntry,
    ProposeEntry,
    RedoEntry,
    ReviewedEntry,
    SessionEntry,
    SplitEntry,
    UndoEntry,
)
from midstream.pairing.journal.journal import SessionJournal
from midstream.pairing.status import (
    ExternalHunksAdded,
    FileChangedOnDisk,
    FileOpened,
    HunkDecided,
    HunkSettled,
    SessionStatus,
)
from midstream.workspace.content import Entry

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk, HunkState
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.files.attention import Attention
    from midstream.pairing.files.put_backs import Writers
    from midstream.pairing.guard import Guard
    from midstream.pairing.journal.journal import Replay
    from midstream.pairing.status import Spawn
    from midstream.workspace.files import Workspace

ATTEMPTS = 3
"""How often a write is tried when the file changes at the same time."""


class OpenFiles(Mapping[str, "FileProposal"]):
    """Open files and the decisions about their hunks; a mapping of path to proposal.

    Every method that decides returns whether (or which hunks) it changed; if it changed none, a
    notice says why and nothing was written.

    Attributes:
        workspace: The folder.
        hunks: Every hunk of the session and its decision.
        disk: What the files have on disk.
        lock: Held while a proposal is compared with the disk.
        reviewing: Whether what other programs change waits for decisions.
        before: What files were before the review began, if it is known (may block).
        put_backs: Rejected external hunks whose lines go back later.
        moves: Which hunks are the two halves of a file that was moved.
    """

    def __init__(
        self,
        workspace: Workspace,
        resumed: Replay,
        status: SessionStatus,
        journal: SessionJournal,
        guard: Guard,
        attention: Attention,
        writers: Writers,
        spawn: Spawn,
    ) -> None:
        self.disk = FilesOnDisk(workspace, resumed, status, journal)
        self.lock = asyncio.Lock()
        self.reviewing = False
        self.before: Callable[[str], Entry | None] | None = None
        self._proposals = resumed.files
        self.hunks = resumed.hunks
        self._refused: dict[str, SourceText] = {}
        """Texts that were not written because they do not parse; asked for again, they are."""
        self._skipped: set[int] = set()
        """Hunks that the user was told cannot be undone; the next undo skips them."""
        self.workspace = workspace
        self.moves = Moves(
            self.hunks,
            self.disk.digests,
            self.disk.absent,
            lambda path: len(self[path].base.lines),
        )
        self._status = status
        self._journal = journal
        self._guard = guard
        self._attention = attention
        self.put_backs = PutBackQueue(
            self.hunks, status, journal, writers, spawn, self._put_back_postponed
        )

    def __getitem__(self, path: str) -> FileProposal:
        """The proposal of an open file."""
        return self._proposals[path]

    def __iter__(self) -> Iterator[str]:
        """Paths in the order in which they were opened."""
        return iter(self._proposals)

    def __len__(self) -> int:
        """How many files are open."""
        return len(self._proposals)

    # Opening

    async def open(self, rel: str) -> FileProposal:
        """The proposal of a file to look at, opening it when needed.

        Raises:
            UserError: The file is missing, unreadable, too large, not text, or outside the root.
        """
        async with self.lock:
            path = await asyncio.to_thread(self.workspace.relative, rel)
            return self.get(path) or await self._read(path)

    async def open_text(self, rel: str) -> FileProposal:
        """The proposal of a file to write lines in; raises as ``open``."""
        async with self.lock:
            return await self.refreshed(rel, follow=False)

    async def refreshed(self, rel: str, *, follow: bool = True) -> FileProposal:
        """The proposal of a text over what is on disk now; the caller holds ``lock``.

        Args:
            rel: The file, in any spelling.
            follow: Whether a file that is open already is compared with the disk.

        Raises:
            UserError: As ``open``; or the file is decided as a whole.
        """
        path = await asyncio.to_thread(self.workspace.relative, rel)
        proposal = self.get(path)
        if proposal is None:
            return await self._read(path)
        if follow:
            await self._compare_if_there(proposal)
        self.disk.to_lines(proposal)
        if is_whole(proposal.base):
            raise NotTextFileError(
                f"{proposal.path} is reviewed as a whole, so nothing is written into it",
                "decide about it first, or name a text file instead",
            )
        return proposal

    async def _read(self, path: str) -> FileProposal:
        """Open a text file; in a review, with what was changed in it and not noticed yet."""
        entry = await asyncio.to_thread(self.workspace.look, path)
        if not await asyncio.to_thread(self._is_as_before, path, entry):
            await self._review_new(path, entry)
            return self[path]
        text = await asyncio.to_thread(decoded, path, entry.data)
        return self.adopt(path, text, entry)

    async def _compare_if_there(self, proposal: FileProposal) -> None:
        """Compare an open file with the disk, if it is not only proposed; raises as that."""
        from midstream.workspace.errors import MissingFileError

        try:
            await self._compare(proposal)
        except MissingFileError:
            if self.disk.digests[proposal.path] is not None:
                raise

    async def _compare(self, proposal: FileProposal, *, reviewed: bool = False) -> None:
        """Compare an open file with the disk.

        Args:
            proposal: Its proposal.
            reviewed: Whether what was changed needs no decision in a review either.

        Raises:
            UserError: The file is missing, unreadable, too large, or not text.
        """
        from midstream.workspace.errors import MissingFileError

        path = proposal.path
        review = self.reviewing and not reviewed
        entry = await asyncio.to_thread(self.workspace.current, path)
        if entry is None:
            raise MissingFileError(f"{path} is gone", "restore it, or work on another file")
        before = self.disk.digests[path]
        added = await self._advance_to(proposal, entry, review=review)
        if added:
            self._announce_external(path, added)
        elif content_part(before) != entry.digest:
            self._status.emit(FileChangedOnDisk(path))

    def adopt(self, path: str, text: SourceText, entry: Entry | None) -> FileProposal:
        """Open a file that was just read; ``None``: it does not exist."""
        from midstream.edits.proposal import FileProposal

        if entry is None:
            self.disk.may_vanish(path)  # first, so that no journal has the file without it
        proposal = self._proposals[path] = FileProposal(path, text, self.hunks)
        self.disk.note(proposal, entry)
        self._status.emit(FileOpened(path))
        return proposal

    async def create(self, rel: str) -> FileProposal:
        """The empty proposal of a file that does not exist; accepting its hunk creates it.

        Raises:
            UserError: There may be no such file, or it exists and is not text.
        """
        from midstream.workspace.errors import MissingFileError

        async with self.lock:
            try:
                return await self.refreshed(rel, follow=False)
            except MissingFileError:
                path = await asyncio.to_thread(self.workspace.relative, rel)
                self.disk.may_vanish(path)
                return self.adopt(path, SourceText((), ()), None)

    # Following the disk

    async def review(self, rel: str) -> tuple[Hunk, ...]:
        """Make hunks of what another program has done to a file; they wait for decisions.

        Args:
            rel: The file, by its one name; it is opened if it differs from what it was.

        Returns:
            The new hunks.

        Raises:
            UserError: The file cannot be read, is too large, or belongs to another repository; or
                nobody can tell what it held before.
        """
        async with self.lock:
            entry = await asyncio.to_thread(self.workspace.current, rel)
            proposal = self.get(rel)
            if proposal is None:
                return await self._review_new(rel, entry)
            return await self._review(proposal, entry)

    async def _review_new(self, path: str, entry: Entry | None) -> tuple[Hunk, ...]:
        """Open a file that is not as it was before the review; ``None``: it is gone."""
        before = self.before
        old = entry if before is None else await asyncio.to_thread(before, path)
        if same(old, entry):
            return ()
        return await self._review(self.adopt(path, former_text(old, entry), old), entry)

    def _is_as_before(self, path: str, entry: Entry) -> bool:
        """Whether a file needs no review: it is as it was, or git ignores it (blocking)."""
        if not self.reviewing or self.before is None:
            return True
        return same(self.before(path), entry) or self.workspace.ignores(path)

    async def _review(self, proposal: FileProposal, entry: Entry | None) -> tuple[Hunk, ...]:
        """Make hunks of what differs on disk; ``None``: the file is gone."""
        before = self.disk.digests[proposal.path]
        if entry is None and before is not None:
            self.disk.may_vanish(proposal.path)
            self._make_journal()
            added = self._rebase(proposal, None, None, review=True)
        elif entry is not None:
            added = await self._advance_to(proposal, entry, review=True)
            if not added and before == self.disk.digests[proposal.path]:
                return ()
        else:
            return ()
        self._announce_external(proposal.path, added)
        return added

    async def _advance_to(
        self, proposal: FileProposal, entry: Entry, *, review: bool
    ) -> tuple[Hunk, ...]:
        """Move a proposal onto what its file is now; returns the new hunks of a review.

        Raises:
            NotTextFileError: It is not text, and not reviewed.
        """
        known = self.disk.is_as_known(proposal, entry)
        if not known:
            self.disk.take_form(proposal, entry, review=review)
        program = self.disk.executable.get(proposal.path)
        text = await text_now(proposal, entry, program, review=review)
        if known and text == proposal.base:
            return ()
        return self._rebase(proposal, text, entry, review=review)

    def _announce_external(self, path: str, added: Sequence[Hunk]) -> None:
        for hunk in added:
            self._status.emit(HunkSettled(path, hunk.id))
        self._status.emit(ExternalHunksAdded(path))

    def _make_journal(self) -> None:
        try:
            self._journal.make()
        except (UserError, OSError) as error:
            reason = error if isinstance(error, UserError) else error.strerror
            self._status.warn(f"This review cannot be resumed after a crash: {reason}.")

    async def take_as_reviewed(self, paths: Iterable[str]) -> None:
        """Follow files that are as a commit has them: nothing in them waits for a decision."""
        for path in sorted(paths):
            proposal = self.get(path)
            if proposal is None:
                continue
            async with self.lock:
                await self._follow(path, reviewed=True)
                before, after = proposal.accepted()
                gone = proposal.committed()
                if gone or before != after:
                    self._journal.add(ReviewedEntry(path))
                    self._announce(gone)

    async def changed(self, paths: Iterable[str]) -> None:
        """Move open files onto their new text after another program changed them."""
        for path in sorted(paths):
            if path in self:
                async with self.lock:
                    await self._follow(path)

    async def _follow(self, path: str, *, reviewed: bool = False) -> None:
        """Compare an open file with the disk; a notice says what could not be kept."""
        from midstream.workspace.errors import MissingFileError

        try:
            await self._compare(self[path], reviewed=reviewed)
        except UserError as error:
            if self.reviewing and not reviewed and isinstance(error, MissingFileError):
                await self._review(self[path], None)
            elif self.disk.digests[path] is not None:
                self.disk.digests[path] = None
                self._status.emit(FileChangedOnDisk(path))
                kept = "its hunks are kept, but cannot be written until it is back"
                self._status.warn(f"{error.problem.rstrip('.')}; {kept}.")

    def _rebase(
        self,
        proposal: FileProposal,
        text: SourceText | None,
        entry: Entry | None,
        *,
        review: bool = False,
    ) -> tuple[Hunk, ...]:
        """Move a proposal onto what is on disk; returns the new hunks of a review.

        Args:
            proposal: The proposal.
            text: The text on disk; ``None`` if the file is gone.
            entry: What the file is; ``None`` if it is gone.
            review: Whether what was changed waits for a decision.
        """
        if review:
            self._make_journal()
        before = {hunk.id: hunk.state for hunk in self.hunks.for_path(proposal.path)}
        unseen = self._unseen(proposal, text, entry) if review and text and entry else ""
        added = proposal.advance(proposal.without_lines() if text is None else text, review=review)
        self.disk.note(proposal, entry, review=review)
        lost = 0
        for hunk in self.hunks.for_path(proposal.path):
            if before.get(hunk.id) not in (None, hunk.state):
                self._status.emit(HunkDecided(proposal.path, hunk.id))
                lost += hunk.state == "conflict"
        if unseen:
            what = f"another program changed the {unseen}; no hunk shows that."
            self._status.inform(f"{proposal.path}: {what}")
        if lost:
            what, they = ("A hunk is", "it") if lost == 1 else (f"{lost} hunks are", "they")
            self._status.warn(
                f"{what} in conflict: {proposal.path} was changed where {they} would go; your text "
                "is kept, ask for the edit again."
            )
        return added

    def _unseen(self, proposal: FileProposal, text: SourceText, entry: Entry) -> str:
        """What was changed of a file and is in no line, in words."""
        before = proposal.base if proposal.base.lines else proposal.former
        changes = [] if before is None else unseen_change(before, text)
        known = self.disk.executable.get(proposal.path)
        if not is_whole(text) and mode_changed(known, entry.executable):
            now = "it is executable now" if entry.executable else "it is no longer executable"
            changes.append(f"permissions ({now})")
        return ", ".join(changes)

    def fold(self, proposal: FileProposal, start: int, stop: int) -> tuple[int, int]:
        """Take accepted hunks into the base; returns where base lines ``[start, stop)`` went."""
        edits = self.hunks.accepted_edits(proposal.path)
        if not edits:
            return start, stop
        total = len(proposal.base.lines)
        proposal.advance(proposal.composed())
        self.record_base(proposal)
        shift = [
            sum(len(e.lines) - (e.stop - e.start) for e in edits if e.stop <= line)
            for line in (start, min(stop, total))
        ]
        return start + shift[0], stop + shift[1]

    def record_base(self, proposal: FileProposal) -> None:
        """Note in the journal that accepted hunks became part of the base."""
        digest = self.disk.digests[proposal.path]
        (data, program), _ = encode(proposal.path, proposal.base, digest)
        self._journal.add(BaseEntry.of(proposal.path, proposal.base, data, digest, program))

    def change_message(self, path: str) -> str:
        """A message about a change of ``path`` by another program."""
        moved = bool(self.hunks.undecided(path))
        then = "open hunks were moved onto the new text" if moved else "this is the new text"
        return f"{path} changed on disk; {then}."

    # What agents want to write

    def propose(self, proposal: FileProposal, after: Sequence[str], call: int) -> tuple[Hunk, ...]:
        """Make hunks of what a call of an agent's tool would write; the caller holds ``lock``."""
        from midstream.guard.secrets import mask

        self._make_journal()
        known = frozenset(proposal.base.lines)
        safe = [line if line in known else mask(line) for line in after]
        self._journal.add(ProposeEntry(proposal.path, call, safe))
        added = proposal.propose(after, call)
        self._announce_external(proposal.path, added)
        return added

    def answer_call(self, call: int) -> None:
        """The agent writes what was accepted of its call now; the caller holds ``lock``."""
        self._journal.add(AnswerEntry(call))
        self.hunks.answer(call)

    def drop_call(self, call: int) -> tuple[Hunk, ...]:
        """Drop the undecided hunks of a call, which will not be written; returns them."""
        if call not in self.hunks.calls:
            return ()
        self._journal.add(DropCallEntry(call))
        gone = self.hunks.drop_call(call)
        self._announce(gone)
        return gone

    # Decisions

    async def accept(self, hunk_id: int) -> bool:
        """Accept a settled hunk and write the file."""
        await self._guard.caught_up()
        ids = self._not_held([hunk_id])
        return bool(ids) and await self._accept(self.moves.with_partners(ids))

    async def reject(self, hunk_id: int, note: str = "") -> bool:
        """Reject a settled hunk; one that was accepted is taken out of the file again.

        While another program writes, an undecided hunk of its own is only marked.
        """
        from midstream.edits.hunks import HunkState

        hunk_ids = self.moves.with_partners([hunk_id])
        if self.put_backs.add(hunk_ids, note):
            return True
        return await self._decide(hunk_ids, HunkState.REJECTED, note)

    async def accept_rest(
        self, path: str, only: Collection[int] | None = None, *, anyway: bool = False
    ) -> int:
        """Accept every undecided settled hunk of a file, in one write and one undo step.

        Args:
            path: The file.
            only: Ids to which this is limited, such as those that were read.
            anyway: Whether to write a text that does not parse without asking.

        Returns:
            How many were accepted.
        """
        if only is None:  # Hunks that arrive while we wait were not meant, and have no verdict yet.
            only = {hunk.id for hunk in self.hunks.undecided(path)}
        await self._guard.caught_up()
        ids = [hunk.id for hunk in self.hunks.undecided(path) if hunk.id in only]
        ids = self._not_held(ids)
        ids = self.moves.with_partners(ids)
        return len(ids) if ids and await self._accept(ids, anyway=anyway) else 0

    async def reject_rest(self, path: str) -> int:
        """Reject every undecided settled hunk of a file in one undo step; returns how many."""
        from midstream.edits.hunks import HunkState

        ids = self.moves.with_partners([hunk.id for hunk in self.hunks.undecided(path)])
        later = self.put_backs.add(ids, "")
        ids = [hunk_id for hunk_id in ids if hunk_id not in later]
        now = len(ids) if ids and await self._decide(ids, HunkState.REJECTED) else 0
        return now + len(later)

    async def accept_all(self, only: Collection[int]) -> int:
        """Accept undecided settled hunks of any files, in one write and one undo step.

        Args:
            only: Their ids.

        Returns:
            How many were accepted.
        """
        await self._guard.caught_up()
        ids = [hunk.id for hunk in self.hunks.undecided() if hunk.id in only]
        ids = self._not_held(ids)
        ids = self.moves.with_partners(ids)
        return len(ids) if ids and await self._accept(ids) else 0

    async def reject_all(self) -> int:
        """Reject every undecided settled hunk, of one file after the other; returns how many."""
        paths = dict.fromkeys(hunk.path for hunk in self.hunks.undecided())
        return sum([await self.reject_rest(path) for path in paths])

    async def _put_back_postponed(self, hunk_ids: Sequence[int], note: str) -> Sequence[Hunk]:
        """Reject external hunks as one step, as far as their lines are still in the file."""
        from midstream.edits.external import waiting_hunks
        from midstream.edits.hunks import HunkState

        entry = DecideEntry([], HunkState.REJECTED, note)

        def step() -> Sequence[Hunk]:
            hunks = waiting_hunks(hunk for i in hunk_ids if (hunk := self.hunks.get(i)).live)
            entry.ids = [hunk.id for hunk in hunks]
            if hunks:
                self.hunks.decide(entry.ids, HunkState.REJECTED, note)
            return hunks

        return await self._apply(hunk_ids[0], step, entry, f"put back {len(hunk_ids)} hunks")

    def _not_held(self, hunk_ids: Sequence[int]) -> list[int]:
        """The hunks without those that delete a file whose new place is quarantined."""
        waiting = {
            hunk_id: move
            for hunk_id in hunk_ids
            if (move := self.moves.of_id(hunk_id)) and move.held and move.gone.id == hunk_id
        }
        for move in waiting.values():
            self._status.warn(
                f"{move.gone.path} moves to {move.made.path}, which is quarantined: release that "
                "first, then both can be accepted."
            )
        return [hunk_id for hunk_id in hunk_ids if hunk_id not in waiting]

    async def _accept(self, hunk_ids: list[int], *, anyway: bool = False) -> bool:
        from midstream.edits.hunks import HunkState

        self._attention.accepted_all(self.hunks, hunk_ids)
        return await self._decide(hunk_ids, HunkState.ACCEPTED, anyway=anyway)

    async def _decide(
        self, hunk_ids: list[int], state: HunkState, note: str = "", *, anyway: bool = False
    ) -> bool:
        def step() -> Sequence[Hunk]:
            self.hunks.decide(hunk_ids, state, note)
            return [self.hunks.get(hunk_id) for hunk_id in hunk_ids]

        what = f"{state} {len(hunk_ids)} hunk{'s' * (len(hunk_ids) != 1)}"
        entry = DecideEntry(hunk_ids, state, note)
        return bool(await self._apply(hunk_ids[0], step, entry, what, anyway=anyway))

    async def decide_lines(
        self, hunk_id: int, start: int, stop: int, accept: bool, note: str = ""
    ) -> bool:
        """Accept or reject some lines of an undecided hunk, in one undo step.

        The lines become a hunk of their own; the lines before and after them stay undecided.

        Args:
            hunk_id: The hunk.
            start: First line, counting the old lines and then the new ones.
            stop: Line after the last one.
            accept: Whether they are accepted or rejected.
            note: Why.

        Raises:
            ValueError: The range is empty or not within the hunk.
        """
        from midstream.edits.hunks import HunkState

        await self._guard.caught_up()
        if not accept and (held := self.put_backs.held([hunk_id])):
            deleted = held[0].deleted
            cuts = [(min(at, deleted), max(0, at - deleted)) for at in (start, stop)]
            parts = await self.split(hunk_id, cuts)
            return bool(parts and self.put_backs.add([parts[start > 0]], note))
        if accept and not self._not_held([hunk_id]):
            return False
        state = HunkState.ACCEPTED if accept else HunkState.REJECTED

        def step() -> Sequence[Hunk]:
            return self.hunks.decide_lines(hunk_id, start, stop, state, note)

        entry = DecideLinesEntry(hunk_id, start, stop, state, note)
        return bool(await self._apply(hunk_id, step, entry, f"{state} some lines of a hunk"))

    async def split(self, hunk_id: int, cuts: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """Split an undecided hunk into consecutive ones, in one undo step.

        Args:
            hunk_id: The hunk.
            cuts: For each cut, how many old and how many new lines lie before it, ascending.

        Returns:
            The ids of the parts, in order.

        Raises:
            ValueError: A cut is out of range or out of order.
        """
        parts = await self._apply(
            hunk_id,
            lambda: self.hunks.split(hunk_id, cuts),
            SplitEntry(hunk_id, list(cuts)),
            "split a hunk",
        )
        return tuple(hunk.id for hunk in parts)

    async def edit(self, hunk_id: int, new: Sequence[str]) -> bool:
        """Give an undecided hunk the user's own new lines, in one undo step; it stays undecided.

        Raises:
            ValueError: A line has a terminator in it.
        """

        def step() -> Sequence[Hunk]:
            self.hunks.edit(hunk_id, new)
            return (self.hunks.get(hunk_id),)

        return bool(await self._apply(hunk_id, step, EditEntry(hunk_id, list(new)), "edit a hunk"))

    async def _apply(
        self,
        hunk_id: int,
        step: Callable[[], Sequence[Hunk]],
        entry: SessionEntry,
        what: str,
        *,
        anyway: bool = False,
    ) -> Sequence[Hunk]:
        """Take a step of the hunk store that can be undone, and write what follows from it.

        Args:
            hunk_id: A hunk that the step is about.
            step: Takes it; returns the hunks that it changed or made, all of one file.
            entry: Its journal entry.
            what: What it does, for the checkpoint.
            anyway: Whether to write a text that does not parse without asking.

        Returns:
            The hunks that it changed or made; none, after a notice, if it does not stand.
        """
        if isinstance(entry, (DecideLinesEntry, SplitEntry, EditEntry)):
            for path in {h.path for h in self.hunks if h.id == hunk_id}:
                if is_whole(self[path].base):
                    self._status.warn(f"{path} can only be kept or put back as a whole.")
                    return ()

        def take() -> Sequence[Hunk]:
            hunks = self._step(hunk_id, step)
            if hunks:
                self._journal.add(entry)
            return hunks

        def take_back() -> Sequence[Hunk]:
            self._journal.add(UndoEntry())
            return self.hunks.undo()

        async with self.lock:
            return await self._persist(take, take_back, what, anyway=anyway)

    async def _persist(
        self,
        take: Callable[[], Sequence[Hunk]],
        take_back: Callable[[], Sequence[Hunk]],
        what: str,
        *,
        anyway: bool,
    ) -> Sequence[Hunk]:
        """Take a step and write what follows from it; once more where a file has just changed.

        Args:
            take: Takes the step.
            take_back: Undoes it.
            what: What it does, for the checkpoint.
            anyway: Whether to write a text that does not parse without asking.

        Returns:
            The hunks that it changed; none if there is no such step, or if it was taken back
            because it cannot be written or is to be confirmed, which a notice says.
        """
        for attempt in range(ATTEMPTS):
            hunks = take()
            if not hunks:
                return ()
            if not anyway and (broken := await self._breaks(hunks, take_back)):
                self._announce(hunks)
                self._status.warn(broken)
                return ()
            self._announce(hunks)
            files = len({hunk.path for hunk in hunks})
            where = hunks[0].path if files == 1 else f"{files} files"
            texts = {path: self[path].composed() for path in {hunk.path for hunk in hunks}}
            error = await self.disk.write(texts, f"{what} in {where}")
            if error is None:
                return hunks
            self._announce(take_back())
            if attempt == ATTEMPTS - 1 or not _stale(error):
                self._status.fail(str(error))
                break
            for path in {hunk.path for hunk in hunks}:
                await self._follow(path)
        return ()

    async def _breaks(self, hunks: Sequence[Hunk], take_back: Callable[[], Sequence[Hunk]]) -> str:
        """Say what stops parsing with a step that was just taken, and take it back.

        Returns:
            ``""`` if the step stands: nothing is wrong, or the same was asked for before.
        """
        for path in dict.fromkeys(hunk.path for hunk in hunks):
            after = self[path].composed()
            if call := max(hunk.call for hunk in hunks if hunk.path == path):
                if any(not h.decided for h in self.hunks.of_call(call) if h.path == path):
                    continue  # the agent writes nothing before all of it is decided
                after = self[path].with_call(call)
            if is_whole(after):
                continue
            refused = self._refused.pop(path, None)
            if refused == after:
                continue
            if why := await self._newly_broken(path, join_lines(after.lines)):
                self._refused[path] = after
                take_back()
                return (
                    f"Nothing was written: {path} would not parse any more ({why}). "
                    "The same once more writes it anyway."
                )
        return ""

    async def _newly_broken(self, path: str, after: str) -> str:
        """Where a text stops parsing that does not where the file on disk does."""
        if not (why := await where_broken(path, after)):
            return ""
        try:
            data = await asyncio.to_thread(self.workspace.read, path)
            text = await asyncio.to_thread(decoded, path, data)
        except UserError:  # A new file; or one that the write will stumble over as well.
            return why
        return await breaks(path, join_lines(text.lines), after)

    def _step(self, hunk_id: int, step: Callable[[], Sequence[Hunk]]) -> Sequence[Hunk]:
        from midstream.edits.hunks import UndecidableError

        version = self.hunks.version
        try:
            hunks = step()
        except KeyError:
            self._status.warn(f"There is no hunk {hunk_id} in this session.")
            return ()
        except UndecidableError as error:
            self._status.warn(str(error))
            return ()
        # Without a new version nothing has changed; there is no step to write or undo.
        return () if self.hunks.version == version else hunks

    # Undo and redo

    async def undo(self) -> tuple[int, ...]:
        """Undo the last decision and rewrite what it had written; ids of the hunks changed.

        If hunks were marked to be put back later since then, that is taken back instead.
        """
        if recalled := self.put_backs.recall():
            return recalled
        async with self.lock:
            if self._cannot_undo():
                return ()
            return await self._travel(
                UndoEntry(), self.hunks.undo, RedoEntry(), self.hunks.redo, anyway=True
            )

    async def redo(self) -> tuple[int, ...]:
        """Redo the decision that ``undo`` took back; ids of the hunks changed."""
        async with self.lock:
            return await self._travel(
                RedoEntry(), self.hunks.redo, UndoEntry(), self.hunks.undo, anyway=False
            )

    async def _travel(
        self,
        there: SessionEntry,
        move: Callable[[], Sequence[Hunk]],
        back: SessionEntry,
        move_back: Callable[[], Sequence[Hunk]],
        *,
        anyway: bool,
    ) -> tuple[int, ...]:
        from midstream.edits.hunks import UndecidableError

        def take() -> Sequence[Hunk]:
            try:
                hunks = move()
            except UndecidableError as error:
                self._status.warn(str(error))
                return ()
            self._journal.add(there)
            return hunks

        def take_back() -> Sequence[Hunk]:
            self._journal.add(back)
            return move_back()

        waiting = self.hunks.undecided()
        hunks = await self._persist(take, take_back, there.kind, anyway=anyway)
        if hunks:
            self._tell_gone([hunk for hunk in waiting if hunk not in hunks])
        return tuple(hunk.id for hunk in hunks)

    def _cannot_undo(self) -> bool:
        """Whether the last decision is an accepted change that cannot be undone.

        A notice says so once; the next undo skips it.
        """
        from midstream.edits.hunks import Obstacle

        stuck = self.hunks.stuck
        if stuck is None or stuck[0].id in self._skipped:
            return False
        hunk, why = stuck
        what = f"`{hunk.headline[:60]}`" if hunk.new else f"Deleting `{hunk.headline[:60]}`"
        if why is Obstacle.WRITING:
            self._status.warn(
                f"{what} was accepted where the model is writing now; stop it or wait until it "
                f"ends, then undo."
            )
            return True
        self._skipped.add(hunk.id)
        self._status.warn(
            f"{what} was accepted in {hunk.path}, and its lines have changed since, so it cannot "
            f"be undone. Change it by hand or with an instruction; the next undo takes back the "
            f"decision before it."
        )
        return True

    def _tell_gone(self, waited: Iterable[Hunk]) -> None:
        """Tell of hunks that were superseded by one that was undone."""
        gone = [hunk for hunk in waited if not hunk.live]
        if gone:
            many = len(gone) != 1
            self._status.inform(
                f"{len(gone)} waiting hunk{'s' * many} that change{'s' * (not many)} the same "
                f"lines went with it; redo brings {'them' if many else 'it'} back."
            )
            self._announce(gone)

    def _announce(self, hunks: Iterable[Hunk]) -> None:
        for hunk in hunks:
            self._status.emit(HunkDecided(hunk.path, hunk.id))


def _stale(error: UserError) -> bool:
    from midstream.workspace.errors import StaleFileError

    return isinstance(error, StaleFileError)
