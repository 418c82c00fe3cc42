"""Dry runs: an answer applied to copies of the files, for the checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from midstream.errors import UserError
from midstream.pairing.turn.checks import Lines
from midstream.pairing.turn.reply_files import meanings

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.edits.parsing import ReplyParser
    from midstream.edits.proposal import FileProposal
    from midstream.workspace.files import Workspace


@dataclass(frozen=True, slots=True)
class DryRun:
    """What an answer would do.

    Attributes:
        before: The lines of each file that it names.
        after: The same as it would leave them.
        misplaced: Edits that do not match.
    """

    before: Lines
    after: Lines
    misplaced: int = 0


class DryRunFiles:
    """Copies of the files that an answer would change.

    Attributes:
        workspace: The folder.
    """

    def __init__(self, workspace: Workspace, files: Mapping[str, FileProposal]) -> None:
        self.workspace = workspace
        self._files = files

    async def dry_run(
        self, text: str, parser: ReplyParser, main: str, *, correction: bool
    ) -> DryRun:
        """Apply an answer in which the model names the places to copies.

        Args:
            text: The answer.
            parser: A fresh parser of its format.
            main: The file that the instruction is about.
            correction: Whether the files of the answer that it corrects belong to it, too.
        """
        from midstream.edits.proposal import Overlay

        now = {
            path: Overlay(proposal).source
            for path, proposal in self._files.items()
            if path == main or PurePosixPath(path).name in text or correction
        }
        base = {path: self._files[path].base.lines for path in now}

        def find(path: str) -> SourceText | None:
            if path not in now and (found := self._read(path)) is not None:
                now[path], base[path] = found, found.lines
            return now.get(path)

        after, misplaced = await asyncio.to_thread(_apply, text, parser, main, find)
        if correction:
            after = {path: source.lines for path, source in now.items()} | after
        return DryRun({path: base.get(path, ()) for path in after}, after, misplaced)

    def _read(self, path: str) -> SourceText | None:
        """A file of the folder that git does not ignore (blocking)."""
        from midstream.edits.documents import NotTextError, SourceText

        try:
            path = self.workspace.relative(path)
            if self.workspace.ignores(path) or not (self.workspace.root / path).is_file():
                return None
            return SourceText.from_bytes(self.workspace.peek(path))
        except (UserError, NotTextError):
            return None


def _apply(
    text: str, parser: ReplyParser, main: str, find: Callable[[str], SourceText | None]
) -> tuple[dict[str, Sequence[str]], int]:
    """The lines of each file that an answer names, and how many edits do not match (blocking)."""
    from midstream.edits.documents import SourceText
    from midstream.edits.events import FileOp
    from midstream.edits.hunks import HunkStore
    from midstream.edits.live import LiveReply
    from midstream.edits.proposal import FileProposal, Overlay

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
    return dict(after), len(reply.failures)
