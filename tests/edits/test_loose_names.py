"""Names in a rewrite that nothing defines, that changed unasked, or that are words of a request."""

from __future__ import annotations

import pytest

from midstream.edits.doubt.slips import slips, undefined
from tests.helpers.judged import rewrite

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
    assert undefined(rewrite("", REGION, edited(old, new), FILE)) == found


def test_what_was_undefined_before_is_no_news() -> None:
    before = "def f():\n    return _('yes')\n"
    after = "def f(x):\n    return _('yes') + _('no')\n"
    assert undefined(rewrite("", before, after)) == []


@pytest.mark.parametrize(
    ("file", "found"),
    [
        (f"from tools import *\n{FILE}", []),
        (f"math_helper is broken here (\n{FILE}", []),
        (f"this is broken (\n{FILE}", ["math_helper"]),
    ],
)
def test_a_star_import_may_define_everything(file: str, found: list[str]) -> None:
    after = edited("result - discount", "math_helper(result)")
    assert undefined(rewrite("", REGION, after, file)) == found


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
    said = [f"renamed `{found}` without being asked to"] if found else []
    slip = slips(rewrite(asked, REGION, edited(old, new), FILE))
    assert [each for each in slip if each.startswith("renamed")] == said


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
    said = [f"took the word `{word}` for an attribute" for word in found]
    slip = slips(rewrite(asked, REGION, after, FILE))
    assert [each for each in slip if each.startswith("took")] == said


def test_an_answer_is_told_what_is_wrong_with_its_names() -> None:
    after = edited("    def total(self, lines", "    @cache\n    def total(self, rows")
    after = after.replace("in lines", "in rows").replace("line.price", "self.net")
    made = rewrite("cache the net sum", REGION, after, FILE)
    assert undefined(made) == ["cache"]
    assert slips(made) == [
        "renamed `lines` without being asked to",
        "took the word `net` for an attribute",
    ]
