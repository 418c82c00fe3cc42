"""Lists of models: the form of each kind of endpoint, and servers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest

from midstream.errors import UnavailableError
from midstream.responses import http
from midstream.responses.catalogue import ListedModel, list_models, read_list
from midstream.responses.connection import UpgradeRefusedError, WebSocketLink
from midstream.responses.dialect import EndpointKind
from midstream.responses.endpoint import Endpoint
from midstream.responses.profiles import Price
from midstream.serving.app import create_app
from midstream.serving.replay import ReplayModel
from midstream.serving.running import serve
from tests.helpers.waiting import PATIENCE_S

Answer = Callable[[asyncio.StreamWriter, str], None]


@asynccontextmanager
async def answering(write: Answer) -> AsyncGenerator[tuple[Endpoint, list[str]]]:
    """A server that answers by ``write``; yields it and the heads of requests."""
    heads: list[str] = []

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        write(writer, heads[-1])
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Endpoint(f"http://127.0.0.1:{port}/v1", "secret-key", "any"), heads
    finally:
        server.close()


def body(value: object, status: str = "200 OK") -> Answer:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    return lambda writer, _: writer.write(head.encode() + data)


@pytest.mark.parametrize(
    ("entry", "model"),
    [
        (
            {"id": "gpt-x", "object": "model", "owned_by": "openai"},
            ListedModel("gpt-x", owner="openai"),
        ),
        (
            {"id": "qwen", "max_model_len": 32768, "owned_by": "vllm"},
            ListedModel("qwen", 32768, owner="vllm"),
        ),
        ({"id": "gg", "meta": {"n_ctx_train": 4096}}, ListedModel("gg", 4096)),
        ({"id": "small", "metadata": {"context_length": "2048"}}, ListedModel("small", 2048)),
        (
            {
                "id": "lab/deep",
                "context_length": 400000,
                "pricing": {
                    "prompt": "0.00000125",
                    "completion": "0.00001",
                    "input_cache_read": "0.000000125",
                },
            },
            ListedModel("lab/deep", 400000, Price(1.25, 10.0, 0.125)),
        ),
        (
            {"id": "odd", "context_length": -1, "pricing": {"prompt": "free"}, "owned_by": 5},
            ListedModel("odd"),
        ),
        ({"id": "true", "context_length": True}, ListedModel("true")),
    ],
)
def test_every_servers_fields_are_read(entry: dict[str, object], model: ListedModel) -> None:
    assert read_list({"object": "list", "data": [entry]}) == (model,)
    assert read_list({"models": [entry]}) == (model,)


def test_what_writes_no_text_or_has_no_name_is_left_out() -> None:
    names = ["text-embedding-3", "whisper-1", "tts-1", "dall-e-3", "omni-moderation", "b", "a", "a"]
    entries = [{"id": name} for name in names]
    bad = [{"id": "\x1b[31mred"}, {"id": 5}, {"id": ""}, {"id": "x" * 300}, "text", None, {}]
    assert [m.id for m in read_list([*entries, *bad]) or ()] == ["a", "b"]
    assert read_list({"error": "no"}) is None
    assert read_list(7) is None


async def test_our_own_server_tells_its_context() -> None:
    app = create_app({"replay": ReplayModel("x")}, token="secret-key")
    async with serve(app) as server:
        endpoint = Endpoint(f"ws://127.0.0.1:{server.port}/v1", "secret-key", "any", "local")
        (model,) = await asyncio.to_thread(list_models, endpoint)
        assert (model.id, model.context, model.owner) == ("replay", 1_000_000, "midstream")
        wrong = Endpoint(endpoint.url, "wrong", "any", "local")
        with pytest.raises(UnavailableError, match=r"refused the key \(HTTP 401\); check it"):
            await asyncio.to_thread(list_models, wrong)


async def test_the_key_goes_along_and_to_nobody_else() -> None:
    async with answering(body({"data": []})) as (other, stolen):
        away = (
            f"HTTP/1.1 302 Found\r\nLocation: {other.http_url}/models\r\nContent-Length: 0\r\n\r\n"
        )
        async with answering(lambda w, _: w.write(away.encode())) as (endpoint, heads):
            with pytest.raises(UnavailableError, match="HTTP 302"):
                await asyncio.to_thread(list_models, endpoint)
        assert "Authorization: Bearer secret-key" in heads[0]
        assert heads[0].startswith("GET /v1/models HTTP/1.1")
        assert not stolen


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_no_redirect_takes_a_websocket_to_another_host(kind: EndpointKind) -> None:
    async with answering(lambda w, _: w.close()) as (other, asked):
        away = other.http_url.replace("http:", "ws:").encode()
        head = b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % away
        async with answering(lambda w, _: w.write(head)) as (endpoint, heads):
            endpoint = replace(endpoint, kind=kind, transport="websocket")
            with pytest.raises(UpgradeRefusedError):
                await WebSocketLink.open(endpoint, lambda *_: None, lambda *_: None)
        assert "secret-key" in heads[0]
        assert not asked


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (body(b"<html>"), "did not answer in JSON"),
        (body(b"[" * 100_000), "did not answer in JSON"),
        (body({"hello": "world"}), "did not answer with a list of models"),
        (body({}, "404 Not Found"), "HTTP 404; it may not offer this list"),
        (body(b" " * 5_000_000), "sent too long an answer"),
        (lambda writer, _: writer.write(b"garbage\r\n\r\n"), "cannot be reached"),
        (lambda writer, _: writer.close(), "cannot be reached"),
    ],
)
async def test_a_server_that_does_not_behave_is_one_sentence(answer: Answer, sentence: str) -> None:
    async with answering(answer) as (endpoint, _):
        with pytest.raises(UnavailableError, match=sentence) as error:
            await asyncio.to_thread(list_models, endpoint)
        assert "secret-key" not in str(error.value)


async def test_an_answer_that_drips_is_given_up() -> None:
    drip = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(drip)
        with contextlib.suppress(ConnectionError):
            for _ in range(5_000):  # longer than anybody waits here
                await asyncio.sleep(0.05)
                writer.write(b" ")
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    endpoint = Endpoint(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", None, "any")
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(UnavailableError, match="takes too long"):
        await asyncio.to_thread(list_models, endpoint, seconds=0.3)
    assert loop.time() - began < PATIENCE_S
    server.close()


async def test_nobody_there_is_one_sentence() -> None:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1 cannot be reached"):
        await asyncio.to_thread(list_models, Endpoint(f"http://127.0.0.1:{port}/v1", None, "any"))


@pytest.mark.parametrize(
    ("here", "location", "there"),
    [
        ("https://h.example/v1", "/v2", "https://h.example/v2"),
        ("https://h.example/v1", "https://h.example/v2", "https://h.example/v2"),
        ("http://h.example/v1", "https://h.example/v1", "https://h.example/v1"),
        ("https://h.example/v1", "http://h.example/v1", None),
        ("https://h.example/v1", "https://other.example/v1", None),
        ("https://h.example/v1", "https://h.example.evil/v1", None),
        ("https://h.example/v1", "https://h.example:8443/v1", None),
        ("https://h.example/v1", "//other.example/v1", None),
        ("http://h.example:8000/v1", "https://h.example/v1", None),
        ("http://h.example/v1", "https://h.example:8443/v1", None),
        ("http://h.example/v1", "https://other.example/v1", None),
        ("https://h.example/v1", "file:///etc/passwd", None),
    ],
)
def test_a_redirect_takes_the_key_neither_to_another_server_nor_into_the_open(
    here: str, location: str, there: str | None
) -> None:
    request = httpx.Request("GET", here)
    answer = httpx.Response(307, headers={"location": location}, request=request)
    assert http._moved_to(answer) == there


@pytest.mark.parametrize(
    ("url", "proxies", "checks"),
    [
        ("https://h.example/v1", True, True),
        ("http://h.example/v1", True, True),
        ("https://127.0.0.1:8443/v1", False, True),
        ("http://127.0.0.1:8000/v1", False, False),
    ],
)
def test_certificates_are_checked_and_no_proxy_sees_what_stays_here(
    url: str, proxies: bool, checks: bool
) -> None:
    options = http._options(Endpoint(url, "key", "m"), "application/json")
    assert options["trust_env"] is proxies
    if checks:
        assert options["verify"].verify_mode is ssl.CERT_REQUIRED
        assert options["verify"].check_hostname
    assert options["headers"]["Authorization"] == "Bearer key"
