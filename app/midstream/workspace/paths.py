"""Where Midstream keeps its own state, and how a path is shown to a person.

Layout below :func:`state_dir`::

    roots/<folder name>-<hash of the full path>/     one per workspace root, see
    :func:`root_state_dir`
        drafts.json   what was typed and not sent, see drafts
        journals/     sessions/journal files
        checkpoints/  copies of files (only where there is no git repository)
        pending/      intent records of writes in progress

Whoever needs a folder creates it with :func:`make_private`, since journals and copies hold code.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

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
    """Name of a workspace root: the folder's name for people, a hash of its real path for
    uniqueness.
    """
    real = os.path.realpath(root)
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(real).name)[:40].strip("-") or "root"
    return f"{name}-{hashlib.blake2b(os.fsencode(real), digest_size=6).hexdigest()}"


def root_state_dir(state: Path, root: Path) -> Path:
    """Folder of one workspace root below the state folder."""
    return state / "roots" / root_key(root)


def make_private(folder: Path) -> Path:
    """Create ``folder`` (and what is missing above it) readable by the user only, and return it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def replace_private(path: Path, data: bytes) -> None:
    """Write a file of the state folder as a whole, readable by the user only (blocking).

    A reader finds the old content or the new; of two writers the later one wins.

    Raises:
        OSError: It cannot be written; the old content stays.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=make_private(path.parent))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def shown(path: str | os.PathLike[str]) -> str:
    """``path`` as it may stand in a sentence: no control characters, no lone surrogates, at most
    200 characters.
    """
    text = os.fspath(path)
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return safe if len(safe) <= 200 else f"{safe[:98]}…{safe[-98:]}"
