"""Reading a repository's history in this process: the subjects of recent commits.

GitPython answers this without a git process for each question.  It is imported at the first one, in
the thread that asks; where it or git cannot serve (no repository, no git, a repository format it
does not know) the answer is empty.
"""

from __future__ import annotations

import asyncio
from pathlib import Path


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
