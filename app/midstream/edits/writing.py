"""Writing one block of a reply into a proposal while it streams.

``QuotedRepair`` corrects new lines whose quoted old ones matched up to white space.  ``PatchBlock``
handles blocks that mix context, old and new lines: once the lines so far fit one place of the file,
each run of changed lines becomes a rewrite of its own.  Lines that follow must match the file; if
one does not, the place was wrong, everything is taken back, and the caller looks the complete block
up instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from midstream.edits.indent import BlockShift
from midstream.edits.matching import Match, MatchLevel
from midstream.edits.outcome import FailureReason, HunkError, unreviewed
from midstream.edits.proposal import FileProposal
from midstream.edits.reply import HunkLine, ReplyHunk, Side
from midstream.edits.segment import Segment


class ReplyObserver:
    """Hears of every step right after it was taken; a subclass overrides what it needs."""

    def began(self, proposal: FileProposal, segment: Segment, *, tight: bool) -> None:
        """A rewrite was opened; ``tight`` leaves out what was inserted at its ends before."""

    def fed(self, proposal: FileProposal, text: str) -> None:
        """Text was added to the open rewrite."""

    def rewound(self, proposal: FileProposal) -> None:
        """The undecided end of the open rewrite was dropped, see ``FileProposal.freeze``."""

    def finished(self, proposal: FileProposal) -> None:
        """The open rewrite is complete."""

    def abandoned(self, proposal: FileProposal, *, settle_tail: bool) -> None:
        """The open rewrite was cut short; see ``FileProposal.abandon``."""

    def withdrawn(self, proposal: FileProposal, segment: Segment, *, done: bool) -> None:
        """A rewrite was to be taken back; not ``done`` where part of it is decided."""

    def folded(self, proposal: FileProposal) -> None:
        """Accepted hunks became part of the base."""


class UnreviewedError(Exception):
    """A rewrite would hide undecided changes by other programs.

    Attributes:
        reason: Which, in words.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.reason = HunkError(FailureReason.UNREVIEWED, message)


class Writer:
    """Opens, feeds and ends rewrites, and notifies an observer."""

    def __init__(self, observer: ReplyObserver | None = None) -> None:
        self._observer = observer or ReplyObserver()

    def begin(
        self, proposal: FileProposal, start: int, stop: int, level: int, *, tight: bool
    ) -> Segment:
        """Open a rewrite of base lines ``[start, stop)``, which matched at ``level``.

        Raises:
            UnreviewedError: Changes of other programs wait there.
        """
        if waiting := proposal.unreviewed(start, stop, tight=tight):
            first, last = waiting[0].start, waiting[-1].stop
            raise UnreviewedError(unreviewed(len(waiting), proposal.path, first, last))
        segment = proposal.begin(start, stop, match_level=level, tight=tight)
        self._observer.began(proposal, segment, tight=tight)
        return segment

    def feed(self, proposal: FileProposal, text: str) -> None:
        """Add text to the open rewrite."""
        proposal.feed(text)
        self._observer.fed(proposal, text)

    def rewind(self, proposal: FileProposal) -> str:
        """Drop the undecided end of the open rewrite, which goes on; the text that is kept."""
        kept = proposal.freeze()
        proposal.resume()
        self._observer.rewound(proposal)
        return kept

    def finish(self, proposal: FileProposal) -> None:
        """End the open rewrite, which is complete."""
        proposal.finish()
        self._observer.finished(proposal)

    def abandon(self, proposal: FileProposal, *, settle_tail: bool = False) -> None:
        """End the open rewrite, which was cut short; see ``FileProposal.abandon``."""
        proposal.abandon(settle_tail=settle_tail)
        self._observer.abandoned(proposal, settle_tail=settle_tail)

    def withdraw(self, proposal: FileProposal, segment: Segment) -> bool:
        """Take a rewrite back, if nothing of it is decided; whether that was possible."""
        done = proposal.withdraw(segment)
        self._observer.withdrawn(proposal, segment, done=done)
        return done

    def fold(self, proposal: FileProposal) -> None:
        """Take accepted hunks into the base, so that later blocks are looked up in them."""
        proposal.advance(proposal.composed())
        self._observer.folded(proposal)


def can_stream(match: Match, quoted: Sequence[str]) -> bool:
    """Whether new text can be written, corrected line by line, while the block is incomplete."""
    if match.level <= MatchLevel.TRAILING:
        return True
    # One quoted line says nothing about the indentation of those that follow.
    nonblank = sum(bool(line.strip()) for line in quoted)
    return match.level is MatchLevel.INDENTATION and match.shift is not None and nonblank > 1


class QuotedRepair:
    """Turns the lines of a replacement into the file's terms, one complete line after another."""

    def __init__(
        self, quoted: Sequence[str], found: Sequence[str], shift: BlockShift | None
    ) -> None:
        """Start a replacement.

        Args:
            quoted: The old lines as the model wrote them.
            found: The same lines as the file has them.
            shift: How indentation must be shifted, or None if it fits.
        """
        self._quoted = quoted
        self._found = found
        self._shift = shift
        self._at = 0  # the first quoted line that was not repeated yet
        self._first = True
        self._rest = ""

    def feed(self, text: str) -> str:
        """Take more text; returns the lines that it completes, mended."""
        *lines, self._rest = (self._rest + text).split("\n")
        return "".join(f"{self._line(line)}\n" for line in lines)

    def finish(self) -> str:
        """The replacement has ended; returns its last line if nothing terminated it."""
        rest, self._rest = self._rest, ""
        return self._line(rest) if rest else ""

    def _line(self, line: str) -> str:
        if not line.strip():
            return line
        for number in range(self._at, len(self._quoted)):
            if self._quoted[number] == line:
                self._at = number + 1
                self._first = False
                return self._found[number]
        first, self._first = self._first, False
        if self._shift is None:
            return line
        return (self._shift.first if first else self._shift.rest).apply(line)


Find = Callable[[ReplyHunk], Match | None]
"""Finds the one place of the old lines of an incomplete block."""


@dataclass(slots=True)
class _ChangedRun:
    """Changed lines between two context lines.

    Attributes:
        found: Old lines so far, as the file has them.
        new: New text so far, repaired.
        segment: Their rewrite, once it has begun.
    """

    found: list[str] = field(default_factory=list[str])
    new: str = ""
    segment: Segment | None = None

    @property
    def old(self) -> int:
        """How many old lines have come."""
        return len(self.found)


class PatchBlock:
    """Places one block and writes its changes.

    Attributes:
        segments: The rewrites that it has begun, by position.
        level: The most lenient match among its lines.
        placed: Whether its place is known.
        lost: Whether a line did not match the place.
    """

    def __init__(
        self, proposal: FileProposal, opened: ReplyHunk, find: Find, writer: Writer
    ) -> None:
        """Start a block; ``opened`` is the hunk without lines, ``find`` looks up those so far."""
        self.segments: list[Segment] = []
        self.level = MatchLevel.EXACT
        self.placed = False
        self.lost = False
        self._proposal = proposal
        self._opened = opened
        self._find = find
        self._writer = writer
        self._parts: list[HunkLine] = []  # until the place is known
        self._partial = ""  # the new line that is being written
        self._tried = 0
        self._shift: BlockShift | None = None
        self._start = 0  # of the block, until its first rewrite
        self._passed = 0  # lines since then, or since the end of the last rewrite
        self._first_old = self._first_new = True  # no such line, but blank ones, has come yet
        self._run = _ChangedRun()

    @property
    def stop(self) -> int:
        """The base line after those that have come."""
        return self._position + self._run.old

    @property
    def _position(self) -> int:
        anchor = self._start if not self.segments else self.segments[-1].stop
        if self._run.segment is not None:
            return self._run.segment.start
        return anchor + self._passed

    def line(self, part: HunkLine) -> None:
        """Take a line that the block removes or keeps."""
        if self.lost:
            return
        if self.placed:
            self._placed_line(part)
            return
        if self._partial:
            self._parts.append(HunkLine(Side.NEW, self._partial))
            self._partial = ""
        changed = any(p.side is not Side.CONTEXT for p in self._parts)
        self._parts.append(part)
        if part.side is Side.CONTEXT and changed:
            self._place()

    def new(self, text: str) -> None:
        """Take a piece of its new text."""
        if self.lost:
            return
        if not self.placed:
            self._place()
        if self.placed:
            self._write(text)
            return
        *lines, self._partial = (self._partial + text).split("\n")
        self._parts += (HunkLine(Side.NEW, line) for line in lines)

    def close(self) -> bool:
        """The block is complete; returns whether all of it has been written."""
        if not self.placed or self.lost:
            return False
        self._end_run()
        return not self.lost

    def stopped(self, *, settle_tail: bool) -> None:
        """The reply was stopped: an open rewrite keeps what has settled."""
        if self._run.segment is not None:
            self._writer.abandon(self._proposal, settle_tail=settle_tail)
        self._run = _ChangedRun()

    def take_back(self) -> bool:
        """Undo what was written; returns False if some of it was decided already."""
        undone = True
        for segment in reversed(self.segments):
            undone = self._writer.withdraw(self._proposal, segment) and undone
        self._run = _ChangedRun()
        return undone

    # Finding the place

    def _place(self) -> None:
        quoted = [part.text for part in self._parts if part.side is not Side.NEW]
        if len(quoted) == self._tried or not any(line.strip() for line in quoted):
            return
        self._tried = len(quoted)
        hunk = ReplyHunk(self._opened.id, self._opened.context, self._opened.line)
        hunk.parts = list(self._parts)
        match = self._find(hunk)
        if match is None or not can_stream(match, quoted):
            return
        self.placed = True
        self.level, self._shift, self._start = match.level, match.shift, match.start
        parts, partial = self._parts, self._partial
        self._parts, self._partial = [], ""
        for part in parts:
            if part.side is Side.NEW:
                self._write(f"{part.text}\n")
            else:
                self._placed_line(part)
        if partial:
            self._write(partial)

    # Writing

    def _placed_line(self, part: HunkLine) -> None:
        if part.side is Side.CONTEXT:
            self._end_run()
            if self._fitting(self._position, part) is not None:
                self._passed += 1
            return
        found = self._fitting(self._position + self._run.old, part)
        if found is None:
            return
        if self._run.segment is not None:  # an old line after new ones: the run begins again, wider
            new = self._run.new + self._flush()
            at = self._position
            self._withdraw_run()
            self._passed = at - (self.segments[-1].stop if self.segments else self._start)
            self._run = _ChangedRun(self._run.found, new)
        self._run.found.append(found)

    def _fitting(self, line: int, part: HunkLine) -> str | None:
        """The file's line if it is the quoted one; otherwise the place is lost."""
        if self.lost:
            return None
        base = self._proposal.base.lines
        found = base[line] if line < len(base) else None
        text = self._shifted(part.text, new=False)
        if part.side is Side.CONTEXT and text.strip():
            self._first_new = False
        if found is not None and found.rstrip() == text.rstrip():
            if found != text:
                self.level = max(self.level, MatchLevel.TRAILING)
            return found
        self.lost = True
        return None

    def _write(self, text: str) -> None:
        if self.lost:
            return
        text = self._mended(text)
        run = self._run
        if run.segment is None and not self._begin(run):
            return
        if text:
            run.new += text
            self._writer.feed(self._proposal, text)

    def _mended(self, text: str) -> str:
        if self._shift is None:
            return text
        *lines, self._partial = (self._partial + text).split("\n")
        return "".join(f"{self._shifted(line, new=True)}\n" for line in lines)

    def _shifted(self, line: str, *, new: bool) -> str:
        if self._shift is None or not line.strip():
            return line
        first = self._first_new if new else self._first_old
        if new:
            self._first_new = False
        else:
            self._first_old = False
        return (self._shift.first if first else self._shift.rest).apply(line)

    def _flush(self) -> str:
        rest, self._partial = self._partial, ""
        return self._shifted(rest, new=True) if rest else ""

    def _end_run(self) -> None:
        run = self._run
        if run.segment is None:
            if not run.old and not run.new:
                return
            if not self._begin(run):
                return
        if rest := self._flush():
            self._writer.feed(self._proposal, rest)
        self._writer.finish(self._proposal)
        self._run = _ChangedRun()

    def _begin(self, run: _ChangedRun) -> bool:
        start = self._position
        stop = start + run.old
        if list(self._proposal.base.lines[start:stop]) != run.found:
            self.lost = True  # the file has changed under the block
            return False
        run.segment = self._writer.begin(self._proposal, start, stop, int(self.level), tight=True)
        self.segments.append(run.segment)
        self._passed = 0
        if run.new:
            self._writer.feed(self._proposal, run.new)
        return True

    def _withdraw_run(self) -> None:
        segment = self.segments.pop()
        if not self._writer.withdraw(self._proposal, segment):
            self.segments.append(segment)
            self.lost = True
