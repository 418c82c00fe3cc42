"""A ruff that does not work, for tests of the reaction to it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from midstream.guard.ruff import find_ruff

REAL: Final = find_ruff()
_NOWHERE: Final = (
    '{"code": "S307", "message": "m", "filename": "a.py", "location": {"row": %s, "column": 1}, '
    '"end_location": {"row": 2, "column": 1}}'
)
BROKEN: Final = (
    "exit 1",
    "exit 2",
    "echo what",
    "echo '{}'",
    "echo '[{}]'; exit 1",
    "echo '[7]'; exit 1",
    "echo '[]'; exit 3",
    *(f"echo '[{_NOWHERE % row}]'" for row in ("0", "3", "1.5", '"1"')),
    "kill -9 $$",
    "head -c 300000 /dev/zero | tr '\\0' '['",
    "printf 'Content-Length: 999999999999\\r\\n\\r\\n'; exec cat /dev/zero",
)
"""Shell commands of programs that write nonsense, fail or are killed."""


class BrokenRuff:
    """The program that is found in place of ruff.

    Args:
        folder: Where it lies.
        body: What it does, as a shell command.
        monkeypatch: Has it found.
    """

    def __init__(self, folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = folder / "ruff"
        self._path.write_text(f"#!/bin/sh\n{body}\n")
        self._path.chmod(0o755)
        monkeypatch.setattr("midstream.guard.ruff.find_ruff", lambda: str(self._path))

    def mend(self) -> None:
        """Have it work again."""
        self._path.write_text(f'#!/bin/sh\nexec "{REAL}" "$@"\n')
