"""The output items of a response and the events that build them, in the API's order.

A model writes one item: a message, or the input of the custom tool that the request forces.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from typing import Any

Event = dict[str, Any]
"""A server event without its sequence number."""


class OutputItem(ABC):
    """One output item that is being written.

    Attributes:
        id: Item id.
        text: What has been written (and sent) so far.
    """

    def __init__(self, prefix: str) -> None:
        self.id = f"{prefix}_{secrets.token_hex(12)}"
        self.text = ""

    @abstractmethod
    def opening(self) -> list[Event]:
        """Events that announce the item."""

    @abstractmethod
    def closing(self, status: str) -> list[Event]:
        """Events that end it; ``status`` is "completed" or "incomplete"."""

    @abstractmethod
    def wire(self, status: str) -> dict[str, Any]:
        """The item as it stands in a response."""

    @abstractmethod
    def _delta_event(self, text: str) -> Event:
        """One text event."""

    def delta(self, text: str) -> Event:
        """Append text and return its event."""
        self.text += text
        return self._delta_event(text)

    @property
    def required(self) -> dict[str, Any] | None:
        """Stub of the result that the client has to supply before the conversation goes on."""
        return None


class MessageItem(OutputItem):
    """An assistant message with one text part."""

    def __init__(self) -> None:
        super().__init__("msg")

    def _place(self) -> dict[str, Any]:
        return {"item_id": self.id, "output_index": 0, "content_index": 0}

    def _part(self) -> dict[str, Any]:
        return {"type": "output_text", "text": self.text, "annotations": [], "logprobs": []}

    def opening(self) -> list[Event]:
        """Announce the item, then its part."""
        item: dict[str, Any] = {**self.wire("in_progress"), "content": []}
        return [
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.content_part.added", **self._place(), "part": self._part()},
        ]

    def _delta_event(self, text: str) -> Event:
        return {
            "type": "response.output_text.delta",
            **self._place(),
            "delta": text,
            "logprobs": [],
        }

    def closing(self, status: str) -> list[Event]:
        """End the text, the part and the item."""
        return [
            {
                "type": "response.output_text.done",
                **self._place(),
                "text": self.text,
                "logprobs": [],
            },
            {"type": "response.content_part.done", **self._place(), "part": self._part()},
            {"type": "response.output_item.done", "output_index": 0, "item": self.wire(status)},
        ]

    def wire(self, status: str) -> dict[str, Any]:
        """The message with its text."""
        return {
            "id": self.id,
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": [self._part()],
        }


class CustomToolItem(OutputItem):
    """A call of a custom tool; the model's text is its input."""

    def __init__(self, name: str) -> None:
        super().__init__("ctc")
        self.name = name
        self.call_id = f"call_{secrets.token_hex(12)}"

    def opening(self) -> list[Event]:
        """Announce the call."""
        return [
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": self.wire("in_progress"),
            }
        ]

    def _delta_event(self, text: str) -> Event:
        return {
            "type": "response.custom_tool_call_input.delta",
            "item_id": self.id,
            "output_index": 0,
            "delta": text,
        }

    def closing(self, status: str) -> list[Event]:
        """End the input and the call."""
        return [
            {
                "type": "response.custom_tool_call_input.done",
                "item_id": self.id,
                "output_index": 0,
                "input": self.text,
            },
            {"type": "response.output_item.done", "output_index": 0, "item": self.wire(status)},
        ]

    def wire(self, status: str) -> dict[str, Any]:
        """The call with its input."""
        return {
            "id": self.id,
            "type": "custom_tool_call",
            "status": status,
            "call_id": self.call_id,
            "name": self.name,
            "input": self.text,
        }

    @property
    def required(self) -> dict[str, Any]:
        """The tool's output is required next."""
        return {"type": "custom_tool_call_output", "call_id": self.call_id}


def forced_tool(tools: list[dict[str, Any]], choice: str | dict[str, Any] | None) -> str | None:
    """Return the custom tool that a request leaves no choice but to call.

    That is one named by ``tool_choice``, or the only tool when ``tool_choice`` is "required".
    Whether a model calls a tool on its own is up to its prompt format, which this server does not
    interpret.
    """
    names = [tool.get("name") for tool in tools if tool.get("type") == "custom"]
    if isinstance(choice, dict):
        name = choice.get("name")
        return name if choice.get("type") == "custom" and name in names else None
    if choice == "required" and len(names) == len(tools) == 1:
        return names[0]
    return None
