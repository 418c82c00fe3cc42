"""Background requests, by keys: a reader is not moved, and the user's requests come first."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.tui.widgets.status_row import StatusRow
from tests.helpers.pairing import save
from tests.helpers.stage import CODE, Stage, on_stage

BILL = """\
def first(row):
    return row.cost


def second(row):
    return row.cost + 1


def third(row):
    return 3
"""
NEW_SECOND = "def second(row):\n    return row.price + 1\n"


@pytest.fixture
def bill(project: Path) -> Path:
    path = project / "pkg" / "bill.py"
    path.write_text(BILL)
    return path


def change_first(bill: Path) -> None:
    save(bill, BILL.replace("row.cost\n", "row.price\n"))


def status(stage: Stage) -> str:
    return stage.screen.query_one(StatusRow).render().plain


async def test_a_save_is_followed_up_without_moving_the_reader(project: Path, bill: Path) -> None:
    async with on_stage(project) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await stage.open("pkg/things.py")
        await stage.press("F")
        await stage.until(lambda: "F ends it" in stage.notice, "continuous mode")
        assert "continuous" in status(stage)
        change_first(bill)
        stage.model.give(NEW_SECOND)
        stage.model.give(None)
        await stage.until(lambda: stage.session.hunks.undecided("pkg/bill.py"), "a hunk that waits")
        assert stage.path == "pkg/things.py"
        said = [notice.text for notice in stage.session.status.notices]
        assert any("fits other places" in each for each in said)
        await stage.press("F")
        await stage.until(lambda: "continuous" not in status(stage), "off")
        await stage.press("]")
        await stage.until(lambda: stage.path == "pkg/bill.py", "the next hunk, elsewhere")
        await stage.press("a")
        await stage.until(lambda: "row.price + 1" in bill.read_text(), "written")


@pytest.mark.system
async def test_the_same_change_elsewhere(project: Path, bill: Path) -> None:
    async with on_stage(project) as stage:
        await stage.open("pkg/bill.py")
        await stage.press("E")
        assert "Put the cursor on a hunk" in stage.notice
        await stage.instruct("rename cost to price in first")
        stage.model.give("def first(row):\n    return row.price\n")
        stage.model.give(None)
        await stage.until(lambda: stage.pane.undecided_hunk is not None, "a hunk")
        cursor = stage.pane.cursor
        await stage.press("E")
        await stage.until(lambda: stage.session.turns.in_background, "the errand")
        stage.screen.refresh_facts()
        assert stage.session.background.waiting
        assert "queued" not in status(stage)  # nobody but the program put it there
        stage.model.give(NEW_SECOND)
        stage.model.give(None)
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 2, "its companion")
        assert stage.model.region == "def second(row):\n    return row.cost + 1\n"
        assert stage.pane.cursor == cursor
        await stage.until(lambda: not stage.session.background.waiting, "nothing is left to ask")


async def test_an_instruction_comes_before_what_runs_in_the_background(
    project: Path, bill: Path
) -> None:
    async with on_stage(project) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await stage.open("pkg/bill.py")
        await stage.press("F")
        await stage.until(lambda: "F ends it" in stage.notice, "continuous mode")
        change_first(bill)
        await stage.until(lambda: stage.session.turns.in_background, "a turn in the background")
        await stage.press("i")
        await stage.until(lambda: "Instruct" in stage.title, "title")
        assert not any("redirect" in key for key in stage.keys)
        await stage.instruct("make it four in third")
        stage.model.give("def third(row):\n    return 4\n")
        stage.model.give(None)
        stage.model.give(NEW_SECOND)
        stage.model.give(None)
        await stage.until(lambda: len(stage.session.hunks.undecided()) == 2, "both")
        assert [turn.background for turn in stage.session.turns] == [True, False, True]


async def test_a_save_of_a_file_without_open_hunks_is_told_as_that(
    stage: Stage, project: Path
) -> None:
    await stage.open("pkg/things.py")
    await stage.until(lambda: stage.session.external.watching == "native", "watching")
    (project / "pkg" / "things.py").write_text(CODE.replace("total", "sum_"))
    await stage.until(lambda: "changed on disk" in stage.notice, "the save is told")
    assert stage.notice == "pkg/things.py changed on disk; this is the new text."


@pytest.mark.system
async def test_a_search_that_fails_is_told(
    project: Path, bill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_stage(project) as stage:
        await stage.open("pkg/bill.py")
        await stage.instruct("rename cost to price in first")
        stage.model.give("def first(row):\n    return row.price\n")
        stage.model.give(None)
        await stage.until(lambda: stage.pane.undecided_hunk is not None, "a hunk")
        monkeypatch.setattr("sys.executable", str(project / "no-python"))
        await stage.press("E")
        await stage.until(lambda: "No search for `cost` could be started" in stage.notice, "told")
        await stage.press("a")
        await stage.until(lambda: "row.price" in bill.read_text(), "written")


async def test_a_defect_in_the_background_leaves_the_screen_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_stage(project) as stage:
        await stage.open("pkg/things.py")
        monkeypatch.delattr(type(stage.session.turns), "read_ahead")
        await stage.press("i")
        stage.composer.put("add a docstring to double")
        await stage.until(lambda: "Midstream itself failed" in stage.notice, "told")
        before = len(stage.model.requests)
        await stage.press("enter")
        await stage.until(lambda: len(stage.model.requests) > before, "request")
