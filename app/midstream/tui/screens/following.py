"""Following the writing: where a turn begins, on through a file, and into other files.

Nothing here moves the view of a person who does not follow.
"""

from __future__ import annotations

from midstream.edits.hunks import HunkState
from midstream.pairing.attention import Reading
from midstream.pairing.turns import Turn
from midstream.tui.screens.facts import Facts


class Following(Facts):
    """Keeps the writing in view, and the cursor on what can be decided."""

    settled = False
    """Whether a hunk has settled since the last frame."""
    _going = False
    """Whether the file to follow into is being opened."""

    def begin_following(self, turn: Turn) -> None:
        """Show where a turn writes, and follow it from there on."""
        pane = self.pane
        if turn.background or (turn.correction and not pane.following):
            self._shown_turn = turn.id
            return  # whoever reads stays where they are
        for view in self.views.values():
            view.fold_refused()
        if turn.redirected_from is not None and turn.edit_format != "region":
            self._shown_turn = turn.id
            pane.follow()  # the model has not said yet in which file it goes on
            return

        async def work() -> None:
            try:
                # The focus stays: whoever is typing must not find the keys going elsewhere.
                opened = await self.open_path(turn.path, focus=False)
            finally:
                self._shown_turn = turn.id
            view = self.view
            if not opened or view is None:
                return
            pane.sync()
            first, last = (
                view.row_of_base(turn.start),
                view.row_of_base(max(turn.start, turn.stop - 1)),
            )
            if turn.redirected_from is None:
                pane.go_to(first, detach=False)
            pane.show_rows(first, last + 1)
            if turn.running:
                pane.follow()
                self.offer_hunk()
            else:  # the answer was there before its file
                self.end_following()
            self.refresh_facts()

        self.run_worker(work(), group="turn")

    def hunk_settled(self) -> None:
        """While following, the cursor waits on the first hunk that can be decided."""
        self.settled = False
        if not self.pane.following:
            return
        self.pane.sync()
        if self.offer_hunk():
            self.refresh_facts()

    def offer_hunk(self) -> bool:
        """Put the cursor on the first undecided hunk in the window, unless it is on one already."""
        pane, view = self.pane, self.view
        if view is None:
            return False
        if self.decidable_hunk is not None and (
            self.running or pane.shows(pane.cursor, pane.cursor + 1)
        ):
            return False
        row = view.next_hunk(pane.top - 1, forward=True, undecided=True)
        if row is None or row >= pane.bottom:
            return False
        hunk = view.hunk_at(row)
        rows = None if hunk is None else view.rows_of(hunk.id)
        pane.cursor = row
        if rows is not None and view.writing is None:
            pane.show_rows(*rows)
        pane.repaint()
        return True

    def end_following(self) -> None:
        """The writing that was followed has ended: something to decide is in the window.

        What is there already stays, unless nobody can have read the first hunk of the answer: how
        far a fast answer had scrolled is chance, and its hunks are looked at from the first one.
        """
        pane, view = self.pane, self.view
        if view is None:
            return
        row = self._unread_first()
        if row is None:
            if self.offer_hunk():
                return
            if self.decidable_hunk is not None and pane.shows(pane.cursor, pane.cursor + 1):
                return
            row = view.next_hunk(-1, forward=True, undecided=True)
        hunk = None if row is None else view.hunk_at(row)
        rows = None if hunk is None else view.rows_of(hunk.id)
        if row is not None and rows is not None:
            pane.show_rows(*rows)
            pane.go_to(row)

    def _unread_first(self) -> int | None:
        """The row of the answer's first undecided hunk, if that was hardly seen."""
        session, view = self.session, self.view
        if session is None or view is None or session.turn is None:
            return None
        own = session.turn.hunks
        for row, _, hunk in view.places():
            if hunk.state is HunkState.SETTLED and hunk.id in own:
                return None if session.attention.reading(hunk) is Reading.READ else row
        return None

    def go_along(self) -> None:
        """Follow the writing into another file."""
        session, pane = self.session, self.pane
        writing = None if session is None else session.writing
        if writing is None or not pane.following or self._going or writing[0] == self.path:
            return
        self._going = True
        path, line = writing

        async def work() -> None:
            try:
                if await self.open_path(path, focus=False, following=True) and self.view:
                    pane.go_to(self.view.row_of_base(line), detach=False)
                    pane.follow()
            finally:
                self._going = False

        self.run_worker(work(), group="turn")
