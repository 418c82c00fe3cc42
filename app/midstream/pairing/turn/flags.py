"""Flags on changes of others: what the checks find in them while they wait for a decision.

The guard reads the lines of a change.  These checks read whole files: whether a text still parses,
whether each of its names is defined, and whether names that it takes away are used elsewhere.  They
look once no program writes any more, as an agent often completes in its next write what one has
left.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from midstream.codebase.references import ReferencesError, listed
from midstream.counting import counted
from midstream.edits.external import waiting_hunks
from midstream.edits.stand_ins import is_whole
from midstream.pairing.slices import pause
from midstream.pairing.status import ExternalHunksAdded, HunkDecided, SessionEvent
from midstream.pairing.turn.checks import (
    MAX_LINES,
    Verdict,
    look_at_each,
    tell_unread,
    uses_left_in,
)

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.files.put_backs import Writers
    from midstream.pairing.status import SessionStatus, Spawn

TOGETHER: Final = 50
"""Files that are looked at together: to start ruff takes longer than to check a file."""
MAX_FILES: Final = 20
"""Limit on waiting files that are searched for uses of removed names: that reads the project."""


class _Remark(NamedTuple):
    """One thing that the checks say about a hunk.

    Attributes:
        why: In words.
        line: The new line that it is about, counted from the hunk's first; ``None`` if about
            no single line.
    """

    why: str
    line: int | None = None


class _Flag(NamedTuple):
    """What was found in a hunk.

    Attributes:
        new: Its new lines as they were looked at.
        remarks: What was found in them.
    """

    new: tuple[str, ...]
    remarks: tuple[_Remark, ...]

    @property
    def why(self) -> str:
        return "; ".join(remark.why for remark in self.remarks)


_NO_FLAG: Final = _Flag((), ())


class ReviewFlags:
    """What the checks find in undecided changes of others."""

    def __init__(
        self, files: OpenFiles, status: SessionStatus, writers: Writers, spawn: Spawn
    ) -> None:
        self._files = files
        self._status = status
        self._writers = writers
        self._spawn = spawn
        self._found: dict[str, dict[int, _Flag]] = {}
        """By file and hunk."""
        self._elsewhere: set[str] = set()
        """Files of which some names are still used elsewhere, as far as that was looked for."""
        self._untold: dict[str, str] = {}
        """What was found by file, as far as it was not told yet."""
        self._due: set[str] = set()
        self._looking = False

    def reason(self, hunk: Hunk) -> str:
        """What was found in a hunk that waits, ``""`` if nothing was."""
        return self._of(hunk).why

    def line(self, hunk: Hunk) -> int | None:
        """The new line that the first finding in a hunk is about, counted from its first."""
        remarks = self._of(hunk).remarks
        return remarks[0].line if remarks else None

    def _of(self, hunk: Hunk) -> _Flag:
        flag = self._found.get(hunk.path, {}).get(hunk.id, _NO_FLAG)
        return flag if hunk.external and hunk.waits and hunk.new == flag.new else _NO_FLAG

    def hear(self, event: SessionEvent) -> None:
        """Look at a file in which others have changed something, or of which some was decided."""
        if not isinstance(event, (ExternalHunksAdded, HunkDecided)):
            return
        if isinstance(event, ExternalHunksAdded):
            self._due |= self._elsewhere  # It may have brought what was missing there.
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
                order, uses = sorted(paths), len(paths) <= MAX_FILES
                for start in range(0, len(order), TOGETHER):
                    await self._look(order[start : start + TOGETHER], uses=uses)
                self._tell()
        finally:
            self._looking = False

    async def _look(self, paths: Sequence[str], *, uses: bool) -> None:
        """Look at some files together."""
        before: dict[str, Sequence[str]] = {}
        after: dict[str, Sequence[str]] = {}
        waiting: dict[str, list[Hunk]] = {}
        for path in paths:
            proposal, hunks = self._files.get(path), self._waiting(path)
            if proposal is not None and hunks:
                texts = [_lines(proposal, reviewed=reviewed) for reviewed in (True, False)]
                if max(map(len, texts)) <= MAX_LINES:
                    (before[path], after[path]), waiting[path] = texts, hunks
                    await pause()
            if path not in waiting:
                self._flag(path, hunks, {})
        verdicts = await look_at_each(before, after)
        tell_unread(verdicts.values(), self._status)
        for path, verdict in verdicts.items():
            found = _found_in(verdict, waiting[path])
            if verdict.unread:  # What was found before stands.
                for hunk in waiting[path]:
                    found.setdefault(hunk.id, list(self._of(hunk).remarks))
            await pause()
            self._elsewhere.discard(path)
            if uses and not verdict.broken:
                left = await self._uses_left(path, before[path], after[path], waiting[path])
                self._elsewhere |= {path} if left else set()
                for hunk, why in left.items():
                    found.setdefault(hunk, []).append(_Remark(why))
            same = after[path] == _lines(self._files[path], reviewed=False)
            if same and waiting[path] == self._waiting(path):  # else it has its own look
                self._flag(path, waiting[path], found)

    def _flag(
        self, path: str, waiting: Sequence[Hunk], found: Mapping[int, Sequence[_Remark]]
    ) -> None:
        """Note what was found in the hunks of a file."""
        known = self._found.pop(path, {})
        flags = {
            hunk.id: _Flag(hunk.new, tuple(found[hunk.id]))
            for hunk in waiting
            if found.get(hunk.id)
        }
        if flags:
            self._found[path] = flags
        if why := "; ".join(flag.why for i, flag in flags.items() if i not in known):
            self._untold[path] = why
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

    def _tell(self) -> None:
        """Say what is new in one notice, however many files there are."""
        untold, self._untold = self._untold, {}
        if not untold:
            return
        path, why = next(iter(untold.items()))
        others = f" Flagged in {counted(len(untold) - 1, 'other file')}." if len(untold) > 1 else ""
        self._status.inform(f"Flagged in {path}: {why}.{others}")

    def _waiting(self, path: str) -> list[Hunk]:
        return waiting_hunks(self._files.hunks.for_path(path))


def _found_in(verdict: Verdict, waiting: Sequence[Hunk]) -> dict[int, list[_Remark]]:
    """What the checks of a file say about its hunks."""
    found: dict[int, list[_Remark]] = {}
    if verdict.broken:
        found[waiting[0].id] = [_Remark(f"does not parse ({verdict.broken})")]
    by_line = {
        line: hunk for hunk in waiting for line in range(hunk.start, hunk.start + hunk.added)
    }
    for each in verdict.undefined:
        hunk = by_line.get(each.line - 1)
        line = None if hunk is None else each.line - 1 - hunk.start
        if hunk is None:
            hunk = _took_away(waiting, each.undefined)
        why = f"`{each.undefined}` (line {each.line}) is not defined"
        found.setdefault(hunk.id, []).append(_Remark(why, line))
    return found


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
