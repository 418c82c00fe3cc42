"""The fallback for servers without WebSocket mode: one HTTP request per response, server-sent
events back.

Nothing can be said to a running response here: it is stopped by leaving the request. Every request
carries the whole conversation, because such servers often keep none. Spoken to are servers with
``/v1/responses``, which vLLM, SGLang, llama.cpp, LM Studio (0.3.29) and Ollama (0.13.3) have; for
one that only has ``/v1/chat/completions`` an update or a translating gateway is the way, not a
second protocol here, and the refusal says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec

from midstream.responses.connection import Link
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import (
    TERMINALS,
    TEXT_DELTAS,
    ErrorCode,
    ServerEvent,
    WireError,
    WireItem,
    WireResponse,
    decode_event,
)
from midstream.responses.http import Poster, RefusedError
from midstream.responses.refusals import Refusal

_OWN_ID = "resp_local"
_OWN_ITEM = "item_local"


class SseParser:
    """Splits a byte stream into server-sent events; chunk boundaries do not matter."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[tuple[str, bytes]]:
        """Name and data of the events that this chunk completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        complete: list[tuple[str, bytes]] = []
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif line.startswith(b"event:"):
                self._name = line[6:].strip().decode("utf-8", "replace")
            elif not line:
                if self._data:
                    complete.append((self._name, b"\n".join(self._data)))
                self._name, self._data = "", []
        return complete


class SseLink:
    """Requests one after the other, in the order they were sent.

    Args:
        endpoint: The server.
        on_event: Called for every event; must not block.
        on_lost: Called once if a response breaks off after it had begun.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        on_event: Callable[[Link, ServerEvent], None],
        on_lost: Callable[[Link, str], None],
    ) -> None:
        self.alive = True
        self._endpoint = endpoint
        self._poster = Poster(endpoint, "/responses")
        self._on_event = on_event
        self._on_lost = on_lost
        self._opened = time.monotonic()
        self._waiting: deque[dict[str, Any]] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def age(self) -> float:
        return time.monotonic() - self._opened

    async def send(self, frame: dict[str, Any]) -> None:
        """Queue a `response.create`; other events do not exist in HTTP and are ignored."""
        if frame["type"] != "response.create":
            return
        self._waiting.append(frame)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(), name="responses-sse")

    async def close(self) -> None:
        """Abandon the running request and forget the waiting ones."""
        self.alive = False
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._poster.close()

    async def _work(self) -> None:
        while self._waiting:
            frame = self._waiting.popleft()
            state = "asked"
            try:
                async for event in self._events(frame):
                    state = "ended" if event.type in TERMINALS else "begun"
                    self._on_event(self, event)
                if state != "ended":
                    raise ConnectionError("the answer ended early")
            except RefusedError as refused:
                refusal = Refusal(self._endpoint, refused.status, refused.body)
                event = ServerEvent(type="error", status=refused.status, error=refusal.error)
                self._on_event(self, event)
            except (OSError, ValueError) as error:
                reason = str(error) or type(error).__name__
                if state == "begun":
                    self.alive = False
                    self._on_lost(self, reason)
                    return
                if state == "asked":
                    sentence = (
                        f"The model server at {self._endpoint.host} gave no answer: {reason}."
                    )
                    self._on_event(
                        self,
                        ServerEvent(
                            type="error",
                            status=503,
                            error=WireError(code=ErrorCode.UNREACHABLE, message=sentence),
                        ),
                    )

    async def _events(self, frame: dict[str, Any]) -> AsyncGenerator[ServerEvent]:
        body = {name: value for name, value in frame.items() if name != "type"}
        parser, reading = SseParser(), _Reading()
        chunks = self._poster.post(msgspec.json.encode({**body, "stream": True}))
        async with contextlib.aclosing(chunks):
            async for chunk in chunks:
                for name, data in parser.feed(chunk):
                    for event in reading.take(name, data):
                        yield event


class _Reading:
    """The events of one answer, whatever the server leaves out.

    Engines differ: some name the event only in the ``event`` field, some send text before any
    ``response.created`` or without item ids, some end with ``[DONE]`` alone. There is one response
    per request, so what is missing can be told.
    """

    def __init__(self) -> None:
        self._id = ""
        self._item = ""
        self._ended = False

    def take(self, name: str, data: bytes) -> list[ServerEvent]:
        if data == b"[DONE]":
            if self._ended or not self._id:
                return []
            self._ended = True
            response = WireResponse(id=self._id, status="completed", output=[])
            return [ServerEvent(type="response.completed", response=response)]
        event = decode_event(data)
        if not event.type and name:
            event = msgspec.structs.replace(event, type=name)
        events: list[ServerEvent] = []
        response = event.response
        if not self._id and event.type.startswith("response."):
            self._id = (response.id if response is not None else "") or _OWN_ID
            if event.type != "response.created":
                response = WireResponse(id=self._id, status="in_progress")
                events.append(ServerEvent(type="response.created", response=response))
        if event.type in TERMINALS:
            self._ended = True
        if event.response is not None and event.response.id != self._id:
            response = msgspec.structs.replace(event.response, id=self._id)
            event = msgspec.structs.replace(event, response=response)
        if event.item is not None and not event.item.id:
            item = msgspec.structs.replace(event.item, id=_OWN_ITEM)
            event = msgspec.structs.replace(event, item=item)
        if event.type == "response.output_item.added" and event.item is not None:
            self._item = event.item.id or ""
        elif event.type in TEXT_DELTAS:
            if not self._item:
                self._item = event.item_id or _OWN_ITEM
                item = WireItem(id=self._item)
                events.append(ServerEvent(type="response.output_item.added", item=item))
            event = msgspec.structs.replace(event, item_id=self._item)
        return [*events, event]
