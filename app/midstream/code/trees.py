"""Syntax trees of the languages that have a tree-sitter grammar.

A grammar is imported with the first file in its language.  A tree exists for every text: where it
cannot be read, the tree has error nodes, and what stands around them is found all the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query, Tree

    from midstream.code.languages import Language

MAX_SOURCE_LENGTH: Final = 500_000
"""Characters; longer texts have no names and no faults: reading them would hold up all else."""
MAX_LINE_LENGTH: Final = 4_000
"""Characters; the same for a text with a longer line, which is data or was made by a program."""
MAX_DEPTH: Final = 400
"""Open brackets; the same for a text with more of them, as trees take quadratic time in depth."""
_MAX_NAME_LENGTH: Final = 200
"""Characters of a dotted name; a longer one is a damaged part of the tree."""

DefinitionKind = Literal["function", "class", "assignment"]
"""Kinds of definitions."""


@dataclass(frozen=True, slots=True)
class DefinedName:
    """A definition in a file.

    Attributes:
        name: Dotted name from the top of the file, whatever the language puts between the parts.
        kind: What it is.
        start: First line, 0-based; comments and attributes right above it belong to it.
        stop: End line, exclusive.
    """

    name: str
    kind: DefinitionKind
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a file defines.

    Attributes:
        defined: By position; a definition comes before those inside of it.
        statements: Line ranges of what stands at the top.
        local: The lines in which parameters and local variables are bound, by name.
    """

    defined: tuple[DefinedName, ...] = ()
    statements: tuple[tuple[int, int], ...] = ()
    local: dict[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A place that the grammar does not allow.

    Attributes:
        line: 0-based line.
        words: What is wrong there.
        text: The line, without spaces around it.
    """

    line: int
    words: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line + 1}: {self.words}"


def parse(language: Language, text: str) -> Tree:
    """The syntax tree of a text; it has error nodes where the text does not fit the grammar."""
    return _parser(language).parse(text.encode("utf-8", "surrogatepass"))


def names(language: Language, lines: Sequence[str]) -> Names:
    """The definitions of a file, given as lines without terminators."""
    text = "\n".join(lines)
    if not _is_read(text, lines):
        return Names()
    root = parse(language, text).root_node
    found: dict[int, _Defined] = {}
    local: dict[int, tuple[str, int]] = {}
    for _, captures in _cursor(language).matches(root):
        for node in captures.get("local", ()):
            local[node.id] = _text(node), node.start_point.row
        kind = next(filter(captures.__contains__, _KINDS), None)
        if kind is None or "name" not in captures:
            continue
        name_node = captures["name"][0]
        parts = [_text(each) for each in (*captures.get("owner", ()), name_node)]
        each = _Defined(captures[kind][0], kind, _dotted(".".join(parts)))
        # One name may be matched as several things; the first in the table says most.
        known = found.get(name_node.id)
        if each.name and (known is None or _KINDS.index(kind) < _KINDS.index(known.kind)):
            found[name_node.id] = each
    ordered = sorted(found.values(), key=lambda d: (d.node.start_byte, -d.node.end_byte))
    statements = tuple(_span(node) for node in root.named_children)
    bound: dict[str, tuple[int, ...]] = {}
    for node_id, (name, row) in local.items():
        # A definition with a body is no local variable, though a declaration binds it.
        if node_id not in found or found[node_id].kind == "assignment":
            bound[name] = (*bound.get(name, ()), row)
    return Names(tuple(_nested(ordered, language)), statements, bound)


Role = Literal["plain", "member", "own", "key", "shorthand"]
"""How a name is used: by itself; looked up in an object or a type (behind a dot, an arrow or
colons); the same in the object or class around it (``this``); as the key or the definition of a
member; as a variable and a key at once (JavaScript's ``{ total }``)."""


class Occurrence(NamedTuple):
    """An occurrence of a name in code: 0-based line, 0-based column in characters, and kind."""

    line: int
    column: int
    role: Role = "plain"

    @property
    def member(self) -> bool:
        """Whether it belongs to an object or a type."""
        return self.role in ("member", "own", "key")


def occurrences(language: Language, lines: Sequence[str], name: str) -> Iterator[Occurrence]:
    """Occurrences of a name in code, by position; not in comments and strings."""
    text = "\n".join(lines)
    if not _is_read(text, lines) or not name:
        return
    data = text.encode("utf-8", "surrogatepass")
    found = list(re.finditer(rb"(?<!\w)" + re.escape(name.encode()) + rb"(?!\w)", data))
    root = _parser(language).parse(data).root_node if found else None
    for match in found:
        node = root and root.named_descendant_for_byte_range(match.start(), match.end())
        if node is None or not _is_name(node.type) or _NOT_WORD.sub("", _text(node)) != name:
            continue
        start = data.rfind(b"\n", 0, match.start()) + 1
        before = data[start : match.start()]
        joint = _JOINT.search(before)
        column = len(before.decode("utf-8", "surrogatepass"))
        yield Occurrence(data.count(b"\n", 0, start), column, _role(node.type, joint))


def _role(kind: str, joint: re.Match[bytes] | None) -> Role:
    if joint is not None:
        return "own" if joint[1] in _OWN else "member"
    if kind.startswith("shorthand_"):
        return "shorthand"
    return "key" if kind in _MEMBER_KINDS else "plain"


def _is_name(kind: str) -> bool:
    return kind.endswith("identifier") or kind.startswith("shorthand_") or kind in _NAME_KINDS


_NAME_KINDS: Final = frozenset({"constant", "variable_name", "word", "identifier"})
_MEMBER_KINDS: Final = frozenset({
    "field_identifier", "private_property_identifier", "property_identifier",
})  # fmt: skip
_NOT_WORD: Final = re.compile(r"[^\w]")
_JOINT: Final = re.compile(rb"(?:(\w+)\s*)?(?:\.|->|::|&\.|\?\.|#)\s*$")
_OWN: Final = frozenset({b"this", b"self", b"Self", b"super"})


def faults(language: Language, text: str) -> list[Fault]:
    """Places where a text does not fit the grammar, from the top."""
    lines = text.split("\n")
    if not _is_read(text, lines):
        return []
    root = parse(language, text).root_node
    if not root.has_error:
        return []
    found: list[Fault] = []
    for node in _wrong(root):
        row = min(node.start_point.row, len(lines) - 1)
        found.append(Fault(row, _words(node), lines[row].strip()))
        if len(found) >= 100:
            break
    return sorted(found, key=lambda fault: fault.line)


def new_fault(language: Language, before: str, after: str) -> Fault | None:
    """The first place in a new version of a text that is wrong and was not before.

    A grammar may not know all of a language.  So what was wrong before may be so in other words
    after a change: only where there is more of it, something is new.  Of a file with macros that
    the grammar cannot read, nothing can be said: half of the headers of a C library are such.
    """
    if not (now := faults(language, after)):
        return None
    then = faults(language, before)
    if len(now) <= len(then) or (then and language.macros):
        return None
    known = Counter((fault.words, fault.text) for fault in then)
    for fault in now:
        if not known[fault.words, fault.text]:
            return fault
        known[fault.words, fault.text] -= 1
    return None


_Kind = Literal["function", "class", "scope", "assignment"]
_KINDS: Final[tuple[_Kind, ...]] = ("function", "class", "scope", "assignment")


@dataclass(frozen=True, slots=True)
class _Defined:
    node: Node
    kind: _Kind
    name: str


def _nested(ordered: Sequence[_Defined], language: Language) -> Iterator[DefinedName]:
    """The definitions with the names of their scopes."""
    around: list[tuple[_Defined, str]] = []
    ids = {each.node.id for each in ordered}
    for each in ordered:
        while around and around[-1][0].node.end_byte <= each.node.start_byte:
            around.pop()
        outer = around[-1] if around else None
        name = f"{outer[1]}.{each.name}" if outer is not None else each.name
        inside_function = any(other.kind == "function" for other, _ in around)
        if each.kind == "assignment":
            if inside_function:
                continue
        else:
            around.append((each, name))
        if each.kind == "scope":
            continue
        # `typedef struct Point { … } Point;` defines one name.
        if outer is not None and outer[0].kind == each.kind == "class":
            same_line = outer[0].node.start_point.row == each.node.start_point.row
            if same_line and outer[0].name == each.name:
                around.pop()
                continue
        start, stop = _with_surroundings(each.node, language, ids)
        yield DefinedName(name, each.kind, start, stop)


def _with_surroundings(node: Node, language: Language, ids: set[int]) -> tuple[int, int]:
    """The lines of a definition with what belongs to it around and above.

    Args:
        node: The definition.
        language: Its language.
        ids: The ids of all definitions: what several share belongs to none of them.
    """
    while (parent := node.parent) is not None and parent.type in language.wrappers:
        if sum(child.id in ids for child in parent.named_children) > 1:
            break
        node = parent
    start, stop = _span(node)
    above = node.prev_named_sibling
    while above is not None and above.type in language.leading:
        first, end = _span(above)
        before = above.prev_sibling
        shares_line = before is not None and _span(before)[1] > first
        if end != start or shares_line or _text(above).startswith("#!"):
            break
        start, above = first, above.prev_named_sibling
    return start, stop


def _span(node: Node) -> tuple[int, int]:
    """The half-open range of lines of a node; some end behind the line break."""
    start, end = node.start_point, node.end_point
    stop = end.row if end.column == 0 and end.row > start.row else end.row + 1
    return start.row, stop


def _dotted(name: str) -> str:
    """A name with dots between its parts; ``""`` for what is none."""
    plain = re.sub(r"<.*>", "", name, flags=re.DOTALL)
    dotted = ".".join(part.strip() for part in re.split(r"::|\.|#", plain) if part.strip())
    dotted = dotted.rstrip("?!")  # Ruby method names may end in these; instructions leave them out.
    return dotted if len(dotted) <= _MAX_NAME_LENGTH and "\n" not in dotted else ""


def is_readable(text: str) -> bool:
    """Whether a text is worth the time that reading it takes."""
    return _is_read(text, text.split("\n"))


def _is_read(text: str, lines: Sequence[str]) -> bool:
    if len(text) > MAX_SOURCE_LENGTH or any(len(line) > MAX_LINE_LENGTH for line in lines):
        return False
    depth = 0
    for bracket in _BRACKET.findall(text):
        depth = depth + 1 if bracket in "([{" else max(0, depth - 1)
        if depth > MAX_DEPTH:
            return False
    return True


_BRACKET: Final = re.compile(r"[()\[\]{}]")


def _wrong(root: Node) -> Iterator[Node]:
    """The innermost error nodes and those of missing tokens."""
    todo = [root]
    while todo:
        node = todo.pop()
        inner = [child for child in node.children if child.has_error]
        if node.is_missing or (node.is_error and not any(map(_is_wrong, inner))):
            yield node
        todo.extend(reversed(inner))


def _is_wrong(node: Node) -> bool:
    return node.is_error or node.is_missing


def _words(node: Node) -> str:
    if node.is_missing:
        return f"`{node.type}` is missing"
    first = re.match(rb"\w+|\S", (node.text or b"").lstrip())
    near = f" near `{first[0].decode('utf-8', 'replace')}`" if first else ""
    return f"invalid syntax{near}"


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


@cache
def _grammar(language: Language) -> Any:
    module = cast("Any", import_module(language.module))
    return cast("Any", import_module("tree_sitter")).Language(getattr(module, language.grammar)())


def _parser(language: Language) -> Parser:
    from tree_sitter import Parser

    return Parser(_grammar(language))  # Threads must not share one.


@cache
def _query(language: Language) -> Query:
    from tree_sitter import Query

    return Query(_grammar(language), language.query)


def _cursor(language: Language) -> Any:
    from tree_sitter import QueryCursor

    return QueryCursor(_query(language))
