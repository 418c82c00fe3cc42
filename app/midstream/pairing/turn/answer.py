"""One answer of the model: its state while it is written and afterwards.

An answer is live until its end is decided.  A message for the runner that ends it makes it
not live at once, before the runner or the server has heard of it; text that still arrives is
counted and dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from midstream.edits.writing import ReplyObserver
from midstream.pairing.journal.entries import (
    AbandonEntry,
    FinishEntry,
    FreezeEntry,
    ResumeEntry,
    SegmentEntry,
    WithdrawEntry,
)
from midstream.pairing.request.builder import Conversation, Written
from midstream.pairing.request.context import Context, Part
from midstream.pairing.status import Confidence, FollowUpKind, Turn, TurnStatus
from midstream.pairing.turn.modes import EditMode, Exchange, FollowUp, RegionMode

if TYPE_CHECKING:
    import asyncio

    from midstream.edits.proposal import FileProposal, Segment
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.guard import Guard
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.turn.reply_files import ReplyFiles
    from midstream.responses.conversation import Entry
    from midstream.responses.stream import Stream


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rewrite of one range of lines; an answer has one or several.

    Attributes:
        answer: The answer that writes it.
        proposal: The file.
        segment: What is written.
    """

    answer: Answer
    proposal: FileProposal
    segment: Segment

    @property
    def instruction(self) -> str:
        """What the user asked for."""
        return self.answer.turn.instruction

    @property
    def live(self) -> bool:
        """Whether text may still come."""
        return self.answer.live

    def mute(self) -> None:
        """Take no further text."""
        self.answer.live = False


class Answer:
    """A running or ended answer.

    Attributes:
        turn: The turn that it belongs to.
        mode: How it says what changes.
        conversation: What was sent.
        reply: Takes its text.
        files: Opens the files that it names.
        history: The follow-ups that led to it, oldest first; empty for a first answer.
        rewrites: In the order in which they began.
        context: What goes along with what the user wrote.
        target: The lines to rewrite as they were sent, where the request has them.
        calls: The output of a response that waits for what its calls of tools bring.
        on_end: Is called when its text does not count any more.
        reported: Whether its end was announced.
        started: When the request was made, on the monotonic clock.
        announced: Hunks whose settling was announced.
        given: Its text where that was known beforehand and no model writes it.
        in_full: See ``Question``.
        begun: Resolved when its request is on its way, where a caller waits for that.
        stream: The stream, once the request was sent.
        stream_tokens: Tokens of the response that is being read.
        confidence: How sure the model was, by the text that it wrote (candidates included).
        output: Output items to continue the conversation from, once the server has ended it.
    """

    def __init__(
        self,
        turn: Turn,
        mode: EditMode,
        conversation: Conversation,
        files: ReplyFiles,
        observer: AnswerObserver,
        *,
        history: tuple[FollowUp, ...] = (),
        given: str | None = None,
    ) -> None:
        self.turn = turn
        self.mode = mode
        self.conversation = conversation
        self.files = files
        self.history = history
        self.given = given
        self.in_full = ""
        self.rewrites: list[Rewrite] = []
        self.context = Context()
        self.target: Part | None = None
        self.calls: tuple[Entry, ...] = ()
        self.on_end: Callable[[], None] | None = None
        self._live = True
        self.reported = False
        self.started = time.monotonic()
        self.announced: set[int] = set()
        self.begun: asyncio.Future[Turn] | None = None
        self.stream: Stream | None = None
        self.stream_tokens = 0
        self.confidence: dict[str, Confidence] = {}
        self.output: tuple[Entry, ...] = ()
        self._text: list[str] = []
        self._carried = 0
        self._observer = observer
        observer.answer = self
        self.reply = mode.reply(files.lookup, observer)
        if (region := self.region) is not None:
            self.rewrites.append(Rewrite(self, region.proposal, region.segment))

    @property
    def region(self) -> RegionMode | None:
        """The mode of an answer that rewrites one region, ``None`` of any other."""
        return self.mode if isinstance(self.mode, RegionMode) else None

    @property
    def live(self) -> bool:
        """Whether its text still counts; once it does not, it never does again."""
        return self._live

    @live.setter
    def live(self, live: bool) -> None:
        ends = self._live and not live
        self._live = live
        if ends and self.on_end is not None:
            self.on_end()

    @property
    def text(self) -> str:
        """The text of the model, as received."""
        return "".join(self._text)

    @property
    def prose(self) -> str:
        """Its prose outside the edits, on one line."""
        return " ".join("".join(self.reply.prose).split())

    @property
    def paths(self) -> list[str]:
        """The files that it writes to."""
        return list(dict.fromkeys(rewrite.proposal.path for rewrite in self.rewrites))

    @property
    def hunk_ids(self) -> list[int]:
        """The hunks of its rewrites."""
        return [hunk_id for rewrite in self.rewrites for hunk_id in rewrite.segment.hunk_ids]

    @property
    def is_empty(self) -> bool:
        """Whether it has brought no text for any place."""
        return self.mode.is_empty(self.reply, bool(self.rewrites))

    @property
    def reason(self) -> FollowUp | None:
        """The follow-up that led to it, ``None`` for a first answer."""
        return self.history[-1] if self.history else None

    @property
    def exchange(self) -> Exchange:
        """The exchange that a follow-up continues from."""
        written = Written(self.text[self._carried :], self.output, tuple(self.hunk_ids))
        return Exchange(self.conversation, written, self.history)

    def attempts(self, kind: FollowUpKind) -> int:
        """The number of follow-ups of a kind that led to it."""
        return sum(follow_up.kind is kind for follow_up in self.history)

    def resolve(self, error: Exception | None = None) -> None:
        """Release the caller that waits for the request to be sent."""
        if self.begun is None or self.begun.done():
            return
        if error is None:
            self.begun.set_result(self.turn)
        else:
            self.begun.set_exception(error)

    def carry(self, messages: Sequence[Entry]) -> None:
        """The answer goes on from a conversation that holds what was written so far."""
        self.conversation = replace(self.conversation, messages=messages)
        self._carried = len(self.text)

    def restart(self) -> bool:
        """Take back what it has written, which was no answer, and begin anew.

        Returns:
            Whether that was possible; a change that is decided stays.
        """
        reply = self.reply
        if reply.deletions or reply.moves:
            return False
        rewrites = [(rewrite.proposal, rewrite.segment) for rewrite in self.rewrites]
        if not all(reply.writer.withdraw(*rewrite) for rewrite in rewrites):
            return False
        mode = self.mode.restarted(reply)
        if mode is None:
            return False
        self.mode = mode
        self.reply = mode.reply(self.files.lookup, self._observer)
        self._text = [self.text[: self._carried]]
        return True

    def add_text(self, text: str) -> None:
        """Note text that is taken."""
        self._text.append(text)

    def rambles(self, characters: int) -> bool:
        """Whether an answer of this many characters is longer than the request can need."""
        most = self.mode.longest
        # A long instruction may bring text that belongs into the answer.
        return most is not None and characters > most + len(self.turn.instruction)

    def count(self, tokens: int, *, estimated: bool) -> None:
        """Note that a piece of a response has arrived, and how many tokens it has."""
        self.turn.tokens += tokens
        self.turn.estimated = estimated
        self.stream_tokens += tokens
        if self.turn.ttft_s is None:
            self.turn.ttft_s = time.monotonic() - self.started

    def close(self, status: TurnStatus, error: str = "") -> None:
        """Note how the turn ended."""
        self.live = False
        self.turn.status = status
        self.turn.error = error


@dataclass(slots=True)
class AnswerObserver(ReplyObserver):
    """Writes every step of an answer to the journal and has the guard watch its rewrites.

    Attributes:
        files: The open files.
        journal: The session's journal.
        guard: Watches what is written.
        answer: Whose edits they are.
    """

    files: OpenFiles
    journal: SessionJournal
    guard: Guard
    answer: Answer = field(init=False, repr=False)

    def began(self, proposal: FileProposal, segment: Segment, *, tight: bool) -> None:
        start, stop, level = segment.start, segment.stop, segment.match_level
        self.journal.segment(
            SegmentEntry(proposal.path, start, stop, level, tight), frozenset(proposal.base.lines)
        )
        rewrite = Rewrite(self.answer, proposal, segment)
        self.answer.rewrites.append(rewrite)
        self.guard.watch(rewrite)

    def fed(self, proposal: FileProposal, text: str) -> None:
        self.journal.text(proposal.path, text)

    def rewound(self, proposal: FileProposal) -> None:
        self.journal.add(FreezeEntry(proposal.path))
        self.journal.add(ResumeEntry(proposal.path))

    def finished(self, proposal: FileProposal) -> None:
        self.journal.add(FinishEntry(proposal.path))

    def abandoned(self, proposal: FileProposal, *, settle_tail: bool) -> None:
        self.journal.add(AbandonEntry(proposal.path, settle_tail))

    def withdrawn(self, proposal: FileProposal, segment: Segment, *, done: bool) -> None:
        self.journal.add(WithdrawEntry(proposal.path, segment.serial))
        if done:
            self.answer.rewrites[:] = [r for r in self.answer.rewrites if r.segment is not segment]

    def folded(self, proposal: FileProposal) -> None:
        self.files.record_base(proposal)
