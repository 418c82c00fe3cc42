"""Questions to the model on the screen: answers beside the code, their places, their code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Static

from midstream.codebase import related
from midstream.pairing.journal.journal import earlier_sessions
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.tui.app import MidstreamApp
from midstream.tui.conversation.links import parser, place_of
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.pages.sent import SentScreen
from midstream.tui.pages.sheet import ReadingScreen
from midstream.tui.telemetry.figures import FactLines
from midstream.tui.widgets.key_bar import KeyBar
from midstream.tui.widgets.status_row import StatusRow
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import make_repo
from tests.helpers.stage import Stage, on_stage, ready
from tests.helpers.stage import conversation_text as shown
from tests.helpers.stepped import SteppedModel

LOOK = related.RelatedCode.look
SHOP = """\
def total(rows):
    return sum(rows)


def names(rows):
    return [row.name for row in rows]
"""
ANSWER = """It adds up (shop.py:2).

```python
def total(rows):
    return sum(rows) or 0
```
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "work", {"shop.py": SHOP, "pkg/cart.py": "rows = []\n"})


@asynccontextmanager
async def hosted_stage(
    root: Path, hosted: Hosted, size: tuple[int, int] = (150, 40)
) -> AsyncIterator[Stage]:
    async with hosted.running() as url:
        settings = replace(hosted.settings(url, "search-replace"), journal=False, attention=False)
        app = MidstreamApp(root, settings)
        async with ready(app, size=size) as stage:
            await stage.open("shop.py")
            await stage.press("i")
            yield stage


def keys(stage: Stage) -> str:
    return stage.screen.query_one(KeyBar).render().plain


async def ask(stage: Stage, hosted: Hosted, said: str, answer: str) -> None:
    stage.screen.panes.focus_composer()
    stage.composer.put(said)
    await stage.press("enter")
    hosted.say(answer)
    hosted.end()
    await stage.until(lambda: answer in shown(stage), "an answer")
    await stage.until(lambda: not stage.session.chat.busy, "its end")


async def test_a_question_is_answered_beside_the_code(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        stage.composer.put("? what does it do")
        await stage.until(lambda: "Ask" in stage.title, "its title")
        assert "answered in text; no file is changed" in stage.title
        assert stage.screen.panes.conversation is None
        await stage.press("enter")
        hosted.say("It **adds** ")
        await stage.until(lambda: "It **adds** " in shown(stage), "the first words")
        assert "› what does it do" in shown(stage)
        assert "working" in shown(stage)
        assert stage.pane.has_focus, "what was sent is sent: letters are keys again"
        assert stage.composer.field.placeholder == "press i to write to the model"
        hosted.say("rows.\x1b[31m")
        hosted.end()
        await stage.until(lambda: "working" not in shown(stage), "the end")
        assert "It **adds** rows." in shown(stage)
        assert "\x1b" not in shown(stage)
        assert (root / "shop.py").read_text() == SHOP
        assert not stage.session.hunks
        await stage.press("D")
        await stage.until(lambda: stage.screen.panes.conversation is None, "hidden")
        await stage.press("D")
        await stage.until(lambda: "adds" in shown(stage), "shown again")


async def test_the_status_row_follows_an_answer_to_its_end(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        row = stage.screen.query_one(StatusRow)
        stage.composer.put("? what does it do")
        await stage.press("enter")
        hosted.say("It ")
        await stage.until(lambda: "writing" in row.render().plain, "the first word")
        hosted.say("adds rows and more rows. " * 20)
        await stage.until(
            lambda: "~126 tokens" in row.render().plain, "tokens that are not counted"
        )
        await stage.until(lambda: "tok/s" in row.render().plain, "their rate")
        await stage.press("W")
        wall = stage.app.screen.query_one("#wall", FactLines)
        await stage.until(lambda: "~126" in wall.plain, "an estimate")
        assert "ctrl+c stop" in stage.app.screen.query_one(KeyBar).render().plain
        hosted.end()
        await stage.until(lambda: "out                  7          7" in wall.plain, "the count")


async def test_a_question_about_a_hunk_takes_its_group_along(root: Path) -> None:
    hosted = Hosted()
    uses = {f"use{n}.py": f"import shop\n\nprint({n}, shop.total([{n}]))\n" for n in range(3)}
    for path, text in uses.items():
        (root / path).write_text(text)
    async with hosted_stage(root, hosted) as stage:
        await stage.until(lambda: stage.session.external.watching == "native", "watching")
        await stage.press("escape", "V")
        await stage.until(lambda: stage.session.review.on, "a review")
        for path, text in {"shop.py": SHOP, **uses}.items():
            (root / path).write_text(text.replace("total", "amount"))
        walk = stage.session.walk
        await stage.until(lambda: len(walk.walk.evidence) == 4 and not walk.busy, "the walk")
        await stage.press("]")
        await stage.until(lambda: stage.pane.hunk is not None, "a hunk")
        hunk = stage.pane.hunk
        await stage.press("i")
        await ask(stage, hosted, "? what does this change", "A name.")
        sent = str(hosted.creates[-1])
        _, _, about = sent.partition("<change-under-the-cursor>")
        assert about.startswith(f"\\n{hunk.path}:{hunk.start + 1}\\n    - ")
        assert "It is decided together with 3 other hunks: `total` → `amount`" in about
        assert all(f"* {path}:3" in about for path in uses if path != hunk.path)
        assert len(stage.session.hunks.undecided()) == 4


@pytest.mark.parametrize(
    "pieces", [("1. one\n2. tw", "o\n3. three\n"), ("1. one", "\n2. two\n", "3. three")]
)
async def test_lists_keep_their_items_however_they_are_streamed(
    root: Path, pieces: Sequence[str]
) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        stage.composer.put("? what is there")
        await stage.press("enter")
        for written in range(len(pieces)):
            hosted.say(pieces[written])
            so_far = "".join(pieces[: written + 1])
            await stage.until(lambda said=so_far: said in shown(stage), "a piece")
        hosted.end()
        pane = stage.screen.panes.conversation
        assert pane is not None

        def items() -> list[str]:
            return [str(item.render()) for item in pane.query("MarkdownParagraph").results(Static)]

        await stage.until(lambda: items() == ["one", "two", "three"], "all items")


PATCHES = [
    "<<<<<<< SEARCH\n    return sum(rows)\n\n# all\n=======\n> 1\n\n* 2\n>>>>>>> REPLACE",
    "*** Begin Patch\n*** Update File: shop.py\n@@\n- 1\n+ 2\n*** End Patch",
]


@pytest.mark.parametrize("patch", PATCHES)
@pytest.mark.parametrize("step", [0, 9])
async def test_a_patch_without_a_fence_is_shown_as_code(root: Path, patch: str, step: int) -> None:
    hosted = Hosted()
    said = f"I change it.\n\nshop.py\n{patch}\n\n> That is all.\n"
    async with hosted_stage(root, hosted) as stage:
        stage.composer.put("? what would you change")
        await stage.press("enter")
        for start in range(0, len(said), step or len(said)):
            so_far = said[: start + (step or len(said))]
            hosted.say(so_far[start:])
            certain = so_far.rstrip("<")  # which may begin the mark of a thought
            await stage.until(lambda certain=certain: certain in shown(stage), "a piece")
        hosted.end()
        pane = stage.screen.panes.conversation
        assert pane is not None

        def code() -> list[str]:
            return [str(vars(fence)["code"]) for fence in pane.query("MarkdownFence")]

        await stage.until(lambda: code() == [patch], "one block of code")
        await stage.until(lambda: len(pane.query("MarkdownBlockQuote")) == 1, "one quote after it")
        assert not pane.query("MarkdownH1")
        assert not pane.query("MarkdownH2")


async def test_code_of_an_answer_becomes_hunks(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        await ask(stage, hosted, "how is nothing summed up?", ANSWER)
        await stage.until(lambda: "can become hunks (press I)" in stage.notice, "an offer")
        await stage.press("I")
        await stage.until(lambda: stage.session.hunks.undecided(), "hunks")
        assert len(hosted.creates) == 1, "the model was not needed"
        await stage.until(lambda: stage.session.status.state == "ready", "the end")
        await stage.press("a")
        await stage.until(
            lambda: (root / "shop.py").read_text() == SHOP.replace("sum(rows)", "sum(rows) or 0"),
            "it is written",
        )


async def test_one_of_several_blocks_is_chosen(root: Path) -> None:
    hosted = Hosted()
    other = "```python\ndef names(rows):\n    return []\n```\n"
    async with hosted_stage(root, hosted) as stage:
        await ask(stage, hosted, "which ways are there?", ANSWER + other)
        await stage.press("I")
        await stage.until(lambda: stage.choices, "a choice")
        assert [choice.strip() for choice in stage.choices] == [
            "def total(rows):",
            "def names(rows):",
        ]
        await stage.press("2")
        await stage.until(lambda: stage.session.hunks.undecided(), "hunks")
        (hunk,) = stage.session.hunks.undecided()
        assert hunk.new == ("    return []",)


async def test_places_of_an_answer_are_opened(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        await ask(stage, hosted, "where are rows?", "In `pkg/cart.py:1`, not in gone.py:3.\n")
        await stage.press("escape", "O")
        await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "the places")
        await stage.press("enter")
        await stage.until(lambda: stage.path == "pkg/cart.py", "the file")


async def test_an_answer_is_stopped_and_a_new_conversation_begun(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted, (80, 24)) as stage:
        stage.composer.put("? tell me")
        await stage.press("enter")
        hosted.say("Once upon ")
        await stage.until(lambda: "Once upon " in shown(stage), "words")
        await stage.press("ctrl+c")
        await stage.until(lambda: not stage.session.chat.busy, "the stop")
        assert "Once upon " in shown(stage)
        await stage.press("alt+n")
        await stage.until(lambda: stage.screen.panes.conversation is None, "nothing")
        await ask(stage, hosted, "? and now", "Nothing.\n")
        assert "Once" not in shown(stage)


async def test_a_resumed_conversation_is_shown(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url:
        settings = replace(hosted.settings(url, "search-replace"), attention=False)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            hosted.say("It adds up.")
            hosted.end()
            await session.chat.ask_question(Question("what is total?", path="shop.py"))
            await session.chat.finished()
        (earlier,) = earlier_sessions(root)
        app = MidstreamApp(root, settings, resume=earlier.path)
        async with app.run_test(size=(150, 40)) as pilot:
            stage = Stage(app, pilot, SteppedModel())
            await stage.until(lambda: "It adds up." in shown(stage), "the conversation is there")
            await stage.press("escape", "D")
            await stage.until(lambda: not shown(stage), "it is hidden")


async def test_a_question_while_code_streams_does_not_redirect_it(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        stage.composer.put("sum up safely")
        await stage.press("enter")
        hosted.say("shop.py\n<<<<<<< SEARCH\n    return sum(rows)\n=======\n    return 1\n")
        await stage.until(lambda: stage.screen.state.running, "a turn")
        await stage.press("i")
        stage.composer.put("? why one")
        await stage.press("enter")
        await stage.until(lambda: len(hosted.creates) == 2, "a question")
        assert stage.session.turns[-1].running
        await stage.press("ctrl+c")
        await stage.until(lambda: not stage.screen.state.running, "the stop of the turn")
        assert stage.session.chat.busy, "the answer is stopped by the next one"
        await stage.press("ctrl+c")
        await stage.until(lambda: not stage.session.chat.busy, "the stop of the answer")


async def test_looking_at_files_is_allowed_once(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        stage.composer.put("? where are rows")
        await stage.press("enter")
        hosted.call("pkg/cart.py", "read_file")
        hosted.end()
        await stage.until(lambda: "wants to look at files" in stage.notice, "a question")
        assert "read_file pkg/cart.py" in stage.notice
        assert "waits for your answer" in shown(stage)
        await stage.press("1")
        await stage.until(lambda: "read pkg/cart.py" in shown(stage), "it was read")
        hosted.say("In pkg/cart.py.")
        hosted.end()
        await stage.until(lambda: "In pkg/cart.py." in shown(stage), "an answer")
        await stage.until(lambda: not stage.session.chat.busy, "the end")
        assert "wants to look" not in stage.notice


@pytest.mark.parametrize("number", ["1", "2"])
async def test_a_file_that_is_not_shown_is_asked_for(root: Path, number: str) -> None:
    (root / ".env").write_text("MODE=fast\n")
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        stage.session.chat.allow(on=True)
        stage.composer.put("? how fast is it")
        await stage.press("enter")
        hosted.call(".env", "read_file")
        hosted.end()
        await stage.until(lambda: "wants to read .env" in stage.notice, "a question")
        assert "which has the name of a file with credentials" in stage.notice
        await stage.until(lambda: ".env has the name of a" in shown(stage), "it is in the pane")
        await stage.press(number)
        await stage.until(lambda: len(hosted.creates) == 2, "it goes on")
        assert ("MODE=fast" in str(hosted.messages)) == (number == "1")
        await stage.until(lambda: "wants to read" not in stage.notice, "the notice is gone")
        assert stage.session.chat.permission.allowed


@pytest.mark.parametrize("number", ["1", "2"])
async def test_the_question_can_be_answered_when_its_notice_is_gone(
    root: Path, number: str
) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        hosted.call("shop.py", "read_file")
        hosted.end()
        stage.composer.put("? what is total")
        await stage.press("enter")
        await stage.until(lambda: stage.screen.notices.asking, "the question")
        await stage.press("escape")
        assert not stage.screen.notices.asking
        await stage.until(lambda: "1 yes, 2 no" in shown(stage), "how to answer")
        await stage.press(number)
        await stage.until(lambda: len(hosted.creates) == 2, "it goes on")
        assert stage.session.chat.permission.allowed == (number == "1")


async def test_looking_at_files_before_an_edit_is_asked_for_beside_the_code(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        stage.composer.put("return zero for no rows")
        await stage.press("enter")
        hosted.call("pkg/cart.py", "read_file")
        hosted.end()
        await stage.until(lambda: "wants to look at files" in stage.notice, "a question")
        await stage.press("1")
        await stage.until(lambda: len(hosted.creates) == 2, "the next request")
        hosted.say("shop.py\n<<<<<<< SEARCH\n    return sum(rows)\n=======\n    return 0\n")
        hosted.say(">>>>>>> REPLACE\n")
        hosted.end()
        await stage.until(lambda: len(stage.session.hunks) == 1, "a hunk")
        await stage.until(lambda: stage.session.status.state == "ready", "the end")
        assert "wants to look" not in stage.notice
        assert (root / "shop.py").read_text() == SHOP


async def test_related_code_is_named_above_the_text_once_it_is_found(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = asyncio.Event()

    async def find(_: object, place: related.FileLines, seconds: float) -> related.Related:
        await found.wait()
        uses = (related.Excerpt("pkg/cart.py", 0, "rows", "rows = []\n"),)
        return related.Related(place.symbol, uses=uses)

    monkeypatch.setattr(related, "find_related", find)
    monkeypatch.setattr(related.RelatedCode, "look", LOOK)
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        await stage.type("return zero")
        await stage.until(lambda: "1 left out; f3 shows it" in stage.title, "what is missing")
        found.set()
        await stage.until(lambda: "tokens: shop.py, 1 use (" in stage.title, "what was found")
        await stage.press("f3")
        await stage.until(lambda: isinstance(stage.app.screen, SentScreen), "the page")
        page = stage.app.screen
        assert isinstance(page, SentScreen)
        await stage.until(lambda: page.list.rows, "its rows")
        assert "of total in pkg/cart.py:1" in str(page.list.rows)


async def test_an_edit_model_says_what_answers_instead(root: Path) -> None:
    async with on_stage(root) as stage:
        await stage.press("i")
        stage.composer.put("? why")
        await stage.until(lambda: "answers no questions" in stage.title, "a title")
        await stage.press("enter")
        await stage.until(lambda: "answers no questions" in stage.notice, "a notice")
        assert "M chooses another" in stage.notice
        assert "answers no questions" not in stage.title, "it is said once"
        assert stage.composer.text == "? why"
        assert stage.screen.panes.conversation is None


async def test_without_a_conversation_its_keys_say_how_to_begin_one(root: Path) -> None:
    async with on_stage(root) as stage:
        await stage.press("escape", "D")
        assert "begin a text with ? to ask the model" in stage.notice
        await stage.press("I")
        assert "no answer yet" in stage.notice
        await stage.press("O")
        assert "no answer yet" in stage.notice


@pytest.mark.parametrize(
    ("text", "hrefs"),
    [
        ("see src/app.py:12 and app.py.", ["src/app.py#L12", "app.py"]),
        ("in `src/app.py:3` and `x = app.py`", ["src/app.py#L3"]),
        (
            "[mine](app.py:4) and https://example.org/app.py",
            ["app.py:4", "https://example.org/app.py"],
        ),
        ("gone.py:3 and shop.io", []),
        ("```\nsrc/app.py:1\n```", []),
        ("src/app.py:10-20", ["src/app.py#L10"]),
    ],
)
def test_places_are_links(text: str, hrefs: list[str]) -> None:
    tokens = parser(lambda path: path in ("src/app.py", "app.py")).parse(text)
    links = [
        child.attrs["href"]
        for token in tokens
        for child in token.children or ()
        if child.type == "link_open"
    ]
    assert links == hrefs


@pytest.mark.parametrize(
    ("href", "place"),
    [
        ("src/app.py#L12", "src/app.py:12"),
        ("src/app.py:12", "src/app.py:12"),
        ("app.py:12", "app.py:12"),
        ("a%20b.py", "a b.py"),
        ("mailto:someone", "None"),
        ("javascript:alert(1)", "None"),
        ("#top", "None"),
    ],
)
def test_where_a_link_leads(href: str, place: str) -> None:
    assert str(place_of(href)) == place


PLAN = "1. `total`: skip None\n2. names: sort them\n"
TOTAL = (
    "shop.py\n<<<<<<< SEARCH\n    return sum(rows)\n=======\n"
    "    return sum(row or 0 for row in rows)\n>>>>>>> REPLACE\n"
)


async def test_a_plan_is_made_edited_and_carried_out_by_keys(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        stage.composer.put("plan: make it robust")
        await stage.until(lambda: "Plan" in stage.title, "its title")
        await stage.press("enter")
        hosted.say(PLAN)
        hosted.end()
        await stage.until(
            lambda: "A plan of 2 steps; begin the first (press .)" in stage.notice, "a plan"
        )
        assert "· 1. total: skip None" not in shown(stage), "they stand above"
        assert (root / "shop.py").read_text() == SHOP

        await stage.press("alt+p")
        await stage.until(lambda: stage.composer.text == f"plan:\n{PLAN}".strip(), "to be edited")
        await stage.until(lambda: "these steps become the plan" in stage.title, "what they do")
        stage.composer.put("plan:\n1. total: skip None\n2. names: leave out")
        await stage.press("enter")
        await stage.until(lambda: "· 2. names: leave out" in shown(stage), "the edited plan")
        assert len(hosted.creates) == 1, "the model was not needed"

        hosted.say(TOTAL)
        hosted.end()
        await stage.press("full_stop")
        await stage.until(lambda: "› 1. total: skip None" in shown(stage), "begun")
        await stage.until(lambda: stage.session.hunks.undecided(), "a hunk")
        await stage.until(lambda: stage.session.status.state == "ready", "the end")
        await stage.press("a")
        await stage.until(lambda: "✓ 1. total: skip None" in shown(stage), "ticked off")
        await stage.until(lambda: "Step 1 of the plan is done" in stage.notice, "told")
        await stage.press("u")
        await stage.until(lambda: "› 1. total: skip None" in shown(stage), "open again")
        await stage.press("alt+n")
        await stage.until(lambda: stage.session.chat.plan is None, "no plan any more")


async def test_a_step_that_fails_is_not_put_into_the_text_field(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        await stage.press("escape")
        stage.session.chat.steps.replace(["total: skip None", "names: sort them"])
        hosted.say("I cannot.")
        hosted.end()
        await stage.press("full_stop")
        await stage.until(lambda: "returned no edit" in stage.notice, "the failure")
        assert not stage.composer.text
        assert stage.pane.has_focus
        assert ". next step" in keys(stage)
        assert "alt+p edit plan" in keys(stage)
        assert stage.session.chat.steps.next == "total: skip None"
        hosted.say(TOTAL)
        hosted.end()
        await stage.press("full_stop")
        await stage.until(lambda: stage.session.hunks.undecided(), "a hunk")


async def test_a_plan_that_is_only_looked_at_does_not_stay_in_the_field(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        stage.session.chat.steps.replace(["total: skip None", "names: sort"])
        await stage.press("escape", "alt+p")
        await stage.until(lambda: "2. names: sort" in stage.composer.text, "the plan")
        await stage.press("escape")
        await stage.until(lambda: not stage.composer.text, "gone")
        await stage.press("alt+p")
        await stage.type(" them")
        await stage.press("escape")
        await stage.until(lambda: stage.pane.has_focus, "the code")
        assert stage.composer.text.endswith("2. names: sort them")


@pytest.mark.parametrize(
    ("height", "rows"), [(24, 3), (30, 4), (50, 8)], ids=["80x24", "100x30", "tall"]
)
async def test_below_the_code_the_steps_around_the_current_one_are_shown(
    root: Path, height: int, rows: int
) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted, (100, height)) as stage:
        plan = stage.session.chat.steps
        plan.replace([f"step {number}" for number in range(1, 10)])
        await stage.until(lambda: "1. step 1" in shown(stage), "the plan")
        await stage.pilot.pause()
        view = stage.screen.panes.conversation
        assert view is not None
        steps = view.query_one("#plan", Static)
        assert steps.size.height >= rows
        assert "· 1. step 1" in str(steps.render())


async def test_without_a_plan_its_keys_say_how_to_make_one(root: Path) -> None:
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        await stage.press("escape", "full_stop")
        await stage.until(lambda: "plan:" in stage.notice, "a hint")
        await stage.press("alt+p")
        await stage.until(lambda: "There is no plan" in stage.notice, "a hint")
        assert not stage.composer.text


async def test_what_would_be_sent_is_shown_beside_the_field_as_well(root: Path) -> None:
    async with hosted_stage(root, Hosted()) as stage:
        await stage.press("i")
        await stage.type("? what does total do")
        await stage.press("escape")
        await stage.until(lambda: stage.pane.has_focus, "the code")
        await stage.press("f3")
        await stage.until(lambda: isinstance(stage.app.screen, SentScreen), "the page")
        page = stage.app.screen
        assert isinstance(page, SentScreen)
        await stage.until(lambda: page.list.rows, "its rows")
        first = "".join(text for text, _ in page.list.rows[0].left)
        assert "what does total do" in first


@pytest.mark.system
async def test_what_was_sent_with_a_question_can_be_read_word_for_word(root: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (root / "AGENTS.md").write_text(f"Say it in one line. token = '{token}'\n")
    hosted = Hosted()
    async with hosted_stage(root, hosted) as stage:
        await stage.press("escape", "f3")
        await stage.until(lambda: "Nothing has been sent yet" in stage.notice, "a word")
        await stage.press("i")
        await stage.type("? what does total do")
        await stage.press("enter")
        await stage.until(lambda: bool(hosted.creates), "the question")
        await stage.press("f3")
        await stage.until(lambda: isinstance(stage.app.screen, SentScreen), "the page")
        page = stage.app.screen
        assert isinstance(page, SentScreen)
        await stage.until(lambda: page.list.rows, "its rows")
        rows = ["".join(text for text, _ in row.left).strip() for row in page.list.rows]
        assert rows[0] == "question  what does total do"
        assert rows[1:5] == ["system text", "question, with its context", "shop.py", "AGENTS.md"]
        assert rows[-1].startswith("tools")
        await stage.press("a")
        await stage.until(lambda: isinstance(stage.app.screen, ReadingScreen), "all of it")
        whole = stage.app.screen.query_one(Static).content.plain  # type: ignore[union-attr]
        words = hosted.creates[0]["instructions"].split()
        assert " ".join(words) in " ".join(whole.split()), "in lines of its own paragraphs"
        assert '<file path="shop.py">\n1 def total(rows):\n' in whole
        assert "Say it in one line. token = 'ghp_…'" in whole
        assert token not in whole
        assert "read_file" in whole
        await stage.press("escape", "j", "j", "j", "enter")
        await stage.until(lambda: isinstance(stage.app.screen, ReadingScreen), "one piece")
        piece = stage.app.screen.query_one(Static).content.plain  # type: ignore[union-attr]
        assert piece.startswith("shop.py\n")
        assert "\n6     return [row.name for row in rows]\n</file>" in piece
        await stage.press("f3", "f3")
        assert stage.app.screen is stage.screen
        hosted.end()
