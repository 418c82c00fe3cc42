"""uvicorn's WebSocket, bounded where a peer could make it work or remember without end.

The application counts messages; what never becomes one (pings, pongs, fragments) is counted here.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from midstream.serving.limits import Limits

_MOST_UNREAD = 1024 * 1024
"""Bytes that a peer leaves unread above which its pings are not answered: it would not see that."""


def bounded_socket(limits: Limits) -> type[WebSocketsSansIOProtocol]:
    """The protocol class of a server with these limits."""

    class Bounded(_Bounded):
        rate = float(limits.frames_per_second)

    return Bounded


class _Bounded(WebSocketsSansIOProtocol):
    """Counts the frames that are no messages, in bursts of as many as are allowed in a second."""

    rate = 500.0

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._allowance = self.rate
        self._counted = self.loop.time()

    def handle_ping(self) -> None:
        if not self._allowed():
            return
        if self.transport.get_write_buffer_size() > _MOST_UNREAD:
            self.conn.data_to_send()  # the pong, which nobody would read
        else:
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        if self._allowed():
            super().handle_pong(event)

    def handle_cont(self, event: Frame) -> None:
        if self._allowed():
            super().handle_cont(event)

    def _allowed(self) -> bool:
        if self.close_sent:
            return False
        now = self.loop.time()
        gained = (now - self._counted) * self.rate
        self._allowance = min(self.rate, self._allowance + gained) - 1
        self._counted = now
        if self._allowance >= 0:
            return True
        self.conn.send_close(CloseCode.POLICY_VIOLATION, "too many control frames")
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()
        return False
