"""The store of a session's hunks, which owns every decision about them.

Other parts read a ``Hunk``; only the ``HunkStore`` changes one, so undo, conflicts and the version
number can be relied on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from midstream.edits.documents import LineEdit
from midstream.edits.hunks import (
    HoldReason,
    Hunk,
    HunkState,
    Move,
    Obstacle,
    Picture,
    cuts_around,
    part_behind,
)


class UndecidableError(ValueError):
    """The hunk cannot be decided in its present state; the message says why."""


class _Decision(NamedTuple):
    """What an undoable step can change in a hunk."""

    state: HunkState
    note: str
    new: tuple[str, ...]
    own: bool
    displaced: bool
    hold: HoldReason | None

    def same(self, other: _Decision) -> bool:
        return self[:3] == other[:3]

    def restructured(self, hunk: Hunk) -> bool:
        """Whether the hunk has other lines since, or came on screen or left it."""
        superseded = HunkState.SUPERSEDED
        moved = (self.state is superseded) != (hunk.state is superseded)
        return moved or self.new != hunk.new or self.displaced != hunk.displaced


class HunkCounts(NamedTuple):
    """How many hunks there are, of a file or of all files.

    Those whose place a later answer took count only as accepted, or as decided.

    Attributes:
        undecided: They can be decided.
        accepted: Accepted.
        kept: Those of them that another program has written.
        rejected: Rejected.
        put_back: Those of them that another program had written.
        conflicts: In conflict.
        held: Held back by the guard.
        decided: Accepted or rejected.
        waiting: See ``HunkStore.waiting``.
        live: They have a place in the file.
        external: Those of them that another program has written.
        added: Lines that hunks which are not rejected add.
        deleted: Lines that they remove.
    """

    undecided: int = 0
    accepted: int = 0
    kept: int = 0
    rejected: int = 0
    put_back: int = 0
    conflicts: int = 0
    held: int = 0
    decided: int = 0
    waiting: int = 0
    live: int = 0
    external: int = 0
    added: int = 0
    deleted: int = 0

    @property
    def only_external(self) -> bool:
        """Whether some have a place in the file, and another program has written all of these."""
        return 0 < self.live == self.external

    @classmethod
    def of(cls, hunks: Iterable[Hunk]) -> HunkCounts:
        """Count hunks."""
        hunks = list(hunks)
        live = [hunk for hunk in hunks if hunk.live]
        states = Counter(hunk.state for hunk in live)
        kept = [hunk for hunk in live if hunk.state is not HunkState.REJECTED]
        return cls(
            undecided=states[HunkState.SETTLED],
            accepted=sum(hunk.state is HunkState.ACCEPTED for hunk in hunks),
            kept=sum(hunk.state is HunkState.ACCEPTED and hunk.external for hunk in hunks),
            rejected=states[HunkState.REJECTED],
            put_back=sum(hunk.state is HunkState.REJECTED and hunk.external for hunk in live),
            conflicts=states[HunkState.CONFLICT],
            held=states[HunkState.HELD],
            decided=sum(hunk.decided for hunk in hunks),
            waiting=sum(hunk.waits for hunk in live),
            live=len(live),
            external=sum(hunk.external for hunk in live),
            added=sum(hunk.added for hunk in kept),
            deleted=sum(hunk.deleted for hunk in kept),
        )

    @classmethod
    def total(cls, counts: Iterable[HunkCounts]) -> HunkCounts:
        """The sum of the counts of files."""
        return cls(*map(sum, zip(*counts, strict=True)))


class _FileHunks:
    """The hunks of one file.  What follows from them is kept until one of them changes.

    Args:
        path: The file.
        changed: Gets the path with every change.
    """

    __slots__ = ("_changed", "_counts", "_live", "_path", "_waiting", "records")

    def __init__(self, path: str, changed: set[str]) -> None:
        self.records: list[_Record] = []
        self._path = path
        self._changed = changed
        self.changed()

    def changed(self) -> None:
        """A hunk has changed."""
        self._changed.add(self._path)
        self._live: list[_Record] | None = None
        self._waiting: list[_Record] | None = None
        self._counts: HunkCounts | None = None

    @property
    def live(self) -> list[_Record]:
        """Those that are live, by position."""
        if self._live is None:
            self._live = sorted((h for h in self.records if h.live), key=lambda h: h.order)
        return self._live

    @property
    def waiting(self) -> list[_Record]:
        """Those that wait, by position."""
        if self._waiting is None:
            self._waiting = [hunk for hunk in self.live if hunk.waits]
        return self._waiting

    @property
    def counts(self) -> HunkCounts:
        """How many there are."""
        if self._counts is None:
            self._counts = HunkCounts.of(self.records)
        return self._counts


class _Record(Hunk):
    """A hunk as its store keeps it: the writable side.

    Attributes:
        file: The hunks of its file, which learn of every change.
    """

    __slots__ = ("file",)

    file: _FileHunks

    @property
    def decision(self) -> _Decision:
        return _Decision(self._state, self._note, self.new, self._own, self._displaced, self._hold)

    def decide(self, decision: _Decision) -> None:
        self._state, self._note, _, self._own, self._displaced, self._hold = decision
        self._postponed = None
        if self.new != decision.new:
            self._new = list(decision.new)
        self.file.changed()

    def set_state(self, state: HunkState, note: str | None = None) -> None:
        self._state = state
        self._postponed = None
        if note is not None:
            self._note = note
        self.file.changed()

    def set_hold(self, hold: HoldReason | None) -> None:
        self._hold = hold
        self.file.changed()

    def set_anchored(self, anchored: bool) -> None:
        self._anchored = anchored
        self.file.changed()

    def set_postponed(self, note: str | None) -> None:
        self._postponed = note
        self.file.changed()

    def set_call(self, call: int, *, due: bool = False) -> None:
        self._call = call
        self._due = due
        self.file.changed()

    def set_displaced(self, displaced: bool) -> None:
        self._displaced = displaced
        self.file.changed()

    def add(self, line: str) -> None:
        self._new.append(line)
        self.file.changed()

    def remove(self, line: str, stop: int) -> None:
        self._old.append(line)
        self._stop = stop
        self.file.changed()

    def place(self, start: int, stop: int, base_lines: tuple[str, ...] | None = None) -> None:
        self._start = start
        self._stop = stop
        self._base_lines = None if base_lines == self.old else base_lines
        self.file.changed()

    def rewrite(self, old: Iterable[str], new: Iterable[str], *, own: bool) -> None:
        self._old = list(old)
        self._new = list(new)
        self._own = own
        self.file.changed()

    def set_match_level(self, level: int) -> None:
        self._match_level = level
        self.file.changed()


class _Step:
    """One undoable step: decisions before and after, and for a split which hunk became which."""

    def __init__(self) -> None:
        self.before: dict[int, _Decision] = {}
        self.after: dict[int, _Decision] = {}
        self.parent: _Record | None = None
        self.children: tuple[_Record, ...] = ()

    @property
    def empty(self) -> bool:
        return all(before.same(self.after[i]) for i, before in self.before.items())

    def split_off(self, hunk_ids: set[int]) -> bool:
        """Whether this step made one of these hunks by splitting another."""
        return any(child.id in hunk_ids for child in self.children)

    def forget_split(self) -> None:
        """Keep the decisions about the parts, which can no longer be joined."""
        if self.parent is None:
            return
        del self.before[self.parent.id], self.after[self.parent.id]
        for child in self.children:
            before = self.before[child.id]
            self.before[child.id] = before._replace(state=HunkState.SETTLED)
        self.parent, self.children = None, ()


class HunkStore:
    """All hunks of a pairing session, and the single owner of their decisions.

    Attributes:
        version: Grows with every change.
    """

    def __init__(self) -> None:
        self.version = 0
        self._hunks: dict[int, _Record] = {}
        self._files: dict[str, _FileHunks] = {}
        self._next_id = 1
        self._waiting: tuple[int, list[_Record]] = -1, []
        """All that wait, and at which version."""
        self._counts: tuple[int, HunkCounts] = -1, HunkCounts()
        """How many there are, and at which version."""
        self._waiting_by_path: dict[str, int] = {}
        self._changed: set[str] = set()
        """Files whose hunks have changed since those were counted."""
        self._undo: list[_Step] = []
        self._redo: list[_Step] = []
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
        return [*self._of(path).live]

    def rejected(self, path: str) -> frozenset[int]:
        """The rejected hunks of a file."""
        return frozenset(h.id for h in self.for_path(path) if h.state is HunkState.REJECTED)

    def undecided(self, path: str | None = None) -> list[Hunk]:
        """Settled hunks that wait for a decision, by file and position."""
        return [hunk for hunk in self.waiting(path) if hunk.state is HunkState.SETTLED]

    def waiting(self, path: str | None = None) -> list[Hunk]:
        """Hunks that wait for the user, by file and position.

        Those are the undecided ones, and lines that another program has written and the guard holds
        back: they are on disk already, so they cannot be left out of sight.
        """
        if path is not None:
            return [*self._of(path).waiting]
        if self._waiting[0] != self.version:  # asked for several times with each frame
            found = [hunk for file in self._files.values() for hunk in file.waiting]
            self._waiting = self.version, found
        return [*self._waiting[1]]

    def waiting_by_path(self) -> Mapping[str, int]:
        """How many hunks wait, by file, where any do; costs no more than what has changed."""
        for path in self._changed:
            if count := self._files[path].counts.waiting:
                self._waiting_by_path[path] = count
            else:
                self._waiting_by_path.pop(path, None)
        self._changed.clear()
        return self._waiting_by_path

    def counts(self, path: str | None = None) -> HunkCounts:
        """How many hunks there are, of one file or of all."""
        if path is not None:
            return self._of(path).counts
        if self._counts[0] != self.version:
            files = [file.counts for file in self._files.values()]
            self._counts = self.version, HunkCounts.total([HunkCounts(), *files])
        return self._counts[1]

    def postponed(self) -> list[Hunk]:
        """Hunks that will be rejected later, by file and position."""
        files = self._files.values()
        return [hunk for file in files for hunk in file.live if hunk.postponed is not None]

    @property
    def steps(self) -> int:
        """How many steps can be undone."""
        return len(self._undo)

    # Decisions

    def postpone(self, hunk_ids: Iterable[int], note: str | None) -> None:
        """Undecided hunks will be rejected later (``None``: will not); a decision ends that."""
        for hunk_id in hunk_ids:
            self._hunks[hunk_id].set_postponed(note)
        self.touch()

    def accept(self, hunk_id: int) -> None:
        """Accept a hunk.

        Raises:
            UndecidableError: Its state does not allow it, or it overlaps another accepted change.
        """
        self.decide((hunk_id,), HunkState.ACCEPTED)

    def reject(self, hunk_id: int, note: str = "") -> None:
        """Reject a hunk, with a reason or without; raises as ``accept``.

        A hunk that is held back can be rejected too, and one in conflict: it leaves the screen, and
        the file's own lines stay.
        """
        self.decide((hunk_id,), HunkState.REJECTED, note)

    def decide(self, hunk_ids: Iterable[int], state: HunkState, note: str = "") -> None:
        """Decide several hunks as one undoable step: all or none.

        Args:
            hunk_ids: The hunks.
            state: ACCEPTED, REJECTED or SETTLED (undecided).
            note: Why.

        Raises:
            UndecidableError: One of them cannot be decided.
        """
        hunks = [self._hunks[hunk_id] for hunk_id in hunk_ids]
        for hunk in hunks:
            rejected = state is HunkState.REJECTED
            if not (hunk.rejectable if rejected else hunk.decidable and not hunk.hold):
                raise UndecidableError(_why_undecidable(hunk))
        step = self._begin(hunks)
        for hunk in hunks:
            hunk.set_displaced(hunk.state is HunkState.CONFLICT)
            hunk.set_state(state, note)
        self._end(step)
        for path in {hunk.path for hunk in hunks if hunk.displaced}:
            self._restructured(path)

    def undo(self) -> tuple[Hunk, ...]:
        """Undo the last step; returns the hunks that changed, ``()`` if there is nothing to undo.

        Raises:
            UndecidableError: A later change is in the way.
        """
        return self._travel(self._undo, self._redo)

    @property
    def undoable(self) -> bool:
        """Whether there is a step to undo whose hunks are as it left them."""
        return any(
            self._as_left(self._hunks[hunk_id], after)
            for step in reversed(self._undo)
            for hunk_id, after in step.after.items()
        )

    @property
    def stuck(self) -> tuple[Hunk, Obstacle] | None:
        """An accepted hunk that ``undo`` would leave unchanged, and why."""
        for step in reversed(self._undo):
            mine = [h for i, a in step.after.items() if self._as_left(h := self.get(i), a)]
            for hunk in mine:
                why = None if hunk.anchored else self._pictures[hunk.path].obstacle(hunk)
                if why is not None:
                    return hunk, why
            if mine:
                break
        return None

    @property
    def redoable(self) -> bool:
        """Whether a step was undone."""
        return bool(self._redo)

    def redo(self) -> tuple[Hunk, ...]:
        """Do the last undone step again; raises as ``undo``."""
        return self._travel(self._redo, self._undo)

    def accepted_edits(self, path: str) -> list[LineEdit]:
        """The edits of the base that follow from the decisions, by position."""
        return [edit for hunk in self.for_path(path) if (edit := hunk.edit()) is not None]

    def hold_back(self, hunk_id: int, why: HoldReason) -> None:
        """Hold a hunk back.  One that still streams stays held back when it settles.

        Raises:
            UndecidableError: It is accepted, in conflict, superseded or off screen.
        """
        hunk = self._hunks[hunk_id]
        beyond = (HunkState.ACCEPTED, HunkState.CONFLICT, HunkState.SUPERSEDED)
        if hunk.state in beyond or hunk.displaced:
            raise UndecidableError(_why_undecidable(hunk))
        hunk.set_state(HunkState.HELD, str(why))
        hunk.set_hold(why)
        self.touch()

    def release(self, hunk_id: int, note: str = "", *, undoable: bool = False) -> None:
        """Let a hunk be decided that was held back.

        Args:
            hunk_id: The hunk.
            note: Why.
            undoable: Whether it is a step that can be undone: the user's own decision is, a change
                of the guard's mind is not.

        Raises:
            UndecidableError: It is not held back.
        """
        hunk = self._hunks[hunk_id]
        if hunk.state is not HunkState.HELD:
            raise UndecidableError(f"Hunk {hunk_id} is not held back, so it cannot be released.")
        step = self._begin((hunk,))
        hunk.set_state(HunkState.SETTLED, note)
        hunk.set_hold(None)
        if undoable:
            self._end(step)
        else:
            self.touch()

    # Calls of agents' tools

    def of_call(self, call: int) -> list[Hunk]:
        """The live hunks of a call that is not over, by file and position."""
        return [hunk for file in self._files.values() for hunk in file.live if hunk.call == call]

    def answer(self, call: int) -> None:
        """A call was answered: the agent writes what was accepted of it."""
        for hunk in self._hunks.values():
            if hunk.call == call:
                kept = hunk.live and hunk.state is HunkState.ACCEPTED
                hunk.set_call(call if kept else 0, due=kept)
        self.touch()

    def drop_call(self, call: int) -> tuple[Hunk, ...]:
        """Drop the undecided hunks of a call, which will not be written; returns them."""
        gone: list[Hunk] = []
        for hunk in self._hunks.values():
            if hunk.call == call:
                if hunk.live:
                    gone.append(hunk)
                    hunk.set_state(HunkState.SUPERSEDED)
                hunk.set_call(0)
        for path in {hunk.path for hunk in gone}:
            self._restructured(path)
        return tuple(gone)

    @property
    def calls(self) -> frozenset[int]:
        """The calls that are not over."""
        return frozenset(hunk.call for hunk in self._hunks.values() if hunk.call)

    # Structure

    def split(self, hunk_id: int, cuts: Sequence[tuple[int, int]]) -> tuple[Hunk, ...]:
        """Split an undecided hunk into consecutive ones, as one undoable step.

        Args:
            hunk_id: The hunk; it becomes superseded.
            cuts: For each cut, how many old and how many new lines lie before it, ascending.

        Returns:
            The new hunks, in order, without empty parts.

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
        """Decide some lines of an undecided hunk as one step: cut them out and decide that part.

        Args:
            hunk_id: The hunk.
            start: First line of the range, counting the old lines and then the new ones.
            stop: Line after the range.
            state: ACCEPTED or REJECTED.
            note: Why.

        Returns:
            The hunks that replace it, in order.

        Raises:
            UndecidableError: The hunk is not waiting for a decision.
            ValueError: The range is empty or out of range.
        """
        hunk = self._splittable(hunk_id)
        if not 0 <= start < stop <= hunk.deleted + hunk.added:
            raise ValueError(f"lines {start}-{stop} are not lines of hunk {hunk_id}")
        cuts, first = cuts_around(hunk, start, stop, accept=state is HunkState.ACCEPTED)
        step = self._begin((hunk,))
        children = self._cut(hunk, cuts, step)
        chosen = part_behind(first, children)
        for child in children:
            if child is chosen:
                child.set_state(state, note)
        self._end(step)
        self._restructured(hunk.path)
        return children

    def edit(self, hunk_id: int, new: Sequence[str]) -> None:
        """Replace the new lines of an undecided hunk by the user's own, as one undoable step.

        Raises:
            UndecidableError: The hunk is not waiting for a decision.
            ValueError: A line contains a line terminator.
        """
        hunk = self._splittable(hunk_id)
        if any("\n" in line or "\r" in line for line in new):
            raise ValueError("a new line has a line terminator in it")
        step = self._begin((hunk,))
        hunk.rewrite(hunk.old, new, own=True)
        self._end(step)
        self._restructured(hunk.path)

    # Used by the edits package only.

    def open(self, path: str, start: int, match_level: int = 0) -> Hunk:
        """A new streaming hunk."""
        hunk = self._new(path, start)
        hunk.set_match_level(match_level)
        return hunk

    def add_external(self, path: str, start: int, old: Sequence[str], new: Sequence[str]) -> Hunk:
        """A settled hunk whose new lines another program has written, at base line ``start``."""
        hunk = self._new(path, start, external=True)
        hunk.rewrite(old, new, own=False)
        hunk.place(start, start + len(new), hunk.new)
        hunk.set_state(HunkState.SETTLED)
        return hunk

    def add_proposed(self, path: str, edit: LineEdit, old: Sequence[str], call: int) -> Hunk:
        """A settled hunk that a call of an agent's tool proposes, at its place in the base."""
        hunk = self._new(path, edit.start)
        hunk.rewrite(old, edit.lines, own=False)
        hunk.place(edit.start, edit.stop)
        hunk.set_call(call)
        hunk.set_state(HunkState.SETTLED)
        return hunk

    def written(self, hunk: Hunk) -> None:
        """The agent has written a hunk that it proposed: from now on it is like any other."""
        self._hunks[hunk.id].set_call(0)

    def add_line(self, hunk: Hunk, line: str) -> None:
        """A streaming hunk adds a line."""
        self._hunks[hunk.id].add(line)
        self.touch()

    def remove_line(self, hunk: Hunk, line: str, stop: int) -> None:
        """A streaming hunk removes a line, and reaches to the base line ``stop`` with it."""
        self._hunks[hunk.id].remove(line, stop)
        self.touch()

    def place(
        self, hunk: Hunk, start: int, stop: int, base_lines: tuple[str, ...] | None = None
    ) -> None:
        """Move a hunk; ``base_lines`` (default: its old lines) is what the base has there."""
        self._hunks[hunk.id].place(start, stop, base_lines)

    def settle(self, hunk: Hunk, *, conflict: str = "") -> None:
        """A streaming hunk is complete; if it was held back, it stays so."""
        if conflict:
            self._hunks[hunk.id].set_state(HunkState.CONFLICT, conflict)
        elif hunk.state is HunkState.STREAMING:
            self._hunks[hunk.id].set_state(HunkState.SETTLED)
        self.touch()

    def supersede(self, hunk: Hunk) -> None:
        """A later rewrite takes the place of the hunk."""
        self._hunks[hunk.id].set_state(HunkState.SUPERSEDED)
        self.touch()

    def reinstate(self, hunk: Hunk, state: HunkState = HunkState.SETTLED) -> None:
        """Give a hunk back the place and the state that a later rewrite took from it."""
        self._hunks[hunk.id].set_state(state)
        self._hunks[hunk.id].set_anchored(True)
        self.touch()

    def detach(self, hunk: Hunk) -> None:
        """The place of a decided hunk is rewritten; its decision stands."""
        self._hunks[hunk.id].set_anchored(False)
        self.touch()

    def attach(self, hunk: Hunk, start: int, stop: int) -> None:
        """The base has a detached hunk's accepted lines again: give it its place back."""
        self._hunks[hunk.id].place(start, stop, hunk.new)
        self._hunks[hunk.id].set_anchored(True)
        self.touch()

    def move(self, moves: Iterable[Move]) -> None:
        """Apply what a rebase found for the hunks of a file, in one step.

        It cannot be undone, since the file changed and no decision; earlier steps can still be
        undone for hunks whose state stays.
        """
        for move in moves:
            hunk = self._hunks[move.hunk.id]
            if move.detached:
                hunk.set_anchored(False)
                continue
            if move.state is not None:
                hunk.set_state(move.state, move.note)
            hunk.place(move.start, move.stop, move.base_lines)
        self.touch()

    def forget_splits(self, hunk_ids: Iterable[int]) -> None:
        """Hunks are in different segments now, so splits between them cannot be undone."""
        parted = set(hunk_ids)
        self._redo[:] = [step for step in self._redo if not step.split_off(parted)]
        for step in reversed(self._undo):
            if step.split_off(parted) and step.parent is not None:
                parted.add(
                    step.parent.id
                )  # it stays split, so it cannot be joined with others either
                step.forget_split()
        self._undo[:] = [step for step in self._undo if not step.empty]

    def _of(self, path: str) -> _FileHunks:
        return self._files.get(path) or _FileHunks(path, set())

    def touch(self) -> None:
        """Count a change."""
        self.version += 1

    def show_in(self, path: str, picture: Picture) -> None:
        """Show the hunks of a path in this picture from now on."""
        self._pictures[path] = picture

    def _new(
        self,
        path: str,
        start: int,
        rank: tuple[int, ...] | None = None,
        *,
        external: bool = False,
    ) -> _Record:
        hunk = _Record(self._next_id, path, start, rank, external=external)
        self._next_id += 1
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = _FileHunks(path, self._changed)
        hunk.file = file
        file.records.append(hunk)
        file.changed()
        self._hunks[hunk.id] = hunk
        self.touch()
        return hunk

    def _splittable(self, hunk_id: int) -> _Record:
        hunk = self._hunks[hunk_id]
        if not hunk.decidable:
            raise UndecidableError(_why_undecidable(hunk))
        if hunk.state is not HunkState.SETTLED or hunk.base_lines != hunk.undecided_lines:
            raise UndecidableError(f"Hunk {hunk_id} is decided already; undo the decision first.")
        return hunk

    def _cut(
        self, hunk: _Record, cuts: Sequence[tuple[int, int]], step: _Step
    ) -> tuple[_Record, ...]:
        points = [(0, 0), *cuts, (hunk.deleted, hunk.added)]
        if any(a > c or b > d for (a, b), (c, d) in pairwise(points)):
            raise ValueError(f"the cuts {list(cuts)} do not lie in hunk {hunk.id} in order")
        children: list[_Record] = []
        for (a, b), (c, d) in pairwise(points):
            if (a, b) == (c, d):
                continue
            rank = (*hunk.rank, len(children))
            child = self._new(hunk.path, hunk.start, rank, external=hunk.external)
            child.rewrite(hunk.old[a:c], hunk.new[b:d], own=hunk.own)
            first, last = (b, d) if hunk.external else (a, c)
            child.place(hunk.start + first, hunk.start + last, child.undecided_lines)
            child.set_match_level(hunk.match_level)
            child.set_call(hunk.call)
            child.set_state(HunkState.SETTLED)
            # Undoing the split makes it as if it had been superseded all along.
            step.before[child.id] = child.decision._replace(state=HunkState.SUPERSEDED)
            children.append(child)
        hunk.set_state(HunkState.SUPERSEDED)
        step.parent, step.children = hunk, tuple(children)
        return step.children

    def _begin(self, hunks: Iterable[_Record]) -> _Step:
        step = _Step()
        step.before = {hunk.id: hunk.decision for hunk in hunks}
        return step

    def _end(self, step: _Step) -> None:
        step.after = {hunk_id: self._hunks[hunk_id].decision for hunk_id in step.before}
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

    def _restore(self, decisions: dict[int, _Decision]) -> None:
        for hunk_id, decision in decisions.items():
            self._hunks[hunk_id].decide(decision)

    def _travel(self, source: list[_Step], target: list[_Step]) -> tuple[Hunk, ...]:
        backwards = source is self._undo
        while source:
            step = source.pop()
            expected, wanted = (step.after, step.before) if backwards else (step.before, step.after)
            if backwards:
                self._uncover(step)
            # A hunk that was superseded, in conflict or detached since then stays as it is.
            possible = {
                i: wanted[i]
                for i in wanted
                if (hunk := self._hunks[i]).anchored and hunk.state is expected[i].state
            }
            if not possible or not self._place_split(
                step, backwards, whole=len(possible) == len(wanted)
            ):
                continue
            present = {i: self._hunks[i].decision for i in possible}
            self._restore(possible)
            try:
                self._check_overlap(possible)
            except UndecidableError:
                self._restore(present)
                source.append(step)
                raise
            target.append(step)
            self.touch()
            changed = tuple(self._hunks[i] for i in possible)
            for path in {h.path for h in changed if present[h.id].restructured(h)}:
                self._restructured(path)
            if not backwards:
                for hunk in changed:
                    if hunk.state is HunkState.ACCEPTED and hunk.path in self._pictures:
                        self._pictures[hunk.path].cover_again(hunk)
            return changed
        return ()

    def _as_left(self, hunk: Hunk, after: _Decision) -> bool:
        """Whether a hunk is as a step left it and part of the file, seen or covered."""
        accepted = hunk.state is HunkState.ACCEPTED and hunk.path in self._pictures
        return hunk.state is after.state and (hunk.anchored or accepted)

    def _uncover(self, step: _Step) -> None:
        """Bring the accepted hunks of a step back into the picture where that can be."""
        for hunk_id, after in step.after.items():
            hunk = self.get(hunk_id)
            if not hunk.anchored and self._as_left(hunk, after):
                picture = self._pictures[hunk.path]
                if picture.obstacle(hunk) is None:
                    picture.uncover(hunk)

    def _place_split(self, step: _Step, backwards: bool, *, whole: bool) -> bool:
        """Give the hunks that a step brings back their present positions; False if impossible."""
        parent, children = step.parent, step.children
        if parent is None:
            return True
        if backwards:
            if not whole or any(a.stop != b.start for a, b in pairwise(children)):
                return False
            base_lines = tuple(line for child in children for line in child.base_lines)
            parent.place(children[0].start, children[-1].stop, base_lines)
            return True
        if parent.base_lines != parent.undecided_lines:
            return False
        at = parent.start
        for child in children:
            lines = child.undecided_lines
            child.place(at, at + len(lines), lines)
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


def _why_undecidable(hunk: Hunk) -> str:
    reasons = {
        HunkState.STREAMING: "is still being written; it can be decided as soon as it is complete",
        HunkState.CONFLICT: "is in conflict with a change to the file; ask for the edit again",
        HunkState.HELD: "is held back by the guard; release it first",
        HunkState.SUPERSEDED: "was replaced by a later edit",
    }
    if hunk.displaced:
        return f"Hunk {hunk.id} was in conflict when it was rejected; undo that first."
    if hunk.hold and hunk.state is HunkState.REJECTED:
        return f"Hunk {hunk.id} was held back when it was rejected; undo that and release it."
    reason = reasons.get(hunk.state, "lies in lines that were rewritten since")
    return f"Hunk {hunk.id} {reason}."
