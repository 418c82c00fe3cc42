"""Collects the context of an instruction, by importance.

The parts are the open file, the selection, ``@`` files and folders, ``@diff`` and ``@error``, the
project's instructions, the file's uncommitted change, earlier decisions and related code.  A file
that git ignores is read only if the user allowed it.  From folders and from the changes of all
files, files that look as if they held credentials are left out too, and credentials in others are
masked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from midstream.codebase.related import Excerpt, Related, listed, masked
from midstream.counting import counted
from midstream.edits.documents import NotTextError, SourceText
from midstream.errors import UserError
from midstream.pairing.request.context import (
    CHARACTERS_PER_TOKEN,
    LeftOut,
    Part,
    decisions,
    estimate,
)
from midstream.pairing.request.mentions import AtPath, AtWord
from midstream.workspace.repo import GitFailedError, files_diff, work_tree_changes

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.pairing.request.subject import Subject
    from midstream.workspace.files import Workspace

INSTRUCTION_FILES: Final = ("AGENTS.md", "CLAUDE.md")
"""Read in the root and in every folder on the way to the file."""
ROOT_INSTRUCTION_FILES: Final = (".cursorrules",)
MAX_INSTRUCTIONS: Final = 2_000
"""Tokens of one file with project instructions."""
MAX_CHANGE: Final = 2_000
"""Tokens of the change that a question is about."""
MAX_DIFF: Final = 1_500
"""Tokens of the file's uncommitted changes."""
MAX_CHANGES: Final = 6_000
"""Tokens of all uncommitted changes."""
MAX_MENTIONED: Final = 6_000
"""Tokens of one file or folder named with ``@``."""
MAX_LISTED: Final = 200
"""Files of a folder that are listed; others are counted."""
MAX_ERROR: Final = 3_000
"""Tokens of what failed."""
MAX_SAID_LENGTH: Final = 2_000
"""Tokens of the conversation that go along with an instruction."""
DEFINITIONS_SHARE: Final = 0.75
"""Share of the related code that definitions may take; the rest is for the places of use."""
MAX_NAMED: Final = 4
"""Names that the reason for a part lists."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What context is asked for.

    Attributes:
        path: The file that the instruction is about, ``""`` if it is about none.
        text: Its text as it is proposed now, ``None`` to leave it out (a region request has it).
        line: 0-based line of ``text`` that matters most.
        selection: 0-based half-open range of lines that the user selected.
        change: The change that the user looks at.
        mentioned: Files and folders named with ``@``.
        words: What else is named with ``@``.
        error: What failed last, for ``@error``.
        allowed: Ignored files that the user allowed.
        conversation: What was asked and answered in words before.
        hunks: Hunks of the session, for the decisions.
        instructions: Whether the project's instructions go along.
        related: The code related to the place, ``None`` if it is not known.
        most_related: Tokens that it may take.
        shown: 0-based half-open range of lines around the place that go out anyway where ``text``
            is left out.
        around: What stands above and below the place, where ``text`` is left out.
        subject: The code that new tests are for.
    """

    path: str
    text: str | None
    line: int = 0
    selection: tuple[int, int] | None = None
    change: str = ""
    mentioned: tuple[AtPath, ...] = ()
    words: frozenset[AtWord] = frozenset()
    error: str = ""
    allowed: Collection[str] = ()
    conversation: str = ""
    hunks: Sequence[Hunk] = field(default_factory=tuple)
    instructions: bool = True
    related: Related | None = None
    most_related: int = 0
    shown: tuple[int, int] = (0, 0)
    around: tuple[str, str] = ("", "")
    subject: Subject | None = None


def gather(workspace: Workspace, wanted: Wanted) -> tuple[list[Part], list[LeftOut]]:
    """Parts by importance, and what is left out, with why (blocking)."""
    parts: list[Part] = []
    left_out: list[LeftOut] = []
    if wanted.text is not None:
        named = any(m.path == wanted.path and m.lines is None for m in wanted.mentioned)
        file = Part(wanted.path, "file", wanted.text, keep=wanted.line, unasked=not named)
        parts.append(file)
        if wanted.selection is not None:
            start, stop = wanted.selection
            lines = wanted.text.splitlines(keepends=True)[start:stop]
            name = f"{wanted.path} lines {start + 1}-{stop}"
            parts.append(Part(name, "selection", "".join(lines), first=start + 1))
    if (subject := wanted.subject) is not None:
        parts.append(Part(subject.path, "subject", subject.text, most=MAX_MENTIONED, why="tested"))
    if wanted.change:
        parts.append(Part("change", "change", wanted.change, most=MAX_CHANGE, unasked=True))
    if AtWord.ERROR in wanted.words:
        parts.append(Part("error", "error", masked(wanted.error), most=MAX_ERROR))
        if not wanted.error:
            left_out.append(LeftOut("error", "no check has failed"))
    parts += _files(workspace, wanted)
    parts += _folders(workspace, wanted, left_out)
    above, below = wanted.around
    last = above.count("\n") - 1
    parts.append(Part("lines above", "above", above, keep=last, unasked=True))
    parts.append(Part("lines below", "below", below, unasked=True))
    if AtWord.DIFF in wanted.words:
        changes = _changes(workspace, left_out)
        parts.append(Part("all changes", "diff", changes, most=MAX_CHANGES))
        if not changes:
            left_out.append(LeftOut("all changes", "nothing is uncommitted"))
    parts.append(
        Part(
            "conversation", "conversation", wanted.conversation, most=MAX_SAID_LENGTH, unasked=True
        )
    )
    parts.append(decisions(wanted.hunks))
    if wanted.instructions:
        parts += _instructions(workspace, wanted, left_out)
    if wanted.path and AtWord.DIFF not in wanted.words:
        parts.append(
            Part("diff", "diff", _diff(workspace, wanted.path), most=MAX_DIFF, unasked=True)
        )
    if wanted.related is not None:
        parts += _related(wanted, wanted.related, left_out)
    return [part for part in parts if part.text], left_out


def _files(workspace: Workspace, wanted: Wanted) -> list[Part]:
    parts: list[Part] = []
    for mention in wanted.mentioned:
        if mention.folder:
            continue
        if mention.path == wanted.path and wanted.text is not None and mention.lines is None:
            continue
        text = _decoded(workspace.peek(mention.path))
        first, name = 1, mention.path
        if mention.lines is not None:
            start, stop = mention.lines
            text = "".join(text.splitlines(keepends=True)[start:stop])
            first, name = start + 1, f"{mention.path} lines {start + 1}-{stop}"
        parts.append(Part(name, "file", text, most=MAX_MENTIONED, first=first))
    return parts


def _folders(workspace: Workspace, wanted: Wanted, left_out: list[LeftOut]) -> list[Part]:
    """For each folder the list of its files, and those files that there is room for, whole."""
    parts: list[Part] = []
    known = {each.path for each in wanted.mentioned if each.lines is None}
    known |= {wanted.path} if wanted.text is not None else set()
    for folder in [each.path for each in wanted.mentioned if each.folder]:
        prefix = "" if folder == "." else f"{folder}/"
        inside = [path for path in workspace.files() if path.startswith(prefix)]
        # What lies in the folder itself says more about it than what lies deep below.
        inside.sort(key=lambda path: (path.count("/"), path))
        listed = "".join(f"{path}\n" for path in inside[:MAX_LISTED])
        if len(inside) > MAX_LISTED:
            listed += f"({len(inside) - MAX_LISTED:,} more)\n"
        shown = prefix or "./"
        parts.append(Part(shown, "folder", listed or "(no files)\n"))
        room = MAX_MENTIONED - estimate(listed)
        refused = 0
        for path in inside:
            if path in known:
                continue
            text = _whole(workspace, path, room)
            if text is None:
                refused += 1
            elif text:
                known.add(path)
                parts.append(Part(path, "file", text))
                room -= estimate(text)
        if refused:
            why = (
                f"{counted(refused, 'file')} of {len(inside):,} only listed, a folder may take "
                f"{MAX_MENTIONED:,} tokens"
            )
            left_out.append(LeftOut(shown, why))
    return parts


def _whole(workspace: Workspace, path: str, room: int) -> str | None:
    """A file of a folder, masked; ``""`` if it has no text, ``None`` if it may not or cannot go."""
    from midstream.guard.secrets import holds_secrets

    try:
        name = workspace.relative(path)
        size = (workspace.root / name).stat().st_size
        # A character takes four bytes at most; a file that is certainly too long is not read.
        if name != path or holds_secrets(path) or size > 4 * room * CHARACTERS_PER_TOKEN:
            return None
        text = _decoded(workspace.peek(path))
    except (UserError, OSError):
        return None
    return None if estimate(text) > room else masked(text)


def _changes(workspace: Workspace, left_out: list[LeftOut]) -> str:
    """The uncommitted changes of all files, and the names of new ones."""
    from midstream.guard.secrets import holds_secrets

    try:
        changed = work_tree_changes(workspace.root)
    except GitFailedError as error:
        raise UserError(f"Git cannot say what has changed: {error}") from None
    paths = sorted(changed.tracked)
    told = [path for path in paths if not holds_secrets(path)]
    left_out += [LeftOut(path, "it may hold credentials") for path in paths if holds_secrets(path)]
    new = "".join(f"new file {path}\n" for path in sorted(changed.new)[:MAX_LISTED])
    # Far more than is sent: the rest would only be cut.
    most = int(8 * MAX_CHANGES * CHARACTERS_PER_TOKEN)
    return new + masked(files_diff(workspace.root, told)[:most] if told else "")


def _related(wanted: Wanted, related: Related, left_out: list[LeftOut]) -> Iterator[Part]:
    """The definitions that the place uses and the places that use it, without what goes anyway."""
    whole = {each.path for each in wanted.mentioned if each.lines is None}
    whole |= {wanted.path} if wanted.text is not None else set()
    start, stop = wanted.shown

    def goes(each: Excerpt) -> bool:
        near = each.path == wanted.path and start <= each.line < stop
        return each.path in whole or near

    here = related.symbol or wanted.path
    room = wanted.most_related
    for kind, one, why, found, share in (
        ("definitions", "definition", f"{here} uses", related.definitions, DEFINITIONS_SHARE),
        ("uses", "use", f"of {here} in", related.uses, 1.0),
    ):
        some = [each for each in found if not goes(each)]
        kept: list[Excerpt] = []
        spent = 0
        for each in some:
            if spent + estimate(listed([each])) + 1 <= room * share:
                kept.append(each)
                spent += estimate(listed([each])) + 1
        room -= spent
        if missing := len(some) - len(kept):
            why_not = f"related code may take {wanted.most_related:,} tokens"
            left_out.append(LeftOut(counted(missing, f"more {one}"), why_not))
        if kept:
            told = [f"{e.path}:{e.line + 1}" if kind == "uses" else e.name for e in kept]
            more = f" and {len(told) - MAX_NAMED} more" if len(told) > MAX_NAMED else ""
            reason = f"{why} {', '.join(told[:MAX_NAMED])}{more}"
            yield Part(counted(len(kept), one), kind, listed(kept), why=reason, unasked=True)


def _instructions(workspace: Workspace, wanted: Wanted, left_out: list[LeftOut]) -> list[Part]:
    """The project's instructions and those of the folders on the way to a file, nearest last."""
    parts: list[Part] = []
    for folder in reversed(PurePosixPath(wanted.path or "any").parents):
        at_root = str(folder) == "."
        for name in (*INSTRUCTION_FILES, *(ROOT_INSTRUCTION_FILES if at_root else ())):
            path = str(folder / name)
            text = _read(workspace, path, wanted.allowed, left_out)
            # One is often a link to the other, or a copy.
            if not any(part.text == text for part in parts):
                parts.append(Part(path, "instructions", text, most=MAX_INSTRUCTIONS, unasked=True))
    return parts


def _read(
    workspace: Workspace, path: str, allowed: Collection[str], left_out: list[LeftOut]
) -> str:
    try:
        if not (workspace.root / path).is_file():
            return ""
        if path not in allowed and workspace.ignores(path):
            left_out.append(LeftOut(path, "git ignores it"))
            return ""
        return _decoded(workspace.peek(path))
    except UserError:
        return ""  # For example a link out of the folder; the user did not name it.


def _diff(workspace: Workspace, path: str) -> str:
    return masked(files_diff(workspace.root, [path]))


def _decoded(data: bytes) -> str:
    try:
        return SourceText.from_bytes(data).text()
    except NotTextError:
        return ""
