"""The state of the open files on disk, and the writes that follow from decisions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from midstream.edits.documents import NO_FILE, SourceText, UnencodableError
from midstream.edits.stand_ins import is_whole
from midstream.errors import UserError
from midstream.pairing.contents import (
    as_entry,
    content_part,
    encode,
    former_text,
    is_program,
    mode_changed,
    same,
    state_digest,
    usual_text,
    wanted_state,
    whole_digest,
)
from midstream.pairing.journal.entries import (
    AbsentEntry,
    BaseEntry,
    WritingEntry,
    WroteEntry,
)
from midstream.pairing.status import FileWritten, HunkDecided
from midstream.workspace.content import is_link_digest
from midstream.workspace.paths import folders_of
from midstream.workspace.transaction import stale

if TYPE_CHECKING:
    from midstream.edits.proposal import FileProposal
    from midstream.pairing.journal.journal import Replay, SessionJournal
    from midstream.pairing.status import SessionStatus
    from midstream.workspace.content import Entry
    from midstream.workspace.files import Workspace


class FilesOnDisk:
    """Knows the files of a session as they were last read or written, and writes them.

    Attributes:
        digests: What each file is, as last read or written; ``None``: no such file.
        executable: Whether files may be run, as far as it is known.
        modes: Permissions of files that a decision has deleted.
        was_executable: Whether a file that was deleted was a program (may block).
    """

    def __init__(
        self,
        workspace: Workspace,
        resumed: Replay,
        status: SessionStatus,
        journal: SessionJournal,
    ) -> None:
        self.digests = resumed.digests
        self.executable = resumed.executable
        self.modes = resumed.modes
        self.was_executable: Callable[[str], bool] = lambda path: False
        self._back: set[str] = set()
        """Files that were given the permission back that they had before their lines changed."""
        self._workspace = workspace
        self._status = status
        self._journal = journal

    def may_vanish(self, proposal: FileProposal) -> None:
        """From now on a decision that leaves no line of this file leaves no file."""
        if not proposal.vanishes:
            proposal.vanishes = True
            self._journal.add(AbsentEntry(proposal.path))

    def note(self, proposal: FileProposal, entry: Entry | None, *, review: bool = False) -> None:
        """Note that the base of a proposal is what is on disk."""
        path, base = proposal.path, proposal.base
        digest = None if entry is None else state_digest(entry, whole=is_whole(base))
        self.digests[path] = digest
        if entry is not None:
            self.modes.pop(path, None)  # They were those of an earlier file of this name.
            if entry.executable is not None:
                self.executable[path] = entry.executable
        self._journal.add(BaseEntry.of(path, base, entry, digest, review=review))

    def is_as_known(self, proposal: FileProposal, entry: Entry) -> bool:
        """Whether a file is what it was when it was last looked at."""
        path, whole = proposal.path, is_whole(proposal.base)
        if state_digest(entry, whole=whole) != self.digests[path]:
            return False
        return whole or not mode_changed(self.executable.get(path), entry.executable)

    def take_form(self, proposal: FileProposal, entry: Entry | None, *, review: bool) -> None:
        """Decide a file by lines or as a whole, as its change asks for, if no hunk is in the way.

        Args:
            proposal: Its proposal.
            entry: What it is now; ``None``: it is gone.
            review: Whether the change waits for a decision.
        """
        whole = is_whole(proposal.base)
        hunks = proposal.hunks.for_path(proposal.path)
        waits = [hunk for hunk in hunks if not hunk.decided]
        reviewed = proposal.reviewed()
        # No line says that an empty file appears or goes, whatever was decided about lines before.
        empty = not (reviewed.lines or (entry and entry.data)) and reviewed.missing != (not entry)
        if proposal.current is not None or (waits and not whole and not empty):
            return
        if waits and not (review and all(hunk.external for hunk in waits)):
            return
        with contextlib.suppress(UnencodableError):
            old = as_entry(reviewed) if waits else self.entry(proposal)
            back = same(old, entry) and old is not None and usual_text(old.data)
            before = back or former_text(old, entry)
            if is_whole(before) != whole and (whole or (review and (before.lines or empty))):
                proposal.advance(before)
                self.note(proposal, old)
                for hunk in waits:  # Rows that give way to lines.
                    self._status.emit(HunkDecided(hunk.path, hunk.id))

    def to_lines(self, proposal: FileProposal) -> None:
        """Decide a text by lines, unless something waits that is decided as a whole."""
        hunks = proposal.hunks.for_path(proposal.path)
        if not is_whole(proposal.base) or not all(hunk.decided for hunk in hunks):
            return
        with contextlib.suppress(UnencodableError):
            entry = self.entry(proposal)
            text = NO_FILE if entry is None else usual_text(entry.data)
            if text is not None:
                proposal.advance(text)
                self.note(proposal, entry)

    def entry(self, proposal: FileProposal) -> Entry | None:
        """What the file of a proposal is on disk, as last known; ``None``: no such file.

        Raises:
            UnencodableError: That was not kept.
        """
        digest = self.digests[proposal.path]
        if digest is None:
            return None
        entry, _ = wanted_state(proposal.composed(), digest)
        if entry is None or is_whole(proposal.base):
            return entry
        return entry._replace(executable=self.executable.get(proposal.path))

    async def write(self, proposals: Iterable[FileProposal], label: str) -> UserError | None:
        """Write what follows from decisions where the disk differs, all files or none.

        Args:
            proposals: The proposals of the files.
            label: What for, in the list of checkpoints.

        Returns:
            Why nothing was written, if it was not.
        """
        batch: dict[str, Entry | None] = {}
        digests: dict[str, str | None] = {}
        modes_back: dict[str, bool] = {}
        try:
            for proposal in proposals:
                path, text = proposal.path, proposal.composed()
                now = self.digests[path]
                if now is not None and whole_digest(text, now) == now:
                    continue  # The bytes of a large file are on disk, but not kept.
                entry, digest = await asyncio.to_thread(encode, path, text, now)
                modes_back |= self._mode_with(proposal, text)
                if digest != now:
                    batch[path], digests[path] = entry, digest
                    if now is None and not proposal.vanishes:
                        raise UserError(
                            f"{path} cannot be written because it is gone or unreadable."
                        )
            if batch:
                await self._write(batch, digests, label)
            for path, program in modes_back.items():
                await asyncio.to_thread(self._make_program, path, program)
                self.executable[path] = program
        except UserError as error:
            return error
        except OSError as error:
            return UserError(f"The journal cannot be written ({error.strerror})", "free some space")
        for path, entry in batch.items():
            if entry is not None and entry.executable is not None:
                self.executable[path] = entry.executable
            self._status.emit(FileWritten(path))
        return None

    def _mode_with(self, proposal: FileProposal, text: SourceText) -> dict[str, bool]:
        """Whether a file may be run with a text, if that changes along with its lines."""
        path, (first, last) = proposal.path, proposal.programs
        if is_whole(text) or text.missing:
            return {}
        wanted: bool | None = None
        if text is proposal.former:
            wanted = first
            self._back.add(path)
        elif path in self._back:
            wanted = last
            self._back.discard(path)
        made = self.digests[path] is None
        now = self.executable.get(path)
        return {path: wanted} if wanted is not None and (made or wanted != now) else {}

    def _note_modes(self, paths: Iterable[str]) -> None:
        """Note the permissions of files that are about to be deleted, for an undo."""
        for path in paths:
            if (mode := self._workspace.mode(path)) is not None:
                self.modes[path] = mode

    async def _write(
        self, batch: dict[str, Entry | None], digests: dict[str, str | None], label: str
    ) -> None:
        gone = [path for path, entry in batch.items() if entry is None]
        await asyncio.to_thread(self._note_modes, gone)
        modes = {path: self.modes[path] for path in batch if path in self.modes}
        self._journal.add(WritingEntry(digests, modes))
        writing = asyncio.create_task(asyncio.to_thread(self._put, batch, digests, modes, label))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # The thread goes on; what it has done must be known before the lock is released.
            await asyncio.wait({writing})
            if writing.exception() is None:
                self._written(digests)
            raise
        self._written(digests)

    def _put(
        self,
        batch: dict[str, Entry | None],
        digests: dict[str, str | None],
        modes: dict[str, int],
        label: str,
    ) -> None:
        """Write files, and make them programs or not (blocking); all or none."""
        before = {path: self.digests[path] for path in batch}
        data = {
            path: None if entry is None else entry.data
            for path, entry in batch.items()
            if content_part(before[path]) != content_part(digests[path])
        }
        made = {path for path in data if before[path] is None or is_link_digest(before[path])}
        changed: list[str] = []
        try:
            for path in batch.keys() - made:
                if self._change_mode(path, before[path], digests[path]):
                    changed.append(path)
            expected = {path: content_part(before[path]) for path in data}
            first = dict.fromkeys(_in_the_way(data))
            if first:
                self._workspace.write_all(first, expected, label)
            try:
                self._write_rest(
                    {path: data[path] for path in data.keys() - first.keys()},
                    expected,
                    label,
                    modes,
                )
            except UserError:
                if first:
                    self._workspace.undo_write()
                raise
        except UserError:
            for path in changed:
                self._make_program(path, is_program(before[path]))
            raise
        for path in made:
            program = is_program(digests[path]) or self.was_executable(path)
            if digests[path] is not None and path not in modes and program:
                self._make_program(path, True)

    def _write_rest(
        self,
        data: Mapping[str, bytes | None],
        expected: Mapping[str, str | None],
        label: str,
        modes: dict[str, int],
    ) -> None:
        """Write files whose names are free, but for empty folders (blocking)."""
        for path, new in data.items():
            if new is not None:
                self._workspace.make_room(path)
            if not self._workspace.is_free(path):
                raise UserError(
                    f"{path} cannot be written: something else has taken its place",
                    "decide about that first",
                )
        if data:
            known = {path: mode for path, mode in modes.items() if path in data}
            self._workspace.write_all(data, expected, label, modes=known)

    def _change_mode(self, path: str, before: str | None, wanted: str | None) -> bool:
        """Let a file that is there be run, or not any more (blocking); whether that was needed.

        Raises:
            UserError: It is not what it was, or the system refuses.
        """
        kept = wanted is None or is_link_digest(wanted)
        if kept or is_program(wanted) == is_program(before):
            return False
        if state_digest(self._workspace.peek_entry(path), whole=True) != before:
            raise stale(path)
        self._workspace.set_executable(path, is_program(wanted))
        return True

    def _make_program(self, path: str, program: bool) -> None:
        """Change a mode as far as the system allows; the bytes are written already."""
        with contextlib.suppress(UserError):
            self._workspace.set_executable(path, program)

    def _written(self, digests: dict[str, str | None]) -> None:
        self.digests.update(digests)
        self._journal.add(WroteEntry(digests))


def _in_the_way(data: Mapping[str, bytes | None]) -> list[str]:
    """Files to delete where folders of others are to be, or that are in the place of others."""
    gone = {path for path, new in data.items() if new is None}
    made = data.keys() - gone
    above = {folder for path in made for folder in folders_of(path)}
    return [path for path in gone if path in above or not made.isdisjoint(folders_of(path))]
