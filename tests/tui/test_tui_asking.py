"""Around an instruction: context, consent, effort, edits without a place, several files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Static

from midstream.responses.dialect import EFFORTS
from midstream.responses.profiles import Price
from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.pages.sent import SentScreen
from midstream.tui.pages.sheet import KeySheet, ReadingScreen
from midstream.tui.review import navigate
from midstream.tui.telemetry.figures import FactLines
from midstream.tui.telemetry.page import TelemetryScreen
from midstream.tui.widgets.file_bar import FileBar
from midstream.tui.widgets.status_row import StatusRow
from tests.helpers.hosted import Hosted
from tests.helpers.pages import make_repo
from tests.helpers.stage import CODE, Stage, on_stage, ready
from tests.helpers.stepped import SteppedModel, served

LINES = [f"line_{n:02d} = {n}\n" for n in range(60)]


def block(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n\n"


@pytest.fixture
def root(project: Path) -> Path:
    (project / "run.py").write_text("".join(LINES))
    (project / "other.py").write_text("".join(LINES))
    (project / "AGENTS.md").write_text("Use tabs.\n")
    (project / ".gitignore").write_text(".env\n")
    make_repo(project)
    (project / ".env").write_text("KEY=1\n")
    return project


@asynccontextmanager
async def hosted_stage(
    root: Path, settings: Settings, size: tuple[int, int] = (120, 36)
) -> AsyncIterator[Stage]:
    """The app on a hosted chat model."""
    app = MidstreamApp(root, replace(settings, journal=False, attention=False))
    async with ready(app, size=size) as stage:
        yield stage


async def send(stage: Stage, hosted: Hosted, text: str) -> None:
    before = len(hosted.creates)
    await stage.press("i")
    stage.composer.put(text)
    await stage.press("enter")
    await stage.until(lambda: len(hosted.creates) > before, "request")


def read(stage: Stage) -> str:
    screen = stage.app.screen
    assert isinstance(screen, ReadingScreen)
    return screen.query_one(Static).content.plain  # type: ignore[union-attr]


async def sent_page(stage: Stage) -> SentScreen:
    await stage.until(lambda: isinstance(stage.app.screen, SentScreen), "the page")
    page = stage.app.screen
    assert isinstance(page, SentScreen)
    await stage.until(lambda: page.list.rows, "its rows")
    return page


def rows_of(page: SentScreen) -> list[str]:
    return ["".join(text for text, _ in row.left).strip() for row in page.list.rows]


def detail_of(page: SentScreen) -> str:
    return page.detail.content.content.plain  # type: ignore[union-attr]


def file_bar(stage: Stage) -> str:
    return stage.screen.query_one(FileBar).render().plain


def status(stage: Stage) -> str:
    return stage.screen.query_one(StatusRow).render().plain


# additions to a request


async def test_what_is_typed_is_read_ahead(stage: Stage) -> None:
    model, screen = stage.model, stage.screen
    await stage.open("pkg/things.py")
    await stage.press("i")
    await stage.type("rename total to sum in count")
    await stage.until(lambda: model.ahead, "reading ahead")
    assert not model.requests
    await stage.press("enter")
    await stage.until(lambda: model.requests, "request")
    assert model.requests[0].messages == model.ahead[-1].messages
    model.give("def count(items):\n")
    await stage.until(lambda: screen.state.running, "answer")
    await stage.press("i")
    await stage.type("call it amount")
    await stage.until(lambda: len(model.ahead[-1].messages) == 3, "reading a redirect ahead")
    assert len(model.requests) == 1
    model.give('    """Count the items that are true."""\n')
    await stage.until(
        lambda: "that are true" in model.ahead[-1].messages[1].text, "what came since"
    )
    await stage.press("enter")
    await stage.until(lambda: len(model.requests) == 2, "redirect")
    assert model.requests[1].messages == model.ahead[-1].messages
    model.give(None)


async def test_the_title_says_what_goes_along_while_typing(
    hosted: Hosted, url: str, root: Path
) -> None:
    async with hosted_stage(root, hosted.settings(url, "search-replace")) as stage:
        await stage.open("run.py")
        await stage.press("i")
        assert "tokens" not in stage.title
        await stage.type("sort it")
        await stage.until(lambda: "tokens: run.py, AGENTS.md (f3)" in stage.title, "preview")
        await stage.type(" as in @other.py")
        await stage.until(lambda: "run.py, other.py, AGENTS.md" in stage.title, "mention")
        assert not hosted.creates
        await stage.press("f3")
        page = await sent_page(stage)
        assert rows_of(page) == [
            "instruction  sort it as in @other.py",
            "system text",
            "instruction, with its context",
            "run.py",
            "other.py",
            "AGENTS.md",
        ]
        assert "Would go to model-x at hosted." in detail_of(page)
        assert "may take up to 24,000 tokens" in detail_of(page)
        (told,) = (each for each in page.whole(page.requests[0]) if each.heading == "system text")
        task = told.lines[1][0]
        assert task.startswith("You are a careful programmer who edits files")
        assert task.endswith("say why in one sentence and make no edit."), "a whole paragraph"
        await stage.press("escape")
        assert stage.composer.text == "sort it as in @other.py"
        stage.composer.put("see @pkg/thing.py ")
        await stage.until(lambda: "There is no file pkg/thing.py" in stage.title, "trouble")
        stage.composer.put("")
        await stage.until(lambda: "There is no" not in stage.title, "nothing to say")


async def test_cuts_are_counted_in_the_title_and_listed_on_the_page(
    hosted: Hosted, url: str, root: Path
) -> None:
    (root / "AGENTS.md").write_text("Use tabs, always and everywhere.\n" * 900)
    async with hosted_stage(root, hosted.settings(url, "search-replace")) as stage:
        await stage.open("run.py")
        await stage.press("i")
        await stage.type("sort it")
        await stage.until(lambda: "(1 cut; f3 shows it)" in stage.title, "cut")
        await stage.press("f3")
        page = await sent_page(stage)
        assert "AGENTS.md  cut to lines 1-218 of 900" in rows_of(page)


@pytest.mark.system
async def test_a_narrow_title_keeps_the_count(hosted: Hosted, url: str, root: Path) -> None:
    settings = hosted.settings(url, "search-replace")
    async with hosted_stage(root, settings, size=(80, 24)) as stage:
        await stage.open("run.py")
        await stage.press("i")
        await stage.type("sort it as in @other.py and @pkg/things.py and so on")
        await stage.until(lambda: "tokens (f3)" in stage.title, "count")
        assert len(stage.title) == 80


async def test_a_built_in_model_gets_its_lines_and_no_preview(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("i")
    await stage.type("rename total to found")
    await stage.pilot.pause(0.6)
    assert "tokens" not in stage.title
    assert not stage.screen.aim.is_chat
    await stage.press("f3")
    page = await sent_page(stage)
    await stage.press("j", "j")
    assert rows_of(page)[2].startswith("pkg/things.py lines ")
    assert "def count(items):" in detail_of(page)
    assert not stage.model.requests


# consent


async def test_an_ignored_file_is_sent_only_after_a_yes(
    hosted: Hosted, url: str, root: Path
) -> None:
    async with hosted_stage(root, hosted.settings(url, "search-replace")) as stage:
        await stage.open("run.py")
        await stage.press("i")
        stage.composer.put("use @.env")
        await stage.press("enter")
        await stage.until(lambda: stage.choices, "question")
        assert stage.notice == (
            "Git ignores .env, so it may contain secrets. Send it to model-x at hosted?"
        )
        await stage.press("2")
        assert not stage.choices
        assert stage.composer.text == "use @.env"
        assert stage.composer.has_focus_within
        assert not hosted.creates
        await stage.press("enter")
        await stage.until(lambda: stage.choices, "question")
        await stage.press("1")
        await stage.until(lambda: hosted.creates, "request")
        assert "KEY=1" in hosted.messages[-1][1]
        assert stage.composer.text == ""
        hosted.end()
        await stage.until(lambda: stage.session.status.state == "ready", "end")


async def test_a_name_that_is_no_file_leaves_the_text(hosted: Hosted, url: str, root: Path) -> None:
    async with hosted_stage(root, hosted.settings(url, "search-replace")) as stage:
        await stage.open("run.py")
        await stage.press("i")
        stage.composer.put("see @pkg/thing.py please")
        await stage.press("enter")
        await stage.until(lambda: "did you mean @pkg/things.py?" in stage.notice, "sentence")
        assert stage.composer.text == "see @pkg/thing.py please"
        assert not hosted.creates


# effort


async def test_effort_is_chosen_and_the_candidate_is_shown(project: Path) -> None:
    async with on_stage(project) as stage:
        await stage.open("pkg/things.py")
        assert "effort" not in status(stage)
        await stage.press("m")
        assert isinstance(stage.app.screen, PickerScreen)
        await stage.type("high")
        await stage.press("enter")
        assert stage.session.turns.effort == "high"
        assert "high effort" in status(stage)
        stage.pane.go_to(16)
        await stage.instruct("rename number to value")
        await stage.until(lambda: "candidate 1 of 4" in status(stage), "first")
        region = stage.model.region
        for text in (region, region.replace("number", "value"), region, region):
            stage.model.give(text)
            stage.model.give(None)
        await stage.until(lambda: stage.session.turns[-1].tried, "choice")
        await stage.until(lambda: stage.session.status.state == "ready", "end")
        assert "number 2 won" in stage.notice
        assert "candidate" not in status(stage)
        await stage.press("exclamation_mark")
        assert "number 2 won" in read(stage)


@pytest.mark.parametrize("efforts", [("low", "high"), ("none", "minimal", "xhigh", "max"), EFFORTS])
async def test_the_efforts_of_the_endpoint_are_offered(
    efforts: tuple[str, ...], hosted: Hosted, url: str, root: Path
) -> None:
    settings = hosted.settings(url, "search-replace")
    (profile,) = settings.endpoints
    settings = replace(settings, endpoints=(replace(profile, efforts=efforts),))
    async with hosted_stage(root, settings) as stage:
        await stage.open("run.py")
        await stage.press("m")
        screen = stage.app.screen
        assert isinstance(screen, PickerScreen)
        assert [row.value for row in screen.list.rows] == ["auto", *efforts]


# several files


async def test_following_goes_on_in_other_files(
    hosted: Hosted, url: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(navigate, "ARRIVAL_S", 3600.0)
    async with hosted_stage(root, hosted.settings(url, "search-replace")) as stage:
        await stage.open("run.py")
        await send(stage, hosted, "rename two")
        await stage.until(lambda: stage.pane.following, "following")
        hosted.say(block("run.py", LINES[3], "first = 3\n"))
        await stage.until(lambda: stage.session.hunks.undecided("run.py"), "hunk")
        hosted.say("other.py\n<<<<<<< SEARCH\n" + LINES[40] + "=======\nsecond")
        await stage.until(lambda: stage.path == "other.py", "following")
        await stage.press("a")
        assert "The model moved on to other.py" in stage.notice
        await stage.until(lambda: "following" in file_bar(stage), "state")
        await stage.until(lambda: any("second" in row for row in stage.rows), "the new line")
        hosted.say(" = 40\n>>>>>>> REPLACE\n")
        hosted.end()
        await stage.until(lambda: stage.session.status.state == "ready", "end")
        assert stage.path == "other.py"
        await stage.until(lambda: "1 in other files" in file_bar(stage), "what waits")
        assert not [h for h in stage.session.hunks if h.decided]
        monkeypatch.setattr(navigate, "ARRIVAL_S", 0.0)
        await stage.press("a")
        await stage.until(lambda: not stage.session.hunks.undecided("other.py"), "accepted")
        await stage.press("right_square_bracket")
        await stage.until(lambda: stage.path == "run.py", "next file")
        await stage.until(lambda: stage.pane.undecided_hunk is not None, "its hunk")
        await stage.press("a")
        await stage.until(lambda: "first = 3" in (root / "run.py").read_text(), "on disk")
        assert "second = 40" in (root / "other.py").read_text()


async def test_nothing_moves_for_a_reader_who_does_not_follow(
    hosted: Hosted, url: str, root: Path
) -> None:
    settings = hosted.settings(url, "search-replace")
    async with hosted_stage(root, settings, size=(150, 40)) as stage:
        await stage.open("run.py")
        await send(stage, hosted, "rename two")
        await stage.press("j")
        before = stage.rows
        hosted.say("other.py\n<<<<<<< SEARCH\n" + LINES[40] + "=======\nsecond = 40\n")
        await stage.until(lambda: stage.session.turns.writing is not None, "writing")
        await stage.until(lambda: "writing in other.py" in file_bar(stage), "state")
        rail = [stage.rail._strip(y).text for y in range(4)]
        assert any("other.py" in row and "writing" in row for row in rail)
        assert (stage.path, stage.rows) == ("run.py", before)
        await stage.press("f")
        await stage.until(lambda: stage.path == "other.py", "there")
        assert stage.pane.following
        stage.screen.navigate.show_path("run.py")
        await stage.until(lambda: stage.path == "run.py", "back by hand")
        await stage.pilot.pause(0.2)
        assert stage.path == "run.py"
        hosted.say(">>>>>>> REPLACE\n")
        hosted.end()
        await stage.until(lambda: stage.session.status.state == "ready", "end")
        assert stage.path == "run.py"


# edits without a place


@pytest.mark.system
async def test_edits_without_a_place_are_counted_and_listed(
    hosted: Hosted, url: str, root: Path
) -> None:
    async with hosted_stage(root, hosted.settings(url, "search-replace")) as stage:
        await stage.open("run.py")
        near = LINES[20] + "line_21 = 99\n" + LINES[22]
        bad = block("run.py", "nowhere = 1\n", "x = 1\n") + block("run.py", near, "y\n")
        hosted.say(block("run.py", LINES[3], "first = 3\n") + bad)
        hosted.end()
        await send(stage, hosted, "rename three")
        await stage.until(lambda: len(hosted.creates) == 2, "asked again")
        hosted.say(bad)
        hosted.end()
        await stage.until(lambda: stage.session.status.state == "ready", "end")
        await stage.until(
            lambda: "2 edits did not match; ! shows what differs" in stage.notice, "notice"
        )
        assert "! what failed" in stage.keys
        stage.screen.notices.clear()
        await stage.press("exclamation_mark")
        words = read(stage).partition("\n\nRecent messages")[0]
        assert words.count("run.py: rename three") == 2
        assert words.count("run.py: The quoted lines are not in run.py") == 4
        assert "quoted:   line_21 = 99\n   line 22:  line_21 = 21\n" in words
        assert words.endswith("The model was asked again; see above.")
        # Facts about the hunk make the text longer; the end is known only after that.
        await stage.until(lambda: "looking" not in read(stage), "uses and tests")
        await stage.pilot.resize_terminal(60, 12)
        await stage.pilot.pause(0.2)
        sheet = stage.app.screen.query_one(KeySheet)
        await stage.press("G")
        await stage.until(lambda: sheet.scroll_y == sheet.max_scroll_y > 0, "scrolled")
        await stage.press("escape")
        assert stage.app.screen is stage.screen


async def test_without_failures_the_key_says_so(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("exclamation_mark")
    assert stage.notice == "No hunk is under the cursor, and nothing was refused or failed."


async def test_what_was_refused_can_be_read_again(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    await stage.press("i")
    stage.composer.put("rename missing to found in nowhere_at_all")
    await stage.press("enter")
    await stage.until(lambda: stage.notice, "refusal")
    said = stage.notice
    stage.screen.notices.clear()
    await stage.press("escape", "exclamation_mark")
    assert f"Recent messages, newest first\n{said}" in read(stage)


# advice and cost


async def test_a_sensitive_file_is_advised_on_once(project: Path) -> None:
    (project / "auth.py").write_text(CODE)
    async with on_stage(project) as stage:
        await stage.open("auth.py")
        for number in range(2):
            stage.pane.go_to(16)
            await stage.instruct("rename number to value")
            seen = "auth.py looks security-sensitive" in stage.notice
            assert seen is (number == 0)
            stage.screen.notices.clear()
            stage.model.give(stage.model.region)
            stage.model.give(None)
            await stage.until(lambda: stage.session.status.state == "ready", "end")
        told = [n for n in stage.session.status.notices if "security-sensitive" in n.text]
        assert len(told) == 1


async def test_many_files_are_for_a_deeper_model_said_once(project: Path) -> None:
    for number in range(5):
        (project / f"part{number}.py").write_text(CODE)
    async with on_stage(project) as stage:
        stage.app._endpoint = None  # as with the built-in server
        said: list[str] = []
        for number in range(5):
            await stage.open(f"part{number}.py")
            stage.pane.go_to(16)
            await stage.instruct("rename number to value")
            stage.model.give(stage.model.region.replace("number", "value"))
            stage.model.give(None)
            await stage.until(lambda: stage.session.status.state == "ready", "end")
            said.append(stage.notice)
            stage.screen.notices.clear()
        assert ["larger model keeps" in text for text in said] == [False, False, False, True, False]


@pytest.mark.system
async def test_cost_of_answer_and_session(hosted: Hosted, url: str, root: Path) -> None:
    settings = hosted.settings(url, "search-replace")
    (profile,) = settings.endpoints
    priced = replace(profile, price=Price(1_000.0, 2_000.0, 1_000.0))
    async with hosted_stage(root, replace(settings, endpoints=(priced,))) as stage:
        await stage.open("run.py")
        for number in range(2):
            hosted.say(block("run.py", LINES[number], f"first = {number}\n"))
            hosted.end()
            await send(stage, hosted, "rename one")
            await stage.until(lambda: stage.session.status.state == "ready", "end")
        assert "$0.0460" in status(stage)
        stage.screen.set_focus(stage.pane)
        await stage.press("W")
        screen = stage.app.screen
        assert isinstance(screen, TelemetryScreen)
        await stage.pilot.pause(0.2)
        lines = screen.query_one("#wall", FactLines).lines
        (cost,) = [line.plain.split() for line in lines if line.plain.startswith("cost")]
        assert cost == ["cost", "$0.0230", "$0.0460"]


async def test_what_an_edit_model_reads_is_on_the_first_screen(project: Path) -> None:
    facts = {"prompt": "edit-rewrite", "context_length": "2048", "max_region_lines": "60"}
    model = SteppedModel(facts)
    async with served(model) as endpoint:
        app = MidstreamApp(project, Settings(journal=False, attention=False), endpoint=endpoint)
        async with ready(app, model, size=(80, 24)) as stage:
            words = " ".join(stage.screen.panes.welcome.render().plain.split())
            assert "reads only the lines it is to change and your instruction." in words
            await stage.open("pkg/things.py")
            await stage.instruct("rename total to found in count")
            assert stage.session.turns.context.limit == 2048
