"""One stream of a model's text into one proposal, and how it ends.

A generation feeds its proposal only while it is live.  Stopping or redirecting ends that at once,
here, before the server has heard of it; what still arrives is drained for its token counts.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from midstream.pairing.board import Board
from midstream.pairing.events import HunkSettled
from midstream.pairing.meter import Meter
from midstream.pairing.recorder import Recorder
from midstream.pairing.turns import Turn, TurnStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.edits.formats.base import Parser
    from midstream.edits.formats.events import Event
    from midstream.edits.hunks import HunkStore
    from midstream.edits.proposal import FileProposal, Segment
    from midstream.responses.events import Delta
    from midstream.responses.stream import Stream

CHARACTERS_PER_TOKEN = 4
"""Guess for servers that do not count tokens; their usage corrects it at the end."""


@dataclass(slots=True)
class Conversation:
    """What the model is told.

    Attributes:
        system: System text.
        messages: Pairs of role and text; the last is the user's.
    """

    system: str
    messages: list[tuple[str, str]]

    def followed(self, kept: str, instruction: str) -> Conversation:
        """The conversation after the model wrote ``kept`` and the person said ``instruction``."""
        from midstream.edits.request import render_follow_up

        messages = list(self.messages)
        if kept:
            messages.append(("assistant", kept))
        messages.append(("user", render_follow_up(instruction)))
        return Conversation(self.system, messages)


@dataclass(slots=True)
class Generation:
    """A running or ended stream.

    Attributes:
        turn: What it belongs to.
        proposal: Where its text goes.
        segment: The rewrite of that proposal which it continues.
        conversation: What was sent.
        kept_before: Text of the region that was there before this stream (after a redirect).
        stream: The stream, once the request was sent.
        task: Reads the stream.
        live: Whether its text still counts.
        reported: Whether its end was announced.
        prose: What the model said outside the region.
        problems: What was wrong with its reply.
        started: When the request was made, on the monotonic clock.
        announced: Hunks whose settling was told.
        known: Lines that the region had before; the journal masks credentials in others.
    """

    turn: Turn
    proposal: FileProposal
    segment: Segment
    conversation: Conversation
    parser: Parser
    kept_before: str = ""
    stream: Stream | None = None
    task: asyncio.Task[None] | None = None
    live: bool = True
    reported: bool = False
    prose: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    started: float = field(default_factory=time.monotonic)
    announced: set[int] = field(default_factory=set[int])
    known: frozenset[str] = frozenset()
    _seen_version: int = -1

    def receive(self, delta: Delta, meter: Meter, recorder: Recorder) -> None:
        """Take the next piece of the reply."""
        tokens = delta.tokens or max(1, round(len(delta.text) / CHARACTERS_PER_TOKEN))
        meter.add(tokens)
        turn = self.turn
        turn.tokens += tokens
        if turn.ttft_s is None:
            turn.ttft_s = time.monotonic() - self.started
        self._feed(self.parser.feed(delta.text), recorder)

    def complete(self, recorder: Recorder) -> None:
        """The reply has ended; take what the parser held back."""
        self._feed(self.parser.finish(), recorder)

    def _feed(self, events: Iterable[Event], recorder: Recorder) -> None:
        from midstream.edits.formats.events import NewText, Problem, Prose

        text = ""
        for event in events:
            if isinstance(event, NewText):
                text += event.text
            elif isinstance(event, Prose):
                self.prose.append(event.text)
            elif isinstance(event, Problem):
                self.problems.append(event.message)
        if text:
            self.proposal.feed(text)
            recorder.text(self.proposal.path, text)

    def announce(self, hunks: HunkStore, board: Board) -> None:
        """Tell of hunks that have settled since the last time."""
        board.touch()
        if hunks.version == self._seen_version:
            return
        self._seen_version = hunks.version
        for hunk_id in self.segment.hunk_ids:
            if hunk_id not in self.announced and hunks.get(hunk_id).state != "streaming":
                self.announced.add(hunk_id)
                board.emit(HunkSettled(self.proposal.path, hunk_id))

    @property
    def empty(self) -> bool:
        """Whether no text for the region has come."""
        return not self.segment.new_text

    def close(self, status: TurnStatus, error: str = "") -> None:
        """Note how the turn ended."""
        self.live = False
        self.turn.status = status
        self.turn.error = error
        self.turn.elapsed_s = time.monotonic() - self.started
