"""Errors of the workspace.

Paths in messages are passed through ``shown``, because a path may
come from a model.
"""

from __future__ import annotations

from midstream.errors import UserError


class WorkspaceError(UserError):
    """Any problem with a file, a folder or the repository of a workspace."""

    code = "workspace"


class OutsideWorkspaceError(WorkspaceError):
    """The path leaves the workspace root or enters git's own files; it is never read or written."""

    code = "outside-workspace"
    exit_code = 2


class MissingFileError(WorkspaceError):
    """There is no such file (or workspace folder)."""

    code = "missing-file"
    exit_code = 2


class NotAFileError(WorkspaceError):
    """The path is a folder, a device, a pipe or a socket."""

    code = "not-a-file"
    exit_code = 2


class FileTooLargeError(WorkspaceError):
    """The file is larger than ``MAX_FILE_BYTES``."""

    code = "file-too-large"


class UnreadableFileError(WorkspaceError):
    """The operating system refused to read the file."""

    code = "unreadable-file"


class ReadOnlyFileError(WorkspaceError):
    """The file, its folder or the file system cannot be written."""

    code = "read-only-file"


class SnapshotError(WorkspaceError):
    """The files are those of a range of commits, which is only looked at."""

    code = "snapshot"


class StaleFileError(WorkspaceError):
    """The file is not what the writer expected; nothing was written."""

    code = "stale-file"


class BusyFileError(StaleFileError):
    """Another program has the file open for writing at this moment."""

    code = "busy-file"


class WriteFailedError(WorkspaceError):
    """The operating system failed a write (disk full, I/O error); the old bytes are in place."""

    code = "write-failed"


class StateFolderError(WorkspaceError):
    """Midstream's own state folder cannot be used, so a write would have no checkpoint."""

    code = "state-folder"
    exit_code = 3


class UnknownFormerError(WorkspaceError):
    """The content of a file before a review is unknown, so nothing is decided about it."""

    code = "unknown-former"


class OtherRepositoryError(WorkspaceError):
    """The path belongs to a repository of its own inside the workspace, such as a submodule."""

    code = "other-repository"


class GitError(WorkspaceError):
    """A git command that the user asked for failed; ``output`` is what it wrote, hooks included."""

    code = "git"

    def __init__(self, problem: str, remedy: str = "", *, output: str = "") -> None:
        super().__init__(problem, remedy)
        self.output = output
