"""Custom tools where an API has functions only: functions with one string.

A custom tool's input is free text. As a function it takes an object with that text, whose JSON
arrives in pieces; ``ArgumentReader`` gives the text out as it comes.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from midstream.responses.liberal import is_whole_json

FIELD: Final = "input"
"""Name of the one string."""

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {FIELD: {"type": "string"}},
    "required": [FIELD],
    "additionalProperties": False,
}

MAX_UNKNOWN_LENGTH: Final = 200_000
"""Characters of arguments that begin unexpectedly, after which the end is not awaited."""

_OPENING: Final = re.compile(rf'\s*\{{\s*"{FIELD}"\s*:\s*"')
_PIECE: Final = re.compile(
    # Whole escapes only, and a surrogate only with its other half.
    r'(?:[^"\\]|\\["\\/bfnrt]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}'
    r"|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*"
)


class EndlessCallError(ValueError):
    """The arguments of a call are not what its tool takes, and go on and on."""


class ArgumentReader:
    """Reads the text out of one call's arguments."""

    def __init__(self) -> None:
        self._json = ""
        self._at: int | None = None
        self._said = False

    def feed(self, text: str) -> str:
        """The part of the input that is known now and was not before.

        Raises:
            EndlessCallError: They are something else, and go on and on.
        """
        self._json += text
        if self._at is None:
            opening = _OPENING.match(self._json)
            if opening is None:
                if len(self._json) > MAX_UNKNOWN_LENGTH:
                    raise EndlessCallError(
                        f"The model's call of a tool grew to more than {MAX_UNKNOWN_LENGTH:,} "
                        "characters without an end and was stopped."
                    )
                return ""
            self._at = opening.end()
        piece = _PIECE.match(self._json, self._at)
        assert piece is not None
        self._at = piece.end()
        # What follows is an unfinished escape or the closing quote, and matches no further.
        found = json.loads(f'"{piece.group()}"', strict=False)
        self._said = self._said or bool(found)
        return found

    @property
    def complete(self) -> bool:
        """Whether what has come is a whole object."""
        return self._json.rstrip().endswith("}") and is_whole_json(self._json.encode())

    def end(self) -> str:
        """The rest: all of it, if the object was not written as expected."""
        if self._said:
            return ""
        try:
            value = msgspec.json.decode(self._json, type=dict[str, str])
        except msgspec.DecodeError:
            value = {}
        if len(value) == 1:
            return next(iter(value.values()))
        return "" if self._at is not None else self._json


def as_arguments(text: str) -> str:
    """A custom tool's input as the JSON of a function's arguments."""
    return json.dumps({FIELD: text}, ensure_ascii=False)
