"""One WebSocket of the Responses API: reading client events, lanes, stopping and steering.

The reader never waits for a model, so a stop is seen at once; each lane has a task that runs its
turns one after the other. Closing the socket stops everything that runs for it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketDisconnected

from midstream.responses.events import ErrorCode
from midstream.serving.conversations import ResponseCache, StoredConversation
from midstream.serving.limits import TokenBucket
from midstream.serving.logs import fault
from midstream.serving.output import Event
from midstream.serving.requests import (
    CreateRequest,
    InterruptRequest,
    RequestError,
    SteerRequest,
    convert,
    read_create,
    read_frame,
    read_steer_messages,
)
from midstream.serving.service import Service, shutting_down
from midstream.serving.turn import AcceptedSteer, Interrupt, ServedResponse

_log = logging.getLogger(__name__)

_TOLERATED = frozenset({"response.processed"})
"""Client events that mean nothing to this server and are no error (Codex sends them)."""

_POLICY_VIOLATION = 1008
_SERVICE_RESTART = 1012
_TRY_AGAIN_LATER = 1013
"""Close codes of WebSockets, from the registry of IANA."""

_NOT_FOUND = ("response_not_found", "There is no such response on this connection.")

_REMEMBERED = 64
"""Ended turns that late interrupts and steers are still answered for."""


@dataclass(frozen=True, slots=True)
class _Asked:
    request: CreateRequest
    size: int


@dataclass(slots=True)
class _Lane:
    waiting: deque[_Asked] = field(default_factory=lambda: deque[_Asked]())
    task: asyncio.Task[None] | None = None


class ServerConnection:
    """Serves one accepted WebSocket until it is closed."""

    def __init__(self, socket: WebSocket, service: Service) -> None:
        self._socket = socket
        self._service = service
        self._limits = service.limits
        self._cache = ResponseCache[StoredConversation](
            self._limits.cached_responses, self._limits.cached_characters
        )
        self._lanes: dict[str | None, _Lane] = {}
        self._named_lanes: set[str] = set()
        self._read_ahead: dict[str, str] = {}
        self._running: dict[str, ServedResponse] = {}
        self._ended: dict[str, ServedResponse] = {}
        self._pending_steers: dict[str, list[AcceptedSteer]] = {}
        self._encoder = msgspec.json.Encoder()
        self._sending = asyncio.Lock()
        self._bad_frames = 0
        self._held_bytes = 0
        self._closed = False

    async def run(self) -> None:
        """Serve until the peer leaves or breaks the rules."""
        loop = asyncio.get_running_loop()
        lifetime = self._limits.connection_seconds
        deadline = None if lifetime is None else loop.time() + lifetime
        bucket = TokenBucket(self._limits.frames_per_second, loop.time())
        try:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        message = await self._socket.receive()
                except TimeoutError:
                    await self._end_of_life()
                    return
                if message["type"] == "websocket.disconnect":
                    return
                if not bucket.take(_weight(message), loop.time()):
                    sentence = "Too many messages (or too large ones) per second for this server."
                    error = RequestError(sentence, code="rate_limit", status=429)
                    await self._dismiss(error, _POLICY_VIOLATION, "too many messages")
                    return
                if not await self._take(message):
                    return
        except WebSocketDisconnect:
            return
        finally:
            await self._stop_all()

    async def _take(self, message: Any) -> bool:
        """Handle one frame; False after the connection was closed for it."""
        try:
            text = message.get("text")
            if text is None:
                raise RequestError("Send JSON in text frames, not binary.", code="invalid_json")
            await self._dispatch(read_frame(text), len(text))
        except RequestError as error:
            self._bad_frames += 1
            await self._refuse(error)
            if self._bad_frames >= self._limits.bad_frames:
                await self._close(_POLICY_VIOLATION, "too many invalid messages")
                return False
        return True

    async def _dispatch(self, fields: dict[str, Any], size: int) -> None:
        kind = fields.get("type")
        if kind == "response.create":
            await self._create(fields, size)
        elif kind == "response.interrupt":
            await self._interrupt(convert(fields, InterruptRequest))
        elif kind == "response.steer":
            await self._steer(fields)
        elif kind not in _TOLERATED:
            raise RequestError(
                f"The event type {kind!r} is unknown; use response.create, "
                "response.interrupt or response.steer.",
                code="unknown_event",
                param="type",
            )

    async def _send(self, event: Event) -> None:
        frame = self._encoder.encode(event).decode()
        async with self._sending:
            if self._closed:
                raise WebSocketDisconnect
            try:
                await self._socket.send_text(frame)
            except WebSocketDisconnected as error:
                raise WebSocketDisconnect from error

    async def _close(self, code: int, reason: str) -> None:
        """Close the socket; turns that still send are ended by that."""
        self._closed = True
        await self._socket.close(code, reason)

    async def _dismiss(self, error: RequestError, code: int, reason: str) -> None:
        await self._refuse(error)
        await self._close(code, reason)

    async def _refuse(self, error: RequestError, stream_id: str | None = None) -> None:
        await self._send(error.envelope(stream_id))

    # Creating.

    async def _create(self, fields: dict[str, Any], size: int) -> None:
        stream_id = fields.get("stream_id")
        try:
            request = read_create(fields)
            if request.background:
                raise RequestError(
                    "A response over a WebSocket cannot run in the background; use POST.",
                    code="unsupported_parameter",
                    param="background",
                )
            self._admit(request, size)
        except RequestError as error:
            named = isinstance(stream_id, str) and error.code != "invalid_stream_id"
            self._bad_frames += error.status == 400
            await self._refuse(error, stream_id if named else None)
            return
        self._bad_frames = 0
        if request.stream_id is not None and not request.generate:
            self._give_way(request.stream_id)
        lane = self._lanes.setdefault(request.stream_id, _Lane())
        lane.waiting.append(_Asked(request, size))
        self._held_bytes += size
        if lane.task is None:
            lane.task = asyncio.create_task(self._run_lane(request.stream_id, lane))

    def _give_way(self, stream_id: str) -> None:
        """A new prompt to read ahead replaces the previous one of its stream."""
        for turn in self._running.values():
            if turn.request.stream_id == stream_id and not turn.request.generate and turn.active:
                turn.interrupt(Interrupt.DISCARD)

    def _admit(self, request: CreateRequest, size: int) -> None:
        self._service.worker(request.model)
        self._service.admit()
        waiting = sum(len(lane.waiting) for lane in self._lanes.values()) + len(self._running)
        heavy = waiting and self._held_bytes + size > self._limits.waiting_bytes
        if heavy or waiting >= self._limits.waiting_creates:
            raise RequestError(
                f"{waiting} requests of this connection are waiting; let some finish first.",
                code="too_many_requests",
                status=429,
            )
        lane = request.stream_id
        if lane is not None and lane not in self._named_lanes:
            if len(self._named_lanes) >= self._limits.lanes:
                raise RequestError(
                    f"A connection has at most {self._limits.lanes} streams; reuse a stream_id.",
                    code="websocket_stream_limit_reached",
                    param="stream_id",
                )
            self._named_lanes.add(lane)

    async def _run_lane(self, name: str | None, lane: _Lane) -> None:
        try:
            while lane.waiting:
                asked = lane.waiting.popleft()
                request: CreateRequest | None = asked.request
                steers: list[AcceptedSteer] = []
                while request is not None:
                    turn = await self._guarded_turn(request, steers)
                    request, steers = self._successor(turn) if turn is not None else (None, [])
                    if turn is not None:
                        turn.release()
                self._held_bytes -= asked.size
        except WebSocketDisconnect:
            return
        finally:
            lane.task = None
            if not lane.waiting:
                self._lanes.pop(name, None)

    async def _guarded_turn(
        self, request: CreateRequest, steers: list[AcceptedSteer]
    ) -> ServedResponse | None:
        """Run one response; a fault of this server ends the response, not the connection."""
        try:
            return await self._run_turn(request, steers)
        except WebSocketDisconnect:
            raise
        except Exception as error:
            _log.error("a response could not be served: %s", fault(error))
            sentence = f"The server failed ({type(error).__name__}); its log has details."
            await self._refuse(
                RequestError(sentence, code=ErrorCode.SERVER_ERROR, status=500), request.stream_id
            )
            return None

    async def _run_turn(
        self, request: CreateRequest, steers: list[AcceptedSteer]
    ) -> ServedResponse | None:
        """Run one response; None if it was refused before it was created."""
        try:
            history, parent = await self._service.history(request, self._cache)
            if parent is not None and not steers:
                steers = self._pending_steers.pop(parent.response_id, [])
                if steers:
                    own = history[len(parent.messages) :]
                    steered = tuple(message for steer in steers for message in steer.messages)
                    history = (*parent.messages, *steered, *own)
            turn = self._service.turn(request, history, parent, self._send)
        except RequestError as error:
            await self._refuse(error, request.stream_id)
            return None
        self._running[turn.id] = turn
        try:
            await self._service.run(turn)
        finally:
            del self._running[turn.id]
        self._ended[turn.id] = turn
        while len(self._ended) > _REMEMBERED:
            del self._ended[next(iter(self._ended))]
        await self._settle(turn)
        return turn

    async def _settle(self, turn: ServedResponse) -> None:
        """Keep or evict conversations after a turn, and answer its steers if nothing follows."""
        conversation = turn.conversation
        if conversation is None:
            # A failed continuation takes its parent along, a failed fork does not.
            parent = self._cache.get(turn.request.previous_response_id or "")
            if parent is not None and parent.stream_id == turn.request.stream_id:
                self._cache.drop(parent.response_id)
        else:
            self._cache.add(conversation)
            if conversation.stream_id is not None and not turn.request.generate:
                # Only the last state of a text that is read while typed is stored: others would
                # drive out real answers.
                self._cache.drop(self._read_ahead.get(conversation.stream_id, ""))
                self._read_ahead[conversation.stream_id] = turn.id
        if turn.request.keep:
            await self._service.stored.add(turn)
        if not turn.steers:
            return
        if turn.required:
            self._pending_steers[turn.id] = turn.steers
            if len(self._pending_steers) > _REMEMBERED:
                del self._pending_steers[next(iter(self._pending_steers))]
            for steer in turn.steers:
                await turn.emit(
                    {
                        "type": "response.steer.pending",
                        "reason": "waiting_for_required_input",
                        "required_input": list(turn.required),
                        "steer": {"id": steer.id, "previous_response_id": turn.id},
                    }
                )
        elif conversation is None or turn.interrupted:
            for steer in turn.steers:
                await turn.emit(
                    _steer_failed(
                        "response_not_active",
                        "The response ended before the instruction could be applied.",
                        steer.input,
                        turn.id,
                        steer.id,
                    )
                )

    def _successor(self, turn: ServedResponse) -> tuple[CreateRequest | None, list[AcceptedSteer]]:
        """The request that continues with a turn's steers, if any."""
        if not turn.steers or turn.required or turn.interrupted or turn.conversation is None:
            return None, []
        items = [
            {"type": "message", "role": message.role, "content": message.text}
            for steer in turn.steers
            for message in steer.messages
        ]
        request = msgspec.structs.replace(
            turn.request,
            input=items,
            previous_response_id=turn.id,
            correction=None,
            must_change=False,
        )
        return request, turn.steers

    # Stopping and steering.

    async def _interrupt(self, request: InterruptRequest) -> None:
        turn = self._running.get(request.response_id)
        if turn is not None and turn.active:
            turn.interrupt(Interrupt(request.mode))
            return
        turn = turn or self._ended.get(request.response_id)
        code, message = _NOT_FOUND
        if turn is not None:
            code = "response_not_active"
            message = "The response has ended or is being stopped already."
        event: Event = {
            "type": "response.interrupt.failed",
            "response_id": request.response_id,
            "error": {"type": "invalid_request_error", "code": code, "message": message},
        }
        await self._answer(turn, event)

    async def _answer(self, turn: ServedResponse | None, event: Event) -> None:
        """Send an event about a response, which may not exist."""
        if turn is not None:
            await turn.emit(event)
        else:
            await self._send(event | {"sequence_number": 0})

    async def _steer(self, fields: dict[str, Any]) -> None:
        target = fields.get("previous_response_id")
        turn: ServedResponse | None = None
        if isinstance(target, str):
            turn = self._running.get(target) or self._ended.get(target)
        text: Any = fields.get("input")
        code, message = _NOT_FOUND
        if turn is not None:
            code, message = self._check_steer(turn, fields)
        if turn is None or code:
            event = _steer_failed(code, message, text, target if isinstance(target, str) else "")
            await self._answer(turn, event)
            return
        request = convert(fields, SteerRequest)
        steer = AcceptedSteer(
            f"steer_{secrets.token_hex(12)}", request.input, read_steer_messages(request.input)
        )
        turn.steer(steer)
        await turn.emit(
            {
                "type": "response.steer.accepted",
                "steer": {"id": steer.id, "previous_response_id": turn.id},
            }
        )

    def _check_steer(self, turn: ServedResponse, fields: dict[str, Any]) -> tuple[str, str]:
        """Code and sentence of a refusal; both empty if the steer is fine."""
        unknown = sorted(set(fields) - {"type", "previous_response_id", "input"})
        if unknown:
            return "invalid_input", f"response.steer does not take {', '.join(unknown)}."
        try:
            messages = read_steer_messages(convert(fields, SteerRequest).input)
        except RequestError as error:
            return "invalid_input", str(error)
        if sum(len(message.text) for message in messages) > self._limits.steer_characters:
            return "invalid_input", "The instruction is too long; send it as a request of its own."
        if turn.status != "in_progress":
            return "response_already_completed", "The response has already ended."
        if not turn.active:
            return "response_not_active", "The response is ending already."
        if len(turn.steers) >= self._limits.pending_steers:
            return "too_many_pending_steers", "Too many instructions are waiting for this response."
        return "", ""

    # The end.

    async def farewell(self) -> None:
        await self._dismiss(shutting_down(), _SERVICE_RESTART, "the server is ending")

    async def _end_of_life(self) -> None:
        sentence = "This connection has reached its time limit; open a new one."
        error = RequestError(sentence, code=ErrorCode.CONNECTION_LIMIT)
        await self._dismiss(error, _TRY_AGAIN_LATER, "connection time limit")

    async def _stop_all(self) -> None:
        for turn in self._running.values():
            turn.abandon()
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                _log.error("a turn ended badly: %s", fault(result))


def _weight(message: Any) -> float:
    """Cost of a frame: one, plus one per 64 KiB."""
    return 1 + len(message.get("text") or message.get("bytes") or "") / 65_536


def _steer_failed(
    code: str,
    message: str,
    text: Any,
    target: str,
    steer_id: str | None = None,
) -> Event:
    given = cast("str | list[Any]", text) if isinstance(text, str | list) else ""
    steer: dict[str, Any] = {"input": given, "previous_response_id": target}
    if steer_id is not None:
        steer["id"] = steer_id
    return {
        "type": "response.steer.failed",
        "error": {"type": "invalid_request_error", "code": code, "message": message},
        "steer": steer,
    }
