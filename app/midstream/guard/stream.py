"""The guard on a streaming region: the cost of a finished line does not grow with the file.

A ``StreamScan`` follows one rewrite of one region.  Each finished line is scanned once; Python goes
to ruff statement by statement, with its enclosing headers and the names that the file has bound.
Findings that the region had before are not reported.
"""

from __future__ import annotations

import ast
import asyncio
import copy
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from midstream.code.syntax import is_python
from midstream.guard.findings import Finding, Level
from midstream.guard.mending import Head, mend, parse, without_future
from midstream.guard.pack import PackReader
from midstream.guard.prefix import PrefixLexer
from midstream.guard.scanner import (
    ScannedLines,
    Scanner,
    Surroundings,
    ignored,
    secret_findings,
)

_NOQA: Final = re.compile(r"(#[^\S\n]*n)o(qa)", re.IGNORECASE)
_UNREAD: Final = "ruff has not looked at some lines"
MAX_STATEMENT_LINES: Final = 120
"""A statement that stays unfinished for more lines is reported as unscanned."""
MAX_LINE_LENGTH: Final = 20_000
"""A longer line ends the scan of Python: it was not written by hand, and costs too much."""
_AT_ONCE: Final = 64
"""Lines of the old region that are scanned at once."""
MAX_CONTEXT_LINES: Final = 400
"""Lines above a statement that are read for what its names hold, outside of functions."""


class StreamScan:
    """Follows the lines of one region.

    Args:
        scanner: Does the scanning; shared.
        path: The file's name.
        above: The lines above the region.
        before: The lines of the region as they were.
        below: The lines below it.

    Attributes:
        problem: Why only secrets are looked for in this stream, or ``""``.
        seen: Number of lines that have been scanned.
        verdicts: How often ruff was asked.
        unread: Whether it has not looked at some of the lines.
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
        self.unread = False
        self._scanner = scanner
        self._path = path
        self._above = list(above)
        self._before = list(before)
        self._below = below
        self._known: Counter[tuple[str, str]] | None = None
        self._told: set[tuple[str, int]] = set()
        self._head = Head()
        self._pack = PackReader(path)
        self._lexer = PrefixLexer()
        self._blind = False
        self._lost = False
        self._statements: list[int] = []
        self._cut = 0
        self._closing: list[str] = []
        self._context: list[str] | None = None
        self._around = 0

    def statement_at(self, line: int) -> int:
        """First line of the statement that a line of the stream belongs to."""
        return self._statements[line] if line < len(self._statements) else line

    async def look(self, lines: Sequence[str]) -> list[Finding]:
        """The findings of the region that are new: not there before, not returned before.

        Args:
            lines: All finished lines of the region so far; a later call has the same and more.

        Returns:
            Findings in the coordinates of ``lines``, by line.
        """
        if self._known is None:
            await self._prepare()
        found = await self._advance(lines)
        return self._new(found, lines)

    async def _prepare(self) -> None:
        """Read the lines above, and find what the region had already."""
        if is_python(self._path):
            longest = max(map(len, (*self._above, *self._before, *self._below)), default=0)
            if longest > MAX_LINE_LENGTH:
                self._blind = True
                self.problem = "the file has a line that is too long to scan"
            else:
                await asyncio.to_thread(self._read_above)
                await self._scanner.warm()
        else:
            await asyncio.to_thread(self._pack.feed, self._above)
        base = copy.copy(self)
        base._lexer, base._head = copy.deepcopy(self._lexer), copy.deepcopy(self._head)
        base._pack = copy.deepcopy(self._pack)
        base._statements = []
        known: dict[tuple[str, int], tuple[str, str]] = {}
        for stop in range(_AT_ONCE, len(self._before) + _AT_ONCE, _AT_ONCE):
            known |= {(f.rule, f.line): f.key for f in await base._advance(self._before[:stop])}
            await asyncio.sleep(0)  # do not block the event loop for long
        self._known = Counter(known.values())

    def _read_above(self) -> None:
        for line in self._above:
            self._lexer.feed(line)
        self._head.learn("\n".join(self._above))

    async def _advance(self, lines: Sequence[str]) -> list[Finding]:
        """Scan the lines after those that were seen."""
        begun, count = self.seen, len(lines)
        fresh = lines[begun:count]
        above = len(self._above)
        by_line = [_moved(finding, begun) for finding in secret_findings(fresh)]
        by_line += [_moved(finding, -above) for finding in self._pack.feed(fresh)]
        found = self._scanner.levelled(by_line)
        if is_python(self._path) and not self._blind:
            start = self._cut
            self._follow(lines, count)
            written = lines[start : self._cut]
            # Comments alone are no statement: keep the context for the one that follows.
            if self._context is not None and any(map(_says_something, written)):
                context, self._context = self._context, None
                found += [
                    _moved(f, start) for f in await self._python(context, written, lines, start)
                ]
        self.seen = count
        return found

    def _follow(self, lines: Sequence[str], count: int) -> None:
        """Feed the new lines to the lexer; ``_cut`` is the end of the last finished statement."""
        lexer = self._lexer
        for number in range(self.seen, count):
            line = lines[number]
            if len(line) > MAX_LINE_LENGTH:
                self._blind = True
                self.problem = f"line {len(self._above) + number + 1} is too long to scan"
                return
            if self._context is None and (lexer.open or _says_something(line)):
                begun = lexer.unfinished
                context = lexer.context(begun[0] if begun else line)
                # Its lines inside the region are scanned together with those to come.
                above = begun[: max(0, len(begun) - (number - self._cut))]
                self._context = [*context, *above]
                self._around = self._begin_around(number)
            goes_on = lexer.open and bool(self._statements)
            self._statements.append(self._statements[-1] if goes_on else number)
            lexer.feed(line)
            if not lexer.open:
                self._cut, self._closing = number + 1, lexer.closing()
        self.problem = "the text does not parse as Python" if self._lost else ""
        if self.unread:
            self.problem = _UNREAD
        begun_at = self._statements[-1] if self._statements else 0
        if lexer.open and count - begun_at > MAX_STATEMENT_LINES:
            self.problem = f"the statement at line {len(self._above) + begun_at + 1} does not end"

    def _begin_around(self, number: int) -> int:
        """The line of the file from which names in a line of the region are followed."""
        if (function := self._lexer.function) is not None:
            return function
        first = max(0, number - MAX_CONTEXT_LINES)
        return len(self._above) + (self._statements[first] if first < number else number)

    async def _python(
        self, context: list[str], written: Sequence[str], lines: Sequence[str], start: int
    ) -> list[Finding]:
        """The findings on finished statements, in their coordinates."""
        # Hide the model's own noqa comments from ruff; `_excused` handles them.
        shown = _NOQA.sub(r"\g<1>0\g<2>", "\n".join(written)).split("\n")
        self.verdicts += 1
        found = await self._ask(context, shown, self._closing, written, lines, start)
        if found is None:
            self._lost = True
            self.problem = "the text does not parse as Python"
            mended = await asyncio.to_thread(mend, [*context, *shown])
            if mended is None:
                return []
            context = [*mended.opening, *mended.lines[: len(context)]]
            shown = list(mended.lines[-len(shown) :])
            found = await self._ask(context, shown, mended.closing, written, lines, start)
        self._head.learn("\n".join(shown))
        return found or []

    async def _ask(
        self,
        context: Sequence[str],
        shown: Sequence[str],
        closing: Sequence[str],
        written: Sequence[str],
        lines: Sequence[str],
        start: int,
    ) -> list[Finding] | None:
        opening = [*self._head.prelude(shown), *context]
        unread = self._scanner.unread
        found = await self._scanner.python_findings(
            ScannedLines(opening, without_future(shown), closing),
            written,
            lambda: self._surroundings(lines, start, start + len(written)),
        )
        if self._scanner.unread != unread:
            self.unread = True  # For good: it is not asked about these lines again.
            self.problem = _UNREAD
        return found

    def _surroundings(self, lines: Sequence[str], start: int, stop: int) -> Surroundings:
        """The enclosing function of some lines of the region, as far as it goes, and constants."""
        first, above = self._around, len(self._above)
        text = [*self._above[first:], *lines[max(0, first - above) : stop]]
        mended = mend(text)
        if mended is None:
            return Surroundings(None, (), 0)
        constants = parse("\n".join(self._head.constants))
        if constants is not None:
            ast.increment_lineno(constants, -len(self._head.constants) - 1)
            mended.tree.body[:0] = constants.body
        return Surroundings(mended.tree, mended.lines, above + start - first)

    def _new(self, found: Sequence[Finding], lines: Sequence[str]) -> list[Finding]:
        known = self._known
        assert known is not None
        fresh: list[Finding] = []
        for finding in sorted(found, key=lambda f: (f.line, f.rule)):
            place = (finding.rule, finding.line)
            if finding.line < 0 or place in self._told:
                continue
            self._told.add(place)
            if known[finding.key]:
                known[finding.key] -= 1
            else:
                fresh.append(self._excused(finding, lines))
        return fresh

    @staticmethod
    def _excused(finding: Finding, lines: Sequence[str]) -> Finding:
        """A line that asks to be ignored does not halt; the mark on the hunk stays."""
        if finding.level is Level.HALT and ignored(lines, finding):
            return replace(finding, level=Level.WARN)
        return finding


def _says_something(line: str) -> bool:
    body = line.lstrip()
    return bool(body) and body[0] != "#"


def _moved(finding: Finding, by: int) -> Finding:
    return replace(finding, line=finding.line + by, stop=finding.stop + by)
