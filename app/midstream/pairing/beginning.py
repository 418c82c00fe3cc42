"""How turns begin: the turn, the answer that its text will go to, and the note in the journal.

Nothing is sent here; what begins when is ``steering``'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from midstream.errors import UserError
from midstream.pairing.answer import Answer, AnswerObserver
from midstream.pairing.answering import Answering
from midstream.pairing.asking import Asker, Place, Question, Request
from midstream.pairing.board import Board
from midstream.pairing.context import Context
from midstream.pairing.desk import Desk
from midstream.pairing.link import Link
from midstream.pairing.naming import ReplyFiles
from midstream.pairing.recorder import Recorder
from midstream.pairing.turns import Turn

if TYPE_CHECKING:
    from midstream.edits.proposal import FileProposal, Segment
    from midstream.pairing.generation import Conversation
    from midstream.pairing.guarding import Guard
    from midstream.responses.conversation import Entry
    from midstream.workspace.files import Workspace


def _masked(text: str) -> str:
    from midstream.guard.secrets import mask

    return "".join(mask(line) for line in text.splitlines(keepends=True))


class Beginning:
    """Makes turns and their answers."""

    def __init__(
        self,
        *,
        workspace: Workspace,
        desk: Desk,
        link: Link,
        board: Board,
        recorder: Recorder,
        guard: Guard,
        asker: Asker,
        answering: Answering,
    ) -> None:
        self.turns = answering.turns
        self._workspace = workspace
        self._desk = desk
        self._link = link
        self._board = board
        self._recorder = recorder
        self._guard = guard
        self._asker = asker
        self._answering = answering

    def begin(
        self, place: Place, question: Question, context: Context, after: Answer | None = None
    ) -> tuple[Answer, Request]:
        """Begin a turn.

        Args:
            place: Where.
            question: What the person, or a check, wants.
            context: What goes along.
            after: The answer that is corrected, if one is.

        Returns:
            The answer, which is the current one, and the request that is still to be sent.
        """
        proposal, target = place.proposal, place.target
        if after is not None and not after.reported:
            self._answering.report(after)
        if not place.by_region:
            request = self._asker.block_request(place, question, context)
            turn = Turn(
                id=len(self.turns) + 1,
                instruction=question.text,
                path=proposal.path,
                start=target.start,
                stop=target.stop,
                symbol=target.symbol,
                why=target.why,
                edit_format=request.edit_format,
                background=question.background,
                implied=_implied(question),
                words=question.words,
            )
            answer = self.answer(turn, proposal, request.conversation, request.edit_format)
            answer.tools = request.tools
            self._answering.enter(answer)
            self._note(lambda: self._recorder.ask(turn))
            return answer, request
        start, stop = proposal.cover(target.start, target.stop)
        request = self._asker.region_request(place, question, context, start, stop)
        base, before = proposal.base, proposal.proposed_region(start, stop)
        segment = proposal.begin(start, stop, repair_indentation=self._mends)
        turn = Turn(
            id=len(self.turns) + 1,
            instruction=question.text,
            path=proposal.path,
            start=segment.start,
            stop=segment.stop,
            symbol=target.symbol,
            why=target.why if after is None else "corrects what the checks found",
            redirected_from=None if after is None else after.turn.id,
            background=question.background,
            implied=_implied(question),
            words=question.words,
        )
        answer = self.answer(turn, proposal, request.conversation, "region", segment)
        answer.known = frozenset(base.lines[start:stop])
        answer.before = before if after is None else None
        self._answering.enter(answer)
        self._guard.begin(answer.generations[0])
        self._note(lambda: self._recorder.begin(turn, answer.known, repair=self._mends))
        return answer, request

    def next_turn(
        self, old: Answer, instruction: str, why: str, segment: Segment | None = None
    ) -> Turn:
        """A turn that goes on from an answer.

        Args:
            old: That answer.
            instruction: What is asked.
            why: Why there is one.
            segment: The rewrite that it begins with, ``None`` for the region of the old one.
        """
        place = segment or old.region
        return Turn(
            id=len(self.turns) + 1,
            instruction=instruction,
            path=old.proposal.path,
            start=old.turn.start if place is None else place.start,
            stop=old.turn.stop if place is None else place.stop,
            symbol=old.turn.symbol,
            why=why,
            redirected_from=old.turn.id,
            edit_format=old.turn.edit_format,
        )

    def answer(
        self,
        turn: Turn,
        proposal: FileProposal,
        conversation: Conversation,
        edit_format: str,
        region: Segment | None = None,
        kept_before: str = "",
    ) -> Answer:
        """An answer without a request, which reads a format into the files of the session."""
        lines = () if region is None else proposal.base.lines[region.start : region.stop]
        return Answer(
            turn,
            proposal,
            conversation,
            self._asker.parser(edit_format, lines),
            ReplyFiles(
                self._workspace, self._desk, self._board, proposal.path, self._workspace.ignores
            ),
            AnswerObserver(self._desk, self._recorder, self._guard),
            edit_format=edit_format,
            region=region,
            kept_before=kept_before,
            bare=self._link.model_info.is_edit_model,
        )

    def followed(
        self, old: Answer, asked: str, said: str, why: str, *, masked: bool = False
    ) -> Answer:
        """The answer to a further message after one in which the model named the places.

        Where it did so by calling a tool, the message is what the tool says to that.

        Args:
            old: That answer.
            asked: The person's instruction.
            said: The message.
            why: Why there is one.
            masked: Whether credentials in what the model wrote are masked.
        """
        turn = self.next_turn(old, asked, why)
        conversation = self._after(old, said, _masked if masked else str)
        new = self.answer(turn, old.proposal, conversation, old.edit_format)
        new.tools, new.known, new.mended = old.tools, old.known, old.mended
        if not old.reported:
            self._answering.report(old)
        self._answering.enter(new)
        self._recorder.ask(turn)
        return new

    def _after(self, old: Answer, said: str, shown: Callable[[str], str]) -> Conversation:
        from midstream.responses.conversation import ToolCall

        if not any(isinstance(entry, ToolCall) for entry in old.output):
            said = self._asker.with_rejections(said, old.proposal.path)
            return old.conversation.followed(shown(old.text), said)
        written: list[Entry] = [
            ToolCall(entry.call_id, entry.name, shown(entry.input))
            if isinstance(entry, ToolCall)
            else entry
            for entry in old.output
        ]
        return old.conversation.answered(written, self._asker.with_decisions(said, old.hunk_ids))

    @property
    def _mends(self) -> bool:
        """Whether a region's indentation is mended: for models not trained on regions."""
        return self._link.model_info.is_chat

    def _note(self, note: Callable[[], None]) -> None:
        try:
            note()
        except (OSError, UserError) as error:
            self._board.warn(f"This session has no journal and cannot be resumed: {error}")


def _implied(question: Question) -> bool:
    """Whether a question is in nobody's words; those of a comment are somebody's."""
    return question.background and not (question.consume or question.words)
