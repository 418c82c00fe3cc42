"""What a person can configure, and where it is read from.

A TOML file in the user's configuration folder (``midstream/config.toml``), then a table for the
folder that is opened inside that same file, then ``MIDSTREAM_*`` environment variables; the later
one wins.  Nothing is read from the opened folder itself: a repository must not choose where a token
is sent.  No other module reads configuration.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from midstream.errors import UsageError

LAYOUTS = ("auto", "unified", "split")
KEY_PRESETS = ("default", "git", "vim", "emacs")


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, with its default.

    Attributes:
        theme: Name of a theme in ``themes/``; ``None`` is the program's own choice.
        layout: ``auto``, ``unified`` or ``split`` diff.
        keys: Key preset: ``default``, ``git``, ``vim`` or ``emacs`` (``preset`` in ``[keys]``).
        key_binds: Pairs of an action and the keys the person gave it (``[keys.bind]``); the screen
            says which of them it does not know.
        ascii: Draw with ASCII characters only.
        journal: Keep a journal, so that ``midstream --resume`` can take a session up again.
        endpoint_url: A Responses endpoint (``ws://``, ``wss://``, ``http://`` or ``https://``)
            to use instead of the built-in server.
        endpoint_model: Model name to ask that endpoint for.
        endpoint_token_env: Name of the environment variable that holds its token.
        model: Model of the built-in server, a folder or the name of an installed one; ``None`` is
            the shipped model.
        threads: Threads for the built-in server; ``None`` lets it choose.
        provider: Execution provider of the built-in server, such as ``cpu`` or ``cuda``.
        pace: Tokens per second that the built-in server writes at most, to read along; ``None``
            is as fast as it can.
        guard: Watch what the model writes and stop it on dangerous lines.
        guard_levels: Pairs of a guard rule and its level: ``halt``, ``warn`` or ``off``.
        attention: Note which hunks were on screen long enough to be read.
    """

    theme: str | None = None
    layout: str = "auto"
    keys: str = "default"
    key_binds: tuple[tuple[str, str], ...] = ()
    ascii: bool = False
    journal: bool = True
    endpoint_url: str | None = None
    endpoint_model: str = ""
    endpoint_token_env: str | None = None
    model: Path | None = None
    threads: int | None = None
    provider: str = "cpu"
    pace: float | None = None
    guard: bool = True
    guard_levels: tuple[tuple[str, str], ...] = ()
    attention: bool = True


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The configuration file: ``MIDSTREAM_CONFIG``, or the user's configuration folder."""
    chosen = environ.get("MIDSTREAM_CONFIG")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return platformdirs.user_config_path("midstream") / "config.toml"


def model_places() -> tuple[Path, ...]:
    """Folders whose sub-folders are installed models: the person's own, then the shipped ones."""
    import platformdirs

    from midstream.resources import models_dir

    return platformdirs.user_data_path("midstream") / "models", models_dir()


def find_model(chosen: Path) -> Path:
    """The folder of a model that was named by folder or by the name of an installed one.

    A path that is neither comes back as it is; whoever loads it says that it is missing.
    """
    if not chosen.exists() and len(chosen.parts) == 1:
        for place in model_places():
            if (place / chosen).is_dir():
                return place / chosen
    return chosen


def load_settings(root: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings that hold for a folder.

    Args:
        root: The folder that is opened; a table ``[projects."<folder>"]`` of the configuration
            file holds for it and everything below it.
        environ: The environment.

    Raises:
        UsageError: The file cannot be read or parsed, or a key or value is not known.
    """
    path = config_path(environ)
    document = _read(path)
    projects = document.pop("projects", {})
    settings = _apply(Settings(), document, str(path))
    if not isinstance(projects, dict):
        raise UsageError(f'{path}: "projects" must be a table of folders.')
    if root is not None:
        for folder, table in _covering(cast("dict[str, Any]", projects), root):
            if not isinstance(table, dict):
                raise UsageError(f'{path}: projects."{folder}" must be a table of settings.')
            where = f'{path}: projects."{folder}"'
            settings = _apply(settings, cast("dict[str, Any]", table), where)
    return _apply_environment(settings, environ)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


def _covering(projects: Mapping[str, Any], root: Path) -> Iterator[tuple[str, Any]]:
    """The project tables whose folder is ``root`` or above it, outermost first."""
    resolved = root.resolve()
    folders = [(Path(name).expanduser().resolve(), name) for name in projects]
    for folder, name in sorted(folders, key=lambda item: len(item[0].parts)):
        if resolved == folder or folder in resolved.parents:
            yield name, projects[name]


_TABLES: Mapping[str, Mapping[str, str]] = {
    "keys": {"preset": "keys", "bind": "key_binds"},
    "endpoint": {
        "url": "endpoint_url",
        "model": "endpoint_model",
        "token_env": "endpoint_token_env",
    },
    "model": {"folder": "model", "threads": "threads", "provider": "provider", "pace": "pace"},
}
_TOP_LEVEL = ("theme", "layout", "ascii", "journal", "guard", "attention")


def _apply(settings: Settings, table: Mapping[str, Any], where: str) -> Settings:
    changes: dict[str, Any] = {}
    for key, value in table.items():
        if key == "guard" and isinstance(value, dict):
            levels = dict(cast("dict[str, Any]", value))
            if "on" in levels:
                changes["guard"] = checked("guard", levels.pop("on"), f"{where}: guard.on")
            own = checked("guard_levels", levels, f"{where}: guard")
            merged = {**dict(settings.guard_levels), **dict(cast("tuple[tuple[str, str]]", own))}
            changes["guard_levels"] = tuple(merged.items())
        elif key in _TABLES:
            inner = _TABLES[key]
            if not isinstance(value, dict):
                example = f"{next(iter(inner))} = {json.dumps(value)}"
                raise UsageError(f'{where}: "{key}" is a table: write [{key}], then {example}.')
            for name, item in cast("dict[str, Any]", value).items():
                if name not in inner:
                    _unknown(f"{key}.{name}", [f"{key}.{known}" for known in inner], where)
                taken = checked(inner[name], item, f"{where}: {key}.{name}")
                if inner[name] == "key_binds":
                    pairs = cast("tuple[tuple[str, str], ...]", taken)
                    taken = tuple({**dict(settings.key_binds), **dict(pairs)}.items())
                changes[inner[name]] = taken
        elif key in _TOP_LEVEL:
            changes[key] = checked(key, value, f"{where}: {key}")
        else:
            known = [*_TOP_LEVEL, *_TABLES, "projects"]
            known += [f"{name}.{item}" for name, inner in _TABLES.items() for item in inner]
            _unknown(key, known, where)
    return replace(settings, **changes)


def _apply_environment(settings: Settings, environ: Mapping[str, str]) -> Settings:
    changes: dict[str, Any] = {}
    for field in fields(Settings):
        variable = f"MIDSTREAM_{field.name.upper()}"
        text = environ.get(variable)
        if text is None:
            continue
        value: object = text
        if field.name in ("ascii", "journal", "guard", "attention"):
            value = _BOOLEANS.get(text.strip().lower(), text)
        elif field.name == "guard_levels":
            pairs = (part.partition("=") for part in text.split(",") if part.strip())
            value = {rule.strip(): level.strip() for rule, _, level in pairs}
        elif field.name in ("threads", "pace") and text.strip().isdigit():
            value = int(text)
        changes[field.name] = checked(field.name, value, variable)
    return replace(settings, **changes)


_BOOLEANS = {
    "1": True, "true": True, "yes": True, "on": True,
    "0": False, "false": False, "no": False, "off": False, "": False,
}  # fmt: skip


def _unknown(key: str, known: list[str], where: str) -> None:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    last_parts = {name.rpartition(".")[2]: name for name in known if "." in name}
    near = near or [last_parts[key]] if key in last_parts else near
    hint = f'did you mean "{near[0]}"?' if near else f"known are {', '.join(known)}."
    raise UsageError(f'{where}: there is no setting "{key}"; {hint}')


def checked(name: str, value: object, where: str) -> object:
    """A value as the setting ``name`` takes it.

    Args:
        name: A field of ``Settings``.
        value: What somebody wrote.
        where: What to call the place it was written.

    Raises:
        UsageError: The setting does not take it.
    """
    return _CHECKS[name](value, where)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{where} must be a non-empty text, not {value!r}.")
    return value


def _boolean(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{where} must be true or false, not {value!r}.")
    return value


def _levels(value: object, where: str) -> tuple[tuple[str, str], ...]:
    from midstream.guard.policy import checked_levels

    try:
        levels = checked_levels(cast("dict[str, object]", value))
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    return tuple((rule, level.value) for rule, level in levels.items())


def _folder(value: object, where: str) -> Path:
    return Path(_text(value, where)).expanduser()


def _count(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1024:
        raise UsageError(f"{where} must be a whole number from 1 to 1024, not {value!r}.")
    return value


def _rate(value: object, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 1 <= value <= 1e6:
        raise UsageError(f"{where} must be a number of tokens per second from 1, not {value!r}.")
    return float(value)


def _url(value: object, where: str) -> str:
    text = _text(value, where)
    if not text.startswith(("ws://", "wss://", "http://", "https://")):
        raise UsageError(f"{where} must start with wss://, ws://, https:// or http://: {text!r}.")
    return text


def _binds(value: object, where: str) -> tuple[tuple[str, str], ...]:
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


def _one_of(names: tuple[str, ...]) -> Callable[[object, str], str]:
    def check(value: object, where: str) -> str:
        if value in names:
            return cast("str", value)
        near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
        hint = f'did you mean "{near[0]}"?' if near else f"choose one of {', '.join(names)}."
        raise UsageError(f"{where} does not know {value!r}; {hint}")

    return check


_CHECKS: Mapping[str, Callable[[object, str], object]] = {
    "theme": _text,
    "layout": _one_of(LAYOUTS),
    "keys": _one_of(KEY_PRESETS),
    "key_binds": _binds,
    "ascii": _boolean,
    "journal": _boolean,
    "endpoint_url": _url,
    "endpoint_model": _text,
    "endpoint_token_env": _text,
    "model": _folder,
    "threads": _count,
    "provider": _text,
    "pace": _rate,
    "guard": _boolean,
    "guard_levels": _levels,
    "attention": _boolean,
}
