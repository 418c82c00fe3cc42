"""Creates answers: the first one for an instruction, and follow-ups of an answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from midstream.code.outline import outline
from midstream.codebase.local_names import calls_by_keyword, rename_local
from midstream.edits.documents import join_lines
from midstream.edits.outcome import unreviewed
from midstream.errors import UserError
from midstream.pairing.request.builder import Conversation, Request, RequestBuilder
from midstream.pairing.request.context import Context
from midstream.pairing.request.kinds import asks_beyond_edits, check_is_edit, removes
from midstream.pairing.request.question import Question
from midstream.pairing.request.renaming import (
    means_last_answer,
    plain_rename,
    renamed_again,
    with_other_name,
)
from midstream.pairing.request.scope import Scope, has_undecided
from midstream.pairing.status import SessionState, Turn
from midstream.pairing.turn.answer import Answer, AnswerObserver
from midstream.pairing.turn.modes import BlockMode, EditMode, FollowUp, RegionMode
from midstream.pairing.turn.reply_files import ReplyFiles

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.guard import Guard
    from midstream.pairing.models.server import ServerLink
    from midstream.pairing.request.target import Target
    from midstream.pairing.turn.log import TurnLog


class StoppedError(UserError):
    """The user stopped the instruction before it was sent."""

    code = "stopped"


class NotReviewedError(UserError):
    """The lines contain undecided changes by other programs."""

    code = "not-reviewed"


class AnswerFactory:
    """Begins turns and makes their answers; sends nothing.

    Attributes:
        builder: Finds places and words requests.
        context: What went along with the last instruction.
    """

    def __init__(
        self,
        files: OpenFiles,
        server: ServerLink,
        builder: RequestBuilder,
        log: TurnLog,
        guard: Guard,
    ) -> None:
        self.builder = builder
        self.context = Context()
        self._files = files
        self._server = server
        self._log = log
        self._guard = guard

    @property
    def last_path(self) -> str | None:
        """The file of the last turn."""
        return self._log.turns[-1].path if self._log.turns else None

    async def ask(self, question: Question, stopped: Callable[[], bool]) -> Answer:
        """Find what a question is about, reach the server, and begin its answer.

        Args:
            question: What is asked.
            stopped: Whether the user has stopped it meanwhile.

        Raises:
            UserError: The place is not clear, or no model can be reached.
        """
        question = await self._understood(question)
        path = await self.builder.scopes.find_path(question, self.last_path)
        # Located before the server is there, so that a wrong name is refused without waiting.
        async with self._files.lock:
            scope = await self.builder.scopes.locate(path, question)
        await self._reach()
        if stopped():
            raise StoppedError("Stopped before the instruction was sent.")
        async with self._files.lock:
            scope = await self.builder.scopes.locate(path, question, scope)
            self.builder.start_conversation()
            if (renamed := await self._renamed(scope, question)) is not None:
                question, self.context = renamed, Context()
            else:
                self.context = await self.builder.context(scope, question)
            if scope.base.missing:
                scope = replace(scope, proposal=await self._files.created(scope.proposal.path))
            self._check_reviewed(scope, question)
            self._tell_undecided(scope, question)
            return self._begin(scope, question)

    async def _renamed(self, scope: Scope, question: Question) -> Question | None:
        """The question with its answer, where that is a rename that needs no model."""
        names = plain_rename(question.text)
        proposal, base, place = scope.proposal, scope.base, scope.target
        if names is None or question.known is not None or question.asked:
            return None
        # Larger models do well with these, and a pace is set to see the model write.
        if not self._server.embedded or not scope.model.is_edit_model or self._server.pace:
            return None
        if scope.addition is not None or has_undecided(proposal, base, place):
            return None
        old, new = names
        region = (base.lines, place.start, place.stop, proposal.path)
        lines = await asyncio.to_thread(rename_local, *region, old, new)
        if lines is None:
            return None
        self._log.status.inform(f"`{old}` is renamed by its uses, without the model.")
        calls = await asyncio.to_thread(calls_by_keyword, *region, old)
        doubt = f"Line {calls[0] + 1} of {proposal.path} passes `{old}=`." if calls else ""
        return replace(question, known=join_lines(lines), doubt=doubt)

    async def aim(self, question: Question) -> Scope:
        """The destination of a question; nothing is sent, and raises as ``ask``."""
        question = self._about_last_answer(question)
        path = await self.builder.scopes.find_path(question, self.last_path)
        async with self._files.lock:
            return await self.builder.scopes.locate(path, question)

    async def _understood(self, question: Question) -> Question:
        """The question as it is meant.

        Raises:
            NotAnEditError: It asks for something that is not an edit.
        """
        text = question.text
        if question.background:
            return question
        check_is_edit(text)
        if asks_beyond_edits(text):
            await self._reach()
            check_is_edit(text, self._server.model_info)
        return self._about_last_answer(question)

    def _about_last_answer(self, question: Question) -> Question:
        """The question, aimed at the last answer if it only gives that another name.

        "No, call it hits" comes after the end as well, when the cursor is anywhere.
        """
        last = self._log.current
        if last is None or question.selection is not None or not means_last_answer(question.text):
            return question
        region = last.region
        if region is None or region.before is None or region.proposal.path not in self._files:
            return question
        proposal = region.proposal
        asked = last.exchange.conversation.instruction
        old, new = region.before.split("\n")[:-1], region.new_text.split("\n")[:-1]
        again = renamed_again(question.text, asked, old, new)
        if again is None:
            return question
        found = outline(proposal.composed().lines, proposal.path)
        name = last.turn.symbol
        called = ".".join([*name.split(".")[:-1], again.given])
        homes = found.named(name) or found.named(called) if name else []
        if len(homes) != 1:
            return question
        in_full = with_other_name(last.in_full or asked, question.text)
        shown = [*proposal.composed().lines]
        for hunk in self._files.hunks.undecided(proposal.path):
            shown += hunk.new
        # An answer that was stopped may have left nothing that has that name.
        known = again.given in re.findall(r"\w+", "\n".join(shown))
        return replace(
            question,
            path=proposal.path,
            selection=(homes[0].start, homes[0].stop),
            asked=f"rename `{again.given}` to `{again.wanted}`" if known else in_full,
            in_full=in_full,
        )

    def _check_reviewed(self, scope: Scope, question: Question) -> None:
        """Raise ``NotReviewedError`` if the answer would take the place of unreviewed changes.

        Where the model chooses the lines, those of its edits that would are left out.
        """
        proposal, target = scope.proposal, scope.target
        if scope.by_region:
            start, stop, symbol = target.start, target.stop, target.symbol
        elif question.known is None and scope.model.edit_format == "whole":
            start, stop, symbol = 0, len(proposal.base.lines), ""
        else:
            return
        if waiting := proposal.unreviewed(*proposal.cover(start, stop)):
            them = "it" if len(waiting) == 1 else "them"
            raise NotReviewedError(
                unreviewed(len(waiting), proposal.path, start, stop, symbol),
                f"keep {them} or put {them} back first, then ask again",
            )

    def _tell_undecided(self, scope: Scope, question: Question) -> None:
        """Say that an instruction works on the text of hunks that were not decided."""
        if question.background or question.asked or not scope.by_region:
            return  # An instruction about the last answer is about its hunks.
        if scope.addition is not None:
            return
        target, path = scope.target, scope.proposal.path
        if waiting := _within(self._files.hunks.undecided(path), target):
            one = len(waiting) == 1
            many = "an undecided hunk" if one else f"{len(waiting)} undecided hunks"
            self._log.status.inform(
                f"This works on the text of {many} in {target.symbol or path}; to start from the "
                f"file instead, stop, reject {'it' if one else 'them'} and ask again."
            )

    def check(self, text: str) -> None:
        """Refuse a redirect that asks for no edit; raises ``NotAnEditError``."""
        check_is_edit(text, self._server.model_info)

    async def preview(self, question: Question) -> Context:
        """What would be sent along with a question; raises as ``ask``."""
        path = await self.builder.scopes.find_path(question, self.last_path)
        async with self._files.lock:
            scope = await self.builder.scopes.locate(path, question)
        return await self.builder.context(scope, question, look=True)

    async def rehearse(self, question: Question) -> tuple[Request, Context]:
        """The request that a question would make, and what goes along; raises as ``ask``."""
        path = await self.builder.scopes.find_path(question, self.last_path)
        async with self._files.lock:
            scope = await self.builder.scopes.locate(path, question)
            context = await self.builder.context(scope, question)
            with self.builder.rehearsal():
                self.builder.start_conversation()
                return self.builder.request(scope, question, context), context

    async def follow(self, old: Answer, follow_up: FollowUp) -> Answer:
        """Begin the follow-up to an answer that was cut or has ended."""
        if follow_up.question is not None:
            question = follow_up.question
            async with self._files.lock:
                scope = await self.builder.scopes.locate(old.turn.path, question)
                self._check_reviewed(scope, question)
                return self._begin(scope, question, old, follow_up)
        conversation = old.mode.conversation(old.exchange, follow_up, self.builder)
        mode = old.mode.reopened(follow_up, self._files)
        turn = self._turn(follow_up.instruction, mode, old.turn.symbol, old, follow_up)
        turn.unsure = follow_up.doubt
        new = self._answer(turn, mode, conversation, old, follow_up)
        mode.record(self._log.journal, turn, resumed=follow_up.continues_rewrite)
        if follow_up.carried:
            new.reply.writer.feed(mode.proposal, follow_up.carried)
            self._log.shown(new)
        return new

    async def _reach(self) -> None:
        status = self._log.status
        if not self._server.up:
            status.enter(SessionState.STARTING)
        try:
            await self._server.ready()
        except UserError:
            status.enter(SessionState.OFFLINE)
            raise
        status.enter(SessionState.READY)

    def _begin(
        self,
        scope: Scope,
        question: Question,
        old: Answer | None = None,
        follow_up: FollowUp | None = None,
    ) -> Answer:
        request = self.builder.request(scope, question, self.context)
        mode = self._open(scope, request, question)
        target = scope.target
        turn = self._turn(question.text, mode, target.symbol, old, follow_up)
        if old is None:
            turn.why = target.why
            if not isinstance(mode, RegionMode):
                turn.start, turn.stop = target.start, target.stop
        turn.background = question.background
        turn.implied = question.background and not question.consume
        turn.unsure = question.doubt
        if scope.later:
            turn.left_out, turn.next = scope.later, scope.then
        new = self._answer(turn, mode, request.conversation, old, follow_up, question.known)
        new.in_full = question.in_full
        new.target = request.target
        mode.record(self._log.journal, turn, resumed=False)
        return new

    def _open(self, scope: Scope, request: Request, question: Question) -> EditMode:
        proposal, known = scope.proposal, question.known is not None
        if request.region is None:
            return BlockMode(proposal, request.edit_format, request.tools)
        start, stop = request.region
        base, before = proposal.base, proposal.proposed_region(start, stop)
        by_chat = self._server.model_info.is_chat and not known
        return RegionMode(
            proposal,
            proposal.begin(start, stop, repair_indentation=by_chat),
            bare=known or self._server.model_info.is_edit_model,
            known=frozenset(base.lines[start:stop]),
            before=before,
            by_chat=by_chat,
            addition=request.addition,
            removes=removes(question.text, scope.target.symbol)
            and (start, stop) == (scope.target.start, scope.target.stop)
            and any(map(str.strip, (*base.lines[:start], *base.lines[stop:]))),
        )

    def _turn(
        self,
        instruction: str,
        mode: EditMode,
        symbol: str,
        old: Answer | None,
        follow_up: FollowUp | None,
    ) -> Turn:
        place = mode.segment if isinstance(mode, RegionMode) else None if old is None else old.turn
        return Turn(
            id=len(self._log.turns) + 1,
            instruction=instruction,
            path=mode.proposal.path,
            start=0 if place is None else place.start,
            stop=0 if place is None else place.stop,
            symbol=symbol,
            why="" if follow_up is None else follow_up.why,
            redirected_from=None if old is None else old.turn.id,
            follows=None if follow_up is None else follow_up.kind,
            edit_format=mode.edit_format,
            left_out="" if old is None else old.turn.left_out,
            next="" if old is None else old.turn.next,
        )

    def _answer(
        self,
        turn: Turn,
        mode: EditMode,
        conversation: Conversation,
        old: Answer | None,
        follow_up: FollowUp | None,
        given: str | None = None,
    ) -> Answer:
        """Make an answer, which is the current one from now on."""
        log = self._log
        files = ReplyFiles(self._files, log.status, mode.proposal.path)
        observer = AnswerObserver(self._files, log.journal, self._guard)
        history = () if old is None or follow_up is None else (*old.history, follow_up)
        new = Answer(turn, mode, conversation, files, observer, history=history, given=given)
        new.context, new.target = self.context, None if old is None else old.target
        if old is not None:
            new.announced = old.announced
            log.report(old)
        log.begin(new, self._server.pace)
        held = None if follow_up is None else follow_up.held
        for rewrite in new.rewrites:
            self._guard.watch(rewrite, held)
        return new


def _within(hunks: Iterable[Hunk], target: Target) -> list[Hunk]:
    """Those of the hunks that change lines of a place."""
    return [
        hunk
        for hunk in hunks
        if hunk.start < target.stop and max(hunk.stop, hunk.start + 1) > target.start
    ]
