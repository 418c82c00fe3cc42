"""One response as its reader sees it: an asynchronous iterator that can be stopped at once.

The connection's reader task pushes into a ``Stream`` and never waits for it; the consumer pulls.
Text that arrived between two pulls is one ``Delta``, so a slow consumer costs memory only for the
text itself. Knows nothing of sockets: what a stop sends is the business of the ``Control`` it was
made with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

from midstream.responses.conversation import RequestContent
from midstream.responses.events import (
    Delta,
    Failed,
    Finished,
    Progress,
    Reasoned,
    Retracted,
    Started,
    StreamEvent,
    TokenUsage,
    Unheard,
)


class Control(Protocol):
    """What a stream requires of its connection."""

    async def stop(self, stream: Stream, *, keep: bool) -> None: ...

    async def steer(self, stream: Stream, text: str) -> Stream: ...


class Stream:
    """The events of one response: one ``Started``, any number of ``Progress``, ``Delta``,
    ``Unheard``, ``Reasoned`` and ``Retracted``, one ``Finished`` or ``Failed``.

    Attributes:
        id: Response id once ``Started`` was received from the server, else "".
        queue_ahead: Responses that the server serves before this one; 0 once it is being served.
        reasons: Whether the model has begun to reason.
        prose: Whether only text of messages is delivered; calls of tools come with the end.
        silent: Tools of which the same holds for their calls alone.
        asked: What was sent for it.
    """

    def __init__(
        self, control: Control, *, prose: bool = False, silent: Collection[str] = ()
    ) -> None:
        self.prose = prose
        self.silent = frozenset(silent)
        self.asked = RequestContent()
        self.id = ""
        self.queue_ahead = 0
        self.reasons = False
        self._control = control
        self._wake = asyncio.Event()
        self._started: Started | None = None
        self._progress = Progress()
        self._seen_progress = self._progress
        self._parts: list[str] = []
        self._tokens = 0
        self._retracted = False
        self._unheard = 0
        self._reasoned, self._seen_reasoned = 0, -1
        self._delivered: list[str] = []
        self._terminal: Finished | Failed | None = None
        self._interrupted = False
        self._exhausted = False

    def delivers(self, tool: str) -> bool:
        """Whether the input of a tool is delivered as text."""
        return not self.prose and tool not in self.silent

    @property
    def interrupted(self) -> bool:
        return self._interrupted

    @property
    def done(self) -> bool:
        """Whether the end has arrived (it may not have been read yet)."""
        return self._terminal is not None

    @property
    def input_tokens(self) -> int:
        """Tokens of what was sent as the server has counted them, 0 until it has."""
        ended = self._terminal
        return ended.usage.input_tokens if isinstance(ended, Finished) else 0

    @property
    def text(self) -> str:
        """All text delivered so far."""
        return "".join(self._delivered)

    @property
    def arrived(self) -> str:
        """All text that arrived and was not discarded, delivered or not."""
        return self.text + "".join(self._parts)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> StreamEvent:
        while True:
            event = self._take()
            if event is not None:
                return event
            if self._exhausted:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()

    def _take(self) -> StreamEvent | None:
        if self._started is not None:
            event, self._started = self._started, None
            return event
        if self._progress != self._seen_progress:
            self._seen_progress = self._progress
            return self._progress
        if self._retracted:
            self._retracted = False
            return Retracted()
        if self._parts:
            delta = Delta("".join(self._parts), self._tokens)
            self._parts.clear()
            self._tokens = 0
            self._delivered.append(delta.text)
            return delta
        if self._unheard:
            unheard, self._unheard = Unheard(self._unheard), 0
            return unheard
        if self.reasons and self._reasoned != self._seen_reasoned and not self._interrupted:
            self._seen_reasoned = self._reasoned
            return Reasoned(self._reasoned)
        if self._terminal is not None and not self._exhausted:
            self._exhausted = True
            return self._closing(self._terminal)
        return None

    def _closing(self, terminal: Finished | Failed) -> Finished | Failed:
        """Fill in the delivered text; a stream that was stopped here ends as interrupted, whatever
        arrived late.
        """
        if isinstance(terminal, Failed):
            if not self._interrupted:
                return terminal
            return Finished("incomplete", "interrupted", TokenUsage(), self.text)
        status, reason = terminal.status, terminal.reason
        if self._interrupted:
            status, reason = "incomplete", "interrupted"
        return replace(terminal, status=status, reason=reason, text=self.text)

    async def interrupt(self, *, keep: bool = False) -> None:
        """Stop this response here and now.

        From this call on no ``Delta`` is delivered, not even one that had already arrived. Then the
        server is told, and ``Finished`` with status "incomplete" and reason "interrupted" follows
        when it has stopped (or could not be reached). Calling it again, or after the end, does
        nothing.

        Args:
            keep: Ask the server to keep the partial text in the conversation, for a continuation by
                ``previous_response_id``. Only Midstream's own server can do that; others discard.
        """
        if self._interrupted or self._exhausted:
            return
        self._interrupted = True
        self._parts.clear()
        self._tokens = self._unheard = 0
        self._retracted = False
        if self._terminal is None:
            await self._control.stop(self, keep=keep)

    async def steer(self, text: str) -> Stream:
        """Give the server a further instruction while it writes.

        The server ends this response at a safe boundary (reason "steered") or completes it, and
        continues in the stream returned here. If the server refuses, that stream fails and
        this one goes on.
        """
        return await self._control.steer(self, text)

    # The connection's side.

    def push_started(self, started: Started) -> None:
        self.id = started.id
        self._started = started
        self._wake.set()

    def push_progress(self, progress: Progress) -> None:
        """The facts about the text that follows; the last one counts until it is read."""
        if self._interrupted or self._terminal is not None:
            return
        self._progress = progress
        self._wake.set()

    def push_text(self, text: str, tokens: int) -> None:
        if self._interrupted or self._terminal is not None or not text:
            return
        self._parts.append(text)
        self._tokens += tokens
        self._wake.set()

    def push_retraction(self) -> None:
        """The text so far was no part of the answer."""
        if self._interrupted or self._terminal is not None:
            return
        self._retracted = self._retracted or bool(self._delivered)
        self._delivered.clear()
        self._parts.clear()
        self._tokens = 0
        self._wake.set()

    def push_unheard(self, characters: int) -> None:
        """So much more input of a call has come that is not delivered."""
        if self._interrupted or self._terminal is not None:
            return
        self._unheard += characters
        self._wake.set()

    def push_reasoning(self, characters: int) -> None:
        """The model reasons; so much more of the text has come."""
        self.reasons = True
        if self._interrupted or self._terminal is not None:
            return
        self._reasoned += characters
        self._wake.set()

    def push_end(self, terminal: Finished | Failed) -> None:
        """End the stream; later pushes are ignored."""
        if self._terminal is None:
            self._terminal = terminal
            self._wake.set()
