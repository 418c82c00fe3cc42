"""What a person can configure, and where it is read from.

A TOML file in the user's configuration folder (``midstream/config.toml``), then ``.midstream.toml``
in the opened folder, then a table for that folder inside the user's file, then ``MIDSTREAM_*``
environment variables; the later one wins.  A repository must not choose where code and tokens are
sent, nor switch the guard off: its own file can set little more than looks.  No other module reads
configuration.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from midstream import values
from midstream.endpoint_tables import read_profiles
from midstream.errors import UsageError
from midstream.responses.dialect import EFFORTS
from midstream.responses.profiles import BUILT_IN, Profile

LAYOUTS = ("auto", "unified", "split")
OWN_EFFORTS = ("auto", "low", "medium", "high", "xhigh")
"""Efforts of a session with a model of its own."""
SESSION_EFFORTS = ("auto", *EFFORTS)
"""Efforts of any session; a hosted model is told the ones that its profile names."""
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
        endpoints: The configured endpoints (``[endpoints.NAME]``), in the order of the file.
        endpoint: Name of the one that is used instead of the built-in server.
        endpoint_url: Instead of a name, the address of a Responses endpoint (``ws://``, ``wss://``,
            ``http://`` or ``https://``).
        endpoint_model: Model name to ask the endpoint for, over the one that its profile names.
        endpoint_token_env: Name of the environment variable that holds the token of
            ``endpoint_url``.
        model: Model of the built-in server, a folder or the name of an installed one; ``None`` is
            the shipped model.
        threads: Threads for the built-in server; ``None`` lets it choose.
        provider: Execution provider of the built-in server, such as ``cpu`` or ``cuda``.
        pacing: Let the built-in server write as fast as ``wafer`` or ``gpu`` is simulated to, for a
            large model or for the one named behind a colon; ``replay`` shows whole answers at the
            wafer's speed; ``off`` is as fast as it can.
        pace: Tokens per second that the built-in server writes at most, to read along; ``None``
            is as fast as it can.
        guard: Watch what the model writes and stop it on dangerous lines.
        guard_levels: Pairs of a guard rule and its level: ``halt``, ``warn`` or ``off``.
        attention: Note which hunks were on screen long enough to be read.
        commit_trailer: Say at the end of a commit message how much was accepted unread.
        ai_comments: Carry out comments with ``AI!`` when they are saved into a file.
        continuous: Propose the follow-on edits whenever a change is saved.
        effort: What is done for a good answer: ``auto``, ``low``, ``medium``, ``high``, ``xhigh``;
            for hosted models also ``none``, ``minimal`` and ``max``.
        check_command: The project's own quick test, which ranks candidates at high effort; it runs
            in a throw-away copy of the folder.
    """

    theme: str | None = None
    layout: str = "auto"
    keys: str = "default"
    key_binds: tuple[tuple[str, str], ...] = ()
    ascii: bool = False
    journal: bool = True
    endpoints: tuple[Profile, ...] = ()
    endpoint: str | None = None
    endpoint_url: str | None = None
    endpoint_model: str = ""
    endpoint_token_env: str | None = None
    model: Path | None = None
    threads: int | None = None
    provider: str = "cpu"
    pace: float | None = None
    pacing: str = "off"
    guard: bool = True
    guard_levels: tuple[tuple[str, str], ...] = ()
    attention: bool = True
    commit_trailer: bool = False
    ai_comments: bool = True
    continuous: bool = False
    effort: str = "auto"
    check_command: str | None = None

    @property
    def profile(self) -> Profile | None:
        """The endpoint to use, ``None`` for the built-in server.

        Raises:
            UsageError: No endpoint has the chosen name.
        """
        if self.endpoint is not None:
            found = {profile.name: profile for profile in self.endpoints}.get(self.endpoint)
            if found is None:
                raise UsageError(_no_endpoint(self.endpoint, self.endpoints))
            return replace(found, model=self.endpoint_model or found.model)
        if self.endpoint_url is not None:
            return Profile.at(self.endpoint_url, self.endpoint_model, self.endpoint_token_env)
        return None

    def with_endpoint(self, chosen: str, where: str) -> Settings:
        """These settings with another endpoint.

        Args:
            chosen: Name of a configured endpoint, an address, or "built-in" for the built-in
                server.
            where: What to call the place it was chosen at.

        Raises:
            UsageError: It is neither.
        """
        settings = replace(
            self, endpoint=None, endpoint_url=None, endpoint_model="", endpoint_token_env=None
        )
        if chosen == BUILT_IN:
            return settings
        if "://" in chosen:
            return replace(settings, endpoint_url=values.url(chosen, where))
        if chosen not in {profile.name for profile in self.endpoints}:
            raise UsageError(f"{where}: {_no_endpoint(chosen, self.endpoints)}")
        return replace(settings, endpoint=chosen)


def _no_endpoint(name: str, endpoints: tuple[Profile, ...]) -> str:
    names = [profile.name for profile in endpoints]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f'there is no endpoint "{name}"; did you mean "{near[0]}"?'
    known = f"known are {', '.join(names)}, " if names else ""
    return (
        f'there is no endpoint "{name}"; {known}[endpoints.{name}] in {config_path()} makes one, '
        "and an address such as wss://api.openai.com/v1 does without."
    )


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


PROJECT_FILE = ".midstream.toml"
"""A folder's own settings, which travel with it."""
PROJECT_KEYS = ("theme", "layout", "guard")
"""What a folder's own file may set; of the guard only what makes it stricter."""


class Source(StrEnum):
    """Where the value of a setting comes from, the later ones winning."""

    DEFAULT = "default"
    USER = "your file"
    PROJECT = "project file"
    FOLDER = "this folder"
    """A table ``[projects."<folder>"]`` in the user's file."""
    ENVIRONMENT = "environment"
    FLAG = "command line"


@dataclass(frozen=True, slots=True)
class Layer:
    """What holds after one more place was read.

    Attributes:
        source: The place.
        where: Its name: a file, a table in it, a variable.
        given: Fields of `Settings` that it sets.
        settings: All settings by then.
    """

    source: Source
    where: str
    given: frozenset[str]
    settings: Settings


def load_settings(root: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings that hold for a folder.

    Args:
        root: The folder that is opened; a table ``[projects."<folder>"]`` of the configuration
            file holds for it and everything below it.
        environ: The environment.

    Raises:
        UsageError: A file cannot be read or parsed, or a key or value is not known.
    """
    return setting_layers(root, environ=environ)[-1].settings


def setting_layers(
    root: Path | None = None, *, environ: Mapping[str, str] = os.environ
) -> list[Layer]:
    """What each place sets, in the order in which they win; the first are the defaults.

    Raises:
        UsageError: As `load_settings`.
    """
    path = config_path(environ)
    document = read_document(path)
    projects = document.pop("projects", {})
    layers = [Layer(Source.DEFAULT, "", frozenset(), Settings())]

    def add(source: Source, table: Mapping[str, Any], where: str) -> None:
        settings, given = _apply(layers[-1].settings, table, where)
        layers.append(Layer(source, where, frozenset(given), settings))

    add(Source.USER, document, str(path))
    if not isinstance(projects, dict):
        raise UsageError(f'{path}: "projects" must be a table of folders.')
    if root is not None:
        own = root / PROJECT_FILE
        if table := read_document(own):
            add(Source.PROJECT, _only_harmless(table, str(own)), str(own))
        for folder, table in _covering(cast("dict[str, Any]", projects), root):
            if not isinstance(table, dict):
                raise UsageError(f'{path}: projects."{folder}" must be a table of settings.')
            add(Source.FOLDER, cast("dict[str, Any]", table), f'{path}: projects."{folder}"')
    settings, given = _apply_environment(layers[-1].settings, environ)
    if given:
        layers.append(Layer(Source.ENVIRONMENT, "", frozenset(given), settings))
    return layers


def _only_harmless(table: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """A folder's own settings, unless it wants more than it may.

    Raises:
        UsageError: It does.
    """
    for key in table:
        if key in (*_TOP_LEVEL, *_TABLES, "endpoints", "projects") and key not in PROJECT_KEYS:
            raise UsageError(
                f'{where}: a folder\'s own file may not set "{key}"; write it to {config_path()}.'
            )
    guard = table.get("guard", True)
    rules = cast("dict[str, Any]", guard) if isinstance(guard, dict) else {"on": guard}
    for rule, level in rules.items():
        if level not in (True, "halt"):
            raise UsageError(
                f"{where}: a folder's own file may only make the guard stricter, "
                f"and guard.{rule} = {json.dumps(level, default=str)} does not."
            )
    return table


def check_document(text: str, where: str) -> None:
    """Check the text of a configuration file as loading it would.

    Raises:
        UsageError: It is not valid, or a key or value in it is not known.
    """
    document = tomllib.loads(text)
    projects = document.pop("projects", {})
    settings, _ = _apply(Settings(), document, where)
    if isinstance(projects, dict):
        for folder, table in cast("dict[str, Any]", projects).items():
            if isinstance(table, dict):
                _apply(settings, cast("dict[str, Any]", table), f'{where}: projects."{folder}"')


def read_document(path: Path) -> dict[str, Any]:
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
    "model": {
        "folder": "model",
        "threads": "threads",
        "provider": "provider",
        "pace": "pace",
        "pacing": "pacing",
    },
}
_TOP_LEVEL = (
    *("theme", "layout", "ascii", "journal", "guard", "attention", "commit_trailer"),
    *("ai_comments", "continuous", "effort", "check_command"),
)


def _apply(
    settings: Settings, table: Mapping[str, Any], where: str
) -> tuple[Settings, frozenset[str]]:
    """The settings with what a table sets, and the fields that it sets."""
    changes: dict[str, Any] = {}
    given = {"endpoints"} if "endpoints" in table else set[str]()
    if isinstance(table.get("endpoint"), str):
        given.add("endpoint")
    if "endpoints" in table:
        own = {profile.name: profile for profile in read_profiles(table["endpoints"], where)}
        known_so_far = {profile.name: profile for profile in settings.endpoints}
        settings = replace(settings, endpoints=tuple({**known_so_far, **own}.values()))
    if isinstance(table.get("endpoint"), str):
        settings = settings.with_endpoint(table["endpoint"], f"{where}: endpoint")
    for key, value in table.items():
        if key == "endpoints" or (key == "endpoint" and isinstance(value, str)):
            continue
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
                    values.unknown(f"{key}.{name}", [f"{key}.{known}" for known in inner], where)
                taken = checked(inner[name], item, f"{where}: {key}.{name}")
                if inner[name] == "key_binds":
                    pairs = cast("tuple[tuple[str, str], ...]", taken)
                    taken = tuple({**dict(settings.key_binds), **dict(pairs)}.items())
                changes[inner[name]] = taken
                if inner[name] == "endpoint_url":
                    changes["endpoint"] = None
        elif key in _TOP_LEVEL:
            changes[key] = checked(key, value, f"{where}: {key}")
        else:
            known = [*_TOP_LEVEL, *_TABLES, "endpoints", "projects"]
            known += [f"{name}.{item}" for name, inner in _TABLES.items() for item in inner]
            values.unknown(key, known, where)
    return replace(settings, **changes), frozenset({*changes, *given})


def _apply_environment(
    settings: Settings, environ: Mapping[str, str]
) -> tuple[Settings, frozenset[str]]:
    changes: dict[str, Any] = {}
    given = {"endpoint"} if environ.get("MIDSTREAM_ENDPOINT") else set[str]()
    if chosen := environ.get("MIDSTREAM_ENDPOINT"):
        settings = settings.with_endpoint(chosen, "MIDSTREAM_ENDPOINT")
    elif environ.get("MIDSTREAM_ENDPOINT_URL"):
        settings = replace(settings, endpoint=None)
    for field in fields(Settings):
        variable = f"MIDSTREAM_{field.name.upper()}"
        text = environ.get(variable)
        if text is None or field.name in ("endpoint", "endpoints"):
            continue
        value: object = text
        if isinstance(field.default, bool):
            value = _BOOLEANS.get(text.strip().lower(), text)
        elif field.name == "guard_levels":
            pairs = (part.partition("=") for part in text.split(",") if part.strip())
            value = {rule.strip(): level.strip() for rule, _, level in pairs}
        elif field.name in ("threads", "pace") and text.strip().isdigit():
            value = int(text)
        changes[field.name] = checked(field.name, value, variable)
    return replace(settings, **changes), frozenset({*changes, *given})


_BOOLEANS = {
    "1": True, "true": True, "yes": True, "on": True,
    "0": False, "false": False, "no": False, "off": False, "": False,
}  # fmt: skip


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


_CHECKS: Mapping[str, Callable[[object, str], object]] = {
    "theme": values.text,
    "layout": values.one_of(LAYOUTS),
    "keys": values.one_of(KEY_PRESETS),
    "key_binds": values.binds,
    "ascii": values.boolean,
    "journal": values.boolean,
    "endpoint_url": values.url,
    "endpoint_model": values.text,
    "endpoint_token_env": values.text,
    "model": values.folder,
    "threads": values.count,
    "provider": values.text,
    "pace": values.rate,
    "pacing": values.pacing,
    "guard": values.boolean,
    "guard_levels": values.levels,
    "attention": values.boolean,
    "commit_trailer": values.boolean,
    "ai_comments": values.boolean,
    "continuous": values.boolean,
    "effort": values.one_of(SESSION_EFFORTS),
    "check_command": values.text,
}
