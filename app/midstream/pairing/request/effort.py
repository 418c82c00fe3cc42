"""The effort of a session: what it does for a better answer, or what it asks a hosted model for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from midstream.errors import UsageError
from midstream.settings import SESSION_EFFORTS

if TYPE_CHECKING:
    from midstream.pairing.models.server import ServerLink
    from midstream.pairing.status import SessionStatus

EFFORTS: Final = SESSION_EFFORTS
"""Values of the setting; ``auto`` is low here and leaves a hosted endpoint to its own choice."""
_OWN: Final = {"none": "low", "minimal": "low", "max": "xhigh"}
"""For levels that only hosted models have: the level that a model of our own uses."""
CANDIDATES: Final = {"high": 4, "xhigh": 8}
"""Answers that are written, the greedy one included."""


class Effort:
    """The effort of a session.

    Attributes:
        trying: Candidate that is being written and how many there will be, ``None`` otherwise.
    """

    def __init__(self, level: str, server: ServerLink, status: SessionStatus) -> None:
        self.trying: tuple[int, int] | None = None
        self._level = level
        self._server = server
        self._status = status

    @property
    def level(self) -> str:
        """One of ``EFFORTS``; setting another value raises ``UsageError``."""
        return self._level

    @level.setter
    def level(self, level: str) -> None:
        if level not in EFFORTS:
            raise UsageError(f"There is no effort {level!r}", f"choose one of {', '.join(EFFORTS)}")
        self._level = level
        self._status.touch()

    def passed_on(self) -> str | None:
        """``reasoning.effort`` of a request; a server of our own leaves effort to the session.

        A hosted model is never told a level that its profile does not name, but the nearest one.
        """
        if self._server.own or self._level == "auto":
            return None
        offered = self._server.profile.efforts if self._server.profile is not None else ()
        if not offered or self._level in offered:
            return self._level
        wanted = EFFORTS.index(self._level)
        return min(offered, key=lambda level: abs(EFFORTS.index(level) - wanted))

    @property
    def candidates(self) -> int:
        """How many candidates are written before one is shown; 0 to show the answer itself."""
        return CANDIDATES.get(self._own, 0) if self._server.own else 0

    @property
    def checks(self) -> bool:
        """Whether a finished answer is checked and corrected."""
        return self._server.own and self._own == "medium"

    @property
    def _own(self) -> str:
        return _OWN.get(self._level, self._level)

    def show_progress(self, number: int = 0, count: int = 0) -> None:
        """Note which candidate is being written; without arguments, that none is any more."""
        self.trying = (number + 1, count) if count else None
        self._status.touch()
