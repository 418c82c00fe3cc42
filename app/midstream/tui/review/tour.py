"""The tour of the demo: shows its steps, and carries them out where Enter asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from midstream.edits.hunks import HunkState
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.review.navigate import Navigate
from midstream.tui.review.steer import Steer

if TYPE_CHECKING:
    from midstream.demo.tour import Done, TourStep
    from midstream.pairing.session import PairingSession

_CONFIRMED: Final = 2
"""Presses after which the remaining hunks are accepted one by one, as flagged ones have to be."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What tells whether a step is done."""

    turns: int
    running: bool
    undecided: int
    written: int
    accepted: int
    put_back: int
    head: str

    @classmethod
    def of(cls, session: PairingSession) -> _Facts:
        hunks, repo = tuple(session.hunks), session.external.repo
        waiting = session.hunks.undecided()
        return cls(
            len(session.turns),
            session.turns.busy,
            len(waiting),
            sum(hunk.external for hunk in waiting),
            sum(hunk.state is HunkState.ACCEPTED for hunk in hunks),
            sum(
                hunk.external and hunk.state is HunkState.REJECTED and hunk.postponed is None
                for hunk in hunks
            ),
            "" if repo is None else repo.head,
        )

    def shows(self, done: Done, before: _Facts) -> bool:
        """Whether something is done that was not so before."""
        from midstream.demo.tour import Done

        match done:
            case Done.PROPOSED:
                return self.undecided > before.undecided
            case Done.ACCEPTED:
                return self.accepted > before.accepted
            case Done.REDIRECTED:
                return self.turns > before.turns
            case Done.DECIDED:
                return not self.running and not self.undecided
            case Done.UNDONE:
                return self.accepted < before.accepted
            case Done.WRITTEN:
                return self.written > before.written
            case Done.PUT_BACK:
                return self.put_back > before.put_back
            case Done.COMMITTED:
                return self.head != before.head
            case Done.READ:
                return False


class Tour(Controller):
    """Offered in the demo until something was asked.

    Args:
        shared: What every controller works with.
        navigate: Opens the file.
        steer: Sends the instructions.
        perform: Carries out an action.
    """

    def __init__(
        self,
        shared: Shared,
        navigate: Navigate,
        steer: Steer,
        perform: Callable[[str], Awaitable[None]],
    ) -> None:
        super().__init__(shared)
        self._navigate = navigate
        self._steer = steer
        self._perform = perform
        self._number = 0
        """The step that is shown, from 1; 0 while there is no tour."""
        self._before: _Facts | None = None
        """How things were when it began."""
        self._presses = 0
        self._wrote = False
        self._steps: tuple[TourStep, ...] = ()
        self._offer = ""
        if self._services.demo is not None:  # elsewhere it is not needed before the first paint
            from midstream.demo.tour import OFFER, STEPS

            self._steps, self._offer = STEPS, OFFER

    @property
    def on(self) -> bool:
        """Whether a step is shown."""
        return self._number > 0

    @property
    def offered(self) -> bool:
        """Whether Enter in the empty line begins it."""
        session = self._state.session
        if self.on or self._services.demo is None or session is None:
            return False
        return not session.turns and session.external.repo is not None

    @property
    def _step(self) -> TourStep:
        return self._steps[self._number - 1]

    def begin(self) -> None:
        """Show the first step, in the demo."""
        if self._services.demo is None:
            self._notices.say("info", "The tour is part of `midstream demo`.")
        elif self._state.session is not None:
            self._notices.clear()
            self._panes.focus(self._pane)
            self._go_to(1)

    def leave(self) -> None:
        """End it; everything stays as it is."""
        self._number, self._before = 0, None
        self._state.refresh()

    async def takes(self, action_id: str) -> bool:
        """Carry out what a key means for the tour; whether it means anything."""
        empty = not self._panes.typing or not self._composer.text.strip()
        if action_id in ("choose", "composer.send") and empty:
            if self.on:
                await self._go_on()
                return True
            if self.offered and self._panes.composing:
                self.begin()
                return True
        if action_id == "close" and self.on:
            self.leave()
            return True
        return False

    def look(self) -> None:
        """Show the next step if this one is done, and the line that belongs to it."""
        session = self._state.session
        if session is not None and self.on and self._before is not None:
            from midstream.demo.tour import Done

            if self._step.done is Done.WRITTEN and session.review.on and not self._wrote:
                self._wrote = True
                self._work.beside(self._write, "tour")
            if _Facts.of(session).shows(self._step.done, self._before):
                self._go_to(self._number + 1)
                return
        self._show()

    def _show(self) -> None:
        line = self._panes.tour
        if not self.on:
            line.show("", self._offer if self.offered else "")
            return
        key = self._services.key_for(self._step.action)
        line.show(f"{self._number} of {len(self._steps)}", self._step.text, key)

    def _go_to(self, number: int) -> None:
        from midstream.demo.tour import Done

        session = self._state.session
        self._number, self._presses = number, 0
        self._before = None if session is None else _Facts.of(session)
        if self._step.done is Done.PUT_BACK:  # its key is about the hunk under the cursor
            self._work.run(partial(self._perform, "hunk.next_undecided"))
        self._state.refresh()

    async def _go_on(self) -> None:
        """Do what the step is about, unless that has been done and takes its time."""
        from midstream.demo.tour import PATH, Done

        step = self._step
        self._presses += 1
        if step.done is Done.READ:
            self.leave()
        elif step.says:
            if self._presses == 1:
                await self._navigate.open_path(PATH)
                self._steer.instruct(step.says)
        else:
            again = step.done is Done.DECIDED and self._presses > _CONFIRMED
            if step.action.startswith("hunk.") and self._pane.undecided_hunk is None:
                await self._perform("hunk.next_undecided")  # which may open another file first
            self._work.run(partial(self._perform, "hunk.accept" if again else step.action))

    async def _write(self) -> None:
        """Be another program."""
        from midstream.demo.tour import WRITER

        await asyncio.to_thread(WRITER.write, self._services.root)
