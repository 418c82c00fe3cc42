"""Following the disk: open files are moved onto what other programs make of them.

In a review, what another program changes becomes hunks that wait for decisions.  Otherwise the
proposal moves onto the new text.  Every method is called with the lock of the open files held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from midstream.edits.proposal import FileProposal
from midstream.edits.stand_ins import is_whole
from midstream.errors import UserError
from midstream.pairing.contents import (
    MAX_TEXT_BYTES,
    content_part,
    former_text,
    mode_changed,
    same,
    stand_in,
    text_now,
    unseen_change,
)
from midstream.pairing.files.disk import FilesOnDisk
from midstream.pairing.journal.entries import ReviewedEntry
from midstream.pairing.journal.journal import SessionJournal
from midstream.pairing.status import (
    ExternalHunksAdded,
    FileChangedOnDisk,
    FileFolded,
    FileOpened,
    HunkDecided,
    SessionStatus,
)
from midstream.workspace.content import Entry
from midstream.workspace.errors import MissingFileError

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.edits.hunks import Hunk
    from midstream.pairing.journal.journal import Replay
    from midstream.workspace.files import Workspace
    from midstream.workspace.staging import IndexEntry
    from midstream.workspace.watch import Signature


class UnopenedChange(NamedTuple):
    """A file that differs from its state before the review and is not open.

    Attributes:
        old: What it was.
        entry: What it is.
        former: The text that it had, in the form in which the change is decided.
        signature: That of the file, taken before it was read.
    """

    old: Entry | None
    entry: Entry | None
    former: SourceText
    signature: Signature | None = None

    @property
    def large(self) -> bool:
        """Whether it is too large to be read together with others."""
        entries = (self.old, self.entry)
        return any(entry is not None and len(entry.data) > MAX_TEXT_BYTES for entry in entries)


class DiskFollower:
    """Keeps the proposals of open files in step with the disk.

    Attributes:
        proposals: The proposal of every open file by its path, in the order of opening.
        hunks: Every hunk of the session and its decision.
        disk: What the files have on disk.
        reviewing: Whether changes of other programs wait for decisions.
        before: What files were before the review began, if it is known (may block).
        staged: What was staged when it began, by path from the root; ``None`` for no file.
    """

    def __init__(
        self,
        workspace: Workspace,
        resumed: Replay,
        status: SessionStatus,
        journal: SessionJournal,
    ) -> None:
        self.proposals = resumed.files
        self.hunks = resumed.hunks
        self.disk = FilesOnDisk(workspace, resumed, status, journal)
        self.reviewing = False
        self.before: Callable[[str], Entry | None] | None = None
        self.staged: Mapping[str, IndexEntry | None] = {}
        self._workspace = workspace
        self._status = status
        self._journal = journal

    def adopt(self, path: str, text: SourceText, entry: Entry | None) -> FileProposal:
        """Open a file that was just read; ``None``: it does not exist."""
        proposal = self.proposals[path] = FileProposal(path, text, self.hunks)
        self.disk.note(proposal, entry)
        self._status.emit(FileOpened(path))
        return proposal

    async def compare_if_there(self, proposal: FileProposal) -> None:
        """Compare an open file with the disk, if it is not only proposed; raises as that."""
        try:
            await self._compare(proposal)
        except MissingFileError:
            if self.disk.digests[proposal.path] is not None:
                raise

    async def _compare(
        self, proposal: FileProposal, reviewed: Callable[[], bool] | None = None
    ) -> bool:
        """Compare an open file with the disk.

        Args:
            proposal: Its proposal.
            reviewed: Says whether what was just read needs no decision in a review either.

        Returns:
            False if ``reviewed`` says that it does: then nothing is done.

        Raises:
            UserError: The file is missing, unreadable, too large, or not text.
        """
        path = proposal.path
        review = self.reviewing and reviewed is None
        entry = await asyncio.to_thread(self._workspace.current, path)
        if reviewed is not None and not reviewed():
            return False
        if entry is None:
            raise MissingFileError(f"{path} is gone", "restore it, or work on another file")
        before, base = self.disk.digests[path], proposal.base
        added = await self._advance_to(proposal, entry, review=review)
        if added:
            self.announce_external(path, added)
        elif content_part(before) != entry.digest:
            self._status.emit(FileChangedOnDisk(path))
        elif proposal.base is not base:
            self._status.emit(FileFolded(path))
        return True

    def change_of(self, path: str, entry: Entry | None) -> UnopenedChange | None:
        """What was changed of a file that is not open, if anything was (blocking).

        Args:
            path: The file.
            entry: What it is now; ``None``: it is gone.
        """
        old = entry if self.before is None else self.before(path)
        return None if same(old, entry) else UnopenedChange(old, entry, former_text(old, entry))

    async def review_new(self, path: str, change: UnopenedChange) -> tuple[Hunk, ...]:
        """Open a file that is not as it was before the review."""
        return await self.review(self.adopt(path, change.former, change.old), change.entry)

    def is_as_before(self, path: str, entry: Entry) -> bool:
        """Whether a file needs no review: it is as it was, or git ignores it (blocking)."""
        if not self.reviewing or self.before is None:
            return True
        return same(self.before(path), entry) or self._workspace.ignores(path)

    async def review(self, proposal: FileProposal, entry: Entry | None) -> tuple[Hunk, ...]:
        """Make hunks of what differs on disk; ``None``: the file is gone."""
        before = self.disk.digests[proposal.path]
        if entry is None and before is not None:
            if not proposal.reviewed().lines:  # An empty file has no line to show as deleted.
                self.disk.take_form(proposal, None, review=True)
            self.disk.may_vanish(proposal)
            self._journal.make()
            added = self._rebase(proposal, None, None, review=True)
        elif entry is not None:
            added = await self._advance_to(proposal, entry, review=True)
            if not added and before == self.disk.digests[proposal.path]:
                return ()
        else:
            return ()
        self.announce_external(proposal.path, added)
        return added

    async def _advance_to(
        self, proposal: FileProposal, entry: Entry, *, review: bool
    ) -> tuple[Hunk, ...]:
        """Move a proposal onto what its file is now; returns the new hunks of a review.

        Raises:
            NotTextFileError: It is not text, and not reviewed.
        """
        if len(entry.data) > MAX_TEXT_BYTES:
            # The slow parts are done by now: its digest, and the line that stands for it.
            await asyncio.to_thread(stand_in, entry)
        known = self.disk.is_as_known(proposal, entry)
        if not known:
            self.disk.take_form(proposal, entry, review=review)
        program = self.disk.executable.get(proposal.path)
        text = await text_now(proposal, entry, program, review=review)
        if known and text == proposal.base:
            return ()
        return self._rebase(proposal, text, entry, review=review)

    def announce_external(self, path: str, added: Sequence[Hunk]) -> None:
        self._status.emit(ExternalHunksAdded(path, tuple(hunk.id for hunk in added)))

    async def follow(self, path: str, reviewed: Callable[[], bool] | None = None) -> bool:
        """Compare an open file with the disk; a notice says what could not be kept.

        Arguments and result as those of ``_compare``.
        """
        try:
            return await self._compare(self.proposals[path], reviewed)
        except UserError as error:
            if self.reviewing and reviewed is None and isinstance(error, MissingFileError):
                await self.review(self.proposals[path], None)
            elif self.disk.digests[path] is not None:
                self.disk.digests[path] = None
                self._status.emit(FileChangedOnDisk(path))
                kept = "its hunks are kept, but cannot be written until it is back"
                self._status.warn(f"{error.problem.rstrip('.')}; {kept}.")
        return True

    def _rebase(
        self,
        proposal: FileProposal,
        text: SourceText | None,
        entry: Entry | None,
        *,
        review: bool = False,
    ) -> tuple[Hunk, ...]:
        """Move a proposal onto what is on disk; returns the new hunks of a review.

        Args:
            proposal: The proposal.
            text: The text on disk; ``None`` if the file is gone.
            entry: What the file is; ``None`` if it is gone.
            review: Whether what was changed waits for a decision.
        """
        if review:
            self._journal.make()
        before = {hunk.id: hunk.state for hunk in self.hunks.for_path(proposal.path)}
        unseen = self._unseen(proposal, text, entry) if review and text and entry else ""
        known = self.disk.executable.get(proposal.path)
        programs = (known, known if entry is None else entry.executable)
        now = proposal.base.gone() if text is None else text
        added = proposal.advance(now, review=review, programs=programs)
        self.disk.note(proposal, entry, review=review)
        lost = 0
        for hunk in self.hunks.for_path(proposal.path):
            if before.get(hunk.id) not in (None, hunk.state):
                self._status.emit(HunkDecided(proposal.path, hunk.id))
                lost += hunk.state == "conflict"
        if unseen:
            what = f"another program changed the {unseen}; no hunk shows that."
            self._status.inform(f"{proposal.path}: {what}")
        if lost:
            what, they = ("A hunk is", "it") if lost == 1 else (f"{lost} hunks are", "they")
            self._status.warn(
                f"{what} in conflict: {proposal.path} was changed where {they} would go; your text "
                "is kept, ask for the edit again."
            )
        return added

    def _unseen(self, proposal: FileProposal, text: SourceText, entry: Entry) -> str:
        """Changes of a file that show in no line, in words."""
        before = proposal.base if proposal.base.lines else proposal.former
        changes = [] if before is None else unseen_change(before, text)
        known = self.disk.executable.get(proposal.path)
        if not is_whole(text) and mode_changed(known, entry.executable):
            now = "it is executable now" if entry.executable else "it is no longer executable"
            changes.append(f"permissions ({now})")
        return ", ".join(changes)

    async def take_as_reviewed(
        self, path: str, stands: Callable[[], bool]
    ) -> Sequence[Hunk] | None:
        """Follow an open file that is as a commit has it: nothing in it waits for a decision.

        Args:
            path: The file.
            stands: Whether it is still that file, asked once it was read.

        Returns:
            The hunks that are gone with that; ``None`` if it is not.
        """
        if not await self.follow(path, stands):
            return None
        proposal = self.proposals[path]
        before, after = proposal.accepted()
        gone = proposal.committed()
        if gone or before != after:
            self._journal.add(ReviewedEntry(path))
        return gone
