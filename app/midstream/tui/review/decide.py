"""Deciding hunks: accept, reject, split, edit, release, undo.

The hunk is chosen at the key press, the cursor moves on at once, and the disk follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from midstream.counting import counted
from midstream.edits.external import outcome
from midstream.edits.hunks import Hunk, HunkState
from midstream.edits.stand_ins import is_whole
from midstream.pairing.files.attention import Reading
from midstream.pairing.guard import switch_in_words
from midstream.tui.diff.parts import HunkPart, cut_at
from midstream.tui.pages.hunk_editor import HunkEditor
from midstream.tui.review.attention import OnScreenTimer
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.review.navigate import Navigate
from midstream.tui.review.steer import Steer
from midstream.tui.services import NotNowError
from midstream.tui.visible import visible
from midstream.tui.widgets.fields import EntryRow
from midstream.tui.widgets.key_bar import KeyHint
from midstream.words import in_review


class Decide(Controller):
    """Actions of the group "Decide"."""

    def __init__(
        self, shared: Shared, navigate: Navigate, steer: Steer, on_screen: OnScreenTimer
    ) -> None:
        super().__init__(shared)
        self._navigate = navigate
        self._on_screen = on_screen
        self._steer = steer
        self._edited: dict[int, str] = {}
        """Text typed for a hunk and not saved, by hunk id."""
        self._asked = 0
        """The hunk whose reason is being typed."""
        self._reasons: dict[tuple[EntryRow, int], str] = {}
        """Reasons that were begun and left, by hunk id."""
        self._offered: frozenset[int] = frozenset()
        """Unread hunks that the same key accepts when pressed again."""

    def accept(self) -> None:
        """Accept the hunk under the cursor and go to the next, or the marked lines."""
        session = self._state.session
        if self._decide_marked(HunkState.ACCEPTED):
            return
        self._on_screen.sample()
        hunk = self._target(HunkState.ACCEPTED)
        if hunk is not None:
            hunk_id = hunk.id
            self._go_on(hunk)

            async def work() -> None:
                if not await session.decisions.accept(hunk_id):
                    self._back_to(hunk_id)

            self._work.run(work)

    def _back_to(self, hunk_id: int) -> None:
        """Return to a hunk that was not decided after all, so that the key can be pressed again."""
        pane, rows = self._pane, self._state.view.rows_of(hunk_id)
        if rows is not None:
            pane.detach()
            pane.show_rows(*rows)
            pane.go_to(rows[0], detach=False)
        else:  # the walk went on to another file
            self._navigate.go_to_hunk(self._state.session.hunks.get(hunk_id))

    def reject(self) -> None:
        """Reject the hunk under the cursor and go to the next, or the marked lines."""
        session = self._state.session
        if self._decide_marked(HunkState.REJECTED):
            return
        hunk = self._target(HunkState.REJECTED)
        if hunk is None:
            return
        hunk_id, conflict = hunk.id, hunk.state is HunkState.CONFLICT
        self._go_on(hunk)

        async def work() -> None:
            if not await session.decisions.reject(hunk_id):
                self._back_to(hunk_id)
            elif conflict:  # Its rows are gone: say where.
                self._pane.sync()
                self._say_undo("Dismissed; the file is unchanged. {undo} brings the hunk back.")

        self._work.run(work)

    def _say_undo(self, text: str) -> None:
        self._notices.say("info", text.format(undo=self._services.key_for("decision.undo")))

    def _target(self, wanted: HunkState) -> Hunk | None:
        """The hunk under the cursor if it can get this decision; else go to one that can."""
        navigate, hunk = self._navigate, self._pane.hunk
        navigate.refuse_if_just_arrived()
        if hunk is None:
            navigate.next_undecided()
            return None
        navigate.refuse_if_unseen(hunk)
        if hunk.state is HunkState.STREAMING:
            raise NotNowError("The model is still writing this hunk; wait until it ends.")
        if wanted is HunkState.REJECTED and hunk.rejectable and hunk.state is not wanted:
            return hunk
        if hunk.state is wanted or not hunk.decidable:
            if not navigate.say_withheld(hunk):
                navigate.next_undecided()
            return None
        return hunk

    def _go_on(self, hunk: Hunk) -> None:
        """Move to the next undecided hunk below, else to one above that is in view, else stay."""
        self._notices.clear()
        view, pane = self._state.view, self._pane
        rows = view.rows_of(hunk.id)
        pane.mark = None
        if self._navigate.walk_on(1, hunk):
            return
        below = view.next_hunk(pane.cursor, forward=True, undecided=True)
        row = view.next_hunk(-1, forward=True, undecided=True) if below is None else below
        if row is not None and (rows is None or not rows[0] <= row < rows[1]):
            target = view.hunk_at(row)
            place = None if target is None else view.rows_of(target.id)
            if place is not None and not pane.shows(*place):
                if below is None and rows is not None:
                    pane.go_to(rows[0], detach=False)
                    key = self._services.key_for("hunk.previous_undecided")
                    self._notices.say("info", f"Undecided hunks are left above; {key} goes there.")
                    return
                pane.detach()
                pane.show_rows(*place)
            pane.go_to(row, detach=False)
            if target is not None:
                self._navigate.say_withheld(target)
        elif rows is not None:
            pane.go_to(rows[0], detach=False)

    # all of a file

    def accept_rest(self) -> None:
        """Accept the hunks that were read; on a second press the others too, but no risky ones."""
        if self._state.path:
            self._accept_bulk(self._state.path, "hunk.accept_rest")

    def accept_files(self) -> None:
        """The same in every file, in one step."""
        self._accept_bulk(None, "hunk.accept_files")

    def _accept_bulk(self, path: str | None, action: str) -> None:
        """Accept what was read of a file, or of all files.

        Args:
            path: The file; ``None`` for all.
            action: What does it again.
        """
        session = self._state.session
        self._navigate.refuse_if_just_arrived()
        self._on_screen.sample()

        async def work() -> None:
            shown = session.files.moves.shown(session.hunks.undecided(path))
            bulk = session.attention.bulk(shown)
            unread = frozenset(bulk.unread)
            again = bool(unread) and unread <= self._offered
            wanted = {*bulk.read, *(bulk.unread if again else ())}
            count = await session.decisions.accept_all(wanted)
            if wanted and not count:
                return  # A notice says why; the same key is to mean the same again.
            self._offered = frozenset() if again else unread
            key_for = self._services.key_for
            what = _written(shown, accept=True)
            takes = "keeps" if what == "kept" else "accepts"
            parts = [f"{counted(count, 'hunk')} {what}"] if count else []
            if again and count:
                them = "" if count == len(unread) else f"{len(unread)} of them "
                parts[0] += f", {them}unread"
            elif unread:
                one = len(unread) == 1
                were, them = ("was", "it") if one else ("were", "them")
                readings = {session.attention.reading(session.hunks.get(id_)) for id_ in unread}
                seen = {
                    frozenset({Reading.UNSEEN}): "not fully on screen yet",
                    frozenset({Reading.GLIMPSED}): "on screen only for a moment",
                }.get(frozenset(readings), "not on screen long enough to be read")
                parts.append(
                    f"{counted(len(unread), 'hunk')} {were} {seen}; "
                    f"{key_for(action)} again {takes} {them} anyway"
                )
            if bulk.risky:
                why = bulk.risky[0][1]
                parts.append(f"{counted(len(bulk.risky), 'hunk')} to decide one by one ({why})")
            if count:
                parts.append(f"{key_for('decision.undo')} undoes it")
            sentence = "; ".join(parts)
            if sentence:
                self._notices.say("info" if count and not unread else "warning", f"{sentence}.")
            else:
                self._navigate.say_none_here()

        self._work.run(work)

    def put_back_now(self) -> None:
        """Put back at once what waits until another program has stopped writing."""
        session = self._state.session

        async def work() -> None:
            if not session.hunks.postponed():
                self._notices.say("info", "No hunk is waiting to be put back.")
            elif count := await session.decisions.put_backs.apply():
                undo = self._services.key_for("decision.undo")
                back = f"{counted(count, 'hunk')} put back; {undo} undoes it."
                self._notices.say("info", back, local=True)

        self._work.run(work)

    def reject_files(self) -> None:
        """Reject what is undecided in every file."""
        session = self._state.session
        self._navigate.refuse_if_just_arrived()

        async def work() -> None:
            what = _written(session.hunks.waiting(), accept=False)
            if not (count := await session.decisions.reject_all()):
                self._navigate.say_none_here()
            elif not session.hunks.postponed():
                self._say_undo(
                    f"{counted(count, 'hunk')} {what}; {{undo}} undoes one file at a time."
                )

        self._work.run(work)

    def reject_rest(self) -> None:
        session, path = self._state.session, self._state.path
        if not path:
            return
        self._navigate.refuse_if_just_arrived()

        async def work() -> None:
            what = _written(session.hunks.waiting(path), accept=False)
            if not (count := await session.decisions.reject_rest(path)):
                self._navigate.say_none_here()
            elif not session.hunks.postponed():  # Those have a notice of their own.
                self._say_undo(f"{counted(count, 'hunk')} {what}; {{undo}} undoes it.")

        self._work.run(work)

    # marked rows

    def _decide_marked(self, wanted: HunkState) -> bool:
        """Decide the marked lines; returns whether lines are marked."""
        pane = self._pane
        if pane.mark is None:
            return False
        parts = [
            part
            for part in pane.marked_parts
            if part.hunk.state is HunkState.SETTLED
            or (part.whole and part.hunk.decidable and part.hunk.state is not wanted)
        ]
        if not parts:
            self._notices.say("info", "The marked lines belong to no undecided hunk.")
            return True
        accept = wanted is HunkState.ACCEPTED
        mark, cursor = pane.mark, pane.cursor

        async def work() -> None:
            done = 0
            for part in parts:
                if not await self._decide_part(part, accept=accept):
                    pane.sync()  # A notice says why; the same key is to mean the same again.
                    pane.mark = mark
                    pane.go_to(cursor, detach=False)
                    return
                done += part.size
            pane.sync()
            what = _written((part.hunk for part in parts), accept=accept)
            self._say_undo(f"{counted(done, 'line')} {what}; {{undo}} undoes it.")
            if pane.undecided_hunk is None:
                self._navigate.to_hunk(forward=True, undecided=True)

        pane.unmark()
        self._work.run(work)
        return True

    async def _decide_part(self, part: HunkPart, *, accept: bool) -> bool:
        session, hunk_id = self._state.session, part.hunk.id
        if part.whole:
            return await (
                session.decisions.accept(hunk_id) if accept else session.decisions.reject(hunk_id)
            )
        if part.lines is not None:
            return await session.decisions.decide_lines(hunk_id, *part.lines, accept)
        # Old lines and their replacement, from the middle: they are no single range.
        ids = await session.decisions.split(hunk_id, part.cuts)
        if not ids:
            return False
        mine = ids[0] if part.first == (0, 0) else ids[1]
        return await (session.decisions.accept(mine) if accept else session.decisions.reject(mine))

    # changing a hunk

    def split(self) -> None:
        """Split the hunk above the cursor row, or around the marked rows."""
        session = self._state.session
        hunk, cuts = self._cuts()

        async def work() -> None:
            ids = await session.decisions.split(hunk.id, cuts)
            self._pane.sync()
            if ids:
                self._say_undo(f"Split into {len(ids)} hunks; {{undo}} joins them again.")

        self._pane.unmark()
        self._work.run(work)

    def _cuts(self) -> tuple[Hunk, list[tuple[int, int]]]:
        """The hunk to split and where."""
        pane, hunk = self._pane, self._open_hunk()
        if pane.mark is not None:
            part = next((p for p in pane.marked_parts if p.hunk is hunk), None)
            if part is not None and part.cuts:
                return hunk, part.cuts
            raise NotNowError("The whole hunk is marked; mark only some of its rows.")
        cut = cut_at(self._state.view, pane.cursor)
        if cut is None:
            raise NotNowError("Put the cursor on the first row of the second part.")
        return hunk, [cut[1]]

    def _open_hunk(self) -> Hunk:
        """The undecided hunk under the cursor, shown."""
        hunk = self._pane.hunk
        if hunk is None:
            raise NotNowError("Put the cursor on a hunk first.")
        self._navigate.reveal(hunk)
        if hunk.state is HunkState.SETTLED:
            return hunk
        key_for = self._services.key_for
        reasons = {
            HunkState.STREAMING: "is still being written; wait until it is complete",
            HunkState.CONFLICT: "conflicts with the file; ask for the edit again, or dismiss it "
            f"with {key_for('hunk.reject')}",
            HunkState.HELD: "is held back by the guard; release it first",
        }
        decided = f"is decided; {key_for('decision.undo')} undoes that"
        raise NotNowError(f"This hunk {reasons.get(hunk.state, decided)}.")

    def edit(self) -> None:
        hunk = self._open_hunk()
        if is_whole(self._state.view.proposal.base):
            self._notices.say("warning", f"{hunk.path} can only be decided as a whole.")
            return
        if any(visible(part) != part for line in hunk.new for part in line.split("\t")):
            self._notices.say(
                "warning",
                "This hunk contains invisible characters and cannot be edited here; reject it, or "
                "accept it and edit the file.",
            )
            return
        hunk_id = hunk.id
        kept = self._edited.get(hunk_id)
        text = "\n".join(hunk.new) if kept is None else kept
        title = visible(f"Edit the hunk at {self._state.path}:{hunk.start + 1}")

        def closed(result: tuple[bool, str] | None) -> None:
            if result is None:
                return
            save, left = result
            if left != "\n".join(hunk.new):
                self._edited[hunk_id] = left
            if save:
                self._save(hunk_id, left)
            elif hunk_id in self._edited:
                key = self._services.key_for("hunk.edit")
                self._notices.say("info", f"Not saved; {key} continues with your text.")

        self._notices.clear()
        editor = HunkEditor(
            self._services, hunk.path, title, text, hunk.old, resumed=kept is not None
        )
        self._services.open_screen(editor, closed)

    def _save(self, hunk_id: int, text: str) -> None:
        session = self._state.session
        lines = tuple(text.split("\n")) if text else ()

        async def work() -> None:
            hunk = session.hunks.get(hunk_id)
            if lines == hunk.new:
                self._edited.pop(hunk_id, None)
            elif lines == hunk.old:
                key = self._services.key_for("hunk.reject")
                self._notices.say(
                    "info", f"The file already has these lines; {key} rejects the hunk."
                )
            elif await session.decisions.edit(hunk_id, lines):
                self._edited.pop(hunk_id, None)
                self._pane.sync()
                key = self._services.key_for("hunk.accept")
                self._notices.say("info", f"The hunk has your text now; {key} accepts it.")

        self._work.run(work)

    # reasons

    def reject_why(self) -> None:
        hunk = self._pane.hunk
        if hunk is None or not hunk.rejectable:
            self._open_hunk()
        else:
            hears = "sent to the model with its next instruction"
            if hunk.call:
                hears = "the agent reads it with your answer"
            elif hunk.external:
                hears = f"for the agent; {self._services.key_for('feedback.tell')} tells it"
            verb = "put back" if hunk.external else "reject"
            hints = (
                KeyHint("enter", verb),
                KeyHint("alt+enter", f"{verb} and ask the model again"),
                KeyHint("esc", "leave it undecided"),
            )
            label = "Why put it back?" if hunk.external else "Why reject it?"
            self._ask_why(self._panes.reason, hunk, hears, label, hints)

    def release(self) -> None:
        """Ask why the held-back hunk under the cursor may be decided after all."""
        hunk = self._pane.hunk
        if hunk is not None and hunk.state is HunkState.HELD:
            label = "Why may it stay on disk?" if hunk.external else "Why release it?"
            hears = "then you can keep it" if hunk.external else "then you can accept it"
            hears = f"{hears}; the reason is kept in the journal"
            self._ask_why(self._panes.release, hunk, hears, label)
        elif not self._navigate.to_withheld(1):
            self._notices.say("info", "Only hunks that the guard holds back need to be released.")

    def guard_file(self) -> None:
        """Switch the guard off for the open file, or on again."""
        session, path = self._state.session, self._state.path
        key = self._services.key_for("guard.file")
        if not path:
            self._notices.say("info", f"Open the file first; {key} is about one file.")
        else:
            how = f"{key} switches it on"
            self._notices.say("info", switch_in_words(session.guard, session.files, path, how))
        self._pane.sync()
        self._state.refresh()

    def _ask_why(
        self,
        row: EntryRow,
        hunk: Hunk,
        hears: str,
        label: str | None = None,
        hints: tuple[KeyHint, ...] | None = None,
    ) -> None:
        self._navigate.reveal(hunk)
        self._notices.clear()  # The keys that a sentence names are characters in the field.
        self._asked = hunk.id
        text = self._reasons.pop((row, hunk.id), "")
        row.open(text, label=label, placeholder=hears, hints=hints)
        self._state.refresh()

    def reason_left(self, row: EntryRow, text: str) -> None:
        """Decide nothing; what was typed is there again the next time."""
        if text.strip():
            self._reasons[row, self._asked] = text.strip()
        row.shut()
        self._panes.focus(self._pane)

    def reason_given(self, row: EntryRow, text: str, *, again: bool) -> None:
        """Reject or release; ``again`` asks the model once more for that function."""
        session, why = self._state.session, " ".join(text.split())
        releasing = row is self._panes.release
        if releasing and not why:
            self._notices.say(
                "info", "Type why the lines are safe, then enter; esc leaves the hunk held back."
            )
            return
        row.shut()
        self._panes.focus(self._pane)
        if not self._state.path:
            return
        hunk = session.hunks.get(self._asked)

        async def release() -> None:
            if await session.decisions.release(hunk.id, why):
                self._pane.sync()
                self._say_undo("Released; decide it like any other hunk. {undo} takes that back.")

        if releasing:
            self._work.run(release)
            return
        self._go_on(hunk)
        self._work.run(lambda: session.decisions.reject(hunk.id, why))
        if again and why:
            self._steer.ask_again(why, hunk)

    # steps back and forth

    def undo(self) -> None:
        self._travel(back=True)

    def redo(self) -> None:
        self._travel(back=False)

    def _travel(self, *, back: bool) -> None:
        session = self._state.session

        async def work() -> None:
            told = len(session.status.notices)
            held: set[int] = set()
            if not back:  # Only the redo of a release lets go of a hunk that is held back.
                held = {hunk.id for hunk in session.hunks if hunk.state is HunkState.HELD}
            ids = await (session.decisions.undo() if back else session.decisions.redo())
            if not ids:
                if len(session.status.notices) == told:
                    self._notices.say("info", f"Nothing to {'undo' if back else 'redo'}.")
                return
            if len(session.status.notices) == told:
                hunks = [session.hunks.get(hunk_id) for hunk_id in ids]
                self._notices.say("info", _travelled(hunks, held, back=back))
            path = session.hunks.get(ids[0]).path
            if path != self._state.path and not await self._navigate.open_path(path):
                return
            self._pane.sync()
            places = map(self._state.view.rows_of, ids)
            rows = next((place for place in places if place is not None), None)
            if rows is not None:
                self._pane.show_rows(*rows)
                self._pane.go_to(rows[0])

        self._work.run(work)

    def stage(self) -> None:
        session, path = self._state.session, self._state.path
        accepted = in_review("accepted") if session.only_reviews else "accepted"

        async def work() -> None:
            if session.commit.texts(path) is None:
                raise NotNowError(
                    f"Nothing was {accepted} in this file, so there is nothing to stage."
                )
            await session.commit.stage(path)
            await session.external.refresh()
            key = self._services.key_for("commit")
            self._notices.say("info", f"Staged the {accepted} changes of {path}; {key} commits.")

        self._work.run(work)


def _travelled(hunks: Sequence[Hunk], held: Set[int], *, back: bool) -> str:
    """What was undone or redone, and where; ``held`` are the hunks that were held back before."""
    files = list(dict.fromkeys(hunk.path for hunk in hunks))
    where = files[0] if len(files) == 1 else counted(len(files), "file")
    states = {_state_in_words(hunk, released=hunk.id in held) for hunk in hunks}
    state = f" {states.pop()} again" if len(states) == 1 else " as before"
    verb = "Undone" if back else "Redone"
    return f"{verb}: {counted(len(hunks), 'hunk')} of {where}{state}."


def _state_in_words(hunk: Hunk, *, released: bool) -> str:
    if hunk.decided or hunk.state is HunkState.HELD:
        return hunk.outcome
    return "released" if released else "undecided"


def _written(hunks: Iterable[Hunk], *, accept: bool) -> str:
    """The outcome for hunks; kept lines were on disk already."""
    what = outcome(hunks, accept=accept)
    return "accepted and written" if what == "accepted" else what
