"""The conversation with the model in plain mode: asking, printing answers, taking code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.editor import edit_text, editor_command
from midstream.errors import UsageError
from midstream.pairing.chat.entries import ToolUse, last_answer
from midstream.pairing.chat.plan import StepState
from midstream.pairing.request.question import Question
from midstream.workspace.paths import shown

if TYPE_CHECKING:
    from midstream.pairing.chat.tool_loop import ToolQuestion
    from midstream.pairing.session import PairingSession

_STEP_STATES: Final = {
    StepState.OPEN: "",
    StepState.BEGUN: " (begun)",
    StepState.DONE: " (done)",
    StepState.NOTHING: " (left out)",
}
RELATED_S: Final = 2.0
"""Seconds that a text waits for related code, which is not looked for before it is entered."""


class Conversing:
    """Carries out its commands.

    Args:
        session: The session.
        say: Prints one line.
        terminal: Whether a user types the lines, who can be asked something.
    """

    def __init__(
        self, session: PairingSession, say: Callable[[str], None], *, terminal: bool
    ) -> None:
        self._terminal = terminal
        self._session = session
        self._say = say
        self._entry = len(session.chat.entries)
        """The entry that is printed next or is being printed."""
        self._asked: ToolQuestion | None = None
        self._printed = 0
        """The number of its characters that are printed."""

    async def ask(self, question: Question, *, plan: bool = False) -> None:
        """Ask; the answer is printed line by line as it comes.  Raises as ``Chat.ask_question``."""
        chat, server = self._session.chat, self._session.server
        told = server.reached and server.model_info.is_chat
        if told:
            turns = self._session.turns
            await turns.look_around(question, seconds=RELATED_S)
        await chat.ask_question(question, plan=plan)
        if told:
            self._say(f"Sending {chat.context.budget}.")

    def news(self) -> Iterator[str]:
        """The answer since the last call, by whole lines while it is written."""
        chat = self._session.chat
        if (question := chat.question) is not None and question is not self._asked:
            self._asked = question
            yield f"{chat.title} {question.text}"
            if not self._terminal:
                yield (
                    f"Not sent; name it as @{shown(question.path)} to allow it."
                    if question.path
                    else "Not allowed; enter `look yes` before the question to allow it."
                )
                chat.answer(question, yes=False)
            elif question.path:
                yield "look yes allows sending it in this session, look no does not."
            else:
                yield (
                    "look yes allows it for this session, look no does not; it cannot change "
                    "anything."
                )
        if len(chat.entries) < self._entry:
            self._entry = self._printed = 0
        while self._entry < len(chat.entries):
            entry = chat.entries[self._entry]
            last = self._entry == len(chat.entries) - 1
            if isinstance(entry, ToolUse):
                if entry.call.status == "pending":
                    return
                yield f"({entry.call.title})"
            elif entry.role != "user":
                stop = len(entry.text)
                if last and chat.busy:
                    stop = entry.text.rfind("\n") + 1
                text, self._printed = entry.text[self._printed : stop], max(stop, self._printed)
                yield from text.splitlines()
                if last and chat.busy:
                    return
            self._entry, self._printed = self._entry + 1, 0

    async def renew(self, _: str) -> None:
        """Begin a new conversation."""
        await self._session.chat.clear()
        self._say("New conversation: earlier messages are no longer sent.")

    async def look(self, rest: str) -> None:
        """Let the model look at files of the folder, or read the one that it has asked for."""
        question, yes = self._session.chat.question, rest == "yes"
        if question is not None and question.path and question is self._asked:
            self._session.chat.answer(question, yes=yes)
            self._say(f"{shown(question.path)} {'may' if yes else 'is not to'} be sent.")
            return
        self._session.chat.allow(on=yes)
        self._say(f"The model {'may' if rest == 'yes' else 'may not'} look at files from now on.")

    async def plan(self, rest: str) -> str:
        """Show, edit or set the plan; returns the subject that the model is to plan, ``""`` for
        none.

        Raises:
            UsageError: There is no plan.
        """
        steps = self._session.chat.steps
        if rest and rest != "edit" and not steps.write(rest):
            return rest
        if not steps:
            raise UsageError("There is no plan; plan TEXT asks for one.")
        if rest == "edit":
            command = editor_command() if self._terminal else None
            if command is None:
                raise UsageError("EDITOR is not set; plan 1. TEXT 2. TEXT sets the steps.")
            edited = await asyncio.to_thread(edit_text, command, f"{steps.text}\n", "plan.md")
            steps.write(edited or "")
        for step, state in zip(steps.text.splitlines(), steps.states(), strict=True):
            self._say(f"{step}{_STEP_STATES[state]}")
        return ""

    async def take(self, rest: str, path: str | None) -> None:
        """Make hunks of code in the last answer; ``path`` is the file it is for if it names none.

        Raises:
            UsageError: There is no such code.
        """
        from midstream.pairing.chat.code_blocks import code_blocks

        answer = last_answer(self._session.chat.entries)
        if not answer:
            raise UsageError("There is no answer yet.")
        blocks = code_blocks(answer)
        if not blocks:
            raise UsageError("The last answer contains no code that can become hunks.")
        if not rest and len(blocks) > 1:
            self._say(f"{counted(len(blocks), 'block')} of code; take 1 makes hunks of the first.")
            for number, block in enumerate(blocks, 1):
                self._say(f"{number}  {block.title}")
            return
        number = int(rest or 1)
        if not 1 <= number <= len(blocks):
            raise UsageError(f"There is no block {number}; take lists them.")
        await self._session.turns.propose(blocks[number - 1], path=path)
