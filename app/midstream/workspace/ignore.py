"""Ignore rules as git applies them, evaluated in this process (gitignore(5)).

Used where asking git for every path would cost too much (the watcher) or git is not there.  One
thing git knows better: a tracked file is never ignored, whatever the rules say; who works with a
file must not ask here.
"""

from __future__ import annotations

import codecs
import contextlib
import os
from pathlib import Path

from midstream.workspace.gitcmd import GitFailedError, RepositoryPlace, run_git
from midstream.workspace.ignore_pattern import IgnorePattern, parse_line

IGNORE_FILE = ".gitignore"

GENERATED_FOLDERS = frozenset(
    {
        "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache",
        ".pytest_cache", ".ruff_cache", ".hypothesis", ".hg", ".svn", ".idea", ".cache", ".eggs",
        "site-packages",
    }
)  # fmt: skip
"""Folder names that hold nothing a person edits."""


class IgnoreRules:
    """The rules for paths below ``root``; reads ignore files once, see :meth:`forget`."""

    def __init__(self, root: Path, place: RepositoryPlace | None) -> None:
        self._root = Path(os.path.realpath(root))
        self._top = self._root if place is None else Path(os.path.realpath(place.top))
        inside = os.path.relpath(self._root, self._top)
        self._prefix = "" if inside == "." else f"{inside}/"
        self._place = place
        self._by_folder: dict[str, list[IgnorePattern]] = {}
        self._common: list[IgnorePattern] | None = None

    def forget(self) -> None:
        """Read every ignore file anew at the next question."""
        self._by_folder.clear()
        self._common = None

    def ignores(self, rel: str, *, folder: bool = False) -> bool:
        """Whether a path relative to the root is ignored, by itself or because a folder above it
        is.
        """
        # Git compares bytes: one character of a pattern is one byte of a name.
        parts = os.fsencode(f"{self._prefix}{rel}").decode("latin-1").split("/")
        return any(
            self._decides(parts[:depth], folder or depth < len(parts))
            for depth in range(1, len(parts) + 1)
        )

    def _decides(self, parts: list[str], folder: bool) -> bool:
        """The last matching pattern of the deepest ignore file that has one decides."""
        for depth in range(len(parts) - 1, -1, -1):
            path = "/".join(parts[depth:])
            for pattern in self._of_folder("/".join(parts[:depth])):
                if pattern.matches(path, folder):
                    return not pattern.negated
        path = "/".join(parts)
        for pattern in self._of_everything():
            if pattern.matches(path, folder):
                return not pattern.negated
        return False

    def _of_folder(self, folder: str) -> list[IgnorePattern]:
        if folder not in self._by_folder:
            name = os.fsdecode(folder.encode("latin-1"))
            self._by_folder[folder] = _read(self._top / name / IGNORE_FILE)
        return self._by_folder[folder]

    def _of_everything(self) -> list[IgnorePattern]:
        """Rules of this clone, then of this user."""
        if self._common is None:
            self._common = []
            if self._place is not None:
                self._common += _read(self._place.common_dir / "info/exclude")
                self._common += _read(self._users_file())
        return self._common

    def _users_file(self) -> Path:
        with contextlib.suppress(GitFailedError):
            answer = run_git(self._root, ["config", "--path", "--get", "core.excludesFile"])
            return Path(os.fsdecode(answer.rstrip(b"\n")))
        base = os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
        return Path(base) / "git/ignore"


def _read(file: Path) -> list[IgnorePattern]:
    """Patterns of one ignore file, the last line first because it is the one that decides."""
    try:
        text = file.read_bytes().removeprefix(codecs.BOM_UTF8).decode("latin-1")
    except (OSError, ValueError):
        return []
    # Git ends lines at "\n" only; a form feed or U+2028 is part of a pattern.
    found = [parse_line(line.removesuffix("\r")) for line in reversed(text.split("\n"))]
    return [pattern for pattern in found if pattern is not None]
