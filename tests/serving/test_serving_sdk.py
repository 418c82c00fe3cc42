"""Other people's clients: the openai SDK drives the server unchanged, and its types accept our
events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.lib.responses_websocket import (
    AsyncResponsesWebSocketSession,
    ResponsesWebSocketLimits,
)
from openai.types.responses import responses_server_event

from midstream.engine.types import GenerateRequest
from midstream.serving.limits import Limits
from midstream.serving.replay import ReplayModel
from tests.helpers.wire import TOKEN, Peer, eventually, peer, running

pytestmark = pytest.mark.system

TOOL = {"type": "custom", "name": "apply_patch", "description": "edits", "format": {"type": "text"}}

# In use between server and Codex, but not in the SDK's types.
UNTYPED = {
    "response.interrupt.accepted",
    "response.interrupt.failed",
    "response.output_item.interrupted",
}


def sdk_types() -> dict[str, Any]:
    """The SDK's event classes by the value of their ``type`` field."""
    found: dict[str, Any] = {}
    for name in dir(responses_server_event):
        kind = getattr(responses_server_event, name)
        field = getattr(kind, "model_fields", {}).get("type")
        if field is not None and getattr(field.annotation, "__args__", None):
            value = field.annotation.__args__[0]
            if value not in found or "Ws" in name:
                found[value] = kind
    return found


SDK_TYPES = sdk_types()


def validate(events: list[dict[str, Any]]) -> None:
    """Every event is valid for the SDK's own class, strictly."""
    for event in events:
        if event["type"] in UNTYPED:
            assert isinstance(event["sequence_number"], int)
            assert isinstance(event["response_id"], str)
            continue
        checked = dict(event)
        response = checked.get("response")
        if response and (response["incomplete_details"] or {}).get("reason") == "interrupted":
            # On the wire since Codex has it, but not in the SDK's list of reasons.
            checked["response"] = response | {"incomplete_details": {"reason": "steered"}}
        SDK_TYPES[event["type"]].model_validate(checked, strict=True)


async def scenario_text(client: Peer) -> None:
    await client.create("go", metadata={"a": "b"}, temperature=0.5, instructions="be brief")
    await client.terminal()


async def scenario_warm_up(client: Peer) -> None:
    await client.create([], generate=False, tools=[TOOL], reasoning={"effort": "max"})
    await client.terminal()


async def scenario_limit(client: Peer) -> None:
    await client.create(max_output_tokens=2, store=False, seed=1)
    await client.terminal()


async def scenario_tool(client: Peer) -> None:
    await client.create(tools=[TOOL], tool_choice="required", stream_id="lane")
    await client.terminal()


async def scenario_interrupt(client: Peer) -> None:
    for mode in ("discard_partial_items", "keep_partial_items"):
        await client.create("long")
        created = await client.until("response.created")
        await client.until("response.output_text.delta")
        target = created["response"]["id"]
        await client.send(type="response.interrupt", response_id=target, mode=mode)
        await client.terminal()
        await client.send(type="response.interrupt", response_id=target, mode=mode)
        await client.until("response.interrupt.failed")


async def scenario_steer(client: Peer) -> None:
    await client.create("long", stream_id="lane")
    created = await client.until("response.created")
    target = created["response"]["id"]
    await client.until("response.output_text.delta")
    message = {"role": "user", "content": [{"type": "input_text", "text": "go"}]}
    await client.send(type="response.steer", previous_response_id=target, input=[message])
    await client.until("response.completed")
    await client.send(type="response.steer", previous_response_id=target, input="late")
    await client.until("response.steer.failed")
    await client.send(type="response.steer", previous_response_id="resp_no", input="late")
    await client.until("response.steer.failed")


async def scenario_steer_pending(client: Peer) -> None:
    await client.create("medium", tools=[TOOL], tool_choice="required")
    created = await client.until("response.created")
    target = created["response"]["id"]
    await client.until("response.custom_tool_call_input.delta")
    await client.send(type="response.steer", previous_response_id=target, input="go")
    await client.until("response.steer.pending")


async def scenario_queue(client: Peer) -> None:
    await client.create("medium", stream_id="a")
    await client.until("response.output_text.delta")
    await client.create("go", stream_id="b")
    await client.until("response.queued")
    await client.terminal()
    await client.terminal()


async def scenario_failure(client: Peer) -> None:
    await client.create("bug")
    await client.terminal()


async def scenario_errors(client: Peer) -> None:
    await client.create(previous_response_id="resp_gone")
    await client.until("error")
    await client.create(max_output_tokens=-1, stream_id="lane")
    await client.until("error")
    await client.socket.send("{")
    await client.until("error")


def answer(request: GenerateRequest) -> str:
    match request.messages[-1].text:
        case "long":
            return "a long line of many words\n" * 50
        case "medium":
            return "some words without an end " * 3
        case "bug":
            raise RuntimeError("bug")
        case _:
            return "alpha beta gamma"


@asynccontextmanager
async def server(**options: Any) -> AsyncGenerator[int]:
    async with running(ReplayModel(answer, rate=400), **options) as port:
        yield port


@pytest.mark.parametrize(
    "scenario",
    [value for name, value in list(globals().items()) if name.startswith("scenario_")],
    ids=lambda value: value.__name__.removeprefix("scenario_"),
)
async def test_every_event_validates_strictly_against_the_sdk(scenario: Any) -> None:
    async with server(limits=Limits(event_seconds=0.0)) as port, peer(port) as client:
        await scenario(client)
        assert client.seen
        validate(client.seen)


def test_the_strict_validation_can_fail() -> None:
    event = {"type": "response.output_text.delta", "item_id": "i", "output_index": 0}
    complete = event | {"content_index": 0, "delta": "x", "logprobs": [], "sequence_number": 1}
    validate([complete])
    for wrong in (event, complete | {"delta": 1}, complete | {"sequence_number": "1"}):
        with pytest.raises(ValueError, match="validation error"):
            validate([wrong])


@asynccontextmanager
async def sdk(port: int) -> AsyncGenerator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=TOKEN) as client:
        yield client


async def test_sdk_connects_creates_chains_and_forks() -> None:
    async with server() as port, sdk(port) as client:
        async with client.responses.connect() as connection:
            await connection.response.create(model="replay", input=[], generate=False)
            warm = ""
            async for event in connection:
                if event.type == "response.completed":
                    warm = event.response.id
                    break
            texts: list[str] = []
            for _ in range(2):
                await connection.response.create(
                    model="replay", input="go", previous_response_id=warm, stream_id="fork"
                )
                text = ""
                async for event in connection:
                    if event.type == "response.output_text.delta":
                        text += event.delta
                    if event.type == "response.completed":
                        assert event.response.output_text == text
                        assert event.response.usage is not None
                        assert event.response.usage.output_tokens == 3
                        break
                texts.append(text)
        assert texts == ["alpha beta gamma"] * 2


async def test_sdk_reads_errors_and_goes_on() -> None:
    async with server() as port, sdk(port) as client, client.responses.connect() as connection:
        await connection.response.create(
            model="replay", input="go", previous_response_id="resp_gone"
        )
        error = await connection.recv()
        assert error.type == "error"
        assert error.error.code == "previous_response_not_found"
        assert error.status == 400
        await connection.response.create(model="replay", input="go")
        kinds = [(await connection.recv()).type for _ in range(2)]
        assert kinds == ["response.created", "response.in_progress"]


async def test_sdk_steers() -> None:
    async with server() as port, sdk(port) as client:
        async with client.responses.connect() as connection:
            await connection.response.create(model="replay", input="long")
            kinds: list[str] = []
            texts = ["", ""]
            ended = 0
            async for event in connection:
                kinds.append(event.type)
                if event.type == "response.created" and not ended:
                    await connection.response.steer(
                        previous_response_id=event.response.id, input="go"
                    )
                if event.type == "response.output_text.delta":
                    texts[ended] += event.delta
                if event.type in ("response.incomplete", "response.completed"):
                    ended += 1
                    if ended == 2:
                        break
        assert "response.steer.accepted" in kinds
        assert texts[0].startswith("a long line") or texts[0] == ""
        assert texts[0].count("\n") < 40
        assert texts[1] == "alpha beta gamma"


async def test_sdk_stops_with_an_event_it_does_not_know() -> None:
    async with server() as port, sdk(port) as client, client.responses.connect() as connection:
        await connection.response.create(model="replay", input="long")
        async for event in connection:
            if event.type == "response.created":
                target = event.response.id
            if event.type == "response.output_text.delta":
                await connection.send(
                    {  # type: ignore[arg-type]
                        "type": "response.interrupt",
                        "response_id": target,
                        "mode": "discard_partial_items",
                    }
                )
                break
        async for event in connection:
            if event.type == "response.incomplete":
                assert event.response.incomplete_details is not None
                assert event.response.incomplete_details.reason == "interrupted"
                break
        await connection.response.create(model="replay", input="go", previous_response_id=target)
        async for event in connection:
            if event.type == "response.completed":
                assert event.response.output_text == "alpha beta gamma"
                break


async def test_sdk_lists_models() -> None:
    async with server() as port, sdk(port) as client:
        assert [model.id async for model in await client.models.list()] == ["replay"]
        assert (await client.models.retrieve("replay")).owned_by == "midstream"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt")
        with pytest.raises(openai.AuthenticationError):
            await AsyncOpenAI(base_url=client.base_url, api_key="wrong").models.list()


async def test_the_synchronous_sdk_works_too() -> None:
    def ask(port: int) -> tuple[str, str]:
        with OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=TOKEN) as client:
            plain = client.responses.create(model="replay", input="go").output_text
            text = ""
            with client.responses.connect() as connection:
                connection.response.create(model="replay", input="go")
                for event in connection:
                    if event.type == "response.output_text.delta":
                        text += event.delta
                    if event.type == "response.completed":
                        break
        return plain, text

    async with server() as port:
        answers = await asyncio.to_thread(ask, port)
    assert answers == ("alpha beta gamma", "alpha beta gamma")


async def test_what_codex_needs() -> None:
    """Its own headers, its extra fields, the warm-up with all tools, and done events to build
    from.
    """
    function = {"type": "function", "name": "shell", "parameters": {}, "strict": False}
    common = {
        "model": "replay",
        "stream": True,
        "store": False,
        "instructions": "be brief",
        "tools": [function, TOOL],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "k",
        "reasoning": {"effort": "medium", "summary": "auto"},
        "client_metadata": {"session": "s"},
        "text": {"verbosity": "low"},
    }
    headers = {"OpenAI-Beta": "responses_websockets=2026-02-06", "originator": "codex_cli_rs"}
    async with server() as port, peer(port, headers=headers, compression="deflate") as client:
        await client.send(type="response.create", input=[], generate=False, **common)
        warm = (await client.until("response.completed"))["response"]["id"]
        part = {"type": "input_text", "text": "go"}
        message = {"type": "message", "role": "user", "content": [part]}
        await client.send(
            type="response.create", input=[message], previous_response_id=warm, **common
        )
        done = await client.until("response.output_item.done")
        completed = await client.until("response.completed")
        assert done["item"] == completed["response"]["output"][0]
        assert completed["response"]["usage"]["total_tokens"] > 0
        await client.send(type="response.processed", response_id=warm)
        pong = await client.socket.ping()
        await asyncio.wait_for(pong, 2)
        assert "error" not in client.types


async def test_sdk_sessions_run_lanes_side_by_side() -> None:
    limits = ResponsesWebSocketLimits(
        max_lanes=4,
        max_events_per_lane=500,
        max_events=1000,
        max_bytes_per_lane=2**20,
        max_bytes=2**21,
    )
    async with (
        server() as port,
        sdk(port) as client,
        client.responses.connect() as connection,
        AsyncResponsesWebSocketSession(connection, limits=limits) as session,
    ):
        lanes = [session.lane(name) for name in ("one", "two")]
        for lane, text in zip(lanes, ("go", "medium"), strict=True):
            await lane.send({"type": "response.create", "model": "replay", "input": text})
        first, second = [await lane.get_final_response() for lane in lanes]
        assert first.output_text == "alpha beta gamma"
        assert second.output_text == "some words without an end " * 3
        await lanes[0].send(
            {
                "type": "response.create",
                "model": "replay",
                "input": "go",
                "previous_response_id": second.id,
            }
        )
        assert (await lanes[0].get_final_response()).previous_response_id == second.id


async def test_sdk_reconnects_and_continues_a_stored_response() -> None:
    attempts: list[int] = []

    def on_reconnecting(event: Any) -> None:
        attempts.append(event.close_code)

    async def reconnecting() -> bool:
        return bool(attempts)

    async with (
        server(limits=Limits(connection_seconds=0.5)) as port,
        sdk(port) as client,
        client.responses.connect(on_reconnecting=on_reconnecting, initial_delay=0.01) as connection,
    ):
        stored = ""
        codes: list[str | None] = []

        async def go_on() -> None:
            await eventually(reconnecting)
            await asyncio.sleep(0.1)
            await connection.response.create(
                model="replay", input="go", previous_response_id=stored
            )

        await connection.response.create(model="replay", input="go")
        going_on = asyncio.create_task(go_on())
        async for event in connection:
            if event.type == "error":
                codes.append(event.error.code)
            if event.type == "response.completed" and stored:
                assert event.response.previous_response_id == stored
                break
            if event.type == "response.completed":
                stored = event.response.id
        await going_on
        assert codes == ["websocket_connection_limit_reached"]
        assert attempts == [1013]
