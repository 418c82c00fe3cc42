"""Stops a piece of code between any two system calls, to let something happen there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

_SYSTEM_MODULES = {"posix", "fcntl", "io", "_io"}

# Between two calls that only ask (lstat and the like) nothing new can be found by stopping.
_CALLS = {
    "open", "read", "write", "rename", "replace", "link", "unlink", "remove", "mkdir", "rmdir",
    "chmod", "fchmod", "flock", "fcntl",
}  # fmt: skip


@contextmanager
def between_system_calls(at_step: Callable[[int], None]) -> Generator[None]:
    """Call ``at_step(number)`` before every system call of this thread that opens or changes.

    Steps are counted from 0.  Exchanging two names goes through ctypes and is not seen, but the
    calls around it are.
    """
    step = 0

    def profile(_frame: FrameType, event: str, function: object) -> None:
        nonlocal step
        if event != "c_call" or getattr(function, "__name__", None) not in _CALLS:
            return
        if getattr(function, "__module__", None) in _SYSTEM_MODULES:
            number = step
            step += 1
            at_step(number)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
