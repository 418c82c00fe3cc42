"""What uses the definitions that a hunk changes, and which tests cover its lines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from midstream.code.languages import is_test
from midstream.code.outline import Definition, outline
from midstream.code.syntax import has_syntax
from midstream.codebase.coverage import FileCoverage, read_coverage
from midstream.codebase.references import Use, find_uses
from midstream.codebase.similar_edits import first_use
from midstream.edits.stand_ins import is_whole
from midstream.resources import read_text

if TYPE_CHECKING:
    from pathlib import Path

    from midstream.edits.hunks import Hunk
    from midstream.edits.proposal import FileProposal
    from midstream.workspace.files import Workspace

MAX_PLACES: Final = 200
"""Places of one definition that are read."""


@dataclass(frozen=True, slots=True)
class ChangedDefinition:
    """A definition that a hunk changes.

    Attributes:
        name: Its dotted name.
        start: Its first line: in the file with the hunk, or without it if the definition is gone.
        stop: Its end, exclusive.
        gone: Whether the hunk takes it away.
    """

    name: str
    start: int
    stop: int
    gone: bool


@dataclass(frozen=True, slots=True)
class UsePlace:
    """A place that uses a definition.

    Attributes:
        path: The file.
        line: 0-based line.
        text: That line, without spaces around it.
        inside: The definition that it lies in, ``""`` for none.
        certain: Whether the name means that definition for sure.
        test: Whether it lies in a file of tests.
    """

    path: str
    line: int
    text: str
    inside: str
    certain: bool
    test: bool


class HunkText:
    """A file with and without one of its hunks.

    Attributes:
        path: The file.
        whole: Whether it is decided as a whole.
        before: The lines without the hunk; none of a file that is decided as a whole.
        after: The lines with it.
        removed: The lines of ``before`` that it takes away.
    """

    def __init__(self, proposal: FileProposal, hunk: Hunk) -> None:
        self.whole = is_whole(proposal.base)
        base = () if self.whole else proposal.base.lines
        head, tail = base[: hunk.start], base[hunk.stop :]
        self.path = hunk.path
        self.before = () if self.whole else (*head, *hunk.old, *tail)
        self.after = () if self.whole else (*head, *hunk.new, *tail)
        self._base = base
        self.removed = range(hunk.start, hunk.start + hunk.deleted)
        self._new = range(hunk.start, hunk.start + hunk.added)
        self._here = range(hunk.start, hunk.stop)

    def definitions(self) -> list[ChangedDefinition]:
        """The innermost definitions that the hunk changes, in order (reads syntax)."""
        if self.whole or not has_syntax(self.path):
            return []
        there = {each.name: each for each in outline(self.after, self.path).definitions}
        changed = {each.name: each for each in _innermost(self.after, self._new, self.path)}
        gone: list[Definition] = []
        for each in _innermost(self.before, self.removed, self.path):
            if each.name in there:
                changed.setdefault(each.name, there[each.name])
            else:
                gone.append(each)
        return [
            *(ChangedDefinition(d.name, d.start, d.stop, gone=False) for d in changed.values()),
            *(ChangedDefinition(d.name, d.start, d.stop, gone=True) for d in gone),
        ]

    def lines_on_disk(self) -> list[int]:
        """Its lines in the file as it is; those beside it, if none of them is there."""
        lines = [n for n in self._here if n < len(self._base) and self._base[n].strip()]
        beside = (self._here.start - 1, self._here.stop)
        return lines or [n for n in beside if 0 <= n < len(self._base)]


async def find_definitions(text: HunkText) -> list[ChangedDefinition]:
    """The definitions that a hunk changes."""
    return await asyncio.to_thread(text.definitions)


async def find_places(
    workspace: Workspace, text: HunkText, definition: ChangedDefinition
) -> list[UsePlace]:
    """Find what uses a definition, certain uses first.

    Raises:
        ReferencesError: The search failed.
    """
    lines = text.before if definition.gone else text.after
    owner, _, name = definition.name.rpartition(".")
    if owner and name.startswith("__"):  # it is used by the name of its class
        name = owner.rpartition(".")[2]
    begin = 0 if name == owner.rpartition(".")[2] else definition.start
    spot = first_use(lines, name, range(begin, definition.stop), text.path)
    if spot is None:
        return []
    files = await asyncio.to_thread(workspace.files)
    outside = await asyncio.to_thread(workspace.files_outside, name)
    uses = await find_uses(
        workspace.root,
        [*files, *outside],
        name,
        Use(text.path, *spot),
        texts={text.path: lines},
    )
    own = {*range(definition.start, definition.stop), *(text.removed if definition.gone else ())}
    others = [u for u in uses if not u.defines and not (u.path == text.path and u.line in own)]
    return await asyncio.to_thread(_places, workspace.root, {text.path: lines}, others)


async def find_coverage(workspace: Workspace, path: str) -> FileCoverage | None:
    """What the last tests ran of a file."""
    return await asyncio.to_thread(read_coverage, workspace.root, path)


def _innermost(lines: Sequence[str], changed: Iterable[int], path: str) -> list[Definition]:
    """The innermost definitions of some lines that are not blank, in order."""
    definitions = outline(lines, path).definitions
    found: dict[Definition, None] = {}
    for line in changed:
        if lines[line].strip():
            inside = [each for each in definitions if each.contains(line)]
            found |= dict.fromkeys(inside[-1:])
    return list(found)


def _places(root: Path, texts: dict[str, tuple[str, ...]], uses: Iterable[Use]) -> list[UsePlace]:
    """Uses with their lines (blocking)."""
    by_line: dict[tuple[str, int], Use] = {}
    for use in uses:
        known = by_line.setdefault((use.path, use.line), use)
        if use.certain and not known.certain:
            by_line[use.path, use.line] = use
    ordered = sorted(by_line.values(), key=lambda use: (not use.certain, use.path, use.line))
    places: list[UsePlace] = []
    for use in ordered[:MAX_PLACES]:
        if use.path not in texts:
            try:
                text = read_text(root / use.path, errors="replace")
            except OSError:
                text = ""
            texts[use.path] = tuple(text.split("\n"))
        lines = texts[use.path]
        if use.line >= len(lines):
            continue
        inside = [d.name for d in outline(lines, use.path).definitions if d.contains(use.line)]
        name = inside[-1] if inside else ""
        line = lines[use.line].strip()
        places.append(UsePlace(use.path, use.line, line, name, use.certain, is_test(use.path)))
    return places
