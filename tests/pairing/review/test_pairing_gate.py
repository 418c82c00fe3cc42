"""Edits of agents that are decided before they are written, over the real hook and socket."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from midstream.agents.hook_client import socket_folder
from midstream.edits.hunks import Hunk, HunkState
from midstream.pairing.files import put_backs
from midstream.pairing.journal.journal import Replay
from midstream.pairing.session import PairingSession
from midstream.pairing.status import ReviewSwitched
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import Witness, numbered

BEFORE = numbered(30)
COMMITTED = {"run.py": BEFORE, "other.py": "x = 1\n"}
AFTER = BEFORE.replace("work(3)", "work(33)").replace("work(20)", "work(220)")
FIRST_ONLY = BEFORE.replace("work(3)", "work(33)")


@pytest.fixture
async def gated(root: Path, settings: Settings, endpoint: Endpoint) -> AsyncIterator[Gated]:
    """A session that reviews the folder and answers hooks."""
    async with await PairingSession.open(root, settings=settings, endpoint=endpoint) as session:
        gated = Gated(session)
        await gated.listening()
        yield gated


def private(path: Path, mode: int) -> bool:
    return path.stat().st_mode & 0o777 == mode


class Hook:
    """``midstream hook``, as an agent runs it."""

    def __init__(self, process: asyncio.subprocess.Process, given: bytes) -> None:
        self._process = process
        self._done = asyncio.create_task(process.communicate(given))

    @property
    def waits(self) -> bool:
        return not self._done.done()

    async def answer(self) -> dict[str, Any] | None:
        out, trouble = await self._done
        assert (self._process.returncode, trouble) == (0, b"")
        return json.loads(out) if out else None

    async def before_tool(self) -> dict[str, Any]:
        answer = await self.answer()
        assert answer is not None
        return answer["hookSpecificOutput"]

    async def kill(self) -> None:
        self._process.kill()
        await self._done


async def run_hook(event: dict[str, Any]) -> Hook:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "midstream", "hook"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    return Hook(process, json.dumps(event).encode())


class Gated(Witness):
    """A session with a gate."""

    async def listening(self) -> None:
        await self.until(lambda: self.session.external.watching == "native")
        await self.session.review.switch_on(since_commit=True)
        folder = Path(os.environ["MIDSTREAM_STATE_DIR"]) / "hooks"
        folder = folder if len(str(folder)) < 76 else Path(socket_folder())
        await self.until(lambda: folder.is_dir() and any(folder.iterdir()))

    async def call(self, tool: str, **arguments: Any) -> Hook:
        root = str(self.session.root)
        event = {"hook_event_name": "PreToolUse", "cwd": root, "tool_name": tool}
        return await run_hook({**event, "tool_input": arguments})

    async def edit(self, after: str = AFTER) -> Hook:
        return await self.call("Write", file_path=str(self.session.root / "run.py"), content=after)

    async def waiting(self, count: int) -> list[Hunk]:
        store = self.session.hunks
        await self.until(lambda: len(store.undecided()) == count)
        return store.undecided()

    def write(self, text: str, name: str = "run.py") -> None:
        """Write the file, as the agent does after the answer."""
        (self.session.root / name).write_text(text)


async def test_an_edit_waits_and_is_written_by_the_agent_alone(gated: Gated, root: Path) -> None:
    hook = await gated.edit()
    first, second = await gated.waiting(2)
    assert not first.external
    assert first.new == ("    step_03 = work(33)",)
    assert gated.session.gate.waiting == "Claude Code"
    assert gated.session.provenance.author_of(first) == "Claude Code"
    assert gated.session.provenance.of(first).tool == "Write"
    assert await gated.session.decisions.accept(first.id)
    assert hook.waits
    assert (root / "run.py").read_text() == BEFORE
    assert await gated.session.decisions.accept(second.id)
    answer = await hook.before_tool()
    assert answer["permissionDecision"] == "allow"
    assert "updatedInput" not in answer
    assert (root / "run.py").read_text() == BEFORE
    gated.write(AFTER)
    await gated.until(lambda: not first.call and not second.call)
    await gated.session.external.refresh()
    assert gated.session.hunks.undecided() == []
    assert await gated.session.decisions.undo() == (second.id,)
    assert (root / "run.py").read_text() == FIRST_ONLY


async def test_what_is_kept_is_allowed_and_the_rest_is_told(gated: Gated, root: Path) -> None:
    hook = await gated.edit()
    first, second = await gated.waiting(2)
    await gated.session.decisions.accept(first.id)
    await gated.session.decisions.reject(second.id, "20 was right")
    answer = await hook.before_tool()
    assert answer["permissionDecision"] == "allow"
    assert answer["updatedInput"]["content"] == FIRST_ONLY
    assert "kept 1 of 2 hunks" in answer["additionalContext"]
    assert "run.py line 21" in answer["additionalContext"]
    assert "Reason: 20 was right" in answer["additionalContext"]
    gated.write(FIRST_ONLY)
    await gated.until(lambda: not first.call)
    assert (first.state, second.state) == (HunkState.ACCEPTED, HunkState.REJECTED)
    assert gated.session.hunks.undecided() == []


async def test_a_rejected_edit_is_denied_with_the_reason(gated: Gated, root: Path) -> None:
    hook = await gated.call("Edit", file_path="run.py", old_string="work(3)", new_string="work(33)")
    (hunk,) = await gated.waiting(1)
    await gated.session.decisions.reject(hunk.id, "keep the order")
    answer = await hook.before_tool()
    assert answer["permissionDecision"] == "deny"
    assert "keep the order" in answer["permissionDecisionReason"]
    assert (root / "run.py").read_text() == BEFORE
    assert hunk.live


async def test_lines_of_a_hunk_and_the_users_own_text(gated: Gated) -> None:
    decisions = gated.session.decisions
    hook = await gated.call("Write", file_path="new.py", content="a = 1\nb = 2\nc = 3\n")
    (hunk,) = await gated.waiting(1)
    parts = await decisions.split(hunk.id, [(0, 1), (0, 2)])
    await decisions.reject(parts[1])
    await decisions.edit(parts[2], ["c = 4"])
    await decisions.accept(parts[0])
    await decisions.accept(parts[2])
    answer = await hook.before_tool()
    assert answer["updatedInput"]["content"] == "a = 1\nc = 4\n"
    assert "other text" in answer["additionalContext"]
    assert not (gated.session.root / "new.py").exists()
    gated.write("a = 1\nc = 4\n", "new.py")
    await gated.until(lambda: not gated.session.hunks.calls)
    assert gated.session.hunks.undecided() == []


async def test_a_patch_over_two_files_becomes_a_smaller_patch(gated: Gated, root: Path) -> None:
    patch = (
        "*** Begin Patch\n*** Update File: other.py\n@@\n-x = 1\n+x = 2\n"
        "*** Update File: run.py\n@@\n-    step_03 = work(3)\n+    step_03 = work(33)\n"
        "*** Add File: new.py\n+y = 1\n*** End Patch"
    )
    hook = await gated.call("apply_patch", command=patch)
    hunks = await gated.waiting(3)
    assert gated.session.gate.waiting == "Codex"
    for hunk in hunks:
        decide = (
            gated.session.decisions.reject
            if hunk.path == "run.py"
            else gated.session.decisions.accept
        )
        await decide(hunk.id)
    answer = await hook.before_tool()
    smaller = answer["updatedInput"]["command"]
    assert "run.py" not in smaller
    assert "other.py" in smaller
    assert "+y = 1" in smaller
    gated.write("x = 2\n", "other.py")
    gated.write("y = 1\n", "new.py")
    await gated.until(lambda: not gated.session.hunks.calls)
    assert gated.session.hunks.undecided() == []


async def test_notes_in_the_agents_own_folder_are_the_agents_affair(
    gated: Gated, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "claude"
    (own / "plans").mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(own))
    hook = await gated.call("Write", file_path=str(own / "plans" / "p.md"), content="1. Look.\n")
    assert await hook.answer() is None
    inside = root / ".claude"
    monkeypatch.setenv("CODEX_HOME", str(inside))
    for path in (
        *(tmp_path / "p.md", own / "settings.json", own / "hooks" / "run.md"),
        *(own / "skills" / "deploy" / "SKILL.md", own / ".." / "p.md"),
    ):
        other = await gated.call("Write", file_path=str(path), content="1. Look.\n")
        assert (await other.before_tool())["permissionDecision"] == "deny", path
    reviewed = await gated.call("Write", file_path=str(inside / "plans.md"), content="1. Look.\n")
    await gated.waiting(1)
    await reviewed.kill()


@pytest.mark.parametrize("path", ["../out.py", "/etc/hostname", "link/out.py", ".git/config"])
async def test_what_lies_outside_is_refused(
    gated: Gated, root: Path, tmp_path: Path, path: str
) -> None:
    (root / "link").symlink_to(tmp_path)
    answer = await (await gated.call("Write", file_path=path, content="x")).before_tool()
    assert answer["permissionDecision"] == "deny"
    assert {hunk.path for hunk in gated.session.hunks} <= {"link"}


async def test_a_change_meanwhile_moves_the_edit_or_sends_the_agent_back(gated: Gated) -> None:
    hook = await gated.call("Edit", file_path="run.py", old_string="work(20)", new_string="work(2)")
    (hunk,) = await gated.waiting(1)
    gated.write("# new first line\n" + BEFORE)
    await gated.until(lambda: hunk.start == 21)
    await gated.session.decisions.accept(hunk.id)
    answer = await hook.before_tool()
    changed = answer["updatedInput"]
    text = ("# new first line\n" + BEFORE).replace(changed["old_string"], changed["new_string"])
    assert text == "# new first line\n" + BEFORE.replace("work(20)", "work(2)")
    gated.write(text)
    await gated.until(lambda: not hunk.call)

    hook = await gated.call("Edit", file_path="run.py", old_string="work(9)", new_string="work(99)")
    await gated.until(lambda: gated.session.gate.waiting)
    gated.write(text.replace("work(9)", "work(8)"))
    answer = await hook.before_tool()
    assert answer["permissionDecision"] == "deny"
    assert "read it again" in answer["permissionDecisionReason"]


async def test_an_edit_of_lines_that_wait_is_held_until_those_are_decided(gated: Gated) -> None:
    gated.write(FIRST_ONLY)
    (outside,) = await gated.waiting(1)
    assert outside.external
    hook = await gated.call("Edit", file_path="run.py", old_string="work(33)", new_string="work(0)")
    await gated.until(lambda: "decide those first" in gated.notice)
    assert hook.waits
    assert gated.session.hunks.undecided() == [outside]
    await gated.session.decisions.accept(outside.id)
    (hunk,) = await gated.waiting(1)
    await gated.session.decisions.accept(hunk.id)
    assert (await hook.before_tool())["permissionDecision"] == "allow"


async def test_what_differs_from_what_was_allowed_is_reviewed(gated: Gated) -> None:
    hook = await gated.edit()
    for hunk in await gated.waiting(2):
        await gated.session.decisions.accept(hunk.id)
    await hook.answer()
    gated.write(AFTER.replace("work(10)", "work(1010)"))
    (extra,) = await gated.waiting(1)
    assert extra.external
    assert extra.new == ("    step_10 = work(1010)",)


async def test_an_agent_that_goes_away_takes_its_hunks_along(gated: Gated) -> None:
    hook = await gated.edit()
    first, _ = await gated.waiting(2)
    await gated.session.decisions.accept(first.id)
    await hook.kill()
    await gated.waiting(0)
    assert not first.live
    assert not gated.session.hunks.calls


async def test_the_answer_comes_before_the_agent_gives_up(gated: Gated) -> None:
    gated.session.gate.wait_s = 0.2
    answer = await (await gated.edit()).before_tool()
    assert answer["permissionDecision"] == "deny"
    assert "still open" in answer["permissionDecisionReason"]
    assert gated.session.hunks.undecided() == []


async def test_a_session_that_ends_means_no(gated: Gated, root: Path) -> None:
    hook = await gated.edit()
    await gated.waiting(2)
    await gated.session.close()
    answer = await hook.before_tool()
    assert answer["permissionDecision"] == "deny"
    assert (await (await gated.edit()).answer()) is None


async def test_without_a_review_the_hook_is_silent(gated: Gated) -> None:
    gated.session.review.switch_off()
    assert gated.count(ReviewSwitched) == 2
    await gated.until(lambda: not Path(socket_folder()).exists())
    assert await (await gated.edit()).answer() is None


async def test_only_tools_that_edit_no_files_pass(gated: Gated, root: Path) -> None:
    assert await (await gated.call("Bash", command="ls")).answer() is None
    for call in (
        gated.call("NotebookEdit", notebook_path=str(root / "run.py"), new_source="x"),
        gated.call("replace", file_path=str(root / "run.py")),
        run_hook({"cwd": str(root)}),
    ):
        answer = await (await call).before_tool()
        assert answer["permissionDecision"] == "deny"
        assert "cannot show" in answer["permissionDecisionReason"]


async def test_a_stale_socket_is_passed_over(gated: Gated, root: Path) -> None:
    folder = Path(socket_folder())
    (live,) = map(folder.joinpath, os.listdir(folder))  # noqa: PTH208
    stale = folder / f"{live.name.partition('-')[0]}-999999999"
    stale.write_bytes(b"")
    hook = await gated.edit()
    for hunk in await gated.waiting(2):
        await gated.session.decisions.accept(hunk.id)
    assert (await hook.before_tool())["permissionDecision"] == "allow"
    assert [os.stat(path).st_mode & 0o777 for path in (folder, live)] == [0o700, 0o600]  # noqa: PTH116


async def test_put_backs_are_told_at_the_next_opportunity(gated: Gated, root: Path) -> None:
    feedback = gated.session.feedback
    gated.write(FIRST_ONLY)
    (hunk,) = await gated.waiting(1)
    gated.session.decisions.put_backs.to_postpone = lambda _: []  # type: ignore[method-assign]
    await gated.session.decisions.reject(hunk.id, "3 is enough")
    assert feedback.waiting == 1
    stop = {"hook_event_name": "Stop", "cwd": str(root), "stop_hook_active": False}
    assert await (await run_hook(stop)).answer() is None  # nobody has agreed to tell
    feedback.approve()
    assert await (await run_hook({**stop, "stop_hook_active": True})).answer() is None
    answer = await (await run_hook(stop)).answer()
    assert answer["decision"] == "block"
    assert "run.py line 4" in answer["reason"]
    assert "Reason: 3 is enough" in answer["reason"]
    assert await (await run_hook(stop)).answer() is None  # told once
    assert feedback.waiting == 0


async def test_what_waits_goes_back_and_is_told_when_the_agent_stops(
    gated: Gated, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It need not be quiet first; but the session's own agent is still waited for."""
    monkeypatch.setattr(put_backs, "QUIET_S", 600.0)
    session = gated.session
    stop = {"hook_event_name": "Stop", "cwd": str(root), "stop_hook_active": False}
    gated.write(AFTER)
    first, second = await gated.waiting(2)
    assert await session.decisions.reject(second.id, "20 is enough")
    assert session.hunks.postponed() == [second]
    assert await (await run_hook(stop)).answer() is None
    assert (root / "run.py").read_text() == FIRST_ONLY
    assert session.hunks.undecided() == [first]
    session.feedback.approve()
    answer = await (await run_hook(stop)).answer()
    assert answer["decision"] == "block"
    assert "Reason: 20 is enough" in answer["reason"]
    await session.decisions.undo()
    assert (root / "run.py").read_text() == AFTER
    session.agent._writes.begin("Another")
    assert await session.decisions.reject(first.id)
    assert await (await run_hook(stop)).answer() is None
    assert session.hunks.postponed() == [first]
    assert (root / "run.py").read_text() == AFTER


async def test_a_resumed_session_has_what_was_decided_and_nothing_that_waited(
    gated: Gated, root: Path, settings: Settings, endpoint: Endpoint
) -> None:
    hook = await gated.edit()
    first, second = await gated.waiting(2)
    await gated.session.decisions.accept(first.id)
    await gated.session.decisions.reject(second.id)
    await hook.answer()
    gated.write(FIRST_ONLY)
    await gated.until(lambda: not first.call)
    await gated.edit(FIRST_ONLY.replace("work(9)", "work(99)"))
    await gated.waiting(1)
    journal = gated.session.journal.path
    assert journal is not None
    await gated.session.close()
    replay = Replay.read(journal)
    assert replay.hunks.get(first.id).state is HunkState.ACCEPTED
    assert replay.hunks.get(second.id).state is HunkState.REJECTED
    async with await PairingSession.open(
        root, settings=settings, endpoint=endpoint, resume=journal
    ) as again:
        assert again.hunks.undecided() == []
        assert not again.hunks.calls


async def test_holding_edits_is_switched_off_and_on_during_a_review(
    gated: Gated, settings: Settings
) -> None:
    session = gated.session
    session.apply_settings(replace(settings, hold_edits=False))
    await gated.until(lambda: not session.gate.listening)
    session.apply_settings(replace(settings, hold_edits=True))
    await gated.until(lambda: session.gate.listening)
