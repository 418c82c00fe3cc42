"""A hosted endpoint on loopback in OpenAI's dialect, whose answers come when a test lets them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from midstream.responses.profiles import Profile
from midstream.settings import Settings


class Hosted:
    """One endpoint with one model.

    Attributes:
        creates: Bodies of all requests, in order.
        interrupts: Interrupts that came.
        messages: Role and text of the whole conversation of the last request; of calls and their
            outputs "call" and "output".
        forgets: Whether a conversation cannot be gone on with.
        terse: Whether the last event leaves the output out, as some servers' does.
    """

    def __init__(self) -> None:
        self.creates: list[dict[str, Any]] = []
        self.interrupts = 0
        self._pieces: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue()
        self._kept: list[tuple[str, str] | None] = []
        self._serial = 0
        self._known: dict[str, list[dict[str, Any]]] = {}
        self.messages: list[tuple[str, str]] = []
        self.forgets = False
        self.terse = False

    def say(self, text: str) -> None:
        """Let the answer go on with text of a message."""
        self._pieces.put_nowait(("message", text))

    def call(self, text: str, name: str = "apply_patch") -> None:
        """Let it go on with input of a custom tool."""
        self._pieces.put_nowait((f"custom_tool_call {name}", text))

    def think(self, text: str) -> None:
        """Let the model reason."""
        self._pieces.put_nowait(("reasoning", text))

    def end(self) -> None:
        """Let it end."""
        self._pieces.put_nowait(None)

    def settings(self, url: str, edit_format: str | None = None, **more: Any) -> Settings:
        """Settings that choose this endpoint."""
        profile = Profile("hosted", "openai", url, "model-x", edit_format=edit_format)
        return Settings(endpoints=(profile,), endpoint="hosted", guard=False, **more)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        async with serve(self._connection, "127.0.0.1", 0, compression=None) as server:
            yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def _next(self) -> tuple[str, str] | None:
        return self._kept.pop(0) if self._kept else await self._pieces.get()

    async def _connection(self, socket: ServerConnection) -> None:
        waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        stop = asyncio.Event()

        async def serve_one_by_one() -> None:
            while True:
                create = await waiting.get()
                self.creates.append(create)
                stop.clear()
                await self._answer(socket, create, stop)

        work = asyncio.create_task(serve_one_by_one())
        try:
            async for frame in socket:
                event = json.loads(frame)
                if event["type"] == "response.create":
                    waiting.put_nowait(event)
                elif event["type"] == "response.interrupt":
                    self.interrupts += 1
                    stop.set()
        except ConnectionClosed:
            pass
        finally:
            work.cancel()

    async def _answer(
        self, socket: ServerConnection, create: dict[str, Any], stop: asyncio.Event
    ) -> None:
        previous = create.get("previous_response_id")
        if previous is not None and previous not in self._known:
            await self._refuse(socket, "previous_response_not_found", f"{previous} not found")
            return
        history = [*self._known.get(previous or "", []), *create["input"]]
        if trouble := _unanswered(history):
            await self._refuse(socket, None, trouble)
            return
        self._serial += 1
        response_id = f"resp_{self._serial}"
        self.messages = [_told(item) for item in history]
        items: list[dict[str, Any]] = []

        async def send(**event: Any) -> None:
            await socket.send(json.dumps(event))

        def response(status: str, reason: str | None = None) -> dict[str, Any]:
            return {
                "id": response_id,
                "status": status,
                "output": items if status == "completed" and not self.terse else [],
                "incomplete_details": {"reason": reason} if reason else None,
                "usage": {"input_tokens": 9, "output_tokens": 7},
            }

        await send(type="response.created", response=response("in_progress"))
        while True:
            getting = asyncio.create_task(self._next())
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({getting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if stop.is_set():
                if getting.done():
                    self._kept.append(getting.result())
                getting.cancel()
                self._known[response_id] = history
                await send(type="response.interrupt.accepted", response_id=response_id)
                await send(
                    type="response.incomplete", response=response("incomplete", "interrupted")
                )
                return
            piece = getting.result()
            if piece is None:
                break
            kind, _, name = piece[0].partition(" ")
            text = piece[1]
            if kind == "reasoning":
                await send(type="response.reasoning_text.delta", delta=text)
                continue
            if not items or items[-1]["type"] != kind:
                items.append({"id": f"item_{self._serial}_{len(items)}", "type": kind})
                if kind == "message":
                    items[-1]["content"] = [{"type": "output_text", "text": ""}]
                else:
                    call_id = f"call_{self._serial}_{len(items)}"
                    items[-1] |= {"call_id": call_id, "name": name, "input": ""}
                await send(type="response.output_item.added", item=dict(items[-1]))
            if kind == "message":
                items[-1]["content"][0]["text"] += text
                name = "response.output_text.delta"
            else:
                items[-1]["input"] += text
                name = "response.custom_tool_call_input.delta"
            await send(type=name, item_id=items[-1]["id"], delta=text)
        for item in items:
            await send(type="response.output_item.done", item=item)
        if not self.forgets:
            self._known[response_id] = [*history, *items]
        await send(type="response.completed", response=response("completed"))

    async def _refuse(self, socket: ServerConnection, code: str | None, message: str) -> None:
        error = {"type": "invalid_request_error", "code": code, "message": message}
        await socket.send(json.dumps({"type": "error", "status": 400, "error": error}))


def _unanswered(history: list[dict[str, Any]]) -> str:
    """What OpenAI says where calls and outputs do not match, as far as it is documented."""
    calls = {i["call_id"] for i in history if i["type"] == "custom_tool_call"}
    outputs = {i["call_id"] for i in history if i["type"] == "custom_tool_call_output"}
    if missing := calls - outputs:
        return f"No tool output found for custom tool call {min(missing)}."
    if unknown := outputs - calls:
        return f"No tool call found for custom tool call output {min(unknown)}."
    return ""


def _told(item: dict[str, Any]) -> tuple[str, str]:
    if item["type"] == "custom_tool_call":
        return "call", item["input"]
    if item["type"] == "custom_tool_call_output":
        return "output", item["output"]
    return item.get("role", "assistant"), item["content"][0]["text"]
