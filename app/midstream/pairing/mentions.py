"""Which names an instruction mentions, and in what role.

People write "rename total to amount in summarise" and "add a docstring to `Parser.feed`".  This
module finds the words that may be names of code and says how surely each is one; whether a name
exists is for others to look up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Sureness(IntEnum):
    """How surely a word is meant as a name of code."""

    WORD = 0
    """A plain word; a name only if something in the file is called so."""
    SHAPED = 1
    """Shaped like an identifier: ``load_all``, ``HttpClient``, ``x2``, ``os.path``."""
    MARKED = 2
    """Written as code: in backticks or quotes, or with ``()`` behind it."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A possible name in an instruction.

    Attributes:
        name: Dotted name.
        sureness: How surely it is a name.
        place: It stands where the place of the change is named (``in x``, ``function x``).
        fresh: It is introduced by the instruction (``rename a to fresh``, ``a parameter fresh``)
            and need not exist.
        subject: It is the first word (``Cart.add forgets the price``), and so more likely the
            place than a plain word that follows.
    """

    name: str
    sureness: Sureness
    place: bool = False
    fresh: bool = False
    subject: bool = False


_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_TOKEN = re.compile(
    rf"`(?P<ticks>{_NAME})(?:\(\))?`|(?P<call>{_NAME})\(\)"
    rf"|(?<!\w)(?P<quote>[\"'])(?P<quoted>{_NAME})(?P=quote)|(?P<bare>{_NAME})"
)
_SHAPED = re.compile(r"_|\d|\w\.\w|[a-z][A-Z]|^[A-Z][a-z]+[A-Z]|^__")
_PLACE = frozenset({"in", "inside", "within", "of", "function", "method", "class", "def"})
_GIVING = frozenset({"add", "append", "apply", "attach", "give", "put", "write"})
_TAKING = frozenset({"cut", "delete", "drop", "eliminate", "remove", "strip", "take"})
_HEADS = re.compile(r"\s*:\s")
"""What follows a place that stands before the request: ``load_all: rename x to y``."""
_NEVER = frozenset({"and", "or", "to", "the", "a", "an", "in", "of"})
_LINKS = frozenset({"the", "a", "an", "this", "my", "our", "its"})
_NEW = re.compile(
    r"\b(?:parameters?|arguments?|args?|keyword|kwarg|attribute|field|option|flag|called|named|into|as"
    r"|with|using|uses?|calls?|raises?|returns?|except|catch|import|from|extract|"
    r"new\s+\w+)\s*(?:named\s+|called\s+|a\s+|an\s+|the\s+)?[`\"']?$",
    re.IGNORECASE,
)
_RENAME = re.compile(
    rf"\brename\s+(?:(?:the|its|this)\s+)?(?:\w+\s+)?[`\"']?(?P<old>{_NAME})(?:\(\))?[`\"']?"
    rf"\s+(?:to|as|into|->|=>)\s+[`\"']?(?P<new>{_NAME})",
    re.IGNORECASE,
)


_WHEN = frozenset({"once", "twice", "again", "first", "last", "later", "here", "there", "only"})
"""How something is called, not what: ``call it once``."""
_CALL = re.compile(
    rf"\b(?:call|name)\s+(?:it|them|this|that|(?:the|its)\s+\w+)\s+[`\"']?(?P<new>{_NAME})"
    r"[`\"']?(?=\s*(?:$|[.,;]|instead\b|everywhere\b))(?<!ly)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Mentions:
    """What an instruction mentions.

    Attributes:
        all: In the order of the text, each name once.
        renamed: The old name, when the instruction is a rename.
    """

    all: tuple[Mention, ...]
    renamed: str | None

    @property
    def sure(self) -> list[Mention]:
        """Mentions that are surely names and must exist already."""
        return [m for m in self.all if m.sureness > Sureness.WORD and not m.fresh]


def find_mentions(instruction: str) -> Mentions:
    """The possible names in ``instruction``."""
    rename = _RENAME.search(instruction)
    found: dict[str, Mention] = {}
    words: list[str] = []
    for match in _TOKEN.finditer(instruction):
        marked = match["ticks"] or match["call"] or match["quoted"]
        name = marked or match["bare"]
        before = [word for word in words if word not in _LINKS]
        words.append(name.lower())
        first_word = not before and not marked
        if marked:
            sureness = Sureness.MARKED
        elif _SHAPED.search(name):
            sureness = Sureness.SHAPED
        else:
            sureness = Sureness.WORD
        heads = not before and _HEADS.match(instruction, match.end()) is not None
        if sureness is Sureness.WORD and not heads and (first_word or name.lower() in _NEVER):
            continue  # The first word is the verb: "add", "sort", "rename".
        source = before[-1:] == ["from"] and not _TAKING.isdisjoint(before)
        fresh = not source and bool(_NEW.search(instruction[: match.start()]))
        if rename is not None and match.start() <= rename.start("new") < match.end():
            fresh = True
        if before[-1:] == ["and"] and found:  # "to load and save" names two places
            place = not fresh and list(found.values())[-1].place
        else:
            place = not fresh and (
                source or _is_place(before) or (heads and sureness > Sureness.WORD)
            )
        subject = not before and sureness > Sureness.WORD and not fresh
        mention = Mention(name, sureness, place, fresh, subject)
        known = found.get(name)
        if known is None or (mention.sureness, mention.place) > (known.sureness, known.place):
            found[name] = mention
    return Mentions(tuple(found.values()), rename["old"] if rename else None)


def new_names(instruction: str) -> list[str]:
    """The names that what is asked for must bring in: ``rename a to b``, ``call it b``."""
    found = [m["new"] for pattern in (_RENAME, _CALL) for m in pattern.finditer(instruction)]
    return [name for name in dict.fromkeys(found) if name.lower() not in _WHEN]


def missing_names(instruction: str, lines: Iterable[str]) -> list[str]:
    """The names that an instruction takes for granted and that do not occur in some lines.

    Args:
        instruction: What was asked.
        lines: The code that it was asked of.
    """
    mentions = find_mentions(instruction)
    names = [mention.name for mention in mentions.sure if not mention.place]
    if mentions.renamed is not None:
        names.insert(0, mentions.renamed)
    there = {word for line in lines for word in re.findall(r"\w+", line)}
    return [name for name in dict.fromkeys(names) if name.rpartition(".")[2] not in there]


def _is_place(before: list[str]) -> bool:
    """Whether the word behind ``before`` (lower case, articles left out) says where."""
    if not before:
        return False
    if before[-1] == "to":  # "add a docstring to load", but not "convert to snake_case"
        return before[0] in _GIVING
    return before[-1] in _PLACE and before[-2:-1] != ["instead"]
