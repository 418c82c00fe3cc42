"""A pairing session: everything a person can do with the model on one folder, without a screen.

It knows the other rooms and is the only one that does: edits (proposals and hunks), workspace
(files, git, watcher, journal), responses (the wire) and serving (the embedded server).  It imports
no Textual.  All methods belong to one event loop.

This module puts the parts together: ``desk`` (files), ``deciding`` (decisions), ``turn`` and
``request`` (turns), ``link`` (the server), ``outside`` (what others change), ``recorder`` and
``resuming`` (the journal), ``board`` (state, notices, events),
``showing`` (what a screen asks for).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream.errors import UserError
from midstream.pairing.attention import Attention
from midstream.pairing.background import BackgroundTasks
from midstream.pairing.board import Board
from midstream.pairing.commit import AcceptedChanges
from midstream.pairing.deciding import Deciding
from midstream.pairing.desk import Desk
from midstream.pairing.guard import Guard
from midstream.pairing.journal import SessionJournal
from midstream.pairing.link import Link
from midstream.pairing.meter import Meter
from midstream.pairing.outside import Outside
from midstream.pairing.read_ahead import ReadAhead
from midstream.pairing.request.builder import Question, RequestBuilder
from midstream.pairing.request.context import Context
from midstream.pairing.showing import Showing
from midstream.pairing.turn.answers import Answers
from midstream.pairing.turn.candidates import AnswerWriter
from midstream.pairing.turn.drafts import DraftFiles
from midstream.pairing.turn.effort import Effort
from midstream.pairing.turn.inbox import Inbox
from midstream.pairing.turn.log import TurnLog
from midstream.pairing.turn.responses import Responses
from midstream.pairing.turn.review import Reviewer
from midstream.pairing.turn.runner import TurnRunner
from midstream.pairing.turns import SessionState, Turn, TurnStatus
from midstream.pairing.undefined_names import UndefinedNames

if TYPE_CHECKING:
    from midstream.edits.hunks import HunkStore
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.journal import Replay
    from midstream.responses.endpoint import Endpoint
    from midstream.settings import Settings
    from midstream.workspace.drafts import Drafts
    from midstream.workspace.files import Workspace
    from midstream.workspace.journal import Journal
    from midstream.workspace.repo import RepoStatus
    from midstream.workspace.watch import Watcher

__all__ = ["PairingSession", "SessionState", "Turn", "TurnStatus"]

_FIRST_TURN = (
    "edits.sniffing",
    "edits.intraline",
    "edits.request",
    "guard.stream",
    "pairing.choosing",
)


class PairingSession(Deciding, Outside, Showing):
    """One person, one model, one folder.  Made by ``open``.

    Attributes:
        root: The folder; no file outside it is read or written.
        workspace: The files.
        hunks: Every hunk of the session and its decision.
        files: Open proposals by path relative to the root.
        repo: Branch and dirty state, or ``None`` where there is no repository.
        meter: Rates and token counts.
        queued: Instructions that run when the current turn ends.
        drafts: What was typed here in earlier sessions, to be kept up by the screen and written at
            the end; ``None`` where no journal is kept.
        guard: Watches what streams in; says what it found and what it does not see.
        attention: How long hunks were on screen; the screen tells it.
        committing: Staging and committing what was accepted.
        errands: What the session asks the model by itself: ``AI!`` comments in saved files,
            follow-on edits, "the same elsewhere".
    """

    def __init__(
        self,
        workspace: Workspace,
        hunks: HunkStore,
        *,
        settings: Settings,
        endpoint: Endpoint | None,
        replay: Path | None,
        recorder: SessionJournal,
        resumed: Replay | None,
        state: Path,
        drafts: Drafts | None,
    ) -> None:
        self.root = workspace.root
        self.workspace = workspace
        self.hunks = hunks
        self.repo: RepoStatus | None = None
        self.meter = Meter()
        self.queued: list[str] = []
        self._board = Board()
        self._recorder = recorder
        self._link = Link(
            settings, endpoint=endpoint, replay=replay, state=state, on_lost=self._server_ended
        )
        self._desk = Desk(workspace, hunks, self._board, recorder, self._look_at_repo)
        self.files: dict[str, FileProposal] = self._desk.files
        if resumed is not None:
            self._desk.files.update(resumed.files)
            self._desk.digests.update(resumed.digests)
            self._desk.absent |= resumed.absent
        inbox = Inbox()
        self.guard = Guard(
            on=settings.guard,
            levels=settings.guard_levels,
            hunks=hunks,
            board=self._board,
            journal=recorder,
            report=inbox.put,
        )
        self.attention = Attention(settings.attention, self.reason)
        self.committing = AcceptedChanges(self.root, self.files, hunks, self.attention)
        self._board.subscribe(self.committing.hear)
        self._board.subscribe(UndefinedNames(self.files, hunks, self._board, self._spawn).hear)
        self._turns = TurnLog(
            resumed.turns if resumed is not None else [],
            hunks,
            self._board,
            self.meter,
            recorder,
            self._turn_ended,
        )
        self._effort = Effort(settings.effort, self._link, self._board)
        self._builder = RequestBuilder(workspace, hunks, self._desk, self._link)
        self._answers = Answers(
            workspace, self._desk, self._link, self._builder, self._turns, self.guard
        )
        responses = Responses(self._link, self._turns, self.guard, self._effort)
        files = DraftFiles(workspace, self.files)
        writer = AnswerWriter(self._effort, responses, self._turns, files, settings.check_command)
        reviewer = Reviewer(self._desk, self._link, self._turns, self._effort)
        self._runner = TurnRunner(inbox, self._turns, self._answers, writer, reviewer, self.guard)
        self._ahead = ReadAhead(self._builder, self._desk, self._link, self._turns, self._effort)
        self.errands = BackgroundTasks(
            workspace=workspace,
            files=self.files,
            hunks=hunks,
            board=self._board,
            model=lambda: self.model_info,
            instruct=self._run_errand,
            idle=self._runner.finished,
            comments=settings.ai_comments,
        )
        self.drafts = drafts
        self._state_dir = state if drafts is not None else None
        self._watcher: Watcher | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._repo_timer: asyncio.TimerHandle | None = None
        self._closed = False

    @classmethod
    async def open(
        cls,
        root: Path,
        *,
        settings: Settings,
        endpoint: Endpoint | None = None,
        replay: Path | None = None,
        journal: bool = True,
        resume: Path | None = None,
        watch: bool = True,
    ) -> PairingSession:
        """Open a session on a folder and return at once; the server starts in the background.

        Args:
            root: The folder.
            settings: What the person configured.
            endpoint: A server to use instead of the configured or embedded one.
            replay: A script for the embedded server to play instead of running a model.
            journal: Whether to keep a journal; ``settings.journal`` must allow it as well.
            resume: The journal of an earlier session of this root to take up again.
            watch: Whether to follow changes to files from outside and the state of the repository.

        Raises:
            UserError: ``root`` cannot be opened, or the journal to resume is in use.
        """
        from midstream.edits.hunks import HunkStore
        from midstream.workspace.drafts import read_drafts
        from midstream.workspace.files import Workspace
        from midstream.workspace.journal import Journal
        from midstream.workspace.paths import state_dir

        workspace = await asyncio.to_thread(Workspace, root)
        state = state_dir()
        create: Callable[[], Journal] | None = None
        if journal and settings.journal:

            def create_journal() -> Journal:
                return Journal.create(state, workspace.root)

            create = create_journal
        recorder, resumed, trouble = SessionJournal(create), None, ""
        if resume is not None:
            from midstream.pairing.journal import Replay, ResumeError

            kept = Journal.open(resume)
            try:
                resumed = await asyncio.to_thread(Replay.read, resume)
                recorder = SessionJournal(create, kept)
            except ResumeError as error:
                kept.close()
                trouble = str(error)
        session = cls(
            workspace,
            resumed.hunks if resumed is not None else HunkStore(),
            settings=settings,
            endpoint=endpoint,
            replay=replay,
            recorder=recorder,
            resumed=resumed,
            state=state,
            drafts=None if create is None else await asyncio.to_thread(read_drafts, state, root),
        )
        if trouble:
            session._board.warn(trouble)
        if resumed is not None:
            await session._take_up(resumed)
        session._spawn(session._start_server())
        if watch:
            if settings.continuous:
                session._spawn(session.errands.turn(on=True))
            session._spawn(session._watch())
            session._spawn(session._read_repo())
        return session

    # Files

    async def open_file(self, rel: str) -> FileProposal:
        """The proposal of a file, opening it when needed.

        Raises:
            UserError: The file is missing, unreadable, too large, not text, or outside the root.
        """
        return await self._desk.open(rel)

    # Steering

    def use_endpoint(self, settings: Settings) -> None:
        """Send the next request to the endpoint and model of these settings."""
        self._link.switch(settings)

    async def instruct(
        self,
        text: str,
        *,
        path: str | None = None,
        cursor: int | None = None,
        selection: tuple[int, int] | None = None,
    ) -> Turn:
        """Ask for a change; returns when the request is on its way.

        Args:
            text: The instruction; ``@path`` in it sends that file along.
            path: The file it is about; without it the instruction must name a symbol or a file.
            cursor: 0-based line of the cursor, in the file as it is on disk (accepted hunks
                included, others not).
            selection: 0-based half-open range of such lines that overrides the search.

        Raises:
            TargetUnclearError: The sentence is a question with candidates.
            NeedsConsentError: A file that would be sent is ignored by git; ``allow`` it, or not.
            UnknownFileError: A name with ``@`` is no file's.
            UserError: A turn is running, the file or the region does not fit the model, or no
                model can be reached.
        """
        with self.errands.held():
            if self.in_background:
                await self._runner.stop()
            return await self._runner.instruct(Question(text, path, cursor, selection))

    async def _run_errand(
        self,
        text: str,
        *,
        path: str,
        selection: tuple[int, int],
        consume: bool,
        words: bool,
        known: str | None,
    ) -> Turn:
        question = Question(
            text, path, None, selection, consume, background=True, words=words, known=known
        )
        turn = await self._runner.instruct(question)
        await self._runner.finished()
        return turn

    async def preview(
        self,
        text: str,
        *,
        path: str | None = None,
        cursor: int | None = None,
        selection: tuple[int, int] | None = None,
    ) -> Context:
        """What would go along with an instruction, and what it takes; sends nothing.

        The ``summary`` of the result fits a line, its ``cuts`` say what is missing.  Arguments and
        errors are those of ``instruct``.
        """
        if self.state is SessionState.STARTING:  # What goes along depends on the model.
            with contextlib.suppress(UserError):
                await self._link.ready()
        return await self._answers.preview(Question(text, path, cursor, selection))

    async def read_ahead(
        self,
        text: str,
        *,
        path: str | None = None,
        cursor: int | None = None,
        selection: tuple[int, int] | None = None,
    ) -> None:
        """Have a server of our own read what ``instruct``, or ``redirect``, would send with this.

        For whoever types: the answer then begins sooner.  Nothing is decided or told; what is wrong
        with the text shows when it is sent.  Arguments are those of ``instruct``.
        """
        if not self._closed and not self._runner.preparing:
            await self._ahead.read(Question(text, path, cursor, selection))

    def allow(self, *paths: str) -> None:
        """Let files that git ignores go out when an instruction names them, in this session."""
        self._builder.allowed.update(map(self.workspace.relative, paths))

    @property
    def effort(self) -> str:
        """How much is done for an answer: ``auto``, ``low``, ``medium``, ``high`` or ``xhigh``.

        Setting another value raises ``UsageError``.
        """
        return self._effort.level

    @effort.setter
    def effort(self, level: str) -> None:
        self._effort.level = level

    async def stop(self) -> None:
        """Stop the model now: complete lines stay decidable, the unread rest of the file stays.

        What a screen shows is frozen when this is called; it returns when the server has stopped.
        Queued instructions wait for the end of the next turn; errands are dropped.
        """
        if dropped := self.errands.drop():
            them = "an edit" if dropped == 1 else f"{dropped} edits"
            self._board.inform(f"The model will not go on with {them} in the background.")
        await self._runner.stop()

    async def redirect(self, text: str) -> Turn:
        """Stop, keep what has come, and go on with a new instruction in the same region.

        Raises:
            UserError: No turn is running, or the model cannot be reached any more.
        """
        return await self._runner.redirect(text)

    def queue(self, text: str) -> None:
        """Run ``text`` on the current file when the turn ends, or at once if none runs."""
        self.queued.append(text)
        self._board.touch()
        if not self._runner.busy:
            self._run_next()

    def fetch_queued(self) -> str:
        """Take the next queued instruction out of the queue, ``""`` if none waits."""
        self._board.touch()
        return self.queued.pop(0) if self.queued else ""

    async def finished(self) -> None:
        """Wait until no turn runs, queued ones that follow included."""
        await self._runner.finished()

    def keep_draft(self, text: str, pasted: list[str]) -> None:
        """Note what is not sent; an erased draft goes from the disk at once."""
        if self.drafts is not None and self.drafts.note(text, pasted) and not self._closed:
            self._spawn(self._write_drafts())

    # Ending

    async def close(self) -> None:
        """End the turn, the server, the watcher and the journal."""
        if self._closed:
            return
        self._closed = True
        self._link.shut()
        self.queued.clear()
        await self.errands.close()
        await self._runner.stop()
        await self.guard.close()
        await self._runner.close()
        if self._repo_timer is not None:
            self._repo_timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        for task in list(self._tasks):
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
        await self._write_drafts()
        async with self._desk.lock:
            await self._link.close()
            self._recorder.close()

    async def __aenter__(self) -> PairingSession:
        """The session itself; it is closed when the block is left."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the session."""
        await self.close()

    # Background

    async def _start_server(self) -> None:
        try:
            await self._link.ready()
        except UserError as error:
            if not self._runner.busy:
                self._board.enter(SessionState.OFFLINE)
                self._board.fail(str(error))
            return
        if self.state in (SessionState.STARTING, SessionState.OFFLINE) and not self._runner.busy:
            self._board.enter(SessionState.READY)
        await asyncio.to_thread(_load)

    def _server_ended(self) -> None:
        """The embedded server has ended by itself; a running turn learns it from its stream."""
        if self._closed or self._runner.streaming or self.state is SessionState.OFFLINE:
            return
        self._board.enter(SessionState.OFFLINE)
        self._board.warn("The model server has ended; the next instruction starts it again.")

    async def _write_drafts(self) -> None:
        from midstream.workspace.drafts import write_drafts

        if self.drafts is not None and self._state_dir is not None:
            await asyncio.to_thread(write_drafts, self._state_dir, self.root, self.drafts)

    async def _take_up(self, resumed: Replay) -> None:
        on_disk = {path: await asyncio.to_thread(self._digest, path) for path in resumed.files}
        resumed.finish(self._recorder, on_disk)
        self._desk.digests.update(resumed.digests)
        await self._desk.changed(resumed.files)
        await self.guard.look_again(self.files, resumed.released)
        undecided = self.hunks.undecided()
        files = len({hunk.path for hunk in undecided})
        self._board.inform(
            f"The last session is back: {len(undecided)} undecided "
            f"hunk{'s' * (len(undecided) != 1)} in {files} file{'s' * (files != 1)}."
            if undecided
            else "The last session is back; "
            + ("every hunk in it is decided." if len(self.hunks) else "it made no hunks.")
        )

    def _digest(self, path: str) -> str | None:
        try:
            return self.workspace.digest(path)
        except UserError:
            return None

    def _turn_ended(self, turn: Turn) -> None:
        if turn.status is TurnStatus.DONE:
            self._run_next()

    def _run_next(self) -> None:
        if self.queued and not self._closed:
            self._spawn(self._instruct_queued())

    async def _instruct_queued(self) -> None:
        if not self.queued or self._runner.busy:
            return
        text = self.queued.pop(0)
        last = self.turn
        try:
            await self.instruct(
                text,
                path=None if last is None else last.path,
                cursor=None if last is None else last.start,
            )
        except UserError as error:
            self._board.fail(f'"{text[:60]}" did not run: {error}')
            self._run_next()


def _load() -> None:
    """Load what the first file and turn need, so that they do not hold up the screen."""
    from midstream.edits.lexing import language_of

    for name in _FIRST_TURN:
        import_module(f"midstream.{name}")
    language_of("x.py")
