"""What to try first in a folder: a few small edits that would improve its own files."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from midstream.edits.suggestions import Suggestion as Suggestion  # what the screen may name
from midstream.edits.suggestions import suggestions
from midstream.resources import read_small

MAX_SUGGESTIONS: Final = 3
"""Suggestions that are made."""
MAX_FILES: Final = 60
"""Files that are looked at."""
BUDGET_S: Final = 0.3
"""Limit on the processor time of the search, in seconds; the screen shares the interpreter."""
_ASIDE: Final = ("test", "tests", "docs", "doc", "examples", "vendor", "_vendor")


def suggest(root: Path, files: Sequence[str], first: Iterable[str] = ()) -> tuple[Suggestion, ...]:
    """Suggestions for a folder, of different kinds where there are (blocking).

    Args:
        root: The folder.
        files: Its files.
        first: Those to look at first: open and changed ones.
    """
    wanted = [path for path in dict.fromkeys(first) if path.endswith(".py")]
    known = set(wanted)
    wanted += sorted(
        (path for path in files if path.endswith(".py") and path not in known), key=_order
    )
    found: dict[str, Suggestion] = {}
    others: list[Suggestion] = []
    until = time.thread_time() + BUDGET_S
    for path in wanted[:MAX_FILES]:
        if len(found) >= MAX_SUGGESTIONS or time.thread_time() > until:
            break
        try:
            text = read_small(root / path).decode("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        for suggestion in suggestions(path, text):
            if found.setdefault(suggestion.title, suggestion) is not suggestion:
                others.append(suggestion)
        time.sleep(0)
    return (*found.values(), *others)[:MAX_SUGGESTIONS]


def _order(path: str) -> tuple[bool, int, str]:
    """Code before tests and documentation, shallow before deep."""
    folders = path.split("/")
    return any(part in _ASIDE or part.startswith("test_") for part in folders), len(folders), path
