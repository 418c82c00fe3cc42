"""Where context comes from: open file, selection, ``@`` files, AGENTS.md, diff, decisions.

Reads only files of the workspace that git does not ignore, or that the person allowed.  What is
found is cut to a budget by ``context``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from midstream.errors import UserError
from midstream.pairing.context import Part
from midstream.pairing.requests import rejected_lines
from midstream.pairing.scope.mentions import AtPath

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.workspace.files import Workspace

INSTRUCTIONS_FILE: Final = "AGENTS.md"
MOST_INSTRUCTIONS: Final = 2_000
"""Tokens of project instructions."""
MOST_DIFF: Final = 1_500
"""Tokens of the file's uncommitted changes."""
MOST_MENTIONED: Final = 6_000
"""Tokens of one file named with ``@``."""
MOST_DECISIONS: Final = 1_200
MOST_HUNKS: Final = 8
"""Decisions that are told of, the last ones."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What context is asked for.

    Attributes:
        path: The file that the instruction is about.
        text: Its text as it is proposed now, ``None`` to leave it out (a region request has it).
        line: 0-based line of ``text`` that matters most.
        selection: 0-based half-open range of lines that the person selected.
        mentioned: Files named with ``@``.
        allowed: Ignored files that the person lets go out.
        hunks: Hunks of the session, for the decisions.
    """

    path: str
    text: str | None
    line: int = 0
    selection: tuple[int, int] | None = None
    mentioned: tuple[AtPath, ...] = ()
    allowed: Collection[str] = ()
    hunks: Sequence[Hunk] = field(default_factory=tuple)


def gather(workspace: Workspace, wanted: Wanted) -> tuple[list[Part], list[str]]:
    """Parts by importance, and what may not go out, with why (blocking)."""
    parts: list[Part] = []
    refused: list[str] = []
    if wanted.text is not None:
        parts.append(Part(wanted.path, "file", wanted.text, keep=wanted.line))
        if wanted.selection is not None:
            start, stop = wanted.selection
            lines = wanted.text.splitlines(keepends=True)[start:stop]
            name = f"{wanted.path} lines {start + 1}-{stop}"
            parts.append(Part(name, "selection", "".join(lines), first=start + 1))
    parts += _mentioned(workspace, wanted)
    parts.append(decisions(wanted.hunks))
    for name in _instruction_files(wanted.path):
        text = _read(workspace, name, wanted.allowed, refused)
        parts.append(Part(name, "instructions", text, most=MOST_INSTRUCTIONS))
    parts.append(Part("diff", "diff", _diff(workspace, wanted.path), most=MOST_DIFF))
    return [part for part in parts if part.text], refused


def decisions(hunks: Sequence[Hunk]) -> Part:
    """What the person kept and turned down, and why."""
    from midstream.edits.hunks import HunkState

    told: list[str] = []
    decided = [hunk for hunk in hunks if hunk.decided]
    for hunk in decided[-MOST_HUNKS:]:
        place = f"{hunk.path}:{hunk.start + 1}"
        if hunk.state is HunkState.ACCEPTED:
            told.append(f"* kept at {place} (-{hunk.deleted} +{hunk.added})")
            continue
        reason = " ".join(hunk.note.split())
        told.append(f"* turned down at {place}" + (f" because: {reason}" if reason else ""))
        told += rejected_lines(hunk)
    return Part("decisions", "decisions", "".join(f"{t}\n" for t in told), most=MOST_DECISIONS)


def _mentioned(workspace: Workspace, wanted: Wanted) -> list[Part]:
    parts: list[Part] = []
    for mention in wanted.mentioned:
        if mention.path == wanted.path and wanted.text is not None and mention.lines is None:
            continue
        text = _decoded(workspace.peek(mention.path))
        first, name = 1, mention.path
        if mention.lines is not None:
            start, stop = mention.lines
            text = "".join(text.splitlines(keepends=True)[start:stop])
            first, name = start + 1, f"{mention.path} lines {start + 1}-{stop}"
        parts.append(Part(name, "file", text, most=MOST_MENTIONED, first=first))
    return parts


def _instruction_files(path: str) -> list[str]:
    """The project's instructions and those of the folders on the way to a file, nearest last."""
    folders = [str(folder) for folder in reversed(PurePosixPath(path).parents)]
    return [INSTRUCTIONS_FILE if f == "." else f"{f}/{INSTRUCTIONS_FILE}" for f in folders]


def _read(workspace: Workspace, path: str, allowed: Collection[str], refused: list[str]) -> str:
    try:
        if not (workspace.root / path).is_file():
            return ""
        if path not in allowed and workspace.ignores(path):
            refused.append(f"{path}: not sent, git ignores it")
            return ""
        return _decoded(workspace.peek(path))
    except UserError:
        return ""  # A link out of the folder, say; it was not asked for by name.


def _diff(workspace: Workspace, path: str) -> str:
    from midstream.workspace.repo import file_diff

    return file_diff(workspace.root, path)


def _decoded(data: bytes) -> str:
    from midstream.edits.documents import NotTextError, SourceText

    try:
        return SourceText.from_bytes(data).text()
    except NotTextError:
        return ""
