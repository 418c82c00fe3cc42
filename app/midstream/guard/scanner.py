"""The guard on a text: all findings, or only those that a change has brought in.

Python goes through ruff (made parseable by `prefix`) and the secret rules; JavaScript, TypeScript,
Go and shell through our own pack and the secret rules; any other text through the secret rules
alone: its language is "unguarded" for the rest, and the caller shows that.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from midstream.guard.findings import Finding, Level
from midstream.guard.pack import has_pack, pack_findings
from midstream.guard.policy import IDIOMS, SECRET_IDIOM, level_of
from midstream.guard.prefix import complete_prefix
from midstream.guard.ruff import Diagnostic, RuffServer, RuffUnavailableError
from midstream.guard.secrets import find_secrets, mask

_IGNORE: Final = re.compile(
    r"(?:#|//)\s*(?:noqa(?::\s*(?P<noqa>[A-Z0-9, ]+))?|nosec\b|midstream:\s*ignore\b)",
    re.IGNORECASE,
)
_CREDENTIAL_RULES: Final = frozenset({"S105", "S106", "S107"})
_LONG_LINE: Final = 4_000
"""Characters of a line that are looked at for secrets: minified files must not stop the stream."""


class Scanner:
    """Scans texts; keeps one warm ruff child.

    Args:
        levels: Levels that the person has set, by rule.

    Attributes:
        problem: Why Python is unguarded at the moment, ``""`` when it is guarded.
        unparsed: Whether the last Python text did not parse, so that little could be said of it.
    """

    def __init__(self, levels: Mapping[str, Level] | None = None) -> None:
        self._ruff = RuffServer()
        self._levels = levels or {}
        self.problem = ""
        self.unparsed = False

    @property
    def ruff(self) -> RuffServer:
        """The child, for its process id."""
        return self._ruff

    def guards(self, path: str) -> bool:
        """Whether more than secrets is looked for in this file."""
        return has_pack(path) or (is_python(path) and not self.problem)

    async def scan_whole(self, lines: Sequence[str], path: str) -> list[Finding]:
        """Return the findings on a whole file; its last statement counts as finished."""
        found = await self.scan(lines, path)
        return found if found is not None else self.line_findings(lines, path)

    async def scan(self, lines: Sequence[str], path: str) -> list[Finding] | None:
        """Return the findings on the first lines of a file, by line.

        Args:
            lines: The text so far, without terminators; it may end in the middle of a block.
            path: The file's name; its suffix decides what is looked for.

        Returns:
            ``None`` while the last statement is unfinished and nothing can be said about it.
        """
        findings = self.line_findings(lines, path)
        if is_python(path):
            text = complete_prefix(list(lines))
            if text is None:
                return findings or None
            findings += await self.python_findings(lines, text)
        findings = [finding for finding in findings if not ignored(lines, finding)]
        return sorted(findings, key=lambda finding: (finding.line, finding.rule))

    def line_findings(self, lines: Sequence[str], path: str) -> list[Finding]:
        """Return what single lines show by themselves: credentials, and the pack's rules."""
        found = [*_secrets(lines), *pack_findings(lines, path)]
        return [f for f in map(self._levelled, found) if f.level is not Level.OFF]

    def _levelled(self, finding: Finding) -> Finding:
        level = self._levels.get(finding.rule)
        return finding if level is None else replace(finding, level=level)

    async def close(self) -> None:
        """End the ruff child."""
        await self._ruff.close()

    async def python_findings(
        self, lines: Sequence[str], text: str, first: int = 0
    ) -> list[Finding]:
        """Return ruff's findings on a Python text.

        Args:
            lines: The lines that were written.
            text: The same, made parseable.
            first: Findings that begin above this line are left out.
        """
        try:
            diagnostics = await self._ruff.check(text)
        except RuffUnavailableError as error:
            self.problem = str(error)
            return []
        self.problem = ""
        self.unparsed = any(not item.code.startswith("S") for item in diagnostics)
        diagnostics = [
            item
            for item in diagnostics
            if item.code.startswith("S") and first <= item.line < len(lines)
        ]
        if not diagnostics:
            return []
        tree = _parse(text)
        places = _Places(tree, text)
        return [
            Finding(
                item.code,
                item.message.rstrip("."),
                item.line,
                min(item.end_line + 1, len(lines)),
                level,
                IDIOMS.get(item.code, ""),
                mask(lines[item.line].strip()),
            )
            for item in diagnostics
            if (level := self._level(item, places, tree)) is not Level.OFF
        ]

    def _level(self, item: Diagnostic, places: _Places, tree: ast.Module | None) -> Level:
        chosen = self._levels.get(item.code)
        if chosen is not None:
            return chosen
        level = level_of(item.code, places.at(item), tree)
        return Level.OFF if level is Level.WARN and item.code in _CREDENTIAL_RULES else level


def new_findings(before: Iterable[Finding], after: Iterable[Finding]) -> list[Finding]:
    """Return the findings of ``after`` that ``before`` does not hold, wherever they have moved."""
    known = Counter(finding.key for finding in before)
    fresh: list[Finding] = []
    for finding in after:
        if known[finding.key]:
            known[finding.key] -= 1
        else:
            fresh.append(finding)
    return fresh


def _secrets(lines: Sequence[str]) -> Iterable[Finding]:
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


def is_python(path: str) -> bool:
    """Whether the file goes through ruff."""
    return path.endswith((".py", ".pyi"))


def ignored(lines: Sequence[str], finding: Finding) -> bool:
    """Whether a comment in the finding's lines says that it is to be ignored."""
    for line in lines[finding.line : finding.stop]:
        for match in _IGNORE.finditer(line):
            codes = match.group("noqa")
            if codes is None or finding.rule in codes.replace(",", " ").split():
                return True
    return False


def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Places:
    """Expressions of a module by where they start."""

    def __init__(self, tree: ast.Module | None, text: str) -> None:
        self._lines = text.split("\n")
        self._starting: dict[tuple[int, int], list[ast.expr]] = {}
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.expr):
                self._starting.setdefault((node.lineno - 1, node.col_offset), []).append(node)

    def at(self, item: Diagnostic) -> ast.expr | None:
        """Return the expression that a diagnostic marks; for a marked function name, its call."""
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
