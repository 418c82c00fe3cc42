"""What trials on this machine found, kept in the state folder for the models page."""

from __future__ import annotations

import contextlib
from datetime import date
from typing import TYPE_CHECKING, Final

import msgspec

from midstream.resources import read_small
from midstream.workspace import atomic
from midstream.workspace.paths import state_dir

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "trials.json"
_MAX_KEPT: Final = 64
"""Models whose trials are kept, the last ones."""


class KeptTrial(msgspec.Struct, frozen=True):
    """The figures of one model's last trial.

    Attributes:
        day: When it ran, as in ``2026-11-26``.
        requests: How many requests were asked.
        right: How many of them came out right.
        unflagged: How many were wrong without a flag.
    """

    day: str
    requests: int
    right: int
    unflagged: int

    def __str__(self) -> str:
        return (
            f"{self.right} of {self.requests} right, {self.unflagged} wrong without a flag "
            f"({self.day})"
        )


def trial_key(place: str | Path, model: str) -> str:
    """A model's name among the kept trials.

    Args:
        place: The address of its server, or its folder.
        model: What the server calls it; ``""`` for a folder.
    """
    return f"{place} {model}".strip()


def kept_trials() -> dict[str, KeptTrial]:
    """The kept trials by ``trial_key`` (blocking); none if the file is missing or damaged."""
    try:
        return msgspec.json.decode(read_small(state_dir() / FILE), type=dict[str, KeptTrial])
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}


def keep_trial(key: str, requests: int, right: int, unflagged: int) -> None:
    """Keep a trial's figures (blocking); a failed write is ignored."""
    trials = kept_trials()
    trials.pop(key, None)
    trials[key] = KeptTrial(date.today().isoformat(), requests, right, unflagged)
    newest = dict(list(trials.items())[-_MAX_KEPT:])
    with contextlib.suppress(OSError):
        atomic.overwrite(state_dir() / FILE, msgspec.json.encode(newest))
