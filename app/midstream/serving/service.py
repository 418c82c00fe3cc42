"""The models that are served and what their connections share: workers, stored conversations,
counters.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec.structs import replace

from midstream.engine.types import Message, TextModel
from midstream.responses.events import ErrorCode
from midstream.serving.conversations import ResponseCache, StoredConversation
from midstream.serving.limits import Limits
from midstream.serving.metrics import Metrics
from midstream.serving.requests import CreateRequest, RequestError, read_messages
from midstream.serving.stored import Shelf, StoredResponses
from midstream.serving.turn import Emit, ServedResponse
from midstream.serving.worker import ModelWorker

_FAREWELL_SECONDS = 0.5
"""How long peers that do not read may hold up the end of the server."""

_REMEMBERED = 16
"""Ended turns that the telemetry still lists."""


def shutting_down() -> RequestError:
    """The refusal of a server that is about to end."""
    sentence = "The server is shutting down; reconnect shortly."
    return RequestError(sentence, code="server_shutting_down", status=503)


class Service:
    """Everything of the server that outlives a connection.

    Args:
        models: Models by the name that requests use, some by several; the first is the default.
        limits: Bounds.
        shelf: Where stored responses are.

    Attributes:
        connections: Open WebSockets.
        farewells: Called on shutdown, one per connection.
        turns: Responses that run or wait, in the order they came.
        ended: Telemetry of the latest ended ones.
        stored: What can be retrieved and continued from any connection.
        news: Set when a turn begins or ends; a waiter clears it first.
        leaving: Set when the server is about to end.
        draining: Set when no further generation is taken.
        ended_one: Set when a turn ends; a waiter clears it first.
    """

    def __init__(self, models: Mapping[str, TextModel], limits: Limits, shelf: Shelf) -> None:
        self.limits = limits
        self.metrics = Metrics()
        self.connections = 0
        self.farewells: set[Callable[[], Awaitable[None]]] = set()
        self.turns: dict[ServedResponse, None] = {}
        self.ended: deque[dict[str, Any]] = deque(maxlen=_REMEMBERED)
        self.news = asyncio.Event()
        self.leaving = asyncio.Event()
        self.draining = asyncio.Event()
        self.ended_one = asyncio.Event()
        self.started = time.time()
        one_each = {id(model): ModelWorker(model) for model in models.values()}
        self._workers = {name: one_each[id(model)] for name, model in models.items()}
        self.stored = StoredResponses(limits, shelf)

    async def drain(self, seconds: float) -> None:
        """Take no further generation, and wait for those that run or wait, up to some seconds."""
        self.draining.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.turns:
                    self.ended_one.clear()
                    await self.ended_one.wait()

    async def leave(self) -> None:
        """Tell all connections that the server is about to shut down."""
        self.leaving.set()
        self.news.set()
        await self.stored.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await asyncio.gather(*(tell() for tell in self.farewells), return_exceptions=True)

    def check(self) -> None:
        """Raise if the server can no longer generate.

        Raises:
            RuntimeError: The thread of a model has died.
        """
        dead = [name for name, worker in self._workers.items() if not worker.alive]
        if dead:
            raise RuntimeError(f"the thread of {', '.join(dead)} has died")

    def close(self) -> None:
        """Stop all generations and free the models."""
        for worker in set(self._workers.values()):
            worker.close()

    def worker(self, name: str) -> ModelWorker:
        """Return the worker of a model; an empty name means the default.

        Raises:
            RequestError: No such model.
        """
        if not name:
            return self._workers[self._default]
        found = self._workers.get(name)
        if found is None:
            known = ", ".join(sorted(self._workers))
            raise RequestError(
                f"The model {name!r} is not served here; available: {known}.",
                code="model_not_found",
                param="model",
                status=404,
            )
        return found

    @property
    def _default(self) -> str:
        return next(iter(self._workers))

    def model_objects(self) -> list[dict[str, Any]]:
        return [self.model_object(name) for name in self._workers]

    def model_object(self, name: str) -> dict[str, Any]:
        """One model as ``/v1/models/{id}`` shows it; an empty name means the default.

        Raises:
            RequestError: No such model.
        """
        worker = self.worker(name)
        return {
            "id": name or self._default,
            "object": "model",
            "created": int(self.started),
            "owned_by": "midstream",
            "metadata": dict(worker.model.facts),
        }

    @property
    def load(self) -> int:
        """Generations running or waiting, over all models."""
        return sum(worker.load for worker in set(self._workers.values()))

    async def history(
        self, request: CreateRequest, own: ResponseCache[StoredConversation] | None
    ) -> tuple[tuple[Message, ...], StoredConversation | None]:
        """Return the conversation a request means, its own messages included, and its parent.

        Args:
            request: The request.
            own: Conversations of the connection, which are looked at first.

        Raises:
            RequestError: The previous response is not known, or the input is wrong.
        """
        messages = read_messages(request.input)
        previous = request.previous_response_id
        if previous is None:
            return messages, None
        parent = own.get(previous) if own is not None else None
        parent = parent or await self.stored.conversation(previous)
        if parent is None:
            raise RequestError(
                f"Previous response with id {previous!r} not found.",
                code=ErrorCode.PREVIOUS_RESPONSE_NOT_FOUND,
                param="previous_response_id",
            )
        return (*parent.messages, *messages), parent

    def turn(
        self,
        request: CreateRequest,
        history: tuple[Message, ...],
        parent: StoredConversation | None,
        emit: Emit,
    ) -> ServedResponse:
        """Make a response of a request and what ``history`` has found.

        Raises:
            RequestError: No such model, or it cannot do what is asked with tools.
        """
        worker = self.worker(request.model)
        named = replace(request, model=request.model or self._default)
        return ServedResponse(
            named,
            history,
            worker,
            emit,
            limits=self.limits,
            metrics=self.metrics,
            inherited_tools=() if parent is None else parent.additional_tools,
        )

    async def run(self, turn: ServedResponse) -> None:
        """Run a turn and list it in the telemetry; raises what its ``emit`` raises."""
        self.turns[turn] = None
        self.news.set()
        try:
            await turn.run()
        finally:
            self.turns.pop(turn, None)
            self.ended.append(turn.telemetry())
            self.news.set()
            self.ended_one.set()

    def admit(self) -> None:
        """Take one more generation.

        Raises:
            RequestError: Too many wait already, or the server is about to end.
        """
        if self.draining.is_set():
            raise shutting_down()
        if len(self.turns) >= self.limits.waiting_total:
            raise RequestError(
                "Too many requests are waiting; try again shortly.",
                code="server_overloaded",
                status=503,
            )
