"""The turns of a session: instruct, redirect, stop or queue, and the instructions so far.

``TurnMachine`` carries them out and is loaded for the first one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, overload

from midstream.edits.proposal import Overlay
from midstream.errors import UserError
from midstream.pairing.chat.chat import Chat
from midstream.pairing.chat.plan import SessionPlan
from midstream.pairing.chat.tools import ReadOnlyTools
from midstream.pairing.request.context import Context
from midstream.pairing.request.effort import Effort
from midstream.pairing.request.question import Question
from midstream.pairing.request.sent import Sent, SentKind, SentLog
from midstream.pairing.status import SessionState, StopRequested, Turn, TurnStatus
from midstream.pairing.turn.doubt import Doubts
from midstream.pairing.turn.log import TurnLog
from midstream.responses.conversation import RequestContent

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.pairing.chat.code_blocks import CodeBlock
    from midstream.pairing.chat.entries import Entry
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.guard import Guard, GuardStop
    from midstream.pairing.journal.entries import PlanEntry
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.models.server import ServerLink
    from midstream.pairing.request.builder import RequestBuilder
    from midstream.pairing.request.scope import Scope
    from midstream.pairing.status import SessionStatus, Spawn
    from midstream.pairing.turn.machine import TurnMachine
    from midstream.settings import Settings


class Turns(Sequence[Turn]):
    """All turns, oldest first, and the means to begin and end them.

    Attributes:
        chat: Questions to the model, which are answered in words.
        queued: Instructions that run when the current turn ends.
        background_may_begin: Set unless an instruction of the user is being prepared.
    """

    def __init__(
        self,
        settings: Settings,
        turns: list[Turn],
        said: Sequence[Entry],
        plan: PlanEntry | None,
        files: OpenFiles,
        server: ServerLink,
        status: SessionStatus,
        journal: SessionJournal,
        guard: Guard,
        sent: SentLog,
        spawn: Spawn,
    ) -> None:
        self.queued: list[str] = []
        self.background_may_begin = asyncio.Event()
        self.background_may_begin.set()
        self._settings = settings
        self._files = files
        self._server = server
        self._status = status
        self._guard = guard
        self._sent = sent
        self._spawn = spawn
        self._closed = False
        self._log = TurnLog(turns, files.hunks, status, journal, self._ended)
        self._doubts = Doubts(turns, files.hunks)
        self._effort = Effort(settings.effort, server, status)
        self._allowed: set[str] = set()
        self._failure: Callable[[], str] = str
        self._made: TurnMachine | None = None
        self.chat = Chat(
            files.workspace,
            lambda: self._builder,
            self._allowed,
            server,
            self._effort,
            status,
            journal,
            spawn,
            SessionPlan.of(plan, turns, files.hunks, status, journal),
            sent,
            said,
            offers_tools=settings.tools != "off",
        )

    def apply(self, settings: Settings) -> None:
        """Take over what was changed of the settings."""
        former, self._settings = self._settings, settings
        if settings.effort != former.effort:  # It has a key, too.
            self.effort = settings.effort
        if self._made is not None:
            self._made.apply(settings)

    @property
    def _machine(self) -> TurnMachine:
        if self._made is None:
            from midstream.pairing.turn.machine import TurnMachine

            tool_loop = None
            if self._settings.tools == "always":
                tools = ReadOnlyTools(self._files.workspace, self._allowed, what="instruction")
                tool_loop = self.chat.tool_loop(tools)
            self._made = TurnMachine(
                self._settings,
                self._files,
                self._server,
                self._log,
                self._effort,
                self._guard,
                self._sent,
                allowed=self._allowed,
                failure=lambda: self._failure(),
                conversation=lambda: self.chat.recent,
                tool_loop=tool_loop,
            )
        return self._made

    @property
    def _builder(self) -> RequestBuilder:
        return self._machine.builder

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> list[Turn]: ...
    def __getitem__(self, index: int | slice) -> Turn | list[Turn]:
        """A turn, by its position."""
        return self._log.turns[index]

    def __iter__(self) -> Iterator[Turn]:
        """All turns, oldest first."""
        return iter(self._log.turns)

    def __len__(self) -> int:
        """How many turns there were."""
        return len(self._log.turns)

    # Asking

    async def instruct(self, question: Question) -> Turn:
        """Ask for a change; returns when the request is on its way.

        Args:
            question: The instruction; without a path it must name a symbol or a file.

        Raises:
            TargetUnclearError: The message is a question with candidates.
            NeedsConsentError: A file that would be sent may hold secrets; ``allow`` it, or not.
            UnknownFileError: A name with ``@`` is not a file.
            UserError: A turn is running, the file or the region does not fit the model, no
                model can be reached, or the files are only looked at.
        """
        return await self._begin(question)

    async def propose(
        self, block: CodeBlock, *, path: str | None, cursor: int | None = None
    ) -> Turn:
        """Make hunks of code that the conversation shows; returns when they are on their way.

        Args:
            block: The code.  If it does not say where it goes, the model is asked to put it in.
            path: The file that the user looks at, for code that names no file.
            cursor: 0-based line of the cursor in it.

        Raises:
            UserError: As ``instruct``, or the file has this code already.
        """
        await self._server.ready()  # Whether the model finds places is not known before.
        text = "put in the code that was shown"
        home = path or (self.last.path if self.last is not None else None)
        known = block.text if block.is_patch else await self._edits_of(block, home)
        if known is None:
            await self._server.ready()  # it is to find the place, if it can
            asked = f"Put this code, which you showed before, where it belongs:\n{block.text}"
            here = cursor if block.path in ("", home) else None
            return await self._begin(Question(text, block.path or home, here, asked=asked))
        if home is None:
            home = next(iter(await asyncio.to_thread(self._files.workspace.files)), None)
        return await self._begin(Question(text, home, known=known, known_format="search-replace"))

    async def _edits_of(self, block: CodeBlock, home: str | None) -> str | None:
        """The edits that a block of code stands for, ``None`` if it does not say."""
        from midstream.pairing.chat.code_blocks import as_edits, as_new_file

        workspace = self._files.workspace
        if block.path:
            path = await asyncio.to_thread(workspace.relative, block.path)
            if not await asyncio.to_thread((workspace.root / path).exists):
                return as_new_file(replace(block, path=path))
            home = path
        if home is None:
            return None
        async with self._files.lock:
            proposal = await self._files.refreshed(home)
        lines = list(Overlay(proposal).source.lines)
        if block.text.splitlines() == lines:
            raise UserError(f"{home} has this code already.")
        return as_edits(block, lines, home)

    async def _begin(self, question: Question) -> Turn:
        self._files.workspace.require_writable()
        self.background_may_begin.clear()
        try:
            if self.in_background:
                await self._machine.runner.stop()
            return await self._machine.runner.instruct(question)
        finally:
            self.background_may_begin.set()

    async def run_in_background(self, question: Question) -> Turn:
        """Run a turn that the user has not asked for to its end; raises as ``instruct``."""
        self._files.workspace.require_writable()
        turn = await self._machine.runner.instruct(question)
        await self._machine.runner.finished()
        return turn

    async def preview(self, question: Question) -> Context:
        """What would be sent with an instruction, and its size; sends nothing.

        The ``summary`` of the result fits a line, its ``budget`` also says what is missing.
        Errors are those of ``instruct``.
        """
        await self._know_model()
        return await self._machine.answers.preview(question)

    async def _know_model(self) -> None:
        """Wait for a server that is being started: what is sent depends on the model."""
        if self._status.state is SessionState.STARTING:
            with contextlib.suppress(UserError):
                await self._server.ready()

    async def rehearse(self, question: Question) -> Sent:
        """The request that an instruction would make, which is not sent; errors as ``instruct``."""
        await self._know_model()
        request, context = await self._machine.answers.rehearse(question)
        told = request.conversation
        asked = RequestContent(told.system, tuple(told.messages), request.tools)
        kind, to = SentKind.INSTRUCTION, self._server.recipient
        return Sent(kind, question.text, to, asked, context, request.target)

    async def look_around(self, question: Question, *, seconds: float) -> None:
        """Look for the related code of a place where no preview has begun that before.

        Args:
            question: What is about to be sent.
            seconds: To wait at most; code that is not found by then is not sent.

        Raises:
            UserError: The file cannot be read.
        """
        await self._builder.look_around(question)
        await self.related_found(seconds)

    async def related_found(self, seconds: float | None = None) -> bool:
        """Wait until the related code of the last preview is known; returns whether it had to wait.

        Args:
            seconds: To wait at most.
        """
        related = None if self._made is None else self._made.builder.related
        return related is not None and await related.settled(seconds)

    def take_failures(self, source: Callable[[], str]) -> None:
        """``@error`` sends what ``source`` returns."""
        self._failure = source

    async def aim(self, question: Question) -> Scope:
        """The file and the lines that an instruction would go to; sends nothing.

        Errors are those of ``instruct``.
        """
        return await self._machine.answers.aim(question)

    async def read_ahead(self, question: Question) -> None:
        """Have our own server prefill what ``instruct`` or ``redirect`` would send.

        Called while the user types, so that the answer begins sooner.  Nothing is decided or
        reported; errors show when the text is sent.
        """
        if not self._closed and not self._machine.runner.preparing:
            await self._machine.ahead.read(question)

    def allow(self, *paths: str) -> None:
        """Let these files, which may hold secrets, be sent for the rest of the session."""
        self._allowed.update(map(self._files.workspace.relative, paths))

    @property
    def effort(self) -> str:
        """The effort per answer: ``auto``, ``low``, ``medium``, ``high`` or ``xhigh``.

        Setting another value raises ``UsageError``.
        """
        return self._effort.level

    @effort.setter
    def effort(self, level: str) -> None:
        self._effort.level = level

    async def redirect(self, text: str) -> Turn:
        """Stop, keep what was written, and continue with a new instruction in the same region.

        Raises:
            UserError: No turn is running, or the model cannot be reached any more.
        """
        return await self._machine.runner.redirect(text)

    async def redirect_or_instruct(self, question: Question) -> Turn:
        """Redirect the answer that is being written; if it has just ended, ask for a change.

        A complete answer is looked at before the session is ready again.  Who sends a redirect in
        that moment still saw it being written.  Errors are those of ``instruct``; an answer that
        was stopped or has failed is not followed up.
        """
        from midstream.pairing.turn.runner import NoTurnError

        last = self.last
        try:
            return await self._machine.runner.redirect(question.text)
        except NoTurnError:
            if last is None or last.status is not TurnStatus.DONE:
                raise
        return await self.instruct(question)

    async def stop_turn(self) -> None:
        """Stop the model now: complete lines stay decidable, the rest of the file stays as it is.

        What a screen shows is frozen when this is called; it returns when the server has stopped.
        Queued instructions wait for the end of the next turn; background tasks are dropped.
        """
        self._status.emit(StopRequested())
        if self._made is not None:
            await self._made.runner.stop()

    def report(self, stop: GuardStop) -> None:
        """Take what the guard found in an answer, which ends with it."""
        self._machine.runner.report(stop)

    async def finished(self) -> None:
        """Wait until no turn runs, queued ones that follow included."""
        if self._made is not None:
            await self._made.runner.finished()

    # The queue

    def queue(self, text: str) -> None:
        """Run ``text`` on the current file when the turn ends, or at once if none runs."""
        self.queued.append(text)
        self._status.touch()
        if not self.busy:
            self._run_next()

    def fetch_queued(self) -> str:
        """Take the next instruction out of the queue, ``""`` if it is empty."""
        self._status.touch()
        return self.queued.pop(0) if self.queued else ""

    def _ended(self, turn: Turn) -> None:
        if turn.status is TurnStatus.DONE:
            self._run_next()

    def _run_next(self) -> None:
        if self.queued and not self._closed:
            self._spawn(self._instruct_queued())

    async def _instruct_queued(self) -> None:
        if not self.queued or self.busy:
            return
        text = self.queued.pop(0)
        last = self.last
        try:
            await self.instruct(
                Question(text) if last is None else Question(text, last.path, last.start)
            )
        except UserError as error:
            self._status.fail(f'"{text[:60]}" did not run: {error}')
            self._run_next()

    # What a screen shows

    @property
    def last(self) -> Turn | None:
        """The running or last turn."""
        return self[-1] if self else None

    @property
    def busy(self) -> bool:
        """Whether an instruction is being prepared or answered."""
        return self._made is not None and self._made.runner.busy

    @property
    def streaming(self) -> bool:
        """Whether an answer is being written."""
        return self._made is not None and self._made.runner.streaming

    @property
    def in_background(self) -> bool:
        """Whether the running turn is a background task."""
        last = self.last
        return last is not None and last.running and last.background

    def of(self, hunk: Hunk) -> Turn | None:
        """The turn whose answer a hunk is part of, ``None`` if others wrote it."""
        return self._log.turn_of(hunk)

    @property
    def context(self) -> Context:
        """The context sent with the last instruction."""
        return Context() if self._made is None else self._made.answers.context

    @property
    def trying(self) -> tuple[int, int] | None:
        """The candidate that is being written and how many there will be, else ``None``."""
        return self._effort.trying

    @property
    def writing(self) -> tuple[str, int] | None:
        """File and base line at which the model is writing, else ``None``."""
        return None if self._made is None else self._made.runner.writing

    def doubts(self, hunk: Hunk) -> bool:
        """Whether a hunk is flagged: it belongs to a doubtful answer, or repeats a hunk of one."""
        return self._doubts.about(hunk)

    def was_cut(self, hunk: Hunk) -> bool:
        """Whether a flagged hunk is of an answer that is not complete."""
        return self._doubts.of_cut(hunk)

    async def stop_for_good(self) -> None:
        """Stop the model and forget the queue; the guard may still read what was written."""
        self._closed = True
        self.queued.clear()
        if self._made is not None:
            await self._made.runner.stop()

    async def close(self) -> None:
        """End the coroutine that runs turns."""
        if self._made is not None:
            await self._made.close()
