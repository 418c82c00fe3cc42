"""Theme files as data: which themes there are, and what stands in each, checked.

What a role looks like on screen is ``tui.themes``'s business.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from midstream.edits.lexing import KINDS
from midstream.resources import config_path, themes_dir

if TYPE_CHECKING:
    from textual.color import Color

DEFAULT_THEME: Final = "midnight"

COLORS: Final = (
    "background",
    "panel",
    "raised",
    "foreground",
    "muted",
    "accent",
    "border",
    "success",
    "warning",
    "error",
    "cursor",
    "selection",
)
DIFF: Final = (
    "added",
    "added_strong",
    "deleted",
    "deleted_strong",
    "added_sign",
    "deleted_sign",
)


class ThemeError(ValueError):
    """A theme file that cannot be used; names the file and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class ThemeTable:
    """What stands in one theme file.

    Attributes:
        name: File name without its ending; what the ``theme`` setting holds.
        label: What people read.
        about: One sentence on its character.
        dark: Whether text is lighter than its background.
        ansi: Whether it uses the terminal's own sixteen colours, unchanged.
        colors: Colours of the screen by role (``COLORS``).
        diff: Colours of changed lines by role (``DIFF``).
        syntax: Colours of tokens by kind (``midstream.edits.lexing.KINDS``).
    """

    name: str
    label: str
    about: str
    dark: bool
    ansi: bool
    colors: Mapping[str, Color]
    diff: Mapping[str, Color]
    syntax: Mapping[str, Color]


def theme_folders() -> tuple[Path, Path]:
    """The folders with theme files: the shipped ones, then the person's own."""
    return themes_dir(), config_path().parent / "themes"


def read_theme(path: Path) -> ThemeTable:
    """Read and check one theme file.

    Raises:
        ThemeError: It cannot be read, a role is missing or unknown, or a colour is not one.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ThemeError(f"{path.name} cannot be read as a theme: {error}.") from None
    tables = {
        "colors": _colors(path, document, "colors", COLORS),
        "diff": _colors(path, document, "diff", DIFF),
        "syntax": _colors(path, document, "syntax", KINDS),
    }
    known = {"label", "about", "dark", "ansi", *tables}
    for key in document:
        if key not in known:
            raise ThemeError(f'{path.name}: there is no "{key}" in a theme.')
    return ThemeTable(
        name=path.stem,
        label=str(document.get("label", path.stem)),
        about=str(document.get("about", "")),
        dark=bool(document.get("dark", True)),
        ansi=bool(document.get("ansi", False)),
        **tables,
    )


def _colors(
    path: Path, document: dict[str, Any], table: str, roles: Iterable[str]
) -> dict[str, Color]:
    from textual.color import Color, ColorParseError

    values = document.get(table)
    if not isinstance(values, dict):
        raise ThemeError(f"{path.name}: the table [{table}] is missing.")
    given = cast("dict[str, object]", values)
    colors: dict[str, Color] = {}
    for role in roles:
        value = given.get(role)
        if not isinstance(value, str):
            raise ThemeError(f"{path.name}: [{table}] has no colour for {role}.")
        try:
            colors[role] = Color.parse(value)
        except ColorParseError:
            raise ThemeError(
                f"{path.name}: [{table}] {role} = {value!r} is not a colour."
            ) from None
    unknown = sorted(set(given) - set(colors))
    if unknown:
        raise ThemeError(f"{path.name}: [{table}] has no role {unknown[0]!r}.")
    return colors


def read_themes(*folders: Path) -> tuple[dict[str, ThemeTable], dict[str, ThemeError]]:
    """Read every theme of the folders; of two with one name, the later folder's wins.

    Returns:
        The themes by name, and the errors of the files that were left out.
    """
    themes: dict[str, ThemeTable] = {}
    errors: dict[str, ThemeError] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.toml")):
            try:
                themes[path.stem] = read_theme(path)
            except ThemeError as error:
                errors[path.stem] = error
    return themes, errors


def theme_labels() -> tuple[dict[str, str], dict[str, ThemeError]]:
    """What people read of each theme, shipped or their own, by name, and why files cannot be used
    (blocking).
    """
    themes, errors = read_themes(*theme_folders())
    return {name: theme.label for name, theme in themes.items()}, errors


def find_theme(wanted: str, labels: Mapping[str, str]) -> str | None:
    """The name of the theme that somebody calls ``wanted``, by its name or by what people read.

    Args:
        wanted: What was asked for.
        labels: What people read, by name.
    """
    if wanted in labels:
        return wanted
    folded = wanted.strip().casefold()
    return next((n for n, t in labels.items() if folded in (n.casefold(), t.casefold())), None)


def theme_trouble(wanted: str, labels: Mapping[str, str], errors: Mapping[str, ThemeError]) -> str:
    """What is wrong with a theme that somebody asked for, ``""`` if it is there.

    Args:
        wanted: What was asked for.
        labels: What people read, by name.
        errors: Why files could not be used, by name.
    """
    if find_theme(wanted, labels) is not None:
        return ""
    if wanted in errors:
        return str(errors[wanted])
    near = difflib.get_close_matches(wanted, labels, n=1, cutoff=0.5)
    hint = f'did you mean "{near[0]}"?' if near else f"known are {', '.join(labels)}."
    return f'There is no theme "{wanted}"; {hint}'
