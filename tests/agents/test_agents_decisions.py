"""Turns of all four agents without a gate: kept edits are on disk; the agent hears of the others.

The agents play recorded turns (``traces/``) and write as the recorded ones did: after a yes, before
they say that the tool is done.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from midstream.agents.catalogue import KnownAgent
from midstream.edits.hunks import Hunk
from midstream.pairing.session import PairingSession
from midstream.settings import Settings
from tests.helpers.agent_traces import frames
from tests.helpers.pairing import Witness
from tests.helpers.scripted_agent import BEGIN, command, sent
from tests.helpers.stepped import SteppedModel, served

SHOP = '''"""A shop."""


def total(rows):
    return sum(r.price for r in rows)


def names(rows):
    return [r.name for r in rows]


def tax(amount):
    return amount * 0.2
'''
OLD_TAX = "    return amount * 0.2"
FILES = ("shop.py", "notes.md")
END = {"result": {"stopReason": "end_turn"}}
AGENTS = ("claude", "codex", "codex_0_16", "gemini", "opencode")
REJECTED = {
    "claude": ("claude_reject", False),
    "codex": ("codex_reject", True),
    "gemini": ("gemini", False),
    "opencode": ("opencode_reject", True),
}
"""The trace of a turn in which every edit is refused, and whether the first refusal ends it."""


def script(trace: str, root: Path, aside: Path) -> dict[str, list[dict[str, Any]]]:
    """Plays a trace, and writes; at its end it waits for the file ``decided``."""
    steps: list[dict[str, Any]] = []
    edits: dict[str, list[list[str]]] = {}
    session = ""
    for frame in frames(trace, str(root)):
        message = frame.get("agent")
        if message is None:
            continue
        parameters = message.get("params", {})
        session = parameters.get("sessionId") or session
        call = parameters.get("toolCall") or parameters.get("update") or {}
        content = call.get("content")
        diffs = [c for c in content or () if isinstance(c, dict) and c.get("type") == "diff"]
        if diffs:
            edits[call["toolCallId"]] = [[d["path"], d.get("oldText"), d["newText"]] for d in diffs]
        if message.get("method") == "session/request_permission":
            steps.append({"ask": parameters, "id": message["id"]})
            steps.append({"edit": edits.get(call["toolCallId"], [])})
        elif "stopReason" in message.get("result", {}):
            steps += [{"write": {str(aside / "done"): ""}}, {"file": str(aside / "decided")}]
            steps.append({"result": message["result"]})
        else:
            steps.append({"raw": json.dumps({"jsonrpc": "2.0", **message}) + "\n"})
            if "id" in message:  # the agent asks for a file and is refused
                steps.append({"until": None})
    return {
        **BEGIN,
        "session/new": [{"result": {"sessionId": session}}],
        "session/prompt": steps,
        "session/prompt 2": [END],
    }


class Turn:
    """A session with an agent that plays a trace."""

    def __init__(self, session: PairingSession, root: Path, aside: Path) -> None:
        self.session = session
        self.root = root
        self.aside = aside
        self.witness = Witness(session)

    def texts(self) -> dict[str, str]:
        return {n: (self.root / n).read_text() for n in FILES if (self.root / n).exists()}

    async def play(self, trace: str, *, allow: bool) -> None:
        """Answer every question; returns when the agent is about to end its turn."""
        plays = command(self.aside, script(trace, self.root, self.aside))
        await self.session.agent.begin(KnownAgent("", "Agent", tuple(plays)))
        self.session.agent.send("Please do it")
        talk = self.session.agent.conversation
        assert talk is not None

        def answered() -> bool:
            while talk.question is not None:
                assert talk.allow() if allow else talk.reject()
            return (self.aside / "done").exists()

        await self.witness.until(answered)
        await self.session.review.changed(FILES)

    async def end(self) -> str:
        """Let the turn end; returns the text that waits to be sent to the agent."""
        assert self.session.agent.send("Go on")
        (self.aside / "decided").touch()
        await self.witness.until(lambda: len(self.prompts()) == 2)
        return self.prompts()[1]

    def prompts(self) -> list[str]:
        asked = (m for m in sent(self.aside) if m.get("method") == "session/prompt")
        return [m["params"]["prompt"][0]["text"] for m in asked]

    async def split_tax(self) -> Hunk:
        """The hunk of the tax's second line, after it was parted from the first."""
        (tax,) = (h for h in self.session.hunks.undecided("shop.py") if OLD_TAX in h.old)
        line = tax.old.index(OLD_TAX)
        _, rest = await self.session.decisions.split(tax.id, [(line, line)])
        return self.session.hunks.get(rest)


@pytest.fixture
async def turn(tmp_path: Path) -> Any:
    root, aside = tmp_path / "root", tmp_path / "aside"
    for folder in (root, aside):
        folder.mkdir()
    (root / "shop.py").write_text(SHOP)
    settings = Settings(journal=False, feedback="automatic")
    async with (
        served(SteppedModel()) as endpoint,
        await PairingSession.open(
            root, settings=settings, endpoint=endpoint, watch=False
        ) as session,
    ):
        yield Turn(session, root, aside)


@pytest.mark.parametrize("agent", AGENTS)
async def test_all_is_kept(turn: Turn, agent: str) -> None:
    await turn.play(agent, allow=True)
    written = turn.texts()
    assert written["shop.py"] != SHOP
    for hunk in turn.session.hunks.undecided():
        assert await turn.session.decisions.accept(hunk.id)
    assert await turn.end() == "Go on"
    assert turn.texts() == written


@pytest.mark.parametrize("agent", AGENTS)
async def test_some_is_kept(turn: Turn, agent: str) -> None:
    await turn.play(agent, allow=True)
    written = turn.texts()
    unwanted = [await turn.split_tax(), *turn.session.hunks.undecided("notes.md")]
    new_tax = unwanted[0].new[0]
    for hunk in turn.session.hunks.undecided():
        if hunk in unwanted:
            assert await turn.session.decisions.reject(hunk.id, f"not in {hunk.path}")
        else:
            assert await turn.session.decisions.accept(hunk.id)
    assert turn.texts() == written, "nothing is taken away in mid-turn"
    told = await turn.end()
    assert turn.texts() == {"shop.py": written["shop.py"].replace(new_tax, OLD_TAX)}
    for hunk in unwanted:
        assert f"- {hunk.path} line" in told
        assert f"Reason: not in {hunk.path}" in told
    assert told.count("\n- ") == len(unwanted)
    assert told.endswith("\n\nGo on")
    assert turn.session.hunks.undecided() == []


@pytest.mark.parametrize("agent", AGENTS)
async def test_nothing_is_kept_of_what_was_allowed(turn: Turn, agent: str) -> None:
    await turn.play(agent, allow=True)
    hunks = turn.session.hunks.undecided()
    assert await turn.session.decisions.reject_all() == len(hunks)
    told = await turn.end()
    assert turn.texts() == {"shop.py": SHOP}
    assert told.count("\n- ") == len(hunks)


@pytest.mark.parametrize("agent", REJECTED)
async def test_nothing_is_allowed(turn: Turn, agent: str) -> None:
    """An agent that goes on tells its model; where the refusal ended the turn, the session does."""
    trace, ends = REJECTED[agent]
    await turn.play(trace, allow=False)
    assert turn.texts() == {"shop.py": SHOP}
    assert turn.session.hunks.undecided() == []
    told = await turn.end()
    assert turn.texts() == {"shop.py": SHOP}
    assert ("The user did not allow" in told) == ends
    assert ("shop.py" in told) == ends
    assert told.endswith("Go on")
