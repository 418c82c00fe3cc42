"""Reads settings from all their sources, and changes the user's configuration file.

The places, the later winning: the user's file (``midstream/config.toml`` in the configuration
folder), ``.midstream.toml`` in the opened folder, a table for that folder in the user's file,
``MIDSTREAM_*`` environment variables, the command line.  A repository must not choose where code
and keys are sent, nor switch the guard off: its own file can set little more than looks.  No other
module reads configuration.

A change to the file keeps comments and order.  Before it is written, the new text is checked as
loading it would, so a file that loads now also loads afterwards.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, cast

from midstream.errors import UsageError, UserError
from midstream.resources import config_path, read_small, read_toml
from midstream.responses.profiles import Profile
from midstream.settings.declarations import BY_NAME, SETTINGS, TABLES, Setting, Settings
from midstream.settings.endpoints import read_profiles
from midstream.settings.value_types import Kind, unknown_setting
from midstream.workspace.paths import shown

PROJECT_FILE: Final = ".midstream.toml"
"""A folder's own settings, which travel with it."""
Entry = tuple[Setting, object, str]
"""A setting, the unchecked value that a place gives it, and the name of that place."""
Step = tuple["Source", str, object]
"""A place that sets a setting, the place's name, and the value there."""


class Source(StrEnum):
    """The source of a setting's value; later ones win."""

    DEFAULT = "default"
    USER = "your file"
    PROJECT = "project file"
    FOLDER = "this folder"
    """A table ``[projects."<folder>"]`` in the user's file."""
    ENVIRONMENT = "environment"
    FLAG = "command line"


@dataclass(frozen=True, slots=True)
class ResolvedSetting:
    """A setting's value, and every place that sets it, the winner last."""

    setting: Setting
    steps: tuple[Step, ...]

    @property
    def source(self) -> Source:
        """Where the value comes from."""
        return self.steps[-1][0]

    @property
    def where(self) -> str:
        """The name of that place."""
        return self.steps[-1][1]

    @property
    def value(self) -> object:
        """The value in use."""
        return self.steps[-1][2]

    @property
    def in_user_file(self) -> bool:
        """Whether the user's file sets it."""
        return any(source is Source.USER for source, _, _ in self.steps)

    @property
    def overruled(self) -> str:
        """What wins over the user's file, without a full stop; ``""`` if nothing does."""
        if self.source in (Source.DEFAULT, Source.USER):
            return ""
        places = {
            Source.PROJECT: "the folder's own file",
            Source.FOLDER: "your table for this folder",
            Source.ENVIRONMENT: self.setting.variable,
            Source.FLAG: "the command line",
        }
        return f"{places[self.source]} sets it to {self.setting.format(self.value)} here and wins"


def load_settings(root: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings for a folder.

    Args:
        root: The opened folder; its own file and the tables ``[projects."<folder>"]`` for it and
            the folders above it are read.
        environ: The environment.

    Raises:
        UsageError: A file cannot be read or parsed, or a key or value is not known.
    """
    return _read(root, environ)[0]


def resolve_settings(
    root: Path | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> dict[str, ResolvedSetting]:
    """Every setting by name, with its value and the places that set it.

    Args:
        root: The opened folder.
        flags: Fields of ``Settings`` that the command line sets.
        environ: The environment.

    Raises:
        UsageError: As ``load_settings``.
    """
    steps = _read(root, environ)[1]
    for name, value in (flags or {}).items():
        if name in steps:
            steps[name].append((Source.FLAG, "", value))
    return {one.name: ResolvedSetting(one, tuple(steps[one.name])) for one in SETTINGS}


def _read(root: Path | None, environ: Mapping[str, str]) -> tuple[Settings, dict[str, list[Step]]]:
    """The settings, and what each place sets or clears, by name."""
    settings = Settings()
    steps: dict[str, list[Step]] = {
        one.name: [(Source.DEFAULT, "", one.default)] for one in SETTINGS
    }

    def add(source: Source, table: Mapping[str, Any], where: str) -> None:
        take(source, where, _apply_table(settings, table, where))

    def take(source: Source, where: str, result: tuple[frozenset[str], Settings]) -> None:
        nonlocal settings
        given, settings = result
        for name in given:
            steps[name].append((source, where or BY_NAME[name].variable, getattr(settings, name)))

    path = config_path(environ)
    document = _read_toml(path)
    projects = document.pop("projects", {})
    if not isinstance(projects, dict):
        raise UsageError(f'{path}: "projects" must be a table of folders.')
    add(Source.USER, document, str(path))
    if root is not None:
        own = root / PROJECT_FILE
        if not Path(os.path.realpath(own)).is_relative_to(os.path.realpath(root)):
            raise UsageError(f"{own} is a link that leads out of the folder; replace it by a file.")
        if table := _read_toml(own):
            _check_project_file(table, str(own))
            add(Source.PROJECT, table, str(own))
        for folder, table in _covering(cast("dict[str, Any]", projects), root):
            if not isinstance(table, dict):
                raise UsageError(f'{path}: projects."{folder}" must be a table of settings.')
            add(Source.FOLDER, cast("dict[str, Any]", table), f'{path}: projects."{folder}"')
    take(Source.ENVIRONMENT, "", _apply_environment(settings, environ))
    return settings, steps


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    except ValueError as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


def _covering(projects: Mapping[str, Any], root: Path) -> Iterator[tuple[str, Any]]:
    """The project tables whose folder is ``root`` or above it, outermost first."""
    resolved = root.resolve()
    folders = [(Path(name).expanduser().resolve(), name) for name in projects]
    for folder, name in sorted(folders, key=lambda item: len(item[0].parts)):
        if resolved == folder or folder in resolved.parents:
            yield name, projects[name]


def _check_project_file(table: Mapping[str, Any], where: str) -> None:
    """Refuse what a folder's own file may not do.

    Raises:
        UsageError: It sets more than looks, or weakens the guard.
    """
    allowed = {setting.path[0] for setting in SETTINGS if setting.in_projects}
    known = {setting.path[0] for setting in SETTINGS} | {"endpoints", "projects"}
    for key in table:
        if key in known - allowed:
            raise UsageError(
                f'{where}: a folder\'s own file may not set "{key}"; set it in {config_path()}.'
            )
    guard = table.get("guard", True)
    rules = cast("dict[str, Any]", guard) if isinstance(guard, dict) else {"on": guard}
    for rule, level in rules.items():
        if level not in (True, "halt"):
            raise UsageError(
                f"{where}: a folder's own file may only make the guard stricter, "
                f"and {shown(f'guard.{rule} = {json.dumps(level, default=str)}')} does not."
            )


def _apply_table(
    settings: Settings, table: Mapping[str, Any], where: str
) -> tuple[frozenset[str], Settings]:
    """The fields that a table of a file sets, and the settings with them."""
    if "endpoints" in table:
        read = read_profiles(table["endpoints"], where)
        before: dict[str, Profile | str] = {one.name: one for one in settings.endpoints}
        found = {**before, **dict(settings.broken_endpoints), **read}
        settings = replace(
            settings,
            endpoints=tuple(one for one in found.values() if isinstance(one, Profile)),
            broken_endpoints=tuple((k, one) for k, one in found.items() if isinstance(one, str)),
        )
    return _apply(settings, _entries(table, where), merge=True)


def _apply_environment(
    settings: Settings, environ: Mapping[str, str]
) -> tuple[frozenset[str], Settings]:
    entries: list[Entry] = []
    for setting in SETTINGS:
        text = environ.get(setting.variable) if setting.variable else None
        if text is not None and not (setting.name == "endpoint" and not text):
            entries.append((setting, setting.type.parse(text), setting.variable))
    return _apply(settings, entries, merge=False)


def _entries(table: Mapping[str, Any], where: str) -> Iterator[Entry]:
    """What a table of a file sets.

    Raises:
        UsageError: A key is not known, or a table is written as a value.
    """
    for key, value in table.items():
        if key == "endpoints":
            continue
        inner = {s.path[1]: s for s in SETTINGS if s.path[0] == key and len(s.path) > 1}
        plain = next((s for s in SETTINGS if s.label == key), None)
        rest = next((s for s in SETTINGS if s.label == f"{key}.*"), None)
        if plain is not None and plain.table_key:
            inner[plain.table_key] = plain
        if isinstance(value, dict) and (inner or rest):
            given = dict(cast("dict[str, Any]", value))
            for name in given.keys() & inner.keys():
                yield inner[name], given.pop(name), f"{where}: {key}.{name}"
            if rest is not None:
                yield rest, given, f"{where}: {key}"
            elif given:
                unknown_setting(f"{key}.{next(iter(given))}", [f"{key}.{n}" for n in inner], where)
        elif plain is not None:
            yield plain, value, f"{where}: {key}"
        elif inner:
            example = f"{next(iter(inner))} = {shown(json.dumps(value, default=str))}"
            raise UsageError(f'{where}: "{key}" is a table: write [{key}], then {example}.')
        else:
            known = [*(s.label for s in SETTINGS), *TABLES, "endpoints", "projects"]
            unknown_setting(key, known, where)


def _apply(
    settings: Settings, entries: Iterable[Entry], *, merge: bool
) -> tuple[frozenset[str], Settings]:
    """The fields that entries set or clear, and the settings with them.

    Args:
        settings: The settings so far.
        entries: What is set.
        merge: Whether tables are added to those set so far, in place of replacing them.
    """
    before, given, changes = settings, set[str](), dict[str, Any]()
    for setting, value, where in sorted(entries, key=lambda entry: entry[0].name != "endpoint"):
        checked = setting.type.check(value, where)
        given.add(setting.name)
        if setting.name == "endpoint":
            settings = settings.with_endpoint(str(checked), where)
            continue
        if setting.name == "endpoint_url" and "endpoint" not in given:
            changes["endpoint"] = None
        if merge and setting.type.kind is Kind.TABLE:
            earlier = dict(cast("tuple[tuple[str, str], ...]", getattr(settings, setting.name)))
            pairs = cast("tuple[tuple[str, str], ...]", checked)
            checked = tuple({**earlier, **dict(pairs)}.items())
        changes[setting.name] = checked
    settings = replace(settings, **changes)
    return frozenset(given | settings.changes_since(before).keys()), settings


class ConfigFileError(UserError):
    """The configuration file cannot be changed."""

    code = "config-file"


def change_file(path: Path, changes: Mapping[tuple[str, ...], object]) -> bool:
    """Set and remove keys of the configuration file, all or none (blocking).

    Args:
        path: The file; it is created if missing.
        changes: Texts, numbers, booleans or lists of texts by key, part by part; ``None`` removes
            the key.

    Returns:
        Whether the file is different now.

    Raises:
        UsageError: The file does not take a value, or is not valid as it is.
        ConfigFileError: The system refuses to read or write it.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    text = file_text(path)
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from None
    for key, value in changes.items():
        if value is None:
            _remove(document, key)
        else:
            _set(document, key, value)
    new = tomlkit.dumps(document)
    if new == text:
        return False
    check_document(new, str(path), before=text)
    write_file(path, new)
    return True


def folder_table(path: Path, root: Path) -> tuple[str, str]:
    """The key of the table for a folder in the configuration file (blocking).

    Args:
        path: The file.
        root: The folder; its name in the file stays as the user wrote it.

    Raises:
        UsageError: The file cannot be read.
    """
    projects = _read_toml(path).get("projects", {})
    own = root.resolve()
    names = (name for name in projects if Path(name).expanduser().resolve() == own)
    return "projects", next(names, str(own))


def file_text(path: Path) -> str:
    """The configuration file as it is, ``""`` where there is none (blocking).

    Raises:
        UsageError: It is no text.
        ConfigFileError: It cannot be read.
    """
    try:
        return read_small(path).decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise ConfigFileError(f"{path} cannot be read ({error.strerror}).") from None


def write_file(path: Path, text: str) -> None:
    """Write the configuration file as a person has edited it, valid or not (blocking).

    Raises:
        ConfigFileError: The system refuses.
    """
    from midstream.workspace import atomic

    try:
        atomic.overwrite(path, text.encode("utf-8"))
    except OSError as error:
        raise ConfigFileError(
            f"{path} cannot be written ({error.strerror}); it is unchanged."
        ) from None


def check_document(text: str, where: str, *, before: str = "") -> None:
    """Check the text of a configuration file as loading it would.

    Args:
        text: The new text.
        where: The file's name.
        before: The text that it replaces; what is wrong with an endpoint there may stay so.

    Raises:
        UsageError: It is not valid, or a key or value in it is not known.
    """
    document = tomllib.loads(text)
    projects = document.pop("projects", {})
    known = tomllib.loads(before).get("endpoints", {})
    broken = [one for one in read_profiles(known, where).values() if isinstance(one, str)]
    for said in read_profiles(document.get("endpoints", {}), where).values():
        if isinstance(said, str) and said not in broken:
            raise UsageError(said)
    _, settings = _apply_table(Settings(), document, where)
    if isinstance(projects, dict):
        for folder, table in cast("dict[str, Any]", projects).items():
            if isinstance(table, dict):
                table = cast("dict[str, Any]", table)
                _apply_table(settings, table, f'{where}: projects."{folder}"')


def _table_key(key: tuple[str, ...]) -> str:
    """The key inside its table of a setting that is also a table; ``""`` if it is none."""
    plain = BY_NAME.get(key[0]) if len(key) == 1 else None
    return plain.table_key if plain is not None else ""


def _set(document: Any, key: tuple[str, ...], value: object) -> None:
    import tomlkit

    table = document
    for depth, part in enumerate(key[:-1]):
        if not isinstance(table.get(part), dict):
            former = table.pop(part, None)
            table[part] = tomlkit.table()
            if former is not None and (inner := _table_key(key[: depth + 1])):
                table[part][inner] = former
        table = table[part]
    last = key[-1]
    if isinstance(table.get(last), dict) and (inner := _table_key(key)):
        table[last][inner] = value
    else:
        if isinstance(table.get(last), dict):
            del table[last]
        table[last] = value


def _remove(document: Any, key: tuple[str, ...]) -> None:
    table, above = document, list[tuple[Any, str]]()
    inner = _table_key(key)
    if inner and isinstance(table.get(key[0]), dict):
        key = (*key, inner)
    for part in key[:-1]:
        if not isinstance(table.get(part), dict):
            return
        above.append((table, part))
        table = table[part]
    if key[-1] not in table:
        return
    del table[key[-1]]
    for outer, part in reversed(above):
        if len(outer[part]) == 0 and "#" not in outer[part].as_string():
            del outer[part]
