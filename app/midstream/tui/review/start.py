"""What a session begins with: earlier ones to go on with, and edits that suit this code.

All is read once, in the background; nothing waits for it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from midstream.tui.clock import when
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.widgets.welcome import Recent

MAX_RECENT: Final = 3
"""Recent sessions that are listed."""


class StartFacts(Controller):
    """Reads the facts of the welcome into the state, once, and offers an earlier review."""

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._begun = False

    def read(self) -> None:
        """Begin to read, unless that was done."""
        if not self._begun and self._state.listed:
            self._begun = True
            self._work.beside(self._read, "start")

    def offer_earlier(self) -> None:
        """Offer the session in which hunks of the review that begins were kept."""
        self._work.beside(self._offer_earlier, "start")

    async def _offer_earlier(self) -> None:
        session = self._state.session
        earlier = await session.earlier_review()
        if earlier is None or session is not self._state.session:
            return

        def go_on() -> None:
            self._work.run(lambda: self._services.take_up(earlier.path))

        self._notices.ask(
            f"{earlier} in the session of {when(earlier.changed)}.",
            ("go on with that session", go_on),
            ("read all again", self._notices.clear),
        )

    async def _read(self) -> None:
        # Not needed before the first paint.
        from midstream.pairing.journal.journal import (
            MAX_REPLAYED_BYTES,
            earlier_sessions,
            summarize,
        )
        from midstream.pairing.request.suggesting import suggest

        state, session = self._state, self._state.session
        if self._services.demo is None:
            repo = session.external.repo
            first = [*session.files, *(repo.marks if repo is not None else ())]
            found = await asyncio.to_thread(suggest, session.root, state.files, first)
            state.suggested = found
            state.refresh()
        for info in await asyncio.to_thread(earlier_sessions, session.root):
            if len(state.recent) >= MAX_RECENT:
                return
            if info.path == session.journal.path or info.size > MAX_REPLAYED_BYTES:
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
