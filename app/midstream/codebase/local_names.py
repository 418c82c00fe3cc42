"""Renaming a parameter or a local variable, where its uses are known exactly.

What is not certain is not renamed here: a name that nested functions bind again, that comments or
strings mention, or that is declared global.  Pure functions.
"""

from __future__ import annotations

import ast
import re
import symtable
import textwrap
from collections.abc import Iterator, Sequence

from midstream.code.languages import grammar_of
from midstream.code.outline import outline
from midstream.code.syntax import NOT_PYTHON, is_python, newly_broken, parse_python
from midstream.codebase.similar_edits import names_at
from midstream.edits.documents import join_lines

Spot = tuple[int, int]
"""0-based line and column in characters."""

_REFLECTION = frozenset({"eval", "exec", "globals", "locals", "vars"})
"""What may look a local variable up by its name."""


def rename_local(
    lines: Sequence[str], start: int, stop: int, path: str, old: str, new: str
) -> list[str] | None:
    """Some lines of a file with another name for a parameter or local variable.

    Args:
        lines: The file, without line ends.
        start: First line of those to change, 0-based.
        stop: End line, exclusive.
        path: The file's name, which tells the language.
        old: The name.
        new: The other one.

    Returns:
        The lines from ``start`` to ``stop``; ``None`` where it is not certain what is to be renamed
        or that nothing else has the new name.
    """
    region = lines[start:stop]
    if not new.isidentifier() or _word(new).search("\n".join(region)):
        return None
    if is_python(path):
        found = _uses_in_python(region, old)
    elif grammar_of(path) is not None:
        found = _uses_by_tree(lines, start, stop, path, old)
    else:
        return None
    if not found:
        return None
    uses, others = found
    words = {(i, m.start()) for i, line in enumerate(region) for m in _word(old).finditer(line)}
    if len(uses) + others != len(words) or len(words.intersection(uses)) != len(uses):
        return None  # Comments or strings mention it, or Python misplaces what is in an f-string.
    after = list(region)
    for line, column in sorted(uses, reverse=True):
        text = after[line]
        after[line] = text[:column] + new + text[column + len(old) :]
    whole = [*lines[:start], *after, *lines[stop:]]
    return None if newly_broken(path, join_lines(lines), join_lines(whole)) else after


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def _uses_in_python(region: Sequence[str], old: str) -> tuple[list[Spot], int] | None:
    """Where a local name of the one function in ``region`` stands, and other names like it."""
    text = textwrap.dedent(join_lines(region))
    try:
        tree = parse_python(text)
        table = symtable.symtable(text, "region", "exec")
    except NOT_PYTHON:
        return None
    functions = table.get_children()
    if len(tree.body) != 1 or len(functions) != 1 or functions[0].get_type() != "function":
        return None
    (function,) = functions
    if old not in function.get_identifiers() or _REFLECTION & set(_names(table)):
        return None
    symbol = function.lookup(old)
    bound = symbol.is_local() and not symbol.is_global() and not symbol.is_imported()
    if (
        not bound
        or any(_binds(inner, old) for inner in _inside(function))
        or old in table.get_identifiers()
    ):
        return None
    rows = text.split("\n")
    indent = [len(line) - len(row) for line, row in zip(region, rows, strict=False)]
    uses: list[Spot] = []
    others = 0
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.arg)):
            named = node.id if isinstance(node, ast.Name) else node.arg
            if named == old:
                before = rows[node.lineno - 1].encode()[: node.col_offset].decode(errors="replace")
                uses.append((node.lineno - 1, len(before) + indent[node.lineno - 1]))
        elif isinstance(node, ast.Attribute):
            others += node.attr == old
        elif isinstance(node, ast.keyword):
            others += node.arg == old
    return uses, others


def _binds(table: symtable.SymbolTable, name: str) -> bool:
    """Whether a scope has a name of its own."""
    return name in table.get_identifiers() and not table.lookup(name).is_free()


def _inside(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _inside(child)


def _names(table: symtable.SymbolTable) -> Iterator[str]:
    for inner in (table, *_inside(table)):
        yield from inner.get_identifiers()


def _uses_by_tree(
    lines: Sequence[str], start: int, stop: int, path: str, old: str
) -> tuple[list[Spot], int] | None:
    outlined = outline(tuple(lines), path)
    rows = {row for row in (outlined.local or {}).get(old, ()) if start <= row < stop}
    binding = [d for d in outlined.binding(old) if d.start < stop and start < d.stop]
    if len(rows) != 1 or len(binding) != 1:
        return None
    (row,), (function,) = rows, binding
    inside = [spot for spot in names_at(lines, old, path) if function.contains(spot.line)]
    if sum(s.line == row for s in inside) > 1 and not lines[row].lstrip().startswith("for"):
        return None  # What Go's `url := url.Parse(link)` reads is something else.
    uses = [spot for spot in inside if not spot.member]
    if not all(spot.role == "plain" and start <= spot.line < stop for spot in uses):
        return None
    others = sum(spot.member and start <= spot.line < stop for spot in inside)
    return [(spot.line - start, spot.column) for spot in uses], others


def calls_by_keyword(
    lines: Sequence[str], start: int, stop: int, path: str, name: str
) -> list[int]:
    """The lines outside of a function that pass its parameter ``name`` by that name.

    Arguments are those of ``rename_local``.  Only Python is read.
    """
    if not is_python(path):
        return []
    try:
        tree = parse_python(join_lines(lines))
    except NOT_PYTHON:
        return []
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and start < node.lineno <= stop
        and any(each.arg == name for each in ast.walk(node.args) if isinstance(each, ast.arg))
    ]
    if not functions:
        return []
    called = functions[0].name
    return sorted({
        node.lineno - 1
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and called in (getattr(node.func, "id", None), getattr(node.func, "attr", None))
        and any(each.arg == name for each in node.keywords)
        and not start < node.lineno <= stop
    })  # fmt: skip
