"""Questions to the model: answered in words, remembered, stopped, resumed; nothing is changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from midstream.errors import UserError
from midstream.pairing.chat import chat
from midstream.pairing.chat.chat import MAX_REPEATED, MEMORY_SHARE
from midstream.pairing.chat.entries import AnsweredQuestion, Speech, exchanges, packed, unpacked
from midstream.pairing.journal.journal import earlier_sessions, summarize
from midstream.pairing.request.context import estimate, limit_of
from midstream.pairing.request.kinds import NotAnEditError
from midstream.pairing.request.mentions import NeedsConsentError
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.responses.profiles import Profile
from midstream.serving import turn
from midstream.settings import Settings
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import Witness, git
from tests.helpers.rewriting import BEFORE
from tests.helpers.stepped import SteppedModel, served

CHAT = {"prompt": "chat", "languages": ""}


@pytest.fixture
def model() -> SteppedModel:
    return SteppedModel(CHAT)


@asynccontextmanager
async def opened(
    root: Path,
    endpoint: Endpoint | None = None,
    settings: Settings | None = None,
    resume: Path | None = None,
) -> AsyncIterator[PairingSession]:
    async with await PairingSession.open(
        root,
        settings=settings or Settings(guard=False),
        endpoint=endpoint,
        watch=False,
        resume=resume,
    ) as session:
        yield session


async def ask(session: PairingSession, model: SteppedModel, said: str, *answer: str) -> None:
    for text in answer:
        model.give(text)
    model.end()
    await session.chat.ask_question(Question(said))
    await session.chat.finished()


async def test_a_slow_model_is_not_shown_a_long_file_around_what_is_asked_about(root: Path) -> None:
    body = "".join(f"    step_{n}()\n" for n in range(300))
    text = f"def first():\n{body}\n\ndef last():\n    return 3\n"
    (root / "run.py").write_text(text)
    async with (
        served(SteppedModel({**CHAT, "reading_rate": "20"})) as endpoint,
        opened(root, endpoint) as session,
    ):
        await session.server.ready()
        look = session.chat.preview
        context = await look(Question("what does `last` return?", path="run.py", cursor=0))
        (file,) = (part for part in context.parts if part.kind == "file")
        assert 300 < estimate(file.text) < 20 * 30
        assert file.text.endswith("    return 3\n")
        assert "run.py (cut)" in context.summary
        context = await look(Question("what does last in @run.py return?", path="run.py"))
        (file,) = (part for part in context.parts if part.kind == "file")
        assert file.text == text


async def until(session: PairingSession, said: str) -> None:
    """Wait until the answer so far is ``said``."""
    chat = session.chat
    witness = Witness(session)
    await witness.until(lambda: chat.entries and chat.entries[-1] == Speech("agent", said))


async def test_a_question_is_answered_in_words_and_changes_nothing(
    session: PairingSession, root: Path, model: SteppedModel
) -> None:
    model.give("It does ")
    await session.chat.ask_question(Question("what does it do?", path="run.py", cursor=2))
    await until(session, "It does ")
    assert session.chat.busy
    model.give("**nothing**.\n")
    model.end()
    await session.chat.finished()
    assert exchanges(session.chat.entries) == [
        AnsweredQuestion("what does it do?", "It does **nothing**.\n")
    ]
    sent = model.request.messages[-1].text
    assert '<file path="run.py">\n1 ' + BEFORE.splitlines()[0] in sent, "lines have numbers"
    assert sent.endswith("</file>\nThe cursor is at run.py:3.\n\nwhat does it do?")
    assert "You change nothing yourself" in (model.request.instructions or "")
    assert (root / "run.py").read_text() == BEFORE
    assert not session.turns
    assert len(session.hunks) == 0
    assert session.status.meter.output_tokens == 2


async def test_what_was_said_is_remembered(session: PairingSession, model: SteppedModel) -> None:
    await ask(session, model, "who calls it?", "Nobody.\n")
    await ask(session, model, "since when?", "Always.\n")
    told = [(message.role, message.text) for message in model.request.messages]
    assert told[:2] == [("user", "who calls it?"), ("assistant", "Nobody.\n")]
    assert len(told) == 3
    assert told[2][0] == "user"
    assert "since when?" in told[2][1]
    assert not session.chat.facts


@pytest.mark.parametrize("model", [SteppedModel({**CHAT, "context_length": "2048"})])
async def test_what_does_not_fit_is_forgotten_visibly(
    session: PairingSession, model: SteppedModel
) -> None:
    room = int(limit_of(session.server.model_info.context_length) * MEMORY_SHARE)
    long = "word " * 200
    for number in range(6):
        await ask(session, model, f"question {number}", long)
    room = int(limit_of(session.server.model_info.context_length) * MEMORY_SHARE)
    assert room < 24_000
    sent = model.request.messages[:-1]
    assert sum(estimate(message.text) for message in sent) <= room
    kept = [message.text for message in sent if message.role == "user"]
    assert kept == [f"question {number}" for number in range(5 - len(kept), 5)], "the newest ones"
    assert 0 < session.chat.forgotten == 5 - len(kept)
    (fact,) = session.chat.facts
    assert "forgotten" in fact
    assert len(exchanges(session.chat.entries)) == 6, "all can still be read"


@asynccontextmanager
async def crowded(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Hosted, PairingSession]]:
    """A session after three exchanges, with a hosted model that remembers no more than three."""
    monkeypatch.setattr(chat, "MEMORY_SHARE", 420 / 24_000)
    hosted = Hosted()
    async with hosted.running() as url, opened(root, settings=hosted.settings(url)) as session:
        for number in range(3):
            hosted.say(f"answer {number} " + "word " * 90)
            hosted.end()
            await session.chat.ask_question(Question(f"question {number}"))
            await session.chat.finished()
        assert len(hosted.creates) == 3
        assert not session.chat.facts
        yield hosted, session


async def test_what_does_not_fit_is_summed_up_by_a_hosted_model(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crowded(root, monkeypatch) as (hosted, session):
        hosted.say("answer 3 " + "word " * 90)
        hosted.end()
        await session.chat.ask_question(Question("question 3"))
        await session.chat.finished()
        for text in ("They talked of 0 to 2.", "answer 4"):
            hosted.say(text)
            hosted.end()
        await session.chat.ask_question(Question("question 4"))
        await session.chat.finished()
        summary, last = hosted.creates[-2:]
        assert "Sum it\nup" in summary["instructions"]
        assert "Asked: question 0\nAnswered: answer 0 word" in str(
            summary["input"][0]["content"][0]["text"]
        )
        assert not summary.get("tools")
        assert "Sum it" not in last["instructions"]
        said = [text for _, text in hosted.messages]
        assert said[0].endswith("They talked of 0 to 2.")
        assert said[1] == "Understood."
        assert said[2] == "question 3"
        assert said[-1].endswith("question 4")
        assert session.chat.facts == ["the first 3 questions summarised"]
        assert Speech("thought", "3 earlier exchanges summarised.") in session.chat.entries
        assert len(exchanges(session.chat.entries)) == 5, "all can still be read"
        await session.chat.clear()
        assert not session.chat.facts
        hosted.say("fresh")
        hosted.end()
        await session.chat.ask_question(Question("anew"))
        await session.chat.finished()
        assert hosted.messages[0][1].endswith("anew")


async def test_without_a_summary_it_is_forgotten(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crowded(root, monkeypatch) as (hosted, session):
        hosted.say("answer 3 " + "word " * 90)
        hosted.end()
        await session.chat.ask_question(Question("question 3"))
        await session.chat.finished()
        for text in (" ", "answer 4"):
            hosted.say(text)
            hosted.end()
        await session.chat.ask_question(Question("question 4"))
        await session.chat.finished()
        assert session.chat.facts == ["the first 1 question forgotten"]
        assert session.chat.summarised == 0
        assert exchanges(session.chat.entries)[-1].answered == "answer 4"


async def test_a_stop_while_it_sums_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with crowded(root, monkeypatch) as (hosted, session):
        hosted.say("answer 3 " + "word " * 90)
        hosted.end()
        await session.chat.ask_question(Question("question 3"))
        await session.chat.finished()
        hosted.say("They talked")
        before = len(hosted.creates)
        await session.chat.ask_question(Question("question 4"))
        await Witness(session).until(lambda: len(hosted.creates) > before)
        await session.chat.stop_answer()
        assert not session.chat.busy
        assert len(hosted.creates) == before + 1, "the question itself was not sent"
        assert session.chat.summarised == 0


async def test_a_stop_takes_effect_at_the_token(
    session: PairingSession, model: SteppedModel
) -> None:
    model.give("One. ")
    await session.chat.ask_question(Question("count"))
    await until(session, "One. ")
    await session.chat.stop_answer()
    assert not session.chat.busy
    assert session.chat.entries == [Speech("user", "count"), Speech("agent", "One. ")]
    model.drop()
    await ask(session, model, "go on", "Two.")
    assert [m.text for m in model.request.messages][:2] == ["count", "One. "]
    assert exchanges(session.chat.entries)[1] == AnsweredQuestion("go on", "Two.")


async def test_a_question_ends_the_answer_before_it(
    session: PairingSession, model: SteppedModel
) -> None:
    model.give("A long story. ")
    await session.chat.ask_question(Question("tell me"))
    await until(session, "A long story. ")
    asking = asyncio.create_task(session.chat.ask_question(Question("in short?")))
    await Witness(session).until(lambda: model.stopped)
    model.give("No.")
    model.end()
    await asking
    await session.chat.finished()
    assert exchanges(session.chat.entries) == [
        AnsweredQuestion("tell me", "A long story. "),
        AnsweredQuestion("in short?", "No."),
    ]


@pytest.mark.parametrize("model", [SteppedModel()])
async def test_an_edit_model_is_asked_nothing(session: PairingSession, model: SteppedModel) -> None:
    with pytest.raises(NotAnEditError, match="answers no questions") as caught:
        await session.chat.ask_question(Question("what is this?", path="run.py"))
    assert caught.value.action == "models"
    assert not model.requests
    assert not session.chat.on


async def test_nothing_is_asked_without_words(session: PairingSession, model: SteppedModel) -> None:
    with pytest.raises(UserError, match="empty"):
        await session.chat.ask_question(Question("  "))
    assert not model.requests


async def test_a_question_needs_no_file(root: Path, model: SteppedModel) -> None:
    (root / "AGENTS.md").write_text("Be kind.\n")
    async with served(model) as endpoint, opened(root, endpoint) as session:
        await ask(session, model, "what is this project?", "Kind.")
        sent = model.request.messages[-1].text
        assert "Be kind." in sent
        assert "def run" not in sent
        await ask(session, model, "what does @run.py do?", "It runs.")
        assert '<file path="run.py">\n1 def run' in model.request.messages[-1].text
        assert [part.name for part in session.chat.context.parts] == ["run.py", "AGENTS.md"]


async def test_an_answer_goes_on_while_an_edit_is_written(root: Path) -> None:
    hosted = Hosted()
    settings = hosted.settings("", "search-replace")
    async with hosted.running() as url:
        settings = hosted.settings(url, "search-replace")
        async with opened(root, settings=settings) as session:
            hosted.say("Here it comes: ")
            turn = await session.turns.instruct(Question("change it", path="run.py"))
            witness = Witness(session)
            await witness.until(lambda: turn.tokens)
            await session.chat.ask_question(Question("why so?", path="run.py"))
            await witness.until(lambda: len(hosted.creates) == 2)
            await session.chat.stop_answer()
            assert turn.running, "stopping one does not stop the other"
            assert not session.chat.busy
            line = BEFORE.splitlines()[1]
            hosted.say(f"run.py\n<<<<<<< SEARCH\n{line}\n=======\n    pass\n>>>>>>> REPLACE\n")
            hosted.end()
            await session.turns.finished()
            assert turn.status == "done", turn.error
            assert len(session.hunks) == 1


async def test_an_instruction_takes_the_conversation_along(
    session: PairingSession, model: SteppedModel
) -> None:
    await ask(session, model, "what is a better name?", "Call it `walk`.")
    model.give("<region>\n" + BEFORE + "</region>\n")
    model.end()
    await session.turns.instruct(Question("use that name", path="run.py", cursor=0))
    await session.turns.finished()
    sent = "\n".join(message.text for message in model.request.messages)
    assert "<conversation-so-far>\nAsked: what is a better name?\nAnswered: Call it `walk`." in sent
    assert "conversation" in session.turns.context.summary


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.usefixtures("state")
async def test_a_conversation_is_resumed(root: Path, model: SteppedModel) -> None:
    secret = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
    async with served(model) as endpoint:
        async with opened(root, endpoint) as session:
            await ask(session, model, "what is it?", "A number.")
            await ask(session, model, f"is {secret} good?", "No.")
        (earlier,) = earlier_sessions(root)
        assert secret[8:] not in earlier.path.read_text()
        assert summarize(earlier.path).instructions[0] == "what is it?"
        async with opened(root, endpoint, resume=earlier.path) as session:
            assert exchanges(session.chat.entries)[0] == AnsweredQuestion(
                "what is it?", "A number."
            )
            await ask(session, model, "which?", "Seven.")
            assert [m.text for m in model.request.messages][:2] == ["what is it?", "A number."]
            await session.chat.clear()
            assert not session.chat.on
            await ask(session, model, "again", "Yes.")
            assert len(model.request.messages) == 1, "nothing of the old one is sent"
        async with opened(root, endpoint, resume=earlier.path) as session:
            assert exchanges(session.chat.entries) == [AnsweredQuestion("again", "Yes.")]


async def test_an_ignored_file_is_not_sent_unasked(root: Path) -> None:
    git(root, "init", "-q")
    (root / ".gitignore").write_text("run.py\n")
    hosted = Hosted()
    async with hosted.running() as url:
        far = Profile("far", "openai", url.replace("127.0.0.1", "localhost"), "m")
        async with opened(root, settings=Settings(endpoints=(far,), endpoint="far")) as session:
            with pytest.raises(NeedsConsentError):
                await session.chat.ask_question(Question("why @run.py?"))
            assert not hosted.creates
            session.turns.allow("run.py")
            hosted.say("So.")
            hosted.end()
            await session.chat.ask_question(Question("why @run.py?"))
            await session.chat.finished()
            assert exchanges(session.chat.entries)[0].answered == "So."


async def test_a_failure_is_told_and_the_next_question_goes_out(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url)
        async with opened(root, settings=settings) as session:
            await session.server.ready()
    async with opened(root, settings=settings) as session:
        with pytest.raises(UserError):
            await session.chat.ask_question(Question("anyone?"))
        assert not session.chat.busy
        assert not session.chat.on


async def test_an_answer_that_only_repeats_itself_is_ended(
    session: PairingSession, model: SteppedModel
) -> None:
    for number in range(1, 40):
        model.give(f"{number}. It is slow because it is slow, and so on.\n")
    await session.chat.ask_question(Question("why is it slow?"))
    await session.chat.finished()
    assert exchanges(session.chat.entries)[0].answered.count("It is slow") > MAX_REPEATED
    assert model.stopped, "it could have gone on"
    assert session.chat.entries[-1] == Speech(
        "thought", "The answer was stopped: it kept repeating itself."
    )


async def test_what_only_looks_alike_is_no_repetition(
    session: PairingSession, model: SteppedModel
) -> None:
    code = "".join(f"    assert total(rows_{n}) == {n}, 'of these'\n" for n in range(30))
    await ask(session, model, "a test?", f"```python\n{code}```\n", "Is that enough?\n" * 30)
    assert len(session.chat.entries) == 2, "nothing was said about it"


async def test_closing_ends_an_answer(root: Path, model: SteppedModel) -> None:
    async with served(model) as endpoint:
        async with opened(root, endpoint) as session:
            model.give("On and ")
            await session.chat.ask_question(Question("talk"))
            await until(session, "On and ")
        assert not session.chat.busy


async def test_why_there_is_no_answer_is_said_once_in_the_conversation(
    root: Path, model: SteppedModel
) -> None:
    server = AsyncExitStack()
    endpoint = await server.enter_async_context(served(model))
    async with opened(root, endpoint) as session:
        model.give("On and ")
        await session.chat.ask_question(Question("talk"))
        await until(session, "On and ")
        told = len(session.status.notices)
        await server.aclose()
        await session.chat.finished()
        remarks = [e for e in session.chat.entries if "No answer: " in getattr(e, "text", "")]
        assert len(remarks) == 1
        assert len(session.status.notices) == told


def test_an_exchange_is_a_question_with_words_as_answer() -> None:
    entries = [
        Speech("user", "one"),
        Speech("thought", "No answer: the server is gone."),
        Speech("user", "two"),
        Speech("agent", "A."),
        Speech("thought", "hm"),
        Speech("agent", "B."),
        Speech("user", "three"),
    ]
    assert exchanges(entries) == [AnsweredQuestion("two", "A.\n\nB.")]
    assert unpacked(packed(entries)) == entries


async def test_the_reading_of_a_question_is_counted(
    root: Path, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "_READING_SECONDS", 0.0)
    async with served(model) as endpoint, opened(root, endpoint) as session:
        witness, meter = Witness(session), session.status.meter
        await session.chat.ask_question(Question("what is this?"))
        model.give(640)
        await witness.until(lambda: meter.reading is not None and meter.reading.tokens == 640)
        assert str(meter.reading).startswith("640 of ")
        model.give("A list.")
        await witness.until(lambda: meter.reading is None)
        model.end()
        await session.chat.finished()
