"""A program on a pseudo-terminal: type keys, read its output, measure the time in between.

The master side answers the questions Textual asks a terminal (synchronized output, size in cells),
so that the program behaves as on a modern one.  Works where ``pty`` does (not on Windows).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

_READ: Final = 1 << 16
"""Bytes of one read."""
_ANSWERS: Final = {b"\x1b[?2026$p": b"\x1b[?2026;2$y", b"\x1b[c": b"\x1b[?62;22c"}


class TerminalProgram:
    """A child process on the other side of a pseudo-terminal of ``size`` columns and rows."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        size: tuple[int, int] = (160, 48),
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        env = {**os.environ, **(environment or {}), "TERM": "xterm-256color"}
        env.setdefault("COLORTERM", "truecolor")
        self.started = time.perf_counter()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            if folder is not None:
                os.chdir(folder)
            os.execvpe(command[0], list(command), env)
        columns, rows = size
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.output = bytearray()
        self.first_paint_s: float | None = None

    def __enter__(self) -> TerminalProgram:
        """The program."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self.close()

    def write(self, keys: str | bytes) -> float:
        """Type keys; returns the time at which they went."""
        data = keys.encode() if isinstance(keys, str) else keys
        now = time.perf_counter()
        os.write(self.master, data)
        return now

    def read(self, seconds: float, limit: int = _READ) -> bytes:
        """At most ``limit`` bytes of what comes within some seconds; returns when any have come."""
        ready, _, _ = select.select([self.master], [], [], max(0.0, seconds))
        if not ready:
            return b""
        try:
            data = os.read(self.master, limit)
        except OSError:
            return b""
        if self.first_paint_s is None and b"\x1b[?1049h" in self.output + data:
            self.first_paint_s = time.perf_counter() - self.started
        for question, answer in _ANSWERS.items():
            if question in data:
                os.write(self.master, answer)
        self.output += data
        return data

    def wait_for(self, text: str | bytes, seconds: float = 10.0, *, since: int = 0) -> float:
        """Read until ``text`` has come after position ``since`` of the output.

        Returns:
            The time at which it had come.

        Raises:
            TimeoutError: It did not come.
        """
        wanted = text.encode() if isinstance(text, str) else text
        deadline = time.perf_counter() + seconds
        while wanted not in self.output[since:]:
            left = deadline - time.perf_counter()
            if left <= 0:
                raise TimeoutError(f"{wanted!r} did not appear within {seconds:g} s")
            self.read(left)
        return time.perf_counter()

    def settle(self, quiet_s: float = 0.25, limit_s: float = 10.0) -> None:
        """Read until nothing has come for a while."""
        deadline = time.perf_counter() + limit_s
        while self.read(quiet_s) and time.perf_counter() < deadline:
            pass

    def drain(self, seconds: float) -> int:
        """Read for some seconds; returns how many bytes came."""
        before = len(self.output)
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            self.read(left)
        return len(self.output) - before

    def cpu_seconds(self) -> float:
        """Processor time the child has used, without its own children; 0 except on Linux."""
        if sys.platform != "linux":
            return 0.0
        try:
            return time.clock_gettime(~self.pid << 3 | 2)  # the kernel's clock of that process
        except OSError:
            return 0.0

    def exit_code(self, seconds: float = 10.0) -> int | None:
        """Wait for its end; ``None`` if it goes on."""
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            self.read(0.02)
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        return None

    def close(self) -> None:
        """End the program and its terminal."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
            if self.exit_code(3.0) is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                self.pid = 0
        with contextlib.suppress(OSError):
            os.close(self.master)
