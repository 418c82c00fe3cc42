"""Responses that outlive their request: to continue, to retrieve, or to run in the background.

They are on a shelf: in memory, the ones used last (``Limits.stored_responses``), and as JSON, whose
size is known. One server has a shelf of its own, the replicas of a cluster share one. A response in
the background is run by a task of its own; until it has ended, the shelf has it as it began.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from midstream.serving.conversations import ResponseCache, StoredConversation
from midstream.serving.limits import Limits
from midstream.serving.logs import fault
from midstream.serving.requests import RequestError
from midstream.serving.turn import Interrupt, ServedResponse

_log = logging.getLogger(__name__)

_MAX_ITEMS = 100
"""Items of a page, as in OpenAI's API."""
_items_decoder = msgspec.json.Decoder(list[dict[str, Any]])
_response_decoder = msgspec.json.Decoder(dict[str, Any])


_STOP_SECONDS = 30.0
"""How long a response in the background may take to end once it is to."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """One response that has ended, or runs in the background.

    Attributes:
        response_id: Its id.
        response: The response object as JSON.
        items: The items of its own input as JSON.
        conversation: What can be continued from; None where nothing can.
        running: Whether it has not ended; the rest is as it was in the beginning.
    """

    response_id: str
    response: bytes
    items: bytes
    conversation: StoredConversation | None
    running: bool = False

    @property
    def characters(self) -> int:
        """Its size."""
        messages = self.conversation.characters if self.conversation is not None else 0
        return len(self.response) + len(self.items) + messages


class Shelf(Protocol):
    """A store of responses; every method may raise RequestError if it cannot be reached."""

    async def put(self, stored: StoredResponse) -> None:
        """Replace the stored state of a response."""
        ...

    async def get(self, response_id: str) -> StoredResponse | None:
        """The stored state of a response."""
        ...

    async def drop(self, response_id: str) -> None:
        """Forget a response."""
        ...

    async def stop(self, response_id: str) -> bool:
        """Have a response that runs stopped; whether it has ended before long."""
        ...

    async def until_stopped(self, response_id: str) -> None:
        """Wait until a response that runs is to be stopped."""
        ...


@dataclass(frozen=True, slots=True)
class _RunningResponse:
    """A response that runs somewhere."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class ResponseShelf:
    """A ``Shelf`` in this process."""

    def __init__(self, limits: Limits) -> None:
        self._kept = ResponseCache[StoredResponse](
            limits.stored_responses, limits.stored_characters
        )
        self._runs: dict[str, _RunningResponse] = {}

    async def put(self, stored: StoredResponse) -> None:
        self._kept.add(stored)
        if stored.running:
            self._runs[stored.response_id] = _RunningResponse()
        else:
            self._end(stored.response_id)

    async def get(self, response_id: str) -> StoredResponse | None:
        return self._kept.get(response_id)

    async def drop(self, response_id: str) -> None:
        self._kept.drop(response_id)
        self._end(response_id)

    async def stop(self, response_id: str) -> bool:
        run = self._runs.get(response_id)
        if run is None:
            return True
        run.stop.set()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await run.ended.wait()
        except TimeoutError:
            return False
        return True

    async def until_stopped(self, response_id: str) -> None:
        run = self._runs.get(response_id)
        if run is not None:
            await run.stop.wait()

    def _end(self, response_id: str) -> None:
        run = self._runs.pop(response_id, None)
        if run is not None:
            run.stop.set()  # No client waits for that any more.
            run.ended.set()


@dataclass(frozen=True, slots=True)
class _Running:
    turn: ServedResponse
    task: asyncio.Task[None]


class StoredResponses:
    """The responses that any connection may retrieve and continue from."""

    def __init__(self, limits: Limits, shelf: Shelf) -> None:
        self._limits = limits
        self._shelf = shelf
        self._running: dict[str, _Running] = {}

    async def add(self, turn: ServedResponse) -> None:
        """Keep a response that has ended; it was answered, whether that works or not."""
        try:
            await self._shelf.put(_stored(turn))
        except RequestError as error:
            _log.error("a response could not be stored: %s", error)

    async def conversation(self, response_id: str) -> StoredConversation | None:
        """What can be continued from; None if the response is not known or has failed.

        Raises:
            RequestError: The shelf cannot be reached.
        """
        stored = await self._shelf.get(response_id)
        return None if stored is None else stored.conversation

    async def run(self, turn: ServedResponse, work: Coroutine[Any, Any, None]) -> None:
        """Run a response in the background.

        Raises:
            RequestError: Too many of them run, or the shelf cannot be reached.
        """
        try:
            await self._shelf.put(_stored(turn, running=True))
            if len(self._running) >= self._limits.background:
                await self._shelf.drop(turn.id)
                raise RequestError(
                    f"{len(self._running)} responses run in the background; let some finish first.",
                    code="too_many_requests",
                    status=429,
                )
        except RequestError:
            work.close()
            raise
        task = asyncio.create_task(self._run(turn, work), name="background-response")
        self._running[turn.id] = _Running(turn, task)

    async def _run(self, turn: ServedResponse, work: Coroutine[Any, Any, None]) -> None:
        stopping = asyncio.create_task(self._stop_when_asked(turn))
        try:
            await work
            await self.add(turn)
        except Exception as error:
            _log.error("a response in the background could not be served: %s", fault(error))
            await self._shelf.drop(turn.id)
        finally:
            stopping.cancel()
            self._running.pop(turn.id, None)

    async def _stop_when_asked(self, turn: ServedResponse) -> None:
        with contextlib.suppress(RequestError):  # Then no client can ask any more.
            await self._shelf.until_stopped(turn.id)
            if turn.active:
                turn.interrupt(Interrupt.CANCEL)

    async def response(self, response_id: str) -> dict[str, Any]:
        """The response object, as it stands; as it began, if another replica runs it.

        Raises:
            RequestError: It is not known.
        """
        running = self._running.get(response_id)
        if running is not None:
            return running.turn.wire()
        return _response_decoder.decode((await self._find(response_id)).response)

    async def items(self, response_id: str) -> list[dict[str, Any]]:
        """The items of its own input, oldest first; those of earlier responses are not repeated.

        Raises:
            RequestError: It is not known.
        """
        return _items_decoder.decode((await self._find(response_id)).items)

    async def cancel(self, response_id: str) -> dict[str, Any]:
        """Stop a response that runs in the background; the response object afterwards.

        Raises:
            RequestError: It is not known, has not been made in the background, or does not end.
        """
        if (await self._find(response_id)).running and not await self._shelf.stop(response_id):
            await self._shelf.drop(response_id)
            raise RequestError(
                "The replica that ran this response does not answer; the response is lost.",
                code="server_error",
                status=503,
            )
        response = await self.response(response_id)
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
        if (await self._find(response_id)).running:
            await self.cancel(response_id)
        await self._shelf.drop(response_id)

    async def close(self) -> None:
        """End what runs in the background."""
        left = dict(self._running)
        for running in left.values():
            running.turn.abandon()
            running.task.cancel()
        await asyncio.gather(*(each.task for each in left.values()), return_exceptions=True)
        # Only this server can end them.
        await asyncio.gather(*map(self._shelf.drop, left), return_exceptions=True)

    async def _find(self, response_id: str) -> StoredResponse:
        found = await self._shelf.get(response_id)
        if found is None:
            raise RequestError(
                f"Response with id {response_id!r} not found; it was made with store: false, was "
                "deleted, gave way to newer ones, or the server that ran it has ended.",
                code="response_not_found",
                status=404,
            )
        return found


@dataclass(frozen=True, slots=True)
class ItemPage:
    """The requested part of a list.

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
            RequestError: There is no item ``after``.
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
    if not limit.isdecimal() or not 1 <= int(limit) <= _MAX_ITEMS:
        raise RequestError(f"limit must be between 1 and {_MAX_ITEMS}.", param="limit")
    if order not in ("asc", "desc"):
        raise RequestError('order must be "asc" or "desc".', param="order")
    return ItemPage(int(limit), order == "desc", query.get("after", ""))


def _stored(turn: ServedResponse, *, running: bool = False) -> StoredResponse:
    items, response = msgspec.json.encode(_input_items(turn)), msgspec.json.encode(turn.wire())
    return StoredResponse(turn.id, response, items, turn.conversation, running)


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
