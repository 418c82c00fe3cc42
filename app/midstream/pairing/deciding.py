"""What a person decides about hunks, in the words of a session.

The rules are the hunk store's, writing is the desk's; here decisions wait for the guard's verdict
and are told to whoever measures attention.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midstream.edits.hunks import HunkState, HunkStore
    from midstream.pairing.attention import Attention
    from midstream.pairing.desk import Desk
    from midstream.pairing.guard import Guard


class Deciding:
    """The part of a session that decides.

    Attributes:
        hunks: Every hunk of the session and its decision.
        guard: Watches what streams in; says what it found and what it does not see.
        attention: How long hunks were on screen; the screen tells it.
    """

    hunks: HunkStore
    guard: Guard
    attention: Attention
    _desk: Desk

    async def accept(self, hunk_id: int) -> bool:
        """Accept a settled hunk and write the file; ``False`` with a notice if it could not be."""
        from midstream.edits.hunks import HunkState

        await self.guard.caught_up()
        self.attention.accepted_all(self.hunks, (hunk_id,))
        return await self._desk.decide((hunk_id,), HunkState.ACCEPTED)

    async def reject(self, hunk_id: int, note: str = "") -> bool:
        """Reject a settled hunk; one that was accepted is taken out of the file again."""
        from midstream.edits.hunks import HunkState

        return await self._desk.decide((hunk_id,), HunkState.REJECTED, note)

    async def decide_lines(
        self, hunk_id: int, start: int, stop: int, accept: bool, note: str = ""
    ) -> bool:
        """Accept or reject some lines of an undecided hunk, in one undo step.

        The lines become a hunk of their own with that decision; what lies before and behind them
        stays undecided.

        Args:
            hunk_id: The hunk.
            start: First line, counting the old lines and then the new ones.
            stop: Line after the last one.
            accept: Whether they are accepted or rejected.
            note: Why.

        Returns:
            Whether it was done; if not, a notice says why.

        Raises:
            ValueError: The range is empty or not within the hunk.
        """
        from midstream.edits.hunks import HunkState

        await self.guard.caught_up()
        state = HunkState.ACCEPTED if accept else HunkState.REJECTED
        return await self._desk.decide_lines(hunk_id, start, stop, state, note)

    async def split(self, hunk_id: int, cuts: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """Split an undecided hunk into consecutive ones, in one undo step.

        Args:
            hunk_id: The hunk.
            cuts: For each cut, how many old and how many new lines lie before it, ascending.

        Returns:
            The ids of the parts, in order; ``()`` with a notice if it could not be split.

        Raises:
            ValueError: A cut is out of range or out of order.
        """
        return await self._desk.split(hunk_id, cuts)

    async def edit(self, hunk_id: int, new_lines: Sequence[str]) -> bool:
        """Give an undecided hunk other new lines, in one undo step; it stays undecided.

        Raises:
            ValueError: A line has a terminator in it.
        """
        return await self._desk.edit(hunk_id, new_lines)

    async def accept_rest(self, path: str, only: Collection[int] | None = None) -> int:
        """Accept every undecided settled hunk of a file, in one write and one undo step.

        Args:
            path: The file.
            only: The hunks that are meant; ``None`` for all that are settled now.

        Returns:
            How many; 0 with a notice if they could not be written.
        """
        from midstream.edits.hunks import HunkState

        if only is None:  # what comes while we wait was not meant, and has no verdict yet
            only = {hunk.id for hunk in self.hunks.undecided(path)}
        await self.guard.caught_up()
        ids = [hunk.id for hunk in self.hunks.undecided(path) if hunk.id in only]
        self.attention.accepted_all(self.hunks, ids)
        return await self._decide_all(ids, HunkState.ACCEPTED)

    async def reject_rest(self, path: str) -> int:
        """Reject every undecided settled hunk of a file in one undo step; returns how many."""
        from midstream.edits.hunks import HunkState

        ids = [hunk.id for hunk in self.hunks.undecided(path)]
        return await self._decide_all(ids, HunkState.REJECTED)

    async def _decide_all(self, ids: list[int], state: HunkState) -> int:
        return len(ids) if ids and await self._desk.decide(ids, state) else 0

    def release(self, hunk_id: int, reason: str) -> None:
        """Let a hunk that the guard holds back be decided; the reason is kept in the journal.

        Raises:
            UsageError: No reason is given, or the hunk is not quarantined.
        """
        self.guard.release(hunk_id, reason)

    async def undo(self) -> tuple[int, ...]:
        """Take the last decision back and rewrite what it had written; ids of the hunks changed."""
        return await self._desk.travel(back=True)

    async def redo(self) -> tuple[int, ...]:
        """Decide again what ``undo`` took back; ids of the hunks changed."""
        return await self._desk.travel(back=False)
