"""The target of the next instruction: its lines in the gutter, and the context sent with it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from textual.timer import Timer

from midstream.errors import UserError
from midstream.pairing.request.mentions import named_with_file, with_at_paths, without_mentions
from midstream.pairing.request.question import Question
from midstream.responses.model_info import REGION_FORMATS
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.visible import visible
from midstream.tui.widgets.composer import ASK_HINT, HINT, REDIRECT_HINT

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.pairing.request.sent import Sent
    from midstream.pairing.request.target import Target, TargetUnclearError
    from midstream.pairing.session import PairingSession
    from midstream.tui.diff.view import FileView

MAX_PREVIEW_LINES: Final = 10_000
"""Files with more lines get no preview of the region: finding it means parsing them."""
QUICK_PREVIEW: Final = 400
"""Files with fewer lines get theirs at once, others when the keys pause."""
MAX_SEARCHED: Final = 2_000
"""In folders with more files, a name that the open file lacks is looked up once it is sent."""
PAUSE_S: Final = 0.12
"""How long the keys rest before the target is looked up."""
CONTEXT_PAUSE_S: Final = 0.2
"""How long the keys rest before the context is looked up."""


class Aim(Controller):
    """Finds and shows the lines and the context of the next instruction.

    Line numbers here are those of the file on disk, as the session counts them.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._aim_timer: Timer | None = None
        self._context_timer: Timer | None = None
        self._previewed: Question | None = None
        self._elsewhere: tuple[Question, str, str] | None = None
        """A draft that is about another file, or about none, with the place and why."""
        self._comments: dict[str, int] = {}
        """Hunks by the chips that stand for them in the composer."""

    # lines

    @property
    def cursor_line(self) -> int | None:
        view = self._state.view
        return view.written_at(self._pane.cursor) if view.size else None

    @property
    def marked_lines(self) -> tuple[int, int] | None:
        rows, view = self._pane.selection_rows, self._state.view
        if rows is None:
            return None
        start, stop = view.written_at(rows[0]), view.written_at(rows[1] - 1) + 1
        return start, max(stop, start + 1)

    def comment_on(self, chip: str, hunk: Hunk) -> None:
        """A chip in the composer stands for this hunk from now on."""
        self._comments[chip] = hunk.id

    @property
    def _commented(self) -> tuple[Hunk, str] | None:
        """The hunk the text comments on, and its name there."""
        text = self._composer.field.text
        found = ((chip, i) for chip, i in self._comments.items() if chip in text)
        chip, hunk_id = next(found, ("", 0))
        if not chip:
            return None
        hunk = self._state.session.hunks.get(hunk_id)
        live = hunk.live and hunk.path == self._state.path
        return (hunk, chip.strip("[]")) if live else None

    @property
    def commented_lines(self) -> tuple[int, int] | None:
        """The lines a comment on a hunk is about, whatever its code mentions."""
        found = None if self._commented is None else self._find_scope()
        return None if found is None or isinstance(found, str) else (found.start, found.stop)

    def _find_scope(self) -> Target | str:
        """The region for the text so far, or why there is none."""
        from midstream.code.outline import outline
        from midstream.pairing.request.several import first_of_several
        from midstream.pairing.request.target import TargetUnclearError, find_target

        view, commented = self._state.view, self._commented
        if not self._state.path or len(view.proposal.base.lines) > MAX_PREVIEW_LINES:
            return "mark lines with v, or name a function"
        try:
            if commented is not None:
                hunk, name = commented
                return replace(self._around(hunk, view), why=f"about the {name}")
            text = with_at_paths(self._composer.text, lambda: self._state.files)
            composed, path = view.proposal.composed(), self._state.path.rpartition("/")[2]
            model = self._state.session.server.model_info
            parts = None
            if model.edit_format in REGION_FORMATS and self.marked_lines is None:
                parts = first_of_several(text, outline(composed.lines, path))
            target = find_target(
                composed,
                instruction=without_mentions(text if parts is None else parts.asked),
                symbol=named_with_file(text, self._state.path),
                cursor=self.cursor_line,
                selection=self.marked_lines,
                max_lines=model.max_region_lines,
                path=path,
            )
            return target if parts is None else replace(target, later=parts.rest)
        except TargetUnclearError as error:
            return _first_sentence(error)

    def _around(self, hunk: Hunk, view: FileView) -> Target:
        """The function or class of a hunk; raises ``TargetUnclearError`` where there is none."""
        from midstream.pairing.request.target import find_target

        return find_target(
            view.proposal.composed(),
            instruction="",
            cursor=view.to_written(hunk.start),
            max_lines=self._state.session.server.model_info.max_region_lines,
            path=view.proposal.path,
        )

    def lines_to_redo(self, hunk: Hunk) -> tuple[int, int]:
        """The lines to ask for once more where a hunk was rejected: its function, or its own.

        Where a line was wrong, the right one may belong elsewhere in the function.
        """
        from midstream.pairing.request.target import TargetUnclearError

        view = self._state.view
        start = view.to_written(hunk.start)
        stop = view.to_written(max(hunk.stop, hunk.start + 1))
        with suppress(TargetUnclearError):
            found = self._around(hunk, view)
            if found.start <= start and stop <= found.stop:
                return found.start, found.stop
        return start, stop

    # the model

    @property
    def is_chat(self) -> bool:
        """Whether the model is a chat model, which gets more than the lines."""
        session = self._state.opened
        return session is not None and session.server.reached and session.server.model_info.is_chat

    @property
    def _reads_region_first(self) -> bool:
        """Whether the model can read the lines before there is a word about them."""
        session = self._state.opened
        return session is not None and session.server.model_info.reads_region_first

    @property
    def _finds_places(self) -> bool:
        """Whether the model finds the lines itself."""
        return self.is_chat and self._state.session.server.model_info.finds_places

    @property
    def asks(self) -> bool:
        """Whether the text so far is a question, which is answered in words."""
        from midstream.pairing.request.kinds import question_of, wish_of

        text = self._composer.text.strip()
        return text.startswith("?") or bool(question_of(text) or wish_of(text))

    @property
    def _sets_plan(self) -> bool:
        """Whether the text so far is the steps of a plan, which become the plan as they are."""
        from midstream.pairing.chat.plan import written_steps
        from midstream.pairing.request.kinds import wish_of

        return bool(written_steps(wish_of(self._composer.text)))

    # showing

    def update_soon(self) -> None:
        """Update now, or when the keys pause where finding the region takes a moment."""
        if self._aim_timer is not None:
            self._aim_timer.stop()
            self._aim_timer = None
        if len(self._state.view.proposal.base.lines) > QUICK_PREVIEW:
            self._aim_timer = self._pane.set_timer(PAUSE_S, self.update)
        else:
            self.update()

    def update(self) -> None:
        """Show what the next instruction is about, and soon what is sent with it."""
        self._show_scope()
        self._look_up_context_soon()

    def _show_scope(self) -> None:
        """Show the lines in the gutter and above the text."""
        state, pane, view = self._state, self._pane, self._state.view
        title, active = self._composer.title, self._panes.composing
        session = state.opened
        # A background turn gives way to an instruction; it is not redirected.
        redirecting = state.running and not state.session.turns.in_background
        verb = "Ask" if state.read_only else "Instruct"
        hint = REDIRECT_HINT if redirecting else ASK_HINT if state.read_only else HINT
        if not active:  # letters are keys now
            does = "ask about the code" if state.read_only else "write to the model"
            does = "redirect the model" if redirecting else does
            if session is not None and session.agent.on:
                does = f"write to {visible(session.agent.title)}"
            hint = f"press {self._services.key_for('compose')} to {does}"
        self._composer.field.placeholder = hint
        if session is not None and session.agent.on:
            pane.strips.scope = None
            title.show(f"To {session.agent.title}", "", "the agent chooses where", active=active)
            pane.repaint()
            return
        if active and self.asks:
            from midstream.pairing.request.kinds import NotAnEditError, check_answers, wish_of

            pane.strips.scope = None
            how, model = "answered in text; no file is changed", ""
            if self._sets_plan:
                how = "these steps become the plan"
            elif session is not None:
                model = session.server.model_name
                try:
                    check_answers(session.server.model_info)
                except NotAnEditError as error:  # Once it was sent, a notice says so.
                    key = self._panes.way_to(self._services.key_for(error.action))
                    shown = self._panes.notice.is_shown
                    how = "" if shown else f"{error.problem}; {key} {error.does}"
            what = "Plan" if wish_of(self._composer.text) else "Ask"
            title.show(what, model, how, active=True)
            pane.repaint()
            return
        if redirecting:
            turn, path = state.turn, state.written_path
            target = path if turn is None or path != turn.path else f"{path} {turn.symbol}".strip()
            pane.strips.scope = None
            title.show("Redirect", target, "complete hunks stay", active=active)
            pane.repaint()
            return
        if self._elsewhere is not None and self._elsewhere[0] == self._draft:
            pane.strips.scope = None
            title.show(verb, *self._elsewhere[1:], active=active)
            pane.repaint()
            return
        if not state.path:
            how = "name a file with @" if self._finds_places else "name a function of this folder"
            title.show(verb, "", f"{how}, or open a file first", active=active)
            return
        target = self._find_scope()
        if isinstance(target, str):
            pane.strips.scope = None
            if self._finds_places:
                target = "the model chooses where"
            title.show(verb, state.path, target, active=active)
        else:
            scope = pane.strips.scope = view.to_base(target.start), view.to_base(target.stop)
            lines = f"lines {target.start + 1}-{target.stop}"
            if target.stop - target.start == 1:
                lines = f"line {target.stop}"
            elif target.stop == target.start:  # an empty file, or one that is gone
                lines = ""
            words = f"{target.symbol}, {lines}" if target.symbol else lines
            words += f", then {target.later}" if target.later else ""
            title.show(verb, f"{state.path}  {words}".rstrip(), target.why, active=active)
            if active:
                # Keep the lines of the instruction in view, unless the cursor is in a visible part.
                first, last = view.row_of_base(scope[0]), view.row_of_base(scope[1] - 1)
                here = first <= pane.cursor <= last and pane.shows(pane.cursor, pane.cursor + 1)
                if not here and not pane.shows(first, min(last + 1, first + pane.height)):
                    pane.show_rows(first, last + 1)
        pane.repaint()

    # context

    @property
    def _draft(self) -> Question | None:
        text = self._composer.text.strip()
        session = self._state.opened
        to_agent = session is not None and session.agent.on
        if to_agent or not self._panes.composing or not (text or self._reads_region_first):
            return None
        return self._written

    @property
    def _written(self) -> Question | None:
        """What the text in the field asks, whether or not the user is in it."""
        if self._sets_plan:  # nothing of it is sent
            return None
        text = self._composer.text.strip()
        lines = self.commented_lines or self.marked_lines
        return Question(text, self._state.path or None, self.cursor_line, lines)

    @property
    def change(self) -> str:
        """The hunk under the cursor with its group, for a question about it."""
        hunk = self._pane.hunk
        return "" if hunk is None else self._state.session.walk.told(hunk)

    async def rehearsed(self) -> Sent | None:
        """The request that the text would make; ``None`` of a redirect, which adds the text only.

        Raises:
            UserError: It would be refused; without a request to show in its place.
        """
        from midstream.pairing.request.kinds import question_of, wish_of

        session, draft = self._state.session, self._written
        if session.agent.on or draft is None or not draft.text:
            return None
        draft = replace(draft, change=self.change)
        try:
            if self.asks:
                wish = wish_of(draft.text)
                asked = replace(draft, text=wish or question_of(draft.text))
                return await session.chat.rehearse(asked, plan=bool(wish))
            if not self._state.running or session.turns.in_background:
                return await session.turns.rehearse(draft)
        except UserError:
            if not session.sent:
                raise
        return None

    @property
    def previews(self) -> bool:
        """Whether anything is sent along with the instruction being written."""
        free = self.asks or not self._state.running
        return self._draft is not None and free and self.is_chat

    def _look_up_context_soon(self) -> None:
        """Look the context up once the keys rest, and let the model read ahead."""
        if self._context_timer is not None:
            self._context_timer.stop()
            self._context_timer = None
        draft = self._draft
        if not self.previews:
            self._composer.title.show_along("", "")
        if draft is None:
            self._previewed = None
        elif draft != self._previewed:
            self._context_timer = self._pane.set_timer(CONTEXT_PAUSE_S, self._look_up_context)

    def _look_up_context(self) -> None:
        self._work.beside(self._preview, "preview", exclusive=True)

    async def _preview(self) -> None:
        session, draft = self._state.opened, self._draft
        if session is None or draft is None:
            return
        # Built only here: every key compares drafts, and the change is not part of that.
        draft = replace(draft, change=self.change)
        self._previewed = draft
        if self.previews:
            await self._show_context(session, draft)
        await self._read_ahead(session, draft)
        if self.previews and await session.turns.related_found() and draft == self._draft:
            await self._show_context(session, draft)

    async def _read_ahead(self, session: PairingSession, draft: Question) -> None:
        if self.asks:
            return
        await self._show_other_file(session, draft)
        if draft.path is None or draft != self._draft:
            return
        await session.turns.read_ahead(draft)
        if self._state.running and draft == self._draft:
            # The text that a redirect would continue from is growing meanwhile.
            self._context_timer = self._pane.set_timer(CONTEXT_PAUSE_S, self._look_up_context)

    async def _show_other_file(self, session: PairingSession, draft: Question) -> None:
        """Show the target if the text names one outside the open file."""
        from midstream.pairing.request.target import TargetUnclearError

        if self._state.running or draft.selection is not None or not self._may_leave(draft.text):
            return
        try:
            scope = await session.turns.aim(draft)
        except TargetUnclearError as error:
            if error.candidates or not self._finds_places:
                said = error.question if error.candidates else _first_sentence(error)
                self._elsewhere = draft, "", said
        except UserError as error:
            if not self._finds_places:
                self._elsewhere = draft, "", str(error)
        else:
            path = scope.proposal.path
            if path != draft.path:
                self._elsewhere = draft, f"{path}  {scope.place}", scope.target.why
        self._show_scope()

    def _may_leave(self, text: str) -> bool:
        """Whether a text may be about another file than the open one."""
        from midstream.pairing.request.new_code import find_new_code

        files = self._state.files
        if "@" in with_at_paths(text, lambda: files) or find_new_code(text) is not None:
            return True
        target = self._find_scope()
        missing = isinstance(target, str) or bool(target.undefined)
        return missing and len(files) <= MAX_SEARCHED

    async def _show_context(self, session: PairingSession, draft: Question) -> None:
        context, trouble = None, ""
        try:
            preview = session.chat.preview if self.asks else session.turns.preview
            context = await preview(draft)
        except UserError as error:
            trouble = str(error)
        if draft != self._draft or session is not self._state.session:
            return
        title = self._composer.title
        if context is None:
            title.show_along(trouble, "")
        else:
            missing = context.missing
            key = self._services.key_for("context")
            title.show_along(
                context.summary.replace(" (cut)", ""),
                f"{missing}; {key} shows it" if missing else key,
            )


def _first_sentence(error: TargetUnclearError) -> str:
    text = str(error)
    return text if len(text) <= 90 else text.split(";")[0].split(":")[0]
