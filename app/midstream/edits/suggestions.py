"""Small edits that would improve a Python file, as instructions that a small model can follow.

What is found is certain from the syntax tree, short, and local to one function: a person who has
never used the program can judge it at a glance.  The wordings are among those that were measured
for the shipped model (``MODEL_CARD.md`` in its folder).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from midstream.code.syntax import NOT_PYTHON, parse_python

MAX_FUNCTION_LINES: Final = 25
"""Lines of a function that the shipped model does well."""
MAX_FILE_LINES: Final = 1_500
"""Lines of a file that is looked at; parsing more would be felt."""
FULL_NAMES: Final = {
    "arr": "array", "cfg": "config", "cnt": "count", "idx": "index", "msg": "message",
    "num": "number", "params": "parameters", "res": "result", "resp": "response", "ret": "result",
    "retval": "result", "rv": "result", "tmp": "temporary", "val": "value",
}  # fmt: skip
"""Short names of local variables, and what they stand for."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Suggestion(NamedTuple):
    """An instruction to try: its title, its text, and the file that it is about."""

    title: str
    instruction: str
    path: str


def suggestions(path: str, text: str) -> Iterator[Suggestion]:
    """Instructions for a file, the most useful kind first and at most one of each kind.

    Args:
        path: Path of the file.
        text: What it holds; nothing is found in what is not Python or very long.
    """
    if text.count("\n") > MAX_FILE_LINES:
        return
    try:
        tree = parse_python(text)
    except NOT_PYTHON:
        return
    functions = list(_functions(tree))
    names = [name for name, _ in functions]
    # A name that is there twice would have to be asked about.
    usable = [(name, function) for name, function in functions if names.count(name) == 1]
    for title, find in _KINDS:
        for name, function in usable:
            if (instruction := find(function)) is not None:
                yield Suggestion(title, f"{instruction} in {name}", path)
                break


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Functions and methods of usual length, by their own names."""
    for node in ast.walk(tree):
        if not isinstance(node, Function) or node.name.startswith("__"):
            continue
        if (node.end_lineno or node.lineno) - node.lineno < MAX_FUNCTION_LINES:
            yield node.name, node


def _own(function: Function) -> Iterator[ast.AST]:
    """All nodes of a function."""
    for statement in function.body:
        yield from ast.walk(statement)


def _mutable_default(function: Function) -> str | None:
    arguments = function.args
    ordered = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(ordered[len(ordered) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    for argument, default in pairs:
        if isinstance(default, ast.List | ast.Dict | ast.Set):
            return f"fix the mutable default of {argument.arg}"
    return None


def _none(function: Function) -> str | None:
    for node in _own(function):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            none = node.comparators[0]
            if isinstance(none, ast.Constant) and none.value is None:
                if isinstance(node.ops[0], ast.Eq):
                    return "use is None instead of == None"
                if isinstance(node.ops[0], ast.NotEq):
                    return "use is not None instead of != None"
    return None


def _bare_except(function: Function) -> str | None:
    bare = (isinstance(node, ast.ExceptHandler) and node.type is None for node in _own(function))
    return "the bare except should catch Exception" if any(bare) else None


def _else_after_return(function: Function) -> str | None:
    last = function.body[-1]
    if not isinstance(last, ast.If) or not last.orelse or isinstance(last.orelse[0], ast.If):
        return None
    return "remove the else after return" if isinstance(last.body[-1], ast.Return) else None


def _full_name(function: Function) -> str | None:
    known = {node.id for node in _own(function) if isinstance(node, ast.Name)}
    known |= {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    if any(isinstance(node, ast.Global | ast.Nonlocal | Function) for node in _own(function)):
        return None
    for node in _own(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            full = FULL_NAMES.get(node.id)
            if full is not None and full not in known:
                return f"rename `{node.id}` to `{full}`"
    return None


def _constant(function: Function) -> str | None:
    for node in _own(function):
        if isinstance(node, ast.keyword) and node.arg and isinstance(node.value, ast.Constant):
            value, name = node.value.value, node.arg
            # As it is written: 0o700 is not 448.
            plain = (node.value.end_col_offset or 0) - node.value.col_offset == len(str(value))
            if type(value) is int and value > 2 and plain and len(name) > 3 and name != "default":
                return f"extract `{value}` to a constant `{name.upper()}`"
    return None


def _return_type(function: Function) -> str | None:
    """Functions that return nothing but truth values, among others that have hints."""
    hinted = any(argument.annotation is not None for argument in function.args.args)
    if function.returns is not None or not hinted or isinstance(function, ast.AsyncFunctionDef):
        return None
    returned = [node.value for node in _own(function) if isinstance(node, ast.Return)]
    if any(isinstance(node, ast.Yield | ast.YieldFrom | Function) for node in _own(function)):
        return None
    if not returned or not isinstance(function.body[-1], ast.Return):
        return None
    truths = all(
        isinstance(value, ast.Constant) and isinstance(value.value, bool) for value in returned
    )
    return "add return type bool" if truths else None


_KINDS: Final[Sequence[tuple[str, Callable[[Function], str | None]]]] = (
    ("Shared default", _mutable_default),
    ("Compare with is", _none),
    ("Name the exception", _bare_except),
    ("Un-nest", _else_after_return),
    ("Say it in full", _full_name),
    ("Name a number", _constant),
    ("Add a hint", _return_type),
)
