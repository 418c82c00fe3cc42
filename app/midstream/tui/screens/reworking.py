"""Changing a hunk before it is decided: some of its lines, splitting, editing, saying why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.edits.hunks import Hunk, HunkState
from midstream.tui.diff.parts import Part, cut_at, parts_in
from midstream.tui.screens.hunk_editor import HunkEditor
from midstream.tui.screens.reason import ReasonBar
from midstream.tui.screens.steering import SteerActions
from midstream.tui.visible import visible

if TYPE_CHECKING:
    from midstream.demo import DemoInfo


class ReworkActions(SteerActions):
    """Actions on parts of hunks and on their text."""

    def __init__(self, demo: DemoInfo | None) -> None:
        super().__init__(demo)
        self.edited: dict[int, str] = {}
        """Text that was typed for a hunk and not saved, by the hunk's id."""

    # marked rows

    @property
    def marked_parts(self) -> list[Part]:
        """The lines of hunks that are marked."""
        rows, view = self.pane.selection_rows, self.view
        return [] if rows is None or view is None else parts_in(view, *rows)

    def decide_marked(self, wanted: HunkState) -> bool:
        """Decide the marked lines; says whether lines are marked."""
        session, pane = self.session, self.pane
        if session is None or pane.mark is None:
            return False
        parts = [
            part
            for part in self.marked_parts
            if part.hunk.state is HunkState.SETTLED
            or (part.whole and part.hunk.decidable and part.hunk.state is not wanted)
        ]
        if not parts:
            self.say("info", "No line of an undecided hunk is marked.")
            return True
        accept = wanted is HunkState.ACCEPTED

        async def work() -> None:
            done = 0
            for part in parts:
                done += part.size if await self._decide_part(part, accept=accept) else 0
            pane.sync()
            if done:
                lines = f"{done} line{'s' * (done != 1)}"
                undo = self.program.key_for("decision.undo")
                what = "accepted and written" if accept else "rejected"
                self.say("info", f"{lines} {what}; {undo} takes it back.")
            if self.decidable_hunk is None:
                self.to_hunk(forward=True, undecided=True)

        self._unmark()
        self.in_order(work)
        return True

    async def _decide_part(self, part: Part, *, accept: bool) -> bool:
        session, hunk_id = self.session, part.hunk.id
        if session is None:
            return False
        if part.whole:
            return await (session.accept(hunk_id) if accept else session.reject(hunk_id))
        if part.lines is not None:
            return await session.decide_lines(hunk_id, *part.lines, accept)
        # Old lines and what replaces them, from the middle: they are no single range.
        ids = await session.split(hunk_id, part.cuts)
        if not ids:
            return False
        mine = ids[0] if part.first == (0, 0) else ids[1]
        return await (session.accept(mine) if accept else session.reject(mine))

    def _unmark(self) -> None:
        pane = self.pane
        pane.mark = None
        pane.go_to(pane.cursor, detach=False)

    # splitting

    def action_split(self) -> None:
        """Split the hunk above the cursor row, or around the marked rows."""
        session, view, pane = self.session, self.view, self.pane
        if session is None or view is None:
            return
        found = self._cuts()
        if found is None:
            return
        hunk, cuts = found

        async def work() -> None:
            ids = await session.split(hunk.id, cuts)
            pane.sync()
            if ids:
                undo = self.program.key_for("decision.undo")
                self.say("info", f"Split into {len(ids)} hunks; {undo} joins them again.")

        self._unmark()
        self.in_order(work)

    def _cuts(self) -> tuple[Hunk, list[tuple[int, int]]] | None:
        """The hunk to split and where, or ``None`` after having said why not."""
        view, pane = self.view, self.pane
        hunk = self.open_hunk()
        if view is None or hunk is None:
            return None
        if pane.mark is not None:
            part = next((p for p in self.marked_parts if p.hunk is hunk), None)
            if part is not None and part.cuts:
                return hunk, part.cuts
            self.say("info", "All of the hunk is marked; mark some of its rows.")
            return None
        cut = cut_at(view, pane.cursor)
        if cut is None:
            self.say("info", "Put the cursor on the row where the second part should begin.")
            return None
        return hunk, [cut[1]]

    def open_hunk(self) -> Hunk | None:
        """The hunk under the cursor, shown, if it is undecided; says why not otherwise."""
        hunk = self.hunk
        if hunk is None:
            self.say("info", "Put the cursor on a hunk first.")
            return None
        self._in_sight(hunk)
        if hunk.state is HunkState.SETTLED:
            return hunk
        undo = self.program.key_for("decision.undo")
        decided = f"is decided; take that back with {undo}"
        reasons = {
            HunkState.STREAMING: "is still being written; wait until it settles",
            HunkState.CONFLICT: "is in conflict with the file; ask for the edit again, or put it "
            f"away with {self.program.key_for('hunk.reject')}",
            HunkState.QUARANTINED: "is held back by the guard; release it first",
        }
        self.say("info", f"This hunk {reasons.get(hunk.state, decided)}.")
        return None

    # editing

    def action_edit(self) -> None:
        """Edit the new lines of the hunk under the cursor."""
        hunk = self.open_hunk()
        if hunk is None:
            return
        if any(visible(part) != part for line in hunk.new for part in line.split("\t")):
            self.say(
                "warning",
                "This hunk has invisible characters, which cannot be edited here; reject it, or "
                "accept it and edit the file.",
            )
            return
        hunk_id, path = hunk.id, self.path
        kept = self.edited.get(hunk_id)
        text = "\n".join(hunk.new) if kept is None else kept
        gone = "\n".join(visible(f"- {line}") for line in hunk.old)
        title = visible(f"Edit the hunk at {path}:{hunk.start + 1}")

        def closed(result: tuple[bool, str] | None) -> None:
            if result is None:
                return
            save, left = result
            if left != "\n".join(hunk.new):
                self.edited[hunk_id] = left
            if save:
                self._save(hunk_id, left)
            elif hunk_id in self.edited:
                key = self.program.key_for("hunk.edit")
                self.say("info", f"Not saved; {key} goes on with your text.")

        self.hush()
        self.program.push_screen(HunkEditor(title, text, gone, resumed=kept is not None), closed)

    def _save(self, hunk_id: int, text: str) -> None:
        session = self.session
        if session is None:
            return
        lines = text.split("\n") if text else []

        async def work() -> None:
            hunk = session.hunks.get(hunk_id)
            if tuple(lines) == hunk.new:
                self.edited.pop(hunk_id, None)
            elif tuple(lines) == hunk.old:
                reject = self.program.key_for("hunk.reject")
                self.say("info", f"That is what the file has already; {reject} rejects the hunk.")
            elif await session.edit(hunk_id, lines):
                self.edited.pop(hunk_id, None)
                self.pane.sync()
                accept = self.program.key_for("hunk.accept")
                self.say("info", f"The hunk has your text now; {accept} accepts it.")

        self.in_order(work)

    # saying why not

    def action_reject_why(self) -> None:
        """Ask why the hunk under the cursor is rejected."""
        hunk = self.hunk
        if hunk is None or not hunk.rejectable:
            self.open_hunk()
            return
        self._in_sight(hunk)
        self.query_one(ReasonBar).open(hunk.id)
        self.show_keys()

    def on_reason_bar_left(self) -> None:
        """Nothing is rejected."""
        self.set_focus(self.pane)

    def on_reason_bar_given(self, event: ReasonBar.Given) -> None:
        """Reject, and where it is wanted ask for the same lines again with the reason."""
        session, view = self.session, self.view
        self.set_focus(self.pane)
        if session is None or view is None:
            return
        hunk = session.hunks.get(event.hunk_id)
        self._go_on(hunk)
        self.in_order(lambda: session.reject(event.hunk_id, event.text))
        if event.again and event.text:
            start = view.to_written(hunk.start)
            stop = view.to_written(max(hunk.stop, hunk.start + 1))
            self.send(event.text, selection=(start, stop))

    def show_keys(self) -> None:
        """Show the keys of the moment; the screen overrides it."""
        raise NotImplementedError
