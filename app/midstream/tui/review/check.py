"""The project's checks on the review screen: their page, and visiting the places that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.tui.review.controller import Controller, Shared
from midstream.tui.review.navigate import Navigate
from midstream.tui.review.steer import Steer
from midstream.tui.services import NotNowError

if TYPE_CHECKING:
    from midstream.pairing.checks.findings import FailedPlace
    from midstream.tui.pages.checks import ToPlace


class Check(Controller):
    """Actions on the checks."""

    def __init__(self, shared: Shared, navigate: Navigate, steer: Steer) -> None:
        super().__init__(shared)
        self._navigate = navigate
        self._steer = steer
        self._at: FailedPlace | None = None

    def show(self) -> None:
        """Open the page; the first time, that runs the command."""
        from midstream.tui.pages.checks import ChecksScreen

        check = self._state.session.check

        def left(result: ToPlace | None) -> None:
            if result is not None:
                self._go(result.finding, mend=result.mend)

        self._services.open_screen(ChecksScreen(self._services, check), left)

    def next(self) -> None:
        self._step(1)

    def previous(self) -> None:
        self._step(-1)

    def _step(self, step: int) -> None:
        """Go to the place that failed behind or before the last one."""
        check, key = self._state.session.check, self._services.key_for("checks")
        findings = check.findings
        if not findings:
            words = f"The checks ({check.summary}) have named no place; {key} shows them."
            if check.command is None:
                words = f"No checks have run; {key} runs them."
            raise NotNowError(words)
        at = findings.index(self._at) + step if self._at in findings else min(step, 0)
        self._go(findings[at % len(findings)])

    def _go(self, finding: FailedPlace, *, mend: bool = False) -> None:
        session = self._state.session
        self._at = finding
        findings = session.check.findings
        number = findings.index(finding) + 1 if finding in findings else 1

        async def work() -> None:
            if not await self._navigate.open_path(finding.path, line=finding.line):
                return
            if mend:
                self._steer.instruct(session.mending(finding))
            else:
                words = f"{finding.message} ({number} of {len(findings)})"
                self._notices.say("info", words)

        self._work.run(work)
