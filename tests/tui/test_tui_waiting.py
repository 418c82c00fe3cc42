"""A server that takes its time: the screen says so until the text comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.pairing.turn import responses
from midstream.serving import turn
from midstream.tui.app import MidstreamApp
from midstream.tui.widgets.status_row import StatusRow
from tests.helpers.slow_server import SlowServer
from tests.helpers.stage import Stage, ready


async def test_waiting_is_told_and_passes_with_the_text(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "WAITING_S", 0.05)
    server = SlowServer("def double(number):\n    return number + number\n")
    async with server.running() as settings:
        app = MidstreamApp(project, settings)
        async with ready(app) as stage:
            await stage.open("pkg/things.py")
            await stage.press("i")
            stage.composer.put("add in double")
            await stage.press("enter")
            await stage.until(lambda: "Still waiting for 127.0.0.1" in stage.notice, "notice")
            server.go.set()
            await stage.until(lambda: stage.session.status.state == "ready", "the answer")
            await stage.until(lambda: "waiting" not in stage.notice, "it passes")


async def test_how_much_of_a_prompt_is_read_is_shown_until_the_text_comes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "_READING_SECONDS", 0.0)
    row = stage.screen.query_one(StatusRow)
    await stage.open("pkg/things.py")
    stage.pane.go_to(5)
    await stage.instruct("rename total to found")
    stage.model.give(640)
    await stage.until(lambda: "640 of 3.0k tokens" in row.render().plain, "reading")
    assert row.render().plain.split()[1] == "reading"
    stage.model.give(1200)
    await stage.until(lambda: "1.8k of 3.0k tokens, " in row.render().plain, "more")
    assert "s left" in row.render().plain
    assert "tok/s" not in row.render().plain
    stage.model.give("def count(items):\n")
    await stage.until(lambda: "writing" in row.render().plain, "text")
    assert "of 3.0k" not in row.render().plain
    stage.model.end()
    await stage.until(lambda: stage.session.status.state == "ready", "the end")
