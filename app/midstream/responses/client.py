"""Responses over one persistent WebSocket: creating, stopping, steering, reconnecting.

One reader task always drains the socket, whatever the consumers do, so control never waits behind
text. Responses run on the server's default lane, which is first in, first out: an event without a
response id belongs to the response that was created last and has not ended. A response that the
server never acknowledged is sent again after a reconnect (nothing of it was delivered); one that
had started fails with "connection_lost" and keeps its text.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from midstream.errors import UnavailableError
from midstream.responses.connection import Connection
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import (
    TERMINALS,
    TEXT_DELTAS,
    Failed,
    Finished,
    ServerEvent,
    Started,
    Usage,
    WireResponse,
)
from midstream.responses.stream import Stream

_STOP_SECONDS = 5.0
"""How long a stopped response may take to end before the connection is given up (prefill chunks
are shorter).
"""

_BACKOFF_SECONDS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Pauses before the attempts to reconnect while unacknowledged requests wait."""


@dataclass(slots=True)
class _Turn:
    """A stream together with what was asked for."""

    stream: Stream
    frame: dict[str, Any]
    stop: str | None = None
    """Interrupt mode, as soon as the reader stopped the stream."""
    items: set[str] = field(default_factory=set[str])
    successors: list[_Turn] = field(default_factory=list["_Turn"])
    """What was steered into this response and not refused, oldest first."""
    deadline: asyncio.TimerHandle | None = None


class Client:
    """Talks to one endpoint. Use it from one event loop; `create` may be called before `connect`.

    Args:
        endpoint: The server and the model.
        open_timeout: Seconds for one attempt to connect.
    """

    def __init__(self, endpoint: Endpoint, *, open_timeout: float = 10.0) -> None:
        self.endpoint = endpoint
        self.dropped = 0
        """Text events that came for a response that was already stopped or over."""
        self._open_timeout = open_timeout
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._waiting: deque[_Turn] = deque()
        self._running: _Turn | None = None
        self._steered: dict[str, list[_Turn]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def connected(self) -> bool:
        """Whether a socket is open right now."""
        return self._connection is not None and self._connection.alive

    async def connect(self) -> None:
        """Open the connection; does nothing if it is open.

        Raises:
            UnavailableError: The endpoint cannot be reached or refuses.
        """
        async with self._connecting:
            if self._closed:
                raise UnavailableError("This connection to the model server was closed.")
            if not self.connected:
                self._connection = await Connection.open(
                    self.endpoint, self._on_event, self._on_lost, open_timeout=self._open_timeout
                )

    async def close(self) -> None:
        """Close the connection; open streams end as failed ("closed")."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
        self._fail_all(Failed("closed", "The connection to the model server was closed."))

    async def create(
        self,
        *,
        messages: Sequence[tuple[str, str]],
        instructions: str = "",
        previous_response_id: str | None = None,
        generate: bool = True,
        max_output_tokens: int | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Stream:
        """Ask for a response.

        Args:
            messages: Pairs of role ("user", "assistant", "system") and text. With
                ``previous_response_id`` only what follows that response, else the whole
                conversation.
            instructions: System text; never inherited from an earlier response.
            previous_response_id: A response of this connection (or a stored one) to go on from.
            generate: False prepares the server for these messages without generating.
            max_output_tokens: Limit of the output.
            metadata: Up to 16 strings that come back in the response.

        Returns:
            The stream; it yields `Started` first, or `Failed`.

        Raises:
            UnavailableError: No connection could be made.
        """
        frame: dict[str, Any] = {
            "type": "response.create",
            "model": self.endpoint.model,
            "input": [_message(role, text) for role, text in messages],
            "store": False,
        }
        if instructions:
            frame["instructions"] = instructions
        if previous_response_id is not None:
            frame["previous_response_id"] = previous_response_id
        if not generate:
            frame["generate"] = False
        if max_output_tokens is not None:
            frame["max_output_tokens"] = max_output_tokens
        if metadata:
            frame["metadata"] = dict(metadata)
        if self.endpoint.kind == "local":
            frame["stream_options"] = {"midstream_tokens": True}
        await self.connect()
        turn = _Turn(Stream(self), frame)
        self._waiting.append(turn)
        try:
            await self._send(frame)
        except UnavailableError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            raise
        return turn.stream

    async def stop(self, stream: Stream, *, keep: bool) -> None:
        """Make the server end a response (see `Stream.interrupt`, which callers use)."""
        turn = self._find(stream)
        if turn is None:
            return
        turn.stop = "keep_partial_items" if keep else "discard_partial_items"
        if stream.id:
            await self._send_stop(turn)

    async def steer(self, stream: Stream, text: str) -> Stream:
        """Queue an instruction for a running response (see `Stream.steer`).

        Raises:
            UnavailableError: The response is over or the connection is gone.
        """
        turn = self._running
        if turn is None or turn.stream is not stream or stream.done:
            raise UnavailableError(
                "This response has already ended; send the instruction as a new one."
            )
        successor = _Turn(Stream(self), turn.frame)
        turn.successors.append(successor)
        await self._send(
            {"type": "response.steer", "previous_response_id": stream.id, "input": text}
        )
        return successor.stream

    async def _send(self, frame: dict[str, Any]) -> None:
        if self._connection is None:
            raise UnavailableError("The connection to the model server was lost; try again.")
        await self._connection.send(frame)

    async def _send_stop(self, turn: _Turn) -> None:
        turn.deadline = asyncio.get_running_loop().call_later(_STOP_SECONDS, self._give_up, turn)
        # If the connection is gone the reader sees the same loss and ends the stream.
        with contextlib.suppress(UnavailableError):
            await self._send(
                {"type": "response.interrupt", "response_id": turn.stream.id, "mode": turn.stop}
            )

    def _give_up(self, turn: _Turn) -> None:
        """Leave a connection whose server does not react to a stop; the stream ends as
        interrupted.
        """
        connection = self._connection
        if connection is not None and not turn.stream.done:
            self._on_lost(connection, "the server did not stop when it was told to")
            self._spawn(connection.close())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Reader side: everything below runs on the loop, called by the connection's reader task.

    def _on_event(self, event: ServerEvent) -> None:
        kind = event.type
        if kind in TEXT_DELTAS:
            turn = self._running
            if turn is None or turn.stop is not None or event.item_id not in turn.items:
                self.dropped += 1
            elif isinstance(event.delta, str):
                turn.stream.push_text(event.delta, event.tokens)
        elif kind == "response.output_item.added":
            if self._running is not None and event.item is not None and event.item.id:
                self._running.items.add(event.item.id)
        elif kind == "response.created":
            if event.response is not None:
                self._on_created(event.response)
        elif kind in TERMINALS:
            if event.response is not None:
                self._on_terminal(event.response)
        elif kind == "response.steer.failed":
            self._on_steer_failed(event)
        elif kind == "error":
            self._on_error(event)

    def _on_created(self, response: WireResponse) -> None:
        turn = self._successor_of(response.previous_response_id)
        if turn is None:
            if not self._waiting:
                return
            turn = self._waiting.popleft()
        self._running = turn
        turn.stream.push_started(Started(response.id, response.metadata or {}))
        if turn.stop is not None:
            self._spawn(self._send_stop(turn))

    def _successor_of(self, response_id: str | None) -> _Turn | None:
        """Return the successor that steering made of the given response; every steer of it ends up
        there.
        """
        if response_id is None or response_id not in self._steered:
            return None
        first, *others = self._steered.pop(response_id)
        for other in others:
            other.stream.push_end(Finished("completed", "merged", Usage(), ""))
        return first

    def _on_terminal(self, response: WireResponse) -> None:
        turn = self._running
        if turn is None or turn.stream.id != response.id:
            return
        self._running = None
        if turn.successors:
            self._steered[response.id] = turn.successors
        if response.status == "failed":
            error = response.error
            self._end(
                turn,
                Failed(
                    (error and error.code) or "server_error",
                    (error and error.message) or "The model server failed without saying why.",
                ),
            )
            return
        details = response.incomplete_details
        self._end(
            turn,
            Finished(
                status=response.status or "completed",
                reason=details.reason if details is not None else None,
                usage=response.usage.counted() if response.usage is not None else Usage(),
                text="",
                kept=response.text,
                metadata=response.metadata or {},
            ),
        )

    def _on_steer_failed(self, event: ServerEvent) -> None:
        target = event.steer.previous_response_id if event.steer is not None else None
        turns: list[_Turn] = []
        if target is not None:
            turns = self._steered.get(target, [])
            if self._running is not None and self._running.stream.id == target:
                turns = self._running.successors
        if not turns:
            return
        error = event.error
        self._end(
            turns.pop(0),
            Failed(
                (error and error.code) or "steering_failed",
                (error and error.message) or "The model server refused to be steered.",
            ),
        )
        if target is not None and not self._steered.get(target, True):
            del self._steered[target]

    def _on_error(self, event: ServerEvent) -> None:
        if event.status is None:
            return
        error = event.error
        failed = Failed(
            (error and error.code) or "error",
            (error and error.message) or f"The model server refused the request ({event.status}).",
        )
        # Requests are answered in order, so a refusal belongs to the oldest one without an answer.
        if self._waiting:
            self._end(self._waiting.popleft(), failed)
        elif self._running is not None:
            turn, self._running = self._running, None
            self._end(turn, failed)

    def _on_lost(self, connection: Connection, reason: str) -> None:
        if self._connection is not connection:
            return
        self._connection = None
        failed = Failed(
            "connection_lost", f"The connection to the model server was lost: {reason}."
        )
        if self._running is not None:
            turn, self._running = self._running, None
            self._end(turn, failed)
        for turns in self._steered.values():
            for turn in turns:
                self._end(turn, failed)
        self._steered.clear()
        for turn in [turn for turn in self._waiting if turn.stop is not None]:
            self._waiting.remove(turn)
            self._end(turn, failed)
        if self._waiting and not self._closed:
            self._spawn(self._resend())

    async def _resend(self) -> None:
        """Send the requests again that no server acknowledged; none had delivered anything."""
        last = "The connection to the model server was lost."
        again, self._waiting = list(self._waiting), deque[_Turn]()
        for pause in _BACKOFF_SECONDS:
            await asyncio.sleep(pause)
            try:
                await self.connect()
                while again:
                    self._waiting.append(again[0])
                    await self._send(again[0].frame)
                    again.pop(0)
                return
            except UnavailableError as error:
                last = str(error)
                while again and again[0] in self._waiting:
                    self._waiting.remove(again[0])
        for turn in again:
            self._end(turn, Failed("connection_lost", last))

    def _end(self, turn: _Turn, terminal: Finished | Failed) -> None:
        if turn.deadline is not None:
            turn.deadline.cancel()
        turn.stream.push_end(terminal)
        if isinstance(terminal, Failed):
            for successor in turn.successors:
                successor.stream.push_end(terminal)
            self._steered.pop(turn.stream.id, None)

    def _find(self, stream: Stream) -> _Turn | None:
        turns = [*self._waiting, *(turn for group in self._steered.values() for turn in group)]
        if self._running is not None:
            turns += [self._running, *self._running.successors]
        return next((turn for turn in turns if turn.stream is stream), None)

    def _fail_all(self, failed: Failed) -> None:
        turns = [*self._waiting, *(turn for group in self._steered.values() for turn in group)]
        if self._running is not None:
            turns.append(self._running)
        self._waiting.clear()
        self._steered.clear()
        self._running = None
        for turn in turns:
            self._end(turn, failed)


def _message(role: str, text: str) -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": part, "text": text}]}
