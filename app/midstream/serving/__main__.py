"""The embedded server's process: ``python -P -m midstream.serving SOURCE``, a source as JSON.

The parent writes the bearer token as the first line of standard input and keeps the pipe open; its
end ends this process, however the parent ended. Standard output carries one JSON line: ``{"port":
…, "model": …, "facts": {…}}`` when the server listens, or ``{"error": {"code": …, "message":
…}}``. Everything else goes to standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from midstream.errors import UnavailableError, UserError
from midstream.serving.source import ModelSource

if TYPE_CHECKING:
    from midstream.engine.types import TextModel

_PR_SET_PDEATHSIG = 1
"""``linux/prctl.h``."""


def _die_with_parent() -> None:
    """Ask Linux to kill this process when its parent dies.

    The pipe on standard input is what counts; this covers the case that another process holds the
    pipe.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


_CLOSE_SECONDS = 1.5
"""How long the model may take to keep what it has read; the parent waits a little longer."""


def _watch_stdin(rest: int, loaded: list[TextModel]) -> None:
    """End the process when standard input closes, once the model is closed or time is up."""
    with contextlib.suppress(OSError):
        while os.read(rest, 4096):
            pass
    for model in loaded:
        closing = threading.Thread(target=model.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)
    os._exit(0)


def _read_token(stdin: int) -> str:
    line = bytearray()
    while not line.endswith(b"\n"):
        read = os.read(stdin, 1)
        if not read:
            os._exit(0)
        line += read
    return line.decode().strip()


Say = Callable[[dict[str, Any]], None]
"""Tells the parent something, in one line."""


def _take_stdout() -> Say:
    """Reserve standard output for the parent; what libraries print goes to the log."""
    parent = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            parent.write(msgspec.json.encode(message) + b"\n")
            parent.flush()

    return say


async def _serve(token: str, model: TextModel, say: Say) -> None:
    from midstream.serving.app import create_app
    from midstream.serving.running import serve

    async with serve(create_app({model.name: model}, token=token)) as server:
        hello = {"port": server.port, "model": model.name, "facts": dict(model.facts)}
        say({**hello, "pid": os.getpid()})
        await server.finished


def _import_server() -> None:
    for module in ("asyncio", "midstream.serving.app", "midstream.serving.running"):
        import_module(module)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="midstream.serving")
    parser.add_argument("source", type=ModelSource.from_json)
    parser.add_argument("--nice", type=int, default=0)
    options = parser.parse_args(argv)
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    _die_with_parent()
    say = _take_stdout()
    token = _read_token(sys.stdin.fileno())
    # Ctrl+C in the terminal is for the program on the screen.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if options.nice and hasattr(os, "nice"):
        os.nice(options.nice)
    loaded: list[TextModel] = []
    watched = (sys.stdin.fileno(), loaded)
    threading.Thread(target=_watch_stdin, args=watched, daemon=True).start()
    try:
        loaded.append(options.source.load(_import_server))
        import asyncio

        asyncio.run(_serve(token, loaded[0], say))
    except UserError as error:
        say({"error": {"code": error.code, "message": str(error)}})
        return UnavailableError.exit_code
    except Exception as error:
        logging.getLogger("midstream.serving").exception("the server did not start")
        say({"error": {"code": "server_error", "message": f"{type(error).__name__}: {error}"}})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
