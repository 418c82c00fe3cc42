"""Moving the cursor: rows, pages, hunks, files, columns, following."""

from __future__ import annotations

from typing import Final

from midstream.edits.hunks import Hunk, HunkState
from midstream.tui.screens.folder import FolderActions

_NOT_YET: Final = (HunkState.QUARANTINED, HunkState.CONFLICT)
"""A hunk in such a state waits for something else than a decision."""


class MoveActions(FolderActions):
    """Actions of the group "Move"."""

    def action_down(self) -> None:
        """Next row."""
        self._step(1)

    def action_up(self) -> None:
        """Row above."""
        self._step(-1)

    def _step(self, rows: int) -> None:
        if self.rail.has_focus:
            self.rail.move(rows)
        else:
            self.pane.go_to(self.pane.cursor + rows)

    def _page(self, rows: int) -> None:
        if self.rail.has_focus:
            self.rail.move(rows)
        else:
            self.pane.page(rows)

    def action_page_down(self) -> None:
        """One page down."""
        self._page(self.pane.height - 2)

    def action_page_up(self) -> None:
        """One page up."""
        self._page(2 - self.pane.height)

    def action_half_down(self) -> None:
        """Half a page down."""
        self._page(self.pane.height // 2)

    def action_half_up(self) -> None:
        """Half a page up."""
        self._page(-(self.pane.height // 2))

    def action_top(self) -> None:
        """First row."""
        self.pane.go_to(0)

    def action_bottom(self) -> None:
        """Last row."""
        view = self.view
        if view is not None:
            self.pane.go_to(view.size - 1)

    def action_left(self) -> None:
        """Show columns further left."""
        self.pane.scroll_columns(-8)
        self.refresh_facts()

    def action_right(self) -> None:
        """Show columns further right."""
        self.pane.scroll_columns(8)
        self.refresh_facts()

    def action_next_undecided(self) -> None:
        """Next undecided hunk, in this file or another."""
        if not self.to_hunk(forward=True, undecided=True):
            self._elsewhere(1)

    def action_previous_undecided(self) -> None:
        """Undecided hunk above, in this file or another."""
        if not self.to_hunk(forward=False, undecided=True):
            self._elsewhere(-1)

    def action_next_hunk(self) -> None:
        """Next hunk of this file."""
        self.to_hunk(forward=True, undecided=False)

    def action_previous_hunk(self) -> None:
        """Hunk above in this file."""
        self.to_hunk(forward=False, undecided=False)

    def to_hunk(self, *, forward: bool, undecided: bool) -> bool:
        """Go to a hunk of this file and show all of it if it fits; says whether there is one."""
        view, pane = self.view, self.pane
        if view is None:
            return False
        row = view.next_hunk(pane.cursor, forward=forward, undecided=undecided)
        if row is None:
            return False
        hunk = view.hunk_at(row)
        rows = None if hunk is None else view.rows_of(hunk.id)
        pane.detach()
        if rows is not None:
            pane.show_rows(*rows)
        pane.go_to(row)
        return True

    def action_other_file(self) -> None:
        """To the next file in which a hunk waits."""
        self._elsewhere(1)

    def _elsewhere(self, step: int) -> None:
        """Go to the first undecided hunk of the next file that has one."""
        session = self.session
        if session is None:
            return
        paths = [path for path in session.files if session.hunks.undecided(path)]
        if self.path in paths and len(paths) == 1:
            self._wrap(step)
            return
        others = [path for path in paths if path != self.path]
        if not others:
            if not self.to_held(step):
                self.say("info", "No hunk waits for a decision.")
            return
        order = list(session.files)
        here = order.index(self.path) if self.path in order else 0
        others.sort(key=lambda path: (order.index(path) - here) * step % len(order))
        target = others[0]

        async def work() -> None:
            if await self.open_path(target):
                self.pane.go_to(0)
                if self.decidable_hunk is None:
                    self.to_hunk(forward=True, undecided=True)

        self.in_order(work)

    def to_held(self, step: int) -> bool:
        """Go to the next hunk of this file that is held back or in conflict, and say which."""
        view, pane = self.view, self.pane
        held = [] if view is None else [p for p in view.places() if p[2].state in _NOT_YET]
        if not held:
            return False
        ahead = [place for place in held if (place[0] - pane.cursor) * step > 0]
        first, stop, hunk = (ahead or held)[0 if step > 0 else -1]
        pane.detach()
        pane.show_rows(first, stop)
        pane.go_to(first)
        return self.say_held(hunk)

    def say_held(self, hunk: Hunk) -> bool:
        """Say what a hunk waits for that is held back or in conflict; whether it is."""
        if hunk.state is HunkState.QUARANTINED:
            key = self.program.key_for
            ways = f"{key('hunk.reject')} rejects it, {key('hunk.release')} releases it"
            self.say("warning", f"Quarantined, {hunk.note}; {ways}.")
        elif hunk.state is HunkState.CONFLICT:
            key = self.program.key_for("hunk.reject")
            self.say(
                "warning",
                "The file changed where this hunk would go; ask for the edit again, "
                f"{key} puts it away.",
            )
        return hunk.state in _NOT_YET

    def _wrap(self, step: int) -> None:
        """Go on at the other end of this file."""
        view, pane = self.view, self.pane
        if view is None:
            return
        here = pane.hunk
        row = view.next_hunk(-1 if step > 0 else view.size, forward=step > 0, undecided=True)
        if row is None or (here is not None and view.hunk_at(row) is here):
            return
        pane.go_to(row, centre=True)

    def action_next_file(self) -> None:
        """Next open file."""
        self._turn_to_file(1)

    def action_previous_file(self) -> None:
        """Open file before this one."""
        self._turn_to_file(-1)

    def _turn_to_file(self, step: int) -> None:
        session = self.session
        if session is None or not session.files:
            return
        paths = list(session.files)
        here = paths.index(self.path) if self.path in paths else 0
        self.show_path(paths[(here + step) % len(paths)])

    def action_follow(self) -> None:
        """Follow the writing, or stop following."""
        pane = self.pane
        if pane.following:
            pane.detach()
            self.refresh_facts()
            return
        path = self.written_path
        if path in ("", self.path):
            pane.follow()
            return

        async def work() -> None:
            if await self.open_path(path):
                pane.follow()

        self.in_order(work)
