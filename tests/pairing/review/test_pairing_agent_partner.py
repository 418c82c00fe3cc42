"""A coding agent in a session: its writes are reviewed, and put-backs wait for its turn to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from midstream.agents.acp import AgentError
from midstream.agents.catalogue import KnownAgent
from midstream.pairing.chat.entries import Speech
from midstream.pairing.journal.journal import session_to_resume, summarize
from midstream.pairing.session import PairingSession
from midstream.pairing.status import NoticeLevel
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.journal import Journal
from tests.helpers.scripted_agent import BEGIN, command, sent
from tests.helpers.waiting import PATIENCE_S

OLD = "def tax(amount):\n    return amount * 0.2\n"
FILES = {"bill.py": OLD}
NEW = "def tax(amount):\n    return amount * 0.25\n"
END = {"result": {"stopReason": "end_turn"}}
MODES = {
    "result": {
        "sessionId": "s-1",
        "modes": {
            "currentModeId": "auto",
            "availableModes": [{"id": "auto", "name": "Auto"}, {"id": "ask", "name": "Ask"}],
        },
    }
}


def said(kind: str, text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"update": {"sessionUpdate": kind, "content": content}}


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is another process's
            await asyncio.sleep(0.01)


def scripted(folder: Path, steps: list[dict[str, Any]], **script: Any) -> KnownAgent:
    whole = {**BEGIN, "session/prompt": steps, **script}
    return KnownAgent("", "Agent", tuple(command(folder, whole)), asks="ask")


async def test_a_put_back_waits_for_the_end_of_the_agents_turn(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    bill = root / "bill.py"
    steps = [{"write": {str(bill): NEW}}, {"until": "session/cancel"}, END]
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await until(lambda: session.external.watching == "native")
        await session.agent.begin(scripted(tmp_path, steps))
        assert not session.agent.send("raise the tax")
        await until(lambda: session.hunks.undecided())
        (hunk,) = session.hunks.undecided()
        await session.decisions.reject(hunk.id)
        assert any("when Scripted is done" in n.text for n in session.status.notices)
        assert bill.read_text() == NEW
        session.agent.stop_working()
        await until(lambda: bill.read_text() == OLD)
        assert not session.agent.busy


async def test_what_is_written_is_told_with_the_agents_name(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    steps = [{"write": {str(root / "bill.py"): NEW}}, {"until": "session/cancel"}, END]
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await until(lambda: session.external.watching == "native")
        await session.agent.begin(scripted(tmp_path, steps))
        session.agent.send("raise the tax")
        await until(lambda: session.hunks.undecided())
        assert any("Scripted changed bill.py" in n.text for n in session.status.notices)


async def test_a_hunk_is_its_authors_where_an_edit_explains_all_of_it(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    bill, other = root / "bill.py", root / "other.py"
    diff = {"type": "diff", "path": str(bill), "oldText": OLD, "newText": NEW}
    call = {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Edit", "content": [diff]}
    steps = [
        {"update": call},
        {"write": {str(bill): NEW, str(other): "x = 1\n"}},
        {"until": "session/cancel"},
        END,
    ]
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await until(lambda: session.external.watching == "native")
        await session.agent.begin(scripted(tmp_path, steps))
        session.agent.send("raise the tax")
        await until(lambda: len(session.hunks.undecided()) == 2)
        by_path = {hunk.path: hunk for hunk in session.hunks.undecided()}
        assert session.provenance.author_of(by_path["bill.py"]) == "Scripted, turn 1"
        assert session.provenance.author_of(by_path["other.py"]) == ""
        bill.write_text(NEW.replace("amount)", "amount, year)"))  # the user's own line beside it
        await until(lambda: len([h for h in session.hunks.undecided() if len(h.new) == 2]) == 1)
        (mixed,) = [h for h in session.hunks.undecided() if h.path == "bill.py"]
        assert session.provenance.author_of(mixed) == ""


async def test_what_is_noticed_after_the_turn_is_still_its_agents(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    steps = [{"write": {str(root / "bill.py"): NEW}}, END]
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await until(lambda: session.external.watching == "native")
        await session.agent.begin(scripted(tmp_path, steps))
        session.agent.send("raise the tax")
        await until(lambda: session.hunks.undecided())
        assert any("Scripted changed bill.py" in n.text for n in session.status.notices)


async def test_an_agent_is_set_to_ask_before_the_first_prompt(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    agent = scripted(
        tmp_path, [END], **{"session/new": [MODES], "session/set_mode": [{"result": {}}]}
    )
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await session.agent.begin(agent)
        session.agent.send("go")
        await until(lambda: any(m.get("method") == "session/prompt" for m in sent(tmp_path)))
        methods = [m.get("method") for m in sent(tmp_path)]
        assert methods.index("session/set_mode") < methods.index("session/prompt")
        (chosen,) = (m["params"] for m in sent(tmp_path) if m.get("method") == "session/set_mode")
        assert chosen["modeId"] == "ask"


async def test_an_agent_that_refuses_to_ask_is_ended(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    refusal = {"error": {"code": -32602, "message": "no such mode"}}
    agent = scripted(tmp_path, [END], **{"session/new": [MODES], "session/set_mode": [refusal]})
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        with pytest.raises(AgentError, match=r"without asking.*no such mode"):
            await session.agent.begin(agent)
        assert not session.agent.on
        assert not any(m.get("method") == "session/prompt" for m in sent(tmp_path))


@pytest.mark.parametrize("offered", [True, False], ids=["other-modes", "no-modes"])
async def test_an_agent_without_the_mode_that_asks_is_told_of(
    endpoint: Endpoint, root: Path, tmp_path: Path, offered: bool
) -> None:
    script = {"session/new": [MODES]} if offered else {}
    agent = replace(scripted(tmp_path, [END], **script), asks="careful")
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await session.agent.begin(agent)
        assert session.agent.on
        (told,) = (n for n in session.status.notices if n.level is NoticeLevel.WARNING)
        assert "may write without asking" in told.text


async def test_texts_wait_for_each_other(endpoint: Endpoint, root: Path, tmp_path: Path) -> None:
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await session.agent.begin(scripted(tmp_path, [END]))
        assert not session.agent.send("one")
        assert session.agent.send("two")
        assert session.agent.send("three")
        assert session.agent.fetch_queued() == "two"

        def prompts() -> list[str]:
            asked = (m for m in sent(tmp_path) if m.get("method") == "session/prompt")
            return [m["params"]["prompt"][0]["text"] for m in asked]

        await until(lambda: prompts() == ["one", "three"])
        await until(lambda: not session.agent.busy)


def steered(folder: Path, steps: list[dict[str, Any]], **script: Any) -> KnownAgent:
    """An agent that says that it takes texts in mid-turn."""
    result = {**BEGIN["initialize"][0]["result"], "_meta": {"steering": {"supported": True}}}
    return scripted(folder, steps, **{"initialize": [{"result": result}], **script})


async def test_a_text_steers_the_turn_that_runs(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    steps = [{"until": "_session/steering"}, {"reply": {"outcome": "injected"}}]
    steps += [said("agent_message_chunk", "Both then."), END]
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await session.agent.begin(steered(tmp_path, steps))
        assert not session.agent.steers
        session.agent.send("raise the tax")
        conversation = session.agent.conversation
        assert conversation is not None
        await until(lambda: session.agent.steers)
        assert not session.agent.send("and the fee")
        await until(lambda: not session.agent.busy)
        words = [e for e in conversation.entries if isinstance(e, Speech)]
        assert [e.text for e in words if e.role == "user"] == ["raise the tax", "and the fee"]
        assert [e.text for e in words if e.role == "agent"] == ["Both then."]
        (asked,) = (m["params"] for m in sent(tmp_path) if m.get("method") == "_session/steering")
        assert asked["sessionId"] == "s-1"
        assert asked["prompt"] == [{"type": "text", "text": "and the fee"}]


@pytest.mark.parametrize(
    "answer",
    [
        {"reply": {"outcome": "promptRequired", "reason": "noRunningTurn"}},
        {"reply": {"outcome": "failed"}},
        {"refuse": {"code": -32601, "message": "no such method"}},
    ],
    ids=["ended", "failed", "refused"],
)
async def test_a_text_that_the_turn_does_not_take_is_sent_after_it(
    endpoint: Endpoint, root: Path, tmp_path: Path, answer: dict[str, Any]
) -> None:
    steps = [{"until": "_session/steering"}, answer, {"until": "session/cancel"}, END]
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await session.agent.begin(steered(tmp_path, steps))
        session.agent.send("raise the tax")
        await until(lambda: session.agent.steers)
        session.agent.send("and the fee")
        await until(lambda: session.agent.queued)
        # What comes later must not overtake it.
        assert not session.agent.steers
        assert session.agent.send("and the total")
        assert session.agent.queued == ["and the fee", "and the total"]
        session.agent.stop_working()

        def prompts() -> list[str]:
            asked = (m for m in sent(tmp_path) if m.get("method") == "session/prompt")
            return [m["params"]["prompt"][0]["text"] for m in asked]

        await until(lambda: prompts() == ["raise the tax", "and the fee"])


@pytest.mark.parametrize("can", ["resume", "load", "neither"])
async def test_a_resumed_session_goes_on_with_its_agent(
    endpoint: Endpoint, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can: str
) -> None:
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(tmp_path / "state"))
    capabilities: dict[str, Any] = {"loadSession": can == "load"}
    if can == "resume":
        capabilities["sessionCapabilities"] = {"resume": {}}
    begin = {"result": {**BEGIN["initialize"][0]["result"], "agentCapabilities": capabilities}}
    secret = "ghp_" + "x7Kq9mZ2LpW4vN8rT1yB6cD3fG5hJ0sQaEuR"
    steps = [said("agent_message_chunk", f"Done.\nIt was {secret}."), END]
    load = [said("user_message_chunk", "go"), said("agent_message_chunk", "Done."), {"result": {}}]
    agent = scripted(
        tmp_path,
        steps,
        **{
            "initialize": [begin],
            "session/load": load,
            "session/resume": [{"result": {}}],
        },
    )
    async with await PairingSession.open(
        root, settings=Settings(), endpoint=endpoint, agent=agent
    ) as session:
        await until(lambda: session.agent.conversation is not None)
        session.agent.send("go")
        await until(lambda: session.journal.path is not None and not session.agent.busy)
        journal = session.journal.path
    assert journal is not None
    assert secret not in journal.read_text()
    assert summarize(journal).instructions == ("go",)
    async with await PairingSession.open(
        root, settings=Settings(), endpoint=endpoint, resume=journal
    ) as session:
        await until(lambda: session.agent.conversation is not None)
        conversation = session.agent.conversation
        assert conversation is not None
        assert conversation.agent.command == agent.command
        words = [entry.text for entry in conversation.entries if isinstance(entry, Speech)]
        assert words[:2] == ["go", "Done."] or (
            words[0] == "go" and words[1].startswith("Done.\nIt was ")
        )
        assert any("does not remember" in each for each in words) == (can == "neither")
        methods = [m.get("method") for m in sent(tmp_path)]
        assert methods.count("session/new") == (2 if can == "neither" else 1)


async def test_the_last_session_of_an_agent_is_found_behind_others(
    endpoint: Endpoint, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(tmp_path / "state"))
    agent = scripted(tmp_path, [said("agent_message_chunk", "Done."), END])
    async with await PairingSession.open(
        root, settings=Settings(), endpoint=endpoint, agent=agent
    ) as session:
        await until(lambda: session.agent.conversation is not None)
        session.agent.send("go")
        await until(lambda: session.journal.path is not None and not session.agent.busy)
        spoken = session.journal.path
        assert session_to_resume(root, agent.key) is None, "it is still open"
    async with await PairingSession.open(
        root, settings=Settings(), endpoint=endpoint, review=True
    ) as session:
        await until(lambda: session.review.on)
        session.journal.make()
        reviewed = session.journal.path
    assert reviewed != spoken
    assert session_to_resume(root, agent.key) == spoken
    assert session_to_resume(root, "claude") is None
    assert Journal.latest(tmp_path / "state", root) == reviewed


async def test_what_is_sent_to_an_agent_that_died_starts_it_again(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    def prompts() -> list[str]:
        asked = (m for m in sent(tmp_path) if m.get("method") == "session/prompt")
        return [m["params"]["prompt"][0]["text"] for m in asked]

    script = {"session/load": [{"result": {}}]}
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await session.agent.begin(scripted(tmp_path, [{"exit": 3}], **script))
        session.agent.send("one")
        await until(lambda: any("starts it again" in n.text for n in session.status.notices))
        await until(lambda: not session.agent.busy)
        assert session.agent.send("two")
        assert session.agent.send("three")
        await until(lambda: prompts() == ["one", "two"])
        methods = [m.get("method") for m in sent(tmp_path)]
        assert methods.count("session/new") == 1
        assert methods.count("session/load") == 1


async def test_noise_and_a_death_in_mid_turn_are_one_sentence(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    """A full log, no messages, a huge line; then it is gone, and a file is there."""
    bill = root / "bill.py"
    huge = said("agent_message_chunk", "y" * (5 << 20))
    steps = [
        {"log": "x" * (1 << 20) + "\n"},
        {"raw": "Welcome!\n{]\n[1]\nnull\n"},
        huge,
        {"write": {str(bill): NEW}},
        {"log": "the model \x1b[31mis gone\n"},
        {"exit": 3},
    ]
    script = {"session/load": [{"result": {}}], "session/prompt 1": steps}
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await until(lambda: session.external.watching == "native")
        await session.agent.begin(scripted(tmp_path, [END], **script))
        session.agent.send("one")
        await until(lambda: not session.agent.busy)
        (failure,) = (n.text for n in session.status.notices if n.level is NoticeLevel.ERROR)
        assert "ended (exit code 3)" in failure
        assert "is gone" in failure
        assert len(failure) < 500
        assert failure.count("\n") == 0
        conversation = session.agent.conversation
        assert conversation is not None
        assert [len(e.text) for e in conversation.entries if isinstance(e, Speech)][1:] == [5 << 20]
        await until(lambda: session.hunks.undecided())
        (hunk,) = session.hunks.undecided()
        assert await session.decisions.reject(hunk.id)
        await session.decisions.put_backs.apply()
        assert bill.read_text() == OLD
        session.agent.send("two")
        await until(lambda: any(m.get("method") == "session/load" for m in sent(tmp_path)))
        await until(lambda: session.agent.on and not session.agent.busy)


async def test_an_agent_that_dies_is_told_and_can_be_started_again(
    endpoint: Endpoint, root: Path, tmp_path: Path
) -> None:
    async with await PairingSession.open(
        root, settings=Settings(journal=False), endpoint=endpoint
    ) as session:
        await session.agent.begin(scripted(tmp_path, [{"log": "out of luck\n"}, {"exit": 3}]))
        session.agent.send("go")
        await until(lambda: any("out of luck" in n.text for n in session.status.notices))
        assert not session.agent.busy
        await session.agent.begin(scripted(tmp_path, [END]))
        session.agent.send("go")
        await until(lambda: not session.agent.busy)
        with pytest.raises(AgentError, match="npm install x"):
            await session.agent.begin(KnownAgent("x", "X", ("no-such-program",), "npm install x"))
        assert not session.agent.on
