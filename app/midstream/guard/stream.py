"""The guard on a region that streams in: each finished line costs what is new, not the file.

A `StreamScan` follows one rewrite of one region. Single lines are looked at once, when they are
finished; Python goes to ruff up to the last finished statement, below a head that holds only what
rules need. Findings that the region had before are not reported.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from midstream.guard.findings import Finding, Level
from midstream.guard.heads import reduced_head
from midstream.guard.prefix import PrefixLexer
from midstream.guard.scanner import Scanner, ignored, is_python

_NOQA: Final = re.compile(r"(#[^\S\n]*n)o(qa)", re.IGNORECASE)
LONGEST_STATEMENT: Final = 120
"""An unfinished statement that goes on for more lines is no verdict, and is said to be none."""
LONGEST_LINE: Final = 20_000
"""A longer line ends the scan of the language: no one writes it by hand, and it costs too much."""


class StreamScan:
    """Follows the lines of one region.

    Args:
        scanner: Does the looking; shared.
        path: The file's name.
        above: The lines above the region.
        before: The lines of the region as they were.
        below: The lines below it.

    Attributes:
        problem: Why only secrets are looked for in this stream, ``""`` while all is.
        seen: Lines that the last look covers.
        verdicts: How often ruff was asked.
    """

    def __init__(
        self,
        scanner: Scanner,
        path: str,
        above: Sequence[str],
        before: Sequence[str],
        below: Sequence[str] = (),
    ) -> None:
        self.problem = ""
        self.seen = 0
        self.verdicts = 0
        self._scanner = scanner
        self._path = path
        self._file = [*above, *before, *below]
        self._start = len(above)
        self._before = list(before)
        self._known_lines = frozenset(before)
        self._head: list[str] = []
        self._known: Counter[tuple[str, str]] | None = None
        self._told: set[tuple[str, int]] = set()
        self._lexer = PrefixLexer()
        self._blind = False
        self._fed = 0
        self._cut = 0
        self._closing: list[str] = []
        self._statements: list[int] = []

    def statement_at(self, line: int) -> int:
        """First line of the statement that a line of the stream belongs to."""
        return self._statements[line] if line < len(self._statements) else line

    async def look(self, lines: Sequence[str]) -> list[Finding]:
        """Return findings of the region that were not there before and not returned before.

        Args:
            lines: All finished lines of the region so far; a later call has the same and more.

        Returns:
            Findings in the coordinates of ``lines``, by line.
        """
        if self._known is None:
            await self._prepare()
        count = len(lines)
        fresh = lines[self._fed : count]
        found = [self._moved(f, self._fed) for f in self._scanner.line_findings(fresh, self._path)]
        if is_python(self._path):
            cut = self._follow(lines, count)
            if cut is not None:
                found += await self._python(lines[:cut])
        self._fed = self.seen = count
        return self._new(found, lines)

    async def _prepare(self) -> None:
        """Lines above, as far as they matter, and what the region has had already."""
        known = self._scanner.line_findings(self._before, self._path)
        self._head = self._file[: self._start]
        if is_python(self._path):
            if max(map(len, self._file), default=0) > LONGEST_LINE:
                self._blind = True
                self.problem = "the file has a line that is too long to scan"
            else:
                self._head = await asyncio.to_thread(reduced_head, self._file, self._start)
                known += await self._base_findings()
        for line in self._head:
            if not self._blind:
                self._lexer.feed(line)
        self._known = Counter(finding.key for finding in known)

    async def _base_findings(self) -> list[Finding]:
        lexer = PrefixLexer()
        for line in self._head:
            lexer.feed(line)
        cut, closing = 0, lexer.closing()
        for number, line in enumerate(self._before):
            lexer.feed(line)
            if not lexer.open:
                cut, closing = number + 1, lexer.closing()
        lines = [*self._head, *self._before[:cut]]
        text = "\n".join([*lines, *closing, ""])
        return await self._scanner.python_findings(lines, text, self._start)

    def _follow(self, lines: Sequence[str], count: int) -> int | None:
        """Feed the new lines to the lexer; the end of the last finished statement, if it moved."""
        before = self._cut
        for number in range(self._fed, count):
            line = lines[number]
            if len(line) > LONGEST_LINE and not self._blind:
                self._blind = True
                self.problem = f"line {self._start + number + 1} is too long to scan"
            if self._blind:
                return None
            goes_on = self._lexer.open and bool(self._statements)
            self._statements.append(self._statements[-1] if goes_on else number)
            self._lexer.feed(line)
            if not self._lexer.open:
                self._cut, self._closing = number + 1, self._lexer.closing()
        begun = self._statements[-1] if self._statements else 0
        if self._lexer.open and count - begun > LONGEST_STATEMENT:
            self.problem = f"the statement from line {self._start + begun + 1} on has no end"
        return self._cut if self._cut > before else None

    async def _python(self, written: Sequence[str]) -> list[Finding]:
        lines = [*self._head, *written]
        # ruff obeys the model's own excuses; here they are left to `_excused`.
        # One pass over all of it: this runs again and again while a long region streams.
        shown = _NOQA.sub(r"\g<1>0\g<2>", "\n".join(written))
        text = "\n".join([*self._head, *([shown] if written else []), *self._closing, ""])
        found = await self._scanner.python_findings(lines, text, self._start)
        self.verdicts += 1
        self.problem = ""
        if self._scanner.unparsed:
            self.problem = "the text does not parse as Python"
        return [self._moved(finding, -self._start) for finding in found]

    def _new(self, found: Sequence[Finding], lines: Sequence[str]) -> list[Finding]:
        known = Counter(self._known or ())
        fresh: list[Finding] = []
        for finding in sorted(found, key=lambda f: (f.line, f.rule)):
            if known[finding.key]:
                known[finding.key] -= 1
            elif (finding.rule, finding.line) not in self._told:
                self._told.add((finding.rule, finding.line))
                fresh.append(self._excused(finding, lines))
        return fresh

    def _excused(self, finding: Finding, lines: Sequence[str]) -> Finding:
        """A line that says it is to be ignored does not halt; the mark on the hunk stays."""
        if finding.level is Level.HALT and ignored(lines, finding):
            return replace(finding, level=Level.WARN)
        return finding

    @staticmethod
    def _moved(finding: Finding, by: int) -> Finding:
        return replace(finding, line=finding.line + by, stop=finding.stop + by)
