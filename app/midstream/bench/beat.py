"""Runs the program with a probe in its event loop: how long the loop is blocked, how long frames
take, and whether a decided row is ever shown as something else.

``python -m midstream.bench.beat FILE ARGUMENTS...`` does what ``midstream ARGUMENTS...`` does.  At
SIGUSR1 it writes the readings since the last time to FILE, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.tui.diff.view import Look
from midstream.tui.eager import FramePace

if TYPE_CHECKING:
    from midstream.tui.review.screen import ReviewScreen

BEAT_S: Final = 0.004
"""Time between two beats."""
_DECIDED: Final = frozenset({Look.CONTEXT, Look.ADDED, Look.DELETED})


class CountedFrames(FramePace):
    """The pace of a screen's frames, with a record of them."""

    def __init__(self, screen: ReviewScreen) -> None:
        super().__init__()
        self._screen = screen
        self._seconds: list[float] = []
        self._flips = 0
        self._looks: dict[tuple[int, bool, int], Look] = {}

    def took(self, seconds: float) -> None:
        """Note a frame, and look at the rows that it shows."""
        super().took(seconds)
        self._seconds.append(seconds)
        pane = self._screen.panes.pane
        for y in range(pane.top, pane.bottom):
            row = pane.view.row(y)
            if row is None or row.look not in _DECIDED or row.source < 0:
                continue
            gone = row.look is Look.DELETED
            line = row.old if gone else row.line
            key = (row.source, gone, line or 0)
            self._flips += self._looks.setdefault(key, row.look) is not row.look

    def taken(self) -> dict[str, list[float]]:
        """What was recorded since the last call."""
        seconds, self._seconds = self._seconds, []
        return {"frames_s": seconds, "flips": [self._flips]}


class Pulse:
    """Beats in one event loop and writes what it measured to a file."""

    def __init__(self, loop: asyncio.AbstractEventLoop, file: Path, frames: CountedFrames) -> None:
        self._loop = loop
        self._file = file
        self._frames = frames
        self._late: list[float] = []
        self._busy: list[float] = []
        self._due = 0.0
        self._used = 0.0

    def start(self) -> None:
        """Beat from now on."""
        self._loop.add_signal_handler(signal.SIGUSR1, self._tell)
        self._beat()

    def _beat(self) -> None:
        now, used = time.perf_counter(), time.thread_time()
        if self._due:
            self._late.append(max(0.0, now - self._due))
            self._busy.append(used - self._used)
        self._due, self._used = now + BEAT_S, used
        self._loop.call_later(BEAT_S, self._beat)

    def _tell(self) -> None:
        readings = {"late_s": self._late, "busy_s": self._busy, **self._frames.taken()}
        self._late, self._busy = [], []
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps(readings))
        beside.replace(self._file)


def main() -> int:
    """Run the program."""
    from midstream.cli import main as midstream
    from midstream.tui import app

    _, file, *arguments = sys.argv

    class Beating(app.MidstreamApp):
        def on_load(self) -> None:
            frames = CountedFrames(self.review)
            self.review.pace = frames
            Pulse(asyncio.get_running_loop(), Path(file), frames).start()

    app.MidstreamApp = Beating
    sys.argv = ["midstream", *arguments]
    return midstream()


if __name__ == "__main__":
    sys.exit(main())
