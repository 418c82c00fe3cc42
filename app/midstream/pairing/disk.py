"""What the open files have on disk, and the writes that follow from decisions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from midstream.errors import UserError
from midstream.pairing.contents import encode
from midstream.pairing.journal import is_empty_file
from midstream.pairing.journal_entries import AbsentEntry, WritingEntry, WroteEntry
from midstream.pairing.status import FileWritten

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.pairing.journal import Replay, SessionJournal
    from midstream.pairing.status import SessionStatus
    from midstream.workspace.files import Workspace


class FilesOnDisk:
    """Knows the files of a session as they were last read or written, and writes them.

    Attributes:
        digests: What is on disk for each file, as last read or written; ``None``: no such file.
        absent: Files that a decision creates or deletes: an empty text means no file.
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
        self.absent = resumed.absent
        self.modes = resumed.modes
        self.was_executable: Callable[[str], bool] = lambda path: False
        self._workspace = workspace
        self._status = status
        self._journal = journal

    def may_vanish(self, path: str) -> None:
        """From now on an empty text of this file means that there is no such file."""
        if path not in self.absent:
            self.absent.add(path)
            self._journal.add(AbsentEntry(path))

    async def write(self, texts: Mapping[str, SourceText], label: str) -> UserError | None:
        """Write texts where the disk differs, all of them or none.

        Args:
            texts: What files are to hold, by path.
            label: What for, in the list of checkpoints.

        Returns:
            Why nothing was written, if it was not.
        """
        batch: dict[str, bytes | None] = {}
        digests: dict[str, str | None] = {}
        try:
            for path, text in texts.items():
                data: bytes | None = None
                digest: str | None = None
                may_vanish = path in self.absent and not is_empty_file(self.digests[path])
                if text.lines or not may_vanish:
                    data, digest = await asyncio.to_thread(encode, path, text)
                if digest != self.digests[path]:
                    batch[path], digests[path] = data, digest
            if not batch:
                return None
            for path in batch:
                if self.digests[path] is None and path not in self.absent:
                    raise UserError(f"{path} cannot be written because it is gone or unreadable.")
            back = [
                path for path in batch if self.digests[path] is None and batch[path] is not None
            ]
            gone = [path for path, data in batch.items() if data is None]
            await asyncio.to_thread(self._note_modes, gone)
            await self._write(batch, digests, label)
            await asyncio.to_thread(self._restore_modes, [p for p in back if p not in self.modes])
        except UserError as error:
            return error
        except OSError as error:
            return UserError(f"The journal cannot be written ({error.strerror})", "free some space")
        for path in batch:
            self._status.emit(FileWritten(path))
        return None

    def _note_modes(self, paths: Iterable[str]) -> None:
        """Note the permissions of files that are about to be deleted, for an undo."""
        for path in paths:
            if (mode := self._workspace.mode(path)) is not None:
                self.modes[path] = mode

    def _restore_modes(self, paths: Iterable[str]) -> None:
        """Make programs that came back executable again; their bytes alone are not the file."""
        for path in paths:
            with contextlib.suppress(UserError):  # The system refuses; the text is back.
                if self.was_executable(path):
                    self._workspace.set_executable(path, True)

    async def _write(
        self, batch: dict[str, bytes | None], digests: dict[str, str | None], label: str
    ) -> None:
        expected = {path: self.digests[path] for path in batch}
        modes = {path: self.modes[path] for path in batch if path in self.modes}
        self._journal.add(WritingEntry(digests, modes))
        writing = asyncio.create_task(
            asyncio.to_thread(self._workspace.write_all, batch, expected, label, modes=modes)
        )
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # The thread goes on; what it has done must be known before the lock is released.
            await asyncio.wait({writing})
            if writing.exception() is None:
                self._written(digests)
            raise
        self._written(digests)

    def _written(self, digests: dict[str, str | None]) -> None:
        self.digests.update(digests)
        self._journal.add(WroteEntry(digests))
