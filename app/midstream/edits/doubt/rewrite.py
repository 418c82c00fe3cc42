"""A rewrite with all that it is judged by: the request, the lines before, and the file."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from midstream.code.syntax import NOT_PYTHON, is_python, parse_python
from midstream.edits.documents import join_lines
from midstream.edits.lcs import line_edits

MAX_LINES: Final = 2_000
"""Longer texts are not looked at: small edit models rewrite a few dozen lines."""
NAME: Final = re.compile(r"[^\W\d]\w*")
BUILTINS: Final = frozenset(dir(builtins))
KNOWN: Final = BUILTINS | {*keyword.kwlist, *keyword.softkwlist}
FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef

Trees = tuple[ast.Module, ast.Module]
"""The lines before and after."""


class WantedCode(NamedTuple):
    """Definitions that a file is to get.

    Attributes:
        name: What one of them is to be called, ``""`` for anything.
        tests: Whether they are tests.
        subject: What the tests are for, the nearest last; one of these names is used in them.
    """

    name: str = ""
    tests: bool = False
    subject: Sequence[str] = ()


@dataclass(frozen=True)
class JudgedRewrite:
    """A rewrite of some lines of a file, and what it answers.

    Attributes:
        said: The instruction, in words.
        before: The lines that it is about, each ended by a newline: the file's, or a proposal.
        after: The lines as rewritten.
        path: The file.
        file: Its lines as they were.
        start: The first of the lines that are rewritten.
        stop: The line after the last.
        proposed: What takes their place in the file: models leave the margin of a method out.
        all_said: The instruction with those that a kept part of the rewrite answers.
        torn: Whether a part was kept, so that the rest answers another instruction.
        names: What the instruction certainly names in the code.
        adds: Whether it only adds to the lines; ``wanted`` is what it adds to the whole file.
    """

    said: str
    before: str
    after: str
    path: str
    file: Sequence[str]
    start: int
    stop: int
    proposed: Sequence[str]
    all_said: str
    torn: bool = False
    names: Collection[str] = ()
    adds: bool = False
    wanted: WantedCode | None = None

    @property
    def python(self) -> bool:
        """Whether it is read as Python."""
        return is_python(self.path)

    @cached_property
    def known(self) -> str:
        """The file as it was, its last line not ended."""
        return "\n".join(self.file)

    @cached_property
    def own(self) -> str:
        """The lines that are rewritten, as the file has them."""
        return join_lines(self.file[self.start : self.stop])

    def around(self, lines: Sequence[str]) -> list[str]:
        """The file with other lines in place of those that are rewritten."""
        return [*self.file[: self.start], *lines, *self.file[self.stop :]]

    @cached_property
    def changes(self) -> list[tuple[list[str], list[str]]]:
        """The lines that are replaced in each place, and those that replace them; no blank ones."""
        old, new = self.before.splitlines(), self.after.splitlines()
        return [
            ([*filter(str.strip, old[edit.start : edit.stop])], [*filter(str.strip, edit.lines)])
            for edit in line_edits(old, new)
        ]

    @cached_property
    def trees(self) -> Trees | None:
        """``before`` and ``after``, see ``parsed``."""
        return parsed(self.before, self.after)

    @cached_property
    def own_trees(self) -> Trees | None:
        """``own`` and ``after``, see ``parsed``."""
        return self.trees if self.own == self.before else parsed(self.own, self.after)


def differ(before: str, after: str) -> bool:
    """Whether texts differ and are short enough to be compared line by line."""
    old, new = before.splitlines(), after.splitlines()
    return old != new and max(len(old), len(new)) <= MAX_LINES


def too_long(*texts: str) -> bool:
    """Whether texts are not looked at."""
    return any(text.count("\n") > MAX_LINES for text in texts)


def parsed(before: str, after: str) -> Trees | None:
    """The trees of lines, which may be indented; ``None`` if some of them are no Python."""
    try:
        return parse_python(textwrap.dedent(before)), parse_python(textwrap.dedent(after))
    except NOT_PYTHON:
        return None


def words(*texts: str) -> frozenset[str]:
    """The names in some texts."""
    return frozenset(name for text in texts for name in NAME.findall(text))


def functions(tree: ast.AST) -> dict[str, Function]:
    """The functions in a tree, by name."""
    return {node.name: node for node in ast.walk(tree) if isinstance(node, FUNCTION)}


def parameters(function: Function) -> list[str]:
    """The names of a function's parameters."""
    return [node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)]


def bound(tree: ast.AST, *, patterns: bool = True) -> set[str]:
    """The names that code binds.

    Args:
        tree: The code.
        patterns: Whether those count that only a ``case`` or a declaration such as ``global`` has.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (*FUNCTION, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler):
            found |= {node.name} if node.name else set()
        elif not patterns:
            continue
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
    return found


def read(tree: ast.AST) -> Iterator[str]:
    """Yield the names that code reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
