"""Responses over one persistent connection: creating, stopping, steering, reconnecting.

One reader task always drains the connection, whatever the consumers do, so control never waits
behind text. A response that the server never acknowledged is requested again after a reconnect
(none of it was delivered); one that had started fails as lost and keeps its text. The whole
conversation stays on this side: where it only grew, just the new messages are sent, and in full
again if the server has forgotten the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import random
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from midstream.errors import UnavailableError
from midstream.responses.concessions import refuses_tools
from midstream.responses.connection import Link, UpgradeRefusedError, WebSocketLink
from midstream.responses.conversation import Entry, RequestContent, unanswered, wire_item
from midstream.responses.dialect import StopRung
from midstream.responses.endpoint import Endpoint, Transport
from midstream.responses.events import (
    ErrorCode,
    Failed,
    Finished,
    ServerEvent,
    TokenUsage,
    WireResponse,
)
from midstream.responses.lane import Lane, Messages, PendingResponse, failure
from midstream.responses.stream import Stream

if TYPE_CHECKING:
    from midstream.guard.correction import CorrectionRequest
    from midstream.responses.http_link import ApiChoice

_BACKOFF_SECONDS = (0.0, 0.2, 0.5, 1.0, 2.0)
"""Pauses before an unacknowledged request is sent again; after the last it has failed."""

_PROBE_SECONDS = 0.3
"""How long an endpoint may take to answer the first interrupt it ever gets from us."""

_MUTE_LOSSES = 4
"""WebSockets that are lost before a server ever said anything on one, until HTTP is tried."""

_MUTE_S = 10.0
"""How long a server that never said anything over a WebSocket may take until HTTP is tried."""

_SILENCE_S = 300.0
"""How long a server may be silent during an answer; local engines read long prompts so."""

_UPGRADE_S = 5.0
"""How long a server may take to open a WebSocket where HTTP can be tried instead."""

_AHEAD = "ahead"
"""The server's lane for what is read ahead."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """A conversation that the server holds on this connection."""

    response_id: str
    messages: Messages
    settings: dict[str, Any]


class Client:
    """Talks to one endpoint, from one event loop; ``create`` may be called before ``connect``."""

    def __init__(self, endpoint: Endpoint, *, open_timeout: float = 10.0) -> None:
        self.endpoint = endpoint
        self._dialect = endpoint.dialect
        self._stop_rung: StopRung = self._dialect.stop
        self._open_timeout = open_timeout
        self._link: Link | None = None
        self._spare: Link | None = None
        self._http_only = not endpoint.tries_websocket
        self._apis: ApiChoice | None = None
        self._mute_losses = 0
        self._connecting = asyncio.Lock()
        self._tools_refused = False
        self._heard = 0.0
        self._watching: asyncio.Task[None] | None = None
        splits = not self._dialect.midstream  # Its text is the answer, whatever it holds.
        self._lane = Lane(self._on_created, self._on_ended, splits=splits)
        self._ahead = Lane(lambda turn: None, lambda turn, response: None)
        self._unsent: list[PendingResponse] = []
        self._resending: asyncio.Task[None] | None = None
        self._chain: _Chain | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._partings: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def connected(self) -> bool:
        return self._link is not None and self._link.alive

    @property
    def transport(self) -> Transport:
        """The protocol in use, as far as it is known: "websocket", or once the endpoint turned out
        to have none "sse" (the Responses API over HTTP), "chat" or "messages".
        """
        if not self._http_only:
            return "websocket"
        name = self._apis.name if self._apis is not None else self.endpoint.apis[0]
        return "sse" if name == "responses" else name

    @property
    def takes_tools(self) -> bool:
        """Whether tools can be given to the models of the server that was connected to.

        A server without custom tools gets functions instead, which only the HTTP link makes.
        """
        dialect = self._dialect
        if dialect.midstream or self._tools_refused:
            return False
        return dialect.patch_tool or self._http_only

    @property
    def remark(self) -> str:
        """Remarks about the endpoint, in sentences, or ""."""
        said = [self._apis.remark] if self._apis is not None and self._apis.remark else []
        if self._tools_refused:
            said.append(f"{self.endpoint.host} takes no tools, so the model cannot look at files.")
        return " ".join(said)

    @property
    def dropped(self) -> int:
        """Text events that arrived for a response that had been stopped or had ended."""
        return self._lane.dropped

    async def connect(self) -> None:
        """Open the connection; does nothing if it is open.

        Raises:
            UnavailableError: The endpoint cannot be reached or refuses.
        """
        async with self._connecting:
            if self._closed:
                raise UnavailableError("This connection to the model server was closed.")
            if self._outlived():
                self._leave()
            if not self.connected:
                self._chain = None
                spare, self._spare = self._spare, None
                if spare is not None and self._old(spare):
                    self._part(spare)
                    spare = None
                self._link = spare if spare is not None and spare.alive else await self._dial()

    async def close(self) -> None:
        """Close the connection; open streams end as failed."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        self._leave()
        spare, self._spare = self._spare, None
        if spare is not None:
            self._part(spare)
        await asyncio.gather(*self._tasks, *self._partings, return_exceptions=True)
        failed = Failed(ErrorCode.CLOSED, "The connection to the model server was closed.")
        for turn in (*self._lane.lose(failed), *self._unsent):
            self._lane.end(turn, failed)
        self._unsent.clear()
        self._lose_ahead(failed)

    @property
    def reads_ahead(self) -> bool:
        """Whether ``read_ahead`` may be called now."""
        return self._dialect.midstream and self.connected and not self._http_only

    async def read_ahead(self, *, messages: Sequence[Entry], instructions: str = "") -> Stream:
        """Have the server read the prompt of a request that will probably follow.

        Nothing is generated, requests go first, and a running response continues. What the server
        was reading ahead before is given up. Only Midstream's own server does this, over an open
        connection (``reads_ahead``).

        Args:
            messages: As in ``create``; the last is what is being typed.
            instructions: System text.

        Returns:
            The stream; it yields no text.

        Raises:
            UnavailableError: The connection is gone.
        """
        frame = self._asking(messages, instructions)
        frame |= {"stream_id": _AHEAD, "generate": False}
        turn = PendingResponse(Stream(self), frame)
        self._ahead.waiting.append(turn)
        try:
            await self._send(frame)
        except UnavailableError:
            self._ahead.waiting.remove(turn)
            raise
        return turn.stream

    async def create(
        self,
        *,
        messages: Sequence[Entry],
        instructions: str = "",
        previous_response_id: str | None = None,
        max_output_tokens: int | None = None,
        metadata: Mapping[str, str] | None = None,
        effort: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | Mapping[str, Any] | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        correction: CorrectionRequest | None = None,
        must_change: bool = False,
        optional_tools: Sequence[Mapping[str, Any]] = (),
        optional_instructions: str = "",
        prose: bool = False,
        silent: Collection[str] = (),
    ) -> Stream:
        """Ask for a response.

        Args:
            messages: Pairs of role ("user", "assistant", "system") and text, calls of custom tools
                and their outputs. With ``previous_response_id`` only what follows that response,
                else the whole conversation.
            instructions: System text; never inherited from an earlier response.
            previous_response_id: A response of this connection (or a stored one) to continue from.
                Not needed for speed: a conversation that only grew is continued automatically.
            max_output_tokens: Limit of the output.
            metadata: Up to 16 strings that come back in the response.
            effort: Reasoning effort, "none" to "max"; what it means is up to the model.
            tools: Tools in the API's form; the input of a custom tool arrives as ``Delta`` like
                text.
            tool_choice: Which tool must be called, in the API's form.
            temperature: 0 is greedy; None leaves it to the server.
            seed: Makes sampling repeatable; only Midstream's own server takes one.
            correction: What the last message asks for, if the guard wrote it; likewise.
            must_change: Whether the last message's region may not come back as it is; likewise.
            optional_tools: Further tools, which are left out where a server takes none.
            optional_instructions: What the instructions say about those.
            prose: Deliver only text of messages; calls of tools are in the ``output`` of the end.
            silent: Tools of which the same holds for their calls alone.

        Returns:
            The stream; it yields ``Started`` first, or ``Failed``.

        Raises:
            UnavailableError: No connection could be made.
            ValueError: A call among the messages has no output; no server accepts that.
        """
        if missing := unanswered(messages):
            raise ValueError(f"calls without an output: {', '.join(missing)}")
        await self.connect()
        offered = self.takes_tools and bool(optional_tools)
        said = instructions + optional_instructions * offered
        frame = self._asking(messages, said)
        every = (*tools, *(optional_tools if offered else ()))
        options: dict[str, Any] = {
            "max_output_tokens": max_output_tokens,
            "metadata": dict(metadata) if metadata else None,
            "reasoning": None if effort is None else {"effort": effort},
            "tools": [dict(tool) for tool in every] or None,
            "tool_choice": tool_choice,
            "temperature": temperature,
            "stream_options": dict(self._dialect.stream_options) or None,
        }
        if self._dialect.midstream:
            options |= {
                "seed": seed,
                "correction": correction and msgspec.to_builtins(correction),
                "must_change": must_change or None,
            }
        frame |= {name: value for name, value in options.items() if value is not None}
        turn = PendingResponse(Stream(self, prose=prose, silent=silent), frame)
        turn.stream.asked = RequestContent(said, tuple(messages), every)
        if offered and not tools:
            plain = self._asking(messages, instructions)
            turn.plain_frame = {**frame, "instructions": None, "tools": None, **plain}
            turn.plain_frame = {n: v for n, v in turn.plain_frame.items() if v is not None}
        if previous_response_id is not None:
            frame["previous_response_id"] = previous_response_id
        else:
            turn.messages = tuple(messages)
            self._shorten(turn)
        await self._submit(turn)
        return turn.stream

    def _asking(self, messages: Sequence[Entry], instructions: str) -> dict[str, Any]:
        """The fields of every request."""
        frame: dict[str, Any] = {
            "type": "response.create",
            "model": self.endpoint.model,
            "input": [wire_item(entry) for entry in messages],
            "store": False,
        }
        return frame | {"instructions": instructions} if instructions else frame

    async def stop(self, stream: Stream, *, keep: bool) -> None:
        """Make the server end a response (see ``Stream.interrupt``, which callers use)."""
        turn = self._lane.find(stream)
        if turn is None:
            return
        turn.stop = "keep_partial_items" if keep else "discard_partial_items"
        if stream.id or self._stop_rung == "drop":
            await self._send_stop(turn)
        else:
            self._arm(turn, self._dialect.patience_seconds)

    async def steer(self, stream: Stream, text: str) -> Stream:
        """Queue an instruction for a running response (see ``Stream.steer``).

        Raises:
            UnavailableError: The response is over or the connection is gone.
        """
        turn = self._lane.running
        if turn is None or turn.stream is not stream:
            raise UnavailableError("This response has ended; send the instruction as a new one.")
        successor = PendingResponse(Stream(self), turn.frame)
        turn.successors.append(successor)
        await self._send(
            {"type": "response.steer", "previous_response_id": stream.id, "input": text}
        )
        return successor.stream

    # Connections.

    async def _dial(self) -> Link:
        if not self._http_only:
            try:
                patience = min(self._open_timeout, _UPGRADE_S if self._may_change else 60.0)
                return await WebSocketLink.open(
                    self.endpoint, self._on_event, self._on_lost, open_timeout=patience
                )
            except UpgradeRefusedError as error:
                if error.final or self.endpoint.transport == "websocket":
                    raise
                self._http_only = True
        self._stop_rung = "drop"
        # In a thread: importing httpx would hold the screen up.
        await asyncio.to_thread(importlib.import_module, "midstream.responses.http_link")
        from midstream.responses.http_link import ApiChoice, HttpLink

        if self._apis is None:
            self._apis = ApiChoice(self.endpoint)
        return HttpLink(self.endpoint, self._apis, self._on_event, self._on_lost)

    def _outlived(self) -> bool:
        idle = self._lane.running is None and not self._lane.waiting
        return idle and self._link is not None and self._old(self._link)

    def _old(self, link: Link) -> bool:
        limit = self._dialect.connection_seconds
        return limit is not None and link.age > limit

    def _leave(self) -> None:
        """Abandon the connection; later events from it are ignored."""
        link, self._link = self._link, None
        self._chain = None
        if link is not None:
            self._part(link)

    def _part(self, link: Link) -> None:
        """Close a connection in the background; ``close`` waits for it."""
        task = asyncio.create_task(link.close())
        self._partings.add(task)
        task.add_done_callback(self._partings.discard)

    async def _dial_spare(self) -> None:
        with contextlib.suppress(UnavailableError):
            spare = await self._dial()
            if self._spare is None and not self._closed:
                self._spare = spare
            else:
                await spare.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Sending.

    async def _send(self, frame: dict[str, Any]) -> None:
        if self._link is None:
            raise UnavailableError("The connection to the model server was lost; try again.")
        await self._link.send(frame)

    def _shorten(self, turn: PendingResponse) -> None:
        """Send only the new messages if the server has the rest of the conversation."""
        chain, messages, frame = self._chain, turn.messages, turn.frame
        if chain is None or messages is None or self._http_only:
            return
        known = len(chain.messages)
        same = messages[:known] == chain.messages and len(messages) > known
        if not same or _settings(frame) != chain.settings:
            return
        turn.full_frame = dict(frame)
        frame["previous_response_id"] = chain.response_id
        frame["input"] = frame["input"][known:]

    async def _submit(self, turn: PendingResponse) -> None:
        """Send a request. If the reader notices a loss first, the request is resent instead of
        failing.
        """
        turn.attempts += 1
        if not self._lane.busy:
            self._heard = asyncio.get_running_loop().time()
        self._lane.waiting.append(turn)
        if not self._http_only and (self._watching is None or self._watching.done()):
            self._watching = self._spawn(self._watch())
        try:
            await self._send(turn.frame)
        except UnavailableError:
            if turn in self._lane.waiting:
                self._lane.waiting.remove(turn)
                raise

    def _ask_again(self, turns: list[PendingResponse]) -> None:
        """Resend requests that no server acknowledged; none of them had delivered anything."""
        for turn in turns:
            if turn.full_frame is not None:
                turn.frame, turn.full_frame = turn.full_frame, None
        self._unsent += turns
        idle = self._resending is None or self._resending.done()
        if self._unsent and idle and not self._closed:
            self._resending = self._spawn(self._resend())

    async def _resend(self) -> None:
        failed = Failed(ErrorCode.CONNECTION_LOST, "The connection to the model server was lost.")
        sent = max(turn.attempts for turn in self._unsent)
        for pause in _BACKOFF_SECONDS[sent - 1 :]:
            # Jitter, so that clients do not all reconnect at the same moment.
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))
            try:
                await self.connect()
                while self._unsent:
                    turn = self._unsent.pop(0)
                    if turn.stream.interrupted:
                        self._lane.end(turn, failed)
                        continue
                    try:
                        await self._submit(turn)
                    except UnavailableError:
                        self._unsent.insert(0, turn)
                        raise
                return
            except UnavailableError as error:
                failed = Failed(ErrorCode.CONNECTION_LOST, str(error))
        for turn in self._unsent:
            self._lane.end(turn, failed)
        self._unsent.clear()

    async def _watch(self) -> None:
        """Give up a WebSocket that is silent while an answer is awaited.

        Some gateways open WebSockets and forward nothing; there HTTP is tried.
        """
        clock = asyncio.get_running_loop().time
        while self._lane.busy and not self._http_only:
            mute = self._mute_losses >= 0 and self._may_change
            patience = _MUTE_S if mute else _SILENCE_S
            if (left := self._heard + patience - clock()) > 0:
                await asyncio.sleep(left)
                continue
            self._http_only = mute
            self._leave()
            sentence = f"The model server at {self.endpoint.host} was silent for {patience:.0f} s."
            failed = Failed(ErrorCode.CONNECTION_LOST, sentence)
            unheard = self._lane.lose(failed)
            self._lose_ahead(failed)
            if mute:
                self._ask_again(unheard)
            else:
                for turn in unheard:
                    self._lane.end(turn, failed)
            return

    @property
    def _may_change(self) -> bool:
        """Whether HTTP may be tried in place of a WebSocket."""
        return self.endpoint.transport == "auto" and not self._dialect.midstream

    # Stopping.

    async def _send_stop(self, turn: PendingResponse) -> None:
        if self._stop_rung == "drop":
            self._drop(turn)
            return
        probing = self._stop_rung == "probe"
        patience = _PROBE_SECONDS if probing else self._dialect.patience_seconds
        self._arm(turn, patience)
        mode = turn.stop if self._dialect.midstream else "discard_partial_items"
        # If the connection is gone its reader sees the same loss and ends the stream.
        with contextlib.suppress(UnavailableError):
            await self._send(
                {"type": "response.interrupt", "response_id": turn.stream.id, "mode": mode}
            )

    def _arm(self, turn: PendingResponse, seconds: float) -> None:
        """Drop a stopped response if it has not ended by then."""
        if turn.deadline is not None:
            turn.deadline.cancel()
        turn.deadline = asyncio.get_running_loop().call_later(seconds, self._drop, turn)

    def _drop(self, turn: PendingResponse) -> None:
        """Stop a response by abandoning its connection; a spare one is ready or dialled next."""
        if turn.stream.done:
            return
        if self._stop_rung == "probe":
            self._stop_rung = "drop"
        self._lane.end(turn, Finished("incomplete", "interrupted", TokenUsage(), ""))
        self._leave()
        self._recover("it was closed to stop a response")

    def _recover(self, reason: str) -> None:
        """After a lost connection: fail the responses that had begun, resend the others."""
        sentence = f"The connection to the model server was lost: {reason}."
        failed = Failed(ErrorCode.CONNECTION_LOST, sentence)
        self._ask_again(self._lane.lose(failed))
        self._lose_ahead(failed)

    def _lose_ahead(self, failed: Failed) -> None:
        """End reading ahead; it is not worth resending."""
        for turn in self._ahead.lose(failed):
            self._ahead.end(turn, failed)

    # Take an incoming event; called by the link's reader task.

    def _on_event(self, link: Link, event: ServerEvent) -> None:
        if link is not self._link:
            return
        self._mute_losses = -1
        self._heard = asyncio.get_running_loop().time()
        if event.stream_id == _AHEAD:
            self._on_ahead(event)
        elif event.type == "error":
            self._on_error(event)
        elif event.type == "response.interrupt.accepted":
            self._stop_rung = "interrupt"
            turn = self._lane.running
            if turn is not None and turn.stop is not None:
                self._arm(turn, self._dialect.patience_seconds)
        elif event.type == "response.interrupt.failed":
            turn = self._lane.running
            if turn is not None and turn.stop is not None and event.response_id == turn.stream.id:
                self._drop(turn)
        else:
            self._lane.handle(event)

    def _on_ahead(self, event: ServerEvent) -> None:
        if event.type == "error" and self._ahead.waiting:
            turn = self._ahead.waiting.popleft()
            self._ahead.end(turn, failure(event.error, "error", "The server does not read ahead."))
        else:
            self._ahead.handle(event)

    def _on_created(self, turn: PendingResponse) -> None:
        if turn.stop is not None:
            self._spawn(self._send_stop(turn))
        elif self._stop_rung == "drop" and self._spare is None and not self._http_only:
            self._spawn(self._dial_spare())

    def _on_ended(self, turn: PendingResponse, response: WireResponse | None) -> None:
        if self._outlived() and self._spare is None and not self._http_only:
            self._spawn(self._dial_spare())
        self._chain = None
        if response is None or response.status == "failed" or turn.messages is None:
            return
        self._chain = _Chain(
            response.id, (*turn.messages, *response.entries), _settings(turn.frame)
        )

    def _on_error(self, event: ServerEvent) -> None:
        code = event.error.code if event.error is not None else None
        running, waiting = self._lane.running, self._lane.waiting
        forgotten = code == ErrorCode.PREVIOUS_RESPONSE_NOT_FOUND
        if code == ErrorCode.CONNECTION_LIMIT:
            self._leave()
            self._recover("the server limits how long a connection lives")
        elif self._stop_rung == "probe" and running is not None and running.stop is not None:
            self._drop(running)
        elif forgotten and waiting and waiting[0].full_frame is not None:
            turn = waiting.popleft()
            self._chain = None
            self._ask_again([turn])
        elif waiting and (plain := waiting[0].plain_frame) is not None and _refuses_tools(event):
            self._tools_refused = True
            turn = waiting.popleft()
            turn.frame, turn.full_frame, turn.plain_frame = plain, None, None
            asked = turn.stream.asked
            turn.stream.asked = RequestContent(plain.get("instructions", ""), asked.messages)
            self._ask_again([turn])
        elif waiting or running is not None:
            # Requests are answered in order: a refusal is of the oldest one without an answer.
            turn = waiting[0] if waiting else running
            assert turn is not None
            status = f" ({event.status})" if event.status is not None else ""
            fallback = f"The model server refused the request{status}."
            self._lane.end(turn, failure(event.error, "error", fallback))

    def _on_lost(self, link: Link, reason: str) -> None:
        if link is self._spare:
            self._spare = None
        elif link is self._link:
            self._link = None
            self._chain = None
            self._count_mute_loss()
            self._recover(reason)

    def _count_mute_loss(self) -> None:
        """Change to HTTP where WebSockets open and then die without a word.

        Gateways that do not forward them do that, and networks that inspect traffic. A server that
        has once said something keeps its WebSocket.
        """
        if self._mute_losses < 0 or self._http_only or not self._lane.waiting:
            return
        self._mute_losses += 1
        self._http_only = self._may_change and self._mute_losses >= _MUTE_LOSSES


def _refuses_tools(event: ServerEvent) -> bool:
    error = event.error
    if error is None or error.code == ErrorCode.TOOLS_REFUSED:
        return error is not None
    # Over HTTP the link has seen to it; a WebSocket brings the server's words.
    return event.status is not None and event.status < 500 and refuses_tools(error.message)


def _settings(frame: dict[str, Any]) -> dict[str, Any]:
    """The fields that have to be equal for the server's cached state to apply."""
    return {name: frame.get(name) for name in ("instructions", "tools", "tool_choice", "reasoning")}
