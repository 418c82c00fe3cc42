"""Decisions about hunks: accept, reject, split, edit and undo, and the writes that follow.

A hunk action is one method of ``Decisions`` that takes a step of the hunk store through
``_apply``, with the ``SessionEntry`` that replays it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from midstream.codebase.syntax_check import breaks, where_broken
from midstream.edits.documents import SourceText, join_lines
from midstream.edits.external import waiting_hunks
from midstream.edits.hunk_store import UndecidableError
from midstream.edits.hunks import HunkState, Obstacle, cuts_around, part_behind
from midstream.edits.stand_ins import is_whole
from midstream.errors import UsageError, UserError
from midstream.pairing.contents import decoded
from midstream.pairing.files.put_backs import PutBackQueue
from midstream.pairing.journal.entries import (
    AnswerEntry,
    DecideEntry,
    DecideLinesEntry,
    DropCallEntry,
    EditEntry,
    ProposeEntry,
    RedoEntry,
    ReleaseEntry,
    SessionEntry,
    SplitEntry,
    UndoEntry,
)
from midstream.pairing.journal.journal import SessionJournal
from midstream.pairing.status import HunkDecided, SessionStatus
from midstream.workspace.errors import StaleFileError

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.files.attention import Attention
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.files.put_backs import Writers
    from midstream.pairing.guard import Guard
    from midstream.pairing.status import Spawn

ATTEMPTS = 3
"""How often a write is tried when the file changes at the same time."""


class Decisions:
    """Decisions about the hunks of the open files, each one step that can be undone.

    Every method that decides returns whether (or which hunks) it changed; if it changed none, a
    notice says why and nothing was written.

    Attributes:
        hunks: Every hunk of the session and its decision.
        put_backs: Rejected external hunks whose lines go back later.
    """

    def __init__(
        self,
        files: OpenFiles,
        status: SessionStatus,
        journal: SessionJournal,
        guard: Guard,
        attention: Attention,
        writers: Writers,
        spawn: Spawn,
    ) -> None:
        self.hunks = files.hunks
        self._files = files
        self._refused: dict[str, SourceText] = {}
        """Texts that were not written because they do not parse; a second request writes them."""
        self._skipped: set[int] = set()
        """Hunks that the user was told cannot be undone; the next undo skips them."""
        self._status = status
        self._journal = journal
        self._guard = guard
        self._attention = attention
        self.put_backs = PutBackQueue(
            self.hunks, status, journal, writers, spawn, self._put_back_postponed
        )

    async def accept(self, hunk_id: int) -> bool:
        """Accept a settled hunk and write the file."""
        await self._guard.caught_up()
        ids = self._not_held([hunk_id])
        return bool(ids) and await self._accept(self._files.moves.with_partners(ids))

    async def reject(self, hunk_id: int, note: str = "") -> bool:
        """Reject a settled hunk; one that was accepted is taken out of the file again.

        While another program writes, an undecided hunk of its own is only marked.
        """
        hunk_ids = self._files.moves.with_partners([hunk_id])
        if self.put_backs.add(hunk_ids, note):
            return True
        return await self._decide(hunk_ids, HunkState.REJECTED, note)

    async def accept_rest(
        self, path: str, only: Collection[int] | None = None, *, anyway: bool = False
    ) -> int:
        """Accept every undecided settled hunk of a file, in one write and one undo step.

        Args:
            path: The file.
            only: The hunks that may be accepted, such as those that were read; ``None`` for all.
            anyway: Whether to write a text that does not parse without asking.

        Returns:
            How many were accepted.
        """
        if only is None:  # Hunks that arrive while we wait were not meant, and have no verdict yet.
            only = {hunk.id for hunk in self.hunks.undecided(path)}
        await self._guard.caught_up()
        ids = [hunk.id for hunk in self.hunks.undecided(path) if hunk.id in only]
        ids = self._not_held(ids)
        ids = self._files.moves.with_partners(ids)
        return len(ids) if ids and await self._accept(ids, anyway=anyway) else 0

    async def reject_rest(self, path: str) -> int:
        """Reject every hunk of a file that waits in one undo step; returns how many.

        What the guard holds back and is on disk already is put back with the rest.
        """
        return await self.reject_together([hunk.id for hunk in self.hunks.waiting(path)])

    async def reject_together(self, only: Collection[int]) -> int:
        """Reject hunks of any files that wait in one undo step; returns how many.

        Args:
            only: Their ids.
        """
        wanted = [hunk.id for hunk in self.hunks.waiting() if hunk.id in only]
        ids = self._files.moves.with_partners(wanted)
        later = self.put_backs.add(ids, "")
        ids = [hunk_id for hunk_id in ids if hunk_id not in later]
        now = len(ids) if ids and await self._decide(ids, HunkState.REJECTED) else 0
        return now + len(later)

    async def accept_all(self, only: Collection[int], *, anyway: bool = False) -> int:
        """Accept undecided settled hunks of any files, in one write and one undo step.

        Args:
            only: Their ids.
            anyway: Whether to write a text that does not parse without asking.

        Returns:
            How many were accepted.
        """
        await self._guard.caught_up()
        ids = [hunk.id for hunk in self.hunks.undecided() if hunk.id in only]
        ids = self._not_held(ids)
        ids = self._files.moves.with_partners(ids)
        return len(ids) if ids and await self._accept(ids, anyway=anyway) else 0

    async def reject_all(self) -> int:
        """Reject every hunk that waits, of one file after the other; returns how many."""
        paths = dict.fromkeys(hunk.path for hunk in self.hunks.waiting())
        return sum([await self.reject_rest(path) for path in paths])

    async def _put_back_postponed(self, hunk_ids: Sequence[int], note: str) -> Sequence[Hunk]:
        """Reject external hunks as one step, as far as their lines are still in the file."""
        entry = DecideEntry([], HunkState.REJECTED, note)

        def step() -> Sequence[Hunk]:
            hunks = waiting_hunks(hunk for i in hunk_ids if (hunk := self.hunks.get(i)).live)
            entry.ids = [hunk.id for hunk in hunks]
            if hunks:
                self.hunks.decide(entry.ids, HunkState.REJECTED, note)
            return hunks

        return await self._apply(hunk_ids[0], step, entry, f"put back {len(hunk_ids)} hunks")

    def _not_held(self, hunk_ids: Sequence[int]) -> list[int]:
        """The hunks without those that delete a file whose new place is held back."""
        waiting = {
            hunk_id: move
            for hunk_id in hunk_ids
            if (move := self._files.moves.of_id(hunk_id)) and move.held and move.gone.id == hunk_id
        }
        for move in waiting.values():
            self._status.warn(
                f"{move.gone.path} moves to {move.made.path}, which is held back: release that "
                "first, then both can be accepted."
            )
        return [hunk_id for hunk_id in hunk_ids if hunk_id not in waiting]

    async def _accept(self, hunk_ids: list[int], *, anyway: bool = False) -> bool:
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

    async def release(self, hunk_id: int, reason: str = "") -> bool:
        """Let a hunk be decided that the guard holds back, in one undo step.

        Raises:
            UsageError: No reason is given.
        """
        from midstream.guard.secrets import mask

        reason = " ".join(reason.split())
        if not reason:
            raise UsageError(
                "To release what the guard holds back, say why it is safe", "a few words will do"
            )

        def step() -> Sequence[Hunk]:
            self.hunks.release(hunk_id, reason, undoable=True)
            return (self.hunks.get(hunk_id),)

        entry = ReleaseEntry(hunk_id, mask(reason), undoable=True)
        released = await self._apply(hunk_id, step, entry, "release a hunk")
        for hunk in released:
            self._guard.released(hunk)
        return bool(released)

    # Parts of hunks

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
        await self._guard.caught_up()
        if not accept and (later := self.put_backs.to_postpone([hunk_id])):
            cuts, first = cuts_around(later[0], start, stop, accept=False)
            parts = [self.hunks.get(part) for part in await self.split(hunk_id, cuts)]
            return bool(parts and self.put_backs.add([part_behind(first, parts).id], note))
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

    # Steps

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
        if _writes(entry) and (refusal := self._files.workspace.refusal):
            self._status.warn(refusal)
            return ()
        if isinstance(entry, (DecideLinesEntry, SplitEntry, EditEntry)):
            for path in {h.path for h in self.hunks if h.id == hunk_id}:
                if is_whole(self._files[path].base):
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

        async with self._files.lock:
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
            changed = [self._files[path] for path in dict.fromkeys(hunk.path for hunk in hunks)]
            error = await self._files.disk.write(changed, f"{what} in {where}")
            if error is None:
                return hunks
            self._announce(take_back())
            if attempt == ATTEMPTS - 1 or not _stale(error):
                self._status.fail(str(error))
                break
            for path in {hunk.path for hunk in hunks}:
                await self._files.follower.follow(path)
        return ()

    async def _breaks(self, hunks: Sequence[Hunk], take_back: Callable[[], Sequence[Hunk]]) -> str:
        """Say what stops parsing with a step that was just taken, and take it back.

        Returns:
            ``""`` if the step stands: nothing is wrong, or the same was asked for before.
        """
        for path in dict.fromkeys(hunk.path for hunk in hunks):
            after = self._files[path].composed()
            if call := max(hunk.call for hunk in hunks if hunk.path == path):
                if any(not h.decided for h in self.hunks.of_call(call) if h.path == path):
                    continue  # the agent writes nothing before all of it is decided
                after = self._files[path].with_call(call)
            if is_whole(after) or after == self._files[path].base:
                continue  # Nothing of it is written; what others wrote is there already.
            refused = self._refused.pop(path, None)
            if refused == after:
                continue
            if why := await self._newly_broken(path, join_lines(after.lines)):
                self._refused[path] = after
                take_back()
                return (
                    f"Nothing was written: {path} would not parse any more ({why}). "
                    "Decide the same once more to write it anyway."
                )
        return ""

    async def _newly_broken(self, path: str, after: str) -> str:
        """Where a text stops parsing, unless the file on disk stops at the same place."""
        if not (why := await where_broken(path, after)):
            return ""
        try:
            data = await asyncio.to_thread(self._files.workspace.read, path)
            text = await asyncio.to_thread(decoded, path, data)
        except UserError:  # A new file; or one that the write will stumble over as well.
            return why
        return await breaks(path, join_lines(text.lines), after)

    def _step(self, hunk_id: int, step: Callable[[], Sequence[Hunk]]) -> Sequence[Hunk]:
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
        async with self._files.lock:
            if self._cannot_undo():
                return ()
            return await self._travel(
                UndoEntry(), self.hunks.undo, RedoEntry(), self.hunks.redo, anyway=True
            )

    async def redo(self) -> tuple[int, ...]:
        """Redo the decision that ``undo`` took back; ids of the hunks changed."""
        async with self._files.lock:
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
            self._guard.release_unguarded({hunk.path for hunk in hunks})
            self._tell_gone([hunk for hunk in waiting if hunk not in hunks])
        return tuple(hunk.id for hunk in hunks)

    def _cannot_undo(self) -> bool:
        """Whether the last decision is an accepted change that cannot be undone.

        A notice says so once; the next undo skips it.
        """
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

    # What agents want to write

    def propose(self, proposal: FileProposal, after: Sequence[str], call: int) -> tuple[Hunk, ...]:
        """Make hunks of what a call of an agent's tool would write; the caller holds ``lock``."""
        from midstream.guard.secrets import mask_lines

        self._journal.make()
        known = frozenset(proposal.base.lines)
        pairs = zip(after, mask_lines(after), strict=True)
        safe = [line if line in known else masked for line, masked in pairs]
        self._journal.add(ProposeEntry(proposal.path, call, safe))
        added = proposal.propose(after, call)
        self._files.follower.announce_external(proposal.path, added)
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


def _writes(entry: SessionEntry) -> bool:
    """Whether a decision about what is on disk already writes something else there."""
    if isinstance(entry, (DecideEntry, DecideLinesEntry)):
        return entry.state is HunkState.REJECTED
    return isinstance(entry, EditEntry)


def _stale(error: UserError) -> bool:
    return isinstance(error, StaleFileError)
