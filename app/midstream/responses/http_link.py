"""Requests over HTTP: one per response, with server-sent events in return.

Nothing can be said to a running response here: it is stopped by leaving the request, which ends the
generation, and its cost, on every server that was tried (docs/compatibility.md). Every request
carries the whole conversation, because most servers keep none; so a redirect goes on from the text
that this side has kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from midstream.responses.chat_api import CHAT_API
from midstream.responses.connection import Link
from midstream.responses.dialect import WireApi
from midstream.responses.endpoint import Endpoint
from midstream.responses.events import (
    TERMINALS,
    ErrorCode,
    ServerEvent,
    WireError,
    WireResponse,
)
from midstream.responses.http import CutOffError, Poster, RefusedError
from midstream.responses.http_api import HttpApi
from midstream.responses.messages_api import MESSAGES_API
from midstream.responses.refusals import Refusal
from midstream.responses.responses_api import RESPONSES_API
from midstream.responses.sse import SseParser
from midstream.responses.tool_arguments import EndlessCallError

APIS: Final[Mapping[WireApi, HttpApi]] = {
    "responses": RESPONSES_API,
    "chat": CHAT_API,
    "messages": MESSAGES_API,
}

_TRIES: Final = 3
"""How often a request is sent that the server refused for now, as OpenAI's and Anthropic's own
clients do it."""
_FOR_NOW: Final = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_FIRST_PAUSE_SECONDS: Final = 0.5
_MAX_PAUSE_S: Final = 30.0
"""A server that asks for a longer pause is not waited for."""
_MAX_KEPT_BYTES: Final = 65_536
"""Of an answer without any event, to quote from."""


class ApiChoice:
    """The API spoken with an endpoint: the first one that it supports, found by trying.

    Attributes:
        chosen: Whether a request was answered.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.chosen = False
        self._endpoint = endpoint
        self._names = endpoint.apis
        self._at = 0

    @property
    def name(self) -> WireApi:
        return self._names[self._at]

    @property
    def api(self) -> HttpApi:
        return APIS[self.name]

    @property
    def asked(self) -> tuple[str, ...]:
        """The APIs tried so far, by their display names."""
        return tuple(APIS[name].title for name in self._names[: self._at + 1])

    @property
    def remark(self) -> str:
        """A sentence, if the first choice was not to be had."""
        if not (self.chosen and self._at):
            return ""
        missing = " or ".join(APIS[name].title for name in self._names[: self._at])
        return f"{self._endpoint.host} has no {missing} API; its {self.api.title} API is used."

    def next(self) -> bool:
        """The server does not have this one; whether another one is left to ask for."""
        if self.chosen or self._at + 1 == len(self._names):
            self._at = self._at if self.chosen else 0
            return False
        self._at += 1
        return True


@dataclass(slots=True)
class _Attempt:
    """What has become of a request: "asked", "begun" or "ended"."""

    state: str = "asked"


class HttpLink:
    """Requests one after the other, in the order they were sent.

    Args:
        endpoint: The server.
        choice: The API to speak; outlives this link.
        on_event: Called for every event; must not block.
        on_lost: Called once if a response breaks off after it had begun.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        choice: ApiChoice,
        on_event: Callable[[Link, ServerEvent], None],
        on_lost: Callable[[Link, str], None],
    ) -> None:
        self.alive = True
        self._endpoint = endpoint
        self._choice = choice
        self._poster = Poster(endpoint)
        self._on_event = on_event
        self._on_lost = on_lost
        self._opened = time.monotonic()
        self._waiting: deque[dict[str, Any]] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def age(self) -> float:
        return time.monotonic() - self._opened

    async def send(self, frame: dict[str, Any]) -> None:
        """Queue a ``response.create``; other events do not exist in HTTP and are ignored."""
        if frame["type"] != "response.create":
            return
        self._waiting.append(frame)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(), name="responses-http")

    async def close(self) -> None:
        """Abandon the running request and forget the waiting ones."""
        self.alive = False
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._poster.close()

    async def _work(self) -> None:
        while self._waiting:
            frame, attempt = self._waiting.popleft(), _Attempt()
            try:
                await self._ask(frame, attempt)
            except RefusedError as refused:
                self._refuse(refused)
            except (OSError, ValueError) as error:
                reason = str(error) or type(error).__name__
                if attempt.state == "begun":
                    self.alive = False
                    self._on_lost(self, reason)
                    return
                if attempt.state == "asked":
                    sentence = (
                        f"The model server at {self._endpoint.host} gave no answer: {reason}."
                    )
                    error = WireError(code=ErrorCode.UNREACHABLE, message=sentence)
                    self._on_event(self, ServerEvent(type="error", status=503, error=error))

    async def _ask(self, frame: dict[str, Any], attempt: _Attempt) -> None:
        """Send a request until it is answered: in another API if the server lacks this one, and
        again if it refuses for now. Once anything of an answer has come, nothing is repeated.
        """
        tries = 1
        while True:
            try:
                async for event in self._events(frame):
                    attempt.state = "ended" if event.type in TERMINALS else "begun"
                    self._choice.chosen = True
                    self._on_event(self, event)
                if attempt.state != "ended":
                    raise CutOffError("the answer ended early")
                return
            except RefusedError as refused:
                refusal = Refusal(self._endpoint, refused.status, refused.body)
                if attempt.state != "asked":
                    raise
                if refusal.lacks_route:
                    asked = self._choice.asked
                    if self._choice.next():
                        continue
                    refused.asked = asked
                    raise
                pause = _pause(refused.retry_after, tries)
                again = refused.status in _FOR_NOW and refused.may_retry
                if not again or pause is None or tries == _TRIES:
                    raise
            except CutOffError:
                if attempt.state != "asked" or tries == _TRIES:
                    raise
                pause = _pause(None, tries) or 0.0
            tries += 1
            await asyncio.sleep(pause)

    def _refuse(self, refused: RefusedError) -> None:
        refusal = Refusal(
            self._endpoint, refused.status, refused.body, refused.asked, refused.retry_after
        )
        self._on_event(self, ServerEvent(type="error", status=refused.status, error=refusal.error))

    async def _events(self, frame: dict[str, Any]) -> AsyncGenerator[ServerEvent]:
        api = self._choice.api
        parser, reader = SseParser(), api.reader()
        kept, seen, running = b"", False, ""
        chunks = self._poster.post(
            api.path,
            msgspec.json.encode(api.body(frame, self._endpoint)),
            api.headers(self._endpoint),
        )
        try:
            async with contextlib.aclosing(chunks):
                async for chunk in chunks:
                    for name, data in parser.feed(chunk):
                        seen = True
                        for event in reader.take(name, data):
                            if event.type == "response.created" and event.response is not None:
                                running = event.response.id
                            yield event
                    if not seen:
                        kept = (kept + chunk)[:_MAX_KEPT_BYTES]
        except EndlessCallError as error:
            # Leaving the request has stopped the model; the connection is as good as before.
            failed = WireError(code=ErrorCode.ENDLESS_CALL, message=str(error))
            response = WireResponse(id=running, status="failed", error=failed)
            yield ServerEvent(type="response.failed", response=response)
            return
        except CutOffError:
            # Cut off after the last text is complete all the same.
            if not (last := reader.end()):
                raise
        else:
            last = reader.end()
        for event in last:
            yield event
        if not seen and kept.lstrip().startswith(b"{"):
            raise RefusedError(200, kept)  # An error in place of the events.


def _pause(retry_after: float | None, tries: int) -> float | None:
    """Seconds until a request is sent again; None if the server wants too many."""
    if retry_after is not None:
        return retry_after if retry_after <= _MAX_PAUSE_S else None
    # Jitter, so that clients do not all return at the same moment.
    return _FIRST_PAUSE_SECONDS * 2 ** (tries - 1) * random.uniform(0.75, 1.0)
