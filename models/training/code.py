"""A snippet opened for editing: its syntax tree, and splices by position that keep all other text
as it is.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import random
import re
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef
ATOM = re.compile(r"[^\W\d]\w*")
BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class Edit:
    """One training example before its instruction is written.

    Attributes:
        task: which edit it is, a key of the wordings.
        values: what the template may name; keys ending in "!" are code or text to be quoted by
            kind.
        target: the snippet after the edit.
        source: the snippet before it, where the edit was made backwards; None: the snippet itself.
    """

    task: str
    values: dict[str, str]
    target: str
    source: str | None = None


@dataclass(slots=True)
class Code:
    """A dedented snippet, parsed.

    Attributes:
        text: the source, ASCII, ended by a newline.
        rng: the source of every random choice.
        names: pool of new names that the generator may give.
        natural: whether code that only serves an edit (say, added prints) may not be made up.
    """

    text: str
    rng: random.Random
    names: list[str]
    natural: bool = False
    tree: ast.Module = field(init=False)
    fn: Function | None = field(init=False, default=None)
    _starts: list[int] = field(init=False)
    nodes: list[ast.AST] = field(init=False)
    atoms: set[str] = field(init=False)
    inside_format: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.text)
        if len(self.tree.body) == 1 and isinstance(self.tree.body[0], Function):
            self.fn = self.tree.body[0]
        self._starts = [0]
        for line in self.text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self.nodes = list(ast.walk(self.tree))
        self.atoms = set(ATOM.findall(self.text))
        self.inside_format = {
            id(inner)
            for node in self.nodes
            if isinstance(node, ast.JoinedStr)
            for inner in ast.walk(node)
            if inner is not node
        }

    def all(self, kind: type[T]) -> list[T]:
        """Return all nodes of one kind."""
        return [node for node in self.nodes if isinstance(node, kind)]

    def start(self, node: ast.AST) -> int:
        """Return where a node starts in the text."""
        return self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """Return where a node ends in the text."""
        return self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def of(self, node: ast.AST) -> str:
        """Return a node's source text."""
        return self.text[self.start(node) : self.end(node)]

    def line_start(self, lineno: int) -> int:
        """Return where a line (from 1) starts."""
        return self._starts[lineno - 1]

    def splice(self, changes: list[tuple[int, int, str]]) -> str:
        """Replace spans of the text; spans must not overlap."""
        out: list[str] = []
        last = 0
        for begin, end, new in sorted(changes):
            if begin < last:
                raise ValueError("overlapping changes")
            out += [self.text[last:begin], new]
            last = end
        return "".join([*out, self.text[last:]])

    def swap_words(self, spans: list[tuple[int, str]], new: str) -> str:
        """Replace words at given offsets; each span names the word that must stand there."""
        for offset, old in spans:
            if self.text[offset : offset + len(old)] != old:
                raise ValueError("position does not hold the word")
        return self.splice([(offset, offset + len(old), new) for offset, old in set(spans)])

    def new_name(self, like: str = "") -> str:
        """Return a fresh name, by chance one made from an existing name."""
        rng = self.rng
        for _ in range(20):
            name = rng.choice(self.names)
            chance = rng.random()
            if like and chance < 0.2:
                name = rng.choice(
                    [
                        f"{like}_{name}",
                        f"{name}_{like}",
                        f"new_{like}",
                        like + "_",
                        f"{like}s",
                        f"_{like}",
                    ]
                )
            elif chance < 0.25:
                name = f"{name}_{rng.choice(self.names)}"
            elif chance < 0.3:
                name = re.sub(r"_(\w)", lambda m: m[1].upper(), name)
            elif chance < 0.34:
                name = rng.choice("abcdefghijklmnpqrstuvwxyz")
            if (
                name not in self.atoms
                and len(name) <= 28
                and name.isidentifier()
                and not keyword.iskeyword(name)
                and name not in BUILTINS
            ):
                return name
        raise ValueError("no fresh name")

    # Parts of a function.

    def parameters(self) -> list[ast.arg]:
        """Return the ordinary and keyword-only parameters, without self and cls."""
        if self.fn is None:
            return []
        spec = self.fn.args
        return [
            a
            for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
            if a.arg not in ("self", "cls")
        ]

    def parameter_span(self) -> tuple[int, int]:
        """Return the span between the parentheses of the signature."""
        fn = self.fn
        assert fn is not None
        begin = self.text.index("(", self.text.index(fn.name, self.line_start(fn.lineno) + 3)) + 1
        depth, k = 1, begin
        while depth:
            ch = self.text[k]
            if ch in "\"'#":
                raise ValueError("text in the signature")
            depth += (ch in "([{") - (ch in ")]}")
            k += 1
        return begin, k - 1

    def docstring(self) -> ast.Expr | None:
        """Return the docstring statement of the function."""
        if self.fn is None:
            return None
        first = self.fn.body[0]
        if (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            return first
        return None

    def body(self) -> list[ast.stmt]:
        """Return the function's statements after the docstring."""
        if self.fn is None:
            return []
        return self.fn.body[1:] if self.docstring() else self.fn.body

    def body_on_own_lines(self) -> bool:
        """Whether the body starts on a line after the signature."""
        fn = self.fn
        return fn is not None and bool(fn.body) and self.own_line(fn.body[0])

    def indent_of(self, node: ast.AST) -> str:
        """Return the indent of a statement."""
        return " " * node.col_offset  # type: ignore[attr-defined]

    def own_line(self, node: ast.AST) -> bool:
        """Whether nothing but blanks stands before a statement on its line."""
        return not self.text[self.line_start(node.lineno) : self.start(node)].strip()  # type: ignore[attr-defined]

    def bound_elsewhere(self, name: str) -> bool:
        """Whether a name is bound in ways that a plain rename does not follow."""
        for node in self.nodes:
            if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
                return True
            if isinstance(node, ast.ExceptHandler) and node.name == name:
                return True
            if isinstance(node, ast.alias) and (node.asname or node.name.split(".")[0]) == name:
                return True
            if (
                isinstance(node, Function | ast.ClassDef)
                and node is not self.fn
                and node.name == name
            ):
                return True
            if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name == name:
                return True
        return False

    def uses(self, name: str) -> list[tuple[int, str]]:
        """Return the offsets of all uses of a variable or parameter."""
        spans: list[tuple[int, str]] = []
        for node in self.nodes:
            if (isinstance(node, ast.Name) and node.id == name) or (
                isinstance(node, ast.arg) and node.arg == name
            ):
                spans.append((self.start(node), name))
        return spans
