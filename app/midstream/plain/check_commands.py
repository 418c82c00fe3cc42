"""Commands of plain mode about the project's own tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from midstream.errors import UsageError
from midstream.pairing.checks.run import UnconfirmedCommandError

if TYPE_CHECKING:
    from midstream.pairing.checks.findings import FailedPlace
    from midstream.pairing.session import PairingSession


class CheckCommands:
    """Carries them out."""

    def __init__(self, session: PairingSession, say: Callable[[str], None]) -> None:
        self._session = session
        self._say = say

    async def check(self, rest: str) -> None:
        """Run the project's tests, or stop them."""
        check, words = self._session.check, rest.split()
        if rest == "stop":
            if not check.running:
                raise UsageError("No test command is running.")
            await check.stop_command()
            return
        try:
            await check.start_command(confirmed="yes" in words, proposed="proposed" in words)
        except UnconfirmedCommandError as error:
            confirming = " ".join(["check", *words, "yes"])
            raise UsageError(f"{error.problem}; {confirming} runs it here.") from None
        if check.running:
            self._say(f"{check.title} is running; check stop ends it.")

    async def places(self, rest: str) -> None:
        """List the places that the tests found, or show what was printed about one."""
        check = self._session.check
        if rest:
            finding = self.finding(rest)
            for line in (finding.place, finding.message, *check.around(finding)):
                self._say(line)
            return
        self._say(f"{check.title or 'The tests'}: {check.summary}.")
        for number, finding in enumerate(check.findings, 1):
            self._say(f"{number}  {finding.place}: {finding.message}")

    def finding(self, number: str) -> FailedPlace:
        """The place with a number.

        Raises:
            UsageError: There is none.
        """
        findings = self._session.check.findings
        if not 1 <= int(number) <= len(findings):
            raise UsageError(f"There is no place {number}; places lists them.")
        return findings[int(number) - 1]
