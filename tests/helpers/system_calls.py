"""Stops a piece of code between any two system calls, to let something happen there."""

from __future__ import annotations

import builtins
import fcntl
import functools
import io
import os
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest import mock

# Between two calls that only ask (lstat and the like) nothing new can be found by stopping.
_CALLS: dict[ModuleType, tuple[str, ...]] = {
    os: (
        "open", "read", "write", "rename", "replace", "link", "unlink", "remove", "mkdir", "rmdir",
        "chmod", "fchmod", "fsync", "symlink",
    ),
    fcntl: ("flock", "fcntl"),
    io: ("open",),
    builtins: ("open",),
}  # fmt: skip


@contextmanager
def between_system_calls(
    at_step: Callable[[int], None], *, all_threads: bool = False
) -> Generator[None]:
    """Call ``at_step(number)`` before every system call of this thread that opens or changes.

    With ``all_threads`` also before those of other threads, one at a time.  Steps are counted from
    0.  Exchanging two names goes through ctypes and is not seen, but the calls around it are.  The
    functions themselves are replaced: with ``sys.setprofile`` CPython 3.11 turns in circles for
    ever at the start of a function now and then.
    """
    thread = threading.get_ident()
    step, stopped = 0, False
    turn = threading.RLock()

    def stepping(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def stepped(*args: Any, **kwargs: Any) -> Any:
            nonlocal step, stopped
            if all_threads or threading.get_ident() == thread:
                with turn:
                    if not stopped:
                        stopped = True
                        try:
                            step += 1
                            at_step(step - 1)
                        finally:
                            stopped = False
            return call(*args, **kwargs)

        return stepped

    with ExitStack() as replaced:
        for module, names in _CALLS.items():
            for name in names:
                call = stepping(getattr(module, name))
                replaced.enter_context(mock.patch.object(module, name, call))
        yield
