"""Running the git command.  Blocking; callers on an event loop use a thread.

Why the command and not GitPython, measured on this repository (1,000 files, median of 7 runs):

    =====================================  ========  =========
    question                               command   GitPython
    =====================================  ========  =========
    status (branch, changed, untracked)    16 ms     59 ms
    staged files                           4 ms      11 ms
    one entry of the index                 4 ms      33 ms
    a file as the last commit has it       6 ms      7 ms
    subjects of the last 8 commits         7 ms      26 ms
    =====================================  ========  =========

GitPython also holds the interpreter lock, which the screen shares, while it parses the index; takes
345 ms to import; and fails for an index of version 4 (``feature.manyFiles``).  Staging needs git's
filters, and commits need hooks and signing, which only the command runs.  Recent commits come from
GitPython (:func:`~midstream.workspace.repo.recent_subjects`): they are read once for the commit
page, and its commit objects need no output format to be parsed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

GIT_TIMEOUT_S = 30.0

# Set by git for hooks and aliases; they would point every command at another repository.
_FOREIGN = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
)


class GitFailedError(Exception):
    """Git is missing, took too long or failed; the message is the line that says why."""

    def __init__(self, reason: str, output: str = "") -> None:
        super().__init__(reason)
        self.output = output
        """Everything git wrote to its error stream."""


@dataclass(frozen=True, slots=True)
class RepositoryPlace:
    """Where a workspace root lies in a repository (all real paths)."""

    top: Path
    """Top of the work tree."""
    git_dir: Path
    """This work tree's own folder: HEAD and index."""
    common_dir: Path
    """Refs and objects, shared by all work trees."""


def run_git(
    folder: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    timeout: float = GIT_TIMEOUT_S,
) -> bytes:
    """Standard output of ``git <arguments>`` run in ``folder``.

    Git never prompts on the terminal, takes no optional locks and answers in English.

    Raises:
        GitFailedError: See there.
    """
    env = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    env |= environment or {}
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=env,
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        missing = "git is not installed" if folder.is_dir() else f"{folder} is gone"
        raise GitFailedError(missing) from error
    except subprocess.TimeoutExpired as error:
        raise GitFailedError(f"git took longer than {timeout:.0f} s") from error
    except OSError as error:
        raise GitFailedError(f"git could not be started ({error.strerror})") from error
    if done.returncode != 0:
        output = done.stderr.decode(errors="replace").strip()
        raise GitFailedError(_reason(output, done.returncode), output)
    return done.stdout


def _reason(output: str, status: int) -> str:
    """Git's own message, or the last line of the program that it ran."""
    lines = output.splitlines()
    for line in lines:
        if line.startswith("fatal: "):
            return line.removeprefix("fatal: ")
    return lines[-1] if lines else f"git ended with status {status}"


def find_repository(root: Path) -> RepositoryPlace | None:
    """The repository whose work tree holds ``root``; None without one, or if git fails."""
    try:
        answer = run_git(
            root,
            [
                "rev-parse",
                "--path-format=absolute",
                "--show-toplevel",
                "--git-dir",
                "--git-common-dir",
            ],
        )
    except GitFailedError:
        return None
    lines = os.fsdecode(answer).splitlines()
    if len(lines) != 3:
        return None
    top, git_dir, common_dir = (Path(line) for line in lines)
    return RepositoryPlace(top, git_dir, common_dir)
