"""The rows of a diff, one for each line on screen.  Data only; the aligner decides the kinds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RowKind(StrEnum):
    """The class of a row.  Once a row is context, added or deleted, it stays so."""

    CONTEXT = "context"
    ADDED = "added"
    DELETED = "deleted"
    PENDING = "pending"
    """A complete new line whose place among the old lines is not decided yet."""
    WRITING = "writing"
    """The line that the model is writing."""
    UNREAD = "unread"
    """An old line that the rewrite has not reached."""


@dataclass(slots=True)
class Row:
    """One line of a diff, not to be changed.

    Not frozen, which would take three times as long to construct: the pending end of a rewrite is
    built for every frame.

    Attributes:
        kind: The class of the row.
        old: Line in the base, or None where the row has no base line.
        new: Line in the rewrite, counted from the segment's start line; None for a deleted line.
        text: The line without its terminator.
        hunk: Id of the hunk that the row belongs to, or None.
    """

    kind: RowKind
    old: int | None
    new: int | None
    text: str
    hunk: int | None = None
