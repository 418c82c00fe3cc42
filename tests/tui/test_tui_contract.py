"""The semi-internal parts of Textual that the screen relies on, held to the pinned version."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from textual import _ansi_sequences
from textual._compositor import Compositor
from textual._xterm_parser import XTermParser
from textual.events import Key
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from midstream.tui.compositor import SparingCompositor
from midstream.tui.eager import MIN_FRAME_S, EagerScreen
from midstream.tui.keymap import teach_sequences
from midstream.tui.widgets.file_bar import FileBar
from midstream.tui.widgets.key_bar import KeyBar
from midstream.tui.widgets.line_api import set_silently
from midstream.tui.widgets.status_row import StatusRow
from tests.helpers.stage import Stage
from tests.helpers.waiting import PATIENCE_S


def test_alt_enter_without_the_kitty_protocol() -> None:
    teach_sequences()
    assert keys_of("\x1b\r") == ["alt+enter"]
    assert keys_of("\r") == ["enter"]


def keys_of(text: str) -> list[str]:
    return [event.key for event in XTermParser().feed(text) if isinstance(event, Key)]


def test_escape_and_a_key_in_one_read_are_two_keys() -> None:
    names = {"?": "question_mark", "a": "a", "A": "A", "1": "1", ",": "comma"}
    with patch.dict(_ansi_sequences.ANSI_SEQUENCES_KEYS) as known:
        teach_sequences(["alt+v", "alt+less_than_sign", "a"])
        for character, name in names.items():
            assert keys_of(f"\x1b{character}") == ["escape", name]
        for sequence, key in {"\x1b[A": "up", "\x1bOP": "f1", "\x1bf": "ctrl+right"}.items():
            assert keys_of(sequence) == [key]
        assert "\x1bv" not in known
        assert "\x1b<" not in known


async def test_what_the_eager_screen_uses_is_there(stage: Stage) -> None:
    for name in ("_on_idle", "_on_timer_update", "_invoke_and_clear_callbacks", "_update_timer"):
        assert hasattr(Screen, name), name
    for name in ("layout", "scroll", "repaint", "recompose"):
        assert getattr(stage.screen, f"_{name}_required") in (True, False)
    assert isinstance(stage.screen._dirty_widgets, set)


async def test_a_text_that_changes_twice_around_a_layout_gets_its_height(stage: Stage) -> None:
    from textual.widgets import Static

    text = Static("one")
    await stage.screen.mount(text)
    await stage.pilot.pause()
    text.update("two")
    stage.screen._refresh_layout()  # As painting at once does, before the text is idle.
    text.update("three\nlines\nnow")
    await stage.pilot.pause(0.2)
    assert text.size.height == 3


async def test_a_change_is_painted_without_waiting_for_the_grid(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.open("pkg/things.py")
    screen = stage.screen
    await stage.pilot.pause(0.1)
    screen._update_timer.pause()
    monkeypatch.setattr(screen._update_timer, "resume", lambda: None)
    for _ in range(20):
        before = screen._last_paint
        async with asyncio.timeout(PATIENCE_S):
            while screen._last_paint == before:  # Not at once where something was painted just now.
                stage.pane.refresh()
                await asyncio.sleep(2 * MIN_FRAME_S)


async def test_fewer_widgets_are_asked_for_the_same_lines(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.pilot.pause(0.1)
    compositor = stage.screen._compositor
    assert isinstance(compositor, SparingCompositor)
    wanted = Compositor.render_full_update(compositor)
    given = compositor.render_full_update()
    for ours, textuals in zip(given.strips, wanted.strips, strict=True):
        assert [s.text for s in ours] == [s.text for s in textuals if s is not None]
    assert given.render_segments(stage.app.console) == wanted.render_segments(stage.app.console)
    asked = []
    stage.screen.query_one(KeyBar).render_lines = lambda crop: asked.append(crop) or []  # type: ignore[method-assign]
    compositor._dirty_regions.add(stage.pane.region)
    compositor.render_partial_update()
    assert asked == []


async def test_a_partial_update_is_written_out_as_textual_would(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.pilot.pause(0.1)
    compositor, console = stage.screen._compositor, stage.app.console
    width, height = compositor.size
    random = Random(7)
    for _ in range(40):
        regions = set()
        for _ in range(random.randint(1, 5)):
            x, y = random.randrange(width), random.randrange(height)
            wide, high = random.randint(1, width - x), random.randint(1, min(4, height - y))
            regions.add(Region(x, y, wide, high))
        written = []
        for render in (Compositor.render_partial_update, SparingCompositor.render_partial_update):
            compositor._dirty_regions.clear()
            compositor._dirty_regions.update(regions)
            update = render(compositor)
            assert update is not None
            # A move of the cursor to where nothing is written means nothing.
            text = update.render_segments(console)
            written.append(re.sub(r"\x1b\[\d+;\d+H(?=\x1b\[\d+;\d+H|\n|$)", "", text))
            assert not compositor._dirty_regions
        assert written[0] == written[1], regions
    assert compositor.render_partial_update() is None


async def test_what_has_the_focus_changes_without_a_paint_of_the_whole_screen(
    stage: Stage,
) -> None:
    await stage.open("pkg/things.py")
    with patch.object(SparingCompositor, "render_full_update", autospec=True) as whole:
        await stage.press("i")
        assert stage.screen.panes.composing
        await stage.press("escape")
        assert stage.pane.has_focus
    whole.assert_not_called()


async def test_what_a_widget_does_not_fill_is_painted_by_those_below(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.pilot.pause(0.1)
    compositor, console = stage.screen._compositor, stage.app.console
    status = stage.screen.query_one(StatusRow)
    for strips in ([], [Strip.blank(3)]):
        status.render_lines = lambda crop, strips=strips: strips  # type: ignore[method-assign]
        written = []
        for render in (Compositor.render_partial_update, SparingCompositor.render_partial_update):
            compositor._dirty_regions.add(status.region)
            update = render(compositor)
            assert update is not None
            written.append(update.render_segments(console))
        assert written[0] == written[1]


async def test_a_line_of_text_looks_as_textual_would_have_it(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    for name in stage.app.palettes:
        stage.app.use_theme(name)
        await stage.pilot.pause(0.05)
        for line in (stage.screen.query_one(StatusRow), stage.screen.query_one(FileBar)):
            crop = Region(0, 0, *line.size)
            mine = line.render_lines(crop)
            assert list(mine[0]) == list(Widget.render_lines(line, crop)[0]), (name, line)
            assert line.render_lines(crop)[0] is mine[0], "kept while nothing changes"
            part = line.render_lines(Region(3, 0, 20, 1))
            assert [strip.text for strip in part] == [mine[0].text[3:23]]


async def test_no_widget_paints_the_rows_between_two_changes(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.pilot.pause(0.1)
    screen = stage.screen
    asked: list[tuple[str, Region]] = []
    for widget in (stage.pane, screen.query_one(KeyBar), screen.query_one(StatusRow)):

        def note(crop: Region, widget: Widget = widget) -> list[Strip]:
            asked.append((widget.id or "", crop))
            return type(widget).render_lines(widget, crop)

        widget.render_lines = note  # type: ignore[method-assign]
    status, pane = screen.query_one(StatusRow).region, stage.pane.region
    rows = Region(pane.x, pane.y + 3, pane.width, 2)
    screen._compositor._dirty_regions.clear()
    screen._compositor._dirty_regions.update({status, rows})
    screen._compositor.render_partial_update()
    assert sorted(asked) == [
        ("pane", Region(0, 3, pane.width, 2)),
        ("status", Region(0, 0, status.width, 1)),
    ]


async def test_growing_silently_lays_nothing_out(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    pane, screen = stage.pane, stage.screen
    await stage.pilot.pause(0.1)
    set_silently(pane, Size(10, 5_000))
    assert not screen._layout_required
    assert not pane._layout_required
    assert pane.virtual_size == Size(10, 5_000)
    assert pane.max_scroll_y > 4_000


async def test_the_pane_paints_every_row_it_is_asked_for(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    pane = stage.pane
    width, height = pane.size
    strips = pane.render_lines(Region(0, 0, width, height))
    assert [strip.cell_length for strip in strips] == [width] * height
    part = pane.render_lines(Region(3, 2, 20, 4))
    assert [strip.text for strip in part] == [strip.text[3:23] for strip in strips[2:6]]


async def test_only_rows_that_differ_are_painted_again(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    pane = stage.pane
    await stage.pilot.pause(0.05)
    asked: list[Region] = []
    refresh = pane.refresh

    def note(*regions: Region, **options: bool) -> object:
        asked.extend(regions)
        return refresh(*regions, **options)

    pane.refresh = note  # type: ignore[method-assign]
    await stage.press("j")
    assert {y for region in asked for y in range(region.y, region.bottom)} == {0, 1}


@pytest.mark.parametrize("flag", ["", "1"])
def test_the_plain_paint_flag_gives_textuals_own_painting(flag: str) -> None:
    code = "from midstream.tui import eager; print(eager.EAGER)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MIDSTREAM_PLAIN_PAINT": flag},
        capture_output=True,
        text=True,
        check=True,
        cwd=Path.cwd(),
    )
    assert run.stdout.strip() == str(not flag)
    assert EagerScreen.__mro__[1] is Screen


async def test_kept_bindings_are_those_textual_would_find(stage: Stage) -> None:
    def found(chain: object) -> list[tuple[object, dict[str, list[object]]]]:
        return [(node, dict(bindings.key_to_bindings)) for node, bindings in chain]  # type: ignore[attr-defined]

    for keys in ((), ("escape",), ("i",), ("escape", "ctrl+e")):
        await stage.press(*keys)
        mine = stage.screen._binding_chain
        assert found(mine) == found(Screen._binding_chain.fget(stage.screen))
        assert stage.screen._binding_chain is mine
    stage.app.set_keymap({"hunk.accept": "f9"})
    assert found(stage.screen._binding_chain) == found(Screen._binding_chain.fget(stage.screen))
    keys = {key for _, bindings in stage.screen._binding_chain for key in bindings.key_to_bindings}
    assert "f9" in keys
