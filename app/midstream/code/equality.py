"""Which changes of a text leave its syntax tree as it is, comments and docstrings apart.

A change is proven by parsing the text with it and comparing both trees, node by node.  Statements
that no change touches are skipped, so a comparison costs what was changed.  Where a text does not
parse, or no grammar is known, nothing is said.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from inspect import cleandoc
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self, cast

from midstream.code.languages import grammar_of
from midstream.code.syntax import NOT_PYTHON, is_python, parse_python

if TYPE_CHECKING:
    from tree_sitter import Node

    from midstream.code.languages import Language

MAX_CHARACTERS: Final = 500_000
"""Longer texts are not compared."""
MAX_PARSED: Final = 40_000
"""Lines that are parsed for one file; changes that would need more are not proven."""

_RAW: Final = re.compile(
    r"string|template|heredoc|regex|char|jsx|text|quote|preproc"
    r"|(?<!^composite_)(?<!^func_)literal(?!_value$|_element$)"  # Go's are made of other nodes
)
"""Kinds of nodes in which spaces count, so that they are compared as they are written."""
_PYTHON_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""'
    r"|'''(?:\\.|[^\\])*?'''"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|(?P<comment>#[^\n]*)",
    re.DOTALL,
)
_FOR_TOOLS: Final = re.compile(
    r"^#!|-\*-|\b(?:type:|noqa|nosec|nolint|pragma|pylint|mypy:|pyright|ruff:|fmt:|isort|flake8"
    r"|eslint|prettier|biome|istanbul|c8 |webpack|jshint|jslint|global |rustfmt"
    r"|clippy|go:|line |export |rubocop|frozen_string_literal|coding[:=]|shellcheck"
    r"|noinspection|checkstyle|(?:no)?sonar|nopmd|doctest|cython:|distutils|midstream:|(?:no)?semgrep"
    r"|gitleaks|lgtm|codeql|snyk|checkov|trivy|tslint|phpcs|phpstan|shareable_constant|warn_indent)"
    r"|[\w@]+[-:]\s?(?:ignore|disable|enable|skip|off)\b|__(?:pure|no_side_effects)__|v8 ignore"
    r"|@(?:ts-|flow|jsx|vite|deprecated)|\+build|sourcemappingurl|\$flow|//lint:|pytype"
    r"|^//\s*(?:unordered )?output:"
    # Comments with an effect: includes of TypeScript, and escapes that Java and old C read as the
    # end or the continuation of a line.
    r"|<(?:reference|amd-)|\\u+[0-9a-f]{4}|\?\?/\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_COMPILED: Final = re.compile(r"[\"`]C[\"`]")
"""Go's import whose comment above is C, and compiled."""
_METADATA: Final = re.compile(r"# /// \w")
"""The beginning of a Python script's dependencies, in comments (PEP 723)."""
_ENDS_STATEMENT: Final = re.compile(
    r"\b(?:return|break|continue|throw|yield|async)\s*(?://.*|/\*.*)?$|^\s*(?:\+\+|--)"
)
"""Where JavaScript ends a statement with the line, and its grammar does not."""


class Replacement(NamedTuple):
    """Lines ``[start, stop)`` of a text become ``lines``."""

    start: int
    stop: int
    lines: tuple[str, ...]


class Comment(NamedTuple):
    """A comment or, in Python, a docstring in lines ``[start, stop)``."""

    start: int
    stop: int
    text: str
    is_doc: bool = False

    @property
    def for_tools(self) -> bool:
        """Whether a compiler, a linter or the like reads it."""
        if self.is_doc:
            return ">>>" in self.text
        return _FOR_TOOLS.search(self.text) is not None

    @property
    def words(self) -> str:
        """The text without indentation."""
        if not self.is_doc:
            return self.text

        return cleandoc(self.text)


class CommentChange(NamedTuple):
    """The comments in the lines of a change, before and after it."""

    old: tuple[Comment, ...]
    new: tuple[Comment, ...]


def prove(
    path: str, lines: Sequence[str], changes: Sequence[Replacement]
) -> dict[int, CommentChange]:
    """Find changes with which the text has the same syntax tree, comments and docstrings apart.

    Args:
        path: The file; its name tells the language.
        lines: The text before, without terminators.
        changes: What may be equal, by position; they do not overlap.

    Returns:
        The comments of each change that leaves the tree as it is, by its index.
    """
    read = _reader(path)
    if _ends_statements(path, lines, changes):
        return {}
    if path.endswith(".go") and any(map(_COMPILED.search, lines)):
        return {}
    if is_python(path) and any(map(_METADATA.match, applied(lines, changes))):
        return {}
    if read is None or not changes or sum(map(len, lines)) > MAX_CHARACTERS:
        return {}
    whole = read("\n".join(lines))
    if whole is None:
        return {}
    short = _shortened(whole, lines, changes)
    lines, changes = short.lines, short.changes
    before = read("\n".join(lines)) if short.parts else whole
    if before is None:
        return {}
    allowed = MAX_PARSED

    def proven(some: Sequence[int]) -> _Text | None:
        """The text with some of the changes, if its tree is as before."""
        nonlocal allowed
        allowed -= len(lines)
        chosen = [changes[i] for i in some]
        changed = applied(lines, chosen)
        after = read("\n".join(changed))
        if after is None or not before.equals(after, _Changed(chosen)):
            return None
        return after if _stay(short, chosen, changed, after) else None

    def search(some: Sequence[int]) -> list[int]:
        if len(some) < 2 or allowed < 0:
            return []
        middle = len(some) // 2
        halves = some[:middle], some[middle:]
        return [i for half in halves for i in (half if proven(half) else search(half))]

    equal = list(range(len(changes)))
    after = proven(equal)
    if after is None:
        equal = search(equal)
        after = proven(equal) if equal else None  # each by itself, and together
    if after is None:
        return {}
    changed = _Changed([changes[i] for i in equal])
    olds, news = [*before.comments(changed.olds)], [*after.comments(changed.news)]
    return {
        i: CommentChange(_within(olds, *old), _within(news, *new))
        for i, old, new in zip(equal, changed.olds, changed.news, strict=True)
    }


def _within(comments: Iterable[Comment], start: int, stop: int) -> tuple[Comment, ...]:
    return tuple(each for each in comments if each.start < stop and each.stop > start)


class _ParsedPart(NamedTuple):
    """Lines ``[start, stop)`` of a text that parse behind ``head`` as they do in their place."""

    start: int
    stop: int
    head: str


class _Shortened(NamedTuple):
    """What of a text has to be parsed for its changes.

    Attributes:
        lines: Parts of the text, each behind a line of its own; all of it, if it has no parts.
        changes: The changes, in these lines.
        parts: Where each part is among these lines, with the line before it.
    """

    lines: Sequence[str]
    changes: Sequence[Replacement]
    parts: Sequence[Range] = ()


def _shortened(whole: _Text, lines: Sequence[str], changes: Sequence[Replacement]) -> _Shortened:
    parts: list[tuple[_ParsedPart, int]] = []
    for index, change in enumerate(changes):
        part = whole.part(lines, change)
        if part is None:
            return _Shortened(lines, changes)
        # Those that overlap lie in one another, or are of one block.
        while parts and part.start < parts[-1][0].stop:
            other, index = parts.pop()
            outer = other if other.start <= part.start else part
            part = outer._replace(stop=max(part.stop, other.stop))
        parts.append((part, index))
    short: list[str] = []
    moved: list[Replacement] = []
    places: list[Range] = []
    ends = [*(index for _, index in parts[1:]), len(changes)]
    for (part, first), end in zip(parts, ends, strict=True):
        at = len(short)
        short += (part.head, *lines[part.start : part.stop])
        places.append((at, len(short)))
        shift = at + 1 - part.start
        moved += (Replacement(a + shift, b + shift, new) for a, b, new in changes[first:end])
    return _Shortened(short, moved, places)


def _stay(
    short: _Shortened, changes: Sequence[Replacement], changed: Sequence[str], after: _Text
) -> bool:
    """Whether each part of a text remains what it is in its place, with some of the changes.

    It has to begin with the same indentation and to end with its last line, and nothing in it may
    reach into the next part.
    """
    heads: list[int] = []
    at = shift = 0
    for start, stop in short.parts:
        heads.append(start + shift)
        while at < len(changes) and changes[at].start <= stop:
            shift += len(changes[at].lines) - (changes[at].stop - changes[at].start)
            at += 1
        if not _fits(short.lines[start + 1 : stop], changed[heads[-1] + 1 : stop + shift]):
            return False
    return after.begins_at(heads)


def _ends_statements(path: str, lines: Sequence[str], changes: Sequence[Replacement]) -> bool:
    """Whether a line break that a change makes or takes may end a statement by itself."""
    language = grammar_of(path)
    if language is None or language.family != "script":
        return False
    return any(
        _ENDS_STATEMENT.search(line)
        for change in changes
        for line in (*lines[change.start : change.stop], *change.lines)
    )


def applied(lines: Sequence[str], changes: Sequence[Replacement]) -> list[str]:
    """The text with changes, which are ordered by position."""
    result: list[str] = []
    at = 0
    for start, stop, new in changes:
        result += lines[at:start]
        result += new
        at = stop
    return result + list(lines[at:])


Range = tuple[int, int]


class _Changed:
    """Which lines of two versions of a text differ."""

    def __init__(self, changes: Sequence[Replacement]) -> None:
        self.olds: list[Range] = []
        self.news: list[Range] = []
        shift = 0
        for start, stop, new in changes:
            self.olds.append((start, stop))
            self.news.append((start + shift, start + shift + len(new)))
            shift += len(new) - (stop - start)

    def spares(self, old: Range, new: Range) -> bool:
        """Whether lines of the old text are untouched and have become those of the new one."""
        if _overlaps(self.olds, *old):
            return False
        passed = bisect_right(self.olds, old[0], key=_stop)
        shift = self.news[passed - 1][1] - self.olds[passed - 1][1] if passed else 0
        return new == (old[0] + shift, old[1] + shift)


def _stop(lines: Range) -> int:
    return lines[1]


def _overlaps(ranges: Sequence[Range], start: int, stop: int) -> bool:
    """Whether a range takes up or divides lines ``[start, stop)``."""
    index = bisect_left(ranges, (start, start))
    if index and ranges[index - 1][1] > start:
        return True
    # Lines that are put in before the first one are outside.
    while index < len(ranges) and ranges[index] == (start, start):
        index += 1
    return index < len(ranges) and ranges[index][0] < stop


class _Text(Protocol):
    """A text that was parsed."""

    def part(self, lines: Sequence[str], change: Replacement) -> _ParsedPart | None:
        """The part of these lines that has to be parsed for a change, if not all of them."""
        ...

    def begins_at(self, rows: Iterable[int]) -> bool:
        """Whether a statement of the outermost block begins in each of these lines."""
        ...

    def equals(self, other: Self, changed: _Changed) -> bool:
        """Whether the trees are equal; what no change touches is not looked at."""
        ...

    def comments(self, ranges: Sequence[Range]) -> Iterator[Comment]:
        """The comments in these lines."""
        ...


def _reader(path: str) -> Callable[[str], _Text | None] | None:
    """The parser for the texts of a file; it returns ``None`` for a text with errors."""
    if is_python(path):
        return _PythonText.read
    language = grammar_of(path)
    return None if language is None else partial(_GrammarText.read, language)


class _PythonText:
    """A Python text, read by Python's own parser."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self._text = text
        self._tree = tree

    @classmethod
    def read(cls, text: str) -> _PythonText | None:
        if "\r" in text:  # its lines are not those of the parser
            return None
        try:
            return cls(text, parse_python(text))
        except NOT_PYTHON:
            return None

    def part(self, lines: Sequence[str], change: Replacement) -> _ParsedPart | None:
        part: _ParsedPart | None = None
        owner: ast.AST = self._tree
        block: list[ast.stmt] | None = self._tree.body
        while block:
            first, last = _touched(block, change)
            part = _statements(owner, block[first:last], first, lines, change) or part
            if last - first != 1:
                break
            owner = block[first]
            block = next((each for each in _blocks(owner) if _holds(each, change)), None)
        return part

    def begins_at(self, rows: Iterable[int]) -> bool:
        begun = {node.lineno - 1 for node in self._tree.body}
        return begun.issuperset(rows)

    def equals(self, other: _PythonText, changed: _Changed) -> bool:
        todo: list[tuple[ast.AST, ast.AST]] = [(self._tree, other._tree)]
        while todo:
            one, two = todo.pop()
            kind = type(one)
            if kind is not type(two):
                return False
            if (
                isinstance(one, ast.stmt)
                and isinstance(two, ast.stmt)
                and changed.spares(_lines_of(one), _lines_of(two))
            ):
                continue
            for mine, theirs in _fields(one, two):
                # Names, constants, operators and absent fields are mostly one object for both.
                if mine is theirs:
                    continue
                if type(mine) is not type(theirs):
                    return False
                if isinstance(mine, ast.AST):
                    todo.append((mine, cast("ast.AST", theirs)))
                elif isinstance(mine, list):
                    ones, twos = cast("list[object]", mine), cast("list[object]", theirs)
                    if len(ones) != len(twos):
                        return False
                    for first, second in zip(ones, twos, strict=True):
                        if isinstance(first, ast.AST) and isinstance(second, ast.AST):
                            todo.append((first, second))
                        elif type(first) is not type(second) or first != second:
                            return False
                elif mine != theirs:
                    return False
        return True

    def comments(self, ranges: Sequence[Range]) -> Iterator[Comment]:
        # Strings and comments begin and end as in any Python text that parses.
        at = line = 0
        lines = self._text.split("\n") if "#" in self._text else []
        marked = any("#" in line for start, stop in ranges for line in lines[start:stop])
        for match in _PYTHON_TOKEN.finditer(self._text) if marked else ():
            if match["comment"] is None:
                continue
            line += self._text.count("\n", at, match.start())
            at = match.start()
            if _overlaps(ranges, line, line + 1):
                yield Comment(line, line + 1, match["comment"])
        todo: list[ast.AST] = [self._tree]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.stmt) and not _overlaps(ranges, *_lines_of(node)):
                continue
            if (doc := _doc_of(node)) is not None:
                start, stop = doc.lineno - 1, doc.end_lineno or doc.lineno
                if _overlaps(ranges, start, stop):
                    yield Comment(start, stop, str(doc.value), is_doc=True)
            todo += (each for each in ast.iter_child_nodes(node) if isinstance(each, _BLOCKS))


def _touched(block: Sequence[ast.stmt], change: Replacement) -> tuple[int, int]:
    """Which statements of a block a change touches, with those that share a line with them."""
    first = bisect_right(block, change.start, key=lambda node: _lines_of(node)[1])
    last = bisect_left(block, change.stop, lo=first, key=lambda node: _lines_of(node)[0])
    if first < last:
        start, stop = _lines_of(block[first])[0], _lines_of(block[last - 1])[1]
        while first and _lines_of(block[first - 1])[1] > start:
            first -= 1
        while last < len(block) and _lines_of(block[last])[0] < stop:
            last += 1
    return first, last


def _holds(block: Sequence[ast.stmt], change: Replacement) -> bool:
    start, stop = _lines_of(block[0])[0], _lines_of(block[-1])[1]
    return start <= change.start and change.stop <= stop


def _statements(
    owner: ast.AST, run: Sequence[ast.stmt], at: int, lines: Sequence[str], change: Replacement
) -> _ParsedPart | None:
    """The lines of statements and a change, if they can be parsed by themselves.

    Whole lines of statements have the tree that they have in their place, too, behind a line that
    opens a block, or that is a statement at the margin.

    Args:
        owner: What the statements are a block of.
        run: Neighbours in that block; none for a change between two of them.
        at: The place of the first one in the block.
        lines: The text.
        change: The change, which touches these statements.
    """
    start, stop, head = change.start, change.stop, "0"
    if run:
        top = _lines_of(run[0])[0]
        start, stop = min(start, top), max(stop, _lines_of(run[-1])[1])
        indent = _indent(lines[top : top + 1]) or ""
        if run[0].col_offset != len(indent) or lines[top].startswith("elif", len(indent)):
            return None  # the line begins with something else
        if at == 0 and _doc_of(owner) is not None:
            if not indent:
                return None
            head = "def _():"
        elif indent:
            head = "if 1:"
    if start and lines[start - 1].endswith("\\"):
        return None
    if not (start < change.start and change.stop < stop):
        changed = [*lines[start : change.start], *change.lines, *lines[change.stop : stop]]
        if not _fits(lines[start:stop], changed):
            return None
    return _ParsedPart(start, stop, head)


def _fits(lines: Sequence[str], changed: Sequence[str]) -> bool:
    """Whether lines can take the place of others: they begin as these, and end with their last."""
    if changed and changed[-1].endswith("\\"):
        return False
    return _indent(lines) == _indent(changed)


def _indent(lines: Iterable[str]) -> str | None:
    """The indentation of the first line of code; ``None`` if there is none."""
    for line in lines:
        code = line.lstrip()
        if code and not code.startswith("#"):
            return line[: len(line) - len(code)]
    return None


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a statement, none of them empty."""
    for inner in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        for name in ("body", "orelse", "finalbody"):
            if block := getattr(inner, name, None):
                yield block


def _fields(one: ast.AST, two: ast.AST) -> Iterable[tuple[object, object]]:
    """The fields of two nodes of a kind, without docstrings where both have one."""
    names = one._fields
    pairs = [(getattr(one, name, None), getattr(two, name, None)) for name in names]
    if isinstance(one, _DOCUMENTED) and _doc_of(one) is not None and _doc_of(two) is not None:
        at = names.index("body")
        mine, theirs = cast("tuple[list[object], list[object]]", pairs[at])
        pairs[at] = mine[1:], theirs[1:]
    return pairs


def _doc_of(node: ast.AST) -> ast.Constant | None:
    if isinstance(node, _DOCUMENTED) and node.body and isinstance(first := node.body[0], ast.Expr):
        doc = first.value
        if isinstance(doc, ast.Constant) and isinstance(doc.value, str):
            return doc
    return None


_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


_BLOCKS: Final = (
    *_DOCUMENTED,
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar),
    *(ast.Match, ast.excepthandler, ast.match_case),
)
"""Nodes in which definitions can stand."""


def _lines_of(node: ast.stmt) -> Range:
    """The half-open range of lines of a statement, with its decorators."""
    first, stop = node.lineno, node.end_lineno or node.lineno
    if isinstance(node, _DECORATED):
        first = min([first, *(mark.lineno for mark in node.decorator_list)])
    return first - 1, stop


_DECORATED: Final = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class _GrammarText:
    """A text in a language with a tree-sitter grammar."""

    def __init__(self, root: Node, lists: frozenset[str]) -> None:
        self._root = root
        self._lists = lists

    @classmethod
    def read(cls, language: Language, text: str) -> _GrammarText | None:
        from midstream.code.trees import is_readable, parse

        if not is_readable(text):
            return None
        root = parse(language, text).root_node
        return None if root.has_error else cls(root, language.lists)

    def part(self, lines: Sequence[str], change: Replacement) -> _ParsedPart | None:
        return None

    def begins_at(self, rows: Iterable[int]) -> bool:
        return not [*rows]

    def equals(self, other: _GrammarText, changed: _Changed) -> bool:
        todo = [(self._root, other._root)]
        while todo:
            one, two = todo.pop()
            if one.type != two.type:
                return False
            if changed.spares(_rows_of(one), _rows_of(two)):
                continue
            ones, twos = self._parts(one), self._parts(two)
            if not ones or not twos or _RAW.search(one.type):
                if one.text != two.text:
                    return False
                continue
            # Text between the parts is no node of its own, and would be missed.
            if len(ones) != len(twos) or _loose(one) != _loose(two):
                return False
            todo += zip(ones, twos, strict=True)
        return True

    def _parts(self, node: Node) -> list[Node]:
        """The children of a node, without comments and a trailing comma."""
        parts = [child for child in node.children if not _is_comment(child)]
        at = -1 if parts and parts[-1].type == "," else -2
        if (
            node.type in self._lists
            and len(parts) > 2
            and _says_nothing(node, parts[:at], parts[at])
        ):
            del parts[at]
        return parts

    def comments(self, ranges: Sequence[Range]) -> Iterator[Comment]:
        todo = [self._root]
        while todo:
            node = todo.pop()
            start, stop = _rows_of(node)
            if not _overlaps(ranges, start, stop):
                continue
            if _is_comment(node):
                yield Comment(start, stop, (node.text or b"").decode("utf-8", "replace"))
            else:
                todo += reversed(node.children)


def _is_comment(node: Node) -> bool:
    return node.type.endswith("comment")


def _says_nothing(node: Node, before: Sequence[Node], last: Node) -> bool:
    """Whether the last part of a list is a comma that could as well be missing."""
    if last.type != "," or not before[-1].is_named:  # in JavaScript, ``[a,,]`` has two places
        return False
    if node.type.startswith("tuple_"):  # in Rust, ``(a,)`` is a tuple and ``(a)`` is not
        return any(each.type == "," for each in before)
    is_rest = (before[-1].text or b"").startswith(b"..")
    return not (is_rest and node.type.endswith(("parameters", "pattern")))  # an error there


def _loose(node: Node) -> list[bytes]:
    """The text of a node outside of its parts, without the spaces around it."""
    text, begin, at = node.text or b"", node.start_byte, 0
    found: list[bytes] = []
    for child in node.children:
        found.append(text[at : child.start_byte - begin].strip())
        at = child.end_byte - begin
    return [each for each in (*found, text[at:].strip()) if each]


def _rows_of(node: Node) -> Range:
    return node.start_point.row, node.end_point.row + 1
