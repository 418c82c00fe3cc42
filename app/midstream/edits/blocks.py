"""One block of a reply that streams: what has come of it, and what that tells.  Data and look-ups;
where its text goes is ``live``'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from midstream.edits.formats.events import Event, HunkOpened
from midstream.edits.locate import Located
from midstream.edits.matching import Level, Match
from midstream.edits.outcome import HunkError
from midstream.edits.patching import PatchBlock
from midstream.edits.proposal import FileProposal
from midstream.edits.quoting import QuotedRepair
from midstream.edits.reply import ReplyHunk, collect
from midstream.edits.segment import Segment


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

    @property
    def words(self) -> str:
        """Why, with the first line that differs, or else the nearest place, on lines below."""
        error = self.error
        lines = [f"{self.path}: {error.message}" if self.path else error.message]
        if error.expected is not None and error.line is not None:
            found = "the end of the file" if error.found is None else error.found
            number = f"line {error.line + 1}:"
            lines += [f"{'quoted:':<{len(number)}}  {error.expected}", f"{number}  {found}"]
        else:
            for place in error.places:
                where = f" in {place.scope}" if place.scope else ""
                lines += [f"Around line {place.start + 1}{where} stands:"]
                lines += [f"    {line}" for line in place.text.splitlines()]
        return "\n".join(lines)


@dataclass(slots=True)
class Block:
    """What has come of one block.

    Attributes:
        opened: Its first event.
        path: Its file.
        proposal: That file's, None if there is none.
        events: Its events, for a look-up when it closes.
        segment: The rewrite that its new text streams into.
        repair: Mends that text, where the block was found leniently.
        patch: The same for a block that mixes old and new lines.
        suffix: The rest of the line that a run of characters ends in.
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
class Waiting:
    """An ambiguous block, which the blocks that follow may tell apart."""

    hunk: ReplyHunk
    path: str
    proposal: FileProposal
    later: list[ReplyHunk] = field(default_factory=list[ReplyHunk])


def collected(events: list[Event]) -> ReplyHunk:
    """What the events of one block, opened file included, say."""
    files, _ = collect(events)
    return files[-1].hunks[-1]


def can_stream(match: Match, quoted: list[str]) -> bool:
    """Whether new text can be mended line by line, as it comes, for a place found like that."""
    if match.level <= Level.TRAILING:
        return True
    # One quoted line says nothing about the indentation of those that follow.
    nonblank = sum(bool(line.strip()) for line in quoted)
    return match.level <= Level.INDENTATION and match.shift is not None and nonblank > 1


def rewritten(base: tuple[str, ...], located: Located) -> tuple[int, int, list[str]]:
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
