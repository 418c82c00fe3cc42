"""The committed pictures show the screens as they are now.

The walk of ``screenshots/make.py`` is gone through again, in one theme, and the words of every
moment are compared with those of its pictures.  ``python screenshots/make.py`` makes them anew.
"""

from __future__ import annotations

import difflib
from types import ModuleType

import pytest

from midstream.resources import themes_dir
from midstream.tui.themes import load_theme
from tests.helpers import screenshots
from tests.helpers.screenshots import FOLDER

pytestmark = pytest.mark.system

MAX_BYTES = 6_000_000
"""Bytes of all pictures together."""


@pytest.fixture(scope="module")
def make() -> ModuleType:
    return screenshots.load()


@pytest.mark.parametrize("size", ["wide", "small"])
async def test_the_pictures_are_not_stale(make: ModuleType, size: str) -> None:
    stale: list[str] = []
    async for picture in make.pictures(size, themes=False):
        moment = picture.name.partition("-")[0]
        now = make.words_of(picture.svg)
        assert any(row.strip() for row in now)
        for theme in make.themes_of(moment):
            name = make.name_of(moment, size, theme)
            kept = make.words_of((FOLDER / f"{name}.svg").read_text("utf-8"))
            if kept != now:
                changes = difflib.unified_diff(kept, now, f"{name}.svg", "now", lineterm="", n=0)
                stale.append("\n".join(changes))
    assert not stale, "\n\n".join(["run: python screenshots/make.py", *stale])


def test_every_picture_belongs_to_a_moment_and_has_its_colours(make: ModuleType) -> None:
    pictures = {path.stem: path.read_text("utf-8") for path in FOLDER.glob("*.svg")}
    wanted = {
        make.name_of(name.partition("-")[0], size, theme): theme
        for name in pictures
        for size in make.SIZES
        for theme in make.themes_of(name.partition("-")[0])
        if (name.partition("-")[0], size) != ("split", "small")
    }
    assert set(pictures) == set(wanted)
    for name, svg in pictures.items():
        theme = load_theme(themes_dir() / f"{wanted[name]}.toml")
        assert theme.colors["background"].hex.lower() in svg.lower(), name
    assert sum(len(svg.encode()) for svg in pictures.values()) < MAX_BYTES
