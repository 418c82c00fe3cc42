"""What all HTTP APIs share: how a request is built, and how its answer is read.

The client asks in the terms of the Responses API and acts on its events. An ``HttpApi`` translates
both ways, so that stopping, redirecting and counting are the same with each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from midstream.responses.endings import Ending
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import (
    REFUSAL_DELTA,
    IncompleteDetails,
    ServerEvent,
    WireError,
    WireItem,
    WirePart,
    WireResponse,
    WireUsage,
)
from midstream.responses.frames import Frame
from midstream.responses.liberal import text_of
from midstream.responses.text_pieces import TextPieces


class AnswerReader(Protocol):
    """Reads one answer.

    Attributes:
        call_notes: What the server wants to have back with its calls of tools, by their ids.
    """

    call_notes: dict[str, Any]

    @property
    def finished(self) -> bool:
        """Whether the server has said how the answer ends; only counts may follow."""
        ...

    def take(self, frame: Frame) -> list[ServerEvent]:
        """The meaning of a frame.

        Raises:
            ValueError: It cannot be read.
        """
        ...

    def end(self) -> list[ServerEvent]:
        """The meaning of the stream's end; nothing if there was no answer."""
        ...


@dataclass(frozen=True, slots=True)
class HttpApi:
    """One API.

    Attributes:
        title: What a person calls it.
        path: Where it is, below an endpoint's address.
        body: Translates a ``response.create``.
        reader: Makes the reader of one answer.
        headers: Its own headers.
    """

    title: str
    path: str
    body: Callable[[Mapping[str, Any], Endpoint], dict[str, Any]]
    reader: Callable[[], AnswerReader]
    headers: Callable[[Endpoint], dict[str, str]] = field(default=lambda endpoint: {})


class EventComposer:
    """Composes the events of the Responses API for an answer in another API.

    Attributes:
        begun: Whether anything of the answer has come.
        ended: Whether its last event was composed.
        ending: What the server says about the end.
    """

    def __init__(self) -> None:
        self.begun = False
        self.ended = False
        self.ending = Ending()
        self._id = ""
        self._items: list[tuple[WireItem, list[str]]] = []
        self._pieces = TextPieces()

    def begin(self, response_id: str) -> list[ServerEvent]:
        """The answer has begun; later calls do nothing."""
        if self.begun:
            return []
        self.begun, self._id = True, response_id or "resp_local"
        response = WireResponse(id=self._id, status="in_progress")
        return [ServerEvent(type="response.created", response=response)]

    def text(self, value: object) -> list[ServerEvent]:
        """Text of the answer, in any encoding."""
        text = text_of(value)
        if text is None:
            self.ending.spoil("a part of its text could not be read")
        if not text:
            return []
        events: list[ServerEvent] = []
        if not self._items or self._items[-1][0].type != "message":
            events = self._add(WireItem(type="message"))
        events += self._message_text(self._pieces.new(text))
        if self._pieces.contradict:
            self.ending.spoil("its pieces contradict each other")
        return events

    def whole_text(self, value: object) -> list[ServerEvent]:
        """All text of the answer at once; some servers repeat at the end what they streamed."""
        events, text = self._settle(), text_of(value)
        told = self._told
        if text is None or not told:
            return [*events, *self.text(value)]
        if text.startswith(told):
            return [*events, *self.text(text[len(told) :])]
        if text.strip() and not told.strip().endswith(text.strip()):
            self.ending.spoil("its last event contradicts its text")
        return events

    def refusal(self, value: object) -> list[ServerEvent]:
        """Words with which the model declines."""
        text = text_of(value)
        return [ServerEvent(type=REFUSAL_DELTA, delta=text)] if text else []

    def reasoning(self, text: str, *, begins: bool = False) -> list[ServerEvent]:
        """Text that is no part of the answer; where it begins there may be none."""
        if not text and not begins:
            return []
        return [ServerEvent(type="response.reasoning_text.delta", delta=text)]

    def call(self, call_id: str, name: str) -> tuple[int, list[ServerEvent]]:
        """A custom tool is called; returns the number of the call, too."""
        added = self._add(WireItem(type="custom_tool_call", call_id=call_id, name=name))
        return len(self._items) - 1, added

    def call_input(self, number: int, text: str) -> list[ServerEvent]:
        """Input of a call."""
        kind = "response.custom_tool_call_input.delta"
        return [self._delta(kind, number, text)] if text else []

    def finish(
        self, usage: WireUsage | None, metadata: Mapping[str, str] | None = None
    ) -> list[ServerEvent]:
        """The answer is over, as its ``ending`` says."""
        if self.ended or not self.begun:
            return []
        self.ended = True
        events = self._settle()
        reason = self.ending.reason
        status = "completed" if reason is None else "incomplete"
        response = WireResponse(
            id=self._id,
            status=status,
            usage=usage,
            metadata=dict(metadata or {}),
            incomplete_details=IncompleteDetails(reason) if reason is not None else None,
            output=[_whole(item, "".join(pieces)) for item, pieces in self._items],
        )
        return [*events, ServerEvent(type=f"response.{status}", response=response)]

    def fail(self, error: WireError) -> list[ServerEvent]:
        """The server has given the answer up."""
        begun = self.begin("")
        if self.ended:
            return []
        self.ended = True
        response = WireResponse(id=self._id, status="failed", error=error)
        return [*begun, ServerEvent(type="response.failed", response=response)]

    @property
    def _told(self) -> str:
        return "".join("".join(parts) for item, parts in self._items if item.type == "message")

    def _settle(self) -> list[ServerEvent]:
        """The text of the last message that was held back; the next one begins anew."""
        pending, self._pieces = self._pieces.end(), TextPieces()
        return self._message_text(pending)

    def _message_text(self, text: str) -> list[ServerEvent]:
        kind = "response.output_text.delta"
        return [self._delta(kind, len(self._items) - 1, text)] if text else []

    def _add(self, item: WireItem) -> list[ServerEvent]:
        settled = self._settle()
        item = msgspec.structs.replace(item, id=f"item_{len(self._items)}")
        self._items.append((item, []))
        return [*settled, ServerEvent(type="response.output_item.added", item=item)]

    def _delta(self, kind: str, number: int, text: str) -> ServerEvent:
        item, pieces = self._items[number]
        pieces.append(text)
        return ServerEvent(type=kind, item_id=item.id, delta=text)


def _whole(item: WireItem, text: str) -> WireItem:
    if item.type == "custom_tool_call":
        return msgspec.structs.replace(item, input=text)
    return msgspec.structs.replace(item, content=[WirePart("output_text", text)])
