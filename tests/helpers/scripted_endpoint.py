"""A hosted endpoint in other people's dialects, with limits, drops and late events.

It answers from the conversation as it understands it, so that a lost, doubled or reordered message
shows in the text. Written against the notes on the protocol, not against our server.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response


def expected(messages: list[tuple[str, str]], length: int = 40) -> str:
    """The answer to a conversation: words that depend on all of it."""
    digest = hashlib.sha256(json.dumps(messages).encode()).hexdigest()
    return " ".join(f"{digest[:8]}-{n}" for n in range(length)) + "\n"


@dataclass
class Faults:
    """Probabilities, per response or per event."""

    lose_before_created: float = 0.0
    lose_midway: float = 0.0
    lose_before_terminal: float = 0.0
    double_event: float = 0.0
    omit_event: float = 0.0
    unknown_event: float = 0.0
    late_delta: float = 0.0
    limit: float = 0.0
    forget: float = 0.0


@dataclass
class Scripted:
    """One endpoint.

    Attributes:
        interrupts: "accept", "refuse", "error" or "ignore".
        remembers: Responses a connection can be continued from.
        creates: Bodies of all creates, in order.
        connections: Sockets accepted so far.
        interrupts_seen: Interrupts that clients have sent.
        happened: Faults so far.
    """

    interrupts: str = "accept"
    remembers: int = 1
    pause: float = 0.0
    length: int = 40
    status: HTTPStatus | None = None
    silent: bool = False
    faults: Faults = field(default_factory=Faults)
    random: random.Random = field(default_factory=lambda: random.Random(1))
    creates: list[dict[str, Any]] = field(default_factory=list)
    connections: int = 0
    interrupts_seen: int = 0
    happened: int = 0
    open: set[ServerConnection] = field(default_factory=set)
    port: int = 0

    def happens(self, probability: float) -> bool:
        happens = probability > 0 and self.random.random() < probability
        self.happened += happens
        return happens

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[str]:
        """Serve; yields the base address."""
        async with serve(
            self._connection, "127.0.0.1", 0, process_request=self._upgrade, compression=None
        ) as server:
            self.port = server.sockets[0].getsockname()[1]
            yield f"ws://127.0.0.1:{self.port}/v1"

    def _upgrade(self, socket: ServerConnection, request: Request) -> Response | None:
        assert request.path == "/v1/responses"
        return socket.respond(self.status, "no") if self.status is not None else None

    async def _connection(self, socket: ServerConnection) -> None:
        self.connections += 1
        self.open.add(socket)
        known: dict[str, list[tuple[str, str]]] = {}
        waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        stops: dict[str, asyncio.Event] = {}
        work = asyncio.create_task(self._work(socket, waiting, known, stops))
        try:
            async for frame in socket:
                event = json.loads(frame)
                if event["type"] == "response.create":
                    self.creates.append(event)
                    waiting.put_nowait(event)
                elif event["type"] == "response.interrupt":
                    await self._interrupt(socket, event, stops)
        except ConnectionClosed:
            pass
        finally:
            work.cancel()
            self.open.discard(socket)

    async def _interrupt(
        self, socket: ServerConnection, event: dict[str, Any], stops: dict[str, asyncio.Event]
    ) -> None:
        self.interrupts_seen += 1
        target = event["response_id"]
        assert event["mode"] == "discard_partial_items"
        if self.interrupts == "accept" and target in stops:
            stops[target].set()
        elif self.interrupts == "error":
            error = {"type": "invalid_request_error", "code": None, "message": "Invalid type."}
            await send(socket, {"type": "error", "status": 400, "error": error})
        elif self.interrupts != "ignore":
            error = {"code": "interrupt_not_supported", "message": "no"}
            await send(
                socket,
                {"type": "response.interrupt.failed", "response_id": target, "error": error},
            )

    async def _work(
        self,
        socket: ServerConnection,
        waiting: asyncio.Queue[dict[str, Any]],
        known: dict[str, list[tuple[str, str]]],
        stops: dict[str, asyncio.Event],
    ) -> None:
        serial = 0
        late: list[dict[str, Any]] = []
        while True:
            create = await waiting.get()
            if self.silent:
                continue
            if self.happens(self.faults.lose_before_created):
                socket.transport.abort()
                return
            if self.happens(self.faults.limit):
                error = {"code": "websocket_connection_limit_reached", "message": "60 minutes"}
                await send(socket, {"type": "error", "status": 400, "error": error})
                await socket.close(1000)
                return
            if self.happens(self.faults.forget):
                known.clear()
            previous = create.get("previous_response_id")
            if previous is not None and previous not in known:
                error = {"code": "previous_response_not_found", "message": "not found"}
                await send(socket, {"type": "error", "status": 400, "error": error})
                continue
            messages = known.get(previous or "", []) + [
                (item["role"], item["content"][0]["text"]) for item in create["input"]
            ]
            serial += 1
            response_id = f"resp_{id(socket)}_{serial}"
            stops[response_id] = asyncio.Event()
            text = await self._respond(
                socket, create, response_id, messages, stops[response_id], late
            )
            known[response_id] = [*messages, *([("assistant", text)] if text else [])]
            while len(known) > self.remembers:
                del known[next(iter(known))]

    async def _respond(
        self,
        socket: ServerConnection,
        create: dict[str, Any],
        response_id: str,
        messages: list[tuple[str, str]],
        stop: asyncio.Event,
        late: list[dict[str, Any]],
    ) -> str:
        number = 0
        item_id = f"msg_{response_id}"
        place = {"item_id": item_id, "output_index": 0, "content_index": 0}

        async def emit(event: dict[str, Any], *, may_miss: bool = False) -> None:
            nonlocal number
            event["sequence_number"] = number
            number += 1
            if may_miss and self.happens(self.faults.omit_event):
                return
            for _ in range(1 + (may_miss and self.happens(self.faults.double_event))):
                await send(socket, event)
            if self.happens(self.faults.unknown_event):
                await send(socket, {"type": "response.new_thing", "status": "odd", "error": 5})

        def response(status: str, text: str = "", reason: str | None = None) -> dict[str, Any]:
            part = {"type": "output_text", "text": text, "annotations": []}
            item = {"id": item_id, "type": "message", "role": "assistant", "content": [part]}
            return {
                "id": response_id,
                "object": "response",
                "status": status,
                "output": [item] if text else [],
                "previous_response_id": create.get("previous_response_id"),
                "incomplete_details": {"reason": reason} if reason else None,
                "usage": {"input_tokens": 1, "output_tokens": number, "total_tokens": 1 + number},
            }

        await emit({"type": "response.created", "response": response("in_progress")})
        for event in late:
            await send(socket, event)
        late.clear()
        if create.get("generate") is False:
            await emit({"type": "response.completed", "response": response("completed")})
            return ""
        await emit({"type": "response.output_item.added", "item": {"id": item_id}})
        whole = expected(messages, self.length)
        words = [word + " " for word in whole.removesuffix("\n").split(" ")]
        words[-1] = words[-1].rstrip() + "\n"
        cut = self.random.randrange(len(words)) if self.happens(self.faults.lose_midway) else None
        for index, word in enumerate(words):
            if stop.is_set():
                await emit({"type": "response.interrupt.accepted", "response_id": response_id})
                interrupted = response("incomplete", reason="interrupted")
                await emit({"type": "response.incomplete", "response": interrupted})
                return ""
            if index == cut:
                socket.transport.abort()
                await asyncio.sleep(1)
            delta = {"type": "response.output_text.delta", **place, "delta": word}
            await emit(delta, may_miss=True)
            if self.happens(self.faults.late_delta):
                late.append(delta)
            await asyncio.sleep(self.pause)
        if self.happens(self.faults.lose_before_terminal):
            socket.transport.abort()
            await asyncio.sleep(1)
        await emit({"type": "response.completed", "response": response("completed", whole)})
        return whole


async def send(socket: ServerConnection, event: dict[str, Any]) -> None:
    await socket.send(json.dumps(event))
