"""Where Midstream keeps its own state, and how a path is shown to the user.

Layout below ``state_dir``::

    roots/<folder name>-<hash of the full path>/     one per workspace root
        drafts.json   unsent input and history
        journals/     sessions/journal files
        checkpoints/  copies of files (only where there is no git repository)
        pending/      intent records of writes in progress
    snapshots/<hash of a range>/    the files of a range while it is reviewed; a lock file beside it
    checks-*/                       texts while ruff reads them

Create these folders with ``make_private``, since journals and copies hold code.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

MAX_NAMED: Final = 3
"""Paths that a sentence names."""

STATE_VARIABLE = "MIDSTREAM_STATE_DIR"


def state_dir() -> Path:
    """Folder for journals, checkpoints and intent records.

    ``MIDSTREAM_STATE_DIR`` overrides the platform's usual place (``~/.local/state/midstream`` on
    Linux).
    """
    override = os.environ.get(STATE_VARIABLE)
    if override:
        return Path(override).expanduser().absolute()
    from platformdirs import user_state_path

    return user_state_path("midstream", appauthor=False)


def root_key(root: Path) -> str:
    """Unique name of a workspace root: the folder's name and a hash of its real path."""
    real = os.path.realpath(root)
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(real).name)[:40].strip("-") or "root"
    return f"{name}-{hashlib.blake2b(os.fsencode(real), digest_size=6).hexdigest()}"


def root_state_dir(state: Path, root: Path) -> Path:
    """Folder of one workspace root below the state folder."""
    return state / "roots" / root_key(root)


def make_private(folder: Path) -> Path:
    """Create ``folder`` (and what is missing above it) readable by the user only, and return it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in missing:
        sync_folder(path.parent)
    return folder


def sync_folder(folder: Path) -> None:
    """Flush the names of a folder to the device (blocking)."""
    with contextlib.suppress(OSError):  # Some file systems cannot flush a folder.
        sync_file(folder, os.O_DIRECTORY)


def sync_file(path: str | os.PathLike[str], flags: int = 0) -> None:
    """Flush a file to the device (blocking).

    Args:
        path: The file.
        flags: Further flags to open it with.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def shown(path: str | os.PathLike[str]) -> str:
    """``path`` for use in a message: no control characters or lone surrogates, 200 characters."""
    text = os.fspath(path)
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return safe if len(safe) <= 200 else f"{safe[:98]}…{safe[-98:]}"


def few_shown(paths: Sequence[str]) -> str:
    """The first of ``paths`` for use in a message, and how many more there are."""
    more = len(paths) - MAX_NAMED
    named = ", ".join(map(shown, paths[:MAX_NAMED]))
    return f"{named} and {more:,} more" if more > 0 else named


def folders_of(rel: str) -> list[str]:
    """The folders that a path below a root is in, outermost first."""
    parts = rel.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
