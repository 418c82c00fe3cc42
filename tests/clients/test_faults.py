"""1,000 faults between Midstream's client and a real model, on each kind of link.

The model is SmolLM2, in `midstream serve` and in llama.cpp's server. What the client tells is held
against what the server wrote, which differs from run to run where a prompt is cached.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from midstream.responses import http_link
from midstream.responses.client import Client
from midstream.responses.endpoint import Endpoint, Transport
from midstream.responses.events import Delta, Failed, Finished
from tests.clients.faults import FaultyHttp, FaultySocket
from tests.clients.test_clients import llama_cpp, midstream_serve
from tests.helpers.scripted_http import HttpFaults

pytestmark = [pytest.mark.clients, pytest.mark.timeout(3600)]

FAULTS: Final = int(os.environ.get("MIDSTREAM_FAULTS", "1000"))
"""Faults on each link."""
TOKENS: Final = 8
"""Tokens of an answer."""


@asynccontextmanager
async def engine(name: str, folder: Path) -> AsyncGenerator[str]:
    """The address of a server, without /v1."""
    started = {"midstream serve": midstream_serve, "llama.cpp": llama_cpp}[name]
    async with started(folder) as server:
        yield server.url.removesuffix("/v1")


@pytest.mark.parametrize(
    ("name", "transport"),
    [
        ("midstream serve", "websocket"),
        ("midstream serve", "sse"),
        ("llama.cpp", "chat"),
        ("llama.cpp", "messages"),
    ],
)
async def test_a_thousand_faults_lose_and_double_nothing(
    name: str, transport: Transport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_link, "_FIRST_PAUSE_SECONDS", 0.0)
    chance = random.Random(18)
    async with engine(name, tmp_path) as upstream:
        link: FaultySocket | FaultyHttp
        if transport == "websocket":
            link = FaultySocket(upstream, 0.6, chance)
        else:
            link = FaultyHttp(upstream=upstream, faults=HttpFaults.all(0.15), random=chance)
        kind, model = ("local", "") if name == "midstream serve" else ("custom", "smollm2")
        ends: Counter[str] = Counter()
        async with link.running() as url:
            client = Client(Endpoint(url, None, model, kind, transport))
            messages: list[Any] = []
            while link.happened < FAULTS:
                number = sum(ends.values())
                assert number < 10 * FAULTS
                # Only a WebSocket goes on from what the server remembers; others send everything.
                messages = messages[-2:] if transport == "websocket" else []
                messages = [*messages, ("user", f"Say {number} in words.")]
                text, end, told = await answer(client, link, messages, stops=number % 5 == 4)
                if isinstance(end, Finished) and end.reason != "interrupted":
                    assert (text, end.kept) == (told, told)
                else:
                    assert told.startswith(text)
                ends[end.code if isinstance(end, Failed) else end.reason or end.status] += 1
                # Without an answer between them, two instructions would be one message.
                messages = [*messages, ("assistant", text)] if text else messages[:-1]
            await client.close()
    print(f"| {name} | {transport} | {link.happened} | {sum(ends.values())} | {dict(ends)} |")
    assert ends["interrupted"] > FAULTS // 50
    assert ends["completed"] + ends["max_output_tokens"] > FAULTS // 10


async def answer(
    client: Client, link: FaultySocket | FaultyHttp, messages: list[Any], *, stops: bool
) -> tuple[str, Finished | Failed, str]:
    """The text of an answer, its end, and what the server wrote."""
    text, end = "", None
    stream = await client.create(messages=messages, max_output_tokens=TOKENS, temperature=0.0)
    async for event in stream:
        assert end is None
        if isinstance(event, Delta):
            text += event.text
            if stops:
                await stream.interrupt()
        elif isinstance(event, Finished | Failed):
            end = event
    assert end is not None
    if isinstance(link, FaultySocket):
        return text, end, link.told.get(stream.id, "")
    return text, end, link.told[-1] if link.told else ""
