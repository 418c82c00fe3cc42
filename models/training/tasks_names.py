"""Edits that change names, signatures, decorators and annotations."""

from __future__ import annotations

import ast
import re

from models.training.code import Code, Edit, Function
from models.training.tasks_shared import described_parameter
from models.training.wordings import table

DEFAULTS = [
    "None",
    "None",
    "None",
    "True",
    "False",
    "False",
    "0",
    "1",
    '""',
    "''",
    "10",
    "[]",
    "()",
    "{}",
    "-1",
    "100",
    "30",
    "0.5",
    "1.0",
    "5",
    "'utf-8'",
    '"r"',
    "3",
    "60",
    "1024",
    "DEFAULT_TIMEOUT",
    "0.1",
    "2",
]
DECORATORS = [
    "property",
    "staticmethod",
    "classmethod",
    "functools.wraps(func)",
    "functools.lru_cache",
    "lru_cache",
    "lru_cache(maxsize=None)",
    "functools.lru_cache(maxsize=128)",
    "cached_property",
    "functools.cached_property",
    "cache",
    "functools.cache",
    "override",
    "abstractmethod",
    "abc.abstractmethod",
    "contextmanager",
    "contextlib.contextmanager",
    "pytest.fixture",
    "pytest.mark.slow",
    'pytest.mark.parametrize("n", [1, 2])',
    "login_required",
    "app.route('/')",
    'app.route("/users")',
    "final",
    "overload",
    "retry(times=3)",
    "retry",
    "deprecated",
    "timed",
    "log_calls",
    "wraps(fn)",
    "singledispatch",
    "dataclass",
    "dataclass(frozen=True)",
    "no_type_check",
    "typing.final",
    "asynccontextmanager",
    "profile",
    "click.command()",
    "click.option('--name')",
    "router.get('/')",
    "task",
    "celery.task",
    "validator",
    "numba.njit",
    "jit",
]


def _check_gone(target: str, name: str) -> None:
    for node in ast.walk(ast.parse(target)):
        if (isinstance(node, ast.Name) and node.id == name) or (
            isinstance(node, ast.arg) and node.arg == name
        ):
            raise ValueError("the old name is still there")


def _chosen_name(code: Code, names: list[str]) -> str:
    """Choose a name; often one that also stands where a rename must not follow it (an attribute, a
    keyword, a word of a string).
    """
    if code.rng.random() < 0.4:
        hard = [n for n in names if len(re.findall(rf"\b{n}\b", code.text)) > len(code.uses(n))]
        names = hard or names
    return code.rng.choice(names)


def rename_local(code: Code) -> Edit | None:
    parameters = {a.arg for a in code.all(ast.arg)}
    stored = {n.id for n in code.all(ast.Name) if isinstance(n.ctx, ast.Store)} - parameters
    stored = {
        n
        for n in stored
        if n not in ("self", "cls", "_", "__all__") and not code.bound_elsewhere(n)
    }
    if not stored:
        return None
    old = _chosen_name(code, sorted(stored))
    new = code.new_name(old)
    target = code.swap_words(code.uses(old), new)
    _check_gone(target, old)
    values = {"old": old, "new": new}
    loops = code.all(ast.For)
    if len(loops) == 1 and code.of(loops[0].target) == old:
        values["described"] = code.rng.choice(["loop variable", "loop var", "variable of the loop"])
    elif len(stored) == 1:
        values["described"] = code.rng.choice(["local variable", "only variable", "variable"])
    return Edit("rename_local", values, target)


def rename_parameter(code: Code) -> Edit | None:
    parameters = [a.arg for a in code.parameters() if not code.bound_elsewhere(a.arg)]
    if not parameters:
        return None
    old = _chosen_name(code, parameters)
    new = code.new_name(old)
    target = code.swap_words(code.uses(old), new)
    _check_gone(target, old)
    values = {"old": old, "new": new, "described": described_parameter(code, old)}
    return Edit("rename_parameter", values, target)


def rename_function(code: Code) -> Edit | None:
    fn = code.fn
    if fn is None or fn.name.startswith("__"):
        return None
    new = code.new_name(fn.name)
    at = code.text.index(fn.name, code.line_start(fn.lineno) + 3)
    spans = [(at, fn.name), *code.uses(fn.name)]
    for node in code.all(ast.Attribute):
        if (
            node.attr == fn.name
            and isinstance(node.value, ast.Name)
            and node.value.id in ("self", "cls")
        ):
            spans.append((code.end(node) - len(fn.name), fn.name))
    return Edit("rename_function", {"old": fn.name, "new": new}, code.swap_words(spans, new))


def rename_attribute(code: Code) -> Edit | None:
    owned = [
        n
        for n in code.all(ast.Attribute)
        if isinstance(n.value, ast.Name) and n.value.id == "self" and not n.attr.startswith("__")
    ]
    if not owned:
        return None
    old = code.rng.choice(owned).attr
    everywhere = [n for n in code.all(ast.Attribute) if n.attr == old]
    mine = [n for n in owned if n.attr == old]
    if len(everywhere) != len(mine):
        return None
    new = code.new_name(old)
    target = code.swap_words([(code.end(n) - len(old), old) for n in mine], new)
    values = {"old": old, "new": new, "dotted": f"self.{old}", "newdotted": f"self.{new}"}
    return Edit("rename_attribute", values, target)


def replace_name(code: Code) -> Edit | None:
    spans: dict[str, list[tuple[int, str]]] = {}
    for node in code.all(ast.Call):
        func = node.func
        if isinstance(func, ast.Name):
            spans.setdefault(func.id, [])
        elif isinstance(func, ast.Attribute):
            spans.setdefault(func.attr, [])
    spans.pop(code.fn.name if code.fn else "", None)
    if not spans:
        return None
    old = code.rng.choice(sorted(spans))
    for node in code.nodes:
        if isinstance(node, ast.Attribute) and node.attr == old:
            spans[old].append((code.end(node) - len(old), old))
    spans[old] += code.uses(old)
    if code.bound_elsewhere(old):
        return None
    new = code.new_name(old)
    return Edit("replace_name", {"old": old, "new": new}, code.swap_words(spans[old], new))


ERRORS = [
    "ValueError",
    "TypeError",
    "KeyError",
    "RuntimeError",
    "OSError",
    "IndexError",
    "AttributeError",
    "LookupError",
    "NotImplementedError",
    "Exception",
    "FileNotFoundError",
    "PermissionError",
    "ConnectionError",
    "TimeoutError",
    "ZeroDivisionError",
    "ImportError",
    "ConfigError",
    "ParseError",
    "ValidationError",
    "UserError",
    "StopIteration",
]


def replace_exception(code: Code) -> Edit | None:
    raised = set[str]()
    for node in code.all(ast.Raise):
        exc = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if isinstance(exc, ast.Name) and exc.id[:1].isupper():
            raised.add(exc.id)
    if len(raised) != 1:
        return None
    old = raised.pop()
    new = (
        code.rng.choice(ERRORS)
        if code.rng.random() < 0.7
        else code.rng.choice(code.names).title().replace("_", "") + "Error"
    )
    if new in code.atoms:
        return None
    return Edit("replace_exception", {"old": old, "new": new}, code.swap_words(code.uses(old), new))


def _insert_parameter(code: Code, text: str, *, has_default: bool) -> str | None:
    fn = code.fn
    if fn is None:
        return None
    spec = fn.args
    begin, end = code.parameter_span()
    inside = code.text[begin:end]
    if spec.posonlyargs or spec.kwonlyargs:
        return None
    if spec.vararg or spec.kwarg:
        first = spec.vararg or spec.kwarg
        assert first is not None
        if spec.vararg and has_default:
            return None
        at = code.start(first) - (1 if spec.vararg else 2)
        return code.splice([(at, at, text + ", ")])
    if spec.defaults and not has_default:
        return None
    if not inside.strip():
        return code.splice([(begin, end, text)])
    at = begin + len(inside.rstrip())
    if inside.rstrip().endswith(","):
        if "\n" in inside.strip():
            last = inside.rstrip().split("\n")[-1]
            lead = last[: len(last) - len(last.lstrip())]
            return code.splice([(at, at, f"\n{lead}{text},")]) if lead else None
        return code.splice([(at, at, f" {text},")])
    return code.splice([(at, at, f", {text}")])


def add_parameter(code: Code) -> Edit | None:
    name, value = code.new_name(), code.rng.choice(DEFAULTS)
    if code.rng.random() < 0.15:
        value = code.new_name().upper()
    target = _insert_parameter(code, f"{name}={value}", has_default=True)
    if target is None:
        return None
    return Edit("add_parameter", {"name": name, "value!": value, "sig!": f"{name}={value}"}, target)


def add_parameter_plain(code: Code) -> Edit | None:
    name = code.new_name()
    target = _insert_parameter(code, name, has_default=False)
    return None if target is None else Edit("add_parameter_plain", {"name": name}, target)


def remove_parameter(code: Code) -> Edit | None:
    fn = code.fn
    if fn is None or fn.args.posonlyargs:
        return None
    begin, end = code.parameter_span()
    parameters = [a for a in code.parameters() if len(code.uses(a.arg)) == 1]
    inside = code.text[begin:end]
    if not parameters or "\n" in inside:
        return None
    parts, depth, last = list[str](), 0, 0
    for k, ch in enumerate(inside):
        depth += (ch in "([{") - (ch in ")]}")
        if ch == "," and not depth:
            parts.append(inside[last:k])
            last = k + 1
    parts.append(inside[last:])
    old = code.rng.choice(parameters)
    at = code.start(old) - begin
    kept, position = list[str](), 0
    for part in parts:
        if not position <= at < position + len(part) + 1:
            kept.append(part)
        position += len(part) + 1
    if len(kept) != len(parts) - 1:
        return None
    text = ",".join(kept)
    text = text[len(text) - len(text.lstrip()) :] if not inside[:1].isspace() else text
    if text.strip() in ("*", "self, *"):
        return None
    values = {"name": old.arg, "described": described_parameter(code, old.arg)}
    return Edit("remove_parameter", values, code.splice([(begin, end, text)]))


def change_default(code: Code) -> Edit | None:
    fn = code.fn
    if fn is None or not fn.args.defaults:
        return None
    named = [*fn.args.posonlyargs, *fn.args.args]
    pairs = list(zip(named[-len(fn.args.defaults) :], fn.args.defaults, strict=True))
    arg, default = code.rng.choice(pairs)
    old, new = code.of(default), code.rng.choice(DEFAULTS)
    if old == new or len(old) > 20 or "\n" in old:
        return None
    target = code.splice([(code.start(default), code.end(default), new)])
    values = {"name": arg.arg, "value!": new, "old!": old}
    if arg.arg not in ("self", "cls"):
        values["described"] = described_parameter(code, arg.arg)
    return Edit("change_default", values, target)


def add_decorator(code: Code) -> Edit | None:
    fn = code.fn
    if fn is None:
        return None
    name = code.rng.choice(DECORATORS)
    if code.rng.random() < 0.3:
        name = code.rng.choice(code.names) + code.rng.choice(
            ["", "", "()", ".register", "(name='x')"]
        )
    if any(code.of(d) == name for d in fn.decorator_list):
        return None
    text = name if code.rng.random() < 0.35 else "@" + name
    return Edit("add_decorator", {"decorator!": text, "name": fn.name}, f"@{name}\n{code.text}")


def remove_decorator(code: Code) -> Edit | None:
    fn = code.fn
    if fn is None or not fn.decorator_list:
        return None
    node = code.rng.choice(fn.decorator_list)
    if node.lineno != node.end_lineno:
        return None
    name = code.of(node)
    if code.rng.random() < 0.5:
        name = name.split("(")[0]
    text = name if code.rng.random() < 0.4 else "@" + name
    target = code.splice([(code.line_start(node.lineno), code.line_start(node.lineno + 1), "")])
    return Edit("remove_decorator", {"decorator!": text}, target)


def remove_decorators(code: Code) -> Edit | None:
    fn = code.fn
    if fn is None or not fn.decorator_list:
        return None
    first = min(d.lineno for d in fn.decorator_list)
    return Edit(
        "remove_decorators",
        {},
        code.splice([(code.line_start(first), code.line_start(fn.lineno), "")]),
    )


def made_up_type(code: Code) -> tuple[str, str]:
    """Return a type and how a person may name it."""
    types = table("type")
    rng = code.rng
    if rng.random() < 0.2:
        name = rng.choice(code.names).title().replace("_", "")
        return name, name
    kind = rng.choice(sorted(types))
    if rng.random() < 0.4:
        return kind, kind
    return kind, rng.choice(types[kind])


def insert_hint(code: Code, arg: ast.arg, kind: str) -> tuple[int, int, str] | None:
    """Return the change that annotates a parameter, None where its default is oddly spaced."""
    fn = code.fn
    assert fn is not None
    spec = fn.args
    positional = [*spec.posonlyargs, *spec.args]
    with_default = dict(
        zip(
            [a.arg for a in positional[len(positional) - len(spec.defaults) :]],
            spec.defaults,
            strict=True,
        )
    )
    with_default |= {
        a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None
    }
    at, default = code.end(arg), with_default.get(arg.arg)
    if default is None:
        return at, at, f": {kind}"
    if code.text[at : code.start(default)] != "=":
        return None
    return at, code.start(default), f": {kind} = "


def add_hint(code: Code) -> Edit | None:
    bare = [a for a in code.parameters() if a.annotation is None]
    if code.fn is None or not bare:
        return None
    arg = code.rng.choice(bare)
    kind, words = made_up_type(code)
    change = insert_hint(code, arg, kind)
    if change is None:
        return None
    exact = "type!" if words == kind else "type"
    values = {"name": arg.arg, exact: words, "described": described_parameter(code, arg.arg)}
    return Edit("add_hint", values, code.splice([change]))


def add_return_hint(code: Code) -> Edit | None:
    fn = code.fn
    if fn is None or fn.returns is not None:
        return None
    kind, words = made_up_type(code)
    _, end = code.parameter_span()
    if code.text[end : end + 2] != "):":
        return None
    exact = "type!" if words == kind else "type"
    return Edit("add_return_hint", {exact: words}, code.splice([(end + 1, end + 1, f" -> {kind}")]))


def remove_hints(code: Code) -> Edit | None:
    fn = code.fn
    if fn is None or code.all(ast.AnnAssign):
        return None
    changes: list[tuple[int, int, str]] = []
    spec = fn.args
    positional = [*spec.posonlyargs, *spec.args]
    defaults = dict(
        zip(
            [a.arg for a in positional[len(positional) - len(spec.defaults) :]],
            spec.defaults,
            strict=True,
        )
    )
    defaults |= {
        a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None
    }
    for node in code.nodes:
        if isinstance(node, Function) and node is not fn:
            return None
    for arg in [*positional, *spec.kwonlyargs, spec.vararg, spec.kwarg]:
        if arg is None or arg.annotation is None:
            continue
        begin = code.start(arg) + len(arg.arg)
        default = defaults.get(arg.arg)
        changes.append(
            (begin, code.end(arg), "") if default is None else (begin, code.start(default), "=")
        )
    if fn.returns is not None:
        end = code.text.rindex(")", 0, code.start(fn.returns))
        changes.append((end + 1, code.end(fn.returns), ""))
    return Edit("remove_hints", {}, code.splice(changes)) if changes else None


def make_async(code: Code) -> Edit | None:
    fn = code.fn
    if not isinstance(fn, ast.FunctionDef) or code.rng.random() < 0.3:
        return None
    at = code.line_start(fn.lineno)
    return Edit("make_async", {"name": fn.name}, code.splice([(at, at, "async ")]))


def make_sync(code: Code) -> Edit | None:
    fn = code.fn
    if not isinstance(fn, ast.AsyncFunctionDef):
        return None
    if (
        code.all(ast.AsyncFor)
        or code.all(ast.AsyncWith)
        or any(c.is_async for c in code.all(ast.comprehension))
    ):
        return None
    at = code.line_start(fn.lineno)
    changes = [(at, at + len("async "), "")]
    for node in code.all(ast.Await):
        if code.text[code.start(node) : code.start(node.value)] != "await ":
            return None
        changes.append((code.start(node), code.start(node.value), ""))
    return Edit("make_sync", {"name": fn.name}, code.splice(changes))


def optional_union(code: Code) -> Edit | None:
    changes: list[tuple[int, int, str]] = []
    for node in code.all(ast.BinOp):
        if (
            isinstance(node.op, ast.BitOr)
            and isinstance(node.right, ast.Constant)
            and node.right.value is None
        ):
            if isinstance(node.left, ast.BinOp):
                return None
            changes.append((code.start(node), code.end(node), f"Optional[{code.of(node.left)}]"))
    if changes:
        return Edit("optional_union", {}, code.text, code.splice(changes))
    for node in code.all(ast.Subscript):
        if isinstance(node.value, ast.Name) and node.value.id == "Optional":
            changes.append((code.start(node), code.end(node), f"{code.of(node.slice)} | None"))
    return Edit("optional_union", {}, code.splice(changes)) if changes else None
