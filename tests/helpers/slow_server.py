"""A server that takes its time: it says that it has begun, and then nothing for a while."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from midstream.settings import Settings

STARTED = {"type": "response.created", "response": {"id": "r"}}
END = {"type": "response.completed", "response": {"id": "r", "status": "completed"}}


class SlowServer:
    """Says at once that it has begun, and writes when `go` is set."""

    def __init__(self, answer: str) -> None:
        self.go = asyncio.Event()
        self._delta = {"type": "response.output_text.delta", "delta": answer}

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Settings]:
        server = await asyncio.start_server(self.connection, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        yield Settings(
            endpoint_url=url, endpoint_model="m", endpoint_transport="sse", journal=False
        )
        server.close()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            if not head.startswith("post"):
                writer.write(b"HTTP/1.1 404 no\r\nconnection: close\r\n\r\n")
                writer.close()
                return
            await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))
            writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
            for event in (STARTED, self._delta, END):
                writer.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                await writer.drain()
                await self.go.wait()
        writer.close()
