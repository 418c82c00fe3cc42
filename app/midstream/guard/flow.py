"""How strings are built in a Python function: which part of a text is known and which is a hole.

Follows assignments statement by statement and reads every way in which Python builds text.  It
never guesses across functions: a parameter, call or attribute without a known value is a hole,
unless it can only be a number, an escaped text or one of a fixed set.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Final

from midstream.guard.queries import Hole, Piece

Pieces = tuple[Piece, ...]

_SAFE_CALLS: Final = frozenset(
    {"int", "float", "len", "bool", "round", "abs", "ord", "hash", "id", "sum", "Decimal", "time"}
    | {"hexdigest", "isoformat", "timestamp", "toordinal", "count", "uuid4", "uuid1", "randint"}
    | {"mogrify", "SQL", "Identifier", "Literal", "Placeholder", "total_seconds"}
)
_ESCAPES: Final = re.compile(
    r"escape|quote|literal|sanitiz|placeholder|whitelist|allowlist|identifier|adapt$|slugify|secure_filename",
    re.IGNORECASE,
)
_MARKS: Final = re.compile(r"placeholders?$|qmarks?$|escaped|quoted|sanitized", re.IGNORECASE)
"""Names of texts that contain placeholders for parameters, or that were escaped."""
_SAME_TEXT: Final = frozenset(
    {"strip", "lstrip", "rstrip", "lower", "upper", "encode", "decode", "title", "dedent", "str"}
    | {"unicode", "text", "raw", "expandtabs", "casefold", "cleandoc", "text_type", "ensure_text"}
)
_CHECKS: Final = frozenset(
    {"isidentifier", "isalnum", "isdigit", "isdecimal", "isnumeric", "isalpha"}
    | {"match", "fullmatch"}
)
_CARRIERS: Final = frozenset(
    {"GET", "POST", "PUT", "PATCH", "DELETE", "COOKIES", "META", "FILES", "REQUEST", "QUERY"}
    | {"ARGS", "FORM", "HEADERS", "PARAMS", "BODY", "DATA", "INPUT"}
)
"""Names in capitals that hold outside data and are no constants."""
_FIELD: Final = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}:!]*)(?:![rsa])?(?P<spec>:[^{}]*)?\}")
_PERCENT: Final = re.compile(
    r"%%|%(?:\((?P<name>[^)]*)\))?[-+# 0]*(?:\*|\d+)?(?:\.\d+)?(?P<kind>[a-zA-Z])"
)
_MAX_DEPTH: Final = 60
"""Nested expressions that are read; what lies deeper is a hole."""
_MAX_PIECES: Final = 400
"""Pieces of a text that are kept; the rest is cut."""


class Texts:
    """What is known about the names of a scope, starting from the scope around it (``outer``)."""

    def __init__(self, outer: Texts | None = None) -> None:
        self.known: dict[str, Pieces] = {} if outer is None else dict(outer.known)
        self.lists: dict[str, Pieces] = {} if outer is None else dict(outer.lists)
        self.checked: set[str] = set() if outer is None else set(outer.checked)
        self._depth = 0

    # Statements

    def assign(self, target: ast.expr, value: ast.expr, *, certain: bool) -> None:
        """``target = value``; where it is not certain to run, the worse of both values stays."""
        if isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else ()
            for number, part in enumerate(target.elts):
                if number < len(values) and len(values) == len(target.elts):
                    self.assign(part, values[number], certain=certain)
                else:
                    self.forget(part)
            return
        name = dotted(target)
        if not name:
            return
        elements = None if isinstance(value, ast.Constant) else self._elements(value)
        text = self.read(value)
        self.checked.discard(name)
        before = self.known.get(name)
        if certain or before is None or _holes(text) > _holes(before):
            self.known[name] = text
        if elements is None:
            self.lists.pop(name, None)
        elif certain or name not in self.lists or _holes(elements) > _holes(self.lists[name]):
            self.lists[name] = elements

    def extend(self, target: ast.expr, value: ast.expr) -> None:
        """``target += value``."""
        name = dotted(target)
        if name in self.lists:
            self.lists[name] = _limited(
                self.lists[name] + (self._elements(value) or self.read(value))
            )
        elif name:
            self.known[name] = _limited(self.read(target) + self.read(value))

    def append(self, call: ast.Call) -> None:
        """``name.append(value)`` and its like on a list that is followed."""
        function = call.func
        if not isinstance(function, ast.Attribute) or not call.args:
            return
        name = dotted(function.value)
        if name not in self.lists:
            return
        if function.attr in ("append", "insert", "add", "appendleft"):
            self.lists[name] = _limited(self.lists[name] + self.read(call.args[-1]))
        elif function.attr == "extend":
            value = call.args[0]
            self.lists[name] = _limited(
                self.lists[name] + (self._elements(value) or self.read(value))
            )

    def loop(self, target: ast.expr, iterable: ast.expr) -> None:
        """``for target in iterable``: one of a fixed set is no hole."""
        elements = self._elements(iterable)
        name = dotted(target)
        if name and elements is not None:
            self.known[name] = elements
            self.checked.discard(name)
        else:
            self.forget(target)

    def forget(self, target: ast.expr) -> None:
        """``target`` is bound to something unknown."""
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self.known.pop(node.id, None)
                self.lists.pop(node.id, None)
                self.checked.discard(node.id)

    def check(self, test: ast.expr, *, holds: bool) -> None:
        """A test of a name against a fixed set or a form is known to hold, or not to."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.check(test.operand, holds=not holds)
        elif isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) == holds:
                for part in test.values:
                    self.check(part, holds=holds)
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            wanted = (ast.In, ast.Eq) if holds else (ast.NotIn, ast.NotEq)
            fixed = isinstance(test.ops[0], ast.In | ast.NotIn) or isinstance(
                test.comparators[0], ast.Constant
            )
            if isinstance(test.ops[0], wanted) and fixed and (name := dotted(test.left)):
                self.checked.add(name)
        elif holds and isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute):
            if test.func.attr in _CHECKS:
                name = dotted(test.args[-1]) if test.args else dotted(test.func.value)
                if name:
                    self.checked.add(name)
        elif holds and isinstance(test, ast.Call) and dotted(test.func) == "isinstance":
            subject, kind = ([*map(dotted, test.args), "", ""])[:2]
            if kind in ("int", "float", "bool"):
                self.checked.add(subject)

    # Expressions

    def read(self, node: ast.expr) -> Pieces:
        """Return the text that an expression stands for, with its holes."""
        if self._depth > _MAX_DEPTH:
            return (Hole("…"),)
        self._depth += 1
        try:
            return _limited(self._read(node))
        finally:
            self._depth -= 1

    def _read(self, node: ast.expr) -> Pieces:
        match node:
            case ast.Constant(value=value):
                text = value.decode("latin-1") if isinstance(value, bytes) else value
                return (text if isinstance(text, str) else repr(text),)
            case ast.JoinedStr():
                return self._format_string(node)
            case ast.BinOp(op=ast.Add()):
                return self.read(node.left) + self.read(node.right)
            case ast.BinOp(op=ast.Mod()):
                return self._percent(node)
            case ast.BinOp(op=ast.Mult()):
                text, other = self.read(node.left), node.right
                if not _is_text(node.left):
                    text, other = self.read(node.right), node.left
                return text if _is_text(node.left) or _is_text(node.right) else self._hole(other)
            case ast.BinOp(op=ast.Sub() | ast.Div() | ast.FloorDiv() | ast.Pow()):
                return ("0",)
            case ast.Name() | ast.Attribute():
                return self._name(node)
            case ast.IfExp():
                return self._worse(self.read(node.body), self.read(node.orelse))
            case ast.BoolOp():
                texts = [self.read(value) for value in node.values]
                return max(texts, key=_holes)
            case ast.NamedExpr() | ast.Await() | ast.Starred():
                return self.read(node.value)
            case ast.Compare():
                return ("1",)
            case ast.Subscript():
                return self._item(node.value) or self._hole(node)
            case ast.Call():
                return self._call(node)
            case ast.List() | ast.Tuple() | ast.ListComp() | ast.GeneratorExp():
                return self._elements(node) or ()
            case _:
                return self._hole(node)

    def _name(self, node: ast.expr) -> Pieces:
        name = dotted(node)
        if name in self.checked:
            return ("checked",)
        if name in self.known:
            return self.known[name]
        last = name.rsplit(".", 1)[-1]
        if _is_constant(last) or _MARKS.search(last):
            return ("CONSTANT",)
        return self._hole(node)

    def _hole(self, node: ast.expr) -> Pieces:
        source = dotted(node) or ast.unparse(node)[:80]
        own = source.startswith(("self.", "cls.", "type(self)", "self.__class__")) or (
            "_meta." in source or source.endswith((".__tablename__", ".__name__"))
        )
        return (Hole(source, own),)

    @staticmethod
    def _worse(one: Pieces, other: Pieces) -> Pieces:
        return one if _holes(one) >= _holes(other) else other

    def _item(self, holder: ast.expr) -> Pieces | None:
        """One of the values of a fixed table or of a list that is followed."""
        if isinstance(holder, ast.Dict):
            texts = [piece for value in holder.values for piece in self.read(value)]
            return tuple(texts) if not _holes(texts) else None
        if isinstance(holder, ast.List | ast.Tuple):
            return self._elements(holder)
        name = dotted(holder)
        if name in self.lists:
            return self.lists[name]
        return ("CONSTANT",) if _is_constant(name.rsplit(".", 1)[-1]) else None

    def _elements(self, node: ast.expr) -> Pieces | None:
        """All elements of a sequence taken together; None if it is no sequence."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return tuple(piece for item in node.elts for piece in self.read(item))
        if isinstance(node, ast.Dict):
            texts = tuple(piece for value in node.values for piece in self.read(value))
            keys = tuple(piece for key in node.keys if key is not None for piece in self.read(key))
            return _limited(texts + keys)
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            inner = Texts(self)
            for part in node.generators:
                inner.loop(part.target, part.iter)
                for test in part.ifs:
                    inner.check(test, holds=True)
            return inner.read(node.elt)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return (node.value,)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add):
            left, right = self._elements(node.left), self._elements(node.right)
            if isinstance(node.op, ast.Mult):
                return left if left is not None else right
            return None if left is None or right is None else left + right
        if isinstance(node, ast.Call):
            name = dotted(node.func).rsplit(".", 1)[-1]
            if name in ("repeat", "sorted", "list", "tuple", "set", "reversed", "frozenset"):
                if not node.args:
                    return ()
                return self.read(node.args[0]) if name == "repeat" else self._elements(node.args[0])
            if name in ("range", "enumerate"):
                return ("0",) if name == "range" else None
            if name == "map" and len(node.args) == 2:
                if dotted(node.args[0]) in ("int", "float"):
                    return ("0",)
                if isinstance(body := node.args[0], ast.Lambda):
                    return Texts(self).read(body.body)
            if name in ("keys", "values", "items") and isinstance(node.func, ast.Attribute):
                return self._elements(node.func.value)
        return self.lists.get(dotted(node))

    # Ways to put text together

    def _format_string(self, node: ast.JoinedStr) -> Pieces:
        pieces: list[Piece] = []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                spec = value.format_spec
                text = "" if spec is None else "".join(map(str, self.read(spec)))
                pieces += ("0",) if _numeric(text) else self.read(value.value)
            else:
                pieces += self.read(value)
        return tuple(pieces)

    def _percent(self, node: ast.BinOp) -> Pieces:
        left, right = self.read(node.left), node.right
        if not any(isinstance(piece, str) and _PERCENT.search(piece) for piece in left):
            if any(isinstance(piece, Hole) for piece in left):
                return (*left, *self._arguments(right))
            return left
        named: dict[str, ast.expr] = {}
        values: Sequence[ast.expr] = ()
        if isinstance(right, ast.Tuple):
            values = right.elts
        elif isinstance(right, ast.Dict):
            named = {
                key.value: value
                for key, value in zip(right.keys, right.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
        else:
            values = [right] if not _PERCENT_NAMED.search("".join(map(_known, left))) else []
        return self._percent_of(left, values, named, self._hole(right))

    def _percent_of(
        self,
        left: Pieces,
        values: Sequence[ast.expr],
        named: Mapping[str, ast.expr],
        whole: Pieces,
    ) -> Pieces:
        pieces: list[Piece] = []
        taken = 0
        for piece in left:
            if isinstance(piece, Hole):
                pieces.append(piece)
                continue
            end = 0
            for match in _PERCENT.finditer(piece):
                pieces.append(piece[end : match.start()])
                end = match.end()
                if match.group() == "%%":
                    pieces.append("%")
                    continue
                value = named.get(match["name"] or "")
                if match["name"] is None and not named:
                    value = values[min(taken, len(values) - 1)] if values else None
                    taken += 1
                if match["kind"] in "diouxXeEfFgG":
                    pieces.append("0")
                else:
                    pieces += whole if value is None else self.read(value)
            pieces.append(piece[end:])
        return tuple(pieces)

    def _arguments(self, node: ast.expr) -> Pieces:
        if isinstance(node, ast.Tuple | ast.List | ast.Dict):
            return self._elements(node) or ()
        return self.read(node)

    def _call(self, node: ast.Call) -> Pieces:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else dotted(function)
        receiver = function.value if isinstance(function, ast.Attribute) else None
        if dotted(function) == "shlex.join":
            return ("escaped",)
        if name in _SAFE_CALLS or (_ESCAPES.search(name) and name != "SQL"):
            return ("0",)
        if receiver is not None:
            if name == "format":
                return self._format(self.read(receiver), node)
            if name == "format_map":
                return (*self.read(receiver), *(Hole(dotted(a) or "…") for a in node.args))
            if name == "join" and node.args:
                elements = self._elements(node.args[0])
                inside = self._hole(node.args[0]) if elements is None else elements
                return (*inside, *self.read(receiver))
            if name in ("substitute", "safe_substitute"):
                return self._template(receiver, node)
            if name == "replace" and len(node.args) >= 2:
                if _doubles(node.args[0], node.args[1]):
                    return ("escaped",)
                return self._replaced(self.read(receiver), node.args[0], self.read(node.args[1]))
            if name == "get" and (found := self._item(receiver)) is not None:
                return found
            if name == "pop" and (found := self._item(receiver)) is not None:
                return found
        if name in _SAME_TEXT:
            if node.args and (receiver is None or name in ("text", "dedent", "raw", "cleandoc")):
                return self.read(node.args[0])
            if receiver is not None:
                return self.read(receiver)
        return self._hole(node)

    def _format(self, template: Pieces, call: ast.Call) -> Pieces:
        named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        rest = [k.value for k in call.keywords if k.arg is None]
        pieces: list[Piece] = []
        taken = 0
        for piece in template:
            if isinstance(piece, Hole):
                pieces.append(piece)
                continue
            end = 0
            for match in _FIELD.finditer(piece):
                pieces.append(piece[end : match.start()])
                end = match.end()
                if match.group() in ("{{", "}}"):
                    pieces.append(match.group()[0])
                    continue
                if _numeric((match["spec"] or "")[1:]):
                    pieces.append("0")
                    continue
                key = re.split(r"[.\[]", match["name"] or "")[0]
                value = named.get(key)
                if value is None and (not key or key.isdigit()):
                    number = int(key) if key else taken
                    taken += not key
                    starred = [a for a in call.args if isinstance(a, ast.Starred)]
                    if number < len(call.args) and not starred:
                        value = call.args[number]
                    elif starred:
                        value = starred[0].value
                if value is not None:
                    pieces += self.read(value)
                else:
                    pieces += self._hole(rest[0]) if rest else (Hole(key or "…"),)
            pieces.append(piece[end:])
        if all(isinstance(piece, Hole) for piece in template):
            pieces += [p for a in (*call.args, *named.values(), *rest) for p in self.read(a)]
        elif call.args and not any(_FIELD.search(_known(piece)) for piece in template):
            # ``%s`` with ``format`` was meant to be filled.
            return self._percent_of(template, call.args, {}, (Hole("…"),))
        return tuple(pieces)

    @staticmethod
    def _replaced(text: Pieces, old: ast.expr, new: Pieces) -> Pieces:
        if not isinstance(old, ast.Constant) or not isinstance(old.value, str) or not old.value:
            return text + new
        pieces: list[Piece] = []
        for piece in text:
            if isinstance(piece, str):
                head, *rest = piece.split(old.value)
                pieces.append(head)
                for part in rest:
                    pieces += (*new, part)
            else:
                pieces.append(piece)
        return tuple(pieces)

    def _template(self, receiver: ast.expr, call: ast.Call) -> Pieces:
        source = receiver
        if isinstance(receiver, ast.Call) and receiver.args:
            source = receiver.args[0]
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        inside = [piece for value in values for piece in self.read(value)]
        text = "".join(map(_known, self.read(source)))
        head = re.split(r"\$\{?[A-Za-z_]\w*\}?", text, maxsplit=1)
        return (head[0], *inside, *head[1:])


_PERCENT_NAMED: Final = re.compile(r"%\(")


def _is_constant(name: str) -> bool:
    return name.isupper() and name not in _CARRIERS


def dotted(node: ast.AST) -> str:
    """``a.b.c`` as a string, ``""`` for anything that is no chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (outer := dotted(node.value)):
        return f"{outer}.{node.attr}"
    return ""


def _doubles(old: ast.expr, new: ast.expr) -> bool:
    """``replace("'", "''")``: how quotes are escaped in SQL."""
    if not (isinstance(old, ast.Constant) and isinstance(new, ast.Constant)):
        return False
    return str(old.value) in ("'", '"', "`") and new.value in (
        f"{old.value}{old.value}",
        f"\\{old.value}",
    )


def _known(piece: Piece) -> str:
    return piece if isinstance(piece, str) else ""


def _holes(pieces: Sequence[Piece]) -> int:
    return sum(isinstance(piece, Hole) for piece in pieces)


def _limited(pieces: Pieces) -> Pieces:
    return pieces if len(pieces) <= _MAX_PIECES else pieces[:_MAX_PIECES]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _numeric(spec: str) -> bool:
    return bool(spec) and spec[-1] in "bcdoxXneEfFgG%" and not spec.endswith("c")
