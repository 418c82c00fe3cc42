"""A name that is to be called otherwise once more: "rename total to amount", then "call it sum".

What a person says about a name is about what the file calls it, or about what the proposal that is
on screen does.  A model sees one of them only.  So where a proposal has replaced one name by one
other, and a further sentence does nothing but give it yet another name, that sentence is put in the
terms of what the model sees.  Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from midstream.pairing.companions import substitutions
from midstream.pairing.mentions import find_mentions, new_names

_FILLERS: Final = (
    "no|nope|oh|ok|okay|sorry|hm+|wait|actually|please|rather|just|better|but|then|instead"
    "|everywhere|well|let's|lets|now|it"
)
_AROUND: Final = re.compile(rf"(?:\b(?:{_FILLERS})\b|[\s.,;:!?`'\"()-])*", re.IGNORECASE)
_SAID: Final = re.compile(
    r"\b(?:rename\s+(?:(?:the|its|this)\s+)?(?:\w+\s+)?[`\"']?(?P<old>[\w.]+)(?:\(\))?[`\"']?"
    r"\s+(?:to|as|into|->|=>)|(?:call|name)\s+(?:it|them|this|that|(?:the|its)\s+\w+))"
    r"\s+[`\"']?(?P<new>[\w.]+)[`\"']?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Renaming:
    """A name that was given a new one, and is to have another.

    Attributes:
        old: What the file calls it.
        given: What the proposal on screen calls it.
        wanted: What it is to be called.
    """

    old: str
    given: str
    wanted: str

    @property
    def of_old(self) -> str:
        """The instruction for who sees the file."""
        return f"rename `{self.old}` to `{self.wanted}`"

    @property
    def of_given(self) -> str:
        """The instruction for who sees the proposal."""
        return f"rename `{self.given}` to `{self.wanted}`"

    def applied(self, text: str) -> str:
        """A text of the proposal with the wanted name."""
        return re.sub(rf"\b{re.escape(self.given)}\b", self.wanted, text)


def renamed_again(said: str, before: Sequence[str], after: Sequence[str]) -> Renaming | None:
    """What a sentence says about a name that a proposal has replaced.

    Args:
        said: The sentence.
        before: The lines as the file has them.
        after: The same lines as they are proposed.

    Returns:
        ``None`` if it asks for anything else, or the proposal is anything but one name for another.
    """
    wanted = _only_a_name(said)
    if wanted is None:
        return None
    found = {(each.kind == "literal", each.old, each.new) for each in substitutions(before, after)}
    if len(found) != 1:
        return None
    ((literal, old, given),) = found
    new, spoken_of = wanted
    there = set(re.findall(r"\w+", "\n".join(before)))
    if literal or new in (old, given) or given in there or spoken_of not in (None, old, given):
        return None
    return Renaming(old, given, new)


def as_proposed(said: str, before: Sequence[str], after: Sequence[str]) -> str:
    """A sentence about a name that only the file has, in the terms of who sees the proposal.

    Arguments are those of ``renamed_again``; anything else comes back as it is.
    """
    there = set(re.findall(r"\w+", "\n".join(after)))
    again = renamed_again(said, before, after)
    if again is not None and again.old not in there:
        return again.of_given
    renamed = find_mentions(said).renamed
    if renamed is None or renamed in there:
        return said
    given = {each.new for each in substitutions(before, after) if each.old == renamed}
    if len(given) != 1:
        return said
    (name,) = given
    return re.sub(rf"\b{re.escape(renamed)}\b", lambda _: name, said, count=1)


def _only_a_name(said: str) -> tuple[str, str | None] | None:
    """The name that a sentence asks for, and the one that it speaks of, if it says nothing else."""
    found = _SAID.search(said)
    if found is None:
        return None
    names = new_names(said[: found.end()])
    if len(names) != 1 or not names[0].isidentifier():
        return None
    rest = said[: found.start()], said[found.end() :]
    if not all(_AROUND.fullmatch(part) for part in rest):
        return None
    return names[0], find_mentions(said).renamed
