"""Runs the application in this process's event loop: the embedded child, ``midstream serve``, tests
and benchmarks.

uvicorn's WebSocket is bounded here where a peer could make it work or remember without end. The
application counts messages; what never becomes one (pings, pongs, fragments) is counted here.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from midstream.errors import UnavailableError
from midstream.serving.limits import Limits, TokenBucket
from midstream.serving.logs import hush
from midstream.serving.service import Service

_MAX_UNREAD_BYTES = 1024 * 1024
"""Unread bytes of a peer above which its pings are not answered: it would not see the pong."""


def bounded_socket(limits: Limits) -> type[WebSocketsSansIOProtocol]:

    class Bounded(_Bounded):
        rate = float(limits.frames_per_second)

    return Bounded


class _Bounded(WebSocketsSansIOProtocol):
    """Counts the frames that are no messages, in bursts of as many as are allowed in a second."""

    rate = 500.0

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._bucket = TokenBucket(self.rate, self.loop.time())

    def handle_ping(self) -> None:
        if not self._allowed():
            return
        if self.transport.get_write_buffer_size() > _MAX_UNREAD_BYTES:
            self.conn.data_to_send()  # discard the pong: it would not be read
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
        if self._bucket.take(1, self.loop.time()):
            return True
        self.conn.send_close(CloseCode.POLICY_VIOLATION, "too many control frames")
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()
        return False


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that listens.

    Attributes:
        port: Its port.
        finished: Ends when the server has stopped serving.
        stop: Ends it once the answers that run have ended, or the time for that is up.
        hurry: Does not wait for them any more.
    """

    port: int
    finished: asyncio.Task[None]
    stop: Callable[[], None]
    hurry: Callable[[], None]


_REQUEST_SECONDS = 10.0
"""How long a new connection may take to send its first request, and a closed one to be read out."""

_OTHER_FILES = 256
"""Files that the process may have open besides its connections."""


class _ReportingServer(uvicorn.Server):
    """uvicorn's server, which says when it listens and leaves signals to the program around it."""

    def __init__(self, config: uvicorn.Config, service: Service, grace: float) -> None:
        super().__init__(config)
        self._service = service
        self._grace = grace
        self._hurried = asyncio.Event()
        self.listening = asyncio.Event()
        self._leaving = asyncio.Event()
        self._silent: dict[object, float] = {}
        self._closing: dict[Any, float] = {}

    def leave(self) -> None:
        self.should_exit = True
        self._leaving.set()

    def hurry(self) -> None:
        self._hurried.set()

    async def main_loop(self) -> None:
        # uvicorn's own loop wakes ten times a second, which an idle screen's child should not.
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._leaving.wait()
            self._close_silent()
            self._drop_stuck()

    def _close_silent(self) -> None:
        """Close connections that were opened and never sent a request."""
        now = time.monotonic()
        silent: dict[object, float] = {
            connection: self._silent.get(connection, now)
            for connection in self.server_state.connections
            # A connection that became a WebSocket is another kind of object, without a cycle.
            if getattr(connection, "cycle", self) is None
        }
        self._silent = silent
        for connection in self.server_state.connections:
            if now - silent.get(connection, now) > _REQUEST_SECONDS:
                connection.transport.close()

    def _drop_stuck(self) -> None:
        """Drop closed connections whose peers do not read; they would stay forever."""
        now = time.monotonic()
        self._closing = {
            connection: self._closing.get(connection, now)
            for connection in self.server_state.connections
            if connection.transport.is_closing()
        }
        for connection, since in self._closing.items():
            if now - since > _REQUEST_SECONDS:
                connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:  # New connections are refused from now on.
            server.close()
        await self._drain()
        await self._service.leave()
        await super().shutdown(sockets)

    async def _drain(self) -> None:
        """Let answers end, until the time is up or a second signal arrives."""
        work = (self._service.drain(self._grace), self._hurried.wait())
        tasks = [asyncio.create_task(each) for each in work]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self):
        yield


def raise_file_limit(connections: int) -> None:
    """Raise this process's limit of open files for this many connections, as far as allowed."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = connections + _OTHER_FILES
        if soft < wanted:
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@asynccontextmanager
async def serve(
    app: Starlette,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    limits: Limits | None = None,
    compression: bool = False,
    certificate: str | None = None,
    key: str | None = None,
    log_requests: bool = False,
    grace: float = 0.0,
) -> AsyncGenerator[RunningServer]:
    """Serve an application until the block is left.

    Args:
        app: The application.
        host: Address to bind; loopback unless you know who can reach it.
        port: Port, 0 for a free one.
        limits: Bounds of the server.
        compression: Whether to accept permessage-deflate; it costs on loopback and pays on a
            network.
        certificate: Path of a TLS certificate chain.
        key: Path of its key.
        log_requests: Whether each request makes a line in the log: who, what address, which status.
        grace: How long answers that run may take to end once the server is stopped, in seconds.

    Raises:
        UnavailableError: The address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY; without it a small frame can wait 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise UnavailableError(
            f"The address {host}:{port} cannot be bound: {error.strerror or error}."
        ) from error
    hush()
    bounds = limits or Limits()
    server = _ReportingServer(
        uvicorn.Config(
            app,
            ws=bounded_socket(bounds),
            ws_max_size=bounds.message_bytes,
            ws_per_message_deflate=compression,
            http="h11",
            loop="asyncio",
            lifespan="on",
            # Requests are logged on demand only, and prompts never.
            log_config=None,
            log_level="info" if log_requests else "warning",
            access_log=log_requests,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        ),
        app.state.service,
        grace,
    )
    task = asyncio.create_task(server.serve(sockets=[listener]), name="serving")
    try:
        listening = asyncio.create_task(server.listening.wait())
        await asyncio.wait({task, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not server.listening.is_set():
            listening.cancel()
            await task
            raise UnavailableError("The server stopped during startup.")
        port = listener.getsockname()[1]
        yield RunningServer(port, task, server.leave, server.hurry)
    finally:
        server.leave()
        await asyncio.gather(task, return_exceptions=True)
