"""What a model proposes for one file: streamed rewrites of line ranges over a base text.

Base, proposal and disk are three different texts: line numbers refer to the base, the proposal is
the base with segments over it, and the disk text becomes the base by ``advance``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

from midstream.edits.documents import LineEdit, NewlineFolder, SourceText, join_lines
from midstream.edits.external import ExternalChange, ExternalWrite, waiting_hunks, waits
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import Hunk, HunkState, Move, Obstacle
from midstream.edits.indent import Dedented, IndentRepair
from midstream.edits.lcs import line_edits
from midstream.edits.origin import Origin
from midstream.edits.rebase import CoveredHunks, Rebase
from midstream.edits.segment import Segment
from midstream.edits.stand_ins import is_whole

__all__ = ["FileProposal", "Segment"]


class FileProposal:
    """The proposal for one file.

    Attributes:
        path: The file's name, as hunks have it.
        base: The text that all line numbers refer to.
        hunks: The store that owns the decisions, shared by the files of a session.
        segments: The rewrites, by position; they do not overlap.
        version: Grows with every change of the rows.
        vanishes: Whether decisions make or delete the file: then one that leaves no line leaves no
            file, either.
        programs: Whether the file could be run before another program changed its lines, and can
            be since, as far as it is known.
    """

    def __init__(self, path: str, base: SourceText, hunks: HunkStore) -> None:
        self.path = path
        self.base = base
        self.vanishes = base.missing
        self.hunks = hunks
        self.segments: list[Segment] = []
        self.version = 0
        self._current: Segment | None = None
        self._last: Segment | None = None  # the segment that was begun last
        self._begun = 0
        self._superseded: list[Hunk] = []  # by the current segment, while its base is the same
        self._covered = CoveredHunks()
        self._newlines = NewlineFolder()
        self._former: SourceText | None = None  # before another program changed it
        self.programs: tuple[bool | None, bool | None] = (None, None)
        self._program: bool | None = None  # whether the origin can be run, beside its lines
        self._origin = Origin(base)
        self._marks: list[Origin] = []
        self._decided = Origin(base)  # the last reviewed text while nothing waited
        self._newest = 0  # the newest hunk at that time
        hunks.show_in(path, self)

    @property
    def current(self) -> Segment | None:
        """The segment that streams or is frozen, if any."""
        return self._current

    def begin(
        self,
        start: int,
        stop: int,
        *,
        match_level: int = 0,
        repair_indentation: bool = False,
        tight: bool = False,
    ) -> Segment:
        """Open a rewrite of base lines ``[start, stop)``.

        Earlier decisions are folded into the base first; ``start`` and ``stop`` refer to the base
        before that.  Undecided hunks that overlap the range are superseded.  Decisions in the range
        stand, and ``undo`` can take an accept back as long as its lines stand.

        Args:
            start: First line of the region.
            stop: Line after the region; equal to ``start`` for an insertion.
            match_level: How leniently the region was found.
            repair_indentation: Whether to correct a uniform mistake in the rewrite's indentation
                (for models that were not trained on the format).
            tight: Leave out insertions at either end of the range.

        Raises:
            ValueError: A segment is open, or the range is not in the base.
        """
        if self._current is not None:
            raise ValueError(f"a rewrite of {self.path} is open already")
        if not 0 <= start <= stop <= len(self.base.lines):
            raise ValueError(f"{self.path} has no lines {start}-{stop}")
        self._note_decided()
        if self.hunks.accepted_edits(self.path):
            start, stop = self._advance(self.composed(), start, stop)
        shown = self.proposed_region(start, stop) if repair_indentation else ""
        self._superseded = []
        for hunk in self.hunks.for_path(self.path):
            if _overlaps(hunk, start, stop, tight=tight):
                if hunk.decided:
                    self.hunks.detach(hunk)
                    if hunk.state is HunkState.ACCEPTED:
                        self._covered.add(hunk, self.base.lines)
                else:
                    if hunk.decidable:
                        self._superseded.append(hunk)
                    self.hunks.supersede(hunk)
        self._clear(start, stop)
        segment = Segment(self.path, self.base, start, stop, self.hunks)
        self._begun += 1
        segment.serial = self._begun
        segment.match_level = match_level
        if repair_indentation:
            margin = Dedented.of(shown).margin
            segment.repair = IndentRepair(self.base.lines[start:stop], margin=margin)
        self._current = self._last = segment
        self._newlines = NewlineFolder()
        self._insert(segment)
        return segment

    def feed(self, text: str) -> None:
        """Take the next part of the rewrite, in any chunking, with LF or CRLF line ends.

        Raises:
            ValueError: No segment is open, or it is frozen.
        """
        segment = self._streaming()
        folded = self._newlines.feed(text)
        if folded:
            segment.feed(folded)
            self.version += 1

    def freeze(self) -> str:
        r"""Stop: keep the lines whose place is decided, so that ``resume`` can continue after them.

        Later lines may be half of a replacement: the next answer may leave the other half out, and
        the old lines would stay beside the new ones.

        Returns:
            The kept text, each line ``"\n"`` terminated.

        Raises:
            ValueError: No segment is open.
        """
        segment = self._open_segment()
        # A held "\r" ended its line, whether or not "\n" would have followed.
        segment.feed(self._newlines.finish())
        segment.freeze()
        self.version += 1
        return segment.new_text

    def resume(self) -> None:
        """Continue after ``freeze``; the stream goes on after the kept text.

        Raises:
            ValueError: No segment is frozen.
        """
        segment = self._current
        if segment is None or not segment.frozen:
            raise ValueError(f"no rewrite of {self.path} is stopped, so none can be resumed")
        segment.frozen = False
        self.version += 1

    def finish(self) -> None:
        """The stream ended: everything settles, and unread lines of the region are deleted.

        Raises:
            ValueError: No segment is open, or it is frozen (``abandon`` ends a stopped stream).
        """
        segment = self._streaming()
        segment.feed(self._newlines.finish())
        segment.finish()
        self._current = None
        self.version += 1

    def abandon(self, *, settle_tail: bool = False) -> None:
        """The stream was stopped for good: unread lines and settled hunks stay.

        The line being written is dropped, and so are lines whose place is undecided.  Hunks that
        the rewrite superseded but did not reach wait for a decision again.

        Args:
            settle_tail: Make hunks of the undecided lines too, for the guard to hold back.  They
                settle against the old lines that they match or replace; no other unread line is
                deleted.

        Raises:
            ValueError: No segment is open.
        """
        segment = self._open_segment()
        segment.feed(self._newlines.finish())
        unread = segment.abandon(settle_tail=settle_tail)
        self._current = None
        own = map(self.hunks.get, segment.hunk_ids)
        # A hunk that touches the last block that was written is part of it.
        floor = unread.start + any(hunk.stop == unread.start for hunk in own)
        back = [h for h in self._superseded if floor <= h.start and h.stop <= unread.stop]
        for hunk in back:
            self.hunks.reinstate(hunk)
        if back:
            segment.adopt(back)
        self.version += 1

    def withdraw(self, segment: Segment) -> bool:
        """Take back a rewrite that is in the wrong place or of no use.

        Its undecided hunks are gone; hunks that it superseded wait for a decision again unless the
        base has changed since.

        Returns:
            False if part of it is decided or was rewritten since; then it stays.
        """
        if segment not in self.segments:
            return False
        hunks = [self.hunks.get(hunk_id) for hunk_id in segment.hunk_ids]
        if segment is self._current:
            segment.feed(self._newlines.finish())
            segment.abandon()
            hunks = [self.hunks.get(hunk_id) for hunk_id in segment.hunk_ids]
            self._current = None
        if any(hunk.decided or hunk.base_lines != hunk.old for hunk in hunks):
            self.version += 1
            return False
        self.hunks.forget_splits({hunk.id for hunk in hunks})
        for hunk in hunks:
            if hunk.live:
                self.hunks.supersede(hunk)
        self.segments.remove(segment)
        back = [h for h in self._superseded if segment.start <= h.start and h.stop <= segment.stop]
        if back and segment is self._last:
            for hunk in back:
                self.hunks.reinstate(hunk)
            place = Segment(self.path, self.base, segment.start, segment.stop, self.hunks)
            place.adopt(back)
            self._insert(place)
        self._superseded = []
        self.version += 1
        return True

    def unreviewed(self, start: int, stop: int, *, tight: bool = False) -> list[Hunk]:
        """Hunks of other programs that wait and that a rewrite of ``[start, stop)`` would hide.

        Their lines are on disk: once the rewrite is rejected, nothing would show them any more.
        """
        waiting = self.hunks.waiting(self.path)
        return [h for h in waiting if h.external and _overlaps(h, start, stop, tight=tight)]

    def composed(self) -> SourceText:
        """The base with the accepted hunks only: what belongs on disk."""
        back = (h for h in self.hunks.for_path(self.path) if h.external and h.edit() is not None)
        former = not self.base.lines or any(back)
        return self._with(self.hunks.accepted_edits(self.path), former=former)

    def _with(self, edits: Sequence[LineEdit], *, former: bool) -> SourceText:
        """The base with edits that follow from decisions.

        Args:
            edits: The edits.
            former: Whether the text goes back to its state before another program changed it, where
                nothing is left of that change. Properties that show in no line go back as well:
                whether there is a file, line ends, encoding, the final newline.
        """
        if not edits:
            return self.base
        text = self.base.replace(edits, self._newline)
        old = self._former
        alike = old is not None and (is_whole(old) == is_whole(text) or not text.lines)
        if former and old is not None and alike and old.lines == text.lines:
            return old
        return text if text.lines else text.gone(self.vanishes or is_whole(text))

    @property
    def former(self) -> SourceText | None:
        """The text of the file before another program changed or deleted it, if one did."""
        return self._former

    def known_texts(self) -> tuple[SourceText, ...]:
        """The base, the text for the disk, and the latter without the external hunks that wait."""
        return self.base, self.composed(), self.reviewed()

    def reviewed(
        self, *, without: Collection[int] = (), within: Collection[int] = ()
    ) -> SourceText:
        """The file without the external hunks that wait for a decision.

        Args:
            without: Ids of accepted hunks to leave out as well; their lines are in the base.
            within: Ids of undecided hunks to count as accepted; their lines are not in the base.
        """
        edits: list[LineEdit] = []
        for hunk in self.hunks.for_path(self.path):
            if hunk.id in within:
                edit = LineEdit(hunk.start, hunk.stop, hunk.new)
            elif hunk.id not in without and not waits(hunk):
                edit = hunk.edit()
            elif hunk.base_lines != hunk.old:
                edit = LineEdit(hunk.start, hunk.stop, hunk.old)
            else:
                edit = None
            if edit is not None:
                edits.append(edit)
        return self._with(edits, former=True)

    def proposed(self, edits: Sequence[LineEdit]) -> SourceText:
        """The base with edits that are proposed."""
        return self._with(edits, former=False)

    def accepted(self) -> tuple[SourceText, SourceText]:
        """The file without and with the accepted hunks; twice the same if there are none."""
        waiting = [hunk.id for hunk in self.hunks.for_path(self.path) if not hunk.decided]
        if not waiting:
            return self._origin.accepted(self.reviewed())
        # Where a decision was taken back, the form that it brought waits again.
        form = self._decided if min(waiting) > self._newest else self._origin
        return self._origin.accepted(self.reviewed(), form.text)

    def accepted_programs(self) -> tuple[bool | None, bool | None]:
        """Whether the file could be run without and with what was accepted, if that is known."""
        reviewed = self.reviewed()
        waiting = any(map(waits, self.hunks.for_path(self.path)))
        if is_whole(reviewed) or self._program is None:
            return self._origin.programs(reviewed)
        back = waiting or reviewed is self._former
        return self._program, self.programs[0 if back else 1]

    def mark(self) -> Origin:
        """Begin a second origin: what is accepted from now on can be told from earlier accepts."""
        mark = Origin(self.accepted()[1])
        self._marks.append(mark)
        return mark

    def unmark(self, mark: Origin) -> None:
        """Drop a mark."""
        self._marks.remove(mark)

    def proposed_region(self, start: int, stop: int) -> str:
        """Base lines ``[start, stop)`` with accepted and undecided settled hunks applied.

        Leaves out hunks that cross an end of the range (``cover`` widens a range so that there are
        none), and rejected, streaming, held back and conflicting ones.
        """
        lines: list[str] = []
        at = start
        for hunk in self.hunks.for_path(self.path):
            if not (start <= hunk.start and hunk.stop <= stop):
                continue
            if hunk.decidable and hunk.state is not HunkState.REJECTED:
                wanted = hunk.new
            elif (edit := hunk.edit()) is not None:
                wanted = edit.lines
            else:
                continue
            lines += self.base.lines[at : hunk.start]
            lines += wanted
            at = hunk.stop
        lines += self.base.lines[at:stop]
        return join_lines(lines)

    def cover(self, start: int, stop: int) -> tuple[int, int]:
        """The smallest range around ``[start, stop)`` whose ends cut through no live hunk."""
        hunks = self.hunks.for_path(self.path)
        while True:
            touched = [h for h in hunks if h.start < stop and h.stop > start]
            wider = (
                min([start, *(h.start for h in touched)]),
                max([stop, *(h.stop for h in touched)]),
            )
            if wider == (start, stop):
                return wider
            start, stop = wider

    def advance(
        self,
        new_base: SourceText,
        *,
        review: bool = False,
        programs: tuple[bool | None, bool | None] = (None, None),
    ) -> tuple[Hunk, ...]:
        """Replace the base: accepted hunks were written, or the file was changed from outside.

        Undecided hunks move with their lines; where those changed, a hunk is in conflict, or
        accepted if the change is its own.  Accepted hunks that the new base contains stay accepted,
        and undoing one asks for its old lines back.  Works in the middle of a stream.

        Where a stand-in takes the place of lines, or lines that of a stand-in, and no decision is
        asked for, hunks lose their place; decisions stand, and external hunks that wait are gone.

        Args:
            new_base: The text of the file.
            review: Whether what another program changed waits for a decision, as external hunks.
                Where it meets the rewrite that streams, or a hunk that it puts in conflict, it is
                part of those.
            programs: Whether the file could be run before, and can be now.

        Returns:
            The external hunks that are new, by position.
        """
        self._note_decided()
        before, contained = self.reviewed(), self._contained()
        self._note_written(new_base)
        added = self._follow(new_base, review=review, programs=programs)
        # A hunk that the file has accepted, or taken back, counts as decided, not as changed.
        waiting = {h.id for h in self.hunks.for_path(self.path) if h.state is HunkState.SETTLED}
        after = self.reviewed(without=self._contained() - contained, within=waiting & contained)
        self._follow_with_origins(before, after)
        return added

    def _follow_with_origins(self, before: SourceText, after: SourceText) -> None:
        for origin in (self._origin, self._decided, *self._marks):
            origin.follow(before, after)

    def _note_decided(self) -> None:
        """Remember the reviewed text if nothing waits, before something does."""
        hunks = self.hunks.for_path(self.path)
        if all(hunk.decided for hunk in hunks):
            self._decided = Origin(self.reviewed())
            self._newest = max((hunk.id for hunk in hunks), default=0)

    def _contained(self) -> set[int]:
        """Ids of the accepted hunks whose lines are in the reviewed text."""
        accepted = [h for h in self.hunks.for_path(self.path) if h.state is HunkState.ACCEPTED]
        return {h.id for h in accepted if h.edit() is not None or h.base_lines == h.new}

    def _follow(
        self,
        new_base: SourceText,
        *,
        review: bool,
        programs: tuple[bool | None, bool | None],
    ) -> tuple[Hunk, ...]:
        waiting = list(filter(waits, self.hunks.for_path(self.path)))
        form_changes = is_whole(new_base) != is_whole(self.base)
        if not review and (form_changes or not waiting):
            if form_changes:
                self._former, self._program, self.programs = None, None, (None, None)
                for hunk in waiting:
                    self.hunks.supersede(hunk)
                for hunk in self.hunks.for_path(self.path):
                    self.hunks.detach(hunk)
                self.restructured()
                self._drop_empty_pieces()
            self._advance(new_base, 0, 0)
            return ()
        if self.hunks.accepted_edits(self.path):
            self._advance(self.composed(), 0, 0)
        waiting = waiting_hunks(self.hunks.for_path(self.path))
        first = not waiting or (self._former is None and not new_base.lines)
        self.programs = programs if first else (self.programs[0], programs[1])
        self._program = programs[0] if self._program is None else self._program
        if new_base.lines == self.base.lines:
            self.base = new_base
            return ()
        if first:
            self._former = self.base
        write = ExternalWrite.between(waiting, self.base.lines, new_base.lines)
        for hunk in write.gone:
            self.hunks.supersede(hunk)
        proposed = [h for h in self.hunks.for_path(self.path) if not (h.decided or h.external)]
        self._advance(new_base, 0, 0, write.moves)
        self._drop_empty_pieces()
        added = [change for change in write.added if review and self._clear_for(change, proposed)]
        return tuple(map(self._add_external, added))

    def drop_external(self) -> tuple[Hunk, ...]:
        """Take what other programs wrote as reviewed; returns the hunks that waited."""
        before = self.reviewed()
        waiting = waiting_hunks(self.hunks.for_path(self.path))
        for hunk in waiting:
            self.hunks.supersede(hunk)
        if waiting:
            self.restructured()
            self._drop_empty_pieces()
            self._follow_with_origins(before, self.reviewed())
        return tuple(waiting)

    def committed(self) -> tuple[Hunk, ...]:
        """A commit contains the file as it is; returns the external hunks that waited."""
        waited = self.drop_external()
        self._origin, self._program = Origin(self.reviewed()), None
        return waited

    def blocked(self, after: Sequence[str]) -> bool:
        """Whether an agent's change to these lines meets something that waits or is written."""
        edits, current = line_edits(self.base.lines, after), self._current
        open_hunks = [h for h in self.hunks.for_path(self.path) if not h.decided or h.call]
        return any(
            any(_overlaps(hunk, edit.start, edit.stop, tight=False) for hunk in open_hunks)
            or (current is not None and current.start <= edit.stop and edit.start <= current.stop)
            for edit in edits
        )

    def propose(self, after: Sequence[str], call: int) -> tuple[Hunk, ...]:
        """Make hunks of a change that an agent wants to write; it writes what is accepted itself.

        Args:
            after: The lines as the agent would leave them; not ``blocked``.
            call: The number of its call.
        """
        self._note_decided()
        if self.hunks.accepted_edits(self.path):
            self._advance(self.composed(), 0, 0)
        added: list[Hunk] = []
        for edit in line_edits(self.base.lines, after):
            for hunk in self.hunks.for_path(self.path):
                if hunk.decided and _overlaps(hunk, edit.start, edit.stop, tight=False):
                    self.hunks.detach(hunk)
                    if hunk.state is HunkState.ACCEPTED:
                        self._covered.add(hunk, self.base.lines)
            old = self.base.lines[edit.start : edit.stop]
            added.append(self.hunks.add_proposed(self.path, edit, old, call))
        self.restructured()
        for hunk in added:
            self._join(hunk)
        return tuple(added)

    def with_call(self, call: int) -> SourceText:
        """The base with what was accepted of a call."""
        return self.base.replace(
            [
                LineEdit(hunk.start, hunk.stop, hunk.new)
                for hunk in self.hunks.for_path(self.path)
                if hunk.call == call and hunk.state is HunkState.ACCEPTED
            ]
        )

    def _note_written(self, new_base: SourceText) -> None:
        """Recognise accepted hunks that an agent was allowed to write, by what they change."""
        due = [hunk for hunk in self.hunks.for_path(self.path) if hunk.due]
        if not due or new_base.lines == self.base.lines:
            return
        wanted = {hunk.id: LineEdit(hunk.start, hunk.stop, hunk.new) for hunk in due}
        whole = self.base.replace([wanted[hunk.id] for hunk in due]).lines == new_base.lines
        made = frozenset(() if whole else line_edits(self.base.lines, new_base.lines))
        for hunk in due:
            if whole or wanted[hunk.id] in made:
                self.hunks.written(hunk)

    def _drop_empty_pieces(self) -> None:
        """Remove segments that were made for hunks which are gone."""
        self.segments = [s for s in self.segments if s is self._current or s.hunk_ids or s.serial]

    def _clear_for(self, change: ExternalChange, proposed: Sequence[Hunk]) -> bool:
        """Make room for an external hunk: decided ones in its lines give way to it.

        Args:
            change: What it changes.
            proposed: Hunks of a model that waited for a decision before the change; one that the
                change meets shows it.

        Returns:
            False if it meets one of those, or the streaming rewrite.
        """
        current = self._current
        if current is not None and current.start <= change.stop and change.start <= current.stop:
            return False
        met = [
            hunk
            for hunk in self.hunks.for_path(self.path)
            if _overlaps(hunk, change.start, change.stop, tight=True)
        ]
        if any(hunk in proposed for hunk in met):
            return False
        for hunk in met:
            self.hunks.detach(hunk)
        return True

    def _add_external(self, change: ExternalChange) -> Hunk:
        hunk = self.hunks.add_external(self.path, change.start, change.old, change.new)
        self._join(hunk)
        return hunk

    @property
    def _newline(self) -> str | None:
        """Terminator of new lines in a file that is gone; ``None`` to take their neighbours'."""
        return None if self.base.lines or self._former is None else self._former.newline

    # Called by the hunk store, see ``hunks.Picture``.

    def restructured(self) -> None:
        """Hunks of the file were split, edited or joined again: rebuild the segments."""
        members: list[list[int]] = [[] for _ in self.segments]
        for hunk in self.hunks.for_path(self.path):
            kinship = [
                max((_kinship(hunk, self.hunks.get(i)) for i in s.hunk_ids), default=0)
                for s in self.segments
            ]
            if any(kinship):
                members[kinship.index(max(kinship))].append(hunk.id)
        for segment, hunk_ids in zip(self.segments, members, strict=True):
            segment.hunk_ids = hunk_ids
            segment.rebuild()
        self.version += 1

    def obstacle(self, hunk: Hunk) -> Obstacle | None:
        """What prevents an accepted hunk that a later rewrite covered from coming back, if
        anything.
        """
        if hunk not in self._covered:
            return Obstacle.CHANGED
        current = self._current
        if current is not None and current.start <= hunk.stop and hunk.start <= current.stop:
            return Obstacle.WRITING
        return None if self._stands(hunk) else Obstacle.CHANGED

    def uncover(self, hunk: Hunk) -> None:
        """Bring such a hunk back; undecided ones that change its lines give way to it."""
        if self.hunks.accepted_edits(self.path):
            self._advance(self.composed(), 0, 0)
        place = self._stands(hunk)
        if place is None:
            return
        aside = [h for h in self.hunks.for_path(self.path) if _overlaps(h, *place, tight=True)]
        self._covered.remove(hunk, [(other, other.state) for other in aside])
        for other in aside:
            self.hunks.detach(other) if other.decided else self.hunks.supersede(other)
        self.hunks.attach(hunk, *place)
        self._join(hunk)

    def cover_again(self, hunk: Hunk) -> None:
        """Give the place back to the hunks that gave way, while the base is the same."""
        back = self._covered.gave_way(hunk)
        if not back:
            return
        self.hunks.detach(hunk)
        self._covered.add(hunk, self.base.lines)
        for other, state in back:
            self.hunks.reinstate(other, state)
            self._join(other)

    def _stands(self, hunk: Hunk) -> tuple[int, int] | None:
        """Where a covered hunk's lines are in the composed text, unless built upon."""
        live, composed = self.hunks.for_path(self.path), self.composed()
        rebase = Rebase(live, self.base, composed)
        place = self._covered.where(hunk, live, rebase, composed.lines)
        taken = (h for h in live if h.state is HunkState.ACCEPTED)
        if place is None or any(_overlaps(h, hunk.start, hunk.stop, tight=True) for h in taken):
            return None
        return place

    def _join(self, hunk: Hunk) -> None:
        """Add a hunk that has a place but no rows to the segments there, or to a new one."""
        start, stop = hunk.start, hunk.stop
        first = bisect_left(self.segments, start, key=lambda s: s.stop)
        last = bisect_right(self.segments, stop, lo=first, key=lambda s: s.start)
        near = self.segments[first:last]
        there = [s for s in near if s.start < stop and start < s.stop]
        if not there:
            around = [s for s in near if s.start <= start and stop <= s.stop]
            # Where segments meet, it follows the hunks that come before it.
            before = [
                s for s in around if any(self.hunks.get(i).order < hunk.order for i in s.hunk_ids)
            ]
            there = before[-1:] or around[:1]
        if len(there) == 1 and there[0].start <= start and stop <= there[0].stop:
            there[0].adopt((hunk,))
            self.version += 1
            return
        ids = {hunk_id for segment in there for hunk_id in segment.hunk_ids}
        start = min([start, *(s.start for s in there)])
        stop = max([stop, *(s.stop for s in there)])
        if there:
            self.segments = [s for s in self.segments if s not in there]
        segment = Segment(self.path, self.base, start, stop, self.hunks)
        segment.adopt((*map(self.hunks.get, sorted(ids)), hunk))
        self._insert(segment)

    def _advance(
        self, new_base: SourceText, start: int, stop: int, placed: Sequence[Move] = ()
    ) -> tuple[int, int]:
        """Do ``advance``; returns where the range ``[start, stop)`` went.

        Args:
            new_base: The new base.
            start: First line of a range.
            stop: The line after its last.
            placed: Where hunks go whose place in the new base is known.
        """
        if new_base.lines == self.base.lines and not self.hunks.accepted_edits(self.path):
            self.base = new_base  # the same lines: nothing moves
            return start, stop
        self._superseded = []  # they do not move with the lines
        if not (self.segments or self._covered or self.hunks.for_path(self.path)):
            self.base = new_base  # nothing is there that could move
            self.version += 1
            return start, stop
        known = {move.hunk.id for move in placed}
        live = [hunk for hunk in self.hunks.for_path(self.path) if hunk.id not in known]
        rebase = Rebase(live, self.base, new_base)
        ranges = [
            (rebase.start_of(s.start, s.hunk_ids), rebase.stop_of(s.stop, s.hunk_ids))
            for s in self.segments
        ]
        moved = rebase.start_of(start), rebase.stop_of(stop)
        streaming = None if self._current is None else self._current.streaming_hunk
        moves = rebase.moves(streaming)
        covered = self._covered.moves(live, rebase, new_base.lines)
        self.hunks.move([*covered, *moves, *placed])
        disturbed = {move.hunk.id for move in moves if move.disturbed}
        self.base = new_base
        floor = 0
        for segment, (first, last) in zip(self.segments, ranges, strict=True):
            for hunk in map(self.hunks.get, segment.hunk_ids):
                if hunk.live:
                    conflict = hunk.displaced or hunk.state is HunkState.CONFLICT
                    if (conflict or hunk.id in disturbed) and hunk.start < floor:
                        # A conflict takes in what was put at its place: keep it out of the
                        # segment before.
                        end = max(hunk.stop, floor)
                        self.hunks.place(hunk, floor, end, new_base.lines[floor:end])
                    first, last = min(first, hunk.start), max(last, hunk.stop)
            first = max(first, floor)
            floor = max(first, last)
            segment.moved(
                new_base,
                first,
                floor,
                rebase.lines,
                disturbed=not disturbed.isdisjoint(segment.hunk_ids),
            )
        self.version += 1
        return moved[0], max(moved)

    def _clear(self, start: int, stop: int) -> None:
        """Make room for a new segment: older ones keep only what is outside its range."""
        kept: list[Segment] = []
        live = self.hunks.for_path(self.path)
        live_ids = {hunk.id for hunk in live}
        for segment in self.segments:
            mine = set(segment.hunk_ids)
            if segment.stop <= start or segment.start >= stop:
                if not mine <= live_ids:  # an insertion where they meet
                    self.hunks.forget_splits(mine - live_ids)
                    segment.rebuild()
                if segment.settled:
                    kept.append(segment)
                continue
            self.hunks.forget_splits(mine)
            for first, last in ((segment.start, start), (stop, segment.stop)):
                hunks = [h for h in live if h.id in mine and first <= h.start and h.stop <= last]
                if hunks:
                    piece = Segment(self.path, self.base, first, last, self.hunks)
                    piece.adopt(hunks)
                    kept.append(piece)
        self.segments = kept

    def _insert(self, segment: Segment) -> None:
        insort(self.segments, segment, key=lambda s: (s.start, s.stop))
        self.version += 1

    def _open_segment(self) -> Segment:
        if self._current is None:
            raise ValueError(f"no rewrite of {self.path} is open")
        return self._current

    def _streaming(self) -> Segment:
        segment = self._open_segment()
        if segment.frozen:
            raise ValueError(f"the rewrite of {self.path} is stopped; resume or abandon it")
        return segment


def _kinship(hunk: Hunk, other: Hunk) -> int:
    """How closely two hunks are related by splitting; 0 if they are not."""
    if hunk is other:
        return len(hunk.rank) + 1
    return sum(takewhile(bool, (a == b for a, b in zip(hunk.rank, other.rank, strict=False))))


def _overlaps(hunk: Hunk, start: int, stop: int, *, tight: bool) -> bool:
    """Whether a rewrite of ``[start, stop)`` touches the hunk; ``tight`` ignores insertions at its
    ends.
    """
    if hunk.start == hunk.stop:
        return start < hunk.start < stop if tight else start <= hunk.start <= stop
    if start == stop:
        return hunk.start < start < hunk.stop
    return hunk.start < stop and hunk.stop > start


@dataclass(frozen=True, slots=True)
class _Span:
    """Where an edit of the base lies in the proposed text."""

    start: int
    stop: int
    base_start: int
    base_stop: int


class Overlay:
    """The base with accepted and undecided hunks applied.

    Models that continue with their own edits quote what they wrote, whether or not it was decided.

    Attributes:
        source: That text.
        undecided: Whether it includes undecided hunks.
    """

    def __init__(self, proposal: FileProposal) -> None:
        self.undecided = False
        edits: list[LineEdit] = []
        for hunk in proposal.hunks.for_path(proposal.path):
            edit = hunk.edit()
            if edit is None and hunk.state is HunkState.SETTLED and hunk.base_lines == hunk.old:
                edit = LineEdit(hunk.start, hunk.stop, hunk.new)
                self.undecided = True
            if edit is not None and not (edits and edit.start < edits[-1].stop):
                edits.append(edit)
        self.source = proposal.proposed(edits)
        self._spans: list[_Span] = []
        shift = 0
        for edit in edits:
            start = edit.start + shift
            shift += len(edit.lines) - (edit.stop - edit.start)
            self._spans.append(_Span(start, start + len(edit.lines), edit.start, edit.stop))

    def to_base(self, start: int, stop: int) -> tuple[int, int, int, int]:
        """The smallest range around lines of this text that splits no edit.

        Returns:
            Its start and stop here, and its start and stop in the base.
        """
        for span in self._spans:
            inserted = span.base_start == span.base_stop
            if (span.start < stop and span.stop > start) or (
                inserted and span.start <= stop and span.stop >= start
            ):
                start, stop = min(start, span.start), max(stop, span.stop)
        base_start = self._base_line(start, behind=True)
        return start, stop, base_start, self._base_line(stop, behind=start == stop)

    def _base_line(self, line: int, *, behind: bool) -> int:
        """The base line of a line here; ``behind``: after what was deleted in front of it."""
        for span in reversed(self._spans):
            if span.stop < line or (span.stop == line and (span.start < line or behind)):
                return line - span.stop + span.base_stop
        return line
