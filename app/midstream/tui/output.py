"""A driver that gives the terminal its output, and the program its keys, without detours.

Textual leaves all output to a thread, which has to get hold of the interpreter first: 0.5 ms for a
key in a stream, and up to 5 ms while a frame is made.  Here what the terminal takes at once is
written at once, through a descriptor of our own that never waits; the rest, and all that comes
while there is a rest, goes to a thread as before, so that a slow terminal holds nobody up.

One of the modules that touch semi-internal parts of Textual; see ``screens.eager`` for the others
and for the switch.
"""

from __future__ import annotations

import contextlib
import os
import select
from queue import Queue
from threading import Thread
from typing import TextIO, cast

from textual.driver import Driver
from textual.drivers._writer_thread import MAX_QUEUED_WRITES, WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

# pyright: reportPrivateUsage=false


class Outlet(Thread):
    """Writes to a terminal, in order: at once as far as it takes it, and the rest by a thread.

    Args:
        file: The terminal.  Its own descriptor is left as it is, since others share it.
    """

    def __init__(self, file: TextIO) -> None:
        super().__init__(daemon=True, name="midstream-output")
        self._file = file
        self._queue: Queue[bytes | None] = Queue(MAX_QUEUED_WRITES)
        self._direct: int | None = None
        # It has to be a terminal, and one whose name leads back to it.
        with contextlib.suppress(OSError):
            name = os.ttyname(file.fileno())
            self._direct = os.open(name, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)

    def write(self, text: str) -> None:
        """Write text, or keep it for the thread; waits only where very much is kept."""
        data = text.encode(errors="backslashreplace")
        # Only one thread writes, so what is unfinished now cannot have grown meanwhile.
        if self._direct is not None and not self._queue.unfinished_tasks:
            with contextlib.suppress(OSError):  # It takes nothing now, or it is gone for good.
                data = data[os.write(self._direct, data) :]
        if data:
            self._queue.put(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def run(self) -> None:
        """Write what is kept; what no terminal takes any more is dropped."""
        target = self._file.fileno()
        while (data := self._queue.get()) is not None:
            while data:
                try:
                    data = data[os.write(target, data) :]
                except BlockingIOError:  # Somebody has told the terminal not to wait.
                    select.select([], [target], [])
                except OSError:
                    break
            self._queue.task_done()

    def stop(self) -> None:
        """Write what is kept, and end."""
        self._queue.put(None)
        self.join()
        if self._direct is not None:
            os.close(self._direct)
            self._direct = None


class PromptDriver(LinuxDriver):
    """Textual's driver with an outlet in place of its thread."""

    _reads = False

    def start_application_mode(self) -> None:
        """Take the terminal over."""
        self._reads = True
        super().start_application_mode()
        first, file = self._writer_thread, self._file
        if first is None or file is None:
            return
        first.stop()
        outlet = Outlet(file)
        outlet.start()
        self._writer_thread = cast("WriterThread", outlet)

    def disable_input(self) -> None:
        """Read no more; what is typed from then on is left to the shell, and not thrown away."""
        if self._reads:
            self._reads = False
            super().disable_input()

    def send_message(self, message: Message) -> None:
        """Give the program a message of the input thread."""
        self._loop.call_soon_threadsafe(self._app.post_message, message)


def prompt(driver: type[Driver]) -> type[Driver]:
    """The driver to use in place of one of Textual's; others stay."""
    return PromptDriver if driver is LinuxDriver else driver
