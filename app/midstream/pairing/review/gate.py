"""The gate: edits of coding agents are decided hunk by hunk before the agent writes them.

A hook of the agent (``agents.hooks``) asks what becomes of a call of its edit tool.  What the call
would change becomes hunks, marked with the number of the call.  When all of them are decided the
agent may write: the whole edit, or a smaller one that has only what was accepted, or nothing.  The
hunk store never writes these hunks.  Accepted ones are recognised in the file when the agent has
written it (``FileProposal.advance``) and are like any other from then on.
"""

from __future__ import annotations

import asyncio
import contextlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.edits.documents import NO_FILE, join_lines
from midstream.edits.hunks import HunkState
from midstream.errors import UserError
from midstream.pairing.review.feedback import verdict
from midstream.pairing.status import AgentWaits, ReviewSwitched, SessionEvent
from midstream.workspace.errors import MissingFileError
from midstream.workspace.paths import few_shown, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from midstream.agents.hooks import HookAnswer, HookEndpoint, HookEvent
    from midstream.edits.agent_input import PlannedFile
    from midstream.edits.hunks import Hunk
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.files.decide import Decisions
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.files.put_backs import RecentWrites
    from midstream.pairing.review.external import ExternalReview
    from midstream.pairing.review.feedback import Feedback
    from midstream.pairing.review.provenance import Provenances
    from midstream.pairing.status import SessionStatus, Spawn

WRITTEN_WITHIN_S: Final = 30.0
"""An agent that has not written what it may after this time is taken to have given up."""

SEEN_S: Final = 0.5
"""Delay before a status report, so that the watcher has seen the agent's last write."""

_PENDING = (
    "The review of this edit is still open and nothing was written. Do not write the file in "
    "another way; tell the user that you wait for their decision, or try the same edit again later."
)


_UNKNOWN = (
    "Midstream reviews this folder and cannot show what {tool} would write; nothing was written. "
    "Edit the file as text, with the usual tools; a notebook is a file of JSON. The user can let "
    "other tools pass by a narrower matcher of the hook."
)


_NO_LINE = (
    "Midstream reviews this folder line by line. This call changes no line of {where}, so it "
    "cannot be decided; nothing was written. Line ends, an encoding or the last newline change "
    "along with a line, and a new file has one at least. The user can do the rest."
)


class EditGate:
    """Answers the hooks of agents while the session reviews what other programs write.

    Args:
        files: Gets the hunks.
        review: Follows the disk.
        feedback: What agents are told.
        provenances: Keeps who proposed the hunks.
        status: Told of trouble.
        writes: Told that an agent is about to write.
        spawn: Runs things in the background.
        on: Whether agents wait for decisions before they write.
        wait_s: After this many seconds a call is answered "still open".

    Attributes:
        heard: Whether an agent has called a hook.
    """

    def __init__(
        self,
        files: OpenFiles,
        decisions: Decisions,
        review: ExternalReview,
        feedback: Feedback,
        provenances: Provenances,
        status: SessionStatus,
        writes: RecentWrites,
        spawn: Spawn,
        *,
        on: bool,
        wait_s: float,
    ) -> None:
        self.heard = False
        self.wait_s = wait_s
        self._files = files
        self._decisions = decisions
        self._review = review
        self._feedback = feedback
        self._provenances = provenances
        self._status = status
        self._writes = writes
        self._spawn = spawn
        self._on = on
        self._endpoint: HookEndpoint | None = None
        self._switch = asyncio.Lock()
        self._closed = False
        self._call = max(files.hunks.calls, default=0)
        self._waiting: set[asyncio.Event] = set()
        self._agents: dict[int, str] = {}
        status.subscribe(self._hear)

    @property
    def waiting(self) -> str:
        """The agent that waits for decisions, ``""`` if none does."""
        return next(iter(self._agents.values()), "")

    @property
    def listening(self) -> bool:
        """Whether agents can ask."""
        return self._endpoint is not None

    def hold(self, *, on: bool) -> None:
        """Whether agents are asked to wait during reviews, from now on."""
        changes, self._on = on != self._on, on
        if changes and self._review.on:
            self._spawn(self._set_listening(on))

    async def close(self) -> None:
        """Stop answering: agents that are waiting do not write."""
        self._closed = True
        await self._set_listening(False)

    async def answer(self, event: HookEvent) -> HookAnswer | None:
        """Answer a hook, as soon as its edit is decided; ``None``: the agent does as it likes."""
        from midstream.agents.hook_client import precedes_tool
        from midstream.agents.hooks import AT_STOP, deny, go_on, is_note
        from midstream.agents.mcp_server import REVIEW_EVENT
        from midstream.edits.agent_input import EDIT_TOOLS, OTHER_TOOLS, UnplacedError

        if event.kind == REVIEW_EVENT:
            return {"text": await self._standing(event)}
        self.heard = True
        if event.kind == AT_STOP:
            await self._decisions.put_backs.agent_stopped()
            text = "" if event.stopped_before else self._feedback.take()
            return go_on(text) if text else None
        if not precedes_tool(event.kind) or event.tool in OTHER_TOOLS:
            return None
        if event.tool not in EDIT_TOOLS:
            return deny(_UNKNOWN.format(tool=shown(event.tool) or "a tool without a name"))
        try:
            if await asyncio.to_thread(is_note, event, self._files.workspace.root):
                return None
        except (OSError, ValueError, RuntimeError) as error:
            return deny(f"Refused by Midstream: the path cannot be used ({error}).")
        self._call += 1
        call = self._call
        try:
            async with asyncio.timeout(self.wait_s):
                return await self._decided(call, event)
        except TimeoutError:
            self._status.warn(
                f"{event.agent} was told that its edit is not decided yet; it may ask again."
            )
            return deny(_PENDING)
        except UnplacedError as error:
            return deny(str(error))
        except UserError as error:
            self._status.inform(f"{event.agent} was refused an edit: {error}")
            return deny(f"Refused by Midstream: {error}")
        except (OSError, ValueError) as error:  # a path that no system takes, and the like
            return deny(f"Refused by Midstream: the edit cannot be carried out ({error}).")
        finally:
            self._agents.pop(call, None)
            self._status.emit(AgentWaits())
            if not any(hunk.due for hunk in self._files.hunks.of_call(call)):
                self._decisions.drop_call(call)

    async def _standing(self, event: HookEvent) -> str:
        """The state of the review, at once or when all is decided."""
        from midstream.agents.mcp_server import WAIT, wait_seconds

        await asyncio.sleep(SEEN_S)
        waits = event.tool == WAIT
        if waits:
            seconds = wait_seconds(event.arguments.get("seconds"))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while self._open():
                        await self._news()
        return self._feedback.standing(self._open(), tell=waits)

    def _open(self) -> list[Hunk]:
        """The hunks of agents, written or proposed, that are not decided or not put back yet."""
        return [
            hunk
            for hunk in self._files.hunks
            if (hunk.external or hunk.call)
            and hunk.live
            and (not hunk.decided or hunk.postponed is not None)
        ]

    async def _decided(self, call: int, event: HookEvent) -> HookAnswer:
        """Have a call decided."""
        proposed = await self._propose(call, event)
        while proposed is None:
            # Hunks that wait in the same lines come first; then the call is looked at again.
            await self._news()
            proposed = await self._propose(call, event)
        self._agents[call] = event.agent
        self._status.emit(AgentWaits())
        hunks = self._files.hunks.of_call(call)
        places = list(dict.fromkeys(hunk.path for hunk in hunks))
        where = places[0] if len(places) == 1 else counted(len(places), "file")
        self._status.inform(
            f"{event.agent} is waiting to write {counted(len(hunks), 'hunk')} in {where} until you "
            f"have decided {'it' if len(hunks) == 1 else 'all of them'}."
        )
        while self._undecided(call):
            await self._news()
        return await self._settle(call, event, proposed)

    async def _propose(self, call: int, event: HookEvent) -> Sequence[PlannedFile] | None:
        """Make hunks of a call; ``None`` if it meets some that wait for a decision."""
        from midstream.edits.agent_input import UnplacedError

        plan = await asyncio.to_thread(self._plan, event)
        await self._review.changed(await asyncio.to_thread(self._names, event, plan))
        async with self._files.lock:
            plan = await asyncio.to_thread(self._plan, event)
            alike = [file.path for file in plan if (file.before or ()) == (file.after or ())]
            if alike or not plan:
                raise UnplacedError(_NO_LINE.format(where=few_shown(alike) or "any file"))
            opened = [(file, await self._opened(event, file)) for file in plan]
            if any(proposal.blocked(file.after or ()) for file, proposal in opened):
                self._status.warn(
                    f"{event.agent} wants to change lines that wait for a decision: decide those "
                    "first."
                )
                return None
            if any(proposal.base.lines != (file.before or ()) for file, proposal in opened):
                raise UnplacedError("A file of this edit changes at this moment; read it again.")
            for file, proposal in opened:
                if file.after is None:
                    self._files.disk.may_vanish(proposal)
                added = self._decisions.propose(proposal, file.after or (), call)
                self._provenances.proposed(added, event.agent, event.tool)
            return plan

    def _plan(self, event: HookEvent) -> tuple[PlannedFile, ...]:
        """What a call does now (blocking)."""
        from midstream.edits.agent_input import planned

        def read(name: str) -> bytes | None:
            try:
                return self._files.workspace.read(self._name(event, name))
            except MissingFileError:
                return None

        return planned(event.tool, event.arguments, read)

    def _name(self, event: HookEvent, path: str) -> str:
        """A file's name here (blocking); raises for one outside of the folder."""
        from midstream.edits.agent_input import UnplacedError

        if path.startswith("~"):  # Some agents take it for the home folder, others for a name.
            raise UnplacedError(f"Name {shown(path)} by its whole path, without a ~.")
        return self._files.workspace.relative(str(Path(event.cwd, path)))

    def _names(self, event: HookEvent, plan: Iterable[PlannedFile]) -> list[str]:
        return [self._name(event, file.path) for file in plan]

    async def _opened(self, event: HookEvent, file: PlannedFile) -> FileProposal:
        """The proposal of a file over what is on disk; the caller holds the lock."""
        from midstream.edits.agent_input import UnplacedError

        path = await asyncio.to_thread(self._name, event, file.path)
        try:
            proposal = await self._files.refreshed(path)
        except MissingFileError:
            proposal = self._files.get(path)
            if proposal is None:
                proposal = self._files.follower.adopt(path, NO_FILE, None)
            self._files.disk.may_vanish(proposal)
        self._files.fold(proposal, 0, 0)
        exists = self._files.disk.digests[path] is not None
        if exists is (file.before is None) or (not exists and proposal.base.lines):
            raise UnplacedError(f"{file.path} was created or deleted meanwhile; look again.")
        return proposal

    def _undecided(self, call: int) -> bool:
        """Whether a call waits for a decision that is still possible."""
        hunks = self._files.hunks.of_call(call)
        return any(not hunk.decided for hunk in hunks) and not _in_conflict(hunks)

    async def _settle(
        self, call: int, event: HookEvent, proposed: Sequence[PlannedFile]
    ) -> HookAnswer:
        """The answer to a call whose hunks are decided."""
        from midstream.agents.hooks import allow, deny
        from midstream.edits.agent_input import UnplacedError, planned, rewritten

        async with self._files.lock:
            wanted = [await self._outcome(call, event, one) for one in proposed]
            hunks = self._files.hunks.of_call(call)
            if _in_conflict(hunks):
                raise UnplacedError(
                    "A file of this edit was changed meanwhile; read it again, then edit it."
                )
            told = verdict(hunks)
            changes = [file for file in wanted if file.before != file.after]
            arguments = None
            if changes and wanted != list(proposed):
                arguments = rewritten(event.tool, event.arguments, changes)
                before = {file.path: file.before for file in changes}
                again = planned(event.tool, arguments, lambda path: _data(before.get(path)))
                if sorted(again, key=_path) != sorted(changes, key=_path):
                    raise UnplacedError(
                        "What was kept of this edit cannot be written with this tool; nothing "
                        "was written."
                    )
            self._decisions.answer_call(call)
        more = self._feedback.take()
        if not changes:
            return deny(f"{told}\n{more}".rstrip())
        self._writes.wrote()
        self._feedback.note_written(hunk.id for hunk in hunks if hunk.due)
        self._spawn(self._expire(call, event.agent))
        told = "" if arguments is None else told
        return allow(arguments, f"{told}\n{more}".strip())

    async def _outcome(self, call: int, event: HookEvent, proposed: PlannedFile) -> PlannedFile:
        """What is to become of a file now that its hunks are decided."""
        _, before, after = proposed
        proposal = await self._opened(event, proposed)
        lines = proposal.with_call(call).lines
        gone = not lines and (after is None or before is None)
        now = None if before is None else proposal.base.lines
        return proposed._replace(before=now, after=None if gone else lines)

    async def _expire(self, call: int, agent: str) -> None:
        """Give up on edits that an agent may write but does not."""
        await asyncio.sleep(WRITTEN_WITHIN_S)
        if gone := self._decisions.drop_call(call):
            self._status.warn(
                f"{agent} has not written {counted(len(gone), 'hunk')} that you accepted in "
                f"{gone[0].path}."
            )

    async def _news(self) -> None:
        """Wait for any event of the session."""
        news = asyncio.Event()
        self._waiting.add(news)
        try:
            await news.wait()
        finally:
            self._waiting.discard(news)

    def _hear(self, event: SessionEvent) -> None:
        for news in self._waiting:
            news.set()
        if isinstance(event, ReviewSwitched) and self._on:
            self._spawn(self._set_listening(event.on))

    async def _set_listening(self, on: bool) -> None:
        await asyncio.to_thread(import_module, "midstream.agents.hooks")
        from midstream.agents.hooks import HookEndpoint

        async with self._switch:
            if on and self._endpoint is None and not self._closed:
                endpoint = HookEndpoint(self._files.workspace.root, self.answer)
                try:
                    await endpoint.open()
                except UserError as error:
                    self._status.warn(str(error))
                    return
                self._endpoint = endpoint
            elif not on and self._endpoint is not None:
                endpoint, self._endpoint = self._endpoint, None
                await endpoint.close()


def _in_conflict(hunks: Iterable[Hunk]) -> bool:
    return any(hunk.state is HunkState.CONFLICT for hunk in hunks)


def _path(file: PlannedFile) -> str:
    return file.path


def _data(lines: tuple[str, ...] | None) -> bytes | None:
    return None if lines is None else join_lines(lines).encode()
