"""How far the reader of a review has come, kept in the journal so that a resumed session goes on.

What is kept: the hunk under the cursor, the order that is followed, and how long hunks were on
screen.  It is written every few seconds of reading and at the end, so a kill loses little of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from midstream.pairing.journal.entries import ReadingEntry

if TYPE_CHECKING:
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.hunks import Hunk
    from midstream.pairing.files.attention import Attention, Sighting
    from midstream.pairing.journal.entries import ReadSoFar
    from midstream.pairing.journal.journal import SessionJournal
    from midstream.pairing.review.walk import Walkthrough

WRITE_EVERY_S: Final = 2.0
"""Seconds of reading after which they are written."""


class ReaderPlace:
    """Where the reader is.

    Args:
        resumed: Where the earlier session stopped.
    """

    def __init__(
        self,
        hunks: HunkStore,
        attention: Attention,
        walk: Walkthrough,
        journal: SessionJournal,
        resumed: ReadSoFar,
    ) -> None:
        self._hunks = hunks
        self._attention = attention
        self._walk = walk
        self._journal = journal
        self._at = resumed.at
        self._written = self._state()
        self._unwritten_s = 0.0
        self._visits = len(walk.visited)

    @property
    def hunk(self) -> Hunk | None:
        """The hunk that the cursor was on last, as long as it is part of its file."""
        return next((hunk for hunk in self._hunks if hunk.id == self._at and hunk.live), None)

    def look(self, shown: Iterable[Sighting], seconds: float, at: Hunk | None) -> None:
        """Credit hunks with time on screen.

        Args:
            shown: The hunks on screen.
            seconds: For how long.
            at: The hunk under the cursor.
        """
        self._attention.look(shown, seconds)
        if at is not None:
            self._at = at.id
        self._unwritten_s += seconds
        if self._unwritten_s >= WRITE_EVERY_S:
            self.write()

    def write(self) -> None:
        """Write what has changed, once there is a journal."""
        self._unwritten_s = 0.0
        if self._journal.path is None:
            return
        seen, accepted, together = self._attention.news()
        visited, state = self._walk.visited[self._visits :], self._state()
        if seen or accepted or visited or state != self._written:
            self._written = state
            self._visits += len(visited)
            self._journal.add(ReadingEntry(*state, visited, seen, accepted, together))

    def _state(self) -> tuple[int, bool]:
        return self._at, self._walk.on
