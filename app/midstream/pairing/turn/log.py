"""The turns of a session, and what is recorded about them: events, meter, journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from midstream.pairing.journal.entries import EndEntry
from midstream.pairing.journal.journal import SessionJournal
from midstream.pairing.status import (
    Confidence,
    HunkSettled,
    SessionState,
    SessionStatus,
    Turn,
    TurnFinished,
    TurnStarted,
    TurnStatus,
)

if TYPE_CHECKING:
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.hunks import Hunk
    from midstream.pairing.turn.answer import Answer
    from midstream.responses.events import Delta, Finished, Progress
    from midstream.responses.profiles import Price


class TurnLog:
    """Keeps the turns and records what happens to them.

    Attributes:
        turns: Oldest first.
        current: The running or last answer.
        hunks: Every hunk of the session.
        status: State, notices, events, rates and counts.
        journal: The session's journal.
    """

    def __init__(
        self,
        turns: list[Turn],
        hunks: HunkStore,
        status: SessionStatus,
        journal: SessionJournal,
        on_end: Callable[[Turn], None],
    ) -> None:
        self.turns = turns
        self.current: Answer | None = None
        self.hunks = hunks
        self.status = status
        self.journal = journal
        self._on_end = on_end
        self._seen_version = -1

    def begin(self, answer: Answer, limit: float | None = None) -> None:
        """An answer is the current one from now on; ``limit`` is the pace that it comes at."""
        self.current = answer
        self.turns.append(answer.turn)
        self._seen_version = -1
        self.status.meter.start_turn(limit)
        self.status.enter(SessionState.WAITING)
        self.status.emit(TurnStarted(answer.turn))

    def turn_of(self, hunk: Hunk) -> Turn | None:
        """The turn whose answer a hunk is part of, ``None`` if others wrote it."""
        first = hunk.rank[0]  # of a hunk that was split
        if (turn := next((turn for turn in self.turns if first in turn.hunks), None)) is not None:
            return turn
        answer = self.current
        return answer.turn if answer is not None and first in answer.hunk_ids else None

    def arrived(self, answer: Answer, delta: Delta) -> None:
        """A piece of a response has arrived."""
        meter = self.status.meter
        answer.count(meter.add(delta.text, delta.tokens), estimated=meter.estimated)

    def note_progress(self, answer: Answer, progress: Progress) -> None:
        """The server has said how far it has read."""
        if answer.live and progress.prompt_tokens:
            self.status.meter.note_reading(progress.read_tokens, progress.prompt_tokens)
            self.status.touch()

    def shown(self, answer: Answer) -> None:
        """Text was put into proposals: announce the hunks that have settled since the last time."""
        self.status.touch()
        if self.hunks.version == self._seen_version:
            return
        self._seen_version = self.hunks.version
        if answer.turn.unsure:
            answer.turn.doubted = tuple(answer.hunk_ids)
        for rewrite in answer.rewrites:
            for hunk_id in rewrite.segment.hunk_ids:
                streaming = self.hunks.get(hunk_id).state == "streaming"
                if hunk_id not in answer.announced and not streaming:
                    answer.announced.add(hunk_id)
                    self.status.emit(HunkSettled(rewrite.proposal.path, hunk_id))

    def cut(
        self, answer: Answer, status: TurnStatus, error: str = "", *, settle_tail: bool = False
    ) -> None:
        """End an answer before its text is complete; what has settled can be decided.

        Args:
            answer: It is running.
            status: How it ends.
            error: Why, if it failed.
            settle_tail: See ``FileProposal.abandon``.
        """
        answer.close(status, error)
        answer.reply.stop(settle_tail=settle_tail)
        if answer.region is not None:
            answer.region.end(answer.reply, complete=False, settle_tail=settle_tail)
        self.shown(answer)

    def complete(self, answer: Answer) -> None:
        """An answer has come to its end by itself."""
        if answer.region is not None:
            answer.region.end(answer.reply, complete=True)
        answer.close(TurnStatus.DONE)
        self.shown(answer)

    def broke(self, answer: Answer, error: Exception) -> None:
        """Midstream itself failed in a turn."""
        if answer.turn.running:
            self.cut(answer, TurnStatus.FAILED, f"Midstream failed: {error!r}")
        self.status.fail(
            f"Midstream itself failed in this turn ({error!r}); your files contain only what you "
            f"accepted."
        )

    def count(self, answer: Answer, finished: Finished, price: Price | None) -> None:
        """A response has ended: what the server counted."""
        heard, answer.stream_tokens = answer.stream_tokens, 0
        current = answer is self.current
        answer.turn.tokens += self.status.meter.count(finished, price, current=current, heard=heard)
        answer.turn.estimated &= not finished.usage.output_tokens
        if (confidence := Confidence.read(finished.metadata)) is not None:
            answer.confidence[finished.text] = confidence

    def report(self, answer: Answer) -> None:
        """Announce once how a turn ended."""
        if answer.reported:
            return
        answer.reported = True
        answer.turn.hunks = tuple(answer.hunk_ids)
        self.journal.add(EndEntry(answer.turn))
        self.status.emit(TurnFinished(answer.turn))

    def conclude(self, answer: Answer, *, offline: bool = False) -> None:
        """Nothing more comes of the current answer."""
        self.status.meter.finish_turn()
        self.status.enter(SessionState.OFFLINE if offline else SessionState.READY)
        if not answer.reported:
            self.report(answer)
            self._on_end(answer.turn)
