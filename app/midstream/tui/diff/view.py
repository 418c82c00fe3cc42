"""The rows of the code pane: the whole file, with the rewrite in place.

A ``FileView`` turns a proposal into blocks, so that a file of 100,000 lines costs its changes
and not its length.  It is rebuilt from a snapshot whenever the proposal's version has grown; it
decides nothing and paints nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate, groupby, islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from midstream.counting import counted
from midstream.edits.documents import SourceText
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import Hunk, HunkState
from midstream.edits.rows import Row, RowKind

if TYPE_CHECKING:
    from midstream.edits.proposal import FileProposal, Segment


class Look(StrEnum):
    """How a row is shown."""

    CONTEXT = "context"
    ADDED = "added"
    DELETED = "deleted"
    PENDING = "pending"
    WRITING = "writing"
    UNREAD = "unread"
    KEPT = "kept"
    """A line that a rejected hunk would have taken out: the file has it."""
    REJECTED = "rejected"
    """A line of a rejected hunk that the file does not get."""
    FOLDED_REJECTED = "folded_rejected"
    FOLDED_CONTEXT = "folded_context"


FOLDS: Final = frozenset({Look.FOLDED_REJECTED, Look.FOLDED_CONTEXT})
"""Rows that stand for others."""


Range = tuple[int, int]
"""Start and end column, end exclusive."""

LOOKS: Final = {
    RowKind.CONTEXT: Look.CONTEXT,
    RowKind.ADDED: Look.ADDED,
    RowKind.DELETED: Look.DELETED,
    RowKind.PENDING: Look.PENDING,
    RowKind.WRITING: Look.WRITING,
    RowKind.UNREAD: Look.UNREAD,
}


class ViewRow(Struct):
    """One row of the pane; made anew for every row of every frame, hence not frozen (3x the time).

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
        first: Whether it is the first row of its hunk.
        beside: In the split layout, the deleted row that this added row replaces.
    """

    look: Look
    old: int | None
    new: int | None
    text: str
    hunk: Hunk | None = None
    offset: int = 0
    source: int = -1
    line: int = 0
    first: bool = False
    beside: ViewRow | None = None

    def same_line(self, other: ViewRow) -> bool:
        """Whether two rows, of before and after a change, show the same line."""
        if self.text != other.text:
            return False
        if self.hunk is not None and other.hunk is not None:
            return self.hunk.id == other.hunk.id and self.offset == other.offset
        return (self.old is not None and self.old == other.old) or (
            self.new is not None and self.new == other.new
        )


CONTEXT_LINES: Final = 3
"""Unchanged rows shown around a change when the rest is folded."""

Pair = tuple[int | None, int | None]
"""Offsets of a deleted and an added row that stand side by side."""


class Block(Struct):
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
    inner: int = 0
    """Rows of the hunk that lie before this block."""
    text: str = ""
    pairs: Sequence[Pair] = ()


class RowRun(Struct):
    """Consecutive settled rows of one hunk, or of none."""

    start: int
    stop: int
    hunk: int | None
    block: Block | None = None
    """The rows as they were laid out last."""


class SegmentRuns:
    """The runs of one segment's settled rows, kept up to date as rows are appended."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.runs: list[RowRun] = []
        self.new_lines: list[str] = []
        """The rewritten text as far as it has settled."""
        self._rows = segment.settled
        self._read = 0
        self._pairs: dict[int, tuple[int, list[Pair]]] = {}

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
                runs.append(RowRun(index, index + 1, hunk))

    def pairs(self, run: RowRun) -> list[Pair]:
        """Deleted and added rows of a hunk side by side, as offsets into the run."""
        known = self._pairs.get(run.start)
        if known is None or known[0] != run.stop:
            kinds = [row.kind for row in self._rows[run.start : run.stop]]
            known = self._pairs[run.start] = (run.stop, side_by_side(kinds))
        return known[1]


def side_by_side(kinds: Sequence[RowKind]) -> list[Pair]:
    """Pair the deleted rows of a hunk with the added ones that follow them."""
    pairs: list[Pair] = []
    gone: list[int] = []
    come: list[int] = []

    def flush() -> None:
        for index in range(max(len(gone), len(come))):
            old = gone[index] if index < len(gone) else None
            new = come[index] if index < len(come) else None
            pairs.append((old, new))
        gone.clear()
        come.clear()

    for index, kind in enumerate(kinds):
        if kind is RowKind.DELETED:
            if come:
                flush()
            gone.append(index)
        else:
            come.append(index)
    flush()
    return pairs


def fold_context(blocks: list[Block]) -> list[Block]:
    """Blocks with long unchanged stretches cut down to some lines next to what changed."""
    result: list[Block] = []
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
            result += cut(stretch, 0, head)
            hidden = cut(stretch, head, size - tail)[0]
            hidden.rows, hidden.size, hidden.look = (), 1, Look.FOLDED_CONTEXT
            hidden.text = f"{size - head - tail} unchanged lines"
            result.append(hidden)
            result += cut(stretch, size - tail, size)
        index = stop
    return result


def cut(blocks: list[Block], start: int, stop: int) -> list[Block]:
    """The rows ``[start, stop)`` of some context blocks, as blocks."""
    parts: list[Block] = []
    at = 0
    for block in blocks:
        low, high = max(start - at, 0), min(stop - at, block.size)
        at += block.size
        if low >= high:
            continue
        part = structs.replace(block, size=high - low)
        if block.rows:
            part.offset += low
            row = block.rows[part.offset]
            part.base = row.old or 0
        else:
            part.base += low
        parts.append(part)
    return parts


_REJECTED_LOOKS: Final = {Look.DELETED: Look.KEPT, Look.ADDED: Look.REJECTED}


@lru_cache(maxsize=2_048)
def _shown_line(line: str, above: tuple[str, ...]) -> str:
    # Imported here: the patterns of credentials take a tenth of the time to the first paint.
    from midstream.guard.secrets import shown_line

    return shown_line(line, above)


def _shown(rows: Sequence[Row], at: int) -> Row:
    """A row of a hunk without credentials, private keys that begin above it included."""
    from midstream.guard.secrets import MAX_KEY_LINES, begins_key

    row, above = rows[at], list[str]()
    for other in reversed(rows[max(0, at - MAX_KEY_LINES) : at]):
        if other.kind is not row.kind:
            break
        above.append(other.text)
        if begins_key(other.text):
            return replace(row, text=_shown_line(row.text, tuple(reversed(above))))
    return replace(row, text=_shown_line(row.text, ()))


class NoFile:
    """Stands for a proposal while no file is open: its module is not loaded at the first paint."""

    path = ""
    base = SourceText((), (), missing=True)
    segments: Sequence[Segment] = ()
    version = 0

    def composed(self) -> SourceText:
        return self.base


class FileView:
    """The rows of one file, or none while no file is open."""

    def __init__(self, proposal: FileProposal | NoFile, hunks: HunkStore) -> None:
        self.proposal = proposal
        self.hunks = hunks
        self.folded = False
        """Whether only the changes and some lines around them are shown."""
        self.split = False
        """Whether what is deleted and what replaces it share a row."""
        self.one_sided = False
        """Whether the rows are all of the old text or all of the new one, decided or not."""
        self.closed: frozenset[int] = frozenset()
        """Rejected hunks whose rejected lines are folded to one row."""
        self._rejected: frozenset[int] = frozenset()
        """Rejected hunks as of the last look."""
        self.size = 0
        self.segments: list[SegmentRuns] = []
        self.structure = 0
        """Grows when rows that were there already may have changed."""
        self.writing: int | None = None
        """The last row of what the model has written, while it writes."""
        self._blocks: list[Block] = []
        self._pending: list[Block] = []
        self._firsts: list[int] = []
        self._places: dict[int, tuple[int, int]] = {}
        self.seen: tuple[int, int, bool, bool, frozenset[int]] | None = None
        """The source of the rows, which stay the same as long as it does."""

    def refresh(self) -> bool:
        if self.seen == self._now:
            return False
        self._note_rejected()
        self.seen = self._now
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

    @property
    def _now(self) -> tuple[int, int, bool, bool, frozenset[int]]:
        return self.proposal.version, self.hunks.version, self.folded, self.split, self.closed

    def _note_rejected(self) -> None:
        """A hunk rejected while on screen keeps its rows; an earlier one is folded."""
        rejected = self.hunks.rejected(self.proposal.path)
        self.closed = rejected if self.seen is None else self.closed & rejected
        self._rejected = rejected

    def toggle_rejected(self, hunk_id: int) -> None:
        """Fold the rejected lines of a rejected hunk to one row, or show them again."""
        self.closed ^= {hunk_id} & self._rejected

    def fold_rejected(self) -> None:
        """Fold the rejected lines of every rejected hunk: something new begins."""
        self.closed = self._rejected

    def _build(self) -> None:
        self._pending = []
        base_line = shift = 0
        base = self.proposal.base.lines
        for number, runs in enumerate(self.segments):
            segment = runs.segment
            self._add(
                Block(0, segment.start - base_line, Look.CONTEXT, base=base_line, shift=shift)
            )
            shift = self._add_segment(number, runs, shift)
            base_line = segment.stop
        self._add(Block(0, len(base) - base_line, Look.CONTEXT, base=base_line, shift=shift))
        if self.folded and self.segments:
            self._pending = fold_context(self._pending)
        self._lay_out()

    def _add(self, block: Block) -> None:
        if block.size > 0:
            self._pending.append(block)

    def _lay_out(self) -> None:
        """Give the blocks their rows."""
        self._blocks, self._firsts, self._places = self._pending, [], {}
        size, self.writing = 0, None
        firsts, places = self._firsts, self._places
        streaming = {n for n, runs in enumerate(self.segments) if not runs.segment.finished}
        old = new = False
        for block in self._blocks:
            block.first = size
            firsts.append(size)
            size += block.size
            if (hunk := block.hunk) is not None:
                first = places[hunk.id][0] if hunk.id in places else block.first
                places[hunk.id] = (first, size)
                old |= hunk.deleted > 0
                new |= hunk.added > 0
            else:
                new = True
                old |= block.look is not Look.PENDING
            if block.segment in streaming and block.rows:
                self.writing = size - 1
        self.size, self.one_sided = size, not (old and new)

    def _add_segment(self, number: int, runs: SegmentRuns, shift: int) -> int:
        """The rows of a segment; returns how far later lines have moved."""
        segment = runs.segment
        settled = segment.settled
        hunks, split, pending = self.hunks, self.split, self._pending
        steady = not split and not self._rejected
        for run in runs.runs:
            hunk = None if run.hunk is None else hunks.get(run.hunk)
            size, known = run.stop - run.start, run.block
            if known is not None and (
                known.hunk is not hunk
                or known.size != size
                or known.shift != shift
                or known.segment != number
            ):
                known = None
            if known is not None and steady:
                pending.append(known)  # In every frame of a stream, all but the last of them.
                continue
            rejected = hunk is not None and hunk.id in self._rejected
            if hunk is not None and rejected and hunk.id in self.closed and hunk.new:
                self._add_closed(number, run, hunk, shift)
            elif split and hunk is not None:
                pairs = runs.pairs(run)
                block = Block(0, len(pairs), Look.CONTEXT, shift=shift, segment=number)
                block.rows, block.offset, block.hunk = settled, run.start, hunk
                block.pairs = pairs
                self._add(block)
            else:
                if known is None:
                    known = Block(0, size, Look.CONTEXT, shift=shift, segment=number)
                    known.rows, known.offset, known.hunk = settled, run.start, hunk
                    run.block = known
                pending.append(known)
            if hunk is not None and rejected:
                shift += hunk.deleted - hunk.added
        written = len(runs.new_lines)
        tail = segment.tail()
        if tail:
            block = Block(0, len(tail), Look.PENDING, shift=shift, segment=number, base=written)
            block.rows = tail
            self._add(block)
            written += sum(1 for row in tail if row.kind is RowKind.PENDING)
        unread = segment.unread
        if len(unread):
            moved = shift + written - (unread.start - segment.start)
            self._add(Block(0, len(unread), Look.UNREAD, base=unread.start, shift=moved))
        return shift + written - (unread.start - segment.start)

    def _add_closed(self, number: int, run: RowRun, hunk: Hunk, shift: int) -> None:
        """The rows of a rejected hunk: what the file has, and one for what was rejected."""
        rows = self.segments[number].segment.settled
        told = False
        for kind, group in groupby(range(run.start, run.stop), lambda at: rows[at].kind):
            offsets = list(group)
            inner = offsets[0] - run.start
            if kind is RowKind.DELETED:
                block = Block(0, len(offsets), Look.CONTEXT, shift=shift, segment=number)
                block.rows, block.offset, block.hunk, block.inner = rows, offsets[0], hunk, inner
                self._add(block)
            elif not told:
                told = True
                base = max(hunk.start, hunk.start + hunk.deleted - 1)
                fold = Block(0, 1, Look.FOLDED_REJECTED, base, shift, number, offsets[0])
                fold.hunk, fold.inner, fold.text = hunk, inner, _folded(hunk)
                self._add(fold)

    def row(self, y: int) -> ViewRow | None:
        """The row at a position, ``None`` outside the file."""
        if not 0 <= y < self.size:
            return None
        block = self._blocks[bisect_right(self._firsts, y) - 1]
        index = y - block.first
        if block.pairs:
            gone, come = block.pairs[index]
            if come is None:
                return self._settled(block, gone or 0, first=index == 0)
            beside = None if gone is None else self._settled(block, gone)
            return self._settled(block, come, first=index == 0, beside=beside)
        if block.rows:
            return self._settled(block, index, first=block.inner + index == 0)
        if block.look in FOLDS:
            inner = block.inner
            new = block.base + block.shift if block.hunk is None else None
            return ViewRow(block.look, block.base, new, block.text, block.hunk, inner, first=True)
        old = block.base + index
        lines = self.proposal.base.lines
        text = lines[old] if old < len(lines) else ""
        return ViewRow(block.look, old, old + block.shift, text, source=-1, line=old)

    def _settled(
        self, block: Block, index: int, *, first: bool = False, beside: ViewRow | None = None
    ) -> ViewRow:
        row = block.rows[block.offset + index]
        look, hunk = LOOKS[row.kind], block.hunk
        index += block.inner
        if hunk is not None and hunk.state is HunkState.REJECTED:
            look = _REJECTED_LOOKS.get(look, look)
            # The mark stands beside what was rejected.
            first = look is Look.REJECTED and index == hunk.deleted if hunk.new else first
        if hunk is not None and (hunk.state is HunkState.HELD or look is Look.REJECTED):
            row = _shown(block.rows, index - block.inner + block.offset)
        new = None if row.new is None or look is Look.REJECTED else row.new + block.shift
        if look is Look.KEPT and hunk is not None:
            new = self._kept_number(block, hunk) + index + block.shift
        if row.old is not None and look in (Look.DELETED, Look.CONTEXT, Look.KEPT):
            return ViewRow(look, row.old, new, row.text, hunk, index, -1, row.old, first)
        line = 0 if row.new is None else row.new - self.segments[block.segment].segment.start
        source, old = block.segment, row.old
        if old is None and look is Look.DELETED and hunk is not None and hunk.decidable:
            # The base has the new lines there; use their numbers.
            old = hunk.start + index if index < hunk.stop - hunk.start else None
        return ViewRow(look, old, new, row.text, hunk, index, source, line, first, beside)

    def _kept_number(self, block: Block, hunk: Hunk) -> int:
        """The line of the rewrite at which the old lines of a rejected hunk stay."""
        rows, start = block.rows, block.offset - block.inner
        for row in islice(rows, start + hunk.deleted, None):
            if row.new is not None:
                return row.new
        for at in range(start - 1, -1, -1):
            if (new := rows[at].new) is not None:
                return new + 1
        return self.segments[block.segment].segment.start

    def hunk_rows(self, hunk_id: int) -> list[Row]:
        """The settled rows of a hunk, whatever the layout."""
        for runs in self.segments:
            for run in runs.runs:
                if run.hunk == hunk_id:
                    return runs.segment.settled[run.start : run.stop]
        return []

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
            if undecided and (not hunk.waits or hunk.postponed is not None):
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
        """The line of the base text that a row stands for; never falls from row to row.

        An added row stands for the last line that it replaces or follows, so that it belongs to
        the same function.
        """
        for below in range(y, min(self.size, y + 500)):
            row = self.row(below)
            if row is None:
                break
            if row.old is not None:
                return row.old
            if row.beside is not None and row.beside.old is not None:
                return row.beside.old
            if row.hunk is not None:
                return max(0, row.hunk.start + row.hunk.deleted - 1)
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


def _folded(hunk: Hunk) -> str:
    note = f": {hunk.note}" if hunk.note else ""
    return f"{counted(hunk.added, 'line')} {hunk.outcome}{note}"


class MatchFinder:
    """The rows of a view that hold a text; capitals count only if the text has some."""

    def __init__(self, view: FileView, text: str) -> None:
        self.text = text
        self.matches: dict[int, tuple[Range, ...]] = {}
        exact = text != text.lower()
        wanted = text if exact else text.lower()
        for y in range(view.size):
            row = view.row(y)
            if row is None or row.look in FOLDS:
                continue
            line = row.text if exact else row.text.lower()
            if wanted in line and len(line) == len(row.text):
                self.matches[y] = _ranges(line, wanted)
        self._rows = sorted(self.matches)
        self._before = (0, *accumulate(len(self.matches[y]) for y in self._rows))
        """How many matches stand above each of these rows, and in the end."""

    @property
    def count(self) -> int:
        """How many matches there are."""
        return self._before[-1]

    def next(self, row: int, *, forward: bool) -> int | None:
        """The nearest row with a match after (or before) ``row``, around the end of the file."""
        if not self._rows:
            return None
        if forward:
            index = bisect_right(self._rows, row)
            return self._rows[index % len(self._rows)]
        return self._rows[bisect_left(self._rows, row) - 1]

    def numbers(self, row: int) -> range:
        """Which matches stand in a row, counted from 1."""
        at = self._before[bisect_left(self._rows, row)]
        return range(at + 1, at + 1 + len(self.matches.get(row, ())))


def _ranges(line: str, wanted: str) -> tuple[Range, ...]:
    found: list[Range] = []
    at = line.find(wanted)
    while at >= 0:
        found.append((at, at + len(wanted)))
        at = line.find(wanted, at + len(wanted))
    return tuple(found)
