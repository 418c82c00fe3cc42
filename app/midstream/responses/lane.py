"""Which response an event belongs to. Pure bookkeeping: no sockets, no waiting.

The client uses the server's default lane, which is first in, first out: text carries no response
id, so it belongs to the response that was created last and has not ended, and only if it belongs
to one of that response's items.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from midstream.responses.conversation import Entry
from midstream.responses.events import (
    REASONING_DELTAS,
    TERMINALS,
    TEXT_DELTAS,
    TOOL_DELTA,
    ErrorCode,
    Failed,
    Finished,
    Progress,
    ServerEvent,
    Started,
    TokenUsage,
    WireError,
    WireItem,
    WireResponse,
    apart,
)
from midstream.responses.stream import Stream

Messages = tuple[Entry, ...]
"""A conversation."""


@dataclass(slots=True, eq=False)
class PendingResponse:
    """A stream together with what was asked for.

    Attributes:
        stream: What the consumer reads.
        frame: The client event that was sent.
        messages: The whole conversation that it stands for; None when only the server knows it.
        full_frame: The same request without reference to an earlier response, if ``frame`` has one
            that the client put there.
        stop: Interrupt mode, as soon as the consumer stopped the stream.
        items: Ids of the response's items, with the names of the tools that they call.
        last_number: Sequence number of the last text event.
        last_item: The item that its text belonged to.
        whole: The items that have ended, by id, for servers whose last event leaves them out.
        attempts: How often it was sent.
        successors: What was steered into this response and not refused, oldest first.
        deadline: Ends the patience with a stop.
    """

    stream: Stream
    frame: dict[str, Any]
    messages: Messages | None = None
    full_frame: dict[str, Any] | None = None
    stop: str | None = None
    items: dict[str, str] = field(default_factory=dict[str, str])
    last_number: int = 0
    attempts: int = 0
    successors: list[PendingResponse] = field(default_factory=list["PendingResponse"])
    deadline: asyncio.TimerHandle | None = None
    last_item: str | None = None
    whole: dict[str, WireItem] = field(default_factory=dict[str, WireItem])


class Lane:
    """The turns of one connection.

    Args:
        on_created: Called when a turn has its response id.
        on_ended: Called once when a turn is over, after its stream was told, with the final
            response if the server sent one.

    Attributes:
        waiting: Sent and not yet created, oldest first.
        running: Created and not yet over.
        dropped: Text events that came for a response that was stopped or over.
    """

    def __init__(
        self,
        on_created: Callable[[PendingResponse], None],
        on_ended: Callable[[PendingResponse, WireResponse | None], None],
    ) -> None:
        self.waiting: deque[PendingResponse] = deque()
        self.running: PendingResponse | None = None
        self.dropped = 0
        self._steered: dict[str, list[PendingResponse]] = {}
        self._on_created = on_created
        self._on_ended = on_ended

    def handle(self, event: ServerEvent) -> None:
        """Route text, created, queued, terminal and refused-steer events; others are left alone."""
        kind = event.type
        if kind in TEXT_DELTAS:
            self._text(event)
        elif kind in REASONING_DELTAS:
            if self.running is not None:
                characters = len(event.delta) if isinstance(event.delta, str) else 0
                self.running.stream.push_reasoning(characters)
        elif kind == "response.output_item.added":
            if self.running is not None and event.item is not None and event.item.id:
                self.running.items[event.item.id] = event.item.name or ""
        elif kind == "response.output_item.done":
            turn, item = self.running, event.item
            if turn is not None and item is not None and item.id and item.id in turn.items:
                turn.whole[item.id] = item
        elif kind == "response.created":
            if event.response is not None:
                self._created(event.response)
        elif kind in ("response.queued", "response.in_progress"):
            if self.running is not None and event.response is not None:
                metadata = event.response.metadata or {}
                ahead = metadata.get("midstream.queue_ahead", "")
                self.running.stream.queue_ahead = int(ahead) if ahead.isdecimal() else 0
                self.running.stream.push_progress(Progress.read(metadata))
        elif kind in TERMINALS:
            if event.response is not None:
                self._terminal(event.response)
        elif kind == "response.steer.failed":
            self._steer_failed(event)

    def find(self, stream: Stream) -> PendingResponse | None:
        return next((turn for turn in self._all() if turn.stream is stream), None)

    def end(
        self,
        turn: PendingResponse,
        terminal: Finished | Failed,
        response: WireResponse | None = None,
    ) -> None:
        """End a turn, wherever it stands; a failure takes its successors along."""
        if turn is self.running:
            self.running = None
        elif turn in self.waiting:
            self.waiting.remove(turn)
        if turn.deadline is not None:
            turn.deadline.cancel()
        turn.stream.push_end(terminal)
        if isinstance(terminal, Failed):
            for successor in (*turn.successors, *self._steered.pop(turn.stream.id, ())):
                successor.stream.push_end(terminal)
        self._on_ended(turn, response)

    def lose(self, failed: Failed) -> list[PendingResponse]:
        """The connection is gone: end what had begun, return what was never acknowledged."""
        untouched = [turn for turn in self.waiting if turn.stop is None]
        for turn in self._all():
            if turn not in untouched:
                self.end(turn, failed)
        self.waiting.clear()
        self._steered.clear()
        return untouched

    def _all(self) -> list[PendingResponse]:
        turns = [*self.waiting, *(turn for group in self._steered.values() for turn in group)]
        if self.running is not None:
            turns += [self.running, *self.running.successors]
        return turns

    def _text(self, event: ServerEvent) -> None:
        turn, number = self.running, event.sequence_number
        if turn is None or turn.stop is not None or event.item_id not in turn.items:
            self.dropped += 1
            return
        if number is not None:
            if 0 < turn.last_number >= number:
                self.dropped += 1  # the same event once more
                return
            turn.last_number = number
        if event.type == TOOL_DELTA and not turn.stream.delivers(turn.items[event.item_id]):
            turn.stream.push_unheard(len(event.delta) if isinstance(event.delta, str) else 0)
            return
        if isinstance(event.delta, str):
            if turn.last_item not in (None, event.item_id):
                turn.stream.push_text(apart(turn.stream.arrived), 0)
            turn.last_item = event.item_id
            turn.stream.push_text(event.delta, event.tokens)

    def _created(self, response: WireResponse) -> None:
        turn = self._successor_of(response.previous_response_id)
        if turn is None:
            if not self.waiting:
                return
            turn = self.waiting.popleft()
        self.running = turn
        turn.stream.push_started(Started(response.id, response.metadata or {}))
        self._on_created(turn)

    def _successor_of(self, response_id: str | None) -> PendingResponse | None:
        """The successor that steering created for a response; all its steers are merged into it."""
        if response_id is None or response_id not in self._steered:
            return None
        first, *others = self._steered.pop(response_id)
        for other in others:
            other.stream.push_end(Finished("completed", "merged", TokenUsage(), ""))
        return first

    def _terminal(self, response: WireResponse) -> None:
        turn = self.running
        if turn is None or turn.stream.id != response.id:
            return
        if not response.output and turn.whole:
            response = msgspec.structs.replace(response, output=list(turn.whole.values()))
        if turn.successors:
            self._steered[response.id] = turn.successors
        if response.status == "failed":
            fallback = "The model server failed without saying why."
            self.end(turn, failure(response.error, ErrorCode.SERVER_ERROR, fallback), response)
            return
        if turn.stop is None and not self._complete(turn, response):
            sentence = "The model server's text is inconsistent; try again."
            self.end(turn, Failed(ErrorCode.TEXT_MISMATCH, sentence), response)
            return
        details = response.incomplete_details
        terminal = Finished(
            status=response.status or "completed",
            reason=details.reason if details is not None else None,
            usage=response.usage.counted() if response.usage is not None else TokenUsage(),
            text="",
            kept=response.text,
            metadata=response.metadata or {},
            output=response.entries,
        )
        self.end(turn, terminal, response)

    def _complete(self, turn: PendingResponse, response: WireResponse) -> bool:
        """Add text of the final response that has not arrived; False if they contradict."""
        whole = response.told(turn.stream.delivers)
        arrived = turn.stream.arrived
        if not whole or whole == arrived:
            return True
        if whole.startswith(arrived):
            turn.stream.push_text(whole[len(arrived) :], 0)
            return True
        # Some servers trim the final text.
        return whole.strip() == arrived.strip()

    def _steer_failed(self, event: ServerEvent) -> None:
        target = event.steer.previous_response_id if event.steer is not None else None
        if target is None:
            return
        turns = self._steered.get(target, [])
        if self.running is not None and self.running.stream.id == target:
            turns = self.running.successors
        if turns:
            refused = turns.pop(0)
            fallback = "The model server refused to be steered."
            self.end(refused, failure(event.error, ErrorCode.STEERING_FAILED, fallback))
        if not self._steered.get(target, True):
            del self._steered[target]


def failure(error: WireError | None, code: str, message: str) -> Failed:
    return Failed((error and error.code) or code, (error and error.message) or message)
