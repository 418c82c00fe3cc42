"""Long work in the event loop is done in slices of a few milliseconds, with pauses in between."""

from __future__ import annotations

import asyncio
from typing import Final

_PAUSE_S: Final = 0.002
"""A key takes several rounds of the event loop, so that one round is too short a pause."""


async def pause() -> None:
    """Leave the event loop to keys and frames before the next slice."""
    await asyncio.sleep(_PAUSE_S)
