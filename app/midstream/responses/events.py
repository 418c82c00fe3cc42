"""Events of a response stream, and how they are parsed from the server's frames.

Two layers: ``ServerEvent`` is the one loose structure every frame of the wire decodes into (only
the fields the client uses, unknown types and fields ignored); ``Started``, ``Progress``, ``Delta``,
``Unheard``, ``Reasoned``, ``Retracted``, ``Finished`` and ``Failed`` are what a
``midstream.responses.client.Stream`` yields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from midstream.responses.conversation import Entry, ToolCall
from midstream.responses.liberal import Liberal

_COUNT: Final = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens that one response took, as the server counted them."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Started:
    """The server took the request; ``id`` names the response from now on.

    Attributes:
        id: Response id, usable as ``previous_response_id`` later.
        metadata: Strings of the server; see ``midstream.responses.model_info``.
    """

    id: str
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Progress:
    """What a Midstream server says of a response while it runs, where that has changed.

    Attributes:
        read_tokens: Tokens of the prompt that have been read.
        prompt_tokens: Tokens of the prompt; 0 where nothing is said of reading.
    """

    read_tokens: int = 0
    prompt_tokens: int = 0

    @classmethod
    def read(cls, metadata: Mapping[str, str]) -> Progress:
        """Read the metadata of a response; what cannot be shown counts as not said."""

        def count(key: str) -> int:
            said = metadata.get(f"midstream.{key}", "")
            return int(said) if _COUNT.fullmatch(said) else 0

        return cls(count("read_tokens"), count("prompt_tokens"))


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of text.

    Attributes:
        text: Never empty. Frames that arrived between two reads are joined.
        tokens: Model tokens of ``text``; 0 if unknown (only Midstream's own server counts them).
    """

    text: str
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Unheard:
    """Input of tool calls that is not delivered as text goes on; it comes whole with the end.

    Attributes:
        characters: How much came since this was said last.
    """

    characters: int


MAX_REASONING_LENGTH: Final = 1_000_000
"""Characters of reasoning in one response, after which it is stopped; the most that models are
given for it is a fraction of that."""


@dataclass(frozen=True, slots=True)
class Reasoned:
    """The model reasons; the text of that is not delivered.

    Attributes:
        characters: How much there was in all; 0 while the server tells nothing of the text.
    """

    characters: int

    @property
    def endless(self) -> str:
        """Why the response is to be stopped, in words; ``""`` while it may go on."""
        much = self.characters > MAX_REASONING_LENGTH
        return f"it reasoned for more than {MAX_REASONING_LENGTH:,} characters" if much else ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The response ended.

    Attributes:
        status: "completed" or "incomplete".
        reason: None when completed, else "interrupted", "max_output_tokens", "repetition",
            "steered", …
        usage: Counted tokens; all zero if the server sent none.
        text: All text that was delivered as ``Delta``, joined.
        kept: The text that the server keeps as this response's output, which a continuation by
            ``previous_response_id`` builds on; "" after an interrupt that discards.
        metadata: Metadata of the final response.
        output: The same as ``kept``, as conversation entries: messages and tool calls.
    """

    status: str
    reason: str | None
    usage: TokenUsage
    text: str
    kept: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    output: tuple[Entry, ...] = ()


class ErrorCode(StrEnum):
    """Codes of failures that this side gives or acts on; servers have many more."""

    CLOSED = "closed"
    CONNECTION_LIMIT = "websocket_connection_limit_reached"
    CONNECTION_LOST = "connection_lost"
    ENDLESS_CALL = "endless_call"
    PREVIOUS_RESPONSE_NOT_FOUND = "previous_response_not_found"
    SERVER_ERROR = "server_error"
    STEERING_FAILED = "steering_failed"
    TOOLS_REFUSED = "tools_refused"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Failed:
    """The response could not be made or was lost; the text delivered so far stays valid.

    Attributes:
        code: An ``ErrorCode``, or another one of the server's.
        message: One sentence for a person.
    """

    code: str
    message: str

    @property
    def offline(self) -> bool:
        """Whether the server cannot be reached, or no longer, or was left."""
        return self.code in (ErrorCode.CONNECTION_LOST, ErrorCode.CLOSED, ErrorCode.UNREACHABLE)


@dataclass(frozen=True, slots=True)
class Retracted:
    """All text that was delivered so far was a thought of the model, and no part of its answer."""


StreamEvent = Started | Progress | Delta | Unheard | Reasoned | Retracted | Finished | Failed


class TokensDetails(msgspec.Struct, frozen=True):
    """Breakdown inside a usage object."""

    cached_tokens: int = 0
    reasoning_tokens: int = 0


class WireUsage(msgspec.Struct, frozen=True):
    """Usage as it stands in a response object."""

    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: TokensDetails | None = None
    output_tokens_details: TokensDetails | None = None

    def counted(self) -> TokenUsage:
        inputs = self.input_tokens_details or TokensDetails()
        outputs = self.output_tokens_details or TokensDetails()
        return TokenUsage(
            input_tokens=self.input_tokens,
            cached_tokens=inputs.cached_tokens,
            output_tokens=self.output_tokens,
            reasoning_tokens=outputs.reasoning_tokens,
        )


class WireError(msgspec.Struct, frozen=True):
    """Error object of an ``error`` envelope, a failed response or a refused steer."""

    code: str | None = None
    message: str = ""
    type: str | None = None
    param: str | None = None


class IncompleteDetails(msgspec.Struct, frozen=True):
    """Why a response ended early."""

    reason: str | None = None


class WirePart(msgspec.Struct, frozen=True):
    """One content part of an output message."""

    type: str = ""
    text: str = ""
    refusal: str = ""


class WireItem(msgspec.Struct, frozen=True):
    """One output item; ``content`` is filled for messages, the fields after it for calls of tools.

    ``input`` is a custom tool's text, ``arguments`` the JSON for a function.
    """

    id: str | None = None
    type: str = ""
    content: list[WirePart] | None = None
    call_id: str | None = None
    name: str | None = None
    input: str | None = None
    arguments: str | None = None

    @property
    def text(self) -> str:
        if self.type == "custom_tool_call":
            return self.input or ""
        return "".join(part.text for part in self.content or () if part.type == "output_text")


class WireResponse(msgspec.Struct, frozen=True):
    """The response object of created, in_progress and terminal events."""

    id: str = ""
    status: str | None = None
    previous_response_id: str | None = None
    metadata: dict[str, str] | None = None
    usage: WireUsage | None = None
    error: WireError | None = None
    incomplete_details: IncompleteDetails | None = None
    output: list[WireItem] | None = None

    @property
    def text(self) -> str:
        """The text of all output items, each on its own lines."""
        text = ""
        for item in self.output or ():
            if item.text:
                text += apart(text) + item.text
        return text

    def told(self, delivers: Callable[[str], bool]) -> str:
        """The text of the messages among them, and of the calls of some tools."""
        told = [
            item
            for item in self.output or ()
            if item.type != "custom_tool_call" or delivers(item.name or "")
        ]
        return msgspec.structs.replace(self, output=told).text

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The output as conversation entries; adjacent messages are joined."""
        found: list[Entry] = []
        for item in self.output or ():
            before = found[-1] if found else None
            if item.type == "custom_tool_call" and item.call_id:
                found.append(ToolCall(item.call_id, item.name or "", item.input or ""))
            elif item.text and isinstance(before, tuple):
                found[-1] = ("assistant", before[1] + apart(before[1]) + item.text)
            elif item.text:
                found.append(("assistant", item.text))
        return tuple(found)


def apart(text: str) -> str:
    """The separator between the text of two output items."""
    return "\n" if text and not text.endswith("\n") else ""


class WireSteer(msgspec.Struct, frozen=True):
    """Steer object of steer events."""

    id: str | None = None
    previous_response_id: str | None = None


class ServerEvent(msgspec.Struct, frozen=True):
    """Any frame of the server, reduced to the fields the client acts on."""

    type: str = ""
    delta: Any = None
    item_id: str | None = None
    item: WireItem | None = None
    tokens: int = 0
    response: WireResponse | None = None
    response_id: str | None = None
    error: WireError | None = None
    code: str | None = None
    message: str | None = None
    status: int | None = None
    stream_id: str | None = None
    steer: WireSteer | None = None
    sequence_number: int | None = None


_liberal = Liberal(ServerEvent)

TOOL_DELTA = "response.custom_tool_call_input.delta"
TEXT_DELTAS = frozenset({"response.output_text.delta", TOOL_DELTA})
"""Events whose ``delta`` is text of the edit, in a message or in a custom tool call."""

REASONING_DELTAS = frozenset(
    {"response.reasoning_text.delta", "response.reasoning_summary_text.delta"}
)
"""Events that show that the model reasons."""

REFUSAL_DELTA = "response.refusal.delta"
"""The event whose ``delta`` is what a model says that declines."""

TERMINALS = frozenset(
    f"response.{end}" for end in ("completed", "incomplete", "failed", "cancelled")
)
"""Events that end a response."""


def decode_event(frame: str | bytes) -> ServerEvent:
    """Read one frame of the server, however it writes its fields.

    Raises:
        ValueError: The frame is not a JSON object.
    """
    event = _liberal.decode(frame)
    if event.type == "error" and event.error is None:
        # The reference has the fields of an error event at the top, and its servers have both.
        error = WireError(event.code, event.message or "")
        return msgspec.structs.replace(event, error=error)
    return event
