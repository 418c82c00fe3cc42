"""One streamed rewrite of a range of base lines: its rows, its hunks and the lines not yet reached.

It turns the aligner's decisions into rows and hunks in the coordinates of the base, even if the
base is replaced while the rewrite still streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from midstream.edits.aligner import Aligner, LineChange, Op
from midstream.edits.documents import SourceText, join_lines
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import Hunk, HunkState
from midstream.edits.indent import IndentRepair
from midstream.edits.rows import Row, RowKind

_MOVED = "the file changed under this hunk while it was being written"


class Segment:
    """A rewrite of base lines ``[start, stop)`` that streams in or has streamed in.

    Attributes:
        path: The file.
        start: First base line.
        stop: Base line after the last.
        settled: Rows in order.  Append-only while the rewrite streams; afterwards a row may change
            its ``hunk`` and its line numbers, never its kind.
        hunk_ids: Hunks of this segment, by position.
        new_lines: Complete lines of the rewrite so far.
        finished: Whether the rewrite has ended (also when it was cut short).
        frozen: Whether the rewrite is stopped for now and can be resumed.
        serial: Its number among the rewrites of its proposal, from 1; 0 for a piece of one.
    """

    def __init__(
        self, path: str, base: SourceText, start: int, stop: int, hunks: HunkStore
    ) -> None:
        self.path = path
        self.start = start
        self.stop = stop
        self.settled: list[Row] = []
        self.hunk_ids: list[int] = []
        self.new_lines: list[str] = []
        self.finished = False
        self.frozen = False
        self.serial = 0
        self.match_level = 0
        self.repair: IndentRepair | None = None
        self._written: list[str] = []  # lines as the model wrote them, if they are repaired
        self._old = base.lines[start:stop]
        self._base_of: Sequence[int] = range(start, stop)
        self._base = base
        self._hunks = hunks
        self._aligner = Aligner(self._old)
        self._at = start  # first base line without a row
        self._parts: list[str] = []  # the line being written
        self._open: Hunk | None = None
        self._disturbed = False  # the open hunk's base lines are not in one piece any more

    @property
    def new_text(self) -> str:
        r"""Everything fed so far: lines ``"\n"`` terminated, then the line being written.

        This is what the model wrote, also where its indentation was repaired.
        """
        return join_lines(self._written or self.new_lines) + self.partial

    @property
    def partial(self) -> str:
        """The line that is being written."""
        return "".join(self._parts)

    @property
    def kept_text(self) -> str:
        r"""What ``freeze`` keeps of the text: the lines whose place is decided.

        An undecided line may be half of a replacement, whose other half would never come.
        """
        return join_lines((self._written or self.new_lines)[: self._kept])

    @property
    def _kept(self) -> int:
        """How many lines ``freeze`` keeps."""
        hunk = self._insertion
        count = len(self.new_lines) - len(self._aligner.pending)
        return count - (0 if hunk is None else hunk.added)

    @property
    def _insertion(self) -> Hunk | None:
        """The open hunk, where it stands before lines that it may be meant to replace."""
        hunk = self._open
        return hunk if hunk and hunk.state is HunkState.STREAMING and self.unread else None

    @property
    def unread(self) -> range:
        """Base lines which the rewrite has not reached."""
        return range(self.stop, self.stop) if self.finished else range(self._at, self.stop)

    @property
    def streaming_hunk(self) -> Hunk | None:
        """The hunk whose block still grows."""
        return self._open

    @property
    def pending(self) -> Sequence[str]:
        """Complete new lines whose place is not decided, oldest first."""
        return self._aligner.pending

    def tail(self) -> list[Row]:
        """The undecided end of the rewrite: PENDING rows, then the WRITING row if there is one."""
        pending = self._aligner.pending
        number = self.start + len(self.new_lines) - len(pending)
        rows = [
            Row(RowKind.PENDING, None, number + offset, line) for offset, line in enumerate(pending)
        ]
        if self._parts:
            rows.append(Row(RowKind.WRITING, None, self.start + len(self.new_lines), self.partial))
        return rows

    # Used by FileProposal only.

    def feed(self, text: str) -> None:
        r"""Take text with ``"\n"`` line ends in any chunking."""
        *complete, rest = text.split("\n")
        if complete:
            complete[0] = self.partial + complete[0]
            self._parts.clear()
            for line in complete:
                self._push(line)
        if rest:
            self._parts.append(rest)

    def freeze(self) -> None:
        """Stop for now: the line being written and those whose place is undecided are dropped."""
        self._parts.clear()
        self.frozen = True
        if self._kept == len(self.new_lines):
            return
        kept, hunk = self._kept, self._insertion
        self._aligner.retract(0 if hunk is None else hunk.added)
        if hunk is not None:
            self._take_back(hunk)
        del self.new_lines[kept:]
        if self.repair is not None:
            del self._written[kept:]
            self.repair = IndentRepair(self._old, self._written, margin=self.repair.margin)
        self.settled = list(self.settled)  # Others go by its identity to see what is new.

    def finish(self) -> None:
        """The rewrite is complete: unread lines are deleted, everything settles."""
        if self._parts:
            line = self.partial
            self._parts.clear()
            self._push(line)
        self._apply(self._aligner.finish())
        self._end()

    def abandon(self, *, settle_tail: bool = False) -> range:
        """The rewrite was cut short: unread lines stay, and so does what has settled.

        The undecided end is dropped: part of a replacement may be in it without the rest.

        Args:
            settle_tail: Make hunks of that end too, by a guess at what it replaces.

        Returns:
            The base lines which the rewrite had not reached.
        """
        self._parts.clear()
        dropped = 0
        if settle_tail:
            self._apply(self._aligner.stop())
        else:
            dropped = len(self.new_lines) - self._kept
            self._aligner.drop()
            if (hunk := self._insertion) is not None:
                self._take_back(hunk)
        unread = self.unread
        self._end(dropped)
        return unread

    def _take_back(self, hunk: Hunk) -> None:
        """Drop the open hunk."""
        self._open, self._disturbed = None, False
        self._at = hunk.start
        self._hunks.supersede(hunk)
        self.rebuild()

    def moved(
        self,
        base: SourceText,
        start: int,
        stop: int,
        moves: Sequence[int],
        *,
        disturbed: bool = False,
    ) -> None:
        """The base was replaced and all hunks were moved; take the new coordinates.

        Args:
            base: The new base.
            start: First base line of the segment now.
            stop: Base line after the last now.
            moves: For each line of the former base its line in the new one, or -1.
            disturbed: Whether lines under the hunk that still grows were changed.
        """
        self._base = base
        if not self.finished:
            at = start
            for number in self._base_of[: self._aligner.cursor]:
                if number >= 0 and moves[number] >= 0:
                    at = moves[number] + 1
            self._base_of = [moves[number] if number >= 0 else -1 for number in self._base_of]
            self._disturbed = self._disturbed or disturbed
            for hunk_id in self.hunk_ids:
                hunk = self._hunks.get(hunk_id)
                if hunk.live:
                    at = max(at, hunk.stop)
            self._at = at
        self.start, self.stop = start, stop
        self.rebuild()

    def rebuild(self) -> None:
        """Rebuild the settled rows from the base and the hunks after positions or hunks changed.

        The rows of a hunk keep their order and kinds, so that nothing on screen changes class.
        """
        kinds: dict[int, list[Row]] = {}
        for row in self.settled:
            if row.hunk is not None:
                kinds.setdefault(row.hunk, []).append(row)
        live = [h for h in map(self._hunks.get, self.hunk_ids) if h.live]
        live.sort(key=lambda hunk: hunk.order)
        rows: list[Row] = []
        at, new = self.start, self.start
        for hunk in live:
            new = self._context_rows(rows, at, hunk.start, new)
            if hunk.displaced or hunk.state is HunkState.CONFLICT:
                # The file's own lines come first.
                new = self._context_rows(rows, max(at, hunk.start), hunk.stop, new)
            if not hunk.displaced:
                new = _hunk_rows(rows, hunk, kinds.get(hunk.id, ()), new)
            at = max(at, hunk.stop)
        self._context_rows(rows, at, self.stop if self.finished else self._at, new)
        self.settled = rows
        self.hunk_ids = [hunk.id for hunk in live]

    def adopt(self, hunks: Iterable[Hunk]) -> None:
        """Become the finished picture of existing hunks in this range, besides one's own."""
        self.hunk_ids += [hunk.id for hunk in hunks]
        self.finished = True
        self.rebuild()

    def _push(self, line: str) -> None:
        if self.repair is not None:
            self._written.append(line)
            line = self.repair.line(line)
        self.new_lines.append(line)
        self._apply(self._aligner.push(line))

    def _end(self, dropped: int = 0) -> None:
        """Show the lines that were not reached; of the rewrite's last lines some were dropped."""
        self._close_hunk()
        new = self.start + len(self.new_lines) - dropped
        self._context_rows(self.settled, self._at, self.stop, new)
        self._at = self.stop
        self.finished = True
        self.frozen = False

    def _apply(self, ops: Iterable[Op]) -> None:
        for change, old, new in ops:
            if change is LineChange.CONTEXT:
                self._context(old, new)
            elif change is LineChange.DELETED:
                self._deleted(old)
            else:
                line = self.new_lines[new]
                hunk = self._open_hunk()
                self._hunks.add_line(hunk, line)
                row = Row(RowKind.ADDED, None, self.start + new, line, hunk.id)
                self.settled.append(row)

    def _context(self, old: int, new: int) -> None:
        if self._open is not None:
            self._close_hunk()
        number = self._base_of[old]
        if number < 0:
            return  # The user deleted the line meanwhile, so the rewrite skips it.
        shown = self.start + new
        self._context_rows(self.settled, self._at, number, shown)
        self.settled.append(Row(RowKind.CONTEXT, number, shown, self._old[old]))
        self._at = number + 1

    def _deleted(self, old: int) -> None:
        number = self._base_of[old]
        if self._open is None and number > self._at:  # lines that the user inserted meanwhile
            new = self.start + len(self.new_lines) - len(self._aligner.pending)
            self._context_rows(self.settled, self._at, number, new)
            self._at = number
        hunk = self._open_hunk()
        stop = hunk.stop
        if number != self._at:
            self._disturbed = True
        if number >= self._at:
            self._at = stop = number + 1
        self._hunks.remove_line(hunk, self._old[old], stop)
        row = Row(RowKind.DELETED, number if number >= 0 else None, None, self._old[old], hunk.id)
        self.settled.append(row)

    def _open_hunk(self) -> Hunk:
        if self._open is None:
            self._open = self._hunks.open(self.path, self._at, self.match_level)
            self.hunk_ids.append(self._open.id)
        return self._open

    def _close_hunk(self) -> None:
        hunk = self._open
        if hunk is None:
            return
        self._open = None
        if not self._disturbed:
            self._hunks.settle(hunk)
            return
        self._disturbed = False
        lines = self._base.lines[hunk.start : hunk.stop]
        self._hunks.place(hunk, hunk.start, hunk.stop, lines)
        self._hunks.settle(hunk, conflict=_MOVED)
        self.rebuild()

    def _context_rows(self, rows: list[Row], start: int, stop: int, new: int) -> int:
        """Append base lines ``[start, stop)`` as context; returns the next new line number."""
        lines = self._base.lines
        for number in range(start, stop):
            rows.append(Row(RowKind.CONTEXT, number, new, lines[number]))
            new += 1
        return new


def _hunk_rows(rows: list[Row], hunk: Hunk, shown: Sequence[Row], new: int) -> int:
    """Append the rows of a hunk, in the order in which they were shown if they were."""
    kinds = [row.kind for row in shown]
    if kinds.count(RowKind.DELETED) != hunk.deleted or kinds.count(RowKind.ADDED) != hunk.added:
        kinds = [RowKind.DELETED] * hunk.deleted + [RowKind.ADDED] * hunk.added
    old_lines, new_lines = iter(hunk.old), iter(hunk.new)
    number: int | None = hunk.start if hunk.base_lines == hunk.old else None
    for kind in kinds:
        if kind is RowKind.DELETED:
            rows.append(Row(kind, number, None, next(old_lines), hunk.id))
            number = None if number is None else number + 1
        else:
            rows.append(Row(kind, None, new, next(new_lines), hunk.id))
            new += 1
    return new
