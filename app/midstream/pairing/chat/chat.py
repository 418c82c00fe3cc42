"""A conversation with the session's model: questions are answered in words and change nothing.

What was said is what the model remembers: a question goes out with as many of the earlier exchanges
as there is room for, and to a hosted model with its summary of the others.  Files are read anew for
every question, so that no answer is about an old text.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.errors import UsageError, UserError
from midstream.pairing.chat.entries import (
    AnsweredQuestion,
    Entry,
    Herald,
    Speech,
    exchanges,
    packed,
)
from midstream.pairing.chat.plan import steps_of
from midstream.pairing.chat.tool_loop import LookPermission, ToolLoop, ToolQuestion
from midstream.pairing.chat.tools import DECLARATIONS, TOOL_INSTRUCTIONS, ReadOnlyTools
from midstream.pairing.journal.entries import ChatEntry
from midstream.pairing.request.context import (
    CHARACTERS_PER_TOKEN,
    Context,
    estimate,
    limit_of,
)
from midstream.pairing.request.prompts import (
    PLAN_INSTRUCTIONS,
    QUESTION_INSTRUCTIONS,
    SUMMARY_INSTRUCTIONS,
    question_message,
)
from midstream.pairing.request.question import Question
from midstream.pairing.request.sent import Sent, SentKind, SentLog
from midstream.pairing.status import (
    ConversationHeard,
    QuestionAnswered,
    SessionState,
)
from midstream.responses.conversation import RequestContent

if TYPE_CHECKING:
    from midstream.agents.messages import AgentPlan
    from midstream.pairing.chat.plan import SessionPlan
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.models.server import ServerLink
    from midstream.pairing.request.builder import RequestBuilder
    from midstream.pairing.request.effort import Effort
    from midstream.pairing.status import SessionStatus, Spawn
    from midstream.responses.conversation import Entry as Message
    from midstream.responses.events import Delta, Finished
    from midstream.responses.stream import Stream
    from midstream.workspace.files import Workspace

_BEFORE: Final = "What was asked and answered before, summed up:"
MEMORY_SHARE: Final = 0.5
"""Share of the context budget that earlier exchanges may take."""
MAX_ANSWER_LENGTH: Final = 60_000
"""Characters after which an answer is stopped; no person reads more."""
MAX_REPEATED: Final = 8
"""Times that an answer of a model of our own server may have the same line outside of code, numbers
aside, before it is stopped: small models count up in circles."""
MIN_LINE_LENGTH: Final = 24
"""Characters of a line that counts for this."""
TEMPERATURE: Final = 0.3
"""Sampling temperature of answers in words by our own server: small models that decode greedily
repeat themselves."""
MAX_HISTORY_TOKENS: Final = 6_000
"""Characters of the last exchanges that an instruction is sent with."""

KEPT_SHARE: Final = 0.5
"""Share of the budget that recent exchanges keep when older ones are summarised; the rest is room
to grow before the next summary."""
MAX_SUMMARY_LENGTH: Final = 800
"""Tokens of a summary; a longer one is cut."""
SUMMARY_SHARE: Final = 1 / 8
"""Share of the context budget that a summary may take."""
MAX_SUMMARISED_LENGTH: Final = 4_000
"""Characters of a question or an answer that are summarised."""

_DIGITS: Final = re.compile(r"\d+")


@dataclass(slots=True, eq=False)
class _Reply:
    """An answer that is being written.

    Attributes:
        begin: Entries of the conversation before its question.
        plans: Whether it is to be a plan.
        live: Whether its text still counts.
        state: Whether it is awaited, thought about, or written.
        stream: The response, once the request was sent.
        said: What the user wrote.
        context: What goes along with it.
    """

    begin: int
    plans: bool = False
    live: bool = True
    state: SessionState = SessionState.WAITING
    stream: Stream | None = None
    said: str = ""
    context: Context = field(default_factory=Context)


class Chat:
    """The conversation of a session with its model; empty until something is asked.

    Attributes:
        entries: What was said, in order.
        steps: The plan that was made, or written, in it.
        forgotten: Exchanges that the model was not sent with the last question, for want of room.
        summarised: Exchanges of which it was sent a summary.
        context: What was sent along with the last question.
        yes_or_no: What it asks the user is answered by yes or no.
        permission: Whether the model may look at files.
    """

    version = ""
    yes_or_no = True

    def __init__(
        self,
        workspace: Workspace,
        builder: Callable[[], RequestBuilder],
        allowed: set[str],
        server: ServerLink,
        effort: Effort,
        status: SessionStatus,
        journal: SessionJournal,
        spawn: Spawn,
        plan: SessionPlan,
        sent: SentLog,
        earlier: Sequence[Entry] = (),
        *,
        offers_tools: bool = True,
    ) -> None:
        self.entries: list[Entry] = list(earlier)
        self.forgotten = self.summarised = 0
        self.steps = plan
        self.context = Context()
        self._summary = ""
        self.permission = LookPermission()
        self._offers = offers_tools
        self._room = 0
        self._builder = builder
        self._server = server
        self._effort = effort
        self._status = status
        self._journal = journal
        self._sent = sent
        self._spawn = spawn
        self._herald = Herald(lambda: status.emit(ConversationHeard()))
        self._tool_loop = self.tool_loop(ReadOnlyTools(workspace, allowed))
        self._reply: _Reply | None = None
        self._asking = asyncio.Lock()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @property
    def on(self) -> bool:
        """Whether anything was said or planned."""
        return bool(self.entries or self.steps)

    @property
    def plan(self) -> AgentPlan | None:
        """The plan, if there is one, and how far its steps have come."""
        return self.steps.shown

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited or being written."""
        return self._reply is not None

    @property
    def state(self) -> SessionState:
        """What the model does about the question."""
        return SessionState.READY if self._reply is None else self._reply.state

    @property
    def question(self) -> ToolQuestion | None:
        """What the user is asked: whether the model may look at files, or read one of them."""
        return self.permission.question

    def tool_loop(self, tools: ReadOnlyTools) -> ToolLoop:
        """Carries out tool calls, which are recorded in this conversation."""
        return ToolLoop(tools, self.permission, self.entries, self._herald.heard)

    @property
    def asking(self) -> bool:
        """Whether the user is asked something."""
        return self.question is not None

    @property
    def title(self) -> str:
        """The name of the model."""
        return self._server.name_or_the_model

    @property
    def facts(self) -> Sequence[str]:
        """What the model no longer remembers, or not in full, in words."""
        told: list[str] = []
        if self.summarised:
            told.append(f"the first {counted(self.summarised, 'question')} summarised")
        if self.forgotten:
            which = "next" if self.summarised else "first"
            told.append(f"the {which} {counted(self.forgotten, 'question')} forgotten")
        return told

    @property
    def recent(self) -> str:
        """The plan and the last exchanges as text, for an instruction that refers to them."""
        said = [self.steps.told] if self.steps else []
        room = MAX_HISTORY_TOKENS - len(self.steps.told)
        for each in reversed(exchanges(self.entries)):
            text = f"Asked: {each.asked}\nAnswered: {each.answered}\n"
            room -= len(text)
            if room < 0:
                break
            said.insert(bool(self.steps), text)
        return "\n".join(said)

    async def preview(self, question: Question) -> Context:
        """What would be sent along with a question; errors are those of ``ask_question``."""
        _, room = self._remembered()
        return await self._builder().question_context(question, room, look=True)

    async def rehearse(self, question: Question, *, plan: bool = False) -> Sent:
        """The request that ``ask_question`` would make; it is not sent.  Raises as that does."""
        messages, room = self._remembered()
        context = await self._builder().question_context(question, room, look=True)
        asked = RequestContent(
            _instructions(plans=plan), (*messages, ("user", _worded(question, context)))
        )
        kind = SentKind.PLAN if plan else SentKind.QUESTION
        return Sent(kind, question.text, self._server.recipient, asked, context)

    async def ask_question(self, question: Question, *, plan: bool = False) -> None:
        """Ask; returns when the answer is on its way.  An answer that is being written ends first.

        Args:
            question: The question.
            plan: Whether the answer is to be a plan for what it asks for.

        Raises:
            NotAnEditError: The model answers no questions.
            NeedsConsentError: A file that would be sent may hold secrets.
            UserError: The question is empty, a file cannot be read, or no model can be reached.
        """
        from midstream.pairing.request.kinds import check_answers

        if not question.text.strip():
            raise UsageError("The question is empty", "write your question after the ?")
        async with self._asking:
            await self._reach()
            check_answers(self._server.model_info)
            # Read before the running answer is ended: a question may be refused.
            context = await self._builder().question_context(question, self._remembered()[1])
            await self.stop_answer()
            if not self._closed:
                self._begin(question, context, plan=plan)

    async def stop_answer(self) -> None:
        """End the answer that is being written; what was said of it stays and is remembered."""
        reply = self._reply
        if reply is None:
            return
        reply.live = False
        self._tool_loop.stop()
        if reply.stream is not None:
            await reply.stream.interrupt()
        await self._idle.wait()

    async def finished(self) -> None:
        """Wait until no answer is being written."""
        await self._idle.wait()

    async def clear(self) -> None:
        """Begin a new conversation; the journal keeps the old one."""
        await self.stop_answer()
        if not self.on:
            return
        self.entries.clear()
        self.forgotten = self.summarised = 0
        self._summary = ""
        self.steps.clear()
        self._journal.add(ChatEntry([], fresh=True))
        self._herald.heard()

    async def close(self) -> None:
        """End it for good."""
        self._closed = True
        await self.stop_answer()
        self._herald.close()

    async def _reach(self) -> None:
        """Have a model to ask."""
        idle = self._status.state in (SessionState.READY, SessionState.OFFLINE)
        if not self._server.up and idle:
            self._status.enter(SessionState.STARTING)
        try:
            await self._server.ready()
        except UserError:
            self._status.enter(SessionState.OFFLINE)
            raise
        if self._status.state in (SessionState.STARTING, SessionState.OFFLINE):
            self._status.enter(SessionState.READY)

    def _begin(self, question: Question, context: Context, *, plan: bool) -> None:
        self._room = int((self._remembered()[1] - context.tokens) * CHARACTERS_PER_TOKEN)
        text = question.text
        self.context = context
        reply = self._reply = _Reply(len(self.entries), plan, said=text, context=context)
        self._idle.clear()
        self.entries.append(Speech("user", f"plan: {text}" if plan else text))
        self._herald.heard()
        self._spawn(self._answer(reply, _worded(question, context)))

    def _remembered(self) -> tuple[list[Message], int]:
        """The newest exchanges that fit, as messages, and the remaining tokens."""
        limit = limit_of(self._server.model_info.context_length)
        messages: list[Message] = []
        older, newer = self._split(MEMORY_SHARE)
        for each in newer:
            messages += [("user", each.asked), ("assistant", each.answered)]
            limit -= estimate(each.asked) + estimate(each.answered)
        if self._summary:
            messages[:0] = [("user", f"{_BEFORE}\n{self._summary}"), ("assistant", "Understood.")]
        if self._summary or (older and not self._server.own):
            limit -= self._summary_room
        return messages, limit

    @property
    def _summary_room(self) -> int:
        """Tokens that a summary may take."""
        limit = limit_of(self._server.model_info.context_length)
        return min(MAX_SUMMARY_LENGTH, int(limit * SUMMARY_SHARE))

    def _split(self, share: float) -> tuple[list[AnsweredQuestion], list[AnsweredQuestion]]:
        """The exchanges after the summary that do not fit a share of the budget, and the newer."""
        said = exchanges(self.entries)[self.summarised :]
        room = int(limit_of(self._server.model_info.context_length) * share)
        first = len(said)
        while first and room >= 0:
            room -= estimate(said[first - 1].asked) + estimate(said[first - 1].answered)
            first -= room >= 0
        return said[:first], said[first:]

    async def _summarise(self, reply: _Reply) -> None:
        """Have the model sum up what does not fit any more; without a summary it is left out."""
        from midstream.responses.events import Finished, Reasoned

        if self._server.own or not self._split(MEMORY_SHARE)[0]:
            return
        older, _ = self._split(MEMORY_SHARE * KEPT_SHARE)
        told = [f"Earlier:\n{self._summary}"] if self._summary else []
        for each in older:
            asked, answered = (
                each.asked[:MAX_SUMMARISED_LENGTH],
                each.answered[:MAX_SUMMARISED_LENGTH],
            )
            told.append(f"Asked: {asked}\nAnswered: {answered}")
        most = int(limit_of(self._server.model_info.context_length) * CHARACTERS_PER_TOKEN)
        client = await self._server.ready_beside()
        self._status.disclose(self._server.disclosure())
        stream = await client.create(
            messages=[("user", "\n\n".join(told)[-most:])],
            instructions=SUMMARY_INSTRUCTIONS,
            effort=self._effort.passed_on(),
            prose=True,
        )
        reply.stream = stream
        self._sent.note(
            SentKind.SUMMARY,
            "sum up the conversation so far",
            self._server.recipient,
            stream,
        )
        if not reply.live:
            await stream.interrupt()
        complete = False
        async for event in stream:
            if isinstance(event, Reasoned) and event.endless:
                await stream.interrupt()
            if isinstance(event, Finished):
                self._count(event)
                complete = event.status == "completed"
        if not complete or not stream.text.strip() or not reply.live:
            return
        self._summary = stream.text.strip()[: int(self._summary_room * CHARACTERS_PER_TOKEN)]
        self.summarised += len(older)
        self._remark(f"{counted(len(older), 'earlier exchange')} summarised.")

    async def _answer(self, reply: _Reply, asked: str) -> None:
        """Have a question answered, to the end."""
        try:
            self._status.meter.start_turn(self._server.pace)
            with suppress(UserError):  # The question itself says what is wrong.
                await self._summarise(reply)
            self.forgotten = len(self._split(MEMORY_SHARE)[0])
            await self._converse(reply, [*self._remembered()[0], ("user", asked)])
            if reply.plans and reply.live:
                self._take_plan(reply)
        except UserError as error:
            if reply.live:
                self._remark(f"No answer: {error}")
        finally:
            self._status.meter.finish_turn()
            self._reply = None
            self._note(reply.begin)
            self._idle.set()
            self._herald.heard()
            self._status.emit(QuestionAnswered())

    def _take_plan(self, reply: _Reply) -> None:
        said = (entry for entry in self.entries[reply.begin :] if isinstance(entry, Speech))
        steps = steps_of("\n\n".join(entry.text for entry in said if entry.role == "agent"))
        if steps:
            self.steps.replace(steps)
            words = f"A plan of {counted(len(steps), 'step')}; begin the first"
            self._status.inform(words, "plan.next")
        else:
            self._remark("The answer has no numbered steps, so there is no plan.")

    async def _converse(self, reply: _Reply, messages: list[Message]) -> None:
        """Ask until the model calls no tool any more.

        Raises:
            UserError: A response failed.
        """
        client = await self._server.ready_beside()
        self._status.disclose(self._server.disclosure())
        self._tool_loop.begin(self._room)

        async def ask(told: list[Message]) -> Sequence[Message]:
            reply.state = SessionState.WAITING
            offered = self._offers and self._tool_loop.offered
            stream = await client.create(
                messages=told,
                instructions=_instructions(plans=reply.plans),
                effort=self._effort.passed_on(),
                temperature=TEMPERATURE if self._server.own else None,
                optional_tools=DECLARATIONS if offered else (),
                optional_instructions=TOOL_INSTRUCTIONS,
                prose=True,
            )
            reply.stream = stream
            self._sent.note(
                SentKind.PLAN if reply.plans else SentKind.QUESTION,
                reply.said,
                self._server.recipient,
                stream,
                context=reply.context,
                about=reply,
            )
            if not reply.live:
                await stream.interrupt()
            return await self._read(reply, stream)

        await self._tool_loop.converse(messages, lambda: reply.live, ask)

    def allow(self, *, on: bool) -> None:
        """Let the model look at files of the folder for the rest of the session, or not."""
        self.permission.decide(on=on)

    def answer(self, question: ToolQuestion, *, yes: bool) -> None:
        """Answer a question of the model to the user, if it is still open."""
        self.permission.answer(question, yes=yes)

    async def _read(self, reply: _Reply, stream: Stream) -> tuple[Message, ...]:
        """Take what a response says as it comes; its output.

        Raises:
            UserError: It failed.
        """
        from midstream.responses.events import (
            Delta,
            Failed,
            Finished,
            Progress,
            Reasoned,
            Retracted,
            Started,
            Unheard,
        )

        speech = Speech("agent", "")
        circles = _Circles() if self._server.own else None
        output: tuple[Message, ...] = ()
        written = tokens = 0
        async for event in stream:
            match event:
                case Started():
                    self._server.learn(event.metadata)
                    self._status.meter.taken()
                    if said := self._server.remark():
                        self._status.inform(said, passing=True)
                case Progress() if reply.live and event.prompt_tokens:
                    self._status.meter.note_reading(event.read_tokens, event.prompt_tokens)
                    self._status.touch()
                case Delta() if reply.live:
                    reply.state = SessionState.STREAMING
                    tokens += self._say(speech, event)
                    written += len(event.text)
                    circling = circles.turns(event.text) if circles is not None else ""
                    if why := circling or _too_long(written):
                        await self._cut(reply, stream, why)
                case Retracted() if reply.live:
                    speech.role = "thought"
                    speech = Speech("agent", "")
                case Unheard() if reply.live:
                    written += event.characters
                    if why := _too_long(written):
                        await self._cut(reply, stream, why)
                case Reasoned() if reply.live:
                    reply.state = SessionState.THINKING
                    self._herald.heard()
                    if event.endless:
                        await self._cut(reply, stream, event.endless)
                case Finished():
                    self._count(event, heard=tokens)
                    output = event.output
                    if reply.live and event.status != "completed":
                        why = (event.reason or "no reason given").replace("_", " ")
                        self._remark(f"The answer ended early ({why}).")
                        output = ()
                case Failed():
                    if event.offline:
                        self._status.enter(SessionState.OFFLINE)
                    if reply.live:
                        raise UserError(event.message)
                case _:
                    pass
        return output

    async def _cut(self, reply: _Reply, stream: Stream, why: str) -> None:
        """End an answer that goes nowhere."""
        reply.live = False
        self._remark(f"The answer was stopped: {why}.")
        await stream.interrupt()

    def _say(self, speech: Speech, delta: Delta) -> int:
        """Add a piece to the answer; returns its tokens."""
        if not speech.text:
            self.entries.append(speech)
        speech.text += delta.text
        self._herald.heard()
        return self._status.meter.add(delta.text, delta.tokens)

    def _remark(self, text: str) -> None:
        """Add a sentence of Midstream's own to the conversation."""
        self.entries.append(Speech("thought", text))
        self._herald.heard()

    def _count(self, finished: Finished, *, heard: int = 0) -> None:
        self._status.meter.count(finished, self._server.price, current=True, heard=heard)

    def _note(self, begin: int) -> None:
        """Journal what was said from an entry on."""
        self._journal.write(ChatEntry(packed(self.entries[begin:]), fresh=False))


class _Circles:
    """Finds out whether an answer says the same again and again."""

    def __init__(self) -> None:
        self._line = ""
        self._code = False
        self._seen: Counter[str] = Counter()

    def turns(self, text: str) -> str:
        """Why the answer goes nowhere with this text, in words; ``""`` if it may go on."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._code ^= line.lstrip().startswith(("```", "~~~"))
            said = _DIGITS.sub("", line).strip()
            self._seen[said] += len(said) >= MIN_LINE_LENGTH and not self._code
            if self._seen[said] > MAX_REPEATED:
                return "it kept repeating itself"
        return ""


def _instructions(*, plans: bool) -> str:
    return PLAN_INSTRUCTIONS if plans else QUESTION_INSTRUCTIONS


def _worded(question: Question, context: Context) -> str:
    """The message for a question and its context."""
    path, cursor = question.path, question.cursor
    where = f"{path}:{cursor + 1}" if path is not None and cursor is not None else ""
    return question_message(question.text, context, where)


def _too_long(characters: int) -> str:
    long = characters > MAX_ANSWER_LENGTH
    return f"it has more than {MAX_ANSWER_LENGTH:,} characters" if long else ""
