"""Files moved by another program or an answer: one goes, and most of its lines are in a new one.

A move is two hunks, the lines of the one file and those of the other.  They are decided together,
and shown as one.  That two files belong together follows from their contents, so it is not stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from midstream.edits.hunks import HunkState

if TYPE_CHECKING:
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.hunks import Hunk
    from midstream.edits.proposal import FileProposal

MIN_SHARE: Final = 0.6
"""How much of the longer file must be in the other, of all lines, for a move."""


class FileMove(NamedTuple):
    """A file that was moved.

    Attributes:
        gone: The hunk that deletes the file under its old name.
        made: The hunk that adds it under its new name.
        share: How much of the longer file is in the other, 0 to 1.
    """

    gone: Hunk
    made: Hunk
    share: float

    @property
    def held(self) -> bool:
        """Whether the guard holds the new file back, so that the old one has to stay for now."""
        return self.made.hold is not None

    def said_of(self, hunk: Hunk, *, brief: bool = False) -> str:
        """The description of one of the two hunks; ``brief``: only the other path."""
        if brief:
            made, gone = self.made.path, self.gone.path
            return f"moved to {made}" if self.gone is hunk else f"moved from {gone}"
        if self.gone is hunk:
            return f"moved to {self.made.path}{', which is held back' if self.held else ''}"
        same = "unchanged" if self.share == 1 else f"{int(self.share * 100)} % of the lines"
        return f"moved from {self.gone.path}, {same}"


class Moves:
    """Finds the moves among the hunks that wait for a decision, or for a release.

    Args:
        hunks: All hunks.
        files: The proposals of the open files by their paths.
        digests: What each file is on disk; ``None``: no such file.
    """

    def __init__(
        self,
        hunks: HunkStore,
        files: Mapping[str, FileProposal],
        digests: Mapping[str, str | None],
    ) -> None:
        self._hunks = hunks
        self._files = files
        self._digests = digests
        self._state = (-1, frozenset[str]())
        self._vanishing: tuple[tuple[int, int], list[str]] = (-1, -1), []
        """Files that vanish with their lines, and at how many files and which hunks."""
        self._found: dict[int, FileMove] = {}

    def of(self, hunk: Hunk) -> FileMove | None:
        """The move that a hunk is part of, if it is."""
        return self.of_id(hunk.id)

    def of_id(self, hunk_id: int) -> FileMove | None:
        """The move that the hunk with this id is part of, if it is."""
        return self._all().get(hunk_id)

    def with_partners(self, hunk_ids: Sequence[int]) -> list[int]:
        """The hunks, and those that are decided with them."""
        found = self._all()
        ids = dict.fromkeys(hunk_ids)
        for hunk_id in hunk_ids:
            if (move := found.get(hunk_id)) is not None:
                ids |= dict.fromkeys((move.gone.id, move.made.id))
        return list(ids)

    def shown(self, hunks: Sequence[Hunk]) -> list[Hunk]:
        """Those of the hunks that are shown: of a move, the file under its new name.

        Where that is held back, the file under its old name is shown as well.
        """
        hidden = {move.gone.id for move in self._all().values() if not move.held}
        return [hunk for hunk in hunks if hunk.id not in hidden] if hidden else [*hunks]

    def waiting_by_path(self) -> dict[str, int]:
        """How many of the hunks that wait are shown, by file; cheap enough for every frame."""
        waiting = self._hunks.waiting_by_path()
        counts = {path: waiting[path] for path in self._files if path in waiting}
        for hunk_id, move in self._all().items():
            if hunk_id == move.gone.id and move.gone.waits and not move.held:
                counts[move.gone.path] -= 1
                if not counts[move.gone.path]:
                    del counts[move.gone.path]
        return counts

    def _all(self) -> dict[int, FileMove]:
        """The moves by both hunks."""
        # A decision changes the hunks first and what is on disk later.
        vanishing, digests = self._vanish(), self._digests
        gone = frozenset(path for path in vanishing if digests.get(path, "") is None)
        if (state := (self._hunks.version, gone)) != self._state:
            self._state = state
            self._found = {
                hunk.id: move for move in self._find(gone) for hunk in (move.gone, move.made)
            }
        return self._found

    def _vanish(self) -> list[str]:
        """Files that vanish with their lines: a file that begins to gets a hunk for that."""
        if (state := (len(self._files), self._hunks.version)) != self._vanishing[0]:
            paths = [path for path, file in self._files.items() if file.vanishes]
            self._vanishing = state, paths
        return self._vanishing[1]

    def _find(self, gone_paths: frozenset[str]) -> list[FileMove]:
        single = [
            hunks[0] for path in self._vanish() if len(hunks := self._hunks.for_path(path)) == 1
        ]
        # A file that another program has moved is gone already, whatever the guard holds back.
        waits = (HunkState.SETTLED, HunkState.HELD)
        whole = [hunk for hunk in single if hunk.state in waits and not hunk.held_on_disk]
        # What another program did is on disk already; what an answer proposes is not.
        gone = [h for h in whole if not h.new and not h.hold and self._deletes(h, gone_paths)]
        made = [h for h in whole if not h.old and h.external != (h.path in gone_paths)]
        if not gone or not made:
            return []
        counts = {hunk.id: Counter(hunk.old or hunk.new) for hunk in (*gone, *made)}
        likely = [
            FileMove(old, new, share)
            for old in gone
            for new in made
            if old.external == new.external
            and (share := _share(counts[old.id], counts[new.id])) >= MIN_SHARE
        ]
        moves: list[FileMove] = []
        taken: set[int] = set()
        for move in sorted(likely, key=lambda move: (-move.share, move.gone.id, move.made.id)):
            if taken.isdisjoint((move.gone.id, move.made.id)):
                taken |= {move.gone.id, move.made.id}
                moves.append(move)
        return moves

    def _deletes(self, hunk: Hunk, gone_paths: frozenset[str]) -> bool:
        """Whether a hunk without new lines takes the whole file away."""
        if hunk.external:
            return hunk.path in gone_paths
        return hunk.path not in gone_paths and len(hunk.old) == len(
            self._files[hunk.path].base.lines
        )


def _share(old: Counter[str], new: Counter[str]) -> float:
    """How many of the lines of the longer text are in both."""
    return (old & new).total() / max(old.total(), new.total())
