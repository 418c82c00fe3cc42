"""Deciding hunks.  The hunk is chosen at the key press, the cursor goes on, the disk follows."""

from __future__ import annotations

from midstream.edits.hunks import Hunk, HunkState
from midstream.tui.screens.moving import MoveActions


class DecideActions(MoveActions):
    """Actions of the group "Decide"."""

    def action_accept(self) -> None:
        """Accept the hunk under the cursor and go on, or the marked lines."""
        if self.decide_marked(HunkState.ACCEPTED):
            return
        hunk = self._target(HunkState.ACCEPTED)
        session = self.session
        if hunk is None or session is None:
            return
        hunk_id = hunk.id
        self._go_on(hunk)
        self.in_order(lambda: session.accept(hunk_id))

    def action_reject(self) -> None:
        """Reject the hunk under the cursor and go on, or the marked lines."""
        if self.decide_marked(HunkState.REJECTED):
            return
        hunk = self._target(HunkState.REJECTED)
        session = self.session
        if hunk is None or session is None:
            return
        hunk_id, conflict = hunk.id, hunk.state is HunkState.CONFLICT
        self._go_on(hunk)

        async def work() -> None:
            if await session.reject(hunk_id) and conflict:  # Its rows are gone: say where.
                self.pane.sync()
                key = self.program.key_for("decision.undo")
                self.say("info", f"Put away; the file stays as it is. {key} brings the hunk back.")

        self.in_order(work)

    def decide_marked(self, wanted: HunkState) -> bool:
        """Decide the marked lines; says whether lines are marked; overridden below."""
        raise NotImplementedError

    def _target(self, wanted: HunkState) -> Hunk | None:
        """The hunk under the cursor if it can get this decision; else go to one that can."""
        if self.just_arrived:
            return None
        hunk = self.hunk
        if hunk is None:
            if not self.to_hunk(forward=True, undecided=True):
                self.action_next_undecided()
            return None
        if not self._in_sight(hunk):
            self.say("info", "This hunk was out of sight; the same key again decides it.")
            return None
        if hunk.state is HunkState.STREAMING:
            self.say(
                "info", "This hunk is still being written; it can be decided as soon as it settles."
            )
            return None
        if wanted is HunkState.REJECTED and hunk.rejectable and hunk.state is not wanted:
            return hunk
        if hunk.state is wanted or not hunk.decidable:
            if self.say_held(hunk):
                return None
            self.action_next_undecided()
            return None
        return hunk

    def _in_sight(self, hunk: Hunk) -> bool:
        """Whether the cursor's hunk is on screen; shows it if it is not."""
        view, pane = self.view, self.pane
        rows = None if view is None else view.rows_of(hunk.id)
        if rows is None or (rows[0] < pane.bottom and pane.top < rows[1]):
            return True
        pane.detach()
        pane.show_rows(*rows)
        pane.go_to(pane.cursor)
        return False

    def _go_on(self, hunk: Hunk) -> None:
        """Move to the next undecided hunk below, else to the first one above, else stay."""
        self.hush()
        view, pane = self.view, self.pane
        if view is None:
            return
        rows = view.rows_of(hunk.id)
        pane.mark = None
        row = view.next_hunk(pane.cursor, forward=True, undecided=True)
        if row is None:
            row = view.next_hunk(-1, forward=True, undecided=True)
        if row is not None and (rows is None or not rows[0] <= row < rows[1]):
            target = view.hunk_at(row)
            place = None if target is None else view.rows_of(target.id)
            if place is not None and not pane.shows(*place):
                pane.detach()
                pane.show_rows(*place)
            pane.go_to(row, detach=False)
        elif rows is not None:
            pane.go_to(rows[0], detach=False)

    def action_reject_rest(self) -> None:
        """Reject every undecided hunk of this file."""
        session, path = self.session, self.path
        if session is None or not path or self.just_arrived:
            return

        async def work() -> None:
            count = await session.reject_rest(path)
            many = f"{count} hunk{'s' * (count != 1)}"
            key = self.program.key_for("decision.undo")
            self.say(
                "info",
                f"{many} rejected; {key} takes it back."
                if count
                else "No hunk waits for a decision here.",
            )

        self.in_order(work)

    def action_undo(self) -> None:
        """Take the last decision back."""
        self._travel(back=True)

    def action_redo(self) -> None:
        """Make the decision again that was taken back."""
        self._travel(back=False)

    def _travel(self, *, back: bool) -> None:
        session = self.session
        if session is None:
            return

        async def work() -> None:
            told = len(session.notices)
            ids = await (session.undo() if back else session.redo())
            if not ids:
                if len(session.notices) == told:
                    nothing = "no decision to take back" if back else "nothing to redo"
                    self.say("info", f"There is {nothing}.")
                return
            if len(session.notices) == told:
                self.hush()
            hunk = session.hunks.get(ids[0])
            if hunk.path != self.path and not await self.open_path(hunk.path):
                return
            self.pane.sync()
            view = self.view
            places = [] if view is None else [view.rows_of(hunk_id) for hunk_id in ids]
            rows = next((place for place in places if place is not None), None)
            if rows is not None:
                self.pane.show_rows(*rows)
                self.pane.go_to(rows[0])

        self.in_order(work)
