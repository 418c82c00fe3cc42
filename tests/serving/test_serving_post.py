"""POST /v1/responses and /metrics."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from itertools import groupby
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI
from test_serving_sdk import validate

from midstream.engine.types import GenerateRequest
from midstream.errors import UserError
from midstream.serving.limits import Limits
from midstream.serving.replay import ReplayModel
from tests.helpers.waiting import PATIENCE_S
from tests.helpers.wire import TOKEN, eventually, peer, running

AUTH = {"Authorization": f"Bearer {TOKEN}"}


def client(port: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=AUTH, timeout=5)


async def test_events_are_the_same_as_on_the_socket() -> None:
    async with running("alpha beta") as port, client(port) as http, peer(port) as socket:
        answer = await http.post("/v1/responses", json={"input": "go", "stream": True})
        assert answer.headers["content-type"].startswith("text/event-stream")
        events: list[dict[str, Any]] = []
        for block in answer.text.removesuffix("\n\n").split("\n\n"):
            name, data = block.split("\n")
            events.append(json.loads(data.removeprefix("data: ")))
            assert name == f"event: {events[-1]['type']}"
        await socket.create()
        await socket.terminal()
    validate(events)
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    # Text of a few milliseconds is one event, so only the order of the events is the same.
    assert [k for k, _ in groupby(e["type"] for e in events)] == [
        k for k, _ in groupby(socket.types)
    ]


async def test_without_stream_the_response_comes_as_one_object() -> None:
    async with running("alpha beta") as port, client(port) as http:
        answer = (await http.post("/v1/responses", json={"input": "go"})).json()
    assert answer["object"] == "response"
    assert answer["output"][0]["content"][0]["text"] == "alpha beta"
    assert type(answer["created_at"]) is int


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"conversation": "conv_1"}, "conversation is not supported; continue with previous_resp"),
        ({"prompt": {"id": "pmpt_1"}}, "Stored prompts are not supported"),
        ({"truncation": "auto"}, "truncation 'auto' is not supported; shorten the input"),
    ],
)
async def test_what_would_change_the_answer_is_refused_and_not_ignored(
    fields: dict[str, Any], sentence: str
) -> None:
    async with running("alpha") as port, client(port) as http, peer(port) as socket:
        answer = await http.post("/v1/responses", json={"input": "go", **fields})
        error = answer.json()["error"]
        assert (answer.status_code, error["param"]) == (400, next(iter(fields)))
        assert sentence in error["message"]
        await socket.create(**fields)
        assert (await socket.until("error"))["error"] == error
        absent = dict.fromkeys(fields) | {"truncation": "disabled"}
        assert (await http.post("/v1/responses", json={"input": "x", **absent})).is_success


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b'{"input": 5}', 400, "invalid_value"),
        (b'{"input": "x", "model": "gpt"}', 404, "model_not_found"),
        (b'{"input": "x", "previous_response_id": "r"}', 400, "previous_response_not_found"),
        (b'{"input": "user"}', 400, "invalid_prompt"),
        (b'{"input": "bug"}', 500, "server_error"),
    ],
)
async def test_what_cannot_be_answered_is_an_http_error(
    body: bytes, status: int, code: str
) -> None:
    def trouble(request: GenerateRequest) -> str:
        if request.messages[-1].text == "user":
            raise UserError("Mark a region.")
        raise RuntimeError("bug")

    async with running(ReplayModel(trouble)) as port, client(port) as http:
        answer = await http.post("/v1/responses", content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("method", "path", "status", "sentence"),
    [
        ("POST", "/v1/chat/completions", 404, "nothing at /v1/chat/completions; this server has"),
        ("GET", "/v1/responses", 405, "/v1/responses does not take GET."),
    ],
)
async def test_other_places_and_methods_are_refused_in_words(
    method: str, path: str, status: int, sentence: str
) -> None:
    async with running("alpha") as port, client(port) as http:
        answer = await http.request(method, path)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]["message"]
    assert ("allow" in answer.headers) == (status == 405)


async def test_a_body_over_the_limit_is_refused() -> None:
    async with running(limits=Limits(message_bytes=1000)) as port, client(port) as http:
        answer = await http.post("/v1/responses", json={"input": "x" * 2000})
        body = json.dumps({"input": "x" * 2000}).encode()
        chunked = await http.post("/v1/responses", content=aiter_of(body[:900], body[900:]))
    for refused in (answer, chunked):
        assert refused.status_code == 413
        error = refused.json()["error"]
        assert (error["code"], error["type"]) == ("request_too_large", "invalid_request_error")
        assert "larger than 1,000 bytes" in error["message"]


async def aiter_of(*chunks: bytes) -> AsyncGenerator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_a_body_that_does_not_arrive_is_given_up() -> None:
    async with running(limits=Limits(body_seconds=0.1)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        writer.write(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        async with asyncio.timeout(PATIENCE_S):
            assert b"408" in await reader.readline()
        writer.close()


@pytest.mark.parametrize("stream", [True, False])
async def test_leaving_stops_the_generation(stream: bool) -> None:
    async with running("word " * 100_000, rate=500) as port, client(port) as http:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await http.post("/v1/responses", json={"input": "go", "stream": stream})

        async def idle() -> bool:
            return "midstream_generations 0" in (await http.get("/metrics")).text

        await eventually(idle)


async def test_stored_responses_continue_anywhere_and_others_nowhere() -> None:
    seen: list[GenerateRequest] = []

    def script(request: GenerateRequest) -> str:
        seen.append(request)
        return "answer"

    async with running(ReplayModel(script)) as port, client(port) as http, peer(port) as socket:
        first = (await http.post("/v1/responses", json={"input": "a"})).json()["id"]
        await socket.create("b", previous_response_id=first)
        second = (await socket.terminal())["response"]["id"]
        await socket.create("c", previous_response_id=second, store=False)
        third = (await socket.terminal())["response"]["id"]
        body = {"input": "d", "previous_response_id": second}
        assert (await http.post("/v1/responses", json=body)).status_code == 200
        assert [m.text for m in seen[-1].messages] == ["a", "answer", "b", "answer", "d"]
        body["previous_response_id"] = third
        assert (await http.post("/v1/responses", json=body)).status_code == 400
        async with peer(port) as other:
            await other.create("e", previous_response_id=third)
            error = await other.until("error")
            assert error["error"]["code"] == "previous_response_not_found"


async def test_only_text_that_is_drawn_anew_each_time_counts_as_prose() -> None:
    seen: list[GenerateRequest] = []

    def script(request: GenerateRequest) -> str:
        seen.append(request)
        return "answer"

    async with running(ReplayModel(script, facts={"prompt": "chat"})) as port, client(port) as http:
        for how in ({}, {"temperature": 0.3}, {"temperature": 0.3, "seed": 5}, {"temperature": 0}):
            assert (await http.post("/v1/responses", json={"input": "a", **how})).is_success
    assert [request.prose for request in seen] == [False, True, False, False]


async def test_the_sdk_creates_streamed_and_not() -> None:
    async with (
        running("alpha beta") as port,
        AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=TOKEN) as sdk,
    ):
        response = await sdk.responses.create(model="replay", input="go")
        assert response.output_text == "alpha beta"
        text = ""
        stream = await sdk.responses.create(model="replay", input="go", stream=True)
        async for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
        assert text == "alpha beta"
        with pytest.raises(openai.BadRequestError, match="not found"):
            await sdk.responses.create(model="replay", input="x", previous_response_id="no")


async def test_metrics_count_what_happened() -> None:
    async with running("alpha beta") as port, client(port) as http, peer(port) as socket:
        await socket.create()
        await socket.terminal()
        await socket.create(max_output_tokens=1)
        await socket.terminal()
        text = (await http.get("/metrics")).text
        assert (await http.get("/metrics", headers={"Authorization": "x"})).status_code == 401
    assert "midstream_connections 1\n" in text
    assert 'midstream_responses_total{status="completed",reason=""} 1\n' in text
    assert 'midstream_responses_total{status="incomplete",reason="max_output_tokens"} 1\n' in text
    assert 'midstream_tokens_total{kind="output"} 3\n' in text
    assert "midstream_first_text_seconds_count 2\n" in text
    assert 'midstream_first_text_seconds_bucket{le="+Inf"} 2\n' in text


ODD: list[Any] = [
    None, True, -3, 10**30, 0.5, "", "x", "a\x00b", [], {}, [None], [[]], [{}], ["x"], {"x": 1},
    {"type": None}, {"effort": 5}, {"format": {"type": 5}}, {"name": 5, "type": "function"},
    [{"type": "function", "name": None}], [{"type": "function", "name": "f", "parameters": 5}],
    {"type": "allowed_tools", "tools": [{}], "mode": 5}, {"midstream_tokens": 5},
    [{"type": "message", "role": ["user"], "content": "x"}],
    [{"type": "function_call", "call_id": 5, "name": 5, "arguments": "{"}],
]  # fmt: skip
FIELDS = (
    "input model instructions previous_response_id store generate stream max_output_tokens "
    "temperature top_p seed correction reasoning text tools tool_choice parallel_tool_calls "
    "truncation background metadata stream_id stream_options include conversation prompt type"
)


@pytest.mark.system
async def test_no_value_of_any_field_breaks_the_server() -> None:
    async with running("alpha beta") as port, client(port) as http:
        for name in FIELDS.split():
            for value in ODD:
                body = {"input": "go", "temperature": 1.0, name: value}
                answer = await http.post("/v1/responses", json=body)
                assert answer.status_code < 500, (name, value, answer.text)
                assert "server_error" not in answer.text, (name, value)
