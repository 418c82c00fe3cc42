"""Parses client events: ``response.create``, ``response.interrupt`` and ``response.steer``.

A field that is known and wrong is refused with its name; a field that is unknown is ignored,
because other clients send many. Says nothing about whether the request can be served.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, TypeVar, cast

import msgspec

from midstream.engine.types import Message
from midstream.guard.correction import CorrectionRequest
from midstream.responses.dialect import EFFORTS

_STREAM_ID = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_METADATA_PAIRS = 16
"""Limit of OpenAI's API."""
_PATH = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


class FinishedAnswer(Message):
    """An assistant's message that was not cut short."""

    __slots__ = ()


class RequestError(Exception):
    """A request that is refused; becomes an ``error`` event or an HTTP error.

    Attributes:
        status: HTTP status, which also stands on the WebSocket envelope.
        code: Machine-readable code.
        param: The field at fault, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "invalid_value",
        param: str | None = None,
        status: int = 400,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param

    @property
    def error(self) -> dict[str, Any]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        if self.status == 429:
            kind = "rate_limit_error"
        return {"type": kind, "code": self.code, "message": str(self), "param": self.param}

    def envelope(self, stream_id: str | None = None) -> dict[str, Any]:
        """The WebSocket event; ``status`` is outside the error object, unlike in HTTP."""
        event: dict[str, Any] = {"type": "error", "status": self.status, "error": self.error}
        if stream_id is not None:
            event["stream_id"] = stream_id
        return event


class Reasoning(msgspec.Struct, frozen=True):
    """The reasoning effort; other fields are ignored."""

    effort: str | None = None


_REFUSED = {
    "conversation": "conversation is not supported; continue with previous_response_id.",
    "prompt": "Stored prompts are not supported; send instructions and input.",
}
"""Fields that cannot be ignored without answering another request, and what to send instead."""


class TextFormat(msgspec.Struct, frozen=True):
    """``text.format``."""

    type: str = "text"


class TextOptions(msgspec.Struct, frozen=True):
    """``text``; other fields are ignored."""

    format: TextFormat | None = None


class StreamOptions(msgspec.Struct, frozen=True):
    """Extras of the stream.

    ``midstream_tokens`` is ours: it adds the number of model tokens to text events, for live
    meters.
    """

    midstream_tokens: bool = False


class CreateRequest(msgspec.Struct, frozen=True):
    """``response.create``, or the body of POST /v1/responses."""

    input: str | list[dict[str, Any]] = ""
    model: str = ""
    instructions: str | None = None
    previous_response_id: str | None = None
    store: bool | None = None
    generate: bool = True
    stream: bool | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    correction: CorrectionRequest | None = None
    must_change: bool = False
    reasoning: Reasoning | None = None
    text: TextOptions | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    truncation: str | None = None
    background: bool | None = None
    metadata: dict[str, str] | None = None
    stream_id: str | None = None
    stream_options: StreamOptions | None = None

    @property
    def effort(self) -> str | None:
        """The requested effort; unknown values count as none."""
        given = self.reasoning.effort if self.reasoning is not None else None
        return given if given in EFFORTS else None

    @property
    def additional_tools(self) -> tuple[dict[str, Any], ...]:
        """The tools of ``additional_tools`` items, which are on offer from there on."""
        items = self.input if isinstance(self.input, list) else []
        found = (item.get("tools") for item in items if item.get("type") == "additional_tools")
        return tuple(tool for tools in found for tool in _objects(tools))

    @property
    def keep(self) -> bool:
        """Whether other connections may continue from the response (``store`` defaults to true)."""
        return self.store is None or self.store


class InterruptRequest(msgspec.Struct, frozen=True):
    """``response.interrupt``; ``keep_partial_items`` is ours, for continuing with the partial
    text.
    """

    response_id: str
    mode: Literal["discard_partial_items", "keep_partial_items"] = "discard_partial_items"


class SteerRequest(msgspec.Struct, frozen=True):
    """``response.steer``."""

    previous_response_id: str
    input: str | list[dict[str, Any]]


_frame_decoder = msgspec.json.Decoder(dict[str, Any])


def read_frame(text: str | bytes) -> dict[str, Any]:
    """Read one frame or body as a JSON object.

    Raises:
        RequestError: It is not one.
    """
    try:
        return _frame_decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(
            "The message is not a JSON object; send one object in it.", code="invalid_json"
        ) from error


def read_create(fields: dict[str, Any]) -> CreateRequest:
    """Check the fields of a ``response.create``.

    Raises:
        RequestError: Names the field at fault.
    """
    stream_id = fields.get("stream_id")
    if stream_id is not None and (
        not isinstance(stream_id, str) or not _STREAM_ID.fullmatch(stream_id)
    ):
        raise RequestError(
            "stream_id must be 1 to 256 characters of A-Z, a-z, 0-9, '_', '.' and '-'.",
            code="invalid_stream_id",
            param="stream_id",
        )
    for name, sentence in _REFUSED.items():
        if fields.get(name) is not None:
            raise RequestError(sentence, code="unsupported_parameter", param=name)
    request = convert(fields, CreateRequest)
    if request.background and (request.stream or not request.keep):
        raise RequestError(
            "A background response is stored and then retrieved; leave out stream and store.",
            code="unsupported_parameter",
            param="background",
        )
    if request.truncation not in (None, "disabled"):
        raise RequestError(
            f"truncation {request.truncation!r} is not supported; shorten the input, and send "
            '"disabled" or nothing.',
            code="unsupported_parameter",
            param="truncation",
        )
    for name, value, low, high in (
        ("temperature", request.temperature, 0.0, 2.0),
        ("top_p", request.top_p, 0.0, 1.0),
        ("max_output_tokens", request.max_output_tokens, 1, None),
        ("seed", request.seed, -(2**63), 2**64 - 1),
    ):
        if value is not None and (value < low or (high is not None and value > high)):
            span = f"between {low} and {high}" if high is not None else f"at least {low}"
            raise RequestError(f"{name} must be {span}, not {value}.", param=name)
    if request.text is not None and request.text.format not in (None, TextFormat()):
        raise RequestError("Only plain text output is supported, no schema.", param="text.format")
    if request.metadata is not None and len(request.metadata) > _METADATA_PAIRS:
        raise RequestError(f"metadata holds at most {_METADATA_PAIRS} pairs.", param="metadata")
    return request


_Request = TypeVar("_Request", CreateRequest, InterruptRequest, SteerRequest)


def convert(fields: dict[str, Any], kind: type[_Request]) -> _Request:
    """Convert loose fields into a request type.

    Raises:
        RequestError: Names the field at fault.
    """
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        text = str(error)
        found = _PATH.search(text)
        path = found["path"] if found else None
        missing = re.search(r"missing required field `(\w+)`", text)
        param = missing[1] if missing else path or None
        reason = text[: found.start()] if found else text
        raise RequestError(
            f"{param or 'The request'} is not valid: {reason}.", param=param
        ) from error


def read_messages(value: str | list[dict[str, Any]]) -> tuple[Message, ...]:
    """Turn ``input`` into conversation messages; tool calls and results become text of their turn.

    Raises:
        RequestError: An item is not text.
    """
    if isinstance(value, str):
        return (Message("user", value),)
    messages: list[Message] = []
    for index, item in enumerate(value):
        message = _read_item(item, f"input[{index}]")
        if message is not None:
            messages.append(message)
    return tuple(messages)


def read_steer_messages(value: str | list[dict[str, Any]]) -> tuple[Message, ...]:
    """Turn a steer's ``input`` into user messages.

    Raises:
        RequestError: It is empty or holds anything else.
    """
    if not value:
        raise RequestError("input must hold the text to steer with.", param="input")
    for index, item in enumerate(value if isinstance(value, list) else []):
        if item.get("type", "message") != "message" or item.get("role") != "user":
            raise RequestError("Steering takes user messages only.", param=f"input[{index}]")
        if set(item) - {"type", "role", "content"}:
            raise RequestError(
                "A steering message has type, role and content only.", param=f"input[{index}]"
            )
    return read_messages(value)


_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_TEXT_PARTS = frozenset({"input_text", "output_text", "text", "refusal"})


def _read_item(item: dict[str, Any], where: str) -> Message | None:
    kind = item.get("type", "message")
    if kind == "message":
        role = item.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            raise RequestError(
                f"{where}.role must be user, assistant, system or developer.", param=f"{where}.role"
            )
        text = _read_content(item.get("content"), f"{where}.content")
        return _answer(item, text) if role == "assistant" else Message(_ROLES[role], text)
    if kind in ("function_call_output", "custom_tool_call_output"):
        return Message("tool", _read_content(item.get("output"), f"{where}.output"))
    if kind in ("function_call", "custom_tool_call"):
        field = "arguments" if kind == "function_call" else "input"
        return _answer(item, _read_content(item.get(field), f"{where}.{field}"))
    if kind in ("reasoning", "additional_tools"):
        return None  # The tools are read by `CreateRequest.additional_tools`.
    raise RequestError(
        f"{where} has the type {kind!r}, which this server does not accept; send messages and tool "
        "results as text.",
        param=f"{where}.type",
    )


def _answer(item: dict[str, Any], text: str) -> Message:
    kind = FinishedAnswer if item.get("status") == "completed" else Message
    return kind("assistant", text)


def _read_content(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise RequestError(f"{where} must be a text or a list of text parts.", param=where)
    texts: list[str] = []
    for index, part in enumerate(cast("list[Any]", content)):
        text = _part_text(part)
        if text is None:
            raise RequestError(
                f"{where}[{index}] is not text; this server takes text only.",
                param=f"{where}[{index}]",
            )
        texts.append(text)
    return "".join(texts)


def without_namespaces(tools: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools, those of a namespace by themselves, with its name as their ``namespace``."""
    found: list[dict[str, Any]] = []
    for tool in tools:
        if tool.get("type") == "namespace":
            inner = _objects(tool.get("tools"))
            found += ({**each, "namespace": tool.get("name")} for each in inner)
        else:
            found.append(tool)
    return found


def _objects(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _part_text(part: Any) -> str | None:
    if not isinstance(part, dict):
        return None
    fields = cast("dict[str, Any]", part)
    if fields.get("type") not in _TEXT_PARTS:
        return None
    text = fields.get("text", fields.get("refusal"))
    return text if isinstance(text, str) else None
