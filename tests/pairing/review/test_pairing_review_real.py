"""A real agent in a terminal of its own, in a reviewed folder; nobody tells of its turn."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.model_apis import Say, ScriptedModel, Use, codex_settings
from tests.helpers.pairing import make_repo

pytestmark = pytest.mark.agents

MAX_WAIT_S = 60.0
OLD = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(3))
NEW = OLD.replace("return ", "return 1")
KEPT = NEW.replace("return 11", "return 1")
PATCH = "".join(
    (
        "*** Begin Patch\n*** Update File: bill.py\n",
        *(f"@@\n def f{n}():\n-    return {n}\n+    return 1{n}\n" for n in range(3)),
        "*** End Patch\n",
    )
)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(MAX_WAIT_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is another process's
            await asyncio.sleep(0.02)


def hunks_of_git(root: Path) -> int:
    """How many hunks `git diff` shows, each line for itself."""
    shown = subprocess.run(
        ("git", "diff", "-U0"), cwd=root, check=True, capture_output=True, text=True
    )
    return sum(line.startswith("@@") for line in shown.stdout.splitlines())


async def test_lines_go_back_when_codex_in_another_terminal_is_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings, endpoint: Endpoint
) -> None:
    command = shutil.which("codex")
    if command is None:
        pytest.skip("there is no command codex")
    root, home = make_repo(tmp_path / "work", {"bill.py": OLD}), tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(home))
    steps = (Use("exec", f"text(await tools.apply_patch({json.dumps(PATCH)}));"), Say("Done."))
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        await until(lambda: session.external.watching == "native")
        await session.review.switch_on(since_commit=True)
        with ScriptedModel(*steps) as model:
            (home / "config.toml").write_text(codex_settings(model.url))
            agent = await asyncio.create_subprocess_exec(
                command,
                *("exec", "--sandbox", "danger-full-access", "Count from ten."),
                cwd=root,
                env=os.environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            try:
                await until(lambda: len(session.hunks.undecided()) == 3)
                second = session.hunks.undecided()[1]
                await session.decisions.reject(second.id, "one is one")
                assert session.hunks.postponed() == [second]
                assert (root / "bill.py").read_text() == NEW
                async with asyncio.timeout(MAX_WAIT_S):
                    out, _ = await agent.communicate()
            finally:
                if agent.returncode is None:
                    agent.kill()
        assert agent.returncode == 0, out.decode()
        await until(lambda: (root / "bill.py").read_text() == KEPT)
        assert hunks_of_git(root) == 2
        await until(lambda: not session.hunks.postponed())
        await session.decisions.undo()
        await until(lambda: (root / "bill.py").read_text() == NEW)
        assert hunks_of_git(root) == 3
        assert len(session.hunks.undecided()) == 3
