"""String-built SQL in Python: queries with holes, where they are built or run.

Walks each function once, in the order of its statements, with what ``flow`` knows about its names.
A query with a hole in the place of a value is reported where it is built, any other only where it
is passed to a database.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from midstream.guard.findings import Level
from midstream.guard.flow import Pieces, Texts, dotted
from midstream.guard.queries import FRAGMENT, Hole, is_statement, judge, text_of

RULE: Final = "S608"
"""The linter's rule for string-built queries, which this module replaces."""

HINT: Final = re.compile(
    r"\b(?:execute\w*|executescript|executemany|exec_driver_sql|mogrify|raw|RawSQL|extra|read_sql\w*|fetch\w*|query|sql)\s*\("
    r"|\b(?:select|insert\s+into|update|delete\s+from|where|values|order\s+by|drop|alter|create|replace\s+into|truncate)\b"
    r"[^\n]*[\"'%{+]",
    re.IGNORECASE,
)
"""Text without a match contains no query."""

_RUNS: Final = frozenset(
    {"execute", "executemany", "executescript", "execute_sql", "exec_driver_sql"}
    | {"execute_query", "mogrify", "executeQuery", "execute_async", "executequery"}
    | {"execute_many", "execute_batch", "execute_values", "exec_sql", "run_sql"}
    | {"execute_and_fetch", "executesql", "runQuery", "runOperation", "RawSQL"}
)
"""Methods that run their argument."""
_MAY_RUN: Final = frozenset(
    {"raw", "text", "read_sql", "read_sql_query", "query", "fetch", "fetchrow", "fetchval"}
    | {"fetchone", "fetch_one", "fetch_all", "fetch_val", "fetchall", "run", "run_query"}
    | {"prepare", "sql", "do", "exec", "select", "cursor", "callproc", "iterate", "extra"}
    | {"all", "get_results", "read_sql_table"}
)
"""Methods that run a query if their argument is one."""
_COMMANDS: Final = frozenset(
    {"system", "popen", "run", "Popen", "call", "check_call", "check_output", "getoutput"}
    | {"eval", "exec", "getstatusoutput", "create_subprocess_shell", "run_command"}
    | {"open_process"}
)
_QUERY_NAMES: Final = (
    *("sql", "query", "statement", "operation", "stmt", "q", "con_query", "where"),
    *("tables", "select"),
)
_PARAMETERS: Final = frozenset(
    {"params", "parameters", "args", "vars", "values", "bindparams", "seq_of_parameters"}
    | {"data", "bind", "multiparams"}
)
_DATABASE: Final = re.compile(
    r"(?:^|[._])(?:c|cc|cx|cr|crsr|cur\w*|cursor\w*|conn\w*|connection\w*|con|db\w*|database|session|engine|sql\w*|pool|tx|trans\w*"
    r"|client|store|mysql|pg\w*|sqlite\w*|dbh|\w*(?:cursor|cur|conn|db|session|engine|database|sql))$",
    re.IGNORECASE,
)
_SAYS: Final = re.compile(
    r"(?:print|debug|info|warn|warning|error|exception|critical|log|echo|\w*(?:Error|Exception))$"
)
"""Calls that only show their arguments."""
_CONDITIONS: Final = frozenset(
    {"filter", "having", "distinct", "where", "group_by", "order_by", "from_statement"}
    | {"literal_column", "TextClause"}
)
"""Methods of query builders that take pieces of SQL."""
_BUILDER: Final = re.compile(r"query|session|select|stmt|statement|sql|db\b", re.IGNORECASE)
_QUERY_VARIABLE: Final = re.compile(r"sql|query|stmt|statement|^q\d?$|cmd|command", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Injection:
    """A query with holes: its expression's place (0-based, half-open) and what it does."""

    line: int
    stop: int
    level: Level


def injections(tree: ast.Module, *, runs: bool = False) -> list[Injection]:
    """The string-built queries of a module, by line, each once.

    Args:
        tree: The module.
        runs: Also report where a query that was reported where it was built is run.
    """
    walk = _Walk(runs=runs)
    walk.body(tree.body, Texts())
    unique = {(found.line, found.stop): found for found in walk.found}
    for found in walk.found:
        if found.level is Level.HALT:
            unique[found.line, found.stop] = found
    return sorted(unique.values(), key=lambda found: found.line)


def given(tree: ast.Module) -> dict[int, Pieces]:
    """Return what the calls of shells and evaluators are given, by the ``id`` of the call."""
    walk = _Walk()
    walk.body(tree.body, Texts())
    return walk.given


class _Walk:
    def __init__(self, *, runs: bool = False) -> None:
        self.found: list[Injection] = []
        self.given: dict[int, Pieces] = {}
        self._runs = runs
        self._told: set[Hole] = set()

    def body(self, body: Sequence[ast.stmt], texts: Texts, *, certain: bool = True) -> None:
        for statement in body:
            self._statement(statement, texts, certain=certain)

    def _statement(self, node: ast.stmt, texts: Texts, *, certain: bool) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inner = Texts(texts)
                for argument in ast.walk(node.args):
                    if isinstance(argument, ast.arg):
                        inner.forget(ast.Name(argument.arg))
                self._told = set()
                self.body(node.body, inner)
                return
            case ast.ClassDef():
                inner = Texts(texts)
                for part in node.body:
                    if isinstance(part, ast.Assign) and len(part.targets) == 1:
                        inner.assign(part.targets[0], part.value, certain=True)
                own = {
                    n: v for n, v in inner.known.items() if "." not in n and n not in texts.known
                }
                for holder in ("self", "cls"):
                    inner.known.update({f"{holder}.{name}": text for name, text in own.items()})
                self.body(node.body, inner)
                return
            case _:
                pass
        for expression in _expressions(node):
            self._look(expression, texts)
        match node:
            case ast.Assign():
                for target in node.targets:
                    texts.assign(target, node.value, certain=certain)
            case ast.AnnAssign(value=ast.expr() as value):
                texts.assign(node.target, value, certain=certain)
            case ast.AugAssign():
                texts.extend(node.target, node.value)
                if isinstance(node.op, ast.Add) and dotted(node.target):
                    self._built(node.target, texts, place=node)
            case ast.Expr(value=ast.Call() as call):
                texts.append(call)
            case ast.For() | ast.AsyncFor():
                texts.loop(node.target, node.iter)
                self.body(node.body, texts, certain=False)
                self.body(node.orelse, texts, certain=False)
            case ast.While():
                self.body(node.body, texts, certain=False)
                self.body(node.orelse, texts, certain=False)
            case ast.If():
                self._branch(node, texts)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars is not None:
                        texts.forget(item.optional_vars)
                self.body(node.body, texts, certain=certain)
            case ast.Try() | ast.TryStar():
                self.body(node.body, texts, certain=certain)
                for handler in node.handlers:
                    self.body(handler.body, texts, certain=False)
                self.body(node.orelse, texts, certain=False)
                self.body(node.finalbody, texts, certain=certain)
            case ast.Match():
                for case in node.cases:
                    self.body(case.body, texts, certain=False)
            case ast.Assert():
                texts.check(node.test, holds=True)
            case _:
                pass

    def _branch(self, node: ast.If, texts: Texts) -> None:
        checked = set(texts.checked)
        texts.check(node.test, holds=True)
        self.body(node.body, texts, certain=False)
        inside = texts.checked - checked
        texts.checked = checked & texts.checked | (checked - inside)
        texts.check(node.test, holds=False)
        self.body(node.orelse, texts, certain=False)
        if not _leaves(node.body):
            texts.checked &= checked
            self._replaced(node, texts)

    @staticmethod
    def _replaced(node: ast.If, texts: Texts) -> None:
        """``if x not in FIXED: x = "other"`` leaves one of a fixed set."""
        outcome = Texts(texts)
        outcome.check(node.test, holds=False)
        for part in node.body:
            if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant):
                names = {dotted(target) for target in part.targets}
                texts.checked |= names & outcome.checked

    # Expressions

    def _look(self, expression: ast.expr, texts: Texts) -> None:
        """Report what an expression runs or builds, outermost first."""
        spent: set[int] = set()
        for node in ast.walk(expression):
            if isinstance(node, ast.Lambda | ast.expr_context) or id(node) in spent:
                continue
            if isinstance(node, ast.Call) and _name_of(node) in _COMMANDS and node.args:
                self.given[id(node)] = texts.read(node.args[0])
            if isinstance(node, ast.Call) and (query := _query_of(node)) is not None:
                self._run(node, query, texts, spent)
            elif isinstance(node, ast.Call) and _SAYS.match(_name_of(node)):
                spent.update(id(part) for each in node.args for part in _said(each))
            elif isinstance(node, ast.BinOp | ast.JoinedStr) or _formats(node):
                assert isinstance(node, ast.expr)
                self._built(node, texts, place=node)
                spent.update(id(child) for child in ast.walk(node))

    def _run(self, call: ast.Call, query: ast.expr, texts: Texts, spent: set[int]) -> None:
        name = _name_of(call)
        pieces = texts.read(query)
        text = text_of(pieces)
        statement = is_statement(pieces)
        certain = name in _RUNS or (name.startswith("fetch") and _on_database(call))
        if name in _CONDITIONS:
            level = judge(pieces, executed=False, parameters=False)
            direct = isinstance(query, ast.BinOp | ast.JoinedStr) or _formats(query)
            if level is Level.HALT and direct and _BUILDER.search(ast.unparse(call.func)):
                spent.update(id(child) for child in ast.walk(query))
                self._report(query, pieces, level, place=query)
            return
        if not statement:
            if not (certain and (FRAGMENT.search(text) or self._formatted(query, call))):
                return
            if not _on_database(call) and not FRAGMENT.search(text):
                return
        if isinstance(query, ast.Name | ast.Attribute) and _bare(pieces):
            return
        level = judge(pieces, executed=True, parameters=_has_parameters(call))
        spent.update(id(child) for child in ast.walk(query))
        self._report(query, pieces, level, place=call if query.lineno == call.lineno else query)

    def _formatted(self, query: ast.expr, call: ast.Call) -> bool:
        """An unknown text is completed in the very call that runs it: ``execute(query % name)``."""
        if isinstance(query, ast.BinOp) and isinstance(query.op, ast.Mod | ast.Add):
            left = query.left
            while isinstance(left, ast.BinOp):
                left = left.left
            return _on_database(call) or bool(_QUERY_VARIABLE.search(dotted(left)))
        return _formats(query) and _on_database(call)

    def _built(self, node: ast.expr, texts: Texts, *, place: ast.expr | ast.stmt) -> None:
        pieces = texts.read(node)
        if is_statement(pieces):
            self._report(
                place, pieces, judge(pieces, executed=False, parameters=False), place=place
            )

    def _report(
        self,
        node: ast.expr | ast.stmt,
        pieces: Pieces,
        level: Level | None,
        *,
        place: ast.expr | ast.stmt,
    ) -> None:
        if level is None:
            return
        holes = {piece for piece in pieces if isinstance(piece, Hole)}
        direct = not isinstance(node, ast.Name | ast.Attribute)
        if not direct and holes <= self._told and not self._runs:
            return  # It was reported where it was built.
        if level is Level.HALT:
            self._told |= holes
        self.found.append(Injection(place.lineno - 1, place.end_lineno or place.lineno, level))


def _expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement itself, without those of nested statements."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr):
            yield part
        elif isinstance(part, ast.withitem):
            yield part.context_expr


def _bare(pieces: Pieces) -> bool:
    return len(pieces) == 1 and isinstance(pieces[0], Hole)


def _said(node: ast.expr) -> Iterator[ast.AST]:
    """The parts of a text that is only shown; none if it contains a call that runs a query."""
    if isinstance(node, ast.BinOp | ast.JoinedStr) or _formats(node):
        parts = list(ast.walk(node))
        if not any(isinstance(part, ast.Call) and _name_of(part) in _RUNS for part in parts):
            yield from parts


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise | ast.Return | ast.Continue | ast.Break)


def _formats(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr
        in ("format", "join", "format_map", "substitute", "safe_substitute", "replace")
    )


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)


def _query_of(call: ast.Call) -> ast.expr | None:
    """The argument that may be a query, if the call runs queries."""
    name = _name_of(call)
    if name not in _RUNS and name not in _MAY_RUN and name not in _CONDITIONS:
        return None
    for keyword in call.keywords:
        if keyword.arg in _QUERY_NAMES:
            return keyword.value
    if name in ("execute_batch", "execute_values", "execute_async") and len(call.args) > 1:
        return call.args[1]
    return call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None


def _on_database(call: ast.Call) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute):
        return True
    holder = function.value
    while isinstance(holder, ast.Call | ast.Subscript | ast.Await):
        holder = holder.func if isinstance(holder, ast.Call) else holder.value
    return bool(_DATABASE.search(dotted(holder) or ""))


def _has_parameters(call: ast.Call) -> bool:
    rest = call.args[1:]
    named = [keyword.value for keyword in call.keywords if keyword.arg in _PARAMETERS]
    return any(
        not (isinstance(value, ast.Constant) and value.value is None)
        and not (isinstance(value, ast.Tuple | ast.List) and not value.elts)
        for value in (*rest, *named)
    )
