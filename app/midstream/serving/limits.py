"""Limits on what one peer may ask for, and how rates are counted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the server; the defaults suit one machine.

    Attributes:
        message_bytes: Largest WebSocket message and HTTP body.
        body_seconds: How long an HTTP body may take to arrive.
        connections: Open WebSockets at a time; more are refused with 503.
        posts: HTTP requests for a response at a time; more are refused with 503.
        telemetry_streams: Readers of the telemetry at a time.
        waiting_total: Generations that wait or run, of all connections together.
        waiting_creates: Requests that one connection may have waiting or running.
        waiting_bytes: Their size altogether; a single one may be larger.
        lanes: Distinct ``stream_id`` values per connection.
        pending_steers: Steers that one response may have waiting.
        steer_characters: Length of one of them.
        bad_frames: Frames without a usable request before a connection is closed.
        frames_per_second: Client frames per second (in bursts of as many) before it is closed; a
            frame counts once more for every 64 KiB. Pings, pongs and fragments have as many of
            their own.
        connection_seconds: Lifetime of a connection, or None.
        cached_responses: Conversations that a connection can be continued from.
        cached_characters: Their size altogether.
        stored_responses: The same for responses with ``store``, of all connections.
        stored_characters: Their size altogether.
        background: Responses with ``background`` that wait or run at a time.
        unread_seconds: How long a peer may leave an answer unread before it is dropped.
        event_seconds: Least time between two text events; people cannot tell 125 a second apart.
    """

    message_bytes: int = 16 * 1024 * 1024
    body_seconds: float = 30.0
    connections: int = 256
    posts: int = 64
    telemetry_streams: int = 16
    waiting_total: int = 1024
    waiting_creates: int = 64
    waiting_bytes: int = 32 * 1024 * 1024
    lanes: int = 32
    pending_steers: int = 8
    steer_characters: int = 100_000
    bad_frames: int = 20
    frames_per_second: int = 500
    connection_seconds: float | None = None
    cached_responses: int = 64
    cached_characters: int = 4_000_000
    stored_responses: int = 1024
    stored_characters: int = 64_000_000
    background: int = 64
    unread_seconds: float = 60.0
    event_seconds: float = 0.008


class TokenBucket:
    """Counts what comes in against a rate a second; a burst may hold what a second allows."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._left = rate
        self._counted = now

    def take(self, cost: float, now: float) -> bool:
        """Whether this much more is within the rate; what exceeds it is counted as well."""
        gained = (now - self._counted) * self._rate
        self._left = min(self._rate, self._left + gained) - cost
        self._counted = now
        return self._left >= 0
