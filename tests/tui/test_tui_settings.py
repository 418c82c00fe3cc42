"""The settings page over a real configuration file: values, their sources, every way to change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from textual.events import Key

from midstream.settings import Settings, load_settings
from midstream.tui.app import MidstreamApp
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.pages.settings import SettingsScreen
from tests.helpers.pages import hints, page, rows, shown
from tests.helpers.stage import Stage, on_stage

FILE = """\
# mine
layout = "split"  # wide screen

[model]
pace = 40

[endpoints.desk]
url = "http://127.0.0.1:8080/v1"
model = "qwen"
"""


@pytest.fixture
def config(state: Path) -> Path:
    path = state / "config.toml"
    path.write_text(FILE)
    return path


@pytest.fixture
async def stage(project: Path, config: Path) -> AsyncIterator[Stage]:
    async with on_stage(project, settings=load_settings(project)) as stage:
        yield stage


def text_of(path: Path) -> str:
    return path.read_text()


async def opened(stage: Stage) -> SettingsScreen:
    return await page(stage, "comma", SettingsScreen)


async def to(stage: Stage, screen: SettingsScreen, value: str) -> None:
    """Put the cursor on a row with the keys."""
    await stage.press("g")
    for _ in range(60):
        if screen.list.value == value:
            return
        await stage.press("j")
    raise AssertionError(f"no row {value}")


async def type_in(stage: Stage, screen: SettingsScreen, text: str) -> None:
    await stage.until(lambda: screen.entry.is_open, "field")
    screen.entry.field.value = ""
    await stage.type(text)
    await stage.until(lambda: screen.entry.field.value == text, text)
    await stage.press("enter")


def row_of(screen: SettingsScreen, key: str) -> list[str]:
    return next(row.split() for row in rows(screen) if key in row.split())


async def test_every_value_with_its_source(stage: Stage, project: Path) -> None:
    screen = await opened(stage)
    assert row_of(screen, "layout") == ["layout", "split", "your", "file"]
    assert row_of(screen, "model.pace") == ["model.pace", "40", "your", "file"]
    assert row_of(screen, "journal") == ["journal", "on"]
    assert row_of(screen, "desk") == ["desk", "qwen", "custom"]
    assert row_of(screen, "theme")[-2:] == ["theme", "automatic"]
    assert "changed, 1 endpoint" in screen.title_row.render().plain
    await to(stage, screen, "layout")
    about = shown(screen, "about")
    assert "auto  default\n" in about
    assert "split  your file\n" in about
    assert 'in the file  layout = "split"' in about
    assert "environment  MIDSTREAM_LAYOUT" in about


@pytest.mark.system
async def test_a_switch_is_switched_written_and_holds(stage: Stage, config: Path) -> None:
    screen = await opened(stage)
    await to(stage, screen, "guard")
    assert hints(screen)[0] == "enter switch"
    await stage.press("space")
    await stage.until(lambda: "guard = false" in config.read_text(), "written")
    await stage.until(lambda: "guard is off now." in screen.notice.text, "sentence")
    assert not stage.session.guard.on
    assert "# mine\n" in text_of(config)
    assert row_of(screen, "guard") == ["▸", "guard", "off", "your", "file"]
    assert "backspace reset" in hints(screen)
    await stage.press("backspace")
    await stage.until(lambda: "guard" not in config.read_text(), "taken out")
    await stage.until(lambda: stage.session.guard.on, "holds")


async def test_a_choice_is_chosen_from_a_list(stage: Stage, config: Path) -> None:
    screen = await opened(stage)
    await to(stage, screen, "layout")
    await stage.press("enter")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "picker")
    await stage.type("uni")
    await stage.press("enter")
    await stage.until(lambda: 'layout = "unified"  # wide screen' in config.read_text(), "written")
    await stage.until(lambda: stage.pane.layout_choice == "unified", "holds")


@pytest.mark.system
async def test_themes_are_shown_while_choosing_and_escape_goes_back(
    stage: Stage, config: Path
) -> None:
    screen = await opened(stage)
    await stage.press("enter")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "picker")
    before = stage.app.palette.name
    await stage.press("down", "down")
    await stage.until(lambda: stage.app.palette.name != before, "preview")
    assert screen.palette is stage.app.palette
    await stage.press("escape")
    await stage.until(lambda: stage.app.screen is screen, "back")
    assert stage.app.palette.name == before
    assert screen.palette.name == before
    await stage.press("enter")
    await stage.type("paper")
    await stage.press("enter")
    await stage.until(lambda: 'theme = "paper"' in config.read_text(), "written")
    await stage.until(lambda: "theme is paper now." in screen.notice.text, "sentence")
    assert stage.app.palette.name == "paper"
    await stage.press("backspace")
    await stage.until(lambda: stage.app.palette.name == before, "default")


async def test_a_number_is_checked_before_it_is_written(stage: Stage, config: Path) -> None:
    screen = await opened(stage)
    await to(stage, screen, "threads")
    await stage.press("enter")
    await stage.until(lambda: screen.entry.is_open, "field")
    hints = [(hint.key, hint.words) for hint in screen.key_bar.hints]
    assert hints == [("enter", "save"), ("esc", "back")]
    await type_in(stage, screen, "many")
    assert "must be a whole number from 1 to 1024" in screen.notice.text
    assert screen.entry.is_open
    await type_in(stage, screen, "2")
    await stage.until(lambda: "threads = 2" in config.read_text(), "written")
    await stage.until(lambda: "from the next start" in screen.notice.text, "sentence")
    await stage.press("enter")
    await type_in(stage, screen, "")
    await stage.until(lambda: "threads" not in config.read_text(), "taken out")


async def test_escape_leaves_a_field_and_the_value(stage: Stage, config: Path) -> None:
    screen = await opened(stage)
    await to(stage, screen, "provider")
    await stage.press("enter")
    await stage.type("cuda")
    await stage.press("escape")
    assert stage.app.screen is screen
    assert not screen.entry.is_open
    assert text_of(config) == FILE
    await stage.press("escape")
    assert stage.app.screen is stage.screen


async def test_own_keys_are_typed_checked_and_hold_at_once(stage: Stage, config: Path) -> None:
    screen = await opened(stage)
    await to(stage, screen, "key_binds")
    await stage.press("enter")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "picker")
    await stage.type("theme choose")
    await stage.press("enter")
    await type_in(stage, screen, "crtl+y")
    assert 'there is no key "crtl+y"' in screen.notice.text
    await type_in(stage, screen, "ctrl+y")
    await stage.until(lambda: 'theme = "ctrl+y"' in config.read_text(), "written")
    await stage.until(lambda: stage.app.keys["theme"] == "ctrl+y", "holds")
    await stage.press("enter")
    await stage.type("theme choose")
    await stage.press("enter")
    await type_in(stage, screen, "u")
    await stage.until(lambda: '"decision.undo" has none' in screen.notice.text, "taken")
    await stage.press("escape", "escape")


async def test_a_guard_rule_gets_a_level(stage: Stage, config: Path) -> None:
    screen = await opened(stage)
    await to(stage, screen, "guard_levels")
    await stage.press("enter")
    await type_in(stage, screen, "S608 = loud")
    assert "has no level" in screen.notice.text
    await type_in(stage, screen, "S608 = warn")
    await stage.until(lambda: 'S608 = "warn"' in config.read_text(), "written")
    await stage.until(lambda: "S608" in " ".join(row_of(screen, "guard.*")), "row")
    await stage.press("enter")
    await type_in(stage, screen, "S608")
    await stage.until(lambda: "S608" not in config.read_text(), "taken out")


@pytest.mark.system
async def test_an_endpoint_is_made_changed_and_taken_out(stage: Stage, config: Path) -> None:
    screen = await opened(stage)
    await to(stage, screen, "+endpoint")
    await stage.press("enter")
    await type_in(stage, screen, "desk")
    assert "Give it a unique name" in screen.notice.text
    await type_in(stage, screen, "work")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "kinds")
    await stage.type("custom")
    await stage.press("enter")
    await type_in(stage, screen, "api.example.org")
    assert "must start with wss://" in screen.notice.text
    await type_in(stage, screen, "https://api.example.org/v1")
    await type_in(stage, screen, "deep-1")
    await stage.until(lambda: "[endpoints.work]" in config.read_text(), "written")
    await stage.until(lambda: "endpoints.work" in [r.value for r in screen.list.rows], "row")
    (profile,) = [p for p in load_settings().endpoints if p.name == "work"]
    assert (profile.kind, profile.url) == ("custom", "https://api.example.org/v1")
    await to(stage, screen, "endpoints.work")
    await stage.press("enter")
    await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "facts")
    await stage.type("context")
    await stage.press("enter")
    await type_in(stage, screen, "lots")
    await stage.until(lambda: "must be a whole number of tokens" in screen.notice.text, "refused")
    await stage.press("enter")
    await stage.type("context")
    await stage.press("enter")
    await type_in(stage, screen, "128000")
    await stage.until(lambda: "context = 128000" in config.read_text(), "context")
    await stage.press("backspace", "1")
    await stage.until(lambda: "work" not in config.read_text(), "gone")
    assert 'url = "http://127.0.0.1:8080/v1"' in text_of(config)


async def test_the_file_is_edited_in_the_users_editor(
    stage: Stage, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/split/unified/' \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setattr(MidstreamApp, "suspend", lambda self: nullcontext())
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    screen = await opened(stage)
    await stage.press("e")
    await stage.until(lambda: "is saved and read again" in screen.notice.text, "saved")
    assert text_of(config) == FILE.replace("split", "unified")
    assert screen.resolved["layout"].value == "unified"
    editor.write_text("#!/bin/sh\necho '[' >> \"$1\"\n")
    await stage.press("e")
    await stage.until(lambda: "not valid TOML" in screen.notice.text, "trouble")
    assert text_of(config).endswith("[\n")


async def test_find_shows_only_what_fits(stage: Stage) -> None:
    screen = await opened(stage)
    await stage.press("slash")
    await stage.type("pace")
    await stage.until(lambda: len(screen.list.rows) == 2, "narrowed")
    await stage.press("enter")
    assert screen.list.value == "pace"
    await stage.press("escape")
    assert stage.app.screen is screen
    assert len(screen.list.rows) > 10
    await stage.press("slash")
    await stage.type("zzz")
    await stage.until(lambda: 'No setting contains "zzz"' in screen.notice.text, "nothing")
    await stage.press("escape")
    assert len(screen.list.rows) > 10


async def test_what_overrules_the_file_is_said(
    project: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSTREAM_JOURNAL", "no")
    settings = load_settings(project)
    async with on_stage(project, settings=settings, flags={"threads": 3}) as stage:
        screen = await opened(stage)
        assert row_of(screen, "journal") == ["journal", "off", "environment"]
        assert row_of(screen, "model.threads")[-2:] == ["command", "line"]
        await to(stage, screen, "journal")
        await stage.press("enter")
        await stage.until(lambda: "journal = true" in config.read_text(), "written")
        await stage.until(lambda: screen.notice.is_shown, "sentence")
        assert screen.notice.text == (
            "Written, but MIDSTREAM_JOURNAL sets it to off here and wins."
        )


@pytest.fixture
def broken(stage: Stage, config: Path) -> Path:
    """The file is broken by hand while the program runs."""
    config.write_text("layout = \n")
    return config


async def test_a_broken_file_is_said_and_left_alone(stage: Stage, broken: Path) -> None:
    screen = await opened(stage)
    assert "is not valid TOML" in screen.notice.text
    await stage.press("enter")
    assert "is not valid TOML" in screen.notice.text
    assert text_of(broken) == "layout = \n"


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_rows_fit_and_ascii_is_ascii(
    project: Path, config: Path, size: tuple[int, int]
) -> None:
    settings = Settings(journal=False, ascii=True)
    async with on_stage(project, size=size, settings=settings) as stage:
        screen = await opened(stage)
        for row in rows(screen):
            assert len(row) <= screen.list.size.width
            assert row.isascii()
        await stage.press("G")
        assert screen.list.value == "+endpoint"
        assert str(screen.detail.border_title).strip() == "A new endpoint"


async def test_a_burst_of_keys_acts_in_its_order(stage: Stage, config: Path) -> None:
    screen = await opened(stage)
    for key, character in (("down", None), ("down", None), ("space", " ")):
        stage.app.post_message(Key(key, character))
    await stage.until(lambda: "ascii = true" in config.read_text(), "written")
    assert stage.app.screen is screen


async def test_a_tiny_screen_shows_more_than_one_setting(project: Path, config: Path) -> None:
    async with on_stage(project, size=(40, 12), settings=load_settings(project)) as stage:
        screen = await opened(stage)
        assert screen.list.size.height >= 4
        assert screen.detail.size.height >= 3
        title = screen.title_row.render().plain
        assert title.startswith(" Settings  ·  ")
        assert title.endswith("…")
        assert len(title) < 40
