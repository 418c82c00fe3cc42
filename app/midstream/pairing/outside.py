"""What happens outside a session while it runs: files that others change, and the repository.

Files are compared by the desk; here is who looks, and when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from midstream.pairing.board import Board
from midstream.pairing.desk import Desk
from midstream.pairing.events import FilesTouched, RepoChanged

if TYPE_CHECKING:
    from pathlib import Path

    from midstream.edits.proposal import FileProposal
    from midstream.pairing.background import BackgroundTasks
    from midstream.workspace.files import Workspace
    from midstream.workspace.repo import RepoStatus
    from midstream.workspace.watch import Watcher

REPO_DELAY_S = 0.15
"""Changes within this time make one look at the repository."""


class Outside:
    """The part of a session that follows what others do.

    Attributes:
        root: The folder; no file outside it is read or written.
        workspace: The files.
        files: Open proposals by path relative to the root.
        repo: Branch and dirty state, or ``None`` where there is no repository.
        errands: What is asked because of what others saved.
    """

    root: Path
    workspace: Workspace
    files: dict[str, FileProposal]
    repo: RepoStatus | None
    errands: BackgroundTasks
    _desk: Desk
    _board: Board
    _watcher: Watcher | None
    _tasks: set[asyncio.Task[Any]]
    _repo_timer: asyncio.TimerHandle | None
    _closed: bool

    @property
    def watching(self) -> str:
        """How changes from outside are seen: ``native``, ``polling: why`` or ``off: why``."""
        return self._watcher.mode if self._watcher is not None else "off: not asked for"

    async def refresh(self) -> None:
        """Compare every open file with the disk now, as when the terminal has the focus again."""
        await self._desk.changed(list(self.files))
        self._look_at_repo()

    async def _watch(self) -> None:
        from midstream.workspace.watch import REPO_CHANGED, Watcher

        watcher = self._watcher = Watcher(self.workspace)
        async for paths in watcher.changes():
            await self._desk.changed(paths)
            if files := paths - {REPO_CHANGED}:
                self._board.emit(FilesTouched(files))
            self._look_at_repo()
            await self.errands.changed(paths)
        if not self._closed:
            self._board.warn(f"Changes from outside are not seen any more ({watcher.mode}).")

    def _look_at_repo(self) -> None:
        if self._repo_timer is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._repo_timer = loop.call_later(REPO_DELAY_S, self._repo_due)

    def _repo_due(self) -> None:
        self._repo_timer = None
        self._spawn(self._read_repo())

    async def _read_repo(self) -> None:
        from midstream.workspace.repo import repo_status

        status = await repo_status(self.root)
        if status != self.repo:
            self.repo = status
            self._board.emit(RepoChanged())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._board.fail(f"Midstream itself failed in the background ({error!r}).")
