"""The conversation on the review screen: showing it, sending to it, answering its questions."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from midstream.errors import UserError
from midstream.pairing.chat.entries import last_answer, named_places
from midstream.pairing.review.agent_edits import files_of, place_of_edit, relative_to, shared_lines
from midstream.tui.conversation.messages import MAX_QUESTION_LENGTH
from midstream.tui.notices import Choice, ScreenWork
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.review.aim import Aim
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.review.navigate import Navigate
from midstream.tui.services import NotNowError
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow

if TYPE_CHECKING:
    from midstream.agents.messages import PermissionQuestion, ToolDiff
    from midstream.pairing.chat.chat import Chat
    from midstream.pairing.chat.code_blocks import CodeBlock
    from midstream.pairing.chat.entries import ToolUse
    from midstream.pairing.chat.tool_loop import ToolQuestion
    from midstream.pairing.review.agent import AgentPartner
    from midstream.pairing.review.agent_conversation import AgentConversation

BESIDE_FROM: Final = 110
"""Columns from which the conversation stands beside the code, not below it."""
_NOTHING_SAID: Final = (
    "There is no conversation yet; begin a text with ? to ask the model a question, or run "
    "`midstream agent claude` to work with an agent."
)
PAUSES: Final = 6
"""How many times as long as a look at a conversation takes, and its layout, the next one waits."""
LAYOUT_S: Final = 0.02
"""After this, the layout of a look has been made."""
FLOOD_PAUSE_S: Final = 0.25
"""How often the end of a flood is shown."""
MAX_BLOCKS: Final = 9
"""Blocks of code to choose from, by one digit."""
MAX_TITLE_LENGTH: Final = 60
"""Characters of a block's title in that choice."""


class Converse(Controller):
    """Actions on the conversation with a coding agent, or else with the model."""

    def __init__(self, shared: Shared, navigate: Navigate, aim: Aim) -> None:
        super().__init__(shared)
        self._navigate = navigate
        self._aim = aim
        self._hidden = False
        self._showing = ScreenWork(shared.panes.screen, shared.notices, shared.services)
        """Apart from the work of keys, which must not wait for it."""
        self._due = False
        self._about = ("", False, False)
        self._asked: PermissionQuestion | ToolQuestion | None = None

    @property
    def _partner(self) -> AgentPartner | None:
        session = self._state.opened
        return session.agent if session is not None and session.agent.on else None

    @property
    def on(self) -> bool:
        """Whether instructions go to an agent."""
        return self._partner is not None

    @property
    def _chat(self) -> Chat | None:
        session = self._state.opened
        return session.chat if session is not None and session.chat.on else None

    @property
    def choices(self) -> int:
        """How many answers the open question of the agent or the model has."""
        if self._asking_chat is not None:
            return 2
        conversation = self._partner and self._partner.conversation
        return len(conversation.options) if conversation else 0

    @property
    def _asking_chat(self) -> Chat | None:
        """The conversation whose model wants to look at files or at one, while that is open."""
        chat = self._chat if self._partner is None else None
        return chat if chat is not None and chat.asking else None

    def send(self, text: str) -> None:
        """Send a text to the agent, or keep it until the agent is done."""
        if (partner := self._partner) is None:
            return
        steers = partner.steers
        if partner.send(text):
            stop = self._services.key_for("model.stop")
            when = "has started" if partner.starting else f"is done; {stop} stops it"
            self._notices.say("info", f"Sent when {partner.title} {when}.")
        elif steers:
            self._notices.say("info", f"{partner.title} reads it before its next step.")
        self._panes.focus(self._pane)
        self._state.refresh()

    def reveal(self) -> None:
        """Show the conversation, even if it was hidden."""
        self._hidden = False
        self.refresh()

    def stop(self) -> bool:
        """Stop the agent, or the answer to a question; whether there was anything to stop."""
        partner, chat = self._partner, self._chat
        if partner is None and chat is not None and chat.busy and not self._state.running:
            # Not serial: stopping must not wait for a write in progress.
            self._work.beside(chat.stop_answer, "stop")
            return True
        if partner is None or not partner.busy:
            return False
        partner.stop_working()
        self._notices.say("info", f"Stopping {partner.title}; what it has written stays.")
        return True

    def answer(self, number: int) -> bool:
        """Give the answer with this number, from 1; whether there was a question.

        Also where another notice has covered it, or Escape has closed that.
        """
        if (chat := self._asking_chat) is not None:
            # Not one that has come up since, and was not shown yet.
            if number <= self.choices and (question := chat.question) is self._asked and question:
                self._notices.clear()
                chat.answer(question, yes=number == 1)
            return True
        conversation = self._partner and self._partner.conversation
        options = conversation.options if conversation else ()
        if conversation and 1 <= number <= len(options):
            self._notices.clear()
            conversation.answer(options[number - 1])
        return bool(options)

    def toggle(self) -> None:
        """Show or hide the conversation."""
        if self._partner is None and self._chat is None:
            raise NotNowError(_NOTHING_SAID)
        self._hidden = not self._hidden
        self.refresh()

    def renew(self) -> None:
        """Begin a new conversation; the journal keeps the old one."""
        partner, chat = self._partner, self._chat
        if partner is None and chat is None:
            self._notices.say("info", _NOTHING_SAID)
        elif partner is not None and (partner.busy or partner.starting):
            self._notices.say("info", f"{partner.title} is at work; stop it first, or wait.")
        elif partner is not None:
            partner.renew()
        elif chat is not None:
            self._work.beside(chat.clear, "renew")
            self._notices.say("info", "New conversation: earlier messages are no longer sent.")

    def choose(self) -> None:
        """Choose the agent's mode, model or the like."""
        if (partner := self._partner) is None:
            return
        conversation = partner.conversation
        if conversation is None or not conversation.choices:
            why = "has not started yet" if conversation is None else "offers nothing to choose here"
            raise NotNowError(f"{partner.title} {why}.")
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
        picker = PickerScreen(self._services, title, rows, select=current)
        self._services.open_screen(picker, chosen)

    def scroll_up(self) -> None:
        """Scroll towards earlier messages."""
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
            view.place(below=below, with_code=self._panes.code.display)

    async def open_file(self, path: str, line: int | None = None) -> None:
        """Show a file that a tool is about or a link leads to, at a 0-based line of it."""
        rel = self._relative(path)
        if rel and not await self._navigate.open_path(rel, line=line):
            raise UserError(f"{rel} cannot be shown.")

    async def open_tool(self, use: ToolUse) -> None:
        """Show the hunk of a tool's edit, the place of the edit, or else the file it is about."""
        path = next(iter(files_of(use)), "")
        if not (rel := self._relative(path)):
            self._notices.say("info", f"{visible(path)} is not in this folder.")
            return
        await self.open_file(path)
        session, view = self._state.session, self._state.view
        if self._state.path != rel:
            return
        for diff in use.call.diffs:
            if self._relative(diff.path) != rel:
                continue
            hunks = session.hunks.for_path(rel)
            shared = [len(shared_lines(diff, hunk)) for hunk in hunks]
            if (
                any(shared)
                and (rows := view.rows_of(hunks[shared.index(max(shared))].id)) is not None
            ):
                self._pane.detach()
                self._pane.show_hunk_at(rows[0])
                self._pane.go_to(rows[0])
                return
            if diff.old:
                await self._go_to_edit(diff.old, diff.new)
                return

    def places(self) -> None:
        """Choose one of the places that the last answer names."""
        root = self._services.root
        places = named_places(self._answer, lambda path: (root / path).is_file())
        if not places:
            self._say_lacking("The last answer names no file of this folder.")
            return
        rows = [
            ListRow(str(number), ((visible(str(place)), "foreground"),))
            for number, place in enumerate(places)
        ]

        def chosen(taken: str | None) -> None:
            if taken is not None:
                place = places[int(taken)]
                self._work.run(partial(self.open_file, place.path, place.line))

        title = "Places in the last answer"
        self._services.open_screen(PickerScreen(self._services, title, rows), chosen)

    def propose(self) -> None:
        """Make hunks of code in the last answer; of several blocks the user chooses one."""
        from midstream.pairing.chat.code_blocks import code_blocks

        if not (blocks := code_blocks(self._answer)):
            self._say_lacking("The last answer contains no code that can become hunks.")
            return
        turns, path = self._state.session.turns, self._state.path or None
        cursor = self._aim.cursor_line

        def take(block: CodeBlock) -> None:
            async def work() -> None:
                await turns.propose(block, path=path, cursor=cursor)

            self._panes.focus(self._pane)
            self._work.run(work)

        if len(blocks) == 1:
            take(blocks[0])
            return
        choices: list[Choice] = [
            (visible(block.title)[:MAX_TITLE_LENGTH], partial(take, block))
            for block in blocks[:MAX_BLOCKS]
        ]
        self._notices.ask("Which code should become hunks?", *choices)
        self._panes.focus(self._pane)

    def offer_code(self) -> None:
        """Say which key makes hunks of the code in an answer that has ended, if it has any."""
        from midstream.pairing.chat.code_blocks import code_blocks

        if code_blocks(self._answer):
            key = self._services.key_for("conversation.propose")
            words = "The code of the answer can become hunks."
            self._notices.say("info", self._panes.with_way(words, key))

    def _say_lacking(self, words: str) -> None:
        """Say what the last answer lacks, or that there is no answer."""
        self._notices.say("info", words if self._answer else "There is no answer yet.")

    @property
    def _answer(self) -> str:
        """What was answered last in the conversation that is shown."""
        partner, chat = self._partner, self._chat
        if partner is not None:
            return last_answer(partner.conversation.entries) if partner.conversation else ""
        return last_answer(chat.entries) if chat is not None else ""

    async def _show(self) -> None:
        self._due = False  # entries from now on count for the next look
        began = time.thread_time()
        flooded = await self._show_now()
        await asyncio.sleep(FLOOD_PAUSE_S if flooded else LAYOUT_S)
        if flooded:
            self.refresh()  # its end is to be seen, too
            return
        # Keys come first during a flood of text: each look at it, and the layout after it, takes
        # time.
        cost = time.thread_time() - began
        await asyncio.sleep(min(PAUSES * cost, 1.0))

    async def _show_now(self) -> bool:
        """Show what there is; whether more has come than can be followed."""
        flooded = False
        partner, chat, panes = self._partner, self._chat, self._panes
        # Only here can the subject of a question be read in full.
        asks = partner.asking if partner is not None else chat is not None and chat.asking
        hidden = self._hidden and not asks
        gone = hidden or (partner is None and chat is None)
        if gone and panes.conversation is not None:
            if panes.conversing:
                panes.focus(self._pane)
            await panes.conversation.remove()
            panes.conversation = None
            self.lay_out()
        if not gone and panes.conversation is None:
            # A parser of Markdown comes with it: a moment in which no key would be answered.
            await asyncio.to_thread(import_module, "midstream.tui.conversation.pane")
            from midstream.tui.conversation.pane import ConversationPane

            services = self._services
            panes.conversation = ConversationPane(services.palette, services.glyphs, services.root)
            self.lay_out()
            await panes.body.mount(panes.conversation)
        if (view := panes.conversation) is not None and partner is not None:
            flooded = await view.show(partner.title, partner.conversation)
        elif view is not None and chat is not None:
            flooded = await view.show(chat.title, chat)
        if partner is None:
            self._show_asking(chat)
            about = "", chat is not None and chat.busy, False
            if about != self._about:
                self._about = about
                self._state.refresh()
                self._aim.update()
            return flooded
        about = partner.title, partner.busy, partner.asking
        if about != self._about:
            self._about = about
            self._state.refresh()
            self._aim.update()
        if partner.conversation is not None:
            self._show_question(partner.title, partner.conversation)
        return flooded

    def _show_asking(self, chat: Chat | None) -> None:
        """Ask whether the model may look at files, or read one, until that is answered."""
        question, former = chat.question if chat is not None else None, self._asked
        if question is former:
            return
        self._asked = question
        if question is None or chat is None:
            if self._notices.asking:
                self._notices.clear()
            return
        what = visible(question.text)
        if len(visible(question.use.call.title)) > MAX_QUESTION_LENGTH:
            what = f"{what[:MAX_QUESTION_LENGTH]}… (in full in the conversation)"
        self._notices.ask(
            f"{visible(chat.title)} {what}",
            (question.yes, partial(chat.answer, question, yes=True)),
            (question.no, partial(chat.answer, question, yes=False)),
        )
        if not self._composer.text.strip():
            self._panes.focus(self._pane)

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
        if len(what) > MAX_QUESTION_LENGTH:  # the answers have to find room below it
            what = f"{what[:MAX_QUESTION_LENGTH]}… (in full in the conversation)"
        self._notices.ask(f"{title} asks: {what}", *choices)
        if not self._composer.text.strip():
            self._panes.focus(self._pane)
        if question.call.diffs:
            self._work.run(partial(self._show_place, question.call.diffs[0]))

    async def _show_place(self, diff: ToolDiff) -> None:
        """Open the file of an edit, at the first line that it changes, unless it is new."""
        rel = await asyncio.to_thread(self._relative, diff.path)
        is_file = bool(rel) and await asyncio.to_thread((self._services.root / rel).is_file)
        if is_file and rel != self._state.path:
            await self._navigate.open_path(rel, focus=False)
        if diff.old and rel == self._state.path:
            await self._go_to_edit(diff.old, diff.new)

    async def _go_to_edit(self, old: str, new: str) -> None:
        """Show the first line that an edit changes, if its old text is there once."""
        view = self._state.view
        lines = view.proposal.composed().lines
        at = await asyncio.to_thread(place_of_edit, lines, old, new)
        if at is not None and view is self._state.view:
            self._pane.go_to(view.row_of_base(view.to_base(at)), centre=True)

    def _relative(self, path: str) -> str:
        return relative_to(self._services.root, path)
