"""Runs the program with a pulse in its event loop, to see from outside how long the loop is held.

``python -m midstream.bench.beat FILE ARGUMENTS...`` does what ``midstream ARGUMENTS...`` does.  At
SIGUSR1 it writes what the pulse has felt since the last time to FILE, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path
from typing import Final

BEAT_S: Final = 0.004


class Pulse:
    """Beats in one event loop.

    Args:
        loop: The loop.
        file: Where the readings go.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, file: Path) -> None:
        self._loop = loop
        self._file = file
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
        readings = {"late_s": self._late, "busy_s": self._busy}
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
        CSS_PATH = Path(app.__file__).parent / "screens" / "review.tcss"

        def on_load(self) -> None:
            Pulse(asyncio.get_running_loop(), Path(file)).start()

    app.MidstreamApp = Beating
    sys.argv = ["midstream", *arguments]
    return midstream()


if __name__ == "__main__":
    sys.exit(main())
