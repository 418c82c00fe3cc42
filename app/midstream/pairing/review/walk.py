"""The walk through a large change: what belongs together, and what to read next.

The kinds of hunks are found in the background, file by file; a file is read again only when its
hunks change.  Nothing is hidden or decided here: the walk is an order, and names groups.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from midstream.codebase.kinds import find_facts
from midstream.counting import counted
from midstream.edits.groups import HunkGroup, ReviewWalk, arrange
from midstream.edits.hunks import HunkState
from midstream.edits.kinds import ChangedBlock, ChangedFile, Evidence, HunkFacts, plain_facts
from midstream.pairing.files.attention import Reading
from midstream.pairing.request.context import hunk_lines
from midstream.pairing.slices import pause
from midstream.pairing.status import (
    ExternalHunksAdded,
    FileChangedOnDisk,
    HunkDecided,
    HunkSettled,
    SessionEvent,
)

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.files.attention import Attention
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.journal.entries import ReadSoFar
    from midstream.pairing.status import SessionStatus, Spawn

LARGE: Final = 100
"""Hunks that wait, from which on the walk is offered by itself."""
PAUSE_S: Final = 0.2
"""Least time between two looks, while hunks keep arriving."""
AT_ONCE: Final = 200
"""Hunks that are arranged without a thread, or counted without a pause, within some 3 ms."""
MAX_TOLD: Final = 20
"""Most hunks of a group whose places a question includes."""
_COMPARED: Final = (
    HunkState.SETTLED,
    HunkState.ACCEPTED,
    HunkState.REJECTED,
    HunkState.HELD,
)
_Texts = dict[int, tuple[tuple[str, ...], tuple[str, ...]]]


class Walkthrough:
    """The walk through the hunks of a session, kept up to date.

    Attributes:
        walk: The groups and the order, as far as they are known.
        on: Whether the reader follows the walk; otherwise the order of the files.
        busy: Whether changes are being read.
    """

    def __init__(
        self,
        files: OpenFiles,
        status: SessionStatus,
        spawn: Spawn,
        attention: Attention,
        reason: Callable[[Hunk], str],
        resumed: ReadSoFar,
    ) -> None:
        self.walk = ReviewWalk()
        self.on = resumed.walk
        self.busy = False
        self._files = files
        self._hunks = files.hunks
        self._status = status
        self._spawn = spawn
        self._attention = attention
        self._reason = reason
        self._due: set[str] = set()
        self._seen: dict[str, ChangedFile] = {}
        self._facts: dict[str, list[HunkFacts]] = {}
        self._visited = dict.fromkeys(resumed.visited)
        self._group_of: dict[int, HunkGroup] = {}
        self._texts: _Texts = {}
        self._offered = False
        self._counted: tuple[object, int] = (None, 0)
        self._ordered: tuple[object, list[int]] = (None, [])

    # keeping up

    def hear(self, event: SessionEvent) -> None:
        """Look at a file whose hunks have changed."""
        if isinstance(event, (ExternalHunksAdded, FileChangedOnDisk, HunkDecided, HunkSettled)):
            self.look((event.path,))

    def look(self, paths: Iterable[str]) -> None:
        """Look at files, soon."""
        self._due.update(paths)
        if self._due and not self.busy:
            self.busy = True
            self._spawn(self._look_at_due())

    async def _look_at_due(self) -> None:
        try:
            while self._due:
                await asyncio.sleep(PAUSE_S if self._facts else 0)
                paths, self._due = sorted(self._due), set()
                changed: list[ChangedFile] = []
                for path in paths:
                    if (file := self._changed(path)) is not None:
                        changed.append(file)
                    await pause()
                await self._read(changed)
        finally:
            self.busy = False

    def _changed(self, path: str) -> ChangedFile | None:
        """The file as it is now, if it is not as it was; one without hunks is forgotten."""
        proposal = self._files.get(path)
        file = None if proposal is None else _file_of(proposal, self._hunks.for_path(path))
        if file is None or not file.blocks:
            if self._seen.pop(path, None) is not None:
                self._facts.pop(path, None)
                return ChangedFile(path, (), ())
            return None
        if self._seen.get(path) == file:
            return None
        self._seen[path] = file
        return file

    async def _read(self, files: list[ChangedFile]) -> None:
        if not files:
            return
        fresh = {file.path: file for file in files if file.blocks}
        # Shown with the first file, and each time as many hunks again are known: all these looks
        # together cost no more than two at the whole.
        done, due = 0, len(self.walk.evidence)
        async with contextlib.aclosing(find_facts([*fresh.values()])) as found:
            async for facts in found:
                self._facts[facts[0].path] = facts
                del fresh[facts[0].path]
                done += len(facts)
                if fresh and done >= due:
                    await self._arrange()
                    due = 2 * done
        for path, file in fresh.items():  # not read: its hunks are shown without their kinds
            self._facts[path] = plain_facts(file)
        await self._arrange()
        await self._offer()

    async def _offer(self) -> None:
        """Say once that there is a walk, when it is known and many hunks wait."""
        if self._offered or self._due or len(self._hunks.waiting()) < LARGE:
            return
        self._offered = self.on = True
        hunks, decisions = len(self.walk.evidence), 0
        for number, more in enumerate(self._count_decisions()):
            decisions += more
            if number % AT_ONCE == 0:
                await pause()
        self._status.inform(
            f"{hunks:,} hunks need {decisions:,} decisions: risky ones come first, equal ones are "
            "decided at once",
            action="walk",
        )

    async def _arrange(self) -> None:
        facts = [hunk for path in self._files for hunk in self._facts.get(path, ())]
        if len(facts) <= AT_ONCE:
            found = _arranged(facts)
        else:
            found = await asyncio.to_thread(_arranged, facts)
        self.walk, self._texts, self._group_of = found
        self._status.touch()

    # what is known

    @property
    def decisions(self) -> int:
        """How many decisions are left: one for each group, and one for each other hunk.

        Hunks of groups that have to be decided one by one, as they are risky, count as others.
        """
        return sum(self._count_decisions())

    def _count_decisions(self) -> Iterator[int]:
        """Count them piece by piece: the reason for a risk is computed when it is first asked
        for.
        """
        for part in self.walk.sections:
            yield len(self.left(part.hunks))
        for group in self.walk.groups:
            together = False
            for hunk in self.left(group.hunks):
                alone = bool(self.why_alone(hunk))
                together = together or not alone
                yield alone
            yield together

    def evidence(self, hunk: Hunk) -> tuple[Evidence, ...]:
        """The kinds of a hunk, with what shows them."""
        return self.walk.evidence.get(hunk.id, ())

    def group_of(self, hunk: Hunk) -> HunkGroup | None:
        """The group that a hunk is decided with."""
        return self._group_of.get(hunk.id)

    def told(self, hunk: Hunk) -> str:
        """A hunk and the group that it is decided with, for a model that is asked about them."""
        lines = [f"{hunk.path}:{hunk.start + 1}", *hunk_lines(hunk)]
        group = self.group_of(hunk) if hunk.waits else None
        others = [] if group is None else [h for h in self.left(group.hunks) if h is not hunk]
        if group is not None and others:
            many = counted(len(others), "other hunk")
            lines.append(f"It is decided together with {many}: {group.title}")
            lines += [f"* {each.path}:{each.start + 1}" for each in others[:MAX_TOLD]]
            if (more := len(others) - MAX_TOLD) > 0:
                lines.append(f"  ({more} more)")
        return "".join(f"{line}\n" for line in lines)

    def alike(self, hunk: Hunk) -> int:
        """How many other hunks wait that are decided with this one, if it waits itself."""
        group = self.group_of(hunk) if hunk.state is HunkState.SETTLED else None
        if group is None or not self._is_in(group, hunk) or self.why_alone(hunk):
            return 0
        asked = self._hunks.version, self._status.version, id(group)
        if self._counted[0] != asked:  # asked for at every move of the cursor
            self._counted = asked, len(self.together(group)[0]) - 1
        return self._counted[1]

    def present(self, hunk_ids: Iterable[int]) -> list[Hunk]:
        """The hunks that are part of their files, of these."""
        return [hunk for hunk_id in hunk_ids if (hunk := self._hunks.get(hunk_id)).live]

    def left(self, hunk_ids: Iterable[int]) -> list[Hunk]:
        """The hunks that wait for a decision, of these."""
        return [hunk for hunk in self.present(hunk_ids) if hunk.waits]

    def together(self, group: HunkGroup) -> tuple[list[int], list[tuple[Hunk, str]]]:
        """What a decision about a group is about.

        Returns:
            The hunks that are decided; those that have to be decided one by one, and why.
        """
        ids: list[int] = []
        alone: list[tuple[Hunk, str]] = []
        for hunk in self.present(group.hunks):
            if why := self.why_alone(hunk):
                alone.append((hunk, why))
            elif hunk.waits and not self._is_in(group, hunk):
                alone.append((hunk, "has changed since it was compared"))
            elif hunk.waits:
                ids.append(hunk.id)
        return ids, alone

    def _is_in(self, group: HunkGroup, hunk: Hunk) -> bool:
        """Whether a hunk was found to be in a group with the lines that it has now."""
        now = self._group_of.get(hunk.id)
        same = now is not None and now.key == group.key
        return same and self._texts.get(hunk.id) == (hunk.old, hunk.new)

    def why_alone(self, hunk: Hunk) -> str:
        """Why a hunk that is not decided has to be decided by itself, if it has to."""
        if hunk.state is HunkState.HELD:
            return hunk.note
        return self._attention.why_alone(hunk) if hunk.waits else ""

    def why_first(self, hunk: Hunk) -> str:
        """Why a hunk that is not decided comes before all others, if it does."""
        if hunk.state is HunkState.HELD:
            return hunk.note
        return self._reason(hunk) if hunk.waits else ""

    def example_read(self, group: HunkGroup) -> bool:
        """Whether the reader has seen one of a group, or decided one."""
        return any(
            hunk.decided or self._attention.reading(hunk) is Reading.READ
            for hunk in self.present(group.hunks)
        )

    # the order

    @property
    def order(self) -> list[int]:
        """The ids of all hunks: those that were visited, as they were, and then the others."""
        asked = self._hunks.version, self._status.version, id(self.walk), len(self._visited)
        if self._ordered[0] == asked:
            return self._ordered[1]
        rest = [hunk_id for hunk_id in self.walk.order if hunk_id not in self._visited]
        risky = {hunk.id for hunk in self.present(rest) if self.why_first(hunk)}
        rest.sort(key=lambda hunk_id: hunk_id not in risky)
        order = [*(i for i in self._visited if i in self.walk.evidence), *rest]
        self._ordered = asked, order
        return order

    @property
    def visited(self) -> list[int]:
        """The ids of the hunks that the reader has come to, in this order."""
        return [*self._visited]

    def visit(self, hunk: Hunk) -> None:
        """The reader has come to a hunk: its place in the order stays from now on."""
        if hunk.id in self.walk.evidence:
            self._visited.setdefault(hunk.id)

    def beyond(self, hunk: Hunk | None, step: int) -> Hunk | None:
        """The next hunk that waits, behind (1) or before (-1) another one; around the end."""
        order = self.order
        shown = {each.id for each in self._files.moves.shown(self.left(order))}
        at = order.index(hunk.id) if hunk is not None and hunk.id in order else -(step > 0)
        for offset in range(1, len(order) + 1):
            hunk_id = order[(at + step * offset) % len(order)]
            if hunk_id in shown and (hunk is None or hunk_id != hunk.id):
                return self._hunks.get(hunk_id)
        return None


def _arranged(facts: list[HunkFacts]) -> tuple[ReviewWalk, _Texts, dict[int, HunkGroup]]:
    """The walk through hunks, the lines that each had then, and the group of each."""
    walk = arrange(facts)
    texts = {hunk.id: (hunk.old, hunk.new) for hunk in facts}
    return walk, texts, {hunk_id: group for group in walk.groups for hunk_id in group.hunks}


def _file_of(proposal: FileProposal, hunks: Iterable[Hunk]) -> ChangedFile:
    """The text of a file as it was before its hunks, whatever was decided about them."""
    base = proposal.base.lines
    lines: list[str] = []
    blocks: list[ChangedBlock] = []
    at = 0
    for hunk in hunks:
        if hunk.state not in _COMPARED or hunk.displaced or hunk.start < at:
            continue
        lines += base[at : hunk.start]
        blocks.append(ChangedBlock(hunk.id, len(lines), hunk.old, hunk.new))
        lines += hunk.old
        at = hunk.stop
    return ChangedFile(proposal.path, (*lines, *base[at:]), tuple(blocks))
