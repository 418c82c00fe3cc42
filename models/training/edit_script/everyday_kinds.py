"""What the kinds of everyday requests share: their registry, and how they look at a function.

Every kind yields `Wish`es: the text with the wish carried out, and the words that its wordings may
name. Wordings are small grammars (`everyday.expanded`). `{x}`, `{y}`, `{f}`, `{k}` are code, `{w}`
is a name read aloud.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from goals import Place, Wish


@dataclass(frozen=True, slots=True)
class Names:
    """Names and short texts of the corpus, for what a request brings along."""

    variables: list[str]
    functions: list[str]
    strings: list[str]


Kind = Callable[[Place, Names], Iterator[Wish]]
TYPES = ["str", "int", "float", "list", "dict", "bytes", "tuple", "bool"]
"""Types that a request may name."""

WISHES: dict[str, tuple[Kind, list[str]]] = {}


def wish(*wordings: str) -> Callable[[Kind], Kind]:
    """Register a kind of wish."""

    def register(function: Kind) -> Kind:
        WISHES[function.__name__] = (function, list(wordings))
        return function

    return register


def aloud(name: str) -> str:
    """Return a name as it is said."""
    return name.split(".")[-1].strip("_").replace("_", " ")


def returns(place: Place) -> list[ast.Return]:
    return [n for n in place.nodes if isinstance(n, ast.Return) and n.value is not None]


def one_return(place: Place) -> ast.expr | None:
    found = returns(place)
    if len(found) != 1 or found[0].value is None or "\n" in place.source(found[0].value):
        return None
    return found[0].value


def atom(place: Place, node: ast.expr) -> str:
    """Return a node's text, in parentheses where a method is to be called on it."""
    text = place.source(node)
    plain = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant)
    return text if plain else f"({text})"


def calls(place: Place) -> Iterator[tuple[ast.Call, str]]:
    for node in place.nodes:
        if isinstance(node, ast.Call):
            yield node, place.source(node.func)


def texts(place: Place) -> Iterator[tuple[ast.Constant, str, str]]:
    """Yield plain one-line strings that are no docstring, with their quote and text."""
    inside = {id(n) for s in place.nodes if isinstance(s, ast.JoinedStr) for n in ast.walk(s)}
    lone = {id(s.value) for s in place.nodes if isinstance(s, ast.Expr)}
    for node in place.nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside | lone
        ):
            text = place.source(node)
            if len(text) > 3 and text[0] in "\"'" and text[:3] not in ('"""', "'''"):
                if text[0] == text[-1] and "\\" not in text and text.count(text[0]) == 2:
                    yield node, text[0], text[1:-1]


def fresh(place: Place, pool: list[str]) -> str:
    for _ in range(20):
        name = place.rng.choice(pool)
        if name not in place.text:
            return name
    return "other_value"
