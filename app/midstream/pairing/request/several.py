"""Instructions that list several definitions: ``add docstrings to load, save and Cart.total``.

A model that rewrites one region at a time is asked for the first of them; the rest is another
instruction.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from midstream.pairing.request.mentions import (
    NAMED,
    find_mentions,
    name_of,
    without_mentions,
)
from midstream.pairing.request.target import named_places

if TYPE_CHECKING:
    from midstream.code.outline import Definition, Outline

_JOINT: Final = re.compile(
    r"\s*(?:,\s*(?:and|as well as)?|and|as well as|&)\s*(?:(?:also|to|in|of|for|from|the|function"
    r"|method|class)\s+)*",
    re.IGNORECASE,
)
"""Stands between two definitions of a list: ``load, save``, ``in load and in function save``."""
_AT_ONCE: Final = re.compile(
    r"\b(?:both|together|each other|one another|same|alike|common|consistent\w*|between|into one"
    r"|single|swap\w*|exchang\w+|merg\w+|combin\w+|unif\w+|join\w*|shar\w+|duplicat\w+|extract\w*"
    r"|mov\w+|split\w*|tests?|reorder\w*|order\w*|sort\w*|instead|against|compar\w+|differ\w*)\b",
    re.IGNORECASE,
)
"""Belongs to a change that concerns the listed definitions together."""
_USES: Final = re.compile(
    r"\b(?:calls?|calling|uses?|using|invokes?|imports?|via|with|by|like|than|as|through|into|between)"
    r"\s+(?:the\s+)?$",
    re.IGNORECASE,
)
"""Comes before definitions that a place is to use: ``make load call check and parse``."""

_RENAMED: Final = re.compile(r"\s+(?:to|as)\s", re.IGNORECASE)
"""Comes behind definitions that get other names or places: ``rename load and save to ...``."""


@dataclass(frozen=True, slots=True)
class FirstOfSeveral:
    """An instruction, divided.

    Attributes:
        asked: The instruction for the first definition of the list.
        rest: The other definitions, as listed.
        later: The instruction for these.
    """

    asked: str
    rest: str
    later: str


def first_of_several(instruction: str, outlined: Outline) -> FirstOfSeveral | None:
    """Divide an instruction that asks the same of several definitions.

    Args:
        instruction: The instruction.
        outlined: The definitions of the file.

    Returns:
        The parts; None if it lists no such definitions, may be about something else, or concerns
        them together.
    """
    listed = _listed(instruction, outlined)
    if listed is None:
        return None
    start, stop = listed[0].start(), listed[-1].end()
    head, tail = instruction[:start], instruction[stop:]
    if _USES.search(head) or _AT_ONCE.search(f"{head} {tail}"):
        return None
    mentions = find_mentions(without_mentions(instruction))
    names = [name_of(match) for match in listed]
    if mentions.renamed in names or _RENAMED.match(instruction, stop):
        return None
    mine = [definition for name in names for definition in outlined.named(name)]
    if any(one.encloses(other) for one in mine for other in mine if one is not other):
        return None
    places = named_places(outlined, mentions)
    if not places or not all(place in mine for place in places):
        return None
    rest = instruction[listed[1].start() : stop]
    return FirstOfSeveral(f"{head}{listed[0][0]}{tail}", rest, f"{head}{rest}{tail}")


def _listed(instruction: str, outlined: Outline) -> list[re.Match[str]] | None:
    """The one list of at least two definitions, None for none or several lists."""

    def defines(name: str) -> list[Definition]:
        return [d for d in outlined.named(name) if d.kind != "assignment"]

    found = [match for match in NAMED.finditer(instruction) if defines(name_of(match))]
    lists: list[list[re.Match[str]]] = []
    for match in found:
        last = lists[-1][-1] if lists else None
        if last is not None and _JOINT.fullmatch(instruction, last.end(), match.start()):
            lists[-1].append(match)
        else:
            lists.append([match])
    long = [each for each in lists if len({name_of(match) for match in each}) > 1]
    return long[0] if len(long) == 1 else None
