"""Pytest plugin: a file without a test of this run is not even imported.

To import and collect everything takes every worker ten seconds, and two thirds of the files have
no test of the second tier.  What ``-m`` asks for is looked up in the text of a file: a mark that is
not written there is on none of its tests, and one of the whole file is on all of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final

import pytest

MARKS: Final = ("system", "fuzz", "slow", "clients", "agents", "browser", "hypothesis")
"""Marks that are on a test only where its file has their name."""
_OF_FILE: Final = re.compile(r"^pytestmark = .*$", re.MULTILINE)
_MARK: Final = re.compile(r"pytest\.mark\.(\w+)")

_Marked = Callable[[str], bool | None]
"""Whether a mark is on every test of a file, on none of them, or on some."""


def has_tests(config: pytest.Config, file: Path) -> bool:
    """Whether a file may have tests that ``-m`` selects."""
    expression = str(config.getoption("markexpr"))
    return may_select(expression, file.read_text(encoding="utf-8"))


def may_select(expression: str, text: str) -> bool:
    """Whether an expression may select tests of a file with this text."""
    condition = _parsed(expression)
    if condition is None:
        return True
    sure = {mark for line in _OF_FILE.findall(text) for mark in _MARK.findall(line)}

    def is_marked(mark: str) -> bool | None:
        if mark in sure:
            return True
        return False if mark in MARKS and mark not in text else None

    return _value(condition, is_marked) is not False


@lru_cache
def _parsed(expression: str) -> ast.expr | None:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except SyntaxError:
        return None  # There is none, or pytest says what is wrong with it.


def _value(node: ast.expr, is_marked: _Marked) -> bool | None:
    """The value of a condition, ``None`` where it may be true or false."""
    match node:
        case ast.Name(mark):
            return is_marked(mark)
        case ast.UnaryOp(ast.Not(), inner):
            value = _value(inner, is_marked)
            return None if value is None else not value
        case ast.BoolOp(operator, parts):
            values = {_value(part, is_marked) for part in parts}
            decides = isinstance(operator, ast.Or)
            if decides in values:
                return decides
            return None if None in values else not decides
        case _:
            return None


@pytest.hookimpl
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    name = collection_path.name
    if not (name.startswith("test_") and name.endswith(".py") and collection_path.is_file()):
        return None
    return None if has_tests(config, collection_path) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a mark that is not found in its file, as from a helper: the test might be missed."""
    texts = {path: path.read_text(encoding="utf-8") for path in {item.path for item in items}}
    for item in items:
        for mark in item.iter_markers():
            if mark.name in MARKS and mark.name not in texts[item.path]:
                raise pytest.UsageError(
                    f"{item.nodeid} is marked `{mark.name}`, and its file does not say so; "
                    "set the mark there."
                )
