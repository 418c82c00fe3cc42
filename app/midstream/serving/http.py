"""Answers over plain HTTP: POST /v1/responses, and the telemetry stream.

A POST gets one response, as server-sent events or as one JSON object. It can continue any stored
response; there is no connection that it could belong to. When the peer leaves, generation stops.

GET /v1/telemetry is what the server is doing, as server-sent events, for screens that show it:
beside the Responses wire, never on it. Every event is one JSON object:

- ``running``: the turns that run or wait, and ``ended``: the ones that ended last. Each has
  ``turn`` (the first 16 hexadecimal digits of the SHA-256 of its response id: those who know the id
  find the turn, others do not learn the id), ``model``, ``status``, ``queue_ahead``, ``queue_ms``,
  ``prefill_ms``, ``decode_ms``, ``forwards``, ``drafted_tokens``, ``accepted_tokens``,
  ``input_tokens``, ``cached_tokens``, ``output_tokens`` and ``tokens_per_second``. The names are
  those of the response's ``metadata`` and ``usage``.
- ``connections``, ``generations`` and ``memory_bytes`` (resident) of the server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from midstream.processes import resident_bytes
from midstream.serving.output import Event
from midstream.serving.requests import RequestError, read_create, read_frame
from midstream.serving.service import Service
from midstream.serving.turn import TERMINAL_EVENTS, ServedResponse

_UNREAD_EVENTS = 64
"""Events a slow reader may leave waiting; text goes on joining behind them."""


async def post_response(request: Request, service: Service) -> Response:
    """Answer one POST.

    Raises:
        RequestError: The request is refused before a response exists.
    """
    try:
        async with asyncio.timeout(service.limits.body_seconds):
            body = await _body(request, service.limits.message_bytes)
    except TimeoutError:
        raise RequestError(
            "The request body did not arrive in time.", code="timeout", status=408
        ) from None
    create = read_create(read_frame(body))
    service.admit()
    history, parent = await service.history(create, None)
    if create.background:
        turn = service.turn(create, history, parent, _Unread())
        await service.stored.run(turn, service.run(turn))
        return JSONResponse(turn.wire())
    events: asyncio.Queue[Event] = asyncio.Queue(_UNREAD_EVENTS)
    turn = service.turn(create, history, parent, events.put)
    if create.stream:
        return EventStream(_server_sent(turn, events, service), service.limits.unread_seconds)
    async with _left(request, turn):
        async for event in _events(turn, events, service):
            if event["type"] in TERMINAL_EVENTS:
                return _final(event["response"])
    return Response(status_code=499)


class _Unread:
    """Takes the events of a response that runs in the background; each is a queue of its own."""

    async def __call__(self, event: Event) -> None:
        pass


async def _body(request: Request, most: int) -> bytes:
    """The body of a request.

    Raises:
        RequestError: It is too long.
    """
    body = bytearray()
    announced = request.headers.get("content-length", "")
    if not (announced.isdecimal() and int(announced) > most):
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                break
        else:
            return bytes(body)
    raise RequestError(
        f"The request body is larger than {most:,} bytes; send less text.",
        code="request_too_large",
        status=413,
    )


class EventStream(Response):
    """Server-sent events; ends when the peer leaves, or leaves what was sent unread for too long.

    Args:
        events: The events' bytes; closed in any case.
        unread_seconds: How long one of them may wait for the peer to read.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes], unread_seconds: float) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._events = events
        self._unread_seconds = unread_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        sending = asyncio.create_task(self._send(send, head))
        leaving = asyncio.create_task(_wait_for_leaving(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send, head: dict[str, Any]) -> None:
        async with contextlib.aclosing(self._events) as events:
            await send(head)
            async for data in events:
                async with asyncio.timeout(self._unread_seconds):
                    await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


async def _wait_for_leaving(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _final(response: dict[str, Any]) -> Response:
    error = response["error"]
    if error is None:
        return JSONResponse(response)
    wrong = error["code"] == "invalid_prompt"
    kind = "invalid_request_error" if wrong else "server_error"
    return JSONResponse(
        {"error": {"type": kind, "param": None, **error}}, status_code=400 if wrong else 500
    )


@contextlib.asynccontextmanager
async def _left(request: Request, turn: ServedResponse) -> AsyncGenerator[None]:
    """Stop the turn if the peer disconnects."""

    async def watch() -> None:
        await _wait_for_leaving(request.receive)
        turn.abandon()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _events(
    turn: ServedResponse, events: asyncio.Queue[Event], service: Service
) -> AsyncGenerator[Event]:
    """Run a turn and yield its events; leaving early stops it."""
    running = asyncio.create_task(service.run(turn))
    try:
        while True:
            event = await events.get()
            if event["type"] in TERMINAL_EVENTS:
                break
            yield event
        await running
        if turn.request.keep:
            await service.stored.add(turn)
        yield event
    finally:
        turn.abandon()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _server_sent(
    turn: ServedResponse, events: asyncio.Queue[Event], service: Service
) -> AsyncGenerator[bytes]:
    stream = _events(turn, events, service)
    async with contextlib.aclosing(stream):
        async for event in stream:
            data = msgspec.json.encode(event)
            yield b"event: " + event["type"].encode() + b"\ndata: " + data + b"\n\n"


_TICK_SECONDS = 0.25
"""Time between two events while something runs."""
_IDLE_SECONDS = 15.0
"""An idle stream sends a comment that often, so that a reader who left is noticed."""


def snapshot(service: Service) -> dict[str, Any]:
    return {
        "running": [turn.telemetry() for turn in service.turns],
        "ended": list(service.ended),
        "connections": service.connections,
        "generations": service.load,
        "memory_bytes": resident_bytes(),
    }


async def telemetry_events(service: Service) -> AsyncGenerator[bytes]:
    """Four events a second while something runs, one whenever something starts or ends."""
    while not service.leaving.is_set():
        service.news.clear()
        yield b"event: telemetry\ndata: " + msgspec.json.encode(snapshot(service)) + b"\n\n"
        try:
            async with asyncio.timeout(_TICK_SECONDS if service.turns else _IDLE_SECONDS):
                await service.news.wait()
        except TimeoutError:
            if not service.turns:
                yield b": idle\n\n"
        else:
            # Changes in quick succession share one event.
            await asyncio.sleep(_TICK_SECONDS / 5)
