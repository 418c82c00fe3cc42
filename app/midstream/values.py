"""What a configured value may be: one checker per kind of value.

A checker takes what somebody wrote and the place it stands at, and returns the value in its type or
raises `UsageError` with a sentence that names both.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

from midstream.errors import UsageError
from midstream.responses.dialect import EFFORTS


def unknown(key: str, known: list[str], where: str) -> NoReturn:
    """Say that there is no such setting, and which is near.

    Raises:
        UsageError: Always.
    """
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    last_parts = {name.rpartition(".")[2]: name for name in known if "." in name}
    near = near or [last_parts[key]] if key in last_parts else near
    hint = f'did you mean "{near[0]}"?' if near else f"known are {', '.join(known)}."
    raise UsageError(f'{where}: there is no setting "{key}"; {hint}')


def text(value: object, where: str) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{where} must be a non-empty text, not {value!r}.")
    return value


def boolean(value: object, where: str) -> bool:
    """``true`` or ``false``."""
    if not isinstance(value, bool):
        raise UsageError(f"{where} must be true or false, not {value!r}.")
    return value


def levels(value: object, where: str) -> tuple[tuple[str, str], ...]:
    """Levels by guard rule."""
    from midstream.guard.policy import checked_levels

    try:
        checked = checked_levels(cast("dict[str, object]", value))
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    return tuple((rule, level.value) for rule, level in checked.items())


def folder(value: object, where: str) -> Path:
    """A folder; ``~`` is the person's own."""
    return Path(text(value, where)).expanduser()


def count(value: object, where: str) -> int:
    """A whole number from 1 to 1024."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1024:
        raise UsageError(f"{where} must be a whole number from 1 to 1024, not {value!r}.")
    return value


def rate(value: object, where: str) -> float:
    """Tokens per second."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 1 <= value <= 1e6:
        raise UsageError(f"{where} must be a number of tokens per second from 1, not {value!r}.")
    return float(value)


def pacing(value: object, where: str) -> str:
    """``off``, ``wafer``, ``gpu``, ``replay``, all but the first also with a model behind ``:``."""
    plain = text(value, where).strip()
    mode, colon, model = plain.partition(":")
    known = mode in ("off", "wafer", "gpu", "replay")
    if not known or (colon and (mode == "off" or not model.strip())):
        raise UsageError(
            f"{where} must be off, wafer, gpu, replay, or one of the last three with a model, "
            f"such as gpu:llama3.1-8b, not {value!r}."
        )
    return plain


def url(value: object, where: str) -> str:
    """The address of a Responses endpoint."""
    address = text(value, where)
    if not address.startswith(("ws://", "wss://", "http://", "https://")):
        raise UsageError(
            f"{where} must start with wss://, ws://, https:// or http://: {address!r}."
        )
    if "@" in address.split("/")[2]:
        raise UsageError(f"{where} must not hold a name or a key; name a variable as key_env.")
    return address


def binds(value: object, where: str) -> tuple[tuple[str, str], ...]:
    """Pairs of an action and its keys."""
    if not isinstance(value, dict):
        raise UsageError(f'{where} must be a table such as "hunk.accept" = "a,y", not {value!r}.')
    pairs: list[tuple[str, str]] = []
    for action, keys in _flat(cast("dict[str, Any]", value)):
        if not isinstance(keys, str):
            raise UsageError(f'{where}: "{action}" must be keys in one text such as "a,y".')
        pairs.append((action, keys))
    return tuple(pairs)


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    """Values by dotted name; ``hunk.accept`` without quotes is a table in TOML."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, Any]", value), f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def one_of(names: tuple[str, ...]) -> Callable[[object, str], str]:
    """Make the checker of one of these names."""

    def check(value: object, where: str) -> str:
        if value in names:
            return cast("str", value)
        near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
        hint = f'did you mean "{near[0]}"?' if near else f"choose one of {', '.join(names)}."
        raise UsageError(f"{where} does not know {value!r}; {hint}")

    return check


def whole(value: object, where: str) -> int:
    """A number of tokens."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{where} must be a whole number of tokens, not {value!r}.")
    return value


def dollars(value: object, where: str) -> float:
    """US dollars per million tokens."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e6:
        raise UsageError(f"{where} must be dollars per million tokens, not {value!r}.")
    return float(value)


def efforts(value: object, where: str) -> tuple[str, ...]:
    """Reasoning efforts."""
    if not isinstance(value, list):
        raise UsageError(f'{where} must be a list such as ["low", "high"], not {value!r}.')
    check = one_of(EFFORTS)
    return tuple(check(item, where) for item in cast("list[object]", value))
