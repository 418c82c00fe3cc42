"""Folders below a root, held open, so that no link can lead what is done in them elsewhere.

A path is looked up anew by every call of the system, and a folder in it may have become a link
since it was judged.  Here each folder is opened once, from the top of the file system downwards and
without following a link; what follows names files relative to the open folder (openat(2)).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Self

_MAX_OPEN: Final = 200
"""Folders that are kept open."""
_FOLDER: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)
_HANDLES: Final = Path("/proc/self/fd")


class LinkedFolderError(NotADirectoryError):
    """A folder has become a link since its path was judged."""


class FolderHandles:
    """The folders in which one batch of changes is made.

    Args:
        root: Real path of the root.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._open: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Itself; all folders are closed when the block is left."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the folders."""
        while self._open:
            os.close(self._open.popitem()[1])

    def path(self, target: str) -> str:
        """A path of a file that names it in its open folder; its last part is not looked at.

        It is to be used before the next call of this method.

        Args:
            target: Absolute path below the root, without links.

        Raises:
            LinkedFolderError: A folder has become a link.
            FileNotFoundError: A folder is gone.
            OSError: As the system says.
        """
        folder, _, name = target.rpartition("/")
        handle = self._handle(folder)
        # Without /proc, as on macOS, only the folders of this moment have been looked at.
        return f"{_HANDLES}/{handle}/{name}" if _HANDLES.is_dir() else target

    def sync(self) -> None:
        """Flush the names in the folders to the device."""
        for handle in self._open.values():
            _sync(handle)

    def _handle(self, folder: str) -> int:
        if folder in self._open:
            return self._open[folder]
        if ".." in os.path.relpath(folder, self._root).split("/"):
            raise LinkedFolderError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
        handle = os.open("/", _FOLDER)  # The root, or a folder above it, may be a link by now, too.
        for part in filter(None, folder.split("/")):
            try:
                below = os.open(part, _FOLDER, dir_fd=handle)
            except NotADirectoryError as error:
                status = os.stat(part, dir_fd=handle, follow_symlinks=False)
                if not stat.S_ISLNK(status.st_mode):
                    raise
                raise LinkedFolderError(*error.args) from error
            finally:
                os.close(handle)
            handle = below
        if len(self._open) >= _MAX_OPEN:
            first = next(iter(self._open))
            _sync(self._open[first])
            os.close(self._open.pop(first))
        self._open[folder] = handle
        return handle


def _sync(handle: int) -> None:
    # A folder may be writable and unreadable, and some file systems cannot flush one.
    with contextlib.suppress(OSError):
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)
