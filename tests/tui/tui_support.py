"""What the tests of the screen share: a folder with code, a served scripted model, an app on it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from textual.events import Key
from textual.pilot import Pilot

from midstream.edits.request import parse_request
from midstream.engine.types import FinishReason, GenerateRequest, Piece, Usage
from midstream.responses.endpoint import Endpoint
from midstream.serving.app import create_app
from midstream.serving.running import serve
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp

TIMEOUT_S = 15.0

CODE = '''\
"""Counting things."""

import sys


def count(items):
    """Count the items that are true."""
    total = 0
    for item in items:
        if item:
            total += 1
    print(total, file=sys.stderr)
    return total


def double(number):
    return number * 2
'''


class SteppedModel:
    """A model whose text comes exactly when a test lets it; ``None`` ends the answer.

    What is only to be read ahead is in ``ahead``.
    """

    name = "stepped"

    def __init__(self) -> None:
        self.facts = {"prompt": "edit-codec", "languages": "python", "max_region_lines": "60"}
        self.requests: list[GenerateRequest] = []
        self.ahead: list[GenerateRequest] = []
        self.condition = threading.Condition()
        self.texts: list[str | None] = []

    def give(self, text: str | None) -> None:
        with self.condition:
            self.texts.append(text)
            self.condition.notify_all()

    @property
    def region(self) -> str:
        found = [r for m in self.requests[-1].messages if (r := parse_request(m.text))]
        return found[-1].region

    def start(self, request: GenerateRequest) -> SteppedGeneration:
        (self.requests if request.generate else self.ahead).append(request)
        return SteppedGeneration(self, request)

    def close(self) -> None:
        """Nothing is held."""


class SteppedGeneration:
    def __init__(self, model: SteppedModel, request: GenerateRequest) -> None:
        self.usage = Usage(input_tokens=10)
        self.finish_reason: FinishReason | None = None
        self.stopping = False
        self._model = model
        self._reads = not request.generate

    def __iter__(self) -> Iterator[Piece]:
        model = self._model
        while not self._reads:
            with model.condition:
                model.condition.wait_for(lambda: self.stopping or bool(model.texts), TIMEOUT_S)
                text = None if self.stopping or not model.texts else model.texts.pop(0)
            if text is None:
                break
            self.usage.output_tokens += 1
            yield Piece(text, 1)
        self.finish_reason = FinishReason.STOPPED if self.stopping else FinishReason.STOP

    def stop(self) -> None:
        self.stopping = True
        with self._model.condition:
            self._model.condition.notify_all()


@contextlib.asynccontextmanager
async def served(model: SteppedModel) -> AsyncIterator[Endpoint]:
    app = create_app({model.name: model}, token="secret")
    async with serve(app) as server:
        yield Endpoint(f"ws://127.0.0.1:{server.port}/v1", "secret", model.name, "local")


class Stage:
    """An app under test, its model, and waiting for what the screen shows."""

    def __init__(self, app: MidstreamApp, pilot: Pilot[None], model: SteppedModel) -> None:
        self.app = app
        self.pilot = pilot
        self.model = model
        self.screen = app.review

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        deadline = asyncio.get_running_loop().time() + TIMEOUT_S
        while not condition():
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(
                    f"waited in vain: {what or condition}; notice: {self.notice!r}"
                )
            await self.pilot.pause(0.01)
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        names = {" ": "space", "_": "underscore", "`": "grave_accent", "\n": "ctrl+j"}
        for c in text:
            self.app.post_message(Key(names.get(c, c), c))
        await self.pilot.pause(0.02)

    @property
    def notice(self) -> str:
        return self.screen.notice.text

    @property
    def session(self):
        assert self.app.session is not None
        return self.app.session

    @property
    def rows(self) -> list[str]:
        """The visible text of the code pane."""
        return self.screen.pane.lines

    @property
    def keys(self) -> list[str]:
        """The key bar, as ``key words``."""
        from midstream.tui.widgets.key_bar import KeyBar

        return [f"{hint.key} {hint.words}" for hint in self.screen.query_one(KeyBar).hints]

    @property
    def title(self) -> str:
        return self.screen.composer.title.render().plain

    async def open(self, path: str) -> None:
        await self.until(lambda: self.app.session is not None)
        self.screen.show_path(path)
        await self.until(lambda: self.screen.path == path, f"open {path}")

    async def instruct(self, text: str) -> None:
        await self.press("i")
        self.screen.composer.put(text)
        before = len(self.model.requests)
        await self.press("enter")
        await self.until(lambda: len(self.model.requests) > before, "request")

    async def stream(self, text: str) -> None:
        self.model.give(text)
        region = self.session.turn
        assert region is not None
        segment = next(s for s in self.session.files[region.path].segments if not s.finished)
        want = len(segment.new_text) + len(text)
        await self.until(lambda: len(segment.new_text) >= want, "text")
        await self.pilot.pause(0.05)


@contextlib.asynccontextmanager
async def on_stage(
    root: Path,
    *,
    size: tuple[int, int] = (120, 36),
    settings: Settings | None = None,
    **options: object,
) -> AsyncIterator[Stage]:
    model = SteppedModel()
    async with served(model) as endpoint:
        app = MidstreamApp(
            root, settings or Settings(journal=False, attention=False), endpoint=endpoint, **options
        )  # type: ignore[arg-type]
        async with app.run_test(size=size) as pilot:
            stage = Stage(app, pilot, model)
            await stage.until(
                lambda: app.session is not None and app.session.state == "ready", "ready"
            )
            yield stage
