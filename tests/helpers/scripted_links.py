"""One scripted model behind every kind of link: what it writes is said once, the wire is not.

A reply is a sequence of parts.  The model's tools are custom tools over the WebSocket, with free
text as input, and functions with one string over HTTP, as with the companies' own servers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from midstream.responses.profiles import Profile
from midstream.settings import Settings
from tests.helpers.scripted_http import DroppedError, ScriptedHttp

LINKS = ("websocket", "responses", "chat", "messages")
"""The Responses API over a WebSocket and over HTTP, Chat Completions, Messages."""
STREAMED = 7
"""Characters of an event."""


@dataclass(frozen=True)
class Say:
    """Text of a message."""

    text: str


@dataclass(frozen=True)
class Call:
    """A call of a tool.

    Attributes:
        tool: Its name.
        given: Its input.
        arguments: What the model writes in place of the JSON that a function takes; over a
            WebSocket this is the input.
        holds: Whether nothing comes after half of it until `ScriptedLink.let_go`.
    """

    tool: str
    given: str = ""
    arguments: str | None = None
    holds: bool = False

    @property
    def as_json(self) -> str:
        return json.dumps({"input": self.given}) if self.arguments is None else self.arguments

    @property
    def as_text(self) -> str:
        return self.given if self.arguments is None else self.arguments


@dataclass(frozen=True)
class Hold:
    """Nothing comes until `ScriptedLink.let_go`."""


@dataclass(frozen=True)
class Flood:
    """Text without an end, or input of a tool, or reasoning.

    Attributes:
        tool: Its name; ``""`` for text.
        begins: How it begins.
        reasons: Whether it is reasoning.
    """

    tool: str = ""
    begins: str = ""
    reasons: bool = False


@dataclass(frozen=True)
class Cut:
    """The connection is lost here."""


@dataclass(frozen=True)
class Limit:
    """The limit of output is reached here."""


Part: TypeAlias = Say | Call | Hold | Flood | Cut | Limit


@dataclass
class ScriptedLink(ScriptedHttp):
    """A server with one API that writes one reply per request.

    Attributes:
        link: One of `LINKS`.
        replies: What is written, the next one first; where there is none left, nothing is.
        holding: Set when a `Hold` was reached.
    """

    link: str = "websocket"
    replies: list[tuple[Part, ...]] = field(default_factory=list)
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    _go: asyncio.Event = field(default_factory=asyncio.Event)

    def reply(self, *parts: Part) -> None:
        """Write this to the next request that has no reply yet."""
        self.replies.append(parts)

    def let_go(self) -> None:
        """Go on after a `Hold`."""
        self._go.set()

    def told(self, number: int) -> str:
        """What a request says, as text."""
        return json.dumps(self.bodies[number], ensure_ascii=False)

    def settings(self, url: str, edit_format: str | None = "search-replace", **more: Any):
        """Settings that choose this server."""
        kind = "openai" if self.link == "websocket" else "custom"
        profile = Profile("far", kind, url, "m", transport=self.link, edit_format=edit_format)
        return Settings(endpoints=(profile,), endpoint="far", guard=False, **more)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[str]:
        if self.link != "websocket":
            self.apis = (self.link,)
            async with super().running() as url:
                yield url
            return
        async with serve(self._socket, "127.0.0.1", 0, compression=None) as server:
            yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def events(self, api: str, request: dict[str, Any]) -> AsyncGenerator[bytes]:
        async for event in self._written(api):
            yield f"data: {json.dumps(event)}\n\n".encode()
        if api == "chat":
            yield b"data: [DONE]\n\n"

    async def _written(self, api: str) -> AsyncIterator[dict[str, Any]]:
        wire = _WIRES[api](len(self.bodies))
        parts = self.replies.pop(0) if self.replies else ()
        for event in wire.begin():
            yield event
        early = False
        for part in parts:
            match part:
                case Say():
                    for start in range(0, len(part.text), STREAMED):
                        for event in wire.say(part.text[start : start + STREAMED]):
                            yield event
                case Call():
                    written = part.as_text if api == "websocket" else part.as_json
                    half = len(written) // 2 if part.holds else len(written)
                    for event in wire.call(part.tool):
                        yield event
                    for piece in (written[:half], written[half:]):
                        for start in range(0, len(piece), STREAMED):
                            for event in wire.given(piece[start : start + STREAMED]):
                                yield event
                        if part.holds and piece == written[:half]:
                            await self._hold()
                    for event in wire.called():
                        yield event
                case Hold():
                    await self._hold()
                case Flood():
                    for event in wire.call(part.tool) if part.tool else ():
                        yield event
                    text = part.begins
                    while True:
                        write = wire.given if part.tool else wire.say
                        for event in (wire.reason if part.reasons else write)(text):
                            yield event
                        text = "more words " * 1_000 if part.reasons else "more words " * 100
                case Cut():
                    raise DroppedError
                case Limit():
                    early = True
        for event in wire.end(early=early):
            yield event

    async def _hold(self) -> None:
        self.holding.set()
        await self._go.wait()
        self._go.clear()

    async def _socket(self, socket: ServerConnection) -> None:
        answering: asyncio.Task[None] | None = None
        with suppress(ConnectionClosed):
            async for frame in socket:
                event = json.loads(frame)
                if event["type"] == "response.create":
                    self.bodies.append(event)
                    answering = asyncio.create_task(self._answer_frames(socket))
                elif answering is not None and answering.cancel():  # an interrupt
                    ended = {"id": f"r{len(self.bodies)}", "status": "incomplete", "output": []}
                    ended["incomplete_details"] = {"reason": "interrupted"}
                    said = {"type": "response.incomplete", "response": ended}
                    await socket.send(json.dumps(said))
        if answering is not None:
            answering.cancel()

    async def _answer_frames(self, socket: ServerConnection) -> None:
        try:
            async for event in self._written("websocket"):
                await socket.send(json.dumps(event))
                await asyncio.sleep(0)
        except DroppedError:
            socket.transport.abort()
        except ConnectionClosed:
            pass


Events: TypeAlias = Iterator[dict[str, Any]]


class _Responses:
    """The events of the Responses API."""

    kind, field, delta = "function_call", "arguments", "response.function_call_arguments.delta"

    def __init__(self, number: int) -> None:
        self._id = f"r{number}"
        self._items: list[dict[str, Any]] = []

    def begin(self) -> Events:
        yield {"type": "response.created", "response": {"id": self._id, "status": "in_progress"}}

    def say(self, text: str) -> Events:
        if not self._items or self._items[-1]["type"] != "message":
            part = {"type": "output_text", "text": ""}
            yield self._add({"type": "message", "role": "assistant", "content": [part]})
        self._items[-1]["content"][0]["text"] += text
        yield {"type": "response.output_text.delta", "item_id": self._last, "delta": text}

    def reason(self, text: str) -> Events:
        yield {"type": "response.reasoning_text.delta", "item_id": "reasoning", "delta": text}

    def call(self, name: str) -> Events:
        call_id = f"call_{self._id}_{len(self._items)}"
        yield self._add({"type": self.kind, "call_id": call_id, "name": name, self.field: ""})

    def given(self, text: str) -> Events:
        self._items[-1][self.field] += text
        yield {"type": self.delta, "item_id": self._last, "delta": text}

    def called(self) -> Events:
        yield {"type": "response.output_item.done", "item": self._items[-1]}

    def end(self, *, early: bool) -> Events:
        status = "incomplete" if early else "completed"
        ended = {"id": self._id, "status": status, "output": self._items}
        ended["incomplete_details"] = {"reason": "max_output_tokens"} if early else None
        yield {"type": f"response.{status}", "response": ended}

    @property
    def _last(self) -> str:
        return self._items[-1]["id"]

    def _add(self, item: dict[str, Any]) -> dict[str, Any]:
        self._items.append({"id": f"{self._id}_{len(self._items)}", **item})
        return {
            "type": "response.output_item.added",
            "item": json.loads(json.dumps(self._items[-1])),
        }


class _CustomTools(_Responses):
    """The same with custom tools."""

    kind, field, delta = "custom_tool_call", "input", "response.custom_tool_call_input.delta"


class _Chat:
    """The chunks of Chat Completions."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._calls = 0

    def begin(self) -> Events:
        yield self._chunk({"role": "assistant", "content": ""})

    def say(self, text: str) -> Events:
        yield self._chunk({"content": text})

    def reason(self, text: str) -> Events:
        yield self._chunk({"reasoning_content": text})

    def call(self, name: str) -> Events:
        call_id, given = f"call_{self._number}_{self._calls}", {"name": name, "arguments": ""}
        call = {"index": self._calls, "id": call_id, "type": "function", "function": given}
        self._calls += 1
        yield self._chunk({"tool_calls": [call]})

    def given(self, text: str) -> Events:
        call = {"index": self._calls - 1, "function": {"arguments": text}}
        yield self._chunk({"tool_calls": [call]})

    def called(self) -> Events:
        yield from ()

    def end(self, *, early: bool) -> Events:
        yield self._chunk({}, "length" if early else "tool_calls" if self._calls else "stop")

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


class _Messages:
    """The events of the Messages API."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._index = -1
        self._open = self._calls = False

    def begin(self) -> Events:
        yield {"type": "message_start", "message": {"id": "m"}}

    def say(self, text: str) -> Events:
        if not self._open:
            yield self._start({"type": "text", "text": ""})
        self._open = True
        yield self._delta({"type": "text_delta", "text": text})

    def reason(self, text: str) -> Events:
        if not self._open:
            yield self._start({"type": "thinking", "thinking": ""})
        self._open = True
        yield self._delta({"type": "thinking_delta", "thinking": text})

    def call(self, name: str) -> Events:
        yield from self.called()
        self._calls = self._open = True
        call_id = f"toolu_{self._number}_{self._index + 1}"
        yield self._start({"type": "tool_use", "id": call_id, "name": name, "input": {}})

    def given(self, text: str) -> Events:
        yield self._delta({"type": "input_json_delta", "partial_json": text})

    def called(self) -> Events:
        if self._open:
            yield {"type": "content_block_stop", "index": self._index}
        self._open = False

    def end(self, *, early: bool) -> Events:
        yield from self.called()
        reason = "max_tokens" if early else "tool_use" if self._calls else "end_turn"
        yield {"type": "message_delta", "delta": {"stop_reason": reason}}
        yield {"type": "message_stop"}

    def _start(self, block: dict[str, Any]) -> dict[str, Any]:
        self._index += 1
        return {"type": "content_block_start", "index": self._index, "content_block": block}

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}


_WIRES = {
    "websocket": _CustomTools,
    "responses": _Responses,
    "chat": _Chat,
    "messages": _Messages,
}
