"""The entries of a conversation on the client side, and how they are sent.

Messages are pairs of role and text, because most of the program needs nothing else. A call of a
custom tool and its output are entries of their own: a server goes on from a call only with an
output for its ``call_id``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

MAX_OUTPUT = 64_000
"""Characters of a tool's output that are sent; what is longer is cut in the middle."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a custom tool that the model made; its output names the ``call_id``."""

    call_id: str
    name: str
    input: str


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool call."""

    call_id: str
    output: str


Entry = tuple[str, str] | ToolCall | ToolOutput
"""A message (role and text), a call of a custom tool, or its output."""


@dataclass(frozen=True, slots=True)
class RequestContent:
    """What a model is sent to answer, whatever form an API gives it.

    Attributes:
        instructions: System text.
        messages: The whole conversation, also where the server has a part of it already.
        tools: Tools that the model may call, in the API's form.
    """

    instructions: str = ""
    messages: tuple[Entry, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()


def wire_item(entry: Entry) -> dict[str, Any]:
    """An entry as an item of ``input``.

    A call is sent without an item id: with one, a server looks for the reasoning that went before
    it, which is not stored.
    """
    if isinstance(entry, ToolCall):
        return {"type": "custom_tool_call", **asdict(entry)}
    if isinstance(entry, ToolOutput):
        output = entry.output
        if len(output) > MAX_OUTPUT:
            half = MAX_OUTPUT // 2
            output = f"{output[:half]}\n(cut)\n{output[-half:]}"
        return {"type": "custom_tool_call_output", "call_id": entry.call_id, "output": output}
    role, text = entry
    part = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": part, "text": text}]}


def unanswered(entries: Sequence[Entry]) -> list[str]:
    """Ids of tool calls without an output; no server continues from those."""
    answered = {entry.call_id for entry in entries if isinstance(entry, ToolOutput)}
    calls = [entry.call_id for entry in entries if isinstance(entry, ToolCall)]
    return [call_id for call_id in calls if call_id not in answered]
