"""SQL text with holes: where a hole is, and what that means for the stream.

A query that a program builds is a sequence of known text and holes for what only the running
program knows.  A hole in the place of a value is an injection in any case; a table or column cannot
be a query parameter, so there it depends on how the query is run.  This module knows no programming
language: ``flow`` and ``scripts`` produce the pieces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from midstream.guard.findings import Level


@dataclass(frozen=True, slots=True)
class Hole:
    """A part of a text that only the running program knows.

    Attributes:
        source: The expression as written.
        own: Whether it belongs to the program's own objects (``self.table``), not to its input.
    """

    source: str
    own: bool = False


Piece = str | Hole
"""Known text, or a hole."""

STATEMENT: Final = re.compile(
    r"""^[\s("'`;]*(?:explain\s+|with\s+[\w"`]+\s+as\s*\(\s*)?(?:
        select\b[^;]*?\bfrom\b | select\s+(?:\S+\s*\(|\*|\d|top\b|distinct\b)
      | (?:insert|replace)\s+(?:or\s+\w+\s+|ignore\s+|low_priority\s+)*into\b
      | update\s+(?:or\s+\w+\s+|ignore\s+|only\s+)?\S+(?:\s+(?:as\s+)?\w+)?\s+set\b
      | delete\s+(?:\S+\s+)?from\b | merge\s+into\b | truncate\s+table\b
      | (?:drop|create|alter)\s+(?:or\s+replace\s+)?(?:unique\s+|temp(?:orary)?\s+|materialized\s+)?
        (?:table|database|schema|index|view|user|role|function|trigger|sequence)\b
      | grant\s+[\w\s,]+\bon\b | revoke\s+[\w\s,]+\bon\b
      | pragma\s+\w | attach\s+database\b | lock\s+tables?\b
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""The beginning of an SQL statement, in a form that is rare in prose."""
FRAGMENT: Final = re.compile(
    r"\b(?:select|insert\s+into|update|delete\s+from|where|order\s+by|group\s+by|having|limit|values|join"
    r"|set|from|union|call|exec|use|drop|alter|create|grant|kill|show|describe|copy|load|and|or|in|like)\b",
    re.IGNORECASE,
)
"""A word of SQL; significant only in text that is run as a query."""

_VALUE: Final = re.compile(
    r"(?:[=<>]|\|\||\b(?:like|ilike|regexp|rlike|between|limit|offset|top|is|then|else|when|interval|glob|match"
    r"|values|in|any|all|contains|using|against|identified\s+by|password|to_tsquery|sleep))\s*"
    r"[(\s]*[eEnNbB]?$",
    re.IGNORECASE,
)
_NAME: Final = re.compile(
    r"(?:\b(?:from|into|update|table|tables|join|database|schema|index|view|column|order\s+by|group\s+by|select|distinct|as"
    r"|describe|desc|exists|truncate|analyze|vacuum|use|pragma|returning|add|to|call|exec|user|role|sequence|function"
    r"|trigger|only|set|rename|drop|alter|create|asc|by|copy|grant|revoke|ignore|replace|collate|charset|engine)|[.`\[])\s*$",
    re.IGNORECASE,
)
_LIST_OF_VALUES: Final = re.compile(r"\b(?:values|in|any|call|exec)\s*\([^()]*$", re.IGNORECASE)
_CALL: Final = re.compile(
    r"\b(?!(?:table|into|exists|from|join|index|on|count|sum|min|max|avg|distinct)\b)\w+\s*\([^()]*$",
    re.IGNORECASE,
)
_COLUMNS: Final = re.compile(
    r"\b(?:into|table|exists|index|on)\s+[\w.`\"\[\]]*\s*\([^()]*$", re.IGNORECASE
)
_ASSIGNS: Final = re.compile(r"\bset\b[^;]*=[^;]*,\s*$", re.IGNORECASE | re.DOTALL)
_NO_PARAMETERS: Final = re.compile(r"\s*(?:pragma|create|alter|drop)\b", re.IGNORECASE)
"""Statements without query parameters; a quoted hole in them is a value nevertheless."""
_LEFT: Final = 400
"""Characters before a hole that decide what its place is."""


class Position(Enum):
    """The text in the place of a hole."""

    VALUE = auto()
    NAME = auto()
    """A table, a column or another name: no query parameter can stand there."""
    CLAUSE = auto()
    """A condition or another part of the statement's own grammar."""


def is_statement(pieces: Sequence[Piece]) -> bool:
    """Whether a text with holes is a statement in SQL beyond doubt."""
    return bool(STATEMENT.match(text_of(pieces)))


def text_of(pieces: Sequence[Piece]) -> str:
    """The known text, with a name for every hole."""
    return "".join(piece if isinstance(piece, str) else "hole" for piece in pieces)


def positions(pieces: Sequence[Piece]) -> list[tuple[Hole, Position]]:
    """Return every hole with its place."""
    found: list[tuple[Hole, Position]] = []
    names_only = _NO_PARAMETERS.match(text_of(pieces)) is not None
    left = ""
    for piece in pieces:
        if isinstance(piece, str):
            left += piece
            continue
        position = _position(left[-_LEFT:])
        if names_only and left.count("'") % 2 == 0:
            position = Position.NAME
        found.append((piece, position))
        left += "hole"
    return found


def _position(left: str) -> Position:
    bare = left.rstrip()
    if left.count("'") % 2:  # Inside a literal of SQL.
        return Position.VALUE
    if bare.endswith('"'):
        outer = bare[:-1].rstrip()
        return Position.NAME if _NAME.search(outer) or outer.endswith(",") else Position.VALUE
    if _VALUE.search(bare):
        return Position.VALUE
    if bare.endswith((",", "(")):
        if _LIST_OF_VALUES.search(bare) or _ASSIGNS.search(bare):
            return Position.VALUE
        if _COLUMNS.search(bare):
            return Position.NAME
        return Position.VALUE if _CALL.search(bare) else Position.NAME
    if _NAME.search(bare) or re.search(r"\w$", left):
        return Position.NAME
    return Position.CLAUSE


def judge(pieces: Sequence[Piece], *, executed: bool, parameters: bool) -> Level | None:
    """The effect of a query with holes on the stream; None if it has no holes.

    Args:
        pieces: The query.
        executed: Whether it is passed to a database here; otherwise it is only built.
        parameters: Whether it is run with query parameters, so that its author knows about them.
    """
    holes = positions(pieces)
    if not holes:
        return None
    places = {position for _, position in holes}
    if Position.VALUE in places:
        return Level.HALT
    if parameters or not executed:
        return Level.WARN
    if Position.CLAUSE in places or any(not hole.own for hole, _ in holes):
        return Level.HALT
    return Level.WARN
