"""Long work in the event loop is done in slices of a few milliseconds, with pauses in between.

All such work takes turns: a key takes several rounds of the event loop, and would be late by a
slice of each task in each of them.
"""

from __future__ import annotations

import asyncio
from time import thread_time
from typing import Final
from weakref import WeakKeyDictionary

SLICE_S: Final = 0.003
"""Processor time of one slice; a single step may take longer."""
_ROUNDS: Final = 8
"""Rounds of the event loop in a pause: enough for a key, from the terminal to the field."""


class _Turns:
    """Whose turn it is in one event loop."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        """Held during a pause, and waited for by the tasks whose turn comes later."""
        self.since = 0.0
        """When the last pause ended."""


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()


async def pause() -> None:
    """Leave the event loop to keys and frames before the next slice, if one has been done."""
    turns = _turns.setdefault(asyncio.get_running_loop(), _Turns())
    async with turns.lock:
        if thread_time() - turns.since >= SLICE_S:
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)
            turns.since = thread_time()
