"""What is told once: where text goes, before the first request; what the built-in model is for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from midstream.cli import main
from midstream.pairing.models.disclosures import BUILT_IN, FILE, note_disclosed, was_disclosed
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.pairing.status import NoticePosted
from midstream.responses.profiles import Profile
from midstream.settings import Settings
from tests.helpers.scripted_http import ScriptedHttp

CODE = "def area(width, height):\n    return width * height\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    root = tmp_path / "project"
    root.mkdir()
    (root / "shapes.py").write_text(CODE)
    return root


def afar(url: str) -> str:
    """A server of this machine by a name that nobody takes for this machine."""
    return url.replace("127.0.0.1", "127.1")


def test_a_fact_is_told_once(state: Path) -> None:
    assert not was_disclosed(BUILT_IN)
    assert note_disclosed(BUILT_IN)
    assert was_disclosed(BUILT_IN)
    assert not note_disclosed(BUILT_IN)
    (state / FILE).write_bytes(b"damaged")
    assert not was_disclosed(BUILT_IN)


async def test_what_is_sent_is_told_before_the_first_request_and_once(project: Path) -> None:
    server = ScriptedHttp(apis=("chat",), answer="no change")
    async with server.running() as url:
        for expected in (True, False):
            told: list[int] = []
            profile = Profile("far", "custom", afar(url), "m", transport="chat")
            settings = Settings(endpoints=(profile,), endpoint="far", journal=False)
            async with await PairingSession.open(project, settings=settings) as session:

                def hear(event: object, told: list[int] = told) -> None:
                    if isinstance(event, NoticePosted) and event.notice.discloses:
                        assert event.notice.text.startswith("127.1 receives each instruction")
                        told.append(len(server.bodies))

                session.status.subscribe(hear)
                before = len(server.bodies)
                await session.turns.instruct(Question("add a docstring", path="shapes.py"))
                await session.turns.finished()
                assert len(server.bodies) > before
            assert told == ([0] if expected else [])


async def test_nothing_is_told_of_servers_on_this_machine(project: Path, state: Path) -> None:
    server = ScriptedHttp(apis=("chat",), answer="no change")
    async with server.running() as url:
        profile = Profile("near", "custom", url, "m", transport="chat")
        settings = Settings(endpoints=(profile,), endpoint="near", journal=False)
        async with await PairingSession.open(project, settings=settings) as session:
            await session.turns.instruct(Question("add a docstring", path="shapes.py"))
            await session.turns.finished()
            assert not any(notice.discloses for notice in session.status.notices)
    assert not (state / FILE).exists()


async def test_the_command_line_tells_it_on_standard_error(
    project: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ScriptedHttp(apis=("chat",), answer="no change")
    async with server.running() as url:
        (state / "config.toml").write_text(
            f'endpoint = "far"\n[endpoints.far]\nurl = "{afar(url)}"\nmodel = "m"\n'
            'transport = "chat"\n'
        )
        arguments = ["edit", str(project / "shapes.py"), "-m", "add a docstring", "--diff"]
        for expected in (1, 0):
            await asyncio.to_thread(main, arguments)
            assert capsys.readouterr().err.count("127.1 receives each instruction") == expected


async def test_the_introduction_is_for_those_who_have_set_nothing_up(project: Path) -> None:
    async def due(settings: Settings, *, introduce: bool = True) -> bool:
        session = await PairingSession.open(project, settings=settings, introduce=introduce)
        async with session:
            return session.introduction.due

    plain = Settings(journal=False)
    profile = Profile("desk", "custom", "http://127.0.0.1:1/v1", "m")
    assert await due(plain)
    assert not await due(plain, introduce=False)
    assert not await due(Settings(journal=False, endpoints=(profile,)))
    assert not await due(Settings(journal=False, endpoint_url="http://127.0.0.1:1/v1"))
    async with await PairingSession.open(project, settings=plain, introduce=True) as session:
        await session.introduction.done()
    assert not await due(plain)
