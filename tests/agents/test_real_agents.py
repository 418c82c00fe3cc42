"""Real coding agents in a session, with a scripted model behind each.

``docs/agents.md`` says how to install them and which versions these were run with.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from midstream.agents.catalogue import find_agent
from midstream.pairing.chat.entries import QuestionState, Speech, ToolUse
from midstream.pairing.session import PairingSession
from midstream.settings import Settings
from tests.helpers.model_apis import Say, ScriptedModel, Step, Use, codex_settings

pytestmark = pytest.mark.agents

MAX_WAIT_S = 60.0
FORGETFUL = ("gemini",)
"""Load no earlier session: Gemini CLI 0.61.0 empties the session's file before it reads it."""
STEERED = ("codex",)
"""Take a text in mid-turn."""
OLD = "def tax(amount):\n    return amount * 0.2\n\n\ndef names(rows):\n    return sorted(rows)\n"
NEW = OLD.replace("0.2", "0.25")
BOTH = NEW.replace("sorted(rows)", "rows")


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(MAX_WAIT_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is another process's
            await asyncio.sleep(0.02)


def edits(name: str, bill: Path, text: str) -> Step:
    """What the model of an agent does to give the file a text, by one edit."""
    old, new = OLD.partition("\n")[2], text.partition("\n")[2]
    match name:
        case "claude":
            return Use("Edit", {"file_path": str(bill), "old_string": old, "new_string": new})
        case "codex":
            return Use("exec", f"text(await tools.apply_patch({json.dumps(patch(text))}));")
        case "gemini":
            given = {"file_path": str(bill), "old_string": old, "new_string": new}
            return Use("replace", {**given, "instruction": "Raise the tax."})
        case _:
            return Use("edit", {"filePath": str(bill), "oldString": old, "newString": new})


def patch(text: str) -> str:
    """The patch that gives the file a text."""
    lines = difflib.ndiff(OLD.splitlines(), text.splitlines())
    changes = [f"{line[0]}{line[2:]}\n" for line in lines if line[0] != "?"]
    return "".join(("*** Begin Patch\n*** Update File: bill.py\n@@\n", *changes, "*** End Patch\n"))


def left_behind(home: Path) -> list[str]:
    """Processes that still run with a home."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (
                process.name != str(os.getpid())
                and f"HOME={home}\0".encode() in (process / "environ").read_bytes() + b"\0"
            ):
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


def reads(name: str, bill: Path) -> tuple[Step, ...]:
    """The steps that an agent has to take before it may edit."""
    match name:
        case "claude":
            return (Use("Read", {"file_path": str(bill)}),)
        case "opencode":
            return (Use("read", {"filePath": str(bill)}),)
        case _:
            return ()


def introduce(name: str, home: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give an agent a home, and the scripted model for its own."""
    monkeypatch.setenv("HOME", str(home))
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    match name:
        case "claude":
            monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
            monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
            monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        case "codex":
            config = home / ".codex" / "config.toml"
            monkeypatch.setenv("CODEX_HOME", str(config.parent))
            config.parent.mkdir()
            config.write_text(codex_settings(url))
        case "gemini":
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
            monkeypatch.setenv("GEMINI_API_KEY", "any")
            config = home / ".gemini" / "settings.json"
            config.parent.mkdir()
            config.write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
        case _:
            config = home / ".config" / "opencode" / "opencode.json"
            config.parent.mkdir(parents=True)
            provider = {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": f"{url}/v1", "apiKey": "any"},
                "models": {"scripted": {"tool_call": True}},
            }
            chosen = {"provider": {"own": provider}, "model": "own/scripted"}
            config.write_text(json.dumps(chosen))


@dataclass
class Scene:
    """A session with a real agent.

    Attributes:
        name: Which one.
        bill: The file that its model wants to change.
        session: The session.
        model: The model.
    """

    name: str
    bill: Path
    session: PairingSession
    model: ScriptedModel

    @property
    def outcome(self) -> list[QuestionState]:
        conversation = self.session.agent.conversation
        entries = conversation.entries if conversation else []
        return [e.question for e in entries if isinstance(e, ToolUse)]

    @property
    def said(self) -> str:
        conversation = self.session.agent.conversation
        entries = conversation.entries if conversation else []
        return "".join(e.text for e in entries if isinstance(e, Speech) and e.role == "agent")

    async def asked(self) -> None:
        """Send a request, and wait for the question about the edit."""
        self.session.agent.send("Raise the tax.")
        await until(lambda: self.session.agent.asking or not self.session.agent.busy)
        notices = [notice.text for notice in self.session.status.notices]
        assert self.session.agent.asking, (self.said, notices)
        assert self.bill.read_text() == OLD

    async def ended(self) -> None:
        """Wait for the end of the turn."""
        await until(lambda: not self.session.agent.busy)


Play: TypeAlias = Callable[[Scene], Awaitable[None]]
Player: TypeAlias = Callable[..., Awaitable[None]]
"""Plays scenes one after the other, each in a session that resumes the one before."""


@pytest.fixture(params=["claude", "codex", "gemini", "opencode"])
def play(
    request: pytest.FixtureRequest, tmp_path: Path, copyist: Path, monkeypatch: pytest.MonkeyPatch
) -> Player:
    """Play a scene with each agent that is installed."""
    name: str = request.param
    agent = find_agent(name)
    if not agent.installed:
        pytest.skip(f"{agent.command[0]} is not installed: {agent.install}")
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    bill = root / "bill.py"
    bill.write_text(OLD)

    async def run(*scenes: Play, text: str = NEW) -> None:
        steps = (*reads(name, bill), edits(name, bill, text), Say("The tax is **25 %** now."))
        journal: Path | None = None
        with ScriptedModel(*steps) as model:
            introduce(name, home, model.url, monkeypatch)
            for scene in scenes:
                # With the gate, Claude Code asks by its hook instead (test_pairing_gate_real.py).
                settings = Settings(hold_edits=False, feedback="automatic", model=copyist)
                async with await PairingSession.open(
                    root, settings=settings, resume=journal, agent=agent
                ) as session:
                    await until(lambda: session.agent.conversation)
                    await until(lambda: session.external.watching == "native")
                    await scene(Scene(name, bill, session, model))
                    journal = session.journal.path
                await until(lambda: not left_behind(home))

    return run


async def test_an_allowed_edit_is_a_hunk(play: Player) -> None:
    async def scene(on: Scene) -> None:
        await on.asked()
        conversation = on.session.agent.conversation
        assert conversation
        assert conversation.allow()
        await until(lambda: on.session.hunks.undecided())
        await on.ended()
        assert on.bill.read_text() == NEW
        assert "The tax is **25 %** now." in on.said
        (hunk,) = on.session.hunks.undecided()
        assert hunk.external
        notices = [notice.text for notice in on.session.status.notices]
        assert any(text.startswith(conversation.title) for text in notices), notices
        await on.session.decisions.reject(hunk.id)
        await until(lambda: on.bill.read_text() == OLD)

    await play(scene)


async def test_some_of_an_allowed_edit_is_kept(play: Player) -> None:
    """The kept lines are on disk, and the next text tells the model about the others."""

    async def scene(on: Scene) -> None:
        session = on.session
        await on.asked()
        conversation = session.agent.conversation
        assert conversation
        assert conversation.allow()
        await until(lambda: len(session.hunks.undecided()) == 2)
        tax, names = session.hunks.undecided()
        await session.decisions.accept(tax.id)
        await session.decisions.reject(names.id, "keep them sorted")
        await on.ended()
        await until(lambda: on.bill.read_text() == NEW)
        session.agent.send("And now?")
        await on.ended()
        assert on.bill.read_text() == NEW
        assert session.hunks.undecided() == []
        asked = [text for r in on.model.requests if "And now?" in (text := json.dumps(r))]
        assert asked
        for text in asked:
            assert "put these changes back" in text
            assert "Reason: keep them sorted" in text

    await play(scene, text=BOTH)


async def test_a_rejected_edit_is_not_made(play: Player) -> None:
    async def scene(on: Scene) -> None:
        await on.asked()
        conversation = on.session.agent.conversation
        assert conversation
        assert conversation.reject()
        await on.ended()
        assert on.bill.read_text() == OLD
        assert QuestionState.REJECTED in on.outcome
        # A rejection ends the turn of some; whether it does is in the catalogue.
        assert ("25 %" in on.said) != conversation.agent.ends_turn

    await play(scene)


async def test_a_stop_with_an_open_question(play: Player) -> None:
    async def scene(on: Scene) -> None:
        await on.asked()
        on.session.agent.stop_working()
        await on.ended()
        assert on.bill.read_text() == OLD
        assert QuestionState.CANCELLED in on.outcome
        on.session.agent.send("Again.")
        await until(lambda: on.session.agent.asking or not on.session.agent.busy)

    await play(scene)


async def test_a_conversation_goes_on_in_the_next_session(play: Player) -> None:
    async def first(on: Scene) -> None:
        await on.asked()
        conversation = on.session.agent.conversation
        assert conversation
        assert conversation.allow()
        await on.ended()
        await until(lambda: on.session.hunks.undecided())

    async def second(on: Scene) -> None:
        conversation = on.session.agent.conversation
        assert conversation
        words = [e.text for e in conversation.entries if isinstance(e, Speech)]
        forgot = any("does not remember" in each for each in words)
        assert forgot == (on.name in FORGETFUL)
        assert "25 %" in on.said
        assert on.bill.read_text() == NEW
        (hunk,) = on.session.hunks.undecided()
        assert hunk.external
        if forgot:
            return
        on.session.agent.send("And now?")
        await on.ended()
        sent = json.dumps(on.model.requests[-1])
        assert "Raise the tax." in sent
        assert "And now?" in sent

    await play(first, second)


async def test_a_text_in_mid_turn(play: Player) -> None:
    async def scene(on: Scene) -> None:
        await on.asked()
        conversation = on.session.agent.conversation
        assert conversation
        assert on.session.agent.steers == (on.name in STEERED)
        waits = on.session.agent.send("Mind the cents.")
        assert waits == (on.name not in STEERED)
        if not waits:
            said = conversation.entries
            await until(lambda: any(e == Speech("user", "Mind the cents.") for e in said))
        turns = sum(isinstance(e, Speech) and e.role == "user" for e in conversation.entries)
        assert conversation.allow()
        await on.ended()
        # Codex's tool may go on after a text has ended its turn early.
        await until(lambda: on.bill.read_text() == NEW)
        heard = [r for r in on.model.requests if "Mind the cents." in json.dumps(r)]
        assert heard
        if not waits:
            # The model reads it with the result of its tool, and no further turn follows.
            assert turns == 2
            assert not on.session.agent.queued
            assert "_call_output" in json.dumps(heard[0]["input"])

    await play(scene)
