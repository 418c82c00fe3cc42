"""The open files of a session: their proposals, decisions about them, and what is on disk.

One lock puts everything that reads or writes the disk in order: decisions, undo, changes from
outside and the start of a turn.  Streaming does not take it, so text goes on arriving while a file
is written.  Knows no model and no turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from midstream.errors import UserError
from midstream.pairing.board import Board
from midstream.pairing.events import (
    FileChangedOnDisk,
    FileOpened,
    FileWritten,
    HunkDecided,
)
from midstream.pairing.journal import (
    Absent,
    Base,
    Decide,
    DecideLines,
    Edit,
    Entry,
    Redo,
    SessionJournal,
    Split,
    Undo,
    Writing,
    Wrote,
)

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.edits.hunks import Hunk, HunkState, HunkStore
    from midstream.edits.proposal import FileProposal
    from midstream.workspace.files import Workspace

ATTEMPTS = 3
"""How often a write is tried when the file changes under it."""


class NotTextFileError(UserError):
    """The file is not text."""

    code = "not-text"


class Desk:
    """Open files and their decisions.

    Attributes:
        files: Open proposals by path.
        digests: What is on disk for each of them, as last read or written; ``None``: no such file.
        absent: Files that are created or deleted by a decision: an empty text means no file.
        lock: Held by whoever compares a proposal with the disk.
    """

    def __init__(
        self,
        workspace: Workspace,
        hunks: HunkStore,
        board: Board,
        recorder: SessionJournal,
        on_write: Callable[[], None],
    ) -> None:
        self.files: dict[str, FileProposal] = {}
        self.digests: dict[str, str | None] = {}
        self.absent: set[str] = set()
        self._passed: set[int] = set()
        """Hunks of which it was told that they cannot be taken back."""
        self.lock = asyncio.Lock()
        self._workspace = workspace
        self._hunks = hunks
        self._board = board
        self._recorder = recorder
        self._on_write = on_write

    # Reading

    async def open(self, rel: str) -> FileProposal:
        """The proposal of a file, opening it when needed.

        Raises:
            UserError: The file cannot be read or is not text.
        """
        async with self.lock:
            return await self.refreshed(rel, follow=False)

    async def refreshed(self, rel: str, *, follow: bool = True) -> FileProposal:
        """The proposal of a file over what is on disk now; the caller holds ``lock``.

        Args:
            rel: The file, in any spelling.
            follow: Whether a file that is open already is compared with the disk.

        Raises:
            UserError: The file cannot be read or is not text.
        """
        path = await asyncio.to_thread(self._workspace.relative, rel)
        proposal = self.files.get(path)
        if proposal is not None and not follow:
            return proposal
        data, digest, text = await self._read(path)
        if proposal is None:
            return self.adopt(path, text, data, digest)
        if digest != self.digests[path] or text != proposal.base:
            changed_outside = digest != self.digests[path]
            self._rebase(proposal, text, data, digest)
            if changed_outside:
                self._board.emit(FileChangedOnDisk(path))
        return proposal

    def adopt(self, path: str, text: SourceText, data: bytes, digest: str | None) -> FileProposal:
        """Take a file that was just read, or does not exist, into ``files``."""
        from midstream.edits.proposal import FileProposal

        proposal = self.files[path] = FileProposal(path, text, self._hunks)
        self.digests[path] = digest
        self._recorder.add(Base(path, data, digest))
        self._board.emit(FileOpened(path))
        return proposal

    async def create(self, rel: str) -> FileProposal:
        """The empty proposal of a file that does not exist; accepting its hunk creates it.

        Raises:
            UserError: There may be no such file, or it is there already and not text.
        """
        from midstream.edits.documents import SourceText
        from midstream.workspace.errors import MissingFileError

        async with self.lock:
            try:
                return await self.refreshed(rel, follow=False)
            except MissingFileError:
                path = await asyncio.to_thread(self._workspace.relative, rel)
                self.may_vanish(path)
                return self.adopt(path, SourceText((), ()), b"", None)

    def may_vanish(self, path: str) -> None:
        """From now on an empty text of this file means that there is no such file."""
        if path not in self.absent:
            self.absent.add(path)
            self._recorder.add(Absent(path))

    async def changed(self, paths: Iterable[str]) -> None:
        """Somebody else changed these files; open ones are moved onto their new text."""
        for path in sorted(paths):
            if path in self.files:
                async with self.lock:
                    await self._follow(path)

    async def _follow(self, path: str) -> None:
        """Compare an open file with the disk; says in a notice what could not be kept."""
        try:
            await self.refreshed(path)
        except UserError as error:
            if self.digests[path] is not None:
                self.digests[path] = None
                self._board.emit(FileChangedOnDisk(path))
                kept = "its hunks stay, but cannot be written until it is back"
                self._board.warn(f"{error.problem}; {kept}.")

    async def _read(self, path: str) -> tuple[bytes, str, SourceText]:
        return await asyncio.to_thread(read_text, self._workspace, path)

    def _rebase(self, proposal: FileProposal, text: SourceText, data: bytes, digest: str) -> None:
        before = {hunk.id: hunk.state for hunk in self._hunks.for_path(proposal.path)}
        proposal.advance(text)
        self.digests[proposal.path] = digest
        self._recorder.add(Base(proposal.path, data, digest))
        lost = 0
        for hunk in self._hunks.for_path(proposal.path):
            if before.get(hunk.id) not in (None, hunk.state):
                self._board.emit(HunkDecided(proposal.path, hunk.id))
                lost += hunk.state == "conflict"
        if lost:
            what, they = ("A hunk is", "it") if lost == 1 else (f"{lost} hunks are", "they")
            self._board.warn(
                f"{what} in conflict: {proposal.path} was changed where {they} would go; your text "
                "is kept, ask for the edit again."
            )

    def fold(self, proposal: FileProposal, start: int, stop: int) -> tuple[int, int]:
        """Take accepted hunks into the base now; where base lines ``[start, stop)`` went."""
        edits = self._hunks.accepted_edits(proposal.path)
        if not edits:
            return start, stop
        before = proposal.base
        text = proposal.composed()
        proposal.advance(text)
        self.record_base(proposal)
        shift = [
            sum(len(e.lines) - (e.stop - e.start) for e in edits if e.stop <= line)
            for line in (start, min(stop, len(before.lines)))
        ]
        return start + shift[0], stop + shift[1]

    def record_base(self, proposal: FileProposal) -> None:
        """Note in the journal that accepted hunks became part of the base."""
        data, _ = encode(proposal.path, proposal.base)
        self._recorder.add(Base(proposal.path, data, self.digests[proposal.path]))

    # Decisions

    async def decide(self, hunk_ids: Sequence[int], state: HunkState, note: str = "") -> bool:
        """Decide hunks of one file in one step and bring the disk in line.

        Returns:
            Whether the decision stands; if not, a notice says why and nothing was written.
        """

        def step() -> Sequence[Hunk]:
            self._hunks.decide(hunk_ids, state, note)
            return [self._hunks.get(hunk_id) for hunk_id in hunk_ids]

        what = f"{state} {len(hunk_ids)} hunk{'s' * (len(hunk_ids) != 1)}"
        return await self._do(hunk_ids[0], step, Decide(list(hunk_ids), state, note), what)

    async def decide_lines(
        self, hunk_id: int, start: int, stop: int, state: HunkState, note: str = ""
    ) -> bool:
        """Decide some lines of a hunk in one step and bring the disk in line.

        Args:
            hunk_id: The hunk.
            start: First line, counting the old lines and then the new ones.
            stop: Line after the last one.
            state: ACCEPTED or REJECTED.
            note: Why.

        Returns:
            As ``decide``.
        """
        return await self._do(
            hunk_id,
            lambda: self._hunks.decide_lines(hunk_id, start, stop, state, note),
            DecideLines(hunk_id, start, stop, state, note),
            f"{state} some lines of a hunk",
        )

    async def split(self, hunk_id: int, cuts: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """Split a hunk; the ids of its parts, ``()`` with a notice if it could not be."""
        parts: Sequence[Hunk] = ()

        def step() -> Sequence[Hunk]:
            nonlocal parts
            parts = self._hunks.split(hunk_id, cuts)
            return parts

        done = await self._do(hunk_id, step, Split(hunk_id, list(cuts)), "split a hunk")
        return tuple(hunk.id for hunk in parts) if done else ()

    async def edit(self, hunk_id: int, new: Sequence[str]) -> bool:
        """Give a hunk the person's own new lines; ``False`` with a notice if it could not be."""

        def step() -> Sequence[Hunk]:
            self._hunks.edit(hunk_id, new)
            return (self._hunks.get(hunk_id),)

        return await self._do(hunk_id, step, Edit(hunk_id, list(new)), "edit a hunk")

    async def _do(
        self,
        hunk_id: int,
        step: Callable[[], Sequence[Hunk]],
        entry: Entry,
        what: str,
    ) -> bool:
        """Take a step of the hunk store that can be undone, and write what follows from it.

        Args:
            hunk_id: A hunk that the step is about.
            step: Takes it; returns the hunks that it changed or made, all of one file.
            entry: Its journal entry.
            what: What it does, for the checkpoint.

        Returns:
            Whether it stands; if not, a notice says why and nothing was written.
        """
        async with self.lock:
            for attempt in range(ATTEMPTS):
                hunks = self._step(hunk_id, step)
                if not hunks:
                    return False
                self._recorder.add(entry)
                self._announce(hunks)
                error = await self._sync(hunks, f"{what} in {hunks[0].path}")
                if error is None:
                    return True
                self._take_back(Undo(), self._hunks.undo())
                if attempt == ATTEMPTS - 1 or not _stale(error):
                    self._board.fail(str(error))
                    break
                await self._follow(hunks[0].path)
            return False

    def _step(self, hunk_id: int, step: Callable[[], Sequence[Hunk]]) -> Sequence[Hunk]:
        from midstream.edits.hunks import UndecidableError

        version = self._hunks.version
        try:
            hunks = step()
        except KeyError:
            self._board.warn(f"There is no hunk {hunk_id} in this session.")
            return ()
        except UndecidableError as error:
            self._board.warn(str(error))
            return ()
        # Without a new version it was so already; there is no step to write or undo.
        return () if self._hunks.version == version else hunks

    async def travel(self, *, back: bool) -> tuple[int, ...]:
        """Undo or redo the last decision and bring the disk in line; ids of the hunks changed."""
        from midstream.edits.hunks import UndecidableError

        there, return_ = (Undo(), Redo()) if back else (Redo(), Undo())
        move = self._hunks.undo if back else self._hunks.redo
        move_back = self._hunks.redo if back else self._hunks.undo
        async with self.lock:
            if back and self._stays():
                return ()
            waiting = self._hunks.undecided()
            for attempt in range(ATTEMPTS):
                try:
                    hunks = move()
                except UndecidableError as error:
                    self._board.warn(str(error))
                    return ()
                self._recorder.add(there)
                if not hunks:
                    return ()
                self._announce(hunks)
                error = await self._sync(hunks, f"{there.kind} in {hunks[0].path}")
                if error is None:
                    self._tell_gone([hunk for hunk in waiting if hunk not in hunks])
                    return tuple(hunk.id for hunk in hunks)
                self._take_back(return_, move_back())
                if attempt == ATTEMPTS - 1 or not _stale(error):
                    self._board.fail(str(error))
                    break
                for path in {hunk.path for hunk in hunks}:
                    await self._follow(path)
            return ()

    def _stays(self) -> bool:
        """Whether undo comes to an accepted change that cannot be taken back; told once, and the
        next undo goes past it.
        """
        from midstream.edits.hunks import Obstacle

        stuck = self._hunks.stuck
        if stuck is None or stuck[0].id in self._passed:
            return False
        hunk, why = stuck
        what = f"`{hunk.headline[:60]}`" if hunk.new else f"That `{hunk.headline[:60]}` went away"
        if why is Obstacle.WRITING:
            self._board.warn(
                f"{what} was accepted where the model is writing now; stop it or let it end, then "
                "undo."
            )
            return True
        self._passed.add(hunk.id)
        self._board.warn(
            f"{what} was accepted in {hunk.path}, and its lines were changed since: it stays. "
            "Change it by hand or ask for it back; the next undo takes back the decision before it."
        )
        return True

    def _tell_gone(self, waited: Iterable[Hunk]) -> None:
        """Tell of hunks that gave way to one that was taken back."""
        gone = [hunk for hunk in waited if not hunk.live]
        if gone:
            many = len(gone) != 1
            self._board.inform(
                f"{len(gone)} waiting hunk{'s' * many} that change{'s' * (not many)} the same "
                f"lines went with it; redo brings {'them' if many else 'it'} back."
            )
            self._announce(gone)

    def _take_back(self, entry: Entry, hunks: Sequence[Hunk]) -> None:
        self._recorder.add(entry)
        self._announce(hunks)

    # Writing

    async def _sync(self, hunks: Sequence[Hunk], label: str) -> UserError | None:
        """Write what the decisions ask for where the disk differs; the error if that failed."""
        batch: dict[str, bytes | None] = {}
        digests: dict[str, str | None] = {}
        try:
            for path in {hunk.path for hunk in hunks}:
                text = self.files[path].composed()
                data: bytes | None = None
                digest: str | None = None
                if text.lines or path not in self.absent:
                    data, digest = await asyncio.to_thread(encode, path, text)
                if digest != self.digests[path]:
                    batch[path], digests[path] = data, digest
            if not batch:
                return None
            for path in batch:
                if self.digests[path] is None and path not in self.absent:
                    raise UserError(f"{path} cannot be written because it is gone or unreadable.")
            await self._write(batch, digests, label)
        except UserError as error:
            return error
        except OSError as error:
            return UserError(f"The journal cannot be written ({error.strerror})", "free some space")
        for path in batch:
            self._board.emit(FileWritten(path))
        self._on_write()
        return None

    async def _write(
        self, batch: dict[str, bytes | None], digests: dict[str, str | None], label: str
    ) -> None:
        expected = {path: self.digests[path] for path in batch}
        self._recorder.add(Writing(digests))
        writing = asyncio.create_task(
            asyncio.to_thread(self._workspace.write_all, batch, expected, label)
        )
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # The thread goes on; what it has done must be known before the lock is let go.
            await asyncio.wait({writing})
            if writing.exception() is None:
                self._written(digests)
            raise
        self._written(digests)

    def _written(self, digests: dict[str, str | None]) -> None:
        self.digests.update(digests)
        self._recorder.add(Wrote(digests))

    # Telling

    def _announce(self, hunks: Iterable[Hunk]) -> None:
        for hunk in hunks:
            self._board.emit(HunkDecided(hunk.path, hunk.id))


def read_text(workspace: Workspace, path: str) -> tuple[bytes, str, SourceText]:
    """Bytes, digest and text of a file (blocking).

    Raises:
        UserError: The file cannot be read or is not text.
    """
    from midstream.edits.documents import NotTextError, SourceText
    from midstream.workspace.files import content_digest

    data = workspace.read(path)
    try:
        text = SourceText.from_bytes(data)
    except NotTextError as error:
        raise NotTextFileError(
            f"{path} is not a text file ({error})", "name a text file instead"
        ) from None
    return data, content_digest(data), text


def encode(path: str, text: SourceText) -> tuple[bytes, str]:
    """Bytes and digest of a text (blocking).

    Raises:
        UserError: The text has a character that the file's encoding lacks.
    """
    from midstream.edits.documents import UnencodableError
    from midstream.workspace.files import content_digest

    try:
        data = text.to_bytes()
    except UnencodableError as error:
        raise UserError(f"{path} was not written: {error}", "convert the file first") from None
    return data, content_digest(data)


def _stale(error: UserError) -> bool:
    from midstream.workspace.errors import StaleFileError

    return isinstance(error, StaleFileError)
