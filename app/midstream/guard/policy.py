"""Which findings stop the model: levels per rule, and what the syntax tree says about arguments.

A linter's security rules are written for reviews; most would stop a stream far too often.  Here a
rule halts only where the text itself shows the danger: a query built from parts that are not
constants, a shell or ``eval`` given something that is no literal, a check switched off.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Mapping
from typing import Final

from midstream.guard.findings import Level
from midstream.guard.flow import dotted
from midstream.guard.injections import given
from midstream.guard.pack import RULES as PACK_RULES
from midstream.guard.queries import Hole
from midstream.guard.secrets import RULES as SECRET_RULES
from midstream.workspace.paths import shown

IDIOMS: Final[Mapping[str, str]] = {
    "S608": "pass the values as query parameters instead of building the SQL string",
    "S610": "pass the values in params instead of building the condition",
    "S602": "call the program with a list of arguments and without shell=True",
    "S604": "call the program with a list of arguments and without shell=True",
    "S605": "use subprocess.run with a list of arguments",
    "S609": "expand the wildcard with glob and pass a list of arguments",
    "S307": "use ast.literal_eval, or parse the value explicitly",
    "S102": "call the function directly instead of executing text",
    "S506": "use yaml.safe_load",
    "S301": "use json for data from outside",
    "S501": "keep certificate verification on (drop verify=False)",
    "S324": "use hashlib.sha256",
    "S303": "use hashlib.sha256",
    "S306": "use tempfile.NamedTemporaryFile",
    "S323": "use ssl.create_default_context",
    "S701": "switch autoescape on",
}
"""The safe way to write it, as the redirect tells the model."""

SECRET_IDIOM: Final = "read the secret from the environment"

NEVER: Final = frozenset(
    {"S101", "S108", "S110", "S112", "S113", "S311", "S603", "S607", "S404", "S403", "S606"}
)
"""Rules that say more about style than about danger; never reported (measured false alarms)."""

_DOORS: Final = frozenset(
    {"input", "raw_input", "argv", "request", "recv", "recvfrom", "urlopen", "b64decode", "stdin"}
    | {"environ", "getenv", "get_json", "cookies", "get_data", "POST", "GET", "COOKIES"}
    | {"query_params", "payload", "raw_body"}
)
"""Names through which outside data enters a program."""
_FIELDS: Final = frozenset(
    {"args", "form", "headers", "body", "params", "values", "files", "content", "data", "json"}
    | {"text", "read", "readline", "get", "recv_bytes", "value"}
)
"""Attributes that hold such data, but only of one of ``_CARRIERS``."""
_CARRIERS: Final = re.compile(
    r"^(?:self\.)?(?:req|resp|response|res|http_?\w*|sock|socket|conn|client|event|msg|message)$"
)


def level_of(code: str, node: ast.AST | None, tree: ast.Module | None) -> Level:
    """The effect of a linter's finding on the stream.

    Args:
        code: The rule.
        node: The expression that the finding is about, if the text could be parsed.
        tree: The module that contains it.
    """
    if code in NEVER:
        return Level.OFF
    if code in _ALWAYS:
        return Level.HALT
    test = _TESTS.get(code)
    return Level.HALT if test is not None and node is not None and test(node, tree) else Level.WARN


def needs_tree(code: str) -> bool:
    """Whether the level of a linter's finding depends on what stands around it."""
    return code in _TESTS


def _constant(node: ast.expr, tree: ast.Module | None) -> bool:
    """A literal, an ALL_CAPS name, or a run of placeholders such as ``", ".join("?" * n)``."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        return node.id.isupper() or _assigned_constant(node.id, tree)
    if isinstance(node, ast.Attribute):
        return node.attr.isupper()
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Mult):
            return _constant(node.left, tree) or _constant(node.right, tree)
        return _constant(node.left, tree) and _constant(node.right, tree)
    if isinstance(node, ast.List | ast.Tuple):
        return all(_constant(item, tree) for item in node.elts)
    if isinstance(node, ast.IfExp):
        return _constant(node.body, tree) and _constant(node.orelse, tree)
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return _constant(node.elt, tree)
    if isinstance(node, ast.JoinedStr):
        fields = [value.value for value in node.values if isinstance(value, ast.FormattedValue)]
        return all(_constant(part, tree) for part in fields)
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name == "join":
            return all(_constant(argument, tree) for argument in node.args)
        return name in ("len", "int", "float", "bool", "range", "repeat")
    return False


def _assigned_constant(name: str, tree: ast.Module | None) -> bool:
    """Whether the name is bound only by plain assignments of constants: no parameter, loop or
    import.
    """
    if tree is None:
        return False
    constant: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _constant(node.value, None):
            constant.update(id(target) for target in node.targets)
        elif isinstance(node, ast.arg) and node.arg == name:
            return False
    bound = [
        id(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    return bool(bound) and all(place in constant for place in bound)


def _first_argument(node: ast.AST) -> ast.expr | None:
    if not isinstance(node, ast.Call):
        return None
    if node.args:
        return node.args[0]
    for keyword in node.keywords:
        if keyword.arg in ("args", "cmd", "command"):
            return keyword.value
    return None


def _shell(node: ast.AST, tree: ast.Module | None) -> bool:
    argument = _first_argument(node)
    return argument is not None and not _constant(argument, tree) and not _fixed(node, tree)


def _fixed(node: ast.AST, tree: ast.Module | None) -> bool:
    """Whether the call's argument has no holes, as far as its names can be followed."""
    pieces = None if tree is None else given(tree).get(id(node))
    return pieces is not None and not any(isinstance(piece, Hole) for piece in pieces)


def _evaluates(node: ast.AST, tree: ast.Module | None) -> bool:
    """Whether ``eval`` or ``exec`` gets something unknown in the caller's own namespace.

    With a namespace of its own it is mostly a template engine or a test tool; then only data that
    visibly comes from outside halts.
    """
    argument = _first_argument(node)
    if argument is None or _constant(argument, tree) or not isinstance(node, ast.Call):
        return False
    if isinstance(argument, ast.Call) and getattr(argument.func, "id", "") in ("compile", "repr"):
        return False
    if _fixed(node, tree):
        return False
    return (len(node.args) == 1 and not node.keywords) or _from_outside(argument, tree)


def _deserializes(node: ast.AST, tree: ast.Module | None) -> bool:
    argument = _first_argument(node)
    return argument is not None and _from_outside(argument, tree)


def _from_outside(node: ast.expr, tree: ast.Module | None) -> bool:
    """Whether the expression mentions a usual source of outside data, directly or by one
    assignment.
    """
    names: set[str] = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Name):
            names.add(child.id)
        elif isinstance(child, ast.Attribute):
            if child.attr in _DOORS:
                return True
            if child.attr in _FIELDS and _CARRIERS.match(dotted(child.value)):
                return True
    if names & _DOORS:
        return True
    if tree is None:
        return False
    return any(
        _from_outside(assignment.value, None)
        for assignment in ast.walk(tree)
        if isinstance(assignment, ast.Assign)
        and any(
            isinstance(target, ast.Name) and target.id in names for target in assignment.targets
        )
    )


_ALWAYS: Final = frozenset({"S501", "S506", "S610"})
"""Rules that always halt: certificate checks off, ``yaml.load`` with an unsafe loader, pieces
of SQL in Django's ``extra`` that are no literals."""

_TESTS: Final[Mapping[str, Callable[[ast.AST, ast.Module | None], bool]]] = {
    "S602": _shell,
    "S604": _shell,
    "S605": _shell,
    "S307": _evaluates,
    "S102": _evaluates,
    "S301": _deserializes,
}
"""Rules that can halt, and when they do; every other reported rule warns."""


def checked_levels(chosen: Mapping[str, object]) -> dict[str, Level]:
    """The user's levels by rule.

    Raises:
        ValueError: A rule or level is unknown; the message names the nearest known one.
    """
    known = sorted({*IDIOMS, *NEVER, *_ALWAYS, *_TESTS, *PACK_RULES, *SECRET_RULES})
    levels: dict[str, Level] = {}
    for rule, level in chosen.items():
        if rule not in known and not re.fullmatch(r"S[1-7]\d\d", rule):
            raise ValueError(f'there is no rule "{shown(rule)}"; {_nearest(rule, known)}')
        if level not in list(Level):
            names = [name.value for name in Level]
            raise ValueError(f'{rule} has no level "{shown(str(level))}"; {_nearest(level, names)}')
        levels[rule] = Level(str(level))
    return levels


def _nearest(word: object, known: list[str]) -> str:
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=0.5)
    return f'did you mean "{near[0]}"?' if near else f"known are {', '.join(known[:12])}."
