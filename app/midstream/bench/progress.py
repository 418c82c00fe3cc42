"""Progress of a long benchmark, and how Ctrl+C ends it with the figures so far."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, TypeVar

from midstream.commands.common import printable

T = TypeVar("T")


class BenchProgress:
    """Progress on standard error: each step on a terminal, each part elsewhere.

    A Ctrl+C ends the loop that runs, whose steps so far count; the next part is not begun.

    Attributes:
        stopped: The part in which Ctrl+C was pressed, "" if it was not.
    """

    def __init__(self) -> None:
        self.stopped = ""
        self._part = ""
        self._began = time.monotonic()
        self._live = sys.stderr.isatty()
        self._pressed = False

    @contextmanager
    def ended_by_ctrl_c(self) -> Generator[None]:
        """End the part that runs on Ctrl+C, wherever the interrupt strikes.

        Python drops an exception that is raised in a callback of a weak reference, and in the
        middle of a lock it can turn into another: it is noted here, and raised again at the next
        step.
        """
        before = signal.signal(signal.SIGINT, self._press)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def part(self, name: str) -> None:
        """Begin a part.

        Raises:
            KeyboardInterrupt: Ctrl+C was pressed in the one before.
        """
        if self.stopped or self._pressed:
            raise KeyboardInterrupt
        self._part = name
        self._began = time.monotonic()
        if self._live:
            self._show(name)
        else:
            print(f"{name} ...", file=sys.stderr, flush=True)

    def over(self, items: Sequence[T]) -> Iterator[T]:
        """Yield items, one a step."""
        for number, item in enumerate(items, 1):
            spent = int(time.monotonic() - self._began)
            clock = f"{spent // 60}:{spent % 60:02}"
            self._show(f"{self._part}: {number} of {len(items)}, {clock}  (Ctrl+C ends it)")
            yield item
            if self._pressed:
                raise KeyboardInterrupt

    @contextmanager
    def stoppable(self) -> Generator[None]:
        """A loop around which Ctrl+C is no error."""
        try:
            yield
        except KeyboardInterrupt:
            self.stop()
        except Exception:
            if not self._pressed:
                raise
            self.stop()

    def stop(self) -> None:
        """Note that Ctrl+C was pressed."""
        self.stopped = self._part
        self._pressed = False

    def end(self) -> None:
        """Leave the line free for what comes."""
        self._show("")

    def _press(self, number: int, frame: FrameType | None) -> NoReturn:
        self._pressed = True
        raise KeyboardInterrupt

    def _show(self, words: str) -> None:
        if self._live:
            print(f"\r\x1b[K{printable(words)[:79]}", end="", file=sys.stderr, flush=True)
