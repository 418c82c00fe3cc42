r"""Events of a streaming parser.

Texts never contain ``"\r"``: parsers fold line ends first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class FileOp(StrEnum):
    """The effect of a reply on a file."""

    REGION = "region"
    """Rewrites one region that the request marked."""
    UPDATE = "update"
    """Changes parts of an existing file."""
    ADD = "add"
    """Creates a file."""
    WRITE = "write"
    """Gives the whole text of a file, which may exist."""
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class FileSectionOpened:
    """The events that follow are about a file.

    Attributes:
        op: What the reply does to it.
        path: Its name, ``""`` if the reply gives none.
        mentioned: The name only occurred in a sentence before the block; it counts if the file
            exists.
    """

    op: FileOp
    path: str
    mentioned: bool = False


@dataclass(frozen=True, slots=True)
class HunkOpened:
    """A block of changes starts.

    Attributes:
        hunk: Id; grows within one reply.
        context: Lines that help to find the place, outermost first (``@@`` lines of a patch).
        line: 0-based line number given as a hint, or None; without old lines, insert before it.
        characters: Old and new text are runs of characters, not whole lines.
        create_only: Without old lines the hunk is only meant for a new or empty file.
        old_first: All old lines come before the new text.
    """

    hunk: int
    context: tuple[str, ...] = ()
    line: int | None = None
    characters: bool = False
    create_only: bool = False
    old_first: bool = False


@dataclass(frozen=True, slots=True)
class OldLine:
    """A line that the hunk removes."""

    hunk: int
    text: str


@dataclass(frozen=True, slots=True)
class ContextLine:
    """A line that the hunk keeps."""

    hunk: int
    text: str


@dataclass(frozen=True, slots=True)
class NewText:
    r"""A piece of the hunk's new text, in order; a line is complete when its ``"\n"`` came."""

    hunk: int
    text: str


@dataclass(frozen=True, slots=True)
class HunkClosed:
    """A hunk is complete and will not change.

    Attributes:
        hunk: Its id.
        at_end: Whether it belongs at the end of the file.
        everywhere: Whether it replaces every occurrence of the old lines.
    """

    hunk: int
    at_end: bool = False
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class FileSectionClosed:
    """Nothing more comes for this file.

    Attributes:
        path: The file.
        new_path: Where it moves to, if it does (some formats say so after the hunks).
        final_newline: Whether its text ends with a newline, or None if the format does not say.
        newline: Terminator of lines in a file that has none yet, or None for the default.
        copied: Whether ``new_path`` is a copy and the file stays as it was.
        executable: Whether it shall be executable, or None if the format does not say.
    """

    path: str
    new_path: str | None = None
    final_newline: bool | None = None
    newline: str | None = None
    copied: bool = False
    executable: bool | None = None


@dataclass(frozen=True, slots=True)
class Prose:
    """Text around the edits."""

    text: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the reply is wrong.

    Attributes:
        message: One sentence.
        line: Line of the reply, 0-based.
        hunk: The hunk it spoils, or None.
        fatal: Whether the reply cannot be read any further.
        unfinished: Whether the reply ended before its format does, so that it was cut.
    """

    message: str
    line: int
    hunk: int | None = None
    fatal: bool = False
    unfinished: bool = False


Event = (
    FileSectionOpened
    | HunkOpened
    | OldLine
    | ContextLine
    | NewText
    | HunkClosed
    | FileSectionClosed
    | Prose
    | Problem
)


def merge_text(events: Iterable[Event]) -> list[Event]:
    """Join neighbouring pieces of text, so that the events do not depend on the chunking."""
    merged: list[Event] = []
    for event in events:
        last = merged[-1] if merged else None
        if isinstance(event, NewText) and isinstance(last, NewText) and last.hunk == event.hunk:
            merged[-1] = NewText(last.hunk, last.text + event.text)
        elif isinstance(event, Prose) and isinstance(last, Prose):
            merged[-1] = Prose(last.text + event.text)
        else:
            merged.append(event)
    return merged
