"""Steering: what a person and the guard do with the model, and what follows an answer.

An instruction, a redirect, or something in an answer that has to be written again leads to a turn.
Making turns is ``beginning``'s, running them ``answering``'s, wording requests ``asking``'s,
decisions the desk's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from midstream.errors import UsageError, UserError
from midstream.pairing.ahead import ReadingAhead
from midstream.pairing.answer import Answer
from midstream.pairing.answering import Answering
from midstream.pairing.asking import Asker, Question
from midstream.pairing.beginning import Beginning
from midstream.pairing.board import Board
from midstream.pairing.checking import newly_broken
from midstream.pairing.context import Context
from midstream.pairing.desk import Desk
from midstream.pairing.generation import Conversation, Generation
from midstream.pairing.link import Link
from midstream.pairing.meter import Meter
from midstream.pairing.recorder import Recorder
from midstream.pairing.renaming import Renaming
from midstream.pairing.turns import SessionState, Turn, TurnStatus
from midstream.pairing.unsure import tell_doubt, tell_same, tell_unchanged
from midstream.pairing.verdicts import Verdict, look, look_at

if TYPE_CHECKING:
    from midstream.edits.hunks import HunkStore
    from midstream.edits.parsing import Parser
    from midstream.edits.proposal import FileProposal
    from midstream.guard.correction import CorrectionRequest
    from midstream.pairing.effort import Effort
    from midstream.pairing.guarding import Guard
    from midstream.workspace.files import Workspace

MOST_MENDINGS = 1
"""How often the model is asked again for blocks of one instruction that found no place."""
MOST_HELD = 2
"""How often the guard has it write an edit again, where the model names the places."""


class TurnRunningError(UserError):
    """A turn is running already."""

    code = "turn-running"


class NoTurnError(UserError):
    """No turn is running."""

    code = "no-turn"


class StoppedError(UserError):
    """The person stopped the instruction before it was sent."""

    code = "stopped"


class Steering:
    """Begins turns and ends them early.

    Attributes:
        turns: All turns, oldest first.
        asker: Finds places and words requests.
        context: What went along with the last instruction.
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
        effort: Effort,
        turns: list[Turn],
        on_end: Callable[[Turn], None],
    ) -> None:
        self.turns = turns
        self.asker = Asker(workspace, hunks, desk, link)
        self.context = Context()
        self._guard = guard
        guard.serve(self)
        self._hunks = hunks
        self._desk = desk
        self._link = link
        self._board = board
        self._recorder = recorder
        self._effort = effort
        self._answering = Answering(
            hunks=hunks,
            link=link,
            board=board,
            meter=meter,
            recorder=recorder,
            guard=guard,
            turns=turns,
            on_end=on_end,
            follow=self._follow,
        )
        self._beginning = Beginning(
            workspace=workspace,
            desk=desk,
            link=link,
            board=board,
            recorder=recorder,
            guard=guard,
            asker=self.asker,
            answering=self._answering,
        )
        self._answering.effort = lambda: effort.passed_on(link)
        self._ahead = ReadingAhead(self.asker, desk, link, effort)
        self._preparing = False
        self._stop_preparing = False

    @property
    def busy(self) -> bool:
        """Whether an instruction is being prepared or streams."""
        return self._preparing or self.streaming

    @property
    def streaming(self) -> bool:
        """Whether an answer is live."""
        return self._answering.streaming

    @property
    def writing(self) -> tuple[str, int] | None:
        """File and base line at which the model writes now, ``None`` while it does not."""
        answer = self._answering.current
        if answer is None or not answer.live or not answer.generations:
            return None
        last = answer.generations[-1]
        return last.proposal.path, last.segment.unread.start

    # What a person does

    async def instruct(self, question: Question) -> Turn:
        """Start a turn; see ``PairingSession.instruct``."""
        question = replace(question, text=question.text.strip())
        if not question.text:
            raise UsageError("The instruction is empty; say what should change.")
        if self.busy:
            raise TurnRunningError(
                "The model is still at work; redirect it, queue this, or stop it first."
            )
        self._preparing, self._stop_preparing = True, False
        idle = self._answering.idle
        idle.clear()
        try:
            last = self.turns[-1].path if self.turns else None
            path = await self.asker.find_path(question, last)
            # Looked at before the server is there, so that a wrong name is not answered late.
            async with self._desk.lock:
                seen = await self.asker.locate(path, question, None)
            await self._reach()
            async with self._desk.lock:
                seen = await self.asker.locate(path, question, seen)
                self.asker.begin()
                self.context = await self.asker.context(seen, question)
                answer, request = self._beginning.begin(seen, question, self.context)
        except BaseException:
            idle.set()
            raise
        finally:
            self._preparing = False
        if question.known is not None:
            answer.given = True
            self._answering.work(answer, self._answering.show_text(answer, question.known))
        elif self._effort.chooses(self._link):
            choosing = self._effort.choose(
                self._link, self._answering, answer, lambda: self._parser(answer)
            )
            self._answering.work(answer, choosing)
        else:
            await self._answering.send(answer, request.tools)
        return answer.turn

    async def preview(self, question: Question) -> Context:
        """What would go along with an instruction; raises as ``instruct``."""
        if self._board.state is SessionState.STARTING:  # what goes along depends on the model
            with contextlib.suppress(UserError):
                await self._link.ready()
        last = self.turns[-1].path if self.turns else None
        path = await self.asker.find_path(question, last)
        async with self._desk.lock:
            place = await self.asker.locate(path, question, None)
        return await self.asker.context(place, question)

    async def read_ahead(self, question: Question) -> None:
        """Have the server read what would be asked; see ``PairingSession.read_ahead``."""
        if self._preparing:
            return
        last = self.turns[-1].path if self.turns else None
        live = self._answering.current if self.streaming else None
        if live is not None and live.turn.background:
            live = None  # It gives way to an instruction and is not redirected.
        await self._ahead.read(question, last, live)

    async def stop(self) -> None:
        """Stop at once; see ``PairingSession.stop``."""
        self._stop_preparing = True
        answer = self._answering.current
        if answer is None or not answer.live:
            return
        self._answering.cut(answer, TurnStatus.STOPPED)
        self._board.enter(SessionState.STOPPING)
        await self._answering.interrupt(answer, keep=False)

    async def redirect(self, text: str) -> Turn:
        """Stop and go on with another instruction; see ``PairingSession.redirect``."""
        text = text.strip()
        if not text:
            raise UsageError("The instruction is empty; say what the model should do instead.")
        old = self._answering.current
        if old is None or not old.live:
            raise NoTurnError("The model is not writing; send this as a new instruction.")
        if old.region is None or old.proposal.current is not old.region:
            return await self._redirect_blocks(old, text)
        if (again := self.asker.renamed_again(old, text)) is not None:
            return await self._rename_again(old, text, again)
        path = old.proposal.path
        kept = old.proposal.freeze()
        self._recorder.mark("freeze", path)
        old.close(TurnStatus.STOPPED)
        old.proposal.resume()
        self._recorder.mark("resume", path)
        lines = kept.count("\n")
        turn = self._beginning.next_turn(
            old, text, f"goes on behind {lines} line{'s' * (lines != 1)} that were kept"
        )
        said = self.asker.with_rejections(text, path)
        conversation = old.followed(kept, said)
        new = self._beginning.answer(turn, old.proposal, conversation, "region", old.region, kept)
        new.announced, new.known = old.announced, old.known
        self._answering.report(old)
        self._answering.enter(new)
        self._guard.begin(new.generations[0])
        self._recorder.redirect(turn)
        await self._resend(old, new)
        return turn

    async def finished(self) -> None:
        """Wait until nothing is prepared, live or being drained, and the guard has seen all."""
        idle = self._answering.idle
        while True:
            await idle.wait()
            count = len(self.turns)
            await self._guard.caught_up()
            # A correction that began while we waited may have ended by now, too.
            if idle.is_set() and len(self.turns) == count:
                return

    # What the guard does

    def cut(self, generation: Generation) -> None:
        """End the answer of a rewrite at once if it is live; its hunks settle."""
        if generation.answer.live:
            self._answering.cut(generation.answer, TurnStatus.STOPPED)

    async def interrupt(self, generation: Generation) -> None:
        """Tell the server of an answer that was cut, and wait for its last word."""
        if not generation.answer.reported:
            self._board.enter(SessionState.STOPPING)
            await self._answering.interrupt(generation.answer, keep=False)

    def may_rewrite(self, generation: Generation) -> bool:
        """Whether nothing else has begun since an answer that was cut or has ended."""
        answer = generation.answer
        bounded = answer.region is not None or answer.held < MOST_HELD
        return answer is self._answering.current and not self._preparing and bounded

    def rewrite(
        self,
        generation: Generation,
        lines: int,
        carried: int,
        start: int,
        correction: CorrectionRequest,
    ) -> Generation:
        """Begin a turn that writes a rewrite again from one of its lines on.

        Args:
            generation: The rewrite, whose answer was cut or has ended.
            lines: Lines of its segment that count as written.
            carried: The first of them that the new segment takes over; those before stay decidable.
            start: Base line at which the new segment begins.
            correction: What the model is told.

        Returns:
            The new rewrite; its request is still to be sent.
        """
        old = generation.answer
        if old.region is None:
            return self._rewrite_block(
                generation, asked=correction.asked, said=correction.instruction
            )
        written = old.region.new_lines
        kept = "".join(f"{line}\n" for line in written[:lines])
        if len(kept) < len(old.kept_before):  # the model was told already that these stand
            kept = old.kept_before
        carried_text = "".join(f"{line}\n" for line in kept.split("\n")[carried:-1])
        conversation = old.followed(kept, correction.instruction, correction)
        why = "corrects what the guard stopped"
        return self._again(old, start, carried_text, conversation, correction.asked, why)

    def _again(
        self,
        old: Answer,
        start: int,
        carried: str,
        conversation: Conversation,
        asked: str,
        why: str,
    ) -> Generation:
        """Begin a turn that writes the region again from base line ``start`` on.

        The text ``carried`` is taken over as the beginning of what is written.
        """
        assert old.region is not None
        proposal, path, stop = old.proposal, old.proposal.path, old.region.stop
        if self._hunks.accepted_edits(path):
            start, stop = self._desk.fold(proposal, start, stop)
        segment = proposal.begin(start, stop)
        turn = self._beginning.next_turn(old, asked, why, segment)
        new = self._beginning.answer(turn, proposal, conversation, "region", segment, carried)
        if not old.reported:
            self._answering.report(old)
        self._answering.enter(new)
        self._recorder.begin(turn, old.known)
        new.known = old.known
        if carried:
            proposal.feed(carried)
            self._recorder.text(path, carried)
            new.announce(self._hunks, self._board)
        return new.generations[0]

    async def resend(self, old: Generation, new: Generation) -> None:
        """Interrupt one stream and send the request of the next."""
        await self._resend(old.answer, new.answer)

    async def _rename_again(self, old: Answer, text: str, again: Renaming) -> Turn:
        """Redirect a rename to another name: what is kept gets that name as well."""
        assert old.region is not None
        start, kept = old.region.start, again.applied(old.kept)
        conversation = old.renamed(again)
        self._answering.cut(old, TurnStatus.STOPPED)
        why = f"goes on with `{again.wanted}` in place of `{again.given}`"
        new = self._again(old, start, kept, conversation, text, why).answer
        new.before = old.before
        self._guard.begin(new.generations[0])
        await self._resend(old, new)
        return new.turn

    # Where the model names the places

    async def _redirect_blocks(self, old: Answer, text: str) -> Turn:
        self._answering.cut(old, TurnStatus.STOPPED)
        said = (
            f"{text}\n\nYour answer was stopped. Edits that were complete are proposed and stand; "
            "do not send them again, and quote their new lines where you go on from them."
        )
        new = self._beginning.followed(old, text, said, "goes on behind the edits that were kept")
        await self._resend(old, new)
        return new.turn

    def _rewrite_block(self, generation: Generation, *, asked: str, said: str) -> Generation:
        from midstream.edits.hunks import HunkStore
        from midstream.edits.segment import Segment

        old, proposal = generation.answer, generation.proposal
        said = (
            f"{said}\n\nYour answer was stopped there. Send that edit again, and those that were "
            "still to come; the complete ones before it stand."
        )
        why = "corrects what the guard stopped"
        new = self._beginning.followed(old, asked, said, why, masked=True)
        new.held = old.held + 1
        at = min(generation.segment.start, len(proposal.base.lines))
        # Nothing is written yet; the guard watches each rewrite from its beginning.
        return Generation(new, proposal, Segment(proposal.path, proposal.base, at, at, HunkStore()))

    # Beginning

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

    async def _resend(self, old: Answer, new: Answer) -> None:
        if old.stream is not None:
            await old.stream.interrupt(keep=True)
        await self._answering.send(new, new.tools)

    # What follows an answer

    async def _follow(self, answer: Answer) -> bool:
        """Look at an answer that has come to its end; whether another one was asked for."""
        reply = answer.reply
        if reply.failures and answer.mended < MOST_MENDINGS:
            await self._mend(answer)
            return True
        if reply.failures:
            errors = [failure.error.message for failure in reply.failures]
            answer.turn.failures = tuple(failure.words for failure in reply.failures)
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            self._board.warn(f"An edit of this answer found no place: {errors[0]}{more}")
        if reply.problems:
            self._board.warn(f"Look closely at this answer: {reply.problems[0].message}.")
        for path in answer.paths:
            if broken := await newly_broken(self._desk.files[path]):
                self._board.warn(f"With all of these changes {path} does not parse ({broken}).")
        checked = self._effort.checks(self._link) and not answer.given
        if checked and await self._correct(answer):
            return True
        if not answer.hunk_ids and not reply.failures:
            tell_unchanged(answer, self._link, self._board)
        else:
            same = tell_same(answer, self._hunks, self._link, self._board)
            tell_doubt(answer, self._link, self._board, aloud=not same)
        return False

    async def _correct(self, answer: Answer) -> bool:
        """Check a finished answer and have it corrected once; whether that was begun."""
        region = answer.region
        if region is None:
            return await self._correct_edits(answer)
        if region not in answer.proposal.segments:
            return False
        proposal = answer.proposal
        verdict = await self._verdict(proposal)
        if answer.corrects is not None:
            better = verdict.rank < answer.corrects.rank
            said = "helped" if better else "did not help"
            answer.turn.tried = (
                f"2 passes: the first {answer.corrects.words}; its correction {said} "
                f"({verdict.words})"
            )
            if not better and proposal.withdraw(region):
                self._recorder.withdraw(proposal.path, region.serial)
                answer.turn.tried += ", so the first stands"
            self._board.inform(f"{answer.turn.tried}.")
            return False
        if verdict.clean:
            answer.turn.tried = f"1 pass, checked: {verdict.words}"
            return False
        if not answer.live and self._preparing:
            return False
        self._board.warn(f"The answer has a finding ({verdict.words}); the model corrects it once.")
        question = Question(
            f"{answer.turn.instruction}\n{self._effort.correction(verdict)}",
            proposal.path,
            selection=(region.start, region.stop),
        )
        async with self._desk.lock:
            place = await self.asker.locate(proposal.path, question, None)
            new, request = self._beginning.begin(place, question, self.context, answer)
        new.corrects = verdict
        await self._answering.send(new, request.tools)
        return True

    async def _correct_edits(self, answer: Answer) -> bool:
        """The same where the model named the places; a correction is shown only if it is one."""
        from midstream.edits.proposal import Overlay

        if answer.corrects is not None or not answer.paths:
            return False
        files = [self._desk.files[path] for path in answer.paths]
        before = {proposal.path: proposal.base.lines for proposal in files}
        after = {proposal.path: Overlay(proposal).source.lines for proposal in files}
        verdict = await look_at(before, after)
        if verdict.clean:
            answer.turn.tried = f"1 pass, checked: {verdict.words}"
            return False
        if self._preparing or answer is not self._answering.current:
            return False
        self._board.warn(f"The answer has a finding ({verdict.words}); the model corrects it once.")
        said = (
            f"Your edits are proposed and stand. {self._effort.correction(verdict)} Correct that "
            "and nothing else, with further edits in the same format, which quote the lines as "
            "they are now."
        )
        why = "corrects what the checks found"
        new = self._beginning.followed(answer, answer.turn.instruction, said, why)
        new.corrects = verdict
        amending = self._effort.amend(self._link, self._answering, new, lambda: self._parser(new))
        self._answering.work(new, amending)
        return True

    def _parser(self, answer: Answer) -> Parser:
        region = answer.region
        lines = () if region is None else answer.proposal.base.lines[region.start : region.stop]
        return self.asker.parser(answer.edit_format, lines)

    async def _verdict(self, proposal: FileProposal) -> Verdict:
        from midstream.edits.proposal import Overlay

        after = Overlay(proposal).source.lines
        return await look(proposal.path, proposal.base.lines, after)

    async def _mend(self, answer: Answer) -> None:
        """Ask once more for the blocks that found no place, saying why they did not."""
        failures = answer.reply.failures
        answer.turn.failures = tuple(failure.words for failure in failures)
        count = len(failures)
        self._board.warn(
            f"{count} edit{'s' * (count != 1)} found no place ({failures[0].error.message}); "
            "the model is asked once to correct that."
        )
        said = answer.reply.outcome(answer.edit_format).message()
        why = f"corrects {count} edit{'s' * (count != 1)} without a place"
        new = self._beginning.followed(answer, answer.turn.instruction, said, why)
        new.mended = answer.mended + 1
        await self._resend(answer, new)
