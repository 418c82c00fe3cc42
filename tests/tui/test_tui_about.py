"""The facts that `!` shows about the hunk under the cursor, below its first lines."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, cast

import pytest
from test_tui_snapshots import FACTS
from textual.pilot import Pilot

from midstream.agents.catalogue import KnownAgent
from midstream.pairing.files import put_backs
from midstream.pairing.review.uses import UsePlace
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from midstream.tui.pages.sheet import HalfReadingScreen
from midstream.tui.review import about, look_up, status
from tests.helpers.scripted_agent import BEGIN, command
from tests.helpers.stage import CODE, Stage, on_stage
from tests.helpers.stepped import SteppedModel

END = {"result": {"stopReason": "end_turn"}}
AFTER = CODE.replace("number * 2", "number + number")


def steps(path: Path) -> list[dict[str, Any]]:
    words = {"type": "text", "text": "Doubling is\na **sum**."}
    said = {"sessionUpdate": "agent_message_chunk", "content": words}
    diff = {"type": "diff", "path": str(path), "oldText": CODE, "newText": AFTER}
    call = {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Edit things.py"}
    edit = {**call, "kind": "edit", "content": [diff]}
    return [{"update": said}, {"update": edit}, {"write": {str(path): AFTER}}, END]


def told(stage: Stage) -> str:
    sheet = stage.app.screen
    assert isinstance(sheet, HalfReadingScreen)
    return "\n".join(
        "\n".join((paragraph.heading, *(line for line, _ in paragraph.lines)))
        for paragraph in sheet.paragraphs
    )


async def review_of_others(stage: Stage, project: Path) -> None:
    """Begin a review with one hunk, which another program wrote."""
    await stage.until(lambda: stage.session.external.watching == "native", "watching")
    await stage.open("pkg/things.py")
    await stage.press("V")
    await stage.until(lambda: stage.session.review.on, "a review")
    (project / "pkg/things.py").write_text(AFTER)
    await stage.until(stage.session.hunks.undecided, "a hunk")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)


async def test_who_wrote_a_hunk_and_why(project: Path, tmp_path: Path) -> None:
    async with on_stage(project) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        path = project / "pkg/things.py"
        script = {**BEGIN, "session/prompt": steps(path)}
        await stage.session.agent.begin(KnownAgent("", "Agent", tuple(command(tmp_path, script))))
        stage.session.agent.send("double without a product")
        await stage.until(stage.session.hunks.undecided, "a hunk")
        await stage.until(lambda: not stage.session.agent.busy, "the end of the turn")
        await stage.press("escape", "]")
        await stage.until(lambda: stage.pane.hunk is not None, "the cursor on it")
        await stage.press("exclamation_mark")
        words = told(stage)
        assert "Written by\nScripted, turn 1, noticed today " in words
        assert "asked: double without a product\nsaid:  Doubling is a sum.\nby:    Edit" in words
        await stage.press("exclamation_mark")
        assert stage.app.screen is stage.screen


async def test_what_others_wrote_has_a_time(project: Path) -> None:
    async with on_stage(project) as stage:
        await review_of_others(stage, project)
        await stage.press("]", "exclamation_mark")
        words = "Written on disk by another program or your editor, noticed today "
        assert words in told(stage)
        await stage.press("escape")
        assert stage.app.screen is stage.screen


@pytest.mark.parametrize(("count", "first"), [(200, 97), (200, 3), (200, 194), (18, 12)])
async def test_the_first_lines_of_a_hunk_stay_in_view_on_a_small_screen(
    project: Path, count: int, first: int
) -> None:
    lines = [f"x{n} = {n}" for n in range(count)]
    (project / "long.py").write_text("\n".join(lines))
    async with on_stage(project, size=(80, 24)) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await stage.open("long.py")
        await stage.press("V")
        await stage.until(lambda: stage.session.review.on, "a review")
        lines[first : first + 6] = [f"y{n} = {n}" for n in range(6)]
        (project / "long.py").write_text("\n".join(lines))
        await stage.until(stage.session.hunks.undecided, "a hunk")
        await stage.press("]")
        await stage.until(lambda: stage.pane.hunk is not None, "the cursor on it")
        pane, view = stage.pane, stage.screen.state.view
        rows = view.rows_of(pane.hunk.id)
        pane.scroll_to_row(rows[0] - pane.height + 3)  # the hunk begins at the lower edge
        await stage.press("exclamation_mark")
        sheet = stage.app.screen
        assert isinstance(sheet, HalfReadingScreen)
        seen = range(pane.lines_above(rows[0]), pane.lines_above(rows[0]) + 4)
        covered = range(sheet.box.region.y, sheet.box.region.bottom)
        assert seen.start >= 0
        assert seen.stop <= pane.height
        assert not set(covered).intersection(pane.region.y + line for line in seen)
        await stage.press("escape")
        assert stage.app.screen is stage.screen
        assert pane.hunk is not None


@pytest.mark.system  # a child process reads a package
async def test_uses_and_tests_of_a_hunk_are_filled_in(project: Path) -> None:
    (project / "pkg/twice.py").write_text("from pkg.things import double\n\nprint(double(2))\n")
    tests = "from pkg.things import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
    (project / "test_things.py").write_text(tests)
    async with on_stage(project) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await stage.open("pkg/things.py")
        await stage.press("V")
        await stage.until(lambda: stage.session.review.on, "a review")
        path = project / "pkg/things.py"
        path.write_text(AFTER)
        await stage.until(stage.session.hunks.undecided, "a hunk")
        await stage.press("]", "exclamation_mark")
        assert "Used by\nlooking" in told(stage)
        await stage.until(lambda: "looking" not in told(stage), "what uses it")
        assert "`double`: 2 lines in 1 file\n  pkg/twice.py:1  from pkg" in told(stage)
        assert "--cov-context=test` makes them\ntests that name it:\n" in told(stage)
        assert "  test_things.py:5  test_double" in told(stage)
        await stage.press("escape")
        (project / "lcov.info").write_text("SF:pkg/things.py\nDA:17,1\nend_of_record\n")
        os.utime(path, (1_000, 1_000))
        await stage.press("exclamation_mark")
        await stage.until(lambda: "looking" not in told(stage), "what covers it")
        assert "run, but the coverage data name no test (lcov.info of today " in told(stage)
        await stage.press("escape")
        os.utime(project / "lcov.info", (500, 500))
        await stage.press("exclamation_mark")
        await stage.until(lambda: "looking" not in told(stage), "what covers it")
        words = "is older than the file; run the tests with coverage again\ntests that name it:\n"
        assert words in told(stage)
        assert "test_things.py:5  test_double" in told(stage)


async def test_closing_ends_the_search(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def never(*_: object) -> list[UsePlace]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return []

    monkeypatch.setattr(look_up, "find_places", never)
    async with on_stage(project) as stage:
        await review_of_others(stage, project)
        await stage.press("]", "exclamation_mark")
        await stage.until(begun.is_set, "the search")
        assert not ended.is_set()
        await stage.press("escape")
        await stage.until(ended.is_set, "the end of the search")


async def test_what_others_write_beside_an_answer_is_not_of_its_turn(project: Path) -> None:
    async with on_stage(project) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await stage.open("pkg/things.py")
        await stage.press("V")
        await stage.until(lambda: stage.session.review.on, "a review")
        stage.pane.go_to(7)
        await stage.instruct("count lists only")
        stage.model.give(stage.model.region.replace("true", "lists"))
        await stage.until(stage.session.hunks.undecided, "a hunk")
        turns = stage.session.turns
        assert turns.last is not None
        assert turns.last.running
        (mine,) = stage.session.hunks.undecided()
        assert turns.of(mine) is turns.last
        (project / "pkg/things.py").write_text(AFTER)
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 2, "their hunk")
        (theirs,) = (hunk for hunk in stage.session.hunks.undecided() if hunk.external)
        assert turns.of(theirs) is None
        stage.model.give(None)
        await stage.until(lambda: stage.session.status.state == "ready", "the end")
        assert (turns.of(mine), turns.of(theirs)) == (turns.last, None)


async def test_an_answer_of_the_model_has_its_instruction(project: Path) -> None:
    async with on_stage(project) as stage:
        await stage.open("pkg/things.py")
        stage.pane.go_to(16)
        await stage.instruct("double by a sum")
        stage.model.give(stage.model.region.replace("number * 2", "number + number"))
        stage.model.give(None)
        await stage.until(stage.session.hunks.undecided, "a hunk")
        await stage.until(lambda: stage.session.status.state == "ready", "the end")
        await stage.press("escape", "]", "exclamation_mark")
        assert "Written by\nThe model, for pkg/things.py\nasked: double by a sum" in told(stage)


@pytest.mark.system
@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["small", "wide"])
def test_pictures(
    snap_compare: Any, project: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(status, "status_facts", lambda state: FACTS)
    for module in (about, look_up):
        monkeypatch.setattr(module, "when", lambda seconds: "today 10:32")
    (project / "pkg/twice.py").write_text("from pkg.things import double\n\nprint(double(2))\n")
    report = "SF:pkg/things.py\nDA:16,1\nDA:17,0\nend_of_record\n"

    async def opened(pilot: Pilot[None]) -> None:
        stage = Stage(cast("MidstreamApp", pilot.app), pilot, SteppedModel({}))
        await stage.until(lambda: stage.app.session is not None, "a session")
        await review_of_others(stage, project)
        (project / "lcov.info").write_text(report)
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 2, "the report")
        await stage.press("]", "g", "]")
        stage.screen.notices.clear()
        stage.screen.notices.said.clear()
        await stage.press("exclamation_mark")
        await stage.until(lambda: "looking" not in told(stage), "what is known")
        sheet = stage.app.screen
        assert isinstance(sheet, HalfReadingScreen)
        scrolling = "j and k scroll, esc closes"
        await stage.until(lambda: sheet.scrolls == (sheet.box.border_subtitle == scrolling))

    chosen = Settings(journal=False, attention=False, endpoint_url="http://127.0.0.1:1/v1")
    assert snap_compare(MidstreamApp(project, chosen), terminal_size=size, run_before=opened)
