"""Hunks, and the one store that owns every decision about them.

A hunk is one block of changed lines.  It streams while its block grows, settles when a context line
follows it or its segment ends, and can be decided from then on.

Responsibility: states, decisions, their undo history, and which line edits follow from them.  The
rows on screen and the moving of hunks over external edits are ``segment``'s and ``rebase``'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from midstream.edits.documents import LineEdit
from midstream.edits.hunk import Hunk, HunkState
from midstream.edits.steps import Snapshot, Step

if TYPE_CHECKING:
    from midstream.edits.covered import Obstacle, Picture

__all__ = ["Hunk", "HunkState", "HunkStore", "UndecidableError"]


class UndecidableError(ValueError):
    """The hunk cannot be decided in its present state; the message names why."""


class HunkStore:
    """All hunks of a pairing session, and the single owner of their decisions.

    Attributes:
        version: Grows with every change.
    """

    def __init__(self) -> None:
        self.version = 0
        self._hunks: dict[int, Hunk] = {}
        self._by_path: dict[str, list[Hunk]] = {}
        self._next_id = 1
        self._undo: list[Step] = []
        self._redo: list[Step] = []
        self._pictures: dict[str, Picture] = {}

    def __iter__(self) -> Iterator[Hunk]:
        return iter(self._hunks.values())

    def __len__(self) -> int:
        return len(self._hunks)

    def get(self, hunk_id: int) -> Hunk:
        """The hunk with this id.

        Raises:
            KeyError: There is none.
        """
        return self._hunks[hunk_id]

    def for_path(self, path: str) -> list[Hunk]:
        """The live hunks of a file, by position."""
        return sorted((h for h in self._by_path.get(path, ()) if h.live), key=lambda h: h.order)

    def rejected(self, path: str) -> frozenset[int]:
        """The rejected hunks of a file."""
        hunks = self._by_path.get(path, ())
        return frozenset(h.id for h in hunks if h.state is HunkState.REJECTED and h.anchored)

    def undecided(self, path: str | None = None) -> list[Hunk]:
        """Settled hunks that wait for a decision, by file and position."""
        paths = self._by_path if path is None else (path,)
        return [h for p in paths for h in self.for_path(p) if h.state is HunkState.SETTLED]

    # Decisions

    def accept(self, hunk_id: int) -> None:
        """Accept a hunk.

        Raises:
            UndecidableError: It streams, is in conflict, quarantined, superseded, or overlaps
                another accepted change.
        """
        self.decide((hunk_id,), HunkState.ACCEPTED)

    def reject(self, hunk_id: int, note: str = "") -> None:
        """Reject a hunk, saying why or not; raises as ``accept``.

        One that is quarantined can be rejected, too, and one in conflict: it leaves the picture,
        and the file's own lines stay.
        """
        self.decide((hunk_id,), HunkState.REJECTED, note)

    def reset(self, hunk_id: int) -> None:
        """Make a hunk undecided again; raises as ``accept``."""
        self.decide((hunk_id,), HunkState.SETTLED)

    def decide(self, hunk_ids: Iterable[int], state: HunkState, note: str = "") -> None:
        """Decide several hunks as one undoable step.

        Args:
            hunk_ids: The hunks.
            state: ACCEPTED, REJECTED or SETTLED (undecided).
            note: Why.

        Raises:
            UndecidableError: One of them cannot be decided; then none is.
        """
        hunks = [self.get(hunk_id) for hunk_id in hunk_ids]
        for hunk in hunks:
            rejected = state is HunkState.REJECTED
            if not (hunk.rejectable if rejected else hunk.decidable and not hunk.withheld):
                raise UndecidableError(_why_undecidable(hunk))
        step = self._begin(hunks)
        for hunk in hunks:
            hunk.displaced = hunk.state is HunkState.CONFLICT
            hunk.state = state
            hunk.note = note
        self._end(step)
        for path in {hunk.path for hunk in hunks if hunk.displaced}:
            self._restructured(path)

    def undo(self) -> tuple[Hunk, ...]:
        """Take the last step back; the hunks it changed, ``()`` when there is nothing to undo.

        Raises:
            UndecidableError: A later change stands in the place of the one to be taken back.
        """
        return self._travel(self._undo, self._redo)

    @property
    def undoable(self) -> bool:
        """Whether there is a step whose hunks are as it left them."""
        return any(
            self._as_left(self.get(hunk_id), after)
            for step in reversed(self._undo)
            for hunk_id, after in step.after.items()
        )

    @property
    def stuck(self) -> tuple[Hunk, Obstacle] | None:
        """An accepted hunk that ``undo`` would leave as it is, and why."""
        for step in reversed(self._undo):
            mine = [h for i, a in step.after.items() if self._as_left(h := self.get(i), a)]
            for hunk in mine:
                why = None if hunk.anchored else self._pictures[hunk.path].obstacle(hunk)
                if why is not None:
                    return hunk, why
            if mine:
                break
        return None

    def redo(self) -> tuple[Hunk, ...]:
        """Do the last undone step again; raises as ``undo``."""
        return self._travel(self._redo, self._undo)

    def accepted_edits(self, path: str) -> list[LineEdit]:
        """The edits of the base that the decisions so far ask for, by position."""
        return [edit for hunk in self.for_path(path) if (edit := hunk.edit()) is not None]

    def quarantine(self, hunk_id: int, note: str) -> None:
        """Hold a hunk back.  One that still streams stays held back when it settles.

        Raises:
            UndecidableError: It is accepted already, in conflict, superseded or out of the picture.
        """
        hunk = self.get(hunk_id)
        beyond = (HunkState.ACCEPTED, HunkState.CONFLICT, HunkState.SUPERSEDED)
        if hunk.state in beyond or hunk.displaced:
            raise UndecidableError(_why_undecidable(hunk))
        hunk.state = HunkState.QUARANTINED
        hunk.withheld = True
        hunk.note = note
        self.touch()

    def release(self, hunk_id: int, note: str = "") -> None:
        """Let a quarantined hunk be decided after all.

        Raises:
            UndecidableError: It is not quarantined.
        """
        hunk = self.get(hunk_id)
        if hunk.state is not HunkState.QUARANTINED:
            raise UndecidableError(f"Hunk {hunk_id} is not quarantined, so it cannot be released.")
        hunk.state = HunkState.SETTLED
        hunk.withheld = False
        hunk.note = note
        self.touch()

    # Structure

    def split(self, hunk_id: int, cuts: Sequence[tuple[int, int]]) -> tuple[Hunk, ...]:
        """Split an undecided hunk into consecutive ones, as one undoable step.

        Args:
            hunk_id: The hunk; it becomes superseded.
            cuts: For each cut, how many old and how many new lines lie before it, ascending.

        Returns:
            The new hunks, in order (empty parts left out).

        Raises:
            UndecidableError: The hunk is not waiting for a decision.
            ValueError: A cut is out of range or out of order.
        """
        hunk = self._splittable(hunk_id)
        step = self._begin((hunk,))
        children = self._cut(hunk, cuts, step)
        self._end(step)
        self._restructured(hunk.path)
        return children

    def decide_lines(
        self, hunk_id: int, start: int, stop: int, state: HunkState, note: str = ""
    ) -> tuple[Hunk, ...]:
        """Decide some lines of an undecided hunk: cut them out and decide that part, as one step.

        Args:
            hunk_id: The hunk.
            start: First line of the range, counting the old lines and then the new ones.
            stop: Line after the range.
            state: ACCEPTED or REJECTED.
            note: Why.

        Returns:
            The hunks that took the hunk's place, in order.

        Raises:
            UndecidableError: The hunk is not waiting for a decision.
            ValueError: The range is empty or out of range.
        """
        hunk = self._splittable(hunk_id)
        deleted = hunk.deleted
        if not 0 <= start < stop <= deleted + hunk.added:
            raise ValueError(f"lines {start}-{stop} are not lines of hunk {hunk_id}")
        first = (min(start, deleted), max(0, start - deleted))
        last = (min(stop, deleted), max(0, stop - deleted))
        step = self._begin((hunk,))
        children = self._cut(hunk, (first, last), step)
        at = [0, 0]
        for child in children:
            if (at[0], at[1]) == first:
                child.state = state
                child.note = note
            at[0] += child.deleted
            at[1] += child.added
        self._end(step)
        self._restructured(hunk.path)
        return children

    def edit(self, hunk_id: int, new: Sequence[str]) -> None:
        """Replace the new lines of an undecided hunk by the user's own, as one undoable step.

        Raises:
            UndecidableError: The hunk is not waiting for a decision.
            ValueError: A line has a terminator in it.
        """
        hunk = self._splittable(hunk_id)
        if any("\n" in line or "\r" in line for line in new):
            raise ValueError("a new line has a line terminator in it")
        step = self._begin((hunk,))
        hunk.rewrite(hunk.old, new)
        hunk.own = True
        self._end(step)
        self._restructured(hunk.path)

    # Used by the edits package only.

    def open(self, path: str, start: int) -> Hunk:
        """A new streaming hunk."""
        return self._new(path, start, None)

    def settle(self, hunk: Hunk, *, conflict: str = "") -> None:
        """A streaming hunk is complete; it stays quarantined if it was."""
        if conflict:
            hunk.state = HunkState.CONFLICT
            hunk.note = conflict
        elif hunk.state is HunkState.STREAMING:
            hunk.state = HunkState.SETTLED
        self.touch()

    def supersede(self, hunk: Hunk) -> None:
        """A later rewrite takes the place of the hunk."""
        hunk.state = HunkState.SUPERSEDED
        self.touch()

    def reinstate(self, hunk: Hunk) -> None:
        """The rewrite that was to take the place of the hunk never came to it."""
        hunk.state = HunkState.SETTLED
        self.touch()

    def detach(self, hunk: Hunk) -> None:
        """The place of a decided hunk is rewritten: its decision stands."""
        hunk.anchored = False
        self.touch()

    def attach(self, hunk: Hunk) -> None:
        """A hunk that was detached has its place again."""
        hunk.anchored = True
        self.touch()

    def forget_splits(self, hunk_ids: Iterable[int]) -> None:
        """Hunks came to lie in different segments: they cannot be joined again."""
        parted = set(hunk_ids)
        self._redo[:] = [s for s in self._redo if not _parts(s, parted)]
        for step in reversed(self._undo):
            if _parts(step, parted) and step.parent is not None:
                parted.add(step.parent.id)  # it stays away, and so cannot be joined either
                step.forget_split()
        self._undo[:] = [step for step in self._undo if not step.empty]

    def touch(self) -> None:
        """Note a change."""
        self.version += 1

    def show_in(self, path: str, picture: Picture) -> None:
        """From now on the hunks of a path are rows of this picture."""
        self._pictures[path] = picture

    def _new(self, path: str, start: int, rank: tuple[int, ...] | None) -> Hunk:
        hunk = Hunk(self._next_id, path, start, rank)
        self._next_id += 1
        self._hunks[hunk.id] = hunk
        self._by_path.setdefault(path, []).append(hunk)
        self.touch()
        return hunk

    def _splittable(self, hunk_id: int) -> Hunk:
        hunk = self.get(hunk_id)
        if not hunk.decidable:
            raise UndecidableError(_why_undecidable(hunk))
        if hunk.state is not HunkState.SETTLED or hunk.held != hunk.old:
            raise UndecidableError(f"Hunk {hunk_id} is decided already; undo the decision first.")
        return hunk

    def _cut(self, hunk: Hunk, cuts: Sequence[tuple[int, int]], step: Step) -> tuple[Hunk, ...]:
        points = [(0, 0), *cuts, (hunk.deleted, hunk.added)]
        if any(a > c or b > d for (a, b), (c, d) in pairwise(points)):
            raise ValueError(f"the cuts {list(cuts)} do not lie in hunk {hunk.id} in order")
        children: list[Hunk] = []
        for (a, b), (c, d) in pairwise(points):
            if (a, b) == (c, d):
                continue
            child = self._new(hunk.path, hunk.start + a, (*hunk.rank, len(children)))
            child.rewrite(hunk.old[a:c], hunk.new[b:d])
            child.place(hunk.start + a, hunk.start + c)
            child.match_level, child.own = hunk.match_level, hunk.own
            child.state = HunkState.SUPERSEDED  # as it was before this step, for undo
            step.before[child.id] = Snapshot(child)
            child.state = HunkState.SETTLED
            children.append(child)
        hunk.state = HunkState.SUPERSEDED
        step.parent, step.children = hunk, tuple(children)
        return step.children

    def _begin(self, hunks: Iterable[Hunk]) -> Step:
        step = Step()
        step.before = {hunk.id: Snapshot(hunk) for hunk in hunks}
        return step

    def _end(self, step: Step) -> None:
        step.after = {hunk_id: Snapshot(self.get(hunk_id)) for hunk_id in step.before}
        if step.empty:
            return
        try:
            self._check_overlap(step.after)
        except UndecidableError:
            self._restore(step.before)
            raise
        self._undo.append(step)
        self._redo.clear()
        self.touch()

    def _restore(self, snapshots: dict[int, Snapshot]) -> None:
        for hunk_id, snapshot in snapshots.items():
            hunk = self.get(hunk_id)
            hunk.state, hunk.note, hunk.own = snapshot.state, snapshot.note, snapshot.own
            hunk.displaced = snapshot.displaced
            if hunk.new != snapshot.new:
                hunk.rewrite(hunk.old, snapshot.new)

    def _travel(self, source: list[Step], target: list[Step]) -> tuple[Hunk, ...]:
        backwards = source is self._undo
        while source:
            step = source.pop()
            expected, wanted = (step.after, step.before) if backwards else (step.before, step.after)
            if backwards:
                self._uncover(step)
            # A hunk may since have been superseded, put in conflict or detached: it stays as it is.
            possible = {
                i: wanted[i]
                for i in wanted
                if (hunk := self.get(i)).anchored and hunk.state is expected[i].state
            }
            if not possible or not self._place_split(
                step, backwards, whole=len(possible) == len(wanted)
            ):
                continue
            present = {i: Snapshot(self.get(i)) for i in possible}
            self._restore(possible)
            try:
                self._check_overlap(possible)
            except UndecidableError:
                self._restore(present)
                source.append(step)
                raise
            target.append(step)
            self.touch()
            changed = tuple(self.get(i) for i in possible)
            for path in {h.path for h in changed if present[h.id].restructured(h)}:
                self._restructured(path)
            if not backwards:
                for hunk in changed:
                    if hunk.state is HunkState.ACCEPTED and hunk.path in self._pictures:
                        self._pictures[hunk.path].cover_again(hunk)
            return changed
        return ()

    def _as_left(self, hunk: Hunk, after: Snapshot) -> bool:
        """Whether a hunk is as a step left it and part of the file, seen or covered."""
        accepted = hunk.state is HunkState.ACCEPTED and hunk.path in self._pictures
        return hunk.state is after.state and (hunk.anchored or accepted)

    def _uncover(self, step: Step) -> None:
        """Bring the accepted hunks of a step back into the picture where that can be."""
        for hunk_id, after in step.after.items():
            hunk = self.get(hunk_id)
            if not hunk.anchored and self._as_left(hunk, after):
                picture = self._pictures[hunk.path]
                if picture.obstacle(hunk) is None:
                    picture.uncover(hunk)

    def _place_split(self, step: Step, backwards: bool, *, whole: bool) -> bool:
        """Give the hunks that a step brings back their present positions; False if impossible."""
        parent, children = step.parent, step.children
        if parent is None:
            return True
        if backwards:
            if not whole or any(a.stop != b.start for a, b in pairwise(children)):
                return False
            held = tuple(line for child in children for line in child.held)
            parent.place(children[0].start, children[-1].stop, held)
            return True
        if parent.held != parent.old:
            return False
        at = parent.start
        for child in children:
            child.place(at, at + child.deleted)
            at = child.stop
        return whole

    def _check_overlap(self, hunk_ids: Iterable[int]) -> None:
        for path in {self.get(i).path for i in hunk_ids}:
            before: Hunk | None = None
            for hunk in self.for_path(path):
                if hunk.edit() is None:
                    continue
                if before is not None and hunk.start < before.stop:
                    raise UndecidableError(
                        f"Hunks {before.id} and {hunk.id} change the same lines of {path}; "
                        "undo one of them first."
                    )
                before = hunk

    def _restructured(self, path: str) -> None:
        self.touch()
        if (picture := self._pictures.get(path)) is not None:
            picture.restructured()


def _parts(step: Step, hunk_ids: set[int]) -> bool:
    """Whether a step made one of these hunks by splitting another."""
    return any(child.id in hunk_ids for child in step.children)


def _why_undecidable(hunk: Hunk) -> str:
    reasons = {
        HunkState.STREAMING: "is still being written; it can be decided as soon as it settles",
        HunkState.CONFLICT: "is in conflict with a change to the file; ask for the edit again",
        HunkState.QUARANTINED: "is quarantined; release it first",
        HunkState.SUPERSEDED: "was superseded by a later edit",
    }
    if hunk.displaced:
        return f"Hunk {hunk.id} was in conflict when it was rejected; undo that first."
    if hunk.withheld and hunk.state is HunkState.REJECTED:
        return f"Hunk {hunk.id} was quarantined when it was rejected; undo that and release it."
    reason = reasons.get(hunk.state, "lies in lines that were rewritten since")
    return f"Hunk {hunk.id} {reason}."
