"""Work for the session, one piece after the other, in the order the user asked for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from textual.dom import DOMNode

from midstream.errors import UserError
from midstream.tui.notices import Notices
from midstream.tui.services import AppServices

Work = Callable[[], Awaitable[object]]


class SerialWork:
    """Runs coroutines of one screen in order; an error becomes a sentence.

    Args:
        host: The screen whose workers they are.
        notices: Shows errors.
        services: Reports internal errors.
        done: Called after each.
    """

    def __init__(
        self,
        host: DOMNode,
        notices: Notices,
        services: AppServices,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self._host = host
        self._notices = notices
        self._services = services
        self._done = done
        self._lock = asyncio.Lock()

    def run(self, work: Work) -> None:
        """Run this after everything that was asked for before."""
        self._host.run_worker(self._run(work), group="serial", exit_on_error=True)

    async def _run(self, work: Work) -> None:
        async with self._lock:
            try:
                await work()
            except UserError as error:
                self._notices.say("error", str(error))
            except Exception as error:  # an internal error must not take the screen down
                self._host.log.error(error)
                self._notices.say("error", self._services.report_defect(error))
            self._done()
