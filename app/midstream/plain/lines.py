"""Hunks, turns and files as lines of text, for screen readers as well as for reading."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from midstream.counting import counted
from midstream.edits.documents import LineEdit
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import Hunk, HunkState
from midstream.pairing.status import Turn, TurnStatus
from midstream.workspace.paths import shown

if TYPE_CHECKING:
    from midstream.edits.proposal import FileProposal

_WORDS = {
    HunkState.SETTLED: "to decide",
    HunkState.STREAMING: "still being written",
    HunkState.CONFLICT: "in conflict with the file as it is now",
    HunkState.SUPERSEDED: "replaced by a later one",
}


def hunk_lines(number: int, hunk: Hunk) -> Iterator[str]:
    """A hunk: its heading, then its old lines with ``-`` and its new ones with ``+``."""
    yield f"{headline(number, hunk)}:"
    yield from (f"- {line}" for line in hunk.old)
    yield from (f"+ {line}" for line in hunk.new)


def numbered_hunk_lines(number: int, hunk: Hunk) -> Iterator[str]:
    """A hunk with its lines numbered from 1, the old ones first, to name some of them."""
    first, *changed = hunk_lines(number, hunk)
    yield first
    yield from (f"{count} {line}" for count, line in enumerate(changed, 1))


def headline(number: int, hunk: Hunk) -> str:
    """A hunk in one line: its number, place, size, and how it stands."""
    size = f"{hunk.deleted} out, {hunk.added} in"
    state = _WORDS.get(hunk.state, hunk.outcome)
    if hunk.postponed is not None:
        state = "will be put back"
    note = f" ({hunk.note})" if hunk.note else ""
    return f"Hunk {number}, {shown(hunk.path)} line {hunk.start + 1}, {size}, {state}{note}"


def started(turn: Turn) -> str:
    """The model's current work."""
    lines = f"line {turn.stop}" if turn.stop - turn.start <= 1 else ""
    lines = lines or f"lines {turn.start + 1} to {turn.stop}"
    name = f"{turn.symbol}, " if turn.symbol else ""
    return f"Working on {shown(turn.path)}, {name}{lines}."


def ended(turn: Turn, waiting: int) -> str:
    """The outcome of a turn."""
    verb = {TurnStatus.STOPPED: "Stopped", TurnStatus.FAILED: "Failed"}.get(turn.status, "Done")
    if turn.status is TurnStatus.FAILED and turn.error:
        return f"Failed: {turn.error}"
    return f"{verb} after {turn.written}; {counted(waiting, 'hunk')} to decide."


def numbered(lines: Iterable[str], first: int) -> Iterator[str]:
    """Lines of a file with their numbers from 1."""
    for number, line in enumerate(lines, first + 1):
        yield f"{number}  {line}"


def patch(proposal: FileProposal, hunks: HunkStore) -> Iterator[str]:
    """The changes that the undecided hunks of a file would make, as a unified diff."""
    decided = hunks.accepted_edits(proposal.path)
    waiting = hunks.undecided(proposal.path)
    without = [LineEdit(h.start, h.stop, h.old) for h in waiting if h.external]
    wanted = [LineEdit(h.start, h.stop, h.new) for h in waiting if not h.external]
    before = proposal.base.replace(sorted([*decided, *without], key=lambda e: (e.start, e.stop)))
    after = proposal.base.replace(sorted([*decided, *wanted], key=lambda e: (e.start, e.stop)))
    path = shown(proposal.path)
    yield from difflib.unified_diff(
        before.lines, after.lines, f"a/{path}", f"b/{path}", lineterm=""
    )
