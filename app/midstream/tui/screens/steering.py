"""Steering the model: instruct, redirect, queue, stop, comment; and which lines it gets.

What a person has typed is never lost: if sending fails, it is put back where it was.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.timer import Timer

from midstream.errors import UserError
from midstream.pairing.turns import SessionState
from midstream.tui.screens.commenting import CommentActions

if TYPE_CHECKING:
    from midstream.pairing.scope.find import Candidate, Target, TargetUnclearError
    from midstream.pairing.scope.mentions import NeedsConsentError

QUIT_WITHIN_S = 2.0
"""A second Ctrl+C within this time quits."""
LATE_S = 1.0
"""Ctrl+C within this time after an answer has ended was meant to stop it."""
LONGEST_PREVIEW = 10_000
"""Files with more lines get no preview of the region: finding it means parsing them."""
QUICK_PREVIEW = 400
"""Files with fewer lines get theirs at once, others when the keys pause."""
PAUSE_S = 0.12


class SteerActions(CommentActions):
    """Actions of the group "Steer the model"."""

    _stopped_at = 0.0
    _ended_at = 0.0
    """When an answer has ended by itself, on the monotonic clock; 0 once a late stop was told."""
    _sending = False
    """Whether an instruction is on its way to the session."""
    _stopped_early = False
    """Whether it was stopped before it came there."""
    _held = ""
    """What is to be sent as soon as the session is open."""
    _aim_timer: Timer | None = None

    def action_compose(self) -> None:
        """Go to the composer."""
        self.set_focus(self.composer.field)

    def action_choose(self) -> None:
        """Open the file under the rail's cursor; in the code, go to the composer."""
        if self.rail.has_focus:
            self.rail.choose()
        else:
            self.action_compose()

    def action_leave(self) -> None:
        """Close the list of mentions, or go back to the code; the text stays."""
        if self.composer.close_list():
            return
        if self.notice.is_shown:
            self.hush()
        self.set_focus(self.pane)

    def action_newline(self) -> None:
        """Break the line."""
        self.composer.field.insert("\n")

    def action_expand(self) -> None:
        """Write out the pasted block that a chip stands for."""
        if not self.composer.field.expand_chip():
            self.say("info", "There is no pasted block to write out.")

    def action_recall(self) -> None:
        """Earlier instruction, or the line above inside a longer text or a list."""
        if self.composer.move(-1):
            return
        field = self.composer.field
        if not field.cursor_at_first_line or not self.composer.recall(1):
            field.action_cursor_up()

    def action_send(self) -> None:
        """Send the text: a new instruction, or a redirect while the model writes."""
        if self.composer.complete():
            return
        text = self.composer.text.strip()
        if not text:
            if self.running:
                self.say(
                    "info",
                    "Write what the model should do instead; Ctrl+C only stops it.",
                )
            elif self.session is not None and (queued := self.session.fetch_queued()):
                self.composer.put(queued)
                self.refresh_facts()
            return
        if self.session is None:
            self._held = text
            self.say("info", "The session is still being opened; your text is sent then.")
            return
        selection = self.commented_lines
        self.send(self.composer.take(), selection=selection)

    def send_held(self) -> None:
        """The session is open: send what was to be sent before, if nobody has changed it since."""

        async def work() -> None:
            if self._held and self._held == self.composer.text.strip():
                self.send(self.composer.take())
            self._held = ""

        self.in_order(work)

    def send(self, text: str, *, selection: tuple[int, int] | None = None) -> None:
        """Send an instruction for the lines in scope, or for ``selection``."""
        session, pane = self.session, self.pane
        if session is None:
            return
        self.hush()
        redirecting = self.running and not session.in_background
        path = self.path or None
        cursor = self.cursor_line
        marked = selection or self.marked_lines
        if not redirecting:
            self.set_focus(self.pane)
        self._sending, self._stopped_early = True, False

        async def work() -> None:
            try:
                if self._stopped_early:
                    raise UserError("Stopped before the instruction was sent.")
                if redirecting and self.running:
                    await session.redirect(text)
                else:
                    await session.instruct(text, path=path, cursor=cursor, selection=marked)
                if self._stopped_early:
                    await session.stop()
            except UserError as error:
                self.composer.give_back(text)
                self._explain(error, text, selection)
                return
            finally:
                self._sending = False
            pane.mark = None
            self.mark_tried(text)

        self.in_order(work)

    def _explain(
        self, error: UserError, text: str, selection: tuple[int, int] | None = None
    ) -> None:
        """Show why an instruction could not be sent; a question gets its answers as numbers."""
        from midstream.pairing.requests import WrongLanguageError
        from midstream.pairing.scope.find import MOST_CHOICES, TargetUnclearError
        from midstream.pairing.scope.mentions import NeedsConsentError

        if isinstance(error, NeedsConsentError):
            self.ask_consent(error, text, selection)
            return
        self.set_focus(self.composer.field)
        if isinstance(error, WrongLanguageError):
            key = self.program.key_for("models")
            self.say("error", f"{error.what}; {key} chooses another model.")
            return
        if not isinstance(error, TargetUnclearError) or not error.candidates:
            self.say("error", str(error))
            return
        candidates = error.candidates[:MOST_CHOICES]
        answers = tuple(
            lambda candidate=candidate: self._choose_target(candidate, text)
            for candidate in candidates
        )
        self.ask(error.question, tuple(each.label for each in candidates), answers)
        self.set_focus(self.pane)

    def _choose_target(self, candidate: Candidate, text: str) -> None:
        """Put the cursor on a candidate, so that it is in scope, and send the text again."""
        path = candidate.path or self.path

        async def work() -> None:
            if not await self.open_path(path):
                return
            view = self.view
            if view is None:
                return
            lines = candidate.locate(view.proposal.composed().lines)
            if lines is None:
                self.say(
                    "warning",
                    f"There is no {candidate.name} in {path}; mark the lines with v and send "
                    "again.",
                )
                return
            self.pane.go_to(view.row_of_base(view.to_base(lines[0])), centre=True)
            if self.composer.text.strip() == text:
                self.composer.take()
            self.send(text, selection=lines)

        self.in_order(work)

    def action_queue(self) -> None:
        """Send after the current answer has ended."""
        session = self.session
        text = self.composer.text.strip()
        if not text or session is None:
            return
        if not self.running:
            self.action_send()
            return
        session.queue(self.composer.take())
        count = len(session.queued)
        self.say(
            "info",
            f"Queued; {count} instruction{'s' * (count != 1)} will run when this answer has ended.",
        )
        self.refresh_facts()

    def action_stop(self) -> None:
        """Stop the model; when nothing runs, a second time within two seconds quits.

        A first time right after an answer has ended came late and means that answer.
        """
        session = self.session
        now = time.monotonic()
        if session is None and self._held:
            self._held = ""
            self.say("info", "It is not sent; your text stays here.")
            return
        if session is not None and (
            self._sending
            or session.state
            in (SessionState.WAITING, SessionState.STREAMING, SessionState.STOPPING)
        ):
            self._stopped_early = self._sending
            # Not in order: stopping must not wait for a write that is on its way.
            self.run_worker(session.stop(), group="stop", exclusive=True)
            self._stopped_at = 0.0
            return
        if now - self._stopped_at < QUIT_WITHIN_S:
            self.program.exit()
            return
        if now - self._ended_at < LATE_S:
            self._ended_at = 0.0
            # What is wrong with the answer is worth more than that it has ended.
            if not self.notice.is_shown or self.notice.level == "info":
                waits = session is not None and session.hunks.undecided()
                rest = "; its hunks wait for your decision" if waits else ""
                self.say("info", f"The answer had ended already{rest}.")
            return
        self._stopped_at = now
        key = self.program.key_for("model.stop")
        self.say("info", f"Nothing is running. {key} again quits; accepted hunks are on disk.")

    def answer_ended(self) -> None:
        """Note that an answer has come to its end."""
        self._ended_at = time.monotonic()

    def action_elsewhere(self) -> None:
        """Ask for the change of the hunk under the cursor in the other places of its kind."""
        session, hunk = self.session, self.hunk
        if session is None or hunk is None:
            self.say("info", "Put the cursor on a hunk first; its change is asked for elsewhere.")
            return
        if not self._in_sight(hunk):
            self.say("info", "This hunk was out of sight; the same key again asks for its change.")
            return
        hunk_id = hunk.id

        async def work() -> None:
            files = await session.errands.elsewhere(hunk_id)
            if files:
                where = f"{files} file{'s' * (files != 1)}"
                self.say("info", f"Asking for the same change in {where}; the hunks will wait.")

        self.in_order(work)

    def action_continuous(self) -> None:
        """Switch continuous mode."""
        session = self.session
        if session is None:
            return
        on = not session.errands.continuous

        async def work() -> None:
            await session.errands.turn(on=on)
            key = self.program.key_for("continuous")
            self.say(
                "info",
                f"Continuous: a change that you save is followed up in the background; {key} ends "
                "it."
                if on
                else "Continuous mode is off; nothing is asked when you save.",
            )
            self.refresh_facts()

        self.in_order(work)

    # the region an instruction gets: lines are those of the file on disk, as the session counts

    @property
    def cursor_line(self) -> int | None:
        """The line the cursor stands on."""
        view = self.view
        return None if view is None or not view.size else view.written_at(self.pane.cursor)

    @property
    def marked_lines(self) -> tuple[int, int] | None:
        """The marked lines."""
        rows, view = self.pane.selection_rows, self.view
        if rows is None or view is None:
            return None
        start, stop = view.written_at(rows[0]), view.written_at(rows[1] - 1) + 1
        return start, max(stop, start + 1)

    def aim_soon(self) -> None:
        """Aim now, or when the keys pause where finding the region takes a moment."""
        view = self.view
        if self._aim_timer is not None:
            self._aim_timer.stop()
            self._aim_timer = None
        if view is not None and len(view.proposal.base.lines) > QUICK_PREVIEW:
            self._aim_timer = self.set_timer(PAUSE_S, self.aim)
        else:
            self.aim()

    def aim(self) -> None:
        """Show what the next instruction would be about, and soon what would go along with it."""
        self._show_aim()
        self.preview_soon()

    def _show_aim(self) -> None:
        """Show which lines it would get: in the gutter and above the text."""
        pane, view, title = self.pane, self.view, self.composer.title
        active = self.composer.has_focus_within
        # What runs in the background gives way to an instruction; it is not redirected.
        if self.running and not (self.session is not None and self.session.in_background):
            turn, path = None if self.session is None else self.session.turn, self.written_path
            target = path if turn is None or path != turn.path else f"{path} {turn.symbol}".strip()
            pane.scope = None
            title.show("Redirect", target, "the model goes on from what is settled", active=active)
            pane.repaint()
            return
        if view is None:
            title.show(
                "Instruct",
                "",
                "name a file with @, or open one first"
                if self.finds_places
                else "name a function of this folder, or open a file first",
                active=active,
            )
            return
        target = self.find_scope()
        if isinstance(target, str):
            pane.scope = None
            if self.finds_places:
                target = "the model finds the place"
            title.show("Instruct", self.path, target, active=active)
        else:
            pane.scope = (view.to_base(target.start), view.to_base(target.stop))
            lines = f"lines {target.start + 1}-{target.stop}"
            if target.stop - target.start == 1:
                lines = f"line {target.stop}"
            words = f"{target.symbol}, {lines}" if target.symbol else lines
            title.show("Instruct", f"{self.path}  {words}", target.why, active=active)
            if active:
                # Who writes an instruction sees what it is about.
                first, last = view.row_of_base(pane.scope[0]), view.row_of_base(pane.scope[1] - 1)
                # The part of it in which the cursor stands is what is looked at.
                here = first <= pane.cursor <= last and pane.shows(pane.cursor, pane.cursor + 1)
                if not here and not pane.shows(first, min(last + 1, first + pane.height)):
                    pane.show_rows(first, last + 1)
        pane.repaint()

    def find_scope(self) -> Target | str:
        """The region for what is typed now, or why there is none."""
        from midstream.pairing.scope.find import TargetUnclearError, find_target

        view, commented = self.view, self.commented
        if view is None or len(view.proposal.base.lines) > LONGEST_PREVIEW:
            return "mark lines with v, or name a function"
        try:
            if commented is not None:
                hunk, name = commented
                found = find_target(
                    view.proposal.composed(),
                    instruction="",
                    cursor=view.to_written(hunk.start),
                    selection=None,
                    max_lines=self.longest_region,
                )
                return replace(found, why=f"about the {name}")
            return find_target(
                view.proposal.composed(),
                instruction=self.composer.text,
                cursor=self.cursor_line,
                selection=self.marked_lines,
                max_lines=self.longest_region,
                path=self.path.rpartition("/")[2],
            )
        except TargetUnclearError as error:
            return _first_sentence(error)

    @property
    def commented_lines(self) -> tuple[int, int] | None:
        """The lines that a comment on a hunk is about, whatever its code mentions."""
        found = None if self.commented is None else self.find_scope()
        return None if found is None or isinstance(found, str) else (found.start, found.stop)

    @property
    def longest_region(self) -> int | None:
        """The most lines the model takes, as far as it says."""
        session = self.session
        return None if session is None else session.model_info.max_region_lines

    @property
    def talks(self) -> bool:
        """Whether the model is a chat model, to which more is sent than the lines."""
        session = self.session
        # Without a name nobody has told yet what it is.
        return session is not None and bool(session.model_name) and session.model_info.is_chat

    @property
    def finds_places(self) -> bool:
        """Whether the model can be left to find the lines itself."""
        session = self.session
        return self.talks and session is not None and session.model_info.finds_places

    def mark_tried(self, text: str) -> None:
        """An example was sent; the screen overrides it."""

    def preview_soon(self) -> None:
        """The instruction has changed; overridden below."""

    def ask_consent(
        self, error: NeedsConsentError, text: str, selection: tuple[int, int] | None
    ) -> None:
        """Ask whether ignored files may go out; overridden below."""
        raise NotImplementedError


def _first_sentence(error: TargetUnclearError) -> str:
    text = str(error)
    return text if len(text) <= 90 else text.split(";")[0].split(":")[0]
