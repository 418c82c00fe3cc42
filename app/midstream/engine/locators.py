"""Phrases that say where, taken out of an instruction once the place is found.

``rename best to record in longest``: the last two words chose the region, and a model that sees
only the region has no use for them. A small edit model would even take the name for something
to change.
"""

from __future__ import annotations

import re

_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_PHRASE = (
    r"\s*,?\s*\b(?i:in|inside|within|to|of|for|from|on|at)\s+(?:the\s+)?"
    r"(?:(?:function|method|class|definition|signature)(?:\s+of)?\s+)*"
    r"(?P<quote>[`'\"]?)(?:\w+\.)*{name}(?:\(\))?(?P=quote)(?:\s+(?:function|method|class)\b)?"
    r"(?=\s|$|[,.;:?!])"
)
_HEAD = r"^\s*(?P<quote>[`'\"]?)(?:\w+\.)*{name}(?:\(\))?(?P=quote)\s*:\s"
_ENDS = re.compile(r"^[\s,:]+|[\s,]+$")


def without_locator(instruction: str, region: str) -> str:
    """Return an instruction without the phrases that only name the function or class it is about.

    Args:
        instruction: What was asked.
        region: The source of the region that was found for it.
    """
    first = _DEFINITION.search(region)
    if first is None:
        return instruction
    name, shorter = re.escape(first.group(1)), instruction
    for phrase in (_HEAD, _PHRASE):
        shorter = _ENDS.sub("", re.sub(phrase.replace("{name}", name), "", shorter))
    return shorter or instruction
