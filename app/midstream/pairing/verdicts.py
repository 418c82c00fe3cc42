"""What is checked of an answer: does every file parse, and what does ruff find that is new.

Which answer is checked, and what follows, is ``effort``'s.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from midstream.edits.syntax import is_python
from midstream.pairing.checking import where_broken

RUFF_S: Final = 10.0

Lines = Mapping[str, Sequence[str]]
"""Lines of files by path."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checks say about one version of a file.

    Attributes:
        broken: Where it does not parse, ``""`` if it does (or is not Python).
        introduced: What ruff finds that it did not find before.
        tests: Whether the test command succeeded, ``None`` where it did not run.
        changed: Lines that differ from before.
        misplaced: Edits that found no place.
    """

    broken: str = ""
    introduced: tuple[str, ...] = ()
    tests: bool | None = None
    changed: int = 0
    misplaced: int = 0

    @classmethod
    def together(cls, verdicts: Mapping[str, Verdict], misplaced: int = 0) -> Verdict:
        """The verdict on several files at once, by path; of a single one its own."""
        several = len(verdicts) > 1
        broken = [
            f"{path}: {verdict.broken}" if several else verdict.broken
            for path, verdict in verdicts.items()
            if verdict.broken
        ]
        introduced = tuple(
            f"{path}: {finding}" if several else finding
            for path, verdict in verdicts.items()
            for finding in verdict.introduced
        )
        changed = sum(verdict.changed for verdict in verdicts.values())
        return cls("; ".join(broken), introduced, None, changed, misplaced)

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong with it."""
        wrong = self.broken or self.introduced or self.misplaced
        return not wrong and self.tests is not False

    @property
    def rank(self) -> tuple[bool, bool, int, int, bool]:
        """Sort key, the best first; of equals the one that was written first wins."""
        nothing = self.changed == 0
        findings = len(self.introduced)
        return (bool(self.broken), self.tests is False, self.misplaced, findings, nothing)

    @property
    def words(self) -> str:
        """The verdict as a person reads it."""
        if self.broken:
            return f"does not parse ({self.broken})"
        parts: list[str] = []
        if self.introduced:
            parts.append("; ".join(self.introduced[:3]))
        if self.misplaced:
            many = "s" * (self.misplaced != 1)
            parts.append(f"{self.misplaced} edit{many} without a place")
        if self.tests is not None:
            parts.append("tests pass" if self.tests else "tests fail")
        if not self.changed:
            parts.append("changes nothing")
        return ", ".join(parts) or "no findings"


async def look(path: str, before: Sequence[str], after: Sequence[str]) -> Verdict:
    """What the checks say about a new version of a file."""
    changed = sum(a != b for a, b in zip(before, after, strict=False))
    changed += abs(len(before) - len(after))
    if not is_python(path):
        return Verdict(changed=changed)
    old, new = "".join(f"{x}\n" for x in before), "".join(f"{x}\n" for x in after)
    if broken := await where_broken(new):
        return Verdict("" if await where_broken(old) else broken, changed=changed)
    found = await asyncio.to_thread(_introduced, path, old, new)
    return Verdict(introduced=found, changed=changed)


async def look_at(before: Lines, after: Lines, misplaced: int = 0) -> Verdict:
    """What the checks say about new versions of several files, by path."""
    verdicts = {path: await look(path, before[path], after[path]) for path in after}
    return Verdict.together(verdicts, misplaced)


def _introduced(path: str, before: str, after: str) -> tuple[str, ...]:
    """F and E9 findings of ruff in the text after that were not in the one before (blocking)."""
    old = [message for _, message in _ruff(path, before)]
    new: list[str] = []
    for line, message in _ruff(path, after):
        if message in old:
            old.remove(message)
        else:
            new.append(f"line {line}: {message}")
    return tuple(new)


def _ruff(path: str, text: str) -> list[tuple[int, str]]:
    from midstream.guard.ruff import find_ruff

    program = find_ruff()
    if program is None:
        return []
    arguments = ["check", "--isolated", "--select", "F,E9", "--output-format", "json"]
    try:
        done = subprocess.run(
            [program, *arguments, "--stdin-filename", Path(path).name, "-"],
            input=text.encode(),
            capture_output=True,
            timeout=RUFF_S,
            check=False,
        )
        found = cast("list[dict[str, Any]]", json.loads(done.stdout or b"[]"))
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return []
    return [(f["location"]["row"], f"{f['code']} {f['message']}") for f in found]
