"""Where in a segment a dangerous statement stands: the hunk that holds it, the line to go on from.

Pure; what is done with them is ``guarding``'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk, HunkStore


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rewrite begins.

    Attributes:
        start: Base line.
        carried: First line of the segment that is fed again.
        lines: Lines of the segment that count as written.
    """

    start: int
    carried: int
    lines: int

    @classmethod
    def of(cls, hunks: HunkStore, segment: Any, line: int) -> Place:
        """The place from which a segment is written again, so that ``line`` is the first."""
        offset, hunk_id = 0, None
        for row in segment.settled:
            if row.new is None:
                continue
            if row.hunk != hunk_id or row.hunk is None:
                offset, hunk_id = 0, row.hunk
            if row.new - segment.start == line and row.text == segment.new_lines[line]:
                if row.hunk is None:
                    return cls(row.old, line, line)
                hunk = hunks.get(row.hunk)
                if hunk.decided:
                    end = line - offset + hunk.added
                    return cls(hunk.stop, end, end)
                return cls(hunk.start, line - offset, line)
            offset += 1
        return cls(segment.start, 0, min(line, len(segment.new_lines)))


def holder(hunks: HunkStore, segment: Any, lines: range) -> Hunk | None:
    """The hunk that brings one of some lines of a segment."""
    wanted = set(segment.new_lines[lines.start : lines.stop])
    added = [r for r in segment.settled if r.hunk is not None and r.new is not None]
    added = [row for row in added if row.text in wanted]
    exact = [row for row in added if row.new - segment.start in lines]
    return hunks.get((exact or added)[0].hunk) if added else None
