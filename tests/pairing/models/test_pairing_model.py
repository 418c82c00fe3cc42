"""The whole way with the engine in a child process; how good answers are is not asked here."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream import demo
from midstream.edits.hunks import HunkState
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession, TurnStatus
from midstream.pairing.status import HunkSettled
from midstream.settings import Settings
from tests.helpers.pairing import Witness

FUNCTION = """\
def collect(entries, limit):
    result = []
    for entry in entries:
        if entry.hours > limit:
            result.append(entry)
    for entry in result:
        entry.checked = True
    count = len(result)
    print("found %d" % count)
    result.sort()
    return result


def untouched():
    return 1
"""


@pytest.fixture
def settings(copyist: Path) -> Settings:
    return Settings(model=copyist)


@pytest.mark.system
async def test_suggestions_of_the_demo(settings: Settings, tmp_path: Path) -> None:
    info = demo.make_demo(tmp_path)
    async with await PairingSession.open(info.root, settings=settings, watch=False) as session:
        for suggestion in info.suggestions:
            path = info.root / suggestion.path
            before = path.read_bytes()
            turn = await session.turns.instruct(
                Question(suggestion.instruction, path=suggestion.path)
            )
            await session.turns.finished()
            assert turn.tokens or turn.hunks, "local names are renamed without the model"
            assert path.read_bytes() == before
            accepted = await session.decisions.accept_rest(suggestion.path)
            after = path.read_bytes()
            assert after == session.files[suggestion.path].composed().to_bytes()
            lines = before.decode().splitlines()
            assert after.decode().splitlines()[: turn.start] == lines[: turn.start]
            assert after.decode().endswith("\n".join([*lines[turn.stop :], ""]))
            if accepted:
                assert len(await session.decisions.undo()) == accepted
            assert path.read_bytes() == before
            await session.decisions.reject_rest(suggestion.path)


async def test_stop_and_redirect(tmp_path: Path, settings: Settings) -> None:
    path = tmp_path / "work.py"
    path.write_text(FUNCTION)
    async with await PairingSession.open(tmp_path, settings=settings, watch=False) as session:
        witness = Witness(session)
        first = await session.turns.instruct(
            Question("rename `result` to `chosen` in collect", path="work.py", cursor=1)
        )
        await witness.until(lambda: first.tokens > 3 or not first.running)
        if first.running:
            second = await session.turns.redirect("rename `count` to `total`")
            kept = session.files["work.py"].segments[0].new_text
            await session.turns.finished()
            assert session.files["work.py"].segments[0].new_text.startswith(kept)
            assert second.status in (TurnStatus.DONE, TurnStatus.FAILED)
        # `running` ends before the turn does: the next one would only wait in its queue.
        await session.turns.finished()
        third = await session.turns.instruct(
            Question("rename `entry` to `item` in collect", path="work.py")
        )
        await witness.seen(HunkSettled)
        await session.turns.stop_turn()
        assert third.status in (TurnStatus.STOPPED, TurnStatus.DONE)
        assert path.read_text() == FUNCTION
        for hunk in session.hunks.undecided("work.py"):
            await session.decisions.accept(hunk.id)
            assert hunk.state is HunkState.ACCEPTED
        assert path.read_bytes() == session.files["work.py"].composed().to_bytes()
        assert path.read_text().endswith("def untouched():\n    return 1\n")
