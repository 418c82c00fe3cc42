"""What other programs change while a session runs: files of the folder, and the repository."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from midstream.pairing.status import FilesTouched, FileWritten, RepoChanged, SessionEvent

if TYPE_CHECKING:
    from midstream.pairing.files import OpenFiles
    from midstream.pairing.status import SessionStatus
    from midstream.pairing.tasks import SessionTasks
    from midstream.workspace.files import Workspace
    from midstream.workspace.repo import RepoStatus
    from midstream.workspace.watch import Watcher

REPO_DELAY_S = 0.15
"""Changes within this time cause one look at the repository."""


class ExternalChanges:
    """Follows the folder and its repository.

    Args:
        on_saved: Called with the files that another program has saved.

    Attributes:
        repo: Branch and dirty state, or ``None`` where there is no repository.
    """

    def __init__(
        self,
        workspace: Workspace,
        files: OpenFiles,
        status: SessionStatus,
        tasks: SessionTasks,
        on_saved: Callable[[frozenset[str]], Awaitable[None]],
    ) -> None:
        self.repo: RepoStatus | None = None
        self._workspace = workspace
        self._files = files
        self._status = status
        self._tasks = tasks
        self._on_saved = on_saved
        self._watcher: Watcher | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        status.subscribe(self._hear)

    @property
    def watching(self) -> str:
        """How changes are noticed: ``native``, ``polling: why`` or ``off: why``."""
        return self._watcher.mode if self._watcher is not None else "off: not asked for"

    def start(self) -> None:
        """Follow changes from now on, and read the state of the repository."""
        self._tasks.spawn(self._watch())
        self._tasks.spawn(self._read_repo())

    async def refresh(self) -> None:
        """Compare every open file with the disk now, as when the terminal regains the focus."""
        await self._files.changed(list(self._files))
        self._read_repo_soon()

    def close(self) -> None:
        """Look at nothing any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    async def _watch(self) -> None:
        from midstream.workspace.watch import REPO_CHANGED, Watcher

        watcher = self._watcher = Watcher(self._workspace)
        async for paths in watcher.changes():
            await self._files.changed(paths)
            if files := paths - {REPO_CHANGED}:
                self._status.emit(FilesTouched(files))
            self._read_repo_soon()
            await self._on_saved(paths)
        if not self._closed:
            self._status.warn(f"Changes by other programs are no longer noticed ({watcher.mode}).")

    def _hear(self, event: SessionEvent) -> None:
        if isinstance(event, FileWritten):
            self._read_repo_soon()

    def _read_repo_soon(self) -> None:
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(REPO_DELAY_S, self._repo_due)

    def _repo_due(self) -> None:
        self._timer = None
        self._tasks.spawn(self._read_repo())

    async def _read_repo(self) -> None:
        from midstream.workspace.repo import repo_status

        status = await repo_status(self._workspace.root)
        if status != self.repo:
            self.repo = status
            self._status.emit(RepoChanged())
