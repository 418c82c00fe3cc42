"""Hunks as other parts read them; ``hunk_store`` is the only one that changes them.

A hunk is one block of changed lines.  It streams while its block grows, settles when a context line
follows it or its segment ends, and can be decided from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from midstream.edits.documents import LineEdit


class HunkState(StrEnum):
    """The state of a hunk."""

    STREAMING = "streaming"
    SETTLED = "settled"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    CONFLICT = "conflict"
    """The base changed where the hunk is; it is kept and shown, but cannot be applied."""
    HELD = "held back"
    """The guard does not let it be accepted until it is released."""
    SUPERSEDED = "superseded"
    """A later rewrite, a split or an undo took its place; it has no position any more."""


class HoldReason(NamedTuple):
    """Why the guard holds a hunk back: the rule that matched, and its message for people."""

    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.message} ({self.rule})" if self.rule else self.message


_OUTCOMES = {HunkState.ACCEPTED: "kept", HunkState.REJECTED: "put back"}
_DECIDABLE = frozenset({HunkState.SETTLED, HunkState.ACCEPTED, HunkState.REJECTED})


class Hunk:
    """One block of changed lines, read-only.  ``HunkStore`` is the only one that changes it.

    Attributes:
        id: Grows over the life of a store; never reused.
        path: File that the hunk belongs to.
        rank: Order among hunks at the same line.
        external: Whether another program wrote the change: its new lines are in the file already.
            Accepting it keeps them; rejecting it puts the old lines back.
    """

    __slots__ = (
        *(
            "_anchored",
            "_call",
            "_displaced",
            "_due",
            "_base_lines",
            "_match_level",
            "_new",
            "_note",
        ),
        *("_old", "_own", "_postponed", "_hold", "_start", "_state", "_stop"),
        *("external", "id", "path", "rank"),
    )

    def __init__(
        self,
        hunk_id: int,
        path: str,
        start: int,
        rank: tuple[int, ...] | None = None,
        *,
        external: bool = False,
    ) -> None:
        self.id = hunk_id
        self.path = path
        self.rank = rank or (hunk_id,)
        self.external = external
        self._start = start
        self._stop = start
        self._state = HunkState.STREAMING
        self._note = ""
        self._match_level = 0
        self._anchored = True
        self._hold: HoldReason | None = None
        self._own = False
        self._displaced = False
        self._postponed: str | None = None
        self._call = 0
        self._due = False
        self._old: list[str] = []
        self._new: list[str] = []
        self._base_lines: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return (
            f"Hunk({self.id}, {self.path!r}, {self.start}-{self.stop}, "
            f"-{self.deleted} +{self.added}, {self.state})"
        )

    @property
    def start(self) -> int:
        """First base line of the block."""
        return self._start

    @property
    def stop(self) -> int:
        """Base line after the block; equal to ``start`` for a pure insertion."""
        return self._stop

    @property
    def state(self) -> HunkState:
        """The state of the hunk."""
        return self._state

    @property
    def note(self) -> str:
        """Why it was rejected, held back or put in conflict; ``""`` if no reason was given."""
        return self._note

    @property
    def hold(self) -> HoldReason | None:
        """Why the guard holds it back, until it is released; meanwhile it can only be rejected."""
        return self._hold

    @property
    def match_level(self) -> int:
        """How leniently its place was found (0 for a rewritten region or an exact match)."""
        return self._match_level

    @property
    def anchored(self) -> bool:
        """Whether the position is still this hunk's; a later rewrite of the place ends it."""
        return self._anchored

    @property
    def own(self) -> bool:
        """Whether its new lines were written by the user and not by the model."""
        return self._own

    @property
    def displaced(self) -> bool:
        """Whether it was rejected in a conflict: it has no rows, and the file keeps its lines."""
        return self._displaced

    @property
    def postponed(self) -> str | None:
        """Why it will be rejected later, ``None`` if it will not."""
        return self._postponed

    @property
    def call(self) -> int:
        """The call of an agent's tool that proposes it, 0 if none does.

        Until its lines have come, only the agent writes them: the hunk asks for no change.
        """
        return self._call

    @property
    def due(self) -> bool:
        """Whether that call was answered, so that the agent writes the hunk if it was accepted."""
        return self._due

    @property
    def old(self) -> tuple[str, ...]:
        """The lines that the hunk removes."""
        return tuple(self._old)

    @property
    def new(self) -> tuple[str, ...]:
        """The lines that the hunk adds."""
        return tuple(self._new)

    @property
    def base_lines(self) -> tuple[str, ...]:
        """The lines that the base has in ``[start, stop)``.

        That is ``old`` until the hunk is folded into the base, then ``new``; in a conflict it is
        the file's own lines.
        """
        return self.old if self._base_lines is None else self._base_lines

    @property
    def added(self) -> int:
        """Number of lines that it adds."""
        return len(self._new)

    @property
    def deleted(self) -> int:
        """Number of lines that it removes."""
        return len(self._old)

    @property
    def headline(self) -> str:
        """The first non-blank line that it adds, else that it removes, stripped."""
        return next((line.strip() for line in (*self._new, *self._old) if line.strip()), "")

    @property
    def decided(self) -> bool:
        """Whether it is accepted or rejected."""
        return self._state in (HunkState.ACCEPTED, HunkState.REJECTED)

    @property
    def decidable(self) -> bool:
        """Whether it can be accepted or rejected now."""
        return self._anchored and self._state in _DECIDABLE and not self._displaced

    @property
    def rejectable(self) -> bool:
        """Whether it can be rejected now: it is decidable, held back or in conflict."""
        withheld = self._state in (HunkState.HELD, HunkState.CONFLICT)
        return self.decidable or (self._anchored and withheld)

    @property
    def live(self) -> bool:
        """Whether it is on screen: it has a position and was not superseded."""
        return self._anchored and self._state is not HunkState.SUPERSEDED

    @property
    def outcome(self) -> str:
        """The state in words: hunks that are already on disk are kept or put back."""
        return (_OUTCOMES.get(self._state) if self.external else None) or self._state.value

    @property
    def undecided_lines(self) -> tuple[str, ...]:
        """The lines that the file has in its place while it waits for a decision."""
        return self.new if self.external else self.old

    @property
    def held_on_disk(self) -> bool:
        """Whether the guard holds back lines that another program has written already."""
        return self.external and self.state is HunkState.HELD

    @property
    def waits(self) -> bool:
        """Whether the user has something to do about it, see ``HunkStore.waiting``."""
        return self.state is HunkState.SETTLED or self.held_on_disk

    @property
    def order(self) -> tuple[int, int, tuple[int, ...]]:
        """Sort key by position; an insertion at a line comes before that line."""
        return self._start, self._stop, self.rank

    def edit(self) -> LineEdit | None:
        """The change to the base that follows from the decision, if any.

        An accepted hunk asks for its new lines; one whose new lines are in the base already, and
        which is no longer accepted, asks for its old lines back, whether or not the guard holds it
        back meanwhile.  The lines of an external hunk stay until it is rejected.
        """
        held = self._anchored and self._state is HunkState.HELD
        if not (self.decidable or held) or self._call:
            return None
        kept = self._state is HunkState.ACCEPTED
        if self.external:
            kept = self._state is not HunkState.REJECTED
        wanted = self.new if kept else self.old
        return None if wanted == self.base_lines else LineEdit(self._start, self._stop, wanted)


class Move(NamedTuple):
    """The effect of a new base on one hunk.

    Attributes:
        hunk: The hunk.
        start: Its first line in the new base.
        stop: The line after its last one.
        base_lines: The lines that the new base has there; None for the hunk's old lines.
        state: Its new state, or None if that stays.
        note: Why the state changes.
        detached: The hunk is decided and its place was rewritten; it does not move.
        disturbed: The hunk still grows and the lines under it were changed.
    """

    hunk: Hunk
    start: int
    stop: int
    base_lines: tuple[str, ...] | None = None
    state: HunkState | None = None
    note: str = ""
    detached: bool = False
    disturbed: bool = False


class Obstacle(StrEnum):
    """Why an accepted hunk cannot be taken back."""

    CHANGED = "its lines were changed since"
    WRITING = "the model is writing there"


class Picture(Protocol):
    """The rows of a file that hunks are part of."""

    def restructured(self) -> None:
        """Hunks of the file were split, edited or joined again."""
        ...

    def obstacle(self, hunk: Hunk) -> Obstacle | None:
        """What prevents a hunk that a later rewrite covered from coming back, if anything."""
        ...

    def uncover(self, hunk: Hunk) -> None:
        """Bring such a hunk back; undecided ones that change its lines give way to it."""
        ...

    def cover_again(self, hunk: Hunk) -> None:
        """Reverse ``uncover``, if it did anything."""
        ...


Cut = tuple[int, int]
"""How many old and how many new lines of a hunk lie before a place where it is cut."""


def cuts_around(hunk: Hunk, start: int, stop: int, *, accept: bool) -> tuple[tuple[Cut, ...], Cut]:
    """Where a hunk is cut to decide some of its lines.

    Where there are as many new lines as old ones, each belongs behind the old one at the same
    place, whatever is decided about the others.  Each is therefore a part of its own, which stays
    when its old line is gone.

    Args:
        hunk: The hunk.
        start: First line of the range, counting the old lines and then the new ones.
        stop: Line after the range.
        accept: Whether the lines are accepted.

    Returns:
        The cuts, ascending, and the one before the range.
    """
    deleted = hunk.deleted
    if deleted == hunk.added and start >= deleted:
        first = (stop - deleted, start - deleted)
        return (first, (stop - deleted, stop - deleted)), first
    if deleted == hunk.added and stop <= deleted:
        first = (start, start)
        return (first, (stop, start), *([(stop, stop)] if accept else [])), first
    first = (min(start, deleted), max(0, start - deleted))
    return (first, (min(stop, deleted), max(0, stop - deleted))), first


def part_behind(cut: Cut, parts: Sequence[Hunk]) -> Hunk:
    """The part of a hunk behind a cut."""
    at = (0, 0)
    for part in parts:
        if at == cut:
            return part
        at = (at[0] + part.deleted, at[1] + part.added)
    raise ValueError(f"no part begins at {cut}")
