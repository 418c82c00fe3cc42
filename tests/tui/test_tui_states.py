"""Pictures of the review screen in its states, each large and dark and small and light.

``pytest tests/tui/test_tui_states.py --snapshot-update`` takes new ones; look at them before you
keep them.  The model is scripted step by step and the status row is fixed, so that no clock and no
rate is in a picture.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from test_tui_snapshots import FACTS
from textual.pilot import Pilot

from midstream.edits.hunks import HoldReason, HunkState
from midstream.pairing.activity import Activity
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from midstream.tui.review import status
from midstream.tui.review.state import ReviewState
from midstream.tui.widgets.status_row import StatusFacts
from tests.helpers.stepped import SteppedModel, served

LOOKS = {"wide-midnight": ((150, 40), "midnight"), "small-paper": ((80, 24), "paper")}
CODE = '''"""Invoices."""

RATE = 0.19


def total(entries, client=None):
    """Add up what was worked, for one client or for all of them, in hours and with the tax on it."""
    amount = 0
    for entry in entries:
        if client is None or entry.client == client:
            amount += entry.minutes / 60 * entry.rate_per_hour_in_the_currency_of_the_client(client)
    print(amount)
    return amount * (1 + RATE)


def longest(entries):
    best = entries[0]
    for entry in entries:
        if entry.minutes > best.minutes:
            best = entry
    return best
'''  # noqa: E501 (it is to be cut, or to wrap)
NEW = [line + "\n" for line in CODE.split("\n")[5:13]]
NEW = [line.replace("amount", "owed") for line in NEW]


class Running:
    """The app of a picture and the model behind it."""

    def __init__(self, pilot: Pilot[None], model: SteppedModel) -> None:
        assert isinstance(pilot.app, MidstreamApp)
        self.pilot, self.app, self.model = pilot, pilot.app, model
        self.review = pilot.app.review

    async def until(self, holds: Callable[[], object]) -> None:
        for _ in range(1_500):
            if holds():
                await self.pilot.pause(0.1)
                return
            await self.pilot.pause(0.02)
        raise AssertionError("waited in vain")

    async def opened(self) -> None:
        session = lambda: self.app.session  # noqa: E731
        await self.until(
            lambda: session() and session().status.state == "ready" and self.review.state.path
        )
        await self.until(lambda: self.review.state.files)
        await self.pilot.press("escape")

    async def asked(self, lines: int) -> None:
        await self.opened()
        self.review.panes.pane.go_to(7)
        self.review.panes.composer.put("rename amount to owed")
        self.review.steer.send()
        await self.until(lambda: self.model.requests)
        self.model.give("".join(NEW[:lines]))
        segments = lambda: self.app.session.files["invoice.py"].segments  # noqa: E731
        await self.until(lambda: segments() and segments()[0].new_text == "".join(NEW[:lines]))

    async def settled(self) -> None:
        await self.asked(len(NEW))
        self.model.give(None)
        await self.until(lambda: self.app.session.status.state == "ready")
        self.review.notices.clear()
        await self.pilot.press("g", "right_square_bracket")

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause(0.15)
        self.review.notices.clear()
        await self.pilot.pause(0.1)


async def streaming(run: Running) -> None:
    await run.asked(5)
    await run.press("escape")


async def settled(run: Running) -> None:
    await run.settled()
    await run.press()


async def decided(run: Running) -> None:
    await run.settled()
    await run.press("a")
    await run.until(lambda: any(h.state is HunkState.ACCEPTED for h in run.app.session.hunks))
    await run.press("r")


async def conflict(run: Running) -> None:
    await run.settled()
    path = run.app.root / "invoice.py"
    path.write_text(CODE.replace("    amount = 0\n", "    amount = 0.0\n"))
    await run.app.session.external.refresh()
    await run.until(lambda: any(h.state is HunkState.CONFLICT for h in run.app.session.hunks))
    await run.press("g", "J")


async def held_back(run: Running) -> None:
    await run.settled()
    hunk = run.app.session.hunks.undecided()[1]
    why = HoldReason("", "a made-up finding, for the picture")
    run.app.session.hunks.hold_back(hunk.id, why)
    run.review.panes.pane.sync()
    await run.press("J")


async def split(run: Running) -> None:
    await run.settled()
    while run.review.panes.pane.layout_choice != "split":
        await run.press("t")


async def search(run: Running) -> None:
    await run.opened()
    await run.press("slash", "e", "n", "t", "r", "y", "enter", "n")


async def folded(run: Running) -> None:
    await run.settled()
    await run.press("z")


async def wrapped(run: Running) -> None:
    await run.settled()
    await run.press("w")


async def mentioning(run: Running) -> None:
    await run.opened()
    await run.press("i", "a", "s", "space", "i", "n", "space", "at")
    await run.until(lambda: len(run.review.panes.composer.list.candidates) > 2)


async def helped(run: Running) -> None:
    await run.opened()
    await run.press("question_mark")


STATES = (
    streaming,
    settled,
    decided,
    conflict,
    held_back,
    split,
    search,
    folded,
    wrapped,
    mentioning,
    helped,
)


@pytest.fixture
def stepped() -> Iterator[tuple[SteppedModel, Endpoint]]:
    """A scripted model behind a server with an event loop of its own."""
    model, loop, ready = SteppedModel(), asyncio.new_event_loop(), threading.Event()
    end = asyncio.Event()
    found: list[Endpoint] = []

    async def run() -> None:
        async with served(model) as endpoint:
            found.append(endpoint)
            ready.set()
            await end.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert ready.wait(30)
    yield model, found[0]
    loop.call_soon_threadsafe(end.set)
    thread.join(30)
    loop.close()


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_state(
    snap_compare: Callable[..., bool],
    stepped: tuple[SteppedModel, Endpoint],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    look: str,
    state: Callable[[Running], Awaitable[None]],
) -> None:
    model, endpoint = stepped
    monkeypatch.setenv("HOME", str(tmp_path))

    def facts(state: ReviewState) -> StatusFacts:
        return replace(FACTS, doing=Activity.WRITING if state.running else Activity.READY)

    monkeypatch.setattr(status, "status_facts", facts)
    root = tmp_path / "project"
    root.mkdir()
    (root / "invoice.py").write_text(CODE)
    (root / "notes.md").write_text("# Notes\n")
    size, theme = LOOKS[look]
    settings = Settings(theme=theme, journal=False, attention=False)
    app = MidstreamApp(root, settings, endpoint=endpoint, open_file="invoice.py")

    async def play(pilot: Pilot[None]) -> None:
        await state(Running(pilot, model))

    assert snap_compare(app, terminal_size=size, run_before=play)
