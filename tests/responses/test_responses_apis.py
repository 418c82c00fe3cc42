"""The same client over three APIs: stops, redirects, tools, reasoning, faults."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from midstream.responses import http_link
from midstream.responses.client import Client
from midstream.responses.conversation import ToolCall, ToolOutput
from midstream.responses.dialect import DIALECTS, EndpointKind
from midstream.responses.endpoint import Endpoint, Transport
from midstream.responses.events import Delta, Failed, Finished, TokenUsage
from midstream.responses.stream import Stream
from midstream.responses.tool_arguments import ArgumentReader, as_arguments
from tests.helpers.scripted_endpoint import expected
from tests.helpers.scripted_http import HttpFaults, ScriptedHttp
from tests.helpers.waiting import PATIENCE_S

TRANSPORTS: tuple[Transport, ...] = ("sse", "chat", "messages")
PATCH = {"type": "custom", "name": "apply_patch", "description": "Edit files."}


async def read(stream: Stream, stop_at: int | None = None) -> tuple[str, Finished | Failed]:
    """Read to the end; stop once so many characters have come."""
    text, end = "", None
    async with asyncio.timeout(PATIENCE_S):
        async for event in stream:
            assert end is None, "an event after the end"
            if isinstance(event, Delta):
                assert not stream.interrupted, "text after the stop"
                text += event.text
                if stop_at is not None and len(text) >= stop_at:
                    await stream.interrupt()
            elif isinstance(event, Finished | Failed):
                end = event
    assert end is not None
    return text, end


def endpoint(
    url: str, transport: Transport = "auto", kind: EndpointKind = "custom", model: str = "m"
) -> Endpoint:
    return Endpoint(url, "secret-key", model, kind, transport)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_answer_and_what_it_took(transport: Transport) -> None:
    server = ScriptedHttp()
    async with server.running() as url:
        client = Client(endpoint(url, transport))
        text, end = await read(
            await client.create(
                messages=[("user", "a")], instructions="Be short.", max_output_tokens=90
            )
        )
        assert client.transport == transport
        await client.close()
    assert text == expected([("user", "a")])
    assert isinstance(end, Finished)
    assert (end.status, end.kept, end.output) == ("completed", text, (("assistant", text),))
    assert end.usage == TokenUsage(input_tokens=9, cached_tokens=4, output_tokens=40)
    if transport == "chat":
        times = {"midstream.prefill_ms": "1.000", "midstream.decode_ms": "20.000"}
        assert end.metadata == times
    body = server.bodies[0]
    told = {
        "sse": ("instructions", "max_output_tokens"),
        "chat": ("messages", "max_tokens"),
        "messages": ("system", "max_tokens"),
    }[transport]
    assert body[told[1]] == 90
    said = body[told[0]][0]["content"] if transport == "chat" else body[told[0]]
    assert said == "Be short."


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_stop_leaves_the_request_and_a_redirect_goes_on_from_the_text(
    transport: Transport,
) -> None:
    server = ScriptedHttp(length=4_000, pause=0.001)
    async with server.running() as url:
        client = Client(endpoint(url, transport))
        first = [("user", "a")]
        text, end = await read(await client.create(messages=first), stop_at=100)
        assert isinstance(end, Finished)
        assert (end.status, end.reason) == ("incomplete", "interrupted")
        assert expected(first, 4_000).startswith(text)
        async with asyncio.timeout(PATIENCE_S):
            await server.left.wait()
        assert server.written < 2_000, "the server goes on writing for nobody"
        server.length = 40
        more = [*first, ("assistant", text), ("user", "shorter")]
        text, end = await read(await client.create(messages=more))
        assert isinstance(end, Finished)
        assert text == expected(more)
        await client.close()


@pytest.mark.parametrize(("transport", "kind"), [("chat", "custom"), ("chat", "openai"),
                                                 ("messages", "anthropic")])  # fmt: skip
async def test_a_custom_tool_streams_its_input(transport: Transport, kind: EndpointKind) -> None:
    server = ScriptedHttp()
    async with server.running() as url:
        client = Client(endpoint(url, transport, kind))
        text, end = await read(
            await client.create(
                messages=[("user", "a")],
                tools=[PATCH],
                tool_choice={"type": "custom", "name": "apply_patch"},
            )
        )
        assert isinstance(end, Finished)
        assert text == expected([("user", "a")])
        (call,) = end.output
        assert isinstance(call, ToolCall)
        assert (call.name, call.input) == ("apply_patch", text)
        await read(
            await client.create(
                messages=[("user", "a"), call, ToolOutput(call.call_id, "Done."), ("user", "b")],
                instructions="x",
            )
        )
        await client.close()
    sent = server.bodies[1]["messages"]
    assert [m["role"] for m in sent][-3:] == (
        ["user", "assistant", "user"] if transport == "messages" else ["assistant", "tool", "user"]
    )
    assert text[:20] in str(sent).replace("\\\\", "\\")


@pytest.mark.parametrize(("transport", "reasoning"), [
    ("chat", "reasoning"), ("chat", "reasoning_content"), ("chat", "think"), ("messages", "yes"),
])  # fmt: skip
async def test_reasoning_is_no_part_of_the_answer(transport: Transport, reasoning: str) -> None:
    async with ScriptedHttp(reasoning=reasoning).running() as url:
        client = Client(endpoint(url, transport))
        stream = await client.create(messages=[("user", "a")])
        text, end = await read(stream)
        await client.close()
    assert isinstance(end, Finished)
    assert text == expected([("user", "a")])
    assert stream.reasons


def test_arguments_are_read_wherever_they_are_cut() -> None:
    text = 'a "quoted" \\ line\n\té \U0001f600 </x> \u2028'
    for written in (as_arguments(text), f'{{ "input" : {as_arguments(text)[10:-1]} }}'):
        escapes = written.replace("\U0001f600", "\\ud83d\\ude00").replace("é", "\\u00e9")
        for escaped in (written, escapes):
            for size in range(1, len(escaped) + 1):
                reader = ArgumentReader()
                cut = [escaped[at : at + size] for at in range(0, len(escaped), size)]
                assert "".join(map(reader.feed, cut)) + reader.end() == text


@pytest.mark.parametrize(("written", "text"), [
    ('{"patch": "x"}', "x"), ("not json", "not json"), ('{"input": ""}', ""),
])  # fmt: skip
def test_other_arguments_are_told_at_the_end(written: str, text: str) -> None:
    reader = ArgumentReader()
    assert reader.feed(written) + reader.end() == text


@pytest.mark.parametrize(
    ("apis", "transport", "remark"),
    [
        (("responses", "chat"), "sse", ""),
        (("chat",), "chat", "127.0.0.1 has no Responses API; its Chat Completions API is used."),
        (
            ("messages",),
            "messages",
            "127.0.0.1 has no Responses or Chat Completions API; its Messages API is used.",
        ),
    ],
)
async def test_the_api_is_found_by_asking(
    apis: tuple[str, ...], transport: Transport, remark: str
) -> None:
    server = ScriptedHttp(apis)
    async with server.running() as url:
        client = Client(endpoint(url))
        for _ in range(2):
            text, _ = await read(await client.create(messages=[("user", "a")]))
            assert text == expected([("user", "a")])
        assert (client.transport, client.remark) == (transport, remark)
        await client.close()
    assert len(server.refused) == 1 + TRANSPORTS.index(transport), "what was found is remembered"


@pytest.mark.parametrize("kind", [kind for kind in DIALECTS if kind != "local"])
async def test_every_kind_speaks_one_of_its_apis(kind: EndpointKind) -> None:
    dialect = DIALECTS[kind]
    server = ScriptedHttp(apis=dialect.apis[-1:])
    async with server.running() as url:
        client = Client(endpoint(url, "auto", kind))
        text, end = await read(
            await client.create(
                messages=[("user", "a")],
                effort=dialect.efforts[-1] if dialect.efforts else None,
                max_output_tokens=7,
            )
        )
        await client.close()
    assert isinstance(end, Finished)
    assert text == expected([("user", "a")])
    body, head = server.bodies[-1], server.heads[-1].lower()
    key = "x-api-key: secret-key" if kind == "anthropic" else "authorization: bearer secret-key"
    assert key in head
    assert ("authorization" in head) is (kind != "anthropic")
    if "chat" in dialect.apis[-1:]:
        assert body[dialect.chat.limit] == 7
        assert ("stream_options" in body) is dialect.chat.usage


async def test_a_server_that_asks_for_time_gets_it() -> None:
    server = ScriptedHttp(faults=HttpFaults(too_many=1.0), retry_after="0.01")
    async with server.running() as url:
        client = Client(endpoint(url, "chat"))
        stream = await client.create(messages=[("user", "a")])
        async with asyncio.timeout(PATIENCE_S):
            await server.refusing.wait()
        server.faults = HttpFaults()
        text, _ = await read(stream)
        assert text == expected([("user", "a")])
        server.faults, server.retry_after = HttpFaults(too_many=1.0), "900"
        server.refused.clear()
        _, end = await read(await client.create(messages=[("user", "a")]))
        await client.close()
    assert isinstance(end, Failed)
    assert end.message.endswith('too many requests (HTTP 429: "Slow down."). Try again in 900 s.')
    assert server.refused == [429], "a long pause is left to the user"


@pytest.mark.parametrize("never", ["inf", "1e400", "Fri, 31 Dec 9999 23:59:59 -1200"])
async def test_a_pause_that_never_ends_is_none(never: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_link, "_FIRST_PAUSE_SECONDS", 0.0)
    server = ScriptedHttp(faults=HttpFaults(too_many=1.0), retry_after=never)
    async with server.running() as url:
        client = Client(endpoint(url, "chat"))
        async with asyncio.timeout(PATIENCE_S):
            _, end = await read(await client.create(messages=[("user", "a")]))
        await client.close()
    assert isinstance(end, Failed)
    assert "too many requests" in end.message
    assert "Try again in" not in end.message


async def test_a_pause_can_be_stopped() -> None:
    server = ScriptedHttp(faults=HttpFaults(too_many=1.0), retry_after="29")
    async with server.running() as url:
        client = Client(endpoint(url, "chat"))
        stream = await client.create(messages=[("user", "a")])
        async with asyncio.timeout(PATIENCE_S):
            await server.refusing.wait()
        await stream.interrupt()
        text, end = await read(stream)
        await client.close()
    assert isinstance(end, Finished)
    assert (text, end.reason) == ("", "interrupted")
    assert server.refused == [429]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    "faults", [24, pytest.param(1_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
async def test_faults_neither_lose_nor_double_text(
    transport: Transport, faults: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever breaks: complete means complete, and else there is a beginning of the answer."""
    monkeypatch.setattr(http_link, "_FIRST_PAUSE_SECONDS", 0.0)
    server = ScriptedHttp(faults=HttpFaults.all(0.08), random=random.Random(faults))
    ends: dict[str, int] = {}
    async with server.running() as url:
        client = Client(endpoint(url, transport))
        messages: list[Any] = []
        for turn in range(100 * faults):
            if server.happened >= faults:
                break
            messages = [*messages[-6:], ("user", f"turn {turn}")]
            whole = expected(messages)
            stop_at = server.random.randrange(1, len(whole)) if turn % 5 == 4 else None
            text, end = await read(await client.create(messages=messages), stop_at)
            if isinstance(end, Finished) and end.status == "completed":
                assert text == whole
                assert end.kept == whole
            else:
                assert whole.startswith(text)
                assert isinstance(end, Failed) or end.reason == "interrupted"
            said = end.code if isinstance(end, Failed) else end.reason or end.status
            ends[said] = ends.get(said, 0) + 1
            # Without an answer between them, two instructions would be one message.
            messages = [*messages, ("assistant", text)] if text else messages[:-1]
        await client.close()
    assert server.happened >= faults
    assert {"completed", "connection_lost", "interrupted"} <= ends.keys(), ends
