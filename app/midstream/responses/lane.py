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
from typing import Any, Final

import msgspec

from midstream.responses.conversation import Entry
from midstream.responses.endings import known_reason
from midstream.responses.events import (
    REASONING_DELTAS,
    REFUSAL_DELTA,
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
from midstream.responses.liberal import text_of
from midstream.responses.stream import Stream
from midstream.responses.text_pieces import TextPieces
from midstream.responses.thoughts import ThoughtSplitter, Told, without_thoughts

MAX_DECLINED: Final = 300
"""Characters of the words with which a model declines that are quoted."""
_MAX_OVER: Final = 64
"""Ids of responses that are over, to know their late events by."""
_CUT_STATUSES: Final = frozenset({"incomplete", "cancelled", "failed"})

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
        plain_frame: The same request without tools, if it can do without.
        stop: Interrupt mode, as soon as the consumer stopped the stream.
        items: Ids of the response's items, with the names of the tools that they call.
        numbering: Recognises text events that come twice.
        pieces: Tells what is new in the pieces of the item that its text belongs to.
        thoughts: Tells thoughts from text, in that item.
        raw: Its text as it came, thoughts included.
        declined: Words with which the model declines.
        spoiled: Why the answer cannot be complete, whatever the server says.
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
    numbering: Numbering = field(default_factory=lambda: Numbering())
    pieces: TextPieces = field(default_factory=TextPieces)
    thoughts: ThoughtSplitter | None = None
    raw: list[str] = field(default_factory=list[str])
    declined: str = ""
    spoiled: str = ""
    attempts: int = 0
    successors: list[PendingResponse] = field(default_factory=list["PendingResponse"])
    deadline: asyncio.TimerHandle | None = None
    last_item: str | None = None
    whole: dict[str, WireItem] = field(default_factory=dict[str, WireItem])
    plain_frame: dict[str, Any] | None = None

    def is_text(self, tag: str) -> bool:
        """Whether a mark of thoughts is text here: the request holds it."""
        told = self.messages or ()
        said = (each[1] for each in told if isinstance(each, tuple))
        return any(tag.lower() in text.lower() for text in said)


class Numbering:
    """Recognises events that come twice by their sequence numbers, where a server counts.

    Some servers give every event the same number, or begin anew; theirs mean nothing.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._event: tuple[str | None, object] | None = None
        self._skipped = False
        self.void = False

    def repeats(self, event: ServerEvent) -> bool:
        """Whether this is the event before it once more."""
        number, this, before = event.sequence_number, (event.item_id, event.delta), self._event
        if number is None or self.void:
            return False
        last, self._last, self._event = self._last, number, this
        if last is None or number > last:
            return False
        if number == last and this == before:
            self._skipped = True
            return True
        self.void = True
        return False

    @property
    def lost(self) -> bool:
        """Whether an event was skipped by numbers that turned out to mean nothing."""
        return self.void and self._skipped


class Lane:
    """The turns of one connection.

    Args:
        splits: Whether thoughts may stand in the text.
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
        *,
        splits: bool = True,
    ) -> None:
        self._splits = splits
        self.waiting: deque[PendingResponse] = deque()
        self.running: PendingResponse | None = None
        self.dropped = 0
        self._steered: dict[str, list[PendingResponse]] = {}
        self._over: deque[str] = deque(maxlen=_MAX_OVER)
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
        elif kind == REFUSAL_DELTA:
            if self.running is not None:
                self.running.declined += text_of(event.delta) or ""
        elif kind == "response.output_item.added":
            turn, item = self.running, event.item
            if turn is None or item is None:
                return
            if item.id:
                turn.items[item.id] = item.name or ""
            if item.type == "reasoning":  # Hosted models often send no text of it.
                turn.stream.push_reasoning(0)
        elif kind == "response.output_item.done":
            turn, item = self.running, event.item
            if turn is None or item is None or not item.id:
                return
            if item.id in turn.items or not turn.items:  # Some never say that one begins.
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
            running = self.running.stream.id if self.running is not None else ""
            response = event.response or WireResponse(status=kind.removeprefix("response."))
            self._terminal(
                kind, response if response.id else msgspec.structs.replace(response, id=running)
            )
        elif kind == "response.steer.failed":
            self._steer_failed(event)

    @property
    def busy(self) -> bool:
        """Whether a response is waited for or running."""
        return self.running is not None or bool(self.waiting)

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
        self._over.append(turn.stream.id)
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
        turn = self.running
        if turn is None or turn.stop is not None or event.item_id not in turn.items:
            self.dropped += 1
            return
        if turn.numbering.repeats(event):
            self.dropped += 1
            return
        text = text_of(event.delta)
        if text is None:
            turn.spoiled = turn.spoiled or "a part of its text could not be read"
            return
        if event.type == TOOL_DELTA and not turn.stream.delivers(turn.items[event.item_id]):
            turn.stream.push_unheard(len(text))
            return
        if event.item_id != turn.last_item:
            self._settle(turn)
            turn.thoughts = ThoughtSplitter(turn.is_text) if self._splits else None
            if turn.last_item is not None:
                turn.raw.append(apart("".join(turn.raw)))
                turn.stream.push_text(apart(turn.stream.arrived), 0)
            turn.last_item = event.item_id
        if event.type == TOOL_DELTA:
            turn.raw.append(text)
            turn.stream.push_text(text, event.tokens)
            return
        self._take(turn, turn.pieces.new(text), event.tokens)
        if turn.pieces.contradict:
            turn.spoiled = turn.spoiled or "its pieces contradict each other"

    def _take(self, turn: PendingResponse, text: str, tokens: int = 0) -> None:
        turn.raw.append(text)
        if turn.thoughts is None:
            turn.stream.push_text(text, tokens)
        else:
            self._tell(turn, turn.thoughts.feed(text))

    def _tell(self, turn: PendingResponse, told: Told) -> None:
        if told.retracts:
            turn.stream.push_retraction()
        if told.thought:
            turn.stream.push_reasoning(told.thought)
        turn.stream.push_text(told.answer, 0)

    def _settle(self, turn: PendingResponse) -> None:
        """Tell what was held back of the text so far."""
        self._take_pending(turn)
        if turn.thoughts is not None:
            self._tell(turn, turn.thoughts.end())
            turn.thoughts = None

    def _take_pending(self, turn: PendingResponse) -> None:
        pending, turn.pieces = turn.pieces.end(), TextPieces()
        self._take(turn, pending)

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

    def _terminal(self, kind: str, response: WireResponse) -> None:
        if self.running is None and response.id and response.id not in self._over:
            self._created(response)  # Some gateways do not announce the beginning of one.
        turn = self.running
        if turn is None:
            return
        if response.id != turn.stream.id:
            if response.id in self._over:
                return
            # Some gateways give every event an id of its own.
            response = msgspec.structs.replace(response, id=turn.stream.id)
        if not response.output and turn.whole:
            response = msgspec.structs.replace(response, output=list(turn.whole.values()))
        if turn.successors:
            self._steered[response.id] = turn.successors
        error = response.error
        failed = error is not None and bool(error.message)
        if kind == "response.failed" or response.status == "failed" or failed:
            fallback = "The model server failed without saying why."
            self.end(turn, failure(error, ErrorCode.SERVER_ERROR, fallback), response)
            return
        self._take_pending(turn)
        reason = self._reason(turn, kind, response)
        whole = response.told(turn.stream.delivers)
        if turn.stop is None and not self._complete(turn, whole):
            reason = reason or "its last event contradicts its text"
        self._settle(turn)
        if self._splits:
            response = _thoughtless(response, turn)
        terminal = Finished(
            status="completed" if reason is None else "incomplete",
            reason=reason,
            usage=response.usage.counted() if response.usage is not None else TokenUsage(),
            text="",
            kept=response.text,
            metadata=response.metadata or {},
            output=response.entries,
        )
        self.end(turn, terminal, response)

    def _reason(self, turn: PendingResponse, kind: str, response: WireResponse) -> str | None:
        """Why a response that has ended is cut; ``None`` if it is complete."""
        parts = (part for item in response.output or () for part in item.content or ())
        if declined := turn.declined or "".join(part.refusal for part in parts):
            return f'the model declined: "{" ".join(declined.split())[:MAX_DECLINED]}"'
        if turn.numbering.lost:
            return "its events are numbered so that one of them was lost"
        details = response.incomplete_details
        if word := (details.reason or "") if details is not None else "":
            return turn.spoiled or known_reason(word)
        if kind == "response.completed" and response.status in (None, "", "completed"):
            return turn.spoiled or None
        # Whatever the event says: a status that is none of success counts.
        complete = kind == "response.completed" and response.status not in _CUT_STATUSES
        unsaid = known_reason("cancelled") if response.status == "cancelled" else "no reason given"
        return turn.spoiled or (None if complete else unsaid)

    def _complete(self, turn: PendingResponse, whole: str) -> bool:
        """Add text of the final response that has not arrived; False if they contradict."""
        arrived = "".join(turn.raw)
        if not whole or whole == arrived:
            return True
        if whole.startswith(arrived):
            rest = whole[len(arrived) :]
            if turn.thoughts is None and self._splits and not arrived:
                turn.thoughts = ThoughtSplitter(turn.is_text)
            if turn.thoughts is None:
                turn.stream.push_text(rest, 0)
            else:
                self._tell(turn, turn.thoughts.feed(rest))
            return True
        # Some servers trim the final text, or repeat only the end of it (vLLM).
        return arrived.strip().endswith(whole.strip())

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


def _thoughtless(response: WireResponse, turn: PendingResponse) -> WireResponse:
    """The response without the thoughts in its messages."""
    items: list[WireItem] = []
    for item in response.output or ():
        parts = item.content or []
        if item.type != "custom_tool_call" and parts:
            texts = (without_thoughts(part.text, turn.is_text) for part in parts)
            parts = [
                msgspec.structs.replace(part, text=text)
                for part, text in zip(parts, texts, strict=True)
            ]
            item = msgspec.structs.replace(item, content=parts)
        items.append(item)
    return msgspec.structs.replace(response, output=items or response.output)


def failure(error: WireError | None, code: str, message: str) -> Failed:
    return Failed((error and error.code) or code, (error and error.message) or message)
