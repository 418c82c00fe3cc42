"""What `midstream bench wire` measures against: a server process and a simulated network."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.connection import Connection as Pipe

from midstream.engine.types import GenerateRequest
from midstream.serving.limits import Limits
from midstream.serving.replay import ReplayModel

TOKEN = "bench"


def words_answer(request: GenerateRequest) -> str:
    """Answer with as many words as the last message says."""
    return "word " * int(request.messages[-1].text)


def _server(pipe: Pipe, rate: float, event_seconds: float) -> None:
    """The server process; it ends with its parent's end of the pipe."""
    from midstream.serving.app import create_app
    from midstream.serving.running import serve

    async def main() -> None:
        app = create_app(
            {"replay": ReplayModel(words_answer, rate)},
            token=TOKEN,
            limits=Limits(event_seconds=event_seconds),
        )
        async with serve(app) as server:
            pipe.send(server.port)
            with contextlib.suppress(EOFError):
                await asyncio.to_thread(pipe.recv)

    asyncio.run(main())


@contextmanager
def served(*, rate: float, event_seconds: float = 0.008) -> Generator[int]:
    """Run a server that replays words in a process of its own; yields its port.

    Args:
        rate: Tokens per second, 0 for as fast as possible.
        event_seconds: Least time between two text events.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_server, args=(theirs, rate, event_seconds), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours.recv()
    finally:
        ours.close()
        process.join(5)


@asynccontextmanager
async def network(port: int, rtt: float) -> AsyncGenerator[int]:
    """A proxy that adds a round-trip time in seconds; yields its port."""
    if not rtt:
        yield port
        return
    writers: set[asyncio.StreamWriter] = set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await reader.read(65_536):
            loop.call_later(rtt / 2, writer.write, data)
        loop.call_later(rtt / 2, writer.close)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(rtt)
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", port)
        writers.update((writer, upstream))
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(forward(reader, upstream), forward(upstream_reader, writer))

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()
