"""A file with all that is proposed for it, and the way back from its lines to those of the base.

Models that go on with their own edits quote what they wrote, decided or not.
"""

from __future__ import annotations

from dataclasses import dataclass

from midstream.edits.documents import LineEdit
from midstream.edits.hunks import HunkState
from midstream.edits.proposal import FileProposal


@dataclass(frozen=True, slots=True)
class _Span:
    """Where an edit of the base lies in the proposed text."""

    start: int
    stop: int
    base_start: int
    base_stop: int


class Overlay:
    """The base with accepted and undecided hunks.

    Attributes:
        source: That text.
        undecided: Whether it has undecided hunks in it.
    """

    def __init__(self, proposal: FileProposal) -> None:
        self.undecided = False
        edits: list[LineEdit] = []
        for hunk in proposal.hunks.for_path(proposal.path):
            edit = hunk.edit()
            if edit is None and hunk.state is HunkState.SETTLED and hunk.held == hunk.old:
                edit = LineEdit(hunk.start, hunk.stop, hunk.new)
                self.undecided = True
            if edit is not None and not (edits and edit.start < edits[-1].stop):
                edits.append(edit)
        self.source = proposal.base.replace(edits)
        self._spans: list[_Span] = []
        shift = 0
        for edit in edits:
            start = edit.start + shift
            shift += len(edit.lines) - (edit.stop - edit.start)
            self._spans.append(_Span(start, start + len(edit.lines), edit.start, edit.stop))

    def to_base(self, start: int, stop: int) -> tuple[int, int, int, int]:
        """The smallest range around proposed lines that cuts no edit, insertions at its ends in it.

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
        """The base line of a proposed one; ``behind``: after what was deleted in front of it."""
        for span in reversed(self._spans):
            if span.stop < line or (span.stop == line and (span.start < line or behind)):
                return line - span.stop + span.base_stop
        return line
