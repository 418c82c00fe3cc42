"""Themes as the screen uses them: styles, stylesheet variables, and the user's theme folder.

The stylesheets use the roles of a theme as ``$ms-<role>`` variables; widgets that paint themselves
read the same roles as Rich styles from a ``Palette``.  The roles are declared in
``midstream.theme_files``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from midstream import theme_files
from midstream.theme_files import ThemeError, ThemeFile, read_theme, read_themes

LOOK_EVERY_S: Final = 1.0
"""Interval between two looks at the user's theme folder."""


@dataclass(frozen=True)
class Palette(ThemeFile):
    """The roles of one theme, as colours, styles and stylesheet variables."""

    def to_textual(self) -> Theme:
        """The theme as Textual wants it, with every role as a ``ms-…`` variable."""
        css = {role: _css(color) for role, color in self.colors.items()}
        variables = {f"ms-{role.replace('_', '-')}": value for role, value in css.items()}
        variables |= {
            "block-cursor-background": css["selection"],
            "block-cursor-foreground": css["foreground"],
            "block-cursor-text-style": "reverse" if self.ansi else "none",
            "input-cursor-background": css["accent"],
            "input-cursor-foreground": css["background"],
            "input-selection-background": css["selection"],
            "scrollbar": css["border"],
            "scrollbar-hover": css["muted"],
            "scrollbar-active": css["accent"],
            "scrollbar-background": css["background"],
            "scrollbar-background-hover": css["background"],
            "scrollbar-background-active": css["background"],
            "scrollbar-corner-color": css["background"],
        }
        if self.ansi:
            variables |= {"ansi-background": "ansi_black", "ansi-foreground": "ansi_white"}
        return Theme(
            name=f"midstream-{self.name}",
            primary=css["accent"],
            secondary=css["accent"],
            accent=css["accent"],
            warning=css["warning"],
            error=css["error"],
            success=css["success"],
            foreground=css["foreground"],
            background=css["background"],
            surface=css["background"],
            panel=css["panel"],
            dark=self.dark,
            ansi=self.ansi,
            variables=variables,
        )

    @cached_property
    def token_styles(self) -> Mapping[str, Style]:
        """Foreground styles by token kind, with ``plain``."""
        kinds = (role.name for role in theme_files.ROLES if role.table == "syntax")
        styles = {kind: Style(color=self.colors[kind].rich_color) for kind in kinds}
        styles["comment"] += Style(italic=True)
        styles["plain"] = self.style("foreground")
        return styles

    def style(self, role: str, on: str | None = None, *, bold: bool | None = None) -> Style:
        """A Rich style: the colour of ``role``, on the background of role ``on``."""
        key = (role, on, bold)
        style = self._styles.get(key)
        if style is None:
            style = self._styles[key] = Style(
                color=self.colors[role].rich_color,
                bgcolor=None if on is None else self.colors[on].rich_color,
                bold=bold,
                dim=True if self.ansi and role == "muted" else None,
            )
        return style

    def ground(self, role: str) -> Style:
        """A style that only sets the background."""
        style = self._grounds.get(role)
        if style is None:
            style = self._grounds[role] = Style(bgcolor=self.colors[role].rich_color)
        return style

    @cached_property
    def _styles(self) -> dict[tuple[str, str | None, bool | None], Style]:
        return {}

    @cached_property
    def _grounds(self) -> dict[str, Style]:
        return {}


def for_terminal(palette: Palette, color_system: str | None) -> Palette:
    """The theme with grounds that a terminal of 256 colours can tell apart.

    Args:
        palette: A theme in full colour.
        color_system: What Rich detected: ``truecolor``, ``256``, ``standard`` or ``None``.
    """
    if palette.ansi or color_system != "256":
        return palette
    added = palette.colors["added"]
    blue = added.b > added.g
    colors = dict(palette.colors)
    for role in theme_files.ROLES:
        coarse = (role.coarse_blue if blue else None) or role.coarse
        if coarse is not None:
            colors[role.name] = Color.parse(coarse[0] if palette.dark else coarse[1])
    return replace(palette, colors=colors)


def _css(color: Color) -> str:
    return color.hex if color.ansi is None else _ANSI_NAMES[color.ansi]


_ANSI_NAMES: Final = {
    -1: "ansi_default",
    **dict(
        enumerate(
            f"ansi_{bright}{hue}"
            for bright in ("", "bright_")
            for hue in ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
        )
    ),
}


def load_theme(path: Path) -> Palette:
    """Read and check one theme file.

    Raises:
        ThemeError: It cannot be used; see ``read_theme``.
    """
    return _palette(read_theme(path))


def load_themes(*folders: Path) -> tuple[dict[str, Palette], dict[str, ThemeError]]:
    """Load every theme of the folders; see ``read_themes``."""
    files, errors = read_themes(*folders)
    return {name: _palette(file) for name, file in files.items()}, errors


def _palette(file: ThemeFile) -> Palette:
    return Palette(**{field.name: getattr(file, field.name) for field in fields(file)})


class ThemeChanges(Struct):
    """What changed in a theme folder since the last look.

    Attributes:
        palettes: Themes that are new or different, by name.
        gone: Names of themes whose files were deleted.
        errors: The errors of unusable files.
    """

    palettes: dict[str, Palette] = field(default_factory=dict[str, Palette])
    gone: set[str] = field(default_factory=set[str])
    errors: list[ThemeError] = field(default_factory=list[ThemeError])


class ThemeFolder:
    """A folder of theme files, polled so that a change shows while it is made.

    Comparing times and sizes costs next to nothing for a handful of files and works on every file
    system.  The folder need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._stamps()

    def look(self) -> ThemeChanges:
        """Read the files that have changed (blocking, a few calls)."""
        before, self._seen = self._seen, self._stamps()
        changes = ThemeChanges(gone={path.stem for path in before.keys() - self._seen.keys()})
        for path, stamp in self._seen.items():
            if before.get(path) == stamp:
                continue
            try:
                changes.palettes[path.stem] = load_theme(path)
            except ThemeError as error:
                changes.errors.append(error)
        return changes

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        stamps: dict[Path, tuple[int, int]] = {}
        for path in sorted(self._folder.glob("*.toml")):
            try:
                status = path.stat()
            except OSError:
                continue  # It went between the listing and the look.
            stamps[path] = (status.st_mtime_ns, status.st_size)
        return stamps
