"""Lines that are put back once the program that wrote them has finished.

A put-back in the middle of an agent's turn takes away lines that the agent builds on, and often
makes it write them again.  So while one writes, a rejected external hunk is only marked, in the
hunk store and in the journal.  The mark holds for that hunk: one that a later write changes is a
new hunk, and stays open.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from midstream.counting import counted
from midstream.edits.external import waiting_hunks
from midstream.pairing.journal.entries import PostponeEntry
from midstream.pairing.status import HunkDecided

if TYPE_CHECKING:
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.hunks import Hunk
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.status import SessionStatus, Spawn

QUIET_S: Final = 5.0
"""A program that has written nothing for so long is taken to be done.

Between two writes of a turn, Claude Code, Codex, Gemini CLI and OpenCode took up to 1.8 s with a
model that answered at once.
"""


SETTLE_S: Final = 0.5
"""The last writes of a turn are noticed within this time after its end."""
NAMED_S: Final = 2.0
"""Writes that are noticed within this time after an agent's turn are attributed to the agent."""


class Writers(Protocol):
    """Knows whether a program is in the middle of its work."""

    @property
    def until(self) -> str:
        """The event that put-backs wait for, as a clause that begins with "when"."""
        ...

    def busy(self) -> bool:
        """Whether one is."""
        ...

    async def quiet(self) -> None:
        """Return when none is."""
        ...

    def stopped(self) -> None:
        """An agent in a terminal of its own says that its turn is over."""
        ...


class RecentWrites:
    """Judges by the turn of an agent whose end is known, else by the time since the last write."""

    def __init__(self) -> None:
        self._at_work = ""
        self._last = ("", 0.0)
        """The agent that worked before, and until when writes that are noticed are its."""
        self._until = 0.0
        self._ended = asyncio.Event()

    @property
    def author(self) -> str:
        """The author of writes that are noticed now, ``""`` where it is unknown."""
        last, until = self._last
        return self._at_work or (last if time.monotonic() < until else "")

    @property
    def until(self) -> str:
        """What is waited for, as a clause."""
        if self._at_work:
            return f"when {self._at_work} is done"
        return f"when nothing has been written for {QUIET_S:.0f} s"

    def begin(self, author: str) -> None:
        """An agent begins to work, and will say when it is done."""
        self._at_work = author
        self._ended.clear()

    def end(self) -> None:
        """It is done."""
        now = time.monotonic()
        self._last = self._at_work, now + NAMED_S
        self._at_work = ""
        self._until = now + SETTLE_S
        self._ended.set()

    def stopped(self) -> None:
        """What an agent in a terminal of its own has written until now were its last writes."""
        self._until = time.monotonic()

    def wrote(self) -> None:
        """A program has written just now."""
        self._until = max(self._until, time.monotonic() + (0 if self.author else QUIET_S))

    def busy(self) -> bool:
        """Whether another program is in the middle of writing."""
        return bool(self._at_work) or time.monotonic() < self._until

    async def quiet(self) -> None:
        """Return when no program is writing any more."""
        while self.busy():
            if self._at_work:
                await self._ended.wait()
            else:  # each write moves the moment
                await asyncio.sleep(max(0.0, self._until - time.monotonic()))


class _PutBackBatch(NamedTuple):
    ids: tuple[int, ...]
    steps: int
    """How many steps could be undone when it was made."""


class PutBackQueue:
    """The external hunks to put back once writing has stopped.

    Args:
        hunks: Keeps the marks.
        status: Told about them.
        journal: Keeps them for a resumed session.
        writers: Who may be writing.
        spawn: Runs the wait for them.
        apply: Rejects hunks that have not changed, with a note; returns which ones.
    """

    def __init__(
        self,
        hunks: HunkStore,
        status: SessionStatus,
        journal: SessionJournal,
        writers: Writers,
        spawn: Spawn,
        apply: Callable[[Sequence[int], str], Awaitable[Sequence[Hunk]]],
    ) -> None:
        self._hunks = hunks
        self._status = status
        self._journal = journal
        self._writers = writers
        self._spawn = spawn
        self._apply = apply
        self._batches: list[_PutBackBatch] = []
        self._waiting = False
        self._applying = asyncio.Lock()
        if resumed := hunks.postponed():
            self._batches.append(_PutBackBatch(tuple(hunk.id for hunk in resumed), hunks.steps))

    def resume(self) -> None:
        """Go on with what an earlier session has marked."""
        if self._batches:
            self._wait()

    def to_postpone(self, hunk_ids: Iterable[int]) -> list[Hunk]:
        """The hunks that cannot be put back now."""
        meant = frozenset(hunk_ids)
        busy = self._writers.busy()
        return waiting_hunks(h for h in self._hunks if h.id in meant and h.live) if busy else []

    def add(self, hunk_ids: Iterable[int], note: str) -> tuple[int, ...]:
        """Postpone those of the hunks that cannot be put back now; returns which."""
        hunks = self.to_postpone(hunk_ids)
        if not hunks:
            return ()
        ids = tuple(hunk.id for hunk in hunks)
        self._hunks.postpone(ids, note)
        self._journal.add(PostponeEntry(list(ids), note))
        self._batches.append(_PutBackBatch(ids, self._hunks.steps))
        self._announce(hunks)
        self._status.inform(
            f"{counted(len(self._hunks.postponed()), 'hunk')} will be put back "
            f"{self._writers.until}, or at once",
            "hunk.put_back_now",
        )
        self._wait()
        return ids

    def recall(self) -> tuple[int, ...]:
        """Take the last marks off, unless something was decided since; returns the hunks."""
        while self._batches and self._batches[-1].steps >= self._hunks.steps:
            batch = self._batches.pop()
            marked = {hunk.id for hunk in self._hunks.postponed()}
            if ids := tuple(hunk_id for hunk_id in batch.ids if hunk_id in marked):
                self._unmark(ids)
                return ids
        return ()

    async def finish(self) -> None:
        """Put the marked hunks back as soon as no program writes; not while one goes on writing."""
        if self._batches or self._applying.locked():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(NAMED_S):
                    await self._writers.quiet()
                await self.apply(tell=True)

    async def agent_stopped(self) -> None:
        """Put the marked hunks back as an agent's turn is over, unless another one works."""
        self._writers.stopped()
        if self._batches and not self._writers.busy():
            await self.apply(tell=True)

    async def apply(self, *, tell: bool = False) -> int:
        """Put the marked hunks back; returns how many, and posts a notice unless the user asked for
        it.
        """
        async with self._applying:
            return await self._apply_all(tell=tell)

    async def _apply_all(self, *, tell: bool) -> int:
        meant = {hunk_id for batch in self._batches for hunk_id in batch.ids}
        self._batches.clear()
        done = 0
        by_note: dict[str, list[int]] = {}
        for hunk in self._hunks.postponed():
            by_note.setdefault(hunk.postponed or "", []).append(hunk.id)
        for note, ids in by_note.items():
            done += len(await self._apply(ids, note))
            left = {hunk.id for hunk in self._hunks.postponed()}.intersection(ids)
            if left:
                self._unmark(tuple(sorted(left)))
        if tell and done:
            were = f"{counted(done, 'hunk')} {'was' if done == 1 else 'were'}"
            self._status.inform(
                f"Writing has stopped, so {were} put back; you can undo that", "decision.undo"
            )
        changed = [i for i in sorted(meant) if not self._hunks.get(i).live]
        if changed:
            one = len(changed) == 1
            self._status.warn(
                f"{counted(len(changed), 'hunk')} that {'was' if one else 'were'} to be put back "
                f"{'was' if one else 'were'} changed meanwhile and {'was' if one else 'were'} "
                f"not put back: decide what is there now."
            )
        return done

    def _wait(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._spawn(self._apply_when_quiet())

    async def _apply_when_quiet(self) -> None:
        try:
            await self._writers.quiet()
        finally:
            self._waiting = False
        if self._batches:
            await self.apply(tell=True)

    def _unmark(self, ids: tuple[int, ...]) -> None:
        self._hunks.postpone(ids, None)
        self._journal.add(PostponeEntry(list(ids), None))
        self._announce(self._hunks.get(hunk_id) for hunk_id in ids)

    def _announce(self, hunks: Iterable[Hunk]) -> None:
        for hunk in hunks:
            self._status.emit(HunkDecided(hunk.path, hunk.id))
