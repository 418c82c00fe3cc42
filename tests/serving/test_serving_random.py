"""Random peers: whatever they send and whenever they leave, every response is whole and nothing
stays behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

from test_serving_sdk import validate

from midstream.engine.types import GenerateRequest
from midstream.serving.limits import Limits
from midstream.serving.replay import ReplayModel
from tests.helpers.wire import TERMINALS, TOKEN, Peer, eventually, peer, running


def script(request: GenerateRequest) -> str:
    size = sum(map(ord, request.messages[-1].text)) % 60
    return "a line of words\n" * size


@dataclass
class Expected:
    """The answers that a peer must get."""

    answers: int = 0
    """Responses that begin, and errors."""
    stops: int = 0


async def receive(client: Peer, ids: list[str]) -> None:
    """Receive, and note the responses that begin."""
    while True:
        event = await client.receive()
        if event["type"] == "response.created":
            ids.append(event["response"]["id"])


def answered(events: list[dict[str, Any]], expected: Expected) -> bool:
    """Whether every request was answered and no response is running."""
    kinds = Counter(event["type"] for event in events)
    ended = sum(kinds[kind] for kind in TERMINALS)
    stopped = kinds["response.interrupt.accepted"] + kinds["response.interrupt.failed"]
    return (
        kinds["response.created"] + kinds["error"] >= expected.answers
        and stopped >= expected.stops
        and ended == kinds["response.created"]
    )


async def session(port: int, seed: int) -> tuple[list[dict[str, Any]], int | None]:
    """One random peer; returns what it saw, and how many stops it asked for if it stayed."""
    chance = random.Random(seed)
    ids: list[str] = []
    expected = Expected()
    async with peer(port) as client:
        reading = asyncio.create_task(receive(client, ids))
        for step in range(chance.randrange(3, 14)):
            known = chance.choice([*ids, "resp_unknown"])
            match chance.randrange(8):
                case 0 | 1 | 2:
                    expected.answers += 1
                    await client.create(f"{seed}-{step}", stream_id=chance.choice(["a", "b", "c"]))
                case 3:
                    expected.answers += 1
                    await client.create(f"{seed}", previous_response_id=known)
                case 4:
                    mode = chance.choice(["discard_partial_items", "keep_partial_items", "odd"])
                    await client.send(type="response.interrupt", response_id=known, mode=mode)
                    expected.stops += mode != "odd"
                    expected.answers += mode == "odd"
                case 5:
                    await client.send(
                        type="response.steer", previous_response_id=known, input=f"{step}"
                    )
                case 6:
                    expected.answers += 1
                    await client.socket.send(chance.choice(["{", "[]", b"\x00", '{"type":"x"}']))
                case _:
                    expected.answers += 1
                    tool = {"type": "custom", "name": "t"}
                    await client.create(f"{step}", tools=[tool], tool_choice="required")
            await asyncio.sleep(chance.choice([0, 0, 0.002, 0.02, 0.06]))
        stays = chance.random() < 0.8
        if stays:

            async def whole() -> bool:
                return reading.done() or answered(client.seen, expected)

            await eventually(whole)
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
    return client.seen, expected.stops if stays else None


def responses(events: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The events of each response, found by lane as a client has to."""
    running: dict[str | None, str] = {}
    found: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        lane = event.get("stream_id")
        if event["type"] == "error" or "interrupt.failed" in event["type"]:
            continue
        if event["type"].startswith("response.steer."):
            continue
        if event["type"] == "response.created":
            assert lane not in running, "responses of a lane overlap"
            running[lane] = event["response"]["id"]
        found.setdefault(running[lane], []).append(event)
        if event["type"] in TERMINALS:
            assert event["response"]["id"] == running.pop(lane)
    assert not running, "a response has no end"
    return found


def kinds_of(results: list[tuple[list[dict[str, Any]], int | None]]) -> Counter[str]:
    """How many responses ended in each way; every one must be whole."""
    kinds: Counter[str] = Counter()
    for events, stops in results:
        validate(events)
        if stops is None:
            continue
        stopped = [event for event in events if event["type"].startswith("response.interrupt.")]
        assert len(stopped) == stops
        for whole in responses(events).values():
            numbers = [event["sequence_number"] for event in whole]
            assert numbers == sorted(set(numbers))
            terminal = whole[-1]["response"]
            kinds[(terminal["incomplete_details"] or {}).get("reason") or terminal["status"]] += 1
            text = "".join(e["delta"] for e in whole if e["type"].endswith(".delta"))
            for item in terminal["output"]:
                final = item["input"] if "input" in item else item["content"][0]["text"]
                assert final == text
    return kinds


async def test_random_peers_get_whole_responses_and_leave_nothing_behind() -> None:
    model = ReplayModel(script, rate=5000)
    async with running(model, limits=Limits(event_seconds=0.001)) as port:
        results: list[tuple[list[dict[str, Any]], int | None]] = []
        for wave in range(30):
            results += await asyncio.gather(*(session(port, wave * 8 + n) for n in range(8)))
            # Which events meet depends on the machine: go on until every kind has come.
            kinds = kinds_of(results)
            if wave >= 2 and min(kinds["interrupted"], kinds["steered"]) > 1:
                break

        async def idle() -> bool:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            writer.write(f"{head}Connection: close\r\n\r\n".encode())
            text = (await reader.read()).decode()
            writer.close()
            return "midstream_generations 0\n" in text and "midstream_connections 0\n" in text

        await eventually(idle)
    kinds = kinds_of(results)
    assert kinds["completed"] > 30
    assert kinds["interrupted"] > 1
    assert kinds["steered"] > 1
