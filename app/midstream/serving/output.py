"""What a model writes, as the items of one response and the events that build them.

Knows which item is open and which are whole; sends nothing.
"""

from __future__ import annotations

from typing import Any

from midstream.serving.items import CallItem, Event, MessageItem, OutputItem
from midstream.serving.tools import CallEnd, CallInput, CallSplitter, CallStart, Step, Text


class Output:
    """The items of one response, in the order they are written.

    Args:
        tools: Types of the tools that the model may call, by name.
        forced: The custom tool whose input everything is; None for no such tool.
        single: Leave out what comes after the first call.

    Attributes:
        text: All that belongs to the items, as the model wrote it.
        called: Whether a call is whole.
    """

    def __init__(self, tools: dict[str, str], forced: str | None, *, single: bool = False) -> None:
        self._single = single
        self.text = ""
        self.called = False
        self._forced = forced
        self._splitter = CallSplitter(tools) if tools and forced is None else None
        self._whole: list[tuple[OutputItem, str]] = []
        self._whole_text = 0
        self._open: OutputItem | None = None
        self._blank = ""

    @property
    def begun(self) -> bool:
        """Whether there is an item."""
        return self._open is not None or bool(self._whole)

    @property
    def required(self) -> tuple[dict[str, Any], ...]:
        """Stubs of the tool results that the client has to supply."""
        return tuple(item.required for item, _ in self._whole if item.required is not None)

    def write(self, text: str) -> list[Event]:
        """Take what the model wrote next."""
        if self._splitter is None:
            self.text += text
            return self._apply([Text(text)])
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
        """
        events = self._apply(self._splitter.finish()) if self._splitter is not None else []
        if not self.begun:
            events += self._begin(self._first())
            if self._blank:
                assert self._open is not None
                events.append(self._open.delta(self._blank))
        return events + self._end(status)

    def discard(self) -> list[Event]:
        """Drop the item that is open and say so; whole ones stay."""
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
        """The items that have ended, as they stand in a response."""
        return [item.wire(status) for item, status in self._whole]

    def _first(self) -> OutputItem:
        return MessageItem() if self._forced is None else CallItem(self._forced)

    def _apply(self, steps: list[Step]) -> list[Event]:
        events: list[Event] = []
        for step in steps:
            match step:
                case Text(text=text) if self._open is not None:
                    events.append(self._open.delta(text))
                case Text(text=text):
                    events += self._text(text)
                case CallStart(name=name, custom=custom):
                    events += self._end("completed")
                    events += self._begin(CallItem(name, len(self._whole), custom=custom))
                case CallInput(text=text):
                    assert self._open is not None
                    events.append(self._open.delta(text))
                case CallEnd():
                    self.called = True
                    events += self._end("completed")
        return events

    def _text(self, text: str) -> list[Event]:
        """Begin an item with text; blank lines between calls are no message."""
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
