"""The example project of ``midstream demo``: a temporary copy with a short git history.

Nothing in ``project/`` is imported.  The suggestions are instructions that the shipped model does
well (``tests/test_shipped.py`` asks it); the first changes four places, so that there is something
to decide while it streams.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from midstream.edits.suggestions import Suggestion
from midstream.responses.profiles import BUILT_IN
from midstream.settings import Settings
from midstream.workspace.repo import GitFailedError, run_git

_PROJECT = Path(__file__).resolve().parent / "project"


READING_PACE: Final = 20.0
"""Tokens per second with which the demo begins.

The shipped model writes the whole function, some ten tokens to a line: this leaves half a second
for each, to decide a hunk or to redirect the model while it streams.
"""


@dataclass(frozen=True, slots=True)
class DemoInfo:
    """A fresh copy of the example project."""

    root: Path
    suggestions: tuple[Suggestion, ...]


SUGGESTIONS = (
    Suggestion("Rename a variable", "rename `rows` to `totals` in month_report", "tally/report.py"),
    Suggestion(
        "Guard clause", "raise a ValueError if `entries` is empty in longest", "tally/entries.py"
    ),
    Suggestion(
        "Add a parameter",
        "add a parameter `limit` with default None to for_client",
        "tally/entries.py",
    ),
    Suggestion("Format strings", "use f-strings in week_report", "tally/report.py"),
    Suggestion("Un-nest", "remove the else after return in days_late", "tally/reminders.py"),
)


_HISTORY = (
    (
        "2026-10-05T09:10:00+02:00",
        "Money and logged hours",
        ("tally/__init__.py", "tally/money.py", "tally/entries.py", "tests", "pyproject.toml"),
    ),
    (
        "2026-10-07T16:42:00+02:00",
        "Invoices",
        ("tally/invoice.py", "tally/__main__.py", "hours.csv"),
    ),
    ("2026-10-12T11:25:00+02:00", "Reminders for late invoices", (".",)),
)
"""Date, message and files of each commit of the example."""


def check_command() -> str:
    """The command that runs the tests of the example, wherever Midstream is installed."""
    return f"{shlex.quote(sys.executable)} -B -m unittest discover -q tests"


def for_demo(settings: Settings) -> Settings:
    """Settings with the shipped model, for which the demo is written, and without a journal."""
    return replace(settings.with_endpoint(BUILT_IN, "the demo"), model=None, journal=False)


def make_demo(parent: Path) -> DemoInfo:
    """Copy the example project into a folder and give it a git history.

    Returns:
        The copy and what to try in it.  Without git it has no history.
    """
    root = parent / "tally"
    shutil.copytree(_PROJECT, root, ignore=shutil.ignore_patterns("__pycache__"))
    with contextlib.suppress(GitFailedError):
        _commit_history(root)
    return DemoInfo(root, SUGGESTIONS)


def _commit_history(root: Path) -> None:
    run_git(root, ["init", "--quiet", "--initial-branch=main"])
    for date, message, paths in _HISTORY:
        run_git(root, ["add", "--", *paths])
        person = {"NAME": "Robin Example", "EMAIL": "robin@example.com", "DATE": date}
        run_git(
            root,
            ["-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify", "-m", message],
            environment={
                f"GIT_{role}_{fact}": value
                for role in ("AUTHOR", "COMMITTER")
                for fact, value in person.items()
            },
        )
    try:
        run_git(root, ["config", "user.email"])
    except GitFailedError:  # so that the tour can commit
        run_git(root, ["config", "user.name", "You"])
        run_git(root, ["config", "user.email", "you@example.com"])
