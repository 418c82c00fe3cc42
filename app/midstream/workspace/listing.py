"""The files of a workspace: from git, or from a walk where there is no repository."""

from __future__ import annotations

import os
from pathlib import Path

from midstream.workspace.atomic import is_temporary
from midstream.workspace.gitcmd import GitFailedError, run_git
from midstream.workspace.ignore import GENERATED_FOLDERS, IgnoreRules

MAX_FILES = 100_000
"""Longest listing; a longer one is cut, with a notice."""


def list_files(root: Path) -> tuple[list[str], str]:
    """Relative paths of the files below ``root``, sorted, and a notice when the list was cut.

    In a repository: tracked files that exist and untracked ones that are not ignored.  Elsewhere:
    every regular file outside :data:`GENERATED_FOLDERS` and hidden folders.

    Returns:
        ``(paths, notice)``; the notice is ``""`` when the list is complete.
    """
    try:
        paths = _from_git(root)
    except GitFailedError:
        paths = _from_walk(root)
    paths = sorted(path for path in paths if not is_temporary(path.rpartition("/")[2]))
    if len(paths) > MAX_FILES:
        notice = (
            f"This folder has more than {MAX_FILES:,} files and only the first are listed; "
            "open a subfolder."
        )
        return paths[:MAX_FILES], notice
    return paths, ""


def _from_git(root: Path) -> set[str]:
    answer = run_git(
        root,
        [
            "ls-files",
            "-z",
            "-t",
            "--stage",
            "--cached",
            "--deleted",
            "--others",
            "--exclude-standard",
        ],
    )
    found: set[str] = set()
    gone: set[str] = set()
    for field in os.fsdecode(answer).split("\0"):
        tag, _, rest = field.partition(" ")
        if tag == "?":
            # A trailing slash is a repository of its own inside this one.
            if not rest.endswith("/"):
                found.add(rest)
            continue
        facts, _, path = rest.partition("\t")
        # Mode 160000 is a submodule.
        if path and not facts.startswith("160000"):
            (gone if tag == "R" else found).add(path)
    return found - gone


def _from_walk(root: Path) -> set[str]:
    rules = IgnoreRules(root, None)
    found: set[str] = set()
    top = str(root)
    for folder, folders, names in os.walk(top):
        prefix = "" if folder == top else f"{os.path.relpath(folder, top)}/"
        folders[:] = [
            name
            for name in folders
            if not (name.startswith(".") or name in GENERATED_FOLDERS)
            and not rules.ignores(f"{prefix}{name}", folder=True)
        ]
        found.update(
            f"{prefix}{name}"
            for name in names
            if Path(folder, name).is_file() and not rules.ignores(f"{prefix}{name}")
        )
        if len(found) > MAX_FILES:
            break
    return found
