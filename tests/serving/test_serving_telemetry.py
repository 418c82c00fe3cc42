"""The telemetry beside the wire: live figures under the names of the response's metadata."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from midstream.serving.limits import Limits
from tests.helpers.waiting import PATIENCE_S
from tests.helpers.wire import TOKEN, peer, running

AUTH = {"Authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def telemetry(port: int) -> AsyncGenerator[Any]:
    """Yields a function that waits for the next event."""
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=AUTH) as http,
        http.stream("GET", "/v1/telemetry") as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.aiter_lines()

        async def event() -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE_S):
                async for line in lines:
                    if line.startswith("data: "):
                        return json.loads(line.removeprefix("data: "))
            raise AssertionError("the stream ended")

        yield event


async def test_a_running_turn_is_told_while_it_runs() -> None:
    async with (
        running("word " * 600, rate=400) as port,
        telemetry(port) as event,
        peer(port) as one,
        peer(port) as two,
    ):
        assert (await event())["running"] == []
        await one.create()
        created = await one.until("response.created")
        await one.until("response.output_text.delta")
        await two.create()
        await two.until("response.queued")
        told = await event()
        while len(told["running"]) < 2 or not told["running"][0]["tokens_per_second"]:
            told = await event()
        first, second = told["running"]
        name = hashlib.sha256(created["response"]["id"].encode()).hexdigest()[:16]
        assert (first["turn"], first["status"]) == (name, "in_progress")
        assert 100 < first["tokens_per_second"] < 800
        assert first["output_tokens"] > 0
        assert (second["status"], second["queue_ahead"]) == ("queued", 1)
        assert told["memory_bytes"] > 1_000_000
        assert told["connections"] == 2
        metadata = (await one.terminal())["response"]["metadata"]
        names = {key.removeprefix("midstream.") for key in metadata}
        assert {"queue_ms", "prefill_ms", "decode_ms", "forwards", "accepted_tokens"} <= names
        while not told["ended"]:
            told = await event()
        assert told["ended"][0]["turn"] == name
        assert f"{told['ended'][0]['forwards']}" == metadata["midstream.forwards"]
        second_id = two.seen[0]["response"]["id"]
        assert second_id not in json.dumps(told)


async def test_it_needs_the_token_and_its_readers_are_bounded() -> None:
    async with running(limits=Limits(telemetry_streams=1)) as port, httpx.AsyncClient() as http:
        url, status = f"http://127.0.0.1:{port}/v1/telemetry", 503
        assert (await http.get(url)).status_code == 401
        async with telemetry(port) as event:
            await event()
            assert (await http.get(url, headers=AUTH)).status_code == 503
        async with asyncio.timeout(PATIENCE_S):
            while status == 503:
                async with http.stream("GET", url, headers=AUTH) as answer:
                    status = answer.status_code
        assert status == 200


async def test_the_place_in_the_queue_is_told_when_it_changes() -> None:
    async with (
        running("word " * 300, rate=400) as port,
        peer(port) as one,
        peer(port) as two,
        peer(port) as three,
    ):
        for client in (one, two, three):
            await client.create()
            await client.until("response.created")
        queued = await three.until("response.queued")
        assert queued["response"]["metadata"]["midstream.queue_ahead"] == "2"
        queued = await three.until("response.queued")
        assert queued["response"]["metadata"]["midstream.queue_ahead"] == "1"


async def test_the_end_of_the_server_is_told_before_the_socket_closes() -> None:
    async with running("word " * 5000, rate=400) as port:
        opened = peer(port)
        client = await opened.__aenter__()
        await client.create()
        await client.until("response.output_text.delta")
    assert await client.closed() == 1012
    last = client.seen[-1]
    assert (last["type"], last["status"]) == ("error", 503)
    assert last["error"]["code"] == "server_shutting_down"
    await opened.__aexit__(None, None, None)
