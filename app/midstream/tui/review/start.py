"""Further facts for the welcome: earlier sessions, and edits that suit this code.

Both are read once, in the background, after the folder is listed; nothing waits for them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from midstream.tui.clock import when
from midstream.tui.widgets.welcome import Recent

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.tui.notices import Work
    from midstream.tui.review.state import ReviewState
    from midstream.tui.services import AppServices

MAX_RECENT: Final = 3
"""Recent sessions that are listed."""
MAX_READ_BYTES: Final = 2_000_000
"""Bytes of a journal that is replayed for it."""


class StartFacts:
    """Reads them into the state, once.

    Args:
        state: Gets them.
        services: The application.
        start: Runs a coroutine in the background.
    """

    def __init__(
        self,
        state: ReviewState,
        services: AppServices,
        start: Callable[[Work], object],
    ) -> None:
        self._state = state
        self._services = services
        self._start = start
        self._begun = False

    def read(self) -> None:
        """Begin to read, unless that was done."""
        if not self._begun and self._state.listed and self._state.session is not None:
            self._begun = True
            self._start(self._read)

    async def _read(self) -> None:
        # Not needed before the first paint.
        from midstream.pairing.journal.journal import earlier_sessions, summarize
        from midstream.pairing.request.suggesting import suggest

        state, session = self._state, self._state.session
        if session is None:
            return
        if self._services.demo is None:
            repo = session.external.repo
            first = [*session.files, *(repo.marks if repo is not None else ())]
            found = await asyncio.to_thread(suggest, session.root, state.files, first)
            state.suggested = found
            state.refresh()
        for info in await asyncio.to_thread(earlier_sessions, session.root):
            if len(state.recent) >= MAX_RECENT:
                return
            if info.path == session.journal.path or info.size > MAX_READ_BYTES:
                continue
            summary = await asyncio.to_thread(summarize, info.path)
            if not summary.instructions:
                continue
            asked = " ".join(summary.instructions[0].split())
            more = len(summary.instructions) - 1
            words = f"{asked} (+{more})" if more else asked
            recent = Recent(info.path, when(info.changed), words, summary.undecided)
            state.recent = (*state.recent, recent)
            state.refresh()
