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
    made_up_line,
    sentence,
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


def _fstring_backwards(code: Code) -> Edit | None:
    """Write f-strings of the snippet as % or .format; the snippet is the answer."""
    changes: list[tuple[int, int, str]] = []
    percent = code.rng.random() < 0.5
    for node in code.all(ast.JoinedStr):
        text = code.of(node)
        if (
            node.lineno != node.end_lineno
            or text[0] != "f"
            or text[1] not in "\"'"
            or text[1:4] in ('"""', "'''")
        ):
            continue
        body, values = text[2:-1], list[str]()
        fields = re.findall(r"\{([^{}]*)\}", body)
        if (
            "{{" in body
            or "}}" in body
            or "%" in body
            or text[1] in body
            or "\\" in body
            or not fields
        ):
            continue
        for inner in fields:
            found = re.fullmatch(r"([^!:=,\"']+)(!r)?", inner)
            if found is None:
                break
            values.append(found[1])
            mark = ("%r" if found[2] else "%s") if percent else ("{!r}" if found[2] else "{}")
            body = body.replace("{" + inner + "}", "\0" + mark, 1)
        if len(values) != len(fields):
            continue
        body = text[1] + body.replace("\0", "") + text[1]
        if not percent:
            new = f"{body}.format({', '.join(values)})"
        elif (
            len(values) == 1
            and code.rng.random() < 0.6
            and re.fullmatch(r"[\w.]+(\([^()]*\))?", values[0])
        ):
            new = f"{body} % {values[0]}"
        else:
            new = f"{body} % ({', '.join(values)}{',' if len(values) == 1 else ''})"
        changes.append((code.start(node), code.end(node), new))
    if not changes or len(changes) > 3 or len(changes) != len(code.all(ast.JoinedStr)):
        return None
    return Edit("fstring", {}, code.text, code.splice(changes))


def _fstring_made_up(code: Code) -> Edit | None:
    rng = code.rng
    if code.natural or rng.random() < 0.8 or re.search(r"%[sdr]|\.format\(", code.text):
        return None
    count = rng.choice((1, 1, 2, 2, 3))
    atoms = sorted({n.id for n in code.all(ast.Name)} - {"print", "super"})
    if not atoms:
        return None
    values: list[str] = []
    for _ in range(count):
        name = rng.choice(atoms)
        shape = rng.choice(
            ["{}", "{}", "{}", "len({})", "self.{}", "{}.name", "str({})", "{}[0]", "{} + 1"]
        )
        values.append(shape.format(name))
    words = sentence(code).rstrip(".").split(" ")
    pieces = list(words)
    for _ in values:
        pieces.insert(rng.randrange(len(pieces) + 1), "\0")
    quote = rng.choice('""\'')
    text = " ".join(pieces)
    if quote in text or "%" in text or "{" in text:
        return None
    percent = rng.random() < 0.5
    marks = [
        rng.choice(["%s", "%s", "%s", "%d", "%r"] if percent else ["{}", "{}", "{!r}"])
        for _ in values
    ]
    old, new = text, text
    for mark, value in zip(marks, values, strict=True):
        old = old.replace("\0", mark, 1)
        new = new.replace("\0", "{" + value + ("!r" if mark in ("%r", "{!r}") else "") + "}", 1)
    old, new = quote + old + quote, "f" + quote + new + quote
    if percent:
        simple = count == 1 and "+" not in values[0]
        old += f" % {values[0]}" if simple else f" % ({', '.join(values)}{',' * (count == 1)})"
    else:
        old += f".format({', '.join(values)})"
    name = rng.choice(code.names)
    frame = rng.choice(
        [
            "print({})",
            "{n} = {}",
            "raise ValueError({})",
            "return {}",
            "logger.info({})",
            "self.{n} = {}",
            "{n}({})",
        ]
    )
    source, target = (frame.replace("{n}", name).replace("{}", part) for part in (old, new))
    return made_up_line(code, source, target, "fstring", {})


def fstring(code: Code) -> Edit | None:
    made = _fstring_made_up(code) or _fstring_backwards(code)
    if made is not None:
        return made
    changes: list[tuple[int, int, str]] = []
    for node in code.nodes:
        made = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            made = _from_percent(code, node)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "format"
        ):
            made = _from_format(code, node)
        if made is not None and not any(b <= code.start(node) < e for b, e, _ in changes):
            changes.append((code.start(node), code.end(node), made))
    if not changes or len(changes) > 4:
        return None
    return Edit("fstring", {}, code.splice(changes))


def _plain(code: Code, node: ast.expr) -> str | None:
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.lineno == node.end_lineno
    ):
        text = code.of(node)
        if (
            text[0] in "\"'"
            and text[:3] not in ('"""', "'''")
            and text.count(text[0]) == 2
            and "\\N" not in text
        ):
            return text
    return None


def _fits(code: Code, node: ast.expr, quote: str) -> str | None:
    text = code.of(node)
    if (
        quote in text
        or "\\" in text
        or "\n" in text
        or "{" in text
        or "#" in text
        or len(text) > 40
    ):
        return None
    return None if isinstance(node, ast.Lambda | ast.Starred | ast.JoinedStr | ast.IfExp) else text


def _from_percent(code: Code, node: ast.BinOp) -> str | None:
    text = _plain(code, node.left)
    if text is None or "{" in text or "}" in text or "%%" in text or node.lineno != node.end_lineno:
        return None
    values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    if isinstance(node.right, ast.Dict):
        return None
    marks = re.findall(r"%[^%\s]", text)
    if len(marks) != len(values) or any(m not in ("%s", "%r", "%d") for m in marks) or not marks:
        return None
    out = text
    for mark, value in zip(marks, values, strict=True):
        inner = _fits(code, value, text[0])
        if inner is None:
            return None
        out = out.replace(mark, "{" + inner + ("!r" if mark == "%r" else "") + "}", 1)
    return "f" + out


def _from_format(code: Code, node: ast.Call) -> str | None:
    assert isinstance(node.func, ast.Attribute)
    text = _plain(code, node.func.value)
    if (
        text is None
        or "{{" in text
        or "}}" in text
        or node.lineno != node.end_lineno
        or node.keywords
    ):
        return None
    marks = re.findall(r"\{[^}]*\}", text)
    if (
        len(marks) != len(node.args)
        or not marks
        or any(m not in ("{}", "{!r}", "{0}") for m in marks)
    ):
        return None
    if "{0}" in marks and len(marks) > 1:
        return None
    out, at = "", 0
    for mark, value in zip(marks, node.args, strict=True):
        inner = _fits(code, value, text[0])
        if inner is None:
            return None
        found = text.index(mark, at)
        out += text[at:found] + "{" + inner + ("!r" if mark == "{!r}" else "") + "}"
        at = found + len(mark)
    return "f" + out + text[at:]


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


def invert_if(code: Code) -> Edit | None:
    nodes = _if_else(code)
    if len(nodes) != 1:
        return None
    node = nodes[0]
    test = negated(code, node.test)
    begin, end = code.line_start(node.body[0].lineno), code.end(node.body[-1])
    begin2, end2 = code.line_start(node.orelse[0].lineno), code.end(node.orelse[-1])
    if test is None or (
        "(" in test and code.of(node.test)[-1] == ")" and code.text[code.end(node.test)] != ":"
    ):
        return None
    if end - begin > 400 or end2 - begin2 > 400:
        return None
    changes = [
        (code.start(node.test), code.end(node.test), test),
        (begin, end, code.text[begin2:end2]),
        (begin2, end2, code.text[begin:end]),
    ]
    return Edit("invert_if", {}, code.splice(changes))


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
