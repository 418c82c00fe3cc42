"""The linear mode: what it says of what is sent along."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from midstream.errors import UsageError
from midstream.pairing.request import builder, sources
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.plain.commands import PlainCommands
from midstream.plain.conversing import Conversing
from midstream.plain.words import WORDS, understand
from midstream.settings import Settings
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import Witness, make_repo


@pytest.mark.parametrize("line", ["return zero", "? what does it return"])
async def test_what_goes_along_is_gathered_once_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    root = make_repo(tmp_path / "work", {"app.py": "def one():\n    return 1\n"})
    gathered: list[str] = []
    gather = sources.gather

    def counted(*arguments: Any) -> Any:
        gathered.append(arguments[1].path)
        return gather(*arguments)

    monkeypatch.setattr(builder, "gather", counted)
    hosted, said = Hosted(), list[str]()
    async with hosted.running() as url:
        settings = hosted.settings(url, "search-replace")
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            await session.server.ready()
            commands = PlainCommands(session, said.append)
            await commands.carry_out(understand("open app.py", commands.is_file))
            hosted.say("no")
            hosted.end()
            await commands.carry_out(understand(line, commands.is_file))
            await session.turns.finished()
            await session.chat.finished()
    assert gathered == ["app.py"]
    assert said[-1].startswith("Sending ")
    assert said[-1].endswith(" tokens: app.py.")


async def test_a_plan_is_written_made_shown_and_carried_out(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "work", {"app.py": "def one():\n    return 1\n"})
    hosted, said = Hosted(), list[str]()

    def answer(text: str) -> None:
        hosted.say(text)
        hosted.end()

    async with hosted.running() as url:
        settings = hosted.settings(url, "search-replace", related_code=False)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            commands = PlainCommands(session, said.append)

            async def do(line: str) -> None:
                await commands.carry_out(understand(line, commands.is_file))
                await session.chat.finished()
                await session.turns.finished()

            await do("open app.py")
            with pytest.raises(UsageError, match="There is no answer yet"):
                await do("take")
            with pytest.raises(UsageError, match="plan TEXT asks for one"):
                await do("plan")
            await do("plan 1. return two 2. add a docstring")
            assert said[-2:] == ["1. return two", "2. add a docstring"]
            assert not hosted.creates
            answer("1. return three\n2. say why\n")
            await do("plan make it three")
            assert [step.text for step in session.chat.steps.steps] == ["return three", "say why"]
            with pytest.raises(UsageError, match="contains no code"):
                await do("take")
            answer("app.py\n<<<<<<< SEARCH\n    return 1\n=======\n    return 3\n>>>>>>> REPLACE\n")
            await do("next")
            assert "Next: return three" in said
            await do("plan")
            assert said[-2:] == ["1. return three (begun)", "2. say why"]
            await session.decisions.accept(session.hunks.undecided()[0].id)
            await do("plan")
            assert said[-2:] == ["1. return three (done)", "2. say why"]


@pytest.mark.parametrize("answer", ["yes", "no", ""])
async def test_a_file_that_is_not_shown_is_asked_for(tmp_path: Path, answer: str) -> None:
    root = make_repo(tmp_path / "work", {"app.py": "one = 1\n"})
    (root / ".env").write_text("MODE=fast\n")
    hosted, said = Hosted(), list[str]()
    async with hosted.running() as url:
        settings = hosted.settings(url, "search-replace", related_code=False)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            chat, witness = session.chat, Witness(session)
            conversing = Conversing(session, said.append, terminal=bool(answer))
            chat.allow(on=True)
            hosted.call(".env", "read_file")
            hosted.end()
            await chat.ask_question(Question("how fast is it?"))
            await witness.until(lambda: chat.question is not None)
            told = list(conversing.news())
            assert "wants to read .env, which has the name of a file with credentials" in told[0]
            if answer:
                assert "look yes allows sending it" in told[1]
                await conversing.look(answer)
            else:
                assert told[1] == "Not sent; name it as @.env to allow it."
            await witness.until(lambda: len(hosted.creates) == 2)
            hosted.say("Fast.")
            hosted.end()
            await chat.finished()
            assert chat.permission.allowed
            assert ("MODE=fast" in str(hosted.messages)) == (answer == "yes")


async def test_every_word_has_a_method_that_carries_it_out(tmp_path: Path, copyist: Path) -> None:
    async with await PairingSession.open(
        tmp_path, settings=Settings(journal=False, model=copyist), watch=False
    ) as session:
        commands = PlainCommands(session, lambda line: None)
        for word in WORDS:
            part, call = (session, word.on_hunks.method) if word.on_hunks else (commands, word.call)
            assert word.name == "quit" or callable(attrgetter(call)(part)), word.name
