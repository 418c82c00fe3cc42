"""Record the README's animation: the real program, the shipped model, at reading pace.

    python screenshots/record.py

A person's keys are pressed on the example project while the embedded server answers; the screen is
taken several times a second, and every picture that differs from the one before becomes a frame of
``docs/recording.svg``, shown for as long as it was on screen.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
sys.path.append(str(HERE))

from make import Stage, decided, trim_runs  # noqa: E402

from midstream.demo import READING_PACE, make_demo  # noqa: E402
from midstream.edits.hunks import HunkState  # noqa: E402
from midstream.pairing.session import SessionState  # noqa: E402
from midstream.settings import Settings  # noqa: E402
from midstream.tui.app import MidstreamApp  # noqa: E402
from tests.helpers.stepped import SteppedModel  # noqa: E402

OUT = HERE.parent / "docs" / "recording.svg"
SIZE = (100, 28)
INSTRUCTION = "rename rows to totals in month_report"
REDIRECT = "no, call it sums"
EVERY_S = 0.25
"""Seconds between two looks at the screen."""
LAST_S = 3.0
"""How long the last frame stays."""


class Film:
    """Frames with the time at which each appeared."""

    def __init__(self, app: MidstreamApp) -> None:
        self._app = app
        self.frames: list[tuple[float, str]] = []

    async def run(self) -> None:
        """Take pictures until cancelled."""
        while True:
            picture = trim_runs(self._app.export_screenshot(title="midstream demo"))
            if not self.frames or picture != self.frames[-1][1]:
                self.frames.append((time.monotonic(), picture))
            await asyncio.sleep(EVERY_S)


def _words(picture: str) -> str:
    """A picture without the names that Rich gives its parts, which always differ."""
    return re.sub(r"terminal-\d+-", "", picture)


async def play(stage: Stage) -> None:
    """What a person does."""

    async def typed(text: str) -> None:
        for word in text.split(" "):
            await stage.type(f"{word} ")
            await asyncio.sleep(0.15)

    session = stage.session
    await stage.until(lambda: session.status.state is SessionState.READY, "the server")
    await stage.until(lambda: stage.app.review.state.files, "files")
    await asyncio.sleep(1)
    await typed(INSTRUCTION)
    await asyncio.sleep(0.5)
    await stage.press("enter")
    await stage.until(lambda: len(session.hunks.undecided()) >= 2, "two hunks")
    await asyncio.sleep(0.5)
    await stage.press("a")
    await stage.until(lambda: decided(stage, HunkState.ACCEPTED) >= 1, "accepted")
    await stage.press("i")
    await typed(REDIRECT)
    await stage.press("enter")
    await stage.until(lambda: session.status.state is SessionState.READY, "the end")
    await stage.press("escape")
    await asyncio.sleep(1)
    await stage.press("A")
    await asyncio.sleep(0.7)
    for _ in range(9):  # what the model is unsure of is accepted one by one
        if session.hunks.undecided():
            await stage.press("right_square_bracket", "a")
            await asyncio.sleep(0.7)
    await stage.until(lambda: not session.hunks.undecided(), "all decided")
    await asyncio.sleep(1)


async def record() -> list[tuple[float, str]]:
    """Play once; the frames."""
    with tempfile.TemporaryDirectory() as folder:
        home = {"HOME": folder, "MIDSTREAM_STATE_DIR": f"{folder}/state", "COLORTERM": "truecolor"}
        with patch.dict(os.environ, home | {"TERM": "xterm-256color"}):
            demo = make_demo(Path(folder))
            settings = Settings(journal=False, attention=False, pace=READING_PACE)
            app = MidstreamApp(demo.root, settings, demo=demo)
            async with app.run_test(size=SIZE):
                stage = Stage(app, SteppedModel())
                await stage.until(lambda: app.session is not None, "a session")
                film = Film(app)
                taking = asyncio.create_task(film.run())
                await play(stage)
                taking.cancel()
                return [*film.frames, (time.monotonic() + LAST_S, "")]


_RULE = re.compile(r"\.(terminal-\d+-r\d+) \{ (.*?) \}\n?")
_RECT = re.compile(r'<rect fill="[^"]*" x="[^"]*" y="([\d.]+)" [^>]*shape-rendering="crispEdges"/>')
_TEXT = re.compile(r'<text class="(terminal-\d+-r\d+)"[^>]*-line-(\d+)\)">.*?</text>')
_ROW = 24.4
"""Height of a row in Rich's pictures, whose first one begins at 1.5."""

Rows = dict[int, str]
"""What is drawn in each row."""


def rows_of(picture: str, classes: dict[str, str]) -> Rows:
    """Take a picture apart; ``classes`` gets a name for every style that is met."""
    styles = dict(_RULE.findall(picture))
    rows: Rows = {}
    for found in _RECT.finditer(picture):
        number = round((float(found.group(1)) - 1.5) / _ROW)
        rows[number] = rows.get(number, "") + found.group()
    for found in _TEXT.finditer(picture):
        own, number = found.groups()
        name = classes.setdefault(styles[own], f"s{len(classes)}")
        text = found.group().replace(f'"{own}"', f'"{name}"')
        rows[int(number)] = rows.get(int(number), "") + _words(text)
    return rows


def animated(frames: list[tuple[float, str]]) -> str:
    """One SVG that shows frames in turn, by CSS alone, as pages allow it for pictures.

    Every row is drawn once for each of its contents, and shown while it has that.

    Args:
        frames: When each appears, and the picture; the last one only ends the one before.
    """
    begin, length = frames[0][0], frames[-1][0] - frames[0][0]
    classes: dict[str, str] = {}
    shown: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for (since, picture), (until, _) in itertools.pairwise(frames):
        span = 100 * (since - begin) / length, 100 * (until - begin) / length
        for row in rows_of(picture, classes).items():
            times = shown.setdefault(row, [])
            if times and times[-1][1] == span[0]:
                times[-1] = times[-1][0], span[1]
            else:
                times.append(span)
    rules = [f".{name}{{{style}}}" for style, name in classes.items()]
    drawn: list[str] = []
    for number, ((_, content), times) in enumerate(shown.items()):
        if times == [(0.0, 100.0)]:
            drawn.append(content)
            continue
        steps = "" if times[0][0] == 0 else "0%{visibility:hidden}"
        for first, last in times:
            steps += f"{first:.2f}%{{visibility:visible}}{last:.2f}%{{visibility:hidden}}"
        rules.append(f"@keyframes k{number}{{{steps}}}")
        rules.append(f".k{number}{{animation:k{number} {length:.1f}s step-end infinite}}")
        drawn.append(f'<g class="a k{number}">{content}</g>')
    frame = _words(_TEXT.sub("", _RECT.sub("", _RULE.sub("", frames[0][1]))))
    frame = frame.replace("</style>", f".a{{visibility:hidden}}{''.join(rules)}</style>", 1)
    begin_text, matrix, rest = frame.partition('class="matrix">')
    return f"{begin_text}{matrix}{''.join(drawn)}{rest.lstrip()}"


def main() -> int:
    """Write the recording."""
    frames = asyncio.run(record())
    OUT.write_text(animated(frames), "utf-8")
    seconds = frames[-1][0] - frames[0][0]
    print(
        f"{OUT.name}: {len(frames) - 1} frames, {seconds:.0f} s, {OUT.stat().st_size / 1e6:.1f} MB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
