"""An answer on trial: what the files would be like with it, on copies that nobody sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from midstream.edits.documents import SourceText
from midstream.edits.events import FileOp
from midstream.edits.hunks import HunkStore
from midstream.edits.live import LiveReply
from midstream.edits.proposal import FileProposal, Overlay
from midstream.pairing.naming import meanings

if TYPE_CHECKING:
    from midstream.edits.parsing import Parser

Find = Callable[[str], SourceText | None]
"""The text of a file as it is proposed now; ``None`` if there is no such file (or may not be)."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What an answer would do.

    Attributes:
        after: The lines of each file that it names.
        misplaced: Edits without a place.
    """

    after: Mapping[str, tuple[str, ...]]
    misplaced: int


def rehearse(text: str, parser: Parser, main: str, find: Find) -> Rehearsed:
    """Read a whole answer in which the model names the places (blocking).

    Args:
        text: The answer.
        parser: A fresh parser of its format.
        main: The file that the instruction is about.
        find: Finds the other files, and this one.
    """
    copies: dict[str, FileProposal] = {}

    def lookup(path: str, op: FileOp) -> FileProposal | None:
        for name in meanings(path, main):
            if name in copies:
                return copies[name]
            if (source := find(name)) is not None:
                copies[name] = FileProposal(name, source, HunkStore())
                return copies[name]
        if path and op in (FileOp.ADD, FileOp.WRITE):
            copies[path] = FileProposal(path, SourceText.from_text(""), HunkStore())
        return copies.get(path)

    reply = LiveReply(parser, lookup)
    reply.feed(text)
    reply.finish()
    after = {path: Overlay(copy).source.lines for path, copy in copies.items()}
    return Rehearsed(after, len(reply.failures))
