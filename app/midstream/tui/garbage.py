"""When cyclic garbage is collected: the young generation as usual, everything only in quiet
moments.

A collection takes time in proportion to what it looks at: all that is in memory is some 20 ms with
a file of 100,000 lines on screen, a page that comes late. So while text streams nothing is
collected at all, and what a stream has made is not looked at when it ends either, where it would be
all young at once (7 ms for 2,000 lines) just when a key is likely. A quiet moment collects what is
new since the last one, and everything when much of it has stayed. While many files are opened, all
of which are kept, nothing is collected.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_YOUNG: Final = (2_000, 10, 1_000_000)
"""Thresholds: the last keeps full collections from happening."""
_DUE: Final = 300_000
"""Objects that have stayed since the last full collection, and call for another: they may be
garbage by now."""
_MIDDLE: Final = _YOUNG[0] * _YOUNG[1]
"""New objects for each collection of the middle generation."""


class _Made:
    """What is made.

    Attributes:
        objects: How many objects have stayed since the last full collection.
        streaming: Whether text streams.
        keeping: How many pieces of work are under way whose objects are all kept.
    """

    objects = 0
    streaming = False
    keeping = 0


def begin() -> None:
    """Keep every present object out of collections, as the program has started and will keep it.

    They are not collected first: a full collection looked at some 105,000 objects (90 ms on a
    loaded machine, before the first key) and freed 542.
    """
    gc.freeze()
    gc.set_threshold(*_YOUNG)


def pause() -> None:
    """Text streams: even a small collection may cost a frame."""
    _Made.streaming = True
    gc.disable()


def resume() -> None:
    """The stream has ended: the next quiet moment collects what it has made."""
    _Made.streaming = False


@contextmanager
def keeping() -> Generator[None]:
    """Nothing that is made meanwhile is garbage, nor does it bring a full collection nearer."""
    _Made.keeping += 1
    gc.disable()
    try:
        yield
    finally:
        _Made.keeping -= 1
        gc.freeze()
        if not (_Made.streaming or _Made.keeping):
            gc.enable()


def tidy() -> None:
    """Nothing happens now: collect what is new, and everything if much has stayed."""
    if _Made.streaming or _Made.keeping:
        return
    young = _young()
    if _Made.objects >= _DUE:
        _Made.objects = 0
        gc.unfreeze()
        gc.collect()
        gc.freeze()
    elif young >= _YOUNG[0]:
        _Made.objects += max(0, young - gc.collect())
        gc.freeze()
    gc.enable()


def _young() -> int:
    """How many objects have been made since the last quiet moment and not been freed, roughly."""
    new, young, middle = gc.get_count()
    return new + young * _YOUNG[0] + middle * _MIDDLE


def end() -> None:
    """The screen is gone."""
    _Made.streaming = False
    gc.enable()
    gc.set_threshold(700, 10, 10)
    gc.unfreeze()
