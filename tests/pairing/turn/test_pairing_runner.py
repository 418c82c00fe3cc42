"""Any order of stops, redirects, findings, instructions and ends leaves the runner consistent.

Actions are begun and not waited for, so that their messages meet in the runner's inbox.  Every line
that the model writes says which request it answers: a line of an older one must never arrive after
a newer turn has begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.hunks import HunkState
from midstream.engine.types import GenerateRequest
from midstream.errors import UserError
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession, SessionState, TurnStatus
from midstream.pairing.status import SessionEvent, TurnFinished, TurnStarted
from midstream.settings import Settings
from tests.helpers.stepped import SteppedGeneration, SteppedModel, served
from tests.helpers.waiting import PATIENCE_S

BEFORE = "x = input()\n" + "".join(f"old_{n} = {n}\n" for n in range(12))
HERE: Any = {"path": "run.py", "selection": (0, 13)}

ACTIONS = st.lists(
    st.sampled_from(
        ["line"] * 6
        + ["lines", "bad", "end", "stop", "redirect", "rename", "instruct", "ahead"]
        + ["tick"] * 3
        + ["rest"]
    ),
    min_size=4,
    max_size=24,
)


class LabelledModel(SteppedModel):
    """Writes the number of the request into what it answers."""

    def start(self, request: GenerateRequest) -> SteppedGeneration:
        generation = super().start(request)
        generation.number = len(self.requests) - 1  # type: ignore[attr-defined]
        return generation

    def take(self, generation: SteppedGeneration) -> str | None:
        text = super().take(generation)
        return text and text.replace("@", str(generation.number))  # type: ignore[attr-defined]


def written(session: PairingSession) -> set[str]:
    """The model's lines in all proposals, and in those that were written again."""
    lines = {line for p in session.files.values() for s in p.segments for line in s.new_lines}
    lines |= {line for hunk in session.hunks for line in hunk.new}
    return {line for line in lines if "new_" in line}


def answered_by(line: str) -> int:
    """The request that a line answers."""
    return int(line.split("_")[1])


class Course:
    """One session under actions that are not waited for."""

    def __init__(self, session: PairingSession, model: LabelledModel) -> None:
        self.session = session
        self.model = model
        self.tasks: list[asyncio.Task[Any]] = []
        self.begun: list[tuple[int, set[str]]] = []
        self.ended: list[int] = []
        self.lines = 0
        session.status.subscribe(self.hear)

    def hear(self, event: SessionEvent) -> None:
        if isinstance(event, TurnStarted):
            self.begun.append((len(self.model.requests), written(self.session)))
        if isinstance(event, TurnFinished):
            self.ended.append(event.turn.id)

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        self.tasks.append(asyncio.create_task(refused(work)))

    def line(self, what: str = "new_@_{} = {}") -> None:
        self.lines += 1
        self.model.give(f"{what.format(self.lines, self.lines)}\n")

    async def act(self, action: str) -> None:
        session, count = self.session, len(self.tasks)
        match action:
            case "line":
                self.line()
            case "lines":
                for _ in range(5):
                    self.line()
            case "bad":
                self.line("new_@_{} = eval(input(), {{}})  # {}")
            case "end":
                self.model.end()
            case "stop":
                self.begin(session.turns.stop_turn())
            case "redirect":
                self.begin(session.turns.redirect(f"change {count}"))
            case "rename":
                self.begin(session.turns.redirect(f"call it name_{count}"))
            case "instruct":
                self.begin(session.turns.instruct(Question(f"rename x to y_{count}", **HERE)))
            case "ahead":
                self.begin(session.turns.read_ahead(Question(f"change {count}", **HERE)))
            case "rest":
                await asyncio.sleep(0.01)
            case _:
                await asyncio.sleep(0)

    def check(self) -> None:
        """No line of an older request has arrived since the last turn began."""
        for requests, there in self.begun[-1:]:
            fresh = written(self.session) - there
            old = [line for line in fresh if answered_by(line) < requests]
            assert not old, f"{old} arrived after a newer turn had begun"

    async def finish(self) -> None:
        """Let every answer end."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*self.tasks)
            finishing = asyncio.create_task(self.session.turns.finished())
            while not finishing.done():
                self.model.end()
                await asyncio.wait({finishing}, timeout=0.01)
                self.check()


async def refused(work: Coroutine[Any, Any, object]) -> None:
    """Wait for an action; one that cannot be done now is refused with a sentence."""
    with contextlib.suppress(UserError):
        await work


async def run(actions: list[str], *, guard: bool) -> None:
    model = LabelledModel()
    with tempfile.TemporaryDirectory(prefix="runner-") as folder:
        root = Path(folder)
        (root / "run.py").write_text(BEFORE)
        settings = Settings(guard=guard)
        async with (
            served(model) as endpoint,
            await PairingSession.open(
                root, settings=settings, endpoint=endpoint, watch=False
            ) as session,
        ):
            course = Course(session, model)
            course.begin(session.turns.instruct(Question("rename x to y", **HERE)))
            for action in actions:
                await course.act(action)
                course.check()
            await course.finish()
            turns = session.turns
            assert not any(turn.running for turn in turns), "no turn is left running"
            assert sorted(course.ended) == [turn.id for turn in turns], "each end is told once"
            assert all(
                turn.status in (TurnStatus.DONE, TurnStatus.STOPPED, TurnStatus.FAILED)
                for turn in turns
            )
            assert session.status.state is SessionState.READY
            assert session.turns.writing is None
            assert not any(hunk.state is HunkState.STREAMING for hunk in session.hunks)
            assert all(proposal.current is None for proposal in session.files.values())
            assert (root / "run.py").read_text() == BEFORE, "nothing is written without an accept"
            if guard:
                await session.decisions.accept_rest("run.py")
                assert "eval(input" not in (root / "run.py").read_text()
            model.end()
            await session.turns.instruct(Question("rename x to z", **HERE))
            await session.turns.finished()
            assert not session.turns[-1].running, "the next instruction runs"


@given(ACTIONS)
@pytest.mark.fuzz
def test_any_order_of_messages_ends_consistent(actions: list[str]) -> None:
    asyncio.run(run(actions, guard=False))


@given(ACTIONS)
@pytest.mark.fuzz
def test_any_order_of_messages_and_findings_ends_consistent(actions: list[str]) -> None:
    asyncio.run(run(actions, guard=True))


async def test_a_caller_that_gives_up_leaves_the_runner_usable(tmp_path: Path) -> None:
    model = LabelledModel()
    (tmp_path / "run.py").write_text(BEFORE)
    async with (
        served(model) as endpoint,
        await PairingSession.open(
            tmp_path, settings=Settings(guard=False), endpoint=endpoint, watch=False
        ) as session,
    ):
        for waits in (0, 1, 3):
            asking = asyncio.create_task(session.turns.instruct(Question("rename x to y", **HERE)))
            for _ in range(waits):
                await asyncio.sleep(0)
            asking.cancel()
            stopping = asyncio.create_task(session.turns.stop_turn())
            await asyncio.sleep(0)
            stopping.cancel()
            await asyncio.gather(asking, stopping, return_exceptions=True)
            model.end()
            await session.turns.finished()
        model.drop()
        model.give("new_@_1 = 1\n")
        model.end()
        turn = await session.turns.instruct(Question("rename x to z", **HERE))
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE
