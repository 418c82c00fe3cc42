"""Any order of held edits, their decisions, undo, writes of other programs and lost agents.

What must hold: nothing that only an agent may write reaches the disk by a decision, what an agent
may write is exactly what was accepted, and when nothing waits any more the journal leads to the
same hunks.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from midstream.agents.hooks import BEFORE_TOOL, HookEvent
from midstream.edits.agent_input import planned
from midstream.edits.documents import join_lines
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import HunkState
from midstream.pairing.journal.journal import Replay
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import make_repo
from tests.helpers.property import examples
from tests.helpers.strategies import code, mutate
from tests.helpers.waiting import PATIENCE_S

FILES = ("one.txt", "two.txt")


class Agent:
    """An agent that holds at most one call at a time, and a person who decides."""

    def __init__(self, session: PairingSession, root: Path, rng: random.Random) -> None:
        self.session = session
        self.root = root
        self.rng = rng
        self.event: HookEvent | None = None
        self.task: asyncio.Task[Any] | None = None

    def texts(self) -> dict[str, str]:
        return {name: (self.root / name).read_text() for name in FILES}

    async def settle(self) -> None:
        """Let the gate go on as far as it can, and the agent make its allowed writes."""
        async with asyncio.timeout(PATIENCE_S):
            while (task := self.task) and not (task.done() or self._idle()):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        if self.task is not None and self.task.done():
            await self.write()

    def _idle(self) -> bool:
        """Whether the gate waits for something that has not happened yet."""
        return any(not news.is_set() for news in self.session.gate._waiting)

    async def call(self) -> None:
        if self.task is not None:
            return
        name = self.rng.choice(FILES)
        before = (self.root / name).read_text().splitlines()
        after = mutate(self.rng, before, self.rng.randint(1, 4))
        given = {"file_path": name, "content": join_lines(after)}
        self.event = HookEvent(
            BEFORE_TOOL, "Claude Code", str(self.root), "s", "Write", given, False
        )
        self.task = asyncio.create_task(self.session.gate.answer(self.event))
        await self.settle()

    async def write(self) -> None:
        assert self.task is not None
        assert self.event is not None
        answer, event = await self.task, self.event
        self.task = self.event = None
        if answer is None:
            given: dict[str, Any] | None = event.arguments
        else:
            verdict = answer["hookSpecificOutput"]
            allowed = verdict["permissionDecision"] == "allow"
            given = verdict.get("updatedInput", event.arguments) if allowed else None
        if given is None:
            return
        due = {h.id: h for h in self.session.hunks if h.due}
        path = self.root / given["file_path"]
        texts = {given["file_path"]: path.read_bytes()}
        proposal = self.session.files.get(given["file_path"])
        for file in planned("Write", given, texts.get):
            if due:
                assert proposal is not None
                assert file.after == proposal.with_call(next(iter(due.values())).call).lines
        path.write_text(given["content"])
        await self.session.review.changed(FILES)
        assert not any(hunk.due for hunk in self.session.hunks)
        if answer is not None:
            assert all(h.state is HunkState.ACCEPTED for h in due.values())

    async def decide(self) -> None:
        waiting = self.session.hunks.undecided()
        if not waiting:
            return
        hunk = self.rng.choice(waiting)
        before, held = self.texts(), hunk.call
        kind = self.rng.random()
        if kind < 0.2 and hunk.added + hunk.deleted > 1:
            size = hunk.added + hunk.deleted
            await self.session.decisions.decide_lines(
                hunk.id, 0, self.rng.randint(1, size - 1), True
            )
        elif kind < 0.6:
            await self.session.decisions.accept(hunk.id)
        else:
            await self.session.decisions.reject(hunk.id, "no")
        if held:
            assert self.texts() == before
        await self.settle()

    async def others_write(self) -> None:
        path = self.root / self.rng.choice(FILES)
        path.write_text(join_lines(mutate(self.rng, path.read_text().splitlines(), 1)))
        await self.session.review.changed(FILES)
        await self.settle()

    async def undo(self) -> None:
        await self.session.decisions.undo()
        await self.settle()

    async def give_up(self) -> None:
        if self.task is None:
            return
        self.task.cancel()
        await asyncio.wait({self.task})
        self.task = None
        assert not any(hunk.call and not hunk.due for hunk in self.session.hunks)


def _state(hunks: HunkStore) -> dict[int, tuple[object, ...]]:
    return {
        h.id: (h.path, h.start, h.stop, h.old, h.new, h.state, h.external, h.call, h.due)
        for h in hunks
        if h.live
    }


@pytest.mark.fuzz
@given(seed=st.integers(0, 2**32))
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_only_the_agent_writes_and_only_what_was_accepted(
    seed: int, tmp_path_factory: pytest.TempPathFactory, endpoint: Endpoint
) -> None:
    rng = random.Random(seed)
    root = tmp_path_factory.mktemp("gate")
    make_repo(root, {name: join_lines(code(rng, 12)) for name in FILES})
    session = await PairingSession.open(root, settings=Settings(), endpoint=endpoint, watch=False)
    async with session:
        session.decisions.put_backs.to_postpone = lambda _: []  # type: ignore[method-assign]
        await session.review.switch_on(since_commit=True)
        agent = Agent(session, root, rng)
        steps = [agent.call, agent.decide, agent.decide, agent.decide, agent.decide]
        steps += [agent.others_write, agent.undo, agent.give_up]
        for _ in range(rng.randint(2, 25)):
            await rng.choice(steps)()
        session.journal.flush()
        if (path := session.journal.path) is not None:
            killed = root.parent / f"{root.name}-killed.jsonl"
            shutil.copy(path, killed)
            assert _state(Replay.read(killed).hunks) == _state(session.hunks)
        await agent.give_up()
        assert not [n for n in session.status.notices if "Midstream itself" in n.text]
