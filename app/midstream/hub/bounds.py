"""Bounds of what a hub sends: bytes, pace, and nothing packed.

A hub may be anybody's, and a network may put itself in its place. By default the hub's library
waits without end, reads a description of any length and unpacks what it did not ask for packed.

This is imported when a hub is spoken to: the HTTP library takes a while.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Final

import httpx2

from midstream.hub.library import SECONDS, HubError, hub_library

SILENCE_S = 60.0
"""How long the hub may be silent while it sends."""
PACE_S = 60.0
"""How often it is looked at whether the hub sends fast enough."""
MIN_BYTES_PER_S: Final = 1000
"""Bytes a second below which it is too slow to wait for."""


def hub_session(hub: str, limit: int | None = None) -> httpx2.Client:
    """The HTTP client of the hub's library, bounded.

    Args:
        hub: The hub's address.
        limit: Bytes of an answer; ``None`` where the caller counts them.
    """
    session: httpx2.Client = hub_library().get_session()
    session.headers["Accept-Encoding"] = "identity"
    session.timeout = httpx2.Timeout(SILENCE_S, connect=SECONDS)
    hook = partial(_bound, hub=hub, limit=limit)
    session.event_hooks = {**session.event_hooks, "response": [hook]}
    return session


def _bound(response: httpx2.Response, hub: str, limit: int | None) -> None:
    """Let an answer that has begun end with a ``HubError`` where it goes on for too long.

    Args:
        response: The answer; what was not asked for packed must not come so, since a few bytes
            may unpack to any number.
        hub: The hub's address.
        limit: Its bytes; ``None`` where the caller counts them.
    """
    coding = response.headers.get("content-encoding", "identity")
    if coding != "identity":
        raise HubError(
            f"{hub} sends what was not asked for: content packed as {coding[:20]!r}",
            "try again later, or from another network",
        )
    assert isinstance(response.stream, httpx2.SyncByteStream)
    response.stream = _Bounded(response.stream, hub, limit)


class _Bounded(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, hub: str, limit: int | None) -> None:
        self._stream = stream
        self._hub = hub
        self._limit = limit

    def __iter__(self) -> Iterator[bytes]:
        total = counted = 0
        since = time.monotonic()
        for data in self._stream:
            total += len(data)
            if self._limit is not None and total > self._limit:
                raise HubError(
                    f"{self._hub} sends more than {self._limit >> 20} MB of description",
                    "check HF_ENDPOINT and the connection",
                )
            yield data
            if (passed := time.monotonic() - since) > PACE_S:
                if total - counted < MIN_BYTES_PER_S * passed:
                    raise HubError(
                        f"{self._hub} sends less than {MIN_BYTES_PER_S} bytes a second",
                        "what was downloaded is kept; run the command again later",
                    )
                counted, since = total, time.monotonic()

    def close(self) -> None:
        self._stream.close()
