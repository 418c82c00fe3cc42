"""Detects requests to add what the code already has.

Only requests that ask for nothing else are recognised, so no other request is lost.
"""

from __future__ import annotations

import ast
import re
import textwrap
from typing import Final

from midstream.code.syntax import NOT_PYTHON, parse_python

_NAME: Final = r"[`'\"]?(?P<{}>[\w.]+)(?:\(\))?[`'\"]?"
_HEAD: Final = (
    rf"(?:{_NAME.format('head')}\s*:\s*)?(?:please\s+)?(?:add|give|put|write|insert|attach)\s+"
)
_TO: Final = (
    r"(?:\s+(?:to|for|in|on|of)\s+(?:(?:the|this|my)\s+)?(?:(?:function|method|class)\s+)?"
    rf"{_NAME.format('place')}(?:\s+(?:function|method|class))?)?\s*[.!]?"
)
_ARTICLE: Final = r"(?:(?:a|an|the)\s+)?"
_DOCSTRING: Final = re.compile(
    rf"{_HEAD}(?:(?!an?\s|the\s)(?:it|this|{_NAME.format('whom')})\s+)?{_ARTICLE}doc-?string{_TO}",
    re.IGNORECASE,
)
_PARAMETER: Final = re.compile(
    rf"{_HEAD}{_ARTICLE}(?:(?:new|optional|keyword|keyword-only)\s+)?"
    rf"(?:parameter|param|argument|arg|option|flag)\s+(?:(?:called|named)\s+)?{_NAME.format('name')}"
    rf"(?:\s+with\s+(?:a\s+|the\s+)?default\s+(?:value\s+)?(?:of\s+)?\S+)?{_TO}",
    re.IGNORECASE,
)
_DECORATOR: Final = re.compile(
    rf"{_HEAD}{_ARTICLE}(?:[`'\"]?@(?P<at>[\w.]+)[`'\"]?(?:\s+decorator)?"
    rf"|(?P<before>[\w.]+)\s+decorator|decorator\s+@?(?P<behind>[\w.]+)){_TO}",
    re.IGNORECASE,
)


def already_there(instruction: str, code: str) -> str:
    """What a request wants to add although it exists already.

    Args:
        instruction: The request, in words.
        code: The function or class that it is about.

    Returns:
        Its name and what it has, as in "``total`` has a docstring", or ``""``.
    """
    text = " ".join(instruction.split())
    docstring = _DOCSTRING.fullmatch(text)
    parameter = _PARAMETER.fullmatch(text)
    decorator = _DECORATOR.fullmatch(text)
    match = docstring or parameter or decorator
    node = None if match is None else _definition(code)
    if match is None or node is None:
        return ""
    groups = match.groupdict()
    named = [name for key in ("head", "whom", "place") if (name := groups.get(key))]
    if any(name.rpartition(".")[2] != node.name for name in named):
        return ""  # something else is meant
    if docstring:
        had = "a docstring" if ast.get_docstring(node, clean=False) else ""
    elif parameter:
        had = f"a parameter `{groups['name']}`" if groups["name"] in _parameters(node) else ""
    else:
        name = next(filter(None, (groups["at"], groups["before"], groups["behind"])), "")
        had = f"the decorator `{name}`" if name in _decorators(node) else ""
    return f"`{node.name}` has {had}" if had else ""


def _definition(code: str) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | None:
    try:
        body = parse_python(textwrap.dedent(code)).body
    except NOT_PYTHON:
        return None
    only = body[0] if len(body) == 1 else None
    return only if isinstance(only, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else None


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str]:
    if isinstance(node, ast.ClassDef):
        return set()
    takes = node.args
    found = [*takes.posonlyargs, *takes.args, *takes.kwonlyargs, takes.vararg, takes.kwarg]
    return {arg.arg for arg in found if arg is not None}


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str]:
    called = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    names = {ast.unparse(expression) for expression in called}
    return names | {name.rpartition(".")[2] for name in names}
