"""Choosing from a list: files and themes."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.geometry import Region
from textual.widgets import Input, Static

from midstream.demo import DemoInfo
from midstream.settings import load_settings
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.pages.settings import SettingsScreen
from midstream.tui.widgets.row_list import ListRow, RowList
from tests.helpers.contrast import contrast
from tests.helpers.pages import git
from tests.helpers.stage import Stage, on_stage


async def test_themes_are_previewed_and_given_back(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    before = stage.app.palette.name
    await stage.press("T", "down")
    await stage.until(lambda: stage.app.palette.name != before, "preview")
    await stage.press("escape")
    await stage.until(lambda: stage.app.palette.name == before, "given back")


async def test_light_themes_are_marked_and_found(stage: Stage) -> None:
    await stage.press("escape", "T")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "picker")
    rows = stage.app.screen.query_one(RowList)
    light = {name for name, palette in stage.app.palettes.items() if not palette.dark}
    marked = {row.value for row in rows.rows if ("  light", "muted") in row.left}
    assert marked == light
    await stage.press("slash")
    await stage.type("light")
    assert {row.value for row in rows.rows} >= light
    await stage.press("escape")


@pytest.mark.parametrize("opening", ["T", "m", "colon"])
async def test_every_letter_narrows_any_list_down(stage: Stage, opening: str) -> None:
    await stage.press("escape", opening)
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "picker")
    field, rows = stage.app.screen.query_one(Input), stage.app.screen.query_one(RowList)
    await stage.type("jkg")
    assert field.value == "jkg"
    await stage.press("backspace", "backspace", "backspace")
    await stage.until(lambda: len(rows.rows) > 2, "all rows")
    first = rows.cursor
    await stage.press("down")
    second = rows.cursor
    assert second != first
    for there, back in (("ctrl+n", "ctrl+p"), ("ctrl+k", "ctrl+j"), ("tab", "shift+tab")):
        await stage.press(there)
        assert rows.cursor != second
        await stage.press(back)
        assert rows.cursor == second
    await stage.type("k")
    assert field.value == "k", "letters narrow down after a move, too"
    await stage.press("escape")


CALLED = {
    "vim": "setting keys",
    "guard": "setting guard",
    "api key": "models",
    "redirect": "compose",
    "undo": "decision.undo",
    "dark": "theme",
    "revert": "decision.undo",
    "diff": "layout",
    "agent": "review.external",
    "chat": "conversation",
    "cancel": "model.stop",
    "clipboard": "copy",
}
"""Words of people, and the actions that they mean."""


async def in_the_palette(stage: Stage, typed: str) -> list[str]:
    """The rows of the palette for a typed text."""
    await stage.press("escape", "colon")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "picker")
    rows = stage.app.screen.query_one(RowList)
    await stage.type(typed)
    found = [str(row.value) for row in rows.rows]
    await stage.press("escape")
    await stage.until(lambda: stage.app.screen is stage.screen, "closed")
    return found


@pytest.mark.system
async def test_the_palette_finds_what_people_call_it(stage: Stage) -> None:
    for typed, meant in CALLED.items():
        assert meant in (await in_the_palette(stage, typed))[:8], typed


async def test_the_palette_has_actions_before_settings(stage: Stage) -> None:
    for typed in ("theme", "guard", "layout"):
        values = await in_the_palette(stage, typed)
        assert values.index(f"setting {typed}") >= 1
        assert not values[0].startswith("setting "), typed


@pytest.mark.parametrize("typed", ["unread", "skimmed", "attention", "what did i not look at"])
async def test_the_walk_is_found_by_what_was_not_read(stage: Stage, typed: str) -> None:
    assert (await in_the_palette(stage, typed))[0] == "walk"


async def test_a_slash_is_no_letter_where_the_field_has_the_keys(stage: Stage) -> None:
    await stage.press("escape", "colon")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "picker")
    rows = stage.app.screen.query_one(RowList)
    await stage.press("slash")
    everything = len(rows.rows)
    assert everything > 1
    await stage.type("undo")
    assert rows.rows[0].value == "decision.undo"
    await stage.press("escape")


async def test_a_setting_opens_from_the_palette(stage: Stage) -> None:
    await stage.press("escape", "colon")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "picker")
    await stage.type("emacs")
    await stage.press("enter")
    await stage.until(lambda: isinstance(stage.app.screen, SettingsScreen), "settings")
    rows = stage.app.screen.query_one(RowList)
    await stage.until(lambda: rows.value == "keys", f"the setting under the cursor, {rows.value}")


async def test_a_chosen_theme_is_kept(stage: Stage, project: Path, state: Path) -> None:
    file = state / "config.toml"
    file.write_text('# mine\nlayout = "split"  # wide\n')
    await stage.press("escape", "T")
    await stage.type("paper")
    await stage.press("enter")
    await stage.until(lambda: "Theme Paper, saved in" in stage.notice, "kept")
    assert file.read_text() == '# mine\nlayout = "split"  # wide\ntheme = "paper"\n'
    assert load_settings(project).theme == stage.app.palette.name == "paper"
    await stage.press("T", "down", "escape")
    await stage.until(lambda: stage.app.palette.name == "paper", "given back")
    assert load_settings(project).theme == "paper"


async def test_the_demo_leaves_the_settings_alone(project: Path, state: Path) -> None:
    async with on_stage(project, demo=DemoInfo(project, ())) as stage:
        await stage.press("escape", "T")
        await stage.type("paper")
        await stage.press("enter")
        await stage.until(lambda: "for this demo" in stage.notice, "said")
        assert stage.notice.endswith("midstream config theme paper keeps it.")
        assert stage.app.palette.name == "paper"
    assert not (state / "config.toml").exists()


@pytest.mark.system
async def test_what_keeps_a_theme_from_being_kept_is_said(
    stage: Stage, project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSTREAM_THEME", "dusk")
    await stage.press("escape", "T")
    await stage.type("paper")
    await stage.press("enter")
    await stage.until(lambda: "MIDSTREAM_THEME sets it to dusk here" in stage.notice, "overruled")
    assert stage.app.palette.name == "paper"
    monkeypatch.setenv("MIDSTREAM_CONFIG", str(project / "notes.md" / "config.toml"))
    await stage.press("T", "down", "enter")
    await stage.until(lambda: "until you quit" in stage.notice, "no file")
    assert "Not a directory" in stage.notice
    assert stage.app.palette.name != "paper"


async def test_a_path_that_is_not_listed_opens_when_it_is_typed(
    stage: Stage, project: Path
) -> None:
    git(project, "init", "-q")
    (project / ".gitignore").write_text("hidden/\n")
    (project / "hidden").mkdir()
    (project / "hidden" / "one.py").write_text("x = 1\n")
    await stage.press("escape", "o")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "picker")
    rows = stage.app.screen.query_one(RowList)
    await stage.type("hidden/on")
    assert rows.value != "hidden/one.py"
    await stage.type("e.py")
    await stage.until(lambda: rows.value == "hidden/one.py", "row")
    await stage.press("enter")
    await stage.until(lambda: stage.path == "hidden/one.py", "file")


async def test_a_picker_says_that_nothing_matches(stage: Stage) -> None:
    await stage.press("escape", "T")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "picker")
    picker = stage.app.screen
    box = picker.query_one("Vertical").size
    words = picker.query_one(".none", Static)
    assert not words.display
    await stage.type("zqq")
    await stage.until(lambda: words.display, "words")
    assert str(words.render()) == "Nothing here matches zqq; delete a letter."
    assert words.region.y == picker.query_one(Input).region.y + 2
    assert not picker.query_one(RowList).display
    assert picker.query_one("Vertical").size == box
    await stage.press("enter")
    assert stage.app.screen is picker
    await stage.press("backspace", "backspace", "backspace")
    await stage.until(lambda: not words.display, "rows")
    await stage.press("escape")
    await stage.until(lambda: stage.app.screen is stage.screen, "closed")


async def test_a_box_over_the_screen_has_the_only_keys(stage: Stage) -> None:
    bar = stage.screen.panes.keys
    assert "keys" in bar.render().plain
    await stage.press("escape", "colon")
    await stage.until(lambda: not bar.render().plain.strip(), "no keys below the box")
    await stage.press("escape")
    await stage.until(lambda: "keys" in bar.render().plain, "its keys again")


@pytest.mark.system
async def test_placeholders_are_legible_and_cursors_stand_out_in_every_theme(stage: Stage) -> None:
    panes = stage.screen.panes
    panes.search.open("", placeholder="a text")
    await stage.press("escape", "colon")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "palette")
    fields = (
        (panes.composer.field, "text-area--placeholder"),
        (panes.search.field, "input--placeholder"),
        (stage.app.screen.query_one(Input), "input--placeholder"),
    )
    for name, palette in stage.app.palettes.items():
        if palette.ansi:
            continue
        stage.app.use_theme(name)
        await stage.pilot.pause()
        for field, part in fields:
            style = field.get_visual_style(part)
            ratio = contrast(style.foreground, style.background)
            assert ratio >= 4.5, f"{name}: {field} has {ratio:.1f}"
        cursor = panes.composer.field.get_visual_style("text-area--cursor")
        assert cursor.background.hex == palette.colors["accent"].hex


async def test_a_list_is_as_wide_as_its_rows(stage: Stage) -> None:
    rows = [ListRow(str(n), ((f" {'x' * 20} ", "foreground"), ("y" * n, "muted"))) for n in (9, 85)]
    picker = PickerScreen(stage.app, "Rows", rows)
    stage.app.push_screen(picker)
    await stage.until(lambda: stage.app.screen is picker, "list")
    await stage.pilot.pause()
    assert picker.list.columns > len("".join(text for text, _ in picker.list.rows[1].left))


async def test_a_gap_parts_the_cursor_of_a_picker_from_the_text(stage: Stage) -> None:
    await stage.press("escape", "o")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "picker")
    listed = stage.app.screen.query_one(RowList)
    await stage.until(lambda: listed.size.width, "its size")
    first = listed.render_lines(Region(0, 0, listed.size.width, 1))[0].text
    assert first.startswith(f"{stage.app.glyphs.cursor} {stage.screen.state.files[0]}")
