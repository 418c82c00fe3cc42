"""Following the model: to where a turn begins, along a file, and into other files.

Nothing here moves the view of a user who does not follow.
"""

from __future__ import annotations

from functools import partial

from midstream.edits.hunks import HunkState
from midstream.pairing.files.attention import Reading
from midstream.pairing.status import Turn
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.review.navigate import Navigate


class Follow(Controller):
    """Keeps the writing in view, and the cursor on what can be decided."""

    def __init__(self, shared: Shared, navigate: Navigate) -> None:
        super().__init__(shared)
        self.settled = False
        """Whether a hunk has settled since the last frame."""
        self._navigate = navigate
        self._opening = False
        """Whether the file to follow into is being opened."""
        self._outside: list[str] = []
        """Files that other programs wrote while nothing was open."""

    def toggle(self) -> None:
        pane, path = self._pane, self._state.written_path
        if pane.following:
            pane.detach()
            self._state.refresh()
        elif path in ("", self._state.path):
            pane.follow()
        else:

            async def work() -> None:
                if await self._navigate.open_path(path):
                    pane.follow()

            self._work.run(work)

    def begin(self, turn: Turn) -> None:
        """Show where a turn writes, and follow it from there on."""
        state, pane = self._state, self._pane
        if turn.background or (turn.correction and not pane.following):
            state.shown_turn = turn.id
            return
        for view in state.views.values():
            view.fold_rejected()
        if turn.redirected_from is not None and turn.edit_format != "region":
            state.shown_turn = turn.id
            pane.follow()  # the model has not yet named the file it continues in
            return
        self._work.beside(partial(self._to_beginning, turn), "turn")

    async def _to_beginning(self, turn: Turn) -> None:
        state, pane = self._state, self._pane
        try:
            # The focus stays: a user who is typing must not lose it.
            opened = await self._navigate.open_path(turn.path, focus=False)
        finally:
            state.shown_turn = turn.id
        if not opened:
            return
        view = state.view
        pane.sync()
        first = view.row_of_base(turn.start)
        last = view.row_of_base(max(turn.start, turn.stop - 1))
        if turn.redirected_from is None:
            pane.go_to(first, detach=False)
        pane.show_rows(first, last + 1)
        if turn.running:
            pane.follow()
            self.offer_hunk()
        else:  # the answer was complete before its file was open
            self.end()
        state.refresh()

    def external(self, path: str) -> None:
        """Show what another program wrote, unless the user looks at something."""
        if self._state.path or self._state.running:
            return
        self._outside.append(path)
        if len(self._outside) == 1:
            self._work.run(self._open_outside)

    async def _open_outside(self) -> None:
        """Open the first file that another program wrote and that can be opened."""
        try:
            for path in self._outside:
                if self._state.path:
                    return
                # Who has begun a review is here to decide, unless a text was begun meanwhile.
                decides = self._services.begins_review and not self._panes.composer.text
                if await self._navigate.open_path(path, focus=decides):
                    self._panes.screen.call_after_refresh(self._navigate.to_first_undecided)
        finally:
            self._outside.clear()

    def hunk_settled(self) -> None:
        """While following, put the cursor on the first hunk that can be decided."""
        self.settled = False
        if not self._pane.following:
            return
        self._pane.sync()
        if self.offer_hunk():
            self._state.refresh()

    def offer_hunk(self) -> bool:
        """Put the cursor on the first undecided hunk in the window, unless it is on one already."""
        pane, view = self._pane, self._state.view
        if pane.undecided_hunk is not None and (
            self._state.running or pane.shows(pane.cursor, pane.cursor + 1)
        ):
            return False
        row = view.next_hunk(pane.top - 1, forward=True, undecided=True)
        if row is None or row >= pane.bottom:
            return False
        pane.cursor = row
        if view.writing is None:
            pane.show_hunk_at(row)
        pane.repaint()
        return True

    def end(self) -> None:
        """The followed answer has ended: leave something to decide in the window.

        What is in the window stays, unless the first hunk of the answer was hardly on screen: how
        far a fast answer has scrolled is chance, so review starts at its first hunk.
        """
        pane, view = self._pane, self._state.view
        row = self._unread_first()
        if row is None:
            if self.offer_hunk():
                return
            if pane.undecided_hunk is not None and pane.shows(pane.cursor, pane.cursor + 1):
                return
            row = view.next_hunk(-1, forward=True, undecided=True)
        if row is not None and pane.show_hunk_at(row):
            pane.go_to(row)

    def stopped(self) -> None:
        """The followed answer was stopped: the window stays, as it shows the writing.

        Where the guard has stopped it, the cursor goes to what is held back: its keys are offered
        there.
        """
        session, view, pane = self._state.session, self._state.view, self._pane
        if self.offer_hunk() or session.turns.last is None:
            return
        own = session.turns.last.hunks
        for row, _, hunk in view.places():
            if hunk.state is HunkState.HELD and hunk.id in own:
                pane.show_hunk_at(row)
                pane.go_to(row)
                return

    def _unread_first(self) -> int | None:
        """The row of the answer's first undecided hunk, if that was hardly on screen."""
        session, view = self._state.session, self._state.view
        if session.turns.last is None:
            return None
        own = session.turns.last.hunks
        for row, _, hunk in view.places():
            if hunk.state is HunkState.SETTLED and hunk.id in own:
                return None if session.attention.reading(hunk) is Reading.READ else row
        return None

    def go_along(self) -> None:
        """Follow the writing into another file."""
        state, pane = self._state, self._pane
        writing = state.session.turns.writing
        if writing is None or not pane.following or self._opening or writing[0] == state.path:
            return
        self._opening = True
        path, line = writing

        async def work() -> None:
            try:
                opened = await self._navigate.open_path(path, focus=False, following=True)
                if opened:
                    pane.go_to(state.view.row_of_base(line), detach=False)
                    pane.follow()
            finally:
                self._opening = False

        self._work.beside(work, "turn")
