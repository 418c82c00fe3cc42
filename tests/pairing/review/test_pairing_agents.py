"""Conversations with a coding agent that plays a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from midstream.agents.acp import AgentError, LoginNeededError
from midstream.agents.catalogue import KnownAgent
from midstream.errors import UserError
from midstream.pairing.chat.entries import QuestionState, Speech, ToolUse
from midstream.pairing.review.agent_conversation import AgentConversation
from tests.helpers.scripted_agent import BEGIN, command, sent

ASK: dict[str, Any] = {
    "ask": {
        "toolCall": {"toolCallId": "t1", "title": "Edit a.py", "kind": "edit"},
        "options": [
            {"optionId": "ever", "name": "Always", "kind": "allow_always"},
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ],
    }
}
END = {"result": {"stopReason": "end_turn"}}


def update(kind: str, **fields: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": kind, **fields}}


def piece(kind: str, text: str) -> dict[str, Any]:
    return update(kind, content={"type": "text", "text": text})


class Changes:
    """Counts changes, and waits for what they lead to."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __call__(self) -> None:
        self._event.set()

    async def until_question(self, talk: AgentConversation) -> None:
        while talk.question is None:
            self._event.clear()
            await self._event.wait()


@asynccontextmanager
async def talking(
    folder: Path, steps: list[dict[str, Any]], **script: list[dict[str, Any]]
) -> AsyncIterator[tuple[AgentConversation, Changes]]:
    changes = Changes()
    whole = {**BEGIN, "session/prompt": steps, **script}
    agent = KnownAgent("", "Scripted", tuple(command(folder, whole)))
    talk = await AgentConversation.begin(agent, folder, changes)
    try:
        yield talk, changes
    finally:
        await talk.close()


async def test_what_is_said_and_used_stands_in_order(tmp_path: Path) -> None:
    diff = {"type": "diff", "path": "a.py", "oldText": "x", "newText": "y"}
    steps = [
        piece("agent_thought_chunk", "Let me "),
        piece("agent_thought_chunk", "see."),
        piece("agent_message_chunk", "I read "),
        update("tool_call_update", toolCallId="t0", title="Read a.py", status="in_progress"),
        piece("agent_message_chunk", "and edit."),
        update("tool_call", toolCallId="t0", status="completed", content=[diff]),
        update("plan", entries=[{"content": "Edit", "status": "pending", "priority": "low"}]),
        update("usage_update", used=10, size=100, cost={"amount": 0.5, "currency": "USD"}),
        update("available_commands_update", availableCommands=[{"name": "review"}]),
        update("new_kind", x=1),
        END,
    ]
    async with talking(tmp_path, steps) as (talk, _):
        assert await talk.ask("do it") == "end_turn"
        first, thought, said, use, more = talk.entries
        assert first == Speech("user", "do it")
        assert thought == Speech("thought", "Let me see.")
        assert said == Speech("agent", "I read ")
        assert more == Speech("agent", "and edit.")
        assert isinstance(use, ToolUse)
        assert (use.call.title, use.call.status) == ("Read a.py", "completed")
        assert use.call.diffs[0].new == "y"
        assert use.question is QuestionState.NONE
        assert talk.plan is not None
        assert talk.plan.steps[0].text == "Edit"
        assert talk.usage is not None
        assert (talk.usage.used, talk.usage.cost) == (10, "0.50 USD")
        assert list(talk.commands) == ["review"]
        assert [unknown.kind for unknown in talk.unknown] == ["new_kind"]
        assert (talk.info.name, talk.info.version) == ("Scripted", "1.2.3")


async def test_an_agent_that_wants_a_login_says_which_command(tmp_path: Path) -> None:
    refuses = {"error": {"code": -32000, "message": "Authentication required"}}
    script = {**BEGIN, "session/new": [refuses]}
    agent = KnownAgent("x", "Agent X", tuple(command(tmp_path, script)), login="x login")
    with pytest.raises(LoginNeededError, match="Agent X wants you to log in; run `x login`"):
        await AgentConversation.begin(agent, tmp_path)


@pytest.mark.parametrize(
    ("allowed", "option", "state"),
    [(True, "yes", QuestionState.ALLOWED), (False, "no", QuestionState.REJECTED)],
)
async def test_a_question_is_answered_this_once(
    tmp_path: Path, allowed: bool, option: str, state: QuestionState
) -> None:
    async with talking(tmp_path, [ASK, END]) as (talk, changes):
        turn = asyncio.create_task(talk.ask("do it"))
        await changes.until_question(talk)
        assert talk.busy
        with pytest.raises(UserError, match="Scripted is at work"):
            await talk.ask("and this")
        assert talk.allow() if allowed else talk.reject()
        assert not talk.allow()  # there is no further question
        assert await turn == "end_turn"
        use = talk.entries[-1]
        assert isinstance(use, ToolUse)
        assert use.question is state
    outcome = next(m["result"]["outcome"] for m in sent(tmp_path) if "result" in m)
    assert outcome == {"outcome": "selected", "optionId": option}


async def test_a_stop_cancels_the_question(tmp_path: Path) -> None:
    steps = [ASK, {"result": {"stopReason": "cancelled"}}]
    async with talking(tmp_path, steps) as (talk, changes):
        turn = asyncio.create_task(talk.ask("do it"))
        await changes.until_question(talk)
        talk.stop()
        assert await turn == "cancelled"
        assert talk.question is None
        assert not talk.busy
        use = talk.entries[-1]
        assert isinstance(use, ToolUse)
        assert use.question is QuestionState.CANCELLED
        assert use.call.status == "nothing"


async def test_an_agent_that_ends_with_a_question_open(tmp_path: Path) -> None:
    ask = {**ASK["ask"], "sessionId": "s-1"}
    raw = f'{{"id": 1, "method": "session/request_permission", "params": {json.dumps(ask)}}}\n'
    async with talking(tmp_path, [{"raw": raw}, {"exit": 1}]) as (talk, _):
        with pytest.raises(AgentError, match="exit code 1"):
            await talk.ask("do it")
        await asyncio.sleep(0)
        assert talk.question is None
        assert not talk.busy


async def test_an_earlier_conversation_is_continued(tmp_path: Path) -> None:
    replayed = [piece("user_message_chunk", "before"), {"result": None}]
    whole = {**BEGIN, "session/load": replayed}
    agent = KnownAgent("", "Scripted", tuple(command(tmp_path, whole)))
    talk = await AgentConversation.begin(agent, tmp_path, session_id="s-1")
    try:
        assert talk.entries == [Speech("user", "before")]
        assert talk.session_id == "s-1"
    finally:
        await talk.close()


async def test_a_mode_that_the_agent_changes_itself(tmp_path: Path) -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}
    begun = [{"result": {"sessionId": "s-1", "modes": modes}}]
    steps = [update("current_mode_update", currentModeId="auto"), END]
    async with talking(tmp_path, steps, **{"session/new": begun}) as (talk, _):
        assert talk.choices[0].current == "ask"
        await talk.ask("do it")
        assert talk.choices[0].current == "auto"
