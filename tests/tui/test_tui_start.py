"""The welcome: hunks that wait, changes, recent work, suggestions; and the mouse on pages."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from midstream.pairing.session import PairingSession
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from midstream.tui.pages.help import HelpScreen
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.pages.settings import SettingsScreen
from midstream.tui.widgets.close_mark import CloseMark
from tests.helpers.repositories import git
from tests.helpers.stage import Stage, on_stage

SIGN = "def sign(x):\n    if x < 0:\n        return -1\n    else:\n        return 1\n"


def commit(root: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    git(root, "add", "-A")
    git(root, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "first")


def welcome(stage: Stage) -> list[str]:
    return stage.screen.panes.welcome.render().plain.split("\n")


async def click_line(stage: Stage, words: str) -> None:
    lines = welcome(stage)
    (y,) = [number for number, line in enumerate(lines) if words in line]
    await stage.pilot.click("#welcome", offset=(lines[y].index(words) + 1, y))


async def test_suggestions_for_this_code_are_sent_by_number(project: Path) -> None:
    (project / "signs.py").write_text(SIGN)
    async with on_stage(project) as stage:
        suggestions = stage.screen.panes.suggestions
        await stage.until(lambda: suggestions.examples, "suggestions")
        assert "remove the else after return in sign" in suggestions.render().plain
        await stage.press("1")
        await stage.until(lambda: stage.path == "signs.py", "opened")
        assert stage.screen.panes.composer.text == "remove the else after return in sign"
        assert not suggestions.examples, "they belong to the welcome"


async def test_where_there_is_little_room_the_keys_are_on_the_welcome(project: Path) -> None:
    async with on_stage(project, size=(80, 11)) as stage:
        height = stage.screen.panes.welcome.size.height
        assert height < 9
        await stage.until(lambda: any("every key" in line for line in welcome(stage)[:height]))
    async with on_stage(project) as stage:
        await stage.until(lambda: any("edits one function" in line for line in welcome(stage)))


async def test_changed_files_are_on_the_welcome_and_a_click_opens_one(project: Path) -> None:
    commit(project)
    (project / "pkg" / "things.py").write_text("x = 1\n")
    (project / "notes.md").write_text("changed\n")
    async with on_stage(project) as stage:
        await stage.until(lambda: any("M  notes.md" in line for line in welcome(stage)), "marks")
        await click_line(stage, "pkg/things.py")
        await stage.until(lambda: stage.path == "pkg/things.py", "opened")


async def test_an_earlier_session_is_on_the_welcome_and_a_click_lists_all(project: Path) -> None:
    settings = Settings(journal=True, attention=False)
    async with on_stage(project, settings=settings) as stage:
        await stage.open("pkg/things.py")
        stage.pane.go_to(7)
        await stage.instruct("rename total to found")
        stage.model.give(None)
        await stage.until(lambda: not stage.screen.state.running, "done")
    async with on_stage(project, settings=settings) as stage:
        asked = "rename total to found"
        await stage.until(lambda: any(asked in line for line in welcome(stage)), "recent")
        await click_line(stage, asked)
        await stage.until(lambda: stage.app.screen.id == "sessions", "sessions")


async def test_the_rail_marks_what_git_sees(project: Path) -> None:
    commit(project)
    (project / "pkg" / "things.py").write_text("x = 1\n")
    (project / "fresh").mkdir()
    (project / "fresh" / "new.py").write_text("x = 1\n")
    async with on_stage(project, size=(160, 40)) as stage:
        await stage.until(lambda: any(row.value == "fresh/new.py" for row in stage.rail.rows), "")

        def marks(value: str) -> list[str]:
            rows = [row for row in stage.rail.rows if row.value == value]
            return ["".join(text for text, _ in row.right).strip() for row in rows]

        await stage.until(lambda: marks("pkg/things.py") == ["M", "M"], "changed, and in the tree")
        assert marks("fresh/new.py") == ["?", "?"]
        assert marks("pkg/") == ["·"]
        await stage.open("pkg/things.py")
        await stage.until(lambda: len(marks("pkg/things.py")) == 2, "open, and in the tree")


async def closed_by(stage: Stage, page: type[Screen[object]], x: int, y: int) -> None:
    await stage.until(lambda: isinstance(stage.app.screen, page), "the page")
    await stage.pilot.pause()
    await stage.pilot.click(offset=(x, y))
    await stage.until(lambda: stage.app.screen is stage.screen, "closed")


async def test_pages_and_sheets_are_closed_with_the_mouse(project: Path) -> None:
    async with on_stage(project, size=(100, 30)) as stage:
        await stage.press("escape", "comma")
        await closed_by(stage, SettingsScreen, 98, 0)
        await stage.press("question_mark")
        await closed_by(stage, HelpScreen, 1, 1)
        await stage.press("T")
        await closed_by(stage, PickerScreen, 1, 28)
        await stage.press("question_mark")
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen), "help")
        await stage.pilot.pause()
        cross = stage.app.screen.query_one(CloseMark).region
        await closed_by(stage, HelpScreen, cross.x + 1, cross.y)


async def test_a_click_selects_a_row_and_a_click_on_it_acts(project: Path) -> None:
    async with on_stage(project, size=(100, 30)) as stage:
        await stage.press("escape", "comma")
        await stage.until(lambda: isinstance(stage.app.screen, SettingsScreen), "settings")
        page = stage.app.screen
        assert isinstance(page, SettingsScreen)
        await stage.until(lambda: page.list.rows, "rows")
        row = next(y for y, row in enumerate(page.list.rows) if row.value == "ascii")
        await stage.pilot.click("#list", offset=(10, row))
        assert page.list.value == "ascii"
        assert not stage.app.settings.ascii
        await stage.pilot.click("#list", offset=(10, row))
        await stage.until(lambda: page.resolved["ascii"].value is True, "switched")


async def test_a_session_that_is_being_opened_while_the_user_quits_is_closed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks would outlive the app, and a process that is being started hang the event loop."""
    app = MidstreamApp(project, Settings(journal=False, attention=False))
    really_open = PairingSession.open

    async def quit_meanwhile(root: Path, **options: Any) -> PairingSession:
        app.exit()
        for _ in range(50):
            await asyncio.sleep(0)
        session = await really_open(root, **options)
        opened.append(session)
        return session

    opened: list[PairingSession] = []
    monkeypatch.setattr(PairingSession, "open", quit_meanwhile)
    before = asyncio.all_tasks()
    async with app.run_test():
        pass
    assert len(opened) == 1
    assert not opened[0].hangs
    assert asyncio.all_tasks() <= before


async def test_a_session_that_could_not_be_opened_does_not_keep_one_from_quitting(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> PairingSession:
        raise OSError(28, "No space left on device")

    async with on_stage(project) as stage:
        monkeypatch.setattr(PairingSession, "open", fail)
        with pytest.raises(OSError, match="No space"):
            await stage.app.take_up(project / "journal")
    assert stage.session.closed
    assert not stage.session.hangs
