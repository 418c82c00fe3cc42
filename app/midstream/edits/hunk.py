"""One hunk: a block of changed lines, where it is and how it stands.

Responsibility: the data of a hunk and what follows from it.  Who may change a decision, and undoing
it, is ``hunks``'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from midstream.edits.documents import LineEdit


class HunkState(StrEnum):
    """Where a hunk stands."""

    STREAMING = "streaming"
    SETTLED = "settled"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    CONFLICT = "conflict"
    """The base changed where the hunk is; kept and shown, but it cannot be applied."""
    QUARANTINED = "quarantined"
    """A guard holds it back until it is released."""
    SUPERSEDED = "superseded"
    """A later rewrite, a split or an undo took its place; it has no position any more."""


_DECIDABLE = frozenset({HunkState.SETTLED, HunkState.ACCEPTED, HunkState.REJECTED})


class Hunk:
    """One block of changed lines.  Decisions change only through :class:`HunkStore`.

    Attributes:
        id: Grows over the life of a store; never reused.
        path: File that the hunk belongs to.
        start: First base line of the block.
        stop: Base line after the block; equal to ``start`` for a pure insertion.
        state: Where the hunk stands.
        note: Why it was rejected, quarantined or put in conflict; ``""`` if nothing was said.
        match_level: How leniently its place was found (0 for a rewritten region or exact match).
        anchored: Whether the position is still this hunk's; a later rewrite of the place ends it.
        rank: Order among hunks at the same line.
        withheld: Whether a guard held it back and nobody has released it; it can only be rejected.
        own: Whether its new lines are the person's and not the model's.
        displaced: Whether it was in conflict when it was rejected: the file has lines of its own
            there, which stay, and the hunk has no rows.
    """

    __slots__ = (
        "_held",
        "_new",
        "_old",
        "anchored",
        "displaced",
        "id",
        "match_level",
        "note",
        "own",
        "path",
        "rank",
        "start",
        "state",
        "stop",
        "withheld",
    )

    def __init__(
        self, hunk_id: int, path: str, start: int, rank: tuple[int, ...] | None = None
    ) -> None:
        self.id = hunk_id
        self.path = path
        self.start = start
        self.stop = start
        self.state = HunkState.STREAMING
        self.note = ""
        self.match_level = 0
        self.anchored = True
        self.withheld = False
        self.own = False
        self.displaced = False
        self.rank = rank or (hunk_id,)
        self._old: list[str] = []
        self._new: list[str] = []
        self._held: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return (
            f"Hunk({self.id}, {self.path!r}, {self.start}-{self.stop}, "
            f"-{self.deleted} +{self.added}, {self.state})"
        )

    @property
    def old(self) -> tuple[str, ...]:
        """The lines that the hunk takes away."""
        return tuple(self._old)

    @property
    def new(self) -> tuple[str, ...]:
        """The lines that the hunk brings."""
        return tuple(self._new)

    @property
    def held(self) -> tuple[str, ...]:
        """The lines that the base has in ``[start, stop)``.

        They are ``old`` until the hunk is folded into the base, ``new`` after that, and the file's
        own lines in a conflict.
        """
        return self.old if self._held is None else self._held

    @property
    def added(self) -> int:
        """How many lines it brings."""
        return len(self._new)

    @property
    def deleted(self) -> int:
        """How many lines it takes away."""
        return len(self._old)

    @property
    def headline(self) -> str:
        """The first line with something on it of what it brings, else of what it takes away."""
        return next((line.strip() for line in (*self._new, *self._old) if line.strip()), "")

    @property
    def decided(self) -> bool:
        """Whether it is accepted or rejected."""
        return self.state in (HunkState.ACCEPTED, HunkState.REJECTED)

    @property
    def decidable(self) -> bool:
        """Whether it can be accepted or rejected now."""
        return self.anchored and self.state in _DECIDABLE and not self.displaced

    @property
    def rejectable(self) -> bool:
        """Whether it can be rejected now: as `decidable`, or held back, or in conflict."""
        held = self.state in (HunkState.QUARANTINED, HunkState.CONFLICT)
        return self.decidable or (self.anchored and held)

    @property
    def live(self) -> bool:
        """Whether it is part of the picture: it has a position and was not superseded."""
        return self.anchored and self.state is not HunkState.SUPERSEDED

    @property
    def order(self) -> tuple[int, int, tuple[int, ...]]:
        """Sort key by position; what is inserted at a line comes before that line."""
        return self.start, self.stop, self.rank

    def edit(self) -> LineEdit | None:
        """The change to the base that the hunk's decision asks for, if any.

        An accepted hunk asks for its new lines.  One whose new lines are in the base already, and
        which is no longer accepted, asks for its old lines back.
        """
        if not self.decidable:
            return None
        wanted = self.new if self.state is HunkState.ACCEPTED else self.old
        return None if wanted == self.held else LineEdit(self.start, self.stop, wanted)

    # Used by the edits package only: a hunk grows while it streams, and is moved with its base.

    def grow(self, old: str | None = None, new: str | None = None) -> None:
        """Add a deleted or an added line to a streaming hunk."""
        if old is not None:
            self._old.append(old)
        if new is not None:
            self._new.append(new)

    def place(self, start: int, stop: int, held: tuple[str, ...] | None = None) -> None:
        """Move the hunk; ``held`` (default: its old lines) is what the base has there."""
        self.start = start
        self.stop = stop
        self._held = None if held == self.old else held

    def rewrite(self, old: Iterable[str], new: Iterable[str]) -> None:
        """Give the hunk other lines (split, edit in place)."""
        self._old = list(old)
        self._new = list(new)
