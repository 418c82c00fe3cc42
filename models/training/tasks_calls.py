"""Edits of calls, messages and literals, lines put beside other lines, and several annotations at
once.
"""

from __future__ import annotations

import ast
import re

from models.training.code import Code, Edit
from models.training.tasks_body import made_up_statement
from models.training.tasks_names import DEFAULTS, insert_hint, made_up_type
from models.training.tasks_shared import sentence


def _beside(code: Code, task: str, *, after: bool) -> Edit | None:
    kinds = (ast.Assign, ast.Expr, ast.AugAssign)
    if not after:
        kinds = (*kinds, ast.Return, ast.Raise, ast.Assert)
    nodes = [
        n
        for n in code.nodes
        if isinstance(n, kinds)
        and n.lineno == n.end_lineno
        and code.own_line(n)
        and n is not code.docstring()
        and 4 <= len(code.of(n)) <= 50
        and "`" not in code.of(n)
    ]
    if not nodes:
        return None
    node = code.rng.choice(nodes)
    place = code.of(node)
    if code.text.count(place) != 1:
        return None
    if isinstance(node, ast.Assign) and code.rng.random() < 0.3:
        target = code.of(node.targets[0])
        if code.text.count(f"{target} = ") == 1:
            place = f"{target} = ..." if code.rng.random() < 0.3 else f"{target} ="
    text = made_up_statement(code)
    at = code.line_start(node.lineno + 1 if after else node.lineno)
    line = f"{code.indent_of(node)}{text}\n"
    return Edit(task, {"statement!": text, "place!": place}, code.splice([(at, at, line)]))


def add_after(code: Code) -> Edit | None:
    """A line is added behind another one."""
    return _beside(code, "add_after", after=True)


def add_before(code: Code) -> Edit | None:
    """A line is added in front of another one."""
    return _beside(code, "add_before", after=False)


def change_message(code: Code) -> Edit | None:
    """The message of an exception changes; the old one is not named."""
    found: list[tuple[str, ast.expr]] = []
    for node in code.all(ast.Raise):
        exc = node.exc
        if isinstance(exc, ast.Call) and len(exc.args) == 1 and not exc.keywords:
            found.append((code.of(exc.func), exc.args[0]))
    if not found:
        return None
    error, argument = code.rng.choice(found)
    if argument.lineno != argument.end_lineno or not isinstance(
        argument, ast.Constant | ast.JoinedStr | ast.BinOp
    ):
        return None
    values = {"text": sentence(code).rstrip(".").lower()}
    values["raw"] = values["text"]
    if len(found) > 1 or code.rng.random() < 0.3:
        if sum(name == error for name, _ in found) != 1:
            return None
        values["error"] = error
    quote = "'" if code.of(argument).lstrip("fr")[:1] == "'" else '"'
    new = quote + values["text"] + quote
    target = code.splice([(code.start(argument), code.end(argument), new)])
    return Edit("change_message", values, target)


def _keywords(code: Code) -> list[tuple[ast.Call, ast.keyword, str]]:
    found: list[tuple[ast.Call, ast.keyword, str]] = []
    for call in code.all(ast.Call):
        func = call.func
        name = func.attr if isinstance(func, ast.Attribute) else code.of(func)
        if not name.isidentifier() or id(call) in code.inside_format:
            continue
        for keyword in call.keywords:
            if (
                keyword.arg
                and keyword.lineno == keyword.end_lineno
                and code.text.count(f"{keyword.arg}=") == 1
            ):
                found.append((call, keyword, name))
    return found


def change_argument(code: Code) -> Edit | None:
    """A keyword argument of a call gets another value."""
    found = [each for each in _keywords(code) if len(code.of(each[1].value)) <= 25]
    if not found:
        return None
    _, keyword, name = code.rng.choice(found)
    old, new = code.of(keyword.value), code.rng.choice(DEFAULTS)
    if code.rng.random() < 0.2:
        new = code.rng.choice(code.names)
    if old == new or keyword.arg is None:
        return None
    target = code.splice([(code.start(keyword.value), code.end(keyword.value), new)])
    values = {"name": keyword.arg, "value!": new, "sig!": f"{keyword.arg}={new}", "call": name}
    return Edit("change_argument", values, target)


def remove_argument(code: Code) -> Edit | None:
    """A keyword argument of a call goes."""
    found = _keywords(code)
    if not found:
        return None
    call, keyword, name = code.rng.choice(found)
    begin, end = code.start(keyword), code.end(keyword)
    if code.text[max(0, begin - 2) : begin] == ", ":
        begin -= 2
    elif code.text[end : end + 2] == ", ":
        end += 2
    elif code.text[begin - 1] != "(" or code.text[end] != ")":
        return None
    if call.lineno != call.end_lineno or keyword.arg is None:
        return None
    return Edit(
        "remove_argument", {"name": keyword.arg, "call": name}, code.splice([(begin, end, "")])
    )


def add_element(code: Code) -> Edit | None:
    """A list, tuple or set of constants gets one more."""
    nodes = [
        n
        for n in code.nodes
        if isinstance(n, ast.List | ast.Tuple | ast.Set)
        and len(n.elts) >= 2
        and n.lineno == n.end_lineno
        and all(isinstance(e, ast.Constant) for e in n.elts)
        and code.text[code.end(n) - 1] in ")]}"
    ]
    if len(nodes) != 1:
        return None
    last = nodes[0].elts[-1]
    old = code.of(last)
    if old[:1] in "\"'":
        new = old[0] + code.rng.choice(code.names) + old[0]
    elif old.isdigit():
        new = str(code.rng.randint(0, 999))
    else:
        return None
    if new in code.text:
        return None
    kind = {"[": "list", "(": "tuple", "{": "set"}[code.text[code.start(nodes[0])]]
    at = code.end(last)
    return Edit("add_element", {"element!": new, "raw": kind}, code.splice([(at, at, f", {new}")]))


def make_required(code: Code) -> Edit | None:
    """A parameter loses its default."""
    fn = code.fn
    if fn is None or not fn.args.defaults or fn.args.posonlyargs:
        return None
    arg = fn.args.args[-len(fn.args.defaults)]
    default = fn.args.defaults[0]
    if len(code.of(default)) > 25 or default.lineno != arg.end_lineno:
        return None
    target = code.splice([(code.end(arg), code.end(default), "")])
    return Edit("make_required", {"name": arg.arg, "old!": code.of(default)}, target)


def make_optional(code: Code) -> Edit | None:
    """The last parameter without a default gets None."""
    fn = code.fn
    if fn is None or fn.args.posonlyargs:
        return None
    bare = fn.args.args[: len(fn.args.args) - len(fn.args.defaults)]
    if not bare or bare[-1].arg in ("self", "cls") or bare[-1].annotation is not None:
        return None
    at = code.end(bare[-1])
    return Edit("make_optional", {"name": bare[-1].arg}, code.splice([(at, at, "=None")]))


def add_hints(code: Code) -> Edit | None:
    """Two annotations at once, or one and that of the result."""
    rng = code.rng
    bare = [a for a in code.parameters() if a.annotation is None]
    fn = code.fn
    if fn is None or not bare:
        return None
    values: dict[str, str] = {}
    changes: list[tuple[int, int, str]] = []
    picked = rng.sample(bare, min(len(bare), 2))
    with_return = fn.returns is None and (len(picked) < 2 or rng.random() < 0.3)
    if len(picked) + with_return < 2:
        return None
    picked.sort(key=code.start)
    for arg, key in zip(picked, ("one", "two"), strict=False):
        kind, words = made_up_type(code)
        change = insert_hint(code, arg, kind)
        if change is None:
            return None
        changes.append(change)
        values[f"name_{key}"], values[f"type_{key}"] = arg.arg, words
    if with_return:
        kind, words = made_up_type(code)
        _, end = code.parameter_span()
        if code.text[end : end + 2] != "):":
            return None
        changes.append((end + 1, end + 1, f" -> {kind}"))
        values["type_return"] = words
    return Edit("add_hints", values, code.splice(changes))


def change_text(code: Code) -> Edit | None:
    """A word inside a string changes; only the word is named."""
    words: list[tuple[int, str]] = []
    for node in code.all(ast.Constant):
        plain = isinstance(node.value, str) and id(node) not in code.inside_format
        if plain and node.lineno == node.end_lineno:
            text = code.of(node)
            if " " in text and node is not getattr(code.docstring(), "value", None):
                words += [
                    (code.start(node) + m.start(), m.group())
                    for m in re.finditer(r"(?<![\w%{\\])[a-z]{4,}(?![\w}])", text)
                ]
    if not words:
        return None
    at, old = code.rng.choice(words)
    if len(re.findall(rf"\b{old}\b", code.text)) != 1:
        return None
    new = code.rng.choice(code.names).replace("_", "")
    return Edit("change_text", {"old": old, "new": new}, code.splice([(at, at + len(old), new)]))
