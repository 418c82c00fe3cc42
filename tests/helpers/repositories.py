"""Helpers of the workspace tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Run git in ``folder`` as a named author."""
    author = {"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org"}
    author |= {"GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.org"}
    done = subprocess.run(
        ["git", "--no-optional-locks", *arguments],
        cwd=folder,
        env=os.environ | author,
        capture_output=True,
        check=True,
    )
    return os.fsdecode(done.stdout)
