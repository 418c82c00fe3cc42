"""Names in a rewrite that nothing defines, that changed unasked, or that are words of a request."""

from __future__ import annotations

import ast

import pytest

from midstream.edits.loose_names import only_words, renamed_unasked, undefined
from midstream.edits.slips import slips, undefined_names

FILE = """\
import os

LIMIT = 3


class Order:
    def total(self, lines, discount):
        result = 0
        for line in lines:
            result += line.price
        return result - discount


def path(name):
    return os.path.join("data", name)
"""
REGION = FILE.partition("class Order:\n")[2].partition("\n\ndef path")[0] + "\n"


def edited(old: str, new: str) -> str:
    assert old in REGION
    return REGION.replace(old, new)


def trees(after: str) -> tuple[ast.Module, ast.Module]:
    before = "class Order:\n"
    return ast.parse(before + REGION), ast.parse(before + after)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("    def total", "    @cached_property\n    def total", ["cached_property"]),
        ("    def total", "    @functools.cache\n    def total", ["functools"]),
        ("return result - discount", "return round(result - discunt, LIMIT)", ["discunt"]),
        ("return result - discount", "return os.sep", []),
        ("return result - discount", "return [x for x in lines if path(x)]", []),
        ("return result - discount", "return (fee := 2) + fee", []),
        ("for line in lines:", "for line in sorted(lines):", []),
    ],
)
def test_names_that_nothing_defines(old: str, new: str, found: list[str]) -> None:
    assert undefined(*trees(edited(old, new)), FILE) == found


def test_what_was_undefined_before_is_no_news() -> None:
    was = ast.parse("def f():\n    return _('yes')\n")
    now = ast.parse("def f(x):\n    return _('yes') + _('no')\n")
    assert undefined(was, now, "def f():\n    return _('yes')\n") == []


def test_a_star_import_may_define_everything() -> None:
    after = edited("result - discount", "math_helper(result)")
    assert undefined(*trees(after), f"from tools import *\n{FILE}") == []
    assert undefined(*trees(after), "math_helper is broken here (\n") == []
    assert undefined(*trees(after), "this is broken (\n") == ["math_helper"]


@pytest.mark.parametrize(
    ("asked", "old", "new", "found"),
    [
        ("skip what has no price", "lines", "rows", "lines"),
        ("skip what has no price", "result", "amount", ""),
        ("skip what has no price", "discount", "rebate", "discount"),
        ("rename lines to rows", "lines", "rows", ""),
        ("the lines are rows", "lines", "rows", ""),
        ("use better words", "lines", "rows", ""),
        ("skip what has no price", "return result - discount", "return result", ""),
        ("split it", "return result - discount", "left = result\n        return left", ""),
    ],
)
def test_a_parameter_renamed_unasked(asked: str, old: str, new: str, found: str) -> None:
    assert renamed_unasked(asked, *trees(edited(old, new))) == found


@pytest.mark.parametrize(
    ("asked", "new", "found"),
    [
        ("closed orders cost nothing", "if self.closed:\n                result", ["closed"]),
        ("cancelled lines cost nothing", "if not line.cancelled:\n                result", []),
        ("use the attribute closed", "if self.closed:\n                result", []),
        ("not without a path", "if self.path:\n                result", []),
        ("remember the seen lines", "self.seen = line; self.seen; result", []),
    ],
)
def test_words_of_the_request_as_attributes(asked: str, new: str, found: list[str]) -> None:
    after = edited("            result", f"            {new}")
    assert only_words(asked, *trees(after), FILE) == found


def test_an_answer_is_told_what_is_wrong_with_its_names() -> None:
    after = edited("    def total(self, lines", "    @cache\n    def total(self, rows")
    after = after.replace("in lines", "in rows").replace("line.price", "self.net")
    found = slips("cache the net sum", REGION, after, FILE)
    assert undefined_names(REGION, after, FILE) == ["cache"]
    assert found == [
        "renamed `lines` without being asked to",
        "took the word `net` for an attribute",
    ]
