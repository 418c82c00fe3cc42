"""The definitions of a Python file and the lines they take.

Made from the syntax tree; a file that does not parse is read by its indentation instead, because a
file with a syntax error is exactly one a person wants help with.  Reads text, knows no instruction.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["function", "class", "assignment"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, a class, or an assignment to a name outside functions.

    Attributes:
        name: Dotted name from the top of the file, as in ``Parser.feed``.
        kind: What it is.
        start: First line, 0-based; decorators belong to it.
        stop: End line, exclusive.
        binds: Parameters and local names of a function (empty for the others).
    """

    name: str
    kind: Kind
    start: int
    stop: int
    binds: frozenset[str] = frozenset()

    @property
    def last_name(self) -> str:
        """The name without what encloses it."""
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
        definitions: By position; a definition stands before those inside it.
        statements: Line ranges of the top-level statements.
        parsed: Whether the file is valid Python; if not, the outline was read from indentation.
    """

    definitions: tuple[Definition, ...]
    statements: tuple[tuple[int, int], ...]
    parsed: bool

    def named(self, name: str) -> list[Definition]:
        """Definitions called ``name``: exactly, or with more in front of it (``feed``)."""
        exact = [d for d in self.definitions if d.name == name]
        return exact or [d for d in self.definitions if d.name.endswith("." + name)]


def outline(lines: Sequence[str]) -> Outline:
    """The outline of a file given as lines without terminators."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Outline(tuple(_by_indentation(lines)), (), parsed=False)
    statements = tuple((_first_line(node), _stop(node)) for node in tree.body)
    return Outline(tuple(_definitions(tree.body, "")), statements, parsed=True)


_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _definitions(
    body: Sequence[ast.stmt], prefix: str, *, local: bool = False
) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, _DEFS):
            name = prefix + node.name
            is_class = isinstance(node, ast.ClassDef)
            kind: Kind = "class" if is_class else "function"
            binds = frozenset[str]() if is_class else _binds(node)
            yield Definition(name, kind, _first_line(node), _stop(node), binds)
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


def _binds(function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.walk(function):
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


def _by_indentation(lines: Sequence[str]) -> Iterator[Definition]:
    """Definitions of a file that does not parse: a header and the deeper lines below it."""
    open_names: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        match = _HEADER.match(line)
        if match is None:
            continue
        indent = len(match[1].expandtabs())
        while open_names and open_names[-1][0] >= indent:
            open_names.pop()
        name = ".".join([*(outer for _, outer in open_names), match[3]])
        open_names.append((indent, match[3]))
        kind: Kind = "class" if match[2] == "class" else "function"
        yield Definition(name, kind, number, _block_end(lines, number, indent))


def _block_end(lines: Sequence[str], header: int, indent: int) -> int:
    stop = header + 1
    for number in range(header + 1, len(lines)):
        line = lines[number]
        if not line.strip():
            continue
        width = len(line.expandtabs()) - len(line.expandtabs().lstrip())
        # A closing bracket at the header's own depth ends a signature, not the block.
        if width <= indent and not line.lstrip().startswith((")", "]", "}", "#")):
            break
        if not (width <= indent and line.lstrip().startswith("#")):
            stop = number + 1
    return stop
