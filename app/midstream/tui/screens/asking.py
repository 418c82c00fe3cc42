"""What is around an instruction: what goes along with it, consent, effort, what found no place.

Shows and asks; sending is ``steering``'s, and what goes along is the session's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.timer import Timer

from midstream.errors import UserError
from midstream.pairing.turns import Turn, TurnStatus
from midstream.tui.screens.reading import Paragraph, ReadingScreen
from midstream.tui.screens.viewing import ViewActions
from midstream.tui.widgets.row_list import ListRow

if TYPE_CHECKING:
    from midstream.pairing.context import Context
    from midstream.pairing.scope.mentions import NeedsConsentError
    from midstream.pairing.session import PairingSession

PREVIEW_PAUSE_S: Final = 0.2
"""How long the keys rest before it is looked up what would go along."""
_OWN_EFFORT: Final = {
    "auto": "as low, one pass",
    "low": "one pass",
    "medium": "one pass, checked; a finding is corrected once",
    "high": "4 candidates, the best by the checks and your test command",
    "xhigh": "8 candidates, the best by the checks and your test command",
}
_HOSTED_EFFORT: Final = {"auto": "as the endpoint does by itself"}


class AskActions(ViewActions):
    """Preview of the context, consent, effort, and the edits without a place."""

    _preview_timer: Timer | None = None
    _previewed: tuple[object, ...] = ()
    _along: Context | None = None
    _advised = False

    # what goes along

    def preview_soon(self) -> None:
        """Look up what would go along once the keys rest, and have it read ahead."""
        if self._preview_timer is not None:
            self._preview_timer.stop()
            self._preview_timer = None
        typed = self._written
        if not self._previews:
            self._along = None
            self.composer.title.show_along("", "")
        if typed is None:
            self._previewed = ()
        elif typed != self._previewed:
            self._preview_timer = self.set_timer(PREVIEW_PAUSE_S, self._look_along)

    @property
    def _written(self) -> tuple[str, str | None, int | None, tuple[int, int] | None] | None:
        """The instruction that is being written, and where."""
        text = self.composer.text.strip()
        if not text or not self.composer.has_focus_within:
            return None
        marked = self.commented_lines or self.marked_lines
        return text, self.path or None, self.cursor_line, marked

    @property
    def _previews(self) -> bool:
        """Whether anything is added to the instruction that is being written."""
        return self._written is not None and not self.running and self.talks

    def _look_along(self) -> None:
        self.run_worker(self._preview(), group="preview", exclusive=True)

    async def _preview(self) -> None:
        session, typed = self.session, self._written
        if session is None or typed is None:
            return
        self._previewed = typed
        text, path, cursor, marked = typed
        if self._previews:
            await self._show_along(session, typed)
        if path is None or typed != self._written:
            return
        await session.read_ahead(text, path=path, cursor=cursor, selection=marked)
        if self.running and typed == self._written:
            # What a redirect goes on from grows meanwhile.
            self._preview_timer = self.set_timer(PREVIEW_PAUSE_S, self._look_along)

    async def _show_along(
        self,
        session: PairingSession,
        typed: tuple[str, str | None, int | None, tuple[int, int] | None],
    ) -> None:
        text, path, cursor, marked = typed
        context, trouble = None, ""
        try:
            context = await session.preview(text, path=path, cursor=cursor, selection=marked)
        except UserError as error:
            trouble = str(error)
        if typed != self._written or session is not self.session:
            return
        self._along = context
        title = self.composer.title
        if context is None:
            title.show_along(trouble, "")
        else:
            count = len(context.cuts)
            key = self.program.key_for("context")
            title.show_along(
                context.summary.replace(" (cut)", ""),
                f"{count} cut{'s' * (count != 1)}, {key}" if count else key,
            )

    def action_context(self) -> None:
        """What goes along with the instruction, and what of it is cut."""
        session = self.session
        if session is None:
            return
        context, heading = session.context, "With the last instruction went"
        if self._along is not None and self._previews:
            context, heading = self._along, "With this instruction goes"
        turn = session.turn
        if not context.parts:
            self.say(
                "info",
                "Nothing was sent yet; write an instruction, and this page shows what goes along.",
            )
            return
        names = min(48, max(len(part.name) for part in context.parts))
        lines = [
            (
                f"{part.name:<{names}}  {part.tokens:>7,} tokens"
                + (f", cut to {part.cut}" if part.cut else ""),
                "warning" if part.cut else "foreground",
            )
            for part in context.parts
        ]
        used = (
            f"{'together':<{names}}  {context.tokens:>7,} of at most {context.limit:,}, estimated"
        )
        paragraphs = [Paragraph(heading, (*lines, (used, "muted")))]
        if context.left_out:
            lines = [(words, "warning") for words in context.left_out]
            paragraphs.append(Paragraph("Left out", tuple(lines)))
        if turn is not None and turn.tried:
            paragraphs.append(Paragraph("The last answer", ((f"{turn.tried}.", "foreground"),)))
        self._read("What the model gets", paragraphs)

    def _read(self, title: str, paragraphs: list[Paragraph]) -> None:
        self.program.push_screen(ReadingScreen(self.program.palette, title, paragraphs))

    # consent

    def ask_consent(
        self, error: NeedsConsentError, text: str, selection: tuple[int, int] | None
    ) -> None:
        """Ask whether ignored files may go out; the text stays in the composer until they may."""
        session = self.session
        if session is None:
            return
        names = ", ".join(error.paths)
        one = len(error.paths) == 1
        whose = session.model_name or "the model"
        profile = session.profile
        where = f"{whose} at {profile.name}" if profile is not None and profile.name else whose

        def send() -> None:
            session.allow(*error.paths)
            if self.composer.text.strip() == text:
                self.composer.take()
            self.send(text, selection=selection)

        self.ask(
            f"Git ignores {names}, so {'it' if one else 'they'} may hold secrets. "
            f"Send {'it' if one else 'them'} to {where}?",
            (f"send {names}; not asked again in this session", "do not send, back to the text"),
            (send, lambda: self.set_focus(self.composer.field)),
        )
        self.set_focus(self.pane if self.view is not None else None)

    # effort

    def action_effort(self) -> None:
        """Choose how much is done for an answer."""
        from midstream.pairing.choosing import efforts_of

        session = self.session
        if session is None:
            return
        profile = session.profile
        own = profile is None or profile.dialect.midstream
        words = _OWN_EFFORT if own else _HOSTED_EFFORT
        levels = efforts_of(profile)
        rows = [
            ListRow(
                level,
                ((level, "foreground"),),
                ((f"  {words.get(level, 'passed on to the endpoint')}", "muted"),),
            )
            for level in levels
        ]

        def chosen(level: str | None) -> None:
            if level is None or level == session.effort:
                return
            session.effort = level
            self.say("info", f"Effort {level} from the next instruction on.")
            self.refresh_facts()

        picker = self._picker("Effort for the next answers", rows, select=session.effort)
        self.program.push_screen(picker, chosen)

    # what found no place

    @property
    def failed_edits(self) -> int:
        """Edits of the last answer that found no place."""
        turn = None if self.session is None else self.session.turn
        return 0 if turn is None or turn.running else len(turn.failures)

    def tell_failures(self) -> None:
        """Say after a turn that edits found no place, and which key shows them."""
        if not (count := self.failed_edits):
            return
        many = f"{count} edit{'s' * (count != 1)}"
        key = self.program.key_for("failures")
        before = ""
        if self.notice.is_shown and self.notice.level in ("warning", "error"):
            before = f"{self.notice.text.rstrip('.')}. "
        self.say("warning", f"{before}{key} shows {many} without a place and what differs.")

    def action_failures(self) -> None:
        """The edits of this session that found no place, and why."""
        session = self.session
        turns = [] if session is None else [turn for turn in session.turns if turn.failures]
        if session is None or not turns:
            self.say("info", "Every edit of this session has found its place.")
            return
        self._read(
            "Edits without a place", [_of_turn(turn, session.turns) for turn in reversed(turns)]
        )

    # advice

    def advise(self) -> None:
        """Once a session: work over many files is for a deeper model."""
        from midstream.pairing.choosing import advice

        session = self.session
        if session is None or self._advised or self.notice.is_shown:
            return
        here = session.profile is None and not self.program.given_endpoint
        if words := advice("", sorted({hunk.path for hunk in session.hunks}), here=here):
            self._advised = True
            key = self.program.key_for("models")
            self.say("info", f"{words[:-1]}; {key} shows which.", outcome=True)


def _of_turn(turn: Turn, turns: list[Turn]) -> Paragraph:
    lines: list[tuple[str, str]] = []
    for number, failure in enumerate(turn.failures, 1):
        sentence, _, rest = failure.partition("\n")
        lines.append((f"{number}  {sentence}", "foreground"))
        lines += [(f"   {line}", "muted") for line in rest.split("\n") if rest]
    after = next((later for later in turns if later.redirected_from == turn.id), None)
    if after is not None and after.correction:
        done = after.status is TurnStatus.DONE and not after.failures
        lines.append(
            (
                "The model was asked again and found the places."
                if done
                else "The model was asked again; see above.",
                "success" if done else "muted",
            )
        )
    return Paragraph(f"{turn.path}: {turn.instruction}", tuple(lines))
