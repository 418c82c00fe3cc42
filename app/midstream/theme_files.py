"""Theme files: the colour roles, declared once, and reading and checking a file.

A theme gives colours to roles: what is muted, what was added, what a keyword is.  Every role but a
few has a derived colour, which it gets in themes that do not name it, so a new role leaves existing
themes valid.  To add a role, add it to ``ROLES`` and use ``$ms-<role>`` in a stylesheet or
``palette.style("<role>")`` in a widget.  ``docs/themes.md`` and the contrast checks are made from
the same table.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct

from midstream.resources import config_path, read_toml, themes_dir
from midstream.workspace.paths import shown

if TYPE_CHECKING:
    from textual.color import Color

DEFAULT_THEME: Final = "midnight"


class Mix(Struct, frozen=True):
    """A derived colour: a role's colour, moved part of the way to another's.

    Attributes:
        role: The role it starts from.
        into: The role it is mixed with.
        percent: How far it moves, 0 to 100.
    """

    role: str
    into: str = "background"
    percent: int = 0

    def color(self, colors: Mapping[str, Color]) -> Color:
        """The colour.  Terminal colours are never mixed, since their values are not known."""
        color, into = colors[self.role], colors[self.into]
        if not self.percent or color.ansi is not None or into.ansi is not None:
            return color
        return color.blend(into, self.percent / 100)


class Role(Struct, frozen=True):
    """Something that has a colour.

    Attributes:
        name: Its key in a theme file; the stylesheets call it ``$ms-<name>``, with hyphens.
        table: The table of the file that it is in.
        help: What has this colour.
        derived: Its colour where a theme does not name it; ``None`` if every theme must.
        on: For text: the roles it is drawn on, which it must contrast with.
        coarse: For grounds: the colours on a dark and on a light terminal of 256 colours.  Its
            colour cube has no quiet tints, so these are picked by hand.
        coarse_blue: The same for themes that mark additions with blue.
    """

    name: str
    table: str
    help: str
    derived: Mix | None = None
    on: tuple[str, ...] = ()
    coarse: tuple[str, str] | None = None
    coarse_blue: tuple[str, str] | None = None


TABLES: Final = ("colors", "diff", "syntax")
_SURFACES: Final = ("background", "panel", "raised", "cursor", "selection")
_SIDES: Final = ("added", "deleted")
_STRONG: Final = ("added_strong", "deleted_strong")
_CODE: Final = ("background", "cursor", "selection", *_SIDES)

# fmt: off
ROLES: tuple[Role, ...] = (
    Role("background", "colors", "the background of code and pages", coarse=("#121212", "#ffffff")),
    Role("foreground", "colors", "text", on=(*_SURFACES, *_SIDES, *_STRONG)),
    Role("accent", "colors", "active or chosen items, and keys", on=_SURFACES),
    Role("success", "colors", "accepted hunks, good news", on=_SURFACES),
    Role("warning", "colors", "warnings, doubtful hunks", on=_SURFACES),
    Role("error", "colors", "errors, guard findings", on=_SURFACES),
    Role("panel", "colors", "bars above and below the code",
         Mix("background", "foreground", 4), coarse=("#1c1c1c", "#eeeeee")),
    Role("raised", "colors", "dialogs and lists over the code",
         Mix("background", "foreground", 8), coarse=("#303030", "#dadada")),
    Role("muted", "colors", "secondary text, line numbers",
         Mix("foreground", "background", 30), on=(*_SURFACES, *_SIDES)),
    Role("border", "colors", "lines between areas, scroll bars",
         Mix("background", "foreground", 20)),
    Role("cursor", "colors", "the row under the cursor",
         Mix("background", "foreground", 8), coarse=("#303030", "#eeeeee")),
    Role("selection", "colors", "marked lines",
         Mix("background", "accent", 20), coarse=("#005f87", "#d7d7ff")),
    Role("added", "diff", "the background of added lines", Mix("background", "success", 15),
         coarse=("#005f00", "#d7ffd7"), coarse_blue=("#00005f", "#d7ffff")),
    Role("added_strong", "diff", "added words in a changed line", Mix("background", "success", 30),
         coarse=("#008700", "#afffaf"), coarse_blue=("#005f87", "#afd7ff")),
    Role("deleted", "diff", "the background of deleted lines", Mix("background", "error", 15),
         coarse=("#5f0000", "#ffd7d7"), coarse_blue=("#5f0000", "#ffffd7")),
    Role("deleted_strong", "diff", "deleted words in a changed line",
         Mix("background", "error", 30),
         coarse=("#870000", "#ffafaf"), coarse_blue=("#875f00", "#ffd7af")),
    Role("added_sign", "diff", "the + of an added line", Mix("success"), on=("added",)),
    Role("deleted_sign", "diff", "the - of a deleted line", Mix("error"), on=("deleted",)),
    Role("keyword", "syntax", "keywords", Mix("accent"), on=_CODE),
    Role("string", "syntax", "strings", Mix("success"), on=_CODE),
    Role("number", "syntax", "numbers", Mix("warning"), on=_CODE),
    Role("comment", "syntax", "comments", Mix("muted"), on=_CODE),
    Role("function", "syntax", "names of functions", Mix("accent"), on=_CODE),
    Role("type", "syntax", "names of types", Mix("warning"), on=_CODE),
    Role("constant", "syntax", "constants such as None", Mix("warning"), on=_CODE),
    Role("decorator", "syntax", "decorators", Mix("accent"), on=_CODE),
    Role("builtin", "syntax", "built-in functions", Mix("accent"), on=_CODE),
    Role("operator", "syntax", "operators", Mix("foreground"), on=_CODE),
    Role("punctuation", "syntax", "brackets, commas", Mix("muted"), on=_CODE),
)
"""Every role; a derived one comes after the roles that it is mixed from."""
# fmt: on


class ThemeError(ValueError):
    """A theme file that cannot be used; the message names the file and the problem."""


@dataclass(frozen=True)
class ThemeFile:
    """The content of one theme file.

    Attributes:
        name: The file's name without its suffix: the value of the ``theme`` setting.
        label: The name that people read.
        about: One sentence on its character.
        dark: Whether text is lighter than its background.
        ansi: Whether it uses the terminal's own sixteen colours, unchanged.
        colors: The colour of every role.
    """

    name: str
    label: str
    about: str
    dark: bool
    ansi: bool
    colors: Mapping[str, Color]


def theme_folders() -> tuple[Path, Path]:
    """The folders with theme files: the shipped ones, then the user's."""
    return themes_dir(), config_path().parent / "themes"


def read_theme(path: Path) -> ThemeFile:
    """Read and check one theme file.

    Raises:
        ThemeError: It cannot be read, a required role is missing, or something in it is unknown or
            no colour.
    """
    try:
        document = read_toml(path)
    except (OSError, ValueError) as error:
        raise ThemeError(f"{path.name} cannot be read as a theme: {error}.") from None
    for key in document:
        if key not in ("label", "about", "dark", "ansi", *TABLES):
            raise ThemeError(f'{path.name}: there is no "{key}" in a theme.')
    if not isinstance(document.get("colors"), dict):
        raise ThemeError(f"{path.name}: the table [colors] is missing.")
    given: dict[str, Color] = {}
    for table in TABLES:
        given |= _read_table(path.name, table, document.get(table, {}))
    colors: dict[str, Color] = {}
    for role in ROLES:
        if role.name in given:
            colors[role.name] = given[role.name]
        elif role.derived is not None:
            colors[role.name] = role.derived.color(colors)
        else:
            raise ThemeError(f"{path.name}: [{role.table}] has no colour for {role.name}.")
    return ThemeFile(
        name=path.stem,
        label=str(document.get("label", path.stem)),
        about=str(document.get("about", "")),
        dark=bool(document.get("dark", True)),
        ansi=bool(document.get("ansi", False)),
        colors=colors,
    )


def _read_table(file: str, table: str, value: Any) -> dict[str, Color]:
    from textual.color import Color, ColorParseError

    if not isinstance(value, dict):
        raise ThemeError(f"{file}: {table} is a table: write [{table}], then its roles.")
    known = {role.name for role in ROLES if role.table == table}
    colors: dict[str, Color] = {}
    for name, color in cast("dict[str, object]", value).items():
        if name not in known:
            raise ThemeError(f"{file}: [{table}] has no role {name!r}.")
        try:
            colors[name] = Color.parse(str(color))
        except ColorParseError:
            raise ThemeError(f"{file}: [{table}] {name} = {color!r} is not a colour.") from None
    return colors


def read_themes(*folders: Path) -> tuple[dict[str, ThemeFile], dict[str, ThemeError]]:
    """Read every theme of the folders; of two with one name, the later folder's wins.

    Returns:
        The themes by name, and the errors of the files that were left out.
    """
    themes: dict[str, ThemeFile] = {}
    errors: dict[str, ThemeError] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.toml")):
            try:
                themes[path.stem] = read_theme(path)
            except ThemeError as error:
                errors[path.stem] = error
    return themes, errors


def theme_labels() -> tuple[dict[str, str], dict[str, ThemeError]]:
    """The labels of all themes by name, and the errors of unusable files (blocking)."""
    themes, errors = read_themes(*theme_folders())
    return {name: theme.label for name, theme in themes.items()}, errors


def find_theme(wanted: str, labels: Mapping[str, str]) -> str | None:
    """The name of the theme with this name or label; ``None`` if there is none."""
    if wanted in labels:
        return wanted
    folded = wanted.strip().casefold()
    return next((n for n, t in labels.items() if folded in (n.casefold(), t.casefold())), None)


def theme_trouble(wanted: str, labels: Mapping[str, str], errors: Mapping[str, ThemeError]) -> str:
    """Why the theme ``wanted`` cannot be used, ``""`` if it can.

    Args:
        wanted: Its name or label.
        labels: The labels of the usable themes, by name.
        errors: The errors of unusable files, by name.
    """
    if find_theme(wanted, labels) is not None:
        return ""
    if wanted in errors:
        return str(errors[wanted])
    near = difflib.get_close_matches(wanted, labels, n=1, cutoff=0.5)
    hint = f'did you mean "{near[0]}"?' if near else f"known are {', '.join(labels)}."
    return f'There is no theme "{shown(wanted)}"; {hint}'
