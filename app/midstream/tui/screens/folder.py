"""The files of the folder, read in the background and again when some come or go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from midstream.tui.screens.review_base import ReviewBase

if TYPE_CHECKING:
    from midstream.demo import DemoInfo

LIST_PAUSE_S: Final = 0.5
"""Time between two readings of the folder, however often it changes."""


class FolderActions(ReviewBase):
    """Keeps the list of files; showing it is done elsewhere."""

    def __init__(self, demo: DemoInfo | None) -> None:
        super().__init__(demo)
        self.files: tuple[str, ...] = ()
        """Files of the folder, for the rail and the picker."""
        self.listed = False
        """Whether the folder has been read."""
        self._known: frozenset[str] = frozenset()
        self._listing = False
        self._list_again = False

    def list_files(self) -> None:
        """Read the folder, or read it once more if it is being read."""
        self._list_again = True
        if not self._listing:
            self._listing = True
            self.run_worker(self._list(), group="files")

    async def _list(self) -> None:
        try:
            while self._list_again and (session := self.session) is not None:
                self._list_again = False
                files = tuple(await asyncio.to_thread(session.workspace.files))
                if files != self.files or not self.listed:
                    self.files, self._known, self.listed = files, frozenset(files), True
                    self.refresh_facts()
                await asyncio.sleep(LIST_PAUSE_S)
        finally:
            self._listing = False

    def files_touched(self, paths: Iterable[str]) -> None:
        """Others made, changed or took these away: read the folder if the list may differ."""
        if any(self._differs(path) for path in paths):
            self.list_files()

    def _differs(self, path: str) -> bool:
        there = self.program.root / path
        if there.name == ".gitignore" or there.is_file() != (path in self._known):
            return True
        # A folder that was moved away takes the files below it along, and nobody names them.
        below = f"{path}/"
        return not there.exists() and any(name.startswith(below) for name in self.files)
