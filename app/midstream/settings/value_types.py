"""The types of settings: one ``ValueType`` for each kind of value.

Settings and endpoint fields are declared with these types.  A check takes a value as it stands in a
TOML file, and the place where it stands.  It returns the value in the program's own type, or raises
``UsageError`` with a sentence that names the place and what is allowed.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NoReturn, cast

from midstream.errors import UsageError
from midstream.workspace.paths import shown


class Kind(StrEnum):
    """How a value is written and changed."""

    BOOLEAN = "boolean"
    CHOICE = "choice"
    TEXT = "text"
    NUMBER = "number"
    LIST = "list"
    TABLE = "table"
    """Pairs of a name and a text."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a setting's value.

    Attributes:
        kind: How it is written.
        check: Checks and converts a value; see the module's description.
        allowed: What is allowed, in words.
        choices: The allowed texts of a ``Kind.CHOICE``; empty where they are only known at run
            time.
    """

    kind: Kind
    check: Callable[[object, str], object]
    allowed: str
    choices: tuple[str, ...] = ()

    def parse(self, text: str) -> object:
        """The unchecked value that typed text stands for, as in an environment variable."""
        text = text.strip()
        match self.kind:
            case Kind.BOOLEAN:
                return _BOOLEANS.get(text.lower(), text)
            case Kind.NUMBER:
                return _number(text)
            case Kind.LIST:
                return _split(text)
            case Kind.TABLE:
                pairs = (part.partition("=") for part in _split(text))
                return {name.strip(): value.strip() for name, _, value in pairs}
            case _:
                return text


_BOOLEANS: Final = {
    "1": True, "true": True, "yes": True, "on": True,
    "0": False, "false": False, "no": False, "off": False, "": False,
}  # fmt: skip


def _number(text: str) -> object:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def suggest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The end of an error sentence: the nearest known name, or all of them.

    Args:
        name: The name that is not known.
        known: The names that are.
        otherwise: What to say where none is near, in place of listing them.
    """
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f'did you mean "{near[0]}"?'
    return otherwise or f"known are {', '.join(known)}."


def unknown_setting(key: str, known: list[str], where: str) -> NoReturn:
    """Refuse a key.

    Raises:
        UsageError: Always; it suggests a known key.
    """
    nested = {name.rpartition(".")[2]: name for name in known if "." in name}
    hint = f'did you mean "{nested[key]}"?' if key in nested else suggest(key, known)
    raise UsageError(f'{where}: there is no setting "{shown(key)}"; {hint}')


def _check_text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{where} must be a non-empty text, not {shown(repr(value))}.")
    return value


def _check_boolean(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{where} must be true or false, not {shown(repr(value))}.")
    return value


def _check_folder(value: object, where: str) -> Path:
    return Path(_check_text(value, where)).expanduser()


def _check_url(value: object, where: str) -> str:
    address = _check_text(value, where)
    if not address.startswith(("ws://", "wss://", "http://", "https://")):
        raise UsageError(
            f"{where} must start with wss://, ws://, https:// or http://: {shown(repr(address))}."
        )
    if "@" in address.split("/")[2]:
        raise UsageError(f"{where} must not contain a name or a key; set key_env to a variable.")
    return address


_PACED: Final = ("wafer", "gpu", "replay")


def _check_pacing(value: object, where: str) -> str:
    text = _check_text(value, where).strip()
    mode, colon, model = text.partition(":")
    if text != "off" and (mode not in _PACED or (colon and not model.strip())):
        raise UsageError(f"{where} must be {PACING.allowed}, not {shown(repr(value))}.")
    return text


def _check_binds(value: object, where: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise UsageError(
            f'{where} must be a table such as "hunk.accept" = "a,y", not {shown(repr(value))}.'
        )
    pairs: list[tuple[str, str]] = []
    for action, keys in _flatten(cast("dict[str, Any]", value)):
        if not isinstance(keys, str):
            raise UsageError(f'{where}: "{shown(action)}" must be keys in one text such as "a,y".')
        pairs.append((action, keys))
    return tuple(pairs)


def _flatten(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    """Values by dotted name: ``hunk.accept`` without quotes is a nested table in TOML."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(cast("dict[str, Any]", value), f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _check_levels(value: object, where: str) -> tuple[tuple[str, str], ...]:
    from midstream.guard.policy import checked_levels

    try:
        levels = checked_levels(cast("dict[str, object]", value))
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    return tuple((rule, level.value) for rule, level in levels.items())


def number(
    low: float, high: float, allowed: str, convert: Callable[[float], float] = float
) -> ValueType:
    """A number from ``low`` to ``high``; with ``int`` as ``convert``, a whole one."""

    def check(value: object, where: str) -> float:
        types = int if convert is int else int | float
        if not isinstance(value, types) or isinstance(value, bool) or not low <= value <= high:
            raise UsageError(f"{where} must be {allowed}, not {shown(repr(value))}.")
        return convert(value)

    return ValueType(Kind.NUMBER, check, allowed)


def one_of(names: Iterable[str]) -> ValueType:
    """One of these names."""
    names = tuple(names)

    def check(value: object, where: str) -> str:
        if value in names:
            return cast("str", value)
        hint = suggest(str(value), names, f"choose one of {', '.join(names)}.")
        raise UsageError(f"{where} cannot be {shown(repr(value))}; {hint}")

    return ValueType(Kind.CHOICE, check, "one of its choices", names)


def list_of(names: Iterable[str]) -> ValueType:
    """A list of some of these names."""
    item = one_of(names)

    def check(value: object, where: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise UsageError(
                f'{where} must be a list such as ["low", "high"], not {shown(repr(value))}.'
            )
        return tuple(str(item.check(one, where)) for one in cast("list[object]", value))

    return ValueType(Kind.LIST, check, "a list of names", item.choices)


BOOLEAN: Final = ValueType(Kind.BOOLEAN, _check_boolean, "true or false")
TEXT: Final = ValueType(Kind.TEXT, _check_text, "a text")
NAME: Final = ValueType(Kind.CHOICE, _check_text, "a name")
"""A name that is only known at run time: of a theme, of an endpoint."""
FOLDER: Final = ValueType(Kind.TEXT, _check_folder, "a folder or a name")
URL: Final = ValueType(Kind.TEXT, _check_url, "an address")
PACING: Final = ValueType(
    Kind.TEXT,
    _check_pacing,
    "off, wafer, gpu or replay; the last three optionally with a model, such as gpu:llama3.1-8b",
)
BINDS: Final = ValueType(Kind.TABLE, _check_binds, "keys by action")
LEVELS: Final = ValueType(Kind.TABLE, _check_levels, "halt, warn or off by rule")
COUNT: Final = number(1, 1024, "a whole number from 1 to 1024", int)
MEGABYTES: Final = number(0, 1e6, "a whole number of megabytes, 0 or more", int)
RATE: Final = number(1, 1e6, "a number of tokens per second, 1 or more")
TOKENS: Final = number(1, 1e12, "a whole number of tokens", int)
DOLLARS: Final = number(0, 1e6, "dollars per million tokens")
