"""Errors of the wafer simulator: one sentence that names the thing and the way out.

The package is usable on its own, so it has its own small hierarchy instead of the application's.
``exit_code`` follows the command line's convention: 1 the answer is no, 2 bad usage, 3 a model or
file is unavailable.
"""

from __future__ import annotations

from typing import ClassVar


class WaferError(Exception):
    """A problem a person can act on; ``str(error)`` is the whole sentence."""

    code: ClassVar[str] = "wafer"
    """Stable, machine-readable name, shown in ``--json`` output."""
    exit_code: ClassVar[int] = 1


class WaferUsageError(WaferError):
    """A name, an option or a value was wrong."""

    code = "usage"
    exit_code = 2


class RowError(WaferUsageError):
    """A cell of a table of measurements cannot be used.

    Attributes:
        column: The column it stands in.
    """

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


class ModelUnavailableError(WaferError):
    """A model file or folder cannot be found or read."""

    code = "unavailable"
    exit_code = 3


class DoesNotFitError(WaferError):
    """A model was refused by the placement.

    Attributes:
        reason: Which limit was broken (memory, colours, context).
        smallest_wafers: The smallest number of wafers that would hold it, or None when no number
            does.
    """

    code = "does_not_fit"

    def __init__(self, message: str, *, reason: str, smallest_wafers: int | None) -> None:
        super().__init__(message)
        self.reason = reason
        self.smallest_wafers = smallest_wafers
