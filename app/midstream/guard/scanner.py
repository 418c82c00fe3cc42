"""The guard applied to a text: which of its lines are dangerous, and how serious that is.

Python is scanned by ruff, by our own tracking of queries and by the secret rules; JavaScript,
TypeScript, Go and shell by our own pack and the secret rules; other text by the secret rules alone,
so its language counts as "unguarded".
"""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from midstream.code.syntax import is_python
from midstream.guard.findings import Finding, Level
from midstream.guard.injections import HINT, RULE, injections
from midstream.guard.mending import Head, mend, parse, without_future
from midstream.guard.pack import PackReader, has_pack
from midstream.guard.policy import IDIOMS, NEVER, SECRET_IDIOM, level_of, needs_tree
from midstream.guard.ruff import Diagnostic, RuffServer, RuffUnavailableError
from midstream.guard.secrets import find_secrets, mask

_IGNORE: Final = re.compile(
    r"(?:#|//)\s*(?:noqa(?::\s*(?P<noqa>[A-Z0-9, ]+))?|nosec\b|midstream:\s*ignore\b)",
    re.IGNORECASE,
)
_OWN: Final = frozenset({RULE, "S105", "S106", "S107"})
"""Rules of the linter that ours replace: queries and credentials."""
_LONG_LINE: Final = 4_000
"""Characters of a line that are searched for secrets: minified files must not stall the stream."""
_QUERY_MESSAGE: Final = "A query is built from parts that are not constants"


@dataclass(frozen=True, slots=True)
class ScannedLines:
    """Lines of Python to scan, and the lines around them (``opening``, ``closing``) that make them
    parse.
    """

    opening: Sequence[str]
    lines: Sequence[str]
    closing: Sequence[str]

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join([*self.opening, *self.lines, *self.closing, ""])


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A syntax tree that contains an excerpt and what is known around it.

    Attributes:
        tree: The tree; line 1 is line ``-offset`` of the excerpt.
        lines: The lines that the tree was made from.
        offset: How many lines of it come before the excerpt.
        runs: Whether to report a query also where it is run; a stream is stopped where it is built.
    """

    tree: ast.Module | None
    lines: Sequence[str]
    offset: int
    runs: bool = False


class Scanner:
    """Scans texts; keeps one warm ruff child.

    Args:
        levels: The user's levels, by rule.

    Attributes:
        problem: Why Python is unguarded at the moment, or ``""``.
        unread: How many texts ruff has not looked at because of a problem.
    """

    def __init__(self, levels: Mapping[str, Level] | None = None) -> None:
        self._levels = levels or {}
        self._ruff = RuffServer((_OWN | NEVER) - (self._levels.keys() - {RULE}))
        self.problem = ""
        self.unread = 0

    @property
    def ruff(self) -> RuffServer:
        """The child, for its process id."""
        return self._ruff

    def guards(self, path: str, unread: int | None = None) -> bool:
        """Whether more than secrets is looked for in this file.

        Args:
            path: The file.
            unread: What ``unread`` was before the file was scanned; by default the question is
                about the next scan.
        """
        sound = not self.problem if unread is None else unread == self.unread
        return has_pack(path) or (is_python(path) and sound)

    async def scan(self, lines: Sequence[str], path: str, *, runs: bool = False) -> list[Finding]:
        """The findings on a whole file or a fragment of one, by line.

        Args:
            lines: The text, without terminators; statements that do not parse are left out.
            path: The file's name; its suffix decides what is looked for.
            runs: Also report where a query is run that was built above.
        """
        findings = self.levelled(
            [*secret_findings(lines), *PackReader(path, runs=runs).feed(lines)]
        )
        if is_python(path):
            findings += await self._whole_python(lines, runs)
        findings = [finding for finding in findings if not ignored(lines, finding)]
        return sorted(findings, key=lambda finding: (finding.line, finding.rule))

    async def _whole_python(self, lines: Sequence[str], runs: bool) -> list[Finding]:
        mended = await asyncio.to_thread(mend, lines)
        if mended is None:
            return []
        head = Head()
        await asyncio.to_thread(head.learn, "\n".join(mended.lines))
        opening = [*head.prelude(mended.lines), *mended.opening]
        excerpt = ScannedLines(opening, without_future(mended.lines), mended.closing)
        around = Surroundings(mended.tree, mended.lines, 0, runs)
        return await self.python_findings(excerpt, lines, lambda: around) or []

    def levelled(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return findings at the levels that the person has set, without those that are off."""
        found = [
            finding
            if (level := self._levels.get(finding.rule)) is None
            else replace(finding, level=level)
            for finding in findings
        ]
        return [finding for finding in found if finding.level is not Level.OFF]

    async def warm(self) -> None:
        """Start the ruff child, so that the first verdict need not wait for it."""
        await self._ask(ScannedLines((), (), ()))

    async def close(self) -> None:
        """End the ruff child."""
        await self._ruff.close()

    async def python_findings(
        self, excerpt: ScannedLines, written: Sequence[str], around: Callable[[], Surroundings]
    ) -> list[Finding] | None:
        """The findings on some lines of Python, in their coordinates.

        Those on queries can lie above the lines, where a query began that the lines complete.

        Args:
            excerpt: The lines, made parseable.
            written: The lines as they were written, for the evidence.
            around: Makes the syntax tree that contains the lines; called in a thread, and only if
                something in them needs a closer look.

        Returns:
            None if the excerpt does not parse.
        """
        queries = any(HINT.search(line) for line in excerpt.lines)
        diagnostics = await self._ask(excerpt)
        if diagnostics is None:
            return None
        if not queries and not diagnostics:
            return []
        if queries or any(needs_tree(item.code) for item in diagnostics):
            surroundings = await asyncio.to_thread(around)
        else:
            surroundings = Surroundings(None, (), 0)
        found = list(self._judged(diagnostics, written, surroundings))
        if queries and surroundings.tree is not None:
            found += await asyncio.to_thread(_queries, surroundings)
        return self.levelled(found)

    async def _ask(self, excerpt: ScannedLines) -> list[Diagnostic] | None:
        """Ruff's diagnostics on the lines of an excerpt, in their coordinates."""
        try:
            diagnostics = await self._ruff.check(excerpt.text)
        except RuffUnavailableError as error:
            self.problem = str(error)
            self.unread += 1
            return []
        self.problem = ""
        # An excerpt can break rules that only whole files can keep; it need only parse.
        if (
            any(not item.code.startswith("S") for item in diagnostics)
            and parse(excerpt.text) is None
        ):
            return None
        first, count = len(excerpt.opening), len(excerpt.lines)
        return [
            item.moved(-first)
            for item in diagnostics
            if item.code.startswith("S") and first <= item.line < first + count
        ]

    def _judged(
        self, diagnostics: Sequence[Diagnostic], written: Sequence[str], around: Surroundings
    ) -> Iterable[Finding]:
        places = _Places(around) if diagnostics else None
        for item in diagnostics:
            level = self._levels.get(item.code)
            if level is None:
                node = None if places is None else places.at(item)
                level = level_of(item.code, node, around.tree)
            if level is not Level.OFF:
                idiom = IDIOMS.get(item.code, "")
                # Ruff's own advice would be given twice.
                message = item.message.partition("; consider using")[0] if idiom else item.message
                yield Finding(
                    item.code,
                    message.rstrip("."),
                    item.line,
                    min(item.end_line + 1, len(written)),
                    level,
                    idiom,
                    mask(written[item.line].strip()),
                )


def _queries(around: Surroundings) -> list[Finding]:
    """The findings on queries of an excerpt and of what is above it.

    A query may be built over several lines, of which only the last shows that it is one; the
    finding is where it is built.
    """
    assert around.tree is not None
    found: list[Finding] = []
    for item in injections(around.tree, runs=around.runs):
        line, stop = item.line - around.offset, item.stop - around.offset
        if 0 <= item.line < len(around.lines):
            evidence = mask(around.lines[item.line].strip())
            found.append(
                Finding(RULE, _QUERY_MESSAGE, line, stop, item.level, IDIOMS[RULE], evidence)
            )
    return found


def secret_findings(lines: Sequence[str]) -> Iterable[Finding]:
    """Yield the credentials in some lines of any language."""
    for number, line in enumerate(lines):
        for secret in find_secrets(line[:_LONG_LINE]):
            yield Finding(
                secret.rule,
                f"This looks like {secret.what}",
                number,
                number + 1,
                Level.HALT,
                SECRET_IDIOM,
                mask(line.strip()[:_LONG_LINE]),
            )


def ignored(lines: Sequence[str], finding: Finding) -> bool:
    """Whether a comment in the finding's lines says that it is to be ignored."""
    for line in lines[finding.line : finding.stop]:
        for match in _IGNORE.finditer(line):
            codes = match.group("noqa")
            if codes is None or finding.rule in codes.replace(",", " ").split():
                return True
    return False


class _Places:
    """Expressions by where they start, in the coordinates of an excerpt."""

    def __init__(self, around: Surroundings) -> None:
        self._lines = around.lines
        self._offset = around.offset
        self._starting: dict[tuple[int, int], list[ast.expr]] = {}
        for node in ast.walk(around.tree) if around.tree is not None else ():
            if isinstance(node, ast.expr):
                self._starting.setdefault((node.lineno - 1, node.col_offset), []).append(node)

    def at(self, item: Diagnostic) -> ast.expr | None:
        """Return the expression that a diagnostic marks; for a marked function name, its call."""
        item = item.moved(self._offset)
        end = (item.end_line, self._byte_column(item.end_line, item.end_column))
        starting = self._starting.get((item.line, self._byte_column(item.line, item.column)), [])
        for node in starting:
            if isinstance(node, ast.Call) and _end(node.func) == end:
                return node
        exact = [node for node in starting if _end(node) == end]
        return exact[0] if exact else None

    def _byte_column(self, line: int, column: int) -> int:
        text = self._lines[line] if line < len(self._lines) else ""
        return column if text.isascii() else len(text[:column].encode())


def _end(node: ast.expr) -> tuple[int, int]:
    return ((node.end_lineno or node.lineno) - 1, node.end_col_offset or 0)
