"""Renaming something again: "rename total to amount", then "call it sum".

The user may mean the name in the file or the one in the proposal; a model sees only one of them.
Where a proposal has introduced a name and the next instruction only asks for another one, the
instruction is rephrased in terms of the text that the model sees.  Pure functions.
"""

from __future__ import annotations

import keyword
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from midstream.codebase.similar_edits import substitutions, tokens
from midstream.pairing.request.mentions import find_mentions, new_names

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
_NO_NAME: Final = (
    r"(?!(?:it|this|that|these|those|which|what|there|here|(?:every|some|any|no)thing|more|less|one"
    r"|none|(?:short|long|simpl|clean|clear|fast|slow|small|bigg|larg|nic)er)\b)"
)
_IS: Final = r"(?:is|are|would\s+be|might\s+be|looks|reads|sounds|seems|fits)"
_BETTER: Final = re.compile(
    rf"(?:\ba\s+)?\bbetter(?:\s+name)?(?:\s*[:,-]|\s+{_IS})\s*{_NO_NAME}[`\"']?(?P<named>\w+)[`\"']?"
    rf"|(?:\b|(?<=[`\"'])){_NO_NAME}(?P<then>[^\W\d]\w*)[`\"']?\s+{_IS}"
    r"\s+(?:a\s+)?(?:much\s+)?better(?:\s+name)?\b",
    re.IGNORECASE,
)
"""Offers another name without a verb of naming: ``pos is better``, ``better: pos``."""
_KEYWORDS: Final = frozenset(keyword.kwlist)
_KIND: Final = r"(?:(?:local|loop)\s+)?(?:variable|var|name|parameter|param|argument|arg|local)"
_PLACE: Final = (
    r"(?:\s+(?:in|of|inside|within)\s+(?:the\s+|this\s+)?[`\"']?[\w.]+(?:\(\))?[`\"']?)?"
)
_PLAIN: Final = re.compile(
    r"\s*(?:please\s+)?rename\s+(?:all\s+(?:uses|occurrences)\s+of\s+)?(?:the\s+|this\s+)?"
    rf"(?:{_KIND}\s+)?[`\"']?(?P<old>[^\W\d]\w*)[`\"']?(?:\s+{_KIND})?{_PLACE}"
    r"\s+(?:to|as|into|->|=>)\s+[`\"']?(?P<new>[^\W\d]\w*)[`\"']?"
    rf"{_PLACE}(?:\s+(?:everywhere|throughout))?(?:,?\s+please)?\s*[.!]?\s*",
    re.IGNORECASE,
)
"""Asks for one rename and nothing else."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """A name that a proposal introduced, and the name that the user wants in its place.

    Attributes:
        given: What the proposal calls it.
        wanted: The name that it should have.
    """

    given: str
    wanted: str

    def applied(self, text: str) -> str:
        """A text with the wanted name."""
        return re.sub(rf"\b{re.escape(self.given)}\b", self.wanted, text)


def renamed_again(
    said: str, asked: str, before: Sequence[str], after: Sequence[str]
) -> Renaming | None:
    """The renaming that a sentence asks for, of a name that a rewrite introduces.

    Args:
        said: The sentence.
        asked: What the rewrite was asked for.
        before: The lines that are rewritten.
        after: What is written so far.

    Returns:
        ``None`` if it asks for anything else, or that name was not asked for.
    """
    brought = _brought(before, after) & _words([asked])
    if not brought and not _brought(
        before, after
    ):  # Not written yet; then it is the one asked for.
        brought = set(new_names(asked)) - _words(before)
    return _given_another(said, brought, before, find_mentions(asked).renamed)


def as_proposed(said: str, before: Sequence[str], after: Sequence[str]) -> str:
    """A sentence about a name that only the file has, in the terms of who sees the proposal.

    Args:
        said: The sentence; a sentence about anything else is returned unchanged.
        before: The lines as the file has them.
        after: The same lines as they are proposed.
    """
    if list(before) == list(after):
        return said
    renamed = find_mentions(said).renamed
    if renamed is None:
        again = _given_another(said, _brought(before, after), before, None)
        return said if again is None else f"rename `{again.given}` to `{again.wanted}`"
    given = {each.new for each in substitutions(before, after) if each.old == renamed}
    if len(given) != 1 or renamed in _words(after) or given & set(new_names(said)):
        return said
    (name,) = given
    return re.sub(rf"\b{re.escape(renamed)}\b", lambda _: name, said, count=1)


def plain_rename(said: str) -> tuple[str, str] | None:
    """The old and the new name of an instruction that only asks to rename something."""
    found = _PLAIN.fullmatch(said)
    return None if found is None else (found["old"], found["new"])


def with_other_name(asked: str, said: str) -> str:
    """An instruction that brings in a name, with the name that another sentence wants in its place.

    Args:
        asked: Such as "rename total to amount in add_tax".
        said: Such as "no, call it sum".

    Returns:
        ``""`` if the sentence says anything else.
    """
    brought, wanted = new_names(asked), _only_a_name(said)
    if wanted is None or len(brought) != 1 or wanted[1] not in (None, brought[0]):
        return ""
    return Renaming(brought[0], wanted[0]).applied(asked)


def is_renamed(said: str, before: str, after: str) -> bool:
    """Whether a rewrite is the rename that is asked for, in every place, and nothing else."""
    old, new = find_mentions(said).renamed, new_names(said)
    if old is None or len(new) != 1 or new[0] in _words([before]):
        return False
    return before != after == Renaming(old, new[0]).applied(before)


def means_last_answer(said: str) -> bool:
    """Whether a sentence only gives another name to something that it does not name itself."""
    wanted = _only_a_name(said)
    return wanted is not None and wanted[1] is None


def _brought(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """The names in the code of a rewrite that the lines before do not have."""
    names = {token.string for token in tokens(after) if token.type == tokenize.NAME}
    return names - _words(before) - _KEYWORDS


def _given_another(
    said: str, brought: set[str], before: Sequence[str], old: str | None
) -> Renaming | None:
    wanted = _only_a_name(said)
    if wanted is None or len(brought) != 1:
        return None
    (given,) = brought
    new, spoken_of = wanted
    if new == given or new in _words(before) or spoken_of not in (None, old, given):
        return None
    return Renaming(given, new)


def _only_a_name(said: str) -> tuple[str, str | None] | None:
    """The wanted name in a sentence that asks for nothing else, and the name that it replaces."""
    if (found := _SAID.search(said)) is not None:
        names = new_names(said[: found.end()])
    elif (found := _BETTER.search(said)) is not None:
        names = [found["named"] or found["then"]]
    else:
        return None
    if len(names) != 1 or not names[0].isidentifier():
        return None
    rest = said[: found.start()], said[found.end() :]
    if not all(_AROUND.fullmatch(part) for part in rest):
        return None
    return names[0], find_mentions(said).renamed


def _words(lines: Sequence[str]) -> set[str]:
    return set(re.findall(r"\w+", "\n".join(lines)))
