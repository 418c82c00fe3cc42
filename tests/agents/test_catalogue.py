"""The catalogue of coding agents."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from midstream.agents.acp import AgentError, AgentProcess, LoginNeededError
from midstream.agents.catalogue import KnownAgent, find_agent, known_agents
from midstream.cli import main
from midstream.errors import UsageError
from tests.agents.test_acp import Ear


def test_a_missing_agent_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for agent in known_agents():
        assert find_agent(agent.name) is agent
        with pytest.raises(AgentError) as missing:
            agent.check()
        assert agent.install in str(missing.value)


def test_without_a_name_the_agents_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent"]) == 0
    said = capsys.readouterr().out
    for agent in known_agents():
        assert f"{agent.name} " in said
        assert agent.installed or agent.install in said


def test_any_command_is_an_agent(tmp_path: Path) -> None:
    agent = find_agent(f"'{tmp_path}/my agent' --acp")
    assert agent.command == (f"{tmp_path}/my agent", "--acp")
    assert (agent.name, agent.title) == ("", "my agent")
    with pytest.raises(AgentError, match="There is no program"):
        agent.check()


@pytest.mark.parametrize("text", ["", "  ", "'agent"])
def test_a_command_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError):
        find_agent(text)


def test_what_the_user_has_set_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert find_agent("claude").variables({"IS_SANDBOX": "yes"}) == {"IS_SANDBOX": "1"}
    assert find_agent("codex").variables({"INITIAL_AGENT_MODE": "agent"}) == {}
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert find_agent("claude").variables({}) == {}


@pytest.mark.agents
@pytest.mark.parametrize("known", known_agents(), ids=lambda known: known.name)
async def test_the_real_agent_begins_a_session(known: KnownAgent, tmp_path: Path) -> None:
    """Its home has no login, so it may also say that its user has to log in first."""
    if not known.installed:
        pytest.skip(f"{known.command[0]} is not installed: {known.install}")
    environ = {**known.variables(), "HOME": str(tmp_path)}
    process = await AgentProcess.launch(known.title, known.command, tmp_path, Ear(), environ)
    try:
        info = await process.initialize()
        assert info.name
        assert info.version
        try:
            session = await process.new_session(tmp_path)
        except LoginNeededError as error:
            assert info.login
            assert "log in" in str(error)  # noqa: PT017
        else:
            assert session.session_id
    finally:
        await process.close()
