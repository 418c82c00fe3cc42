"""Edits of expressions: literals, strings, conditions, arguments."""

from __future__ import annotations

import ast
import itertools
import re

from models.training.code import Code, Edit, Function
from models.training.tasks_names import DEFAULTS
from models.training.tasks_shared import (
    WORDS,
    assignments,
    indented,
)


def _literals(code: Code) -> list[ast.Constant]:
    return [
        n
        for n in code.all(ast.Constant)
        if isinstance(n.value, int | float | str)
        and not isinstance(n.value, bool)
        and id(n) not in code.inside_format
        and n.lineno == n.end_lineno
        and code.of(n)[:1] in "\"'0123456789"
        and code.of(n)[:3] not in ('"""', "'''")
    ]


def _new_literal(code: Code, old: str) -> str:
    rng = code.rng
    if old[0] in "\"'":
        word = rng.choice(code.names)
        if rng.random() < 0.3:
            word = " ".join(rng.choice(WORDS).split()[:3]).lower()
        return old[0] + word + old[0]
    return str(
        rng.choice(
            [
                rng.randint(0, 9),
                rng.randint(10, 99),
                rng.randint(100, 9999),
                round(rng.random() * 10, 1),
                60,
                1024,
            ]
        )
    )


def extract_constant(code: Code) -> Edit | None:
    nodes = [
        n
        for n in _literals(code)
        if len(code.of(n)) < 40 and code.of(n) not in ("0", "1", '""', "''")
    ]
    if not nodes:
        return None
    literal = code.of(code.rng.choice(nodes))
    same = [n for n in nodes if code.of(n) == literal]
    if len(re.findall(re.escape(literal), code.text)) != len(same):
        return None
    name = code.new_name().upper().strip("_")
    if len(name) < 2 or not name.isidentifier() or name in code.atoms:
        return None
    body = code.splice([(code.start(n), code.end(n), name) for n in same])
    return Edit(
        "extract_constant", {"literal!": literal, "name": name}, f"{name} = {literal}\n{body}"
    )


def extract_variable(code: Code) -> Edit | None:
    rng = code.rng
    simple = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr, ast.Raise)
    choices: list[tuple[ast.stmt, ast.expr]] = []
    for stmt in code.nodes:
        if (
            not isinstance(stmt, simple)
            or not code.own_line(stmt)
            or getattr(stmt, "value", None) is None
        ):
            continue
        for node in ast.walk(stmt):
            if isinstance(
                node,
                ast.Lambda
                | ast.ListComp
                | ast.GeneratorExp
                | ast.DictComp
                | ast.SetComp
                | ast.JoinedStr
                | ast.Await,
            ):
                break
            if (
                isinstance(node, ast.Call | ast.BinOp | ast.Subscript | ast.Attribute | ast.Compare)
                and node is not getattr(stmt, "value", None)
                and node.lineno == node.end_lineno
                and isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load)
                and 5 <= len(code.of(node)) <= 40
                and "`" not in code.of(node)
            ):
                choices.append((stmt, node))
    if not choices:
        return None
    stmt, node = rng.choice(choices)
    text = code.of(node)
    if code.text.count(text) != 1:
        return None
    for outer in ast.walk(stmt):
        if isinstance(outer, ast.Call) and outer.func is node:
            return None
    name = code.new_name()
    at = code.line_start(stmt.lineno)
    changes = [
        (at, at, f"{code.indent_of(stmt)}{name} = {text}\n"),
        (code.start(node), code.end(node), name),
    ]
    return Edit("extract_variable", {"expr!": text, "name": name}, code.splice(changes))


_FLIP = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
}

_OPS: dict[type, str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.GtE: ">=",
    ast.Gt: ">",
    ast.LtE: "<=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


def _operator_span(code: Code, node: ast.Compare) -> tuple[int, int, str] | None:
    old = _OPS[type(node.ops[0])]
    between = code.text[code.end(node.left) : code.start(node.comparators[0])]
    if between.strip() != old:
        return None
    at = code.end(node.left) + between.index(old)
    return at, at + len(old), old


def negated(code: Code, test: ast.expr) -> str | None:
    """Return the source of a condition's negation, by the simplest rule that fits."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return code.of(test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        span = _operator_span(code, test)
        if span is None:
            return None
        return (
            code.text[code.start(test) : span[0]]
            + _FLIP[span[2]]
            + code.text[span[1] : code.end(test)]
        )
    if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        return "not " + code.of(test)
    return f"not ({code.of(test)})" if isinstance(test, ast.BoolOp) else None


def _if_else(code: Code) -> list[ast.If]:
    found: list[ast.If] = []
    for node in code.all(ast.If):
        if (
            node.orelse
            and node.test.lineno == node.test.end_lineno
            and code.text.startswith("if ", code.start(node))
        ):
            between = code.text[code.end(node.body[-1]) : code.start(node.orelse[0])]
            if re.fullmatch(r"\n *else:\n *", between) and code.own_line(node.body[0]):
                found.append(node)
    return found


def _remove_else_backwards(code: Code) -> Edit | None:
    """Nest what follows an early exit in an else; the snippet is the answer."""
    ends = (ast.Return, ast.Raise)
    body = code.body()
    for node, after in itertools.pairwise(body):
        if not isinstance(node, ast.If) or node.orelse or not isinstance(node.body[-1], ends):
            continue
        begin, end = code.text.index("\n", code.end(node.body[-1])) + 1, code.end(body[-1])
        if (
            not code.own_line(after)
            or code.text[code.end(node.body[-1]) : begin].strip()
            or not code.own_line(node.body[0])
        ):
            continue
        begin = code.line_start(after.lineno)
        if code.text[code.end(node.body[-1]) : begin].strip() or isinstance(
            after, Function | ast.ClassDef
        ):
            continue
        block = indented(code, begin, end)
        if block is None or block.count("\n") > 10:
            continue
        start = code.text.index("\n", code.end(node.body[-1])) + 1
        target = code.splice([(start, begin, "")])
        source = code.splice([(start, end, f"{code.indent_of(node)}else:\n{block}")])
        return Edit("remove_else", {}, target, source)
    return None


def remove_else(code: Code) -> Edit | None:
    made = _remove_else_backwards(code)
    if made is not None:
        return made
    ends = (ast.Return, ast.Raise, ast.Continue, ast.Break)
    nodes = [n for n in _if_else(code) if isinstance(n.body[-1], ends)]
    if len(nodes) != 1:
        return None
    node = nodes[0]
    begin = code.text.index("\n", code.end(node.body[-1])) + 1
    start = code.line_start(node.orelse[0].lineno)
    end = code.end(node.orelse[-1])
    block = code.text[start:end]
    if '"""' in block or "'''" in block:
        return None
    rows = [row[4:] if row.startswith("    ") else row for row in block.split("\n")]
    return Edit("remove_else", {}, code.splice([(begin, end, "\n".join(rows))]))


def change_comparison(code: Code) -> Edit | None:
    symbols = ["<", "<=", ">", ">=", "==", "!="]
    spans = [
        s
        for n in code.all(ast.Compare)
        if len(n.ops) == 1 and (s := _operator_span(code, n)) and s[2] in symbols
    ]
    if not spans:
        return None
    old = code.rng.choice(spans)[2]
    same = [s for s in spans if s[2] == old]
    if len(re.findall(rf"(?<![<>=!+\-*/%&|^]){old}(?![<>=])", code.text)) != len(same):
        return None
    new = code.rng.choice([s for s in symbols if s != old])
    return Edit(
        "change_comparison",
        {"old!": old, "new!": new},
        code.splice([(b, e, new) for b, e, _ in same]),
    )


def replace_literal(code: Code) -> Edit | None:
    nodes = [n for n in _literals(code) if len(code.of(n)) < 50]
    if not nodes:
        return None
    old = code.of(code.rng.choice(nodes))
    new = _new_literal(code, old)
    same = [n for n in nodes if code.of(n) == old]
    if (
        old == new
        or len(re.findall(rf"(?<!\w){re.escape(old)}(?!\w)", code.text)) != len(same)
        or (len(old) < 3 and old[0] in "\"'")
    ):
        return None
    return Edit(
        "replace_literal",
        {"old!": old, "new!": new},
        code.splice([(code.start(n), code.end(n), new) for n in same]),
    )


def set_variable(code: Code) -> Edit | None:
    nodes = assignments(code)
    names = [n.targets[0].id for n in nodes if isinstance(n.targets[0], ast.Name)]
    nodes = [
        n
        for n in nodes
        if isinstance(n.targets[0], ast.Name)
        and names.count(n.targets[0].id) == 1
        and len(code.of(n.value)) < 40
    ]
    if not nodes:
        return None
    node = code.rng.choice(nodes)
    value = code.rng.choice(DEFAULTS)
    if code.of(node.value) == value:
        return None
    target = code.splice([(code.start(node.value), code.end(node.value), value)])
    return Edit("set_variable", {"name": code.of(node.targets[0]), "value!": value}, target)


def change_return(code: Code) -> Edit | None:
    nodes = [n for n in code.all(ast.Return) if n.value is not None]
    if len(nodes) != 1 or nodes[0].value is None or nodes[0].lineno != nodes[0].end_lineno:
        return None
    node = nodes[0].value
    rng = code.rng
    value = rng.choice([*DEFAULTS, rng.choice(code.names), "self", "not " + rng.choice(code.names)])
    locals_ = [n.id for n in code.all(ast.Name) if isinstance(n.ctx, ast.Store)] + [
        a.arg for a in code.parameters()
    ]
    if locals_ and rng.random() < 0.4:
        value = rng.choice(locals_)
    if code.of(node) == value or len(code.of(node)) > 40:
        return None
    target = code.splice([(code.start(node), code.end(node), value)])
    return Edit("change_return", {"value!": value, "old!": code.of(node)}, target)


def add_argument(code: Code) -> Edit | None:
    calls: dict[str, list[ast.Call]] = {}
    for node in code.all(ast.Call):
        if isinstance(node.func, ast.Name | ast.Attribute) and id(node) not in code.inside_format:
            calls.setdefault(code.of(node.func), []).append(node)
    single = [
        name
        for name, nodes in calls.items()
        if len(nodes) == 1 and "(" not in name and "\n" not in name and len(name) < 40
    ]
    if not single:
        return None
    name = code.rng.choice(single)
    node = calls[name][0]
    close = code.end(node) - 1
    inside = code.text[code.end(node.func) + 1 : close]
    if (
        node.lineno != node.end_lineno
        or inside.rstrip().endswith(",")
        or isinstance(next(iter(node.args), None), ast.GeneratorExp)
    ):
        return None
    key, value = code.rng.choice(code.names), code.rng.choice(DEFAULTS)
    if code.rng.random() < 0.3:
        value = key
    argument = f"{key}={value}"
    short = name if code.rng.random() < 0.5 else name.split(".")[-1]
    if len(re.findall(rf"\b{re.escape(short)}\b", code.text)) != 1:
        return None
    return Edit(
        "add_argument",
        {"argument!": argument, "call": short},
        code.splice([(close, close, f", {argument}" if inside.strip() else argument)]),
    )
