"""GET /v1/telemetry: what the server is doing, as server-sent events, for screens that show it.

Beside the Responses wire, never on it. Every event is one JSON object:

- ``running``: the turns that run or wait, and ``ended``: the ones that ended last. Each has
  ``turn`` (the first 16 hexadecimal digits of the SHA-256 of its response id: who knows the id
  finds the turn, nobody else learns the id), ``model``, ``status``, ``queue_ahead``, ``queue_ms``,
  ``prefill_ms``, ``decode_ms``, ``forwards``, ``drafted_tokens``, ``accepted_tokens``,
  ``input_tokens``, ``cached_tokens``, ``output_tokens`` and ``tokens_per_second``. The names are
  those of the response's ``metadata`` and ``usage``.
- ``connections``, ``generations`` and ``memory_bytes`` (resident) of the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec

from midstream.serving.service import Service

_TICK_SECONDS = 0.25
_IDLE_SECONDS = 15.0
"""An idle stream sends a comment that often, so that a reader who left is noticed."""


def snapshot(service: Service) -> dict[str, Any]:
    """Everything that one event tells."""
    return {
        "running": [turn.telemetry() for turn in service.turns],
        "ended": list(service.ended),
        "connections": service.connections,
        "generations": service.load,
        "memory_bytes": resident_bytes(),
    }


async def telemetry_events(service: Service) -> AsyncGenerator[bytes]:
    """Four events a second while something runs, one whenever something begins or ends."""
    while not service.leaving.is_set():
        service.news.clear()
        yield b"event: telemetry\ndata: " + msgspec.json.encode(snapshot(service)) + b"\n\n"
        try:
            async with asyncio.timeout(_TICK_SECONDS if service.turns else _IDLE_SECONDS):
                await service.news.wait()
        except TimeoutError:
            if not service.turns:
                yield b": idle\n\n"
        else:
            # Turns that come thick and fast are told together.
            await asyncio.sleep(_TICK_SECONDS / 5)


def resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0
