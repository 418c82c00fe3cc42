"""Temporary folders, which are never made in the folder that is open.

Where no temporary folder can be written, Python makes its temporary files in the working folder.
That is often the folder that is open, and always one of the user's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from midstream.errors import UnavailableError

_VARIABLES: Final = ("TMPDIR", "TEMP", "TMP")
_USUAL: Final = ("/tmp", "/var/tmp", "/usr/tmp")


class ScratchError(UnavailableError):
    """No temporary folder can be made."""

    code = "no-scratch"


def scratch_place() -> Path:
    """The folder in which temporary ones are made (blocking).

    Raises:
        ScratchError: There is none but the working folder.
    """
    try:
        place = Path(tempfile.gettempdir())
    except OSError as error:  # Not even the working folder can be written.
        raise _no_place() from error
    named = [Path(os.environ.get(variable, "")) for variable in _VARIABLES]
    meant = [path for path in (*named, *map(Path, _USUAL)) if path.is_absolute()]
    if place not in meant and _real(place).is_relative_to(_real(Path())):
        raise _no_place()
    return place


def make_scratch(prefix: str) -> Path:
    """Make a temporary folder that the caller removes (blocking); its path has no links.

    Args:
        prefix: How its name begins.

    Raises:
        ScratchError: It cannot be made.
    """
    place = scratch_place()
    try:
        return _real(Path(tempfile.mkdtemp(prefix=prefix, dir=place)))
    except OSError as error:
        raise ScratchError(
            f"No temporary folder can be made in {place} ({error.strerror})",
            "make room there, or set TMPDIR to another folder",
        ) from error


@contextmanager
def scratch_folder() -> Generator[Path]:
    """As ``make_scratch``; it is removed at the end of the ``with`` statement."""
    folder = make_scratch("midstream-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _no_place() -> ScratchError:
    return ScratchError(
        "No folder for temporary files can be written", "set TMPDIR to one outside of this folder"
    )
