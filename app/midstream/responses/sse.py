"""The fallback for servers without WebSocket mode: one HTTP request per response, server-sent
events back.

Nothing can be said to a running response here: it is stopped by leaving the request. Every request
carries the whole conversation, because such servers often keep none.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any
from urllib.parse import urlsplit

import h11
import msgspec

from midstream.responses.endpoint import Endpoint
from midstream.responses.events import (
    TERMINALS,
    ServerEvent,
    WireError,
    WireResponse,
    decode_event,
)
from midstream.responses.link import Link

_READ_BYTES = 65_536
_ERROR_BODY_BYTES = 65_536
_CONNECT_SECONDS = 10.0


class SseParser:
    """Splits a byte stream into the data of server-sent events, whatever its chunks are."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that this chunk completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        complete: list[bytes] = []
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                complete.append(b"\n".join(self._data))
                self._data.clear()
        return complete


class _RefusedError(Exception):
    """An HTTP answer that is an error."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


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
        self._on_event = on_event
        self._on_lost = on_lost
        self._opened = time.monotonic()
        self._waiting: deque[dict[str, Any]] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def age(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self._opened

    async def send(self, frame: dict[str, Any]) -> None:
        """Queue a ``response.create``; other events have no place in HTTP and are left out."""
        if frame["type"] != "response.create":
            return
        self._waiting.append(frame)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(), name="responses-sse")

    async def close(self) -> None:
        """Leave the running request and forget the waiting ones."""
        self.alive = False
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while self._waiting:
            frame = self._waiting.popleft()
            if frame.get("generate") is False:
                self._prepared()
                continue
            state = "asked"
            try:
                async for event in self._events(frame):
                    state = "ended" if event.type in TERMINALS else "begun"
                    self._on_event(self, event)
                if state != "ended":
                    raise ConnectionError("the answer ended early")
            except _RefusedError as refused:
                self._on_event(self, _error_event(refused))
            except (OSError, h11.ProtocolError, ValueError) as error:
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
                            error=WireError(code="unreachable", message=sentence),
                        ),
                    )

    def _prepared(self) -> None:
        """Warm-up has no meaning for such a server; say that it is done."""
        for kind, status in (("created", "in_progress"), ("completed", "completed")):
            response = WireResponse(id="resp_local", status=status, output=[])
            self._on_event(self, ServerEvent(type=f"response.{kind}", response=response))

    async def _events(self, frame: dict[str, Any]) -> AsyncGenerator[ServerEvent]:
        body = {name: value for name, value in frame.items() if name not in ("type", "generate")}
        parser = SseParser()
        async with contextlib.aclosing(
            self._exchange(msgspec.json.encode({**body, "stream": True}))
        ) as chunks:
            async for chunk in chunks:
                for data in parser.feed(chunk):
                    if data != b"[DONE]":
                        yield decode_event(data)

    async def _exchange(self, body: bytes) -> AsyncGenerator[bytes]:
        """POST a body and yield the answer's body as it comes.

        Raises:
            _RefusedError: The status is not 200.
            OSError: The connection failed.
            h11.ProtocolError: The answer is not HTTP.
        """
        url = urlsplit(self._endpoint.http_url)
        secure = url.scheme == "https"
        async with asyncio.timeout(_CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                url.hostname,
                url.port or (443 if secure else 80),
                ssl=ssl.create_default_context() if secure else None,
            )
        try:
            http = h11.Connection(h11.CLIENT)
            headers = [
                ("Host", url.netloc.rpartition("@")[2]),
                ("Content-Type", "application/json"),
                ("Accept", "text/event-stream"),
                ("Content-Length", str(len(body))),
                ("Connection", "close"),
            ]
            if self._endpoint.token:
                headers.append(("Authorization", f"Bearer {self._endpoint.token}"))
            target = f"{url.path}/responses" + (f"?{url.query}" if url.query else "")
            request = h11.Request(method="POST", target=target, headers=headers)
            parts = (request, h11.Data(data=body), h11.EndOfMessage())
            writer.write(b"".join(http.send(part) or b"" for part in parts))
            await writer.drain()
            async for chunk in _answer(http, reader):
                yield chunk
        finally:
            writer.close()


async def _answer(http: h11.Connection, reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    status, refusal = 200, b""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            if status == 200:
                yield bytes(event.data)
            else:
                refusal = (refusal + bytes(event.data))[:_ERROR_BODY_BYTES]
        elif isinstance(event, h11.EndOfMessage):
            if status != 200:
                raise _RefusedError(status, refusal)
            return
        elif isinstance(event, h11.ConnectionClosed):
            raise ConnectionError("the connection was closed")


def _error_event(refused: _RefusedError) -> ServerEvent:
    """Make the event that a WebSocket would have brought."""
    error = WireError(message=f"The model server refused the request (HTTP {refused.status}).")
    with contextlib.suppress(ValueError):
        error = msgspec.json.decode(refused.body, type=_ErrorBody).error or error
    return ServerEvent(type="error", status=refused.status, error=error)


class _ErrorBody(msgspec.Struct, frozen=True):
    error: WireError | None = None
