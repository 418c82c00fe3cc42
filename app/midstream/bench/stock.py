"""Stock Textual for comparison: its ``RichLog`` and ``TextArea``, fed as fast as the screen is.

Run as a program, ``python -m midstream.bench.stock WIDGET RATE``, it shows an input line below one
of the two widgets and feeds it a long function at a fixed rate in tokens per second. Each turn of
the loop adds the text that has become due as one piece, which is less work for the widgets than a
server's events; ``RichLog`` takes whole lines only. Neither widget compares with a base text, marks
hunks or scans for findings, so the screen does more work than they do.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Final

from rich.syntax import Syntax
from textual.app import App, ComposeResult
from textual.widgets import Input, RichLog, TextArea

from midstream.bench.screen_runs import STOCK_STARTED, long_function

CHARACTERS: Final = 4
"""Of a token, about."""

WAKE_S: Final = 0.004
"""Seconds between two pieces, at least."""


class StockApp(App[None]):
    """One widget that is fed, and an input line."""

    def __init__(self, widget: str, text: str, rate: float) -> None:
        super().__init__()
        self._fed: RichLog | TextArea
        if widget == "richlog":
            self._fed = RichLog(auto_scroll=True)
            self._feed: Callable[[str], None] = _by_lines(self._fed)
        else:
            self._fed = TextArea.code_editor("", language=None, read_only=True)
            self._feed = _at_the_end(self._fed)
        self._text, self._rate = text, rate

    def compose(self) -> ComposeResult:
        """The widget, the input line below it."""
        yield self._fed
        yield Input(placeholder=STOCK_STARTED)

    def on_mount(self) -> None:
        """Begin to feed it."""
        self.query_one(Input).focus()
        self.run_worker(self._stream())

    async def _stream(self) -> None:
        began, given = time.perf_counter(), 0
        while given < len(self._text):
            await asyncio.sleep(WAKE_S)
            due = int((time.perf_counter() - began) * self._rate) * CHARACTERS
            if due > given:
                self._feed(self._text[given:due])
                given = due


def _by_lines(log: RichLog) -> Callable[[str], None]:
    rest = ""

    def feed(piece: str) -> None:
        nonlocal rest
        *lines, rest = (rest + piece).split("\n")
        if lines:
            log.write(Syntax("\n".join(lines), "python", theme="monokai"))

    return feed


def _at_the_end(area: TextArea) -> Callable[[str], None]:
    def feed(piece: str) -> None:
        area.insert(piece, area.document.end, maintain_selection_offset=False)
        area.scroll_end(animate=False)

    return feed


def main(widget: str, rate: float, lines: int) -> None:
    """Run it until it is ended."""
    StockApp(widget, long_function(lines), rate).run()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
