"""Chat Completions: the API that nearly every engine and company has.

Field names are those of OpenAI's reference; where others differ, ``ChatQuirks`` says so. Reasoning
is read from every place where it has been seen, and is no part of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from midstream.responses.frames import Frame
from midstream.responses.http_api import EventComposer, HttpApi
from midstream.responses.liberal import Liberal, loads, text_of, word_of
from midstream.responses.model_info import METADATA_PREFIX
from midstream.responses.refusals import error_of
from midstream.responses.tool_arguments import SCHEMA, ArgumentReader, as_arguments


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
    extra_content: Any = None


class _ChatDelta(msgspec.Struct, frozen=True):
    content: Any = None
    refusal: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None
    thought: Any = None
    extra_content: Any = None

    @property
    def is_thought(self) -> bool:
        """Whether the server says that the content is a thought (Gemini)."""
        noted = self.extra_content
        said = cast("dict[str, Any]", noted).values() if isinstance(noted, dict) else ()
        return self.thought is True or any(
            isinstance(note, dict) and cast("dict[str, Any]", note).get("thought") is True
            for note in said
        )


class _Choice(msgspec.Struct, frozen=True):
    index: int | None = None
    delta: _ChatDelta | None = None
    message: _ChatDelta | None = None
    text: Any = None  # A field of the older API for completions, which some gateways stream.
    finish_reason: Any = None
    error: Any = None


class _Details(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Times(msgspec.Struct, frozen=True):
    """Seconds, as Cerebras (``time_info``) and Groq (``usage``) count them."""

    prompt_time: float | None = None
    completion_time: float | None = None


class _ChatUsage(msgspec.Struct, frozen=True):
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
    object: Any = None
    choices: list[_Choice] | None = None
    usage: Any = None
    time_info: Any = None
    error: Any = None


_liberal = Liberal(_Chunk)


class _Call:
    """One call of a tool, as its pieces come."""

    def __init__(self, number: int, call_id: str) -> None:
        self.number = number
        self.id = call_id
        self.arguments = ArgumentReader()


class _ChatReader:
    def __init__(self) -> None:
        self._composer = EventComposer()
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._unnamed: dict[int, str] = {}
        self.call_notes: dict[str, Any] = {}
        self._usage: WireUsage | None = None
        self._times: dict[str, str] = {}

    @property
    def finished(self) -> bool:
        return self._composer.ending.said

    def take(self, frame: Frame) -> list[ServerEvent]:
        composer = self._composer
        if frame.closes:
            return self.end()
        if frame.name == "error":
            return composer.fail(_error(frame.data))
        chunk = _liberal.decode(frame.data)
        if error_of(chunk.error) or chunk.object == "error":
            return composer.fail(_error(frame.data))
        if chunk.choices is None and not chunk.usage:
            # Not of this API: a gateway's notes, or an error in words of its own.
            error = error_of(loads(frame.data))
            return composer.fail(error) if error is not None and error.message else []
        events = composer.begin(chunk.id or "")
        if chunk.usage:
            self._usage = _usage(chunk.usage) or self._usage
        self._times |= _times(chunk.time_info) or _times(chunk.usage)
        for choice in chunk.choices or ():
            if choice.index:
                continue  # A second answer to the same request, which was not asked for.
            if (error := error_of(choice.error)) is not None:
                return [*events, *composer.fail(error)]
            if choice.delta is not None:
                events += self._delta(choice.delta, composer.text)
            if choice.message is not None:
                events += self._delta(choice.message, composer.whole_text)
            if choice.delta is None and choice.message is None:
                events += composer.text(choice.text)
            composer.ending.say(word_of(choice.finish_reason))
        return events

    def end(self) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        if self._unnamed:
            self._composer.ending.spoil("it calls a tool without a name")
        for call in self._calls:
            events += self._composer.call_input(call.number, call.arguments.end())
        return [*events, *self._composer.finish(self._usage, self._times)]

    def _delta(
        self, delta: _ChatDelta, text: Callable[[object], list[ServerEvent]]
    ) -> list[ServerEvent]:
        composer = self._composer
        content, thought = _contents(delta.content)
        for given in (delta.reasoning_content, delta.reasoning):
            thought = thought or text_of(given) or ""
        if delta.is_thought:
            thought, content = thought or text_of(content) or "", None
        events = [*composer.reasoning(thought), *text(content), *composer.refusal(delta.refusal)]
        for call in delta.tool_calls or ():
            events += self._call(call)
        if delta.function_call is not None:
            events += self._call(_ToolCall(0, function=delta.function_call))
        return events

    def _call(self, piece: _ToolCall) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        given = piece.function or piece.custom
        name = (given.name if given is not None else None) or ""
        call = self._open_call(piece, name)
        if piece.extra_content and (call_id := piece.id or (call.id if call is not None else "")):
            self.call_notes[call_id] = piece.extra_content
        if call is None and not name and piece.function is not None:
            # Some engines say what is called after its arguments have begun.
            begun = self._unnamed.get(piece.index or 0, "")
            self._unnamed[piece.index or 0] = begun + _written(piece.function)
            return []
        if call is None:
            number, events = self._composer.call(piece.id or f"call_{len(self._calls)}", name)
            call = _Call(number, piece.id or "")
            self._calls.append(call)
            self._by_index[piece.index or 0] = call
        if piece.custom is not None:
            return [*events, *self._composer.call_input(call.number, piece.custom.input or "")]
        written = self._unnamed.pop(piece.index or 0, "") + _written(piece.function)
        return [*events, *self._composer.call_input(call.number, call.arguments.feed(written))]

    def _open_call(self, piece: _ToolCall, name: str) -> _Call | None:
        """The call that a piece belongs to; ``None`` if it begins one.

        Several calls come under one index, or without any: a new id with a name, once the
        arguments before it are complete, begins another one.
        """
        if piece.index is None:
            named = next((call for call in self._calls if piece.id and call.id == piece.id), None)
            call = named or (self._calls[-1] if self._calls else None)
        else:
            call = self._by_index.get(piece.index)
        if call is None or not name or not call.arguments.complete:
            return call
        return call if piece.id and piece.id == call.id else None


def _written(function: _Function | None) -> str:
    written = function.arguments if function is not None else None
    if isinstance(written, dict):  # Some engines send an object, and all of it at once.
        return msgspec.json.encode(written).decode()
    return written or ""


def _contents(content: object) -> tuple[object, str]:
    """The text and the reasoning in a ``content``, which may have parts of both kinds."""
    if not isinstance(content, list):
        return content, ""
    text: list[object] = []
    thought = ""
    for part in cast("list[object]", content):
        fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
        if fields.get("type") in ("thinking", "reasoning"):
            thought += text_of(fields.get("thinking") or fields.get("text")) or ""
        else:
            text.append(cast("object", part))
    return text, thought


def _usage(value: object) -> WireUsage | None:
    """Token counts; they are no reason to lose an answer, whatever they look like."""
    try:
        return msgspec.convert(value, _ChatUsage).as_wire
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


def _error(data: bytes) -> WireError:
    """The error in a frame that holds one."""
    try:
        return error_of(loads(data)) or WireError()
    except ValueError:
        return WireError(message=data.decode("utf-8", "replace"))


CHAT_API: Final = HttpApi("Chat Completions", "/chat/completions", _body, _ChatReader)
