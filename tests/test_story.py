"""The whole story with nothing replaced: screen, child server, engine, files and git.

The model runs so slowly that a key press in the middle of the stream is in the middle. The
test does not rely on what the model answers, only on what was accepted: the disk must hold exactly
the accepted hunks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from textual.events import Key

from midstream.demo import make_demo
from midstream.edits.hunks import HunkState
from midstream.pairing.session import PairingSession, SessionState
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from tests.helpers.waiting import PATIENCE_S

pytestmark = pytest.mark.system

FILE = "tally/entries.py"
NAMES = {" ": "space", "_": "underscore", "`": "grave_accent", "]": "right_square_bracket"}
PACE = 20.0
"""Tokens per second: the function has some hundred."""


class Person:
    """Presses keys and looks at the session, without waiting for the app to become idle."""

    def __init__(self, app: MidstreamApp) -> None:
        self.app = app

    @property
    def session(self) -> PairingSession:
        assert self.app.session is not None
        return self.app.session

    @property
    def disk(self) -> bytes:
        return (self.app.root / FILE).read_bytes()

    def hunks(self, *states: HunkState) -> list[int]:
        return [hunk.id for hunk in self.session.hunks.for_path(FILE) if hunk.state in states]

    async def press(self, *keys: str) -> None:
        for key in keys:
            self.app.post_message(Key(NAMES.get(key, key), key if len(key) == 1 else None))
            await asyncio.sleep(0.01)

    async def say(self, text: str) -> None:
        """Type into the composer, press Enter, and see that a turn starts."""
        turns = len(self.session.turns)
        await self.press("i", *text, "enter")
        await self.until(lambda: len(self.session.turns) > turns, "the turn")

    async def decide(self, key: str, state: HunkState) -> None:
        """Press a key, and once more where the screen asks for it: it may have moved meanwhile."""
        notice = self.app.review.notices.line
        while not self.hunks(state):
            notice.clear()
            await self.press(key)
            await self.until(
                lambda: self.hunks(state) or "Press again" in notice.text,
                f"{state.name}, or a sentence on why not",
            )

    async def until(self, holds: Callable[[], object], what: str) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while not holds():
            notices = (
                [notice.text for notice in self.session.status.notices] if self.app.session else []
            )
            assert asyncio.get_running_loop().time() < deadline, (
                f"waited for {what}; {notices}; {self.app.review.notices.line.text!r}"
            )
            await asyncio.sleep(0.005)

    async def until_settled(self, count: int) -> None:
        await self.until(
            lambda: (
                len(self.hunks(HunkState.SETTLED)) >= count
                or self.session.status.state is SessionState.READY
            ),
            f"{count} settled hunks",
        )
        assert self.session.status.state is SessionState.STREAMING
        assert len(self.hunks(HunkState.SETTLED)) >= count

    def expected(self) -> bytes:
        """Base text with exactly the accepted hunks."""
        return self.session.files[FILE].composed().to_bytes()


@pytest.fixture
async def person(tmp_path: Path, copyist: Path) -> AsyncIterator[Person]:
    demo = make_demo(tmp_path)
    settings = Settings(pace=PACE, model=copyist)
    app = MidstreamApp(demo.root, settings, open_file=FILE)
    async with app.run_test(size=(120, 40)):
        person = Person(app)
        await person.until(lambda: app.session is not None, "the session")
        await person.until(lambda: person.session.status.state is SessionState.READY, "the server")
        yield person


async def test_accept_while_streaming_then_stop(person: Person) -> None:
    before = person.disk
    await person.say("rename `entries` to `records` in for_client")
    await person.until_settled(1)
    await person.press("escape", "g", "]")
    await person.decide("a", HunkState.ACCEPTED)
    assert person.session.status.state is SessionState.STREAMING
    await person.until(lambda: person.disk != before, "the write")
    assert person.disk == person.expected()

    await person.press("ctrl+c")
    await person.until(lambda: person.session.status.state is SessionState.READY, "the stop")
    assert person.session.turns.last is not None
    assert person.session.turns.last.status == "stopped"
    assert person.disk == person.expected()
    assert len(person.hunks(HunkState.ACCEPTED)) == 1

    await person.press("u")
    await person.until(lambda: not person.hunks(HunkState.ACCEPTED), "the undo")
    await person.until(lambda: person.disk == before, "the bytes from before")


async def test_redirect_keeps_what_has_come(person: Person) -> None:
    before = person.disk
    await person.say("rename `entries` to `records` in for_client")
    await person.until_settled(1)
    kept = person.session.files[FILE].segments[-1].settled[:1]
    await person.say("rename `found` to `matches`")
    assert person.session.files[FILE].segments[-1].settled[:1] == kept
    await person.until(lambda: person.session.status.state is SessionState.READY, "the end")
    assert person.disk == before
    await person.press("escape", "g", "]")
    await person.decide("r", HunkState.REJECTED)
    # Half a rename is kept, so the model is unsure of the answer: its hunks are taken one by one.
    await person.press("]")
    await person.decide("a", HunkState.ACCEPTED)
    await person.until(lambda: person.disk == person.expected(), "the write")
    assert len(person.hunks(HunkState.REJECTED)) == 1
    assert person.disk != before
