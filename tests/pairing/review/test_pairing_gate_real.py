"""The hook in real agents: Claude Code and Codex with a scripted model behind each.

``docs/review.md`` says how the hook is installed; the agents' commands are ``claude`` and
``codex``.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from midstream.agents.catalogue import find_agent
from midstream.agents.hook_client import socket_folder
from midstream.pairing.chat.entries import ToolUse
from midstream.pairing.files import put_backs
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.model_apis import Say, ScriptedModel, Use, codex_settings
from tests.helpers.pairing import Witness, make_repo

pytestmark = pytest.mark.agents

MAX_WAIT_S = 60.0
OLD = "def tax(amount):\n    return amount * 0.2\n\n\ndef names(rows):\n    return sorted(rows)\n"
NEW = OLD.replace("0.2", "0.25").replace("sorted(rows)", "rows")
KEPT = OLD.replace("0.2", "0.25")
PATCH = """\
*** Begin Patch
*** Update File: bill.py
@@
-    return amount * 0.2
+    return amount * 0.25
@@
-    return sorted(rows)
+    return rows
*** Update File: other.py
@@
-x = 1
+x = 2
*** End Patch
"""


@pytest.fixture
def settings() -> Settings:
    return Settings(feedback="automatic")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings, and the program on the path."""
    home, programs = tmp_path / "home", tmp_path / "bin"
    for folder in (home, programs):
        folder.mkdir()
    script = programs / "midstream"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m midstream "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CODEX_HOME", str(home / ".codex"))
    return home


@pytest.fixture
async def reviewed(
    tmp_path: Path, home: Path, settings: Settings, endpoint: Endpoint
) -> AsyncIterator[Witness]:
    """A session that reviews a folder and answers hooks."""
    root = make_repo(tmp_path / "work", {"bill.py": OLD, "other.py": "x = 1\n"})
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        witness = Witness(session)
        await witness.until(lambda: session.external.watching == "native")
        await session.review.switch_on(since_commit=True)
        await witness.until(lambda: os.path.isdir(socket_folder()) and os.listdir(socket_folder()))  # noqa: PTH112, PTH208
        yield witness


async def run(folder: Path, *command: str, given: str = "", **environ: str) -> str:
    """Run a command to its end; what it printed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, **environ},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(MAX_WAIT_S):
            out, _ = await process.communicate(given.encode())
    finally:
        if process.returncode is None:
            process.kill()
    return out.decode()


async def install(agent: str, folder: Path) -> None:
    assert "has the hook now" in await run(
        folder, "midstream", "hook", "--install", agent, given="y\n"
    )
    assert "already" in await run(folder, "midstream", "hook", "--install", agent)


def introduce_codex(home: Path, url: str) -> None:
    """Give Codex the scripted model for its own."""
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text(codex_settings(url))


def introduce_claude(url: str) -> dict[str, str]:
    """The environment in which Claude Code uses the scripted model."""
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "any",
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def codex_command() -> tuple[str, ...]:
    """Runs Codex with the hook that the test has installed."""
    options = ("--dangerously-bypass-hook-trust", "--sandbox", "danger-full-access")
    return (command_of("codex"), "exec", *options, "Raise the tax.")


async def decide(witness: Witness, count: int, unwanted: str = "return rows") -> None:
    """Keep all hunks except that with this line, or those of this file."""
    session = witness.session
    async with asyncio.timeout(MAX_WAIT_S):
        while len(session.hunks.undecided()) < count:  # noqa: ASYNC110 - another process's
            await asyncio.sleep(0.02)
    for hunk in session.hunks.undecided():
        if unwanted in (hunk.path, *(line.strip() for line in hunk.new)):
            await session.decisions.reject(hunk.id, "keep them sorted")
        else:
            await session.decisions.accept(hunk.id)


def command_of(agent: str) -> str:
    path = shutil.which(agent)
    if path is None:
        pytest.skip(f"there is no command {agent}")
    return path


async def test_claude_code_writes_what_was_kept_and_reads_why(
    reviewed: Witness, home: Path
) -> None:
    command, root = command_of("claude"), reviewed.session.root
    await install("claude", root)
    bill = str(root / "bill.py")
    steps = (
        Use("Read", {"file_path": bill}),
        Use("Write", {"file_path": bill, "content": NEW}),
        Use(
            "Edit",
            {"file_path": bill, "old_string": "return sorted(rows)", "new_string": "return rows"},
        ),
        Say("Done."),
    )
    with ScriptedModel(*steps) as model:
        environ = introduce_claude(model.url)
        agent = asyncio.create_task(run(root, command, "-p", "Raise the tax.", **environ))
        await decide(reviewed, 2)
        await decide(reviewed, 1)
        out = await agent
        assert "Done." in out
        assert (root / "bill.py").read_text() == KEPT
        heard = json.dumps(model.requests[-1])
    assert "kept 1 of 2 hunks" in heard
    assert "keep them sorted" in heard
    assert reviewed.session.hunks.undecided() == []
    assert not reviewed.session.hunks.calls


@pytest.mark.parametrize("unwanted", ["return rows", "bill.py"])
async def test_codex_applies_the_smaller_patch(
    reviewed: Witness, home: Path, unwanted: str
) -> None:
    """A file of which nothing is kept is not touched."""
    root = reviewed.session.root
    command = codex_command()
    await install("codex", root)
    before = (root / "bill.py").stat()
    steps = (Use("exec", f"text(await tools.apply_patch({json.dumps(PATCH)}));"), Say("Done."))
    with ScriptedModel(*steps) as model:
        introduce_codex(home, model.url)
        agent = asyncio.create_task(run(root, *command))
        await decide(reviewed, 3, unwanted)
        out = await agent
        heard = json.dumps(model.requests[-1])
    if unwanted == "bill.py":
        after = (root / "bill.py").stat()
        assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino), out
    kept = OLD if unwanted == "bill.py" else KEPT
    assert (root / "bill.py").read_text() == kept, out
    assert (root / "other.py").read_text() == "x = 2\n"
    assert f"kept {1 if unwanted == 'bill.py' else 2} of 3 hunks" in heard
    assert "keep them sorted" in heard
    assert reviewed.session.hunks.undecided() == []


async def test_without_midstream_an_agent_with_the_hook_works_as_before(
    tmp_path: Path, home: Path
) -> None:
    root = make_repo(tmp_path / "work", {"bill.py": OLD, "other.py": "x = 1\n"})
    await install("codex", root)
    steps = (Use("exec", f"text(await tools.apply_patch({json.dumps(PATCH)}));"), Say("Done."))
    with ScriptedModel(*steps) as model:
        introduce_codex(home, model.url)
        out = await run(root, *codex_command())
    assert (root / "bill.py").read_text() == NEW, out
    (root / "bill.py").write_text(OLD)

    await install("claude", root)
    bill = str(root / "bill.py")
    written = Use("Write", {"file_path": bill, "content": NEW})
    with ScriptedModel(Use("Read", {"file_path": bill}), written, Say("Done.")) as model:
        environ = introduce_claude(model.url)
        options = ("-p", "Raise the tax.", "--permission-mode", "acceptEdits")
        out = await run(root, command_of("claude"), *options, **environ)
        assert "Done." in out
        assert "Midstream" not in json.dumps(model.requests[-1])
    assert (root / "bill.py").read_text() == NEW


@pytest.mark.parametrize("agent", ["claude", "codex"])
async def test_what_waits_goes_back_when_the_agent_stops(
    reviewed: Witness, home: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    """What a command has written is not held; the agent reads that it was put back, and goes on."""
    monkeypatch.setattr(put_backs, "QUIET_S", 600.0)
    session = reviewed.session
    root = session.root
    (home / "new.py").write_text(NEW)
    decided = home / "decided"
    script = f"cp {home}/new.py bill.py; while [ ! -e {decided} ]; do sleep 0.1; done"
    await install(agent, root)
    if agent == "claude":
        step = Use("Bash", {"command": script, "description": "Raise the tax"})
        options = ("-p", "Raise the tax.", "--allowedTools", "Bash")
        command: tuple[str, ...] = (command_of("claude"), *options)
    else:
        call = {"cmd": script, "yield_time_ms": 30_000}
        step = Use("exec", f"text(JSON.stringify(await tools.exec_command({json.dumps(call)})));")
        command = codex_command()
    with ScriptedModel(step, Say("Done.")) as model:
        introduce_codex(home, model.url)
        ended = asyncio.create_task(run(root, *command, **introduce_claude(model.url)))
        await decide(reviewed, 2)
        assert len(session.hunks.postponed()) == 1
        assert (root / "bill.py").read_text() == NEW
        decided.touch()
        out = await ended
        heard = json.dumps(model.requests[-1])
    assert (root / "bill.py").read_text() == KEPT, out
    assert "Reason: keep them sorted" in heard
    assert not session.hunks.postponed()
    await session.decisions.undo()
    assert (root / "bill.py").read_text() == NEW


async def test_claude_code_in_the_session_asks_the_gate_by_itself(
    tmp_path: Path, endpoint: Endpoint, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command_of("claude-agent-acp")
    root = make_repo(tmp_path / "work", {"bill.py": OLD})
    bill = str(root / "bill.py")
    steps = (
        Use("Read", {"file_path": bill}),
        Use("Write", {"file_path": bill, "content": NEW}),
        Say("Done."),
    )
    with ScriptedModel(*steps) as model:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
        monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        async with await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, agent=find_agent("claude")
        ) as session:
            witness = Witness(session)
            await witness.until(lambda: session.agent.conversation or session.status.notices)
            session.agent.send("Raise the tax.")
            await decide(witness, 2)
            conversation = session.agent.conversation
            assert conversation is not None
            written = False
            async with asyncio.timeout(MAX_WAIT_S):
                while session.agent.busy:
                    tools = [each for each in conversation.entries if isinstance(each, ToolUse)]
                    if not written and len(tools) == 2 and tools[1].call.status == "completed":
                        written = True
                        assert (root / "bill.py").read_text() == KEPT, "before it says so"
                    await asyncio.sleep(0.02)
            assert written
            assert session.hunks.undecided() == []
            assert conversation.question is None
        heard = json.dumps(model.requests[-1])
    assert (root / "bill.py").read_text() == KEPT
    assert "kept 1 of 2 hunks" in heard
    assert not (home / ".claude" / "settings.json").exists()


@pytest.mark.parametrize("agent", ["claude", "codex"])
async def test_an_agent_asks_how_its_review_ended(
    reviewed: Witness, home: Path, agent: str
) -> None:
    """Over MCP; ``wait_for_review`` answers once all is decided."""
    root = reviewed.session.root
    (root / "bill.py").write_text(NEW)
    if agent == "claude":
        step = Use("mcp__midstream__wait_for_review", {})
        servers = {"mcpServers": {"midstream": {"command": "midstream", "args": ["mcp"]}}}
        options = ("--mcp-config", json.dumps(servers), "--allowedTools", step.tool)
        command: tuple[str, ...] = (command_of("claude"), "-p", "Ask.", *options)
    else:
        step = Use("exec", "text(JSON.stringify(await tools.mcp__midstream__wait_for_review({})));")
        command = codex_command()
    with ScriptedModel(step, Say("Done.")) as model:
        introduce_codex(home, model.url)
        with (home / ".codex" / "config.toml").open("a") as config:
            config.write('\n[mcp_servers.midstream]\ncommand = "midstream"\nargs = ["mcp"]\n')
            # Codex hands on no variable that it is not told of.
            config.write('env_vars = ["MIDSTREAM_STATE_DIR"]\n')
        ended = asyncio.create_task(run(root, *command, **introduce_claude(model.url)))
        await decide(reviewed, 2)
        out = await ended
        heard = json.dumps(model.requests[-1])
    assert "None of your changes is waiting for a decision." in heard, out
    assert "Reason: keep them sorted" in heard
    assert (root / "bill.py").read_text() == KEPT
