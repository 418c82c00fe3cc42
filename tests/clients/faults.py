"""Faults between Midstream's client and a real server: over HTTP in three APIs, and a WebSocket.

Each keeps what the server has written, in full, to hold the client's text against.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from tests.helpers.scripted_http import ScriptedHttp


def written(event: dict[str, Any]) -> str:
    """The text in one event of any of the three APIs."""
    if event.get("type") == "response.output_text.delta":
        return event["delta"]
    if event.get("type") == "content_block_delta":
        return event["delta"].get("text", "")
    choices = event.get("choices")
    return (choices[0].get("delta", {}).get("content") or "") if choices else ""


@dataclass
class FaultyHttp(ScriptedHttp):
    """Passes requests on to a server, and its answers back with faults.

    Attributes:
        upstream: The server's base address, without ``/v1``.
        told: What the server wrote in answer to the requests that reached it, in their order.
    """

    upstream: str = ""
    told: list[str] = field(default_factory=list[str])

    @property
    def events_at_least(self) -> int:
        return 6

    async def events(self, api: str, request: dict[str, Any]) -> AsyncGenerator[bytes]:
        path = {"responses": "responses", "chat": "chat/completions", "messages": "messages"}[api]
        self.told.append("")
        at = len(self.told) - 1
        async with (
            httpx.AsyncClient(timeout=None, trust_env=False) as http,
            http.stream("POST", f"{self.upstream}/v1/{path}", json=request) as answer,
        ):
            assert answer.status_code == 200, await answer.aread()
            event = ""
            async for line in answer.aiter_lines():
                if line:
                    event += f"{line}\n"
                    data = line.removeprefix("data:").strip()
                    if data != line and data != "[DONE]":
                        self.told[at] += written(json.loads(data))
                elif event:
                    yield f"{event}\n".encode()
                    event = ""
            if event:
                yield f"{event}\n".encode()


@dataclass
class FaultySocket:
    """Passes a WebSocket on to a server, and its frames back with faults.

    Attributes:
        upstream: The server's base address, without ``/v1``.
        probability: That a response meets a fault.
        told: What the server wrote, by response id.
        happened: Faults so far.
    """

    upstream: str
    probability: float
    random: random.Random
    told: dict[str, str] = field(default_factory=dict[str, str])
    happened: int = 0

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[str]:
        """Serve; yields the base address."""
        async with serve(self._connection, "127.0.0.1", 0, compression=None) as server:
            yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def _connection(self, client: ServerConnection) -> None:
        url = self.upstream.replace("http", "ws", 1) + "/v1/responses"
        async with connect(url, proxy=None, compression=None, max_size=None) as server:
            with contextlib.suppress(ConnectionClosed):
                async with asyncio.TaskGroup() as group:
                    requests = group.create_task(self._requests(client, server))
                    await self._answers(client, server)
                    requests.cancel()

    async def _requests(self, client: ServerConnection, server: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for frame in client:
                create = json.loads(frame)["type"] == "response.create"
                if create and self.random.random() < self.probability / 2:
                    self.happened += 1
                    if self.random.random() < 0.5:
                        break
                    error = {"type": "rate_limit_error", "code": "busy", "message": "Busy."}
                    busy = {"type": "error", "status": 429, "error": error}
                    await client.send(json.dumps(busy))
                    continue
                await server.send(frame)
        await server.close()

    async def _answers(self, client: ServerConnection, server: ClientConnection) -> None:
        response, at, fault = "", 0, ""
        async for frame in server:
            assert isinstance(frame, str)
            event = json.loads(frame)
            if event["type"] == "response.created":
                response, at, fault = event["response"]["id"], self.random.randrange(1, 8), ""
                self.told[response] = ""
                if self.random.random() < self.probability:
                    fault = self.random.choice(("drop", "invalid", "strange", "twice", "cut"))
            self.told[response] = self.told.get(response, "") + written(event)
            at -= 1
            if at or not fault:
                await client.send(frame)
                continue
            self.happened += 1
            if fault == "drop":
                break
            if fault == "cut":
                await client.send(frame[: self.random.randrange(1, len(frame))])
                break
            if fault == "invalid":
                await client.send('{"type": "response.output_text.delta", "delta": ')
            if fault == "strange":
                await client.send('{"type": "response.new_thing", "delta": "no text"}')
            if fault == "twice":
                await client.send(frame)
            await client.send(frame)
        client.transport.abort()
        await server.close()
