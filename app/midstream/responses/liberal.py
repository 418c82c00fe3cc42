"""Reading JSON of servers as they write it: NaN, broken UTF-8, fields of another type.

Where a value does not fit its field, it is converted if what is meant is plain, and left out
otherwise; so a field that carries the text of an answer is declared as ``Any``, and its reader
says what it could not read.
"""

from __future__ import annotations

import json
import types
import typing
from typing import Any, Final, Generic, TypeVar, cast, get_args, get_origin

import msgspec

_T = TypeVar("_T")
_UNFIT: Final = object()
_WORDS: Final = ("text", "content", "message", "value", "reason", "type", "name", "code")
"""Fields that hold what is meant where an object stands for a string."""
_any_decoder = msgspec.json.Decoder()


class Liberal(Generic[_T]):
    """Decodes JSON objects into one kind of structure."""

    def __init__(self, kind: type[_T]) -> None:
        self._kind = kind
        self._decoder = msgspec.json.Decoder(kind)

    def decode(self, data: str | bytes) -> _T:
        """The structure that is meant.

        Raises:
            ValueError: The data is no JSON object.
        """
        try:
            return self._decoder.decode(data)
        except (ValueError, RecursionError):
            pass
        value = loads(data)
        if not isinstance(value, dict):
            raise ValueError("the server sent something else than a JSON object")
        return cast("_T", _structure(cast("dict[str, Any]", value), self._kind))


def loads(data: str | bytes) -> object:
    """Decode JSON, with NaN and control characters in it.

    Bytes and escapes that are no characters become U+FFFD.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return _any_decoder.decode(data)
    except (ValueError, RecursionError):
        pass
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    try:
        return _whole(json.loads(text, strict=False))
    except RecursionError:
        raise ValueError("the server sent JSON that is nested too deeply") from None


def is_whole_json(data: bytes) -> bool:
    """Whether data is one complete JSON value."""
    try:
        loads(data)
    except ValueError:
        return False
    return True


def text_of(value: object) -> str | None:
    """The text that a value stands for: a string, a number, an object with a text, a list of these.

    Returns:
        ``""`` for nothing, ``None`` for something else.
    """
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return None
        case int() | float():
            return str(value)
        case list():
            parts = [text_of(part) for part in cast("list[object]", value)]
            return None if None in parts else "".join(part for part in parts if part)
        case dict():
            fields = cast("dict[str, object]", value)
            for name in ("text", "content", "value"):
                if name in fields:
                    return text_of(fields[name])
            return None
        case _:
            return None


def word_of(value: object) -> str:
    """The word that a value stands for, such as a reason in an object; the JSON of all others."""
    if not value or str(value).lower() in ("null", "none"):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        for name in ("reason", "type", "value", "name"):
            if isinstance(word := fields.get(name), str):
                return word
    return msgspec.json.encode(value).decode()


def dumps(value: object) -> bytes:
    """The JSON of what is sent; what is not UTF-8 in a file's name is replaced."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_whole(msgspec.to_builtins(value)))


def _whole(value: object) -> object:
    """A value without halves of characters, which no file and no terminal takes."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_whole(item) for item in cast("list[object]", value)]
        case dict():
            fields = cast("dict[str, object]", value)
            return {cast("str", _whole(name)): _whole(item) for name, item in fields.items()}
        case _:
            return value


def _structure(value: dict[str, Any], kind: type[Any]) -> Any:
    given: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name in value:
            fit = _fit(value[field.encode_name], field.type)
            if fit is not _UNFIT:
                given[field.name] = fit
    return kind(**given)


def _fit(value: object, kind: Any) -> Any:
    """A value as a type wants it, or ``_UNFIT``."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        pass
    union = get_origin(kind) in (typing.Union, types.UnionType)
    for option in get_args(kind) if union else (kind,):
        fit = _fit_one(value, option)
        if fit is not _UNFIT:
            return fit
    return _UNFIT


def _fit_one(value: object, kind: Any) -> Any:
    origin = get_origin(kind)
    if origin is list and isinstance(value, list):
        fits = [_fit(item, get_args(kind)[0]) for item in cast("list[object]", value)]
        return [fit for fit in fits if fit is not _UNFIT]
    if origin is dict and isinstance(value, dict):
        table = cast("dict[str, object]", value)
        fitting = {name: _fit(item, get_args(kind)[1]) for name, item in table.items()}
        return {name: fit for name, fit in fitting.items() if fit is not _UNFIT}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if isinstance(value, str) and "message" in kind.__struct_fields__:
            return kind(message=value)  # An error that is nothing but its sentence.
        if not isinstance(value, dict):
            return _UNFIT
        return _structure(cast("dict[str, Any]", value), kind)
    if isinstance(value, bool) or value is None:
        return _UNFIT
    if kind is str:
        if isinstance(value, dict):
            fields = cast("dict[str, object]", value)
            words = (fields.get(name) for name in _WORDS)
            return next((word for word in words if isinstance(word, str)), _UNFIT)
        return str(value) if isinstance(value, int | float) else _UNFIT
    if kind in (int, float) and isinstance(value, str | int | float):
        try:
            return kind(value)
        except (ValueError, OverflowError):
            return _UNFIT
    return _UNFIT
