"""Which hunks are flagged: those of a doubtful answer, until they are decided.

A flag outlives its answer.  A later answer takes the place of undecided hunks, and often has their
lines again, since the model reads what is proposed; its hunks inherit the flag then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from midstream.edits.hunks import Hunk, HunkState

if TYPE_CHECKING:
    from midstream.edits.hunk_store import HunkStore
    from midstream.pairing.status import Turn


class Doubts:
    """The flags of a session.

    Args:
        turns: Its turns, which name the hunks of doubtful answers.
        hunks: Every hunk.
    """

    def __init__(self, turns: Sequence[Turn], hunks: HunkStore) -> None:
        self._turns = turns
        self._hunks = hunks
        self._known: tuple[int, int] | None = None
        self._replaced: list[Hunk] = []

    def about(self, hunk: Hunk) -> bool:
        """Whether a hunk is flagged, as if it were undecided; cheap enough for every frame."""
        if self._marked(hunk):
            return True
        return any(
            flagged.path == hunk.path and repeats(hunk, flagged)
            for flagged in self._replaced_ones()
        )

    def of_cut(self, hunk: Hunk) -> bool:
        """Whether a hunk is flagged because its answer failed before it was complete."""
        return any(hunk.rank[0] in turn.doubted for turn in self._turns if turn.error)

    def _marked(self, hunk: Hunk) -> bool:
        return any(hunk.rank[0] in turn.doubted for turn in self._turns)

    def _replaced_ones(self) -> Sequence[Hunk]:
        """Flagged hunks whose place a later answer took before they were decided."""
        marked = sum(len(turn.doubted) for turn in self._turns)
        if not marked:
            return ()
        now = (self._hunks.version, marked)
        if self._known != now:
            self._known, self._replaced = now, list(self._superseded())
        return self._replaced

    def _superseded(self) -> Iterator[Hunk]:
        parents = {hunk.rank[:-1] for hunk in self._hunks if len(hunk.rank) > 1}
        for hunk in self._hunks:
            # A hunk that was split has its parts in its place.
            gone = hunk.state is HunkState.SUPERSEDED and hunk.rank not in parents
            if gone and not hunk.own and self._marked(hunk):
                yield hunk


def repeats(hunk: Hunk, flagged: Hunk) -> bool:
    """Whether a hunk repeats another one: half of its lines are the same."""
    new, was = _solid(hunk.new), _solid(flagged.new)
    if not new and not was:
        old = _solid(hunk.old)
        return bool(old) and 2 * len(old & _solid(flagged.old)) >= len(old)
    return bool(new) and 2 * len(new & was) >= len(new)


def _solid(lines: Sequence[str]) -> frozenset[str]:
    return frozenset(line for line in lines if line.strip())
