"""Make the pictures of the screens: the real app on the example project, answered step by step.

    python screenshots/make.py [MOMENT ...]

A walk opens the example project once per size, types and presses what a person would, and stops at
the moments that have a picture.  The model's part is given line by line, rates and clocks are left
out, and the lists of sessions and models are fixed, so that a picture only changes when the screen
does; ``tests/tui/test_tui_screenshots.py`` walks again and says which pictures are stale.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from textual.events import Key  # noqa: E402

from midstream.demo import make_demo  # noqa: E402
from midstream.edits.hunks import HunkState  # noqa: E402
from midstream.pairing.journal.journal import SessionSummary  # noqa: E402
from midstream.pairing.models.choosing import ModelChoice  # noqa: E402
from midstream.pairing.session import PairingSession, SessionState  # noqa: E402
from midstream.responses.profiles import BUILT_IN, Price  # noqa: E402
from midstream.settings import Settings  # noqa: E402
from midstream.tui.app import MidstreamApp  # noqa: E402
from midstream.tui.pages import models, sessions  # noqa: E402
from midstream.tui.review import status  # noqa: E402
from midstream.tui.review.state import ReviewState  # noqa: E402
from midstream.tui.telemetry.page import TelemetryScreen  # noqa: E402
from midstream.tui.widgets.status_row import StatusFacts  # noqa: E402
from midstream.workspace.journal import SessionInfo  # noqa: E402
from tests.helpers.stepped import SteppedModel, served  # noqa: E402

FOLDER = "/models/river-391m"
TITLE = "Edits functions in six languages"
"""The shipped model's title; its other facts are in ``CHOICES``."""
INSTRUCTION = "rename entries to items in Invoice"
REDIRECT = "no, call it bookings"
FILE = "tally/invoice.py"
THEMES = ("midnight", "paper", "ember", "contrast")
EVERY_THEME = ("streaming", "decided")
"""Moments that have a picture in every theme."""
SIZES = {"wide": (144, 40), "small": (80, 24)}
TIMEOUT_S = 60.0
CELL = 12.2
"""Width of a character in the exported SVG."""

CHOICES = [
    ModelChoice(
        f"{BUILT_IN}:{FOLDER}", BUILT_IN, TITLE, BUILT_IN, "folder", FOLDER, 8192, Price(0, 0, 0),
        "region", ("auto", "low", "medium", "high", "xhigh"),
        ("python", "javascript", "typescript", "go", "rust", "java"), size=261_000_000,
    ),
    ModelChoice(
        "endpoint:deep", "deep", "", "deep", "openai", "wss://api.example.com/v1", 400_000,
        Price(1.25, 10, 0.125), "v4a", ("auto", "low", "high"), key="missing",
        key_name="DEEP_API_KEY",
    ),
    ModelChoice(
        "endpoint:desk", "coder", "", "desk", "custom", "http://127.0.0.1:8080/v1",
        efforts=("auto",),
    ),
]  # fmt: skip
_THEN = 1_760_000_000.0
INFOS = [
    SessionInfo(Path(f"{n}.jsonl"), _THEN - n * 90_000, _THEN - n * 90_000 + length, size, False)
    for n, (length, size) in enumerate([(900, 48_000), (2_400, 31_000), (60, 1_200)])
]
SUMMARIES = {
    "0.jsonl": SessionSummary(
        ("rename total to amount in days_late", "raise a ValueError if entries is empty"),
        ("tally/reminders.py", "tally/entries.py"), 4, 1, 2, outcomes=((3, 1, 0), (1, 0, 2)),
    ),
    "1.jsonl": SessionSummary(
        ("add a parameter limit to for_client",), ("tally/entries.py",), 3, outcomes=((3, 0, 0),)
    ),
    "2.jsonl": SessionSummary(
        ("split the invoice into pages",), ("tally/invoice.py",), 0, 2, outcomes=((0, 2, 0),)
    ),
}  # fmt: skip


class Stage:
    """A running app and what a walk needs to drive it."""

    def __init__(self, app: MidstreamApp, model: SteppedModel) -> None:
        self.app = app
        self.model = model

    @property
    def session(self) -> PairingSession:
        """The session."""
        assert self.app.session is not None
        return self.app.session

    async def until(self, holds: Callable[[], object], what: str) -> None:
        """Let the app run until something holds.

        Raises:
            TimeoutError: It never does; the message says what was awaited.
        """
        deadline = asyncio.get_running_loop().time() + TIMEOUT_S
        while not holds():
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"waited for {what}")
            await asyncio.sleep(0.01)
        await self.still()

    async def shown(self, words: str) -> None:
        """Wait until some words are on screen, and nothing moves any more.

        Raises:
            TimeoutError: They never are.
        """
        deadline = asyncio.get_running_loop().time() + TIMEOUT_S
        before: list[str] = []
        while True:
            await asyncio.sleep(0.1)
            now = words_of(self.app.export_screenshot())
            if now == before and any(words in row for row in now):
                return
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"waited for {words!r} on screen")
            before = now

    async def still(self) -> None:
        """Let the app paint what has happened."""
        for _ in range(4):
            await asyncio.sleep(0.02)
            await self.app.animator.wait_for_idle()

    async def press(self, *keys: str) -> None:
        """Press keys."""
        for key in keys:
            character = key if len(key) == 1 else " " if key == "space" else None
            self.app.post_message(Key(key, character))
            await asyncio.sleep(0.01)
        await self.still()

    async def back(self) -> None:
        """Close a page."""
        await self.press("escape")
        await self.until(lambda: self.app.screen is self.app.review, "the code")

    async def type(self, text: str) -> None:
        """Type a text."""
        names = {" ": "space", "_": "underscore"}
        for character in text:
            self.app.post_message(Key(names.get(character, character), character))
        await self.still()

    async def feed(self, lines: list[str]) -> None:
        """Let the model write some lines, and wait until the screen has them."""
        self.model.give("".join(lines))
        segment = self.session.files[FILE].segments[0]
        want = len(segment.new_text) + sum(map(len, lines))
        await self.until(lambda: len(segment.new_text) >= want, "lines")
        await asyncio.sleep(0.2)
        await self.still()


async def walk(stage: Stage, wide: bool) -> AsyncIterator[str]:
    """Go through the program; yields the name of every moment that has a picture."""
    app, review = stage.app, stage.app.review
    await stage.until(
        lambda: app.session and stage.session.status.state is SessionState.READY, "server"
    )
    await stage.until(lambda: review.state.files, "files")
    await stage.shown("13 files")
    yield "welcome"
    await stage.press("escape")
    await stage.press("question_mark")
    await stage.shown("Decide")
    yield "help"
    await stage.back()
    await stage.press("W")
    await stage.until(lambda: simulated(app), "simulation")
    if not wide:
        await stage.press("tab")
    await stage.shown("Wafer clock")
    yield "telemetry"
    for key, words, moment in (
        ("H", "4 accepted, 1 rejected", "sessions"),
        ("comma", "Colours; automatic is", "settings"),
        ("M", TITLE, "models"),
    ):
        await stage.back()
        await stage.press(key)
        await stage.shown(words)
        yield moment
    await stage.back()
    review.navigate.show_path(FILE, focus=False)
    await stage.until(lambda: review.state.path == FILE, "the file")
    await stage.press("i")
    await stage.type(INSTRUCTION)
    await stage.press("enter")
    await stage.until(lambda: stage.model.requests, "the request")
    lines = shipped_answer(stage.model.region).splitlines(keepends=True)
    await stage.feed(lines[:9])
    await stage.press("a")
    await stage.until(lambda: decided(stage, HunkState.ACCEPTED) == 1, "accepted")
    await stage.press("a")
    await stage.until(lambda: decided(stage, HunkState.ACCEPTED) == 2, "accepted")
    await stage.feed(lines[9:33])
    half = len(lines[33]) - 9
    await stage.feed([lines[33][:half]])
    await stage.shown("2 to decide")
    yield "streaming"
    await stage.press("i")
    await stage.type(REDIRECT)
    await stage.shown(REDIRECT)
    yield "redirect"
    review.panes.composer.put("")
    await stage.press("escape")
    await stage.feed([lines[33][half:], *lines[34:]])
    stage.model.give(None)
    await stage.until(lambda: stage.session.status.state is SessionState.READY, "the end")
    review.notices.clear()
    await stage.press("g", "right_square_bracket")
    await stage.shown("2 to decide")
    yield "decided"
    if wide:
        await stage.press("t")
        review.notices.clear()
        await stage.shown("2 to decide")
        yield "split"
    await stage.press("C")
    await stage.shown("Recent")
    yield "commit"


def shipped_answer(region: str) -> str:
    """What the shipped model answers to ``INSTRUCTION``; a test asks it."""
    return re.sub(r"\bentries\b", "items", region)


def simulated(app: MidstreamApp) -> bool:
    """Whether the simulation of the telemetry page is complete."""
    page = app.screen
    return isinstance(page, TelemetryScreen) and page.simulation.result is not None


def decided(stage: Stage, state: HunkState) -> int:
    """How many hunks have a state."""
    return sum(hunk.state is state for hunk in stage.session.hunks)


def still_facts(state: ReviewState) -> StatusFacts:
    """The status row without rates, which differ from run to run."""
    if (session := state.opened) is None:
        return StatusFacts()
    return StatusFacts(
        model=session.server.model_name,
        doing=state.doing,
        branch="" if session.external.repo is None else session.external.repo.branch,
        dirty=0
        if session.external.repo is None
        else session.external.repo.dirty + session.external.repo.untracked,
        watching="native",
        guard=session.guard.light(state.path).words,
    )


@contextmanager
def fixed(home: Path) -> Iterator[None]:
    """What differs from machine to machine, or from day to day, is fixed."""
    environment = {
        "HOME": str(home), "TZ": "UTC", "TERM": "xterm-256color", "COLORTERM": "truecolor",
        "MIDSTREAM_CONFIG": str(home / ".config" / "midstream" / "config.toml"),
        "MIDSTREAM_STATE_DIR": str(home / "state"),
    }  # fmt: skip
    with (
        patch.dict(os.environ, environment),
        patch.object(models, "model_choices", lambda *_: CHOICES),
        patch.object(models, "chosen_id", lambda settings: CHOICES[0].id),
        patch.object(sessions, "earlier_sessions", lambda root: INFOS),
        patch.object(sessions, "summarize", lambda path: SUMMARIES[path.name]),
        patch.object(status, "status_facts", still_facts),
    ):
        for name in ("NO_COLOR", "MIDSTREAM_THEME"):
            os.environ.pop(name, None)
        time.tzset()
        yield
    time.tzset()


@asynccontextmanager
async def staged(home: Path, size: tuple[int, int]) -> AsyncIterator[Stage]:
    """The app on a fresh copy of the example project."""
    demo = make_demo(home)
    model = SteppedModel()
    model.name = BUILT_IN
    async with served(model) as endpoint:
        settings = Settings(theme=THEMES[0], attention=False, journal=False)
        app = MidstreamApp(demo.root, settings, demo=demo, endpoint=endpoint)
        async with app.run_test(size=size):
            yield Stage(app, model)


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: its file name without the ending, and the SVG."""

    name: str
    svg: str


def name_of(moment: str, size: str, theme: str) -> str:
    """The file name of a picture, without the ending; a large one in the first theme is short."""
    parts = (moment, "" if size == "wide" else size, "" if theme == THEMES[0] else theme)
    return "-".join(filter(None, parts))


def themes_of(moment: str) -> tuple[str, ...]:
    """The themes in which a moment has a picture."""
    if moment in EVERY_THEME:
        return THEMES
    return THEMES[0], THEMES[1]


async def pictures(size: str, *, themes: bool = True) -> AsyncIterator[Picture]:
    """Walk at one size.

    Args:
        size: ``wide`` or ``small``.
        themes: Whether there is a picture for every theme, or only for the first one.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with fixed(home):
            async with staged(home, SIZES[size]) as stage:
                async for moment in walk(stage, wide=size == "wide"):
                    for theme in themes_of(moment) if themes else THEMES[:1]:
                        stage.app.use_theme(theme)
                        await stage.still()
                        svg = stage.app.export_screenshot(title="Midstream")
                        yield Picture(name_of(moment, size, theme), trim_runs(svg))
                    stage.app.use_theme(THEMES[0])


_RUN = re.compile(
    r'x="([\d.]+)"( y="[\d.]+") textLength="([\d.]+)"([^>]*)>'
    r"((?:&#160;)*)(.*?)((?:&#160;)*)<"
)
_PLACED = re.compile(r'x="([\d.]+)" y="[\d.]+" textLength="[\d.]+"[^>]*-line-(\d+)[^>]*>(.*?)<')


def trim_runs(picture: str) -> str:
    """Take the spaces off both ends of every run of text and move the run instead.

    Some renderers drop them and then stretch what is left over the whole length.
    """

    def trimmed(match: re.Match[str]) -> str:
        x, y, length, rest, before, text, after = match.groups()
        left, right = before.count(";") * CELL, after.count(";") * CELL
        start, width = float(x) + left, float(length) - left - right
        return f'x="{start:g}"{y} textLength="{width:g}"{rest}>{text}<'

    return _RUN.sub(trimmed, picture)


def words_of(svg: str) -> list[str]:
    """The rows of text that a picture shows."""
    rows: dict[int, list[tuple[float, str]]] = {}
    for x, line, text in _PLACED.findall(svg):
        if text:
            rows.setdefault(int(line), []).append((float(x), html.unescape(text)))
    lines: list[str] = []
    for number in range(max(rows, default=-1) + 1):
        line = ""
        for x, text in sorted(rows.get(number, ())):
            line = line.ljust(round(x / CELL)) + text.replace("\xa0", " ")
        lines.append(line)
    return lines


async def make(wanted: Callable[[str], bool]) -> list[str]:
    """Write the pictures whose moment is wanted; the names of the files."""
    made: list[str] = []
    for size in SIZES:
        async for picture in pictures(size):
            if wanted(picture.name.partition("-")[0]):
                (HERE / f"{picture.name}.svg").write_text(picture.svg, "utf-8")
                made.append(f"{picture.name}.svg")
    return made


def main() -> int:
    """Make the pictures of the named moments, or all and nothing besides."""
    parser = argparse.ArgumentParser(description="Make the pictures of the screens.")
    parser.add_argument("moments", nargs="*", metavar="MOMENT", help="such as streaming, commit")
    moments = parser.parse_args().moments
    made = asyncio.run(make(lambda moment: not moments or moment in moments))
    if not moments:
        for path in HERE.glob("*.svg"):
            if path.name not in made:
                path.unlink()
    if not made:
        parser.error(f"there is no moment {', '.join(moments)}")
    print("\n".join(made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
