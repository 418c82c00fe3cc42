"""Model servers over HTTP in three APIs, with faults, on loopback.

What they send is what the companies' references show; `tests/clients` reads it with their own
clients. An answer depends on the conversation as the server understands it, so that lost, doubled
and reordered text shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from midstream.pairing.chat.tool_loop import TOOL_NAMES
from tests.helpers.scripted_endpoint import expected

Said = list[tuple[str, str]]

PATHS = {
    "/v1/responses": "responses",
    "/v1/chat/completions": "chat",
    "/v1/messages": "messages",
}


@dataclass
class HttpFaults:
    """Probabilities, each per request."""

    too_many: float = 0.0
    broken: float = 0.0
    drop_before: float = 0.0
    drop_midway: float = 0.0
    truncated_line: float = 0.0
    invalid_json: float = 0.0
    error_event: float = 0.0
    strange_event: float = 0.0

    @classmethod
    def all(cls, probability: float) -> HttpFaults:
        return cls(*[probability] * 8)


def _writing(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools of a request, without those that only look at files: one of them is called."""
    tools: list[dict[str, Any]] = request.get("tools") or []
    return [
        tool for tool in tools if tool.get(tool.get("type", ""), tool)["name"] not in TOOL_NAMES
    ]


class DroppedError(Exception):
    """The connection ends here."""


@dataclass
class ScriptedHttp:
    """One server.

    Attributes:
        apis: What it has; other addresses are 404.
        bodies: The JSON of all requests with an answer, in order.
        heads: The heads of all requests.
        refused: Statuses that were answered, 404 among them.
        happened: Faults so far.
        left: A client hung up before the end.
        refusing: A request was refused.
        written: Words that were written.
        reasoning: Whether it reasons first, and where that is said.
        missing: What it answers where it has nothing.
        answer: What it writes in place of an answer that depends on the conversation.
    """

    apis: tuple[str, ...] = ("responses", "chat", "messages")
    length: int = 40
    pause: float = 0.0
    faults: HttpFaults = field(default_factory=HttpFaults)
    random: random.Random = field(default_factory=lambda: random.Random(1))
    bodies: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    happened: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)
    refusing: asyncio.Event = field(default_factory=asyncio.Event)
    written: int = 0
    reasoning: str = ""
    retry_after: str = "0"
    missing: tuple[int, bytes] = (404, b'{"detail":"Not Found"}')
    answer: str = ""
    port: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def happens(self, probability: float) -> bool:
        happens = probability > 0 and self.random.random() < probability
        self.happened += happens
        return happens

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[str]:
        """Serve; yields the base address."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{self.port}/v1"
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # The end of a kept connection, a fault, or the end of the test.
        ends = asyncio.IncompleteReadError, ConnectionError, DroppedError, asyncio.CancelledError
        with contextlib.suppress(*ends):
            while True:
                await self._request(reader, writer)
        writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
        body = await reader.readexactly(int(length or 0))
        api = PATHS.get(head.split(" ")[1], "")
        if api not in self.apis or not head.startswith("POST"):
            await self._refuse(writer, *self.missing)
        elif self.happens(self.faults.drop_before):
            raise DroppedError
        elif self.happens(self.faults.too_many):
            later = f"retry-after: {self.retry_after}\r\n"
            error = {"error": {"message": "Slow down.", "type": "rate_limit_error"}}
            await self._refuse(writer, 429, json.dumps(error).encode(), later)
        elif self.happens(self.faults.broken):
            await self._refuse(writer, self.random.choice((500, 502, 503, 529)), b"<html>no</html>")
        else:
            request = json.loads(body)
            self.bodies.append(request)
            await self._answer(api, request, writer)

    async def _refuse(
        self, writer: asyncio.StreamWriter, status: int, body: bytes, more: str = ""
    ) -> None:
        self.refused.append(status)
        self.refusing.set()
        head = f"HTTP/1.1 {status} x\r\ncontent-length: {len(body)}\r\n{more}\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    async def _answer(
        self, api: str, request: dict[str, Any], writer: asyncio.StreamWriter
    ) -> None:
        assert request["stream"] is True
        fault, at = self._fault(), self.random.randrange(1, self.events_at_least)
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        index = -1
        async with contextlib.aclosing(self.events(api, request)) as events:
            async for event in events:
                index += 1
                if index == at and fault:
                    event = self._broken(fault, api, event)
                for piece in self._split(event):
                    writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                try:
                    await writer.drain()
                except ConnectionError:
                    self.left.set()
                    raise
                if index == at and fault in ("drop", "truncated"):
                    raise DroppedError
                self.written += 1
                await asyncio.sleep(self.pause)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    @property
    def events_at_least(self) -> int:
        """How many events an answer has at least; a fault comes among them."""
        return self.length

    async def events(self, api: str, request: dict[str, Any]) -> AsyncGenerator[bytes]:
        """The events of an answer."""
        whole = self.answer or expected(said(api, request), self.length)
        words = [word + " " for word in whole.removesuffix("\n").split(" ")]
        words[-1] = words[-1].rstrip() + "\n"
        for event in EVENTS[api](request, words, self.reasoning):
            yield event

    def _fault(self) -> str:
        faults = self.faults
        for name, probability in (
            ("drop", faults.drop_midway),
            ("truncated", faults.truncated_line),
            ("invalid", faults.invalid_json),
            ("error", faults.error_event),
            ("strange", faults.strange_event),
        ):
            if self.happens(probability):
                return name
        return ""

    def _broken(self, fault: str, api: str, event: bytes) -> bytes:
        if fault == "truncated":
            return event[: self.random.randrange(1, len(event) - 1)]
        if fault == "invalid":
            return b'data: {"choices": [{"delta": \n\n' + event
        if fault == "error":
            error = {"type": "overloaded_error", "message": "Overloaded."}
            response = {"id": "resp_1", "status": "failed", "error": error}
            whole = {
                "responses": {"type": "response.failed", "response": response},
                "chat": {"error": error},
                "messages": {"type": "error", "error": error},
            }[api]
            return _sse(whole, "error")
        if fault == "strange":
            return b": ping\r\n\r\nevent: new_thing\ndata: {}\n\n" + event
        return event

    def _split(self, event: bytes) -> Iterator[bytes]:
        while event:
            size = self.random.choice((1, 7, 64, 4096))
            yield event[:size]
            event = event[size:]


def said(api: str, request: dict[str, Any]) -> Said:
    """The conversation of a request, without its instructions."""
    if api == "responses":
        messages = [item for item in request["input"] if item["type"] == "message"]
        return [(item["role"], item["content"][0]["text"]) for item in messages]
    found: Said = []
    for message in request["messages"]:
        if message["role"] in ("system", "developer"):
            continue
        content = message["content"]
        if isinstance(content, list):
            content = "\n\n".join(part.get("text", "") for part in content)
        found.append((message["role"], content))
    return found


def _sse(event: object, name: str = "") -> bytes:
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(event)}\n\n".encode()


def _responses(request: dict[str, Any], words: list[str], reasoning: str) -> Iterator[bytes]:
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": request["model"]}
    base |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "output": []}
    numbers = iter(range(100_000))

    def event(kind: str, **more: Any) -> bytes:
        return _sse({"type": kind, "sequence_number": next(numbers), **more}, kind)

    yield event("response.created", response={**base, "status": "in_progress"})
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    opened = {**item, "status": "in_progress", "content": []}
    yield event("response.output_item.added", output_index=0, item=opened)
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": []}
    yield event("response.content_part.added", part=part, **place)
    for word in words:
        yield event("response.output_text.delta", delta=word, logprobs=[], **place)
    part = {**part, "text": "".join(words)}
    usage = {"input_tokens": 9, "output_tokens": len(words), "total_tokens": 9 + len(words)}
    usage |= {"input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0}}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    done = {**base, "status": "completed", "output": [{**item, "content": [part]}], "usage": usage}
    yield event("response.completed", response=done)


def _chat(request: dict[str, Any], words: list[str], reasoning: str) -> Iterator[bytes]:
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1}
    base |= {"model": request["model"]}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _sse({**base, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    if reasoning == "think":
        for piece in ("<thi", "nk>Let me", " see</th", "ink>\n", "\n"):
            yield chunk({"content": piece})
    elif reasoning:
        yield chunk({reasoning: "Let me see"})
    if tools := _writing(request):
        name = tools[0][tools[0]["type"]]["name"]
        yield from (chunk({"tool_calls": [call]}) for call in _calls(tools[0]["type"], name, words))
        yield chunk({}, "tool_calls")
    else:
        for word in words:
            yield chunk({"content": word})
        yield chunk({}, "stop")
    if request.get("stream_options", {}).get("include_usage"):
        usage = {"prompt_tokens": 9, "completion_tokens": len(words), "total_tokens": 9}
        usage |= {"prompt_tokens_details": {"cached_tokens": 4}}
        times = {"queue_time": 0.0001, "prompt_time": 0.001, "completion_time": 0.02}
        yield _sse({**base, "choices": [], "usage": usage, "time_info": times})
    yield b"data: [DONE]\n\n"


def _calls(kind: str, name: str, words: list[str]) -> Iterator[dict[str, Any]]:
    field = "input" if kind == "custom" else "arguments"
    yield {"index": 0, "id": "call_1", "type": kind, kind: {"name": name, field: ""}}
    text = "".join(words)
    if kind == "function":
        text = json.dumps({"input": text})
    for start in range(0, len(text), 3):  # Within escapes, too.
        yield {"index": 0, kind: {field: text[start : start + 3]}}


def _messages(request: dict[str, Any], words: list[str], reasoning: str) -> Iterator[bytes]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"]}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None}
    usage = {"input_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}
    message["usage"] = {**usage, "output_tokens": 1}

    def event(kind: str, **more: Any) -> bytes:
        return _sse({"type": kind, **more}, kind)

    def block(index: int, opened: dict[str, Any], deltas: Iterator[dict[str, Any]]):
        yield event("content_block_start", index=index, content_block=opened)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)

    yield event("message_start", message=message)
    yield event("ping")
    index = 0
    if reasoning:
        thought = {"type": "thinking_delta", "thinking": "Let me see"}
        signed = {"type": "signature_delta", "signature": "c2ln"}
        opened = {"type": "thinking", "thinking": "", "signature": ""}
        yield from block(0, opened, iter((thought, signed)))
        index = 1
    if tools := _writing(request):
        text = json.dumps({"input": "".join(words)})
        pieces = (text[start : start + 3] for start in range(0, len(text), 3))
        opened = {"type": "tool_use", "id": "toolu_1", "name": tools[0]["name"], "input": {}}
        deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
        stop = "tool_use"
    else:
        opened = {"type": "text", "text": ""}
        deltas = ({"type": "text_delta", "text": word} for word in words)
        stop = "end_turn"
    yield from block(index, opened, deltas)
    end = {"stop_reason": stop, "stop_sequence": None}
    yield event("message_delta", delta=end, usage={"output_tokens": len(words)})
    yield event("message_stop")


EVENTS = {"responses": _responses, "chat": _chat, "messages": _messages}
