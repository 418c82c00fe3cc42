"""What the tests of the screen share: a folder with code, an app on it, waiting."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from rich.text import Text
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Markdown, Static

from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from midstream.tui.conversation.tools import ToolLines
from tests.helpers.stepped import SteppedModel, served
from tests.helpers.waiting import PATIENCE_S

MAX_TIMER_S = 0.25
"""No timer that a key starts takes longer; those that take a notice away do."""
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


async def shown(pilot: Pilot[None], condition: Callable[[], object] = lambda: True) -> None:
    """Wait until a condition holds, and then until all of its consequences are painted.

    A timer that is under way, such as that of a preview, is part of what follows.
    """
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await pilot.pause(0.02)
    await pilot.pause(MAX_TIMER_S)
    await pilot.pause()


class Stage:
    """An app under test, its model, and waiting for what the screen shows."""

    def __init__(self, app: MidstreamApp, pilot: Pilot[None], model: SteppedModel) -> None:
        self.app = app
        self.pilot = pilot
        self.model = model
        self.screen = app.review
        self.pane = app.review.panes.pane
        self.composer = app.review.panes.composer
        self.rail = app.review.panes.rail

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while not condition():
            if self.app._exception is not None:  # Nothing more will come.
                raise self.app._exception
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(
                    f"waited in vain: {what or condition}; notice: {self.notice!r}"
                )
            await asyncio.sleep(0.01)
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        names = {
            " ": "space",
            "_": "underscore",
            "`": "grave_accent",
            "\n": "ctrl+j",
            "\x1b": "escape",
        }
        for c in text:
            self.app.post_message(Key(names.get(c, c), c))
        await self.pilot.pause(0.02)

    @property
    def notice(self) -> str:
        return self.screen.panes.notice.text

    @property
    def choices(self) -> tuple[str, ...]:
        """The answers of an open question."""
        return self.screen.notices.choices

    @property
    def path(self) -> str:
        return self.screen.state.path

    @property
    def view(self):
        return self.screen.state.view

    @property
    def files(self) -> tuple[str, ...]:
        return self.screen.state.files

    @property
    def session(self):
        assert self.app.session is not None
        return self.app.session

    @property
    def rows(self) -> list[str]:
        """The visible text of the code pane."""
        return self.pane.lines

    @property
    def keys(self) -> list[str]:
        """The key bar, as ``key words``."""
        from midstream.tui.widgets.key_bar import KeyBar

        return [f"{hint.key} {hint.words}" for hint in self.screen.query_one(KeyBar).hints]

    @property
    def title(self) -> str:
        return self.composer.title.render().plain

    async def open(self, path: str) -> None:
        await self.until(lambda: self.app.session is not None)
        self.screen.navigate.show_path(path)
        await self.until(lambda: self.path == path, f"open {path}")

    async def instruct(self, text: str) -> None:
        await self.press("i")
        self.composer.put(text)
        before = len(self.model.requests)
        await self.press("enter")
        await self.until(lambda: len(self.model.requests) > before, "request")

    async def propose_more(self) -> None:
        """Have the model end the first line of ``pkg/things.py`` with a comment; it waits then."""
        await self.open("pkg/things.py")
        await self.press("v")
        await self.instruct("say more")
        self.model.give(f"{self.model.region.rstrip()}  # more\n")
        self.model.end()
        await self.until(lambda: self.session.hunks.undecided() and not self.session.turns.busy)

    async def stream(self, text: str) -> None:
        self.model.give(text)
        region = self.session.turns.last
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
    facts: dict[str, str] | None = None,
    **options: object,
) -> AsyncIterator[Stage]:
    model = SteppedModel({"max_region_lines": "60", **(facts or {})})
    async with served(model) as endpoint:
        app = MidstreamApp(
            root, settings or Settings(journal=False, attention=False), endpoint=endpoint, **options
        )  # type: ignore[arg-type]
        async with ready(app, model, size=size) as stage:
            yield stage


@contextlib.asynccontextmanager
async def ready(
    app: MidstreamApp, model: SteppedModel | None = None, *, size: tuple[int, int] = (120, 36)
) -> AsyncIterator[Stage]:
    """An app that runs, once its session is ready; with any model, which a test may have."""
    async with app.run_test(size=size) as pilot:
        stage = Stage(app, pilot, model or SteppedModel())
        await stage.until(
            lambda: app.session is not None and app.session.status.state == "ready", "ready"
        )
        yield stage


def conversation_text(stage: Stage) -> str:
    """The conversation beside the code, as text."""
    pane = stage.screen.panes.conversation
    lines: list[str] = []
    for widget in () if pane is None else pane.query("*"):
        if isinstance(widget, Markdown):
            lines.append(widget.source)
        elif isinstance(widget, ToolLines):
            lines.append(widget.render().plain)
        elif isinstance(widget, Static):
            content = widget.content
            lines.append(content.plain if isinstance(content, Text) else str(content))
    return "\n".join(lines)
