"""Responses that outlive their request: to go on from, to retrieve, to run in the background.

They are kept in memory, the ones used last (`Limits.stored_responses`), and as JSON, whose size is
known. A response in the background is run by a task of its own until it is stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from midstream.serving.conversations import ResponseCache, StoredConversation
from midstream.serving.limits import Limits
from midstream.serving.logs import fault
from midstream.serving.requests import RequestError
from midstream.serving.turn import Interrupt, ServedResponse

_log = logging.getLogger(__name__)

_MOST_ITEMS = 100
_items_decoder = msgspec.json.Decoder(list[dict[str, Any]])
_response_decoder = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """One response that has ended.

    Attributes:
        response_id: Its id.
        response: The response object as JSON.
        items: The items of its own input as JSON.
        conversation: What can be continued from; None where nothing can.
    """

    response_id: str
    response: bytes
    items: bytes
    conversation: StoredConversation | None

    @property
    def characters(self) -> int:
        """Its size."""
        messages = self.conversation.characters if self.conversation is not None else 0
        return len(self.response) + len(self.items) + messages


@dataclass(frozen=True, slots=True)
class _Running:
    turn: ServedResponse
    task: asyncio.Task[None]


class StoredResponses:
    """The responses that any connection may retrieve and continue from."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ended = ResponseCache[StoredResponse](
            limits.stored_responses, limits.stored_characters
        )
        self._running: dict[str, _Running] = {}

    def add(self, turn: ServedResponse) -> None:
        """Keep a response that has ended."""
        items = msgspec.json.encode(_input_items(turn))
        response = msgspec.json.encode(turn.wire())
        self._ended.add(StoredResponse(turn.id, response, items, turn.conversation))

    def conversation(self, response_id: str) -> StoredConversation | None:
        """What can be continued from; None if the response is not known or has failed."""
        stored = self._ended.get(response_id)
        return None if stored is None else stored.conversation

    def run(self, turn: ServedResponse, work: Coroutine[Any, Any, None]) -> None:
        """Run a response in the background.

        Raises:
            RequestError: Too many of them run.
        """
        if len(self._running) >= self._limits.background:
            work.close()
            raise RequestError(
                f"{len(self._running)} responses run in the background; let some finish first.",
                code="too_many_requests",
                status=429,
            )
        task = asyncio.create_task(self._run(turn, work), name="background-response")
        self._running[turn.id] = _Running(turn, task)

    async def _run(self, turn: ServedResponse, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
            self.add(turn)
        except Exception as error:
            _log.error("a response in the background could not be served: %s", fault(error))
        finally:
            self._running.pop(turn.id, None)

    def response(self, response_id: str) -> dict[str, Any]:
        """The response object, as it stands.

        Raises:
            RequestError: It is not known.
        """
        running = self._running.get(response_id)
        if running is not None:
            return running.turn.wire()
        return _response_decoder.decode(self._find(response_id).response)

    def items(self, response_id: str) -> list[dict[str, Any]]:
        """The items of its own input, oldest first; those of earlier responses are not repeated.

        Raises:
            RequestError: It is not known.
        """
        running = self._running.get(response_id)
        if running is not None:
            return _input_items(running.turn)
        return _items_decoder.decode(self._find(response_id).items)

    async def cancel(self, response_id: str) -> dict[str, Any]:
        """Stop a response that runs in the background; the response object afterwards.

        Raises:
            RequestError: It is not known, or has not been made in the background.
        """
        running = self._running.get(response_id)
        if running is not None:
            if running.turn.active:
                running.turn.interrupt(Interrupt.CANCEL)
            await asyncio.wait({running.task})
        response = self.response(response_id)
        if not response["background"]:
            raise RequestError(
                "Only a response with background: true can be cancelled; close the connection of "
                "another one to stop it.",
                code="not_cancellable",
            )
        return response

    async def delete(self, response_id: str) -> None:
        """Forget a response; one that still runs is cancelled.

        Raises:
            RequestError: It is not known.
        """
        if response_id in self._running:
            await self.cancel(response_id)
        self._find(response_id)
        self._ended.drop(response_id)

    async def close(self) -> None:
        """End what runs in the background."""
        tasks = [running.task for running in self._running.values()]
        for running in self._running.values():
            running.turn.abandon()
            running.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _find(self, response_id: str) -> StoredResponse:
        found = self._ended.get(response_id)
        if found is None:
            raise RequestError(
                f"Response with id {response_id!r} not found; it was made with store: false, was "
                "deleted, or gave way to newer ones.",
                code="response_not_found",
                status=404,
            )
        return found


@dataclass(frozen=True, slots=True)
class ItemPage:
    """Which part of a list is wanted.

    Attributes:
        limit: Items at most.
        newest_first: Their order.
        after: Id of the item before the first one; "" to begin at the beginning.
    """

    limit: int = 20
    newest_first: bool = True
    after: str = ""

    def of(self, items: list[dict[str, Any]]) -> dict[str, Any]:
        """The list object for this part.

        Raises:
            RequestError: There is no item `after`.
        """
        ordered = items[::-1] if self.newest_first else items
        ids = [item["id"] for item in ordered]
        if self.after and self.after not in ids:
            raise RequestError(f"There is no item {self.after!r}.", param="after")
        start = ids.index(self.after) + 1 if self.after else 0
        data = ordered[start : start + self.limit]
        return {
            "object": "list",
            "data": data,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
            "has_more": start + self.limit < len(ordered),
        }


def read_page(query: Mapping[str, str]) -> ItemPage:
    """Read ``limit``, ``order`` and ``after``.

    Raises:
        RequestError: Names the one at fault.
    """
    limit, order = query.get("limit", "20"), query.get("order", "desc")
    if not limit.isdecimal() or not 1 <= int(limit) <= _MOST_ITEMS:
        raise RequestError(f"limit must be between 1 and {_MOST_ITEMS}.", param="limit")
    if order not in ("asc", "desc"):
        raise RequestError('order must be "asc" or "desc".', param="order")
    return ItemPage(int(limit), order == "desc", query.get("after", ""))


def _input_items(turn: ServedResponse) -> list[dict[str, Any]]:
    """The input with what the API adds to its items: ids, types, and parts in place of texts."""
    given = turn.request.input
    items = given if isinstance(given, list) else [{"role": "user", "content": given}]
    return [_item(item, f"{turn.id.removeprefix('resp_')}_{n}") for n, item in enumerate(items)]


def _item(item: Mapping[str, Any], serial: str) -> dict[str, Any]:
    kind, content = item.get("type", "message"), item.get("content")
    found = {"id": f"item_{serial}", "status": "completed", **item, "type": kind}
    if kind == "message":
        part = "output_text" if item.get("role") == "assistant" else "input_text"
        if isinstance(content, str):
            found["content"] = [{"type": part, "text": content}]
    return found
