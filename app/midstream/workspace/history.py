"""Reading a repository's history in this process: HEAD's version of a file, recent commits.

GitPython answers these faster than a git process would.  It is imported at the first question, in
the thread that asks; where it or git cannot serve (no repository, no git, a repository format it
does not know) the answer is empty.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from git import Repo

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """One commit as a list shows it."""

    id: str
    subject: str
    author: str
    time: int
    """Seconds since the epoch."""


async def head_content(root: Path, rel: str) -> bytes | None:
    """Bytes of a file in the last commit; None when it is not there."""
    return await asyncio.to_thread(_head_content, root, rel)


async def recent_commits(root: Path, limit: int = 10) -> list[CommitInfo]:
    """The newest commits of the current branch, newest first."""
    return await asyncio.to_thread(_recent_commits, root, limit)


def _head_content(root: Path, rel: str) -> bytes | None:
    def answer(repo: Repo) -> bytes:
        top = os.path.realpath(str(repo.working_tree_dir))
        path = os.path.relpath(Path(os.path.realpath(root), rel), top)
        blob: Any = repo.head.commit.tree.join(path)
        return bytes(blob.data_stream.read())

    return _ask(root, answer)


def _recent_commits(root: Path, limit: int) -> list[CommitInfo]:
    def answer(repo: Repo) -> list[CommitInfo]:
        return [
            CommitInfo(
                commit.hexsha,
                str(commit.summary),
                str(commit.author.name),
                int(commit.committed_date),
            )
            for commit in repo.iter_commits(max_count=limit)
        ]

    return _ask(root, answer) or []


def _ask(root: Path, question: Callable[[Repo], Answer]) -> Answer | None:
    """The answer to ``question``; None when it cannot be had.

    GitPython has no common error: its own classes, ImportError where git is missing, KeyError for a
    path, ValueError for a name or a format it cannot read.
    """
    try:
        import git

        with git.Repo(root, search_parent_directories=True) as repo:
            return question(repo)
    except Exception:
        return None
