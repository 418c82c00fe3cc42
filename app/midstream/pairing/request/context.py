"""What goes along with an instruction: collected from the workspace, then cut to a token budget.

The parts are the open file, the selection, ``@`` files, AGENTS.md, the diff and earlier decisions.
Only files that git does not ignore, or that the user allowed, are read.  Tokens are estimated; the
server's own count comes with its answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from midstream.errors import UserError
from midstream.pairing.scope.mentions import AtPath

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.workspace.files import Workspace

CHARACTERS_PER_TOKEN: Final = 3.6
"""Of code, with the vocabularies of hosted models; high enough to stay below a limit."""
DEFAULT_LIMIT: Final = 24_000
"""Tokens of context for a model of unknown context length."""
ANSWER_SHARE: Final = 0.5
"""Of a model's context that is left to its answer and to what follows."""


def estimate(text: str) -> int:
    """About how many tokens a text takes."""
    return -int(-len(text) // CHARACTERS_PER_TOKEN) if text else 0


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of context.

    Attributes:
        name: Its name on screen: a path, ``diff``, ``decisions``.
        kind: ``file``, ``selection``, ``instructions``, ``diff`` or ``decisions``.
        text: What is sent.
        most: Tokens that it may take at most, ``None`` for what is left.
        keep: 0-based line of ``text`` that stays if it has to be cut.
        cut: What is missing, in words; ``""`` if it is whole.
        first: 1-based number of its first line in the file.
    """

    name: str
    kind: str
    text: str
    most: int | None = None
    keep: int = 0
    cut: str = ""
    first: int = 1

    @property
    def tokens(self) -> int:
        """About how many tokens it takes."""
        return estimate(self.text)


@dataclass(frozen=True, slots=True)
class Context:
    """What goes along with one instruction.

    Attributes:
        parts: In the order in which they are sent.
        limit: Tokens that they may take together.
        left_out: Parts for which there was no room, and files that may not go out, with why.
    """

    parts: tuple[Part, ...] = ()
    limit: int = DEFAULT_LIMIT
    left_out: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """About how many tokens it takes."""
        return sum(part.tokens for part in self.parts)

    @property
    def summary(self) -> str:
        """One line, such as ``3.1k tokens: app.py, AGENTS.md, diff``."""
        names = ", ".join(part.name + (" (cut)" if part.cut else "") for part in self.parts)
        return f"{shown_tokens(self.tokens)} tokens: {names}" if names else "no context"

    @property
    def cuts(self) -> tuple[str, ...]:
        """What is missing, one sentence each."""
        return (*(f"{p.name}: {p.cut}" for p in self.parts if p.cut), *self.left_out)


def limit_of(context_length: int | None) -> int:
    """Tokens of context for a model that reads and writes ``context_length`` together."""
    if context_length is None:
        return DEFAULT_LIMIT
    return max(256, min(DEFAULT_LIMIT, int(context_length * ANSWER_SHARE)))


def fit(parts: Sequence[Part], limit: int, left_out: Sequence[str] = ()) -> Context:
    """Parts within a budget, the earlier ones first; what is too long is cut around its place.

    Args:
        parts: In the order of importance.
        limit: Tokens for all.
        left_out: What is missing already, with why.
    """
    kept: list[Part] = []
    missing = list(left_out)
    room = limit
    for part in parts:
        if not part.text:
            continue
        allowed = room if part.most is None else min(room, part.most)
        fitted = _cut(part, allowed)
        if fitted is None:
            missing.append(f"{part.name}: left out, the budget of {limit:,} tokens is spent")
            continue
        kept.append(fitted)
        room -= fitted.tokens
    return Context(tuple(kept), limit, tuple(missing))


def shown_tokens(tokens: int) -> str:
    """A count for display: ``840``, ``3.1k``, ``24k``."""
    if tokens < 1000:
        return str(tokens)
    return f"{tokens / 1000:.1f}k" if tokens < 10_000 else f"{tokens / 1000:.0f}k"


def _cut(part: Part, allowed: int) -> Part | None:
    """A part with whole lines around ``keep`` only, ``None`` if there is no room for any."""
    if part.tokens <= allowed:
        return part
    lines = part.text.splitlines(keepends=True)
    start = stop = min(part.keep, len(lines) - 1)
    room = int(allowed * CHARACTERS_PER_TOKEN)
    while True:
        grown = False
        # Two lines below for each one above: what follows a place says more than what precedes it.
        for step in (1, 1, -1):
            number = stop if step > 0 else start - 1
            if 0 <= number < len(lines) and len(lines[number]) <= room:
                room -= len(lines[number])
                start, stop = (start, stop + 1) if step > 0 else (start - 1, stop)
                grown = True
        if not grown:
            break
    if start == stop:
        return None
    shown = f"lines {part.first + start}-{part.first + stop - 1} of {part.first + len(lines) - 1}"
    return replace(
        part,
        text="".join(lines[start:stop]),
        cut=shown,
        first=part.first + start,
        keep=part.keep - start,
    )


INSTRUCTIONS_FILE: Final = "AGENTS.md"
MOST_INSTRUCTIONS: Final = 2_000
"""Tokens of project instructions."""
MOST_DIFF: Final = 1_500
"""Tokens of the file's uncommitted changes."""
MOST_MENTIONED: Final = 6_000
"""Tokens of one file named with ``@``."""
MOST_DECISIONS: Final = 1_200
MOST_REJECTED_LINES: Final = 24
"""Lines of a rejected hunk in a prompt."""
MOST_HUNKS: Final = 8
"""Decisions that are told of, the last ones."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What context is asked for.

    Attributes:
        path: The file that the instruction is about.
        text: Its text as it is proposed now, ``None`` to leave it out (a region request has it).
        line: 0-based line of ``text`` that matters most.
        selection: 0-based half-open range of lines that the user selected.
        mentioned: Files named with ``@``.
        allowed: Ignored files that the user allowed.
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
    """The user's decisions and their reasons."""
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


def rejected_lines(hunk: Hunk) -> list[str]:
    """The lines of a rejected hunk for a prompt: indented, credentials masked."""
    from midstream.guard.secrets import mask

    lines = [
        *(f"    - {line}" for line in hunk.old),
        *(f"    + {mask(line)}" for line in hunk.new),
    ]
    more = len(lines) - MOST_REJECTED_LINES
    return lines if more <= 0 else [*lines[:-more], f"    ({more} more lines)"]


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
        return ""  # For example a link out of the folder; the user did not name it.


def _diff(workspace: Workspace, path: str) -> str:
    from midstream.workspace.repo import file_diff

    return file_diff(workspace.root, path)


def _decoded(data: bytes) -> str:
    from midstream.edits.documents import NotTextError, SourceText

    try:
        return SourceText.from_bytes(data).text()
    except NotTextError:
        return ""
