"""``midstream config``: every setting with where its value comes from, and changing one.

Without arguments it lists all settings; with a name it shows that one and every place that says
something about it; with a name and a value it writes the person's configuration file.
"""

from __future__ import annotations

import argparse
import difflib
import json
from pathlib import Path
from typing import Any, cast

from midstream.commands.common import print_json, printable
from midstream.config_file import remove_value, set_value
from midstream.configuring import SPECS, Kind, Spec, Traced, spelled, trace
from midstream.errors import UsageError
from midstream.settings import Source, config_path, load_settings
from midstream.theme_tables import find_theme, theme_labels, theme_trouble

_TYPES: dict[Kind, dict[str, Any]] = {
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.CHOICE: {"type": "string"},
    Kind.TEXT: {"type": "string"},
    Kind.NUMBER: {"type": "number"},
    Kind.TABLE: {"type": "object", "additionalProperties": {"type": "string"}},
}
_WORDS = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("key", nargs="?", metavar="NAME", help="one setting, such as keys.preset")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="write this to your own file")
    parser.add_argument("--unset", action="store_true", help="take NAME out of your own file")
    parser.add_argument("--folder", type=Path, default=Path(), help="the folder that is opened")
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
    spec = None if options.key is None else _spec(options.key)
    if options.unset or options.value is not None:
        return _change(spec, options)
    traced = trace(options.folder)
    if options.json:
        for one in traced:
            if spec is None or one.spec is spec:
                print_json(_as_json(one))
    elif spec is None:
        _list(traced, options.folder)
    else:
        _explain(next(one for one in traced if one.spec is spec))
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
    for spec in SPECS:
        *tables, last = spec.key.split(".")
        properties = root["properties"]
        for table in tables:
            inner = properties.setdefault(table, {"type": "object", "properties": {}})
            if "properties" not in inner:  # ``endpoint`` is a name, or a table
                inner |= {"type": [inner["type"], "object"], "properties": {}}
            properties = inner["properties"]
        value = {**_TYPES[spec.kind], "description": spec.help}
        if spec.choices:
            value["enum"] = list(spec.choices)
        if last in properties:  # ``guard`` is a switch, or a table of rules
            value |= {"type": [properties[last]["type"], "object"]}
        properties[last] = value
    return root


def _spec(key: str) -> Spec:
    # ``guard`` is a switch and a table of rules: the switch, which comes first, has the short name.
    names = {_label(spec): spec for spec in SPECS}
    if key in names:
        return names[key]
    ends = [name for name in names if name.rpartition(".")[2] == key]
    near = ends or difflib.get_close_matches(key, names, n=1)
    hint = f'did you mean "{near[0]}"?' if near else "`midstream config` lists them."
    raise UsageError(f'There is no setting "{key}"; {hint}')


def _change(spec: Spec | None, options: argparse.Namespace) -> int:
    path = config_path()
    if spec is None:
        raise UsageError("Name the setting that --unset takes out, such as `config --unset theme`.")
    key = tuple(spec.key.split("."))
    if options.unset:
        if options.value is not None:
            raise UsageError("Give a value or --unset, not both.")
        found = remove_value(path, key)
        print(printable(f"{spec.key} is {'taken out of' if found else 'not in'} {path}."))
        return 0
    set_value(path, key, _parsed(spec, options.value))
    (now,) = [one for one in trace(options.folder) if one.spec is spec]
    said = f"{spec.key} = {spelled(spec, now.value)}"
    if now.source is Source.USER:
        print(printable(f"{said}, in {path}."))
    else:
        print(
            printable(f"{path} has it now, but {said} holds here ({now.source.value} {now.where}).")
        )
    return 0


def _parsed(spec: Spec, text: str) -> object:
    """The value that a text means; the file's own checks judge it."""
    if spec.kind is Kind.TABLE:
        raise UsageError(f"{spec.key} is a table; edit it in {config_path()}, or on the screen.")
    if spec.name == "theme":
        return _theme(text)
    if spec.kind is Kind.BOOLEAN:
        return _WORDS.get(text.strip().lower(), text)
    if spec.kind is Kind.NUMBER:
        try:
            number = float(text)
        except ValueError:
            return text
        return int(number) if number.is_integer() else number
    return text


def _theme(wanted: str) -> str:
    labels, errors = theme_labels()
    found = find_theme(wanted, labels)
    if found is None:
        raise UsageError(theme_trouble(wanted, labels, errors))
    return found


def _list(traced: list[Traced], folder: Path) -> None:
    wide = max(len(_label(one.spec)) for one in traced)
    values = [spelled(one.spec, one.value) for one in traced]
    column = min(28, max(map(len, values)))
    group = ""
    for one, value in zip(traced, values, strict=True):
        if one.spec.group != group:
            group = one.spec.group
            print(f"{group}:")
        line = f"  {_label(one.spec):<{wide}}  {value:<{column}}  {_place(one.source, one.where)}"
        print(printable(line.rstrip()))
    profiles = load_settings(folder).endpoints
    if profiles:
        print("Endpoints of your own:")
    for profile in profiles:
        print(
            printable(f"  {profile.name}  {profile.kind}  {profile.url}  {profile.model}".rstrip())
        )
    print(printable(f"\nYour file: {config_path()}"))


def _explain(one: Traced) -> None:
    spec = one.spec
    print(printable(f"{_label(spec)} = {spelled(spec, one.value)}"))
    print(printable(f"  {spec.help}"))
    if spec.name == "theme":
        named = (f"{n} ({t})" if t.casefold() != n else n for n, t in theme_labels()[0].items())
        print(printable(f"  One of {', '.join(named)}."))
    elif spec.choices:
        print(f"  One of {', '.join(spec.choices)}.")
    if spec.variable:
        print(f"  Environment: {spec.variable}")
    for source, where, value in one.steps:
        print(printable(f"  {_place(source, where) or source.value}: {spelled(spec, value)}"))


def _label(spec: Spec) -> str:
    return f"{spec.key}.*" if spec.kind is Kind.TABLE else spec.key


def _place(source: Source, where: str) -> str:
    if source is Source.DEFAULT:
        return ""
    return f"{source.value} {where}".strip()


def _as_json(one: Traced) -> dict[str, Any]:
    return {
        "name": _label(one.spec),
        "value": _plain(one.value),
        "source": one.source.value,
        "where": one.where,
    }


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return dict(cast("tuple[tuple[str, str], ...]", value))
    return str(value) if isinstance(value, Path) else value
