"""The files named in an answer: opening them in time, or trying the answer on copies.

Models write paths with ``a/`` and ``b/`` in front, with ``path/to/``, or only their last part.
Files outside the folder, in ``.git``, or ignored by git and not open count as missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from midstream.edits.documents import NotTextError, SourceText
from midstream.edits.events import FileOp
from midstream.edits.hunk_store import HunkStore
from midstream.edits.proposal import FileProposal, Overlay
from midstream.edits.writing import UnreviewedError
from midstream.errors import UserError
from midstream.pairing.turn.checks import Lines
from midstream.workspace.errors import OutsideWorkspaceError

if TYPE_CHECKING:
    from midstream.edits.live import LiveReply
    from midstream.edits.parsing import ReplyParser
    from midstream.edits.writing import Writer
    from midstream.pairing.files.open import OpenFiles
    from midstream.pairing.status import SessionStatus


class ReplyFiles:
    """Opens the files of one answer.

    Args:
        files: Open files.
        status: Where to say what was refused.
        main: The file that the instruction is about.
    """

    def __init__(self, files: OpenFiles, status: SessionStatus, main: str) -> None:
        self._files = files
        self._status = status
        self._main = main
        self._found: dict[str, FileProposal | None] = {}
        self._refused: set[str] = set()
        self._moves = self._deletions = 0  # of the answer, that were looked at

    def lookup(self, path: str, op: FileOp) -> FileProposal | None:
        """The file that was opened under this name."""
        return self._found.get(path)

    async def open(self, path: str, op: FileOp) -> None:
        """Open what a name means, so that ``lookup`` knows it; never raises."""
        creates = op in (FileOp.ADD, FileOp.WRITE)
        found: FileProposal | None = None
        for name in meanings(path, self._main):
            try:
                if not await self._allowed(name):
                    continue
                found = await self._files.open_text(name)
                break
            except OutsideWorkspaceError as error:
                # Models often invent the parent folder of a file, but `..` is never a slip.
                if not PurePosixPath(path).is_absolute():
                    self._refuse(path, error)
                    return
            except UserError:
                continue
        if found is None and (creates or PurePosixPath(path).is_absolute()) and path:
            try:
                if await self._allowed(path) and creates:
                    found = await self._files.create(path)
            except UserError as error:
                self._refuse(path, error)
        self._found[path] = found

    def _refuse(self, path: str, error: UserError) -> None:
        """Say once why the answer may not write a file."""
        self._found[path] = None
        if path not in self._refused:
            self._refused.add(path)
            self._status.warn(f"The answer does not get {path}: {error}")

    async def closed(self, reply: LiveReply) -> None:
        """The answer has finished with a file: propose its deletion or move, if it asks for one."""
        moves, deletions = reply.moves[self._moves :], reply.deletions[self._deletions :]
        self._moves, self._deletions = len(reply.moves), len(reply.deletions)
        for old, new in moves:
            await self._move(old, new, reply)
        for path in deletions:
            await self._delete(path, reply.writer)

    async def _delete(self, path: str, writer: Writer) -> None:
        await self.open(path, FileOp.UPDATE)
        proposal = self._found[path]
        if path in self._refused:
            return
        if proposal is None:
            self._status.warn(f"The answer deletes {path}, which is not there.")
        elif not proposal.base.lines:
            self._status.warn(f"The answer deletes {proposal.path}, which is empty; delete it.")
        else:
            try:
                writer.begin(proposal, 0, len(proposal.base.lines), 0, tight=False)
            except UnreviewedError as error:
                self._status.warn(f"The answer may not delete {path}: {error}; decide first.")
                return
            self._files.disk.may_vanish(proposal)
            writer.finish(proposal)

    async def _move(self, old: str, new: str, reply: LiveReply) -> None:
        source = self._found.get(old)
        if source is None or old == new:
            return
        await self.open(new, FileOp.ADD)
        target = self._found[new]
        if target is None or target is source:
            return
        writer, text = reply.writer, Overlay(source).source.text()
        waiting = [*source.hunks.waiting(source.path), *target.hunks.waiting(target.path)]
        if any(hunk.external for hunk in waiting):
            self._status.warn(
                f"The answer may not move {old} to {new}: changes of other programs wait there for "
                "you; decide first."
            )
            return
        writer.begin(target, 0, len(target.base.lines), 0, tight=False)
        if text:
            writer.feed(target, text)
        writer.finish(target)
        if (old, new) in reply.copies:
            mine = [each.serial for each in reply.segments.values() if each in source.segments]
            for segment in reversed(source.segments):
                if mine and segment.serial >= min(mine):
                    writer.withdraw(source, segment)
            return
        await self._delete(old, writer)
        self._status.inform(f"{source.path} moves to {target.path}: one decision for both.")

    async def _allowed(self, name: str) -> bool:
        path = await asyncio.to_thread(self._files.workspace.relative, name)
        if path in self._files or path == self._main:
            return True
        if await asyncio.to_thread(self._files.workspace.ignores, path):
            self._status.warn(f"The answer edits {path}, which git ignores; open it to allow that.")
            return False
        return True


def meanings(path: str, main: str) -> list[str]:
    """What a name may mean, the likeliest first."""
    names = [path.removeprefix("./")] if path else [main]
    if path[:2] in ("a/", "b/"):
        names.append(path[2:])
    if "path/to/" in path:
        names.append(path.partition("path/to/")[2])
    if path and PurePosixPath(path).name == PurePosixPath(main).name:
        names.append(main)
    return list(dict.fromkeys(name for name in names if name))


# Dry runs


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
    """Copies of the files that an answer would change."""

    def __init__(self, files: OpenFiles) -> None:
        self.workspace = files.workspace
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
    from midstream.edits.live import LiveReply

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
