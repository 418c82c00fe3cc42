"""A client of the Agent Client Protocol: one agent as a child process, JSON-RPC on its pipes.

``AgentProcess`` starts an agent, keeps its conversation in order and ends it with everything that
it has started.  Updates are handled in the order in which they came; questions of the agent wait
for their answer without holding up anything else.  The agent gets no access to files and terminals
through us: every agent of today writes files itself, whatever a client offers.

Source: https://agentclientprotocol.com/protocol/transports and /protocol/overview (version 1).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from midstream import __version__
from midstream.agents.messages import (
    AgentChoice,
    AgentInfo,
    AgentSession,
    AgentText,
    AgentUpdate,
    JsonObject,
    PermissionOption,
    PermissionQuestion,
    as_object,
    one_line,
    read_agent,
    read_choices,
    read_question,
    read_update,
)
from midstream.errors import UnavailableError
from midstream.processes import start, uninterrupted

PROTOCOL_VERSION: Final = 1
"""The version of the Agent Client Protocol that is spoken."""
MAX_LINE_BYTES: Final = 32 << 20
"""An agent that writes a longer line is ended."""
MAX_MESSAGE_BYTES: Final = 16 << 20
"""A longer message is left out; a whole file in an edit is far smaller."""
MAX_MESSAGE_VALUES: Final = 1_000_000
"""A message with more commas and brackets is left out too: it takes as long to read."""
LARGE_BYTES: Final = 256 << 10
"""Longer messages are read in a thread."""
MAX_LOG_BYTES: Final = 16 << 10
"""How much of the end of the agent's log is kept."""
GRACE_S: Final = 1.0
"""How long an agent may take to end by itself, and again after it was told to."""
READ_BYTES: Final = 1 << 16
"""Limit on one read from an agent's pipes."""
BUSY_S: Final = 0.002
"""After so much work on the agent's output, the event loop has as much time for other work."""
MAX_BURST_BYTES: Final = 1 << 20
"""Bytes of an agent's output that are read at once."""
BYTES_A_SECOND: Final = 4 << 20
"""Bytes that are read each second: an agent that writes faster waits, not the screen."""
MAX_QUESTIONS: Final = 100
"""Limit on the questions that wait for an answer; further ones are cancelled."""
MAX_TURN_BYTES: Final = 256 << 20
"""An agent that writes more than this in one turn is ended."""
MAX_UNREAD_BYTES: Final = 8 << 20
"""Limit on the answers that an agent has not read: beyond it, nothing more is read from the
agent."""

_AUTH_REQUIRED: Final = -32000
_INVALID_REQUEST: Final = -32600
_METHOD_NOT_FOUND: Final = -32601
_REQUEST_CANCELLED: Final = -32800
"""Error codes of JSON-RPC and of the Agent Client Protocol."""


class AgentError(UnavailableError):
    """An agent cannot be started, has ended, or does not speak the protocol."""


class LoginNeededError(AgentError):
    """The agent wants its user to log in, in a terminal of its own."""


class AgentRefusedError(AgentError):
    """The agent answered a request with an error; ``code`` of the protocol is ``rpc_code``."""

    def __init__(self, message: str, rpc_code: int) -> None:
        super().__init__(message)
        self.rpc_code = rpc_code


class AgentListener(Protocol):
    """Receives the events of an agent."""

    def agent_updated(self, session_id: str, update: AgentUpdate) -> None:
        """Something was said or done; called in order."""
        ...

    async def agent_asks(self, question: PermissionQuestion) -> PermissionOption | None:
        """Answer a question; ``None`` cancels it.  Cancelled when the turn is."""
        ...


class _Envelope(msgspec.Struct):
    """Any message of JSON-RPC 2.0; ``id`` is kept as it was sent, a string or a number."""

    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: str | None = None
    params: Any = None
    result: Any = None
    error: Any = None


_DECODER: Final = msgspec.json.Decoder(_Envelope)


class _Session(msgspec.Struct, rename="camel"):
    session_id: str = ""


class _Outline(msgspec.Struct):
    """The kind of a message that is not read in full."""

    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: str | None = None
    params: _Session = msgspec.field(default_factory=_Session)


_OUTLINE_DECODER: Final = msgspec.json.Decoder(_Outline)


@dataclass(frozen=True, slots=True)
class _Heard:
    """A message; ``content`` is the update or the question in it."""

    envelope: _Envelope
    content: AgentUpdate | PermissionQuestion | None = None


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """A message of ``size`` bytes that is too large or cannot be read."""

    outline: _Outline
    size: int
    too_large: bool


class AgentProcess:
    """An agent that runs.  Made by ``launch``; ``close`` ends it.

    Attributes:
        info: What it says of itself, once ``initialize`` has returned.
    """

    def __init__(
        self, name: str, process: asyncio.subprocess.Process, listener: AgentListener
    ) -> None:
        self.info = AgentInfo(name, "", loads=False, resumes=False, login=())
        self._name = name
        self._process = process
        self._listener = listener
        self._log = bytearray()
        self._last_id = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._questions: dict[bytes, asyncio.Future[PermissionOption | None]] = {}
        self._withdrawn: set[bytes] = set()
        self._cancelled = False
        """Whether its turn is to end, so that its further questions are answered with no."""
        self._ended: AgentError | None = None
        self._closing = False
        self._turn_bytes = 0
        """Bytes that it has written since its last prompt."""
        self._excess = ""
        """The limit that it exceeded, if it was ended for that."""
        self._reading = asyncio.create_task(self._read())
        self._logging = asyncio.create_task(self._read_log())

    @classmethod
    async def launch(
        cls,
        name: str,
        command: Sequence[str],
        folder: Path,
        listener: AgentListener,
        environ: Mapping[str, str] | None = None,
    ) -> AgentProcess:
        """Start an agent.

        Args:
            name: What people call it, for messages.
            command: Program and arguments.
            folder: Its working directory.
            listener: Who hears it.
            environ: Variables that are set on top of this process's.

        Raises:
            AgentError: The program cannot be started.
        """
        try:
            process = await start(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder,
                env={**os.environ, **(environ or {})},
                start_new_session=True,  # its own children end with it, and Ctrl+C is ours
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise AgentError(f"{name} cannot be started: {command[0]}: {reason}.") from error
        return cls(name, process, listener)

    @property
    def log(self) -> str:
        """The end of what it has written to its standard error."""
        return self._log.decode("utf-8", "replace")

    @property
    def ended(self) -> AgentError | None:
        """Why it takes no more requests, or ``None`` while it runs."""
        return self._ended

    # Requests

    async def initialize(self) -> AgentInfo:
        """Agree on the protocol; the first request.

        Raises:
            AgentError: It speaks another version, or fails.
        """
        result = await self._request(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": {
                    "fs": {"readTextFile": False, "writeTextFile": False},
                    "terminal": False,
                },
                "clientInfo": {"name": "midstream", "title": "Midstream", "version": __version__},
            },
        )
        version = result.get("protocolVersion")
        if version != PROTOCOL_VERSION:
            raise AgentError(
                f"{self._name} speaks version {str(version)[:20]} of the Agent Client Protocol, "
                f"Midstream speaks {PROTOCOL_VERSION}; install a version of the agent that speaks "
                "both."
            )
        self.info = read_agent(result)
        return self.info

    async def new_session(self, folder: Path, meta: object = None) -> AgentSession:
        """Begin a conversation about a folder.

        Args:
            folder: Absolute path.
            meta: The agent's own extension of the request, its ``_meta``.

        Raises:
            LoginNeededError: The user has to log in first.
            AgentError: The agent fails.
        """
        parameters: dict[str, Any] = {"cwd": str(folder), "mcpServers": []}
        if meta is not None:
            parameters["_meta"] = meta
        result = await self._request("session/new", parameters)
        session_id = result.get("sessionId")
        if not isinstance(session_id, str):
            raise AgentError(f"{self._name} began a session without naming it.")
        return AgentSession(session_id, read_choices(result))

    async def reopen_session(
        self, session_id: str, folder: Path, meta: object = None
    ) -> AgentSession:
        """Continue a conversation of an earlier run; an agent that cannot resume replays it.

        Args:
            session_id: What the agent calls it.
            folder: Absolute path.
            meta: As for ``new_session``.

        Raises:
            AgentError: The agent can do neither, or does not know the session.
        """
        if not (self.info.resumes or self.info.loads):
            raise AgentError(f"{self._name} cannot continue an earlier session.")
        method = "session/resume" if self.info.resumes else "session/load"
        parameters: dict[str, Any] = {"sessionId": session_id, "cwd": str(folder), "mcpServers": []}
        if meta is not None:
            parameters["_meta"] = meta
        result = await self._request(method, parameters)
        return AgentSession(session_id, read_choices(result))

    async def prompt(self, session_id: str, text: str) -> str:
        """Have the agent work; returns when its turn ends.

        Returns:
            Why it ended: ``end_turn``, ``max_tokens``, ``max_turn_requests``, ``refusal`` or
            ``cancelled``.

        Raises:
            AgentError: The agent fails or ends.
        """
        self._turn_bytes = 0
        self._cancelled = False
        result = await self._request(
            "session/prompt",
            {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]},
        )
        reason = result.get("stopReason")
        return one_line(reason) if isinstance(reason, str) else "end_turn"

    async def steer(self, session_id: str, text: str) -> bool:
        """Give the turn that runs a further text, in an agent whose info says that it ``steers``.

        Source: https://github.com/agentclientprotocol/codex-acp, ``_session/steering`` in 2.6.0.

        Returns:
            Whether the agent has it.  If not, its turn has ended, and the text is still to be sent.

        Raises:
            AgentError: The agent refuses it, fails or ends.
        """
        result = await self._request(
            "_session/steering",
            {
                "sessionId": session_id,
                "prompt": [{"type": "text", "text": text}],
                # Otherwise the agent would begin a turn of its own, whose end it does not report.
                "_meta": {"steering": {"idleBehavior": "promptRequired"}},
            },
        )
        return result.get("outcome") in ("injected", "startedNewTurn")

    def cancel(self, session_id: str) -> None:
        """Ask the agent to end its turn; ``prompt`` returns when it has.

        Open questions and those that still come are answered as cancelled.  Updates may still come
        until then.
        """
        self._cancelled = True
        self._send({"method": "session/cancel", "params": {"sessionId": session_id}})
        for question in list(self._questions.values()):
            question.cancel()

    async def choose(self, session: AgentSession, choice: AgentChoice, value: str) -> AgentSession:
        """Set a choice of a session; returns the session with its choices after that.

        Raises:
            AgentError: The agent refuses it.
        """
        key = {
            "session/set_config_option": "value",
            "session/set_mode": "modeId",
            "session/set_model": "modelId",
        }[choice.method]
        parameters = {"sessionId": session.session_id, key: value}
        if choice.method == "session/set_config_option":
            parameters["configId"] = choice.choice_id
        result = await self._request(choice.method, parameters)
        if "configOptions" in result:
            return session.with_options(read_choices(result))
        return AgentSession(
            session.session_id,
            tuple(
                replace(other, current=value) if other == choice else other
                for other in session.choices
            ),
        )

    async def close(self) -> None:
        """End the agent and everything that it has started; cancellation waits for it."""
        self._closing = True
        await uninterrupted(self._close)

    # Inside

    async def _close(self) -> None:
        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        if not await self._exits():
            self._signal(signal.SIGTERM)
            await self._exits()
        self._signal(signal.SIGKILL)  # its own children may have stayed
        await self._exits()
        # A process that left the group may hold the pipes open.
        await asyncio.wait((self._reading, self._logging), timeout=GRACE_S)
        for task in (self._reading, self._logging, *self._questions.values()):
            task.cancel()
        await asyncio.gather(
            self._reading, self._logging, *self._questions.values(), return_exceptions=True
        )
        if self._ended is None:
            self._fail(f"{self._name} was ended.")

    async def _exits(self) -> bool:
        try:
            await asyncio.wait_for(self._process.wait(), GRACE_S)
        except TimeoutError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _request(self, method: str, parameters: dict[str, Any]) -> JsonObject:
        if self._ended is not None:
            raise self._ended
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._send({"id": number, "method": method, "params": parameters})
            result = await answer
        finally:
            self._waiting.pop(number, None)
        return as_object(result)

    def _send(self, message: dict[str, Any]) -> None:
        writer = self._process.stdin
        if writer is None or writer.is_closing():
            return
        line = msgspec.json.encode({"jsonrpc": "2.0", **message})
        with contextlib.suppress(OSError):  # its end is noticed where it is read
            writer.write(line + b"\n")

    async def _read(self) -> None:
        """Handle what the agent writes, line by line, until it ends."""
        assert self._process.stdout is not None
        buffer = LineBuffer()
        room, before = float(MAX_BURST_BYTES), time.monotonic()
        if (writer := self._process.stdin) is not None:
            writer.transport.set_write_buffer_limits(high=MAX_UNREAD_BYTES)
        while data := await self._process.stdout.read(READ_BYTES):
            self._turn_bytes += len(data)
            lines = buffer.feed(data)
            if self._turn_bytes > MAX_TURN_BYTES:
                self._excess = f"more than {MAX_TURN_BYTES >> 20} MB in one turn"
            elif buffer.unended > MAX_LINE_BYTES:
                self._excess = f"more than {MAX_LINE_BYTES >> 20} MB in one line"
            if self._excess:
                self._signal(signal.SIGKILL)
                break
            if writer is not None:
                with contextlib.suppress(OSError):
                    await writer.drain()
            began = time.monotonic()
            room = min(room + (began - before) * BYTES_A_SECOND, MAX_BURST_BYTES) - len(data)
            before = began
            if room < 0:
                await asyncio.sleep(-room / BYTES_A_SECOND)
                began = time.monotonic()
            for line in lines:
                try:
                    if len(line) < LARGE_BYTES:
                        message = _read_message(line)
                    else:
                        message = await asyncio.to_thread(_read_message, line)
                        began = time.monotonic()
                    self._take(message)
                except Exception as error:  # the next line is still to be read
                    _report(error)
                if (worked := time.monotonic() - began) > BUSY_S:
                    await asyncio.sleep(worked)
                    began = time.monotonic()
        await self._gone()

    async def _read_log(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(READ_BYTES):
            self._log += data
            del self._log[:-MAX_LOG_BYTES]

    async def _gone(self) -> None:
        """The agent writes no more: every request that waits fails."""
        code: int | None = None
        if not self._closing:
            with contextlib.suppress(TimeoutError):
                code = await asyncio.wait_for(self._process.wait(), GRACE_S)
            await asyncio.wait((self._logging,), timeout=GRACE_S)
        how = "closed its output" if code is None else f"ended (exit code {code})"
        if self._excess:
            how = f"was ended: it wrote {self._excess}"
        lines = [line.strip() for line in self.log.splitlines() if line.strip()]
        last = f"; its last words: {one_line(lines[-1])}" if lines else ""
        self._fail(f"{self._name} {how}{last}.")

    def _fail(self, reason: str) -> None:
        """Fail every request that waits, or comes from now on."""
        self._ended = AgentError(reason)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(self._ended)
        for question in list(self._questions.values()):
            question.cancel()

    def _take(self, message: _Heard | _LeftOut | None) -> None:
        """Handle one message; lines that are not of the protocol are skipped."""
        if message is None:
            return
        if isinstance(message, _LeftOut):
            self._leave_out(message)
            return
        envelope, content = message.envelope, message.content
        parameters = as_object(envelope.params)
        if envelope.method is None:
            self._answered(envelope)
        elif envelope.id is not msgspec.UNSET:
            question = content if isinstance(content, PermissionQuestion) else None
            self._asked(bytes(envelope.id), envelope.method, question)
        elif content is not None and not isinstance(content, PermissionQuestion):
            session_id = parameters.get("sessionId")
            if isinstance(session_id, str):
                self._listener.agent_updated(session_id, content)
        elif envelope.method == "$/cancel_request" and "requestId" in parameters:
            raw_id = msgspec.json.encode(parameters["requestId"])
            if (question := self._questions.get(raw_id)) is not None:
                self._withdrawn.add(raw_id)
                question.cancel()

    def _leave_out(self, message: _LeftOut) -> None:
        """Fail the request that it answers, refuse the one that it is, or report an update."""
        outline, size = message.outline, f"{message.size / 1e6:.0f} MB"
        if outline.method is None:
            number = _number(outline.id)
            answer = self._waiting.get(number) if number is not None else None
            if answer is not None and not answer.done():
                what = f"of {size}, too large to" if message.too_large else "that cannot"
                answer.set_exception(AgentError(f"{self._name} sent an answer {what} be read."))
        elif outline.id is not msgspec.UNSET:
            error = {"code": _INVALID_REQUEST, "message": "This cannot be read by Midstream"}
            self._send({"id": outline.id, "error": error})
        elif message.too_large and outline.method == "session/update":
            said = f"\n\nA message of {size} is left out: it is too large to be read.\n\n"
            self._listener.agent_updated(outline.params.session_id, AgentText("thought", said))

    def _answered(self, message: _Envelope) -> None:
        """A reply to one of our requests."""
        number = _number(message.id)
        answer = self._waiting.get(number) if number is not None else None
        if answer is None or answer.done():
            return
        if message.error is None:
            answer.set_result(message.result)
            return
        error = as_object(message.error)
        said, code = error.get("message", message.error), error.get("code")
        text = (one_line(said) if isinstance(said, str) else "") or "it gave no reason"
        if code == _AUTH_REQUIRED:
            ways = f" ({', '.join(self.info.login)})" if self.info.login else ""
            answer.set_exception(
                LoginNeededError(
                    f"{self._name} wants you to log in{ways}; run it once in a separate "
                    f"terminal, log in there, and start again. It says: {text}."
                )
            )
        else:
            details = as_object(error.get("data")).get("details")
            if isinstance(details, str) and (more := one_line(details)):
                text += f": {more}"
            answer.set_exception(
                AgentRefusedError(
                    f"{self._name} refused: {text}.", code if isinstance(code, int) else 0
                )
            )

    def _asked(self, raw_id: bytes, method: str, question: PermissionQuestion | None) -> None:
        """A request of the agent; its id is sent back byte for byte."""
        if question is None:
            error = {"code": _METHOD_NOT_FOUND, "message": f"Midstream has no {method}"}
            self._send({"id": msgspec.Raw(raw_id), "error": error})
            return
        # An answer to one would be taken for an answer to both.
        refused = self._cancelled or raw_id in self._questions
        if refused or len(self._questions) >= MAX_QUESTIONS:
            cancelled = {"outcome": {"outcome": "cancelled"}}
            self._send({"id": msgspec.Raw(raw_id), "result": cancelled})
            return
        task = asyncio.ensure_future(self._listener.agent_asks(question))
        self._questions[raw_id] = task
        task.add_done_callback(partial(self._reply, raw_id))

    def _reply(self, raw_id: bytes, asked: asyncio.Future[PermissionOption | None]) -> None:
        """Send the answer to a question; without one, the agent would wait for ever."""
        self._questions.pop(raw_id, None)
        withdrawn = raw_id in self._withdrawn
        self._withdrawn.discard(raw_id)
        option: PermissionOption | None = None
        if not asked.cancelled():
            if (error := asked.exception()) is not None:
                _report(error)
            else:
                option = asked.result()
        reply: dict[str, Any]
        if option is not None:
            selected = {"outcome": "selected", "optionId": option.option_id}
            reply = {"result": {"outcome": selected}}
        elif withdrawn:
            reply = {"error": {"code": _REQUEST_CANCELLED, "message": "Request cancelled"}}
        else:
            reply = {"result": {"outcome": {"outcome": "cancelled"}}}
        self._send({"id": msgspec.Raw(raw_id), **reply})


class LineBuffer:
    """Puts lines together from pieces."""

    def __init__(self) -> None:
        self._part = bytearray()

    @property
    def unended(self) -> int:
        """Bytes of the line that has not ended."""
        return len(self._part)

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in a further piece, without their ends and without empty ones."""
        *ends, rest = data.split(b"\n")
        lines: list[bytes] = []
        for end in ends:
            self._part += end
            if self._part:
                lines.append(bytes(self._part))
            self._part.clear()
        self._part += rest
        return lines


def _read_message(line: bytes) -> _Heard | _LeftOut | None:
    """Read a line; ``None`` if it is no message."""
    too_large = len(line) > MAX_MESSAGE_BYTES or (
        len(line) > MAX_MESSAGE_VALUES and sum(map(line.count, b"[{,")) > MAX_MESSAGE_VALUES
    )
    if not too_large:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _heard(_DECODER.decode(line))
    try:
        outline = _OUTLINE_DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return _LeftOut(outline, len(line), too_large)


def _heard(envelope: _Envelope) -> _Heard:
    parameters = as_object(envelope.params)
    if envelope.method == "session/update" and (update := as_object(parameters.get("update"))):
        return _Heard(envelope, read_update(update))
    if envelope.method == "session/request_permission":
        return _Heard(envelope, read_question(parameters))
    return _Heard(envelope)


def _report(error: BaseException) -> None:
    """Report a defect of our own."""
    context = {"message": "An agent could not be heard", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)


def _number(raw: msgspec.Raw | msgspec.UnsetType) -> int | None:
    if isinstance(raw, msgspec.UnsetType):
        return None
    try:
        return msgspec.json.decode(raw, type=int)
    except msgspec.DecodeError:
        return None
