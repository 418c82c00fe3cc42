"""What is said, in pieces that are laid out in an instant each, whatever is in them.

One widget for a long answer would be read and laid out anew with each word.  So it is cut at blank
lines, and shown by a widget for each piece.  What Markdown would take too long for, because it
needs a widget for every few characters, is shown as plain text.  Uses of tools that follow each
other share a widget.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from midstream.pairing.chat.entries import Entry, Speech, ToolUse

PIECE_LINES: Final = 30
"""Lines of a piece after which the next blank line ends it."""
PIECE_LENGTH: Final = 3_000
"""The same in characters."""
MAX_PIECE: Final = 2
"""How many times as long it may get where no blank line comes."""
MAX_FENCE: Final = 100
"""Characters of a line that opens a block of code, where it is repeated."""
MAX_WEIGHT: Final = 120
"""Weight of a piece that is still shown as Markdown."""
TOOL_LENGTH: Final = 80
"""Characters that a use of a tool counts for."""
ITEM: Final = 4
"""Widgets of a list's item."""
MAX_SIGNS: Final = 800
"""Characters in such a piece that may begin something."""
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_MARKS: Final = re.compile(r"[ \t]*(?:[>*+-]|\d+[.)])")
_SIGNS: Final = re.compile(r"[\[*_`<~:]")


@dataclass(slots=True)
class SpeechPiece:
    """A part of what was said; the last one grows.

    Attributes:
        speech: All of it.
        start: Its first character.
        stop: The character after its last, ``None`` while it grows.
        fence: What opened the block of code in which it begins, ``""`` for none.
    """

    speech: Speech
    start: int = 0
    stop: int | None = None
    fence: str = ""

    @property
    def role(self) -> str:
        """Who speaks."""
        return self.speech.role

    @property
    def text(self) -> str:
        """Its text, which is Markdown of its own."""
        return self.fence + self.speech.text[self.start : self.stop]

    @property
    def length(self) -> int:
        """Characters of its text."""
        stop = len(self.speech.text) if self.stop is None else self.stop
        return len(self.fence) + stop - self.start


@dataclass(slots=True)
class ToolPiece:
    """Uses of tools that follow each other; to the last piece, more are added.

    Attributes:
        uses: The uses.
    """

    uses: list[ToolUse]

    @property
    def length(self) -> int:
        """Characters that they count for."""
        return TOOL_LENGTH * len(self.uses)


Piece = SpeechPiece | ToolPiece
"""The content of one widget."""


class Pieces:
    """The pieces of a conversation, as far as it has come; a look costs what is new."""

    def __init__(self) -> None:
        self.all: list[Piece] = []
        self.owners: list[int] = []
        """The entry that each piece belongs to, or begins with."""
        self._taken = 0

    def continues(self, entries: Sequence[Entry]) -> bool:
        """Whether the earlier text is still the beginning of a conversation."""
        if len(entries) < self._taken:
            return False
        if not self.all:
            return True
        last = self.all[-1]
        taken = last.speech if isinstance(last, SpeechPiece) else last.uses[-1]
        return entries[self._taken - 1] is taken

    def follow(self, entries: Sequence[Entry]) -> Iterator[None]:
        """Take what is new; yields after each piece, as there may be thousands of them."""
        last = self.all[-1] if self.all else None
        if isinstance(last, SpeechPiece):
            yield from self._cut(last)
        for entry in entries[self._taken :]:
            self._taken += 1
            last = self.all[-1] if self.all else None
            if isinstance(entry, Speech):
                self._append(piece := SpeechPiece(entry))
                yield
                yield from self._cut(piece)
            elif isinstance(last, ToolPiece) and len(last.uses) < PIECE_LINES:
                last.uses.append(entry)
            else:
                self._append(ToolPiece([entry]))
                yield

    def _append(self, piece: Piece) -> None:
        self.all.append(piece)
        self.owners.append(self._taken - 1)

    def _cut(self, piece: SpeechPiece) -> Iterator[None]:
        """Cut the last piece where it has become too long, until what is left is not."""
        if piece.role != "agent":
            return
        while (found := _end(piece)) is not None:
            stop, fence = found
            piece.stop = stop
            piece = SpeechPiece(piece.speech, stop, None, fence)
            self._append(piece)
            yield


def _end(piece: SpeechPiece) -> tuple[int, str] | None:
    """Where a piece ends that has become too long, and the fence that the next one begins with."""
    if piece.length <= PIECE_LENGTH // 4:
        return None
    text, begun, fence = piece.speech.text, piece.start, piece.fence
    opener = _FENCE.match(fence)
    at, lines, most = begun, 0, begun + MAX_PIECE * PIECE_LENGTH
    fences = fence or text.find("```", begun, most) >= 0 or text.find("~~~", begun, most) >= 0
    while (end := text.find("\n", at, most)) >= 0:
        if fences and (mark := _FENCE.match(text[at:end])) is not None:
            if opener is None:
                opener, fence = mark, text[at:end][:MAX_FENCE] + "\n"
            elif mark[1].startswith(opener[1]):
                opener, fence = None, ""
        blank = end == at
        at, lines = end + 1, lines + 1
        full = lines >= PIECE_LINES or at - begun >= PIECE_LENGTH
        if full and blank and not fence and at < len(text) and not text[at].isspace():
            return at, ""
        if lines >= MAX_PIECE * PIECE_LINES:
            return at, fence
    if len(text) <= most:
        return None
    return (at if at > begun else most), fence


def weight(text: str) -> int:
    """About how many widgets Markdown of a text has."""
    return _weighed(text)[0]


def is_heavy(text: str) -> bool:
    """Whether a piece is to be shown as plain text, as Markdown of it would take too long."""
    widgets, signs = _weighed(text)
    return widgets > MAX_WEIGHT or signs > MAX_SIGNS


def _weighed(text: str) -> tuple[int, int]:
    """Widgets, and characters that may begin something, outside of blocks of code."""
    widgets, signs, fenced = 1, 0, ""
    for line in text.split("\n"):
        if (fence := _FENCE.match(line)) is not None and (not fenced or fence[1] >= fenced):
            fenced = "" if fenced else fence[1]
            widgets += 1
        if fenced:
            continue
        at = 0
        while (mark := _MARKS.match(line, at)) is not None:
            at = mark.end()
            widgets += ITEM
        widgets += line.count("|") + (not line or line.startswith("#"))
        signs += len(_SIGNS.findall(line))
    return widgets, signs


def tail(pieces: Sequence[Piece], lines: int, width: int) -> list[str]:
    """The last lines of a conversation, as plain text and cut at ``width`` characters."""
    found: list[str] = []
    for piece in reversed(pieces):
        if len(found) >= lines:
            break
        if isinstance(piece, ToolPiece):
            calls = [use.call for use in reversed(piece.uses)]
            found += [f"› {call.title or call.kind or 'a tool'}"[:width] for call in calls]
        else:
            said = piece.text[-lines * width :].rstrip("\n").split("\n")[-lines:]
            found += [line[:width] for line in reversed(said)]
    return found[lines - 1 :: -1] if len(found) > lines else found[::-1]
