"""POST over HTTP/1.1 with a streamed answer: dialling, proxies, TLS, and a connection that is kept.

Knows nothing of responses and their events.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncGenerator
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import h11

from midstream import __version__
from midstream.responses.endpoint import Endpoint

_READ_BYTES: Final = 65_536
_ERROR_BODY_BYTES: Final = 65_536
_CONNECT_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 300.0
"""How long an answer may say nothing; local engines read long prompts in silence."""

_Headers = list[tuple[str, str]]


class RefusedError(Exception):
    """An HTTP answer that is an error.

    Attributes:
        status: The HTTP status.
        body: The beginning of what came with it.
    """

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body


class Poster:
    """POSTs to one endpoint, one request after the other.

    The connection is kept between requests where the server keeps it, which saves the round trips
    of TCP and TLS.

    Args:
        endpoint: The server.
        path: What follows its address.
    """

    def __init__(self, endpoint: Endpoint, path: str) -> None:
        url = urlsplit(endpoint.http_url)
        self._url = url
        self._secure = url.scheme == "https"
        self._port = url.port or (443 if self._secure else 80)
        self._target = f"{url.path}{path}" + (f"?{url.query}" if url.query else "")
        self._headers: _Headers = [
            ("Host", url.netloc),
            ("User-Agent", f"midstream/{__version__}"),
            ("Content-Type", "application/json"),
            ("Accept", "text/event-stream"),
        ]
        if endpoint.token:
            self._headers.append(("Authorization", f"Bearer {endpoint.token}"))
        self._direct = endpoint.loopback
        self._proxy: SplitResult | None = None
        self._tls: ssl.SSLContext | None = None
        self._kept: _Connection | None = None

    async def post(self, body: bytes) -> AsyncGenerator[bytes]:
        """POST a body and yield the answer's body as it comes; leaving early hangs up.

        Raises:
            RefusedError: The status is not 200.
            OSError: The connection failed, or the answer stopped coming.
            h11.ProtocolError: The answer is not HTTP.
        """
        if not self._direct:
            self._proxy = _proxy(self._url, self._port)
        kept, self._kept = self._kept, None
        connection = kept if kept is not None and kept.usable else await self._dial()
        try:
            try:
                await connection.ask(self._request(len(body)), body)
            except ConnectionError:
                # The server gave the kept connection up just now, before it had read anything.
                if connection is not kept:
                    raise
                connection.close()
                connection = await self._dial()
                await connection.ask(self._request(len(body)), body)
            async for chunk in connection.answer():
                yield chunk
            if connection.renew():
                self._kept, connection = connection, None
        finally:
            if connection is not None:
                connection.close()

    def close(self) -> None:
        """Close the connection that is kept."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _request(self, length: int) -> h11.Request:
        headers = [*self._headers, ("Content-Length", str(length))]
        target = self._target
        if self._proxy is not None and not self._secure:
            target = f"http://{self._url.netloc}{target}"
            headers += _proxy_headers(self._proxy)
        return h11.Request(method="POST", target=target, headers=headers)

    async def _dial(self) -> _Connection:
        if self._secure and self._tls is None:
            self._tls = ssl.create_default_context()
        host = self._url.hostname or ""
        async with asyncio.timeout(_CONNECT_SECONDS):
            if self._proxy is None:
                return _Connection(*await asyncio.open_connection(host, self._port, ssl=self._tls))
            proxy_tls = ssl.create_default_context() if self._proxy.scheme == "https" else None
            port = self._proxy.port or (443 if proxy_tls else 80)
            reader, writer = await asyncio.open_connection(
                self._proxy.hostname, port, ssl=proxy_tls
            )
            try:
                if self._tls is not None:
                    await _tunnel(reader, writer, f"{host}:{self._port}", self._proxy)
                    await writer.start_tls(self._tls, server_hostname=host)
            except BaseException:
                writer.close()
                raise
            return _Connection(reader, writer)


class _Connection:
    """One connection to the server, on which one request runs at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)

    @property
    def usable(self) -> bool:
        """Whether the server has not closed it meanwhile."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def ask(self, request: h11.Request, body: bytes) -> None:
        """Send a request and wait for the first bytes of the answer."""
        parts = (request, h11.Data(data=body), h11.EndOfMessage())
        self._writer.write(b"".join(self._http.send(part) or b"" for part in parts))
        await self._writer.drain()
        data = await self._read()
        if not data:
            raise ConnectionError("the connection was closed without an answer")
        self._http.receive_data(data)

    async def answer(self) -> AsyncGenerator[bytes]:
        status, refusal = 200, b""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._read())
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                if status == 200:
                    yield bytes(event.data)
                else:
                    refusal = (refusal + bytes(event.data))[:_ERROR_BODY_BYTES]
            elif isinstance(event, h11.EndOfMessage):
                if status != 200:
                    raise RefusedError(status, refusal)
                return
            elif isinstance(event, h11.ConnectionClosed):
                raise ConnectionError("the connection was closed")

    def renew(self) -> bool:
        """Make ready for the next request; False if the server does not keep the connection."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    def close(self) -> None:
        self._writer.close()

    async def _read(self) -> bytes:
        async with asyncio.timeout(_IDLE_SECONDS):
            return await self._reader.read(_READ_BYTES)


def _proxy(url: SplitResult, port: int) -> SplitResult | None:
    """The proxy for an address, as the environment (or the system) has it.

    Raises:
        OSError: It is of a kind that is not spoken here.
    """
    if proxy_bypass(f"{url.hostname}:{port}"):
        return None
    proxies = getproxies()
    address = proxies.get(url.scheme) or proxies.get("all")
    if not address:
        return None
    found = urlsplit(address if "://" in address else f"http://{address}")
    if found.scheme not in ("http", "https") or not found.hostname:
        raise OSError(f"the proxy {found.scheme}://{found.hostname} is no HTTP proxy")
    return found


def _proxy_headers(proxy: SplitResult) -> _Headers:
    if proxy.username is None:
        return []
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [("Proxy-Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")]


async def _tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str, proxy: SplitResult
) -> None:
    """Ask a proxy for a way to the server.

    Raises:
        OSError: It refuses.
    """
    http = h11.Connection(h11.CLIENT)
    headers = [("Host", target), *_proxy_headers(proxy)]
    writer.write(http.send(h11.Request(method="CONNECT", target=target, headers=headers)) or b"")
    writer.write(http.send(h11.EndOfMessage()) or b"")
    await writer.drain()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Response):
            if event.status_code // 100 != 2:
                raise OSError(f"the proxy {proxy.hostname} refused (HTTP {event.status_code})")
            return
        else:
            raise OSError(f"the proxy {proxy.hostname} hung up")
