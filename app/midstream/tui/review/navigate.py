"""Moving through rows, hunks, files and search matches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from midstream.counting import counted
from midstream.edits.hunks import Hunk, HunkState
from midstream.errors import UserError
from midstream.tui.diff.view import MatchFinder, Range
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.services import NotNowError
from midstream.tui.visible import visible

MANY: Final = 1 << 30
"""Rows or tools: as far as there are any."""
ARRIVAL_S: Final = 0.4
"""Decisions wait this long after following into another file: they were meant for the former."""
_WITHHELD: Final = (HunkState.HELD, HunkState.CONFLICT)
"""States in which a hunk needs something other than a decision."""


class Navigate(Controller):
    """Actions of the group "Move", search, and opening files."""

    def __init__(self, shared: Shared, opened: Callable[[], None]) -> None:
        super().__init__(shared)
        self._opened = opened
        self._arrived = 0.0

    # opening files

    async def open_path(
        self, path: str, *, line: int | None = None, focus: bool = True, following: bool = False
    ) -> bool:
        """Show a file; returns whether that worked.

        Args:
            path: The file.
            line: 0-based line to show.
            focus: Whether to move the focus to the code.
            following: Whether the model went on to this file; nothing happens if the user has
                stopped following meanwhile.
        """
        state, pane = self._state, self._pane
        try:
            path = await state.open_path(path)
        except UserError as error:
            self._notices.explain(error)
            return False
        if following and not pane.following:
            return False
        if path != state.path:
            self._notices.leave_place()
            if state.path:
                state.places.pop(state.path, None)
                state.places[state.path] = (pane.cursor, pane.top)
            cursor, top = state.places.get(path, (0, 0))
            state.path = path
            pane.show(state.views[path], state.syntaxes[path], cursor=cursor, top=top)
            if following:
                self._arrived = time.monotonic()
            else:
                pane.detach()
        if line is not None:
            pane.go_to(state.views[path].row_of_line(line), centre=True)
        self._panes.show_code(True)
        if focus:
            self._panes.focus(pane)
        state.refresh()
        self._opened()
        return True

    def show_path(self, path: str, *, line: int | None = None, focus: bool = True) -> None:
        """Show a file, after everything that was asked for before."""
        self._work.run(lambda: self.open_path(path, line=line, focus=focus))

    def refuse_if_just_arrived(self) -> None:
        """Refuse a decision if following has changed the file a moment ago."""
        if time.monotonic() - self._arrived < ARRIVAL_S:
            path = self._state.path
            raise NotNowError(f"The model moved on to {path}. Press again to decide here.")

    def next_file(self) -> None:
        self._turn_to_file(1)

    def previous_file(self) -> None:
        self._turn_to_file(-1)

    def _turn_to_file(self, step: int) -> None:
        session = self._state.session
        if not session.files:
            return
        paths = list(session.files)
        here = paths.index(self._state.path) if self._state.path in paths else 0
        self.show_path(paths[(here + step) % len(paths)])

    # rows and columns

    def down(self) -> None:
        self._step(1)

    def up(self) -> None:
        self._step(-1)

    def _step(self, rows: int) -> None:
        if self._panes.rail.has_focus:
            self._panes.rail.move(rows)
        elif self._converses(rows):
            self._state.refresh()
        else:
            self._pane.go_to(self._pane.cursor + rows)

    def _converses(self, tools: int) -> bool:
        """Move the conversation's cursor, if the keys go there; whether they do."""
        conversation = self._panes.conversation
        if conversation is None or not conversation.has_focus:
            return False
        conversation.move(tools)
        return True

    def _page(self, rows: int) -> None:
        if self._panes.rail.has_focus:
            self._panes.rail.move(rows)
        elif (conversation := self._panes.conversation) is not None and conversation.has_focus:
            conversation.scroll(rows)
        else:
            self._pane.page(rows)

    def page_down(self) -> None:
        self._page(self._pane.height - 2)

    def page_up(self) -> None:
        self._page(2 - self._pane.height)

    def half_down(self) -> None:
        self._page(self._pane.height // 2)

    def half_up(self) -> None:
        self._page(-(self._pane.height // 2))

    def top(self) -> None:
        if self._panes.rail.has_focus:
            self._panes.rail.move(-len(self._panes.rail.rows))
        elif not self._converses(-MANY):
            self._pane.go_to(0)

    def bottom(self) -> None:
        if self._panes.rail.has_focus:
            self._panes.rail.move(len(self._panes.rail.rows))
        elif not self._converses(MANY):
            self._pane.go_to(self._pane.row_count - 1)

    def left(self) -> None:
        """Scroll left; in the file list, fold the folder or go to the one above."""
        if self._panes.rail.has_focus:
            self._panes.rail.outwards()
        else:
            self._pane.scroll_columns(-8)
        self._state.refresh()

    def right(self) -> None:
        """Scroll right; in the file list, unfold the folder or go into it."""
        if self._panes.rail.has_focus:
            self._panes.rail.inwards()
        else:
            self._pane.scroll_columns(8)
        self._state.refresh()

    # hunks

    def next_undecided(self) -> None:
        if not self.walk_on(1) and not self.to_hunk(forward=True, undecided=True):
            self._elsewhere(1)

    def previous_undecided(self) -> None:
        if not self.walk_on(-1) and not self.to_hunk(forward=False, undecided=True):
            self._elsewhere(-1)

    def walk_on(self, step: int, start: Hunk | None = None, *, quietly: bool = False) -> bool:
        """Go to the next hunk of the walk, if it is followed; whether there is one.

        Args:
            step: 1 or -1.
            start: Where the reader is; the hunk under the cursor by default.
            quietly: Whether to say nothing about that hunk.
        """
        session = self._state.session
        if not session.walk.on:
            return False
        here = start or self._pane.hunk
        if here is not None:
            session.walk.visit(here)
        target = session.walk.beyond(here, step)
        if target is not None:
            self.go_to_hunk(target, quietly=quietly)
        return target is not None

    def go_to_hunk(self, hunk: Hunk, *, quietly: bool = False) -> None:
        """Show a hunk of any file and say what kind of change it is."""
        session, pane = self._state.session, self._pane

        async def work() -> None:
            if not await self.open_path(hunk.path):
                return
            pane.sync()
            rows = self._state.view.rows_of(hunk.id)
            if rows is None:
                return
            session.walk.visit(hunk)
            pane.detach()
            pane.show_rows(*rows, high=True)
            pane.go_to(rows[0])
            self._notices.leave_place()
            if not quietly and not self.say_withheld(hunk):
                self.say_kind(hunk)

        self._work.run(work)

    def say_kind(self, hunk: Hunk) -> None:
        """Say what kind of change a hunk is, and what shows it."""
        if evidence := self._state.session.walk.evidence(hunk):
            kind, why = evidence[0]
            self._notices.say("info", visible(f"{kind.capitalize()}: {why}."))

    def next_hunk(self) -> None:
        self.to_hunk(forward=True, undecided=False)

    def previous_hunk(self) -> None:
        self.to_hunk(forward=False, undecided=False)

    def other_file(self) -> None:
        """Next file with undecided hunks."""
        self._elsewhere(1)

    def to_hunk(self, *, forward: bool, undecided: bool) -> bool:
        """Go to a hunk of this file and show all of it if it fits; returns whether there is one."""
        view, pane = self._state.view, self._pane
        row = view.next_hunk(pane.cursor, forward=forward, undecided=undecided)
        if row is None:
            return False
        pane.detach()
        pane.show_hunk_at(row, high=True)
        pane.go_to(row)
        self._notices.leave_place()
        if undecided and (hunk := view.hunk_at(row)) is not None:
            self.say_withheld(hunk)
        return True

    def to_first_undecided(self) -> None:
        """Go to the first undecided hunk from the cursor on, which may be there already."""
        if self._pane.undecided_hunk is None:
            self.to_hunk(forward=True, undecided=True)

    def reveal(self, hunk: Hunk) -> bool:
        """Show the hunk under the cursor if it is off screen; returns whether it was on screen."""
        pane, rows = self._pane, self._state.view.rows_of(hunk.id)
        if rows is None or (rows[0] < pane.bottom and pane.top < rows[1]):
            return True
        pane.detach()
        pane.show_rows(*rows)
        pane.go_to(pane.cursor)
        return False

    def refuse_if_unseen(self, hunk: Hunk) -> None:
        """Refuse, the first time, to act on the hunk under the cursor where it is off screen."""
        if not self.reveal(hunk):
            raise NotNowError("That hunk was off screen. Press again to confirm.")

    def _elsewhere(self, step: int) -> None:
        """Go to the first undecided hunk of the next file that has one."""
        state = self._state
        session = state.session
        paths = [*state.waiting_by_path]
        if paths == [state.path]:
            self._wrap(step)
            return
        others = [path for path in paths if path != state.path]
        if not others:
            if not self.to_withheld(step):
                self._notices.say("info", "No undecided hunks.")
            return
        order = list(session.files)
        here = order.index(state.path) if state.path in order else 0
        others.sort(key=lambda path: (order.index(path) - here) * step % len(order))

        async def work() -> None:
            if await self.open_path(others[0]):
                self._pane.go_to(0)
                self.to_first_undecided()

        self._work.run(work)

    def say_none_here(self) -> None:
        """Say that this file has nothing to decide, and which key goes to the next that has."""
        words = "No undecided hunks in this file"
        if self._state.running and self._state.written_path == self._state.path:
            words = "Nothing to decide here yet: the model is still writing"
        if count := sum(self._state.waiting_by_path.values()):
            key, wait = (
                self._services.key_for("hunk.next_undecided"),
                "waits" if count == 1 else "wait",
            )
            words += f"; {counted(count, 'hunk')} {wait} in other files, {key} goes there"
        self._notices.say("info", f"{words}.")

    def _wrap(self, step: int) -> None:
        """Continue at the other end of this file."""
        view, pane = self._state.view, self._pane
        here = pane.hunk
        row = view.next_hunk(-1 if step > 0 else view.size, forward=step > 0, undecided=True)
        hunk = None if row is None else view.hunk_at(row)
        if row is None or hunk is None or hunk is here:
            return
        pane.go_to(row, centre=True)
        self._notices.leave_place()
        self.say_withheld(hunk)

    def to_withheld(self, step: int) -> bool:
        """Go to the next held-back or conflicting hunk of this file, and say what it needs."""
        pane = self._pane
        held = [place for place in self._state.view.places() if place[2].state in _WITHHELD]
        if not held:
            return False
        ahead = [place for place in held if (place[0] - pane.cursor) * step > 0]
        first, stop, hunk = (ahead or held)[0 if step > 0 else -1]
        pane.detach()
        pane.show_rows(first, stop, high=True)
        pane.go_to(first)
        return self.say_withheld(hunk)

    def say_withheld(self, hunk: Hunk) -> bool:
        """Say what a held-back or conflicting hunk needs; returns whether it is one."""
        reject = self._services.key_for("hunk.reject")
        if hunk.state is HunkState.HELD:
            release = self._services.key_for("hunk.release")
            if hunk.external:
                said = "On disk already, but held back"
                keys = f"{reject} puts it back, {release} lets you keep it"
            else:
                said, keys = "Held back", f"{reject} rejects it, {release} releases it"
            self._notices.say("warning", f"{said}: {hunk.note}. {keys}.", local=True)
        elif hunk.state is HunkState.CONFLICT:
            self._notices.say(
                "warning",
                f"The file has changed where this hunk belongs. Ask for the edit again; {reject} "
                "dismisses the hunk.",
                local=True,
            )
        return hunk.state in _WITHHELD

    # search

    def search(self) -> None:
        if self._state.path:
            finder = self._state.finder
            self._panes.search.open("" if finder is None else finder.text)

    def search_typed(self, text: str) -> None:
        """Mark the matches while the user types, and show the first one after the cursor."""
        finder = self.find(text)
        row = None if finder is None else finder.next(self._pane.cursor - 1, forward=True)
        if row is not None:
            self._pane.go_to(row, centre=True)

    def end_search(self, *, keep: bool) -> None:
        """Keep the matches after Enter, forget them after Escape."""
        self._panes.search.shut()
        if not keep:
            self.find("")
        self._panes.focus(self._pane)
        self._state.refresh()

    def search_next(self) -> None:
        self._to_match(forward=True)

    def search_previous(self) -> None:
        self._to_match(forward=False)

    def _to_match(self, *, forward: bool) -> None:
        if self._state.finder is None:
            self.search()
            return
        finder = self.find(self._state.finder.text)
        row = None if finder is None else finder.next(self._pane.cursor, forward=forward)
        if row is not None:
            self._pane.go_to(row, centre=True)

    def find(self, text: str) -> MatchFinder | None:
        """Mark a text in the open file; an empty text removes the marks."""
        matches: dict[int, tuple[Range, ...]] = {}
        self._state.finder = None
        if text:
            self._state.finder = MatchFinder(self._state.view, text)
            matches = self._state.finder.matches
        self._pane.strips.found = matches
        self._pane.repaint()
        self._state.refresh()
        return self._state.finder
