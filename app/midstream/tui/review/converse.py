"""The conversation on the review screen: when it is shown, what is sent, what is answered."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.edits.lcs import line_edits
from midstream.errors import UserError
from midstream.tui.notices import Choice, ScreenWork
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.review.aim import Aim
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.review.navigate import Navigate
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow

if TYPE_CHECKING:
    from midstream.agents.messages import PermissionQuestion, ToolDiff
    from midstream.pairing.agent_conversation import AgentConversation
    from midstream.pairing.agent_partner import AgentPartner

BESIDE_FROM: Final = 110
"""Columns from which the conversation stands beside the code, not below it."""
MOST_ASKED: Final = 120
"""Characters of a question on the notice line: two rows of it where there are 80 columns."""


class Converse(Controller):
    """Actions on the conversation with a coding agent."""

    def __init__(self, shared: Shared, navigate: Navigate, aim: Aim) -> None:
        super().__init__(shared)
        self._navigate = navigate
        self._aim = aim
        self._hidden = False
        self._showing = ScreenWork(shared.panes.screen, shared.notices, shared.services)
        """Apart from what keys ask for, which is not to wait for it."""
        self._due = False
        self._about = ("", False, False)
        self._asked: PermissionQuestion | None = None

    @property
    def _partner(self) -> AgentPartner | None:
        session = self._state.session
        return session.agent if session is not None and session.agent.on else None

    @property
    def on(self) -> bool:
        """Whether instructions go to an agent."""
        return self._partner is not None

    @property
    def choices(self) -> int:
        """How many answers the agent's open question has."""
        conversation = self._partner and self._partner.conversation
        return len(conversation.options) if conversation else 0

    def send(self, text: str) -> None:
        """Send a text to the agent, or keep it until the agent is done."""
        if (partner := self._partner) is None:
            return
        if partner.send(text):
            stop = self._services.key_for("model.stop")
            when = "has started" if partner.starting else f"is done; {stop} stops it"
            self._notices.say("info", f"Sent when {partner.title} {when}.")
        self._panes.focus(self._pane)
        self._state.refresh()

    def stop(self) -> bool:
        """Stop the agent; whether it was at work."""
        partner = self._partner
        if partner is None or not partner.busy:
            return False
        partner.stop()
        self._notices.say("info", f"Stopping {partner.title}; what it has written stays.")
        return True

    def answer(self, number: int) -> bool:
        """Give the answer with this number, from 1; whether there was a question."""
        conversation = self._partner and self._partner.conversation
        options = conversation.options if conversation else ()
        if conversation and 1 <= number <= len(options):
            self._notices.clear()
            conversation.answer(options[number - 1])
        return bool(options)

    def toggle(self) -> None:
        """Show or hide the conversation."""
        if self._partner is None:
            self._notices.say(
                "info", "There is no conversation; `midstream agent claude` starts an agent here."
            )
            return
        self._hidden = not self._hidden
        self.refresh()

    def choose(self) -> None:
        """Choose the agent's mode, model or the like."""
        if (partner := self._partner) is None:
            return
        conversation = partner.conversation
        if conversation is None or not conversation.choices:
            why = "has not started yet" if conversation is None else "lets nothing be chosen here"
            self._notices.say("info", f"{partner.title} {why}.")
            return
        values = [(choice, value) for choice in conversation.choices for value in choice.values]
        names = max(len(visible(choice.name)) for choice in conversation.choices)
        rows: list[ListRow] = []
        current: str | None = None
        for number, (choice, value) in enumerate(values):
            here = value.value == choice.current
            if here and current is None:
                current = str(number)
            rows.append(
                ListRow(
                    str(number),
                    (
                        (f"{visible(choice.name):<{names}}  ", "muted"),
                        (visible(value.name), "foreground!" if here else "foreground"),
                        ("  in use" if here else "", "success"),
                    ),
                    ((visible(value.description), "muted"),) if value.description else (),
                )
            )

        def chosen(taken: str | None) -> None:
            if taken is None:
                return
            choice, value = values[int(taken)]
            if value.value != choice.current:
                partner.choose(choice, value)

        title = f"How {visible(partner.title)} works"
        picker = PickerScreen(self._services, title, rows, select=current, browse=True)
        self._services.open_screen(picker, chosen)

    def scroll_up(self) -> None:
        """Move towards what was said before."""
        if self._panes.conversation is not None:
            self._panes.conversation.scroll(-10)

    def scroll_down(self) -> None:
        """Move towards the end."""
        if self._panes.conversation is not None:
            self._panes.conversation.scroll(10)

    def refresh(self) -> None:
        """Show what the agent has said, done and asked since the last time."""
        if not self._due:
            self._due = True
            self._showing.run(self._show)

    def lay_out(self) -> None:
        """Have the conversation stand beside the code or below it."""
        screen, view = self._panes.screen, self._panes.conversation
        below = view is not None and screen.size.width < BESIDE_FROM
        screen.set_class(below, "-conversation-below")
        if view is not None:
            view.place(below=below)

    async def open_file(self, path: str) -> None:
        """Show a file that a tool is about."""
        rel = self._relative(path)
        if rel and not await self._navigate.open_path(rel):
            raise UserError(f"{rel} cannot be shown.")

    async def _show(self) -> None:
        self._due = False  # what is heard from now on is for the next time
        partner, panes = self._partner, self._panes
        # What is asked about can be read in full here only.
        hidden = self._hidden and not (partner is not None and partner.asking)
        if (partner is None or hidden) and panes.conversation is not None:
            await panes.conversation.remove()
            panes.conversation = None
            self.lay_out()
        if partner is None:
            self._asked, self._about = None, ("", False, False)
            self._aim.update()
            return
        if panes.conversation is None and not hidden:
            from midstream.tui.conversation.pane import ConversationPane

            services = self._services
            panes.conversation = ConversationPane(services.palette, services.glyphs, services.root)
            self.lay_out()
            await panes.body.mount(panes.conversation)
        if panes.conversation is not None:
            await panes.conversation.show(partner.title, partner.conversation)
        about = partner.title, partner.busy, partner.asking
        if about != self._about:
            self._about = about
            self._state.refresh()
            self._aim.update()
        if partner.conversation is not None:
            self._show_question(partner.title, partner.conversation)

    def _show_question(self, title: str, conversation: AgentConversation) -> None:
        question, former = conversation.question, self._asked
        if question is former:
            return
        self._asked = question
        if question is None:
            if self._notices.asking:
                self._notices.clear()
            return
        choices: list[Choice] = []
        for option in conversation.options:
            words = option.name or option.kind
            if conversation.agent.ends_turn and option.kind.startswith("reject"):
                words += " (ends its turn)"
            choices.append((words, partial(conversation.answer, option)))
        what = visible(question.call.title or "use a tool")
        if len(what) > MOST_ASKED:  # the answers have to find room below it
            what = f"{what[:MOST_ASKED]}… (all of it stands in the conversation)"
        self._notices.ask(f"{title} asks: {what}", *choices)
        if not self._composer.text.strip():
            self._panes.focus(self._pane)
        if question.call.diffs:
            self._work.run(partial(self._show_place, question.call.diffs[0]))

    async def _show_place(self, diff: ToolDiff) -> None:
        """Open the file of an edit, at the first line that it changes."""
        if (rel := self._relative(diff.path)) and rel != self._state.path:
            await self._navigate.open_path(rel, focus=False)
        if diff.old and rel == self._state.path:
            self._go_to_edit(diff.old, diff.new)

    def _go_to_edit(self, old: str, new: str) -> None:
        """Show the first line that an edit changes, if its old text is there once."""
        wanted, view = old.splitlines(), self._state.view
        size = len(wanted)
        if view is None or not size:
            return
        lines = list(view.proposal.composed().lines)
        places = [at for at in range(len(lines) - size + 1) if lines[at : at + size] == wanted]
        edits = line_edits(wanted, new.splitlines())
        if len(places) == 1 and edits:
            at = min(places[0] + edits[0].start, len(lines) - 1)
            self._pane.go_to(view.row_of_base(view.to_base(at)), centre=True)

    def _relative(self, path: str) -> str:
        """A path of the agent relative to the folder, ``""`` if it is not in it."""
        root = self._services.root.resolve()
        try:
            return (root / Path(path)).resolve().relative_to(root).as_posix()
        except ValueError:
            return ""
