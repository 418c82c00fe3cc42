"""Which rules of a pygments lexer can match at a character, so that the others are skipped.

A lexer tries the expressions of its state one after another at every token, keyword lists at every
bracket.  What a match can begin with follows from the expression, so the rules that cannot match
are dropped for each state and character; order, and therefore the tokens, stay the same.  This
reads Python's own parse of an expression; a rule that it cannot analyse is tried everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

Rule = Any
"""A processed rule of pygments: match function, action, new state."""

_ASCII: Final = frozenset(range(128))
_PARSER: Final = import_module("re._parser")
_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_NO_WIDTH: Final = frozenset({"AT", "ASSERT", "ASSERT_NOT"})
_IGNORECASE: Final = 2
"""``re.IGNORECASE``, as a number."""


class _UnknownError(Exception):
    """The first characters of the expression cannot be derived."""


class RulesByCharacter(dict[str, Sequence[Rule]]):
    """The rules of one state worth trying, by the next character."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        super().__init__()
        self._rules = rules

    def __missing__(self, character: str) -> Sequence[Rule]:
        """Find them for a character that is met for the first time."""
        code = ord(character)
        if code not in _ASCII:
            return self._rules
        found = self[character] = [rule for rule in self._rules if code in _first_of(rule[0])]
        return found


def rules_by_character(rules: Mapping[str, Sequence[Rule]]) -> dict[str, RulesByCharacter]:
    """The rules of every state of a lexer, by state and character."""
    return {state: RulesByCharacter(of_state) for state, of_state in rules.items()}


def _first_of(match: Any) -> frozenset[int]:
    pattern = getattr(match, "__self__", None)
    source, flags = getattr(pattern, "pattern", None), getattr(pattern, "flags", 0)
    return first_characters(source, flags) if isinstance(source, str) else _ASCII


@lru_cache(maxsize=4_096)
def first_characters(source: str, flags: int) -> frozenset[int]:
    """The ASCII characters a match of an expression can stand at; all where it can be empty."""
    try:
        found, empty = _sequence(_PARSER.parse(source, flags), bool(flags & _IGNORECASE))
    except Exception:  # an expression that cannot be analysed is tried everywhere
        return _ASCII
    return _ASCII if empty else found


def _sequence(items: Iterable[tuple[Any, Any]], folded: bool) -> tuple[frozenset[int], bool]:
    """The first characters of a sequence, and whether it can be empty."""
    found: frozenset[int] = frozenset()
    for code, value in items:
        name = str(code)
        if name in _NO_WIDTH:
            continue  # It only excludes matches, so it may be ignored here.
        first, empty = _item(name, value, folded)
        found |= first
        if not empty:
            return found, False
    return found, True


def _item(name: str, value: Any, folded: bool) -> tuple[frozenset[int], bool]:
    if name == "SUBPATTERN":
        _, added, removed, items = value
        return _sequence(items, (folded or bool(added & _IGNORECASE)) and not removed & _IGNORECASE)
    if name == "ATOMIC_GROUP":
        return _sequence(value, folded)
    if name == "BRANCH":
        parts = [_sequence(items, folded) for items in value[1]]
        return frozenset[int]().union(*(first for first, _ in parts)), any(e for _, e in parts)
    if name in _REPEATS:
        first, empty = _sequence(value[2], folded)
        return first, empty or value[0] == 0
    if name == "FAILURE":
        return frozenset(), False
    return _characters(name, value, folded), False


def _characters(name: str, value: Any, folded: bool) -> frozenset[int]:
    if name == "LITERAL":
        return _folded({value}, folded)
    if name == "NOT_LITERAL":
        return _ASCII if folded else _ASCII - {value}
    if name == "ANY":
        return _ASCII
    if name != "IN":
        raise _UnknownError(name)
    negated = False
    found: set[int] = set()
    for code, item in value:
        kind = str(code)
        if kind == "NEGATE":
            negated = True
        elif kind == "LITERAL":
            found.add(item)
        elif kind == "RANGE":
            found.update(range(item[0], min(item[1], 0x10FF) + 1))
            found.add(item[1])
        elif kind == "CATEGORY":
            found |= _category(str(item))
        else:
            raise _UnknownError(kind)
    if negated:
        return _ASCII if folded else _ASCII - found
    return _folded(found, folded)


def _folded(codes: set[int], folded: bool) -> frozenset[int]:
    if not folded:
        return _ASCII & codes
    if any(code not in _ASCII for code in codes):
        return _ASCII  # Some letters beyond ASCII stand for ASCII ones.
    letters = {chr(code) for code in codes}
    both = {c.lower() for c in letters} | {c.upper() for c in letters}
    return frozenset(ord(c) for c in both if ord(c) in _ASCII)


@lru_cache(maxsize=16)
def _category(name: str) -> frozenset[int]:
    """The ASCII characters of a class such as ``\\d``."""
    if name.endswith("NOT_SPACE"):
        return _ASCII - set(b" \t\n\r\f\v")  # The separators are spaces to some flags only.
    kinds: dict[str, Callable[[str], bool]] = {
        "DIGIT": str.isdigit,
        "SPACE": str.isspace,
        "WORD": lambda c: c.isalnum() or c == "_",
    }
    test = kinds[name.rpartition("_")[2]]
    return frozenset(code for code in _ASCII if test(chr(code)) != ("_NOT_" in name))
