"""The linear mode: what it says of what is sent along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from midstream.errors import UsageError
from midstream.pairing.request import builder, sources
from midstream.pairing.session import PairingSession
from midstream.plain.commands import PlainCommands
from midstream.plain.words import understand
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import make_repo


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
            await commands.do(understand("open app.py", commands.is_file))
            hosted.say("no")
            hosted.end()
            await commands.do(understand(line, commands.is_file))
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
                await commands.do(understand(line, commands.is_file))
                await session.chat.finished()
                await session.turns.finished()

            await do("open app.py")
            with pytest.raises(UsageError, match="plan TEXT asks for one"):
                await do("plan")
            await do("plan 1. return two 2. add a docstring")
            assert said[-2:] == ["1. return two", "2. add a docstring"]
            assert not hosted.creates
            answer("1. return three\n2. say why\n")
            await do("plan make it three")
            assert [step.text for step in session.chat.steps.steps] == ["return three", "say why"]
            answer("app.py\n<<<<<<< SEARCH\n    return 1\n=======\n    return 3\n>>>>>>> REPLACE\n")
            await do("next")
            assert "Next: return three" in said
            await do("plan")
            assert said[-2:] == ["1. return three (begun)", "2. say why"]
            await session.files.accept(session.hunks.undecided()[0].id)
            await do("plan")
            assert said[-2:] == ["1. return three (done)", "2. say why"]
