"""The commands of plain mode: each calls the session and reports the outcome.

Those on hunks, about tests, about the model and about the conversation are in modules of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING

from midstream.counting import counted
from midstream.errors import UsageError, UserError
from midstream.pairing.request.mentions import NeedsConsentError
from midstream.pairing.request.question import Question
from midstream.pairing.status import RUNNING
from midstream.pairing.turn.subject import commit_message
from midstream.plain.check_commands import CheckCommands
from midstream.plain.conversing import RELATED_S, Conversing
from midstream.plain.hunk_commands import HunkCommands
from midstream.plain.model_commands import ModelCommands
from midstream.plain.words import Said, help_lines, place_of
from midstream.workspace.paths import shown

if TYPE_CHECKING:
    from midstream.pairing.request.target import Candidate
    from midstream.pairing.session import PairingSession

MAX_FILES = 200
"""Files that ``/files`` lists."""


class PlainCommands:
    """Carries out the commands, which ``plain.words`` declares.

    Args:
        session: The session.
        say: Prints one line.
        terminal: Whether a user types the lines: an editor can take the terminal, a key be typed.

    Attributes:
        hunks: Commands on hunks.
        checks: Commands about the project's tests.
        model: Commands about the model and what surrounds it.
        conversing: The conversation.
    """

    def __init__(
        self, session: PairingSession, say: Callable[[str], None], *, terminal: bool = False
    ) -> None:
        self.hunks = HunkCommands(session, say, terminal=terminal)
        self.checks = CheckCommands(session, say)
        self.model = ModelCommands(session, say, terminal=terminal)
        self.conversing = Conversing(session, say, terminal=terminal)
        self._session = session
        self._say = say
        self._path: str | None = None
        self._lines: tuple[int, int] | None = None
        self._choices: tuple[Candidate, ...] = ()
        """Places that the last instruction could have meant."""
        self._asked = ""
        """That instruction."""
        self._unsent: tuple[str, ...] = ()
        """Files the user was asked about."""

    def is_file(self, name: str) -> bool:
        """Whether a name is a file's."""
        try:
            return (self._session.root / self._session.workspace.relative(name)).is_file()
        except (UserError, ValueError):
            return False

    async def carry_out(self, said: Said) -> None:
        """Do what a line asks for.

        Raises:
            UserError: It cannot be done; the sentence says why.
        """
        if self._choices and said.word.name == "do" and said.rest.isdigit():
            await self._choose(int(said.rest))
            return
        if said.word.on_hunks is not None:
            await self.hunks.apply(said.word.on_hunks, said.rest)
        else:
            await attrgetter(said.word.call)(self)(said.rest)

    def wonder(self, error: UserError, said: Said) -> tuple[str, ...]:
        """Remember what an error asks, for the next line to answer; the answers there are."""
        from midstream.pairing.request.target import TargetUnclearError

        self._choices, self._unsent = (), ()
        if said.word.name == "do":
            self._asked = said.rest
        if isinstance(error, TargetUnclearError):
            self._choices = error.candidates[:9]
        elif isinstance(error, NeedsConsentError):
            self._unsent = error.paths
        return tuple(candidate.label for candidate in self._choices)

    async def do(self, rest: str) -> None:
        """Send an instruction, or a question."""
        from midstream.pairing.request.kinds import question_of

        if question := question_of(rest):
            await self.conversing.ask(Question(question, self._path, None, self._lines))
        else:
            await self._instruct(rest, self._lines)

    async def _choose(self, number: int) -> None:
        """Send the last instruction again, for one of the places it may mean."""
        if not 1 <= number <= len(self._choices):
            raise UsageError(f"Type a number from 1 to {len(self._choices)} or a new instruction.")
        candidate = self._choices[number - 1]
        path = candidate.path or self._path or ""
        proposal = await self._session.files.open(path)
        lines = candidate.locate(proposal.composed().lines, proposal.path)
        if lines is None:
            raise UsageError(
                f"There is no {candidate.name} in {shown(path)}; open the lines and ask again."
            )
        self._path = proposal.path
        await self._instruct(self._asked, lines)

    async def allow(self, _: str) -> None:
        """Allow the files that the user was asked about, and send the instruction again."""
        if not self._unsent:
            raise UsageError("There is no file to allow.")
        self._session.turns.allow(*self._unsent)
        self._unsent = ()
        await self.do(self._asked)

    async def plan(self, rest: str) -> None:
        """Show, write or ask for a plan."""
        if wish := await self.conversing.plan(rest):
            await self.conversing.ask(Question(wish, self._path, None, self._lines), plan=True)

    async def next(self, _: str) -> None:
        """Carry out the next step of the plan."""
        step = self._session.chat.steps.next
        if not step:
            raise UsageError(
                "No step of the plan is left to carry out; plan TEXT makes a new plan."
            )
        self._say(f"Next: {step}")
        self._asked = step
        await self._instruct(step, self._lines)

    async def _instruct(self, text: str, selection: tuple[int, int] | None) -> None:
        turns = self._session.turns
        running = self._session.status.state in RUNNING
        question = Question(text, self._path, None, selection)
        send = turns.redirect_or_instruct if running else turns.instruct
        server = self._session.server
        told = not running and server.reached and server.model_info.is_chat
        if told:
            await turns.look_around(question, seconds=RELATED_S)
        turn = await send(question)
        if told:
            self._say(f"Sending {turns.context.budget}.")
        if turn.redirected_from is None:
            self._choices = ()
            self._path, self._lines = turn.path, None

    async def stop(self, _: str) -> None:
        """Stop the model."""
        if self._session.status.state in RUNNING:
            await self._session.turns.stop_turn()
        elif self._session.chat.busy:
            await self._session.chat.stop_answer()
        else:
            self._say("Nothing is running.")

    async def redirect(self, rest: str) -> None:
        """Stop, and go on with another instruction."""
        await self._session.turns.redirect(rest)

    async def queue(self, rest: str) -> None:
        """Send an instruction when the answer ends."""
        self._session.turns.queue(rest)
        self._say(f"{counted(len(self._session.turns.queued), 'instruction')} in the queue.")

    async def open(self, rest: str) -> None:
        """Choose what the next instruction is about."""
        name, span = place_of(rest)
        proposal = await self._session.files.open(name)
        self._path, self._lines = proposal.path, span
        length = counted(len(proposal.base.lines), "line")
        where = "" if span is None else f", lines {span[0] + 1} to {span[1]}"
        self._say(f"The next instruction is about {shown(proposal.path)}{where or f', {length}'}.")

    async def files(self, _: str) -> None:
        """List the files of the folder."""
        files = await asyncio.to_thread(self._session.workspace.files)
        for path in files[:MAX_FILES]:
            self._say(shown(path))
        if len(files) > MAX_FILES:
            self._say(f"and {len(files) - MAX_FILES:,} more.")

    async def commit(self, rest: str) -> None:
        """Commit the accepted changes of this and earlier sessions, with what is staged."""
        commit = self._session.commit
        changes = await commit.look()
        if changes.trouble:
            raise UserError(changes.trouble)
        if not changes.stageable and not changes.staged:
            raise UsageError("Nothing that was accepted is left to commit.")
        message = rest.strip('"') or commit_message(self._session.turns, self._session.hunks)
        if not message:
            raise UsageError('Say what changed: commit "MESSAGE".')
        if changes.stageable:
            await commit.stage(*changes.stageable)
        try:
            done = await commit.commit(message)
        except UserError as error:
            for line in str(getattr(error, "output", "")).splitlines():
                self._say(line)
            raise
        where = f" on {changes.branch}" if changes.branch else ""
        self._say(f"Committed {done[:8]}{where}: {message.splitlines()[0]}")
        if told := commit.from_hooks:
            self._say(told)

    async def take(self, rest: str) -> None:
        """Turn code of the last answer into hunks."""
        await self.conversing.take(rest, self._path)

    async def help(self, _: str) -> None:
        """List the commands."""
        self._say("Type an instruction for the model, or a command:")
        for line in help_lines():
            self._say(line)
        self._say("While the model writes, an instruction redirects it; Ctrl+C stops it.")

    async def mend(self, rest: str) -> None:
        """Ask the model to fix what failed at a place."""
        session, finding = self._session, self.checks.finding(rest)
        text = session.mending(finding)
        turn = await session.turns.instruct(Question(text, finding.path, finding.line))
        self._path, self._lines = turn.path, None
