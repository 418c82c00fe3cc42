"""What the guard finds in the hunks of a file as it would be with all of them.

Pure but for the scanner's child; which hunks are held back or let go is ``guarding``'s.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from midstream.edits.hunks import HunkState
from midstream.guard.findings import Finding

if TYPE_CHECKING:
    from midstream.edits.proposal import FileProposal
    from midstream.guard.scanner import Scanner

_BRINGS = (HunkState.SETTLED, HunkState.QUARANTINED)


async def judged(scanner: Scanner, proposal: FileProposal) -> dict[int, list[Finding]]:
    """Return the findings in the lines that hunks bring, by hunk.

    Undecided and quarantined hunks count as they are proposed, decided ones as they are decided.
    What the base has already is not found again.
    """
    lines: list[str] = []
    places: list[tuple[int, int, int]] = []
    at = 0
    base = proposal.base.lines
    for hunk in proposal.hunks.for_path(proposal.path):
        if hunk.state in _BRINGS:
            wanted = hunk.new
        elif (edit := hunk.edit()) is not None:
            wanted = tuple(edit.lines)
        else:
            continue
        if hunk.start < at:
            continue
        lines += base[at : hunk.start]
        places.append((hunk.id, len(lines), len(lines) + len(wanted)))
        lines += wanted
        at = hunk.stop
    lines += base[at:]
    known = Counter(finding.key for finding in await scanner.scan(base, proposal.path))
    found: dict[int, list[Finding]] = {}
    for finding in await scanner.scan(lines, proposal.path):
        if known[finding.key]:
            known[finding.key] -= 1
            continue
        for hunk_id, start, stop in places:
            if start < finding.stop and finding.line < stop:
                found.setdefault(hunk_id, []).append(finding)
    return found
