"""The client and the real server over a network that cuts, stalls and splits; and addresses."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from midstream.engine.types import GenerateRequest
from midstream.errors import UnavailableError
from midstream.responses.client import Client
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import Delta, Failed, Finished
from midstream.serving.app import create_app
from midstream.serving.replay import ReplayModel
from midstream.serving.running import serve
from tests.helpers.waiting import PATIENCE_S

pytestmark = pytest.mark.system


class BadNetwork:
    """A proxy that splits the stream anywhere, stalls, and cuts connections after random bytes."""

    def __init__(self, port: int, chance: random.Random) -> None:
        self.upstream = port
        self.chance = chance
        self.cuts = 0

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[int]:
        server = await asyncio.start_server(self.connection, "127.0.0.1", 0)
        yield server.sockets[0].getsockname()[1]
        server.close()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        left = self.chance.randrange(2_000, 40_000)
        ways = [
            asyncio.create_task(self.forward(reader, up_writer, left)),
            asyncio.create_task(self.forward(up_reader, writer, left)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (writer, up_writer):
            end.transport.abort()

    async def forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: int
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(self.chance.choice([1, 100, 5_000])):
                writer.write(data[:left])
                left -= len(data)
                if left <= 0:
                    self.cuts += 1
                    await writer.drain()
                    return
                if self.chance.random() < 0.05:
                    await asyncio.sleep(0.002)


async def test_a_bad_network_loses_and_doubles_nothing() -> None:
    def script(request: GenerateRequest) -> str:
        return "".join(f"{request.messages[-1].text} line {n}\n" for n in range(40))

    chance = random.Random(3)
    finished = failed = stopped = 0
    async with serve(create_app({"replay": ReplayModel(script, 20_000)}, token="t")) as server:
        network = BadNetwork(server.port, chance)
        async with network.running() as port:
            client = Client(Endpoint(f"ws://127.0.0.1:{port}/v1", "t", "replay", "local"))
            messages: list[tuple[str, str]] = []
            for turn in range(150):
                messages = [*messages[-4:], ("user", f"turn {turn}")]
                whole = "".join(f"turn {turn} line {n}\n" for n in range(40))
                stop = chance.random() < 0.2
                text, end = "", None
                try:
                    stream = await client.create(messages=messages)
                except UnavailableError:
                    continue
                async with asyncio.timeout(PATIENCE_S):
                    async for event in stream:
                        if isinstance(event, Delta):
                            assert not stream.interrupted
                            text += event.text
                            if stop:
                                await stream.interrupt()
                        elif isinstance(event, Finished | Failed):
                            end = event
                assert whole.startswith(text)
                if isinstance(end, Failed):
                    failed += 1
                    continue
                assert isinstance(end, Finished)
                assert end.text == text
                if end.reason == "interrupted":
                    stopped += 1
                else:
                    finished += 1
                    assert text == whole
                messages.append(("assistant", text))
            await client.close()
    assert network.cuts > 10
    assert finished > 60
    assert stopped > 5


@pytest.mark.parametrize(
    ("url", "websocket", "http", "loopback"),
    [
        ("ws://127.0.0.1:80/v1", "ws://127.0.0.1:80/v1/responses", "http://127.0.0.1:80/v1", True),
        ("https://h/v1/", "wss://h/v1/responses", "https://h/v1", False),
        (
            "http://localhost/a?k=1",
            "ws://localhost/a/responses?k=1",
            "http://localhost/a?k=1",
            True,
        ),
        ("wss://[::1]:1/v1", "wss://[::1]:1/v1/responses", "https://[::1]:1/v1", True),
    ],
)
def test_one_address_serves_both_ways(url: str, websocket: str, http: str, loopback: bool) -> None:
    endpoint = Endpoint(url, "secret", "m")
    assert (endpoint.websocket_url, endpoint.http_url) == (websocket, http)
    assert endpoint.loopback is loopback
    assert "secret" not in repr(endpoint)
