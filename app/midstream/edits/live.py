"""A reply in any format, streamed into file proposals: hunks appear while the model still writes.

Whole files and regions stream from their first character.  A block that gives its old lines before
its new ones (SEARCH/REPLACE, JSON) streams from its first new character; a patch block from the
first change whose place the lines before it determine.  Leniently matched blocks and insertions
appear when they close.  Places are looked up in *base + accepted*, never in rejected text, and only
failing that in the text with everything that is proposed.

The reply owns its parser.  Which files exist is up to the caller: ``steps`` pauses before a file is
looked up, so that the caller can open it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field

from midstream.edits.elision import elided, elides, merge, placeholder
from midstream.edits.events import (
    ContextLine,
    Event,
    FileOp,
    FileSectionClosed,
    FileSectionOpened,
    HunkClosed,
    HunkOpened,
    NewText,
    OldLine,
    Problem,
    Prose,
    merge_text,
)
from midstream.edits.indent import IndentRepair
from midstream.edits.locate import Located, Locator
from midstream.edits.matching import Match, MatchLevel
from midstream.edits.mending import unnumbered, without_surroundings
from midstream.edits.outcome import (
    ApplyResult,
    FailureReason,
    FileOutcome,
    HunkError,
    HunkOutcome,
    HunkStatus,
)
from midstream.edits.parsing import ReplyParser
from midstream.edits.proposal import FileProposal, Overlay
from midstream.edits.reply import HunkLine, ReplyHunk, Side, collect, normalise
from midstream.edits.segment import Segment
from midstream.edits.writing import (
    PatchBlock,
    QuotedRepair,
    ReplyObserver,
    UnreviewedError,
    Writer,
    can_stream,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A block of the reply that was not placed."""

    hunk: int
    path: str
    error: HunkError

    @property
    def words(self) -> str:
        """The reason, with the first line that differs or else the nearest place on lines below."""
        error = self.error
        lines = [f"{self.path}: {error.message}" if self.path else error.message]
        if error.expected is not None and error.line is not None:
            found = "the end of the file" if error.found is None else error.found
            number = f"line {error.line + 1}:"
            lines += [f"{'quoted:':<{len(number)}}  {error.expected}", f"{number}  {found}"]
        else:
            for place in error.places:
                where = f" in {place.scope}" if place.scope else ""
                lines += [f"Around line {place.start + 1}{where} the file has:"]
                lines += [f"    {line}" for line in place.text.splitlines()]
        return "\n".join(lines)


@dataclass(slots=True)
class _ReplyBlock:
    """The state of one block.

    Attributes:
        opened: Its first event.
        path: Its file.
        proposal: That file's proposal, or None if there is no such file.
        events: Its events, for the lookup when it closes.
        segment: The rewrite that its new text streams into.
        repair: Fixes that text, where the block was matched leniently.
        patch: The counterpart for a block that mixes old and new lines.
        suffix: The rest of the line in which a run of characters ends.
        started: Whether new text has come.
        done: Whether it was placed, failed or dropped.
    """

    opened: HunkOpened
    path: str
    proposal: FileProposal | None
    events: list[Event]
    segment: Segment | None = None
    repair: QuotedRepair | None = None
    patch: PatchBlock | None = None
    suffix: str = ""
    started: bool = False
    done: bool = False

    @property
    def streaming(self) -> bool:
        """Whether new text goes straight into a rewrite."""
        return self.segment is not None and not self.done


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An ambiguous block that later blocks may resolve."""

    hunk: ReplyHunk
    path: str
    proposal: FileProposal
    later: list[ReplyHunk] = field(default_factory=list[ReplyHunk])


def _collected(events: list[Event]) -> ReplyHunk:
    """The hunk that the events of one block, opened file included, describe."""
    files, _ = collect(events)
    return files[-1].hunks[-1]


def _rewritten(base: tuple[str, ...], located: Located) -> tuple[int, int, list[str]]:
    """The smallest range that a block changes, and its lines afterwards."""
    if not located.edits:
        return located.start, located.start, []
    start, stop = located.edits[0].start, located.edits[-1].stop
    lines: list[str] = []
    at = start
    for edit in located.edits:
        lines += base[at : edit.start]
        lines += edit.lines
        at = edit.stop
    return start, stop, lines


Lookup = Callable[[str, FileOp], FileProposal | None]
"""The proposal of a file that the reply names; None if there is no such file (or may not be)."""


class LiveReply:
    """Feeds one reply into proposals.

    Attributes:
        failures: Blocks whose place was not found, in order.
        refused: Blocks whose place has undecided changes by other programs.
        problems: What the parser complained about.
        unfinished: How the reply ended before its format does, in words; ``""`` if it did not.
        prose: What the model said around its edits.
        deletions: Files that the reply deletes; the caller decides.
        moves: Files that it moves: old name, new name.
        copies: Those of them that also stay under their old name.
        segments: The first rewrite of each block that was placed.
        instead: The rewrite that has taken the place of the region's, where that was mended.
        writer: Writes to the proposals and notifies the observer.
    """

    def __init__(
        self,
        parser: ReplyParser,
        lookup: Lookup,
        region: tuple[FileProposal, int, int] | None = None,
        *,
        observer: ReplyObserver | None = None,
        opened: Segment | None = None,
        removes: bool = False,
        main: FileProposal | None = None,
    ) -> None:
        """Start a reply.

        Args:
            parser: The parser of its format.
            lookup: Finds the files that it names.
            region: File and line range of the region to rewrite, for replies that rewrite it.
            observer: Is notified of every write.
            opened: The rewrite of the region, if it is open already.
            removes: Whether the region is to go, so that a block without a line of code is right.
            main: The file that the model was shown. It gets what is quoted from it under the name
                of a file that does not exist, such as that of an example.
        """
        self.failures: list[Failure] = []
        self.refused: list[Failure] = []
        self.problems: list[Problem] = []
        self.unfinished = ""
        self.prose: list[str] = []
        self.deletions: list[str] = []
        self.moves: list[tuple[str, str]] = []
        self.copies: set[tuple[str, str]] = set()
        self.segments: dict[int, Segment] = {}
        self.instead: Segment | None = None
        self._parser = parser
        self._lookup = lookup
        self._region = region
        self._removes = removes
        self._main = main
        self.writer = Writer(observer)
        self._open_region = opened
        self._op = FileOp.UPDATE
        self._path = ""
        self._proposal: FileProposal | None = None
        self._locator: Locator | None = None
        self._block: _ReplyBlock | None = None
        self._outcomes: dict[int, HunkOutcome] = {}
        self._waiting: list[_Waiting] = []

    def steps(self, text: str) -> Iterator[FileSectionOpened | FileSectionClosed]:
        """Take the next part of the reply, pausing where the caller may have to act.

        Yields:
            A file before it is looked up, and a file once its edits are through.
        """
        return self._steps(self._parser.feed(text))

    def last_steps(self) -> Iterator[FileSectionOpened | FileSectionClosed]:
        """The same for what the parser held back; ``end`` follows."""
        return self._steps(self._parser.finish())

    def feed(self, text: str) -> None:
        """Take the next part of the reply without a pause."""
        for _ in self.steps(text):
            pass

    def finish(self) -> None:
        """The reply has ended."""
        for _ in self.last_steps():
            pass
        self.end()

    def _steps(self, events: Iterable[Event]) -> Iterator[FileSectionOpened | FileSectionClosed]:
        for event in merge_text(events):
            if isinstance(event, FileSectionOpened):
                yield event
            elif (made := self._made_by(event)) is not None:
                yield made
                self._create(made)
            self._take(event)
            if isinstance(event, FileSectionClosed):
                yield event

    def _made_by(self, event: Event) -> FileSectionOpened | None:
        """The file that a block without old lines makes: SEARCH/REPLACE has no other way to say so.

        It is made with the block's first new text, so that it streams.
        """
        block = self._block
        if block is None or block.proposal is not None or not isinstance(event, NewText):
            return None
        quotes = any(isinstance(each, (OldLine, ContextLine)) for each in block.events)
        if self._op is not FileOp.UPDATE or not block.opened.old_first or quotes or not self._path:
            return None
        return None if block.started else FileSectionOpened(FileOp.ADD, self._path)

    def _create(self, made: FileSectionOpened) -> None:
        block = self._block
        self._proposal = self._lookup(made.path, made.op)
        if block is not None and self._proposal is not None:
            block.proposal, block.started = self._proposal, True
            with self._refusing(block):
                self._begin(block, self._proposal, 0, len(self._proposal.base.lines), 0)

    def end(self) -> None:
        """There are no more events: place the blocks that waited for later ones."""
        waiting, self._waiting = self._waiting, []
        for block in waiting:
            located = Locator(block.proposal.base, block.path).locate(block.hunk, block.later)
            if isinstance(located, Located):
                self.failures = [f for f in self.failures if f.hunk != block.hunk.id]
                try:
                    self._put(block.proposal, block.hunk.id, located)
                except UnreviewedError as error:
                    self.refused.append(Failure(block.hunk.id, block.path, error.reason))
        self.stop()

    def stop(self, *, settle_tail: bool = False) -> None:
        """The reply was stopped: complete blocks stay, an open one keeps what has settled.

        Args:
            settle_tail: See ``FileProposal.abandon``.
        """
        block, self._block = self._block, None
        if block is None or block.proposal is None:
            return
        if block.streaming:
            self.writer.abandon(block.proposal, settle_tail=settle_tail)
        elif block.patch is not None and not block.done:
            block.patch.stopped(settle_tail=settle_tail)

    def outcome(self, edit_format: str) -> ApplyResult:
        """The outcome of the blocks that have closed; its ``message`` is for the model."""
        hunks = dict(self._outcomes)
        for failure in self.failures:
            hunks[failure.hunk] = HunkOutcome.failed(failure.hunk, failure.path, failure.error)
        paths = dict.fromkeys(hunk.path for hunk in hunks.values())
        return ApplyResult(
            not self.failures and not self.problems,
            edit_format,
            {},
            tuple(hunks[number] for number in sorted(hunks)),
            tuple(FileOutcome(path, "update") for path in paths),
            tuple(self.problems),
        )

    def _take(self, event: Event) -> None:
        match event:
            case FileSectionOpened(op, path, mentioned):
                self._open_file(op, path, mentioned=mentioned)
            case HunkOpened():
                self.stop()
                if self._op is not FileOp.DELETE:  # A diff may list the lines that go.
                    self._open(event)
            case NewText() | OldLine() | ContextLine() | HunkClosed():
                if self._block is not None:
                    with self._refusing(self._block):
                        self._body(self._block, event)
            case FileSectionClosed(path, new_path, copied=copied):
                if new_path is not None:
                    self.moves.append((path, new_path))
                    if copied:
                        self.copies.add((path, new_path))
                if self._op is FileOp.DELETE:
                    self.deletions.append(path)
            case Problem():
                self._problem(event)
            case Prose(text):
                self.prose.append(text)

    def _open_file(self, op: FileOp, path: str, *, mentioned: bool) -> None:
        self.stop()
        self._op, self._path = op, path
        self._locator = None
        if op is FileOp.REGION:
            self._proposal = self._region[0] if self._region is not None else None
        else:
            if self._region is not None and self._open_region is not None:
                # The model names its places instead of rewriting the region that it was given.
                self.writer.withdraw(self._region[0], self._open_region)
                self._open_region = None
            # A file that was only mentioned must exist, like one to update.
            wanted = FileOp.UPDATE if mentioned else op
            self._proposal = None if op is FileOp.DELETE else self._lookup(path, wanted)

    def _open(self, opened: HunkOpened) -> None:
        block = _ReplyBlock(
            opened, self._path, self._proposal, [FileSectionOpened(self._op, self._path)]
        )
        block.events.append(opened)
        self._block = block
        proposal = self._proposal
        if proposal is None:
            return
        if self._op in (FileOp.REGION, FileOp.WRITE, FileOp.ADD):
            with self._refusing(block):
                self._open_whole(block, proposal)
        elif not (opened.old_first or opened.characters):
            start = ReplyHunk(opened.hunk, opened.context, opened.line)
            find = self._finder(proposal)
            block.patch = PatchBlock(proposal, start, find, self.writer)

    def _finder(self, proposal: FileProposal) -> Callable[[ReplyHunk], Match | None]:
        def find(hunk: ReplyHunk) -> Match | None:
            found = self._located_in(proposal).quoted_place(hunk)
            return found if isinstance(found, Match) else None

        return find

    def _body(
        self, block: _ReplyBlock, event: NewText | OldLine | ContextLine | HunkClosed
    ) -> None:
        if not block.streaming:
            block.events.append(event)
        match event:
            case NewText(_, text):
                self._new(block, text)
            case OldLine(_, text):
                if block.patch is not None:
                    block.patch.line(HunkLine(Side.OLD, text))
            case ContextLine(_, text):
                if block.patch is not None:
                    block.patch.line(HunkLine(Side.CONTEXT, text))
            case HunkClosed():
                self._close(block)
        if block.patch is not None and block.patch.segments:
            self.segments.setdefault(event.hunk, block.patch.segments[0])

    def _new(self, block: _ReplyBlock, text: str) -> None:
        if block.patch is not None:
            block.patch.new(text)
            return
        if not block.started:
            block.started = True
            if block.segment is None:
                block.events.pop()
                self._open_quoted(block)
                block.events.append(NewText(block.opened.hunk, text))
        if block.streaming and block.proposal is not None:
            mended = block.repair.feed(text) if block.repair is not None else text
            if mended:
                self.writer.feed(block.proposal, mended)

    def _open_whole(self, block: _ReplyBlock, proposal: FileProposal) -> None:
        if self._op is FileOp.REGION and self._open_region is not None:
            block.segment, self._open_region = self._open_region, None
            self.segments[block.opened.hunk] = block.segment
            return
        start, stop = 0, len(proposal.base.lines)
        if self._op is FileOp.REGION and self._region is not None:
            _, start, stop = self._region
        self._begin(block, proposal, start, stop, 0)

    def _open_quoted(self, block: _ReplyBlock) -> None:
        """Stream the new text as it comes, if the complete old lines determine its place."""
        opened, proposal = block.opened, block.proposal
        if proposal is None or not opened.old_first:
            return
        hunk = _collected(block.events)
        if not hunk.old:
            return
        locator = self._located_in(proposal)
        if opened.characters:
            place = locator.characters_place(hunk)
            if place is not None:
                start, stop, prefix, block.suffix = place
                self._begin(block, proposal, start, stop, int(MatchLevel.EXACT))
                if prefix:
                    self.writer.feed(proposal, prefix)
            return
        found = locator.quoted_place(hunk)
        if not isinstance(found, Match) or not can_stream(found, hunk.old):
            return
        if found.level > MatchLevel.EXACT:
            lines = proposal.base.lines[found.start : found.stop]
            block.repair = QuotedRepair(hunk.old, lines, found.shift)
        self._begin(block, proposal, found.start, found.stop, int(found.level))
        locator.skip(found.stop)

    def _close(self, block: _ReplyBlock) -> None:
        self._block = None
        if block.done:
            return
        proposal, number = block.proposal, block.opened.hunk
        for waiting in self._waiting:
            if waiting.path == block.path:
                waiting.later.append(_collected(block.events))
        if block.streaming and proposal is not None:
            if self._without_code(block):
                self._drop(block)
                return
            if self._elided(block, proposal) or self._mended(block, proposal):
                return
            rest = block.repair.finish() if block.repair is not None else ""
            if rest + block.suffix:
                self.writer.feed(proposal, rest + block.suffix)
            self.writer.finish(proposal)
            block.done = True
            level = block.segment.match_level if block.segment is not None else 0
            self._placed(number, block.path, MatchLevel(level) if level else None)
            return
        block.done = True
        if block.patch is not None and proposal is not None:
            written = _collected(block.events).parts
            new = [part.text for part in written if part.side is Side.NEW]
            whole = placeholder(proposal.base.lines, new) is None
            if whole and block.patch.close():
                if block.patch.segments:
                    self._located_in(proposal).skip(block.patch.stop)
                self._placed(number, block.path, block.patch.level)
                return
            if not block.patch.take_back():
                message = (
                    f"A line of the block does not match {block.path} where its first lines do."
                )
                self._fail(HunkError(FailureReason.NOT_FOUND, message), number)
                return
            self.segments.pop(number, None)
        self._close_late(_collected(block.events), proposal)

    def _without_code(self, block: _ReplyBlock) -> bool:
        """Whether the text for a region has no line of code, which deletes it by accident."""
        if self._op is not FileOp.REGION or block.segment is None or self._removes:
            return False
        return not block.segment.new_text.strip()

    def _elided(self, block: _ReplyBlock, proposal: FileProposal) -> bool:
        """Place the parts of a text that leaves code out, so that nothing is deleted."""
        segment, number = block.segment, block.opened.hunk
        if segment is None:
            return False
        old = proposal.base.lines[segment.start : segment.stop]
        new = [*segment.new_lines, *filter(None, [segment.partial])]  # Their indentation is right.
        if not elides(old, new, whole=self._op in (FileOp.REGION, FileOp.WRITE)):
            return False
        start = segment.start
        self.writer.withdraw(proposal, segment)
        block.done = True
        self.segments.pop(number, None)
        path = proposal.path
        edits = merge(old, new, path)
        if edits is None:
            self._fail(HunkError(FailureReason.ELIDED, elided(path)), number)
            return True
        for edit in edits:
            segment = self.writer.begin(
                proposal, start + edit.start, start + edit.stop, 0, tight=True
            )
            self.segments.setdefault(number, segment)
            self.writer.feed(proposal, "".join(f"{line}\n" for line in edit.lines))
            self.writer.finish(proposal)
        self._placed(number, proposal.path, None)
        return True

    def _mended(self, block: _ReplyBlock, proposal: FileProposal) -> bool:
        """Take numbers out of a region's lines, and lines that stand around it already.

        Only chat models do that, whose indentation is repaired as well.
        """
        segment = block.segment
        if segment is None or segment.repair is None:
            return False
        start, stop, base = segment.start, segment.stop, proposal.base.lines
        written = segment.new_text.removesuffix("\n").split("\n")
        lines = unnumbered(base[start:stop], written)
        if lines is not None:
            repair = IndentRepair(base[start:stop], margin=segment.repair.margin)
            lines = [repair.line(line) for line in lines]
        else:
            around = without_surroundings(base, start, stop, written)
            if around is None:
                return False
            waiting = {hunk.id for hunk in proposal.hunks.waiting(proposal.path)}
            if around[:2] != (start, stop) and waiting - {*segment.hunk_ids}:
                return False
            start, stop, lines = around
        if not self.writer.withdraw(proposal, segment):
            return False
        block.done = True
        self._write(proposal, block.opened.hunk, (start, stop), lines, None, tight=False)
        self.instead = self.segments[block.opened.hunk]
        return True

    def _close_late(self, hunk: ReplyHunk, proposal: FileProposal | None) -> None:
        if proposal is None and self._main is not None and any(map(str.strip, hunk.old)):
            located = Locator(self._main.base, self._main.path).locate(hunk)
            proposal = self._main if isinstance(located, Located) else None
        if proposal is None:
            path = self._path or "the file"
            self._fail(HunkError(FailureReason.NO_FILE, f"{path} does not exist."), hunk.id)
            return
        if not hunk.characters:
            normalise(hunk)
        locator = self._located_in(proposal)
        located = locator.locate(hunk)
        if isinstance(located, Located):
            self._put(proposal, hunk.id, located)
            locator.skip(located.stop)
        elif not self._put_over(proposal, hunk):
            if located.reason is FailureReason.AMBIGUOUS:
                self._waiting.append(_Waiting(hunk, proposal.path, proposal))
            self._fail(located, hunk.id)

    def _put(self, proposal: FileProposal, number: int, located: Located) -> None:
        start, stop, lines = _rewritten(proposal.base.lines, located)
        self._write(proposal, number, (start, stop), lines, located.level, tight=True)

    def _put_over(self, proposal: FileProposal, hunk: ReplyHunk) -> bool:
        """Place a block that quotes an undecided proposal, which it replaces."""
        overlay = Overlay(proposal)
        if not overlay.undecided:
            return False
        located = Locator(overlay.source, proposal.path).locate(hunk)
        if isinstance(located, HunkError):
            return False
        start, stop, lines = _rewritten(overlay.source.lines, located)
        first, last, base_start, base_stop = overlay.to_base(start, stop)
        around = overlay.source.lines
        lines = [*around[first:start], *lines, *around[stop:last]]
        place = (base_start, base_stop)
        self._write(proposal, hunk.id, place, lines, located.level, tight=False)
        return True

    def _write(
        self,
        proposal: FileProposal,
        number: int,
        place: tuple[int, int],
        lines: list[str],
        level: MatchLevel | None,
        *,
        tight: bool,
    ) -> None:
        self.segments[number] = self.writer.begin(proposal, *place, int(level or 0), tight=tight)
        if lines:
            self.writer.feed(proposal, "".join(f"{line}\n" for line in lines))
        self.writer.finish(proposal)
        self._placed(number, proposal.path, level)

    def _begin(
        self, block: _ReplyBlock, proposal: FileProposal, start: int, stop: int, level: int
    ) -> None:
        tight = self._op is FileOp.UPDATE
        block.segment = self.writer.begin(proposal, start, stop, level, tight=tight)
        self.segments[block.opened.hunk] = block.segment

    def _located_in(self, proposal: FileProposal) -> Locator:
        if proposal.hunks.accepted_edits(proposal.path):
            self.writer.fold(proposal)
        if self._locator is None or self._locator.source is not proposal.base:
            self._locator = Locator(proposal.base, proposal.path)
        return self._locator

    def _problem(self, problem: Problem) -> None:
        block = self._block
        if problem.unfinished:
            self.unfinished = self.unfinished or problem.message
        if problem.hunk is None or self._op is FileOp.REGION:
            self.problems.append(problem)
            return
        if block is not None and block.opened.hunk == problem.hunk and not block.done:
            self._drop(block)
        message = f"{problem.message[:1].upper()}{problem.message[1:]}."
        self._fail(HunkError(FailureReason.MALFORMED, message), problem.hunk)

    def _drop(self, block: _ReplyBlock) -> None:
        block.done = True
        if block.proposal is None:
            return
        if block.patch is not None:
            block.patch.take_back()
        elif block.segment is not None:
            self.writer.withdraw(block.proposal, block.segment)
        self.segments.pop(block.opened.hunk, None)

    @contextlib.contextmanager
    def _refusing(self, block: _ReplyBlock) -> Generator[None]:
        """Leave out a block that would hide what other programs have changed."""
        try:
            yield
        except UnreviewedError as error:
            self._drop(block)
            block.patch, block.started = None, True
            self.refused.append(Failure(block.opened.hunk, block.path, error.reason))

    def _placed(self, number: int, path: str, level: MatchLevel | None) -> None:
        self._outcomes[number] = HunkOutcome(number, path, HunkStatus.APPLIED, level)

    def _fail(self, error: HunkError, hunk: int) -> None:
        self.failures.append(Failure(hunk, self._path, error))
