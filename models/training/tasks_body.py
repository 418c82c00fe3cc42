"""Edits of statements: guards, docstrings, logging, wrapped bodies, lines added and removed."""

from __future__ import annotations

import ast

from models.training.code import Code, Edit, Function
from models.training.tasks_names import DEFAULTS, ERRORS
from models.training.tasks_shared import (
    LOGGERS,
    WORDS,
    assignments,
    indented,
    made_up_condition,
    made_up_line,
    sentence,
)


def made_up_statement(code: Code) -> str:
    """Return a made-up statement of one line."""
    rng = code.rng
    name, other, word = (
        rng.choice(code.names),
        rng.choice(code.names),
        rng.choice(WORDS).split()[0].lower(),
    )
    return rng.choice(
        [
            f"{name}()",
            f"self.{name}()",
            f"{name} = None",
            f"{name} = 0",
            f"{name} = []",
            f"{name} += 1",
            f"{name}({other})",
            f'logger.info("{word} {name}")',
            f"logger.debug('{word}')",
            f'print("{word} {name}")',
            f'print("{word}")',
            f"self.{name} = {other}",
            f"{other}.{name}()",
            f"assert {name}",
            f"del {name}",
            f'log("{word}")',
            f"print({name})",
            f"self.{name}({other})",
            f"{name} = {other}.copy()",
            f"{name} = {other}()",
            f"super().{name}()",
            f"self.{name} += 1",
            f"assert {name} is not None",
            f"{name}.append({other})",
            f'logging.info("{word} done")',
            f"time.sleep({rng.randint(1, 9)})",
        ]
    )


def _guard(code: Code, then: str, values: dict[str, str], task: str) -> Edit | None:
    parameters = code.parameters()
    body = code.body()
    if not parameters or not body or not code.body_on_own_lines() or not code.own_line(body[0]):
        return None
    rng = code.rng
    name = rng.choice(parameters).arg
    test, words = made_up_condition(code, name)
    pad = code.indent_of(body[0])
    at = code.line_start(body[0].lineno)
    if isinstance(body[0], Function | ast.ClassDef) and body[0].decorator_list:
        return None
    target = code.splice([(at, at, f"{pad}if {test}:\n{pad}    {then}\n")])
    values["cond"] = words
    values["x"] = name
    return Edit(task, values, target)


def guard_return(code: Code) -> Edit | None:
    value = code.rng.choice([*DEFAULTS, "None", "False", "0", "[]", "{}", '""'])
    if code.rng.random() < 0.15 and code.parameters():
        value = code.rng.choice(code.parameters()).arg
    return _guard(code, f"return {value}", {"value!": value}, "guard_return")


def guard_plain(code: Code) -> Edit | None:
    return _guard(code, "return", {}, "guard_plain")


def guard_raise(code: Code) -> Edit | None:
    error = code.rng.choice(ERRORS)
    if code.rng.random() < 0.5:
        error += f'("{sentence(code).rstrip(".").lower()}")'
    return _guard(code, f"raise {error}", {"error!": error}, "guard_raise")


def add_docstring(code: Code) -> Edit | None:
    fn = code.fn
    if fn is None or code.docstring() or not code.body_on_own_lines():
        return None
    first = fn.body[0]
    at = code.line_start(
        min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))])
    )
    text = sentence(code)
    target = code.splice([(at, at, f'{code.indent_of(first)}"""{text}"""\n')])
    return Edit("add_docstring", {"text": text, "raw": text, "name": fn.name}, target)


def replace_docstring(code: Code) -> Edit | None:
    node = code.docstring()
    if node is None or node.lineno != node.end_lineno:
        return None
    text = sentence(code)
    target = code.splice([(code.start(node), code.end(node), f'"""{text}"""')])
    return Edit("replace_docstring", {"text": text, "raw": text}, target)


def remove_docstring(code: Code) -> Edit | None:
    node = code.docstring()
    if node is None or len(code.body()) == 0 or not code.own_line(node):
        return None
    end = code.body()[0]
    after = code.text[code.end(node) :]
    if not after.startswith("\n") or not code.own_line(end):
        return None
    return Edit(
        "remove_docstring",
        {},
        code.splice(
            [(code.line_start(node.lineno), code.line_start((node.end_lineno or 0) + 1), "")]
        ),
    )


def _print_log_backwards(code: Code) -> Edit | None:
    calls = [
        n
        for n in code.all(ast.Call)
        if isinstance(n.func, ast.Attribute)
        and n.func.attr in ("info", "debug", "warning", "error")
        and not n.keywords
        and code.of(n.func).split(".")[0].strip("_").lower() in ("log", "logger", "logging")
    ]
    names = {code.of(n.func) for n in calls}
    if len(names) != 1 or "print" in code.atoms:
        return None
    name = names.pop()
    return Edit(
        "print_log",
        {"logger": name},
        code.text,
        code.swap_words([(code.start(n.func), name) for n in calls], "print"),
    )


def _print_log_made_up(code: Code) -> Edit | None:
    rng = code.rng
    if code.natural or rng.random() < 0.85 or "print" in code.atoms:
        return None
    name = rng.choice(sorted(code.atoms))
    inner = rng.choice(
        [
            f'"{sentence(code)}"',
            name,
            f'"{name}", {name}',
            f'f"{name}: {{{name}}}"',
            f'"{name} %s" % {name}',
        ]
    )
    logger = rng.choice(LOGGERS)
    return made_up_line(
        code, f"print({inner})", f"{logger}({inner})", "print_log", {"logger": logger}
    )


def print_log(code: Code) -> Edit | None:
    made = _print_log_made_up(code) or _print_log_backwards(code)
    if made is not None:
        return made
    spans = [
        (code.start(n.func), "print")
        for n in code.all(ast.Call)
        if isinstance(n.func, ast.Name) and n.func.id == "print"
    ]
    if not spans or any(
        n.keywords
        for n in code.all(ast.Call)
        if isinstance(n.func, ast.Name) and n.func.id == "print"
    ):
        return None
    logger = code.rng.choice(LOGGERS)
    return Edit("print_log", {"logger": logger}, code.swap_words(spans, logger))


def _whole_body(code: Code) -> tuple[int, int, str] | None:
    body = code.body()
    if not body or not code.own_line(body[0]) or not code.body_on_own_lines():
        return None
    first = min([body[0].lineno, *(d.lineno for d in getattr(body[0], "decorator_list", []))])
    return code.line_start(first), code.end(body[-1]), code.indent_of(body[0])


def wrap_try(code: Code) -> Edit | None:
    span = _whole_body(code)
    if span is None:
        return None
    begin, end, pad = span
    block = indented(code, begin, end)
    if block is None:
        return None
    rng = code.rng
    error = rng.choice(ERRORS)
    value = rng.choice(["None", "False", "[]", "0", "None"])
    handler, words = rng.choice(
        [
            ("pass", "pass"),
            ("pass", "ignore it"),
            (f"return {value}", f"return {value}"),
            ("raise", "re-raise"),
            ("raise", "raise"),
            (f"return {value}", f"return {value}"),
            ('logger.exception("failed")', '`logger.exception("failed")`'),
            ("return", "return"),
            (f"print({value})", f"`print({value})`"),
        ]
    )
    text = f"{pad}try:\n{block}\n{pad}except {error}:\n{pad}    {handler}"
    return Edit("wrap_try", {"error": error, "action": words}, code.splice([(begin, end, text)]))


def wrap_with(code: Code) -> Edit | None:
    span = _whole_body(code)
    if span is None:
        return None
    begin, end, pad = span
    block = indented(code, begin, end)
    if block is None:
        return None
    name, other = code.rng.choice(code.names), code.rng.choice(code.names)
    context = code.rng.choice(
        [
            f"self.{name}",
            f"{name}()",
            f"open({name}) as {other}",
            "self._lock",
            "lock",
            f"{name}.{other}()",
            f"suppress({name})",
            f"self.{name}()",
            "self.lock",
        ]
    )
    return Edit(
        "wrap_with",
        {"context!": context},
        code.splice([(begin, end, f"{pad}with {context}:\n{block}")]),
    )


def add_first(code: Code) -> Edit | None:
    span = _whole_body(code)
    if span is None:
        return None
    begin, _, pad = span
    text = made_up_statement(code)
    return Edit("add_first", {"statement!": text}, code.splice([(begin, begin, f"{pad}{text}\n")]))


def add_last(code: Code) -> Edit | None:
    span = _whole_body(code)
    if span is None or isinstance(code.body()[-1], ast.Return | ast.Raise):
        return None
    _, end, pad = span
    text = made_up_statement(code)
    return Edit("add_last", {"statement!": text}, code.splice([(end, end, f"\n{pad}{text}")]))


def add_before_return(code: Code) -> Edit | None:
    nodes = code.all(ast.Return)
    if len(nodes) != 1 or not code.own_line(nodes[0]):
        return None
    at = code.line_start(nodes[0].lineno)
    text = made_up_statement(code)
    return Edit(
        "add_before_return",
        {"statement!": text},
        code.splice([(at, at, f"{code.indent_of(nodes[0])}{text}\n")]),
    )


def add_comment(code: Code) -> Edit | None:
    text = sentence(code)
    return Edit("add_comment", {"text": text, "raw": text}, f"# {text}\n{code.text}")


def _without_lines(code: Code, nodes: list[ast.AST]) -> str | None:
    gone = {k for n in nodes for k in range(n.lineno, (n.end_lineno or 0) + 1)}  # type: ignore[attr-defined]
    rows = code.text.split("\n")
    target = "\n".join(row for k, row in enumerate(rows, 1) if k not in gone)
    try:
        ast.parse(target)
    except SyntaxError:
        return None
    return target


def remove_comments(code: Code) -> Edit | None:
    rows = code.text.split("\n")
    if (
        not any(r.lstrip().startswith("#") for r in rows)
        or '"""' in code.text
        or "'''" in code.text
    ):
        return None
    if any("#" in r and not r.lstrip().startswith("#") for r in rows):
        return None
    return Edit("remove_comments", {}, "\n".join(r for r in rows if not r.lstrip().startswith("#")))


def _remove_calls(code: Code, task: str, nodes: list[ast.AST]) -> Edit | None:
    if not nodes or any(not code.own_line(n) for n in nodes):
        return None
    target = _without_lines(code, nodes)
    return None if target is None else Edit(task, {}, target)


def _remove_prints_backwards(code: Code) -> Edit | None:
    """Put prints into a body; the snippet is the answer."""
    rng = code.rng
    places = [
        n
        for n in code.nodes
        if isinstance(n, ast.Assign | ast.Expr | ast.Return | ast.AugAssign) and code.own_line(n)
    ]
    places = [n for n in places if n is not code.docstring()]
    if not places or "print" in code.atoms or rng.random() < 0.9:
        return None
    changes: list[tuple[int, int, str]] = []
    for node in rng.sample(places, min(len(places), rng.choice((1, 1, 2, 3)))):
        at = code.line_start(node.lineno)  # type: ignore[attr-defined]
        name = rng.choice(sorted(code.atoms))
        what = rng.choice(
            [
                f"print({rng.choice(code.names)})",
                f'print("{name}", {name})',
                f'print(f"{name}: {{{name}}}")',
                f'print("{sentence(code)}")',
                "print()",
            ]
        )
        changes.append((at, at, f"{code.indent_of(node)}{what}\n"))
    source = code.splice(changes)
    ast.parse(source)
    return Edit("remove_prints", {}, code.text, source)


def remove_prints(code: Code) -> Edit | None:
    made = _remove_prints_backwards(code)
    if made is not None:
        return made
    nodes: list[ast.AST] = [
        n
        for n in code.all(ast.Expr)
        if isinstance(n.value, ast.Call)
        and isinstance(n.value.func, ast.Name)
        and n.value.func.id == "print"
    ]
    return _remove_calls(code, "remove_prints", nodes)


def remove_asserts(code: Code) -> Edit | None:
    return _remove_calls(code, "remove_asserts", list(code.all(ast.Assert)))


def delete_statement(code: Code) -> Edit | None:
    nodes = [
        n
        for n in code.nodes
        if isinstance(
            n, ast.Expr | ast.Assign | ast.AugAssign | ast.Assert | ast.Delete | ast.Raise
        )
        and n.lineno == n.end_lineno
        and code.own_line(n)
        and 4 <= len(code.of(n)) <= 50
        and "`" not in code.of(n)
    ]
    if not nodes:
        return None
    node = code.rng.choice(nodes)
    if code.text.count(code.of(node)) != 1:
        return None
    target = _without_lines(code, [node])
    return (
        None if target is None else Edit("delete_statement", {"statement!": code.of(node)}, target)
    )


def delete_assignment(code: Code) -> Edit | None:
    nodes = [n for n in assignments(code) if len(code.uses(code.of(n.targets[0]))) == 1]
    if not nodes:
        return None
    node = code.rng.choice(nodes)
    target = _without_lines(code, [node])
    return (
        None
        if target is None
        else Edit("delete_assignment", {"name": code.of(node.targets[0])}, target)
    )
