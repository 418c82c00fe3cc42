"""One row of the code pane as it is to be shown.  Data only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from midstream.edits.hunks import Hunk
from midstream.edits.rows import RowKind


class Look(StrEnum):
    """How a row is to be shown."""

    CONTEXT = "context"
    ADDED = "added"
    DELETED = "deleted"
    PENDING = "pending"
    WRITING = "writing"
    UNREAD = "unread"
    KEPT = "kept"
    """A line that a rejected hunk would have taken out: the file has it."""
    REFUSED = "refused"
    """A line of a rejected hunk that the file does not get."""
    FOLDED_REFUSED = "folded_refused"
    FOLDED_CONTEXT = "folded_context"


FOLDS: Final = frozenset({Look.FOLDED_REFUSED, Look.FOLDED_CONTEXT})
"""Rows that stand for others."""


LOOKS: Final = {
    RowKind.CONTEXT: Look.CONTEXT,
    RowKind.ADDED: Look.ADDED,
    RowKind.DELETED: Look.DELETED,
    RowKind.PENDING: Look.PENDING,
    RowKind.WRITING: Look.WRITING,
    RowKind.UNREAD: Look.UNREAD,
}


@dataclass(slots=True)
class ViewRow:
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
