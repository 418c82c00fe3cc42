"""The tour of the demo: shows its steps, and carries them out where Enter asks for it.

A step waits for the reader and the model may be long done, so its sentence follows the state of
the session.  Enter does what the step is about; where that is no longer possible, or was done and
led nowhere, Enter goes on to the next step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from string import Formatter
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from midstream.edits.hunks import HunkState
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.review.navigate import Navigate
from midstream.tui.review.steer import Steer
from midstream.tui.widgets.welcome import TourWords

if TYPE_CHECKING:
    from midstream.demo.tour import Done, TourStep
    from midstream.pairing.session import PairingSession

_TRIES: Final = 4
"""Presses of Enter without effect after which the hunks that wait are left as they are."""


class _Facts(Struct, frozen=True):
    """The facts that tell whether a step is done."""

    turns: int
    running: bool
    undecided: int
    together: bool
    """Some of the undecided hunks may be accepted together."""
    written: int
    accepted: int
    decided: int
    put_back: int
    postponed: int
    """Hunks that are put back once nothing writes there."""
    undoable: bool
    redoable: bool
    reviewing: bool
    head: str

    @classmethod
    def of(cls, session: PairingSession) -> _Facts:
        hunks, repo = tuple(session.hunks), session.external.repo
        waiting = session.hunks.undecided()
        return cls(
            len(session.turns),
            session.turns.busy,
            len(waiting),
            session.attention.any_together(waiting),
            sum(hunk.external and hunk.postponed is None for hunk in waiting),
            sum(hunk.state is HunkState.ACCEPTED for hunk in hunks),
            sum(hunk.decided for hunk in hunks),
            sum(
                hunk.external and hunk.state is HunkState.REJECTED and hunk.postponed is None
                for hunk in hunks
            ),
            len(session.hunks.postponed()),
            session.hunks.undoable,
            session.hunks.redoable,
            session.review.on,
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
                return self.decided < before.decided
            case Done.REDONE:
                return self.decided > before.decided
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
        """The state when it began."""
        self._sent = False
        """Whether its instruction was sent."""
        self._tried: _Facts | None = None
        """The state when Enter was last pressed in this step."""
        self._tries = 0
        """Presses since something changed."""
        self._wrote: bool | None = None
        """Whether the script has changed something; ``None`` before it, ``True`` while it runs."""
        self._steps: tuple[TourStep, ...] = ()
        if self._services.demo is not None:  # elsewhere it is not needed before the first paint
            from midstream.demo.tour import STEPS

            self._steps = STEPS

    @property
    def on(self) -> bool:
        """Whether a step is shown."""
        return self._number > 0

    @property
    def offered(self) -> bool:
        """Whether Enter in the empty line begins it."""
        session = self._state.opened
        if self.on or self._services.demo is None or session is None:
            return False
        return not session.turns and session.external.repo is not None

    def _words_of(self, facts: _Facts) -> TourWords:
        """What the step says now."""
        from midstream.demo.tour import Done

        step = self._step
        if self._is_under_way(facts):
            return self._words(step.under_way, "put back now" if facts.postponed else "")
        if self._is_pointless(facts):
            return self._words(step.pointless, "next step")
        text = step.text
        if step.flagged and facts.undecided and not (facts.running or facts.together):
            text = step.flagged
        elif not facts.running:
            text = step.ended or text
        return replace(self._words(text, step.enter), last=step.done is Done.READ)

    @property
    def _words_of_offer(self) -> TourWords:
        from midstream.demo.tour import OFFER, OFFER_OUTSIDE

        return self._words(OFFER if self._panes.composing else OFFER_OUTSIDE)

    @property
    def words_of_commit(self) -> TourWords:
        """What it says on the commit page; nothing where its step is another."""
        from midstream.demo.tour import COMMIT_PAGE, Done

        if self.on and self._step.done is Done.COMMITTED:
            return self._words(COMMIT_PAGE)
        return TourWords()

    def _words(self, text: str, enter: str = "") -> TourWords:
        pieces: list[tuple[str, bool]] = []
        for words, action_id, _, _ in Formatter().parse(text):
            pieces.append((words, False))
            if action_id:
                pieces.append((self._services.key_for(action_id), True))
        place = f"{self._number} of {len(self._steps)}" if self.on else ""
        return TourWords(place, tuple(pieces), enter)

    @property
    def _step(self) -> TourStep:
        return self._steps[self._number - 1]

    def _is_under_way(self, facts: _Facts) -> bool:
        """Whether the step has to wait for the model or for another program."""
        from midstream.demo.tour import Done

        match self._step.done:
            case Done.PROPOSED | Done.REDIRECTED:
                return self._sent and (facts.running or self._steer.sending)
            case Done.ACCEPTED | Done.DECIDED:
                return facts.running and not facts.undecided
            case Done.WRITTEN:
                return facts.reviewing and self._wrote is not False
            case Done.PUT_BACK:
                return facts.postponed > 0
            case _:
                return False

    def _is_pointless(self, facts: _Facts) -> bool:
        """Whether there is nothing that the step could be done to."""
        from midstream.demo.tour import Done

        match self._step.done:
            case Done.PROPOSED:
                return self._before is not None and facts.turns > self._before.turns
            case Done.ACCEPTED:
                return not facts.undecided
            case Done.UNDONE:
                return not facts.undoable
            case Done.REDONE:
                return not facts.redoable
            case Done.WRITTEN:
                return facts.reviewing
            case Done.PUT_BACK:
                return not facts.written
            case Done.COMMITTED:
                return not facts.accepted
            case _:
                return False

    def begin(self) -> None:
        """Show the first step, in the demo."""
        if self._services.demo is None:
            self._notices.say("info", "The tour is part of `midstream demo`.")
        else:
            self._go_to(1)
            self._notices.clear()
            self._panes.focus(self._pane)

    def leave(self) -> None:
        """End it; everything stays as it is."""
        self._number, self._before = 0, None
        self._state.refresh()

    async def takes(self, action_id: str) -> bool:
        """Carry out what a key means for the tour; whether it means anything."""
        empty = not self._panes.typing or not self._composer.text.strip()
        if action_id in ("choose", "composer.send") and empty:
            if self.on:
                self._work.run(self._go_on)  # after what former keys have begun
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
        if not self.on:
            self._panes.tour.show(self._words_of_offer if self.offered else TourWords())
            return
        from midstream.demo.tour import Done

        session = self._state.session
        facts = _Facts.of(session)
        if self._before is not None:
            if self._step.done is Done.WRITTEN and not session.review.on:
                self._wrote = None
            elif self._step.done is Done.WRITTEN and self._wrote is None:
                self._wrote = True
                self._work.beside(self._write, "tour")
            if facts.shows(self._step.done, self._before):
                self._go_to(self._number + 1)
                return
            if facts.postponed > self._before.postponed:
                self._hush()
        self._panes.tour.show(self._words_of(facts))

    def _go_to(self, number: int) -> None:
        from midstream.demo.tour import Done

        self._before = _Facts.of(self._state.session)
        self._number, self._sent, self._tried, self._tries = number, False, None, 0
        self._hush()
        self._wrote = None
        if self._step.done is Done.PUT_BACK:  # its key is about the hunk under the cursor
            self._show_written()
        self._state.refresh()

    def _hush(self) -> None:
        """Remove a notice that repeats the text of the step."""
        if self._notices.line.level == "info" and not self._notices.asking:
            self._notices.clear()

    def _show_written(self) -> bool:
        """Put the cursor on what the script has changed; whether it is elsewhere so far."""
        here = self._pane.undecided_hunk
        if here is not None and here.external:
            return False
        written = [hunk for hunk in self._state.session.hunks.undecided() if hunk.external]
        if written:
            self._navigate.go_to_hunk(written[0], quietly=True)
        return bool(written)

    async def _go_on(self) -> None:
        """Do what the step is about, or go to the next one where that leads nowhere."""
        from midstream.demo.tour import PATH, Done

        session = self._state.session
        if not self.on:
            return
        step, facts = self._step, _Facts.of(session)
        if self._is_under_way(facts):
            if step.done is Done.PUT_BACK:
                await self._perform("hunk.put_back_now")
            return
        self._tries = self._tries + 1 if facts == self._tried else 0
        self._tried = facts
        decides = step.done is Done.DECIDED
        limit = _TRIES if decides else 1
        if step.done is Done.READ:
            self.leave()
        elif self._is_pointless(facts) or self._tries >= limit:
            self._go_to(self._number + 1)
        elif step.says:
            await self._navigate.open_path(PATH)
            self._sent = True
            self._steer.instruct(step.says)
        elif decides and not facts.running and (self._tries or not facts.together):
            self._notices.clear()
            for hunk in session.hunks.undecided():
                await session.decisions.accept(hunk.id)
        else:
            await self._act(step)

    async def _act(self, step: TourStep) -> None:
        """Carry out the action of a step, once its hunk is under the cursor."""
        from midstream.demo.tour import Done

        moved = step.done is Done.PUT_BACK and self._show_written()
        if step.action.startswith("hunk.") and not moved:
            hunk = self._pane.undecided_hunk
            if hunk is None:
                await self._perform("hunk.next_undecided")  # which may open another file first
                moved = True
            else:
                moved = not self._navigate.reveal(hunk)
        if moved:
            self._work.run(lambda: self._perform(step.action))
        else:
            await self._perform(step.action)

    async def _write(self) -> None:
        """Be another program."""
        from midstream.demo.tour import WRITER

        self._wrote = await asyncio.to_thread(WRITER.write, self._services.root)
        self._state.refresh()
