"""Signs in a rewrite that its instruction was misunderstood.

They are computed from the instruction and the lines before and after, without a model.  Each may
have a good reason, so one sign proves nothing; calibration measures what they mean together.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import textwrap
from collections import Counter
from dataclasses import dataclass, fields
from typing import Final, cast

from midstream.code.syntax import NOT_PYTHON, parse_python
from midstream.edits.lcs import equal_blocks

MAX_LINES: Final = 2_000
"""Longer texts are not looked at: small edit models rewrite a few dozen lines."""

_NAME: Final = re.compile(r"[^\W\d]\w*")
_IMPORT: Final = re.compile(r"^[ \t]*(?:from|import)\b(?:[^(\n]*\([^)]*\)|.*)", re.M)
_STRING: Final = re.compile(
    r"(?<!\w)[rRbBuUfF]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')",
    re.S,
)
_COMMENT: Final = re.compile(r"#[^\n]*")
_QUOTED: Final = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|(?<!\w)'([^'\n]+)'(?!\w)")
_PLAIN: Final = re.compile(r"[A-Za-z]?[a-z]*")
_DEFINED: Final = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)

_REMOVAL: Final = re.compile(
    r"\b(?:remov|delet|drop|strip|get(?:ting)? rid|take (?:out|all|off)|takes? away|throw|without"
    r"|no|not|don'?t|never|omit|cut|clean|kill|discard|simplif|inline|merge|collaps|replac|instead"
    r"|unwrap|flatten|unus|dead|eliminat|eras|un\w+|shorten|condens|rewrit|only|skip|leave out|lose"
    r"|rm|nuke|scrap|purge|trim|turn|convert|make it|one[- ]?line|silenc|chuck|ditch|gone|go\b|away"
    r"|off\b|forget|toss|hide)",
    re.IGNORECASE,
)
_UNDEFINING: Final = re.compile(
    r"\b(?:(?:functions?|methods?|class|def|rm)\b|remov|delet|drop|inlin|merg|get(?:ting)? rid"
    r"|nuke|eliminat|replac|kill|scrap|(?:rename|call|name)\s+(?:it|this|that)\b"
    r"|(?:it|this)\s+\w+\s+be\s+(?:called|named))",
    re.IGNORECASE,
)
_ADDING: Final = re.compile(
    r"\b(?:add|annotat|give|put|insert|document|introduc|includ|attach|append|type[sd]?|hints?)",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(
    r"\b(?:in|of|after|before|above|below|from|at|inside|within|behind|under|over|on|for|to|into)"
    r"(?:\s+the)?(?:\s+(?:line|call|function|method|class|loop|statement))?\s*[`'\"]?$",
    re.IGNORECASE,
)
_NAMING: Final = re.compile(
    r"(?:\b(?:to|into|as|called|named|names?|parameter|param|argument|arg|variable|attribute"
    r"|constant|with|use|raise|return|returns|log|import|self|cls|method|function|field|flag|keyword|logger"
    r"|catch|except|default|decorator|type|instead of|than|and|or|not|is|a|an|by|via|from)"
    r"|[=<>+\-*/@.(,\[:`'\"])\s*$",
    re.IGNORECASE,
)
_COMMON_WORDS: Final = """
    a an the to of in on at by for from as is are be it its this that these those and or not no if
    else then when while with without into out up so all any each every one two new old use uses add
    make set get put name names value values type types result results return returns data line
    lines list dict string str int float bool bytes tuple file path key keys item items self cls
    none true false class def function method call calls argument arguments parameter parameters
    variable default error exception raise try except import async await first last start end before
    after test tests code text message comment print log check can should would could please do does
    has have i we you my our your they them only also just instead there other specify optional
    called module let
"""
_COMMON: Final = frozenset(_COMMON_WORDS.split())
_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_BUILTIN: Final = frozenset((*dir(builtins), *keyword.kwlist, *keyword.softkwlist, "self", "cls"))


@dataclass(frozen=True, slots=True)
class Signs:
    """Evidence against a rewrite, as counts.

    Attributes:
        broken: Whether the lines were Python before and are not any more.
        deleted: Lines removed without replacement though the instruction does not ask for that.
        unbound: Names that the rewrite still uses and no longer defines.
        lost: Type hints, decorators and docstrings that are gone though something is to be added.
        untouched: Names of these lines that the instruction mentions and no changed line has.
        missing: Words that the instruction quotes and neither the lines before nor the rewrite
        have. borrowed: Words of the instruction that became names though nothing says they are.
    """

    broken: bool = False
    deleted: int = 0
    unbound: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each kind."""
        values: dict[str, int | tuple[str, ...]] = {
            field.name: getattr(self, field.name) for field in fields(self)
        }
        return {
            name: len(value) if isinstance(value, tuple) else int(value)
            for name, value in values.items()
        }


def read_signs(instruction: str, before: str, after: str, *, python: bool = True) -> Signs:
    """Compare a rewrite with its instruction.

    Args:
        instruction: The instruction, in words.
        before: The lines as they were, each ended by a newline.
        after: The lines as rewritten.
        python: Whether they are Python; otherwise only names and lines are compared.
    """
    old, new = before.splitlines(), after.splitlines()
    if old == new or max(len(old), len(new)) > MAX_LINES:
        return Signs()
    gone, come, deleted = _changed(old, new)
    removing = asks_for_removal(instruction)
    had = frozenset(_NAME.findall(before))
    touched = frozenset(_NAME.findall(" ".join((*gone, *come))))
    fresh = [name for name in _names("\n".join(come)) if name not in had and name not in _BUILTIN]
    broken, unbound, lost = _parsed(before, after) if python else (False, (), Counter[str]())
    return Signs(
        broken=broken,
        deleted=0 if removing else deleted,
        unbound=unbound,
        lost=tuple(lost.elements()) if _ADDING.search(instruction) and not removing else (),
        untouched=_untouched(instruction, before, had, touched),
        missing=_missing(instruction, before, after),
        borrowed=tuple(name for name in fresh if _borrowed(name, instruction)),
    )


def asks_for_removal(instruction: str) -> bool:
    """Whether an instruction has a word after which code may be gone."""
    return _REMOVAL.search(_QUOTED.sub(" ", instruction)) is not None


def strangers(instruction: str, known: str, after: str) -> tuple[str, ...]:
    """Names in a rewrite that neither it imports nor the instruction or the file contains.

    Args:
        instruction: The instruction, in words.
        known: The whole file as it was.
        after: The lines as rewritten.
    """
    imports = " ".join(_IMPORT.findall(after))
    had = frozenset((*_NAME.findall(known), *_NAME.findall(instruction), *_NAME.findall(imports)))
    return tuple(name for name in _names(after) if name not in had and name not in _BUILTIN)


def overwritten(before: str, after: str) -> tuple[str, ...]:
    """Parameters that a rewrite adds to functions which assign a variable of that name."""
    try:
        trees = [parse_python(textwrap.dedent(text)) for text in (before, after)]
    except NOT_PYTHON:
        return ()
    old, new = ({f.name: f for f in ast.walk(tree) if isinstance(f, _FUNCTION)} for tree in trees)
    found: dict[str, None] = {}
    for name in old.keys() & new.keys():
        had, has = (
            {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
            for function in (old[name], new[name])
        )
        assigned = _Contents(ast.Module(old[name].body, [])).bound
        found |= dict.fromkeys(sorted((has - had) & assigned))
    return tuple(found)


def vanished(instruction: str, before: str, after: str) -> tuple[str, ...]:
    """Functions and classes that a rewrite no longer defines although the instruction neither names
    them nor speaks of "this function" or of removing.
    """
    if _UNDEFINING.search(instruction):
        return ()
    kept = frozenset((*_DEFINED.findall(after), *_NAME.findall(instruction)))
    return tuple(name for name in dict.fromkeys(_DEFINED.findall(before)) if name not in kept)


def _changed(old: list[str], new: list[str]) -> tuple[list[str], list[str], int]:
    """The removed lines, the added lines, and the surplus of removed ones in changed places."""
    gone: list[str] = []
    come: list[str] = []
    deleted = 0
    a = b = 0
    for first, second, size in (*equal_blocks(old, new), (len(old), len(new), 0)):
        left = [line for line in old[a:first] if line.strip()]
        right = [line for line in new[b:second] if line.strip()]
        gone += left
        come += right
        deleted += max(0, len(left) - len(right))
        a, b = first + size, second + size
    return gone, come, deleted


def _names(text: str) -> list[str]:
    """The names in code, each once, without those in strings and comments."""
    return list(dict.fromkeys(_NAME.findall(_COMMENT.sub(" ", _STRING.sub(" ", text)))))


def _untouched(
    instruction: str, before: str, had: frozenset[str], touched: frozenset[str]
) -> tuple[str, ...]:
    defined = _DEFINED.search(before)
    found: dict[str, None] = {}
    quoted = [(m.start(), next(filter(None, m.groups()))) for m in _QUOTED.finditer(instruction)]
    bare = _QUOTED.sub(lambda m: " " * len(m.group()), instruction)
    names = [(start, text) for start, text in quoted if _NAME.fullmatch(text)]
    names += [
        (m.start(), m.group()) for m in _NAME.finditer(bare) if m.group().lower() not in _COMMON
    ]
    for start, name in names:
        if name not in had or name in touched or (defined and name == defined[1]):
            continue
        if not _PLACE.search(instruction[:start]):
            found[name] = None
    return tuple(found)


def _missing(instruction: str, before: str, after: str) -> tuple[str, ...]:
    both = f"{before}\n{after}"
    quoted = (next(filter(None, m.groups())) for m in _QUOTED.finditer(instruction))
    return tuple(text for text in quoted if text.strip("@() ") not in both)


def _borrowed(name: str, instruction: str) -> bool:
    if not _PLAIN.fullmatch(name):
        return False
    bare = _QUOTED.sub(lambda m: "`" * len(m.group()), instruction)
    places = list(re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", bare))
    return bool(places) and not any(
        _NAMING.search(bare[: m.start()]) or bare[m.end() : m.end() + 1] in tuple("=.([:")
        for m in places
    )


def _parsed(before: str, after: str) -> tuple[bool, tuple[str, ...], Counter[str]]:
    """Whether a rewrite is broken, its unbound names, and how many descriptions of code it lost."""
    try:
        old = parse_python(textwrap.dedent(before))
    except NOT_PYTHON:
        return False, (), Counter()
    try:
        new = parse_python(textwrap.dedent(after))
    except NOT_PYTHON:
        return True, (), Counter()
    had, has = _Contents(old), _Contents(new)
    unbound = tuple(sorted((had.bound - has.bound) & has.read))
    return False, unbound, had.described - has.described


class _Contents:
    """The names that a piece of code binds and reads, and its descriptions, gathered in one pass.

    Attributes:
        bound: Names that it binds.
        read: Names that it reads.
        described: Number of type hints, decorators and docstrings.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.bound: set[str] = set()
        self.read: set[str] = set()
        self.described: Counter[str] = Counter()
        # `ast.walk` takes twice as long, and this runs at the end of every answer.
        waiting: list[ast.AST] = [tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Name):
                (self.read if isinstance(node.ctx, ast.Load) else self.bound).add(node.id)
                continue
            self._note(node)
            for value in vars(node).values():
                if isinstance(value, list):
                    found = cast("list[object]", value)
                    waiting += [item for item in found if isinstance(item, ast.AST)]
                elif isinstance(value, ast.AST):
                    waiting.append(value)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.arg):
            self.bound.add(node.arg)
            self.described["type hint"] += node.annotation is not None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.bound.add(node.name)
            self.described["decorator"] += len(node.decorator_list)
            self.described["docstring"] += ast.get_docstring(node, clean=False) is not None
            if not isinstance(node, ast.ClassDef):
                self.described["type hint"] += node.returns is not None
        elif isinstance(node, ast.AnnAssign):
            self.described["type hint"] += 1
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self.bound.add(node.name)
        elif isinstance(node, ast.alias):
            self.bound.add((node.asname or node.name).partition(".")[0])
