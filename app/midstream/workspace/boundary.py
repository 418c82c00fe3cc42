"""The boundary of a workspace: which paths may be touched.

A path is resolved the way the operating system would (symlinks, ``..``), then judged by where it
really ends.  It must end inside the root and outside anything that belongs to git.  This module
looks at names and folders only; it opens no file.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from pathlib import Path
from typing import Final

from midstream.workspace.errors import OutsideWorkspaceError
from midstream.workspace.paths import shown

# Code points that HFS+ ignores when it compares names, so that ".g\u200cit" is ".git" there (git's
# own list).
_IGNORED_BY_HFS = frozenset(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)


def is_git_name(name: str) -> bool:
    """Whether a file system could read ``name`` as ``.git`` (case, HFS+ and NTFS spellings)."""
    plain = "".join(c for c in name if ord(c) not in _IGNORED_BY_HFS)
    plain = unicodedata.normalize("NFKC", plain).split(":", 1)[0].rstrip(" .").casefold()
    return plain in {".git", "git~1"}


MAX_PATH_BYTES: Final = 4_000
"""Bytes of a path: systems take 1,024 or 4,096, and names beside it are longer."""


def is_git_folder(folder: str) -> bool:
    """Whether ``folder`` is a repository's own folder (bare, or ``--separate-git-dir``)."""
    return (
        _exists(f"{folder}/HEAD")
        and Path(folder, "objects").is_dir()
        and Path(folder, "refs").is_dir()
    )


def resolve_inside(root: str, path: str | os.PathLike[str]) -> str:
    """Where ``path`` really lies below ``root``.

    Args:
        root: Real path of the workspace root.
        path: Relative to the root, or absolute; need not exist.

    Returns:
        The path relative to the root with ``/`` between parts and every symlink resolved, so that
        one file has one name; ``"."`` for the root itself.

    Raises:
        OutsideWorkspaceError: It ends outside the root or in git's own files, or is not a path.
    """
    given = os.fspath(path)
    if not _is_path(given):
        raise OutsideWorkspaceError(
            f"{shown(given)} is not a file name", "name a file below the folder"
        )
    if not Path(given).is_absolute() and any(map(is_git_name, given.split("/"))):
        raise _git_refused(given)
    real = os.path.realpath(Path(root, given))
    if len(os.fsencode(real)) > MAX_PATH_BYTES:
        raise OutsideWorkspaceError(
            f"{shown(given[:40])}… is too long for a file name", "name a file below the folder"
        )
    prefix = root if root.endswith("/") else f"{root}/"
    if real == root:
        return "."
    if not real.startswith(prefix):
        raise OutsideWorkspaceError(
            f"{shown(given)} lies outside {shown(root)}", "open that folder to work on it"
        )
    parts = real[len(prefix) :].split("/")
    if any(map(is_git_name, parts)):
        raise _git_refused(given)
    folder = root
    for part in parts:
        if is_git_folder(folder):
            raise _git_refused(given)
        folder = f"{folder.rstrip('/')}/{part}"
    return "/".join(parts)


def is_file_name(name: str) -> bool:
    """Whether a file below a root could have this name, whatever is on disk."""
    if not _is_path(name) or len(os.fsencode(name)) > MAX_PATH_BYTES:
        return False
    return not any(part in ("", ".", "..") or is_git_name(part) for part in name.split("/"))


def resolve_entry(root: str, path: str | os.PathLike[str]) -> str:
    """As ``resolve_inside``, but a symlink in last place stands for itself."""
    folder, _, name = os.fspath(path).rpartition("/")
    if name in ("", ".", "..") or is_git_name(name):
        return resolve_inside(root, path)
    inside = resolve_inside(root, folder or ".")
    if is_git_folder(os.path.join(root, inside)):  # noqa: PTH118
        raise _git_refused(os.fspath(path))
    entry = name if inside == "." else f"{inside}/{name}"
    if not os.path.islink(os.path.join(root, entry)):  # noqa: PTH114, PTH118
        return resolve_inside(root, path)  # Methods of ``Path`` fail for a name that is too long.
    return entry


def inner_repository(root: str, rel: str) -> str | None:
    """The outermost folder below ``root`` on the way to ``rel`` that is a repository of its own.

    That is a submodule, a nested clone or a linked work tree: git does not look into it.

    Args:
        root: Real path of the workspace root.
        rel: Path below the root; counts itself.
    """
    parts = rel.split("/")
    for depth in range(1, len(parts) + 1):
        folder = "/".join(parts[:depth])
        if os.path.lexists(f"{root.rstrip('/')}/{folder}/.git"):
            return folder
    return None


def check_root(root: Path) -> str:
    """Real path of a workspace root.

    Raises:
        OutsideWorkspaceError: The root itself lies in a ``.git`` folder.
    """
    real = os.path.realpath(root)
    if any(map(is_git_name, real.split("/"))):
        raise _git_refused(real)
    return real


def _git_refused(path: str) -> OutsideWorkspaceError:
    return OutsideWorkspaceError(
        f"{shown(path)} belongs to git itself", "Midstream never touches it"
    )


def _is_path(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _exists(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return False
    # HEAD may be a symlink in very old repositories.
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)
