"""The errors that people read: one sentence that names the thing and the way out.

Every room raises these (or subclasses) for bad input and unavailable things, so that the
command line, ``--json`` output and the screen can show them alike. Exit codes are those of the
design: 1 the answer is no, 2 bad usage, 3 endpoint or model unavailable.
"""

from __future__ import annotations

from typing import ClassVar


class UserError(Exception):
    """A problem a person can act on; ``str(error)`` is the whole sentence."""

    code: ClassVar[str] = "error"
    """Stable, machine-readable name, shown in ``--json`` output."""
    exit_code: ClassVar[int] = 1


class UsageError(UserError):
    """The command or the request itself was wrong."""

    code = "usage"
    exit_code = 2


class UnavailableError(UserError):
    """A model, an endpoint or a needed program cannot be reached or loaded."""

    code = "unavailable"
    exit_code = 3
