"""An instruction goes to the place that it names, and what is no edit does not become one."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.edits.documents import SourceText
from midstream.edits.request import parse_request
from midstream.engine.types import GenerateRequest
from midstream.pairing.request.kinds import NotAnEditError, check_is_edit, question_of, removes
from midstream.pairing.request.mentions import AtPath, find_at_paths, missing_names
from midstream.pairing.request.question import Question
from midstream.pairing.request.renaming import Renaming, renamed_again
from midstream.pairing.request.target import TargetUnclearError, find_target
from midstream.pairing.session import PairingSession
from midstream.responses.model_info import ModelInfo
from midstream.serving.replay import ReplayModel
from midstream.settings import Settings
from midstream.workspace.files import Workspace
from tests.helpers.pairing import Witness
from tests.helpers.stepped import SteppedModel, served

UTIL = "def f(x):\n    return x\n\n\ndef g(x):\n    return x * 2\n"
MAIN = "import util\n\n\ndef main(word):\n    hits = word\n    return hits\n"
FILES = {"util.py": UTIL, "main.py": MAIN}


async def test_a_definition_with_at_wins_over_the_cursor_in_another_file(
    session: PairingSession,
) -> None:
    turn = await session.turns.instruct(
        Question("rename x to n in @util.py:g", path="main.py", cursor=4)
    )
    assert (turn.path, turn.symbol) == ("util.py", "g")
    await session.turns.stop_turn()
    turn = await session.turns.instruct(
        Question("add a docstring to @util.py:f", path="main.py", cursor=4)
    )
    assert (turn.path, turn.symbol) == ("util.py", "f")
    await session.turns.stop_turn()
    turn = await session.turns.instruct(
        Question("in @main.py rename word to text", path="util.py", cursor=1)
    )
    assert (turn.path, turn.symbol) == ("main.py", "main")
    await session.turns.stop_turn()
    turn = await session.turns.instruct(Question("tidy as in @util.py", path="main.py", cursor=4))
    assert (turn.path, turn.symbol) == ("main.py", "main")
    await session.turns.stop_turn()


@pytest.mark.parametrize(
    ("asked", "path", "symbol"),
    [
        ("make scale in util.py return 0 for none", "util.py", "scale"),
        ("in util.py, add a docstring to scale", "util.py", "scale"),
        ("make scale (in util.py) return 0", "util.py", "scale"),
        ("read the word with scale from util.py", "main.py", "main"),
        ("call scale in util.py for the word", "main.py", "main"),
        ("rename word to text in main, as in util.py", "main.py", "main"),
    ],
)
async def test_a_chat_model_is_shown_the_named_file_where_only_that_has_the_code(
    root: Path, asked: str, path: str, symbol: str
) -> None:
    (root / "util.py").write_text(UTIL.replace("def f", "def scale"))
    async with (
        served(SteppedModel({"prompt": "chat"})) as endpoint,
        await PairingSession.open(root, settings=Settings(), endpoint=endpoint) as session,
    ):
        await session.server.ready()
        turn = await session.turns.instruct(Question(asked, path="main.py", cursor=4))
        assert (turn.path, turn.symbol) == (path, symbol)
        await session.turns.stop_turn()


async def test_a_chat_model_is_not_shown_a_file_that_lacks_what_the_instruction_is_about(
    root: Path,
) -> None:
    (root / "util.py").write_text(UTIL.replace("def f", "def scale"))
    (root / "main.py").write_text(f"{MAIN}\n\ndef other():\n    pass\n\n\n")
    model = SteppedModel({"prompt": "chat"})
    async with (
        served(model) as endpoint,
        await PairingSession.open(root, settings=Settings(), endpoint=endpoint) as session,
    ):
        await session.server.ready()
        below = len((root / "main.py").read_text().split("\n")) - 2
        question = Question("scale should not divide by zero", path="main.py", cursor=below)
        with pytest.raises(TargetUnclearError, match=r"not defined in main\.py but in util\.py"):
            await session.turns.instruct(question)
        assert not model.requests


@pytest.mark.parametrize(
    ("asked", "path", "symbol"),
    [
        ("rename x to n in g in util.py", "util.py", "g"),
        ("in g of the file `util.py` rename x to n", "util.py", "g"),
        ("tidy as in util.py", "main.py", "main"),
    ],
)
async def test_a_file_named_in_words_wins_over_the_cursor(
    session: PairingSession, asked: str, path: str, symbol: str
) -> None:
    turn = await session.turns.instruct(Question(asked, path="main.py", cursor=4))
    assert (turn.path, turn.symbol) == (path, symbol)
    await session.turns.stop_turn()


async def test_where_an_instruction_goes_is_known_before_it_is_sent(
    session: PairingSession, model: SteppedModel
) -> None:
    scope = await session.turns.aim(
        Question("rename x to n in @util.py:g", path="main.py", cursor=4)
    )
    assert (scope.proposal.path, scope.target.symbol) == ("util.py", "g")
    assert not model.requests


async def test_a_function_of_another_file_is_not_renamed_at_the_cursor(
    session: PairingSession, model: SteppedModel
) -> None:
    with pytest.raises(TargetUnclearError, match=r"not defined in main\.py but in util\.py"):
        await session.turns.instruct(Question("rename `f` to `first`", path="main.py", cursor=4))
    with pytest.raises(TargetUnclearError, match=r"not defined in main\.py but in util\.py"):
        await session.turns.instruct(Question("rename f to first", path="main.py", cursor=4))
    assert not model.requests


async def test_a_name_of_another_file_is_not_renamed_where_it_is_used(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    (root / "util.py").write_text(f"LIMIT = 3\n\n\n{UTIL}")
    main = MAIN.replace("hits = word", "hits = util.f(word)[: util.LIMIT]")
    (root / "main.py").write_text(main)
    for name in ("f", "LIMIT"):
        with pytest.raises(TargetUnclearError, match=r"not defined in main\.py but in util\.py"):
            await session.turns.instruct(
                Question(f"rename {name} to first", path="main.py", cursor=4)
            )
    assert not model.requests
    turn = await session.turns.instruct(Question("rename LIMIT to MOST", path="util.py"))
    assert (turn.start, turn.stop) == (0, 1)
    await session.turns.stop_turn()
    (root / "main.py").write_text(main.replace("hits = util.f", "util.f = hits = util.f"))
    turn = await session.turns.instruct(Question("rename f to first", path="main.py", cursor=4))
    assert turn.symbol == "main", "an attribute that is set here"
    await session.turns.stop_turn()


@pytest.mark.parametrize(
    ("asked", "cursor", "sentence"),
    [
        ("rename htis to n", 4, r"Nothing here is called `htis`; nearest: `hits`\."),
        ("rename `wrod` to text in main", 4, r"Nothing here is called `wrod`; nearest: `word`\."),
        ("rename htis to n", None, r"Nothing here is called `htis`; nearest: `hits`\."),
        ("rename qqqq to n", 4, r"Nothing here is called `qqqq`; use a name that the code has\."),
        ("rename widest to n", 4, r"`widest` is not in main\.py but in shape\.py; open the one"),
        (
            "rename widest to n in main",
            4,
            r"`widest` is not in main\.py but in shape\.py; open the",
        ),
        ("rename sep to n", 4, r"`sep` is not in `main` but in line 1 of main\.py; mark the lines"),
    ],
)
async def test_a_name_that_is_not_there_is_not_renamed_at_the_cursor(
    session: PairingSession,
    model: SteppedModel,
    root: Path,
    asked: str,
    cursor: int | None,
    sentence: str,
) -> None:
    (root / "main.py").write_text(f"from os import path as sep\n{MAIN}")
    (root / "shape.py").write_text(
        "class Shape:\n    def __init__(self):\n        self.widest = 1\n"
    )
    with pytest.raises(TargetUnclearError, match=sentence) as caught:
        await session.turns.instruct(Question(asked, path="main.py", cursor=cursor))
    assert not caught.value.candidates, "the same words would be wrong there as well"
    assert not model.requests


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("make frobnicate return 3", r"There is no `frobnicate` in main\.py; name a function, or"),
        ("have frobnicate() take a path", r"There is no `frobnicate` in main\.py"),
        ("fix load_all", r"There is no `load_all` in main\.py"),
        ("refactor loadAll into two parts", r"There is no `loadAll` in main\.py"),
        ("load_all crashes on an empty file", r"There is no `load_all` in main\.py"),
        ("make mian return 3", r"There is no `mian` in main\.py; nearest: `main`"),
        ("make gauge_of return 3", r"`gauge_of` is not defined in main\.py but in shape\.py"),
    ],
)
async def test_what_is_to_be_changed_is_there(
    session: PairingSession, model: SteppedModel, root: Path, asked: str, sentence: str
) -> None:
    (root / "shape.py").write_text("def gauge_of(x):\n    return x\n")
    with pytest.raises(TargetUnclearError, match=sentence):
        await session.turns.instruct(Question(asked, path="main.py", cursor=0))
    assert not model.requests
    turn = await session.turns.instruct(Question(asked, path="main.py", cursor=0, selection=(3, 6)))
    assert (turn.start, turn.stop) == (3, 6)
    await session.turns.stop_turn()


@pytest.mark.parametrize(
    "asked",
    [
        "gauge: raise TypeError for None",
        "fix gauge for None",
        "make gauge raise TypeError for None",
        "fix the crash in gauge",
    ],
)
async def test_a_plain_name_that_another_file_defines_is_asked_about(
    session: PairingSession, model: SteppedModel, root: Path, asked: str
) -> None:
    (root / "shape.py").write_text("def gauge(x):\n    return x\n\n\ndef crash():\n    pass\n")
    with pytest.raises(TargetUnclearError, match=r"`gauge` is not defined in main\.py but in sha"):
        await session.turns.instruct(Question(asked, path="main.py", cursor=4))
    assert not model.requests


@pytest.mark.parametrize(
    "asked",
    [
        "make it faster",
        "make tests pass",
        "make it return 3",
        "make the parser accept None",
        "make errors raise",
        "make sure it takes a list",
        "make words return early",
        "let callers pass a limit",
        "fix GitHub links",
        "fix utf8 handling",
        "use read_text",
        "add is_empty",
        "max_words should be a parameter",
        "make print take a list",
    ],
)
async def test_ordinary_words_are_no_missing_names(session: PairingSession, asked: str) -> None:
    turn = await session.turns.instruct(Question(asked, path="main.py", cursor=4))
    assert turn.symbol == "main"
    await session.turns.stop_turn()


async def test_a_name_that_an_undecided_hunk_brings_is_there(
    session: PairingSession, model: SteppedModel
) -> None:
    await session.turns.instruct(Question("tidy", path="main.py", cursor=4))
    model.give("def main(word):\n    fresh_one = word\n    return fresh_one\n")
    model.give(None)
    await session.turns.finished()
    assert session.hunks.undecided()
    question = Question("have fresh_one take a list", path="main.py", cursor=4)
    turn = await session.turns.instruct(question)
    assert turn.symbol == "main"
    await session.turns.stop_turn()


@pytest.mark.parametrize("asked", ["rename it to first", "rename the function to first"])
async def test_a_word_for_the_thing_itself_is_no_name(session: PairingSession, asked: str) -> None:
    turn = await session.turns.instruct(Question(asked, path="main.py", cursor=4))
    assert turn.symbol == "main"
    await session.turns.stop_turn()


def test_a_decorator_is_not_a_file(root: Path) -> None:
    workspace = Workspace(root)
    assert find_at_paths("add @functools.cache to main", workspace) == ()
    assert find_at_paths("use @util.py:g", workspace) == (AtPath("util.py", None, "g"),)
    text = SourceText.from_text(MAIN)
    found = find_target(text, instruction="add @functools.cache to main", cursor=None)
    assert found.symbol == "main"


@pytest.mark.parametrize(
    ("asked", "symbol"),
    [
        ("ratio crashes when b is zero, fix it", "ratio"),
        ("ratio should return 0 for an empty list", "ratio"),
        ("print the names in upper case", None),
    ],
)
def test_english_words_and_subjects(asked: str, symbol: str | None) -> None:
    text = SourceText.from_text("def ratio(a, b):\n    return a / b\n\n\ndef other():\n    pass\n")
    if symbol is None:
        with pytest.raises(TargetUnclearError, match="Which part"):
            find_target(text, instruction=asked)
    else:
        assert find_target(text, instruction=asked).symbol == symbol


@pytest.mark.parametrize(
    "asked",
    [
        "no, call it `hits_found`",
        "introduce a constant `LIMIT` for 3",
        "extract a helper `read_rows`",
        "put the sum into a variable `subtotal`",
        "change the type to `int`",
        "give it a keyword `sep`",
    ],
)
def test_names_that_are_to_be_created_need_not_occur(asked: str) -> None:
    assert missing_names(asked, MAIN.split("\n")) == []


def test_a_name_is_exchanged_before_it_was_written() -> None:
    before = ["def find():", "    found = []", "    return found"]
    again = renamed_again("no, call it `hits`", "rename found to matches", before, before[:1])
    assert again == Renaming("matches", "hits")


@pytest.mark.parametrize(
    "said",
    [
        "no, call it `matches`",
        "sorry, `matches` is better",
        "`matches` would be better",
        "better: matches",
        "actually, a better name would be matches",
    ],
)
async def test_another_name_right_after_the_end_is_for_the_last_answer(
    session: PairingSession, model: SteppedModel, said: str
) -> None:
    await session.turns.instruct(Question("rename hits to found in main", path="main.py"))
    model.give("def main(word):\n    found = word\n    return found\n")
    model.end()
    await session.turns.finished()
    await session.decisions.accept_rest("main.py")
    turn = await session.turns.instruct(Question(said, path="util.py", cursor=0))
    assert (turn.path, turn.symbol) == ("main.py", "main")
    await Witness(session).until(lambda: model.asked != "rename hits to found in main")
    assert model.asked == "rename `found` to `matches`"
    await session.turns.stop_turn()


async def test_an_instruction_for_undecided_lines_says_so(
    session: PairingSession, model: SteppedModel
) -> None:
    await session.turns.instruct(Question("rename hits to found in main", path="main.py"))
    model.give("def main(word):\n    wrong = word\n    return wrong\n")
    model.end()
    await session.turns.finished()
    await session.turns.instruct(Question("add a docstring to main", path="main.py"))
    assert any("works on the text of" in each.text for each in session.status.notices)
    await session.turns.stop_turn()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("rename x to n in @util.py:g", "rename x to n in g"),
        ("In @util.py, add a docstring to g.", "add a docstring to g."),
        ("rename x to n in g in util.py", "rename x to n in g"),
        ("@util.py:g", "g"),
        ("add @functools.cache to main", "add @functools.cache to main"),
        ("tidy main as in @util.py", "tidy main as in util.py"),
    ],
)
async def test_an_edit_model_is_not_told_files(root: Path, asked: str, told: str) -> None:
    """It would take the ``@`` for a decorator."""
    told_it: list[str] = []

    def answer(request: GenerateRequest) -> str:
        parsed = parse_request(request.messages[-1].text)
        assert parsed is not None
        told_it.append(parsed.instruction)
        return parsed.region

    model = ReplayModel(answer, facts={"prompt": "edit-rewrite", "languages": "python"})
    async with (
        served(model) as endpoint,
        await PairingSession.open(root, settings=Settings(), endpoint=endpoint) as session,
    ):
        await session.turns.instruct(Question(asked, path="main.py", cursor=4))
        await session.turns.finished()
    assert told_it == [told]


EDITS = ModelInfo(prompt="edit-rewrite")


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("/help", "help.anywhere"),
        ("help", "help.anywhere"),
        ("/model", "palette.anywhere"),
        ("run the tests", "checks"),
        ("run the tests in this project", "checks"),
        ("undo your last change", "decision.undo"),
        ("please undo that", "decision.undo"),
        ("accept all changes", "hunk.accept"),
        ("commit", "commit"),
        ("what does main do?", "models"),
        ("explain this function", "models"),
        ("why is this slow?", "models"),
        ("write a test for main", "models"),
        ("create a new file util2.py", "models"),
        ("add a function that parses dates", "models"),
    ],
)
def test_what_is_no_edit_names_the_key(said: str, action: str) -> None:
    from midstream.actions import ACTIONS

    with pytest.raises(NotAnEditError) as caught:
        check_is_edit(said, EDITS)
    assert caught.value.action == action
    assert action in {each.id for each in ACTIONS}
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "said",
    [
        "undo the reversal of the list",
        "accept all kinds of iterables",
        "help users by adding a docstring",
        "can you rename x to y?",
        "stop the loop at zero",
        "run the callback twice",
        "when x is None, return early",
        "add a docstring that explains the result",
        "describe the function in a docstring",
        "keep the order",
        "add a method size",
    ],
)
def test_edits_stay_edits(said: str) -> None:
    check_is_edit(said, EDITS)
    assert not question_of(said)


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("? shorter, please", "shorter, please"),
        ("?what now", "what now"),
        ("  why is that?", "why is that?"),
        ("rename it?", ""),
        ("summarize: raise if rows is empty", ""),
        ("explain: why does it raise", "explain: why does it raise"),
        ("?", ""),
    ],
)
def test_a_question_mark_in_front_makes_a_question(said: str, question: str) -> None:
    assert question_of(said) == question


def test_a_model_that_chats_is_asked() -> None:
    chat = ModelInfo(prompt="chat")
    check_is_edit("write a test for main", chat)
    with pytest.raises(NotAnEditError, match="This is a question"):
        check_is_edit("what does main do?", chat)
    with pytest.raises(NotAnEditError):
        check_is_edit("run the tests", chat)


async def test_what_is_no_edit_reaches_no_model(
    session: PairingSession, model: SteppedModel
) -> None:
    for said in ("what does this do?", "run the tests", "undo your last change", "/help"):
        with pytest.raises(NotAnEditError):
            await session.turns.instruct(Question(said, path="main.py", cursor=4))
    assert not model.requests


@pytest.mark.parametrize(
    ("said", "goes"),
    [
        ("remove the function total", True),
        ("Please delete `Cart.total()` from cart.py.", True),
        ("get rid of the unused method total in Cart, please", True),
        ("remove total", True),
        ("remove total's docstring", False),
        ("remove the logging from total", False),
        ("remove the parameter total", False),
        ("remove total and add size", False),
        ("do not remove total", False),
        ("remove Shop.total", False),
        ("remove size", False),
        ("rewrite total", False),
    ],
)
def test_only_a_request_for_nothing_else_removes_a_definition(said: str, *, goes: bool) -> None:
    assert removes(said, "Cart.total") == goes
    assert not removes(said, "")
