"""Which rows the code pane has: the whole file, with what is being rewritten in place.

A :class:`FileView` turns a proposal into blocks (unchanged stretches of the base text, slices of
settled rows, folded hunks, the tail that is still being decided), so that a file of 100,000 lines
costs its changes and not its length. It is rebuilt from a snapshot whenever the proposal's version
has grown; it decides nothing and paints nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from midstream.edits.hunks import Hunk, HunkState, HunkStore
from midstream.edits.rows import Row, RowKind

if TYPE_CHECKING:
    from midstream.edits.proposal import FileProposal, Segment

CONTEXT_LINES: Final = 3
"""Unchanged rows shown around a change when the rest is folded."""


class Look(StrEnum):
    """How a row is to be shown."""

    CONTEXT = "context"
    ADDED = "added"
    DELETED = "deleted"
    PENDING = "pending"
    WRITING = "writing"
    UNREAD = "unread"
    FOLDED_HUNK = "folded_hunk"
    FOLDED_CONTEXT = "folded_context"


_LOOKS: Final = {
    RowKind.CONTEXT: Look.CONTEXT,
    RowKind.ADDED: Look.ADDED,
    RowKind.DELETED: Look.DELETED,
    RowKind.PENDING: Look.PENDING,
    RowKind.WRITING: Look.WRITING,
    RowKind.UNREAD: Look.UNREAD,
}


@dataclass(frozen=True, slots=True)
class ViewRow:
    """One row of the pane.

    Attributes:
        look: How it is shown.
        old: Its line in the base text, or the next one there, 0-based; ``None`` when added.
        new: Its line in the proposed text, 0-based; ``None`` when deleted.
        text: The line, or the words of a fold.
        hunk: The hunk it belongs to.
        offset: Its position among the rows of that hunk.
        source: Where its tokens come from: ``-1`` for the base text, else the number of the
            segment.
        line: The line there.
    """

    look: Look
    old: int | None
    new: int | None
    text: str
    hunk: Hunk | None = None
    offset: int = 0
    source: int = -1
    line: int = 0

    def same_line(self, other: ViewRow) -> bool:
        """Whether two rows, of before and after a change, show the same line."""
        if self.text != other.text:
            return False
        if self.hunk is not None and other.hunk is not None:
            return self.hunk.id == other.hunk.id and self.offset == other.offset
        return (self.old is not None and self.old == other.old) or (
            self.new is not None and self.new == other.new
        )


@dataclass(slots=True)
class _Block:
    """Rows ``[first, first + size)`` of the view that come from one place."""

    first: int
    size: int
    look: Look
    base: int = 0
    shift: int = 0
    segment: int = -1
    offset: int = 0
    rows: Sequence[Row] = ()
    hunk: Hunk | None = None
    text: str = ""


@dataclass(slots=True)
class _Run:
    """Consecutive settled rows of one hunk, or of none."""

    start: int
    stop: int
    hunk: int | None


class SegmentRuns:
    """The runs of one segment's settled rows, kept up to date as rows are appended."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.runs: list[_Run] = []
        self.new_lines: list[str] = []
        """The rewritten text as far as it has settled."""
        self._rows = segment.settled
        self._read = 0

    @property
    def current(self) -> bool:
        """Whether rows were only appended; a segment that was rebuilt needs new runs."""
        return self._rows is self.segment.settled

    def update(self) -> None:
        """Read the rows that have settled since the last time."""
        rows = self._rows
        runs = self.runs
        for index in range(self._read, len(rows)):
            if rows[index].kind is not RowKind.DELETED:
                self.new_lines.append(rows[index].text)
        self._read = len(rows)
        for index in range(runs[-1].stop if runs else 0, len(rows)):
            hunk = rows[index].hunk
            if runs and runs[-1].hunk == hunk:
                runs[-1].stop = index + 1
            else:
                runs.append(_Run(index, index + 1, hunk))


class FileView:
    """The rows of one file.

    Args:
        proposal: The file.
        hunks: The session's hunks.
    """

    def __init__(self, proposal: FileProposal, hunks: HunkStore) -> None:
        self.proposal = proposal
        self.hunks = hunks
        self.folded = False
        self.opened: set[int] = set()
        """Rejected hunks that are shown in full all the same."""
        self.size = 0
        self.segments: list[SegmentRuns] = []
        self.structure = 0
        """Grows when rows that were there already may have changed."""
        self.writing: int | None = None
        """The last row of what the model has written, while it writes."""
        self._blocks: list[_Block] = []
        self._pending: list[_Block] = []
        self._firsts: list[int] = []
        self._places: dict[int, tuple[int, int]] = {}
        self._seen: tuple[int, int, bool, int] | None = None

    def refresh(self) -> bool:
        """Rebuild the rows if anything changed; says whether it did."""
        seen = (self.proposal.version, self.hunks.version, self.folded, len(self.opened))
        if seen == self._seen:
            return False
        self._seen = seen
        segments = self.proposal.segments
        known = {id(runs.segment): runs for runs in self.segments}
        self.segments = []
        for segment in segments:
            runs = known.get(id(segment))
            if runs is None or not runs.current:
                runs = SegmentRuns(segment)
                self.structure += 1
            runs.update()
            self.segments.append(runs)
        self._build()
        return True

    def _build(self) -> None:
        self._pending = []
        base_line = shift = 0
        base = self.proposal.base.lines
        for number, runs in enumerate(self.segments):
            segment = runs.segment
            self._add(
                _Block(0, segment.start - base_line, Look.CONTEXT, base=base_line, shift=shift)
            )
            shift = self._add_segment(number, runs, shift)
            base_line = segment.stop
        self._add(_Block(0, len(base) - base_line, Look.CONTEXT, base=base_line, shift=shift))
        if self.folded and self.segments:
            self._pending = _folded_blocks(self._pending)
        self._lay_out()

    def _add(self, block: _Block) -> None:
        if block.size > 0:
            self._pending.append(block)

    def _lay_out(self) -> None:
        """Give the blocks their rows."""
        self._blocks, self._firsts, self._places = self._pending, [], {}
        self.size, self.writing = 0, None
        for block in self._blocks:
            block.first = self.size
            self._firsts.append(block.first)
            self.size += block.size
            if block.hunk is not None:
                self._places[block.hunk.id] = (block.first, self.size)
            streaming = block.segment >= 0 and not self.segments[block.segment].segment.finished
            if streaming and block.rows:
                self.writing = self.size - 1

    def _add_segment(self, number: int, runs: SegmentRuns, shift: int) -> int:
        """The rows of a segment; returns how far later lines have moved."""
        segment = runs.segment
        settled = segment.settled
        for run in runs.runs:
            hunk = None if run.hunk is None else self.hunks.get(run.hunk)
            if hunk is not None and hunk.state is HunkState.REJECTED and hunk.id not in self.opened:
                self._add(
                    _Block(
                        0,
                        1,
                        Look.FOLDED_HUNK,
                        base=hunk.start,
                        segment=number,
                        hunk=hunk,
                        text=_folded(hunk),
                    )
                )
            else:
                block = _Block(0, run.stop - run.start, Look.CONTEXT, shift=shift, segment=number)
                block.rows, block.offset, block.hunk = settled, run.start, hunk
                self._add(block)
        written = len(runs.new_lines)
        tail = segment.tail()
        if tail:
            block = _Block(0, len(tail), Look.PENDING, shift=shift, segment=number, base=written)
            block.rows = tail
            self._add(block)
            written += sum(1 for row in tail if row.kind is RowKind.PENDING)
        unread = segment.unread
        if len(unread):
            moved = shift + written - (unread.start - segment.start)
            self._add(_Block(0, len(unread), Look.UNREAD, base=unread.start, shift=moved))
        return shift + written - (unread.start - segment.start)

    def row(self, y: int) -> ViewRow | None:
        """The row at a position, ``None`` outside the file."""
        if not 0 <= y < self.size:
            return None
        block = self._blocks[bisect_right(self._firsts, y) - 1]
        index = y - block.first
        if block.rows:
            return self._from_rows(block, block.offset + index, index)
        if block.look in (Look.FOLDED_HUNK, Look.FOLDED_CONTEXT):
            return ViewRow(block.look, block.base, block.base + block.shift, block.text, block.hunk)
        old = block.base + index
        lines = self.proposal.base.lines
        text = lines[old] if old < len(lines) else ""
        return ViewRow(block.look, old, old + block.shift, text, source=-1, line=old)

    def _from_rows(self, block: _Block, at: int, index: int) -> ViewRow:
        row = block.rows[at]
        look = _LOOKS[row.kind]
        if look is Look.DELETED and row.old is not None:
            return ViewRow(look, row.old, None, row.text, block.hunk, index, -1, row.old)
        new = None if row.new is None else row.new + block.shift
        if look is Look.CONTEXT and row.old is not None:
            return ViewRow(look, row.old, new, row.text, block.hunk, index, -1, row.old)
        line = 0 if row.new is None else row.new - self.segments[block.segment].segment.start
        return ViewRow(look, row.old, new, row.text, block.hunk, index, block.segment, line)

    def rows_of(self, hunk_id: int) -> tuple[int, int] | None:
        """The rows ``[first, stop)`` of a hunk."""
        return self._places.get(hunk_id)

    def hunk_at(self, y: int) -> Hunk | None:
        """The hunk at a row."""
        row = self.row(y)
        return None if row is None else row.hunk

    def places(self) -> Iterator[tuple[int, int, Hunk]]:
        """Every hunk with its rows, from top to bottom."""
        for hunk_id, (first, stop) in sorted(self._places.items(), key=lambda item: item[1]):
            hunk = self.hunks.get(hunk_id)
            yield first, stop, hunk

    def next_hunk(self, y: int, *, forward: bool = True, undecided: bool = False) -> int | None:
        """The first row of the nearest hunk after (or before) the one at ``y``."""
        here = self.hunk_at(y)
        found: int | None = None
        for first, _, hunk in self.places():
            if undecided and hunk.state is not HunkState.SETTLED:
                continue
            if here is not None and hunk.id == here.id:
                continue
            if forward and first > y:
                return first
            if not forward and first < y:
                found = first
        return found

    def row_of_line(self, new: int) -> int:
        """The row that shows a line of the proposed text, or the nearest one."""
        low, high = 0, self.size
        while low < high:
            middle = (low + high) // 2
            line = self._line_at(middle)
            if line < new:
                low = middle + 1
            else:
                high = middle
        return min(low, max(self.size - 1, 0))

    def _line_at(self, y: int) -> int:
        """The line of the proposed text at or before a row; never falls from row to row."""
        for above in range(y, max(-1, y - 200), -1):
            row = self.row(above)
            if row is not None and row.new is not None:
                return row.new
        return 0

    def find_line(self, row: ViewRow, *, near: int) -> int | None:
        """Where a row that was at ``near`` is shown now, looking for its base or proposed line."""
        for distance in range(1, 400):
            for y in (near + distance, near - distance):
                other = self.row(y)
                if other is not None and other.same_line(row):
                    return y
        return None

    def base_at(self, y: int) -> int:
        """The line of the base text that a row stands for; an added row stands for the next one."""
        for below in range(y, min(self.size, y + 500)):
            row = self.row(below)
            if row is not None and row.old is not None:
                return row.old
        return max(0, len(self.proposal.base.lines) - 1)

    def written_at(self, y: int) -> int:
        """The line of the file as it is on disk (base and accepted hunks) that a row stands for."""
        row = self.row(y)
        hunk = None if row is None else row.hunk
        if (
            row is not None
            and row.look is Look.ADDED
            and hunk is not None
            and hunk.edit() is not None
        ):
            return self.to_written(hunk.start) + max(0, row.offset - hunk.deleted)
        return self.to_written(self.base_at(y))

    def to_written(self, base: int) -> int:
        """Where a line of the base text is in the file as it is on disk."""
        shift = 0
        for edit in self.hunks.accepted_edits(self.proposal.path):
            if edit.stop <= base:
                shift += len(edit.lines) - (edit.stop - edit.start)
        return base + shift

    def to_base(self, written: int) -> int:
        """Where a line of the file as it is on disk is in the base text."""
        shift = 0
        for edit in self.hunks.accepted_edits(self.proposal.path):
            if edit.start + shift + len(edit.lines) <= written:
                shift += len(edit.lines) - (edit.stop - edit.start)
        return written - shift

    def row_of_base(self, line: int) -> int:
        """The row that shows a line of the base text, or the nearest one."""
        low, high = 0, self.size
        while low < high:
            middle = (low + high) // 2
            if self.base_at(middle) < line:
                low = middle + 1
            else:
                high = middle
        return min(low, max(self.size - 1, 0))

    def line_at(self, y: int) -> int:
        """The line of the proposed text that a row stands for; if deleted, the next one."""
        for below in range(y, min(self.size, y + 200)):
            row = self.row(below)
            if row is not None and row.new is not None:
                return row.new
        return max(self._line_at(y), 0)


def _folded_blocks(blocks: list[_Block]) -> list[_Block]:
    """Blocks with long unchanged stretches cut down to some lines next to what changed."""
    result: list[_Block] = []
    index = 0
    while index < len(blocks):
        stop = index
        while (
            stop < len(blocks) and blocks[stop].look is Look.CONTEXT and blocks[stop].hunk is None
        ):
            stop += 1
        if stop == index:
            result.append(blocks[index])
            index += 1
            continue
        stretch = blocks[index:stop]
        head = CONTEXT_LINES if index else 0
        tail = CONTEXT_LINES if stop < len(blocks) else 0
        size = sum(block.size for block in stretch)
        if size <= head + tail + 1:
            result += stretch
        else:
            result += _cut(stretch, 0, head)
            hidden = _cut(stretch, head, size - tail)[0]
            hidden.rows, hidden.size, hidden.look = (), 1, Look.FOLDED_CONTEXT
            hidden.text = f"{size - head - tail} unchanged lines"
            result.append(hidden)
            result += _cut(stretch, size - tail, size)
        index = stop
    return result


def _cut(blocks: list[_Block], start: int, stop: int) -> list[_Block]:
    """The rows ``[start, stop)`` of some context blocks, as blocks."""
    parts: list[_Block] = []
    at = 0
    for block in blocks:
        low, high = max(start - at, 0), min(stop - at, block.size)
        at += block.size
        if low >= high:
            continue
        part = replace(block, size=high - low)
        if block.rows:
            part.offset += low
            row = block.rows[part.offset]
            part.base = row.old or 0
        else:
            part.base += low
        parts.append(part)
    return parts


def _folded(hunk: Hunk) -> str:
    note = f": {hunk.note}" if hunk.note else ""
    return f"rejected, -{hunk.deleted} +{hunk.added}{note}"
