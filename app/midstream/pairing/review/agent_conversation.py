"""A conversation with a coding agent, headless: what was said, used and asked, in order.

The agent writes files itself; a review (``pairing.review.external``) turns that into hunks.  This
module keeps what the agent says about it, and the answers to its questions.  Without an answer,
nothing is allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from midstream.agents.acp import AgentError, AgentProcess, LoginNeededError
from midstream.agents.catalogue import KnownAgent
from midstream.agents.hooks import session_meta
from midstream.agents.messages import (
    ALLOW_ONCE,
    REJECT_ONCE,
    AgentChoice,
    AgentInfo,
    AgentPlan,
    AgentSession,
    AgentText,
    AgentToolCall,
    AgentUpdate,
    AgentUsage,
    ChoicesChanged,
    ModeChanged,
    PermissionOption,
    PermissionQuestion,
    SlashCommands,
    UnknownUpdate,
)
from midstream.errors import UserError
from midstream.pairing.chat.entries import Entry, QuestionState, Speech, ToolUse

MAX_SPEECH: Final = 64_000
"""Characters of one entry; what is said further is the next one."""
MAX_BLOCK: Final = 8_000
"""The same of its last paragraph, which is laid out anew with each word."""
_AT_WORK: Final = ("", "pending", "in_progress")
"""States of a use of a tool that has not ended."""


@dataclass(slots=True)
class _Pending:
    question: PermissionQuestion
    use: ToolUse
    answer: asyncio.Future[PermissionOption | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class AgentConversation:
    """One agent on one folder.  Made by ``begin``; ``close`` ends the agent.

    Attributes:
        agent: Which agent it is.
        entries: What was said and used, in the order in which it began.
        plan: The agent's plan, if it has one.
        usage: How full its context is, if it says so.
        commands: Its slash commands: names and descriptions.
        edits: Grows with every message about an edit, so that what was read from them can be kept.
        unknown: Updates of kinds that are not known here.
    """

    def __init__(self, agent: KnownAgent, changed: Callable[[], None]) -> None:
        self.agent = agent
        self.entries: list[Entry] = []
        self.plan: AgentPlan | None = None
        self.usage: AgentUsage | None = None
        self.commands: dict[str, str] = {}
        self.edits = 0
        self.unknown: list[UnknownUpdate] = []
        self._changed = changed
        self._uses: dict[str, ToolUse] = {}
        self._pending: list[_Pending] = []
        self._process: AgentProcess | None = None
        self._session = AgentSession("", ())
        self._turn = False

    @classmethod
    async def begin(
        cls,
        agent: KnownAgent,
        folder: Path,
        changed: Callable[[], None] = lambda: None,
        session_id: str = "",
        earlier: Sequence[Entry] = (),
    ) -> AgentConversation:
        """Start an agent on a folder.

        Args:
            agent: The agent.
            folder: Absolute path.
            changed: Called after each change of what is here.
            session_id: An earlier session of the agent to continue, ``""`` for a new one.
            earlier: What was said in it, for agents that do not tell it again.  An agent that no
                longer knows the session begins a new one; the last entry says so.

        Raises:
            AgentError: It is not installed, fails, or wants a login.
        """
        agent.check()
        self = cls(agent, changed)
        self._process = process = await AgentProcess.launch(
            agent.title, agent.command, folder, self, agent.variables()
        )
        try:
            await process.initialize()
            if not (session_id and await self._reopen(process, session_id, folder, earlier)):
                self._session = await process.new_session(folder, session_meta(agent.name))
        except LoginNeededError as error:
            await process.close()
            if not agent.login:
                raise
            raise LoginNeededError(
                f"{agent.title} wants you to log in",
                f"run `{agent.login}` in a separate terminal, then start again",
            ) from error
        except BaseException:
            await process.close()
            raise
        return self

    async def _reopen(
        self, process: AgentProcess, session_id: str, folder: Path, earlier: Sequence[Entry]
    ) -> bool:
        """Continue an earlier session; whether the agent still knows it."""
        if process.info.resumes or not process.info.loads:  # else it is told again
            self.entries.extend(earlier)
        try:
            self._session = await process.reopen_session(
                session_id, folder, session_meta(self.agent.name)
            )
        except AgentError:
            if process.ended is not None:
                raise
            self.entries[:] = earlier
            note = f"{self.title} does not remember this conversation; a new one begins here."
            self.entries.append(Speech("thought", note))
            return False
        return True

    @property
    def title(self) -> str:
        """The display name of the agent; for a custom command, the command."""
        return self.agent.title if self.agent.name else self.info.name or self.agent.title

    @property
    def info(self) -> AgentInfo:
        """The agent's description of itself."""
        return self._running.info

    @property
    def ended(self) -> bool:
        """Whether the agent's process has ended, so that nothing can be asked any more."""
        return self._running.ended is not None

    @property
    def session_id(self) -> str:
        """The agent's id of this conversation, with which it can be continued later."""
        return self._session.session_id

    @property
    def choices(self) -> tuple[AgentChoice, ...]:
        """The options to choose from: modes, models and the like."""
        return self._session.choices

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        return self._turn

    @property
    def question(self) -> PermissionQuestion | None:
        """The oldest question without an answer."""
        return self._pending[0].question if self._pending else None

    async def ask(self, text: str) -> str:
        """Have the agent work; returns why its turn has ended (``AgentProcess.prompt``).

        Raises:
            UserError: A turn runs already.
            AgentError: The agent fails; what it wrote stays.
        """
        if self._turn:
            raise UserError(f"{self.title} is at work; stop it first, or wait.")
        self._turn = True
        begun = len(self.entries)
        self.entries.append(Speech("user", text))
        self._changed()
        try:
            return await self._running.prompt(self.session_id, text)
        finally:
            self._turn = False
            for entry in self.entries[begun:]:  # a stopped tool is not shown as running
                if isinstance(entry, ToolUse) and entry.call.status in _AT_WORK:
                    entry.call = replace(entry.call, status="nothing")
            self._changed()

    @property
    def steers(self) -> bool:
        """Whether a turn runs that takes further texts."""
        return self._turn and self.info.steers

    async def steer(self, text: str) -> bool:
        """Give the turn that runs a further text; whether the agent has it.

        Raises:
            AgentError: The agent refuses it, or fails.
        """
        taken = await self._running.steer(self.session_id, text)
        if taken:
            self.entries.append(Speech("user", text))
            self._changed()
        return taken

    def stop(self) -> None:
        """Ask the agent to end its turn; open questions are cancelled, so nothing is written."""
        if self._turn:
            self._running.cancel(self.session_id)

    @property
    def yes_or_no(self) -> bool:
        """Its questions have answers of their own."""
        return False

    @property
    def asking(self) -> bool:
        """Whether it waits for an answer."""
        return bool(self._pending)

    @property
    def version(self) -> str:
        """The agent's version, ``""`` if it does not say."""
        return self.info.version

    @property
    def facts(self) -> Sequence[str]:
        """Its mode, how full its context is, and its model, in words."""
        facts = self._chosen("mode")
        if (usage := self.usage) is not None and usage.size:
            share = f"context {usage.used / usage.size:.0%}"
            facts.append(share + (f", {usage.cost}" if usage.cost else ""))
        return [*facts, *self._chosen("model")]

    def _chosen(self, category: str) -> list[str]:
        """The chosen option of one kind, in words."""
        words: list[str] = []
        for choice in self.choices:
            if choice.category == category:
                names = {value.value: value.name for value in choice.values}
                words.append(f"{category} {names.get(choice.current, choice.current)}")
        return words

    @property
    def options(self) -> tuple[PermissionOption, ...]:
        """The answers to the oldest question: this once, not this once, then what holds longer."""
        if not self._pending:
            return ()
        order = (ALLOW_ONCE, REJECT_ONCE)
        return tuple(
            sorted(
                self._pending[0].question.options,
                key=lambda option: order.index(option.kind) if option.kind in order else len(order),
            )
        )

    def allow(self) -> bool:
        """Allow what the oldest question is about, this once; whether there was such an option."""
        return self._decide(ALLOW_ONCE)

    def reject(self) -> bool:
        """Reject it, this once; whether there was such an option."""
        return self._decide(REJECT_ONCE)

    def answer(self, option: PermissionOption) -> None:
        """Answer the oldest question with one of its options; nothing if it has been withdrawn."""
        if not self._pending or option not in self._pending[0].question.options:
            return
        pending = self._pending.pop(0)
        allowed = option.kind.startswith("allow")
        pending.use.question = QuestionState.ALLOWED if allowed else QuestionState.REJECTED
        if not pending.answer.done():
            pending.answer.set_result(option)
        self._changed()

    def refused_last(self, begin: int) -> list[AgentToolCall]:
        """What was rejected since an entry, if the agent has said and done nothing after it.

        Then the no has ended its turn, and its model has not read it.
        """
        calls: list[AgentToolCall] = []
        for entry in reversed(self.entries[begin:]):
            if isinstance(entry, ToolUse):
                if entry.question is not QuestionState.REJECTED:
                    break
                calls.insert(0, entry.call)
            elif entry.role == "agent" and entry.text.strip():
                break
        return calls

    async def choose(self, choice: AgentChoice, value: str) -> None:
        """Set a mode, a model or the like.

        Raises:
            AgentError: The agent refuses it.
        """
        self._session = await self._running.choose(self._session, choice, value)
        self._changed()

    async def close(self) -> None:
        """End the agent."""
        await self._running.close()

    # The agent's side

    def agent_updated(self, session_id: str, update: AgentUpdate) -> None:
        """Take an update."""
        match update:
            case AgentText(role, text):
                last = self.entries[-1] if self.entries else None
                if isinstance(last, Speech) and last.role == role and _has_room(last):
                    last.text += text
                else:
                    self.entries.append(Speech(role, text))
            case AgentToolCall():
                self._use(update)
            case AgentPlan():
                self.plan = update
            case AgentUsage():
                self.usage = update
            case SlashCommands(commands):
                self.commands = dict(commands)
            case ChoicesChanged(options):
                self._session = self._session.with_options(options)
            case ModeChanged(mode):
                self._session = self._session.with_mode(mode)
            case UnknownUpdate():
                self.unknown.append(update)
        self._changed()

    async def agent_asks(self, question: PermissionQuestion) -> PermissionOption | None:
        """Wait for the answer to a question."""
        use = self._use(question.call)
        # Some show the edit before they ask about it, and not again.
        pending = _Pending(replace(question, call=use.call), use)
        self._pending.append(pending)
        use.question = QuestionState.OPEN
        self._changed()
        try:
            return await pending.answer
        finally:
            if pending in self._pending:
                self._pending.remove(pending)
            if use.question is QuestionState.OPEN:
                use.question = QuestionState.CANCELLED
            self._changed()

    @property
    def _running(self) -> AgentProcess:
        if self._process is None:
            raise AgentError(f"{self.agent.title} has not been started.")
        return self._process

    def _use(self, call: AgentToolCall) -> ToolUse:
        self.edits += bool(call.diffs) or bool(call.status)
        use = self._uses.get(call.call_id)
        if use is None:
            use = self._uses[call.call_id] = ToolUse(call)
            self.entries.append(use)
        else:
            use.call = use.call.updated(call)
        return use

    def _decide(self, kind: str) -> bool:
        option = self._pending[0].question.option(kind) if self._pending else None
        if option is not None:
            self.answer(option)
        return option is not None


def _has_room(speech: Speech) -> bool:
    """Whether what is said next belongs to this entry."""
    size = len(speech.text)
    return size < MAX_BLOCK or (size < MAX_SPEECH and "\n\n" in speech.text[-MAX_BLOCK:])
