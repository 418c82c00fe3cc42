"""Anthropic's Messages API.

Written against https://platform.claude.com/docs and the types of the package ``anthropic`` 2.12,
which have no temperature any more; several engines and gateways have this API as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from midstream.responses.dialect import ANTHROPIC_VERSION
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import (
    ServerEvent,
    TokensDetails,
    WireError,
    WireUsage,
)
from midstream.responses.http_api import EventComposer, HttpApi
from midstream.responses.tool_arguments import FIELD, SCHEMA, ArgumentReader

_MAX_TOKENS: Final = 32_000
"""Sent where the caller names no limit, which this API demands; every current model allows it."""

_EARLY_ENDS: Final = {
    "max_tokens": "max_output_tokens",
    "model_context_window_exceeded": "max_output_tokens",
    "refusal": "content_filter",
    "pause_turn": "the server paused",
}
"""Values of ``stop_reason`` after which the answer is not complete; all others are ends."""


def _headers(endpoint: Endpoint) -> dict[str, str]:
    # Engines and gateways take the key in either header; Anthropic's own is in `key_headers`.
    own = {"x-api-key": endpoint.token} if endpoint.token else {}
    return {"anthropic-version": ANTHROPIC_VERSION, **own}


def _body(frame: Mapping[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    system = [frame["instructions"]] if frame.get("instructions") else []
    messages: list[dict[str, Any]] = []
    for item in frame["input"]:
        role, block = _block(item)
        if role == "system":
            system.append(block["text"])
        elif block.get("text") != "":  # Empty text is refused.
            if not messages or messages[-1]["role"] != role:
                messages.append({"role": role, "content": []})
            messages[-1]["content"].append(block)
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": messages,
        "max_tokens": frame.get("max_output_tokens") or _MAX_TOKENS,
        "stream": True,
    }
    if endpoint.kind == "anthropic":
        # Every request repeats the conversation; what is cached costs a tenth.
        body["cache_control"] = {"type": "ephemeral"}
    if system:
        body["system"] = "\n\n".join(system)
    if (reasoning := frame.get("reasoning")) and reasoning["effort"] in _EFFORTS:
        body["output_config"] = {"effort": reasoning["effort"]}
    if tools := frame.get("tools"):
        body["tools"] = [_tool(tool) for tool in tools]
    if (choice := frame.get("tool_choice")) is not None:
        body["tool_choice"] = _choice(choice)
    return body


_EFFORTS: Final = frozenset({"low", "medium", "high", "xhigh", "max"})


def _block(item: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The role and the content block of an entry."""
    if item["type"] == "custom_tool_call":
        given = {"id": item["call_id"], "name": item["name"], "input": {FIELD: item["input"]}}
        return "assistant", {"type": "tool_use", **given}
    if item["type"] == "custom_tool_call_output":
        given = {"tool_use_id": item["call_id"], "content": item["output"]}
        return "user", {"type": "tool_result", **given}
    text = "".join(part["text"] for part in item["content"])
    role = "system" if item["role"] == "developer" else item["role"]
    return role, {"type": "text", "text": text}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: tool[name] for name in ("name", "description") if name in tool}
    # Without it the arguments come in one piece, after they have been checked.
    return {**told, "input_schema": SCHEMA, "eager_input_streaming": True}


def _choice(choice: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"type": "any" if choice == "required" else choice}
    return {"type": "tool", "name": choice["name"]}


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct, frozen=True):
    id: str = ""
    usage: _Usage | None = None


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""


class _Delta(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Error(msgspec.Struct, frozen=True):
    type: str | None = None
    message: str = ""


class _Event(msgspec.Struct, frozen=True):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: _Error | None = None


_decoder = msgspec.json.Decoder(_Event)


class _MessagesReader:
    def __init__(self) -> None:
        self._composer = EventComposer()
        self._calls: dict[int, tuple[int, ArgumentReader]] = {}
        self._stop: str | None = None
        self._usage = _Usage()

    def take(self, name: str, data: bytes) -> list[ServerEvent]:
        if data == b"[DONE]":
            return []  # Gateways end every stream with it.
        event, composer = _decoder.decode(data), self._composer
        self._count(event.usage)
        match event.type or name:
            case "message_start":
                message = event.message or _Message()
                self._count(message.usage)
                return composer.begin(message.id)
            case "content_block_start" if event.content_block is not None:
                return [*composer.begin(""), *self._block(event.index, event.content_block)]
            case "content_block_delta" if event.delta is not None:
                return [*composer.begin(""), *self._delta(event.index, event.delta)]
            case "content_block_stop" if event.index in self._calls:
                number, arguments = self._calls[event.index]
                return composer.call_input(number, arguments.end())
            case "message_delta" if event.delta is not None:
                self._stop = event.delta.stop_reason or self._stop
            case "message_stop":
                self._stop = self._stop or "end_turn"
                return self.end()
            case "error":
                error = event.error or _Error()
                return composer.fail(WireError(error.type, error.message))
            case _:
                pass  # "ping", and what is to come.
        return []

    def end(self) -> list[ServerEvent]:
        if self._stop is None:
            return []
        used = self._usage
        cached = used.cache_read_input_tokens or 0
        written = used.cache_creation_input_tokens or 0
        usage = WireUsage(
            (used.input_tokens or 0) + cached + written,
            used.output_tokens or 0,
            TokensDetails(cached_tokens=cached),
        )
        return self._composer.finish(_EARLY_ENDS.get(self._stop), usage)

    def _count(self, usage: _Usage | None) -> None:
        """Counts are totals so far; an event may leave some of them out."""
        if usage is not None:
            given = {name: n for name, n in msgspec.structs.asdict(usage).items() if n is not None}
            self._usage = msgspec.structs.replace(self._usage, **given)

    def _block(self, index: int, block: _Block) -> list[ServerEvent]:
        if block.type == "tool_use":
            number, events = self._composer.call(block.id, block.name)
            self._calls[index] = number, ArgumentReader()
            return events
        return self._composer.text(block.text)

    def _delta(self, index: int, delta: _Delta) -> list[ServerEvent]:
        if delta.type == "input_json_delta" and index in self._calls:
            number, arguments = self._calls[index]
            return self._composer.call_input(number, arguments.feed(delta.partial_json))
        return [*self._composer.reasoning(delta.thinking), *self._composer.text(delta.text)]


MESSAGES_API: Final = HttpApi("Messages", "/messages", _body, _MessagesReader, _headers)
