"""Changing the person's configuration file: one key at a time, comments and order kept.

What is written is read back with all checks first, so that a file that could be loaded before can
be loaded afterwards.  The write is temp file, fsync, rename, through a link to where the file lies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from midstream.errors import UsageError, UserError
from midstream.settings import check_document

if TYPE_CHECKING:
    from pathlib import Path

    from tomlkit import TOMLDocument


class ConfigFileError(UserError):
    """The configuration file cannot be changed."""

    code = "config-file"


def set_value(path: Path, key: Sequence[str], value: object) -> None:
    """Set one key (blocking); tables on the way are made.

    Args:
        path: The configuration file; it is made when there is none.
        key: Its name, part by part.
        value: A text, number, boolean or list of texts.

    Raises:
        UsageError: The file does not take the value, or is not valid as it is.
        ConfigFileError: The system refuses to read or write it.
    """

    def change(document: TOMLDocument) -> None:
        import tomlkit

        table: Any = document
        for part in key[:-1]:
            inner = table.get(part)
            if inner is None:
                inner = table[part] = tomlkit.table()
            elif isinstance(inner, bool) and part == "guard":
                # ``guard = true`` becomes the table that also holds rules.
                on = bool(inner)
                del table[part]
                inner = table[part] = tomlkit.table()
                inner["on"] = on
            elif not isinstance(inner, dict):
                del table[part]
                inner = table[part] = tomlkit.table()
            table = cast("Any", inner)
        last = key[-1]
        if last == "guard" and isinstance(table.get("guard"), dict):
            table["guard"]["on"] = value
        elif last == "endpoint" and isinstance(table.get("endpoint"), dict):
            del table["endpoint"]
            table["endpoint"] = value
        else:
            table[last] = value

    _change(path, change)


def update_table(path: Path, key: Sequence[str], values: Mapping[str, object]) -> None:
    """Set several keys of one table at once (blocking), where one alone would not be valid.

    Args:
        path: The configuration file; it is made when there is none.
        key: Name of the table, part by part.
        values: What its keys shall be; ``None`` takes a key out.

    Raises:
        UsageError: The file does not take the values, or is not valid as it is.
        ConfigFileError: The system refuses to read or write it.
    """

    def change(document: TOMLDocument) -> None:
        import tomlkit

        table: Any = document
        for part in key:
            if not isinstance(table.get(part), dict):
                table[part] = tomlkit.table()
            table = table[part]
        for name, value in values.items():
            if value is not None:
                table[name] = value
            elif name in table:
                del table[name]

    _change(path, change)


def remove_value(path: Path, key: Sequence[str]) -> bool:
    """Take one key out (blocking); says whether it was there.

    Raises:
        UsageError: The file is not valid.
        ConfigFileError: The system refuses to read or write it.
    """
    found = False

    def change(document: TOMLDocument) -> None:
        nonlocal found
        table: Any = document
        above: list[tuple[Any, str]] = []
        for part in key[:-1]:
            inner = table.get(part)
            if not isinstance(inner, dict):
                return
            above.append((table, part))
            table = cast("Any", inner)
        last = key[-1]
        if last == "guard" and isinstance(table.get("guard"), dict):
            above.append((table, "guard"))
            table, last = table["guard"], "on"
        if last not in table:
            return
        found = True
        del table[last]
        for outer, part in reversed(above):
            if len(outer[part]) == 0 and "#" not in outer[part].as_string():
                del outer[part]

    _change(path, change)
    return found


def _change(path: Path, change: Callable[[TOMLDocument], None]) -> None:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        text = ""
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise ConfigFileError(f"{path} cannot be read ({error.strerror}).") from None
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from None
    change(document)
    new = tomlkit.dumps(document)
    if new == text:
        return
    check_document(new, str(path))
    _write(path, new)


def _write(path: Path, text: str) -> None:
    from midstream.workspace import atomic

    try:
        atomic.overwrite(path, text.encode("utf-8"))
    except OSError as error:
        raise ConfigFileError(
            f"{path} cannot be written ({error.strerror}); the setting is as it was."
        ) from None
