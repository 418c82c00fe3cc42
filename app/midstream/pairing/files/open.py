"""The open files of a session, by path.

One lock orders everything that reads or writes the disk: decisions, undo, external changes and the
start of a turn.  Streaming does not take it, so text keeps arriving while a file is written.  Knows
no model and no turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from midstream.edits.documents import NO_FILE
from midstream.edits.stand_ins import is_whole
from midstream.errors import UserError
from midstream.pairing.contents import NotTextFileError, decoded, encode
from midstream.pairing.files.follow import DiskFollower, UnopenedChange
from midstream.pairing.files.moves import Moves
from midstream.pairing.journal.entries import BaseEntry
from midstream.pairing.journal.journal import SessionJournal
from midstream.pairing.status import HunkDecided, SessionStatus
from midstream.workspace.errors import MissingFileError, UnknownFormerError
from midstream.workspace.watch import signature_of

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.journal.journal import Replay
    from midstream.workspace.files import Workspace
    from midstream.workspace.watch import Signature

ChangesFound = dict[str, UnopenedChange | UnknownFormerError | None]
"""The changes of files by path: ``None`` for no change, an error where it is unknown."""


class OpenFiles(Mapping[str, "FileProposal"]):
    """Open files, a mapping of path to proposal: opening them, and keeping up with the disk.

    Attributes:
        workspace: The folder.
        hunks: Every hunk of the session and its decision.
        follower: Keeps the proposals in step with the disk.
        disk: What the files have on disk.
        lock: Held while a proposal is compared with the disk.
        moves: Which hunks are the two halves of a file that was moved.
    """

    def __init__(
        self,
        workspace: Workspace,
        resumed: Replay,
        status: SessionStatus,
        journal: SessionJournal,
    ) -> None:
        self.workspace = workspace
        self.hunks = resumed.hunks
        self.follower = DiskFollower(workspace, resumed, status, journal)
        self.disk = self.follower.disk
        self.lock = asyncio.Lock()
        self.moves = Moves(self.hunks, self.follower.proposals, self.disk.digests)
        self._status = status
        self._journal = journal

    def __getitem__(self, path: str) -> FileProposal:
        """The proposal of an open file."""
        return self.follower.proposals[path]

    def __iter__(self) -> Iterator[str]:
        """Paths in the order in which they were opened."""
        return iter(self.follower.proposals)

    def __len__(self) -> int:
        """How many files are open."""
        return len(self.follower.proposals)

    # Opening

    async def open(self, rel: str) -> FileProposal:
        """The proposal of a file to look at, opening it when needed.

        Raises:
            UserError: The file is missing, unreadable, too large, not text, or outside the root.
        """
        async with self.lock:
            if (known := self.get(rel)) is not None:  # A link that is reviewed, not what it names.
                return known
            path = await asyncio.to_thread(self.workspace.relative, rel)
            return self.get(path) or await self._read(path)

    async def open_text(self, rel: str) -> FileProposal:
        """The proposal of a file to write lines in; raises as ``open``."""
        async with self.lock:
            return await self.refreshed(rel, follow=False)

    async def refreshed(self, rel: str, *, follow: bool = True) -> FileProposal:
        """The proposal of a text over what is on disk now; the caller holds ``lock``.

        Args:
            rel: The file, in any spelling.
            follow: Whether a file that is open already is compared with the disk.

        Raises:
            UserError: As ``open``; or the file is decided as a whole.
        """
        path = await asyncio.to_thread(self.workspace.relative, rel)
        proposal = self.get(path)
        if proposal is None:
            return await self._read(path)
        if follow:
            await self.follower.compare_if_there(proposal)
        self.disk.to_lines(proposal)
        if is_whole(proposal.base):
            raise NotTextFileError(
                f"{proposal.path} is reviewed as a whole, so nothing is written into it",
                "decide about it first, or name a text file instead",
            )
        return proposal

    async def _read(self, path: str) -> FileProposal:
        """Open a text file; in a review, with what was changed in it and not noticed yet."""
        entry = await asyncio.to_thread(self.workspace.look, path)
        if not await asyncio.to_thread(self.follower.is_as_before, path, entry):
            change = await asyncio.to_thread(self.follower.change_of, path, entry)
            if change is not None:
                await self.follower.review_new(path, change)
                return self[path]
        text = await asyncio.to_thread(decoded, path, entry.data)
        return self.follower.adopt(path, text, entry)

    async def create(self, rel: str) -> FileProposal:
        """The empty proposal of a file that does not exist; accepting its hunk creates it.

        Raises:
            UserError: There may be no such file, or it exists and is not text.
        """
        async with self.lock:
            return await self.created(rel)

    async def created(self, rel: str) -> FileProposal:
        """As ``create``; the caller holds ``lock``."""
        try:
            return await self.refreshed(rel, follow=False)
        except MissingFileError:
            path = await asyncio.to_thread(self.workspace.relative, rel)
            return self.follower.adopt(path, NO_FILE, None)

    # Following the disk

    def unopened_changes(self, paths: Iterable[str]) -> ChangesFound:
        """What was changed of files, as far as they are not open and can be read (blocking).

        Large changes are left out.
        """
        found: ChangesFound = {}
        for path in paths:
            if path in self:
                continue
            try:
                signature = signature_of(self.workspace.root / path)
                change = self._change(path)
            except UnknownFormerError as error:
                # A second look would find nothing: its present state is the known one.
                found[path] = error
                continue
            except UserError:
                continue
            if change is None:
                found[path] = None
            elif not change.large:
                found[path] = change._replace(signature=signature)
        return found

    async def review(self, rel: str, looked_at: ChangesFound | None = None) -> tuple[Hunk, ...]:
        """Make hunks of what another program has done to a file; they wait for decisions.

        Args:
            rel: The file, by its one name; it is opened if it differs from what it was.
            looked_at: What ``unopened_changes`` found; of use as long as a file is as it was then.

        Returns:
            The new hunks.

        Raises:
            UserError: The file cannot be read, is too large, or belongs to another repository; or
                its earlier contents are unknown.
        """
        async with self.lock:
            if (proposal := self.get(rel)) is not None:
                entry = await asyncio.to_thread(self.workspace.current, rel)
                return await self.follower.review(proposal, entry)
            change = None if looked_at is None else looked_at.get(rel)
            if isinstance(change, UnknownFormerError):
                raise change
            if looked_at is None or rel not in looked_at or not self._stands(rel, change):
                change = await asyncio.to_thread(self._change, rel)
            return () if change is None else await self.follower.review_new(rel, change)

    def _change(self, rel: str) -> UnopenedChange | None:
        """What was changed of a file that is not open, if anything was (blocking)."""
        return self.follower.change_of(rel, self.workspace.current(rel))

    def _stands(self, rel: str, change: UnopenedChange | None) -> bool:
        """Whether a change is still what was read; a file without one is followed once it has."""
        return change is None or change.signature == signature_of(self.workspace.root / rel)

    def signatures(self, paths: Iterable[str]) -> dict[str, Signature | None]:
        """What tells later that files were written since (blocking)."""
        return {path: signature_of(self.workspace.root / path) for path in paths}

    async def take_as_reviewed(self, seen: Mapping[str, Signature | None]) -> frozenset[str]:
        """Follow open files that are as a commit has them: nothing in them waits for a decision.

        Args:
            seen: The files, with their signatures from before they were found to be so.

        Returns:
            Those that were written since: they are left for a review.
        """
        written: set[str] = set()
        for path in sorted(seen):
            async with self.lock:
                known = {path: seen[path]}
                gone = await self.follower.take_as_reviewed(
                    path, lambda known=known: self.signatures(known) == known
                )
                for hunk in gone or ():
                    self._status.emit(HunkDecided(hunk.path, hunk.id))
            if gone is None:
                written.add(path)
        return frozenset(written)

    async def changed(self, paths: Iterable[str]) -> None:
        """Move open files onto their new text after another program changed them."""
        for path in sorted(paths):
            if path in self:
                async with self.lock:
                    await self.follower.follow(path)

    # The base

    def fold(self, proposal: FileProposal, start: int, stop: int) -> tuple[int, int]:
        """Take accepted hunks into the base; returns where base lines ``[start, stop)`` went."""
        edits = self.hunks.accepted_edits(proposal.path)
        if not edits:
            return start, stop
        total = len(proposal.base.lines)
        proposal.advance(proposal.composed())
        self.record_base(proposal)
        shift = [
            sum(len(e.lines) - (e.stop - e.start) for e in edits if e.stop <= line)
            for line in (start, min(stop, total))
        ]
        return start + shift[0], stop + shift[1]

    def record_base(self, proposal: FileProposal) -> None:
        """Note in the journal that accepted hunks became part of the base."""
        digest = self.disk.digests[proposal.path]
        entry, _ = encode(proposal.path, proposal.base, digest)
        self._journal.add(BaseEntry.of(proposal.path, proposal.base, entry, digest))

    def change_message(self, paths: Sequence[str]) -> str:
        """A message about the change of files by another program."""
        many = len(paths) > 1
        then = "these are the new texts" if many else "this is the new text"
        if any(map(self.hunks.undecided, paths)):
            then = "undecided hunks have moved along"
        return f"{f'{len(paths):,} files' if many else paths[0]} changed on disk; {then}."
