"""Servers that refuse: when POST is tried, whose fault it is, and the sentence for the user."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_sockets

from midstream.errors import UnavailableError
from midstream.responses.client import Client
from midstream.responses.endpoint import Endpoint, Transport
from midstream.responses.events import Failed, Finished
from midstream.serving.app import create_app
from midstream.serving.replay import ReplayModel
from midstream.serving.running import serve
from tests.helpers.waiting import PATIENCE_S

ANSWER = b"".join(
    b"data: " + json.dumps(event).encode() + b"\n\n"
    for event in (
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_text.delta", "delta": "hello"},
        {"type": "response.completed", "response": {"id": "r", "status": "completed"}},
    )
)
FASTAPI = b'{"detail":"Not Found"}'
KEY = "sk-secret-key"


@dataclass
class Refusing:
    """An HTTP server with its answers to an upgrade and to a POST."""

    upgrade: tuple[int, bytes] = (405, b"")
    post: tuple[int, bytes] = (200, ANSWER)
    version: str = "1.1"
    seen: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def running(self, path: str = "/v1", transport: Transport = "auto", model: str = "m"):
        server = await asyncio.start_server(self.connection, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{path}"
        client = Client(Endpoint(url, KEY, model, "custom", transport))
        yield client
        await client.close()
        server.close()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            upgrade = "upgrade: websocket" in head
            if not upgrade:
                length = int(head.split("content-length: ")[1].split("\r\n")[0])
                await reader.readexactly(length)
            self.seen.append("upgrade" if upgrade else "post")
            status, body = self.upgrade if upgrade else self.post
            writer.write(f"HTTP/{self.version} {status} x\r\nconnection: close\r\n".encode())
            writer.write(f"content-length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        writer.close()


async def ask(client: Client) -> Finished | Failed:
    stream = await client.create(messages=[("user", "go")])
    async with asyncio.timeout(PATIENCE_S):
        async for event in stream:
            if isinstance(event, Finished | Failed):
                return event
    raise AssertionError("the stream did not end")


@pytest.mark.parametrize("status", [200, 400, 403, 404, 405, 426, 500, 501, 502])
async def test_a_refused_upgrade_means_try_post(status: int) -> None:
    server = Refusing(upgrade=(status, FASTAPI))
    async with server.running() as client:
        for _ in range(2):
            end = await ask(client)
            assert isinstance(end, Finished)
            assert end.text == "hello"
        assert client.transport == "sse"
    assert server.seen == ["upgrade", "post", "post"], "what was found out is remembered"


async def test_an_answer_in_http_1_0_means_try_post() -> None:
    async with Refusing((404, b"Not Found"), version="1.0").running() as client:
        end = await ask(client)
    assert isinstance(end, Finished)
    assert end.text == "hello"


@pytest.mark.parametrize(
    ("status", "sentence"),
    [(401, "refused the key (HTTP 401: \"No such key.\"); check the endpoint's key"),
     (429, 'overloaded (HTTP 429: "No such key."); try again shortly'),
     (503, "overloaded (HTTP 503")],
)  # fmt: skip
async def test_some_upgrade_answers_are_final(status: int, sentence: str) -> None:
    server = Refusing(upgrade=(status, b'{"error": {"message": "No such key."}}'))
    async with server.running() as client:
        with pytest.raises(UnavailableError) as caught:
            await ask(client)
    assert sentence in str(caught.value)
    assert server.seen == ["upgrade"]


async def test_a_websocket_that_is_asked_for_is_not_replaced() -> None:
    for server in (Refusing((403, FASTAPI)), Refusing((404, b""), version="1.0")):
        async with server.running(transport="websocket") as client:
            with pytest.raises(UnavailableError, match="did not open a WebSocket"):
                await ask(client)


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (403, FASTAPI, 'refused the key (HTTP 403: "Not Found"); check the endpoint\'s key.'),
        (401, b'{"error": "Bad token."}', 'refused the key (HTTP 401: "Bad token.")'),
        (404, FASTAPI, "has no Responses, Chat Completions or Messages API below "
         'http://127.0.0.1:PORT/v1 (HTTP 404: "Not Found"); check the address.'),
        (404, b"<html>404</html>", "has no Responses, Chat Completions or Messages API below"),
        (405, b"", "has no Responses, Chat Completions or Messages API below"),
        (200, b'{"error":"Unexpected endpoint or method. (POST /v1/responses)"}',
         "has no Responses, Chat Completions or Messages API below"),
        (200, b'{"error": {"message": "Out of memory."}}', "Out of memory."),
        (404, b'{"error": {"message": "The model `m` does not exist.", "code": "no_model"}}',
         "The model `m` does not exist."),
        (500, b"", "refused the request (HTTP 500)."),
        (500, b"Internal Server Error", 'refused the request (HTTP 500: "Internal Server Error").'),
        (422, b'{"detail": [{"loc": ["body"], "msg": "Field required"}]}',
         '422: "Field required"'),
        (400, b'{"message": "no \\u001b[31mroute\\n matched"}', '400: "no [31mroute matched"'),
        (400, f'{{"error": {{"message": "Wrong key {KEY}."}}}}'.encode(), "Wrong key (key)."),
    ],
)  # fmt: skip
async def test_a_refused_post_quotes_the_server_and_names_the_way_out(
    status: int, body: bytes, sentence: str
) -> None:
    async with Refusing(upgrade=(403, b""), post=(status, body)).running() as client:
        end = await ask(client)
        port = client.endpoint.http_url.split(":")[2].split("/")[0]
    assert isinstance(end, Failed)
    assert sentence.replace("PORT", port) in end.message
    assert KEY not in end.message


async def test_what_is_missing_in_the_settings_is_named() -> None:
    async with Refusing(post=(404, FASTAPI)).running(path="") as client:
        end = await ask(client)
        assert isinstance(end, Failed)
        assert f"may lack its path, such as {client.endpoint.http_url}/v1." in end.message
    async with Refusing(post=(500, b"")).running(model="") as client:
        end = await ask(client)
        assert isinstance(end, Failed)
        assert "(HTTP 500); no model is named, which it may need: pass --model NAME." in end.message


async def test_a_wrong_address_on_our_own_server_is_answered_in_its_words() -> None:
    async with serve(create_app({"replay": ReplayModel("x")}, token="t")) as server:
        client = Client(Endpoint(f"ws://127.0.0.1:{server.port}/v9", "t", "replay"))
        end = await ask(client)
        await client.close()
    assert isinstance(end, Failed)
    assert '"There is nothing at /v9/responses; this server has /v1/resp' in end.message


@asynccontextmanager
async def mute(post: tuple[int, bytes]) -> AsyncGenerator[tuple[Client, list[str]]]:
    """Takes WebSockets and closes them without a word, as LiteLLM's proxy does."""
    refusing, opened = Refusing(post=post), list[str]()

    async def close(socket: ServerConnection) -> None:
        opened.append("socket")
        await socket.recv()
        await socket.close(1011)

    async with serve_sockets(close, "127.0.0.1", 0) as sockets:
        websockets = sockets.sockets[0].getsockname()[1]

        async def route(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            if b"upgrade: websocket" not in head.lower():
                feed = asyncio.StreamReader()
                feed.feed_data(head + await reader.read(65_536))
                await refusing.connection(feed, writer)
                return
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", websockets)
            up_writer.write(head)

            async def copy(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
                with contextlib.suppress(ConnectionError):
                    while data := await source.read(65_536):
                        to.write(data)
                to.close()

            await asyncio.gather(copy(reader, up_writer), copy(up_reader, writer))

        server = await asyncio.start_server(route, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        client = Client(Endpoint(url, None, "m", "custom"))
        yield client, opened
        await client.close()
        server.close()


async def test_websockets_that_die_without_a_word_mean_try_post() -> None:
    async with mute((200, ANSWER)) as (client, opened):
        for _ in range(2):
            end = await ask(client)
            assert isinstance(end, Finished)
            assert end.text == "hello"
        assert client.transport == "sse"
    assert len(opened) == 4
