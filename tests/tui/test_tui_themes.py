"""The shipped themes: complete, legible, and refused with a sentence where they are not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from rich.color import ColorSystem
from textual.color import Color

from midstream import theme_files
from midstream.code.lexing import KINDS
from midstream.resources import themes_dir
from midstream.theme_files import DEFAULT_THEME, ROLES, Mix, Role, ThemeError
from midstream.tui.themes import (
    Palette,
    for_terminal,
    load_theme,
    load_themes,
)
from tests.helpers.contrast import contrast

THEMES, ERRORS = load_themes(themes_dir())


def text_pairs(palette: Palette) -> Iterable[tuple[str, Color, Color]]:
    """Every (name, text, ground) that the screen can show."""
    for role in theme_files.ROLES:
        for ground in role.on:
            yield f"{role.name} on {ground}", palette.colors[role.name], palette.colors[ground]


def test_eight_or_more_load_and_none_fails() -> None:
    assert not ERRORS
    assert len(THEMES) >= 8
    assert DEFAULT_THEME in THEMES
    assert any(palette.ansi for palette in THEMES.values())
    assert sum(not palette.dark for palette in THEMES.values()) >= 2


@pytest.mark.parametrize(
    "palette", [p for p in THEMES.values() if not p.ansi], ids=lambda p: p.name
)
def test_text_is_legible_on_everything_it_stands_on(palette: Palette) -> None:
    poor = {name: round(contrast(text, ground), 2) for name, text, ground in text_pairs(palette)}
    assert {name: ratio for name, ratio in poor.items() if ratio < 4.5} == {}


@pytest.mark.parametrize(
    "palette", [p for p in THEMES.values() if not p.ansi], ids=lambda p: p.name
)
def test_256_colours_keep_changes_apart_and_legible(palette: Palette) -> None:
    reduced = for_terminal(palette, "256")
    grounds = [reduced.colors[role] for role in ("background", "added", "deleted")]
    numbers = {color.rich_color.downgrade(ColorSystem.EIGHT_BIT).number for color in grounds}
    assert len(numbers) == 3
    for ground in grounds:
        assert contrast(reduced.colors["foreground"], ground) >= 4.5
    assert for_terminal(palette, "truecolor") is palette


@pytest.mark.parametrize("palette", list(THEMES.values()), ids=lambda p: p.name)
def test_textual_takes_every_theme(palette: Palette) -> None:
    theme = palette.to_textual()
    assert theme.to_color_system().generate()["background"]
    assert theme.variables["ms-accent"] == theme.accent
    assert palette.token_styles["comment"].italic


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('accent = "#7fb4ff"', 'accent = "blueish"'), "accent"),
        (('accent = "#7fb4ff"', ""), "no colour for accent"),
        (("[colors]", "[colours]"), 'no "colours" in a theme'),
        (("[syntax]", "[syntaxes]"), "syntax"),
        (('label = "Midnight"', 'diff = 3\nlabel = "Midnight"'), "diff is a table|cannot be read"),
        (("[colors]", '[colors]\nsparkle = "#ffffff"'), "sparkle"),
        (("dark = true", "dark = true\nshiny = 1"), "shiny"),
        (("dark = true", "dark = "), "cannot be read"),
    ],
)
def test_a_broken_theme_is_named(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    text = (themes_dir() / "midnight.toml").read_text()
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(*change))
    with pytest.raises(ThemeError, match=complaint) as caught:
        load_theme(path)
    assert "mine.toml" in str(caught.value)
    themes, errors = load_themes(themes_dir(), tmp_path)
    assert "mine" not in themes
    assert list(errors) == ["mine"]


def test_a_theme_of_the_user_replaces_the_shipped_one(tmp_path: Path) -> None:
    text = (themes_dir() / "midnight.toml").read_text().replace("Midnight", "Mine")
    (tmp_path / "midnight.toml").write_text(text)
    assert load_themes(themes_dir(), tmp_path)[0]["midnight"].label == "Mine"


SMALL = """\
[colors]
background = "#101010"
foreground = "#e0e0e0"
accent = "#80a0ff"
success = "#80d0a0"
warning = "#e0b070"
error = "#f09090"
"""


def test_a_theme_needs_only_the_colours_that_others_are_derived_from(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    palette = load_theme(tmp_path / "small.toml")
    assert set(palette.colors) == {role.name for role in ROLES}
    assert palette.colors["added_sign"] == palette.colors["success"]
    ground, added = palette.colors["background"], palette.colors["added"]
    assert added.g > ground.g
    poor = {name for name, text, on in text_pairs(palette) if contrast(text, on) < 4.5}
    assert not poor


def test_terminal_colours_are_never_mixed(tmp_path: Path) -> None:
    (tmp_path / "ansi.toml").write_text(
        "ansi = true\n" + SMALL.replace('"#101010"', '"ansi_default"')
    )
    palette = load_theme(tmp_path / "ansi.toml")
    assert palette.colors["panel"] == palette.colors["background"]


def test_syntax_roles_are_the_kinds_of_the_lexer() -> None:
    assert tuple(role.name for role in ROLES if role.table == "syntax") == KINDS


def test_a_new_role_reaches_every_theme_without_touching_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = Role("moved_line", "diff", "moved lines", Mix("background", "accent", 10))
    sign = Role("moved_sign", "diff", "their sign", Mix("accent"), on=("moved_line",))
    monkeypatch.setattr(theme_files, "ROLES", (*ROLES, role, sign))
    text = (themes_dir() / "paper.toml").read_text()
    (tmp_path / "mine.toml").write_text(text.replace("[diff]", '[diff]\nmoved_line = "#ffeecc"'))
    themes, errors = load_themes(themes_dir(), tmp_path)
    assert not errors
    assert len(themes) == len(THEMES) + 1
    assert themes["mine"].colors["moved_line"].hex == "#FFEECC"
    for palette in themes.values():
        assert palette.to_textual().variables["ms-moved-line"]
        assert palette.style("moved_sign", on="moved_line").bgcolor
        assert "moved_sign on moved_line" in {name for name, *_ in text_pairs(palette)}
        if not palette.ansi:
            pairs = {name: contrast(text, on) for name, text, on in text_pairs(palette)}
            assert pairs["moved_sign on moved_line"] >= 3
