"""Names in a Python rewrite that nothing defines, and names that were changed unasked.

These findings are errors, or at least worth a look, however confident the model was. They need the
text of one file only, before anything is decided; ``codebase.references`` searches the others.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import Final

from midstream.code.syntax import NOT_PYTHON, parse_python

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_NAME: Final = re.compile(r"[^\W\d]\w*")
_BUILTINS: Final = frozenset((*dir(builtins), "__file__", "__path__", "__class__", "WindowsError"))
_RENAMING: Final = re.compile(
    r"\b(?:renam|nam(?:e|ing)|call|(?:mis)?spel|typo|shadow|snake|camel|short|long|better|unus"
    r"|underscore|refactor|rewrit|clean|simplif|tidy)",
    re.IGNORECASE,
)
"""Words of a request that may be about names, or about everything."""
_NAMED_BEFORE: Final = re.compile(
    r"(?:\b(?:to|into|as|called|named|names?|parameter|param|argument|arg|variable|attribute"
    r"|constant|with|use|raise|return|returns|log|import|method|function|class|field|flag|keyword"
    r"|catch|except|default|decorator|type|instead of|than|and|or|not|is|by|via|from|call)"
    r"|[=<>+\-*/@.(,\[:`])\s*$",
    re.IGNORECASE,
)


def undefined(before: ast.Module, after: ast.Module, known: str) -> list[str]:
    """Names that a rewrite reads and nothing in the file binds, decorators first.

    Args:
        before: The lines as they were; what they read already is no news.
        after: The lines as rewritten.
        known: The whole file as it was.
    """
    try:
        file: ast.AST = parse_python(known)
    except NOT_PYTHON:
        had = set(_NAME.findall(known))
    else:
        if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(file)):
            return []
        had = bound(file)
    had |= bound(before) | bound(after) | {node.id for node in _read(before)} | _BUILTINS
    found = [*decorators(after), *(node.id for node in _read(after))]
    return [name for name in dict.fromkeys(found) if name not in had]


def renamed_unasked(instruction: str, before: ast.Module, after: ast.Module) -> str:
    """A parameter that has another name now, though the request names neither.

    Args:
        instruction: The instruction, in words.
        before: The lines as they were.
        after: The lines as rewritten.

    Returns:
        The name that it had, ``""`` if there is none.
    """
    if _RENAMING.search(instruction):
        return ""
    said = frozenset(_NAME.findall(instruction))
    functions = {node.name: node for node in ast.walk(before) if isinstance(node, _FUNCTION)}
    for node in ast.walk(after):
        if not isinstance(node, _FUNCTION) or node.name not in functions:
            continue
        were, are = _parameters(functions[node.name]), _parameters(node)
        for old, new in zip(were, are, strict=False):
            if old not in are and new not in were and not {old, new} & said:
                return old
    return ""


def _parameters(function: _Function) -> list[str]:
    return [node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)]


def only_words(instruction: str, before: ast.Module, after: ast.Module, known: str) -> list[str]:
    """Attributes of ``self`` that a rewrite reads, words of the request and nothing in the file.

    Those of other objects are often right, since their class is elsewhere.

    Args:
        instruction: The instruction, in words.
        before: The lines as they were.
        after: The lines as rewritten.
        known: The whole file as it was.
    """
    had = {*_NAME.findall(known), *bound(after)}
    had |= {node.attr for node in _own_attributes(before)}
    read: list[str] = []
    for node in _own_attributes(after):
        if isinstance(node.ctx, ast.Load):
            read.append(node.attr)
        else:
            had.add(node.attr)
    return [n for n in dict.fromkeys(read) if n not in had and only_a_word(n, instruction)]


def bound(tree: ast.AST) -> set[str]:
    """The names that code binds in any way."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (*_FUNCTION, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
    return found


def _read(tree: ast.AST) -> Iterator[ast.Name]:
    return (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )


def _own_attributes(tree: ast.AST) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        if node.value.id in ("self", "cls"):
            yield node


def decorators(tree: ast.AST) -> Iterator[str]:
    """Yield the names that decorators use."""
    for node in ast.walk(tree):
        if isinstance(node, (*_FUNCTION, ast.ClassDef)):
            for decorator in node.decorator_list:
                yield from (name.id for name in _read(decorator))


def only_a_word(name: str, instruction: str) -> bool:
    """Whether a name is in a request only as a word of a sentence or a part of a literal."""
    if not (name.isalpha() and name.islower()):
        return False
    places = list(re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", instruction))
    if not places:
        return False
    for place in places:
        start, stop = place.span()
        literal = re.search(r"['\"]$", instruction[:start]) is not None
        whole = instruction[stop : stop + 1] in ("'", '"')
        if literal and not whole:  # `utf` of "utf-8"
            continue
        if literal or _NAMED_BEFORE.search(instruction[:start]):
            return False
        if instruction[stop : stop + 1] in tuple("=.([:`"):
            return False
    return True
