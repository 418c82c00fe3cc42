"""Errors of the wafer simulator: one sentence that names the problem and the remedy.

The package is usable on its own, so it has a small hierarchy of its own.  ``exit_code`` follows the
command line: 1 negative result, 2 bad usage, 3 a model or file is unavailable.
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
    """A cell of a table of measurements cannot be used; ``column`` names it."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


class ModelUnavailableError(WaferError):
    """A model file or folder cannot be found or read."""

    code = "unavailable"
    exit_code = 3


class DoesNotFitError(WaferError):
    """The placement refused a model.

    Attributes:
        reason: Which limit was broken (memory, colours, context).
        smallest_wafers: The smallest number of wafers that would hold it, or None.
    """

    code = "does_not_fit"

    def __init__(self, message: str, *, reason: str, smallest_wafers: int | None) -> None:
        super().__init__(message)
        self.reason = reason
        self.smallest_wafers = smallest_wafers
