"""A real server on loopback and a bare WebSocket client, for tests that look at single frames."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from midstream.engine.types import TextModel
from midstream.serving.app import create_app
from midstream.serving.limits import Limits
from midstream.serving.replay import ReplayModel
from midstream.serving.running import serve
from tests.helpers.waiting import PATIENCE_S

TOKEN = "test-token"
TERMINALS = {"response.completed", "response.incomplete", "response.failed"}


@asynccontextmanager
async def running(
    model: TextModel | Mapping[str, TextModel] | str = "one two three",
    *,
    rate: float = 0.0,
    limits: Limits | None = None,
    token: str | None = TOKEN,
) -> AsyncGenerator[int]:
    """Serve a model, or a text at a pace; yields the port."""
    if isinstance(model, str):
        model = ReplayModel(model, rate)
    models = model if isinstance(model, Mapping) else {model.name: model}
    app = create_app(models, token=token, limits=limits)
    async with serve(app, limits=limits) as server:
        yield server.port


async def made_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key, made by openssl; skips the test without it."""
    if shutil.which("openssl") is None:
        pytest.skip("makes its certificate with openssl")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    subject = ["-addext", "subjectAltName=IP:127.0.0.1"]
    made = await asyncio.create_subprocess_exec(
        *command.split(), *subject, "-keyout", str(key), "-out", str(certificate),
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert await made.wait() == 0
    return certificate, key


async def eventually(check: Callable[[], Awaitable[bool]], seconds: float = PATIENCE_S) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not await check():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


class Peer:
    """Sends and receives JSON frames, and remembers what it received."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.seen: list[dict[str, Any]] = []

    async def send(self, **event: Any) -> None:
        await self.socket.send(json.dumps(event))

    async def create(self, text: str | list[Any] = "go", **fields: Any) -> None:
        await self.send(type="response.create", model="replay", input=text, **fields)

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            frame = await self.socket.recv()
        assert isinstance(frame, str), "the server must send text frames"
        self.seen.append(json.loads(frame))
        return self.seen[-1]

    async def until(self, *kinds: str, **fields: Any) -> dict[str, Any]:
        """Receive up to the first event of one of these types (and with these fields)."""
        while True:
            event = await self.receive()
            if event["type"] in kinds and all(event.get(k) == v for k, v in fields.items()):
                return event

    async def terminal(self) -> dict[str, Any]:
        return await self.until(*TERMINALS)

    async def closed(self) -> int | None:
        """Receive until the server closes; returns its close code."""
        try:
            while True:
                await self.receive()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd is not None else None

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.seen]

    def text(self) -> str:
        return "".join(e["delta"] for e in self.seen if e["type"] == "response.output_text.delta")


@asynccontextmanager
async def peer(port: int, token: str | None = TOKEN, **options: Any) -> AsyncIterator[Peer]:
    """Connect a bare client."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    headers |= options.pop("headers", {})
    url = f"ws://127.0.0.1:{port}/v1/responses"
    options.setdefault("compression", None)
    # A paused reader would not see the answer to its close.
    options.setdefault("max_queue", None)
    async with connect(url, additional_headers=headers, proxy=None, **options) as socket:
        yield Peer(socket)
