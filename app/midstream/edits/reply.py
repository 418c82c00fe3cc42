"""A parsed reply as data: the events of a parser collected into files and hunks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from midstream.edits.events import (
    ContextLine,
    Event,
    FileOp,
    FileSectionClosed,
    FileSectionOpened,
    HunkClosed,
    HunkOpened,
    NewText,
    OldLine,
    Problem,
)
from midstream.edits.lcs import equal_blocks
from midstream.edits.parsing import file_name, is_fence

_NUMBER = re.compile(r"\s*(\d+)(?: ?\| ?|\t|: )")


class Side(Enum):
    """Which side of a change a line is on."""

    CONTEXT = " "
    OLD = "-"
    NEW = "+"


class HunkLine(NamedTuple):
    """One line of a hunk."""

    side: Side
    text: str

    @property
    def is_blank(self) -> bool:
        """Whether it is a blank line that must be in the file."""
        return self.side is not Side.NEW and not self.text.strip()


@dataclass(slots=True)
class ReplyHunk:
    """One block of changes as the reply has it; attributes as in the events."""

    id: int
    context: tuple[str, ...] = ()
    line: int | None = None
    characters: bool = False
    create_only: bool = False
    at_end: bool = False
    everywhere: bool = False
    closed: bool = False
    problem: str = ""
    parts: list[HunkLine] = field(default_factory=list[HunkLine])
    new_text: str = ""
    """All new text as it came (of formats that give it in one piece)."""

    @property
    def old(self) -> list[str]:
        """The lines that must be in the file."""
        return [part.text for part in self.parts if part.side is not Side.NEW]

    @property
    def new(self) -> list[str]:
        """The lines that replace them."""
        return [part.text for part in self.parts if part.side is not Side.OLD]

    def trimmed(self) -> list[ReplyHunk]:
        """Versions without blank old lines that models add: at the end, at the start, at both."""
        versions: list[ReplyHunk] = []
        for head, tail in ((False, True), (True, False), (True, True)):
            parts = list(self.parts)
            while tail and parts and parts[-1].is_blank:
                parts.pop()
            while head and parts and parts[0].is_blank:
                parts.pop(0)
            if len(parts) < len(self.parts) and any(p.side is not Side.NEW for p in parts):
                version = ReplyHunk(self.id, self.context, self.line, at_end=self.at_end)
                version.parts = parts
                versions.append(version)
        return versions

    def renumbered(self) -> ReplyHunk | None:
        """The hunk without line numbers that a model copied with the lines, if there are any."""
        numbers = [_NUMBER.match(part.text) for part in self.parts if part.side is not Side.NEW]
        found = [int(match[1]) for match in numbers if match]
        if not found or len(found) < len(numbers) or sorted(set(found)) != found:
            return None
        return self._with([HunkLine(p.side, _NUMBER.sub("", p.text, count=1)) for p in self.parts])

    def respaced(self) -> ReplyHunk | None:
        """The hunk with the space in front of context lines that a model left out of a diff."""
        if not any(p.side is Side.CONTEXT and p.text[:1] == " " for p in self.parts):
            return None
        return self._with(
            [
                HunkLine(
                    p.side, f" {p.text}" if p.side is Side.CONTEXT and p.text.strip() else p.text
                )
                for p in self.parts
            ]
        )

    def _with(self, parts: list[HunkLine]) -> ReplyHunk:
        version = ReplyHunk(self.id, self.context, self.line, at_end=self.at_end)
        version.parts = parts
        return version


@dataclass(slots=True)
class ReplyFile:
    """The effect of a reply on one file."""

    op: FileOp
    path: str
    mentioned: bool = False
    new_path: str | None = None
    final_newline: bool | None = None
    newline: str | None = None
    copied: bool = False
    executable: bool | None = None
    hunks: list[ReplyHunk] = field(default_factory=list[ReplyHunk])


def collect(events: Iterable[Event]) -> tuple[list[ReplyFile], list[Problem]]:
    """The files and hunks of a whole reply, and the problems that the parser reported."""
    files: list[ReplyFile] = []
    hunks: dict[int, ReplyHunk] = {}
    texts: dict[int, list[str]] = {}
    problems: list[Problem] = []
    for event in events:
        match event:
            case FileSectionOpened(op, path, mentioned):
                files.append(ReplyFile(op, path, mentioned))
            case HunkOpened():
                hunk = ReplyHunk(
                    event.hunk, event.context, event.line, event.characters, event.create_only
                )
                hunks[event.hunk] = hunk
                files[-1].hunks.append(hunk)
                texts[event.hunk] = []
            case OldLine(number, text):
                _flush(hunks[number], texts[number])
                hunks[number].parts.append(HunkLine(Side.OLD, text))
            case ContextLine(number, text):
                _flush(hunks[number], texts[number])
                hunks[number].parts.append(HunkLine(Side.CONTEXT, text))
            case NewText(number, text):
                texts[number].append(text)
            case HunkClosed(number, at_end, everywhere):
                hunk = hunks[number]
                _flush(hunk, texts[number])
                hunk.closed, hunk.at_end, hunk.everywhere = True, at_end, everywhere
            case FileSectionClosed():
                files[-1].new_path = event.new_path
                files[-1].copied = event.copied
                files[-1].executable = event.executable
                files[-1].newline = event.newline
                files[-1].final_newline = event.final_newline
            case Problem():
                problems.append(event)
                if event.hunk is not None:
                    hunks[event.hunk].problem = event.message
            case _:
                pass
    for number, hunk in hunks.items():
        _flush(hunk, texts[number])
    return files, problems


def normalise(hunk: ReplyHunk) -> None:
    """Turn a hunk of whole old and new texts into lines; those in common become context."""
    if any(part.side is Side.CONTEXT for part in hunk.parts):
        return
    old, new = _unwrapped(hunk.old, hunk.new)
    hunk.parts = parts_between(old, new)


def parts_between(old: list[str], new: list[str]) -> list[HunkLine]:
    """Old and new lines as parts, with a longest common subsequence as context."""
    parts: list[HunkLine] = []
    at_old = at_new = 0
    for i, j, size in [*equal_blocks(old, new), (len(old), len(new), 0)]:
        parts += (HunkLine(Side.OLD, line) for line in old[at_old:i])
        parts += (HunkLine(Side.NEW, line) for line in new[at_new:j])
        parts += (HunkLine(Side.CONTEXT, line) for line in old[i : i + size])
        at_old, at_new = i + size, j + size
    return parts


def _flush(hunk: ReplyHunk, pieces: list[str]) -> None:
    if pieces:
        text = "".join(pieces)
        pieces.clear()
        hunk.new_text += text
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        hunk.parts += (HunkLine(Side.NEW, line) for line in lines)


def _unwrapped(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """Remove a file name and a fence that a model put inside both halves of a block."""

    def inner(lines: list[str]) -> list[str] | None:
        body = lines[1:] if lines and file_name(lines[0]) and len(lines) > 2 else lines
        if len(body) >= 2 and is_fence(body[0]) and body[-1].strip() in ("```", "````", "~~~"):
            return body[1:-1]
        return None

    inner_old, inner_new = inner(old), inner(new)
    if inner_old is None or (inner_new is None and new):
        return old, new
    return inner_old, inner_new or []
