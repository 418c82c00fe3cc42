"""Keys that no story presses: each does what the help says of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import RenderableType
from textual.events import Key, Paste
from textual.screen import Screen
from textual.widget import Widget

from midstream.settings import Settings
from midstream.tui import notices
from midstream.tui.pages.commit import CommitScreen
from midstream.tui.pages.models import ModelsScreen
from midstream.tui.pages.settings import SettingsScreen
from midstream.tui.pages.sheet import KeySheet, SheetScreen
from midstream.tui.widgets.fields import LineField
from midstream.tui.widgets.key_bar import KeyBar
from tests.helpers.pages import answered, at_the_files, page
from tests.helpers.stage import Stage, on_stage


def marked(stage: Stage) -> str:
    """The new lines of the hunk under the cursor."""
    hunk = stage.pane.hunk
    assert hunk is not None
    return "".join(hunk.new).strip()


async def test_brackets_walk_over_undecided_hunks_only(stage: Stage) -> None:
    await answered(stage)
    await stage.press("g", "]")
    assert marked(stage) == "found = 0"
    await stage.press("]")
    assert marked(stage).startswith("found += 1")
    await stage.press("[")
    assert marked(stage) == "found = 0"
    await stage.press("]", "a")
    await stage.until(lambda: marked(stage) == "found = 0", "the one that is left")
    await stage.press("J")
    assert marked(stage).startswith("found += 1")
    await stage.press("[")
    assert marked(stage) == "found = 0"
    await stage.press("]")
    assert marked(stage) == "found = 0"


async def test_a_comment_is_about_the_hunk_and_goes_into_the_composer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await answered(stage)
    monkeypatch.setattr(type(stage.screen.aim), "is_chat", True)
    await stage.press("g", "]", "]", "c")
    assert stage.composer.field.has_focus
    field = stage.composer.field
    assert field.text == "[hunk at line 11] "
    assert "about the hunk at line 11" in stage.title
    assert "count, lines 6-13" in stage.title
    await stage.type("as in double, please")
    assert "count, lines 6-13" in stage.title, "what is named is not the place"
    along = stage.composer.title
    await stage.until(lambda: "lines 6-13" in along.along, "what goes along is the same")
    await stage.press("enter")
    await stage.until(lambda: len(stage.model.requests) == 2, "request")
    assert "def count" in stage.model.region
    asked = stage.session.turns[-1].instruction
    assert asked == "About the hunk at line 11 (`found += 1`): as in double, please"
    assert field.text == ""


async def test_the_chip_of_a_hunk_goes_as_a_whole(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await answered(stage)
    monkeypatch.setattr(type(stage.screen.aim), "is_chat", True)
    await stage.press("g", "]", "]", "c", "backspace", "backspace")
    assert stage.composer.field.text == ""
    assert "about the hunk" not in stage.title


async def test_an_edit_model_gets_no_place_in_a_comment(stage: Stage) -> None:
    await answered(stage)
    await stage.press("g", "]", "]", "c")
    assert stage.composer.field.has_focus
    assert stage.composer.text == ""
    assert "Describe the whole change" in stage.notice
    assert "count, lines 6-13" in stage.title


async def test_enter_in_the_code_goes_to_the_composer_and_in_the_list_opens_the_file(
    stage: Stage,
) -> None:
    await stage.open("notes.md")
    await stage.open("pkg/things.py")
    await stage.press("enter")
    assert stage.composer.field.has_focus
    await stage.press("escape", "ctrl+e")
    assert stage.rail.has_focus
    await stage.press("up", "enter")
    await stage.until(lambda: stage.path == "notes.md", "the file of the list")


async def test_braces_turn_to_the_files_beside(stage: Stage) -> None:
    await stage.open("notes.md")
    await stage.open("pkg/things.py")
    await stage.press("}")
    await stage.until(lambda: stage.path == "notes.md", "the next, round the end")
    await stage.press("{")
    await stage.until(lambda: stage.path == "pkg/things.py", "the one before")


@pytest.mark.parametrize(("down", "up"), [("d", "ctrl+u"), ("ctrl+d", "ctrl+u")])
async def test_half_a_page(stage: Stage, down: str, up: str) -> None:
    path = stage.app.root / "pkg" / "long.py"
    path.write_text("".join(f"a{n} = {n}\n" for n in range(300)))
    await stage.open("pkg/long.py")
    pane = stage.pane
    assert pane.cursor == 0
    await stage.press(down)
    assert pane.cursor == pane.height // 2
    await stage.press(up)
    assert pane.cursor == 0


async def test_tab_and_shift_tab_go_round_the_panes_in_both_directions(project: Path) -> None:
    async with on_stage(project, size=(170, 40)) as stage:
        await stage.open("pkg/things.py")
        await stage.press("escape")
        stops = [stage.pane, stage.composer.field, stage.rail]
        assert stops[0].has_focus
        for stop in (*stops[1:], stops[0]):
            await stage.press("tab")
            assert stop.has_focus
        for stop in (*reversed(stops[1:]), stops[0]):
            await stage.press("shift+tab")
            assert stop.has_focus


@pytest.mark.parametrize("key", ["ctrl+p", "f1"])
async def test_palette_and_help_open_while_a_text_is_written(stage: Stage, key: str) -> None:
    await stage.type("half")
    await stage.press(key)
    await stage.until(lambda: stage.app.screen is not stage.screen, key)
    assert bool(stage.app.screen.query(KeySheet)) == (key == "f1")
    await stage.press("escape")
    assert stage.app.screen is stage.screen
    assert stage.composer.text == "half"


async def test_examples_are_for_the_demo(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("x")
    assert "midstream demo" in stage.notice


async def whole_screens(stage: Stage, key: str) -> int:
    """How often a key has the whole screen painted."""
    painted: list[str] = []
    display = stage.app._display

    def noted(screen: Screen[object], renderable: RenderableType | None) -> None:
        painted.append(type(renderable).__name__)
        display(screen, renderable)

    await stage.pilot.pause(0.1)
    stage.app._display = noted
    await stage.press(key)
    stage.app._display = display
    return painted.count("LayoutUpdate")


async def test_ctrl_l_paints_the_whole_screen_again(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    assert await whole_screens(stage, "j") == 0
    assert await whole_screens(stage, "ctrl+l") > 0


async def test_ctrl_q_quits_at_once(stage: Stage) -> None:
    await stage.press("ctrl+q")
    await stage.until(lambda: not stage.app.is_running, "the end")


async def test_hunks_that_no_journal_keeps_are_asked_about_once(stage: Stage) -> None:
    await stage.propose_more()
    await stage.press("ctrl+q")
    asked = "1 hunk undecided in pkg/things.py; no journal keeps it. Quit anyway?"
    await stage.until(lambda: asked in stage.notice, "asked")
    await stage.press("1")
    assert stage.app.is_running
    await stage.press("ctrl+q", "2")
    await stage.until(lambda: not stage.app.is_running, "the end")


@pytest.mark.parametrize("typing", [True, False])
async def test_the_question_before_quitting_takes_all_keys(
    stage: Stage, project: Path, typing: bool
) -> None:
    await stage.propose_more()
    before = (project / "pkg" / "things.py").read_text()
    await stage.press("i" if typing else "escape")
    stage.composer.put("mine")
    asked = len(stage.model.requests)
    await stage.press("ctrl+q")
    await stage.until(lambda: "Quit anyway?" in stage.notice, "asked")
    assert stage.keys == ["1 stay", "2 quit"]
    assert not stage.screen.panes.notice.choices, "said once"
    await stage.type("arAs x9\n")
    await stage.press("enter")
    stage.app.post_message(Paste("pasted"))
    await stage.pilot.pause(0.05)
    assert "Quit anyway?" in stage.notice
    assert stage.composer.text == "mine"
    assert len(stage.model.requests) == asked
    assert (project / "pkg" / "things.py").read_text() == before
    await stage.press("escape")
    assert not stage.notice
    assert "1 stay" not in stage.keys
    await stage.press("ctrl+q")
    await stage.until(lambda: "Quit anyway?" in stage.notice, "asked again")
    await stage.press("ctrl+q")
    await stage.until(lambda: not stage.app.is_running, "the end")


@pytest.mark.parametrize("event", ["warning", "lasting", "clear", "question"])
async def test_nothing_that_happens_closes_the_question_before_quitting(
    stage: Stage, project: Path, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    monkeypatch.setattr(notices, "COVER_S", 0.1)
    await stage.propose_more()
    before = (project / "pkg" / "things.py").read_text()
    await stage.press("escape", "ctrl+q")
    await stage.until(lambda: "Quit anyway?" in stage.notice, "asked")
    chosen: list[str] = []
    if event == "warning":
        stage.session.status.warn("The guard is off.")
        await stage.until(lambda: "The guard is off." in stage.screen.notices.said, "said")
    elif event == "lasting":
        stage.screen.notices.say("info", "It goes on.", lasting=True)
    elif event == "clear":
        stage.screen.notices.clear()
    else:
        stage.screen.notices.ask("May it?", ("yes", lambda: chosen.append("yes")))
    await stage.press("a")
    assert stage.keys == ["1 stay", "2 quit"]
    await stage.until(lambda: "Quit anyway?" in stage.notice, "shown again")
    assert (project / "pkg" / "things.py").read_text() == before
    await stage.press("1")
    assert stage.app.is_running
    if event == "question":
        assert stage.choices == ("yes",)
        await stage.press("1")
        assert chosen == ["yes"]
    assert not stage.notice
    await stage.press("ctrl+q")
    await stage.until(lambda: "Quit anyway?" in stage.notice, "asked again")
    assert stage.app.is_running


async def test_a_page_that_closes_takes_the_question_before_quitting_along(stage: Stage) -> None:
    await stage.propose_more()
    screen = await page(stage, "comma", SettingsScreen)
    await stage.press("ctrl+q")
    await stage.until(lambda: "Quit anyway?" in screen.notice.text, "asked")
    screen.dismiss(None)
    await stage.until(lambda: stage.app.screen is stage.screen, "closed")
    await stage.press("ctrl+q")
    await stage.until(lambda: "Quit anyway?" in stage.notice, "asked again")
    assert stage.app.is_running


@pytest.mark.parametrize("on_page", [False, True])
async def test_the_question_before_quitting_is_answered_with_a_click(
    stage: Stage, on_page: bool
) -> None:
    await stage.propose_more()
    await stage.press("escape")
    screen = await page(stage, "comma", SettingsScreen) if on_page else stage.screen
    await stage.press("ctrl+q")
    await stage.until(lambda: screen.notices.is_alone, "asked")
    bar = screen.query_one(KeyBar)
    await stage.until(lambda: bar.render().plain.startswith(" 1 stay"), "its keys")
    await stage.pilot.click(bar, offset=(3, 0))
    await stage.until(lambda: not screen.notices.asking, "stayed")
    await stage.press("ctrl+q")
    await stage.until(lambda: screen.notices.is_alone, "asked again")
    await stage.pilot.pause(0.05)
    await stage.pilot.click(bar, offset=(bar.render().plain.index("quit"), 0))
    await stage.until(lambda: not stage.app.is_running, "the end")


@pytest.mark.parametrize("place", ["code", "composer", "page"])
async def test_a_question_is_answered_with_a_click_on_its_number(stage: Stage, place: str) -> None:
    if place != "composer":
        await stage.press("escape")
    screen = await page(stage, "comma", SettingsScreen) if place == "page" else stage.screen
    answers: list[str] = []
    screen.notices.ask(
        "Which one?", ("one", lambda: answers.append("1")), ("two", lambda: answers.append("2"))
    )
    bar = screen.query_one(KeyBar)
    await stage.until(lambda: "2 choose" in bar.render().plain, "its keys")
    await stage.pilot.click(bar, offset=(bar.render().plain.index("2"), 0))
    await stage.until(lambda: answers, "answered")
    assert answers == ["2"]
    assert not screen.notices.asking


async def test_the_question_before_quitting_is_not_under_a_sheet(stage: Stage) -> None:
    await stage.propose_more()
    await stage.press("exclamation_mark")
    assert isinstance(stage.app.screen, SheetScreen)
    await stage.press("ctrl+q")
    await stage.until(lambda: "Quit anyway?" in stage.notice, "asked")
    assert stage.app.screen is stage.screen
    await stage.press("1")
    assert stage.app.is_running


@pytest.mark.system
async def test_what_a_journal_keeps_is_asked_about_as_well(project: Path, state: Path) -> None:
    async with on_stage(project, settings=Settings(attention=False)) as stage:
        await stage.open("pkg/things.py")
        await stage.propose_more()
        await stage.press("ctrl+q")
        await stage.until(lambda: "--resume` brings it back. Quit anyway?" in stage.notice, "asked")
        assert stage.app.is_running
        await stage.press("ctrl+q")
        await stage.until(lambda: not stage.app.is_running, "the end")


async def test_the_list_of_a_page_moves_by_rows_and_by_tens(stage: Stage) -> None:
    screen = await page(stage, "comma", SettingsScreen)
    rows = screen.list
    start = rows.cursor
    await stage.press("j", "j", "k")
    after_one = rows.cursor
    assert after_one > start
    await stage.press("pagedown")
    assert rows.cursor >= after_one + 10
    await stage.press("pageup")
    assert rows.cursor == after_one
    await stage.press("up")
    assert rows.cursor == start


async def test_what_stands_below_the_list_of_a_page_is_scrolled(repo: Path) -> None:
    async with on_stage(repo, size=(80, 16)) as stage:
        await answered(stage)
        await stage.press("A", "A")
        await stage.until(lambda: "found = 0" in (repo / "pkg/things.py").read_text(), "write")
        screen = await at_the_files(stage)
        await stage.until(lambda: screen.detail.max_scroll_y > 3, "more than fits")
        await stage.press("J")
        await stage.until(lambda: screen.detail.scroll_y == 3, "down")
        await stage.press("K")
        await stage.until(lambda: screen.detail.scroll_y == 0, "up")


async def test_from_the_message_of_a_commit_back_to_the_files(repo: Path) -> None:
    async with on_stage(repo) as stage:
        await answered(stage)
        await stage.press("A")
        screen = await page(stage, "C", CommitScreen)
        assert not screen.list.has_focus
        await stage.press("shift+tab")
        assert screen.list.has_focus


async def test_e_on_the_models_page_takes_the_next_effort(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    screen = await page(stage, "M", ModelsScreen)
    before = stage.session.turns.effort
    await stage.press("e")
    assert stage.session.turns.effort != before
    assert f"Effort {stage.session.turns.effort} from the next" in screen.notice.text


async def test_ctrl_l_on_a_page_paints_the_whole_screen_again(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await page(stage, "comma", SettingsScreen)
    assert await whole_screens(stage, "ctrl+l") > 0


BURSTS = (
    (("a", "b", "ctrl+u", "c"), "c"),
    (("a", "b", "left", "x"), "axb"),
    (("a", "b", "backspace", "backspace", "c"), "c"),
    (("a", "b", "home", "delete", "c", "end", "d"), "cbd"),
)


def burst(stage: Stage, keys: Sequence[str]) -> None:
    """Keys that arrive together, as from a macro or over a slow line."""
    for key in keys:
        stage.app.post_message(Key(key, key if len(key) == 1 else None))


async def test_in_a_burst_no_key_overtakes_another(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    field = stage.screen.query_one("#search", Widget).query_one(LineField)
    for keys, text in BURSTS:
        burst(stage, ("i", *keys))
        await stage.until(lambda text=text: stage.composer.text == text, text)
        stage.composer.put("")
        await stage.press("escape", "slash")
        burst(stage, keys)
        await stage.until(lambda text=text: field.value == text, f"search {text}")
        field.value = ""
        await stage.press("escape")


async def test_a_burst_with_enter_in_the_middle_sends_what_stood_before_it(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    burst(stage, (*"iab", "backspace", "enter"))
    await stage.until(lambda: stage.model.requests, "a request")
    assert stage.session.turns[0].instruction == "a"


async def test_undo_and_redo_say_what_and_where(stage: Stage) -> None:
    await answered(stage)
    await stage.press("g", "]", "a", "u")
    said = "Undone: 1 hunk of pkg/things.py undecided again."
    await stage.until(lambda: said in stage.notice, "what was undone")
    await stage.press("U")
    said = "Redone: 1 hunk of pkg/things.py accepted again."
    await stage.until(lambda: said in stage.notice, "what was redone")
