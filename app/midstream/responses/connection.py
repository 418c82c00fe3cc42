"""Connections to a server: the interface that the client needs (``Link``), and the WebSocket.

Nothing is retried here and no response is known here; ``midstream.responses.client`` does both.
``midstream.responses.http_link`` is the other kind of link.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidHeader,
    InvalidMessage,
    InvalidProxy,
    InvalidStatus,
    InvalidURI,
)

from midstream import __version__
from midstream.errors import UnavailableError
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import ServerEvent, WireError, decode_event
from midstream.responses.frames import Frame, FrameReader
from midstream.responses.liberal import dumps, loads
from midstream.responses.refusals import Refusal, error_of, explained


class Link(Protocol):
    """A connection to one endpoint; events and its loss are reported by callbacks.

    Attributes:
        alive: Whether it can still be used.
    """

    alive: bool

    @property
    def age(self) -> float:
        """Seconds since it was opened."""
        ...

    async def send(self, frame: dict[str, Any]) -> None:
        """Send one client event.

        Raises:
            UnavailableError: It is gone.
        """
        ...

    async def close(self) -> None:
        """Close it and what runs on it; its loss is not reported."""
        ...


_PING_SECONDS = 20.0
"""Time between two pings, and how long the answer to one may take."""

_SIGN_OF_LIFE = re.compile(rb"[\w. -]{1,20}")
"""A message such as "ping"."""
_MAX_QUOTED = 200
"""Bytes of an unreadable message that the error quotes."""

_MAX_FRAME_BYTES = 16 * 1024 * 1024
"""A final event repeats the instructions and the whole output; nothing is larger."""


class UpgradeRefusedError(UnavailableError):
    """The server did not open a WebSocket.

    Attributes:
        status: HTTP status of its answer; None if that was no HTTP/1.1.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def final(self) -> bool:
        """Whether a POST would be refused as well.

        Any other answer may only mean that there is no WebSocket: Starlette and FastAPI answer 403
        where no WebSocket route is, Ollama 426, others 400, 404, 405 or 501, and LM Studio answers
        requests that it does not know with 200.
        """
        return self.status in (401, 429, 503)


class WebSocketLink:
    """An open socket. ``on_event`` runs for every frame and must not block; ``on_lost`` runs once
    at the end.
    """

    def __init__(
        self,
        socket: ClientConnection,
        on_event: Callable[[Link, ServerEvent], None],
        on_lost: Callable[[Link, str], None],
    ) -> None:
        self._opened = time.monotonic()
        self.alive = True
        self._socket = socket
        self._on_event = on_event
        self._on_lost = on_lost
        self._reader = asyncio.create_task(self._read(), name="responses-reader")

    @classmethod
    async def open(
        cls,
        endpoint: Endpoint,
        on_event: Callable[[Link, ServerEvent], None],
        on_lost: Callable[[Link, str], None],
        *,
        open_timeout: float = 10.0,
    ) -> WebSocketLink:
        """Dial the endpoint.

        Raises:
            UpgradeRefusedError: The server answered and opened no WebSocket.
            UnavailableError: It cannot be reached.
        """
        where = f"{endpoint.host} ({endpoint.url})"
        try:
            socket = await _Dial(
                endpoint.websocket_url,
                additional_headers=endpoint.key_headers,
                user_agent_header=f"midstream/{__version__}",
                # A delta is 13 bytes deflated against 176, which pays on a network and costs on
                # loopback.
                compression=None if endpoint.loopback else "deflate",
                proxy=_proxy(endpoint),
                open_timeout=open_timeout,
                close_timeout=1.0,
                ping_interval=_PING_SECONDS,
                ping_timeout=_PING_SECONDS,
                max_size=_MAX_FRAME_BYTES,
            )
        except InvalidStatus as error:
            status = error.response.status_code
            refusal = Refusal(endpoint, status, bytes(error.response.body or b""))
            kept = None if refusal.is_loading else status  # A POST waits for that.
            raise UpgradeRefusedError(refusal.upgrade_sentence(), kept) from error
        except (InvalidMessage, InvalidHeader) as error:
            detail = str(error.__cause__ or error)
            if isinstance(error.__cause__, EOFError):  # It said nothing at all.
                raise UnavailableError(
                    f"The model server at {where} cannot be reached: {detail}."
                ) from error
            # HTTP/1.0, for example, which Python's own http.server speaks.
            raise UpgradeRefusedError(
                f"The model server at {where} did not open a WebSocket: {detail}."
            ) from error
        except TimeoutError as error:
            # Gateways that know no WebSockets may not even refuse them.
            raise UpgradeRefusedError(
                f"The model server at {where} did not answer in {open_timeout:.0f} s."
            ) from error
        except (OSError, InvalidHandshake, InvalidProxy, InvalidURI) as error:
            detail = explained(str(error)) or type(error).__name__
            raise UnavailableError(
                f"The model server at {where} cannot be reached: {detail}."
            ) from error
        return cls(socket, on_event, on_lost)

    @property
    def age(self) -> float:
        return time.monotonic() - self._opened

    async def send(self, frame: dict[str, Any]) -> None:
        """Send one client event.

        Raises:
            UnavailableError: The connection is gone.
        """
        try:
            await self._socket.send(dumps(frame).decode())
        except ConnectionClosed as error:
            raise UnavailableError(
                "The connection to the model server was lost; try again."
            ) from error

    async def close(self) -> None:
        """Close the socket; its loss is not reported."""
        self.alive = False
        # The reader keeps draining: the closing handshake may be queued after unread text.
        await self._socket.close()
        await self._reader

    async def _read(self) -> None:
        reason = "the server closed the connection"
        try:
            # Bytes: the decoder wants them, and the text frame is not decoded twice.
            while True:
                message = await self._socket.recv(decode=False)
                try:
                    events = read_message(message)
                except ValueError as error:
                    reason = f"the server sent a frame that is not valid ({error})"
                    break
                for event in events:
                    if self.alive:
                        self._on_event(self, event)
        except ConnectionClosed as error:
            close = error.rcvd
            if close is not None and close.reason:
                reason = f"the server closed the connection ({close.code}: {close.reason})"
            elif close is None:
                reason = "the connection broke"
        if self.alive:
            self.alive = False
            self._on_lost(self, reason)
            await self._socket.close()


class _Dial(connect):
    """Follows no redirect to another host: the key and what is sent are for this one."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        here, found = urlsplit(self.uri), super().process_redirect(exc)
        if isinstance(found, str) and urlsplit(found)[:2] != here[:2]:
            return exc
        return found


def read_message(message: bytes) -> list[ServerEvent]:
    """The events in a message: one, as the reference says, or what gateways put in its place.

    Raises:
        ValueError: It cannot be read.
    """
    try:
        return [_meant(decode_event(message), message)]
    except ValueError:
        reader = FrameReader()
        frames = [*reader.feed(message), *reader.end()]
    if reader.said and not _SIGN_OF_LIFE.fullmatch(reader.said.strip()):
        raise ValueError(f'"{reader.said[:_MAX_QUOTED].decode("utf-8", "replace")}"')
    if reader.cut and not reader.said:
        raise ValueError("it is cut")
    return [_framed(frame) for frame in frames if frame.data and not frame.closes]


def _framed(frame: Frame) -> ServerEvent:
    event = decode_event(frame.data)
    return _meant(msgspec.structs.replace(event, type=event.type or frame.name), frame.data)


def _meant(event: ServerEvent, data: bytes) -> ServerEvent:
    """An event; an error without a type is one, too."""
    if event.type and (event.type != "error" or event.error is not None):
        return event
    error = event.error or error_of(loads(data)) or WireError()
    return msgspec.structs.replace(event, type="error", error=error) if error.message else event


def _proxy(endpoint: Endpoint) -> str | Literal[True] | None:
    """The proxy for an endpoint; True leaves it to websockets, which does not know ALL_PROXY."""
    if endpoint.loopback:
        return None
    known = {"wss", "socks", "https"} if endpoint.secure else {"ws", "socks", "https", "http"}
    proxies = getproxies()
    if "all" not in proxies or known & proxies.keys() or proxy_bypass(endpoint.host):
        return True
    return proxies["all"]
