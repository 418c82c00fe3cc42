"""String formatting: `%` and `.format` become f-strings."""

from __future__ import annotations

import ast
import re

from models.training.code import Code, Edit
from models.training.tasks_shared import insertion_place, sentence


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


_SHAPES = [
    *("{}", "{}", "{}", "{}", "{}", "{}", "len({})", "self.{}", "{}.name", "str({})", "{}[0]"),
    *("{}.{n}()", "type({}).__name__", "self.{}.{n}", "{}[{n}]", "{n}({})"),
]
_MORE_SHAPES = ["{} + 1", "{} - {n}", "len({}) - 1", "{} or {n}", "{n}({}, 2)"]
_SIGNS = [": ", "=", "/", "(", ")", " - ", ".", ", ", "[", "]", "<", ">", " ", "_", ":", "#", "-> "]


def _fstring_made_up(code: Code) -> Edit | None:
    """Put one formatted string, or some, into a body, before the edit and after it."""
    rng = code.rng
    if code.natural or rng.random() < 0.6 or re.search(r"%[sdr]|\.format\(", code.text):
        return None
    old: dict[int, str] = {}
    new: dict[int, str] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        lines = _made_up(code)
        if lines is None:
            continue
        at, pad = insertion_place(code)
        old[at] = old.get(at, "") + f"{pad}{lines[0]}\n"
        new[at] = new.get(at, "") + f"{pad}{lines[1]}\n"
    if not old:
        return None
    source, target = (
        code.splice([(at, at, text) for at, text in side.items()]) for side in (old, new)
    )
    return Edit("fstring", {}, target, source)


def _text(code: Code, values: list[str]) -> str:
    """Return a text with a zero character for each value: words, or hardly more than signs."""
    rng = code.rng
    if rng.random() < 0.6:
        pieces = sentence(code).rstrip(".").split(" ")
        for _ in values:
            pieces.insert(rng.randrange(len(pieces) + 1), "\0")
        return " ".join(pieces)
    pieces = [rng.choice(["", "", rng.choice(code.names), rng.choice(_SIGNS)])]
    for _ in values:
        words = [rng.choice(_SIGNS), rng.choice(_SIGNS), rng.choice(code.names), ""]
        pieces += ["\0", rng.choice(words), rng.choice(["", "", rng.choice(words)])]
    return "".join(pieces)


def _made_up(code: Code) -> tuple[str, str] | None:
    """Return a made-up line with a formatted string, and the same with an f-string."""
    rng = code.rng
    count = rng.choice((1, 1, 1, 2, 2, 3))
    atoms = sorted({n.id for n in code.all(ast.Name)} - {"print", "super"})
    if not atoms:
        return None
    shapes = _SHAPES + (_MORE_SHAPES if rng.random() < 0.3 else [])
    values = [
        rng.choice(shapes).replace("{n}", rng.choice(code.names)).format(rng.choice(atoms))
        for _ in range(count)
    ]
    quote = rng.choice('""\'')
    text = _text(code, values)
    if quote in text or "%" in text or "{" in text or not text.replace("\0", ""):
        return None
    if rng.random() < 0.25:
        return _joined(code, text.split("\0"), values, quote)
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
        simple = count == 1 and re.fullmatch(r"[\w.]+(\([^()]*\)|\[\w+\])*", values[0])
        old += f" % {values[0]}" if simple else f" % ({', '.join(values)}{',' * (count == 1)})"
    else:
        old += f".format({', '.join(values)})"
    return _framed(code, old, new)


def _joined(code: Code, parts: list[str], values: list[str], quote: str) -> tuple[str, str] | None:
    """Join pieces of text and values by +, and the same as an f-string."""
    old: list[str] = []
    new = ""
    for k, part in enumerate(parts):
        if part:
            old.append(quote + part + quote)
            new += part
        if k < len(values):
            value = values[k]
            if " " in value or "(" in value:
                return None
            old.append(f"str({value})" if code.rng.random() < 0.5 else value)
            new += "{" + value + "}"
    if len(old) < 2 or not any(part[0] in "\"'" for part in old):
        return None
    return _framed(code, " + ".join(old), f"f{quote}{new}{quote}")


_FRAMES = (
    *("print({})", "print({})", "{n} = {}", "{n} = {}", "{n} = {}", "raise ValueError({})"),
    *("raise {E}({})", "raise {E}({}) from {n}", "return {}", "logger.info({})", "self.{n} = {}"),
    *("{n}({})", "{n}.append({})", "{n} += {}", "assert {n}, {}", "assert {n}({m}), {}"),
    *("{n} = {}.strip()", "{n}[{}] = {m}", "print({}, {n})", "{n}({}, {m}={n})", "{n}({m}, {})"),
    *("{n} = {}.encode({m})", "self.{n}({}, {m})", "return {}, {n}", "{n} = [{}, {m}]"),
    *("{n} = ', '.join({} for {m} in {n})", "{n} = {n}.{m}({})", "yield {}", "warnings.warn({})"),
    *("{n} = {} if {m} else None", "{n} = {m} == {}", "{n} = ({})"),
)


def _framed(code: Code, old: str, new: str) -> tuple[str, str]:
    """Return a made-up line around a string, before the edit and after it."""
    rng = code.rng
    # A method of the text: of all of it where .format() ends it, else of its last part only.
    frame = rng.choice(
        [f for f in _FRAMES if "{}." not in f or (old.endswith(")") and ".f" in old)]
    )
    error = rng.choice(("TypeError", "RuntimeError", "KeyError", "ValueError", "OSError"))
    for mark, name in (
        ("{n}", rng.choice(code.names)),
        ("{m}", rng.choice(code.names)),
        ("{E}", error),
    ):
        frame = frame.replace(mark, name)
    source, target = (frame.replace("{}", part) for part in (old, new))
    return source, target


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
