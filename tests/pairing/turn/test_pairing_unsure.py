"""What is told of an answer that its model is unsure of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from midstream.commands.edit import DiffSink, JsonSink
from midstream.engine.types import GenerateRequest, Piece
from midstream.errors import UserError
from midstream.pairing.chat.plan import StepState
from midstream.pairing.headless import Job, run_job
from midstream.pairing.request.builder import AlreadyThereError
from midstream.pairing.request.mentions import new_names
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.status import Confidence, NoticeLevel
from midstream.pairing.turn.finished import unsure_of, way_out
from midstream.responses.profiles import Profile
from midstream.settings import Settings
from tests.helpers.copyist import write_copyist
from tests.helpers.pairing import Witness
from tests.helpers.stepped import SteppedGeneration, SteppedModel, served

BODY = '''\
def load(path, limit=None):
    """Load it."""
    with open(path, "rb") as handle:
        data = handle.read(limit)
    data = data.strip()
    return data
'''
FILES = {"files.py": BODY}
MISREAD = "def load(path: str) -> bytes:\n    return path\n"
SENTENCE = (
    "stepped may have got this change wrong: it deleted 4 lines. "
    "Read it before you accept it, say it in other words, or ask a larger model."
)
ENDPOINTS = (
    Profile("work", "openai", "https://example.org/v1", "large"),
    Profile("home", "custom", "http://127.0.0.1:9/v1", "other"),
)


class CalibratedModel(SteppedModel):
    """A model that says how sure it was."""

    def __init__(self, confidence: float) -> None:
        super().__init__({"confidence_threshold": "0.6"})
        self.told = confidence

    def start(self, request: GenerateRequest) -> SteppedGeneration:
        self.requests.append(request)
        return CalibratedGeneration(self, request)


class CalibratedGeneration(SteppedGeneration):
    def __iter__(self) -> Iterator[Piece]:
        yield from super().__iter__()
        assert isinstance(self._model, CalibratedModel)
        self.usage.confidence = self._model.told


@pytest.fixture
def model() -> CalibratedModel:
    return CalibratedModel(0.21)


async def ask(
    session: PairingSession,
    model: SteppedModel,
    text: str,
    asked: str = "handle is a stream and it returns bytes",
    *,
    marked: bool = True,
) -> None:
    model.give(text)
    model.end()
    lines = (0, 6) if marked else None
    await session.turns.instruct(Question(asked, path="files.py", cursor=0, selection=lines))
    await session.turns.finished()


async def test_an_unsure_answer_is_told_as_one(
    session: PairingSession, model: CalibratedModel
) -> None:
    await ask(session, model, MISREAD)
    turn, notice = session.turns.last, session.status.notices[-1]
    assert turn is not None
    assert notice.text == turn.unsure == SENTENCE
    assert notice.level is NoticeLevel.WARNING
    assert notice.action == "models"
    assert turn.confidence == 0.21


async def test_a_rename_that_is_whole_needs_no_confidence(
    session: PairingSession, model: CalibratedModel
) -> None:
    await ask(session, model, BODY.replace("data", "text"), "rename data to text")
    assert session.status.notices == []
    await ask(session, model, BODY.replace("data", "blob"), "no, call it blob")
    assert [
        notice for notice in session.status.notices if notice.level is not NoticeLevel.INFO
    ] == []
    assert session.attention.bulk(session.hunks.undecided()).risky == ()
    half = BODY.replace("data", "rest").replace("return rest", "return data")
    await ask(session, model, half, "rename blob to rest")
    last = session.turns.last
    assert last is not None
    assert last.unsure


async def test_another_name_after_a_stop_is_no_doubt(
    session: PairingSession, model: CalibratedModel
) -> None:
    """The model reads a half renamed function then, and renames the rest as well."""
    witness = Witness(session)
    renamed = BODY.replace("path", "file")
    model.give("".join(renamed.splitlines(keepends=True)[:2]) + "    wi")
    await session.turns.instruct(Question("rename path to file", path="files.py", cursor=0))
    await witness.decidable(1)
    await session.turns.stop_turn()
    for name in ("source", "place"):
        told = len(session.status.notices)
        await ask(session, model, BODY.replace("path", name), f"no, call it {name}", marked=False)
        said = [n for n in session.status.notices[told:] if n.level is not NoticeLevel.INFO]
        assert said == []
        assert session.attention.bulk(session.hunks.undecided()).risky == ()
    half = BODY.replace("(path, l", "(blob, l")
    await ask(session, model, half, "no, call it blob", marked=False)
    assert session.attention.bulk(session.hunks.undecided()).risky, "half of it is a fault"


async def test_another_name_after_a_stop_that_left_nothing(
    session: PairingSession, model: CalibratedModel
) -> None:
    """No place has the name yet, so the request itself is sent with the other name."""
    witness = Witness(session)
    model.give("def load(fi")
    await session.turns.instruct(Question("rename path to file", path="files.py", cursor=0))
    await witness.until(lambda: bool(session.turns.last and session.turns.last.tokens))
    await session.turns.stop_turn()
    assert not session.hunks.undecided()
    told = len(session.status.notices)
    await ask(session, model, BODY.replace("path", "source"), "no, call it source", marked=False)
    assert model.asked == "rename path to source"
    said = [n for n in session.status.notices[told:] if n.level is not NoticeLevel.INFO]
    assert said == []


async def test_what_the_instruction_before_asked_for_is_not_held_against_the_next(
    session: PairingSession, model: CalibratedModel
) -> None:
    model.told = 0.99
    plain = "\n".join(line for line in BODY.split("\n") if '"""' not in line)
    await ask(session, model, plain, "remove the docstring")
    model.told = 0.21
    await ask(session, model, plain.replace("data", "text"), "rename data to text")
    assert session.attention.bulk(session.hunks.undecided()).risky == ()
    await ask(session, model, plain.replace("data", "text").replace("limit=None", "limit"), "hm")
    assert "deleted" not in session.status.notices[-1].text


async def test_what_is_there_already_is_said_and_not_asked_for(
    session: PairingSession, model: CalibratedModel
) -> None:
    with pytest.raises(AlreadyThereError, match=r"`load` has a docstring already; say what"):
        await session.turns.instruct(Question("add a docstring to load", path="files.py"))
    assert not model.requests
    assert not session.turns
    await ask(session, model, BODY, "add a better docstring to load")
    assert model.requests, "any other wish is the model's"


async def test_a_new_parameter_that_the_function_assigns_is_told(
    session: PairingSession, model: CalibratedModel
) -> None:
    model.told = 0.99
    await ask(session, model, BODY.replace("limit=None", "limit=None, data=None"), "add data")
    turn = session.turns.last
    assert turn is not None
    assert turn.unsure == session.status.notices[-1].text
    assert turn.unsure.startswith("`data` is a parameter now, and the function assigns a variable")
    assert turn.doubted


async def test_a_redirect_that_leaves_half_a_rename_is_told(
    session: PairingSession, model: CalibratedModel, root: Path
) -> None:
    model.told = 0.99
    witness = Witness(session)
    prints = "    print(path)\n    print(limit)\n"  # The lines above them are settled.
    body = BODY.replace("    data = data.strip()\n", prints)
    (root / "files.py").write_text(body)
    lines = body.splitlines(keepends=True)
    model.give("".join(lines[:6]).replace("data", "text"))
    await session.turns.instruct(Question("rename data to text", path="files.py", selection=(0, 7)))
    await witness.until(lambda: "print(limit)" in session.files["files.py"].segments[-1].new_text)
    await session.turns.redirect("stop that and leave the rest")
    await witness.until(lambda: len(model.requests) == 2)
    model.give("".join(lines[6:]))
    model.end()
    await session.turns.finished()
    turn = session.turns.last
    assert turn is not None
    assert turn.unsure.startswith(
        "What was kept and what came after the redirect do not fit: `data` is still used and no"
    )
    assert session.status.notices[-1].text == turn.unsure


async def test_what_comes_from_nowhere_or_goes_unasked_is_named(
    session: PairingSession, model: CalibratedModel
) -> None:
    await ask(
        session, model, BODY.replace("load(", "fetch(").replace("data.strip()", "data.soneone")
    )
    assert session.status.notices[-1].text.startswith(
        "stepped may have got this change wrong: it no longer defines `load` "
        "and uses `fetch` and `soneone`, which nothing defines. "
    )


async def test_an_answer_without_the_name_that_was_asked_for_is_told(
    root: Path, settings: Settings
) -> None:
    sure = CalibratedModel(0.99)
    async with (
        served(sure) as endpoint,
        await PairingSession.open(root, settings=settings, endpoint=endpoint) as session,
    ):
        await ask(session, sure, BODY.replace("data", "text"), "call it content instead")
        assert session.status.notices[-1].text.startswith(
            "stepped did something else: `content` is nowhere in its answer."
        )
        (waiting, *_) = session.hunks.undecided("files.py")
        assert session.reason(waiting) == "model unsure"
        await ask(session, sure, BODY.replace("load", "content"), "rename data to content instead")
        assert session.status.notices[-1].text.startswith(
            "stepped did something else: it no longer defines `load`. Look closely"
        )
        told = len(session.status.notices)
        await ask(session, sure, BODY.replace("data", "content"), "rename data to content")
        assert not [n for n in session.status.notices[told:] if "something else" in n.text]


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("rename bytes to amount instead", ["amount"]),
        ("call it `amount`", ["amount"]),
        ("no, name the parameter count instead", ["count"]),
        ("call it once", []),
        ("call it lazily", []),
        ("call it in the loop", []),
        ("call it with count", []),
    ],
)
def test_names_that_must_come(asked: str, names: list[str]) -> None:
    assert new_names(asked) == names


async def test_its_hunks_are_not_accepted_in_bulk(
    session: PairingSession, model: CalibratedModel
) -> None:
    await ask(session, model, MISREAD)
    waiting = session.hunks.undecided("files.py")
    assert waiting
    bulk = session.attention.bulk(waiting)
    assert bulk.read == bulk.unread == ()
    assert bulk.risky == tuple((hunk.id, "model unsure") for hunk in waiting)
    # A piece of a flagged hunk is flagged as well.
    pieces = await session.decisions.split(waiting[0].id, [(2, 1)])
    assert {session.reason(session.hunks.get(piece)) for piece in pieces} == {"model unsure"}
    # Each piece can be accepted by itself, and loses its flag then.
    assert await session.decisions.accept(pieces[0])
    assert session.reason(session.hunks.get(pieces[0])) == ""
    assert session.reason(session.hunks.get(pieces[1])) == "model unsure"


async def test_a_flag_outlives_its_answer(session: PairingSession, model: CalibratedModel) -> None:
    """It stays after the same answer again, a later instruction, and a stop."""
    await ask(session, model, MISREAD)
    model.told = 0.99
    await ask(session, model, MISREAD, "tidy it up")
    waiting = session.hunks.undecided("files.py")
    assert waiting
    assert {session.reason(hunk) for hunk in waiting} == {"model unsure"}
    assert session.attention.bulk(waiting).read == ()
    # A later instruction works on the flagged text, and adds to it.
    await ask(session, model, f"{MISREAD}\n\nLIMIT = 3\n", "add a limit")
    waiting = session.hunks.undecided("files.py")
    assert any("return path" in line for hunk in waiting for line in hunk.new)
    assert {session.reason(h) for h in waiting if "    return path" in h.new} == {"model unsure"}
    # Another answer in its place has no such lines.
    await ask(session, model, BODY.replace("data", "text"), "call it text")
    assert {session.reason(hunk) for hunk in session.hunks.undecided("files.py")} == {""}


@pytest.mark.parametrize(("unsure", "written"), [(False, False), (True, True)])
async def test_a_flagged_answer_is_written_only_when_asked_for(
    root: Path, unsure: bool, written: bool
) -> None:
    model = CalibratedModel(0.21)
    model.give(MISREAD)
    model.end()
    asked = "handle is a stream and it returns bytes"
    job = Job(root, Question(asked, "files.py", None, (0, 6)), apply=True, unsure=unsure)
    async with served(model) as endpoint:
        outcome = await run_job(job, JsonSink(), settings=Settings(), endpoint=endpoint)
    assert outcome.written is written
    assert bool(outcome.refused) is not written
    assert (root / "files.py").read_text() == (MISREAD if written else BODY)


async def test_a_withheld_answer_shows_no_diff(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = CalibratedModel(0.99)
    model.give(BODY.replace("limit=None", "limit=None, encoding=utf-8", 1))
    model.end()
    asked = 'add a parameter encoding with default "utf-8"'
    job = Job(root, Question(asked, "files.py", None, (0, 6)))
    async with served(model) as endpoint:
        with pytest.raises(UserError, match="Nothing is proposed"):
            await run_job(job, DiffSink(), settings=Settings(), endpoint=endpoint)
    assert capsys.readouterr().out == ""


async def test_what_the_person_wrote_is_doubted_no_more(
    session: PairingSession, model: CalibratedModel
) -> None:
    await ask(session, model, MISREAD)
    (hunk, *_) = session.hunks.undecided("files.py")
    await session.decisions.edit(hunk.id, ["    return my_own(path)"])
    assert session.reason(hunk) == ""
    assert hunk.id not in dict(session.attention.bulk([hunk]).risky)
    await session.decisions.undo()
    assert session.reason(hunk) == "model unsure"
    await session.decisions.redo()
    assert session.reason(hunk) == ""


@asynccontextmanager
async def session_with(
    model: SteppedModel, root: Path, settings: Settings
) -> AsyncIterator[PairingSession]:
    async with (
        served(model) as endpoint,
        await PairingSession.open(
            root, settings=settings, endpoint=endpoint, watch=False
        ) as session,
    ):
        yield session


async def test_a_sure_answer_is_told_as_always(root: Path, settings: Settings) -> None:
    sure = CalibratedModel(0.6)
    async with session_with(sure, root, settings) as session:
        await ask(session, sure, BODY.replace("data", "text"))
        turn = session.turns.last
        assert turn is not None
        assert turn.confidence == 0.6
        assert turn.unsure == ""
        assert session.status.notices == []
        assert session.attention.bulk(session.hunks.undecided()).risky == ()


async def test_an_unsure_answer_stays_one_when_the_session_is_taken_up_again(
    root: Path, settings: Settings, model: CalibratedModel
) -> None:
    async with served(model) as endpoint:
        async with await PairingSession.open(
            root, settings=settings, endpoint=endpoint, watch=False
        ) as first:
            await ask(first, model, MISREAD)
            journal = first.journal.path
        assert journal is not None
        async with await PairingSession.open(
            root, settings=settings, endpoint=endpoint, resume=journal, watch=False
        ) as again:
            waiting = again.hunks.undecided("files.py")
            assert [again.reason(hunk) for hunk in waiting] == ["model unsure"] * len(waiting)
            assert waiting


async def test_a_follow_up_that_comes_back_the_same(root: Path, settings: Settings) -> None:
    sure = CalibratedModel(0.9)
    async with session_with(sure, root, settings) as session:
        changed = BODY.replace("data", "text")
        await ask(session, sure, changed)
        assert session.status.notices == []
        first = session.hunks.undecided("files.py")
        await ask(session, sure, changed)
        assert session.hunks.undecided("files.py") == first, "and those of the first answer"
        assert session.status.notices[-1].text == (
            "Nothing new is proposed: `load` of files.py came back with the same hunks as before; "
            "say it in other words, or ask a larger model."
        )
        assert session.status.notices[-1].action == "models"
        await ask(session, sure, changed.replace("limit", "most"))
        texts = [notice.text for notice in session.status.notices]
        assert sum(text.startswith("Nothing new is proposed") for text in texts) == 1


async def test_a_method_without_its_margin_is_not_taken_for_a_function(
    root: Path, settings: Settings
) -> None:
    (root / "files.py").write_text(
        "class Box:\n    def peek(self):\n        return self.top\n\n"
        "    def pop(self):\n        return self.top\n"
    )
    sure = CalibratedModel(0.9)
    sure.facts["prompt"] = "chat"
    async with session_with(sure, root, settings) as session:
        sure.give("```python\ndef peek(self):\n    return self.first\n```\n")
        sure.end()
        await session.turns.instruct(Question("peek gives the wrong end", path="files.py"))
        await session.turns.finished()
        (hunk,) = session.hunks.undecided()
        assert hunk.new == ("        return self.first",)
        assert session.reason(hunk) == ""


async def test_what_was_turned_down_is_flagged_also_from_a_model_that_is_sure(
    root: Path, settings: Settings
) -> None:
    sure = CalibratedModel(0.9)
    async with session_with(sure, root, settings) as session:
        changed = BODY.replace("data", "text")
        await ask(session, sure, changed)
        assert [session.reason(h) for h in session.hunks.undecided()] == [""]
        for hunk in session.hunks.undecided():
            await session.decisions.reject(hunk.id)
        await ask(session, sure, changed.replace("    text = text", "\n    text = text"))
        assert [session.reason(h) for h in session.hunks.undecided()] == ["model unsure"]
        assert session.turns.last is not None
        assert session.turns.last.unsure.startswith("The change that you rejected is proposed")


async def test_a_step_that_repeats_what_another_proposed_has_changed_nothing(
    root: Path, settings: Settings
) -> None:
    sure = CalibratedModel(0.9)
    async with session_with(sure, root, settings) as session:
        plan = session.chat.steps
        plan.replace(["speed up `load`", "close the file in `load`"])
        changed = BODY.replace("data", "text")
        for step in list(plan.steps):
            sure.give(changed)
            sure.end()
            await session.turns.instruct(Question(step.text, path="files.py"))
            await session.turns.finished()
        assert plan.states() == [StepState.BEGUN, StepState.NOTHING]
        assert session.status.notices[-1].text == (
            "Step 2 of the plan has changed nothing; step 1 is not decided yet."
        )
        await session.decisions.accept_rest("files.py")
        assert plan.states() == [StepState.DONE, StepState.NOTHING]


async def test_a_retry_that_brings_what_was_turned_down(
    session: PairingSession, model: CalibratedModel
) -> None:
    await ask(session, model, MISREAD)
    waiting = session.hunks.undecided("files.py")
    for hunk in waiting:
        await session.decisions.reject(hunk.id, "the limit is wanted")
    await ask(session, model, MISREAD)
    assert [h.new for h in session.hunks.undecided("files.py")] == [h.new for h in waiting]
    assert session.status.notices[-1].text == (
        "The change that you rejected is proposed again; "
        "say it in other words, or ask a larger model."
    )
    # The doubt is known, but its notice does not replace this one.
    assert session.turns.last is not None
    assert session.turns.last.unsure == SENTENCE
    assert session.reason(session.hunks.undecided("files.py")[0]) == "model unsure"
    await ask(session, model, MISREAD.replace("path\n", "path.read()\n"))
    # This answer kept the lines: the notice is about its addition to the proposal.
    assert session.status.notices[-1].text.startswith("stepped was not sure of this change")
    assert session.reason(session.hunks.undecided("files.py")[0]) == "model unsure"


def test_a_server_that_says_nothing() -> None:
    assert Confidence.read({}) is None
    assert Confidence.read({"midstream.confidence": "0.5"}) is None
    told = {"midstream.confidence": "x", "midstream.confidence_threshold": "0.5"}
    assert Confidence.read(told) is None
    told["midstream.confidence"] = "0.499"
    assert Confidence.read(told) == Confidence(0.499, 0.5)
    assert Confidence(0.499, 0.5).unsure
    assert not Confidence(0.5, 0.5).unsure


def test_doubt_in_words() -> None:
    seen = ["wrote invalid Python", "left out `X`", "deleted 1 line"]
    assert "it wrote invalid Python and left out `X`." in unsure_of("m", seen, way_out(()))
    assert "m was not sure of this change while writing it" in unsure_of("m", [], way_out(()))
    assert unsure_of("m", [], way_out(()), "its change of a.py").startswith(
        "m was not sure of its change of a.py while"
    )
    assert way_out(["a", "b", "c", "d"]).endswith("a larger model: a, b, c.")


@pytest.mark.parametrize("threshold", [0.0, 1.1])
def test_without_a_screen(
    tmp_path: Path, root: Path, threshold: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model from its logits to the last line, on both sides of the threshold."""
    folder = write_copyist(tmp_path / "judged", threshold=threshold)
    sink = JsonSink()
    job = Job(root, Question("take `data`, then `text`", "files.py", None, (0, 6)))
    outcome = asyncio.run(run_job(job, sink, settings=Settings(model=folder)))
    sink.ended(outcome)
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["confidence"] == outcome.confidence
    assert 0 < last["confidence"] < 1
    if threshold:
        assert " was not sure of this change while " in last["unsure"]
    else:
        assert last["unsure"] is None


async def test_a_sure_answer_with_a_name_that_is_not_imported(
    session: PairingSession, model: CalibratedModel
) -> None:
    model.told = 0.99
    await ask(session, model, f"@cache\n{BODY}", "cache it")
    turn, notice = session.turns.last, session.status.notices[-1]
    assert turn is not None
    assert notice.text == (
        "`cache` is neither defined nor imported in files.py. Add it, or ask for that next."
    )
    assert turn.unsure == notice.text
    assert all(map(session.turns.doubts, session.hunks.undecided()))


async def test_a_name_that_is_not_imported_is_one_of_several_doubts(
    session: PairingSession, model: CalibratedModel
) -> None:
    await ask(session, model, f"@cache\n{BODY}", "cache it")
    text = session.status.notices[-1].text
    assert "may have got this change wrong: it" in text
    assert "uses `cache` and does not define it" in text
