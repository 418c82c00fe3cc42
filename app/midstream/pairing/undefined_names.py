"""Names that are no longer defined because only part of a change was accepted.

A rename with one accepted and one rejected hunk is the user's decision, and leaves code that does
not run.  It is reported, never fixed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from midstream.pairing.status import HunkDecided, SessionEvent

if TYPE_CHECKING:
    from midstream.edits.hunks import HunkStore
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.status import SessionStatus


class UndefinedNames:
    """Looks at a file when its last open hunk was decided.

    Args:
        files: Open proposals by path.
        hunks: Every hunk and its decision.
        status: Where it is said.
        spawn: Runs something in the background of the session.
    """

    def __init__(
        self,
        files: Mapping[str, FileProposal],
        hunks: HunkStore,
        status: SessionStatus,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._files = files
        self._hunks = hunks
        self._status = status
        self._spawn = spawn
        self._looking: set[str] = set()
        self._told: dict[str, tuple[str, ...]] = {}
        status.subscribe(self._hear)

    def _hear(self, event: SessionEvent) -> None:
        """Look at the file of a decision as soon as the decisions taken with it are known too."""
        if isinstance(event, HunkDecided) and event.path not in self._looking:
            self._looking.add(event.path)
            self._spawn(self._look(event.path))

    async def _look(self, path: str) -> None:
        from midstream.pairing.turn.checks import look

        await asyncio.sleep(0)
        self._looking.discard(path)
        proposal = self._files.get(path)
        if proposal is None or not self._is_half(path, proposal):
            return
        after = proposal.composed().lines
        verdict = await look(path, proposal.base.lines, after)
        found = verdict.undefined
        names = tuple(dict.fromkeys(each.undefined for each in found))
        told = self._told.get(path, ())
        self._told[path] = names
        if names and names != told and after == proposal.composed().lines:
            them = " and ".join(f"`{name}`" for name in names[:2])
            self._status.warn(
                f"{them} ({path}, line {found[0].line}) "
                f"{'is' if len(names) == 1 else 'are'} no longer defined: only part of the "
                "change was accepted. Undo a decision, or ask for the rest."
            )

    def _is_half(self, path: str, proposal: FileProposal) -> bool:
        """Whether nothing is open in a file, and of its hunks some are in it and others not."""
        if self._hunks.undecided(path) or not all(s.finished for s in proposal.segments):
            return False
        states = {hunk.state for hunk in self._hunks.for_path(path)}
        return {"accepted", "rejected"} <= states
