"""Chat Completions: the API that nearly every engine and company has.

Field names are those of OpenAI's reference; where others differ, ``ChatQuirks`` says so. Reasoning
is read from every place where it has been seen, and is no part of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from midstream.responses.dialect import ChatQuirks
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import (
    ServerEvent,
    TokensDetails,
    WireError,
    WireUsage,
)
from midstream.responses.http_api import EventComposer, HttpApi
from midstream.responses.model_info import METADATA_PREFIX
from midstream.responses.tool_arguments import SCHEMA, ArgumentReader, as_arguments

_EARLY_ENDS: Final = {
    "length": "max_output_tokens",
    "model_length": "max_output_tokens",
    "content_filter": "content_filter",
    "insufficient_system_resource": "the server is out of resources",
}
"""Values of ``finish_reason`` after which the answer is not complete; all others are ends."""


def _body(frame: Mapping[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    quirks = endpoint.dialect.chat
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": _messages(frame, quirks),
        "stream": True,
    }
    if quirks.usage:
        body["stream_options"] = {"include_usage": True}
    if (limit := frame.get("max_output_tokens")) is not None:
        body[quirks.limit] = limit
    if (temperature := frame.get("temperature")) is not None:
        body["temperature"] = temperature
    if reasoning := frame.get("reasoning"):
        nested = quirks.effort == "reasoning"
        body[quirks.effort] = dict(reasoning) if nested else reasoning["effort"]
    if tools := frame.get("tools"):
        body["tools"] = [_tool(tool, quirks) for tool in tools]
    if (choice := frame.get("tool_choice")) is not None:
        body["tool_choice"] = choice if isinstance(choice, str) else _named(choice["name"], quirks)
    return body


def _messages(frame: Mapping[str, Any], quirks: ChatQuirks) -> list[dict[str, Any]]:
    """The conversation; neighbours of one role are one message, as many chat templates demand."""
    messages: list[dict[str, Any]] = []
    if instructions := frame.get("instructions"):
        messages.append({"role": quirks.instructions, "content": instructions})
    for item in frame["input"]:
        if item["type"] == "custom_tool_call":
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(_call(item, quirks))
        elif item["type"] == "custom_tool_call_output":
            output = {"tool_call_id": item["call_id"], "content": item["output"]}
            messages.append({"role": "tool", **output})
        else:
            role = quirks.instructions if item["role"] == "system" else item["role"]
            text = "".join(part["text"] for part in item["content"])
            last = messages[-1] if messages else {}
            if last.get("role") == role and "tool_calls" not in last:
                last["content"] += f"\n\n{text}"
            else:
                messages.append({"role": role, "content": text})
    return messages


def _call(item: Mapping[str, Any], quirks: ChatQuirks) -> dict[str, Any]:
    if quirks.custom_tools:
        given = {"name": item["name"], "input": item["input"]}
        return {"id": item["call_id"], "type": "custom", "custom": given}
    given = {"name": item["name"], "arguments": as_arguments(item["input"])}
    return {"id": item["call_id"], "type": "function", "function": given}


def _tool(tool: Mapping[str, Any], quirks: ChatQuirks) -> dict[str, Any]:
    told = {name: tool[name] for name in ("name", "description") if name in tool}
    if not quirks.custom_tools:
        return {"type": "function", "function": {**told, "parameters": SCHEMA}}
    form = dict(tool.get("format") or {"type": "text"})
    if form["type"] == "grammar":
        # The one place where both of OpenAI's APIs nest differently.
        grammar = {name: value for name, value in form.items() if name != "type"}
        form = {"type": "grammar", "grammar": grammar}
    return {"type": "custom", "custom": {**told, "format": form}}


def _named(name: str, quirks: ChatQuirks) -> dict[str, Any]:
    kind = "custom" if quirks.custom_tools else "function"
    return {"type": kind, kind: {"name": name}}


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Custom(msgspec.Struct, frozen=True):
    name: str | None = None
    input: str | None = None


class _ToolCall(msgspec.Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    custom: _Custom | None = None


class _Delta(msgspec.Struct, frozen=True):
    content: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Details(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Times(msgspec.Struct, frozen=True):
    """Seconds, as Cerebras (``time_info``) and Groq (``usage``) count them."""

    prompt_time: float | None = None
    completion_time: float | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None  # DeepSeek

    @property
    def as_wire(self) -> WireUsage:
        read, written = (
            self.prompt_tokens_details or _Details(),
            self.completion_tokens_details or _Details(),
        )
        return WireUsage(
            self.prompt_tokens or 0,
            self.completion_tokens or 0,
            TokensDetails(cached_tokens=read.cached_tokens or self.prompt_cache_hit_tokens or 0),
            TokensDetails(reasoning_tokens=written.reasoning_tokens or 0),
        )


class _Chunk(msgspec.Struct, frozen=True):
    id: str | None = None
    choices: list[_Choice] | None = None
    usage: Any = None
    time_info: Any = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Chunk)


class _ChatReader:
    def __init__(self) -> None:
        self._composer = EventComposer()
        self._calls: dict[int, tuple[int, ArgumentReader]] = {}
        self._think = ThinkSplitter()
        self._finish: str | None = None
        self._usage: WireUsage | None = None
        self._times: dict[str, str] = {}

    def take(self, name: str, data: bytes) -> list[ServerEvent]:
        if data == b"[DONE]":
            if self._finish is None and self._composer.begun:
                self._finish = "stop"  # Some engines leave the reason out.
            return self.end()
        chunk = _decoder.decode(data)
        if chunk.error:
            return self._composer.fail(_error(chunk.error))
        if chunk.choices is None and chunk.usage is None:
            return []  # Not of this API, such as a gateway's notes.
        events = self._composer.begin(chunk.id or "")
        if chunk.usage:
            self._usage = _usage(chunk.usage) or self._usage
        self._times |= _times(chunk.time_info) or _times(chunk.usage)
        for choice in (chunk.choices or ())[:1]:
            if choice.delta is not None:
                events += self._delta(choice.delta)
            self._finish = choice.finish_reason or self._finish
        if self._finish == "error":
            events += self._composer.fail(WireError(message="The model server gave up midway."))
        return events

    def end(self) -> list[ServerEvent]:
        if self._finish is None:
            return []
        events = self._composer.text(self._think.end())
        for number, arguments in self._calls.values():
            events += self._composer.call_input(number, arguments.end())
        early = _EARLY_ENDS.get(self._finish)
        return [*events, *self._composer.finish(early, self._usage, self._times)]

    def _delta(self, delta: _Delta) -> list[ServerEvent]:
        composer = self._composer
        text, thought = _contents(delta.content)
        for given in (delta.reasoning_content, delta.reasoning):
            thought = thought or (given if isinstance(given, str) else "")
        said, tagged = self._think.feed(text)
        events = [*composer.reasoning(thought or tagged), *composer.text(said)]
        for position, call in enumerate(delta.tool_calls or ()):
            events += self._call(position if call.index is None else call.index, call)
        return events

    def _call(self, index: int, call: _ToolCall) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        given = call.function or call.custom
        if index not in self._calls:
            name = (given.name if given is not None else None) or ""
            number, events = self._composer.call(call.id or f"call_{index}", name)
            self._calls[index] = number, ArgumentReader()
        number, arguments = self._calls[index]
        if call.custom is not None:
            return [*events, *self._composer.call_input(number, call.custom.input or "")]
        written = call.function.arguments if call.function is not None else None
        if isinstance(written, dict):  # Some engines send an object, and all of it at once.
            written = msgspec.json.encode(written).decode()
        return [*events, *self._composer.call_input(number, arguments.feed(written or ""))]


def _contents(content: object) -> tuple[str, str]:
    """Text and reasoning in a ``content``, which is text, or parts of both kinds (Mistral)."""
    if isinstance(content, str):
        return content, ""
    text, thought = "", ""
    if isinstance(content, list):
        for part in cast("list[object]", content):
            if isinstance(part, dict):
                fields = cast("dict[str, Any]", part)
                if fields.get("type") == "text":
                    text += str(fields.get("text", ""))
                elif fields.get("type") == "thinking":
                    thought += _contents(fields.get("thinking"))[0]
    return text, thought


def _usage(value: object) -> WireUsage | None:
    """Token counts; they are no reason to lose an answer, whatever they look like."""
    try:
        return msgspec.convert(value, _Usage).as_wire
    except msgspec.ValidationError:
        return None


def _times(value: object) -> dict[str, str]:
    """Times as metadata of a response, in the words of ``midstream.responses.model_info``."""
    try:
        times = msgspec.convert(value, _Times)
    except msgspec.ValidationError:
        return {}
    told = {"prefill_ms": times.prompt_time, "decode_ms": times.completion_time}
    return {
        f"{METADATA_PREFIX}{name}": f"{seconds * 1000:.3f}"
        for name, seconds in told.items()
        if seconds is not None
    }


def _error(value: object) -> WireError:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        code, message = fields.get("code") or fields.get("type"), fields.get("message")
        return WireError(None if code is None else str(code), str(message or ""))
    return WireError(message=str(value))


class ThinkSplitter:
    """Takes a leading ``<think>`` block out of an answer, which engines without a reasoning parser
    leave in it.
    """

    _OPEN: Final = "<think>"
    _CLOSE: Final = "</think>"

    def __init__(self) -> None:
        self._held = ""
        self._state = "start"

    def feed(self, text: str) -> tuple[str, str]:
        """Text of the answer and of the reasoning that is known now."""
        if self._state == "text":
            return text, ""
        self._held += text
        if self._state == "start":
            start = self._held.lstrip()
            if len(start) < len(self._OPEN) and self._OPEN.startswith(start):
                return "", ""
            if not start.startswith(self._OPEN):
                return self._rest(), ""
            self._state, self._held = "reasoning", start[len(self._OPEN) :]
        thought, close, rest = self._held.partition(self._CLOSE)
        if not close:
            keep = len(self._CLOSE) - 1
            thought, self._held = self._held[:-keep], self._held[-keep:]
            return "", thought
        if not rest.strip():
            # The blank lines after the block are no part of the answer either.
            self._held = close + rest
            return "", thought
        self._held = rest.lstrip("\n")
        return self._rest(), thought

    def end(self) -> str:
        """Text that was held back and turned out to be the answer."""
        return self._rest() if self._state == "start" else ""

    def _rest(self) -> str:
        rest, self._held, self._state = self._held, "", "text"
        return rest


CHAT_API: Final = HttpApi("Chat Completions", "/chat/completions", _body, _ChatReader)
