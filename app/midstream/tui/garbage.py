"""When cyclic garbage is collected: what is young as it comes, everything only in quiet moments.

A full collection takes time in proportion to all that is in memory, some 20 ms with a file of
100,000 lines on screen: a page that comes late.  So none happens by itself.
"""

from __future__ import annotations

import gc
from typing import Final

_YOUNG: Final = (2_000, 10, 1_000_000)
"""Thresholds: the last keeps full collections from happening."""
_DUE: Final = 50
"""Collections of the middle generation, some 20,000 new objects each, that call for a full one."""


def begin() -> None:
    """The program stands: what is there now stays, and is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_YOUNG)


def tidy() -> None:
    """Nothing happens now: collect everything if enough has been made since the last time."""
    if gc.isenabled() and gc.get_count()[2] >= _DUE:
        gc.unfreeze()
        gc.collect()
        gc.freeze()


def end() -> None:
    """The screen is gone."""
    gc.enable()
    gc.set_threshold(700, 10, 10)
    gc.unfreeze()
