"""Show settings and where their values come from, or change one.

Without arguments it lists all settings; with a name it explains that one and shows every place that
sets it; with a name and a value it writes the user's configuration file.
"""

from __future__ import annotations

import argparse
import difflib
import json
from pathlib import Path
from typing import Any, cast

from midstream.commands.common import print_json, printable
from midstream.errors import UsageError
from midstream.resources import config_path
from midstream.settings import (
    SETTINGS,
    Kind,
    ResolvedSetting,
    Setting,
    Source,
    change_file,
    load_settings,
    resolve_settings,
)
from midstream.theme_files import find_theme, theme_labels, theme_trouble

_TYPES: dict[Kind, dict[str, Any]] = {
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.CHOICE: {"type": "string"},
    Kind.TEXT: {"type": "string"},
    Kind.NUMBER: {"type": "number"},
    Kind.LIST: {"type": "array", "items": {"type": "string"}},
    Kind.TABLE: {"type": "object", "additionalProperties": {"type": "string"}},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("key", nargs="?", metavar="NAME", help="one setting, such as keys.preset")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="write this to your own file")
    parser.add_argument("--unset", action="store_true", help="remove NAME from your own file")
    parser.add_argument(
        "--folder", type=Path, default=Path(), help="show what applies in this folder (.)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per setting")
    form.add_argument("--schema", action="store_true", help="JSON Schema of the file, for editors")


def run(options: argparse.Namespace) -> int:
    """Show or change settings.

    Raises:
        UsageError: A file, a name or a value is not usable.
    """
    if options.schema:
        print(json.dumps(schema(), indent=2))
        return 0
    setting = None if options.key is None else _find(options.key)
    if options.unset or options.value is not None:
        return _change(setting, options)
    resolved = resolve_settings(options.folder)
    if setting is not None:
        resolved = {setting.name: resolved[setting.name]}
    if options.json:
        for one in resolved.values():
            print_json(_as_json(one))
    elif setting is None:
        _list(list(resolved.values()), options.folder)
    else:
        _explain(resolved[setting.name])
    return 0


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the configuration file, endpoints left open."""
    root: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Midstream configuration",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "endpoints": {"type": "object", "additionalProperties": {"type": "object"}},
            "projects": {"type": "object", "additionalProperties": {"type": "object"}},
        },
    }
    for setting in SETTINGS:
        *tables, last = setting.path
        properties = root["properties"]
        for table in tables:
            inner = properties.setdefault(table, {"type": "object", "properties": {}})
            if "properties" not in inner:  # `endpoint` is a name or a table
                inner |= {"type": [inner["type"], "object"], "properties": {}}
            properties = inner["properties"]
        value = {**_TYPES[setting.type.kind], "description": setting.help}
        if setting.type.choices:
            value["enum"] = list(setting.type.choices)
        if last in properties:  # `guard` is a switch or a table of rules
            value |= {"type": [properties[last]["type"], "object"]}
        properties[last] = value
    return root


def _find(key: str) -> Setting:
    names = {setting.label: setting for setting in SETTINGS}
    if key in names:
        return names[key]
    ends = [name for name in names if name.rpartition(".")[2] == key]
    near = ends or difflib.get_close_matches(key, names, n=1)
    hint = f'did you mean "{near[0]}"?' if near else "`midstream config` lists them."
    raise UsageError(f'There is no setting "{key}"; {hint}')


def _change(setting: Setting | None, options: argparse.Namespace) -> int:
    path = config_path()
    if setting is None:
        raise UsageError("Name the setting to remove, such as `midstream config --unset theme`.")
    if options.unset:
        if options.value is not None:
            raise UsageError("Give a value or --unset, not both.")
        removed = change_file(path, {setting.path: None})
        print(printable(f"{setting.key} is {'removed from' if removed else 'not in'} {path}."))
        return 0
    change_file(path, {setting.path: _parse(setting, options.value)})
    now = resolve_settings(options.folder)[setting.name]
    said = f"{setting.key} = {setting.format(now.value)}"
    if now.source is Source.USER:
        print(printable(f"{said}, in {path}."))
    else:
        print(printable(f"Written to {path}, but {now.source} {now.where} wins here: {said}."))
    return 0


def _parse(setting: Setting, text: str) -> object:
    """The value that a text stands for; writing the file checks it."""
    if setting.type.kind is Kind.TABLE:
        raise UsageError(
            f"{setting.key} has several values; edit {config_path()}, or use the settings page."
        )
    return _theme(text) if setting.name == "theme" else setting.type.parse(text)


def _theme(wanted: str) -> str:
    labels, errors = theme_labels()
    found = find_theme(wanted, labels)
    if found is None:
        raise UsageError(theme_trouble(wanted, labels, errors))
    return found


def _list(resolved: list[ResolvedSetting], folder: Path) -> None:
    wide = max(len(one.setting.label) for one in resolved)
    values = [one.setting.format(one.value) for one in resolved]
    column = min(28, max(map(len, values)))
    section = ""
    for one, value in zip(resolved, values, strict=True):
        if one.setting.section != section:
            section = one.setting.section
            print(f"{section}:")
        place = "" if one.source is Source.DEFAULT else f"{one.source} {one.where}"
        print(printable(f"  {one.setting.label:<{wide}}  {value:<{column}}  {place}".rstrip()))
    profiles = load_settings(folder).endpoints
    if profiles:
        print("Your endpoints:")
    for profile in profiles:
        line = f"  {profile.name}  {profile.kind}  {profile.url}  {profile.model}"
        print(printable(line.rstrip()))
    print(printable(f"\nYour file: {config_path()}"))


def _explain(one: ResolvedSetting) -> None:
    setting = one.setting
    print(printable(f"{setting.label} = {setting.format(one.value)}"))
    print(printable(f"  {setting.help}"))
    choices = setting.type.choices
    if setting.name == "theme":
        labels, _ = theme_labels()
        choices = [n if t.casefold() == n else f"{n} ({t})" for n, t in labels.items()]
    if choices:
        print(printable(f"  One of {', '.join(choices)}."))
    if setting.variable:
        print(f"  Environment: {setting.variable}")
    for source, where, value in one.steps:
        print(printable(f"  {f'{source} {where}'.strip()}: {setting.format(value)}"))


def _as_json(one: ResolvedSetting) -> dict[str, Any]:
    value = one.value
    if isinstance(value, tuple):
        value = dict(cast("tuple[tuple[str, str], ...]", value))
    return {
        "name": one.setting.label,
        "value": str(value) if isinstance(value, Path) else value,
        "source": one.source.value,
        "where": one.where,
    }
