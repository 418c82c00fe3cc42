"""The linear mode: what it says of what is sent along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from midstream.pairing.request import builder
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
    gather = builder.gather

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
