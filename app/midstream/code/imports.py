"""The imports of a file: which lines they are, where they end, and the names that they bind."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Final

from midstream.code.syntax import NOT_PYTHON, is_python, parse_python

_IMPORT: Final = re.compile(
    r"(?:import\b|from\s+\S+\s+import\b|(?:pub\s+)?use\s|using\s|#include\b|require(?:_relative)?\b"
    r"|(?:const|let|var)\s.*=\s*require\()"
)
_HEADING: Final = re.compile(r"\s*(?:$|#|//|/?\*|[\"']use |package\b|<\?php|\"\"\"|''')")
"""Lines that may stand above the imports of a file."""


def is_import(line: str) -> bool:
    """Whether a line without indentation begins an import, in one of the languages."""
    return _IMPORT.match(line) is not None


def open_brackets(line: str) -> int:
    """How many brackets a line of an import opens more than it closes; with any it goes on."""
    return sum(map(line.count, "({")) - sum(map(line.count, ")}"))


def behind_imports(lines: Sequence[str]) -> int:
    """The line behind the imports at the top of a file, or behind its heading if it has none."""
    behind, number, quote, imports = 0, 0, "", False
    while number < len(lines):
        line = lines[number]
        if quote:
            quote, behind = "" if quote in line else quote, number + 1
        elif is_import(line):
            depth = open_brackets(line)
            while depth > 0 and number + 1 < len(lines):
                number += 1
                depth += open_brackets(lines[number])
            behind, imports = number + 1, True
        elif not _HEADING.match(line):
            break
        elif line.strip() and not imports:
            mark = line.strip()[:3]
            quote = mark if mark in ('"""', "'''") and line.count(mark) == 1 else ""
            behind = number + 1
        number += 1
    return behind


def imported(text: str, path: str) -> set[str]:
    """The names that imports bind, or the imports themselves in other languages than Python."""
    if not is_python(path):
        return {line.strip() for line in text.split("\n") if is_import(line)}
    try:
        found = _python_imports(text)
    except NOT_PYTHON:
        return {text}
    return {alias.asname or alias.name.partition(".")[0] for each in found for alias in each.names}


def import_words(text: str, path: str) -> list[str]:
    """What the imports of a file bind, with what stands behind another name: ``json as _json``."""
    if not is_python(path):
        return sorted(imported(text, path))
    try:
        nodes = _python_imports(text)
    except NOT_PYTHON:
        return []
    aliases = [a for n in nodes if getattr(n, "module", "") != "__future__" for a in n.names]
    return sorted(f"{a.name} as {a.asname}" if a.asname else a.name for a in aliases)


def _python_imports(text: str) -> list[ast.Import | ast.ImportFrom]:
    """The imports at the top level of a file; raises one of ``NOT_PYTHON``."""
    body = parse_python(text).body
    return [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
