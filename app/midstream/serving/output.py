"""A model's output as the output items of one response, and the events that build them.

Knows which item is open and which are complete; sends nothing.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from typing import Any

from midstream.serving.forced_calls import ForcedCall
from midstream.serving.tools import (
    CallEnd,
    CallInput,
    CallSplitter,
    CallStart,
    OfferedTools,
    Step,
    TextStep,
)

Event = dict[str, Any]
"""A server event without its sequence number."""


class OutputItem(ABC):
    """One output item that is being written.

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
    def _delta_event(self, text: str) -> Event: ...

    def delta(self, text: str) -> Event:
        self.text += text
        return self._delta_event(text)

    @property
    def required(self) -> dict[str, Any] | None:
        """Stub of the result that the client has to send before the conversation continues."""
        return None

    def _place(self) -> dict[str, Any]:
        return {"item_id": self.id, "output_index": self.index}

    def _added(self, item: dict[str, Any]) -> Event:
        return {"type": "response.output_item.added", "output_index": self.index, "item": item}

    def _done(self, status: str) -> Event:
        return {
            "type": "response.output_item.done",
            "output_index": self.index,
            "item": self.wire(status),
        }


class MessageItem(OutputItem):
    """An assistant message with one text part."""

    def __init__(self, index: int = 0) -> None:
        super().__init__("msg", index)

    def _event(self, kind: str, **fields: Any) -> Event:
        return {"type": f"response.{kind}", **self._place(), "content_index": 0, **fields}

    def _part(self) -> dict[str, Any]:
        return {"type": "output_text", "text": self.text, "annotations": [], "logprobs": []}

    def opening(self) -> list[Event]:
        added = self._added({**self.wire("in_progress"), "content": []})
        return [added, self._event("content_part.added", part=self._part())]

    def _delta_event(self, text: str) -> Event:
        return self._event("output_text.delta", delta=text, logprobs=[])

    def closing(self, status: str) -> list[Event]:
        return [
            self._event("output_text.done", text=self.text, logprobs=[]),
            self._event("content_part.done", part=self._part()),
            self._done(status),
        ]

    def wire(self, status: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": [self._part()],
        }


class CallItem(OutputItem):
    """A call of a tool: the input of a custom tool, or the arguments of a function."""

    def __init__(
        self, name: str, index: int = 0, *, custom: bool = True, namespace: str | None = None
    ) -> None:
        super().__init__("ctc" if custom else "fc", index)
        self.name = name
        self._namespace = {} if namespace is None else {"namespace": namespace}
        self.call_id = f"call_{secrets.token_hex(12)}"
        self._type = "custom_tool_call" if custom else "function_call"
        self._events = (
            f"response.{'custom_tool_call_input' if custom else f'{self._type}_arguments'}"
        )
        self._field = "input" if custom else "arguments"

    def opening(self) -> list[Event]:
        return [self._added(self.wire("in_progress"))]

    def _delta_event(self, text: str) -> Event:
        return {"type": f"{self._events}.delta", **self._place(), "delta": text}

    def closing(self, status: str) -> list[Event]:
        done: Event = {"type": f"{self._events}.done", **self._place(), self._field: self.text}
        if self._field == "arguments":
            done["name"] = self.name
        return [done, self._done(status)]

    def wire(self, status: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": self._type,
            "status": status,
            "call_id": self.call_id,
            "name": self.name,
            **self._namespace,
            self._field: self.text,
        }

    @property
    def required(self) -> dict[str, Any]:
        return {"type": f"{self._type}_output", "call_id": self.call_id}


class Output:
    """The items of one response, in the order they are written.

    Args:
        use: The tools that the model may call.
        forced: The call whose input everything is; None for no such call.
        single: Leave out what comes after the first call.

    Attributes:
        text: All that belongs to the items, as the model wrote it.
        called: Whether a call is whole.
    """

    def __init__(
        self, use: OfferedTools, forced: ForcedCall | None = None, *, single: bool = False
    ) -> None:
        self._single = single
        self._namespaces = use.namespaces
        self.text = ""
        self.called = False
        self._forced = forced
        self._splitter = CallSplitter(use.offered) if use.offered and forced is None else None
        self._whole: list[tuple[OutputItem, str]] = []
        self._whole_text = 0
        self._open: OutputItem | None = None
        self._blank = ""

    @property
    def begun(self) -> bool:
        return self._open is not None or bool(self._whole)

    @property
    def required(self) -> tuple[dict[str, Any], ...]:
        """Stubs of the tool results that the client has to send."""
        return tuple(item.required for item, _ in self._whole if item.required is not None)

    def write(self, text: str) -> list[Event]:
        """Take the model's next text."""
        if self._splitter is None:
            self.text += text
            read_whole = self._forced is not None and self._forced.read is not None
            return [] if read_whole else self._apply([TextStep(text)])
        events: list[Event] = []
        # Calls end at line ends: cut there, what belongs to whole items is known exactly.
        for part in text.splitlines(keepends=True):
            if self._single and self.called:
                break
            self.text += part
            events += self._apply(self._splitter.feed(part))
        return events

    def close(self, status: str) -> list[Event]:
        """End the item that is open; a response without any gets an empty one.

        Args:
            status: "completed", or "incomplete" where the model was stopped.

        Raises:
            UserError: What the model wrote is not the call that it has to be.
        """
        events = self._apply(self._splitter.finish()) if self._splitter is not None else []
        forced = self._forced
        if forced is not None and forced.read is not None and status == "completed":
            events += self._apply([TextStep(forced.read(self.text))])
        if not self.begun:
            events += self._begin(self._first())
            if self._blank:
                assert self._open is not None
                events.append(self._open.delta(self._blank))
        return events + self._end(status)

    def say_instead(self, text: str) -> list[Event]:
        """Answer in words in place of the forced call, whose input was held back."""
        self._forced, self.text = None, text
        return self._apply([TextStep(text)])

    def discard(self) -> list[Event]:
        """Drop the open item and say so; complete ones stay."""
        item, self._open = self._open, None
        self._splitter = None
        self.text = self.text[: self._whole_text]
        if item is None:
            return []
        return [
            {
                "type": "response.output_item.interrupted",
                "item_id": item.id,
                "output_index": item.index,
            }
        ]

    def wire(self) -> list[dict[str, Any]]:
        return [item.wire(status) for item, status in self._whole]

    def _first(self) -> OutputItem:
        forced = self._forced
        return MessageItem() if forced is None else self._call(forced.name, forced.custom)

    def _call(self, name: str, custom: bool) -> CallItem:
        namespace = self._namespaces.get(name)
        return CallItem(name, len(self._whole), custom=custom, namespace=namespace)

    def _apply(self, steps: list[Step]) -> list[Event]:
        events: list[Event] = []
        for step in steps:
            match step:
                case TextStep(text=text) if self._open is not None:
                    events.append(self._open.delta(text))
                case TextStep(text=text):
                    events += self._text(text)
                case CallStart(name=name, custom=custom):
                    events += self._end("completed")
                    events += self._begin(self._call(name, custom))
                case CallInput(text=text):
                    assert self._open is not None
                    events.append(self._open.delta(text))
                case CallEnd():
                    self.called = True
                    events += self._end("completed")
        return events

    def _text(self, text: str) -> list[Event]:
        """Begin an item with text; blank lines between calls are not a message."""
        text, self._blank = self._blank + text, ""
        if self._splitter is not None and not text.strip():
            self._blank = text
            return []
        item = MessageItem(len(self._whole)) if self._whole else self._first()
        return [*self._begin(item), item.delta(text)]

    def _begin(self, item: OutputItem) -> list[Event]:
        self._open = item
        return item.opening()

    def _end(self, status: str) -> list[Event]:
        item, self._open = self._open, None
        self._blank = ""
        if item is None:
            return []
        self._whole.append((item, status))
        self._whole_text = len(self.text)
        return item.closing(status)
