"""A pairing session: everything a user can do with the model on one folder, without a screen.

``PairingSession`` opens and closes the parts and gives access to them; what they do is in
their own modules.  This package is the only one that knows all the others: edits (proposals and
hunks), workspace (files, git, watcher, journal), responses (the wire) and serving (the embedded
server).  It imports no Textual.  All methods belong to one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream.code.lexing import language_of
from midstream.edits.stand_ins import is_whole
from midstream.errors import UsageError, UserError
from midstream.pairing.chat.entries import unpacked
from midstream.pairing.checks.run import ProjectCheck, proposed_bytes
from midstream.pairing.contents import state_digest
from midstream.pairing.files.attention import Attention
from midstream.pairing.files.commit import AcceptedChanges
from midstream.pairing.files.decide import Decisions
from midstream.pairing.files.open import OpenFiles
from midstream.pairing.files.put_backs import RecentWrites
from midstream.pairing.guard import Guard
from midstream.pairing.journal.entries import AgentEntry
from midstream.pairing.journal.journal import (
    EarlierReview,
    Replay,
    ResumeError,
    SessionJournal,
    earlier_review,
    unreadable_journal,
)
from midstream.pairing.models.disclosures import (
    BUILT_IN,
    Introduction,
    is_unconfigured,
    was_disclosed,
)
from midstream.pairing.models.server import ServerLink
from midstream.pairing.request.sent import SentLog
from midstream.pairing.review.agent import AgentPartner
from midstream.pairing.review.external import ExternalChanges, ExternalReview
from midstream.pairing.review.feedback import Feedback
from midstream.pairing.review.gate import EditGate
from midstream.pairing.review.place import ReaderPlace
from midstream.pairing.review.provenance import Provenances
from midstream.pairing.review.titles import GroupTitles
from midstream.pairing.review.walk import Walkthrough
from midstream.pairing.status import CUT, UNSURE, SessionState, SessionStatus, Turn, TurnStatus
from midstream.pairing.turn.background import BackgroundTasks
from midstream.pairing.turn.checks import UndefinedNames
from midstream.pairing.turn.flags import ReviewFlags
from midstream.pairing.turn.turns import Turns
from midstream.processes import CLOSE_S
from midstream.workspace.files import Workspace
from midstream.workspace.paths import state_dir
from midstream.workspace.repo import repository_trouble

if TYPE_CHECKING:
    from midstream.agents.catalogue import KnownAgent
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.hunks import Hunk
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.checks.findings import FailedPlace
    from midstream.responses.endpoint import Endpoint
    from midstream.settings import Settings
    from midstream.workspace.drafts import Drafts
    from midstream.workspace.snapshot import Snapshot

__all__ = ["PairingSession", "SessionState", "Turn", "TurnStatus"]

_FIRST_TURN = (
    "edits.sniffing",
    "edits.intraline",
    "edits.request",
    "guard.stream",
    "pairing.models.choosing",
    "pairing.request.kinds",
    "pairing.turn.machine",
)


class PairingSession:
    """One user, one model, one folder.  Made by ``open``.

    Attributes:
        root: The folder; no file outside it is read or written.
        workspace: The files on disk.
        hunks: Every hunk of the session and its decision.
        status: State, notices, events, rates and costs.
        server: The model server.
        journal: What the session can be resumed from.
        files: The open files.
        decisions: Decisions about hunks, and the writes that follow from them.
        turns: The turns so far; begins, redirects and stops them.
        chat: Questions to the model, which are answered in words.
        sent: What was sent to models and agents.
        guard: Watches what streams in; reports what it found and what it does not see.
        attention: How long hunks were on screen, as reported by the screen.
        background: ``AI!`` comments, follow-on edits, "the same elsewhere".
        review: Has what other programs write reviewed, once it is switched on.
        agent: The coding agent that instructions go to, once one was begun.
        feedback: What the agent is to be told about decisions.
        provenance: Who wrote the hunks of other programs, and why.
        walk: The groups of a large change, and the order to read it in.
        place: How far the reader has come in them, as reported by the screen.
        flags: What the checks find in changes of others that wait.
        gate: Holds edits of agents with our hooks until they are decided.
        external: What other programs change, and the state of the repository.
        commit: Staging and committing what was accepted.
        check: Runs the project's own test command.
        drafts: What was typed here in earlier sessions, kept up to date by the screen and written
            at the end; ``None`` where no journal is kept.
        introduction: Whether to say what the built-in model is for.
    """

    def __init__(
        self,
        workspace: Workspace,
        settings: Settings,
        *,
        server: ServerLink,
        journal: SessionJournal,
        resumed: Replay,
        drafts: Drafts | None,
        state_dir: Path,
    ) -> None:
        self.root = workspace.root
        self.workspace = workspace
        self._settings = settings
        self.hunks: HunkStore = resumed.hunks
        self.status = SessionStatus()
        self.server = server
        server.connect(self._server_ended)
        self.journal = journal
        self.drafts = drafts
        self._state_dir = state_dir
        self._tasks = SessionTasks(self.status)
        self._ending: asyncio.Task[None] | None = None
        self._hangs = False
        """Whether something did not end when this was closed."""
        self.guard = Guard(
            on=settings.guard,
            levels=settings.guard_levels,
            hunks=self.hunks,
            status=self.status,
            journal=journal,
        )
        self.attention = Attention(settings.attention, self.reason, resumed.reading)
        spawn = self._tasks.spawn
        writes = RecentWrites()
        files = self.files = OpenFiles(workspace, resumed, self.status, journal)
        self.decisions = Decisions(
            files, self.status, journal, self.guard, self.attention, writes, spawn
        )
        self.sent = SentLog()
        self.turns = Turns(
            settings,
            resumed.turns,
            unpacked(resumed.chat),
            resumed.plan,
            files,
            self.server,
            self.status,
            journal,
            self.guard,
            self.sent,
            spawn,
        )
        self.guard.connect(self.turns.report)
        self.chat = self.turns.chat
        self.background = BackgroundTasks(
            files,
            self.server,
            self.status,
            self.turns,
            self.decisions.accept,
            comments=settings.ai_comments,
        )
        self.review = ExternalReview(
            files, self.decisions.put_backs, self.guard, self.status, journal, writes
        )
        self.feedback = Feedback(self.hunks, self.status, settings.feedback)
        self.agent = AgentPartner(
            workspace, self.review, writes, self.feedback, self.status, journal, self.sent, spawn
        )
        self.provenance = Provenances(
            self.root, self.hunks, resumed.provenance, self.review, self.agent, writes, journal
        )
        if not workspace.read_only:  # Nobody writes in a range of commits.
            self.status.subscribe(self.provenance.hear)
        self.gate = EditGate(
            files,
            self.decisions,
            self.review,
            self.feedback,
            self.provenance,
            self.status,
            writes,
            spawn,
            on=settings.hold_edits,
            wait_s=settings.hold_s,
        )
        self.feedback.connect(lambda: self.agent.on or self.gate.heard)
        self.external = ExternalChanges(
            files, self.review, self.status, spawn, self.background.changed
        )
        self.commit = AcceptedChanges(files, self.attention, self.review.begun, self.status)
        self.check = ProjectCheck(
            workspace,
            self.hunks,
            self.status,
            spawn,
            partial(proposed_bytes, files),
            configured=settings.check_command,
            after_accepts=settings.check_after_accepts,
        )
        self.turns.take_failures(self.check.failure)
        self.status.subscribe(UndefinedNames(files, self.status, writes, spawn).hear)
        self.flags = ReviewFlags(files, self.status, writes, spawn)
        self.status.subscribe(self.flags.hear)
        self.walk = Walkthrough(
            files, self.status, spawn, self.attention, self.reason, resumed.reading
        )
        self.status.subscribe(self.walk.hear)
        self.titles = GroupTitles(
            workspace, self.server, self.status, journal, self.sent, resumed.reading
        )
        self.place = ReaderPlace(self.hunks, self.attention, self.walk, journal, resumed.reading)
        self.introduction = Introduction()

    @classmethod
    async def open(
        cls,
        root: Path,
        *,
        settings: Settings,
        endpoint: Endpoint | None = None,
        replay: Path | None = None,
        server: ServerLink | None = None,
        journal: bool = True,
        resume: Path | None = None,
        watch: bool = True,
        review: bool = False,
        agent: KnownAgent | None = None,
        snapshot: Snapshot | None = None,
        introduce: bool = False,
    ) -> PairingSession:
        """Open a session on a folder and return at once; the server starts in the background.

        Args:
            root: The folder.
            settings: The user's settings.
            endpoint: A server to use instead of the configured or embedded one.
            replay: A script for the embedded server to play instead of running a model.
            server: A link for these settings that was launched already, in place of ``endpoint``
                and ``replay``; the session closes it.
            journal: Whether to keep a journal; ``settings.journal`` must allow it as well.
            resume: The journal of an earlier session of this root to continue.
            watch: Whether to follow changes by other programs and the state of the repository, and
                to load ahead what the first turn needs.
            review: Whether those changes, and what is not staged yet, wait for decisions.
            agent: A coding agent to start; the model server then waits until it is needed.
            snapshot: The range of commits whose files ``root`` has.  It is reviewed, read-only.
            introduce: Whether a user reads what the built-in model is for, if that is news.

        Raises:
            UserError: ``root`` cannot be opened, or the journal to resume is in use.
        """
        from midstream.workspace.drafts import read_drafts
        from midstream.workspace.journal import Journal

        label = "" if snapshot is None else snapshot.label
        workspace = await asyncio.to_thread(partial(Workspace, root, snapshot_of=label))
        state = state_dir()
        keeps = journal and settings.journal
        create = partial(Journal.create, state, workspace.root) if keeps else None
        written, resumed, trouble = SessionJournal(create), None, ""
        if resume is not None:
            try:
                kept = Journal.open(resume)
            except OSError as error:
                trouble = str(unreadable_journal(resume, error))
            else:
                try:
                    resumed = await asyncio.to_thread(Replay.read, resume)
                    written = SessionJournal(create, kept)
                except ResumeError as error:
                    kept.close()
                    trouble = str(error)
        session = cls(
            workspace,
            settings,
            server=server or ServerLink(settings, endpoint=endpoint, replay=replay),
            journal=written,
            resumed=resumed or Replay(),
            drafts=None if create is None else await asyncio.to_thread(read_drafts, state, root),
            state_dir=state,
        )
        written.watch(session._journal_watch())
        if introduce and session.server.built_in and is_unconfigured(settings):
            known = await asyncio.to_thread(was_disclosed, BUILT_IN)
            session.introduction.due = not known
        for sentence in filter(None, (*workspace.recovery, trouble)):
            session.status.warn(sentence)
        for _, reason in settings.broken_endpoints:
            session.status.warn(f"An endpoint is left out: {reason}")
        if resumed is not None and resumed.baseline is not None and snapshot is None:
            # Changes that wait are those of a review, which goes on with the session.
            review = review or any(hunk.external for hunk in resumed.hunks.waiting())
        if review:
            session.review.expect()
        if resumed is not None:
            session.files.follower.reviewing = review  # what was written meanwhile waits, too
            await session._resume(resumed)
        # Before the rest: what these wait for, git and the kernel, goes on while it is imported.
        if watch and snapshot is None:
            session._tasks.spawn(session._look_at_repository())
            if settings.continuous:
                session._tasks.spawn(session.background.set_continuous(on=True))
            session.external.start(reviewing=review)
        session._tasks.spawn(
            session._begin(agent, snapshot, review=review, resumed=resumed, ahead=watch)
        )
        return session

    def apply_settings(self, settings: Settings) -> None:
        """Take over what was changed of the settings, where that needs no new session."""
        former, self._settings = self._settings, settings
        self.guard.on = settings.guard
        self.attention.on = settings.attention
        self.turns.apply(settings)
        self.check.configured = settings.check_command
        self.check.after_accepts = settings.check_after_accepts
        self.background.comments = settings.ai_comments
        if settings.continuous != former.continuous:  # It has a key, too.
            self._tasks.spawn(self.background.set_continuous(on=settings.continuous))
        self.feedback.mode = settings.feedback
        self.gate.wait_s = settings.hold_s
        self.gate.hold(on=settings.hold_edits)

    @property
    def version(self) -> int:
        """Grows with everything a screen could show; while it stays, there is nothing to paint."""
        proposals = sum(proposal.version for proposal in self.files.values())
        return self.status.version + self.hunks.version + proposals

    def reason(self, hunk: Hunk) -> str:
        """Why a hunk should be reviewed by itself, ``""`` for no reason.

        Because of what the guard or, in a change of others, the checks found in it; or, until it is
        decided or rewritten by the user, because the model is unsure of it or its answer was cut.
        """
        found = self.guard.reason(hunk) or self.flags.reason(hunk)
        if found or hunk.decided or hunk.own:
            return found
        if not self.turns.doubts(hunk):
            return ""
        return CUT if self.turns.was_cut(hunk) else UNSURE

    @property
    def only_reviews(self) -> bool:
        """Whether all there is to decide was written by other programs, to be kept or put back."""
        counts = self.hunks.counts()
        return counts.only_external if counts.live else self.review.on

    def flagged_on_disk(self) -> list[Hunk]:
        """Undecided changes of others in which the guard or the checks have found something.

        None in a range of commits, whose files never change.
        """
        if self.workspace.read_only:
            return []
        held = self.guard.on_disk()
        return held + [h for h in self.hunks.waiting() if h not in held and self.flags.reason(h)]

    def keep_draft(self, text: str, pasted: list[str]) -> None:
        """Note unsent input; an erased draft is deleted from the disk at once."""
        if self.drafts is not None and self.drafts.note(text, pasted) and not self.closed:
            self._tasks.spawn(self._write_drafts())

    async def take_drafts(self, former: PairingSession) -> None:
        """Go on with what was typed in the session that this one takes the place of."""
        if former.drafts is not None and self.drafts is not None:
            await former._write_drafts()
            self.drafts, former.drafts = former.drafts, None

    async def earlier_review(self) -> EarlierReview | None:
        """The ended session in which hunks were kept that wait in the review which has begun."""
        await self.review.begun()
        return await asyncio.to_thread(earlier_review, self.root, self.hunks.waiting())

    async def delete_earlier(self, journal: Path) -> None:
        """Delete an earlier session of this folder and what was sent in it.

        Raises:
            JournalInUseError: A running Midstream writes the journal.
            WorkspaceError: The system refuses.
        """
        from midstream.workspace.journal import delete_journal

        await asyncio.to_thread(delete_journal, journal)
        if self.drafts is not None:
            self.drafts.forget(journal)
            await self._write_drafts()

    def mending(self, finding: FailedPlace) -> str:
        """The instruction that asks this session's model to fix the findings of a check."""
        return self.check.instruction(finding, with_output=self.server.profile is not None)

    async def close(self) -> None:
        """End the turn, the server, the watcher and the journal.

        Returns after ``CLOSE_S`` even if something does not end; then ``hangs`` says so.  Whoever
        closes a session that is being closed waits for the same end.
        """
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        _, unfinished = await asyncio.wait({self._ending}, timeout=CLOSE_S)
        self._hangs = bool(unfinished)
        if self._hangs:
            self.journal.close()
        else:
            self._ending.result()

    @property
    def closed(self) -> bool:
        """Whether it is closed or being closed."""
        return self._ending is not None

    @property
    def hangs(self) -> bool:
        """Whether it was closed and something of it would not end."""
        return self._hangs

    def _journal_watch(self) -> Callable[[], None]:
        """A listener, for any thread, to a journal that cannot be made or written."""
        loop = asyncio.get_running_loop()

        def tell() -> None:
            trouble = self.journal.trouble
            if trouble and self.journal.path is None:
                self.status.warn(f"This session has no journal and cannot be resumed ({trouble}).")
            elif trouble:
                self.status.warn(
                    f"The journal cannot be written ({trouble}): free some space, or what happens "
                    "from now on cannot be resumed."
                )

        def heard() -> None:
            with contextlib.suppress(RuntimeError):  # The loop is closed.
                loop.call_soon_threadsafe(tell)

        return heard

    async def _end(self) -> None:
        self.server.shut()
        await self.commit.close()
        await self.background.close()
        await self.gate.close()
        await self.agent.close()
        await self.chat.close()
        await self.turns.stop_for_good()
        await self.guard.close()
        await self.turns.close()
        self.external.close()
        self.check.close()
        await self._tasks.close()
        await self._write_drafts()
        self.place.write()
        async with self.files.lock:
            await self.server.close()
            self.journal.close()

    async def __aenter__(self) -> PairingSession:
        """The session itself; it is closed when the block is left."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the session."""
        await self.close()

    async def _begin(
        self,
        agent: KnownAgent | None,
        snapshot: Snapshot | None,
        *,
        review: bool,
        resumed: Replay | None,
        ahead: bool,
    ) -> None:
        """Start the review, then the agent or the model server, which take a core for a second.

        What the first turn needs is loaded meanwhile if that is to be done ``ahead``.
        """
        try:
            baseline = None if resumed is None else resumed.baseline
            if snapshot is not None:
                await self.review.start_range(snapshot, baseline)
            elif review:
                await self.review.switch_on(since_commit=True, record=baseline)
        finally:
            if ahead:
                self._tasks.spawn(asyncio.to_thread(_load))
            earlier = None if resumed is None else resumed.agent
            if agent is None and earlier is not None:
                from midstream.agents.catalogue import find_agent

                agent = find_agent(earlier.agent)
            if agent is not None:
                await self._start_agent(agent, earlier)
            else:
                await self._start_server()

    async def _look_at_repository(self) -> None:
        await self.review.begun()  # What waits for a decision is shown first.
        if trouble := await asyncio.to_thread(repository_trouble, self.root):
            self.status.warn(trouble)

    async def _start_server(self) -> None:
        try:
            await self.server.ready()
        except UserError as error:
            if not self.turns.busy:
                self.status.enter(SessionState.OFFLINE)
                # What is missing is given on the models page; a server is started elsewhere.
                self.status.fail(str(error), "models" if isinstance(error, UsageError) else "")
            return
        self.status.disclose(self.server.disclosure())
        waiting = self.status.state in (SessionState.STARTING, SessionState.OFFLINE)
        if waiting and not self.turns.busy:
            self.status.enter(SessionState.READY)

    def use_model(self, settings: Settings) -> None:
        """Answer the next request with the model of these settings.

        Where no server was reached, this one is at once, so that the state on screen is its own.
        """
        self.server.switch(settings)
        if self.status.state is SessionState.OFFLINE and not self.turns.busy:
            self.status.enter(SessionState.STARTING)
            self._tasks.spawn(self._start_server())

    async def _start_agent(self, agent: KnownAgent, earlier: AgentEntry | None) -> None:
        try:
            await self.agent.begin(agent, earlier)
        except UserError as error:
            self.status.fail(str(error))
            await self._start_server()
            return
        # The journal hides secrets in what is said; its patterns take 0.2 s and more to compile.
        await asyncio.to_thread(import_module, "midstream.guard.secrets")
        self.status.enter(SessionState.READY)

    def _server_ended(self) -> None:
        """The embedded server has ended by itself; a running turn learns it from its stream."""
        if self.closed or self.turns.streaming or self.status.state is SessionState.OFFLINE:
            return
        self.status.enter(SessionState.OFFLINE)
        self.status.warn("The model server has exited; the next instruction restarts it.")

    async def _write_drafts(self) -> None:
        from midstream.workspace.drafts import write_drafts

        if self.drafts is not None:
            if self.journal.path is not None:
                self.drafts.assign(self.journal.path)
            await asyncio.to_thread(write_drafts, self._state_dir, self.root, self.drafts)

    async def _resume(self, resumed: Replay) -> None:
        on_disk = {
            path: await asyncio.to_thread(self._digest, proposal)
            for path, proposal in resumed.files.items()
        }
        resumed.finish(self.journal, on_disk)
        await self.files.changed(resumed.files)
        for call in self.hunks.calls:  # an agent was allowed to write it, and has not
            self.decisions.drop_call(call)
        await self.guard.look_again(self.files, resumed.released)
        self.decisions.put_backs.resume()
        self.walk.look(self.files)
        undecided = self.hunks.waiting()
        files = len({hunk.path for hunk in undecided})
        self.status.inform(
            f"The last session is back: {len(undecided)} undecided "
            f"hunk{'s' * (len(undecided) != 1)} in {files} file{'s' * (files != 1)}."
            if undecided
            else "The last session is back; "
            + ("every hunk in it is decided." if len(self.hunks) else "it made no hunks.")
        )

    def _digest(self, proposal: FileProposal) -> str | None:
        try:
            entry = self.workspace.peek_entry(proposal.path)
        except UserError:
            return None
        return state_digest(entry, whole=is_whole(proposal.base))


class SessionTasks:
    """Keeps tasks alive, reports those that fail, and cancels what is left at the end."""

    def __init__(self, status: SessionStatus) -> None:
        self._status = status
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run ``work`` until it ends or the session is closed."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def close(self) -> None:
        """Cancel every task and wait for its end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._status.fail(f"Midstream itself failed in the background ({error!r}).")


def _load() -> None:
    """Load what the first file and turn need, so that they do not hold up the screen."""
    for name in _FIRST_TURN:
        import_module(f"midstream.{name}")
    language_of("x.py")
