"""A theme of one's own shows while it is edited; a mistake keeps the colours as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from midstream.resources import themes_dir
from midstream.settings import Settings
from midstream.theme_files import DEFAULT_THEME
from midstream.tui.themes import ThemeFolder
from tests.helpers.stage import on_stage

TEXT = (themes_dir() / "midnight.toml").read_text()


def recoloured(color: str) -> str:
    lines = [
        f'accent = "{color}"' if line.startswith("accent") else line for line in TEXT.splitlines()
    ]
    return "\n".join(lines) + "\n"


def write(path: Path, text: str, age: int) -> None:
    path.write_text(text)
    os.utime(path, ns=(age * 10**9, age * 10**9))


def test_only_what_changed_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "themes"
    files = ThemeFolder(folder)
    assert not files.look().palettes
    folder.mkdir()
    write(folder / "mine.toml", TEXT, 1)
    write(folder / "bad.toml", "label = 1", 1)
    news = files.look()
    assert list(news.palettes) == ["mine"]
    assert "bad.toml" in str(news.errors[0])
    assert not files.look().errors
    write(folder / "mine.toml", recoloured("#ff0000"), 2)
    assert files.look().palettes["mine"].colors["accent"].hex == "#FF0000"
    (folder / "mine.toml").unlink()
    assert files.look().gone == {"mine"}


async def test_the_screen_follows_the_file(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config" / "config.toml"
    folder = config.parent / "themes"
    folder.mkdir(parents=True)
    write(folder / "mine.toml", TEXT, 1)
    monkeypatch.setenv("MIDSTREAM_CONFIG", str(config))
    settings = Settings(journal=False, attention=False, theme="mine")
    async with on_stage(project, settings=settings) as stage:
        app, pane = stage.app, stage.pane
        await stage.open("pkg/things.py")
        write(folder / "mine.toml", recoloured("#ff0000"), 2)
        app._look_at_themes()
        await stage.pilot.pause(0.1)
        assert app.palette.colors["accent"].hex == "#FF0000"
        assert app.get_css_variables()["ms-accent"].upper() == "#FF0000"
        assert pane._palette is app.palette
        assert "read again" in stage.notice
        # A mistake says so and changes nothing.
        write(folder / "mine.toml", recoloured("reddish"), 3)
        app._look_at_themes()
        assert "mine.toml" in stage.notice
        assert "stay as they were" in stage.notice
        assert app.palette.colors["accent"].hex == "#FF0000"
        # A new file can be chosen at once.
        write(folder / "other.toml", recoloured("#00ff00"), 1)
        app._look_at_themes()
        app.use_theme("other")
        assert app.palette.colors["accent"].hex == "#00FF00"


@pytest.mark.parametrize(
    ("theme", "own", "shown", "words"),
    [
        ("midnite", "", None, 'did you mean "midnight"?'),
        ("mine", "accent = 1", None, "mine.toml"),
        ("High contrast", "", "contrast", ""),
    ],
)
async def test_a_wrong_theme_never_keeps_the_program_from_starting(
    project: Path, state: Path, theme: str, own: str, shown: str | None, words: str
) -> None:
    if own:
        (state / "themes").mkdir()
        (state / "themes" / "mine.toml").write_text(own)
    settings = Settings(journal=False, attention=False, theme=theme)
    async with on_stage(project, settings=settings) as stage:
        palette = stage.app.palette
        assert palette.name in ((shown,) if shown else (DEFAULT_THEME, "ansi"))
        if words:
            await stage.until(lambda: words in stage.notice, "sentence")
            assert stage.notice.count(words) == 1
            assert stage.notice.endswith(f"{palette.label} is shown instead.")
        else:
            assert not stage.notice
