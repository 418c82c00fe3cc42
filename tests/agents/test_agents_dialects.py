"""What real agents sent in recorded turns, frame by frame, is understood and answered.

``traces/*.jsonl`` are frames of agents that ran against a scripted model: one ``agent`` or
``client`` message a line, from the prompt to the end of its turn.  An agent plays them over real
pipes and waits where the recorded client had answered.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from midstream.agents.catalogue import KnownAgent
from midstream.pairing.chat.entries import QuestionState, ToolUse
from midstream.pairing.review.agent_conversation import AgentConversation
from tests.helpers.agent_traces import TRACES, frames
from tests.helpers.scripted_agent import BEGIN, command, sent
from tests.helpers.waiting import PATIENCE_S

NO_SUCH_METHOD = -32601
SHOP = "/p/shop.py"
NOTES = "/p/notes.md"
BILL = "/p/bill.py"


@dataclass(frozen=True)
class Dialect:
    """A recorded turn: what each question shows, and what becomes of it.

    Attributes:
        asked: For each question its edits: the path, and whether the old text is a fragment, the
            whole file, or none.
        allow: Whether the recorded user allowed.
        reason: Why the turn ends.
        steer: What the recorded user said while the first question was open.
    """

    asked: tuple[tuple[tuple[str, str], ...], ...]
    allow: bool = True
    reason: str = "end_turn"
    steer: str = ""


DIALECTS = {
    "claude": Dialect((((SHOP, "part"),), ((NOTES, "none"),), ((SHOP, "part"),))),
    # The third overwrites a file that is there, the fourth is a shell command.
    "claude_reject": Dialect(
        (((SHOP, "part"),), ((SHOP, "part"),), ((SHOP, "none"),), ()), allow=False
    ),
    "codex_0_16": Dialect((((NOTES, "none"), (SHOP, "part"), (SHOP, "part")),)),
    "codex": Dialect((((NOTES, "none"), (SHOP, "part"), (SHOP, "part")),)),
    "codex_reject": Dialect(
        (((NOTES, "none"), (SHOP, "part"), (SHOP, "part")),), allow=False, reason="cancelled"
    ),
    "codex_steer": Dialect((((BILL, "part"),),), steer="Mind the cents."),
    "gemini": Dialect((((SHOP, "whole"),), ((SHOP, "whole"),))),
    "opencode": Dialect((((SHOP, "whole"),), ((NOTES, "none"),))),
    "opencode_reject": Dialect((((SHOP, "whole"),),), allow=False),
}


def played(name: str) -> dict[str, list[dict[str, Any]]]:
    """The script that plays a trace."""
    steps: list[dict[str, Any]] = []
    session = ""
    for frame in frames(name):
        message = frame.get("agent")
        if message is None:
            steps.append({"until": frame["client"].get("method")})  # or its reply
        elif "outcome" in message.get("result", {}):
            steps.append({"reply": message["result"]})
        elif "stopReason" in message.get("result", {}):
            steps.append({"result": message["result"]})
        else:
            session = message.get("params", {}).get("sessionId") or session
            steps.append({"raw": json.dumps({"jsonrpc": "2.0", **message}) + "\n"})
    return {**BEGIN, "session/new": [{"result": {"sessionId": session}}], "session/prompt": steps}


def old_text(old: str | None) -> str:
    if not old:
        return "none"
    return "whole" if old.startswith('"""A shop."""') else "part"


def test_every_trace_is_played() -> None:
    assert {path.stem for path in TRACES.glob("*.jsonl")} == set(DIALECTS)


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_recorded_turn(tmp_path: Path, name: str) -> None:
    dialect = DIALECTS[name]
    heard = asyncio.Event()
    agent = KnownAgent("", "Agent", tuple(command(tmp_path, played(name))))
    talk = await AgentConversation.begin(agent, tmp_path, heard.set)
    asked: list[tuple[tuple[str, str], ...]] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            turn = asyncio.ensure_future(talk.ask("Please do it"))
            turn.add_done_callback(lambda _: heard.set())
            while not turn.done():
                await heard.wait()
                heard.clear()
                while (question := talk.question) is not None:
                    asked.append(tuple((d.path, old_text(d.old)) for d in question.call.diffs))
                    if dialect.steer and len(asked) == 1:
                        assert await talk.steer(dialect.steer)
                    assert talk.allow() if dialect.allow else talk.reject()
            assert await turn == dialect.reason
    finally:
        await talk.close()
    assert tuple(asked) == dialect.asked

    # The text in mid-turn went out as the recorded client sent it, and is in the conversation.
    said = [f["client"] for f in frames(name) if f.get("client", {}).get("method")]
    steered = [m for m in sent(tmp_path) if m.get("method") == "_session/steering"]
    assert [m["params"] for m in steered] == [m["params"] for m in said]
    words = [e.text for e in talk.entries if not isinstance(e, ToolUse) and e.role == "user"]
    assert words == ["Please do it", *filter(None, [dialect.steer])]

    # The answers are those of the recorded client, with the agents' own ids.
    replies = {json.dumps(m["id"]): m for m in sent(tmp_path) if "method" not in m}
    questions = 0
    for message in (frame["agent"] for frame in frames(name) if "agent" in frame):
        if "id" not in message or "method" not in message:
            continue
        reply = replies.pop(json.dumps(message["id"]))
        if message["method"] != "session/request_permission":
            assert reply["error"]["code"] == NO_SUCH_METHOD
            continue
        questions += 1
        (recorded,) = (
            f["client"]["result"]
            for f in frames(name)
            if "client" in f and f["client"].get("id") == message["id"]
        )
        assert reply["result"]["outcome"] == recorded["outcome"]
    assert not replies
    assert questions == len(dialect.asked)

    # A use of a tool is one entry, however many messages describe it.
    uses = [entry for entry in talk.entries if isinstance(entry, ToolUse)]
    assert len({use.call.call_id for use in uses}) == len(uses)
    answered = [use for use in uses if use.question is not QuestionState.NONE]
    wanted = QuestionState.ALLOWED if dialect.allow else QuestionState.REJECTED
    assert [use.question for use in answered] == [wanted] * questions
    if dialect.allow:
        assert {use.call.status for use in answered} == {"completed"}
    else:
        assert "completed" not in {use.call.status for use in answered}
