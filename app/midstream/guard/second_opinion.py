"""bandit as a second opinion on a model's code, if bandit is installed.

It is asked when a hunk has settled, and only marks: what must stop a model has been seen by then.
bandit runs in a child process (``bandit_child``) that is started on first use; it is no dependency.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from midstream import processes
from midstream.guard.findings import Finding, Level
from midstream.guard.mending import mend
from midstream.guard.policy import BANDIT, NEVER
from midstream.guard.scanner import ignored
from midstream.guard.secrets import mask
from midstream.scratch import ScratchError, scratch_place

_TIMEOUT_S: Final = 20.0
"""For one text; the first has to wait until the child has imported bandit."""
_BROKEN: Final = (OSError, EOFError, TimeoutError, ValueError, TypeError, ArithmeticError)
"""Errors of a child that dies, hangs or writes garbage."""
_OWN: Final = frozenset({"B105", "B106", "B107", "B608"})
"""Rules that the guard's own replace."""


def has_bandit() -> bool:
    """Whether bandit is installed beside this program."""
    return importlib.util.find_spec("bandit") is not None


class SecondOpinion:
    """Asks bandit, in one child process.

    Args:
        levels: The user's levels, by rule; ``bandit`` stands for all of its rules.

    Attributes:
        problem: Why it is not asked any more, or ``""``.
    """

    def __init__(self, levels: Mapping[str, Level]) -> None:
        self._levels = levels
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._old: tuple[list[str], list[Finding]] = [], []
        self.problem = ""

    async def new_findings(
        self, before: Sequence[str], after: Sequence[str], known: Sequence[Finding]
    ) -> list[Finding]:
        """What bandit finds in a text and did not find in its earlier version.

        Args:
            before: The file's lines before the model wrote.
            after: Its lines now, as far as they are written.
            known: Findings so far; the same rule on the same line is not reported again.
        """
        async with self._lock:
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    if list(before) != self._old[0]:
                        self._old = list(before), await self._ask(before)
                    new = await self._ask(after)
            except ScratchError as error:
                self.problem = f"bandit is not asked: {error.problem}"
                return []
            except _BROKEN as error:
                await self.close()
                self.problem = f"bandit does not answer ({str(error) or type(error).__name__})"
                return []
        counted = Counter(finding.key for finding in self._old[1])
        told = {finding.key for finding in known}
        fresh: list[Finding] = []
        for finding in new:
            counted[finding.key] -= 1
            same = {finding.key, (f"S{finding.rule[1:]}", finding.evidence)}
            if counted[finding.key] < 0 and not same & told:
                fresh.append(finding)
        return fresh

    async def close(self) -> None:
        """End the child."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # It leads a session of its own.
            await processes.end(process, kill=False)

    async def _ask(self, lines: Sequence[str]) -> list[Finding]:
        mended = await asyncio.to_thread(mend, lines)
        if mended is None:
            return []
        if self._process is None:
            await asyncio.to_thread(scratch_place)  # It needs a place for its file.
            self._process = await processes.start_python(
                "midstream.guard.bandit_child",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                limit=2**24,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(mended.text).encode() + b"\n")
        await process.stdin.drain()
        answer = await process.stdout.readline()
        if not answer:
            raise EOFError("its process ended")
        found: list[Finding] = []
        for rule, message, number in json.loads(answer):
            line = int(number) - 1 - len(mended.opening)
            level = self._levels.get(rule, self._levels.get(BANDIT, Level.WARN))
            if rule in _OWN or f"S{rule[1:]}" in NEVER or not 0 <= line < len(lines):
                continue
            evidence = mask(lines[line].strip())
            finding = Finding(rule, message.rstrip("."), line, line + 1, level, "", evidence)
            if level is not Level.OFF and not ignored(lines, finding):
                found.append(finding)
        return found
