"""Redirects that ask for more: "also ..." is put together with what was asked before."""

from __future__ import annotations

import re

_OPENING = re.compile(
    r"^(?:(?:yes|good|oh|ok|okay),?\s+)?"
    r"(?:keep that,?\s+but also|while you(?: are|'re) at it|one more thing|and also|and please|"
    r"also|and|in addition|additionally|plus|besides)\b[,:]?\s*",
    re.IGNORECASE,
)
_ENDING = re.compile(r"\s*,?\s*\b(?:too|as well)\s*[.!]?$", re.IGNORECASE)


def joined(earlier: str, newest: str) -> str:
    """Return one instruction for both where the newest asks for more, else the newest."""
    rest = _ENDING.sub("", _OPENING.sub("", newest))
    if rest == newest or not rest:
        return newest
    return f"{earlier.rstrip(' .!')} and {rest}"
