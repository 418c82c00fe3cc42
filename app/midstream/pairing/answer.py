"""One answer of the model, from its stream into proposals, whatever format it is written in.

An answer counts only while it is live.  Stopping or redirecting ends that at once, here, before the
server has heard of it; what still arrives is drained for its token counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from midstream.edits.events import FileClosed, FileOp, FileOpened
from midstream.edits.live import LiveReply
from midstream.edits.writing import ReplyObserver
from midstream.pairing.board import Board
from midstream.pairing.events import HunkSettled
from midstream.pairing.generation import Conversation, Generation
from midstream.pairing.recorder import Recorder
from midstream.pairing.turns import Turn, TurnStatus

if TYPE_CHECKING:
    from midstream.edits.hunks import HunkStore
    from midstream.edits.parsing import Parser
    from midstream.edits.proposal import FileProposal, Segment
    from midstream.guard.correction import CorrectionRequest
    from midstream.pairing.desk import Desk
    from midstream.pairing.guarding import Guard
    from midstream.pairing.naming import ReplyFiles
    from midstream.pairing.renaming import Renaming
    from midstream.pairing.unsure import Sureness
    from midstream.pairing.verdicts import Verdict
    from midstream.responses.conversation import Entry
    from midstream.responses.events import Delta
    from midstream.responses.stream import Stream

CHARACTERS_PER_TOKEN = 4
"""Guess for servers that do not count tokens; their usage corrects it at the end."""
AT_ONCE = 2_048
"""Characters that are taken in one go; a backlog must not hold up whoever types."""


def _not_written(entry: Entry) -> bool:
    return isinstance(entry, tuple) and entry[0] != "assistant"


class Answer:
    """A running or ended answer.

    Attributes:
        turn: What it belongs to.
        proposal: The file that the instruction is about.
        region: The rewrite of the region that was asked for, ``None`` where the model names the
            places itself.
        conversation: What was sent.
        edit_format: How the model was asked to write.
        reply: Where its text goes.
        generations: Its rewrites, in the order in which they began.
        kept_before: Text of the region that was there before this stream (after a redirect).
        stream: The stream, once the request was sent.
        task: Reads the stream.
        live: Whether its text still counts.
        reported: Whether its end was announced.
        started: When the request was made, on the monotonic clock.
        announced: Hunks whose settling was told.
        before: The region as it was proposed when it was asked for, ``None`` where none was or the
            answer goes on from another.
        known: Lines that the region had before; the journal masks credentials in others.
        mended: How often the model was asked again because of what this instruction gave.
        stream_tokens: Tokens of the response that is being read.
        sureness: What the model let know besides, by the text that it wrote (candidates included).
        corrects: What the checks found in the answer that this one corrects.
        tools: Tools that the model may call.
        given: Whether its text was known beforehand and no model wrote it.
        held: How often the guard had the model write an edit again.
        output: What the conversation goes on from, once the server has ended it.
    """

    def __init__(
        self,
        turn: Turn,
        proposal: FileProposal,
        conversation: Conversation,
        parser: Parser,
        files: ReplyFiles,
        observer: AnswerObserver,
        *,
        edit_format: str,
        region: Segment | None = None,
        kept_before: str = "",
        bare: bool = False,
    ) -> None:
        self.turn = turn
        self.proposal = proposal
        self.region = region
        self.conversation = conversation
        self.edit_format = edit_format
        self.kept_before = kept_before
        self.generations: list[Generation] = []
        self.stream: Stream | None = None
        self.task: asyncio.Task[None] | None = None
        self.live = True
        self.reported = False
        self.started = time.monotonic()
        self.announced: set[int] = set()
        self.before: str | None = None
        self.known: frozenset[str] = frozenset()
        self.mended = 0
        self.given = False
        self.held = 0
        self.sureness: dict[str, Sureness] = {}
        self.corrects: Verdict | None = None
        self.stream_tokens = 0
        self.tools: tuple[Mapping[str, Any], ...] = ()
        self.output: tuple[Entry, ...] = ()
        self._bare = bare
        self._text: list[str] = []
        self._seen_version = -1
        self._files = files
        observer.answer = self
        place = None if region is None else (proposal, region.start, region.stop)
        self.reply = LiveReply(parser, files.lookup, place, observer=observer, opened=region)
        if region is not None:
            self.generations.append(Generation(self, proposal, region))

    @property
    def kept(self) -> str:
        """The complete lines of the region that are written, those from before this stream too."""
        text = "" if self.region is None else self.region.new_text
        return text[: text.rfind("\n") + 1]

    @property
    def asked(self) -> str:
        """What the model was told last that the region is to become."""
        from midstream.edits.request import parse_follow_up, parse_request

        *_, last = (entry[1] for entry in self.conversation.messages if isinstance(entry, tuple))
        region = parse_request(last)
        return region.instruction if region is not None else parse_follow_up(last) or ""

    def renamed(self, again: Renaming) -> Conversation:
        """The conversation as if it had brought in the name that is wanted now."""
        first = takewhile(_not_written, self.conversation.messages)
        asked = Conversation(self.conversation.system, list(first))
        return asked.followed(again.applied(self.kept), again.applied(self.asked))

    def followed(
        self, kept: str, instruction: str, correction: CorrectionRequest | None = None
    ) -> Conversation:
        """The conversation after a rewrite was stopped.

        Args:
            kept: The lines of the region that stay, those from before this stream included.
            instruction: What the person, or the guard, said then.
            correction: The same as the guard means it.
        """
        return self.conversation.followed(kept[len(self.kept_before) :], instruction, correction)

    @property
    def text(self) -> str:
        """What the model wrote, as it came."""
        return "".join(self._text)

    @property
    def prose(self) -> str:
        """What it said outside its edits, on one line."""
        return " ".join("".join(self.reply.prose).split())

    @property
    def paths(self) -> list[str]:
        """The files that it writes to."""
        return list(dict.fromkeys(g.proposal.path for g in self.generations))

    @property
    def empty(self) -> bool:
        """Whether it has brought no text for any place."""
        if self.region is not None and self.region in self.proposal.segments:
            # Without a word of code after a redirect, only an edit model means "nothing more".
            return not self.region.new_text or not (self._bare or self.reply.segments)
        return not self.generations and not self.reply.failures

    @property
    def hunk_ids(self) -> list[int]:
        """The hunks of its rewrites."""
        return [i for g in self.generations for i in g.segment.hunk_ids]

    def counted(self, delta: Delta) -> int:
        """Note that a piece has come; its tokens."""
        tokens = delta.tokens or max(1, round(len(delta.text) / CHARACTERS_PER_TOKEN))
        self.turn.tokens += tokens
        self.stream_tokens += tokens
        if self.turn.ttft_s is None:
            self.turn.ttft_s = time.monotonic() - self.started
        return tokens

    async def receive(self, delta: Delta) -> None:
        """Take the next piece of the answer."""
        self._text.append(delta.text)
        for start in range(0, len(delta.text), AT_ONCE):
            if start:
                await asyncio.sleep(0)  # Keys are answered between two pieces.
            if self.live:
                await self._take(self.reply.steps(delta.text[start : start + AT_ONCE]))

    async def complete(self) -> None:
        """The answer has ended; take what the parser held back."""
        await self._take(self.reply.last_steps())
        if self.live:
            self.reply.end()

    async def _take(self, steps: Iterator[FileOpened | FileClosed]) -> None:
        for step in steps:
            if isinstance(step, FileClosed):
                await self._files.closed(self.reply)
            elif step.op is not FileOp.REGION:
                await self._files.open(step.path, step.op)
            if not self.live:
                return

    def announce(self, hunks: HunkStore, board: Board) -> None:
        """Tell of hunks that have settled since the last time."""
        board.touch()
        if hunks.version == self._seen_version:
            return
        self._seen_version = hunks.version
        for generation in self.generations:
            for hunk_id in generation.segment.hunk_ids:
                if hunk_id not in self.announced and hunks.get(hunk_id).state != "streaming":
                    self.announced.add(hunk_id)
                    board.emit(HunkSettled(generation.proposal.path, hunk_id))

    def close(self, status: TurnStatus, error: str = "") -> None:
        """Note how the turn ended."""
        self.live = False
        self.turn.status = status
        self.turn.error = error
        self.turn.elapsed_s = time.monotonic() - self.started


@dataclass(slots=True)
class AnswerObserver(ReplyObserver):
    """Writes every step of an answer to the journal and has the guard watch it.

    Attributes:
        desk: The open files.
        recorder: The journal.
        guard: Watches what is written.
        answer: Whose edits they are.
    """

    desk: Desk
    recorder: Recorder
    guard: Guard
    answer: Answer | None = field(default=None, repr=False)

    def began(self, proposal: FileProposal, segment: Segment, *, tight: bool) -> None:
        """A rewrite was opened; the guard watches it from now on."""
        self.recorder.segment(
            proposal.path,
            segment.start,
            segment.stop,
            segment.match_level,
            tight=tight,
            known=frozenset(proposal.base.lines),
        )
        if self.answer is not None:
            generation = Generation(self.answer, proposal, segment)
            self.answer.generations.append(generation)
            self.guard.begin(generation)

    def fed(self, proposal: FileProposal, text: str) -> None:
        """Text was added."""
        self.recorder.text(proposal.path, text)

    def finished(self, proposal: FileProposal) -> None:
        """The open rewrite is complete."""
        self.recorder.mark("finish", proposal.path)

    def abandoned(self, proposal: FileProposal) -> None:
        """The open rewrite was cut short."""
        self.recorder.mark("abandon", proposal.path)

    def withdrawn(self, proposal: FileProposal, segment: Segment, *, done: bool) -> None:
        """A rewrite was to be taken back."""
        self.recorder.withdraw(proposal.path, segment.serial)
        if self.answer is not None and done:
            kept = [g for g in self.answer.generations if g.segment is not segment]
            self.answer.generations[:] = kept

    def folded(self, proposal: FileProposal) -> None:
        """Accepted hunks became part of the base."""
        self.desk.record_base(proposal)
