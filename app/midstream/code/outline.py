"""The definitions of a file and the lines they span.

Made from the syntax tree.  A Python file that does not parse is read by its indentation instead,
because users want help with exactly these; so is a very long one, because parsing it would block
the screen.  Other languages have trees of files with errors, too (``code.trees``).
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from midstream.code.languages import grammar_of
from midstream.code.syntax import NOT_PYTHON, parse_python

if TYPE_CHECKING:
    from midstream.code.languages import Language
    from midstream.code.trees import DefinitionKind

PARSED_LINES = 3_000
"""Longest file that is parsed; the parser blocks everything else in the process."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, a class, or an assignment to a name outside functions.

    Attributes:
        name: Dotted name from the top of the file, as in ``Parser.feed``.
        kind: What it is.
        start: First line, 0-based; decorators belong to it, and in other languages than Python the
            comments right above.
        stop: End line, exclusive.
    """

    name: str
    kind: DefinitionKind
    start: int
    stop: int

    @property
    def own_name(self) -> str:
        """Its name within its scope."""
        return self.name.rpartition(".")[2]

    @property
    def length(self) -> int:
        """Lines it takes."""
        return self.stop - self.start

    def contains(self, line: int) -> bool:
        """Whether ``line`` (0-based) belongs to it."""
        return self.start <= line < self.stop

    def encloses(self, other: Definition) -> bool:
        """Whether ``other`` lies inside it."""
        return self is not other and self.start <= other.start and other.stop <= self.stop


@dataclass(frozen=True, slots=True)
class Outline:
    """What a file defines.

    Attributes:
        definitions: By position; a definition comes before those inside it.
        statements: Line ranges of the top-level statements.
        parsed: Whether it was made from the syntax tree and not from indentation.
        lines: The file.
        local: The lines in which parameters and local variables are bound, by name; ``None`` for
            Python, where a function is asked itself.
    """

    definitions: tuple[Definition, ...]
    statements: tuple[tuple[int, int], ...]
    parsed: bool
    lines: Sequence[str] = field(default=(), repr=False)
    local: Mapping[str, tuple[int, ...]] | None = field(default=None, repr=False)

    @property
    def outermost(self) -> list[Definition]:
        """Functions that do not lie in another function."""
        found: list[Definition] = []
        for definition in self.definitions:
            if definition.kind == "function" and not (found and found[-1].encloses(definition)):
                found.append(definition)
        return found

    def members(self, home: Definition) -> list[Definition]:
        """Functions and classes right in a class."""
        inside = [d for d in self.definitions if d.kind != "assignment" and home.encloses(d)]
        return [d for d in inside if not any(other.encloses(d) for other in inside)]

    def binding(self, name: str) -> list[Definition]:
        """Outermost functions that have ``name`` as a parameter or local variable."""
        if self.local is not None:
            rows = self.local.get(name, ())
            return [d for d in self.outermost if any(map(d.contains, rows))]
        word = re.compile(rf"\b{re.escape(name)}\b")
        return [
            d
            for d in self.outermost
            if any(word.search(line) for line in self.lines[d.start : d.stop])
            and name in _binds(self.lines[d.start : d.stop])
        ]

    def named(self, name: str) -> list[Definition]:
        """Definitions called ``name``: exactly, or with more in front of it (``feed``)."""
        exact = [d for d in self.definitions if d.name == name]
        return exact or [d for d in self.definitions if d.name.endswith("." + name)]


def outline(lines: Sequence[str], path: str = "") -> Outline:
    """The outline of a file.

    The last one is cached, because it is needed for the same file at every key press.

    Args:
        lines: The file, as lines without terminators.
        path: Its name, which tells the language; what tells none is read as Python.
    """
    global _last
    language = grammar_of(path)
    last = _last  # another thread may replace it
    if last is not None and last[0] is language and last[1].lines == lines:
        return last[1]
    outlined = _outlined(lines) if language is None else _outlined_in(language, lines)
    if isinstance(lines, tuple):  # a list could change
        _last = language, outlined
    return outlined


_last: tuple[Language | None, Outline] | None = None


def identifiers(lines: Sequence[str]) -> frozenset[str]:
    """The names that a file binds or uses; the words of one that does not parse."""
    text = "\n".join(lines)
    try:
        tree = parse_python(text)
    except NOT_PYTHON:
        return frozenset(re.findall(r"[^\W\d]\w*", text))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, _DEFS):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
    return frozenset(names)


def declared_names(path: str, text: str) -> set[str]:
    """The names that a file seems to define, quickly: for offering what was misspelt."""
    pattern = _DECLARED if grammar_of(path) is not None else _DEFINED
    return {found for match in pattern.finditer(text) if (found := match[1] or match[2])}


def opens_block(line: str) -> bool:
    """Whether a line begins a block of the lines behind it, in any language but Ruby's kind."""
    return _COMMENT.sub("", line).rstrip().endswith((":", "{"))


def may_define(path: str, text: str, names: Collection[str]) -> bool:
    """Whether a file may define one of some names, so that an outline of it is worth its time."""
    if grammar_of(path) is None:
        return not declared_names(path, text).isdisjoint(names)
    if not names:
        return False
    listed = "|".join(map(re.escape, names))
    introduced = rf"(?:{_INTRODUCES})[\s*]+(?:\([^()\n]*\)\s*)?(?:\w+(?:::|\.))*(?:{listed})\b"
    return re.search(rf"{introduced}|\b(?:{listed})\b[?!]?\s*[(=<:{{]", text) is not None


_DEFINED = re.compile(
    r"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+([^\W\d]\w*)"
    r"|^([^\W\d]\w*)[ \t]*(?::[^=\n]+)?=(?!=)",
    re.MULTILINE,
)
"""In Python: a function, a class, or a constant at the top of a module."""
_COMMENT = re.compile(r"\s(?:#|//).*$")
_INTRODUCES = (
    r"\b(?:class|concept|const|def|enum|fn|func|function|interface|let|mod|module|namespace|record"
    r"|static|struct|trait|type|union|using|var)|macro_rules!|\#define|\btypedef\b[^;\n]*"
)
_DECLARED = re.compile(
    rf"(?:{_INTRODUCES})[\s*]+(?:\([^()\n]*\)\s*)?(?:self\.)?([^\W\d]\w*)"
    r"|^[ \t\w<>,&*:\[\]]*?\b([^\W\d]\w*)\([^()\n]*\)[^;=\n]{0,80}\{[ \t]*$",
    re.MULTILINE,
)
"""In other languages: what comes behind a word that introduces it, or has a body in braces."""


def _outlined(lines: Sequence[str]) -> Outline:
    if len(lines) > PARSED_LINES:
        return Outline(tuple(_by_indentation(lines)), (), parsed=False, lines=lines)
    try:
        tree = parse_python("\n".join(lines))
    except NOT_PYTHON:
        return Outline(tuple(_by_indentation(lines)), (), parsed=False, lines=lines)
    statements = tuple((_first_line(node), _stop(node)) for node in tree.body)
    return Outline(tuple(_definitions(tree.body, "")), statements, parsed=True, lines=lines)


def _outlined_in(language: Language, lines: Sequence[str]) -> Outline:
    from midstream.code.trees import names

    found = names(language, lines)
    definitions = tuple(Definition(d.name, d.kind, d.start, d.stop) for d in found.defined)
    parsed = bool(found.statements)
    return Outline(definitions, found.statements, parsed, lines, found.local or {})


_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _definitions(
    body: Sequence[ast.stmt], prefix: str, *, local: bool = False
) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, _DEFS):
            name = prefix + node.name
            is_class = isinstance(node, ast.ClassDef)
            kind: DefinitionKind = "class" if is_class else "function"
            yield Definition(name, kind, _first_line(node), _stop(node))
            yield from _definitions(node.body, name + ".", local=not is_class)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            if local:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    span = (_first_line(node), _stop(node))
                    yield Definition(prefix + target.id, "assignment", *span)
        else:
            # Definitions under `if TYPE_CHECKING:`, `try:` and the like count where they stand.
            for inner in _blocks(node):
                yield from _definitions(inner, prefix, local=local)


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(node, (ast.If, ast.For, ast.AsyncFor, ast.While)):
        yield node.body
        yield node.orelse
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        yield node.body
    elif isinstance(node, (ast.Try, ast.TryStar)):
        yield node.body
        for handler in node.handlers:
            yield handler.body
        yield node.orelse
        yield node.finalbody


def _binds(lines: Sequence[str]) -> frozenset[str]:
    """Parameters and local names of the function in ``lines``; none if it does not parse."""
    try:
        tree = parse_python(textwrap.dedent("\n".join(lines)))
    except NOT_PYTHON:
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return frozenset(names)


def _first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, _DEFS) else []
    return min([node.lineno, *(d.lineno for d in decorators)]) - 1


def _stop(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


_HEADER = re.compile(r"^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+([^\W\d]\w*)")
_STRINGS = re.compile(
    r"#[^\n]*|(?P<long>\"\"\"|\'\'\')(?:[^\\]|\\.)*?(?P=long)"
    r"|\"(?:[^\"\\\n]|\\.)*\"|\'(?:[^\'\\\n]|\\.)*\'",
    re.DOTALL,
)


class Header(NamedTuple):
    """The first line of a definition, 0-based, and the columns that it is indented by."""

    name: str
    kind: DefinitionKind
    line: int
    indent: int


def headers(lines: Sequence[str], inside: Collection[int] = ()) -> Iterator[Header]:
    """Functions and classes of Python by headers and indentation: quick, wrong inside strings.

    Args:
        lines: The text.
        inside: Lines that are inside of strings, and no headers.
    """
    open_names: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        match = _HEADER.match(line)
        if match is None or number in inside:
            continue
        indent = len(match[1].expandtabs())
        while open_names and open_names[-1][0] >= indent:
            open_names.pop()
        name = ".".join([*(outer for _, outer in open_names), match[3]])
        open_names.append((indent, match[3]))
        yield Header(name, "class" if match[2] == "class" else "function", number, indent)


def _by_indentation(lines: Sequence[str]) -> Iterator[Definition]:
    """Definitions as headers with the deeper lines below them and the decorators above."""
    inside = _in_strings(lines)
    for name, kind, number, indent in headers(lines, inside):
        start = _decorated_from(lines, number, indent)
        yield Definition(name, kind, start, _block_end(lines, number, indent, inside))


def _in_strings(lines: Sequence[str]) -> set[int]:
    """Lines that begin inside a string of several lines."""
    inside: set[int] = set()
    text = "\n".join(lines)
    at = line = 0
    for match in _STRINGS.finditer(text):
        if match["long"] is not None:
            first = line + text.count("\n", at, match.start())
            at, line = match.end(), first + text.count("\n", match.start(), match.end())
            inside.update(range(first + 1, line + 1))
    return inside


def _decorated_from(lines: Sequence[str], header: int, indent: int) -> int:
    """First line of the decorators above a header, one over several lines included."""
    start = number = header
    while number > 0:
        number -= 1
        text = lines[number].lstrip()
        width = _width(lines[number])
        if text.startswith("@") and width == indent:
            start = number
        elif not text or (width <= indent and not text.startswith((")", "]", "}"))):
            break
    return start


def _block_end(lines: Sequence[str], header: int, indent: int, inside: set[int]) -> int:
    stop = header + 1
    for number in range(header + 1, len(lines)):
        text = lines[number].lstrip()
        if not text:
            continue
        if number in inside or _width(lines[number]) > indent:
            stop = number + 1
        elif text.startswith((")", "]", "}")):
            stop = number + 1  # It closes the signature.
        elif not text.startswith("#"):
            break
    return stop


def _width(line: str) -> int:
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip())
