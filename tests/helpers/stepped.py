"""A model behind the real server whose text comes exactly when a test lets it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Iterator

from midstream.edits.request import parse_follow_up, parse_request
from midstream.engine.types import FinishReason, GenerateRequest, Piece, TextModel, Usage
from midstream.responses.endpoint import Endpoint
from midstream.serving.app import create_app
from midstream.serving.running import serve
from tests.helpers.waiting import PATIENCE_S

PROMPT_TOKENS = 3000
"""Tokens of every prompt, as the model counts."""


class SteppedModel:
    """A model whose text comes exactly when a test lets it: ``give`` puts text on the wire.

    It is a real ``TextModel`` behind the real server; only the pace is the test's.  Requests
    that are only read ahead are in ``ahead``.
    """

    name = "stepped"

    def __init__(self, facts: dict[str, str] | None = None) -> None:
        self.facts = {"prompt": "edit-rewrite", "languages": "python", **(facts or {})}
        self.requests: list[GenerateRequest] = []
        self.ahead: list[GenerateRequest] = []
        self.stopped = 0
        self._condition = threading.Condition()
        self._texts: list[str | int | None] = []

    def give(self, text: str | int | None) -> None:
        """Let the running (or next) generation write ``text``, or end, or read so many tokens."""
        with self._condition:
            self._texts.append(text)
            self._condition.notify_all()

    def forget(self) -> None:
        """Leave out what an earlier test has given and asked."""
        self._texts.clear()
        self.requests.clear()
        self.ahead.clear()
        self.stopped = 0

    def end(self) -> None:
        """Let the running (or next) generation end."""
        self.give(None)

    @property
    def request(self) -> GenerateRequest:
        """The last request."""
        return self.requests[-1]

    @property
    def region(self) -> str:
        """The region of the last region request."""
        regions = [r for m in self.request.messages if (r := parse_request(m.text))]
        return regions[-1].region

    @property
    def asked(self) -> str:
        """The instruction that the running or last generation answers, ``""`` before the first."""
        if not self.requests:
            return ""
        last = self.request.messages[-1].text
        region = parse_request(last)
        return region.instruction if region else parse_follow_up(last) or ""

    def start(self, request: GenerateRequest) -> SteppedGeneration:
        """A generation that takes what ``give`` offers."""
        (self.requests if request.generate else self.ahead).append(request)
        return SteppedGeneration(self, request)

    def close(self) -> None:
        """Nothing is held."""

    def take(self, generation: SteppedGeneration) -> str | int | None:
        with self._condition:
            self._condition.wait_for(lambda: generation.stopping or bool(self._texts), PATIENCE_S)
            if generation.stopping or not self._texts:
                return None
            return self._texts.pop(0)

    def wake(self) -> None:
        with self._condition:
            self.stopped += 1
            self._condition.notify_all()

    def drop(self) -> None:
        """Forget what was given and not taken."""
        with self._condition:
            self._texts.clear()


class SteppedGeneration:
    """One generation of a ``SteppedModel``."""

    def __init__(self, model: SteppedModel, request: GenerateRequest) -> None:
        self.usage = Usage(input_tokens=PROMPT_TOKENS)
        self.finish_reason: FinishReason | None = None
        self.stopping = False
        self._model = model
        self._reads = not request.generate

    def __iter__(self) -> Iterator[Piece]:
        while not self._reads and (text := self._model.take(self)) is not None:
            if isinstance(text, int):
                self.usage.read_tokens += text
                yield Piece("", 0)
                continue
            self.usage.output_tokens += 1
            yield Piece(text, 1)
        self.finish_reason = FinishReason.STOPPED if self.stopping else FinishReason.STOP

    def stop(self) -> None:
        self.stopping = True
        self._model.wake()


@contextlib.asynccontextmanager
async def served(model: TextModel) -> AsyncIterator[Endpoint]:
    """The real server with ``model`` on a loopback port of this process."""
    app = create_app({model.name: model}, token="secret")
    async with serve(app) as server:
        yield Endpoint(f"ws://127.0.0.1:{server.port}/v1", "secret", model.name, "local")
