"""What a session says that it does or waits for, on the screen and line by line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from midstream.pairing.activity import Activity, activity_of
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.status import ActivityClock, SessionEvent
from midstream.plain.loop import PlainLoop
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import make_repo

CODE = "def one():\n    return 1\n"
EDIT = "app.py\n<<<<<<< SEARCH\n    return 1\n=======\n    return 2\n>>>>>>> REPLACE\n"
HOOK = "#!/bin/sh\nexit 0\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_repo(tmp_path / "work", {"app.py": CODE})
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK)
    hook.chmod(0o755)
    return root


def thinks_and_edits(hosted: Hosted) -> None:
    hosted.think("What does one return?")
    hosted.say(EDIT)
    hosted.end()


async def test_each_kind_of_waiting_has_its_word(root: Path) -> None:
    hosted, seen = Hosted(), list[Activity]()
    async with (
        hosted.running() as url,
        await PairingSession.open(
            root, settings=hosted.settings(url, "search-replace"), watch=False
        ) as session,
    ):

        def hear(_: SessionEvent) -> None:
            if seen[-1:] != [now := activity_of(session)]:
                seen.append(now)

        assert activity_of(session) is Activity.CONNECTING
        session.status.subscribe(hear)
        thinks_and_edits(hosted)
        await session.turns.instruct(Question("return 2", "app.py"))
        await session.turns.finished()
        begun = seen[seen.index(Activity.READY) :]
        assert begun == ["ready", "reading", "thinking", "writing", "ready"]
        (hunk,) = session.hunks.undecided()
        await session.decisions.accept(hunk.id)
        seen.clear()
        await session.commit.stage("app.py")
        await session.commit.commit("Return 2")
        assert seen[-2:] == ["git hooks", "ready"]


async def test_plain_mode_prints_a_line_for_each_change(root: Path) -> None:
    hosted, said = Hosted(), list[str]()
    async with (
        hosted.running() as url,
        await PairingSession.open(
            root, settings=hosted.settings(url, "search-replace"), watch=False
        ) as session,
    ):
        thinks_and_edits(hosted)
        lines = io.StringIO("open app.py\nreturn 2\naccept 1\ncommit\nquit\n")
        await PlainLoop(session, lines, said.append, terminal=False).run()
    out = "".join(said)
    told = [
        "Connecting to hosted.\n",
        "Working on app.py",
        "The model is thinking.\n",
        "The model is writing.\n",
        "Hunk 1, app.py line 2",
        "Committing; git and its hooks run.\n",
        "Committed ",
    ]
    places = [out.index(line) for line in told]
    assert places == sorted(places), out


def test_the_seconds_are_those_of_what_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now, clock = 100.0, ActivityClock()
    monkeypatch.setattr("midstream.pairing.status.time.monotonic", lambda: now)
    seconds: list[float] = []
    for activity in (Activity.AGENT, Activity.AGENT, Activity.CHECKS, Activity.AGENT):
        seconds.append(clock.seconds(activity))
        now += 5
    assert seconds == [0, 5, 0, 0]
