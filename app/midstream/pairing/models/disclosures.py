"""Notices shown once: what the built-in model is for, and what is sent to which host.

The state folder lists the notices that were shown, so that no later session repeats them.  The list
is limited: the oldest facts are dropped and told again, so only notices may depend on it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from midstream.resources import read_small
from midstream.workspace import atomic
from midstream.workspace.paths import state_dir

if TYPE_CHECKING:
    from midstream.settings import Settings

FILE: Final = "told.json"
BUILT_IN: Final = "the built-in model"
"""The fact of ``about_built_in``; others are the addresses of endpoints."""


def was_disclosed(fact: str) -> bool:
    """Whether a fact was told before (blocking); not if the file is missing or damaged."""
    return fact in _read()


def note_disclosed(fact: str) -> bool:
    """Note that a fact is told now (blocking); whether it was not before.

    A failed write is ignored: it is told again then.
    """
    facts = _read()
    if fact in facts:
        return False
    with contextlib.suppress(OSError):
        atomic.overwrite(state_dir() / FILE, msgspec.json.encode([*facts, fact][-256:]))
    return True


def _read() -> list[str]:
    try:
        return msgspec.json.decode(read_small(state_dir() / FILE), type=list[str])
    except (OSError, msgspec.DecodeError, RecursionError):
        return []


class Introduction:
    """Whether to introduce the built-in model: until it was used, or the notice was dismissed.

    Attributes:
        due: Whether it is still to be said.
    """

    due: bool = False

    async def done(self) -> None:
        """Note that it was read, so that it is not said again."""
        if self.due:
            self.due = False
            await asyncio.to_thread(note_disclosed, BUILT_IN)


def is_unconfigured(settings: Settings) -> bool:
    """Whether the settings name neither a model nor an endpoint."""
    return settings.profile is None and settings.model is None and not settings.endpoints


def about_built_in(larger: str) -> str:
    """What the built-in model is for, as a sentence.

    Args:
        larger: How to get a larger one, such as ``M sets up``.
    """
    return f"The built-in model edits one function at a time; {larger} a larger one for the rest."


def what_is_sent(url: str) -> str:
    """What an endpoint off this machine is sent, as a sentence."""
    return (
        f"{urlsplit(url).hostname or url} receives each instruction with the files it is about, "
        "their uncommitted changes, AGENTS.md and the like, what you name with @, and your "
        "decisions so far; what you have not sent stays here."
    )
