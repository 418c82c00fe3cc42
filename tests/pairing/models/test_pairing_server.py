"""The link to a server of which only the address is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from midstream.errors import UserError
from midstream.pairing.models.server import ServerLink
from midstream.responses.profiles import BUILT_IN, Profile
from midstream.serving.app import create_app
from midstream.serving.replay import ReplayModel
from midstream.serving.running import serve
from midstream.settings import Settings


async def test_the_usual_model_of_a_server_is_known_by_its_name(tmp_path: Path) -> None:
    models = {name: ReplayModel("x", name=name, facts={"languages": name}) for name in ("b", "a")}
    async with serve(create_app(models, token=None)) as server:
        settings = Settings(endpoint_url=f"ws://127.0.0.1:{server.port}/v1")
        link = ServerLink(settings, state=tmp_path)
        try:
            assert link.name_or_the_model == "The model"
            await link.ready()
            assert link.model_name == link.name_or_the_model == "b"
            assert link.model_info.languages == ("b",)
        finally:
            await link.close()


async def test_a_model_has_a_name_before_it_is_reached(tmp_path: Path) -> None:
    """As the screen shows it after a switch."""
    state = tmp_path / "state"
    link = ServerLink(Settings(), state=state)
    assert link.called == BUILT_IN
    link.switch(replace(Settings(), model=tmp_path / "qwen-7b"))
    assert (link.called, link.model_name) == ("qwen-7b", "")
    work = Profile("work", "openai", "https://example.org/v1", "large")
    link.switch(replace(Settings(), endpoints=(work,), endpoint="work"))
    assert link.called == "large"
    link.switch(replace(Settings(), endpoints=(replace(work, model=""),), endpoint="work"))
    assert link.called == "work"


def test_a_larger_model_is_offered_where_it_could_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THERE", "key")
    monkeypatch.delenv("MISSING", raising=False)
    used = Profile("used", "local", "http://127.0.0.1:1/v1")
    hosted = Profile("ready", "openai", "https://example.org/v1", "large", key_env="THERE")
    profiles = (
        used,
        hosted,
        replace(hosted, name="no-key", key_env="MISSING"),
        replace(hosted, name="no-model", model=""),
        Profile("engine", "ollama", "http://127.0.0.1:2/v1"),
        replace(hosted, name="in-keyring", key_env="MISSING", keyring="midstream"),
    )
    settings = Settings(endpoints=profiles, endpoint="used")
    link = ServerLink(settings, state=tmp_path)
    assert link.others == ("ready", "engine", "in-keyring")


async def test_a_launched_server_is_the_one_that_is_asked(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("[]")
    link = ServerLink(Settings(), replay=script, state=tmp_path)
    try:
        await link.launch()
        assert link.server is not None
        launched = link.server.process
        await link.ready()
        assert link.server.process is launched is not None
        assert link.up
    finally:
        await link.close()
    assert launched.returncode is not None


async def test_what_keeps_a_server_from_being_launched_is_told_when_it_is_needed(
    tmp_path: Path,
) -> None:
    settings = Settings(model=tmp_path / "missing")
    link = ServerLink(settings, state=tmp_path)
    await link.launch()
    assert link.server is None
    with pytest.raises(UserError, match="missing"):
        await link.ready()
    await link.close()


async def test_no_server_is_launched_where_an_endpoint_is_used(tmp_path: Path) -> None:
    settings = Settings(endpoint_url="ws://127.0.0.1:2/v1")
    link = ServerLink(settings, state=tmp_path)
    await link.launch()
    assert link.server is None
    await link.close()
