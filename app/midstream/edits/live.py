"""A reply of any format, streamed into file proposals: hunks appear while the model still writes.

A block whose old lines are complete before its new ones (SEARCH/REPLACE, JSON) opens its segment at
the first new character, if its place is exact; whole files and regions stream from their first
character.  Blocks that mix old and new lines (patches), and those found only leniently, appear when
they close.  Places are looked up in *base + accepted*, never in text that was rejected or waits.

Responsibility: routing events to proposals.  Which files there are is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from midstream.edits.formats.base import Parser
from midstream.edits.formats.events import (
    ContextLine,
    Event,
    FileClosed,
    FileOp,
    FileOpened,
    HunkClosed,
    HunkOpened,
    NewText,
    OldLine,
    Problem,
    Prose,
)
from midstream.edits.locate import Located, Locator
from midstream.edits.matching import Level, Match
from midstream.edits.outcome import HunkError, Reason
from midstream.edits.proposal import FileProposal
from midstream.edits.reply import ReplyHunk, collect, normalise
from midstream.edits.segment import Segment

Lookup = Callable[[str, FileOp], FileProposal | None]
"""The proposal of a file that the reply names; None if there is no such file (or may not be)."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A block that found no place.

    Attributes:
        hunk: Its number in the reply.
        path: The file it names.
        error: Why.
    """

    hunk: int
    path: str
    error: HunkError


class LiveReply:
    """Feeds one reply into proposals.

    Attributes:
        failures: Blocks without a place, in order.
        problems: What the parser complained about.
        prose: What the model said around its edits.
        deletions: Files that the reply deletes, for the caller to ask about.
        moves: Files that it moves: old name, new name.
        segments: The segment of each block that found its place.
    """

    def __init__(
        self, parser: Parser, lookup: Lookup, region: tuple[FileProposal, int, int] | None = None
    ) -> None:
        """Start a reply.

        Args:
            parser: The parser of its format.
            lookup: Finds the files that it names.
            region: File, first line and line after the last of the region that was asked for, for
                replies that rewrite it.
        """
        self.failures: list[Failure] = []
        self.problems: list[Problem] = []
        self.prose: list[str] = []
        self.deletions: list[str] = []
        self.moves: list[tuple[str, str]] = []
        self.segments: dict[int, Segment] = {}
        self._parser = parser
        self._lookup = lookup
        self._region = region
        self._op = FileOp.UPDATE
        self._path = ""
        self._proposal: FileProposal | None = None
        self._locator: Locator | None = None
        self._events: list[Event] = []  # of the open block
        self._opened: HunkOpened | None = None
        self._streaming = False
        self._suffix = ""  # the rest of the line that a run of characters ends in

    def feed(self, text: str) -> None:
        """Take the next part of the reply."""
        for event in self._parser.feed(text):
            self._take(event)

    def finish(self) -> None:
        """The reply has ended."""
        for event in self._parser.finish():
            self._take(event)
        self.stop()

    def stop(self) -> None:
        """The reply was stopped: complete blocks stay, an open one keeps what it has written."""
        if self._streaming and self._proposal is not None:
            self._proposal.abandon()
        self._forget()

    def _take(self, event: Event) -> None:
        match event:
            case FileOpened(op, path, mentioned):
                self._open_file(op, path, mentioned=mentioned)
            case HunkOpened():
                self._forget()
                self._opened = event
                self._events = [FileOpened(self._op, self._path), event]
                if self._op in (FileOp.REGION, FileOp.WRITE, FileOp.ADD):
                    self._open_whole()
            case NewText():
                if not self._streaming:
                    if not any(isinstance(e, NewText) for e in self._events):
                        self._open_exact()
                    self._events.append(event)
                if self._streaming and self._proposal is not None:
                    self._proposal.feed(event.text)
            case OldLine() | ContextLine():
                self._events.append(event)
            case HunkClosed():
                self._close(event)
            case FileClosed(path, new_path):
                if new_path is not None:
                    self.moves.append((path, new_path))
                if self._op is FileOp.DELETE:
                    self.deletions.append(path)
            case Problem():
                self.problems.append(event)
                if event.hunk is not None:
                    self._fail(HunkError(Reason.MALFORMED, event.message), event.hunk)
            case Prose(text):
                self.prose.append(text)

    def _open_file(self, op: FileOp, path: str, *, mentioned: bool) -> None:
        self._op, self._path = op, path
        self._locator = None
        if op is FileOp.REGION:
            self._proposal = self._region[0] if self._region is not None else None
        else:
            # A file that was only mentioned must exist, as one to update must.
            wanted = FileOp.UPDATE if mentioned else op
            self._proposal = None if op is FileOp.DELETE else self._lookup(path, wanted)

    def _open_whole(self) -> None:
        """The block is the new text of a region or of a whole file."""
        proposal = self._proposal
        if proposal is None:
            return
        start, stop = 0, len(proposal.base.lines)
        if self._op is FileOp.REGION and self._region is not None:
            _, start, stop = self._region
        self._begin(proposal, start, stop, 0)

    def _open_exact(self) -> None:
        """Stream the new text as it comes, if the old lines are complete and their place exact."""
        opened, proposal = self._opened, self._proposal
        if opened is None or proposal is None or not opened.old_first or opened.line is not None:
            return
        hunk = self._collected()
        if not hunk.old:
            return
        locator = self._located_in(proposal)
        if opened.characters:
            place = locator.characters_place(hunk)
            if place is not None:
                start, stop, prefix, self._suffix = place
                self._begin(proposal, start, stop, int(Level.EXACT))
                if prefix:
                    proposal.feed(prefix)
            return
        found = locator.quoted_place(hunk)
        if isinstance(found, Match) and found.level is Level.EXACT:
            self._begin(proposal, found.start, found.stop, int(found.level))
            locator.skip(found.stop)

    def _close(self, event: HunkClosed) -> None:
        if self._streaming and self._proposal is not None:
            if self._suffix:
                self._proposal.feed(self._suffix)
            self._proposal.finish()
        elif self._opened is not None and event.hunk not in {f.hunk for f in self.failures}:
            self._events.append(event)
            self._close_late(self._collected())
        self._forget()

    def _close_late(self, hunk: ReplyHunk) -> None:
        """Place a block that is complete."""
        proposal = self._proposal
        if proposal is None:
            path = self._path or "the file"
            self._fail(HunkError(Reason.NO_FILE, f"{path} does not exist."), hunk.id)
            return
        if not hunk.characters:
            normalise(hunk)
        locator = self._located_in(proposal)
        located = locator.locate(hunk)
        if isinstance(located, HunkError):
            self._fail(located, hunk.id)
            return
        start, stop, lines = _rewritten(proposal, located)
        self._begin(proposal, start, stop, int(located.level or 0))
        proposal.feed("".join(f"{line}\n" for line in lines))
        proposal.finish()
        locator.skip(located.stop)

    def _begin(self, proposal: FileProposal, start: int, stop: int, level: int) -> None:
        segment = proposal.begin(start, stop, match_level=level)
        self._streaming = True
        if self._opened is not None:
            self.segments[self._opened.hunk] = segment

    def _located_in(self, proposal: FileProposal) -> Locator:
        """A locator of *base + accepted*."""
        if proposal.hunks.accepted_edits(proposal.path):
            proposal.advance(proposal.composed())
        if self._locator is None or self._locator.source is not proposal.base:
            self._locator = Locator(proposal.base, proposal.path)
        return self._locator

    def _collected(self) -> ReplyHunk:
        files, _ = collect(self._events)
        return files[-1].hunks[-1]

    def _fail(self, error: HunkError, hunk: int) -> None:
        self.failures.append(Failure(hunk, self._path, error))

    def _forget(self) -> None:
        self._events = []
        self._opened = None
        self._streaming = False
        self._suffix = ""


def _rewritten(proposal: FileProposal, located: Located) -> tuple[int, int, list[str]]:
    """The smallest range that a block changes, and its lines afterwards."""
    if not located.edits:
        return located.start, located.start, []
    start, stop = located.edits[0].start, located.edits[-1].stop
    lines: list[str] = []
    at = start
    for edit in located.edits:
        lines += proposal.base.lines[at : edit.start]
        lines += edit.lines
        at = edit.stop
    return start, stop, lines
