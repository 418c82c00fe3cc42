"""POST /v1/responses: one response per HTTP request, as server-sent events or as one JSON object.

A response goes on from any stored one; a connection of its own it has not. When the peer leaves,
the generation stops.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from midstream.serving.items import Event
from midstream.serving.requests import RequestError, read_create, read_frame
from midstream.serving.service import Service
from midstream.serving.turn import TERMINAL_EVENTS, Turn

_UNREAD_EVENTS = 64
"""Events a slow reader may leave waiting; text goes on joining behind them."""


async def post_response(request: Request, service: Service) -> Response:
    """Answer one POST.

    Raises:
        RequestError: The request is refused before a response exists.
    """
    try:
        async with asyncio.timeout(service.limits.body_seconds):
            body = await request.body()
    except TimeoutError:
        raise RequestError("The request did not arrive.", code="timeout", status=408) from None
    create = read_create(read_frame(body))
    history, _ = service.history(create, None)
    events: asyncio.Queue[Event] = asyncio.Queue(_UNREAD_EVENTS)
    turn = service.turn(create, history, events.put, owner=object())
    if create.stream:
        return StreamingResponse(
            _server_sent(turn, events, service),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
    async with _left(request, turn):
        async for event in _events(turn, events, service):
            if event["type"] in TERMINAL_EVENTS:
                return _final(event["response"])
    return Response(status_code=499)


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
async def _left(request: Request, turn: Turn) -> AsyncGenerator[None]:
    """Stop the turn when the peer leaves meanwhile."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        turn.abandon()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


async def _events(
    turn: Turn, events: asyncio.Queue[Event], service: Service
) -> AsyncGenerator[Event]:
    """Run a turn and yield its events; leaving early stops it."""
    running = asyncio.create_task(turn.run())
    try:
        while True:
            event = await events.get()
            if event["type"] in TERMINAL_EVENTS:
                break
            yield event
        await running
        if turn.conversation is not None and turn.request.keep:
            service.store(turn.conversation)
        yield event
    finally:
        turn.abandon()
        running.cancel()


async def _server_sent(
    turn: Turn, events: asyncio.Queue[Event], service: Service
) -> AsyncGenerator[bytes]:
    stream = _events(turn, events, service)
    async with contextlib.aclosing(stream):
        async for event in stream:
            data = msgspec.json.encode(event)
            yield b"event: " + event["type"].encode() + b"\ndata: " + data + b"\n\n"
