"""State and history of the git repository around a workspace.

Git runs in a thread, on request; without git or outside a repository the answer is empty.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from midstream.workspace.gitcmd import GitFailedError, run_git

_BEGUN: Final = (
    ("rebase-merge", "rebasing"),
    ("rebase-apply/applying", "applying patches"),
    ("rebase-apply", "rebasing"),
    ("MERGE_HEAD", "merging"),
    ("CHERRY_PICK_HEAD", "cherry-picking"),
    ("REVERT_HEAD", "reverting"),
    ("BISECT_LOG", "bisecting"),
)
"""Files that git keeps during an operation; as in git's prompt script, the first found counts."""


@dataclass(frozen=True, slots=True)
class RepoStatus:
    """State of the work tree that holds a workspace."""

    branch: str
    """Branch name; the first 8 digits of the commit when ``detached``."""
    detached: bool
    dirty: int
    """Tracked paths that differ from HEAD, staged or not, conflicts included."""
    untracked: int
    """Untracked paths, a wholly untracked folder counting as one."""
    head: str
    """Full commit id; empty before the first commit."""
    begun: str = ""
    """The operation git is in the middle of, such as ``merging``."""


async def repo_status(root: Path) -> RepoStatus | None:
    """Status of the repository around ``root``, or None when there is none (or no git)."""
    return await asyncio.to_thread(read_status, root)


def read_status(root: Path) -> RepoStatus | None:
    """Blocking form of :func:`repo_status`."""
    try:
        answer = run_git(
            root, ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal"]
        )
    except GitFailedError:
        return None
    return replace(parse_status(answer), begun=_begun(root))


def _begun(root: Path) -> str:
    try:
        answer = run_git(root, ["rev-parse", "--absolute-git-dir"])
    except GitFailedError:
        return ""
    folder = Path(os.fsdecode(answer).removesuffix("\n"))
    return next((word for name, word in _BEGUN if (folder / name).exists()), "")


def file_diff(root: Path, rel: str) -> str:
    """The uncommitted change of one file as a patch, ``""`` if there is none (blocking)."""
    try:
        answer = run_git(
            root, ["diff", "--no-color", "--no-ext-diff", "--relative", "HEAD", "--", rel]
        )
    except GitFailedError:
        return ""  # No repository, or no commit yet.
    return answer.decode("utf-8", "replace")


def parse_status(answer: bytes) -> RepoStatus:
    """Parse ``git status --porcelain=v2 --branch -z`` (see git-status(1))."""
    head = branch = ""
    dirty = untracked = 0
    fields = iter(answer.split(b"\0"))
    for field in fields:
        kind = field[:2]
        if field.startswith(b"# branch.oid "):
            head = field[13:].decode()
        elif field.startswith(b"# branch.head "):
            branch = os.fsdecode(field[14:])
        elif kind in {b"1 ", b"u "}:
            dirty += 1
        elif kind == b"2 ":
            dirty += 1
            # A renamed entry is followed by its old path.
            next(fields, None)
        elif kind == b"? ":
            untracked += 1
    head = "" if head == "(initial)" else head
    detached = branch == "(detached)"
    return RepoStatus(head[:8] if detached else branch, detached, dirty, untracked, head)


async def recent_subjects(root: Path, limit: int = 8) -> list[str]:
    """First lines of the newest commits of the current branch, newest first, without merges."""
    return await asyncio.to_thread(_recent_subjects, root, limit)


def _recent_subjects(root: Path, limit: int) -> list[str]:
    try:
        import git

        with git.Repo(root, search_parent_directories=True) as repo:
            commits = repo.iter_commits(max_count=limit, no_merges=True)
            return [str(commit.summary) for commit in commits]
    except Exception:
        # GitPython has no common error: its own classes, ImportError where git is missing,
        # ValueError for a branch without commits or a format that it cannot read.
        return []
