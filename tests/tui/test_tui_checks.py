"""The checks page with real commands: running, confirming, places, asking the model."""

from __future__ import annotations

import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from midstream.pairing.checks.run import CheckState
from midstream.pairing.request.question import Question
from midstream.settings import Settings
from midstream.tui.pages.checks import ChecksScreen
from midstream.tui.pages.settings import SettingsScreen
from tests.helpers.pages import hints, page, rows, shown
from tests.helpers.stage import Stage, on_stage

FAILING = (
    "print('pkg/things.py:8: error: total is not found')\n"
    "print('pkg/things.py:17: error: too small')\n"
    "raise SystemExit(2)"
)


def settings(code: str) -> Settings:
    command = shlex.join([sys.executable, "-c", code])
    return Settings(journal=False, attention=False, check_command=command)


async def ended(stage: Stage, state: CheckState) -> None:
    await stage.until(lambda: stage.session.check.state is state, state.name)
    await stage.pilot.pause(0.3)


async def checks(stage: Stage) -> ChecksScreen:
    await stage.open("pkg/things.py")
    return await page(stage, "ctrl+r", ChecksScreen)


async def test_places_are_listed_opened_and_walked(project: Path) -> None:
    async with on_stage(project, settings=settings(FAILING)) as stage:
        screen = await checks(stage)
        await ended(stage, CheckState.FAILED)
        assert [" ".join(row.split()) for row in rows(screen)] == [
            "▸ output 2 lines",
            "pkg/things.py:8 total is not found",
            "pkg/things.py:17 too small",
        ]
        assert "failed in 2 places with exit code 2" in screen.title_row.render().plain
        assert "total is not found" in shown(screen, "about")
        assert "enter open" not in hints(screen)
        await stage.press("j")
        assert "enter open" in hints(screen)
        await stage.press("enter")
        await stage.until(lambda: stage.app.screen is stage.screen, "back")
        await stage.until(lambda: stage.screen.aim.cursor_line == 7, "line 8")
        assert stage.notice == "total is not found (1 of 2)"
        await stage.press("greater_than_sign")
        await stage.until(lambda: stage.screen.aim.cursor_line == 16, "line 17")
        await stage.press("greater_than_sign")
        await stage.until(lambda: stage.screen.aim.cursor_line == 7, "around")
        await stage.press("less_than_sign")
        await stage.until(lambda: stage.screen.aim.cursor_line == 16, "and back")
        # The page is there again as it was, and runs nothing by itself.
        begun = stage.session.check._begun
        await page(stage, "ctrl+r", ChecksScreen)
        assert stage.session.check._begun == begun


async def test_the_model_is_asked_to_fix_a_place(project: Path) -> None:
    async with on_stage(project, settings=settings(FAILING)) as stage:
        await checks(stage)
        await ended(stage, CheckState.FAILED)
        await stage.press("j", "f")
        await stage.until(lambda: stage.model.requests, "request")
        asked = stage.model.requests[-1].messages[-1].text
        assert "fix this: total is not found" in asked
        turn = stage.session.turns.last
        assert turn is not None
        assert turn.symbol == "count"
        stage.model.give(None)
        await stage.until(lambda: not turn.running, "end")


async def test_what_is_proposed_is_run_in_a_copy(project: Path) -> None:
    code = "print(open('pkg/things.py').read().count('counted'))"
    async with on_stage(project, settings=settings(code)) as stage:
        screen = await checks(stage)
        await ended(stage, CheckState.PASSED)
        assert list(stage.session.check.output) == ["0"]
        assert "p with proposed hunks" in hints(screen)
        await stage.press("p")
        await stage.until(lambda: "No hunk waits for a decision" in screen.notice.text, "why not")
        await stage.press("escape")
        stage.pane.focus()
        turn = await stage.session.turns.instruct(Question("count", path="pkg/things.py", cursor=7))
        for text in ("def count(rows):\n", "    return counted(rows)\n", None):
            stage.model.give(text)
        await stage.until(lambda: not turn.running, "end")
        screen = await page(stage, "ctrl+r", ChecksScreen)
        await stage.press("p")
        await stage.until(lambda: list(stage.session.check.output) == ["1"], "the copy's text")
        await stage.until(
            lambda: "with 1 undecided hunk" in screen.title_row.render().plain, "its title"
        )
        assert "counted" not in (project / "pkg/things.py").read_text()


async def reviewing(stage: Stage) -> None:
    await stage.until(lambda: stage.session.external.watching == "native", "watching")
    await stage.open("pkg/things.py")
    await stage.press("V")
    await stage.until(lambda: "V ends the review" in stage.notice, "the review")


async def test_in_a_review_the_disk_has_the_undecided_hunks(project: Path) -> None:
    things = project / "pkg/things.py"
    code = "print(open('pkg/things.py').read().count('tallied'))"
    async with on_stage(project, settings=settings(code)) as stage:
        await reviewing(stage)
        things.write_text(f"{things.read_text()}tallied = 1\n")
        await stage.until(lambda: stage.session.hunks.undecided(), "a hunk")
        screen = await checks(stage)
        await ended(stage, CheckState.PASSED)
        assert list(stage.session.check.output) == ["1"]
        await stage.press("p")
        await stage.until(
            lambda: "The files on disk include the undecided hunks" in screen.notice.text, "why not"
        )
        assert "No hunk waits" not in screen.notice.text
        await stage.press("r")
        await stage.until(lambda: not screen.notice.text, "no word of an earlier try")


@pytest.mark.parametrize("external", [False, True])
async def test_before_a_first_run_the_page_says_what_is_on_disk(
    project: Path, *, external: bool
) -> None:
    things = project / "pkg/things.py"
    (project / "pytest.ini").write_text("")
    async with on_stage(project, settings=Settings(journal=False, attention=False)) as stage:
        await reviewing(stage)
        if external:
            things.write_text(f"{things.read_text()}tallied = 1\n")
            await stage.until(lambda: stage.session.hunks.undecided(), "a hunk")
        screen = await checks(stage)
        await stage.until(lambda: screen.notice.choices, "whether it may run")
        said = " ".join(shown(screen, "about").split())
        assert ("include only accepted hunks" in said) is not external
        assert ("include the undecided hunks that other programs" in said) is external


async def test_what_is_proposed_is_run_in_place_of_a_run_without_it(project: Path) -> None:
    code = (
        "import time; text = open('pkg/things.py').read(); "
        "print(text.count('counted'), flush=True); time.sleep(0 if 'counted' in text else 600)"
    )
    async with on_stage(project, settings=settings(code)) as stage:
        turn = await stage.session.turns.instruct(Question("count", path="pkg/things.py", cursor=7))
        for text in ("def count(rows):\n", "    return counted(rows)\n", None):
            stage.model.give(text)
        await stage.until(lambda: not turn.running, "end")
        screen = await checks(stage)
        await stage.until(lambda: list(stage.session.check.output) == ["0"], "the first run")
        assert "p with proposed hunks" in hints(screen)
        await stage.press("p")
        await ended(stage, CheckState.PASSED)
        assert list(stage.session.check.output) == ["1"]


async def test_a_run_is_stopped_and_begun_again(project: Path) -> None:
    code = "import time; print('begun', flush=True); time.sleep(600)"
    async with on_stage(project, settings=settings(code)) as stage:
        screen = await checks(stage)
        await stage.until(lambda: "begun" in shown(screen, "about"), "output")
        assert "r stop" in hints(screen)
        await stage.press("r")
        await ended(stage, CheckState.STOPPED)
        assert "r run again" in hints(screen)
        await stage.press("r")
        await stage.until(lambda: stage.session.check.running, "again")
        # It goes on without the page, and ends with the session.
        await stage.press("escape")
        assert stage.session.check.running


@pytest.mark.system
async def test_what_the_folder_suggests_is_asked_about(project: Path) -> None:
    (project / "Makefile").write_text("test:\n\t@echo tested\n")
    async with on_stage(project) as stage:
        screen = await checks(stage)
        await stage.until(lambda: screen.notices.asking, "question")
        assert "Makefile suggests make test" in screen.notice.text
        await stage.press("enter")
        assert screen.notice.text == "The number of an answer chooses it; esc leaves it."
        assert screen.notices.asking
        await stage.press("2")
        assert stage.session.check.state is CheckState.NEVER
        await stage.press("r")
        await stage.until(lambda: screen.notices.asking, "question")
        await stage.press("1")
        await ended(stage, CheckState.PASSED)
        assert "tested" in shown(screen, "about")


async def test_no_command_is_a_sentence(project: Path) -> None:
    async with on_stage(project) as stage:
        await stage.open("pkg/things.py")
        stage.screen.set_focus(stage.pane)
        await stage.press("greater_than_sign")
        assert "No checks have run; ctrl+r runs them." in stage.notice
        screen = await checks(stage)
        await stage.until(lambda: "names the one you use" in screen.notice.text, "sentence")


async def test_a_folder_without_a_command_has_one_named_on_the_page(
    project: Path, state: Path
) -> None:
    """It is written to the settings, holds at once and runs."""
    async with on_stage(project, settings=Settings(journal=False, attention=False)) as stage:
        screen = await checks(stage)
        await stage.until(lambda: "enter names the one you use" in screen.notice.text, "why")
        assert hints(screen)[0] == "enter name the command"
        await stage.press("enter")
        await stage.until(lambda: isinstance(stage.app.screen, SettingsScreen), "settings")
        await stage.until(lambda: stage.app.screen.entry.is_open, "field")  # type: ignore[attr-defined]
        await stage.type("echo all is well")
        await stage.press("enter")
        await stage.until(lambda: stage.app.screen is screen, "back")
        await ended(stage, CheckState.PASSED)
        assert list(stage.session.check.output) == ["all is well"]
        written = tomllib.loads((state / "config.toml").read_text())
        assert written == {"projects": {str(project): {"check_command": "echo all is well"}}}
        # Another one, which is left as it is: nothing runs again.
        begun = stage.session.check._begun
        await stage.press("c")
        await stage.until(lambda: isinstance(stage.app.screen, SettingsScreen), "settings")
        await stage.until(lambda: stage.app.screen.entry.is_open, "field")  # type: ignore[attr-defined]
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is screen, "back at once")
        assert stage.session.check._begun == begun
