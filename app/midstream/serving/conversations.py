"""The stored state of a response, from which the next one can continue.

Holds texts only; the model's cache of attention states belongs to the engine, which finds the
common prefix by itself.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from midstream.engine.types import Message


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation up to and including one response.

    Attributes:
        response_id: The response it ends with.
        messages: All messages, oldest first; instructions are not inherited and not among them.
        required: Stubs of the tool results that the model waits for.
        stream_id: Lane of that response.
        additional_tools: Tools that its input items offer.
    """

    response_id: str
    messages: tuple[Message, ...]
    required: tuple[dict[str, Any], ...] = ()
    stream_id: str | None = None
    additional_tools: tuple[dict[str, Any], ...] = ()

    @property
    def characters(self) -> int:
        """Its size; an upper bound, because long conversations share messages and tools."""
        tools = len(msgspec.json.encode(self.additional_tools)) if self.additional_tools else 0
        return tools + sum(len(message.text) for message in self.messages)


class Kept(Protocol):
    """An entry of a ``ResponseCache``."""

    @property
    def response_id(self) -> str:
        """The response that it belongs to."""
        ...

    @property
    def characters(self) -> int:
        """Its size."""
        ...


KeptT = TypeVar("KeptT", bound=Kept)


class ResponseCache(Generic[KeptT]):
    """The stored state of the most recently used responses, bounded in number and size.

    Args:
        entries: Responses to hold at most.
        characters: Their characters altogether at most; the newest is kept whatever its size.
    """

    def __init__(self, entries: int, characters: int) -> None:
        self._entries = entries
        self._limit = characters
        self._characters = 0
        self._kept: OrderedDict[str, KeptT] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, kept: KeptT) -> None:
        """Hold one more, evicting the least recently used ones if there are too many."""
        self.drop(kept.response_id)
        self._kept[kept.response_id] = kept
        self._characters += kept.characters
        while len(self._kept) > 1 and (
            len(self._kept) > self._entries or self._characters > self._limit
        ):
            self.drop(next(iter(self._kept)))

    def get(self, response_id: str) -> KeptT | None:
        found = self._kept.get(response_id)
        if found is not None:
            self._kept.move_to_end(response_id)
        return found

    def drop(self, response_id: str) -> None:
        found = self._kept.pop(response_id, None)
        if found is not None:
            self._characters -= found.characters
