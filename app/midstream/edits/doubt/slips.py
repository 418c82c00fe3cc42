"""Slips in a rewrite that are wrong however confident the model was.

Each of these is a reason to flag an answer by itself; ``nonsense`` is a reason to withhold it.
They need the text of one file only: ``codebase.references`` searches the others.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, cast

from midstream.code.syntax import NOT_PYTHON, parse_python
from midstream.edits.doubt.rewrite import (
    BUILTINS,
    FUNCTION,
    KNOWN,
    NAME,
    Function,
    JudgedRewrite,
    Trees,
    WantedCode,
    bound,
    functions,
    parameters,
    parsed,
    read,
    too_long,
    words,
)

_INSTEAD: Final = re.compile(
    r"(?P<quote>[`'\"]?)(?P<name>[A-Za-z_][\w.]*)(?P=quote)\s+(?:instead\s+of|rather\s+than)\b",
    re.IGNORECASE,
)
_REMOVING: Final = re.compile(
    r"\b(?:remov\w*|delet\w*|drop\w*|strip\w*|get(?:ting)? rid of|take out|cut)\s+"
    r"(?:the|all|any|every|its|that|this)?\s*(?P<what>[^,.;]*)",
    re.IGNORECASE,
)
_KEYWORD_FOR: Final = {
    "elif": "elif",
    "else": "else",
    "print": "print",
    "assert": "assert",
    "assertion": "assert",
    "raise": "raise",
    "try": "try",
}
"""Words of a request to remove something, and what they mean in code."""
_MAX_DELETED_LINES: Final = 3
"""Deleted lines that a request to remove something accounts for in any case."""
_QUOTED: Final = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
_USE: Final = re.compile(
    r"\b(?:us(?:e[sd]?|ing)|instead|rather|pass(?:e[sd])?|so|that|which|when|if|and|then)\b",
    re.IGNORECASE,
)
"""Words that ask for more than the presence of a parameter."""
_MIN_NEIGHBOURS: Final = 20
"""Least characters of the lines beside a region, so that brackets alone do not count."""
_BUILTINS: Final = BUILTINS | {"__file__", "__path__", "__class__", "WindowsError"}
_RENAMING: Final = re.compile(
    r"\b(?:renam|nam(?:e|ing)|call|(?:mis)?spel|typo|shadow|snake|camel|short|long|better|unus"
    r"|underscore|refactor|rewrit|clean|simplif|tidy)",
    re.IGNORECASE,
)
"""Words of a request that may be about names, or about everything."""
_NAMED_BEFORE: Final = re.compile(
    r"(?:\b(?:to|into|as|called|named|names?|parameter|param|argument|arg|variable|attribute"
    r"|constant|with|use|raise|return|returns|log|import|method|function|class|field|flag|keyword"
    r"|catch|except|default|decorator|type|instead of|than|and|or|not|is|by|via|from|call)"
    r"|[=<>+\-*/@.(,\[:`])\s*$",
    re.IGNORECASE,
)
_REPEATED: Final = re.compile(r"([A-Za-z]{2,6})\1\1", re.IGNORECASE)


def slips(rewrite: JudgedRewrite) -> list[str]:
    """Faults of a Python rewrite, as sentences without their subject "it", worst first."""
    if too_long(rewrite.before, rewrite.after):
        return []
    said, before, after = rewrite.said, rewrite.before, rewrite.after
    found: list[str] = []
    if name := _not_used_instead(rewrite):
        found.append(f"does not use `{name}`")
    if left := _left_over(said, before, after):
        found.append(f"left a `{left}`")
    if deleted := _deleted_beside(rewrite):
        found.append(f"deleted {deleted} lines that the instruction does not mention")
    trees = rewrite.trees
    if trees is None:
        return found
    names = words(rewrite.known, before)
    dead_before, dead_after = map(_unreached, trees)
    if dead_after - dead_before:
        found.append(f"put a line after a `{min(dead_after - dead_before)}`, where it never runs")
    if name := _renamed_unasked(said, trees):
        found.append(f"renamed `{name}` without being asked to")
    if taken := _only_words(said, trees, rewrite.known):
        found.append(f"took the word `{taken[0]}` for an attribute")
    if twice := _defined_twice(rewrite):
        found.append(f"defines `{twice}` a second time")
    if keys := _unhashable_keys(trees[1]) - _unhashable_keys(trees[0]):
        found.append(f"takes `{min(keys)}` for a key, which is a dict")
    for was, now in _pairs(*trees):
        if _speaks_of_use(said) and (unused := _unused_parameters(was, now)):
            found.append(f"never uses the parameter `{unused[0]}`")
        if odd := _no_types(was, now, names):
            found.append(f"wrote `{odd[0]}` for a type")
        if _bare_return(was, now):
            found.append(f"returns nothing from `{now.name}`, which returns a value")
    return found


def slips_of_addition(rewrite: JudgedRewrite, wanted: WantedCode) -> list[str]:
    """Faults of definitions that a Python file gets, as sentences without their subject "it"."""
    if rewrite.trees is None:
        return []
    were, are = map(_definitions, rewrite.trees)
    new = {each.rpartition(".")[2] for each in are - were}
    found: list[str] = []
    if wanted.name and wanted.name not in new:
        found.append(f"does not define `{wanted.name}`")
    if not wanted.tests:
        return found
    every = functions(rewrite.trees[1]).values()
    written = [f for f in every if f.name in new and "test" in f.name]
    own = {each.rpartition(".")[2] for each in wanted.subject}
    if not any("test" in each.lower() for each in new):
        found.append("wrote no test")
    elif idle := next((f.name for f in written if not _checks(f)), ""):
        found.append(f"checks nothing in `{idle}`")
    elif own and not own & words(*map(ast.unparse, written)):
        found.append(f"does not use `{wanted.subject[-1].rpartition('.')[2]}`")
    return found


def _checks(test: Function) -> bool:
    """Whether a test can fail otherwise than by an error: an assertion, or a call named so."""
    for node in ast.walk(test):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2].lower()
            if called.startswith(("assert", "raises", "fail", "warns", "check", "expect")):
                return True
    return False


def neighbours_again(rewrite: JudgedRewrite) -> bool:
    """Whether a rewrite of some lines holds the lines around them, too, which then stand twice.

    Models that are asked for a region sometimes answer with the whole file.
    """
    lines, start, stop = rewrite.file, rewrite.start, rewrite.stop
    old, new = _filled(lines[start:stop]), _filled(rewrite.after.split("\n"))
    ahead, behind = _filled(lines[:start])[-3:], _filled(lines[stop:])[:3]
    return any(
        sum(map(len, block)) >= _MIN_NEIGHBOURS and _holds(new, block) and not _holds(old, block)
        for block in (ahead, behind)
        if len(block) > 1
    )


def _filled(lines: Iterable[str]) -> list[str]:
    """The lines that are not blank, without their indentation."""
    return [stripped for line in lines if (stripped := line.strip())]


def _holds(lines: Sequence[str], block: Sequence[str]) -> bool:
    size = len(block)
    return any(lines[at : at + size] == block for at in range(len(lines) - size + 1))


def nonsense(rewrite: JudgedRewrite) -> str:
    """Why a Python rewrite is not worth showing, without the subject "it"; ``""`` if it is."""
    said, before, after, known = rewrite.said, rewrite.before, rewrite.after, rewrite.known
    if too_long(before, after):
        return ""
    had = f"{known}\n{before}\n{said}"
    for word in dict.fromkeys(NAME.findall(after)):
        if _REPEATED.search(word) and word not in had:
            return f"wrote `{word[:40]}`"
    if rewrite.trees is None:
        return ""
    tree = rewrite.trees[1]
    # A decorator's name is often the word for its effect.
    names = words(known, before) | KNOWN | bound(tree) | {*_decorators(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in names and _only_a_word(node.id, said):
            return f"took the word `{node.id}` for a name"
    return ""


def _unreached(tree: ast.Module) -> Counter[str]:
    """How many blocks go on behind a ``return``, ``raise``, ``break`` or ``continue``, by that
    word.
    """
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list):  # a lambda's is one expression
                continue
            for statement in cast("list[ast.stmt]", block)[:-1]:
                if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
                    found[type(statement).__name__.lower()] += 1
    return found


def _defined_twice(rewrite: JudgedRewrite) -> str:
    """A function or class that a file has a second time in the same block because of a rewrite."""
    old, trees = f"{rewrite.known}\n", rewrite.trees
    if rewrite.before in old:
        trees = parsed(old, old.replace(rewrite.before, rewrite.after, 1))
    if trees is None:
        return ""
    were, are = map(_definitions, trees)
    return next((name for name, count in (are - were).items() if are[name] > 1 and count), "")


def _definitions(tree: ast.Module) -> Counter[str]:
    """How often each block defines a name, by its dotted name.

    Definitions with a decorator may share one (overloads, the setter of a property), and are left
    out.
    """
    found: Counter[str] = Counter()

    def collect(body: Iterable[ast.stmt], scope: str) -> None:
        for node in body:
            if isinstance(node, (*FUNCTION, ast.ClassDef)):
                name = f"{scope}{node.name}"
                if not node.decorator_list:
                    found[name] += 1
                collect(node.body, f"{name}.")

    collect(tree.body, "")
    return found


def _unhashable_keys(tree: ast.Module) -> set[str]:
    """Names of ``**kwargs`` that are looked up in something, alone or in a tuple."""
    found: set[str] = set()
    for function in ast.walk(tree):
        if not isinstance(function, FUNCTION) or function.args.kwarg is None:
            continue
        for node in ast.walk(function):
            key = node.slice if isinstance(node, ast.Subscript) else None
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
                key = node.left
            parts = key.elts if isinstance(key, ast.Tuple) else [key]
            names = {part.id for part in parts if isinstance(part, ast.Name)}
            found |= names & {function.args.kwarg.arg}
    return found


def _pairs(old: ast.Module, new: ast.Module) -> Iterator[tuple[Function | None, Function]]:
    """The functions of a rewrite, each with what it was; a renamed one if there is only one."""
    were, are = functions(old), functions(new)
    for name, now in are.items():
        only = next(iter(were.values())) if len(were) == len(are) == 1 else None
        yield were.get(name, only), now


def _arguments(function: Function | None) -> dict[str, ast.arg]:
    if function is None:
        return {}
    args = function.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    every += [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return {arg.arg: arg for arg in every}


def _speaks_of_use(instruction: str) -> bool:
    """Whether an instruction asks for a use of a parameter, and not only for the parameter."""
    return _USE.search(_QUOTED.sub("", instruction)) is not None


def _unused_parameters(was: Function | None, now: Function) -> list[str]:
    if was is None or _is_stub(now):
        return []
    new = [name for name in _arguments(now) if name not in _arguments(was)]
    used = {n.id for part in now.body for n in ast.walk(part) if isinstance(n, ast.Name)}
    calls = any(isinstance(n, ast.Name) and n.id == "locals" for n in ast.walk(now))
    return [n for n in new if n not in used and not n.startswith("_") and not calls]


def _is_stub(function: Function) -> bool:
    """Whether a body does nothing, as in a protocol or an abstract method."""
    for part in function.body:
        constant = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
        if not (constant or isinstance(part, ast.Pass | ast.Raise)):
            return False
    return True


def _no_types(was: Function | None, now: Function, names: frozenset[str]) -> list[str]:
    """Annotations that a rewrite brings and that are no types."""
    arguments = _arguments(now)
    had = {name: arg.annotation for name, arg in _arguments(was).items()}
    notes = [(arg.annotation, had.get(name)) for name, arg in arguments.items()]
    notes.append((now.returns, None if was is None else was.returns))
    return [
        _text(note)
        for note, old in notes
        if note is not None and _text(note) != _text(old) and _no_type(note, arguments, names)
    ]


def _no_type(note: ast.expr, parameters: Collection[str], names: frozenset[str]) -> bool:
    if isinstance(note, ast.Name):
        unknown = note.id not in names and note.id not in KNOWN
        value = note.id in _VALUES
        taken = note.id in parameters and note.id not in KNOWN
        return taken or value or (unknown and note.id.islower())
    if isinstance(note, ast.Constant):
        return not (note.value is None or isinstance(note.value, str))
    if isinstance(note, ast.BinOp):
        either = isinstance(note.op, ast.BitOr)
        sides = (note.left, note.right)
        return not either or any(_no_type(side, parameters, names) for side in sides)
    return isinstance(note, ast.List | ast.Tuple | ast.Dict | ast.Set | ast.Call | ast.Compare)


_VALUES: Final = frozenset(
    name
    for name in BUILTINS
    if not isinstance(getattr(builtins, name), type) and name not in ("None", "Ellipsis")
)
"""Builtins that are not types, such as ``any`` and ``len``."""


def _text(node: ast.expr | None) -> str:
    return "" if node is None else ast.unparse(node)


def _bare_return(was: Function | None, now: Function) -> bool:
    """Whether a function that returns a value got a ``return`` without one."""
    if was is None:
        return False
    bare, valued = _returns(now)
    return bare > _returns(was)[0] and valued > 0 and _returns(was)[1] > 0


def _returns(function: Function) -> tuple[int, int]:
    """Own returns of a function without and with a value; of a generator none."""
    bare = valued = 0
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return 0, 0
        if isinstance(node, ast.Return):
            bare += node.value is None
            valued += node.value is not None
        if not isinstance(node, (*FUNCTION, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return bare, valued


def _not_used_instead(rewrite: JudgedRewrite) -> str:
    """A name that was to be used instead of something else and does not appear."""
    after = rewrite.after
    for match in _INSTEAD.finditer(rewrite.said):
        name = match["name"].rstrip(".")
        first = name.partition(".")[0]
        named = bool(match["quote"]) or "." in name or "_" in name
        if not named and first not in sys.stdlib_module_names:
            named = first in words(rewrite.known, rewrite.before) - {
                "a",
                "the",
                "it",
                "that",
                "this",
            }
        if named and not re.search(rf"(?<!\w){re.escape(first)}(?!\w)", after):
            return name
        if not named and first in sys.stdlib_module_names and first not in words(after):
            return name
    return ""


def _left_over(instruction: str, before: str, after: str) -> str:
    """A kind of statement whose every instance was to be removed, and that still stands there."""
    for match in _REMOVING.finditer(instruction):
        words = re.findall(r"[a-z]+", match["what"].lower())
        if not words or not words[0].endswith("s"):
            continue
        word = _KEYWORD_FOR.get(words[0].removesuffix("s"))
        if word is None:
            continue
        used = re.compile(rf"^\s*{word}\b", re.MULTILINE)
        if used.search(before) and used.search(after):
            return word
    return ""


def _deleted_beside(rewrite: JudgedRewrite) -> int:
    """Lines that a request to remove something does not account for; 0 for any other request.

    Accounted for are lines with a name of the request, what stands below them, and a few more.
    """
    if _REMOVING.search(rewrite.said) is None:
        return 0
    asked = {word.lower() for word in words(rewrite.said)}
    asked |= {word.removesuffix("s") for word in asked}
    named = asked & {name.lower() for name in words(rewrite.before)} - _SAID
    beside = lost = 0
    for gone, come in rewrite.changes:
        lost += max(0, len(gone) - len(come))
        beside += max(0, len(_unnamed(gone, named)) - len(come))
    if named:
        return beside if beside > _MAX_DELETED_LINES else 0
    # It names nothing: count a deletion of much of the code, not of a part.
    solid = sum(bool(line.strip()) for line in rewrite.before.splitlines())
    return lost if lost > max(_MAX_DELETED_LINES, solid // 2) else 0


_FILLERS: Final = """
    the all any every its that this a an and or of in from to is it not for with if then
"""
_SAID: Final = frozenset(_FILLERS.split())


def _unnamed(lines: list[str], named: set[str]) -> list[str]:
    """Lines without a named word that are not part of a statement with one."""
    found: list[str] = []
    under: int | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if under is not None and indent > under:
            continue
        under = None
        if named & {name.lower() for name in words(line)}:
            under = indent
        else:
            found.append(line)
    return found


def undefined(rewrite: JudgedRewrite) -> list[str]:
    """Names that a rewrite reads and nothing in the file binds, decorators first.

    What the file's own lines read already is no news.
    """
    if rewrite.own_trees is None or too_long(rewrite.own, rewrite.after):
        return []
    before, after = rewrite.own_trees
    try:
        file: ast.AST = parse_python(rewrite.known)
    except NOT_PYTHON:
        had = set(words(rewrite.known))
    else:
        if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(file)):
            return []
        had = bound(file)
    had |= bound(before) | bound(after) | {*read(before)} | _BUILTINS
    return [name for name in dict.fromkeys((*_decorators(after), *read(after))) if name not in had]


def _renamed_unasked(said: str, trees: Trees) -> str:
    """The former name of a parameter that has another one now, though the request has neither."""
    if _RENAMING.search(said):
        return ""
    old_functions = functions(trees[0])
    for node in ast.walk(trees[1]):
        if not isinstance(node, FUNCTION) or node.name not in old_functions:
            continue
        were, are = parameters(old_functions[node.name]), parameters(node)
        for old, new in zip(were, are, strict=False):
            if old not in are and new not in were and not {old, new} & words(said):
                return old
    return ""


def _only_words(said: str, trees: Trees, known: str) -> list[str]:
    """Attributes of ``self`` that a rewrite reads, words of the request and nothing in the file.

    Those of other objects are often right, since their class is elsewhere.
    """
    before, after = trees
    had = {*words(known), *bound(after), *(node.attr for node in _own_attributes(before))}
    used: list[str] = []
    for node in _own_attributes(after):
        if isinstance(node.ctx, ast.Load):
            used.append(node.attr)
        else:
            had.add(node.attr)
    return [n for n in dict.fromkeys(used) if n not in had and _only_a_word(n, said)]


def _own_attributes(tree: ast.AST) -> Iterator[ast.Attribute]:
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    for node in attributes:
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            yield node


def _decorators(tree: ast.AST) -> list[str]:
    """The names that decorators use."""
    defined = (node for node in ast.walk(tree) if isinstance(node, (*FUNCTION, ast.ClassDef)))
    return [name for node in defined for each in node.decorator_list for name in read(each)]


def _only_a_word(name: str, instruction: str) -> bool:
    """Whether a name is in a request only as a word of a sentence or a part of a literal."""
    if not (name.isalpha() and name.islower()):
        return False
    places = [m.span() for m in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", instruction)]
    for start, stop in places:
        literal = re.search(r"['\"]$", instruction[:start]) is not None
        whole = instruction[stop : stop + 1] in ("'", '"')
        if literal and not whole:  # `utf` of "utf-8"
            continue
        if literal or _NAMED_BEFORE.search(instruction[:start]):
            return False
        if instruction[stop : stop + 1] in tuple("=.([:`"):
            return False
    return bool(places)
