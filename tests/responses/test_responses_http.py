"""HTTP under the fallback: kept connections, proxies, TLS, and engines that leave things out."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from midstream.errors import UnavailableError
from midstream.responses.client import Client
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import Delta, Failed, Finished
from midstream.serving.app import create_app
from midstream.serving.replay import ReplayModel
from midstream.serving.running import serve
from tests.helpers.waiting import PATIENCE_S

# Not an address that the client takes for this machine's, so that proxies are used.
HOST = "127.0.0.2"


async def ask(client: Client) -> Finished | Failed:
    stream = await client.create(messages=[("user", "go")])
    async with asyncio.timeout(PATIENCE_S):
        async for event in stream:
            if isinstance(event, Finished | Failed):
                return event
    raise AssertionError("the stream did not end")


class Proxy:
    """A forward proxy: CONNECT, and requests with a whole address."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.port = 0

    @asynccontextmanager
    async def running(self, status: int = 200) -> AsyncGenerator[str]:
        self.status = status
        server = await asyncio.start_server(self.connection, "127.0.0.1", 0)
        yield f"http://some:pass%20word@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        server.close()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode())
        method, target, _ = head.decode().split("\r\n")[0].split(" ")
        if self.status != 200:
            writer.write(f"HTTP/1.1 {self.status} No\r\ncontent-length: 0\r\n\r\n".encode())
            writer.close()
            return
        place = target.removeprefix("http://").split("/")[0]
        host, _, port = place.rpartition(":")
        up_reader, up_writer = await asyncio.open_connection(host, int(port))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            up_writer.write(head.replace(f"http://{place}".encode(), b"", 1))
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(self.copy(reader, up_writer), self.copy(up_reader, writer))

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http", "https", "all", "no", "ws", "wss", "socks"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name.upper()}_PROXY", raising=False)


@asynccontextmanager
async def server(host: str = HOST, **options: str) -> AsyncGenerator[int]:
    app = create_app({"replay": ReplayModel("one two three")}, token="key")
    async with serve(app, host=host, **options) as running:  # type: ignore[arg-type]
        yield running.port


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_no_proxy_sees_what_stays_on_this_machine(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, here = Proxy(), "127.0.0.1"
    async with server(here) as port, proxy.running() as address:
        for name in ("http_proxy", "ws_proxy", "all_proxy"):
            monkeypatch.setenv(name, address)
        client = Client(Endpoint(f"http://{here}:{port}/v1", "key", "replay", "custom", transport))  # type: ignore[arg-type]
        assert isinstance(await ask(client), Finished)
        await client.close()
    assert proxy.heads == []


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_a_plain_server_behind_a_proxy(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Proxy()
    async with server() as port, proxy.running() as address:
        monkeypatch.setenv("HTTP_PROXY", address)
        monkeypatch.setenv("http_proxy", address)
        client = Client(Endpoint(f"http://{HOST}:{port}/v1", "key", "replay", "custom", transport))  # type: ignore[arg-type]
        end = await ask(client)
        assert isinstance(end, Finished)
        assert end.text == "one two three"
        await client.close()
        head = proxy.heads[0]
        whole = f"POST http://{HOST}:{port}/v1/responses HTTP/1.1"
        assert head.startswith(whole if transport == "sse" else f"CONNECT {HOST}:{port} ")
        basic = base64.b64encode(b"some:pass word").decode()
        assert f"proxy-authorization: basic {basic}".lower() in head.lower()
        monkeypatch.setenv("NO_PROXY", HOST)
        monkeypatch.setenv("no_proxy", HOST)
        client = Client(Endpoint(f"http://{HOST}:{port}/v1", "key", "replay", "custom", transport))  # type: ignore[arg-type]
        assert isinstance(await ask(client), Finished)
        await client.close()
        assert len(proxy.heads) == 1


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_an_encrypted_server_behind_a_proxy(
    transport: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("makes its certificate with openssl")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    subject = ["-addext", f"subjectAltName=IP:{HOST}"]
    made = await asyncio.create_subprocess_exec(
        *command.split(), *subject, "-keyout", str(key), "-out", str(certificate),
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert await made.wait() == 0
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    proxy = Proxy()
    async with (
        server(certificate=str(certificate), key=str(key)) as port,
        proxy.running() as address,
    ):
        monkeypatch.setenv("https_proxy", address)
        url = f"https://{HOST}:{port}/v1"
        client = Client(Endpoint(url, "key", "replay", "custom", transport))  # type: ignore[arg-type]
        for _ in range(2):
            end = await ask(client)
            assert isinstance(end, Finished)
            assert end.text == "one two three"
        await client.close()
        assert [head.split(" ")[0] for head in proxy.heads] == ["CONNECT"]
        assert "key" not in proxy.heads[0], "the token is for the server alone"


async def test_a_proxy_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Proxy().running(407) as address:
        monkeypatch.setenv("https_proxy", address)
        client = Client(Endpoint(f"https://{HOST}:9/v1", "key", "m", "custom", "sse"))
        end = await ask(client)
        await client.close()
    assert isinstance(end, Failed)
    assert "the proxy 127.0.0.1 refused: 407 No" in end.message
    assert "pass" not in end.message


class SocksProxy(Proxy):
    """A SOCKS5 proxy without a password; `heads` has the addresses that it was asked for."""

    @asynccontextmanager
    async def running(self, status: int = 0) -> AsyncGenerator[str]:
        async with super().running(status) as address:
            yield f"socks5://127.0.0.1:{address.rpartition(':')[2]}"

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        await reader.readexactly(count)
        writer.write(b"\x05\x00")
        *_, kind = await reader.readexactly(4)
        if kind == 1:
            host = ".".join(map(str, await reader.readexactly(4)))
        else:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        port = int.from_bytes(await reader.readexactly(2))
        self.heads.append(f"{host}:{port}")
        writer.write(bytes((5, self.status, 0, 1, 0, 0, 0, 0, 0, 0)))
        if self.status:
            writer.close()
            return
        up_reader, up_writer = await asyncio.open_connection(host, port)
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(self.copy(reader, up_writer), self.copy(up_reader, writer))


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_a_server_behind_a_socks_proxy(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = SocksProxy()
    async with server() as port, proxy.running() as address:
        monkeypatch.setenv("all_proxy", address)
        client = Client(Endpoint(f"http://{HOST}:{port}/v1", "key", "replay", "custom", transport))  # type: ignore[arg-type]
        end = await ask(client)
        await client.close()
    assert isinstance(end, Finished)
    assert end.text == "one two three"
    assert proxy.heads == [f"{HOST}:{port}"]


@pytest.mark.parametrize("address", ["refuses", "socks5://127.0.0.1:1", "gopher://127.0.0.1:1"])
async def test_a_proxy_that_is_of_no_use_is_an_error_and_no_traceback(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SocksProxy().running(2) as refusing:
        monkeypatch.setenv("https_proxy", refusing if address == "refuses" else address)
        await check_unreachable()


async def check_unreachable() -> None:
    client = Client(Endpoint(f"https://{HOST}:9/v1", "key", "m", "custom", "sse"))
    end = await ask(client)
    await client.close()
    assert isinstance(end, Failed)
    assert f" {HOST} (https://{HOST}:9/v1) gave no answer: " in end.message
    client = Client(Endpoint(f"https://{HOST}:9/v1", "key", "m", "custom"))
    with pytest.raises(UnavailableError):
        await client.connect()
    await client.close()


class Keeping:
    """An HTTP-only engine that keeps its connections for a number of requests."""

    def __init__(self, events: list[bytes], requests: int) -> None:
        self.events = events
        self.requests = requests
        self.connections = 0
        self.served = 0

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Client]:
        server = await asyncio.start_server(self.connection, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        client = Client(Endpoint(url, None, "m", "custom", "sse"))
        yield client
        await client.close()
        server.close()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError):
            for _ in range(self.requests):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                self.served += 1
                writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                for event in self.events:
                    writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        writer.close()


def data(**event: object) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


ANSWER = [
    data(type="response.created", response={"id": "r"}),
    data(type="response.output_item.added", item={"id": "i"}),
    data(type="response.output_text.delta", item_id="i", delta="hello"),
    data(type="response.completed", response={"id": "r", "status": "completed"}),
]


@pytest.mark.parametrize(("requests", "connections"), [(10, 1), (2, 3), (1, 6)])
async def test_a_kept_connection_is_used_again_and_a_closed_one_replaced(
    requests: int, connections: int
) -> None:
    engine = Keeping(ANSWER, requests)
    async with engine.running() as client:
        for _ in range(6):
            end = await ask(client)
            assert isinstance(end, Finished)
            assert end.text == "hello"
    assert (engine.served, engine.connections) == (6, connections)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(ANSWER[2:], id="no created and no item"),
        pytest.param(
            [ANSWER[0], data(type="response.output_text.delta", delta="hello"), ANSWER[3]],
            id="no item ids",
        ),
        pytest.param(
            [
                b'event: response.created\ndata: {"response":{"id":"r"}}\n\n',
                b'event: response.output_text.delta\ndata: {"delta":"hello"}\n\n',
                b"event: response.completed\n"
                b'data: {"response":{"id":"other","status":"completed"}}\n\n',
            ],
            id="the type in the event field only, another id at the end",
        ),
        pytest.param(
            [
                ANSWER[0],
                data(type="response.output_item.added", item={"type": "message"}),
                data(type="response.output_text.delta", item_id="", delta="hello"),
                data(
                    type="response.completed",
                    response={
                        "id": "r",
                        "status": "completed",
                        "metadata": None,
                        "usage": {"input_tokens": 1, "output_tokens": 1},
                        "output": [
                            {
                                "type": "message",
                                "content": [{"type": "output_text", "text": "hello"}],
                            }
                        ],
                    },
                ),
                b"data: [DONE]\n\n",
            ],
            id="empty ids",
        ),
    ],
)
async def test_what_engines_leave_out_is_told_from_the_rest(events: list[bytes]) -> None:
    async with Keeping(events, 9).running() as client:
        for _ in range(2):
            stream = await client.create(messages=[("user", "go")])
            text, end = "", None
            async with asyncio.timeout(PATIENCE_S):
                async for event in stream:
                    text += event.text if isinstance(event, Delta) else ""
                    end = event
            assert isinstance(end, Finished)
            assert (text, end.text, end.status) == ("hello", "hello", "completed")
