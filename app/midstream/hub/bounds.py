"""Bounds on a hub's answers: their size and pace, and no compression.

A hub may be anybody's, and a network may put itself in its place. By default the hub's library
waits without end, reads a description of any length and unpacks what it did not ask for packed.

This is imported when a hub is spoken to: the HTTP library takes a while.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Generator, Iterator
from typing import Any, Final
from weakref import WeakSet

import httpx2

from midstream.hub.library import SECONDS, HubError, hub_library

SILENCE_S = 60.0
"""How long the hub may be silent while it sends."""
PACE_S = 60.0
"""How often the pace of the hub is checked."""
MIN_BYTES_PER_S: Final = 1000
"""Bytes a second below which it is too slow to wait for."""


@contextlib.contextmanager
def hub_session(hub: str, limit: int | None = None) -> Generator[httpx2.Client]:
    """The HTTP client of the hub's library, bounded.

    Args:
        hub: The hub's address.
        limit: Bytes of an answer; ``None`` where the caller counts them.

    Raises:
        HubError: The hub has sent too much, too slowly, or something packed.
    """
    session: httpx2.Client = hub_library().get_session()
    session.headers["Accept-Encoding"] = "identity"
    session.timeout = httpx2.Timeout(SILENCE_S, connect=SECONDS)
    bounds = _Bounds(hub, limit)
    before = session.event_hooks
    session.event_hooks = {
        "request": [*before["request"], bounds.begin],
        "response": [*before["response"], bounds.bound],
    }
    watch = threading.Thread(target=bounds.watch, name="hub pace", daemon=True)
    watch.start()
    try:
        yield session
    except HubError:
        raise
    except Exception as error:
        # A connection that was cut looks like the end of an answer to some readers.
        bounds.refuse_slowness(error)
        raise
    finally:
        bounds.over.set()
        watch.join()
        session.event_hooks = before


_connections: WeakSet[socket.socket] = WeakSet()
"""The open connections of the library's session, which keeps them for the next request."""


class _Bounds:
    """The limits of one use of the session.

    The pace is that of the use as a whole, watched by a thread: a time-out is about one read, and a
    hub that sends a byte a second of a header, or ends each answer after a byte, exceeds none.
    """

    def __init__(self, hub: str, limit: int | None) -> None:
        self.over = threading.Event()
        self._hub = hub
        self._limit = limit
        self._came = 0
        self._slow = False

    def begin(self, request: httpx2.Request) -> None:
        """Take note of the connection that a request opens."""
        self.refuse_slowness(None)
        request.extensions = {**request.extensions, "trace": self._step}

    def bound(self, response: httpx2.Response) -> None:
        """Count what an answer brings.

        Raises:
            HubError: It comes packed, and a few bytes may unpack to any number.
        """
        coding = response.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise HubError(
                f"{self._hub} sends what was not asked for: content packed as {coding[:20]!r}",
                "try again later, or from another network",
            )
        assert isinstance(response.stream, httpx2.SyncByteStream)
        response.stream = _Counted(response.stream, self)

    def count(self, came: int, total: int) -> None:
        """Count a received piece of an answer."""
        self._came += came
        if self._limit is not None and total > self._limit:
            raise HubError(
                f"{self._hub} sends more than {self._limit >> 20} MB of description",
                "check HF_ENDPOINT and the connection",
            )

    def watch(self) -> None:
        """Cut the connections as soon as too little comes; returns when the use is over."""
        # Two looks within the time: one may come right after the process was suspended.
        came = deque([0], maxlen=3)
        while not self.over.wait(PACE_S / 2):
            came.append(self._came)
            if len(came) == 3 and came[2] - came[0] < MIN_BYTES_PER_S * PACE_S:
                self._slow = True
                for connection in list(_connections):
                    with contextlib.suppress(OSError):  # It is closed already.
                        socket.socket.shutdown(connection, socket.SHUT_RDWR)
                return

    def _step(self, event: str, info: dict[str, Any]) -> None:
        """Called by the HTTP library before and after each of its steps."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            _connections.add(info["return_value"].get_extra_info("socket"))
            self.refuse_slowness(None)

    def refuse_slowness(self, error: Exception | None) -> None:
        """Raise a ``HubError`` where too little has arrived."""
        if self._slow:
            raise HubError(
                f"{self._hub} sends less than {MIN_BYTES_PER_S} bytes a second",
                "what was downloaded is kept; run the command again later",
            ) from error


class _Counted(httpx2.SyncByteStream):
    """The stream of an answer."""

    def __init__(self, stream: httpx2.SyncByteStream, bounds: _Bounds) -> None:
        self._stream = stream
        self._bounds = bounds

    def __iter__(self) -> Iterator[bytes]:
        total = 0
        for data in self._stream:
            total += len(data)
            self._bounds.count(len(data), total)
            yield data

    def close(self) -> None:
        self._stream.close()
