"""The tool loop: a model looks at files before it answers, if the user allows it.

A question and an instruction go the same way: what is sent and how the response is read is up to
them; the calls are carried out here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from midstream.errors import UserError
from midstream.pairing.chat.entries import Entry, QuestionState, ToolUse
from midstream.pairing.chat.tools import DECLARATIONS, MAX_CALLS, Looked, ReadOnlyTools
from midstream.responses.conversation import ToolCall, ToolOutput

if TYPE_CHECKING:
    from midstream.responses.conversation import Entry as Message

MAX_TITLE_LENGTH: Final = 200
"""Characters of a tool call as it is shown."""
MAX_FAILED_ROUNDS: Final = 3
"""Answers with calls that are refused, after which the answer is ended."""
TOOL_NAMES: Final = frozenset(str(tool["name"]) for tool in DECLARATIONS)
"""The tools that only look."""
_NOT_WANTED: Final = "The user does not want you to look at files; answer with what you know."
_TOO_MANY: Final = "Too many calls at once; this one was not carried out."


class ToolQuestion:
    """Whether the model may look at files, or read one that needs consent; answered once.

    Attributes:
        use: The call that it is asked for.
        path: The file that needs consent, ``""`` if it is about looking at files at all.
        text: What the model wants, to be said after its name.
        yes: The positive answer, in words.
        no: The negative answer, in words.
        allowed: The answer.
        answered: Set once there is one.
    """

    def __init__(self, use: ToolUse, path: str = "", why: str = "") -> None:
        self.use = use
        self.path = path
        if path:
            self.text = f"wants to read {path}, which {why}"
            self.yes = "yes, it may be sent in this session"
            self.no = "no, answer without it"
        else:
            self.text = f"wants to look at files of this folder: {use.call.title}"
            self.yes = "yes, for this session; it cannot change anything"
            self.no = "no, answer with what it has"
        self.allowed = False
        self.answered = asyncio.Event()

    def answer(self, *, allowed: bool) -> None:
        """Answer it."""
        if not self.answered.is_set():
            self.allowed = allowed
            self.answered.set()


class LookPermission:
    """Whether the model of a session may look at files; the user is asked once.

    Attributes:
        question: The question, while the user is asked this or about one file.
        allowed: Whether the user has said yes.
        refused: Whether the user has said no.
    """

    def __init__(self) -> None:
        self.question: ToolQuestion | None = None
        self.allowed = self.refused = False

    def decide(self, *, on: bool) -> None:
        """Let the model look at files of the folder for the rest of the session, or not."""
        self.allowed, self.refused = on, not on
        # A yes to looking is no yes to a file that needs one of its own.
        if self.question is not None and not (on and self.question.path):
            self.question.answer(allowed=on)

    def answer(self, question: ToolQuestion, *, yes: bool) -> None:
        """Answer a question, if it is still open."""
        if question is self.question and question.path:
            question.answer(allowed=yes)
        elif question is self.question:
            self.decide(on=yes)


class ToolLoop:
    """Carries out what a model calls, for one question or instruction at a time.

    Args:
        tools: The tools, with what one question may read.
        permission: The user's answer, which all of a session share.
        entries: The conversation, in which each call stands.
        heard: Is called when that has changed.
    """

    def __init__(
        self,
        tools: ReadOnlyTools,
        permission: LookPermission,
        entries: list[Entry],
        heard: Callable[[], None],
    ) -> None:
        self._tools = tools
        self._permission = permission
        self._entries = entries
        self._heard = heard
        self._asked: ToolQuestion | None = None
        self._running: asyncio.Task[Looked] | None = None
        self._stopped = asyncio.Event()

    def begin(self, room: int) -> None:
        """Begin a question whose tool results may take this many characters."""
        self._tools.begin(room)

    @property
    def offered(self) -> bool:
        """Whether the model may call a tool, or have the user asked."""
        return not self._permission.refused and not self._tools.spent

    def stop(self) -> None:
        """End the call that is being carried out, and withdraw the question about it."""
        if self._asked is not None:
            self._asked.answer(allowed=False)
        if self._running is not None:
            self._running.cancel()
        self._stopped.set()  # Wakes the calls that wait now.
        self._stopped.clear()

    async def converse(
        self,
        messages: Sequence[Message],
        live: Callable[[], bool],
        ask: Callable[[list[Message]], Awaitable[Sequence[Message]]],
        *,
        asks_user: bool = True,
    ) -> None:
        """Ask until the model calls no tool any more.

        Args:
            messages: The conversation.
            live: Whether the answer still counts; ``stop`` is called when it does not any more.
            ask: Sends a conversation and takes the answer; its output, if calls in it are to be
                answered here.
            asks_user: Whether the user may be asked; otherwise what is not allowed is refused.

        Raises:
            UserError: A response failed, or the model calls on and on.
        """
        told = list(messages)
        in_vain = 0
        while live():
            output = await ask(told)
            calls = [entry for entry in output if isinstance(entry, ToolCall)]
            if not calls or not live():
                return
            in_vain += not self.offered
            if in_vain > MAX_FAILED_ROUNDS:
                raise UserError("The model only calls tools, which it may not call any more.")
            told = [*told, *output]
            for number, call in enumerate(calls):
                shown = _TOO_MANY
                if number < MAX_CALLS:
                    shown = await self._look(call, live, asks_user=asks_user)
                told.append(ToolOutput(call.call_id, shown))

    async def _look(self, call: ToolCall, live: Callable[[], bool], *, asks_user: bool) -> str:
        """Carry a call out if the user allows it; returns the result for the model."""
        from midstream.agents.messages import AgentToolCall

        permission = self._permission
        title = f"{call.name} {' '.join(call.input.split())}".strip()[:MAX_TITLE_LENGTH]
        use = ToolUse(AgentToolCall(call.call_id, title, status="pending"))
        self._entries.append(use)
        # An unknown tool is refused without a question to the user.
        known = call.name in TOOL_NAMES
        undecided = not permission.allowed and not permission.refused
        if known and live() and undecided and asks_user:
            await self._ask_user(use, live)
        if not live() or (known and not permission.allowed):
            use.call = replace(use.call, status="failed")
            self._heard()
            return _NOT_WANTED
        self._heard()
        looked = await self._run(call)
        while looked is not None and looked.unconfirmed and live():
            allowed = asks_user and await self._ask_user(use, live, looked)
            self._tools.confirm(looked.path, allowed=allowed)
            looked = await self._run(call)
        if looked is None or not live():
            use.call = replace(use.call, status="failed")
            self._heard()
            return "Stopped."
        paths = (looked.path,) if looked.path else ()
        status = "failed" if looked.refused else "completed"
        title = f"{looked.title}: {looked.text}" if looked.refused else looked.title
        title = " ".join(title.split())[:MAX_TITLE_LENGTH]
        use.call = replace(use.call, title=title, status=status, paths=paths)
        self._heard()
        return looked.text

    async def _run(self, call: ToolCall) -> Looked | None:
        """Carry a call out; ``None`` if it was stopped."""
        self._running = running = asyncio.create_task(self._tools.run(call))
        await asyncio.wait({running})
        if self._running is running:
            self._running = None
        return None if running.cancelled() else running.result()

    async def _ask_user(
        self, use: ToolUse, live: Callable[[], bool], file: Looked | None = None
    ) -> bool:
        """Wait for the user's answer; whether it is yes.

        Args:
            use: The call.
            live: Whether the answer still counts.
            file: The file that needs consent; ``None`` to ask whether the model may look at files
                in this session.
        """
        permission = self._permission
        while live() and (other := permission.question) is not None:
            # A question and an instruction may want to look at the same time.
            waits = [asyncio.ensure_future(each.wait()) for each in (other.answered, self._stopped)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in waits:
                each.cancel()
        if not live() or permission.refused or (permission.allowed and file is None):
            return False
        use.question = QuestionState.OPEN
        question = ToolQuestion(use)
        if file is not None:
            question = ToolQuestion(use, file.path, file.unconfirmed)
            use.call = replace(use.call, text=f"{file.path} {file.unconfirmed}.")
        permission.question = self._asked = question
        self._heard()
        await question.answered.wait()
        permission.question = None
        if self._asked is question:
            self._asked = None
        use.question = QuestionState.CANCELLED
        use.call = replace(use.call, text="")
        if live():
            use.question = QuestionState.ALLOWED if question.allowed else QuestionState.REJECTED
        self._heard()
        return question.allowed and live()
