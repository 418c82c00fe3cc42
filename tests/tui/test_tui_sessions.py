"""The sessions page over real journals: what they say, taking one up, deleting one."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.settings import Settings
from midstream.tui.pages.sessions import SessionsScreen
from midstream.workspace.drafts import read_drafts
from midstream.workspace.journal import Journal, sessions
from tests.helpers.pages import RENAMED, accepted, answered, hints, page, rows, shown
from tests.helpers.stage import Stage, on_stage

KEPT = Settings(journal=True, attention=False)


async def opened(stage: Stage) -> SessionsScreen:
    screen = await page(stage, "H", SessionsScreen)
    await stage.until(
        lambda: screen.read and len(screen.summaries) == len(screen.infos), "journals"
    )
    await stage.pilot.pause(0.05)
    return screen


async def one_session(project: Path, count: int = 1) -> None:
    """Leave a session behind: two hunks, of which some are accepted."""
    async with on_stage(project, settings=KEPT) as stage:
        await answered(stage)
        await accepted(stage, count)


async def test_no_session_is_a_sentence(project: Path) -> None:
    async with on_stage(project) as stage:
        screen = await opened(stage)
        assert rows(screen) == []
        assert "No sessions of this folder are kept yet." in shown(screen, "about")
        assert hints(screen) == ["esc back", "? keys"]
        await stage.press("enter", "d")
        assert not screen.notice.is_shown
        await stage.press("escape")
        assert stage.app.screen is stage.screen


async def test_the_list_says_what_became_of_a_session(project: Path) -> None:
    await one_session(project)
    async with on_stage(project, settings=KEPT) as stage:
        screen = await opened(stage)
        heading, row = rows(screen)
        assert heading.split() == ["last", "used", "asked", "for"]
        assert row.startswith("▸ today ")
        assert " ".join(row.split()[3:]) == "rename total to found ✓ 1 ✗ 0 1 to decide"
        about = shown(screen, "about")
        assert "1 accepted, 0 rejected, 1 to decide" in about
        assert "  pkg/things.py\n" in about
        assert "  rename total to found\n    1 accepted, 1 to decide\n" in about


@pytest.mark.system
async def test_enter_takes_a_session_up_in_place_of_this_one(project: Path) -> None:
    await one_session(project)
    async with on_stage(project, settings=KEPT) as stage:
        former = stage.session
        await opened(stage)
        await stage.press("enter")
        await stage.until(lambda: stage.app.screen is stage.screen, "back")
        await stage.until(lambda: stage.session is not former, "session")
        assert len(stage.session.hunks.undecided()) == 1
        await stage.until(lambda: stage.path == "pkg/things.py", "file")
        await stage.until(lambda: stage.session.status.state == "ready", "ready")
        await stage.press("a")
        path = project / "pkg" / "things.py"
        await stage.until(lambda: "total" not in path.read_text(), "accepted")
        # The model is asked in the new session, and its hunks appear on the screen.
        await stage.instruct("rename found to seen")
        stage.model.give(stage.model.region.replace("found", "seen") + "\n")
        stage.model.give(None)
        await stage.until(lambda: stage.session.hunks.undecided(), "hunks")
        await stage.until(lambda: any("seen" in row for row in stage.rows), "rows")
        screen = await opened(stage)
        assert "this session" in rows(screen)[1]
        await stage.press("enter")
        assert "This is the current session" in screen.notice.text
        await stage.press("d")
        assert "is open; close it" in screen.notice.text
    assert former.closed


async def test_delete_asks_and_escape_keeps(project: Path, state: Path) -> None:
    await one_session(project)
    async with on_stage(project, settings=KEPT) as stage:
        await stage.until(lambda: stage.screen.state.recent, "read")
        screen = await opened(stage)
        await stage.press("d")
        assert "with 1 undecided hunk? Your files stay" in screen.notice.text
        assert hints(screen) == ["1 ", "2 choose", "esc leave it"]
        await stage.press("escape")
        assert stage.app.screen is screen
        assert not screen.notice.is_shown
        await stage.press("d", "2")
        assert len(sessions(state, project)) == 1
        await stage.press("d", "1")
        await stage.until(lambda: not screen.infos, "gone")
        assert sessions(state, project) == []
        assert "is deleted" in screen.notice.text
        assert stage.screen.state.recent == ()


async def test_deleting_a_session_deletes_what_was_typed_in_it(project: Path, state: Path) -> None:
    await one_session(project)
    async with on_stage(project, settings=KEPT) as stage:
        await answered(stage, "rename item to thing")
        assert stage.composer.history == ["rename total to found", "rename item to thing"]
        screen = await opened(stage)
        await stage.press("j")
        assert screen.info is not None
        assert not screen.is_this(screen.info)
        await stage.press("d", "1")
        await stage.until(lambda: len(screen.infos) == 1, "gone")
        assert stage.composer.history == ["rename item to thing"]
        assert read_drafts(state, project).sent == ["rename item to thing"]


async def test_an_instruction_that_was_asked_twice_is_listed_once(project: Path) -> None:
    async with on_stage(project, settings=KEPT, facts={"must_change": "1"}) as stage:
        await stage.open("pkg/things.py")
        stage.pane.go_to(7)
        await stage.instruct("rename total to found")
        stage.model.give(stage.model.region)
        stage.model.end()
        await stage.until(lambda: len(stage.model.requests) == 2, "asked again")
        stage.model.give(RENAMED)
        stage.model.end()
        await stage.until(lambda: len(stage.session.turns) == 2, "corrected")
        await stage.until(lambda: not stage.session.turns.busy, "end")
        await accepted(stage)
        screen = await opened(stage)
        assert " ".join(rows(screen)[1].split()[3:]).startswith("rename total to found ✓ 1")
        assert shown(screen, "about").count("  rename total to found\n    1 accepted") == 1
        assert shown(screen, "about").count("rename total to found") == 1


async def test_a_session_that_is_open_elsewhere_is_left_alone(project: Path, state: Path) -> None:
    await one_session(project)
    (info,) = sessions(state, project)
    other = Journal.open(info.path)
    try:
        async with on_stage(project, settings=KEPT) as stage:
            screen = await opened(stage)
            assert "open elsewhere" in rows(screen)[1]
            await stage.press("enter")
            assert "This session is open in another Midstream" in screen.notice.text
            await stage.press("d")
            assert "is open; close it" in screen.notice.text
            assert info.path.exists()
    finally:
        other.close()


async def test_a_damaged_journal_is_named_and_not_taken_up(project: Path, state: Path) -> None:
    await one_session(project)
    (info,) = sessions(state, project)
    text = info.path.read_text().replace('"k":"decide"', '"k":"decade"')
    info.path.write_text(text)
    async with on_stage(project, settings=KEPT) as stage:
        screen = await opened(stage)
        former = stage.session
        assert "damaged" in rows(screen)[1]
        assert "its journal breaks at entry" in shown(screen, "about")
        await stage.press("enter")
        assert "cannot be resumed" in screen.notice.text
        assert stage.session is former
        await stage.press("d", "1")
        await stage.until(lambda: not screen.infos, "gone")


@pytest.mark.system
async def test_undecided_hunks_without_a_journal_are_asked_about(project: Path) -> None:
    await one_session(project)
    async with on_stage(project) as stage:
        await answered(stage, "rename item to thing")
        screen = await opened(stage)
        former = stage.session
        await stage.press("enter")
        assert "would be lost" in screen.notice.text
        await stage.press("2")
        assert "would be lost" not in screen.notice.text
        assert stage.session is former
        await stage.press("enter", "1")
        await stage.until(lambda: stage.session is not former, "session")


async def test_a_running_answer_is_not_cut_off(project: Path) -> None:
    await one_session(project)
    async with on_stage(project, settings=KEPT) as stage:
        await stage.open("pkg/things.py")
        stage.pane.go_to(7)
        await stage.instruct("rename total to found")
        screen = await opened(stage)
        await stage.press("j", "enter")
        assert "The model is writing; stop it first: esc, then ctrl+c" in screen.notice.text
        stage.model.give(None)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
@pytest.mark.parametrize("ascii_only", [False, True])
async def test_rows_fit(project: Path, size: tuple[int, int], ascii_only: bool) -> None:
    await one_session(project)
    settings = Settings(journal=True, attention=False, ascii=ascii_only)
    async with on_stage(project, size=size, settings=settings) as stage:
        screen = await opened(stage)
        _, row = rows(screen)
        assert "1 to decide" in row
        assert len(row) <= screen.list.size.width
        assert row.isascii() or not ascii_only
