"""HTTP to one endpoint: headers, timeouts, proxies and TLS in one place.

Importing httpx takes some 0.2 s, so this module is imported when HTTP is spoken: the built-in
server needs none.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies

import httpx

from midstream import __version__
from midstream.responses.endpoint import Endpoint
from midstream.responses.reading import CutOffError
from midstream.responses.refusals import explained

_ERROR_BODY_BYTES: Final = 65_536
"""Bytes of an error that are read."""
_PIECE_BYTES: Final = 65_536
"""Bytes that are unpacked at once."""
_MAX_GROWTH: Final = 100
"""How often its size an answer may have unpacked; events shrink to a tenth, not to a hundredth."""


class RefusedError(Exception):
    """The answer has an error status.

    Attributes:
        status: The HTTP status.
        body: The beginning of what came with it.
        retry_after: Seconds until the server wants to be asked again, if it says so.
        may_retry: Whether asking again makes sense to the server.
        location: Where it redirects to, if it does.
        asked: The APIs that were asked for in vain, as a person calls them.
    """

    def __init__(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body
        self.retry_after = _retry_after(headers or {})
        self.may_retry = (headers or {}).get("x-should-retry") != "false"
        self.location = (headers or {}).get("location", "")
        self.asked: tuple[str, ...] = ()


def get(endpoint: Endpoint, path: str, *, seconds: float, most_bytes: int) -> bytes:
    """GET ``path`` below an endpoint's address (blocking).

    Redirects are not followed: the key is for this endpoint alone.

    Raises:
        RefusedError: The status is not 200.
        OSError: There is no answer, or it takes longer than ``seconds``.
        OverflowError: It is longer than ``most_bytes``.
    """
    until = time.monotonic() + seconds
    body = bytearray()
    try:
        with (
            httpx.Client(timeout=seconds, **_options(endpoint, "application/json")) as client,
            client.stream("GET", url_below(endpoint, path)) as answer,
        ):
            if answer.status_code != 200:
                raise RefusedError(answer.status_code)
            unpack = _unpacking(answer)
            for chunk in (piece for raw in answer.iter_raw() for piece in unpack(raw)):
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

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: httpx.AsyncClient | None = None
        self._kept = False
        self._moved: dict[str, str] = {}

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str]
    ) -> AsyncGenerator[bytes]:
        """POST a body, and yield the answer's body as it comes; leaving early hangs up.

        How long an answer may be silent is up to the caller. A redirect to the same host is
        followed, and remembered; the key is for this host alone.

        Raises:
            RefusedError: The status is not 200.
            CutOffError: The answer broke off, even before its first byte.
            OSError: The connection failed.
        """
        try:
            if self._client is None:
                self._client = httpx.AsyncClient(
                    timeout=httpx.Timeout(None, connect=10.0),
                    limits=httpx.Limits(max_keepalive_connections=1, keepalive_expiry=None),
                    **_options(self._endpoint, "text/event-stream"),
                )
            answer = await self._ask(self._client, self._moved.get(url, url), body, headers)
            for _ in range(3):
                if (to := _moved_to(answer)) is None:
                    break
                await answer.aclose()
                answer = await self._ask(self._client, to, body, headers)
                if answer.status_code == 200:
                    self._moved[url] = to
            try:
                if answer.status_code != 200:
                    said = await _beginning(answer)
                    raise RefusedError(answer.status_code, said, answer.headers)
                async for chunk in _content(answer):
                    yield chunk
                self._kept = True
            finally:
                await answer.aclose()
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
            raise CutOffError(str(error) or "the connection broke") from error
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise _os_error(error, self._endpoint) from error

    async def close(self) -> None:
        """Close the connection that is kept."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _ask(
        self, client: httpx.AsyncClient, url: str, body: bytes, headers: Mapping[str, str]
    ) -> httpx.Response:
        kept, self._kept = self._kept, False
        request = client.build_request(
            "POST",
            url,
            content=body,
            headers={"Content-Type": "application/json", **headers},
        )
        try:
            return await client.send(request, stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            # The server gave the kept connection up just now, before it had read anything.
            if not kept:
                raise
            return await client.send(request, stream=True)


def _moved_to(answer: httpx.Response) -> str | None:
    """Where an answer redirects to on the same host, encrypted if it was before."""
    if answer.status_code not in (301, 302, 307, 308) or "location" not in answer.headers:
        return None
    here = answer.request.url
    there = here.join(answer.headers["location"])
    same = (there.scheme, there.netloc) == (here.scheme, here.netloc)
    encrypts = (here.scheme, there.scheme) == ("http", "https") and not (here.port or there.port)
    return str(there) if same or (encrypts and there.host == here.host) else None


def url_below(endpoint: Endpoint, path: str) -> str:
    """The address of ``path`` below an endpoint's address."""
    parts = urlsplit(endpoint.http_url)
    return urlunsplit(parts._replace(path=parts.path + path))


def _options(endpoint: Endpoint, accept: str) -> dict[str, Any]:
    headers = {
        "User-Agent": f"midstream/{__version__}",
        "Accept": accept,
        # Compressed text would wait for a full block.
        "Accept-Encoding": "identity",
        **endpoint.key_headers,
    }
    return {
        "headers": headers,
        # The system's certificates, as for the WebSocket; httpx alone would take certifi's.
        # A redirect may lead from an address in the open to one that is encrypted.
        "verify": False
        if endpoint.loopback and not endpoint.secure
        else ssl.create_default_context(),
        # Proxies, SOCKS among them, come from the environment.
        "trust_env": not endpoint.loopback,
    }


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds in ``Retry-After``, which is a number or a date."""
    with contextlib.suppress(ValueError):
        return max(0.0, float(headers.get("retry-after-ms", "")) / 1000)
    value = headers.get("retry-after", "")
    with contextlib.suppress(ValueError):
        return max(0.0, float(value))
    with contextlib.suppress(ValueError, OverflowError):
        until = parsedate_to_datetime(value)
        return max(0.0, (until.astimezone(UTC) - datetime.now(UTC)).total_seconds())
    return None


async def _content(answer: httpx.Response) -> AsyncGenerator[bytes]:
    """The body of an answer; others on the event loop get their turn between its pieces."""
    unpack = _unpacking(answer)
    async for raw in answer.aiter_raw():
        for piece in unpack(raw):
            yield piece
            if len(piece) == _PIECE_BYTES:
                await asyncio.sleep(0)


def _unpacking(answer: httpx.Response) -> Callable[[bytes], Iterator[bytes]]:
    """Unpacks the body of an answer piece by piece, up to a limit against bombs.

    Plain content is asked for; some gateways pack it all the same.

    Raises:
        ValueError: It is packed in another way than with gzip or deflate, or more than once; or,
            while it is unpacked, it is damaged or grows out of all proportion.
    """
    coding = answer.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("identity", ""):
        return lambda raw: iter((raw,))
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"the answer is packed as {coding[:40]!r}, which was not asked for")
    # With 32 added zlib finds out whether it is gzip or zlib.
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
    taken = given = 0

    def unpack(raw: bytes) -> Iterator[bytes]:
        nonlocal taken, given
        taken += len(raw)
        rest = raw
        try:
            while rest and not inflate.eof:
                piece = inflate.decompress(rest, _PIECE_BYTES)
                rest = inflate.unconsumed_tail
                given += len(piece)
                if given > _MAX_GROWTH * taken + _PIECE_BYTES:
                    raise ValueError(f"the answer unpacks to {_MAX_GROWTH} times its size and more")
                if piece:
                    yield piece
        except zlib.error as error:
            raise ValueError(f"the answer is packed and damaged ({error})") from error

    return unpack


async def _beginning(answer: httpx.Response) -> bytes:
    body = b""
    async for chunk in _content(answer):
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
    return OSError(explained(str(error)) or type(error).__name__)
