"""Errors for users: the problem and its remedy.

Every part raises these (or subclasses) for bad input and unavailable things, so that the command
line, ``--json`` output and the screen can show them alike.  Exit codes: 1 the answer is no, 2 bad
usage, 3 endpoint or model unavailable.
"""

from __future__ import annotations

from typing import ClassVar


class UserError(Exception):
    """A problem that the user can act on; ``str(error)`` is the whole message.

    Args:
        problem: What is wrong.  Without a remedy, the whole message; with one, a clause without a
            full stop.
        remedy: What to do about it, as a clause.

    Attributes:
        problem: See above.
        remedy: See above; ``""`` where nothing can be done.
    """

    code: ClassVar[str] = "error"
    """Stable, machine-readable name, shown in ``--json`` output."""
    exit_code: ClassVar[int] = 1

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}; {remedy}." if remedy else problem)
        self.problem = problem
        self.remedy = remedy


class UsageError(UserError):
    """The command or the request itself was wrong."""

    code = "usage"
    exit_code = 2


class UnavailableError(UserError):
    """A model, an endpoint or a required program cannot be reached or loaded."""

    code = "unavailable"
    exit_code = 3
