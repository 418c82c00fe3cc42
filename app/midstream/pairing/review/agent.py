"""The coding agent of a session, which receives the instructions in place of the model.

The agent writes files itself.  What it writes is reviewed like what any other program writes
(``pairing.review.external``), with its name on it; what it says is in its conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.errors import UserError
from midstream.pairing.chat.entries import Herald, packed, unpacked
from midstream.pairing.journal.entries import AgentEntry
from midstream.pairing.request.sent import SentKind, SentLog
from midstream.pairing.status import ConversationHeard
from midstream.responses.conversation import RequestContent

if TYPE_CHECKING:
    from midstream.agents.catalogue import KnownAgent
    from midstream.agents.messages import AgentChoice, ChoiceValue
    from midstream.pairing.files.put_backs import RecentWrites
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.review.agent_conversation import AgentConversation
    from midstream.pairing.review.external import ExternalReview
    from midstream.pairing.review.feedback import Feedback
    from midstream.pairing.status import SessionStatus, Spawn
    from midstream.workspace.files import Workspace


class AgentPartner:
    """At most one agent at a time.

    Attributes:
        conversation: What it said and asked, ``None`` while there is no agent.
        starting: Title of the agent that is being started, ``""`` otherwise.
        queued: Texts to send to it when its turn ends.
    """

    def __init__(
        self,
        workspace: Workspace,
        review: ExternalReview,
        writes: RecentWrites,
        feedback: Feedback,
        status: SessionStatus,
        journal: SessionJournal,
        sent: SentLog,
        spawn: Spawn,
    ) -> None:
        self._sent = sent
        self.conversation: AgentConversation | None = None
        self.starting = ""
        self.queued: list[str] = []
        self._workspace = workspace
        self._review = review
        self._writes = writes
        self._feedback = feedback
        self._status = status
        self._journal = journal
        self._spawn = spawn
        self._herald = Herald(lambda: status.emit(ConversationHeard()))
        self._working = False
        self._closed = False
        self._refused = ""
        """A refusal that ended the agent's turn and that its model has not heard of."""

    @property
    def on(self) -> bool:
        """Whether instructions go to an agent."""
        return bool(self.starting) or self.conversation is not None

    @property
    def title(self) -> str:
        """The display name of the agent, ``""`` without one."""
        return self.starting or (self.conversation.title if self.conversation else "")

    @property
    def asking(self) -> bool:
        """Whether it waits for an answer."""
        return self.conversation is not None and self.conversation.asking

    @property
    def busy(self) -> bool:
        """Whether it works."""
        return self._working

    @property
    def steers(self) -> bool:
        """Whether it takes texts in the turn that runs; never before one that waits already."""
        return self.conversation is not None and self.conversation.steers and not self.queued

    async def begin(self, agent: KnownAgent, earlier: AgentEntry | None = None) -> None:
        """Start an agent, after the review of what it is going to write; another one ends.

        Args:
            agent: The agent.
            earlier: The conversation of an earlier session, which goes on if it was this agent's.

        Raises:
            AgentError: It is not installed, fails, wants a login, or refuses the mode in which it
                asks before it edits; there is no agent then.
            SnapshotError: The files are those of a range of commits.
        """
        from midstream.pairing.review.agent_conversation import AgentConversation

        self._workspace.require_writable()
        again = earlier is not None and earlier.agent == agent.key
        session_id, said = (earlier.session_id, earlier.said) if earlier and again else ("", [])
        waiting = self.queued[:] if again else []
        await self.end()
        self.queued += waiting
        self.starting = agent.title
        self._herald.heard()
        try:
            agent.check()
            if not self._review.on:
                await self._review.switch_on(since_commit=False)
            conversation = await AgentConversation.begin(
                agent, self._workspace.root, self._herald.heard, session_id, unpacked(said)
            )
            try:
                asks = await self._have_it_ask(conversation)
            except BaseException:
                await conversation.close()
                raise
        finally:
            self.starting = ""
            self._herald.heard()
        if self._closed:
            await conversation.close()
            return
        self.conversation = conversation
        if not asks:
            self._status.warn(
                f"{conversation.title} has no mode {agent.asks!r}, which asks before each edit, "
                f"so it may write without asking. You can still keep or put back what it writes."
            )
        self._next()

    def launch(self, agent: KnownAgent, earlier: AgentEntry | None = None) -> None:
        """Start an agent in the background; after a failure, which a notice reports, the model
        stays.
        """
        self._spawn(self._launch(agent, earlier))

    def renew(self) -> None:
        """Begin a new conversation with the same agent, in the background."""
        if self.conversation is not None:
            self.launch(self.conversation.agent)

    async def _launch(self, agent: KnownAgent, earlier: AgentEntry | None) -> None:
        try:
            await self.begin(agent, earlier)
        except UserError as error:
            self._status.fail(str(error))

    async def end(self) -> None:
        """End the agent; what it wrote stays, and so does the review."""
        conversation, self.conversation = self.conversation, None
        self._refused = ""
        self.queued.clear()
        if conversation is not None:
            await conversation.close()
        self._herald.heard()

    async def close(self) -> None:
        """End it for good."""
        self._closed = True
        await self.end()
        self._herald.close()

    def send(self, text: str) -> bool:
        """Send a message to the agent, or queue it until the agent is done; returns whether queued.

        An agent that ``steers`` is told at once while it works.  One whose process has ended is
        started again first, with the same conversation.
        """
        conversation = self.conversation
        if conversation is not None and self.steers:
            self._spawn(self._steer(conversation, text))
            return False
        waits = self._working or conversation is None
        self.queued.append(text)
        if conversation is not None and conversation.ended and not self._working:
            if not self.starting:
                self.starting = conversation.title
                self.launch(conversation.agent, _entry(conversation))
            return True
        self._next()
        return waits

    def fetch_queued(self) -> str:
        """Take the oldest text that waits, ``""`` if there is none."""
        return self.queued.pop(0) if self.queued else ""

    def stop_working(self) -> None:
        """End the agent's turn; its open questions are answered with no."""
        if self.conversation is not None:
            self.conversation.stop()

    def choose(self, choice: AgentChoice, value: ChoiceValue) -> None:
        """Have the agent work in another mode, with another model or the like; tells the result."""
        if self.conversation is not None:
            self._spawn(self._choose(self.conversation, choice, value))

    async def _choose(
        self, conversation: AgentConversation, choice: AgentChoice, value: ChoiceValue
    ) -> None:
        try:
            await conversation.choose(choice, value.value)
        except UserError as error:
            if self.conversation is conversation:
                self._status.fail(str(error))
        else:
            self._status.inform(f"{conversation.title}: {choice.name} {value.name} from now on.")

    @staticmethod
    async def _have_it_ask(conversation: AgentConversation) -> bool:
        """Set the mode in which the agent asks before it edits; whether it offers that mode.

        Raises:
            AgentError: The agent refuses the mode.
        """
        from midstream.agents.acp import AgentError, AgentRefusedError

        wanted = conversation.agent.asks
        if not wanted:
            return True
        for choice in conversation.choices:
            if choice.category != "mode" or wanted not in {value.value for value in choice.values}:
                continue
            if choice.current != wanted:
                try:
                    await conversation.choose(choice, wanted)
                except AgentRefusedError as error:
                    raise AgentError(
                        f"{conversation.title} was ended: it would write without asking. {error}"
                    ) from error
            return True
        return False

    async def _work(self, conversation: AgentConversation, text: str) -> None:
        title, before = conversation.title, len(conversation.entries)
        refused, self._refused = self._refused, ""
        try:
            await self._review.finish()  # it begins with the files as the user wants them
            self._writes.begin(title)
            parts = (refused, self._feedback.take(), text)
            message = "\n\n".join(filter(None, parts))
            self._note_sent(conversation, text, message)
            reason = await conversation.ask(message)
        except UserError as error:
            # An agent whose process is gone answers nothing any more.
            if self.conversation is conversation:
                again = " What you send next starts it again." if conversation.ended else ""
                self._status.fail(f"{error}{again}")
            return
        finally:
            self._working = False
            self._writes.end()
            self._refused = self._feedback.refused(conversation.refused_last(before))
            self._note(conversation, before)
            self._herald.heard()
        if reason not in ("end_turn", "cancelled"):
            self._status.warn(f"{title} ended its turn early: {reason.replace('_', ' ')}.")
        if self.conversation is conversation:
            self._next()

    async def _steer(self, conversation: AgentConversation, text: str) -> None:
        """Give the running turn a text; if it takes none, the text is sent when the turn has
        ended.
        """
        told = self._feedback.take()
        said, text = text, f"{told}\n\n{text}" if told else text
        try:
            taken = await conversation.steer(text)
        except UserError:
            taken = False
        if taken:
            self._note_sent(conversation, said, text)
        elif self.conversation is conversation:
            self.queued.append(text)
            if self._working:
                self._status.inform(f"{conversation.title} takes it when it is done.")
            self._next()

    def _note_sent(self, conversation: AgentConversation, said: str, message: str) -> None:
        asked = RequestContent(messages=(("user", message),))
        self._sent.note(SentKind.MESSAGE, said, conversation.title, asked)

    def _note(self, conversation: AgentConversation, begin: int) -> None:
        """Journal what was said from an entry on."""
        self._journal.write(_entry(conversation, begin))

    def _next(self) -> None:
        conversation = self.conversation
        if conversation is None or conversation.ended:
            return
        if self.queued and not self._working:
            self._working = True  # from now on, although the task begins a moment later
            self._spawn(self._work(conversation, self.queued.pop(0)))


def _entry(conversation: AgentConversation, begin: int = 0) -> AgentEntry:
    """What continues a conversation later, with what was said from an entry on."""
    said = packed(conversation.entries[begin:])
    return AgentEntry(conversation.agent.key, conversation.session_id, said)
