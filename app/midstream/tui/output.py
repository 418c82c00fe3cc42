"""A driver that writes to the terminal, and delivers keys to the program, without detours.

Textual leaves all output to a thread, which has to get hold of the interpreter first: 0.5 ms for a
key in a stream, and up to 5 ms while a frame is made.  Here what the terminal takes at once is
written at once, through a descriptor of our own that never waits; the rest, and all that comes
while there is a rest, goes to a thread as before, so that a slow terminal does not block the loop.

Keys come by a thread as well, which also wakes ten times a second when there are none.  Here the
event loop itself waits for them.

One of the modules that touch semi-internal parts of Textual; see ``eager`` for the others
and for the switch.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from asyncio import TimerHandle
from codecs import getincrementaldecoder
from collections.abc import Iterable
from contextvars import Context
from queue import Queue
from threading import Thread
from typing import Final, TextIO, cast

from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._parser import ParseError
from textual._time import get_time
from textual._xterm_parser import XTermParser
from textual.driver import Driver
from textual.drivers._writer_thread import MAX_QUEUED_WRITES, WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

# pyright: reportPrivateUsage=false

_READ: Final = 4_096
"""Bytes that are read at once; a paste of many is taken in turns with everything else."""
UNDER_WAY_S: Final = 0.005
"""A key that was read longer ago than this has reached the field that it was meant for."""
_LINGER_S: Final = 0.1
"""How long late input of the terminal (a moving mouse) is thrown away at the end."""


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
        self._frame: list[str] | None = None
        """The part of a frame that has arrived, from the mark of its beginning on."""
        # It has to be a terminal, and one whose name leads back to it.
        with contextlib.suppress(OSError):
            name = os.ttyname(file.fileno())
            self._direct = os.open(name, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)

    def write(self, text: str) -> None:
        """Write text, or keep it for the thread; waits only where very much is kept.

        A frame is written in one piece: each write wakes the terminal.
        """
        if text == SYNC_START:
            self._frame = [text]
            return
        if self._frame is not None:
            self._frame.append(text)
            if text != SYNC_END:
                return
            text, self._frame = "".join(self._frame), None
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
        """Write the buffered output; what the terminal no longer takes is dropped."""
        target = self._file.fileno()
        while (data := self._queue.get()) is not None:
            while data:
                try:
                    data = data[os.write(target, data) :]
                except BlockingIOError:  # The terminal was told elsewhere not to wait.
                    select.select([], [target], [])
                except OSError:
                    break
            self._queue.task_done()

    def stop(self) -> None:
        """Write the rest, and end."""
        self._queue.put(None)
        self.join()
        if self._direct is not None:
            os.close(self._direct)
            self._direct = None


class PromptDriver(LinuxDriver):
    """Textual's driver with an outlet in place of its thread."""

    _reads = False
    _listens = False
    """Whether the loop waits for keys, so that no thread has to."""
    _read_at = 0.0
    """When something was read last, on the loop's clock."""
    _patience: TimerHandle | None = None
    """Set while a character may be the first of several."""

    def start_application_mode(self) -> None:
        self._find_terminal()
        self._reads = True
        self._listen()
        super().start_application_mode()
        first, file = self._writer_thread, self._file
        if first is None:
            return
        first.stop()
        outlet = Outlet(file)
        outlet.start()
        self._writer_thread = cast("WriterThread", outlet)

    def _find_terminal(self) -> None:
        """Draw on standard output where standard error, Textual's choice, goes to a file."""
        error, output = sys.__stderr__, sys.__stdout__
        if (error is None or not error.isatty()) and output is not None and output.isatty():
            self._file = output

    def disable_input(self) -> None:
        """Stop reading; keys that are typed from now on are left to the shell."""
        if self._reads:
            self._reads = False
            if self._listens:
                self._hang_up()
                self._disable_mouse_support()
                time.sleep(_LINGER_S)
            super().disable_input()

    def send_message(self, message: Message) -> None:
        if self._listens:
            self._app.post_message(message)
        else:
            self._loop.call_soon_threadsafe(self._app.post_message, message)

    # Keys

    def key_is_coming(self) -> bool:
        """Whether something was typed that the program has not done yet, as far as one can tell."""
        if not self._listens or self._loop.time() - self._read_at < UNDER_WAY_S:
            return True
        return bool(select.select([self.fileno], [], [], 0)[0])

    def run_input_thread(self) -> None:
        """Wait for keys, unless the loop does."""
        if not self._listens:
            super().run_input_thread()

    def _listen(self) -> None:
        """Have the loop wait for keys, where it can: a file, for one, cannot be waited for."""
        self._parser = XTermParser(self._debug)
        self._decode = getincrementaldecoder("utf-8")().decode
        with contextlib.suppress(OSError, NotImplementedError):
            # The effects of a key do not depend on what started the program.
            Context().run(self._loop.add_reader, self.fileno, self._read)
            self._listens = True

    def _hang_up(self) -> None:
        self._listens = False
        self._loop.remove_reader(self.fileno)
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _read(self) -> None:
        self._read_at = self._loop.time()
        try:
            data = os.read(self.fileno, _READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:  # The terminal is gone; no more keys will come.
            self._hang_up()
            self._app.exit()
            return
        text = self._decode(data)
        if text:  # The parser takes an empty one for the end.
            self._pass_on(self._parser.feed(text))
            self._wait_for_the_rest()

    def _wait_for_the_rest(self) -> None:
        """Escape is a key if nothing follows it soon."""
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        until = self._parser._timeout_time
        if until is not None:
            self._patience = self._loop.call_later(
                max(0.0, until - get_time()), self._lose_patience
            )

    def _lose_patience(self) -> None:
        self._patience = None
        self._pass_on(self._parser.tick())
        self._wait_for_the_rest()

    def _pass_on(self, messages: Iterable[Message]) -> None:
        with contextlib.suppress(ParseError):
            for message in messages:
                self.process_message(message)


def prompt(driver: type[Driver]) -> type[Driver]:
    """The driver to use in place of one of Textual's; others stay."""
    return PromptDriver if driver is LinuxDriver else driver
