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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from midstream.responses.chat_api import CHAT_API
from midstream.responses.concessions import Concessions, refuses_tools
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
from midstream.responses.http import Poster, RefusedError, url_below
from midstream.responses.http_api import HttpApi
from midstream.responses.liberal import dumps
from midstream.responses.messages_api import MESSAGES_API
from midstream.responses.reading import AnswerReading, CutOffError
from midstream.responses.refusals import Refusal
from midstream.responses.responses_api import RESPONSES_API
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
"""Pause before the second try; it doubles with every further one."""
_LOADING_PAUSE_S: Final = 1.0
"""How often a server is asked that loads its model, no longer than it may be silent."""
_MAX_PAUSE_S: Final = 30.0
"""A server that asks for a longer pause is not waited for."""
_SILENCE_S: Final = 300.0
"""How long a server may say nothing; local engines read long prompts without a word."""
_HEARTBEATS_S: Final = 900.0
"""The same while it sends signs of life that are no part of an answer."""
_STALL_S: Final = 120.0
"""How long text may stall that has begun to come."""
_COUNTS_S: Final = 3.0
"""How long a server may take to close an answer after it has said how it ends."""
_DRAIN_S: Final = 0.5
"""The same after its last event; then the connection cannot be used again."""


class ApiChoice:
    """How an endpoint is spoken to, as far as that was found out by asking; outlives its links.

    Its APIs are asked for in turn, below its address and then where that may be meant.

    Attributes:
        chosen: Whether a request was answered.
        concessions: What the server has refused, and requests do without.
        call_notes: What the server wants to have back with its calls of tools, by their ids.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.chosen = False
        self.concessions = Concessions()
        self.call_notes: dict[str, Any] = {}
        self._names = endpoint.apis
        elsewhere = () if endpoint.dialect.midstream else endpoint.elsewhere
        self._places = (endpoint, *(replace(endpoint, url=url) for url in elsewhere))
        self._at = 0

    @property
    def name(self) -> WireApi:
        return self._names[self._at % len(self._names)]

    @property
    def api(self) -> HttpApi:
        return APIS[self.name]

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint, at the address that is asked."""
        return self._places[self._at // len(self._names)]

    @property
    def asked(self) -> tuple[str, ...]:
        """The APIs tried so far, by their display names."""
        return tuple(APIS[name].title for name in self._names[: self._at + 1])

    @property
    def remark(self) -> str:
        """Remarks about the endpoint, in sentences, or ``""``."""
        said: list[str] = []
        host, api = self.endpoint.host, self._at % len(self._names)
        if self.chosen and api:
            missing = " or ".join(APIS[name].title for name in self._names[:api])
            said.append(f"{host} has no {missing} API; its {self.api.title} API is used.")
        if self.chosen and self.endpoint is not self._places[0]:
            said.append(f"It is at {self.endpoint.http_url}; set that as the address.")
        if self.chosen and (left_out := self.concessions.remark):
            said.append(f"{host} {left_out}; requests do without.")
        return " ".join(said)

    def next(self) -> bool:
        """Go on to the next address, as the server lacks this one; returns whether one is left."""
        if self.chosen or self._at + 1 == len(self._names) * len(self._places):
            self._at = self._at if self.chosen else 0
            return False
        self._at += 1
        return True


@dataclass(slots=True)
class _Attempt:
    """The state of a request: "asked", "begun" or "ended"."""

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
                self._refuse(refused, frame)
            except (OSError, ValueError) as error:
                reason = str(error) or type(error).__name__
                if attempt.state == "begun":
                    self.alive = False
                    self._on_lost(self, reason)
                    return
                if attempt.state == "asked":
                    sentence = f"{self._where} gave no answer: {reason.rstrip('.')}."
                    error = WireError(code=ErrorCode.UNREACHABLE, message=sentence)
                    self._on_event(self, ServerEvent(type="error", status=503, error=error))

    @property
    def _where(self) -> str:
        endpoint = self._choice.endpoint
        return f"The model server at {endpoint.host} ({endpoint.url})"

    async def _ask(self, frame: dict[str, Any], attempt: _Attempt) -> None:
        """Send a request until it is answered: in another API if the server lacks this one, without
        what it refuses, and again if it refuses for now. Once anything of an answer has come,
        nothing is repeated.
        """
        choice, tries = self._choice, 1
        first: RefusedError | None = None
        conceded = len(choice.concessions)
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            try:
                await self._answer(frame, attempt)
                return
            except RefusedError as refused:
                refusal = self._refusal(refused)
                if attempt.state != "asked":
                    raise
                if refusal.is_loading and clock() - began < _SILENCE_S:
                    await asyncio.sleep(_LOADING_PAUSE_S)
                    continue
                if choice.concessions.concede(refusal, self._body(frame), choice.name):
                    continue
                choice.concessions.withdraw(conceded)
                if _is_about_tools(refusal, frame):
                    raise  # A request that is pointless without them is not this link's decision.
                if refusal.lacks_route:
                    first, asked = first or refused, choice.asked
                    if choice.next():
                        continue
                    first.asked = asked
                    raise first from None
                pause = _pause(refusal.pause, tries)
                again = refused.status in _FOR_NOW and refused.may_retry and not refusal.is_used_up
                if not again or pause is None or tries == _TRIES:
                    raise
            except CutOffError:
                if attempt.state != "asked" or tries == _TRIES:
                    raise
                pause = _pause(None, tries) or 0.0
            tries += 1
            await asyncio.sleep(pause)

    def _refusal(self, refused: RefusedError) -> Refusal:
        asked, later = refused.asked or ("",), refused.retry_after
        return Refusal(self._endpoint, refused.status, refused.body, asked, later, refused.location)

    def _refuse(self, refused: RefusedError, frame: dict[str, Any]) -> None:
        refusal = self._refusal(refused)
        error = refusal.error
        if _is_about_tools(refusal, frame):
            error = msgspec.structs.replace(error, code=ErrorCode.TOOLS_REFUSED)
        self._on_event(self, ServerEvent(type="error", status=refused.status, error=error))

    def _body(self, frame: dict[str, Any]) -> dict[str, Any]:
        endpoint = self._choice.endpoint
        body = self._choice.api.body(frame, endpoint)
        for message in body.get("messages", ()):
            for call in message.get("tool_calls", ()):
                if (note := self._choice.call_notes.get(call["id"])) is not None:
                    call["extra_content"] = note  # Gemini refuses its calls without.
        return self._choice.concessions.apply(body)

    async def _answer(self, frame: dict[str, Any], attempt: _Attempt) -> None:
        """Send a request once and read what comes, no longer than anything is to be expected.

        Raises:
            RefusedError: The server has answered with something else than an answer.
            CutOffError: The answer broke off.
            OSError: The server is not reached, or silent.
            ValueError: A frame cannot be read.
        """
        endpoint, api = self._choice.endpoint, self._choice.api
        reading = AnswerReading(api.reader(), lambda event: self._deliver(event, attempt))
        chunks = self._poster.post(
            url_below(endpoint, api.path),
            dumps(self._body(frame)),
            api.headers(endpoint),
        )
        clock = asyncio.get_running_loop().time
        began, ending = clock(), ""
        try:
            async with asyncio.timeout(_SILENCE_S) as limit, contextlib.aclosing(chunks):
                async for chunk in chunks:
                    heard = reading.take(chunk)
                    if attempt.state == "ended" or reading.reader.finished:
                        if ending != attempt.state:  # Any other data is not waited for.
                            ending = attempt.state
                            over = _DRAIN_S if ending == "ended" else _COUNTS_S
                            limit.reschedule(clock() + over)
                        continue
                    if heard:
                        began, patience = clock(), _STALL_S if reading.writes else _SILENCE_S
                    else:
                        silence = _STALL_S if reading.writes else _HEARTBEATS_S
                        patience = min(_SILENCE_S, began + silence - clock())
                    limit.reschedule(clock() + patience)
            reading.end()
        except EndlessCallError as error:
            # Leaving the request has stopped the model; the connection is as good as before.
            failed = WireError(code=ErrorCode.ENDLESS_CALL, message=str(error))
            response = WireResponse(id=reading.running, status="failed", error=failed)
            self._deliver(ServerEvent(type="response.failed", response=response), attempt)
        except TimeoutError:
            # It has said that the answer is complete, and only did not close it.
            if not reading.reader.finished:
                raise OSError(f"it was silent for {clock() - began:.0f} s") from None
            reading.end()
        except CutOffError:
            # Cut off after the last text is complete all the same.
            if not reading.reader.finished:
                raise
            reading.end()
        self._choice.call_notes |= reading.reader.call_notes
        if attempt.state == "ended":
            return
        if reading.said:
            raise RefusedError(200, reading.said)
        raise CutOffError("the answer ended early" if reading.heard else "the answer is empty")

    def _deliver(self, event: ServerEvent, attempt: _Attempt) -> None:
        if attempt.state == "ended":
            return
        attempt.state = "ended" if event.type in TERMINALS else "begun"
        self._choice.chosen = True
        if event.type == "response.failed" and event.response is not None:
            event = msgspec.structs.replace(event, response=self._explained(event.response))
        self._on_event(self, event)

    def _explained(self, response: WireResponse) -> WireResponse:
        """A response that failed, with a sentence that says whose words these are."""
        error = response.error or WireError()
        if error.code == ErrorCode.ENDLESS_CALL:
            return response
        message = self._refusal(RefusedError(200, error.message.encode())).said
        said = f': "{message}"' if message else " and did not say why"
        error = msgspec.structs.replace(error, message=f"{self._where} gave up{said}.")
        return msgspec.structs.replace(response, error=error)


def _is_about_tools(refusal: Refusal, frame: Mapping[str, Any]) -> bool:
    given = refusal.status in (400, 404, 422, 500, 501) and bool(frame.get("tools"))
    return given and refuses_tools(refusal.said)


def _pause(retry_after: float | None, tries: int) -> float | None:
    """Seconds until a request is sent again; None if the server wants too many."""
    if retry_after is not None:
        return retry_after if retry_after <= _MAX_PAUSE_S else None
    # Jitter, so that clients do not all return at the same moment.
    return _FIRST_PAUSE_SECONDS * 2 ** (tries - 1) * random.uniform(0.75, 1.0)
