"""The example project of ``midstream demo``: a throw-away copy with a little git history.

``project/`` holds the files as people see them; nothing in it is imported.  The suggestions are instructions
that the shipped model was measured to do well, on functions of this project.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_PROJECT = Path(__file__).resolve().parent / "project"


class Suggestion(NamedTuple):
    """An instruction to try: what the list shows, what is typed, and the file that it is about."""

    title: str
    instruction: str
    path: str


@dataclass(frozen=True, slots=True)
class DemoInfo:
    """A fresh copy of the example project."""

    root: Path
    suggestions: tuple[Suggestion, ...]


SUGGESTIONS = (
    Suggestion(
        "Rename a variable", "rename `found` to `matches` in for_client", "tally/entries.py"
    ),
    Suggestion(
        "Add a parameter",
        'add a parameter `currency` with default "EUR" to add_tax',
        "tally/money.py",
    ),
    Suggestion("Guard clause", "return None if `entries` is None in longest", "tally/entries.py"),
    Suggestion("Modern formatting", "use an f-string in reminder_text", "tally/reminders.py"),
)


def make_demo() -> DemoInfo:
    """Copy the example project to a new temporary folder and give it a git history.

    Returns:
        Where the copy lies and what to try in it.  Without git the copy has no history, the rest works.
    """
    root = Path(tempfile.mkdtemp(prefix="midstream-demo-")) / "tally"
    shutil.copytree(_PROJECT, root, ignore=shutil.ignore_patterns("__pycache__"))
    return DemoInfo(root, SUGGESTIONS)
