"""Edits that mend what a tool or a person reports: small bugs put into real code, with the symptom
in the instruction, and renames that somebody left half done.
"""

from __future__ import annotations

import ast
import re

from models.training.code import Code, Edit
from models.training.tasks_text import negated


def fix_return(code: Code) -> Edit | None:
    """The last statement computes a value and forgets to return it."""
    fn = code.fn
    if fn is None or len(code.all(ast.Return)) > 3:
        return None
    last = fn.body[-1]
    if (
        not isinstance(last, ast.Return)
        or last.value is None
        or not isinstance(
            last.value, ast.Call | ast.BinOp | ast.Name | ast.Attribute | ast.Subscript
        )
        or not code.own_line(last)
        or last.lineno != last.end_lineno
    ):
        return None
    source = code.splice([(code.start(last), code.start(last.value), "")])
    return Edit("fix_return", {"value!": code.of(last.value), "name": fn.name}, code.text, source)


def fix_await(code: Code) -> Edit | None:
    """A coroutine is called and not awaited."""
    nodes = [
        n for n in code.all(ast.Await) if isinstance(n.value, ast.Call) and n.lineno == n.end_lineno
    ]
    if not nodes:
        return None
    node = code.rng.choice(nodes)
    if code.text[code.start(node) : code.start(node.value)] != "await ":
        return None
    source = code.splice([(code.start(node), code.start(node.value), "")])
    assert isinstance(node.value, ast.Call)
    func = node.value.func
    name = func.attr if isinstance(func, ast.Attribute) else code.of(func)
    if len(re.findall(rf"\b{re.escape(name)}\(", code.text)) != 1:
        return None
    return Edit("fix_await", {"call": name}, code.text, source)


def fix_self(code: Code) -> Edit | None:
    """An attribute is used without `self.`."""
    owned = [
        n
        for n in code.all(ast.Attribute)
        if isinstance(n.value, ast.Name) and n.value.id == "self" and isinstance(n.ctx, ast.Load)
    ]
    if not owned:
        return None
    node = code.rng.choice(owned)
    if len(re.findall(rf"\b{re.escape(node.attr)}\b", code.text)) != 1:
        return None
    source = code.splice([(code.start(node), code.end(node), node.attr)])
    return Edit("fix_self", {"name": node.attr, "dotted": f"self.{node.attr}"}, code.text, source)


def swap_arguments(code: Code) -> Edit | None:
    """Two arguments of a call stand in the wrong order."""
    calls = [
        n
        for n in code.all(ast.Call)
        if len(n.args) == 2
        and not any(isinstance(a, ast.Starred | ast.GeneratorExp) for a in n.args)
        and n.lineno == n.end_lineno
        and id(n) not in code.inside_format
        and code.of(n.args[0]) != code.of(n.args[1])
        and max(len(code.of(a)) for a in n.args) <= 30
    ]
    if not calls:
        return None
    node = code.rng.choice(calls)
    func = node.func
    name = func.attr if isinstance(func, ast.Attribute) else code.of(func)
    if not name.isidentifier() or len(re.findall(rf"\b{name}\(", code.text)) != 1:
        return None
    first, second = node.args
    target = code.splice(
        [
            (code.start(first), code.end(first), code.of(second)),
            (code.start(second), code.end(second), code.of(first)),
        ]
    )
    return Edit("swap_arguments", {"call": name}, target)


def fix_none(code: Code) -> Edit | None:
    """None is compared with == or != (made backwards from `is`)."""
    changes: list[tuple[int, int, str]] = []
    for node in code.all(ast.Compare):
        right = node.comparators[0]
        if len(node.ops) != 1 or not (isinstance(right, ast.Constant) and right.value is None):
            continue
        between = code.text[code.end(node.left) : code.start(right)]
        new = {"is": " == ", "is not": " != "}.get(between.strip())
        if new and id(node) not in code.inside_format:
            changes.append((code.end(node.left), code.start(right), new))
    if not changes or "== None" in code.text or "!= None" in code.text or len(changes) > 4:
        return None
    return Edit("fix_none", {}, code.text, code.splice(changes))


def fix_mutable_default(code: Code) -> Edit | None:
    """A list or dict as default becomes None and is made in the body."""
    fn, body = code.fn, code.body()
    if fn is None or not body or not code.own_line(body[0]) or not code.body_on_own_lines():
        return None
    named = [*fn.args.posonlyargs, *fn.args.args]
    pairs = list(zip(named[len(named) - len(fn.args.defaults) :], fn.args.defaults, strict=True))
    pairs = [(a, d) for a, d in pairs if isinstance(d, ast.Constant) and d.value is None]
    if not pairs or (
        body[0].lineno != body[0].end_lineno and isinstance(body[0], ast.FunctionDef | ast.ClassDef)
    ):
        return None
    arg, default = code.rng.choice(pairs)
    if re.search(rf"if {arg.arg} is None", code.text):
        return None
    empty = code.rng.choice(["[]", "{}"])
    source = code.splice([(code.start(default), code.end(default), empty)])
    at, pad = code.line_start(body[0].lineno), code.indent_of(body[0])
    target = code.splice([(at, at, f"{pad}if {arg.arg} is None:\n{pad}    {arg.arg} = {empty}\n")])
    return Edit("fix_mutable_default", {"name": arg.arg}, target, source)


def fix_bare_except(code: Code) -> Edit | None:
    """A bare except names what it catches (made backwards)."""
    handlers = [h for h in code.all(ast.ExceptHandler) if h.type is not None and h.name is None]
    if len(handlers) != 1 or len(code.all(ast.ExceptHandler)) != 1:
        return None
    kind = handlers[0].type
    assert kind is not None
    if not isinstance(kind, ast.Name) or kind.lineno != handlers[0].lineno:
        return None
    source = code.splice([(code.start(kind) - 1, code.end(kind), "")])
    return Edit("fix_bare_except", {"error": kind.id}, code.text, source)


def flip_bool_operator(code: Code) -> Edit | None:
    """A condition joins its parts with the wrong word."""
    nodes = [n for n in code.all(ast.BoolOp) if len(n.values) == 2 and n.lineno == n.end_lineno]
    if len(nodes) != 1 or len(re.findall(r"\b(?:and|or)\b", code.text)) != 1:
        return None
    node = nodes[0]
    old = "and" if isinstance(node.op, ast.And) else "or"
    new = "or" if old == "and" else "and"
    begin, end = code.end(node.values[0]), code.start(node.values[1])
    between = code.text[begin:end]
    if between.strip() != old:
        return None
    target = code.splice([(begin, end, between.replace(old, new))])
    return Edit("flip_bool_operator", {"old": old, "new": new}, target)


def finish_rename(code: Code) -> Edit | None:
    """Some uses of a name have been renamed; the rest follows."""
    parameters = {a.arg for a in code.all(ast.arg)}
    names = {n.id for n in code.all(ast.Name) if isinstance(n.ctx, ast.Store)} | parameters
    names = {n for n in names if n not in ("self", "cls", "_") and not code.bound_elsewhere(n)}
    choices = [n for n in sorted(names) if len(set(code.uses(n))) >= 2]
    if not choices:
        return None
    old = code.rng.choice(choices)
    new = code.new_name(old)
    spans = sorted(set(code.uses(old)))
    done = code.rng.randint(1, len(spans) - 1) if code.rng.random() < 0.5 else 1
    source = code.swap_words(spans[:done], new)
    return Edit("finish_rename", {"old": old, "new": new}, code.swap_words(spans, new), source)


_STRICTER = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}


def fix_boundary(code: Code) -> Edit | None:
    """The only ordering comparison is off by one."""
    nodes = [n for n in code.all(ast.Compare) if any(type(op) in _STRICTER for op in n.ops)]
    if len(nodes) != 1 or len(nodes[0].ops) != 1 or id(nodes[0]) in code.inside_format:
        return None
    node = nodes[0]
    begin, end = code.end(node.left), code.start(node.comparators[0])
    between = code.text[begin:end]
    if not re.fullmatch(r" ?[<>]=? ?", between):
        return None
    values: dict[str, str] = {}
    if isinstance(node.left, ast.Name):
        values["name"] = node.left.id
    wrong = between.replace(between.strip(), _STRICTER[type(node.ops[0])])
    source = code.splice([(begin, end, wrong)])
    return Edit("fix_boundary", values, code.text, source)


def fix_condition(code: Code) -> Edit | None:
    """The only `if` asks for the opposite of what it should."""
    nodes = code.all(ast.If)
    if len(nodes) != 1 or nodes[0].test.lineno != nodes[0].test.end_lineno:
        return None
    node = nodes[0]
    other = negated(code, node.test)
    if other is None or code.text[code.end(node.test)] != ":":
        return None
    values: dict[str, str] = {}
    first = node.body[0]
    if isinstance(first, ast.Raise) and first.exc is not None:
        raised = first.exc.func if isinstance(first.exc, ast.Call) else first.exc
        values["error"] = code.of(raised)
    elif isinstance(first, ast.Return) and first.value is not None and len(code.of(first)) < 30:
        values["value!"] = code.of(first.value)
    source = code.splice([(code.start(node.test), code.end(node.test), other)])
    back = Code(source, code.rng, code.names)
    tests = [n.test for n in back.all(ast.If)]
    if len(tests) != 1 or negated(back, tests[0]) != code.of(node.test):
        return None
    return Edit("fix_condition", values, code.text, source)


def fix_sign(code: Code) -> Edit | None:
    """The only sum is a difference, or the other way round."""
    kinds = {ast.Add: "-", ast.Sub: "+"}
    nodes = [n for n in [*code.all(ast.BinOp), *code.all(ast.AugAssign)] if type(n.op) in kinds]
    if len(nodes) != 1 or id(nodes[0]) in code.inside_format:
        return None
    node = nodes[0]
    if isinstance(node, ast.BinOp):
        begin, end = code.end(node.left), code.start(node.right)
        texts = (node.left, node.right)
    else:
        begin, end = code.end(node.target), code.start(node.value)
        texts = (node.value,)
    between = code.text[begin:end]
    literal = any(isinstance(t, ast.Constant) and not isinstance(t.value, int) for t in texts)
    if literal or not re.fullmatch(r" ?[+-]=? ?", between):
        return None
    right = "+" if isinstance(node.op, ast.Add) else "-"
    source = code.splice([(begin, end, between.replace(right, kinds[type(node.op)]))])
    words = ("adds", "subtracts") if right == "-" else ("subtracts", "adds")
    values = {"does": words[0], "should_do": words[1][:-1], "right!": right}
    values["wrong!"] = kinds[type(node.op)]
    return Edit("fix_sign", values, code.text, source)


def fix_index(code: Code) -> Edit | None:
    """The first element is taken in place of the last, or the other way round."""
    found: list[tuple[int, int, str]] = []
    for node in code.all(ast.Subscript):
        text = code.of(node.slice)
        if text in ("0", "-1") and id(node) not in code.inside_format:
            found.append((code.start(node.slice), code.end(node.slice), text))
    if len(found) != 1:
        return None
    begin, end, text = found[0]
    source = code.splice([(begin, end, "-1" if text == "0" else "0")])
    order = ("last", "first") if text == "0" else ("first", "last")
    return Edit("fix_index", {"takes": order[0], "should_take": order[1]}, code.text, source)
