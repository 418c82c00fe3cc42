"""Edits of what happens when: calls and lines that go, exceptions for return values, skipped
iterations, opposite conditions.
"""

from __future__ import annotations

import ast
import re

from models.training.code import Code, Edit, Function
from models.training.tasks_names import ERRORS
from models.training.tasks_shared import made_up_condition
from models.training.tasks_text import negated


def _without(code: Code, node: ast.stmt) -> str:
    begin, end = code.line_start(node.lineno), code.line_start((node.end_lineno or 0) + 1)
    return code.splice([(begin, end, "")])


def delete_call(code: Code) -> Edit | None:
    """A call that stands for itself goes; only the name of the function is said."""
    found: list[tuple[ast.Expr, str]] = []
    for node in code.all(ast.Expr):
        if not isinstance(node.value, ast.Call) or not code.own_line(node):
            continue
        func = node.value.func
        name = func.attr if isinstance(func, ast.Attribute) else code.of(func)
        if name.isidentifier() and len(re.findall(rf"\b{name}\(", code.text)) == 1:
            found.append((node, name))
    if not found:
        return None
    node, name = code.rng.choice(found)
    return Edit("delete_call", {"call": name}, _without(code, node))


def delete_line(code: Code) -> Edit | None:
    """The first or the last line of the body goes."""
    body = code.body()
    if len(body) < 2 or not code.body_on_own_lines():
        return None
    which = code.rng.choice(("first", "last"))
    node = body[0 if which == "first" else -1]
    if node.lineno != node.end_lineno or not code.own_line(node):
        return None
    return Edit("delete_line", {"which": which}, _without(code, node))


def return_to_raise(code: Code) -> Edit | None:
    """A return of a constant becomes an exception."""
    nodes = [
        n
        for n in code.all(ast.Return)
        if isinstance(n.value, ast.Constant | ast.List | ast.Dict)
        and len(code.of(n)) <= 30
        and code.text.count(code.of(n)) == 1
        and n.lineno == n.end_lineno
    ]
    if not nodes:
        return None
    node = code.rng.choice(nodes)
    assert node.value is not None
    error = code.rng.choice(ERRORS)
    if code.rng.random() < 0.3:
        error += f'("{code.rng.choice(code.names).replace("_", " ")}")'
    target = code.splice([(code.start(node), code.end(node), f"raise {error}")])
    return Edit("return_to_raise", {"error!": error, "old!": code.of(node.value)}, target)


def guard_continue(code: Code) -> Edit | None:
    """A loop skips some of its items."""
    loops = code.all(ast.For)
    if len(loops) != 1 or not isinstance(loops[0].target, ast.Name):
        return None
    first = loops[0].body[0]
    if not code.own_line(first) or isinstance(first, Function | ast.ClassDef):
        return None
    name = loops[0].target.id
    test, words = made_up_condition(code, name)
    pad = code.indent_of(first)
    at = code.line_start(first.lineno)
    target = code.splice([(at, at, f"{pad}if {test}:\n{pad}    continue\n")])
    return Edit("guard_continue", {"cond": words, "x": name}, target)


def negate_condition(code: Code) -> Edit | None:
    """The condition of the only `if` becomes its opposite."""
    nodes = code.all(ast.If)
    if len(nodes) != 1 or nodes[0].test.lineno != nodes[0].test.end_lineno:
        return None
    test = nodes[0].test
    other = negated(code, test)
    if other is None or code.text[code.end(test)] != ":":
        return None
    return Edit("negate_condition", {}, code.splice([(code.start(test), code.end(test), other)]))
