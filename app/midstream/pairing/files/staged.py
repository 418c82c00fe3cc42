"""Who staged a change: the user, a decision made here, or another program."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.edits.documents import SourceText, UnencodableError
from midstream.edits.hunks import HunkState
from midstream.edits.stand_ins import StandIn
from midstream.errors import UserError
from midstream.pairing.contents import as_entry
from midstream.resources import read_small
from midstream.workspace.content import LinkTarget, content_digest

if TYPE_CHECKING:
    from midstream.pairing.files.open import OpenFiles
    from midstream.workspace.staging import IndexEntry

MAX_COMPARED_BYTES: Final = 20_000_000
"""Bytes of a file on disk that is compared."""


class Standing(StrEnum):
    """The owner of a file's change in the index."""

    YOURS = "yours"
    """The user's, as far as is known, or what was kept."""
    SINCE = "since"
    """It was staged outside of Midstream since the review began, and is not reviewed."""
    UNKEPT = "unkept"
    """Another program's, which waits for a decision, was put back, or was never on disk."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """What is known of a change that the index has.

    Attributes:
        standing: Whose it is.
        trouble: Why it could not be compared with what was kept, ``""`` if it could.
    """

    standing: Standing
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class _StagedQuestion:
    """A staged file that is to be compared with what was kept of it, away from the event loop.

    Attributes:
        path: The file.
        entry: What the index has.
        reviewed: The open file without what waits; ``None`` if it is not open.
        program: Whether the open file may be run, if that is known.
        doubtful: Whether a change of another program waits there, or was put back.
    """

    path: str
    entry: IndexEntry | None
    reviewed: SourceText | None
    program: bool | None
    doubtful: bool

    def answer(self, root: Path, *, programs: bool) -> StagedFile:
        """The owner of the staged change (blocking)."""
        from midstream.workspace.staging import is_part

        is_open = self.reviewed is not None
        try:
            content, program = self._kept(root, programs=programs)
            kept = is_part(root, self.path, self.entry, content, program=program, programs=programs)
        except (UserError, OSError) as error:
            closed = is_open or self.doubtful
            return StagedFile(Standing.UNKEPT if closed else Standing.SINCE, str(error))
        beside = Standing.YOURS if is_open else Standing.SINCE
        return StagedFile(beside if kept else Standing.UNKEPT)

    def _kept(self, root: Path, *, programs: bool) -> tuple[bytes | None, bool | None]:
        """The bytes of what was kept, and whether it may be run; raises UserError, OSError."""
        if self.reviewed is None:
            return _on_disk(root / self.path), None
        if self.reviewed.missing:
            return None, None
        content = content_bytes(root, self.path, self.reviewed, programs=programs)
        program = self.program
        if isinstance(self.reviewed, StandIn):
            program = self.reviewed.properties.executable
        return content, program


async def standings(
    files: OpenFiles, ours: Sequence[Mapping[str, IndexEntry | None]], *, programs: bool
) -> dict[str, StagedFile]:
    """Whose each staged change is, by path from the root.

    What the session knows is read on the event loop, which changes it; only git, the disk and the
    comparison are left to threads.

    Args:
        files: The open files.
        ours: What was staged here, by path.
        programs: Whether the repository's filters may run.
    """
    from midstream.workspace.staging import is_repository, staged_entries

    root, follower = files.workspace.root, files.follower
    entries = await asyncio.to_thread(staged_entries, root)
    doubtful = {
        hunk.path
        for hunk in files.hunks
        if hunk.external and (hunk.waits or hunk.state is HunkState.REJECTED)
    }
    known = [*ours, follower.staged]
    found: dict[str, StagedFile] = {}
    questions: list[_StagedQuestion] = []
    for path, entry in sorted(entries.items()):
        expected = any(path in one and one[path] == entry for one in known)
        if expected or not (follower.reviewing or path in doubtful):
            found[path] = StagedFile(Standing.YOURS)
        elif path.startswith("../") or is_repository(entry):
            found[path] = StagedFile(Standing.SINCE)
        else:
            proposal = files.get(path)
            reviewed = None if proposal is None else proposal.reviewed()
            program = None if proposal is None else proposal.accepted_programs()[1]
            questions.append(_StagedQuestion(path, entry, reviewed, program, path in doubtful))

    def answers() -> dict[str, StagedFile]:
        return {question.path: question.answer(root, programs=programs) for question in questions}

    return found | await asyncio.to_thread(answers)


def content_bytes(root: Path, path: str, text: SourceText, *, programs: bool) -> bytes | None:
    """The bytes of a file with a text; ``None`` where that stands for no file (blocking).

    Those of a large file are not kept, but read where they still are: on disk, or in git, whose
    filters of the repository's own run only if ``programs`` may.

    Raises:
        UnencodableError: They are nowhere any more, or cannot be written.
    """
    try:
        entry = as_entry(text)
        return None if entry is None else entry.data
    except UnencodableError:
        if isinstance(text, StandIn) and (digest := text.properties.digest):
            for data in _found(root, path, programs=programs):
                if content_digest(data) == digest:
                    return data
        raise


def _found(root: Path, path: str, *, programs: bool) -> Iterator[bytes]:
    """The entries of a file on disk, in the index and in the last commit, where they exist."""
    from midstream.workspace.staging import stored_contents

    with contextlib.suppress(OSError):
        if (data := _on_disk(root / path)) is not None:
            yield data
    yield from stored_contents(root, path, programs=programs)


def _on_disk(path: Path) -> bytes | None:
    """The bytes of a file that has not changed since the review began; raises OSError."""
    try:
        if path.is_symlink():
            return LinkTarget(bytes(path.readlink()))
        return read_small(path, MAX_COMPARED_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
