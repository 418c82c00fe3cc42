"""A plan: numbered steps that the user can edit, carried out one by one as ordinary instructions.

A step belongs to the turn that was asked for in its words, and how far it has come follows from the
decisions about that turn's hunks.  So nothing else is kept, and an undo opens a step again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.edits.hunks import HunkState
from midstream.pairing.journal.entries import PlanEntry
from midstream.pairing.status import (
    ConversationHeard,
    HunkDecided,
    SessionEvent,
    SessionState,
    TurnFinished,
    TurnStarted,
    TurnStatus,
)

if TYPE_CHECKING:
    from midstream.agents.messages import AgentPlan
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.hunks import Hunk
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.status import SessionStatus, Turn

_ENDED: Final = (SessionState.READY, SessionState.OFFLINE)
MAX_STEPS: Final = 30
"""Steps of a plan; the rest is cut."""
MAX_STEP_LENGTH: Final = 600
"""Characters."""

_NUMBERED: Final = re.compile(
    r"(?P<indent>\s*)(?:#{1,6}\s+)?(?:\*\*|__)?(?:step\s+)?\d{1,3}[.):](?:\*\*|__)?\s+(?P<text>\S.*)",
    re.IGNORECASE,
)
_BULLET: Final = re.compile(r"(?P<indent>\s*)[-*+•]\s+(?:\[[ xX]\]\s+)?(?P<text>\S.*)")
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_BOLD: Final = re.compile(r"(\*\*|(?<!\w)__(?!\w+__))(?=\S)(.+?)(?<=\S)\1")
"""Markdown; ``__init__`` is a name."""
_DEEP: Final = 2
"""Columns of indentation from which a line belongs to the step above it."""


def steps_of(text: str) -> list[str]:
    """The steps of a plan as models write it, each on one line.

    Numbered lines are steps, or else bullets; what is indented below one, or goes on in the next
    line, belongs to it.  Blocks of code belong to none.
    """
    lines = list(_outside_of_code(text))
    marker = _NUMBERED if any(map(_NUMBERED.fullmatch, lines)) else _BULLET
    first = next((len(m["indent"]) for line in lines if (m := marker.fullmatch(line))), 0)
    steps: list[list[str]] = []
    open_ = False
    for line in lines:
        match = marker.fullmatch(line)
        if match and len(match["indent"]) < first + _DEEP:
            steps.append([match["text"]])
            open_ = True
        elif not line.strip():
            open_ = False
        elif steps and (open_ or len(line) - len(line.lstrip()) >= first + _DEEP):
            below = _BULLET.fullmatch(line) or _NUMBERED.fullmatch(line)
            steps[-1].append(below["text"] if below else line)
    plain = (_BOLD.sub(r"\2", " ".join(" ".join(parts).split())) for parts in steps)
    return [step[:MAX_STEP_LENGTH].strip() for step in plain if step][:MAX_STEPS]


def written_steps(text: str) -> list[str]:
    """The steps of a text that is nothing but a list; none if it is a wish in words.

    One line may hold all of them: "1. first 2. second".
    """
    text = text.strip()
    if "\n" not in text and text.startswith(("1.", "1)")):
        text = _each_on_its_line(text, text[1])
    lines = [line for line in text.splitlines() if line.strip()]
    marked = all(_NUMBERED.fullmatch(line) or _BULLET.fullmatch(line) for line in lines)
    return steps_of(text) if marked else []


def _each_on_its_line(text: str, mark: str) -> str:
    """A numbered list in one line, with a line for each number that follows on the one before."""
    number = 2

    def broken(found: re.Match[str]) -> str:
        nonlocal number
        if found[1] != str(number):
            return found[0]
        number += 1
        return "\n"

    return re.sub(rf"(?<!\s)\s+(?=(\d+){re.escape(mark)}\s)", broken, text)


def _outside_of_code(text: str) -> Iterator[str]:
    code = False
    for line in text.expandtabs(4).splitlines():
        if _FENCE.match(line):
            code = not code
        elif not code:
            yield line


class StepState(StrEnum):
    """The progress of a step; the values are those that agents use for theirs."""

    OPEN = "pending"
    """Not begun, or its answer failed or was stopped before anything of it was kept."""
    BEGUN = "in_progress"
    """It is being written, or hunks of it wait for a decision."""
    DONE = "completed"
    """Decided, and something of it was accepted."""
    NOTHING = "nothing"
    """Decided, and nothing of it was accepted, or nothing was written."""


@dataclass(slots=True)
class PlannedStep:
    """One step.

    Attributes:
        text: What is asked for.
        turn: The turn that carries it out, 0 before.
    """

    text: str
    turn: int = 0


class SessionPlan:
    """The plan of a session; empty until there is one.

    Args:
        steps: Those of an earlier session.
        turns: All turns, which grow.
        hunks: Every hunk.
        status: Says what begins, ends and is decided; told of changes.
        journal: Keeps the plan.

    Attributes:
        steps: In order.
    """

    def __init__(
        self,
        steps: Sequence[PlannedStep],
        turns: Sequence[Turn],
        hunks: HunkStore,
        status: SessionStatus,
        journal: SessionJournal,
    ) -> None:
        self.steps = list(steps)
        self._turns = turns
        self._hunks = hunks
        self._status = status
        self._journal = journal
        self._by_number: tuple[int, dict[int, list[Hunk]]] = -1, {}
        """The hunks by the number at the head of their rank, and at which version."""
        self._states = self.states()
        status.subscribe(self._hear)

    @classmethod
    def of(
        cls,
        kept: PlanEntry | None,
        turns: Sequence[Turn],
        hunks: HunkStore,
        status: SessionStatus,
        journal: SessionJournal,
    ) -> SessionPlan:
        """The plan that a journal kept, or an empty one; the other arguments are its own."""
        pairs = zip(kept.texts, kept.turns, strict=True) if kept is not None else ()
        return cls([PlannedStep(*pair) for pair in pairs], turns, hunks, status, journal)

    def __bool__(self) -> bool:
        return bool(self.steps)

    def carried_out_by(self, turn: Turn) -> bool:
        """Whether a turn carries out a step, or goes on from one that does."""
        return any(turn in self._turns_of(step) for step in self.steps)

    def replace(self, texts: Sequence[str]) -> None:
        """Replace the steps; a step with unchanged words keeps its turn."""
        known = {step.text: step.turn for step in self.steps}
        self.steps = [PlannedStep(text, known.get(text, 0)) for text in texts]
        self._note()
        self._changed()

    def write(self, text: str) -> bool:
        """Take the steps of a text that is nothing but a list; returns whether it is one."""
        if self.steps and text.strip() == self.text:
            return True
        if steps := written_steps(text):
            self.replace(steps)
        return bool(steps)

    def clear(self) -> None:
        """Have no plan."""
        if self.steps:
            self.replace(())

    def states(self) -> list[StepState]:
        """The progress of each step."""
        return [self._state(step) for step in self.steps]

    @property
    def next(self) -> str:
        """The first step that has not begun; ``""`` if there is none."""
        opened = zip(self.steps, self.states(), strict=True)
        return next((step.text for step, state in opened if state is StepState.OPEN), "")

    @property
    def text(self) -> str:
        """The steps as a numbered list, as it may be edited."""
        return "\n".join(f"{number}. {step.text}" for number, step in enumerate(self.steps, 1))

    @property
    def told(self) -> str:
        """The plan in words for a model, ``""`` for none."""
        if not self.steps:
            return ""
        words = {StepState.DONE: " (done)", StepState.NOTHING: " (left out)"}
        lines = [
            f"{number}. {step.text}{words.get(state, '')}"
            for number, (step, state) in enumerate(
                zip(self.steps, self.states(), strict=True), start=1
            )
        ]
        return "The plan; carry out only the step that is asked for:\n" + "\n".join(lines)

    @property
    def shown(self) -> AgentPlan | None:
        """The plan as a screen shows it, ``None`` for none."""
        from midstream.agents.messages import AgentPlan, PlanStep

        if not self.steps:
            return None
        lines = zip(self.text.splitlines(), self.states(), strict=True)
        return AgentPlan(tuple(PlanStep(line, state.value) for line, state in lines))

    def _state(self, step: PlannedStep) -> StepState:
        turns = self._turns_of(step)
        if not turns:
            return StepState.OPEN
        if turns[-1].status is TurnStatus.STREAMING:
            return StepState.BEGUN
        hunks = self._hunks_of(step)
        if any(hunk.live and not hunk.decided for hunk in hunks):
            return StepState.BEGUN
        # Also where a later step has rewritten the lines since.
        if any(hunk.state is HunkState.ACCEPTED for hunk in hunks):
            return StepState.DONE
        done = turns[-1].status is TurnStatus.DONE
        return StepState.NOTHING if done else StepState.OPEN

    def _hunks_of(self, step: PlannedStep) -> list[Hunk]:
        """The hunks of a step's turns."""
        known = self._hunks_by_number()
        numbers = {number for turn in self._turns_of(step) for number in turn.hunks}
        return [hunk for number in numbers for hunk in known.get(number, ())]

    def _hunks_by_number(self) -> Mapping[int, Sequence[Hunk]]:
        """The hunks by their number, parts of one that was split by the number of the whole."""
        if self._by_number[0] != self._hunks.version:
            found: dict[int, list[Hunk]] = {}
            for hunk in self._hunks:
                found.setdefault(hunk.rank[0], []).append(hunk)
            self._by_number = self._hunks.version, found
        return self._by_number[1]

    def _turns_of(self, step: PlannedStep) -> list[Turn]:
        """The turn of a step and those that go on from it, by redirects and follow-ups."""
        found: list[Turn] = []
        ids = {step.turn}
        others = {other.turn for other in self.steps if other is not step}
        for turn in self._turns if step.turn else ():
            if turn.id in ids or (turn.redirected_from in ids and turn.id not in others):
                ids.add(turn.id)
                found.append(turn)
        return found

    def _hear(self, event: SessionEvent) -> None:
        if not self.steps:
            return
        match event:
            case TurnStarted(turn):
                self._link(turn)
                self._status.emit(ConversationHeard())
            case TurnFinished() if self._status.state not in _ENDED:
                pass  # Another turn goes on from it, and may bring what this one did not.
            case TurnFinished() | HunkDecided():
                self._changed()
            case _:
                pass

    def _link(self, turn: Turn) -> None:
        """A turn whose instruction has the words of a step carries it out."""
        for step, state in zip(self.steps, self.states(), strict=True):
            if state is StepState.OPEN and step.text == turn.instruction:
                step.turn = turn.id
                self._note()
                break
        # Hunks that its rewrite replaces may come back, so the end of a step is announced after the
        # turn.
        self._states = [
            was if was is StepState.BEGUN else now
            for was, now in zip(self._states, self.states(), strict=True)
        ]

    def _changed(self) -> None:
        """Tell what has changed; that a step is settled, also in words."""
        before, now = self._states, self.states()
        self._states = now
        if before == now:
            return
        self._status.emit(ConversationHeard())
        settled = (StepState.DONE, StepState.NOTHING)
        if len(before) != len(now):
            return
        for number, (was, state) in enumerate(zip(before, now, strict=True), 1):
            if was is StepState.BEGUN and state in settled:
                left = sum(each is StepState.OPEN for each in now)
                rest = f"{counted(left, 'step')} to go" if left else "it was the last one"
                if not left and (
                    begun := [n for n, s in enumerate(now, 1) if s is StepState.BEGUN]
                ):
                    rest = f"step {begun[0]} is not decided yet"
                done = "is done" if state is StepState.DONE else "is left out"
                if state is StepState.NOTHING and not self._hunks_of(self.steps[number - 1]):
                    done = "has changed nothing"
                text = f"Step {number} of the plan {done}; {rest}."
                self._status.inform(text, "plan.next" if left else "")

    def _note(self) -> None:
        self._journal.write(
            PlanEntry([step.text for step in self.steps], [step.turn for step in self.steps])
        )
