"""Themes as the screen uses them, in the stylesheets and in the code pane.

A theme names roles, not widgets: what is muted, what is added, what a keyword is.  The stylesheets
use the roles as ``$ms-<role>`` variables, the code pane reads the same roles as Rich styles from
:class:`Palette`.  What a file must hold is ``theme_tables``'s; watching the folder and choosing a
theme are not done here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from midstream.theme_tables import ThemeError, ThemeTable, read_theme, read_themes


@dataclass(frozen=True)
class Palette(ThemeTable):
    """The roles of one theme, as colours, styles and stylesheet variables."""

    def text_pairs(self) -> Iterable[tuple[str, Color, Color]]:
        """Every (name, text, background) that the screen can show, for checking contrast."""
        surfaces = ("background", "panel", "raised", "cursor", "selection")
        for role in ("foreground", "muted", "accent", "success", "warning", "error"):
            for surface in surfaces:
                yield f"{role} on {surface}", self.colors[role], self.colors[surface]
        tinted = {name: self.colors[name] for name in ("background", "cursor", "selection")}
        tinted |= {name: self.diff[name] for name in ("added", "deleted")}
        for surface, background in tinted.items():
            for kind, color in self.syntax.items():
                yield f"{kind} on {surface}", color, background
        for surface in ("added", "added_strong", "deleted", "deleted_strong"):
            yield f"foreground on {surface}", self.colors["foreground"], self.diff[surface]
        for side in ("added", "deleted"):
            yield f"muted on {side}", self.colors["muted"], self.diff[side]
            yield f"{side} sign on {side}", self.diff[f"{side}_sign"], self.diff[side]

    def to_textual(self) -> Theme:
        """The theme as Textual wants it, with every role as a ``ms-…`` variable."""
        css = {role: _css(color) for role, color in self.colors.items()}
        variables = {f"ms-{role}": value for role, value in css.items()}
        variables |= {f"ms-{role.replace('_', '-')}": _css(c) for role, c in self.diff.items()}
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
        styles = {kind: Style(color=color.rich_color) for kind, color in self.syntax.items()}
        styles["comment"] += Style(italic=True)
        styles["plain"] = self.style("foreground")
        return styles

    def style(self, role: str, on: str | None = None, *, bold: bool | None = None) -> Style:
        """A Rich style: the colour of ``role``, on the background of role ``on``."""
        key = (role, on, bold)
        style = self._made.get(key)
        if style is None:
            style = self._made[key] = self._make(role, on, bold)
        return style

    @cached_property
    def _made(self) -> dict[tuple[str, str | None, bool | None], Style]:
        return {}

    def _make(self, role: str, on: str | None, bold: bool | None) -> Style:
        dim = self.ansi and role == "muted"
        return Style(
            color=self._color(role).rich_color,
            bgcolor=None if on is None else self._color(on).rich_color,
            bold=bold,
            dim=True if dim else None,
        )

    def ground(self, role: str) -> Style:
        """A style that only sets the background."""
        style = self._grounds.get(role)
        if style is None:
            style = self._grounds[role] = Style(bgcolor=self._color(role).rich_color)
        return style

    @cached_property
    def _grounds(self) -> dict[str, Style]:
        return {}

    def _color(self, role: str) -> Color:
        return self.colors[role] if role in self.colors else self.diff[role]


_GROUNDS_256: Final[Mapping[tuple[bool, bool], Mapping[str, str]]] = {
    # (dark, added is blue): the 256-colour cube has no quiet tints, so these are picked by hand.
    (True, False): {"added": "#005f00", "added_strong": "#008700"},
    (True, True): {"added": "#00005f", "added_strong": "#005f87"},
    (False, False): {"added": "#d7ffd7", "added_strong": "#afffaf"},
    (False, True): {"added": "#d7ffff", "added_strong": "#afd7ff"},
}
_DELETED_256: Final[Mapping[tuple[bool, bool], Mapping[str, str]]] = {
    (True, False): {"deleted": "#5f0000", "deleted_strong": "#870000"},
    (True, True): {"deleted": "#5f0000", "deleted_strong": "#875f00"},
    (False, False): {"deleted": "#ffd7d7", "deleted_strong": "#ffafaf"},
    (False, True): {"deleted": "#ffffd7", "deleted_strong": "#ffd7af"},
}
_SURFACES_256: Final[Mapping[bool, Mapping[str, str]]] = {
    True: {
        "background": "#121212",
        "panel": "#1c1c1c",
        "raised": "#303030",
        "cursor": "#303030",
        "selection": "#005f87",
    },
    False: {
        "background": "#ffffff",
        "panel": "#eeeeee",
        "raised": "#dadada",
        "cursor": "#eeeeee",
        "selection": "#d7d7ff",
    },
}


def for_terminal(palette: Palette, color_system: str | None) -> Palette:
    """The theme with backgrounds that a terminal of 256 colours can tell apart.

    Args:
        palette: A theme in full colour.
        color_system: What Rich found out: ``truecolor``, ``256``, ``standard`` or ``None``.
    """
    if palette.ansi or color_system != "256":
        return palette
    added = palette.diff["added"]
    kind = (palette.dark, added.b > added.g)
    diff = {**palette.diff, **_parsed(_GROUNDS_256[kind]), **_parsed(_DELETED_256[kind])}
    colors = {**palette.colors, **_parsed(_SURFACES_256[palette.dark])}
    return replace(palette, colors=colors, diff=diff)


def _parsed(names: Mapping[str, str]) -> dict[str, Color]:
    return {role: Color.parse(value) for role, value in names.items()}


def _css(color: Color) -> str:
    if color.ansi is None:
        return color.hex
    return _ANSI_NAMES[color.ansi]


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
    tables, errors = read_themes(*folders)
    return {name: _palette(table) for name, table in tables.items()}, errors


def _palette(table: ThemeTable) -> Palette:
    return Palette(**{field.name: getattr(table, field.name) for field in fields(table)})
