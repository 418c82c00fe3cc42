"""Making an excerpt of Python readable: it parses, and its names mean what they mean in the file.

``mend`` takes a function cut from its file, Python 2, or a broken line.
The result has as many lines as the text, so that places correspond.  Statements that cannot be read
are removed one by one; the rest can still be scanned.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from midstream.code.syntax import NOT_PYTHON, parse_python
from midstream.guard.prefix import PrefixLexer

MAX_LINES: Final = 20_000
"""Longer texts are not repaired."""
_TRIES: Final = 40
"""Rounds of repairs of one text."""

_PRINT_TO: Final = re.compile(r"((?:^|[:;])\s*)print\s*>>\s*([\w.]+)\s*,?")
_PRINT: Final = re.compile(r"((?:^|[:;])\s*)print(?:\s+(?=[^\s=.,)\]:])|(?=[\"'])|\s*$)")
_EXCEPT: Final = re.compile(r"^(\s*except\s+[\w.()\s,]*[\w.)])\s*,\s*(\w+)\s*:")
_RAISE: Final = re.compile(r"^(\s*)raise\s+([\w.]+)\s*,")
_EXEC: Final = re.compile(r"((?:^|[:;])\s*)exec\s+(?!\()")
_EXEC_IN: Final = re.compile(r"^(\s*exec\(.*?)\s+in\s+(.*)$")
_SMALL: Final = (
    (re.compile(r"`([^`'\"]+)`"), r"repr(\1)"),
    (re.compile(r"<>"), "!="),
    (re.compile(r"\b0([0-7]{2,})\b"), r"0o\1"),
    (re.compile(r"\b(\d+)[lL]\b"), r"\1"),
    (re.compile(r"\b[uU][rR](?=[\"'])"), "r"),
)


@dataclass(frozen=True, slots=True)
class Mended:
    """A text that parses.

    Attributes:
        opening: Lines that come before it.
        lines: As many lines as the text has.
        closing: Lines that come after it.
        tree: The syntax tree of all; its line numbers are those of the text.
        lost: Number of statements that were removed.
    """

    opening: tuple[str, ...]
    lines: tuple[str, ...]
    closing: tuple[str, ...]
    tree: ast.Module
    lost: int

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join([*self.opening, *self.lines, *self.closing, ""])


def parse(text: str) -> ast.Module | None:
    """Return the syntax tree of a text, ``None`` if it has none."""
    try:
        return parse_python(text)
    except NOT_PYTHON:
        return None


def mend(lines: Sequence[str]) -> Mended | None:
    """Return the lines repaired into a text that parses; ``None`` if that fails."""
    if len(lines) > MAX_LINES:
        return None
    now = [line.replace("\x00", " ").replace("\x0c", " ").rstrip("\r") for line in lines]
    opening = _opening(now)
    if (done := _tried(opening, now, 0)) is not None:
        return done
    now = _modern(now)
    lost = 0
    for _ in range(_TRIES):
        now, dropped = _closed(now)
        lost += dropped
        if (done := _tried(opening, now, lost)) is not None:
            return done
        if not _take_out(opening, now):
            break
        lost += 1
    return None


def _tried(opening: tuple[str, ...], lines: Sequence[str], lost: int) -> Mended | None:
    lexer = PrefixLexer()
    for line in (*opening, *lines):
        lexer.feed(line)
    closing = () if lexer.open else tuple(lexer.closing())
    tree = parse("\n".join([*opening, *lines, *closing, ""]))
    if tree is None:
        return None
    if opening:
        ast.increment_lineno(tree, -len(opening))
    return Mended(opening, tuple(lines), closing, tree, lost)


def _opening(lines: Sequence[str]) -> tuple[str, ...]:
    """Headers that put an indented beginning into blocks, one for each margin that the text drops
    to.
    """
    falls: list[tuple[str, str]] = []
    for start, _, _ in _statements(lines):
        body = lines[start].lstrip()
        indent = lines[start][: len(lines[start]) - len(body)]
        if not falls or len(indent) < len(falls[-1][0]):
            falls.append((indent, body))
        if not indent:
            break
    openers: list[str] = []
    margin = ""
    for number, (indent, body) in enumerate(reversed(falls)):
        if indent:
            before = falls[len(falls) - number][1] if number else ""
            openers.append(margin + _opener(body, before))
        margin = indent
    return tuple(openers)


def _opener(body: str, after: str) -> str:
    """A header for a block that begins with ``body`` and is followed by ``after``."""
    if re.match(r"(?:except|finally)\b", after):
        return "try:"
    if re.match(r"(?:elif|else)\b", after):
        return "if 1:"
    return "class _:" if re.match(r"(?:async\s+def|def|@)", body) else "def _():"


def _statements(lines: Sequence[str]) -> list[tuple[int, int, bool]]:
    """The statements as line ranges, each with whether it is complete."""
    lexer = PrefixLexer()
    found: list[tuple[int, int, bool]] = []
    begun: int | None = None
    for number, line in enumerate(lines):
        if begun is None:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            begun = number
        lexer.feed(line)
        if not lexer.open:
            found.append((begun, number + 1, True))
            begun = None
    if begun is not None:
        found.append((begun, len(lines), False))
    return found


def _closed(lines: Sequence[str]) -> tuple[list[str], int]:
    """Replace the first lines of statements that have no end."""
    now = list(lines)
    lost = 0
    for _ in range(_TRIES):
        statements = _statements(now)
        if not statements or statements[-1][2]:
            break
        now[statements[-1][0]] = _stand_in(now[statements[-1][0]])
        lost += 1
    return now, lost


def _stand_in(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    header = line.rstrip().endswith(":") or re.match(r"\s*(?:async\s+)?(?:def|class)\b", line)
    return f"{indent}{'if 1:' if header else 'pass'}"


def _take_out(opening: tuple[str, ...], lines: list[str]) -> bool:
    """Replace the statement that stops the parser; False if there is none."""
    try:
        parse_python("\n".join([*opening, *lines, ""]))
    except IndentationError as error:
        number = (error.lineno or 1) - 1 - len(opening)
        if "expected an indented block" in error.msg:
            return _fill(lines, number)
        return _blank(lines, number)
    except SyntaxError as error:
        return _replace(lines, (error.lineno or 1) - 1 - len(opening))
    except (ValueError, RecursionError, MemoryError):
        return False
    return False


def _at(lines: Sequence[str], number: int) -> tuple[int, int] | None:
    last: tuple[int, int] | None = None
    for start, stop, _ in _statements(lines):
        if start > number:
            break
        last = (start, stop)
    return last


def _replace(lines: list[str], number: int) -> bool:
    place = _at(lines, number)
    if place is None:
        return False
    start, stop = place
    new = _stand_in("".join(lines[start:stop]))
    if lines[start] == new and stop == start + 1:
        new = ""
    lines[start:stop] = [new, *[""] * (stop - start - 1)]
    return True


def _blank(lines: list[str], number: int) -> bool:
    place = _at(lines, number)
    if place is None:
        return False
    start, stop = place
    lines[start:stop] = [""] * (stop - start)
    return True


def _fill(lines: list[str], number: int) -> bool:
    """Give the header before a line a body."""
    place = _at(lines, number - 1)
    if place is None:
        return False
    start, stop = place
    lines[start] = _stand_in(lines[start]).replace("if 1:", "if 1: pass")
    lines[start + 1 : stop] = [""] * (stop - start - 1)
    return True


def _modern(lines: Sequence[str]) -> list[str]:
    """Turn Python 2 into Python 3, statement by statement, as far as simple rules go."""
    now = list(lines)
    for start, stop, _ in _statements(lines):
        first, closes = now[start], 0
        if _PRINT_TO.search(first):
            first, closes = _PRINT_TO.subn(r"\1print(", first, count=1)
        elif parse("\n".join(lines[start:stop]).lstrip()) is None:
            first, closes = _PRINT.subn(r"\1print(", first, count=1)
        first = _EXCEPT.sub(r"\1 as \2:", first)
        first, raised = _RAISE.subn(r"\1raise (\2,", first, count=1)
        first, executed = _EXEC.subn(r"\1exec(", first, count=1)
        if executed and stop == start + 1:
            first = _EXEC_IN.sub(r"\1, \2", first)
        now[start] = first
        if closes or raised or executed:
            now[stop - 1] = _with_bracket(now[stop - 1])
        for number in range(start, stop):
            for pattern, new in _SMALL:
                now[number] = pattern.sub(new, now[number])
    return now


def _with_bracket(line: str) -> str:
    """Close a bracket at the end of a line, before its comment."""
    match = re.search(r"\s+#[^\"']*$", line)
    code, rest = (line[: match.start()], match.group()) if match else (line, "")
    return f"{code.rstrip().rstrip(';')}){rest}"


# Names that the lines above an excerpt bind

_IMPORT: Final = re.compile(
    r"^[ \t]*(?:import[ \t]+[\w., \t]+"
    r"|from[ \t]+[\w.]+[ \t]+import[ \t]+(?:\([^)]*\)|[\w.,* \t]+(?:\\\n[\w., \t]+)*))",
    re.MULTILINE,
)
_CONSTANT: Final = re.compile(r"^[A-Za-z_]\w*[ \t]*(?::[^=\n]+)?=[ \t]*[^=\s(\[{].*$", re.MULTILINE)
_TAKEN: Final = re.compile(
    r"^(?:async[ \t]+)?(?:def|class)[ \t]+(eval|exec|open|input)\b", re.MULTILINE
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_MAX_MENDINGS: Final = 300
"""Imports, and constants, that are kept of one file."""

_MODULES: Final = (
    *("os", "subprocess", "pickle", "cPickle", "dill", "marshal", "shelve", "yaml", "hashlib"),
    *("requests", "httpx", "ssl", "tempfile", "commands", "popen2", "jinja2", "jsonpickle"),
    *("pandas", "asyncio"),
)
_FUNCTIONS: Final = {
    **dict.fromkeys(("popen", "system"), "os"),
    **dict.fromkeys(
        ("Popen", "check_output", "check_call", "getoutput", "getstatusoutput"), "subprocess"
    ),
}
_USED: Final = re.compile(rf"(?<![\w.])(?:({'|'.join(_MODULES)})\.|({'|'.join(_FUNCTIONS)})\()")


class Head:
    """The names that the text so far has bound: what rules need of the lines above a region.

    A linter needs to know what is imported and which built-in names are shadowed; following queries
    needs plain constants.  Both are kept as a few lines of text, so that a verdict at the end of a
    long file costs no more than at its beginning.

    Attributes:
        constants: Plain assignments at the left margin, one line each.
    """

    def __init__(self) -> None:
        self._imports: dict[str, frozenset[str]] = {}
        self.constants: list[str] = []
        self._bound: set[str] = set()

    def learn(self, text: str) -> None:
        """Take in the names that a piece of the file binds."""
        for match in _IMPORT.finditer(text):
            self._import(match.group().strip())
        for match in _CONSTANT.finditer(text):
            if len(self.constants) < _MAX_MENDINGS and parse(match.group()) is not None:
                self.constants.append(match.group())
        for match in _TAKEN.finditer(text):
            self._imports[f"{match.group(1)} = None"] = frozenset({match.group(1)})

    def _import(self, statement: str) -> None:
        tree = parse(statement)
        for node in tree.body if tree is not None else ():
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                continue
            names = frozenset((name.asname or name.name).split(".")[0] for name in node.names)
            self._bound |= names
            if len(self._imports) < _MAX_MENDINGS:
                self._imports[ast.unparse(node)] = names

    def prelude(self, lines: Iterable[str]) -> list[str]:
        """Lines to put before an excerpt so that its names mean what they mean in the file.

        A module that is used but not imported is imported here: a function cut from its file, or
        written before its imports, is as dangerous as with them.
        """
        text = "\n".join(lines)
        used = set(_WORD.findall(text)) | {"*"}
        known = [line for line, names in self._imports.items() if not names.isdisjoint(used)]
        return [*known, *self._missing(text)]

    def _missing(self, text: str) -> list[str]:
        missing: set[str] = set()
        for module, function in _USED.findall(text):
            name = module or function
            if name in self._bound or re.search(rf"\b(?:def|class)\s+{name}\b", text):
                continue
            missing.add(f"import {name}" if module else f"from {_FUNCTIONS[name]} import {name}")
        return sorted(missing)


def without_future(lines: Sequence[str]) -> list[str]:
    """Return the lines with imports from ``__future__`` blanked: they may not follow a prelude."""
    return [
        re.sub(r"^from\s+__future__\s+import\s+[\w, ]+", "pass", line)
        if line.startswith("from __future__")
        else line
        for line in lines
    ]
