"""Changes written by another program, and the hunks that they make of a file.

An external hunk is the reverse of a proposed one: its new lines are in the file already, and what
waits for a decision is whether they stay.  The file without its undecided external hunks is the
*reviewed* text.  It is never stored, so it cannot disagree with the hunks.

Hunks are identified by their place and their change, never by their number.  A hunk that a further
write does not touch stays the same.  One that it touches is derived again from the reviewed text,
and is a new hunk unless it comes out equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from midstream.edits.documents import LineEdit
from midstream.edits.hunks import Hunk, HunkState, Move
from midstream.edits.lcs import line_edits

_WAITING = (HunkState.SETTLED, HunkState.HELD)


class ExternalChange(NamedTuple):
    """Lines that another program has written.

    Attributes:
        start: First line in the new text.
        old: What the reviewed text has there.
        new: What is there now.
    """

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def stop(self) -> int:
        """The line of the new text after the last."""
        return self.start + len(self.new)


@dataclass(slots=True)
class ExternalWrite:
    """The effect of another program's write on the external hunks of a file.

    Attributes:
        moves: Where the hunks that stay are in the new text.
        gone: Hunks that the write changed or took back.
        added: Changes that need a new hunk, by position.
    """

    moves: list[Move] = field(default_factory=list[Move])
    gone: list[Hunk] = field(default_factory=list[Hunk])
    added: list[ExternalChange] = field(default_factory=list[ExternalChange])

    @classmethod
    def between(
        cls, waits: Sequence[Hunk], before: Sequence[str], after: Sequence[str]
    ) -> ExternalWrite:
        """Compare a file before and after the write.

        Args:
            waits: The undecided external hunks (``waiting_hunks``), by position.
            before: The lines as last known, with the new lines of ``waits``.
            after: The lines as they are now.
        """
        write = cls()
        regions = _regions(waits, before, after)
        touched = {hunk.id for region in regions for hunk in region.hunks}
        apart = [hunk for hunk in waits if hunk.id not in touched]
        shift = 0
        for item in sorted((*apart, *regions), key=lambda item: item.start):
            if isinstance(item, Hunk):
                write._keep(item, item.start + shift)
            else:
                write._derive(item, before, after, shift)
                shift += item.growth
        return write

    def _keep(self, hunk: Hunk, start: int) -> None:
        self.moves.append(Move(hunk, start, start + hunk.added, hunk.new))

    def _derive(
        self, region: _Region, before: Sequence[str], after: Sequence[str], shift: int
    ) -> None:
        """Derive the hunks of a region again from its reviewed lines and its lines now."""
        first = region.start + shift
        now = after[first : region.stop + shift + region.growth]
        if not region.hunks:
            old = before[region.start : region.stop]
            self.added.append(ExternalChange(first, tuple(old), tuple(now)))
            return
        reviewed: list[str] = []
        # In the coordinates of the reviewed lines, where insertions side by side can be equal.
        known: dict[LineEdit, list[Hunk]] = {}
        at = region.start
        for hunk in region.hunks:
            reviewed += before[at : hunk.start]
            edit = LineEdit(len(reviewed), len(reviewed) + hunk.deleted, hunk.new)
            known.setdefault(edit, []).append(hunk)
            reviewed += hunk.old
            at = hunk.stop
        reviewed += before[at : region.stop]
        grown = 0
        for edit in line_edits(reviewed, now):
            start = first + edit.start + grown
            grown += len(edit.lines) - (edit.stop - edit.start)
            if equal := known.get(edit):
                self._keep(equal.pop(0), start)
            else:
                old = tuple(reviewed[edit.start : edit.stop])
                self.added.append(ExternalChange(start, old, edit.lines))
        self.gone += chain.from_iterable(known.values())


def waits(hunk: Hunk) -> bool:
    """Whether a hunk is external and waits for a decision."""
    return hunk.external and hunk.state in _WAITING


def waiting_hunks(hunks: Iterable[Hunk]) -> list[Hunk]:
    """The external hunks among ``hunks`` that wait, and whose lines are in the base."""
    return [hunk for hunk in hunks if waits(hunk) and hunk.base_lines == hunk.new]


@dataclass(slots=True)
class _Region:
    """Lines of the text before a write that it changes, widened by the hunks that they touch."""

    start: int
    stop: int
    growth: int
    hunks: list[Hunk]


def outcome(hunks: Iterable[Hunk], *, accept: bool) -> str:
    """The words for decisions about hunks; a review of other programs' changes has its own."""
    found = list(hunks)
    if found and all(hunk.external for hunk in found):
        return "kept" if accept else "put back"
    return "accepted" if accept else "rejected"


def _regions(waits: Sequence[Hunk], before: Sequence[str], after: Sequence[str]) -> list[_Region]:
    """Where a write changed the text; regions that touch the same hunk are one."""
    regions: list[_Region] = []
    passed = 0  # hunks that end before this edit and those to come
    for edit in line_edits(before, after):
        while passed < len(waits) and waits[passed].stop < edit.start:
            passed += 1
        touched: list[Hunk] = []
        for hunk in waits[passed:]:
            if hunk.start > edit.stop:
                break
            touched.append(hunk)
        stop = max([edit.stop, *(hunk.stop for hunk in touched)])
        growth = len(edit.lines) - (edit.stop - edit.start)
        last = regions[-1] if regions else None
        if last is not None and touched and last.hunks and touched[0] is last.hunks[-1]:
            last.stop = max(last.stop, stop)
            last.growth += growth
            last.hunks += touched[1:]
        else:
            start = min([edit.start, *(hunk.start for hunk in touched)])
            regions.append(_Region(start, stop, growth, touched))
    return regions
