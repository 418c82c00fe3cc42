"""Slots of the edit codec: which pieces of an instruction and of a region become single tokens, and
which text they mean.

Three kinds (see ``codec``): ``<iN>`` identifiers and numbers that the instruction names, ``<qN>``
code and phrases that it quotes, ``<vN>`` anything else in the region that would need several
tokens: identifiers, numbers, comments, lines of docstrings, pieces of strings. This module only
finds them; the codec turns them into token ids.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from random import Random

from midstream.engine.instruction_words import COMMON

SlotPiece = tuple[str, str]
"""``(text, slot)``: a slot name such as "<v3>", or "" where the text is written out."""

_ATOM = r"(?:[^\W\d]\w*|\d(?:[\w.]*\w)?)"
_KEYWORDS = frozenset({*keyword.kwlist, "self", "cls"})
_CONSTANTS = {"none": "None", "true": "True", "false": "False"}
_OPERATOR_CHARS = frozenset("=<>!+-*/%&|^~@")

_MEANT_WORDS = (
    "Popen autoescape check_output eval executemany hashlib md5 mktemp pickle popen safe_load sha1 "
    "shell ssl subprocess tempfile verify yaml"
)
_MEANT = frozenset(_MEANT_WORDS.split())
"""Names of a region that are written out, because what they mean decides what to do."""

_GLUE_WORDS = (
    "a an the to in of as is if it and or for from with by on at be this that not so use add make "
    "new all every each its into when then else please can you could should we let us f no"
)
_GLUE = frozenset(_GLUE_WORDS.split())
"""English words that are not names just because the region has a variable of that spelling."""

_NAME_FOLLOWS = frozenset(["to", "->", "=>", "called", "named", "into", "as", "name", "instead"])
_NAME_BEFORE_WORDS = (
    "rename variable parameter argument param arg var function method attribute name called call "
    "named"
)
_AFTER_TO_WORDS = (
    "avoid be do follow get handle have help keep know log make pass prevent read save see show "
    "silence support test understand use work"
)
_AFTER_TO = frozenset(_AFTER_TO_WORDS.split())
"""Words after "to" that are verbs rather than new names."""
RESERVED = 3
"""``<iN>`` slots that a long instruction leaves free for names of the region or of a redirect."""

_NAME_BEFORE = frozenset(_NAME_BEFORE_WORDS.split())

_INSTRUCTION = re.compile(
    r"""
      `(?P<tick>[^`\n]+)`
    | "(?P<double>[^"\n]*)"
    | (?<!\w)'(?P<single>[^'\n]*)'(?!\w)
    | (?P<decorator>@[\w.]+(?:\([^()\n]*\))?)
    | (?P<generic>[^\W\d][\w.]*\[[^\[\]\n]*(?:\[[^\[\]\n]*\][^\[\]\n]*)*\])
    | (?P<call>[^\W\d][\w.]*\([^()\n]+\))
    | (?P<empty>[^\W\d][\w.]*\(\))
    | (?P<arrow>->|=>|→)
    | (?P<literal>(?<![\w)\]])(?:\[\]|\{\}|\(\)|-\d[\w.]*\b))
    | (?P<word>[^\W\d]\w*|\d(?:[\w.]*\w)?)
    | (?P<operator>(?<!\S)(?:[<>=!]=|<|>|//|\*\*|[+*/%])(?!\S))
    | (?P<other>[^\w\s])
    """,
    re.VERBOSE,
)
_TRAILING_TEXT = re.compile(
    r"\b(?:docstring|message|comment|text|saying|says|top|start|beginning|end|following|this|line|"
    r"statement|log)\s*:\s+(?P<rest>[^`\"']+)$"
)
_IDENTIFIERS = re.compile(r"[\w.]+(?:\(\))?")
_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]*")

_LEXEMES = re.compile(
    r"""
      (?P<triple>(?P<p>[rRbBuUfF]{0,2})(?P<q>\"\"\"|''')(?P<t>(?:\\.|[^\\])*?)(?:(?P=q)|\Z))
    | \#(?P<comment>[^\n]*)
    | (?P<p2>[rRbBuUfF]{0,2})(?:"(?P<d>(?:\\.|[^"\\\n])*)"|'(?P<s>(?:\\.|[^'\\\n])*)')
    """,
    re.VERBOSE | re.DOTALL,
)
_SHELL = re.compile(r"\bshell=True\b|\bos\.(?:system|popen)\(")
_PLACEHOLDER = re.compile(r"%(?:\(\w+\))?[-#0-9. ]*[a-zA-Z]|\{[^{}]*\}|\\.|[{}%]")


@dataclass(slots=True)
class SlotTable:
    """The slots of one request.

    Attributes:
        names: How many ``<iN>`` there are.
        phrases: How many ``<qN>`` there are.
        values: How many ``<vN>`` there are.
        is_single: Tells whether a text is one token anyway (then it gets no ``<vN>``).
        shuffle: In training, a source of randomness for slot numbers.
        region: The region's text, once an instruction is read.
        atoms: The names and numbers in it.
        slot_of: The slots given so far, by what they stand for.
        asked_for: Slots of the region that a later instruction names.
        said: The words and numbers of the instructions.
    """

    names: int
    phrases: int
    values: int
    is_single: Callable[[str], bool]
    shuffle: Random | None = None
    region: str = ""
    atoms: frozenset[str] = frozenset()
    slot_of: dict[str, str] = field(default_factory=dict[str, str])
    asked_for: set[str] = field(default_factory=set[str])
    said: set[str] = field(default_factory=set[str])
    _text: dict[str, str] = field(default_factory=dict[str, str])
    _free: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _pattern: re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        for kind, count in (("i", self.names), ("q", self.phrases), ("v", self.values)):
            numbers = list(range(1, count + 1))
            if self.shuffle is not None:
                self._shuffle(numbers, split=kind != "v")
            self._free[kind] = numbers

    def copy(self) -> SlotTable:
        """A table that can get further slots without changing this one."""
        other = copy(self)
        other.slot_of, other._text = dict(self.slot_of), dict(self._text)
        other.asked_for, other.said = set(self.asked_for), set(self.said)
        other._free = {kind: list(numbers) for kind, numbers in self._free.items()}
        return other

    def _shuffle(self, numbers: list[int], *, split: bool) -> None:
        """Sometimes use other numbers than those by first appearance."""
        assert self.shuffle is not None
        chance, half = self.shuffle.random(), len(numbers) // 2 + 1
        if split and chance < 0.3:
            front, back = numbers[:half], numbers[half:]
            self.shuffle.shuffle(front)
            self.shuffle.shuffle(back)
            numbers[:] = front + back
        elif not split and chance < 0.15:
            self.shuffle.shuffle(numbers)
        elif not split and chance < 0.4:
            start = self.shuffle.randrange(len(numbers))
            numbers[:] = numbers[start:] + numbers[:start]

    def strange_to(self, word: str, line: str) -> bool:
        """Whether a word is a name of the region that is neither in the line nor asked for."""
        if word not in self.atoms or word in self.said or word in _KEYWORDS:
            return False
        return word.isidentifier() and word not in re.findall(_ATOM, line)

    def text_of(self, slot: str) -> str | None:
        """What a slot stands for; None if this request does not use it."""
        return self._text.get(slot)

    def free(self, kind: str) -> int:
        return len(self._free[kind])

    def add(self, kind: str, text: str) -> str:
        """Return the slot of a text, giving it a new one of this kind if there is one left ("" if
        not).

        What the instruction names and the region does not have takes the last free number of its
        kind, all else the first: the model cannot see easily that something is nowhere.
        """
        slot = self.slot_of.get(text)
        if slot is not None:
            return slot
        if not self._free[kind]:
            return ""
        absent = (kind == "q" and text not in self.region) or (
            kind == "i" and text not in self.atoms
        )
        slot = f"<{kind}{self._free[kind].pop(-1 if absent else 0)}>"
        self.slot_of[text] = slot
        self._text[slot] = text
        self._pattern = None
        return slot

    def add_region(self, lines: Sequence[str]) -> None:
        """Give ``<vN>`` slots to the region's long pieces, by first appearance."""
        text = "\n".join(lines)
        opaque = set(self._opaque_pieces(text))
        for piece in _compile([*self.slot_of, *opaque]).finditer(text):
            found = piece.group()
            if found in self.slot_of or found in _KEYWORDS or found in _MEANT:
                continue
            if found in opaque or not self.is_single(found):
                self.add("v", found)

    def pattern(self) -> re.Pattern[str]:
        """The pattern that finds every slotted text (and every atom) in code."""
        if self._pattern is None:
            self._pattern = _compile(self.slot_of)
        return self._pattern

    def _opaque_pieces(self, text: str) -> Iterator[str]:
        named = [found for found in self.slot_of if not re.fullmatch(_ATOM, found)]
        atoms = {found for found in self.slot_of if re.fullmatch(_ATOM, found)}
        for lexeme in _LEXEMES.finditer(text):
            begin = text.rfind("\n", 0, lexeme.start()) + 1
            end = text.find("\n", lexeme.end())
            if _SHELL.search(text, begin, len(text) if end < 0 else end):
                continue  # the words of a command are its arguments
            if lexeme["triple"] is not None:
                pieces = [] if "f" in lexeme["p"].lower() else lexeme["t"].split("\n")
                inner = False
            elif lexeme["comment"] is not None:
                pieces, inner = [lexeme["comment"]], False
            else:
                body = lexeme["d"] if lexeme["d"] is not None else lexeme["s"]
                pieces, inner = _PLACEHOLDER.split(body), True
            for piece in pieces:
                piece = piece if inner else piece.strip()
                if len(piece) < 4 or re.fullmatch(_ATOM, piece.strip()) or "\n" in piece:
                    continue
                if any(phrase in piece for phrase in named):
                    continue
                if inner and any(word in atoms for word in re.findall(_ATOM, piece)):
                    continue
                yield piece


def _compile(texts: Sequence[str] | dict[str, str]) -> re.Pattern[str]:
    phrases = sorted((t for t in texts if not re.fullmatch(_ATOM, t)), key=len, reverse=True)
    parts: list[str] = []
    for phrase in phrases:
        part = re.escape(phrase)
        if _OPERATOR_CHARS.issuperset(phrase):
            part = rf"(?<![=<>!+\-*/%&|^]){part}(?![=<>+\-*/%&|^])"
        else:
            if phrase[0].isalnum() or phrase[0] == "_":
                part = r"(?<!\w)" + part
            if phrase[-1].isalnum() or phrase[-1] == "_":
                part += r"(?!\w)"
        parts.append(part)
    return re.compile("|".join([*parts, _ATOM]))


def code_pieces(body: str, table: SlotTable) -> Iterator[SlotPiece]:
    """Cut a line of code into slots and the text between them."""
    last = 0
    for found in table.pattern().finditer(body):
        slot = table.slot_of.get(found.group())
        if slot is None:
            continue
        if found.start() > last:
            yield body[last : found.start()], ""
        yield "", slot
        last = found.end()
    if last < len(body):
        yield body[last:], ""


def instruction_pieces(instruction: str, region: str, table: SlotTable) -> list[SlotPiece]:
    """Cut an instruction into words and slots, registering its ``<iN>`` and ``<qN>`` in the table.

    White space between words is not kept and plain words are lowered; slots stand for exact text. A
    plain word that is taken for a name (the region has it, it stands where names stand, or it is
    none of the words in which people ask) is written out after its first slot, so that its meaning
    is not lost.
    """
    in_region = table.atoms = frozenset(re.findall(_ATOM, region))
    table.region = region
    table.said.update(re.findall(_ATOM, instruction))
    out: list[SlotPiece] = []
    tail = _TRAILING_TEXT.search(instruction)
    rest = ""
    if tail is not None and len(tail["rest"].split()) > 1:
        rest = tail["rest"].strip()
        instruction = instruction[: tail.start("rest")]
    found = list(_INSTRUCTION.finditer(instruction))
    words = [match.group().lower() for match in found]
    for number, match in enumerate(found):
        kind, text = match.lastgroup or "other", match.group()
        before = words[number - 1] if number else ""
        after = words[number + 1] if number + 1 < len(words) else ""
        if kind in ("tick", "double", "single"):
            quote = text[0]
            if not text[1:-1].strip():
                out += _phrase(text, table)
                continue
            out.append((quote, ""))
            out += _quoted(text[1:-1], table)
            out.append((quote, ""))
        elif kind in ("decorator", "generic", "call", "literal", "operator"):
            out += _phrase(text, table)
        elif kind == "empty":
            out += _quoted(text, table)
        elif kind == "word":
            out += _bare(text, before, after, in_region, table, joined=_joined(instruction, match))
        elif kind == "arrow":
            out.append(("->", ""))
        else:
            out.append((text, ""))
    if rest:
        out += _phrase(rest, table)
    return out


def later_pieces(instruction: str, region: str, table: SlotTable) -> list[SlotPiece]:
    """Cut an instruction that follows a region into words and slots.

    The region has been written already, so what stands in it is written as it is there: its slots,
    or letter by letter where it has none. Only what is new gets a new slot.
    """
    new = SlotTable(table.names, table.phrases, table.values, table.is_single)
    pieces = instruction_pieces(instruction, region, new)
    out: list[SlotPiece] = []
    for text, slot in pieces:
        meant = new.text_of(slot) if slot else None
        if meant is None:
            out.append((text, ""))
        elif meant in table.slot_of or meant not in region:
            known = table.slot_of.get(meant) or table.add(slot[1], meant)
            out.append(("" if known else meant, known))
        else:
            out += code_pieces(meant, table)
    table.asked_for.update(slot for _, slot in out)
    table.said |= new.said
    return out


def _phrase(text: str, table: SlotTable) -> list[SlotPiece]:
    slot = table.add("q", text)
    return [("" if slot else text, slot)]


def _quoted(text: str, table: SlotTable) -> list[SlotPiece]:
    if not _IDENTIFIERS.fullmatch(text):
        return _phrase(text, table)
    out: list[SlotPiece] = []
    for part in re.findall(rf"{_ATOM}|\(\)|.", text):
        slot = table.add("i", part) if re.fullmatch(_ATOM, part) and part not in _KEYWORDS else ""
        out.append(("" if slot else part, slot))
    return out


def _joined(text: str, match: re.Match[str]) -> bool:
    start, end = match.span()
    before = (
        start >= 2
        and text[start - 1] == "."
        and (text[start - 2].isalnum() or text[start - 2] == "_")
    )
    return before or (text[end : end + 1] == "." and text[end + 1 : end + 2].isidentifier())


def _bare(
    word: str, before: str, after: str, in_region: frozenset[str], table: SlotTable, *, joined: bool
) -> list[SlotPiece]:
    lowered = word.lower()
    if lowered in _CONSTANTS:
        return [(_CONSTANTS[lowered], "")]
    if word in _KEYWORDS:
        return [(word, "")]
    known = word in table.slot_of
    if known or joined or not _PLAIN_WORD.fullmatch(word):
        slot = table.add("i", word)
        return [("" if slot else word, slot)]
    if lowered in _GLUE:
        names = before in _NAME_BEFORE or (before == "to" and not after) or after in _NAME_FOLLOWS
        if not (word in in_region or before in ("to", "->")) or not names or lowered != "a":
            return [(lowered, "")]
    elif word not in in_region:
        wanted = before in _NAME_FOLLOWS and not (before == "to" and lowered in _AFTER_TO)
        if lowered in COMMON and not wanted:
            return [(lowered, "")]
        if not wanted and before not in _NAME_BEFORE and table.free("i") <= RESERVED:
            return [(lowered, "")]
    slot = table.add("i", word)
    return [("", slot), (lowered, "")] if slot else [(lowered, "")]
