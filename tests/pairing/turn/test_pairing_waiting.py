"""A server that takes its time: a session says that it waits, for whom, and only then."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from midstream.commands.edit import DiffSink, JsonSink
from midstream.pairing.headless import Job, run_job
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.status import Notice, NoticePosted, PromptReading, SessionEvent
from midstream.pairing.turn import responses
from midstream.settings import Settings
from tests.helpers.scripted_http import ScriptedHttp
from tests.helpers.slow_server import SlowServer
from tests.helpers.waiting import PATIENCE_S

SOURCE = "def f():\n    return 1\n"
FILES = {"a.py": SOURCE}
NEW = SOURCE.replace("1", "2")
ANSWER = f"```python\n{NEW}```\n"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "WAITING_S", 0.05)


async def test_a_session_says_that_it_waits_and_for_whom(root: Path) -> None:
    server, said = SlowServer(ANSWER), list[Notice]()
    waiting = asyncio.Event()

    def hear(event: SessionEvent) -> None:
        if isinstance(event, NoticePosted):
            said.append(event.notice)
            waiting.set()

    async with server.running() as settings:
        session = await PairingSession.open(root, settings=settings, watch=False)
        session.status.subscribe(hear)
        async with session, asyncio.timeout(PATIENCE_S):
            await session.turns.instruct(Question("return 2", path="a.py", selection=(0, 2)))
            await waiting.wait()
            assert said[0].level.value == "info"
            assert said[0].text.startswith("Still waiting for 127.0.0.1: no text after")
            server.go.set()
            await session.turns.finished()
            assert [hunk.new for hunk in session.hunks.undecided()] == [("    return 2",)]
        assert len(said) == 1


@pytest.mark.parametrize("as_json", [True, False])
async def test_an_edit_without_a_screen_says_so_too(
    root: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    server = SlowServer(ANSWER)
    sink = JsonSink() if as_json else DiffSink()
    told = sink.waiting

    def waiting(sentence: str) -> None:
        told(sentence)
        server.go.set()

    sink.waiting = waiting  # type: ignore[method-assign]
    async with server.running() as settings, asyncio.timeout(PATIENCE_S):
        await run_job(
            Job(root, Question("return 2", "a.py", None, (0, 2))), sink, settings=settings
        )
    captured = capsys.readouterr()
    if as_json:
        events = [json.loads(line) for line in captured.out.splitlines()]
        (event,) = [event for event in events if event["event"] == "waiting"]
        assert "Still waiting for 127.0.0.1" in event["text"]
    else:
        assert "Still waiting for 127.0.0.1" in captured.err


async def test_a_quick_server_is_not_mentioned(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "WAITING_S", PATIENCE_S)
    server = SlowServer(ANSWER)
    server.go.set()
    async with server.running() as settings:
        session = await PairingSession.open(root, settings=settings, watch=False)
        async with session, asyncio.timeout(PATIENCE_S):
            await session.turns.instruct(Question("return 2", path="a.py", selection=(0, 2)))
            await session.turns.finished()
            assert session.status.notices == []


@pytest.mark.parametrize(("api", "sentence"), [
    ("chat", "127.0.0.1 has no Responses API; its Chat Completions API is used."),
    ("messages", "127.0.0.1 has no Responses or Chat Completions API; its Messages API is used."),
    ("responses", None),
])  # fmt: skip
async def test_the_api_of_a_server_is_told_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, api: str, sentence: str | None
) -> None:
    monkeypatch.setattr(responses, "WAITING_S", PATIENCE_S)
    said: list[str] = []

    def hear(event: SessionEvent) -> None:
        if isinstance(event, NoticePosted) and event.notice.passing:
            said.append(event.notice.text)

    async with ScriptedHttp(apis=(api,), answer=ANSWER).running() as url:
        settings = Settings(endpoint_url=url, endpoint_model="m", journal=False)
        session = await PairingSession.open(root, settings=settings, watch=False)
        session.status.subscribe(hear)
        async with session, asyncio.timeout(PATIENCE_S):
            for _ in range(2):
                await session.turns.instruct(Question("return 2", path="a.py", selection=(0, 2)))
                await session.turns.finished()
                (hunk,) = session.hunks.undecided()
                assert hunk.new == ("    return 2",)
                await session.decisions.reject(hunk.id)
    assert said == ([sentence] if sentence else [])


def test_how_much_is_read_gives_way_to_what_is_printed_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    sink = DiffSink()
    sink.reading(PromptReading(1900, 3000, 6.0))
    sink.waiting("Still waiting.")
    sink.reading(None)
    said = "\r\x1b[Kreading 1.9k of 3.0k tokens, 6 s left\r\x1b[KStill waiting.\n"
    assert capsys.readouterr().err == said
