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
from midstream.responses.frames import Frame
from midstream.responses.http_api import EventComposer, HttpApi
from midstream.responses.liberal import Liberal, loads, text_of, word_of
from midstream.responses.refusals import error_of
from midstream.responses.tool_arguments import FIELD, SCHEMA, ArgumentReader

_MAX_TOKENS: Final = 32_000
"""Sent where the caller names no limit, which this API demands; every current model allows it."""


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


class _MessageUsage(msgspec.Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _ContentBlock(msgspec.Struct, frozen=True):
    type: str = ""
    text: Any = None
    thinking: Any = None
    id: str = ""
    name: str = ""
    input: Any = None


class _Message(msgspec.Struct, frozen=True):
    id: str = ""
    usage: _MessageUsage | None = None
    content: list[_ContentBlock] | None = None
    stop_reason: Any = None


class _MessageDelta(msgspec.Struct, frozen=True):
    type: str = ""
    text: Any = None
    thinking: Any = None
    partial_json: str = ""
    stop_reason: Any = None


class _Event(_Message, frozen=True):
    """An event, or a whole message in place of events."""

    type: str = ""
    index: int | None = None
    message: _Message | None = None
    content_block: _ContentBlock | None = None
    delta: _MessageDelta | None = None
    error: Any = None


_liberal = Liberal(_Event)


class _MessagesReader:
    def __init__(self) -> None:
        self.call_notes: dict[str, Any] = {}
        self._composer = EventComposer()
        self._calls: dict[int, tuple[int, ArgumentReader]] = {}
        self._index = 0
        self._usage = _MessageUsage()

    @property
    def finished(self) -> bool:
        return self._composer.ending.said

    def take(self, frame: Frame) -> list[ServerEvent]:
        composer = self._composer
        if frame.closes:
            return []  # Gateways end every stream with it.
        event = _liberal.decode(frame.data) if frame.data else _Event()
        self._count(event.usage)
        if event.index is not None:
            self._index = event.index
        match event.type or frame.name:
            case "message_start":
                return self._message(event.message or _Message())
            case "message":
                events = self._message(event)
                composer.ending.say(word_of(event.stop_reason))
                return [*events, *self.end()]
            case "content_block_start" if event.content_block is not None:
                return [*composer.begin(""), *self._block(event.content_block)]
            case "content_block_delta" if event.delta is not None:
                return [*composer.begin(""), *self._delta(event.delta)]
            case "content_block_stop" if self._index in self._calls:
                number, arguments = self._calls[self._index]
                return composer.call_input(number, arguments.end())
            case "message_delta" if event.delta is not None:
                composer.ending.say(word_of(event.delta.stop_reason))
            case "message_stop":
                return self.end()
            case kind:
                error = error_of(event.error)
                if error is not None or kind == "error":
                    error = error or error_of(loads(frame.data or b"null")) or WireError()
                    return composer.fail(error)
                # "ping", and what is to come.
        return []

    def end(self) -> list[ServerEvent]:
        used = self._usage
        cached = used.cache_read_input_tokens or 0
        written = used.cache_creation_input_tokens or 0
        usage = WireUsage(
            (used.input_tokens or 0) + cached + written,
            used.output_tokens or 0,
            TokensDetails(cached_tokens=cached),
        )
        return self._composer.finish(usage)

    def _count(self, usage: _MessageUsage | None) -> None:
        """Counts are totals so far; an event may leave some of them out."""
        if usage is not None:
            given = {name: n for name, n in msgspec.structs.asdict(usage).items() if n is not None}
            self._usage = msgspec.structs.replace(self._usage, **given)

    def _message(self, message: _Message) -> list[ServerEvent]:
        """The beginning of an answer, which may hold all of it."""
        self._count(message.usage)
        events = self._composer.begin(message.id)
        for self._index, block in enumerate(message.content or ()):
            events += self._block(block)
        return events

    def _block(self, block: _ContentBlock) -> list[ServerEvent]:
        composer = self._composer
        if block.type == "tool_use":
            number, events = composer.call(block.id, block.name)
            arguments = ArgumentReader()
            self._calls[self._index] = number, arguments
            if block.input:  # Else it follows in pieces.
                given = msgspec.json.encode(block.input).decode()
                events += composer.call_input(number, arguments.feed(given))
            return events
        begins = block.type in ("thinking", "redacted_thinking")
        thought = composer.reasoning(text_of(block.thinking) or "", begins=begins)
        return [*thought, *composer.text(block.text)]

    def _delta(self, delta: _MessageDelta) -> list[ServerEvent]:
        composer = self._composer
        if delta.type == "input_json_delta" and self._index in self._calls:
            number, arguments = self._calls[self._index]
            return composer.call_input(number, arguments.feed(delta.partial_json))
        return [*composer.reasoning(text_of(delta.thinking) or ""), *composer.text(delta.text)]


MESSAGES_API: Final = HttpApi("Messages", "/messages", _body, _MessagesReader, _headers)
