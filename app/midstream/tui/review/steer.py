"""Steering the model: instruct, redirect, queue, stop, comment.

Whatever was sent, the keys go to the code: one rule for instructions, redirects, questions and
plans.  Only a text that could not be sent is in the field again, with the keys.

What the user has typed is never lost: if sending fails, it is put back where it was.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.edits.hunks import Hunk, HunkState
from midstream.errors import UsageError, UserError
from midstream.pairing.request.mentions import NeedsConsentError
from midstream.pairing.request.question import Question
from midstream.pairing.review.feedback import NOTHING_TO_TELL
from midstream.pairing.status import SessionState, Turn, TurnStatus
from midstream.tui import garbage
from midstream.tui.notices import Choice
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.review.aim import Aim
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.review.navigate import Navigate
from midstream.tui.services import NotNowError
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow

if TYPE_CHECKING:
    from textual.worker import Worker

    from midstream.pairing.chat.plan import SessionPlan
    from midstream.pairing.request.target import Candidate
    from midstream.tui.review.converse import Converse

LATE_S: Final = 1.0
"""Ctrl+C within this time after an answer has ended was meant to stop it."""
_NO_PLAN: Final = 'There is no plan yet; begin a text with "plan:" to have the model write one.'
_OWN_EFFORT: Final = {
    "auto": "same as low: one pass",
    "low": "one pass",
    "medium": "one pass, checked; findings are corrected once",
    "high": "4 candidates, the best by checks and your test command",
    "xhigh": "8 candidates, the best by checks and your test command",
}
_HOSTED_EFFORT: Final = {"auto": "the endpoint's default"}


def _editable(plan: SessionPlan) -> str:
    """A plan as it is put into the composer."""
    return f"plan:\n{plan.text}"


class Steer(Controller):
    """Actions of the group "Steer"."""

    def __init__(self, shared: Shared, navigate: Navigate, aim: Aim, converse: Converse) -> None:
        super().__init__(shared)
        self._navigate = navigate
        self._aim = aim
        self._converse = converse
        self._ended_at = 0.0
        """When an answer ended by itself, on the monotonic clock; 0 once a late stop was told."""
        self._stops = 0
        """How often the key to stop was pressed; it is meant for what was sent before."""
        self._held = ""
        """Instruction to send as soon as the session is open."""
        self._advised = False
        self._search: Worker[None] | None = None
        """Looks for the places that need a change as well."""

    @property
    def sending(self) -> bool:
        """Whether an instruction is on its way to the session."""
        return self._state.sending > 0

    def _sends(self, more: int) -> None:
        self._state.sending += more
        self._state.refresh()

    # the composer

    def compose(self) -> None:
        """Go to the text field; in a range of commits, only to ask a question."""
        composer = self._composer
        if self._state.read_only:
            session = self._state.session
            if session.server.model_info.is_edit_model:
                self._notices.say("warning", session.workspace.refusal)
                return
            if not composer.text:
                composer.put("? ")
        self._panes.focus_composer()

    def choose(self) -> None:
        """Open what the cursor of the rail or the conversation is on; else go to the composer."""
        conversation = self._panes.conversation
        if self._panes.rail.has_focus:
            self._panes.rail.choose()
        elif conversation is not None and conversation.has_focus:
            conversation.choose()
            self._state.refresh()
        else:
            self.compose()

    def leave(self) -> None:
        """Close the list of mentions, or go back to the code; the text and a question stay.

        An unchanged plan does not: it is kept where it came from.
        """
        if self._composer.close_list():
            return
        session = self._state.opened
        if session is not None and self._composer.text == _editable(session.chat.steps):
            self._composer.put("")
        if self._panes.notice.is_shown and not self._notices.asking:
            self._notices.clear()
        self._panes.focus(self._pane)

    def newline(self) -> None:
        self._composer.field.insert("\n")

    def clear(self) -> None:
        """Delete what stands before the cursor, in all lines."""
        field = self._composer.field
        field.delete((0, 0), field.cursor_location)

    def expand(self) -> None:
        if not self._composer.field.expand_chip():
            self._notices.say("info", "There is no pasted block to expand.")

    def recall(self) -> None:
        """Recall an earlier instruction, or move up inside a longer text or a list."""
        if self._composer.move(-1):
            return
        field = self._composer.field
        if not field.cursor_at_first_line or not self._composer.recall(1):
            field.action_cursor_up()

    # sending

    def send(self) -> None:
        """Send the text: a new instruction, or a redirect while the model writes."""
        if self._composer.complete():
            return
        session, text = self._state.opened, self._composer.text.strip()
        if not text:
            if self._state.running:
                self._notices.say(
                    "info", "Write what the model should do instead; Ctrl+C only stops it."
                )
            elif session is not None and (
                queued := session.agent.fetch_queued() or session.turns.fetch_queued()
            ):
                self._composer.put(queued)
                self._state.refresh()
        elif session is None:
            self._held = text
            self._notices.say("info", "The session is still opening; your text is sent then.")
        elif self._converse.on:
            self._converse.send(self._composer.take())
        else:
            selection = self._aim.commented_lines
            self._deliver(self._composer.take(), selection)

    def send_held(self) -> None:
        """The session is open: send what was waiting for it, unless it was edited since."""

        async def work() -> None:
            if self._held and self._held == self._composer.text.strip():
                self.send()
            self._held = ""

        self._work.run(work)

    def _deliver(self, text: str, selection: tuple[int, int] | None = None) -> None:
        """Send a text: a question to the conversation, everything else as an instruction."""
        from midstream.pairing.request.kinds import question_of, wish_of

        wish = wish_of(text)
        if self._state.session.chat.steps.write(wish):
            self._converse.reveal()
            self._panes.focus(self._pane)
        elif wish or question_of(text):
            self._ask(text, selection)
        else:
            self.instruct(text, selection)

    def _ask(self, text: str, selection: tuple[int, int] | None) -> None:
        """Have a question about what is on screen answered in words."""
        from midstream.pairing.request.kinds import question_of, wish_of

        chat, wish = self._state.session.chat, wish_of(text)
        self._notices.clear()
        question = self._about(wish or question_of(text), selection)
        self._converse.reveal()
        self._panes.focus(self._pane)
        self._sends(1)

        async def work() -> None:
            try:
                await chat.ask_question(question, plan=bool(wish))
            except UserError as error:
                self._composer.give_back(text)
                self._explain(error, text, selection)
                return
            finally:
                self._sends(-1)
            self._pane.mark = None

        self._work.run(work)

    def next_step(self) -> None:
        """Carry out the next step of the plan, as an instruction in its words."""
        steps = self._state.session.chat.steps
        if step := steps.next:
            self.instruct(step, typed=False)
        elif steps:
            self._notices.say("info", "Every step of the plan has been started.")
        else:
            self._notices.say("info", _NO_PLAN)

    def edit_plan(self) -> None:
        """Put the plan into the composer, to be sent again as it should be."""
        steps = self._state.session.chat.steps
        if not steps:
            self._notices.say("info", _NO_PLAN)
        elif self._composer.text.strip():
            self._notices.say("info", "Send or clear your text first.")
        else:
            self._composer.put(_editable(steps))
            self._panes.focus_composer()

    def instruct(
        self, text: str, selection: tuple[int, int] | None = None, *, typed: bool = True
    ) -> None:
        """Send an instruction for the lines in scope, or for ``selection``.

        Args:
            text: The instruction.
            selection: Lines that it is about.
            typed: Whether the user typed it, and gets it back if it cannot be sent.
        """
        state, session = self._state, self._state.session
        self._notices.clear()
        turns, stops = session.turns, self._stops
        # A text sent before the first turn has begun is about that turn as well.
        redirecting = (state.running and not turns.in_background) or self.sending
        question = self._about(text, selection)
        self._panes.focus(self._pane)
        self._sends(1)

        async def work() -> None:
            try:
                if self._stops != stops:
                    raise UserError("Stopped before the instruction was sent.")
                send = turns.instruct
                if redirecting and state.running and not turns.in_background:
                    send = turns.redirect_or_instruct
                await send(question)
                if self._stops != stops:
                    await turns.stop_turn()
            except UserError as error:
                if typed:
                    self._composer.give_back(text)
                self._explain(error, text, selection)
                return
            finally:
                self._sends(-1)
            self._pane.mark = None
            state.tried.add(text)
            await session.introduction.done()

        self._work.run(work)

    def _about(self, text: str, selection: tuple[int, int] | None) -> Question:
        """What a text asks about the lines in scope, or about ``selection``."""
        marked = selection or self._aim.marked_lines
        aim = self._aim
        return Question(text, self._state.path or None, aim.cursor_line, marked, aim.change)

    def _explain(
        self, error: UserError, text: str, selection: tuple[int, int] | None = None
    ) -> None:
        """Show why an instruction could not be sent; a question gets its answers as numbers."""
        from midstream.pairing.request.kinds import NotAnEditError
        from midstream.pairing.request.scope import WrongLanguageError
        from midstream.pairing.request.target import MAX_CHOICES, TargetUnclearError

        if isinstance(error, NeedsConsentError):
            self._ask_consent(error, text, selection)
            return
        if self._composer.text.strip():  # A step of a plan is not there: its key sends it again.
            self._panes.focus_composer()
        if isinstance(error, WrongLanguageError):
            key = self._panes.way_to(self._services.key_for("models"))
            self._notices.say("error", f"{error.problem}; {key} chooses another model.")
        elif isinstance(error, NotAnEditError):
            key = self._panes.way_to(self._services.key_for(error.action))
            self._notices.say("info", f"{error.problem}; {key} {error.does}.", outcome=True)
            self._aim.update()
        elif isinstance(error, TargetUnclearError) and error.candidates:
            choices: list[Choice] = [
                (each.label, lambda each=each: self._choose_target(each, text))
                for each in error.candidates[:MAX_CHOICES]
            ]
            self._notices.ask(error.question, *choices)
            # A number that is typed in the text by mistake must not take its place.
            self._composer.to_end()
            self._panes.focus(self._pane)
        elif isinstance(error, UsageError) and self._state.offline:
            key = self._services.key_for("models")
            self._notices.say("error", self._panes.with_way(f"Not sent: {error}", key))
        else:
            self._notices.say("error", str(error))

    def _choose_target(self, candidate: Candidate, text: str) -> None:
        """Put the cursor on a candidate, so that it is in scope, and send the text again."""
        path = candidate.path or self._state.path
        self._sends(1)

        async def work() -> None:
            try:
                opened = await self._navigate.open_path(path)
            finally:
                self._sends(-1)
            if not opened:
                return
            view = self._state.view
            lines = candidate.locate(view.proposal.composed().lines, view.proposal.path)
            if lines is None:
                key = self._services.key_for("select")
                self._notices.say(
                    "warning",
                    f"There is no {candidate.name} in {path}; mark the lines with {key} and send "
                    "again.",
                )
                return
            self._pane.go_to(view.row_of_base(view.to_base(lines[0])), centre=True)
            if self._composer.text.strip() == text:
                self._composer.take()
            self._deliver(text, lines)

        self._work.run(work)

    def _ask_consent(
        self, error: NeedsConsentError, text: str, selection: tuple[int, int] | None
    ) -> None:
        """Ask whether files may be sent; the text stays in the composer until then."""
        session = self._state.session
        names = ", ".join(error.paths)
        it = "it" if len(error.paths) == 1 else "them"
        whose = session.server.model_name or "the model"
        profile = session.server.profile
        where = f"{whose} at {profile.name}" if profile is not None and profile.name else whose

        def send() -> None:
            session.turns.allow(*error.paths)
            if self._composer.text.strip() == text:
                self._composer.take()
            self._deliver(text, selection)

        self._notices.ask(
            f"{error.problem}. Send {it} to {where}?",
            (f"send {names} and do not ask again in this session", send),
            ("do not send, back to the text", self._panes.focus_composer),
        )
        self._composer.to_end()
        self._panes.focus(self._pane if self._state.path else None)

    def queue(self) -> None:
        if not self._composer.text.strip():
            return
        if not self._state.running or self._aim.asks:
            self.send()
            return
        turns = self._state.session.turns
        turns.queue(self._composer.take())
        self._panes.focus(self._pane)
        many = counted(len(turns.queued), "instruction")
        self._notices.say("info", f"Queued; {many} will run when this answer ends.")
        self._state.refresh()

    # stopping

    def stop(self) -> None:
        """Stop the model; when nothing runs, a second time quits.

        Right after an answer has ended, the first time was meant for that answer.
        """
        if self._held:
            self._held = ""
            self._notices.say("info", "Not sent; your text stays here.")
        elif self._search is not None and not self._search.is_finished:
            self._search.cancel()
        elif self._converse.stop():
            return
        elif self.sending or self._state.running or self._state.status is SessionState.STOPPING:
            self._stops += 1
            # Not serial: stopping must not wait for a write in progress.
            self._work.beside(self._state.session.turns.stop_turn, "stop", exclusive=True)
        elif time.monotonic() - self._ended_at < LATE_S:
            self._ended_at = 0.0
            # A problem with the answer matters more than that it has ended.
            notice = self._panes.notice
            if not notice.is_shown or notice.level == "info":
                rest = "; its hunks wait for your decision" if self._state.waiting_by_path else ""
                self._notices.say("info", f"The answer had already ended{rest}.")
        else:
            key = self._services.key_for("model.stop")
            self._services.quit_if_repeated(key, "Nothing is running. ")

    # after an answer

    def turn_ended(self, turn: Turn) -> None:
        """Report the outcome of a turn."""
        session = self._state.session
        if turn.status is TurnStatus.DONE:
            self._ended_at = time.monotonic()
            if turn.next and not self._composer.text:
                self._composer.put(turn.next)
        if turn.status is TurnStatus.FAILED:
            self._turn_failed(turn)
            return
        if turn.status is TurnStatus.STOPPED:
            if any(session.hunks.get(each).state is HunkState.HELD for each in turn.hunks):
                return  # The guard has stopped it and has said so.
            waiting = len(session.hunks.undecided(turn.path))
            what = "no hunk was complete, so nothing is proposed"
            if waiting:
                what = f"{counted(waiting, 'hunk')} to decide"
            if count := len(session.turns.queued):
                key_for, one = self._services.key_for, "it" if count == 1 else "one"
                how = f"{key_for('composer.send')} in the empty line"
                if not self._panes.composing:
                    how = f"{key_for('compose')} and then {key_for('composer.send')}"
                what += f"; {counted(count, 'instruction')} queued, {how} takes {one} back"
            text = f"Stopped after {turn.written}; {what}."
            self._notices.say("info", text, outcome=True)

    def _turn_failed(self, turn: Turn) -> None:
        step = self._state.session.chat.steps.carried_out_by(turn)
        if not (turn.background or step or self._composer.text.strip()):
            self._composer.give_back(turn.instruction)
        if turn.again:
            how = "the next instruction"
            if step:  # It stays in the plan.
                how = self._services.key_for("plan.next")
            elif self._composer.text == turn.instruction:
                how = self._services.key_for("composer.send")
            self._notices.say("error", f"{turn.error.rstrip('.')}; {how} {turn.again}.")
        elif turn.error:
            self._notices.say("error", turn.error)

    def say_failures(self) -> None:
        """After a turn, say that edits did not match, and which key shows them."""
        if not (count := self._state.failed_edits):
            return
        key, notice = self._services.key_for("failures"), self._panes.notice
        before = ""
        if notice.is_shown and notice.level in ("warning", "error"):
            before = f"{notice.text.rstrip('.')}. "
        many = counted(count, "edit")
        self._notices.say("warning", f"{before}{many} did not match; {key} shows what differs.")

    def advise(self) -> None:
        """Once a session: changes across many files are work for a larger model."""
        from midstream.pairing.models.choosing import advice

        session = self._state.session
        if self._advised or self._panes.notice.is_shown:
            return
        here = session.server.profile is None and not self._services.given_endpoint
        if words := advice("", sorted({hunk.path for hunk in session.hunks}), here=here):
            self._advised = True
            key = self._services.key_for("models")
            self._notices.say("info", f"{words[:-1]}; {key} shows which.", outcome=True)

    # about a hunk

    def comment(self) -> None:
        hunk, view = self._pane.hunk, self._state.view
        if hunk is None:
            raise NotNowError("Put the cursor on a hunk first.")
        self._navigate.reveal(hunk)
        self._panes.focus_composer()
        if not self._aim.is_chat:
            # An edit model would take the place for a part of the change.
            self._notices.say(
                "info",
                "Describe the whole change: this model reads only the lines marked on the left "
                "and your instruction.",
            )
        elif not self._composer.text.strip():
            line = f"{view.to_written(hunk.start) + 1:,}"
            chip = f"[hunk at line {line}]"
            self._aim.comment_on(chip, hunk)
            self._composer.put_chip(
                chip, f"About the hunk at line {line} (`{visible(hunk.headline)}`):"
            )

    def ask_again(self, why: str, hunk: Hunk) -> None:
        """Send the reason for rejecting a hunk, for its function or for new code like it."""
        from midstream.code.outline import declared_names

        turn = self._state.session.turns.of(hunk)
        if turn is not None and not hunk.old and declared_names(hunk.path, "\n".join(hunk.new)):
            # The hunk is gone: the instruction alone says what to change, and where.
            self.instruct(f"{turn.instruction.rstrip('. ')}. {why}")
        else:
            self.instruct(why, self._aim.lines_to_redo(hunk))

    def elsewhere(self) -> None:
        """Repeat the change of the hunk under the cursor wherever else it is needed."""
        session, hunk = self._state.session, self._pane.hunk
        if hunk is None:
            raise NotNowError("Put the cursor on a hunk first, to repeat it elsewhere.")
        self._navigate.refuse_if_unseen(hunk)
        hunk_id = hunk.id
        stop = self._services.key_for("model.stop")

        def progress(looked_at: int, of: int) -> None:
            self._notices.say(
                "info", f"Looking for uses: {looked_at:,} of {of:,} places; {stop} ends it."
            )

        async def work() -> None:
            if files := await session.background.elsewhere(hunk_id, progress=progress):
                where = counted(files, "file")
                self._notices.say(
                    "info",
                    f"Asking the model for the same change in {where}.",
                )

        # Not serial: a search takes seconds, and keys must not wait for it.
        self._search = self._work.beside(work, "elsewhere", exclusive=True)

    # modes

    def continuous(self) -> None:
        session = self._state.session
        on = not session.background.continuous

        async def work() -> None:
            await session.background.set_continuous(on=on)
            key = self._services.key_for("continuous")
            self._notices.say(
                "info",
                f"Continuous mode: saving a change asks for follow-on edits; {key} ends it."
                if on
                else "Continuous mode is off.",
            )
            self._state.refresh()

        self._work.run(work)

    def review_external(self) -> None:
        """Review what other programs write, open what was set aside, or stop."""
        session = self._state.session
        review, key = session.review, self._services.key_for("review.external")

        async def look() -> None:
            with garbage.keeping():
                said = await review.look()
            self._notices.say("info", said)
            self._state.refresh()

        async def work() -> None:
            if review.on:
                review.switch_off()
                text = "New changes by other programs are no longer reviewed."
            else:
                await review.switch_on(since_commit=False)
                text = (
                    f"Changes by other programs now wait for your decision; {key} ends the review."
                )
            self._notices.say("info", text)
            self._state.refresh()

        if review.aside:
            self._work.beside(look, "review")  # The first files are decided meanwhile.
        else:
            self._work.run(work)

    def tell_agent(self) -> None:
        """Tell the agent what was put back, in the best way available."""
        session = self._state.session
        feedback, agent = session.feedback, session.agent
        what = counted(feedback.waiting, "put-back")
        if not feedback.waiting:
            text = NOTHING_TO_TELL
        elif agent.on:
            agent.send(feedback.tell())
            text = f"{agent.title} will be told of {what}."
        elif session.gate.heard:
            feedback.approve()
            text = f"The agent is told of {what} with its next edit, or when it wants to stop."
        else:
            self._services.copy_to_clipboard(feedback.tell())
            text = f"Copied: a message about {what}; paste it to the agent."
        self._notices.say("info", text)
        self._state.refresh()

    def effort(self) -> None:
        from midstream.pairing.models.choosing import efforts_of

        session = self._state.session
        if self._converse.on:
            self._converse.choose()
            return
        profile = session.server.profile
        own = profile is None or profile.dialect.midstream
        words = _OWN_EFFORT if own else _HOSTED_EFFORT
        rows = [
            ListRow(
                level,
                ((level, "foreground"),),
                ((f"  {words.get(level, 'passed on to the endpoint')}", "muted"),),
            )
            for level in efforts_of(profile)
        ]

        def chosen(level: str | None) -> None:
            if level is None or level == session.turns.effort:
                return
            session.turns.effort = level
            self._notices.say("info", f"Effort {level} from the next instruction on.")
            self._state.refresh()

        picker = PickerScreen(
            self._services,
            "Effort for the next answers",
            rows,
            select=session.turns.effort,
        )
        self._services.open_screen(picker, chosen)
