"""The client against the real server: nothing lost, nothing late, stops are local first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from midstream.engine.types import GenerateRequest
from midstream.errors import UnavailableError, UsageError
from midstream.responses.client import Client
from midstream.responses.conversation import MAX_OUTPUT, ToolCall, ToolOutput, wire_item
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import Delta, Failed, Finished, Started
from midstream.responses.stream import Stream
from midstream.serving.app import create_app
from midstream.serving.limits import Limits
from midstream.serving.replay import ReplayModel
from midstream.serving.running import serve
from tests.helpers.waiting import PATIENCE_S

TOKEN = "t"


@asynccontextmanager
async def connected(model: ReplayModel, *, limits: Limits | None = None) -> AsyncGenerator[Client]:
    """A client of a real server on loopback."""
    async with serve(create_app({model.name: model}, token=TOKEN, limits=limits)) as server:
        client = Client(Endpoint(f"ws://127.0.0.1:{server.port}/v1", TOKEN, "replay", "local"))
        try:
            yield client
        finally:
            await client.close()


async def until_done(stream: Stream) -> None:
    """Wait until the end has arrived, without reading."""
    async with asyncio.timeout(PATIENCE_S):
        while not stream.done:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)


async def read(stream: Stream) -> tuple[str, Finished | Failed]:
    """Read a stream to its end; returns the joined deltas and the end."""
    parts: list[str] = []
    end: Finished | Failed | None = None
    async with asyncio.timeout(PATIENCE_S):
        async for event in stream:
            assert end is None, "an event after the end"
            if isinstance(event, Delta):
                parts.append(event.text)
            elif isinstance(event, Finished | Failed):
                end = event
    assert end is not None
    return "".join(parts), end


async def test_ten_thousand_deltas_arrive_complete_and_in_order() -> None:
    text = "".join(f"{n}\n" for n in range(10_000))  # a number is one token, with its newline
    async with connected(ReplayModel(text, rate=40_000), limits=Limits(event_seconds=0)) as client:
        stream = await client.create(messages=[("user", "go")])
        got, end = await read(stream)
    assert got == text
    assert isinstance(end, Finished)
    assert (end.status, end.reason, end.text, end.kept) == ("completed", None, text, text)
    assert end.usage.output_tokens == 10_001
    assert client.dropped == 0


async def test_token_counts_of_the_deltas_add_up() -> None:
    async with connected(ReplayModel("word " * 500, rate=5000)) as client:
        stream = await client.create(messages=[("user", "go")])
        tokens = [event.tokens async for event in stream if isinstance(event, Delta)]
    assert sum(tokens) == 501


async def test_a_slow_reader_gets_joined_text_and_delays_nobody() -> None:
    async with connected(ReplayModel("word " * 2000, rate=20_000)) as client:
        stream = await client.create(messages=[("user", "go")])
        # The reader task drains the socket whatever the consumer does.
        await until_done(stream)
        events = [event async for event in stream]
    assert [type(event) for event in events] == [Started, Delta, Finished]


async def test_after_an_interrupt_no_text_is_delivered() -> None:
    async with connected(ReplayModel("word " * 100_000, rate=4000)) as client:
        for pause in (0.0, 0.002, 0.01, 0.05):
            stream = await client.create(messages=[("user", "go")])
            events = aiter(stream)
            assert isinstance(await anext(events), Started)
            first = await anext(events)
            assert isinstance(first, Delta)
            await asyncio.sleep(pause)
            await stream.interrupt()
            rest = [event async for event in events]
            assert len(rest) == 1, "late text was delivered"
            end = rest[0]
            assert isinstance(end, Finished)
            assert (end.status, end.reason) == ("incomplete", "interrupted")
            assert end.text == first.text
            assert end.usage.output_tokens > 0
            assert client.connected


async def test_an_interrupt_before_the_server_has_answered_holds() -> None:
    async with connected(ReplayModel("word " * 1000, rate=1000)) as client:
        stream = await client.create(messages=[("user", "go")])
        await stream.interrupt()
        await stream.interrupt()
        got, end = await read(stream)
    assert got == ""
    assert isinstance(end, Finished)
    assert end.reason == "interrupted"


async def test_an_interrupt_after_everything_arrived_still_delivers_nothing() -> None:
    async with connected(ReplayModel("word word")) as client:
        stream = await client.create(messages=[("user", "go")])
        await until_done(stream)
        await stream.interrupt()
        got, end = await read(stream)
    assert got == ""
    assert isinstance(end, Finished)
    assert (end.status, end.reason, end.text) == ("incomplete", "interrupted", "")


async def test_redirect_interrupts_and_goes_on_from_the_kept_text() -> None:
    seen: list[GenerateRequest] = []

    def script(request: GenerateRequest) -> str:
        seen.append(request)
        return "first line\n" * 1000 if len(seen) == 1 else "redirected"

    async with connected(ReplayModel(script, rate=2000)) as client:
        stream = await client.create(messages=[("user", "go")])
        events = aiter(stream)
        kept = ""
        while kept.count("\n") < 3:
            event = await anext(events)
            kept += event.text if isinstance(event, Delta) else ""
        await stream.interrupt()
        kept = kept[: kept.rindex("\n") + 1]
        following = await client.create(
            messages=[("user", "go"), ("assistant", kept), ("user", "other way")]
        )
        got, end = await read(following)
        assert isinstance((await read(stream))[1], Finished)
    assert got == "redirected"
    assert isinstance(end, Finished)
    assert [(m.role, m.text) for m in seen[1].messages] == [
        ("user", "go"),
        ("assistant", kept),
        ("user", "other way"),
    ]


async def test_an_interrupt_that_keeps_says_what_the_server_kept() -> None:
    seen: list[GenerateRequest] = []

    def script(request: GenerateRequest) -> str:
        seen.append(request)
        return "word " * 1000

    async with connected(ReplayModel(script, rate=500)) as client:
        stream = await client.create(messages=[("user", "go")])
        async for event in stream:
            if isinstance(event, Delta):
                await stream.interrupt(keep=True)
            if isinstance(event, Finished):
                break
        assert isinstance(event, Finished)
        assert event.kept.startswith(event.text)
        assert event.text
        following = await client.create(
            messages=[("user", "more")], previous_response_id=stream.id, max_output_tokens=1
        )
        await read(following)
    assert [m.text for m in seen[1].messages] == ["go", event.kept, "more"]


async def test_steering_goes_on_in_the_successor() -> None:
    def script(request: GenerateRequest) -> str:
        return "a line of words\n" * 200 if len(request.messages) == 1 else "successor"

    async with connected(ReplayModel(script, rate=500)) as client:
        stream = await client.create(messages=[("user", "go")])
        successor: Stream | None = None
        parts: list[str] = []
        async for event in stream:
            if isinstance(event, Delta):
                parts.append(event.text)
                successor = successor or await stream.steer("other way")
            if isinstance(event, Finished):
                assert (event.status, event.reason) == ("incomplete", "steered")
                assert event.text == event.kept == "".join(parts)
                assert event.text.endswith("\n")
        assert successor is not None
        got, end = await read(successor)
        assert got == "successor"
        assert isinstance(end, Finished)
        with pytest.raises(UnavailableError, match="has ended"):
            await stream.steer("too late")


async def test_a_failure_of_the_model_is_one_event_with_its_sentence() -> None:
    def script(request: GenerateRequest) -> str:
        raise UsageError("Mark a region first.")

    async with connected(ReplayModel(script)) as client:
        stream = await client.create(messages=[("user", "go")])
        _, end = await read(stream)
    assert end == Failed("invalid_prompt", "Mark a region first.")


async def test_requests_one_after_the_other_use_one_connection() -> None:
    async with connected(ReplayModel(lambda request: request.messages[-1].text)) as client:
        streams = [await client.create(messages=[("user", f"m{n}")]) for n in range(20)]
        results = [await read(stream) for stream in streams]
    assert [text for text, _ in results] == [f"m{n}" for n in range(20)]


async def test_the_input_of_a_custom_tool_arrives_like_text() -> None:
    tool = {"type": "custom", "name": "apply_patch"}
    async with connected(ReplayModel("*** Begin Patch\n*** End Patch\n")) as client:
        stream = await client.create(
            messages=[("user", "go")], tools=[tool], tool_choice="required", effort="low"
        )
        got, end = await read(stream)
    assert isinstance(end, Finished)
    assert got == end.kept == "*** Begin Patch\n*** End Patch\n"


async def test_a_conversation_goes_on_from_a_call_with_its_output_alone() -> None:
    seen: list[GenerateRequest] = []

    def patch(request: GenerateRequest) -> str:
        seen.append(request)
        return "*** Begin Patch\n*** End Patch\n"

    tool = {"type": "custom", "name": "apply_patch"}
    async with connected(ReplayModel(patch)) as client:
        first = await client.create(messages=[("user", "go")], tools=[tool], tool_choice="required")
        _, end = await read(first)
        assert isinstance(end, Finished)
        (call,) = end.output
        assert isinstance(call, ToolCall)
        assert (call.name, call.input) == ("apply_patch", end.text)
        messages = [("user", "go"), call, ToolOutput(call.call_id, "kept")]
        sent: list[dict[str, Any]] = []
        link = client._link  # pyright: ignore[reportPrivateUsage]
        assert link is not None
        send = link.send

        async def watched(frame: dict[str, Any]) -> None:
            sent.append(frame)
            await send(frame)

        link.send = watched  # type: ignore[method-assign]
        second = await client.create(messages=messages, tools=[tool], tool_choice="required")
        await read(second)
        with pytest.raises(ValueError, match=call.call_id):
            await client.create(messages=messages[:2])
    assert [item["type"] for item in sent[0]["input"]] == ["custom_tool_call_output"]
    assert sent[0]["previous_response_id"] == first.id
    assert [m.role for m in seen[1].messages] == ["user", "assistant", "tool"]
    assert seen[1].messages[2].text == "kept"


def test_a_long_output_of_a_tool_is_cut_in_the_middle() -> None:
    sent = wire_item(ToolOutput("c", "a" * MAX_OUTPUT + "b" * MAX_OUTPUT))["output"]
    assert sent.startswith("aaa")
    assert sent.endswith("bbb")
    assert "(cut)" in sent
    assert len(sent) < MAX_OUTPUT + 20


async def test_a_client_sees_that_its_response_waits() -> None:
    model = ReplayModel("word " * 40, rate=200)
    async with serve(create_app({"replay": model}, token=None)) as server:
        endpoint = Endpoint(f"ws://127.0.0.1:{server.port}/v1", None, "replay", "local")
        first, second = Client(endpoint), Client(endpoint)
        busy = await first.create(messages=[("user", "go")])
        async for event in busy:
            if isinstance(event, Delta):
                break
        waiting = await second.create(messages=[("user", "go")])
        ahead = [waiting.queue_ahead async for event in busy if not isinstance(event, Started)]
        _, end = await read(waiting)
        assert 1 in ahead
        assert isinstance(end, Finished)
        assert waiting.queue_ahead == 0
        await first.close()
        await second.close()


async def test_reading_ahead_lets_an_answer_go_on() -> None:
    async with connected(ReplayModel("word " * 400, rate=200)) as client:
        assert not client.reads_ahead
        stream = await client.create(messages=[("user", "go")])
        assert isinstance(await anext(aiter(stream)), Started)
        assert client.reads_ahead
        ahead = await client.read_ahead(messages=[("user", "go"), ("user", "on")])
        got, end = await read(ahead)
        assert (got, end.status if isinstance(end, Finished) else end) == ("", "completed")
        assert not stream.done
        got, end = await read(stream)
        assert got == "word " * 400
        assert isinstance(end, Finished)
        # The conversation goes on from the answer, not from the request that was read ahead.
        assert client.dropped == 0
        more = await client.create(messages=[("user", "go"), ("assistant", got), ("user", "on")])
        assert isinstance((await read(more))[1], Finished)


async def test_what_is_read_ahead_takes_the_place_of_what_was() -> None:
    async with connected(ReplayModel("", delay=0.3)) as client:
        await client.connect()
        first = await client.read_ahead(messages=[("user", "long")])
        await asyncio.sleep(0.05)
        second = await client.read_ahead(messages=[("user", "other")])
        _, end = await read(first)
        assert isinstance(end, Finished)
        assert end.reason == "interrupted"
        _, end = await read(second)
        assert isinstance(end, Finished)
        assert end.status == "completed"


async def test_what_is_read_ahead_ends_with_the_connection() -> None:
    async with connected(ReplayModel("", delay=5)) as client:
        await client.connect()
        ahead = await client.read_ahead(messages=[("user", "long")])
        await client.close()
        assert isinstance((await read(ahead))[1], Failed)
        assert not client.reads_ahead


async def test_closing_in_the_middle_of_a_flood_is_quick() -> None:
    limits = Limits(event_seconds=0)
    async with connected(ReplayModel("word " * 2_000_000, rate=20_000), limits=limits) as client:
        stream = await client.create(messages=[("user", "go")])
        assert isinstance(await anext(aiter(stream)), Started)
        await asyncio.sleep(0.05)
        began = time.perf_counter()
        await client.close()
        assert time.perf_counter() - began < 5, "the text lasts for 100 seconds, a handshake for 10"


async def test_closing_the_client_ends_its_streams() -> None:
    async with connected(ReplayModel("word " * 1000, rate=100)) as client:
        running = await client.create(messages=[("user", "go")])
        waiting = await client.create(messages=[("user", "go")])
        assert isinstance(await anext(aiter(running)), Started)
        await client.close()
        assert not client.connected
        for stream in (running, waiting):
            _, end = await read(stream)
            assert isinstance(end, Failed)
            assert end.code == "closed"
        with pytest.raises(UnavailableError):
            await client.create(messages=[("user", "go")])


@pytest.mark.parametrize(
    ("url", "token", "sentence"),
    [
        ("ws://127.0.0.1:9/v1", None, "cannot be reached: nothing listens there; start the server"),
        ("ws://127.0.0.1:PORT/v1", "wrong", "refused the key"),
        (
            "ws://127.0.0.1:PORT/v1",
            None,
            "wants a key, and none was sent.*ENDPOINT_TOKEN_ENV",
        ),
    ],
)
async def test_an_endpoint_that_cannot_be_used_is_one_sentence(
    url: str, token: str | None, sentence: str
) -> None:
    async with serve(create_app({"replay": ReplayModel("x")}, token=TOKEN)) as server:
        endpoint = Endpoint(url.replace("PORT", str(server.port)), token, "replay")
        client = Client(endpoint)
        with pytest.raises(UnavailableError, match=sentence) as caught:
            await client.connect()
        assert "\n" not in str(caught.value)
        await client.close()


@pytest.mark.parametrize("url", ["", "127.0.0.1:80", "ftp://x/v1", "ws://"])
async def test_an_address_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="not usable"):
        await Client(Endpoint(url, None, "m")).connect()


async def test_stopping_is_quick() -> None:
    """Not a benchmark: only that nothing waits for a timer or for the end of the text."""
    async with connected(ReplayModel("word " * 100_000, rate=1000)) as client:
        taken: list[float] = []
        there_and_back: list[float] = []
        for _ in range(5):
            asked = time.perf_counter()
            stream = await client.create(messages=[("user", "go")])
            async for event in stream:
                if isinstance(event, Started):
                    there_and_back.append(time.perf_counter() - asked)
                if isinstance(event, Delta) and not stream.interrupted:
                    began = time.perf_counter()
                    await stream.interrupt()
            taken.append(time.perf_counter() - began)
    assert min(taken) < 0.1 + 5 * min(there_and_back)
