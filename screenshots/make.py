"""Make the pictures of the README: the real app on the example project, answered by a script.

    python screenshots/make.py [NAME ...]

Every scene opens a fresh copy of the example project, types and presses what a person would,
and exports the screen as SVG when the wanted moment has come. The model's part is
`replies.json`, played by the program's own server, so that the moment is the same every time;
everything else is the program itself.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from textual.events import Key

from midstream.demo import make_demo
from midstream.edits.hunks import HunkState
from midstream.pairing.session import PairingSession, SessionState
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp

HERE = Path(__file__).resolve().parent
INSTRUCTION = "rename entries to items and paid to settled in Invoice"
FILE = "tally/invoice.py"
TIMEOUT_S = 30.0
CELL = 12.2
"""Width of a character in the exported SVG."""


class Stage:
    """A running app and what scenes need to drive it."""

    def __init__(self, app: MidstreamApp) -> None:
        self.app = app

    @property
    def session(self) -> PairingSession:
        assert self.app.session is not None
        return self.app.session

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Let the app run until something holds.

        Raises:
            TimeoutError: It never does; the message says what was awaited.
        """
        deadline = asyncio.get_running_loop().time() + TIMEOUT_S
        while not holds():
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"waited for {what}")
            await asyncio.sleep(0.01)

    async def ready(self) -> None:
        """Wait for the session and its server."""
        await self.until(lambda: self.app.session is not None, "the session")
        await self.until(lambda: self.session.state is SessionState.READY, "the server")

    async def press(self, *keys: str) -> None:
        """Press keys without waiting for the app to become idle: it is streaming."""
        for key in keys:
            character = key if len(key) == 1 else " " if key == "space" else None
            self.app.post_message(Key(key, character))
            await asyncio.sleep(0.02)

    async def instruct(self, text: str) -> None:
        """Type an instruction and send it."""
        self.app.review.show_path(FILE, focus=False)
        await asyncio.sleep(0.3)
        await self.press("i", *("space" if char == " " else char for char in text), "enter")

    def settled(self) -> int:
        """How many hunks have settled so far."""
        return sum(hunk.state is not HunkState.STREAMING for hunk in self.session.hunks)


async def welcome(stage: Stage) -> None:
    """The first screen of the demo."""
    await stage.ready()
    await asyncio.sleep(0.5)


async def streaming(stage: Stage) -> None:
    """One hunk accepted, one rejected, the rest still streaming."""
    await stage.ready()
    await stage.instruct(INSTRUCTION)
    await stage.until(lambda: stage.settled() >= 2, "two settled hunks")
    await stage.press("escape", "a", "r")
    await stage.until(lambda: stage.settled() >= 4, "four settled hunks")


async def decided(stage: Stage) -> None:
    """The stream has ended and hunks wait."""
    await stage.ready()
    await stage.instruct(INSTRUCTION)
    await stage.until(lambda: stage.settled() >= 2, "settled hunks")
    await stage.press("escape", "a")
    await stage.until(lambda: stage.session.state is SessionState.READY, "the end of the stream")
    await asyncio.sleep(0.3)


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture: its file name, size in cells, theme, and how to get there."""

    name: str
    size: tuple[int, int]
    theme: str
    play: Callable[[Stage], Awaitable[None]]


SCENES = (
    Scene("welcome", (120, 34), "midnight", welcome),
    Scene("streaming", (144, 40), "midnight", streaming),
    Scene("decided-light", (120, 34), "paper", decided),
    Scene("small", (80, 24), "midnight", streaming),
)


_RUN = re.compile(
    r'x="([\d.]+)"( y="[\d.]+") textLength="([\d.]+)"([^>]*)>'
    r"((?:&#160;)*)(.*?)((?:&#160;)*)<"
)


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


async def shoot(scene: Scene) -> None:
    """Play one scene and write its picture."""
    parent = Path(tempfile.gettempdir()) / "midstream-demo"
    shutil.rmtree(parent, ignore_errors=True)
    demo = make_demo(parent)
    app = MidstreamApp(
        demo.root,
        replace(Settings(), theme=scene.theme),
        demo=demo,
        replay=HERE / "replies.json",
    )
    async with app.run_test(size=scene.size):
        await scene.play(Stage(app))
        picture = app.export_screenshot(title="Midstream")
    (HERE / f"{scene.name}.svg").write_text(trim_runs(picture), "utf-8")
    print(f"{scene.name}.svg")


def main() -> int:
    """Make the named pictures, or all."""
    names = [scene.name for scene in SCENES]
    parser = argparse.ArgumentParser(description="Make the pictures of the README.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    chosen = parser.parse_args().names or names
    if unknown := set(chosen) - set(names):
        parser.error(
            f"there is no scene {', '.join(sorted(unknown))}; known are {', '.join(names)}"
        )
    os.environ["MIDSTREAM_STATE_DIR"] = tempfile.mkdtemp(prefix="midstream-shots-state-")
    for scene in SCENES:
        if scene.name in chosen:
            asyncio.run(shoot(scene))
    return 0


if __name__ == "__main__":
    sys.exit(main())
