"""The two ways in which an answer states its changes.

With ``RegionMode`` the model rewrites one region; with ``BlockMode`` it names its places itself, in
an edit format.  ``EditMode`` is what both have; what only makes sense of a region is in
``RegionMode``, which ``Answer.region`` hands out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import structs

from midstream.edits.events import NewText
from midstream.edits.hunks import HunkState
from midstream.edits.indent import IndentRepair
from midstream.pairing.guard import RewritePlace
from midstream.pairing.journal.entries import AskEntry, BeginEntry, RedirectEntry
from midstream.pairing.request.builder import Conversation, RequestBuilder, Written
from midstream.pairing.request.question import Question
from midstream.pairing.request.renaming import renamed_again
from midstream.pairing.status import FollowUpKind, Turn
from midstream.pairing.turn.reply_files import DryRun

if TYPE_CHECKING:
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.live import LiveReply, Lookup
    from midstream.edits.parsing import ReplyParser
    from midstream.edits.proposal import FileProposal, Segment
    from midstream.edits.writing import ReplyObserver
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.guard import Held
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.request.additions import Addition
    from midstream.pairing.request.new_code import FileAddition
    from midstream.pairing.request.renaming import Renaming
    from midstream.pairing.turn.checks import Verdict
    from midstream.pairing.turn.reply_files import DryRunFiles

MAX_GUARD_REWRITES: Final = 2
"""How often in a row the guard has an edit written again where the model names the places."""
ROOM: Final = 8_000
"""Characters that a rewrite may add to what it replaces; some 200 lines."""
BLOCK_ROOM: Final = 32_000
"""The same where the model names its places: it may write whole new files there."""

_ANEW: Final = "writes the place again"
_OF_THE_SAME: Final = (FollowUpKind.RENAME, FollowUpKind.UNCHANGED)
"""Follow-ups that are about the region as it was proposed for the answer before."""

_AFTER_REDIRECT: Final = (
    "Your answer was stopped. Edits that were complete are proposed and stand; do not send them "
    "again, and quote their new lines where you go on from them."
)
_AFTER_GUARD: Final = (
    "Your answer was stopped there. Send that edit again, and those that were still to come; the "
    "complete ones before it stand."
)


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The reason for a further turn.

    Attributes:
        kind: The reason.
        instruction: What the turn shows as asked for.
        message: Text of the next user message.
        why: The reason in words, for the user.
        kept: Text of the region that counts as written; ``None`` where the model names the places
            itself.
        start: Base line from which the region is rewritten; ``None`` to continue the open rewrite.
        carried: Text that a new rewrite takes over as its beginning.
        question: A request to make anew, in place of a further message.
        verdict: What the checks found, for ``CHECKS``.
        held: What the guard held back, where a region is written again.
        doubt: Why its hunks are flagged from the beginning, ``""`` if they are not.
        notice: Posted when it begins.
    """

    kind: FollowUpKind
    instruction: str
    message: str
    why: str
    kept: str | None = None
    start: int | None = None
    carried: str = ""
    question: Question | None = None
    verdict: Verdict | None = None
    held: Held | None = None
    doubt: str = ""
    notice: str = ""

    @property
    def continues_rewrite(self) -> bool:
        """Whether it continues the open rewrite."""
        return self.kept is not None and self.start is None


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a follow-up continues from.

    Attributes:
        conversation: What was sent.
        written: What the model answered.
        history: The follow-ups that led there, oldest first.
    """

    conversation: Conversation
    written: Written
    history: tuple[FollowUp, ...]


class EditMode(Protocol):
    """How an answer says what changes: the members of both modes."""

    @property
    def edit_format(self) -> str:
        """The format that was asked for."""
        ...

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """Tools that the model may call."""
        ...

    @property
    def proposal(self) -> FileProposal:
        """The file that the instruction is about."""
        ...

    def reply(self, lookup: Lookup, observer: ReplyObserver) -> LiveReply:
        """The parser that takes the text of the answer."""
        ...

    def is_empty(self, reply: LiveReply, written: bool) -> bool:
        """Whether no text has come for any place."""
        ...

    def restarted(self, reply: LiveReply) -> EditMode | None:
        """The mode of an answer whose rewrites were taken back, and which begins anew.

        Returns:
            ``None`` if it continues a rewrite that had begun before it.
        """
        ...

    # Going on

    def redirect(
        self, exchange: Exchange, text: str, kept: str, hunks: HunkStore, builder: RequestBuilder
    ) -> FollowUp:
        """Go on with another instruction."""
        ...

    def rewrite(self, exchange: Exchange, held: Held) -> FollowUp | None:
        """Write again what the guard held back; ``None`` if that was tried often enough."""
        ...

    def correct(self, turn: Turn, verdict: Verdict) -> FollowUp:
        """Correct what the checks found."""
        ...

    def conversation(
        self, exchange: Exchange, follow_up: FollowUp, builder: RequestBuilder
    ) -> Conversation:
        """The conversation that a follow-up sends."""
        ...

    def reopened(self, follow_up: FollowUp, files: OpenFiles) -> EditMode:
        """The mode of the answer to a follow-up, with its rewrite open."""
        ...

    def record(self, journal: SessionJournal, turn: Turn, *, resumed: bool) -> None:
        """Note in the journal that a turn begins; ``resumed`` in the rewrite that is open."""
        ...

    # Looking at it

    def checked_paths(self, paths: Sequence[str]) -> Sequence[str]:
        """The files to check, of those that an answer writes to."""
        ...

    async def dry_run(self, text: str, files: DryRunFiles, *, correction: bool) -> DryRun:
        """What the files would be with ``text`` as the answer, on copies."""
        ...

    @property
    def old_lines(self) -> Sequence[str]:
        """The lines that the answer is about, as they were."""
        ...

    @property
    def longest(self) -> int | None:
        """Characters of an answer that does nothing but what was asked, at most.

        ``None`` where no chat model writes it; a server knows how long answers of its edit model
        can be. Reasoning is no part of it, which a limit of tokens would count.
        """
        ...


@dataclass(frozen=True, slots=True)
class RegionMode:
    """The model rewrites one region of one file.

    Attributes:
        bare: Whether it writes the region and nothing else.
        kept_before: Text of the region that was written before this answer.
        by_chat: Whether a chat model writes it: it gets the indentation wrong, and begins its
            rewrite anew where an edit model would go on.
        known: Lines that the region had before; the journal masks credentials in all others.
        before: The region as it was proposed when this was asked for; ``None`` where unknown.
        addition: Where what the model writes is added to the region, if it writes only that.
        removes: Whether the region is to go: a block without a line of code is an answer then.
    """

    proposal: FileProposal
    segment: Segment
    bare: bool
    known: frozenset[str]
    before: str | None = None
    kept_before: str = ""
    by_chat: bool = False
    addition: Addition | FileAddition | None = None
    removes: bool = False

    @property
    def edit_format(self) -> str:
        return "region"

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        return ()

    @property
    def is_open(self) -> bool:
        """Whether text may still come for the region."""
        return self.proposal.current is self.segment

    @property
    def written(self) -> str:
        """What ``pause`` would keep of the region, earlier answers included."""
        return self.segment.kept_text

    @property
    def new_text(self) -> str:
        """The region as it is rewritten."""
        return self.segment.new_text

    @property
    def repeats(self) -> bool:
        """Whether it is written as it was proposed before."""
        return self.new_text == self.before

    @property
    def old_lines(self) -> Sequence[str]:
        return self.proposal.base.lines[self.segment.start : self.segment.stop]

    @property
    def longest(self) -> int | None:
        if self.bare:
            return None
        if self.addition is not None:
            return ROOM + _characters(self.old_lines)
        return ROOM + 2 * max(_characters(self.old_lines), len(self.before or ""))

    @property
    def is_written(self) -> bool:
        """Whether all has come that the answer can bring."""
        return not self.is_open and bool(self.segment.new_text)

    def _parser(self) -> ReplyParser:
        return _region_parser(self._region, bare=self.bare)

    def _region(self) -> ReplyParser:
        from midstream.edits.formats.region import RegionParser

        if self.addition is None:
            return RegionParser(self.old_lines, bare=self.bare)
        shown = self.old_lines if self.before is None else self.before.split("\n")[:-1]
        return self.addition.parser(shown, self.proposal.path)

    def reply(self, lookup: Lookup, observer: ReplyObserver) -> LiveReply:
        from midstream.edits.live import LiveReply

        place = (self.proposal, self.segment.start, self.segment.stop)
        return LiveReply(
            self._parser(),
            lookup,
            place,
            observer=observer,
            opened=self.segment,
            removes=self.removes,
        )

    def is_empty(self, reply: LiveReply, written: bool) -> bool:
        if self.segment in self.proposal.segments:
            if self.removes and reply.segments:
                return False
            # Without a word of code after a redirect, only an edit model means "nothing more".
            return not self.segment.new_text or not (self.bare or reply.segments)
        return not (written or reply.failures or reply.refused)

    def restarted(self, reply: LiveReply) -> EditMode | None:
        if self.kept_before:
            return None
        place = self.segment.start, self.segment.stop
        return replace(self, segment=reply.writer.begin(self.proposal, *place, 0, tight=False))

    def placed(self, reply: LiveReply) -> RegionMode:
        """The mode of an answer whose text has come to its end, which may have mended it."""
        return self if reply.instead is None else replace(self, segment=reply.instead)

    def end(self, reply: LiveReply, *, complete: bool, settle_tail: bool = False) -> None:
        """End the rewrite, if it is still open.

        Args:
            reply: Takes the text of the answer.
            complete: Whether all of its text has come.
            settle_tail: See ``FileProposal.abandon``.
        """
        if self.is_open and complete:
            reply.writer.finish(self.proposal)
        elif self.is_open:
            reply.writer.abandon(self.proposal, settle_tail=settle_tail)

    def pause(self, reply: LiveReply) -> str:
        """Drop the undecided end of the region; the lines of it that are kept."""
        return reply.writer.rewind(self.proposal) if self.is_open else ""

    def redirect(
        self, exchange: Exchange, text: str, kept: str, hunks: HunkStore, builder: RequestBuilder
    ) -> FollowUp:
        if not self.is_open:
            return self._named().redirect(exchange, text, kept, hunks, builder)
        if self.by_chat:
            message = builder.with_rejections(text, self.proposal.path)
            return self.anew(FollowUp(FollowUpKind.REDIRECT, text, message, _ANEW))
        if (again := self._renaming(exchange, text, kept, hunks)) is not None:
            kept = again.applied(kept)
            return FollowUp(
                FollowUpKind.RENAME,
                text,
                again.applied(exchange.conversation.instruction),
                f"continues with `{again.wanted}` instead of `{again.given}`",
                kept=kept,
                start=self.segment.start,
                carried=kept,
            )
        lines = kept.count("\n")
        message = builder.with_rejections(text, self.proposal.path)
        return FollowUp(
            FollowUpKind.REDIRECT,
            text,
            message,
            f"continues after {lines} line{'s' * (lines != 1)} that were kept",
            kept=kept,
            notice=builder.left_out((*exchange.conversation.instructions, message)),
        )

    def anew(self, follow_up: FollowUp) -> FollowUp:
        """The follow-up with the whole region to write."""
        return replace(follow_up, kept="", start=self.segment.start)

    def _renaming(
        self, exchange: Exchange, said: str, kept: str, hunks: HunkStore
    ) -> Renaming | None:
        """The name that this rewrite brings in, if ``said`` only asks for another one.

        ``None`` also where the user has turned a part of it down, which stays so, or has written
        lines of their own into it, which would be lost.
        """
        if self.before is None:
            return None
        made = map(hunks.get, exchange.written.hunk_ids)
        if any(hunk.own or hunk.state is HunkState.REJECTED for hunk in made):
            return None
        before, after = self.before.split("\n")[:-1], kept.split("\n")[:-1]
        return renamed_again(said, exchange.conversation.instruction, before, after)

    def rewrite(self, exchange: Exchange, held: Held) -> FollowUp | None:
        if self.segment not in self.proposal.segments:
            return self._named().rewrite(exchange, held)
        if self.by_chat:
            held = structs.replace(held, place=RewritePlace.beginning(self.segment.start))
            asked, said = held.request.asked, held.request.instruction
            why = "corrects what the guard stopped"
            return self.anew(FollowUp(FollowUpKind.GUARD, asked, said, why, held=held))
        kept = "".join(f"{line}\n" for line in self.segment.new_lines[: held.place.lines])
        if len(kept) < len(self.kept_before):  # The model was told already that these stand.
            kept = self.kept_before
        carried = "".join(f"{line}\n" for line in kept.split("\n")[held.place.carried : -1])
        return FollowUp(
            FollowUpKind.GUARD,
            held.request.asked,
            held.request.instruction,
            "corrects what the guard stopped",
            kept=kept,
            start=held.place.start,
            carried=carried,
            held=held,
        )

    def correct(self, turn: Turn, verdict: Verdict) -> FollowUp:
        said = f"{turn.instruction}\n{verdict.correction}"
        where = (self.segment.start, self.segment.stop)
        question = Question(said, self.proposal.path, selection=where)
        why = "corrects what the checks found"
        return FollowUp(FollowUpKind.CHECKS, said, said, why, question=question, verdict=verdict)

    def conversation(
        self, exchange: Exchange, follow_up: FollowUp, builder: RequestBuilder
    ) -> Conversation:
        told, kept = exchange.conversation, follow_up.kept
        if kept is None:
            return self._named().conversation(exchange, follow_up, builder)
        if follow_up.kind is FollowUpKind.UNCHANGED:
            return replace(told, must_change=True)
        if follow_up.kind is FollowUpKind.MISPLACED:
            return told.answered_with(exchange.written.text, follow_up.message)
        if self.by_chat:
            guards = follow_up.kind is FollowUpKind.GUARD
            written = exchange.written.masked() if guards else exchange.written
            return told.restarted(written.text, follow_up.message)
        told = told.without_end(max(0, len(self.kept_before) - len(kept)))
        if follow_up.kind is FollowUpKind.RENAME:  # As if it had introduced the wanted name.
            return told.opening.followed(kept, follow_up.message)
        correction = None if follow_up.held is None else follow_up.held.request
        return told.followed(kept[len(self.kept_before) :], follow_up.message, correction)

    def reopened(self, follow_up: FollowUp, files: OpenFiles) -> EditMode:
        if follow_up.kept is None:
            return self._named()
        if follow_up.start is None:
            return replace(self, kept_before=follow_up.kept, before=None, removes=False)
        start, stop = files.fold(self.proposal, follow_up.start, self.segment.stop)
        return replace(
            self,
            segment=self.proposal.begin(start, stop, repair_indentation=self.by_chat),
            kept_before=follow_up.carried,
            before=self.before if follow_up.kind in _OF_THE_SAME else None,
            removes=self.removes and follow_up.kind in _OF_THE_SAME,
        )

    def record(self, journal: SessionJournal, turn: Turn, *, resumed: bool) -> None:
        if resumed:
            journal.add(RedirectEntry(turn))
        else:
            journal.begin(BeginEntry(turn, self.by_chat), self.known)

    def checked_paths(self, paths: Sequence[str]) -> Sequence[str]:
        return (self.proposal.path,) if self.segment in self.proposal.segments else ()

    def withdraw(self, reply: LiveReply) -> bool:
        """Take the answer back; whether that was possible."""
        return reply.writer.withdraw(self.proposal, self.segment)

    async def dry_run(self, text: str, files: DryRunFiles, *, correction: bool) -> DryRun:
        lines, path = list(self.proposal.base.lines), self.proposal.path
        start, stop = self.segment.start, self.segment.stop
        new = await asyncio.to_thread(_lines_of, self._region(), text)
        if not any(map(str.strip, new)) and not self.removes:
            new = lines[start:stop]  # It has no line of code, which deletes nothing.
        if self.segment.repair is not None:
            repair = IndentRepair(lines[start:stop], margin=self.segment.repair.margin)
            new = [repair.line(line) for line in new]
        return DryRun({path: lines}, {path: [*lines[:start], *new, *lines[stop:]]})

    def _named(self) -> BlockMode:
        """The mode once the model names its places instead of rewriting the region."""
        return BlockMode(self.proposal, self.edit_format, bare=self.bare)


@dataclass(frozen=True, slots=True)
class BlockMode:
    """The model names its places itself, in one or several files.

    Attributes:
        bare: Whether a region is written without anything around it.
    """

    proposal: FileProposal
    edit_format: str
    tools: tuple[Mapping[str, Any], ...] = ()
    bare: bool = False

    @property
    def old_lines(self) -> Sequence[str]:
        return self.proposal.base.lines

    @property
    def longest(self) -> int | None:
        return None if self.bare else BLOCK_ROOM + 2 * _characters(self.old_lines)

    def _parser(self) -> ReplyParser:
        from midstream.edits.formats.region import RegionParser
        from midstream.edits.sniffing import SniffingParser

        if self.edit_format == "region":
            return _region_parser(lambda: RegionParser(bare=self.bare), bare=self.bare)
        return SniffingParser(self.edit_format)

    def reply(self, lookup: Lookup, observer: ReplyObserver) -> LiveReply:
        from midstream.edits.live import LiveReply

        return LiveReply(self._parser(), lookup, observer=observer, main=self.proposal)

    def is_empty(self, reply: LiveReply, written: bool) -> bool:
        return not (written or reply.failures or reply.refused)

    def restarted(self, reply: LiveReply) -> EditMode | None:
        return self

    def redirect(
        self, exchange: Exchange, text: str, kept: str, hunks: HunkStore, builder: RequestBuilder
    ) -> FollowUp:
        why = "continues after the edits that were kept"
        return FollowUp(FollowUpKind.REDIRECT, text, f"{text}\n\n{_AFTER_REDIRECT}", why)

    def rewrite(self, exchange: Exchange, held: Held) -> FollowUp | None:
        if _latest(exchange.history, FollowUpKind.GUARD) >= MAX_GUARD_REWRITES:
            return None
        said = f"{held.request.instruction}\n\n{_AFTER_GUARD}"
        asked = held.request.asked
        return FollowUp(FollowUpKind.GUARD, asked, said, "corrects what the guard stopped")

    def correct(self, turn: Turn, verdict: Verdict) -> FollowUp:
        said = (
            f"Your edits are proposed and stand. {verdict.correction} Correct that and nothing "
            "else, with further edits in the same format, which quote the lines as they are now."
        )
        why = "corrects what the checks found"
        return FollowUp(FollowUpKind.CHECKS, turn.instruction, said, why, verdict=verdict)

    def conversation(
        self, exchange: Exchange, follow_up: FollowUp, builder: RequestBuilder
    ) -> Conversation:
        written = exchange.written
        if follow_up.kind is FollowUpKind.GUARD:
            written = written.masked()
        path, message = self.proposal.path, follow_up.message
        return builder.after_edits(message, path, exchange.conversation, written)

    def reopened(self, follow_up: FollowUp, files: OpenFiles) -> EditMode:
        return self

    def record(self, journal: SessionJournal, turn: Turn, *, resumed: bool) -> None:
        journal.begin(AskEntry(turn))

    def checked_paths(self, paths: Sequence[str]) -> Sequence[str]:
        return paths

    async def dry_run(self, text: str, files: DryRunFiles, *, correction: bool) -> DryRun:
        return await files.dry_run(text, self._parser(), self.proposal.path, correction=correction)


def _region_parser(make: Callable[[], ReplyParser], *, bare: bool) -> ReplyParser:
    """A parser of a region's text; what is not ``bare`` may come in another format as well."""
    from midstream.edits.sniffing import PreferringParser

    return make() if bare else PreferringParser("region", make)


def _lines_of(parser: ReplyParser, text: str) -> list[str]:
    """The lines that a parser finds in a whole answer."""
    events = [*parser.feed(text), *parser.finish()]
    new = "".join(event.text for event in events if isinstance(event, NewText))
    return new.removesuffix("\n").split("\n") if new else []


def _characters(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _latest(history: Sequence[FollowUp], kind: FollowUpKind) -> int:
    """How many follow-ups of a kind came last."""
    count = 0
    for follow_up in reversed(history):
        if follow_up.kind is not kind:
            break
        count += 1
    return count
