"""Stretches of rows that come from one place: the base text, a segment, a fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from midstream.edits.hunks import Hunk
from midstream.edits.rows import Row, RowKind
from midstream.tui.diff.rows import Look

if TYPE_CHECKING:
    from midstream.edits.proposal import Segment

CONTEXT_LINES: Final = 3
"""Unchanged rows shown around a change when the rest is folded."""

Pair = tuple[int | None, int | None]
"""Offsets of a deleted and an added row that stand side by side."""


@dataclass(slots=True)
class Block:
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


@dataclass(slots=True)
class Run:
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
        self.runs: list[Run] = []
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
                runs.append(Run(index, index + 1, hunk))

    def pairs(self, run: Run) -> list[Pair]:
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
        part = replace(block, size=high - low)
        if block.rows:
            part.offset += low
            row = block.rows[part.offset]
            part.base = row.old or 0
        else:
            part.base += low
        parts.append(part)
    return parts
