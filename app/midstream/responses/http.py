"""HTTP to one endpoint: headers, timeouts, proxies and TLS in one place.

Importing httpx takes some 0.2 s, so this module is imported when HTTP is spoken: the built-in
server needs none.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncGenerator
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies

import httpx

from midstream import __version__
from midstream.responses.endpoint import Endpoint

_CONNECT_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 300.0
"""How long an answer may be silent; local engines read long prompts without a word."""
_ERROR_BODY_BYTES: Final = 65_536


class RefusedError(Exception):
    """The answer has an error status.

    Attributes:
        status: The HTTP status.
        body: The beginning of what came with it.
    """

    def __init__(self, status: int, body: bytes = b"") -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body


def get(endpoint: Endpoint, path: str, *, seconds: float, most_bytes: int) -> bytes:
    """GET `path` below an endpoint's address (blocking).

    Redirects are not followed: the key is for this endpoint alone.

    Raises:
        RefusedError: The status is not 200.
        OSError: There is no answer, or it takes longer than `seconds`.
        OverflowError: It is longer than `most_bytes`.
    """
    until = time.monotonic() + seconds
    body = bytearray()
    try:
        with (
            httpx.Client(timeout=seconds, **_options(endpoint, "application/json")) as client,
            client.stream("GET", _url(endpoint, path)) as answer,
        ):
            if answer.status_code != 200:
                raise RefusedError(answer.status_code)
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > most_bytes:
                    raise OverflowError(f"more than {most_bytes} bytes")
                if time.monotonic() > until:
                    raise TimeoutError("it takes too long")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise _os_error(error, endpoint) from error
    return bytes(body)


class Poster:
    """POSTs to one endpoint, one request after the other, over a connection that is kept."""

    def __init__(self, endpoint: Endpoint, path: str) -> None:
        self._endpoint = endpoint
        self._target = _url(endpoint, path)
        self._client: httpx.AsyncClient | None = None
        self._kept = False

    async def post(self, body: bytes) -> AsyncGenerator[bytes]:
        """POST a body and yield the answer's body as it comes; leaving early hangs up.

        Raises:
            RefusedError: The status is not 200.
            OSError: The connection failed, or the answer stopped coming.
        """
        try:
            if self._client is None:
                self._client = httpx.AsyncClient(
                    timeout=httpx.Timeout(_IDLE_SECONDS, connect=_CONNECT_SECONDS),
                    limits=httpx.Limits(max_keepalive_connections=1, keepalive_expiry=None),
                    **_options(self._endpoint, "text/event-stream"),
                )
            answer = await self._ask(self._client, body)
            try:
                if answer.status_code != 200:
                    raise RefusedError(answer.status_code, await _beginning(answer))
                async for chunk in answer.aiter_bytes():
                    yield chunk
                self._kept = True
            finally:
                await answer.aclose()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise _os_error(error, self._endpoint) from error

    async def close(self) -> None:
        """Close the connection that is kept."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _ask(self, client: httpx.AsyncClient, body: bytes) -> httpx.Response:
        kept, self._kept = self._kept, False
        try:
            return await client.send(self._request(client, body), stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            # The server gave the kept connection up just now, before it had read anything.
            if not kept:
                raise
            return await client.send(self._request(client, body), stream=True)

    def _request(self, client: httpx.AsyncClient, body: bytes) -> httpx.Request:
        headers = {"Content-Type": "application/json"}
        return client.build_request("POST", self._target, content=body, headers=headers)


def _url(endpoint: Endpoint, path: str) -> str:
    parts = urlsplit(endpoint.http_url)
    return urlunsplit(parts._replace(path=parts.path + path))


def _options(endpoint: Endpoint, accept: str) -> dict[str, Any]:
    headers = {
        "User-Agent": f"midstream/{__version__}",
        "Accept": accept,
        # Compressed text would wait for a full block.
        "Accept-Encoding": "identity",
    }
    if endpoint.token:
        headers["Authorization"] = f"Bearer {endpoint.token}"
    return {
        "headers": headers,
        # The system's certificates, as for the WebSocket; httpx alone would take certifi's.
        "verify": ssl.create_default_context() if endpoint.secure else False,
        # Proxies, SOCKS among them, come from the environment.
        "trust_env": not endpoint.loopback,
    }


async def _beginning(answer: httpx.Response) -> bytes:
    body = b""
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) >= _ERROR_BODY_BYTES:
            break
    return body[:_ERROR_BODY_BYTES]


def _os_error(error: Exception, endpoint: Endpoint) -> OSError:
    """Translate an httpx error; its text ends up in a sentence for the user."""
    if isinstance(error, httpx.ProxyError):
        proxies = getproxies()
        scheme = "https" if endpoint.secure else "http"
        host = urlsplit(proxies.get(scheme) or proxies.get("all") or "").hostname
        return OSError(f"the proxy {host} refused: {error}")
    return OSError(str(error) or type(error).__name__)
