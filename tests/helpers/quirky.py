"""A server of HTTP answers that a test writes itself, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed


@dataclass(frozen=True)
class Reply:
    """An answer.

    Attributes:
        chunks: Its body.
        status: Its status.
        headers: Further lines of its head.
        closes: Whether the body ends; else the connection stays open, and nothing comes.
        beats: Whether comments come meanwhile.
        breaks: Whether the connection breaks off after the chunks.
    """

    chunks: Sequence[bytes] = ()
    status: int = 200
    headers: Sequence[str] = ()
    closes: bool = True
    beats: bool = False
    breaks: bool = False


@dataclass(frozen=True)
class Asked:
    """A request: its path, and its body as JSON."""

    path: str
    body: dict[str, Any]


@dataclass
class Quirky:
    """The server.

    Attributes:
        reply: Makes the answer to a request.
        upgrade: Answers the request for a WebSocket; ``None`` to say nothing at all.
        asked: The requests, in order.
    """

    reply: Callable[[Asked], Reply]
    upgrade: Reply | None = field(default_factory=lambda: Reply((), 404))
    asked: list[Asked] = field(default_factory=list)

    @asynccontextmanager
    async def running(self, path: str = "/v1") -> AsyncGenerator[str]:
        """Serve; yields the base address."""
        tasks: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            ends = asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError
            with contextlib.suppress(*ends):
                await self._serve(reader, writer)
            writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{path}"
        finally:
            server.close()
            for task in tasks:
                task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if "upgrade: websocket" in head.lower():
            if self.upgrade is None:
                await asyncio.Event().wait()
            else:
                await self._answer(writer, self.upgrade)
            return
        length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
        body = await reader.readexactly(int(length or 0))
        asked = Asked(head.split(" ")[1], json.loads(body or b"{}"))
        self.asked.append(asked)
        await self._answer(writer, self.reply(asked))

    async def _answer(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        lines = [f"HTTP/1.1 {reply.status} x", *reply.headers, "connection: close"]
        lines += ["transfer-encoding: chunked", "", ""]
        writer.write("\r\n".join(lines).encode())
        for chunk in reply.chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        if reply.breaks:
            await writer.drain()
            await asyncio.sleep(0.05)  # The client reads the written bytes before the reset.
            writer.transport.abort()
            return
        if reply.closes:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        while not reply.closes:
            if reply.beats:
                writer.write(b"8\r\n: ping\n\n\r\n")
                await writer.drain()
            await asyncio.sleep(0.01)


@asynccontextmanager
async def quirky_socket(chunks: Sequence[bytes], *, breaks: bool = False) -> AsyncGenerator[str]:
    """Answer every request on a WebSocket with the events of a stream; yields the base address."""

    async def answer(socket: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for _ in socket:
                for chunk in chunks:
                    await socket.send(chunk.decode().strip().removeprefix("data: "))
                if breaks:
                    socket.transport.abort()

    async with serve(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
