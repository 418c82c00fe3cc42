"""Turns: from an instruction to a streaming proposal, and stopping or redirecting it on the way.

One generation runs at a time.  Whatever a person does takes effect here at once, before the server
has heard of it.  Decisions and writes are the desk's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from midstream.errors import UnavailableError, UsageError, UserError
from midstream.pairing import requests
from midstream.pairing.board import Board
from midstream.pairing.checking import newly_broken
from midstream.pairing.costs import Cost
from midstream.pairing.desk import Desk
from midstream.pairing.events import TurnFinished, TurnStarted
from midstream.pairing.generation import Conversation, Generation
from midstream.pairing.link import Link
from midstream.pairing.meter import Meter
from midstream.pairing.recorder import Recorder
from midstream.pairing.searching import search_workspace
from midstream.pairing.targets import Target, TargetUnclearError, find_target
from midstream.pairing.turns import SessionState, Turn, TurnStatus

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.edits.hunks import HunkStore
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.guarding import Guard
    from midstream.responses.events import Failed, Finished
    from midstream.responses.stream import Stream
    from midstream.workspace.files import Workspace

_LOST = frozenset({"connection_lost", "closed"})


class TurnRunningError(UserError):
    """A turn is running already."""

    code = "turn-running"


class NoTurnError(UserError):
    """No turn is running."""

    code = "no-turn"


class StoppedError(UserError):
    """The person stopped the instruction before it was sent."""

    code = "stopped"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an instruction applies.

    Attributes:
        proposal: The file.
        base: Its base text when the region was found.
        longest: Lines that the model took at once then.
        target: The region.
    """

    proposal: FileProposal
    base: SourceText
    longest: int | None
    target: Target


class Steering:
    """Runs turns.

    Attributes:
        turns: All turns, oldest first.
    """

    def __init__(
        self,
        *,
        workspace: Workspace,
        hunks: HunkStore,
        desk: Desk,
        link: Link,
        board: Board,
        meter: Meter,
        recorder: Recorder,
        guard: Guard,
        turns: list[Turn],
        on_end: Callable[[Turn], None],
    ) -> None:
        self.turns = turns
        self._on_end = on_end
        self._guard = guard
        guard.serve(self)
        self._workspace = workspace
        self._hunks = hunks
        self._desk = desk
        self._link = link
        self._board = board
        self._meter = meter
        self._recorder = recorder
        self._generation: Generation | None = None
        self._preparing = False
        self._stop_preparing = False
        self._told: set[int] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def busy(self) -> bool:
        """Whether an instruction is being prepared or streams."""
        return self._preparing or self.streaming

    @property
    def streaming(self) -> bool:
        """Whether a generation is live."""
        return self._generation is not None and self._generation.live

    # What a person does

    async def instruct(
        self,
        text: str,
        *,
        path: str | None,
        cursor: int | None,
        selection: tuple[int, int] | None,
    ) -> Turn:
        """Start a turn; see ``PairingSession.instruct``."""
        text = text.strip()
        if not text:
            raise UsageError("The instruction is empty; say what should change.")
        if self.busy:
            raise TurnRunningError(
                "The model is still at work; redirect it, queue this, or stop it first."
            )
        self._preparing, self._stop_preparing = True, False
        self._idle.clear()
        try:
            if path is None:
                path = await search_workspace(self._workspace, text)
            # Looked at before the server is there, so that a wrong name is not answered late.
            async with self._desk.lock:
                seen = await self._locate(path, text, cursor, selection, None)
            await self._reach()
            async with self._desk.lock:
                seen = await self._locate(path, text, cursor, selection, seen)
                generation = self._begin(seen, text)
        except BaseException:
            self._idle.set()
            raise
        finally:
            self._preparing = False
        await self._send(generation)
        return generation.turn

    async def stop(self) -> None:
        """Stop at once; see ``PairingSession.stop``."""
        self._stop_preparing = True
        generation = self._generation
        if generation is None or not generation.live:
            return
        self._cut(generation, TurnStatus.STOPPED)
        self._board.enter(SessionState.STOPPING)
        await self._interrupt(generation, keep=False)

    async def redirect(self, text: str) -> Turn:
        """Stop and go on with another instruction; see ``PairingSession.redirect``."""
        text = text.strip()
        if not text:
            raise UsageError("The instruction is empty; say what the model should do instead.")
        old = self._generation
        if old is None or not old.live:
            raise NoTurnError("The model is not writing; send this as a new instruction.")
        path = old.proposal.path
        kept = old.proposal.freeze()
        self._recorder.mark("freeze", path)
        old.close(TurnStatus.STOPPED)
        old.proposal.resume()
        self._recorder.mark("resume", path)
        lines = kept.count("\n")
        turn = Turn(
            id=len(self.turns) + 1,
            instruction=text,
            path=path,
            start=old.segment.start,
            stop=old.segment.stop,
            symbol=old.turn.symbol,
            why=f"goes on behind {lines} line{'s' * (lines != 1)} that were kept",
            redirected_from=old.turn.id,
        )
        new = Generation(
            turn,
            old.proposal,
            old.segment,
            old.conversation.followed(
                kept[len(old.kept_before) :], self._with_rejections(text, path)
            ),
            requests.region_parser(
                self._link.facts, old.proposal.base.lines[turn.start : turn.stop]
            ),
            kept_before=kept,
            announced=old.announced,
            known=old.known,
        )
        self._report(old)
        self._enter(new)
        self._guard.begin(new)
        self._recorder.redirect(turn)
        await self.resend(old, new)
        return turn

    async def finished(self) -> None:
        """Wait until nothing is prepared, live or being drained, and the guard has seen all."""
        while True:
            await self._idle.wait()
            await self._guard.caught_up()
            if self._idle.is_set():
                return

    # What the guard does

    def cut(self, generation: Generation) -> None:
        """End a generation at once if it is live; its hunks settle."""
        if generation.live:
            self._cut(generation, TurnStatus.STOPPED)

    async def interrupt(self, generation: Generation) -> None:
        """Tell the server of a generation that was cut, and wait for its last word."""
        if not generation.reported:
            self._board.enter(SessionState.STOPPING)
            await self._interrupt(generation, keep=False)

    def may_rewrite(self, generation: Generation) -> bool:
        """Whether nothing else has begun since a generation that was cut or has ended."""
        return generation is self._generation and not self._preparing

    def rewrite(
        self,
        old: Generation,
        lines: int,
        carried: int,
        start: int,
        *,
        asked: str,
        said: str,
    ) -> Generation:
        """Begin a turn that writes a segment again from one of its lines on.

        Args:
            old: The generation that was cut or has ended.
            lines: Lines of its segment that count as written.
            carried: The first of them that the new segment takes over; those before stay decidable.
            start: Base line at which the new segment begins.
            asked: The person's instruction.
            said: What the model is told.

        Returns:
            The generation, which is still to be sent.
        """
        proposal, path = old.proposal, old.proposal.path
        written = old.segment.new_lines
        kept = "".join(f"{line}\n" for line in written[:lines])
        if len(kept) < len(old.kept_before):  # the model was told already that these stand
            kept = old.kept_before
        carried_text = "".join(f"{line}\n" for line in kept.split("\n")[carried:-1])
        stop = old.segment.stop
        if self._hunks.accepted_edits(path):
            start, stop = self._desk.fold(proposal, start, stop)
        segment = proposal.begin(start, stop)
        turn = Turn(
            id=len(self.turns) + 1,
            instruction=asked,
            path=path,
            start=segment.start,
            stop=segment.stop,
            symbol=old.turn.symbol,
            why="corrects what the guard stopped",
            redirected_from=old.turn.id,
        )
        new = Generation(
            turn,
            proposal,
            segment,
            old.conversation.followed(kept[len(old.kept_before) :], said),
            requests.region_parser(self._link.facts, proposal.base.lines[turn.start : turn.stop]),
            kept_before=carried_text,
        )
        if not old.reported:
            self._report(old)
        self._idle.clear()
        self._enter(new)
        self._recorder.begin(turn, old.known)
        new.known = old.known
        if carried_text:
            proposal.feed(carried_text)
            self._recorder.text(path, carried_text)
            new.announce(self._hunks, self._board)
        return new

    async def resend(self, old: Generation, new: Generation) -> None:
        """Interrupt one stream and send the request of the next."""
        if old.stream is not None:
            await old.stream.interrupt(keep=True)
        await self._send(new)

    # Beginning

    async def _locate(
        self,
        path: str,
        text: str,
        cursor: int | None,
        selection: tuple[int, int] | None,
        seen: _Place | None,
    ) -> _Place:
        """The file as it is on disk and the region that is meant; the caller holds the lock.

        Args:
            path: The file.
            text: The instruction.
            cursor: Where the cursor is.
            selection: What is selected.
            seen: What was found before; it stands if neither the file nor the model has changed.
        """
        proposal = await self._desk.refreshed(path)
        base, longest = proposal.base, requests.longest_region(self._link.facts)
        requests.check_language(proposal.path, base, self._link.facts)
        if seen is not None and seen.base is base and seen.longest == longest:
            return seen
        target = await asyncio.to_thread(
            find_target,
            base,
            instruction=text,
            cursor=cursor,
            selection=selection,
            max_lines=longest,
            path=proposal.path,
        )
        return _Place(proposal, base, longest, target)

    async def _reach(self) -> None:
        if not self._link.up:
            self._board.enter(SessionState.STARTING)
        try:
            await self._link.ready()
        except UserError:
            self._board.enter(SessionState.OFFLINE)
            raise
        self._board.enter(SessionState.READY)
        if self._stop_preparing:
            raise StoppedError("Stopped before the instruction was sent.")

    def _begin(self, place: _Place, text: str) -> Generation:
        proposal, target, longest = place.proposal, place.target, place.longest
        start, stop = proposal.cover(target.start, target.stop)
        region = proposal.proposed_region(start, stop)
        if longest is not None and (lines := region.count("\n")) > longest:
            raise TargetUnclearError(
                f"With its undecided hunks this part of {proposal.path} has {lines} lines and the "
                f"model takes {longest} at a time; decide them first or name a smaller part."
            )
        base = proposal.base
        self._told.clear()
        said = self._with_rejections(text, proposal.path)
        message = requests.region_message(proposal.path, base, start, stop, region, said)
        segment = proposal.begin(start, stop)
        turn = Turn(
            id=len(self.turns) + 1,
            instruction=text,
            path=proposal.path,
            start=segment.start,
            stop=segment.stop,
            symbol=target.symbol,
            why=target.why,
        )
        generation = Generation(
            turn,
            proposal,
            segment,
            Conversation(requests.system_text(self._link.facts), [("user", message)]),
            requests.region_parser(self._link.facts, base.lines[start:stop]),
        )
        generation.known = frozenset(base.lines[start:stop])
        self._enter(generation)
        self._guard.begin(generation)
        try:
            self._recorder.begin(turn, generation.known)
        except (OSError, UserError) as error:
            self._board.warn(f"This session has no journal and cannot be resumed: {error}")
        return generation

    def _with_rejections(self, text: str, path: str) -> str:
        """The instruction, with the rejected hunks that this conversation has not told yet."""
        from midstream.edits.hunks import HunkState

        rejected = [
            hunk
            for hunk in self._hunks
            if hunk.path == path and hunk.state is HunkState.REJECTED and hunk.id not in self._told
        ]
        self._told.update(hunk.id for hunk in rejected)
        return requests.with_rejections(text, rejected, self._link.facts)

    def _enter(self, generation: Generation) -> None:
        self._generation = generation
        self.turns.append(generation.turn)
        self._meter.start_turn()
        self._board.enter(SessionState.WAITING)
        self._board.emit(TurnStarted(generation.turn))

    async def _send(self, generation: Generation) -> None:
        """Send the request and start reading the answer."""
        try:
            client = await self._link.ready()
            if not generation.live:
                self._conclude(generation)
                return
            stream = await client.create(
                messages=generation.conversation.messages,
                instructions=generation.conversation.system,
            )
        except UserError as error:
            if generation.live:
                self._cut(generation, TurnStatus.FAILED, str(error))
            self._conclude(generation, offline=isinstance(error, UnavailableError))
            raise
        generation.stream = stream
        generation.task = asyncio.create_task(self._read(generation, stream))
        if not generation.live:
            await stream.interrupt()

    # Reading

    async def _read(self, generation: Generation, stream: Stream) -> None:
        from midstream.responses.events import Delta, Failed, Finished, Started

        offline = False
        try:
            async for event in stream:
                match event:
                    case Started():
                        self._link.learn(event.metadata)
                        self._meter.taken()
                    case Delta():
                        if generation.live:
                            self._board.enter(SessionState.STREAMING)
                            generation.receive(event, self._meter, self._recorder)
                            generation.announce(self._hunks, self._board)
                            self._guard.look(generation)
                    case Finished():
                        self._count(generation, event)
                        if generation.live:
                            self._complete(generation, event)
                    case Failed():
                        offline = event.code in _LOST
                        if generation.live:
                            self._failed(generation, event)
        except Exception as error:
            if generation.live:
                self._cut(generation, TurnStatus.FAILED, f"Midstream failed: {error!r}")
                self._board.fail(
                    f"Midstream itself failed in this turn ({error!r}); your files are as decided."
                )
        finally:
            self._guard.look(generation)
            self._conclude(generation, offline=offline)

    def _count(self, generation: Generation, finished: Finished) -> None:
        usage = finished.usage
        missed = usage.output_tokens - generation.turn.tokens if usage.output_tokens else 0
        self._meter.add_usage(
            input_tokens=usage.input_tokens, cached_tokens=usage.cached_tokens, missed=missed
        )
        cost = Cost.of(usage, finished.metadata, self._link.price)
        self._meter.add_cost(cost, current=generation is self._generation)

    def _complete(self, generation: Generation, finished: Finished) -> None:
        generation.complete(self._recorder)
        path, what = generation.turn.path, generation.turn.place
        if generation.empty:
            error = f"The model returned no code for {what} of {path}; nothing was changed."
            if said := " ".join("".join(generation.prose).split()):
                error = f'The model returned no code for {what} of {path} but said: "{said[:200]}"'
            self._cut(generation, TurnStatus.FAILED, error)
            self._board.fail(error)
            return
        if finished.status != "completed":
            reason = (finished.reason or "no reason given").replace("_", " ")
            error = (
                f"The model stopped early ({reason}); what came can be decided, and the rest of "
                f"{what} stays as it was."
            )
            self._cut(generation, TurnStatus.FAILED, error)
            self._board.warn(error)
            return
        generation.proposal.finish()
        self._recorder.mark("finish", path)
        generation.close(TurnStatus.DONE)
        generation.announce(self._hunks, self._board)
        if generation.problems:
            self._board.warn(f"Look closely at this answer: {generation.problems[0]}.")
        if broken := newly_broken(generation.proposal):
            self._board.warn(f"With all of these changes {path} does not parse ({broken}).")
        if not generation.segment.hunk_ids:
            self._board.inform(f"Nothing to change: the model returned {what} of {path} as it is.")

    def _failed(self, generation: Generation, failed: Failed) -> None:
        self._cut(generation, TurnStatus.FAILED, failed.message)
        if failed.code in _LOST:
            self._board.fail(
                f"{failed.message.rstrip('.')}; what had come can be decided, and the next "
                "instruction connects again."
            )
        else:
            self._board.fail(failed.message)

    # Ending

    def _cut(self, generation: Generation, status: TurnStatus, error: str = "") -> None:
        """End a live generation before its text is complete."""
        generation.close(status, error)
        generation.proposal.abandon()
        self._recorder.mark("abandon", generation.proposal.path)
        generation.announce(self._hunks, self._board)

    async def _interrupt(self, generation: Generation, *, keep: bool) -> None:
        """Tell the server, and wait for its last word."""
        if generation.stream is None:
            self._conclude(generation)
            return
        await generation.stream.interrupt(keep=keep)
        if generation.task is not None:
            await asyncio.wait({generation.task})

    def _conclude(self, generation: Generation, *, offline: bool = False) -> None:
        """The server's last word has come."""
        current = generation is self._generation
        if current:
            self._meter.finish_turn()
            self._board.enter(SessionState.OFFLINE if offline else SessionState.READY)
        if not generation.reported:
            self._report(generation)
            if current:
                self._on_end(generation.turn)
        if current:
            self._idle.set()

    def _report(self, generation: Generation) -> None:
        generation.reported = True
        self._recorder.end(generation.turn)
        self._board.emit(TurnFinished(generation.turn))
