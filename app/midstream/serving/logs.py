"""The server's log: its own faults, and nothing that a peer has sent.

A log must not fill up because of garbage requests, and must not contain prompts. A line for each
request is optional (``midstream serve --log-requests``) and never quotes the prompt.
"""

from __future__ import annotations

import asyncio
import logging
import traceback

from midstream.defects import brief

_ECHOES = frozenset(
    {
        # uvicorn takes a refused upgrade for one that was forgotten.
        "ASGI callable returned without completing handshake.",
        "Invalid UTF-8 sequence received from client.",
        "Invalid HTTP request received.",
        "Unsupported upgrade request.",
        "Cancel %s running task(s), timeout graceful shutdown exceeded",
    }
)
"""Messages of uvicorn, some with a traceback, whenever a peer makes a mistake."""


class _NoEcho(logging.Filter):
    """Drops messages about mistakes of peers."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        # Peers that hold the end of the server up are cancelled, which is no fault either.
        return record.msg not in _ECHOES and not isinstance(error, asyncio.CancelledError)


_no_echo = _NoEcho()


def hush() -> None:
    """Keep uvicorn from logging every mistake of a peer."""
    logging.getLogger("uvicorn.error").addFilter(_no_echo)


def fault(error: BaseException) -> str:
    """A fault of the server for the log: where it happened, without the error's own words.

    Those may quote what was being worked on.
    """
    return f"{brief(error)}\n{''.join(traceback.format_tb(error.__traceback__))}".rstrip()
