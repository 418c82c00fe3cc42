"""Uses of tools beside the code: one line each, and one widget for consecutive ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.pilot import Pilot

from midstream.agents.messages import AgentToolCall, ToolDiff
from midstream.pairing.chat.entries import QuestionState, ToolUse
from midstream.resources import themes_dir
from midstream.tui.conversation.tools import MAX_DIFF_LINES, ToolLine, ToolLines
from midstream.tui.glyphs import UNICODE
from midstream.tui.themes import load_theme
from midstream.tui.widgets import line_api

PALETTE = load_theme(themes_dir() / "midnight.toml")


def used(number: int, **facts: Any) -> ToolUse:
    return ToolUse(AgentToolCall(f"t{number}", f"use {number}", status="completed", **facts))


class ToolsApp(App[None]):
    def __init__(self, uses: list[ToolUse]) -> None:
        super().__init__()
        self.register_theme(PALETTE.to_textual())
        self.tools = ToolLines(uses, PALETTE, UNICODE, Path("/project"))
        self.opened: list[ToolLine] = []

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield self.tools

    def on_tool_lines_opened(self, event: ToolLines.Opened) -> None:
        self.opened.append(event.line)


@asynccontextmanager
async def shown(uses: list[ToolUse]) -> AsyncIterator[tuple[Pilot[None], ToolLines]]:
    async with ToolsApp(uses).run_test(size=(40, 20)) as pilot:
        assert isinstance(pilot.app, ToolsApp)
        await pilot.pause()
        yield pilot, pilot.app.tools


def rows(widget: ToolLines) -> list[str]:
    """The painted rows, without the spaces at their ends."""
    strips = widget.render_lines(widget.outer_size.region)
    assert {strip.cell_length for strip in strips} == {widget.outer_size.width}
    return [strip.text.strip() for strip in strips]


async def test_uses_that_come_are_added_and_only_what_has_changed_is_painted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uses = [used(number) for number in range(3)]
    async with shown(uses) as (pilot, widget):
        assert rows(widget) == ["✓ use 0", "✓ use 1", "✓ use 2"]
        painted: list[str] = []

        def noted(*args: object) -> object:
            painted.append(str(args[1]))
            return line_api.painted(*args)  # type: ignore[arg-type]

        monkeypatch.setattr("midstream.tui.conversation.tools.painted", noted)
        uses.append(used(3))
        uses[1].call = replace(uses[1].call, status="failed")
        widget.update()
        await pilot.pause()
        assert rows(widget) == ["✓ use 0", "! use 1", "✓ use 2", "✓ use 3"]
        assert sorted(painted) == ["! use 1", "✓ use 3"]


async def test_what_is_unfolded_or_asked_about_has_more_rows() -> None:
    uses = [used(0), used(1, text="```\nword word word word word word word word\n```"), used(2)]
    async with shown(uses) as (pilot, widget):
        folded = ["✓ use 0", "✓ use 1", "✓ use 2"]
        assert rows(widget) == folded
        widget.lines[1].unfolded = True
        widget.update()
        await pilot.pause()
        assert rows(widget) == [
            *folded[:2],
            "word word word word word word word",
            "word",
            folded[2],
        ]
        assert widget.region_of(widget.lines[2]).y == 4
        widget.lines[1].unfolded = False
        uses[0].question = QuestionState.OPEN
        uses[0].call = replace(uses[0].call, text="rm -r build")
        widget.update()
        await pilot.pause()
        assert rows(widget) == ["? use 0", "rm -r build", "✓ use 1", "✓ use 2"]
        assert widget.lines[0].opens == ""


async def test_the_first_lines_of_a_large_edit_are_shown() -> None:
    before, after = ("".join(f"{n} {word}\n" for n in range(9000)) for word in ("is", "was"))
    use = used(0, diffs=(ToolDiff("/project/a.py", f"one\n{before}", f"one\n{after}"),))
    use.question = QuestionState.OPEN
    async with shown([use]) as (_, widget):
        lines = [f"- {number} is" for number in range(MAX_DIFF_LINES)]
        assert rows(widget) == ["? use 0", "a.py", *lines, "… many more lines"]


async def test_a_long_title_is_cut_where_the_row_ends() -> None:
    async with shown([ToolUse(AgentToolCall("t", "long " * 30))]) as (_, widget):
        (row,) = rows(widget)
        assert row.endswith("…")


async def test_the_mouse_opens_a_line_and_selects_words() -> None:
    uses = [used(number) for number in range(4)]
    async with shown(uses) as (pilot, widget):
        app = pilot.app
        assert isinstance(app, ToolsApp)
        await pilot.click(widget, offset=(4, 2))
        await pilot.pause()
        assert app.opened == [widget.lines[2]]
        await pilot.mouse_down(widget, offset=(3, 1))
        await pilot.hover(widget, offset=(5, 2))
        await pilot.pause()
        assert "use 1\n✓ us" in (app.screen.get_selected_text() or "")
        assert rows(widget) == [f"✓ use {number}" for number in range(4)]
