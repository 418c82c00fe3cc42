"""Whose changes the index has: the user's, what was kept here, or what nobody has kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.edits.documents import SourceText
from midstream.edits.hunks import HunkState
from midstream.edits.stand_ins import is_whole
from midstream.errors import UserError
from midstream.pairing.contents import as_entry
from midstream.resources import read_small
from midstream.workspace.content import LinkTarget

if TYPE_CHECKING:
    from midstream.pairing.files.open import OpenFiles
    from midstream.workspace.staging import IndexEntry

MAX_COMPARED_BYTES: Final = 20_000_000


class Standing(StrEnum):
    """Whose change of a file it is that the index has."""

    YOURS = "yours"
    """The user's, as far as is known, or what was kept."""
    SINCE = "since"
    """Somebody has staged it since the review began; it is not reviewed."""
    UNKEPT = "unkept"
    """Another program's, which waits for a decision, was put back, or was never on disk."""


def standings(
    files: OpenFiles, ours: Sequence[Mapping[str, IndexEntry | None]]
) -> dict[str, Standing]:
    """Whose each staged change is, by path from the root (blocking).

    Args:
        files: The open files.
        ours: What was staged here, by path.
    """
    from midstream.workspace.staging import is_repository, staged_entries

    follower = files.follower
    doubtful = {
        hunk.path
        for hunk in files.hunks
        if hunk.external and (hunk.waits or hunk.state is HunkState.REJECTED)
    }
    found: dict[str, Standing] = {}
    for path, entry in sorted(staged_entries(files.workspace.root).items()):
        known = [*ours, follower.staged]
        expected = any(path in one and one[path] == entry for one in known)
        if expected or not (follower.reviewing or path in doubtful):
            found[path] = Standing.YOURS
        elif path.startswith("../") or is_repository(entry):
            found[path] = Standing.SINCE
        else:
            try:
                kept = _is_kept(files, path, entry)
            except (UserError, OSError):
                kept = True  # It is too large, or git says why when it commits.
            beside = Standing.YOURS if path in files else Standing.SINCE
            found[path] = beside if kept else Standing.UNKEPT
    return found


def _is_kept(files: OpenFiles, path: str, entry: IndexEntry | None) -> bool:
    """Whether a file has what is staged of it, without what waits.

    Raises:
        OSError: It cannot be read.
        UserError: It cannot be told.
    """
    from midstream.workspace.staging import is_part

    root, program = files.workspace.root, None
    if path in files:
        proposal = files[path]
        reviewed = proposal.reviewed()
        content = file_content(reviewed)
        if not is_whole(reviewed):
            program = proposal.accepted_programs()[1]
        elif (whole := as_entry(reviewed)) is not None:
            program = whole.executable
    else:
        content = _on_disk(root / path)
    return is_part(root, path, entry, content, program=program)


def file_content(text: SourceText) -> bytes | None:
    """The bytes of a file with a text; ``None`` where that stands for no file.

    Raises:
        UnencodableError: They are not kept, or cannot be written.
    """
    entry = as_entry(text)
    return None if entry is None else entry.data


def _on_disk(path: Path) -> bytes | None:
    """What a file holds that nobody has changed since the review began; raises OSError."""
    try:
        if path.is_symlink():
            return LinkTarget(bytes(path.readlink()))
        return read_small(path, MAX_COMPARED_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
