"""Servers that refuse fields, stay silent, redirect, or are somewhere else: over the network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from midstream.responses import client as client_module
from midstream.responses import http_link
from midstream.responses.client import Client
from midstream.responses.conversation import ToolOutput
from midstream.responses.endpoint import Endpoint, Transport
from midstream.responses.events import Failed, Finished
from midstream.responses.stream import Stream
from tests.helpers.quirky import Asked, Quirky, Reply
from tests.helpers.reading import answer, chat_chunk, sse
from tests.helpers.waiting import PATIENCE_S

TEXT = "x = 1\n"
API = {"/v1/responses": "responses", "/v1/chat/completions": "chat", "/v1/messages": "messages"}
LOOKS = {"type": "custom", "name": "read_file", "description": "Read a file."}
WRITES = {"type": "custom", "name": "apply_patch", "description": "Edit."}


async def end_on_websocket(
    handler: Callable[[ServerConnection], Awaitable[None]],
) -> Finished | Failed:
    """How the answer of a server ends that speaks over a WebSocket only."""
    async with serve(handler, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = client_of(f"http://127.0.0.1:{port}/v1", "websocket")
        end = await end_of(await client.create(messages=[("user", "go")]))
        await client.close()
    return end


async def end_of(stream: Stream) -> Finished | Failed:
    async with asyncio.timeout(PATIENCE_S):
        async for event in stream:
            if isinstance(event, Finished | Failed):
                return event
    raise AssertionError("the stream did not end")


def answers(asked: Asked, word: str | None = None) -> Reply:
    return Reply(answer(API[asked.path], TEXT, word))


def refuses(status: int, message: str) -> Reply:
    return Reply([json.dumps({"error": {"message": message}}).encode()], status)


def client_of(url: str, transport: Transport = "auto", kind: Any = "custom") -> Client:
    return Client(Endpoint(url, None, "m", kind, transport))


def _has(field: str) -> Callable[[Asked], bool]:
    return lambda asked: field in asked.body


def _role(role: str) -> Callable[[Asked], bool]:
    return lambda asked: any(each["role"] == role for each in asked.body.get("messages", ()))


@pytest.mark.parametrize(
    ("transport", "kind", "refused", "status", "message"),
    [
        ("chat", "custom", _has("stream_options"), 422, "stream_options: Extra inputs"),
        ("chat", "custom", _has("stream"), 400, "Verify your organization to stream this model"),
        ("chat", "custom", _has("temperature"), 400, "'temperature' does not support 0.5"),
        ("chat", "custom", _role("system"), 400, "System role not supported"),
        ("chat", "custom", _role("system"), 500, "Only user and assistant roles are supported!"),
        ("chat", "openai", _role("developer"), 400, "developer is not one of ['system', 'user']"),
        ("chat", "custom", _has("max_tokens"), 400, "'max_tokens' is not supported here"),
        ("chat", "openai", _has("max_completion_tokens"), 422, "max_completion_tokens: unknown"),
        ("chat", "custom", _has("reasoning_effort"), 400, "Unrecognized: reasoning_effort"),
        ("sse", "custom", _has("store"), 400, "Unknown parameter: 'store'"),
        ("sse", "custom", _has("instructions"), 400, "This template takes no system message"),
        ("messages", "custom", _has("system"), 400, "system prompt is not supported"),
        ("messages", "anthropic", _has("cache_control"), 400, "cache_control: Extra inputs"),
        ("messages", "custom", _has("output_config"), 400, "output_config: Extra inputs"),
    ],
)  # fmt: skip
async def test_what_a_server_refuses_is_left_out_and_remembered(
    transport: Transport, kind: Any, refused: Callable[[Asked], bool], status: int, message: str
) -> None:
    server = Quirky(lambda asked: refuses(status, message) if refused(asked) else answers(asked))
    async with server.running() as url:
        client = client_of(url, transport, kind)
        for _ in range(2):
            stream = await client.create(
                messages=[("user", "go")], instructions="Be short.", temperature=0.5,
                max_output_tokens=90, effort="high",
            )  # fmt: skip
            end = await end_of(stream)
            assert isinstance(end, Finished), end
            assert (end.status, end.text) == ("completed", TEXT)
        assert "requests do without." in client.remark
        await client.close()
    assert len(server.asked) == 3, "what was found out is remembered"
    body = json.dumps(server.asked[-1].body)
    assert "Be short." in body
    assert "go" in body


@pytest.mark.parametrize(
    ("message", "most"),
    [
        ("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens", 8192),
        ("max_tokens is too large: 32000. This model supports at most 4096 tokens", 4096),
        ("This model's maximum context length is 4096 tokens. However, you requested 33000 tokens "
         "(1000 in the messages, 32000 in the completion).", 3096),
    ],
)  # fmt: skip
async def test_a_limit_that_is_too_high_is_lowered_to_what_the_server_says(
    message: str, most: int
) -> None:
    def reply(asked: Asked) -> Reply:
        return refuses(400, message) if asked.body["max_tokens"] > most else answers(asked)

    server = Quirky(reply)
    async with server.running() as url:
        client = client_of(url, "messages")
        for _ in range(2):
            end = await end_of(await client.create(messages=[("user", "go")]))
            assert isinstance(end, Finished), end
        await client.close()
    assert [asked.body["max_tokens"] for asked in server.asked] == [32000, most, most]


async def test_what_a_server_adds_to_a_call_of_a_tool_is_sent_back_with_it() -> None:
    note = {"google": {"thought_signature": "SIG"}}
    call = {"id": "c1", "function": {"name": "read_file", "arguments": '{"input": "a"}'}}
    chunks = [chat_chunk(tool_calls=[{**call, "extra_content": note}]), chat_chunk(finish="stop")]
    server = Quirky(lambda asked: Reply([*map(sse, chunks)]))
    async with server.running() as url:
        client = client_of(url, "chat")
        end = await end_of(await client.create(messages=[("user", "go")], tools=[LOOKS]))
        assert isinstance(end, Finished)
        said = (("user", "go"), *end.output, ToolOutput("c1", "text"))
        await end_of(await client.create(messages=said, tools=[LOOKS]))
        await client.close()
    [called] = [each for each in server.asked[-1].body["messages"] if "tool_calls" in each]
    assert called["tool_calls"][0]["extra_content"] == note


@pytest.mark.parametrize("transport", ["chat", "messages"])
async def test_a_field_of_tools_is_left_out(transport: Transport) -> None:
    def reply(asked: Asked) -> Reply:
        message = "tools.0.custom.eager_input_streaming: Extra inputs are not permitted"
        return refuses(400, message) if "eager_input" in json.dumps(asked.body) else answers(asked)

    server = Quirky(reply)
    async with server.running() as url:
        client = client_of(url, transport)
        end = await end_of(await client.create(messages=[("user", "go")], tools=[WRITES]))
        await client.close()
    assert isinstance(end, Finished), end
    assert server.asked[-1].body["tools"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, '"auto" tool choice requires --enable-auto-tool-choice'),
        (400, "registry.ollama.ai/library/gemma2:latest does not support tools"),
        (404, "No endpoints found that support tool use."),
        (501, "Function calling is not implemented."),
    ],
)
@pytest.mark.parametrize("transport", ["chat", "messages", "sse"])
async def test_optional_tools_are_left_out_where_a_server_takes_none(
    transport: Transport, status: int, message: str
) -> None:
    def reply(asked: Asked) -> Reply:
        return refuses(status, message) if "tools" in asked.body else answers(asked)

    server = Quirky(reply)
    async with server.running() as url:
        client = client_of(url, transport)
        for _ in range(2):
            stream = await client.create(
                messages=[("user", "go")], instructions="Be short.", optional_tools=[LOOKS],
                optional_instructions=" You may look.",
            )  # fmt: skip
            end = await end_of(stream)
            assert isinstance(end, Finished), end
        assert client.remark.endswith("takes no tools, so the model cannot look at files.")
        needs = await client.create(messages=[("user", "go")], tools=[WRITES])
        assert isinstance(refused := await end_of(needs), Failed)
        await client.close()
    assert message in refused.message
    bodies = [json.dumps(asked.body) for asked in server.asked]
    assert ["You may look." in body for body in bodies] == [True, False, False, False]


async def test_a_refusal_that_nothing_helps_is_told_and_concedes_nothing() -> None:
    server = Quirky(lambda asked: refuses(400, "max_tokens and temperature are the wrong way"))
    async with server.running() as url:
        client = client_of(url, "chat")
        stream = await client.create(
            messages=[("user", "go")], temperature=0.5, max_output_tokens=9
        )
        end = await end_of(stream)
        tried = len(server.asked)
        await end_of(await client.create(messages=[("user", "go")], temperature=0.5))
        await client.close()
    assert isinstance(end, Failed)
    assert '(HTTP 400: "max_tokens and temperature are the wrong way").' in end.message
    assert "temperature" in server.asked[tried].body


# Time


@pytest.mark.parametrize("transport", ["auto", "chat"])
async def test_a_server_that_loads_its_model_is_waited_for(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_link, "_LOADING_PAUSE_S", 0.01)
    loads = iter([True] * 8)
    server = Quirky(
        lambda asked: refuses(503, "Loading model") if next(loads, False) else answers(asked)
    )
    async with server.running() as url:
        client = client_of(url, transport)
        end = await end_of(await client.create(messages=[("user", "go")]))
        await client.close()
    assert isinstance(end, Finished), end
    assert end.text == TEXT


async def test_a_server_that_loads_its_model_forever_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_link, "_LOADING_PAUSE_S", 0.01)
    monkeypatch.setattr(http_link, "_SILENCE_S", 1.0)
    monkeypatch.setattr(http_link, "_FIRST_PAUSE_SECONDS", 0.01)
    async with Quirky(lambda asked: refuses(503, "Loading model")).running() as url:
        client = client_of(url, "chat")
        end = await end_of(await client.create(messages=[("user", "go")]))
        await client.close()
    assert isinstance(end, Failed)
    assert "Loading model" in end.message


@pytest.mark.parametrize("closes", ["a word", "the last event"])
@pytest.mark.parametrize("transport", ["chat", "messages"])
async def test_an_answer_that_is_never_closed_is_complete(
    transport: Transport, closes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_link, "_COUNTS_S", 0.05)
    monkeypatch.setattr(http_link, "_DRAIN_S", 0.05)

    def reply(asked: Asked) -> Reply:
        chunks = answer(API[asked.path], TEXT, closes=closes == "the last event")
        return Reply(chunks, closes=False, beats=True)

    async with Quirky(reply).running() as url:
        client = client_of(url, transport)
        for _ in range(2):
            end = await end_of(await client.create(messages=[("user", "go")]))
            assert isinstance(end, Finished)
            assert (end.status, end.text) == ("completed", TEXT)
        await client.close()


@pytest.mark.parametrize("beats", [True, False])
@pytest.mark.parametrize("begun", [True, False])
async def test_a_server_that_falls_silent_is_given_up(
    beats: bool, begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_SILENCE_S", "_HEARTBEATS_S", "_STALL_S"):
        monkeypatch.setattr(http_link, name, 0.2)
    chunks = answer("chat", TEXT, "", closes=False) if begun else []
    server = Quirky(lambda asked: Reply(chunks, closes=False, beats=beats))
    async with server.running() as url:
        client = client_of(url, "chat")
        end = await end_of(await client.create(messages=[("user", "go")]))
        assert isinstance(end, Failed)
        assert "silent for" in end.message
        server.reply = answers
        assert isinstance(await end_of(await client.create(messages=[("user", "go")])), Finished)
        await client.close()


async def test_an_upgrade_that_is_never_answered_means_try_post(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_module, "_UPGRADE_S", 0.2)
    async with Quirky(answers, upgrade=None).running() as url:
        client = client_of(url)
        assert isinstance(await end_of(await client.create(messages=[("user", "go")])), Finished)
        assert client.transport == "sse"
        await client.close()


async def test_a_websocket_that_says_nothing_means_try_post(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_module, "_MUTE_S", 0.2)
    posts = Quirky(answers)

    async def mute(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with posts.running("") as http, serve(mute, "127.0.0.1", 0) as sockets:
        port = sockets.sockets[0].getsockname()[1]

        async def route(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            upgrade = b"upgrade: websocket" in head.lower()
            to = port if upgrade else int(http.rpartition(":")[2])
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", to)
            up_writer.write(head)

            async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
                while data := await source.read(65_536):
                    sink.write(data)
                sink.close()

            await asyncio.gather(copy(reader, up_writer), copy(up_reader, writer))

        async with await asyncio.start_server(route, "127.0.0.1", 0) as server:
            client = client_of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
            end = await end_of(await client.create(messages=[("user", "go")]))
            assert isinstance(end, Finished)
            assert client.transport == "sse"
            await client.close()


async def test_a_websocket_that_falls_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_SILENCE_S", 0.2)

    async def begin(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(json.dumps({"type": "response.created", "response": {"id": "r"}}))
        await socket.wait_closed()

    end = await end_on_websocket(begin)
    assert isinstance(end, Failed)
    assert end.message == "The model server at 127.0.0.1 was silent for 0 s."


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "code": "server_error", "message": "No memory."},
        {"type": "error", "error": {"message": "No memory."}},
        {"type": "error", "status": 500, "error": {"message": "No memory."}},
        {"type": "response.failed", "response": {"id": "r", "error": {"message": "No memory."}}},
    ],
)
@pytest.mark.parametrize("begun", [True, False])
async def test_an_error_on_a_websocket_ends_the_answer(error: dict[str, Any], begun: bool) -> None:
    if not begun and error["type"] != "error":
        return

    async def fail(socket: ServerConnection) -> None:
        await socket.recv()
        created = {"type": "response.created", "response": {"id": "r"}}
        for event in (created, error) if begun else (error,):
            await socket.send(json.dumps(event))
        await socket.wait_closed()

    end = await end_on_websocket(fail)
    assert isinstance(end, Failed)
    assert "No memory." in end.message


@pytest.mark.parametrize("created", [True, False])
async def test_a_last_event_with_another_id_or_without_a_first_one_ends_the_answer(
    created: bool,
) -> None:
    async def say(socket: ServerConnection) -> None:
        await socket.recv()
        if created:
            await socket.send(json.dumps({"type": "response.created", "response": {"id": 5}}))
        item = {"id": "i", "type": "message", "content": [{"type": "output_text", "text": TEXT}]}
        response = {"id": "r", "status": "completed", "output": [item]}
        await socket.send(json.dumps({"type": "response.completed", "response": response}))
        await socket.wait_closed()

    end = await end_on_websocket(say)
    assert isinstance(end, Finished), end
    assert (end.status, end.text) == ("completed", TEXT)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"type": "response.completed", "response": None}, None),
        ({"type": "response.completed", "response": {"status": "completed"}}, None),
        ({"type": "response.cancelled", "response": {"id": "r", "status": "cancelled"}},
         "the server cancelled it"),
    ],
)  # fmt: skip
async def test_the_end_of_an_answer_on_a_websocket(event: Any, reason: str | None) -> None:
    async def say(socket: ServerConnection) -> None:
        await socket.recv()
        item = {"id": "i", "type": "message"}
        for said in (
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.added", "item": item},
            {"type": "response.output_text.delta", "item_id": "i", "delta": TEXT},
            event,
        ):
            await socket.send(json.dumps(said))
        await socket.wait_closed()

    end = await end_on_websocket(say)
    assert isinstance(end, Finished)
    assert (end.text, end.reason) == (TEXT, reason)


# Addresses


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("", "/v1/chat/completions"), ("/", "/v1/chat/completions"),
        ("/v1/v1", "/v1/chat/completions"), ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/chat/completions/", "/v1/chat/completions"), ("/v1/models", "/v1/chat/completions"),
        ("/v1", "/chat/completions"), ("/api/v1", "/api/v1/chat/completions"),
    ],
)  # fmt: skip
async def test_an_address_is_found_where_it_is_meant(path: str, where: str) -> None:
    def reply(asked: Asked) -> Reply:
        if asked.path != where:
            return Reply([b'{"detail":"Not Found"}'], 404)
        return Reply(answer("chat", TEXT))

    async with Quirky(reply).running(path) as url:
        client = client_of(url)
        for _ in range(2):
            end = await end_of(await client.create(messages=[("user", "go")]))
            assert isinstance(end, Finished)
        await client.close()


def test_a_pasted_address_of_one_api_asks_for_that_first() -> None:
    endpoint = Endpoint("https://h/v1/chat/completions?api-version=3", None, "m")
    assert endpoint.apis == ("chat", "responses", "messages")
    assert not endpoint.tries_websocket
    assert endpoint.http_url == "https://h/v1?api-version=3"
    assert Endpoint("https://h/v1/responses", None, "m").tries_websocket


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_on_the_same_host_is_followed(status: int) -> None:
    def reply(asked: Asked) -> Reply:
        if asked.path.startswith("/v1"):
            return Reply([], status, ["location: /v2/chat/completions"])
        return Reply(answer("chat", TEXT))

    server = Quirky(reply)
    async with server.running() as url:
        client = client_of(url, "chat")
        for _ in range(2):
            assert isinstance(
                await end_of(await client.create(messages=[("user", "go")])), Finished
            )
        await client.close()
    assert [asked.path[:3] for asked in server.asked] == ["/v1", "/v2", "/v2"]
    assert server.asked[0].body == server.asked[1].body


async def failure_of(server: Quirky) -> str:
    """The text of the failure that a request to a server ends with."""
    async with server.running() as url:
        client = client_of(url, "chat")
        end = await end_of(await client.create(messages=[("user", "go")]))
        await client.close()
    assert isinstance(end, Failed)
    return end.message


async def test_redirects_that_do_not_end_are_given_up() -> None:
    server = Quirky(lambda asked: Reply([], 307, [f"location: {asked.path}?again"]))
    assert "(HTTP 307)" in await failure_of(server)


async def test_a_redirect_to_another_host_is_named() -> None:
    server = Quirky(lambda asked: Reply([], 307, ["location: https://other.example/v1"]))
    said = await failure_of(server)
    assert "redirects to https://other.example/v1 (HTTP 307)" in said
    assert len(server.asked) == 1


# Sentences


@pytest.mark.parametrize(
    ("status", "body", "sentence", "requests"),
    [
        (200, b"<!DOCTYPE html><title>Log in</title>", 'a web page (HTTP 200: "Log in"); check', 1),
        (403, b"error code: 1010", 'HTTP 403: "error code: 1010"); a firewall or a proxy', 1),
        (404, b'{"error":{"code":"DeploymentNotFound","message":"no such deployment"}}',
         '(HTTP 404: "no such deployment"); check the model\'s name (m).', 1),
        (429, b'{"error":{"code":"insufficient_quota","message":"It is used up."}}',
         '"It is used up."); check the plan and the billing', 1),
        (429, b'[{"error":{"message":"Quota. Please retry in 55.57s."}}]', "Try again in 56 s.", 1),
        (413, b'{"error": {"message": "{\\"error\\": {\\"message\\": \\"Too large.\\"}}"}}',
         '(HTTP 413: "Too large.").', 1),
    ],
)  # fmt: skip
async def test_a_refusal_names_status_address_words_and_way_out(
    status: int, body: bytes, sentence: str, requests: int
) -> None:
    server = Quirky(lambda asked: Reply([body], status))
    async with server.running() as url:
        client = client_of(url, "chat")
        end = await end_of(await client.create(messages=[("user", "go")]))
        await client.close()
    assert isinstance(end, Failed)
    assert sentence in end.message
    assert f"({url})" in end.message
    assert len(server.asked) == requests
