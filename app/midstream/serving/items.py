"""The output items of a response and the events that build them, in the API's order.

Which text belongs to which item is decided elsewhere.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from typing import Any

Event = dict[str, Any]
"""A server event without its sequence number."""


class OutputItem(ABC):
    """One output item that is being written.

    Args:
        prefix: Beginning of its id.
        index: Its place among the items of the response.

    Attributes:
        id: Item id.
        text: What has been written (and sent) so far.
    """

    def __init__(self, prefix: str, index: int) -> None:
        self.id = f"{prefix}_{secrets.token_hex(12)}"
        self.index = index
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

    def __init__(self, index: int = 0) -> None:
        super().__init__("msg", index)

    def _place(self) -> dict[str, Any]:
        return {"item_id": self.id, "output_index": self.index, "content_index": 0}

    def _part(self) -> dict[str, Any]:
        return {"type": "output_text", "text": self.text, "annotations": [], "logprobs": []}

    def opening(self) -> list[Event]:
        """Announce the item, then its part."""
        item: dict[str, Any] = {**self.wire("in_progress"), "content": []}
        return [
            {"type": "response.output_item.added", "output_index": self.index, "item": item},
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
        text = {"type": "response.output_text.done", **self._place(), "text": self.text}
        return [
            {**text, "logprobs": []},
            {"type": "response.content_part.done", **self._place(), "part": self._part()},
            {
                "type": "response.output_item.done",
                "output_index": self.index,
                "item": self.wire(status),
            },
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


class CallItem(OutputItem):
    """A call of a tool: the input of a custom tool, or the arguments of a function.

    Args:
        name: Name of the tool.
        index: Its place among the items of the response.
        custom: Whether the tool is a custom one.
    """

    def __init__(self, name: str, index: int = 0, *, custom: bool = True) -> None:
        super().__init__("ctc" if custom else "fc", index)
        self.name = name
        self.call_id = f"call_{secrets.token_hex(12)}"
        self._type = "custom_tool_call" if custom else "function_call"
        self._events = (
            f"response.{'custom_tool_call_input' if custom else f'{self._type}_arguments'}"
        )
        self._field = "input" if custom else "arguments"

    def opening(self) -> list[Event]:
        """Announce the call."""
        return [
            {
                "type": "response.output_item.added",
                "output_index": self.index,
                "item": self.wire("in_progress"),
            }
        ]

    def _delta_event(self, text: str) -> Event:
        return {
            "type": f"{self._events}.delta",
            "item_id": self.id,
            "output_index": self.index,
            "delta": text,
        }

    def closing(self, status: str) -> list[Event]:
        """End the input and the call."""
        done: Event = {
            "type": f"{self._events}.done",
            "item_id": self.id,
            "output_index": self.index,
            self._field: self.text,
        }
        if self._field == "arguments":
            done["name"] = self.name
        return [
            done,
            {
                "type": "response.output_item.done",
                "output_index": self.index,
                "item": self.wire(status),
            },
        ]

    def wire(self, status: str) -> dict[str, Any]:
        """The call with its input."""
        return {
            "id": self.id,
            "type": self._type,
            "status": status,
            "call_id": self.call_id,
            "name": self.name,
            self._field: self.text,
        }

    @property
    def required(self) -> dict[str, Any]:
        """The tool's output is required next."""
        return {"type": f"{self._type}_output", "call_id": self.call_id}
