"""Flags on changes of others: what the checks find in them while they wait for a decision.

The guard reads the lines of a change.  These checks read whole files: whether a text still parses,
whether each of its names is defined, and whether names that it takes away are used elsewhere.  They
look once no program writes any more, as an agent often completes in its next write what one has
left.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from midstream.codebase.references import ReferencesError, listed
from midstream.edits.external import waiting_hunks
from midstream.edits.stand_ins import is_whole
from midstream.pairing.status import ExternalHunksAdded, HunkDecided, SessionEvent
from midstream.pairing.turn.checks import MAX_LINES, look, uses_left_in

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.files.put_backs import Writers
    from midstream.pairing.status import SessionStatus, Spawn

MAX_FILES: Final = 20
"""Limit on waiting files that are searched for uses of removed names: that reads the project."""


class ReviewFlags:
    """What the checks find in undecided changes of others."""

    def __init__(
        self, files: OpenFiles, status: SessionStatus, writers: Writers, spawn: Spawn
    ) -> None:
        self._files = files
        self._status = status
        self._writers = writers
        self._spawn = spawn
        self._found: dict[str, dict[int, tuple[tuple[str, ...], str]]] = {}
        """By file and hunk: the new lines that were looked at, and what was found."""
        self._due: set[str] = set()
        self._looking = False

    def reason(self, hunk: Hunk) -> str:
        """What was found in a hunk that waits, ``""`` if nothing was."""
        new, why = self._found.get(hunk.path, {}).get(hunk.id, ((), ""))
        return why if why and hunk.external and hunk.waits and hunk.new == new else ""

    def hear(self, event: SessionEvent) -> None:
        """Look at a file in which others have changed something, or of which some was decided."""
        if not isinstance(event, (ExternalHunksAdded, HunkDecided)):
            return
        if isinstance(event, ExternalHunksAdded):
            self._due |= self._found.keys()  # It may have brought what was missing elsewhere.
        elif not self._waiting(event.path) and event.path not in self._found:
            return
        self._due.add(event.path)
        if not self._looking:
            self._looking = True
            self._spawn(self._look_at_due())

    async def _look_at_due(self) -> None:
        try:
            while self._due:
                await asyncio.sleep(0)
                await self._writers.quiet()
                async with self._files.lock:
                    pass
                paths, self._due = self._due, set()
                for path in sorted(paths):
                    await self._look(path, uses=len(paths) <= MAX_FILES)
        finally:
            self._looking = False

    async def _look(self, path: str, *, uses: bool) -> None:
        proposal = self._files.get(path)
        waiting = self._waiting(path)
        before = () if proposal is None else _lines(proposal, reviewed=True)
        after = () if proposal is None else _lines(proposal, reviewed=False)
        found: dict[int, list[str]] = {}
        if proposal is not None and waiting and max(len(before), len(after)) <= MAX_LINES:
            by_line = {
                line: hunk
                for hunk in waiting
                for line in range(hunk.start, hunk.start + hunk.added)
            }
            verdict = await look(path, before, after)
            if verdict.broken:
                found[waiting[0].id] = [f"does not parse ({verdict.broken})"]
            for each in verdict.undefined:
                hunk = by_line.get(each.line - 1) or _took_away(waiting, each.undefined)
                why = f"`{each.undefined}` (line {each.line}) is not defined"
                found.setdefault(hunk.id, []).append(why)
            if uses and not verdict.broken:
                for hunk, why in (await self._uses_left(path, before, after, waiting)).items():
                    found.setdefault(hunk, []).append(why)
            if after != _lines(proposal, reviewed=False) or waiting != self._waiting(path):
                return  # What has changed meanwhile has its own look.
        known = self._found.pop(path, {})
        flags = {
            hunk.id: (hunk.new, "; ".join(found[hunk.id])) for hunk in waiting if hunk.id in found
        }
        if flags:
            self._found[path] = flags
        self._tell(path, [why for i, (_, why) in flags.items() if i not in known])
        if flags != known:
            self._status.touch()

    async def _uses_left(
        self, path: str, before: Sequence[str], after: Sequence[str], waiting: Sequence[Hunk]
    ) -> Mapping[int, str]:
        try:
            left = await uses_left_in(self._files.workspace, path, before, after)
        except ReferencesError:
            return {}
        sure = [use for use in left if use.certain]
        return {
            _took_away(waiting, name).id: listed([use for use in sure if use.name == name])
            for name in dict.fromkeys(use.name for use in sure)
        }

    def _tell(self, path: str, reasons: Iterable[str]) -> None:
        if why := "; ".join(reasons):
            self._status.inform(f"Flagged in {path}: {why}.")

    def _waiting(self, path: str) -> list[Hunk]:
        return waiting_hunks(self._files.hunks.for_path(path))


def _lines(proposal: FileProposal, *, reviewed: bool) -> Sequence[str]:
    """A file without or with the hunks that wait; nothing where it is no text."""
    text = proposal.reviewed() if reviewed else proposal.base
    return () if is_whole(text) else text.lines


def _took_away(hunks: Sequence[Hunk], name: str) -> Hunk:
    """The hunk that takes a name away, else the first."""
    word = re.compile(rf"\b{re.escape(name)}\b")

    def lost(hunk: Hunk) -> int:
        return sum(len(word.findall(line)) for line in hunk.old) - sum(
            len(word.findall(line)) for line in hunk.new
        )

    return max(hunks, key=lost)
