"""What kind of change a hunk is: proven by its text, and said only where it holds."""

from __future__ import annotations

import ast
import random

import pytest

from midstream.edits.kinds import ChangeKind
from tests.helpers.changes import facts_between

SHOP = """\
import os
from decimal import (
    Decimal,
)


class Shop:
    \"\"\"A shop.\"\"\"

    def price(self, net, rate):
        # with tax
        total = {'net': net,
                 'tax': net*rate}
        if net < 0:
            raise ValueError("negative")
        return total['net']+total['tax']


def _round(x):
    return round(x, 2)
"""


def kinds(old: str, new: str, path: str = "shop.py") -> list[list[ChangeKind]]:
    return [[each.kind for each in hunk.kinds] for hunk in facts_between(path, old, new)]


def changed(old: str, new: str, path: str = "shop.py") -> list[list[ChangeKind]]:
    assert old in SHOP
    return kinds(SHOP, SHOP.replace(old, new), path)


TAX = """        total = {'net': net,
                 'tax': net*rate}"""


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (TAX, '        total = {"net": net, "tax": net * rate}', ChangeKind.FORMATTING),
        (TAX, '        total = {"net": net, "tax": net / rate}', None),
        ("total['net']+total", "(total['net'] + total", ChangeKind.EXCEPTION),  # does not parse
        ("return round(x, 2)", "return round(x, 2,)", ChangeKind.FORMATTING),
        ("return round(x, 2)", "return (round(x, 2),)", ChangeKind.EXCEPTION),
        ("# with tax", "# and tax", ChangeKind.COMMENTS),
        ("        # with tax\n", "", ChangeKind.COMMENTS),
        ("# with tax", "# type: ignore", ChangeKind.PLAIN),
        ('"""A shop."""', '"""The shop."""', ChangeKind.COMMENTS),
        ('"""A shop."""', '"""A shop.\n\n    >>> Shop()\n    """', ChangeKind.PLAIN),
        ('"negative"', '" negative"', ChangeKind.EXCEPTION),
        ("import os\n", "import os\nimport sys\n", ChangeKind.IMPORTS),
        ("    Decimal,\n", "    Context,\n    Decimal,\n", ChangeKind.IMPORTS),
        ("net, rate):", "net, rate=0):", ChangeKind.INTERFACE),
        ("def price", "def cost", ChangeKind.INTERFACE),
        ("def _round(x)", "def _round(y)", None),
        (
            '        if net < 0:\n            raise ValueError("negative")\n',
            "",
            ChangeKind.DELETION,
        ),
    ],
)
def test_the_kind_of_a_change(old: str, new: str, kind: ChangeKind | None) -> None:
    found = changed(old, new)
    assert [kinds[0] if kinds else None for kinds in found] == [kind]


def test_a_line_that_leaves_its_branch_is_no_formatting() -> None:
    old = "def f(a):\n    if a:\n        b()\n        c()\n"
    assert kinds(old, old.replace("        c()", "    c()")) == [[ChangeKind.EXCEPTION]]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("function f(a){return a}\n", "function f(a) {\n  return a\n}\n", ChangeKind.FORMATTING),
        ("let s = `a  b`\n", "let s = `a b`\n", ChangeKind.EXCEPTION),
        ("let s = 1 // one\n", "let s = 1 // first\n", ChangeKind.COMMENTS),
        ("let s = 1\n", "let s = 1 // eslint-disable-line\n", ChangeKind.PLAIN),
        ("return_\n(a)\n", "return_(a)\n", ChangeKind.FORMATTING),
        (
            "function f() {\n  return (\n  a)\n}\n",
            "function f() {\n  return\n  (a)\n}\n",
            ChangeKind.EXCEPTION,
        ),
    ],
)
def test_languages_with_a_grammar(old: str, new: str, kind: ChangeKind) -> None:
    assert kinds(old, new, "a.js")[0][0] is kind


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.go", '// int f;\nimport "C"\n', '// int f = system("x");\nimport "C"\n'),
        ("a.go", '/*\nint f;\n*/\nimport "C"\n', '/*\nint g;\n*/\nimport "C"\n'),
        ("A.java", "// one\nclass A {}\n", "// one \\u000a class B {}\nclass A {}\n"),
        ("a.c", "int a;\n// one\nint b;\n", "int a;\n// one ??/\nint b;\n"),
        ("a.ts", "// one\nlet a = 1\n", '/// <reference path="b.d.ts" />\nlet a = 1\n'),
        ("a.py", "x = 1\n", "x = 1  # midstream: ignore\n"),
        ("a.py", "x = 1\n", "x = 1  # nosemgrep\n"),
        ("A.java", "class A {}\n", "class A {} // NOSONAR\n"),
        ("a.py", "x = 1\ny = 2  # nosec\n", "x = 1  # nosec\ny = 2\n"),
    ],
)
def test_a_comment_that_does_something_is_no_comment(path: str, old: str, new: str) -> None:
    if path.endswith(".go"):
        old, new = f"package a\n\n{old}", f"package a\n\n{new}"
    (found,) = kinds(old, new, path)
    assert not {ChangeKind.COMMENTS, ChangeKind.FORMATTING} & {*found}


@pytest.mark.parametrize("path", ["notes.md", "data.csv"])
def test_nothing_is_proven_without_a_grammar(path: str) -> None:
    assert kinds("a  b\n", "a b\n", path) == [[]]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("package-lock.json", ChangeKind.GENERATED),
        ("tests/helpers.py", ChangeKind.TESTS),
        ("pkg/a_test.go", ChangeKind.TESTS),
        ("api_pb2.py", ChangeKind.GENERATED),
        ("pyproject.toml", ChangeKind.INTERFACE),
        ("db/migrations/0001.sql", ChangeKind.INTERFACE),
        ("db/migrations/0001_first.py", ChangeKind.INTERFACE),
        ("shop/settings.py", ChangeKind.INTERFACE),
        ("setup.py", ChangeKind.INTERFACE),
    ],
)
def test_files_that_say_what_they_are(path: str, kind: ChangeKind) -> None:
    assert kind in kinds("a = 1\n", "b = 2\n", path)[0]


def test_formatting_is_never_said_of_another_program() -> None:
    """Any hunk set that is called formatting leaves the module as Python reads it."""
    chance = random.Random(4)
    rows = ["x = f(1, 2)", "if x:", "    y = (x, 3)", "    z = [x]", "w = 'a  b'", "v = x - -1"]
    called = 0
    for _ in range(300):
        lines = list(rows)
        for _ in range(chance.randint(1, 4)):
            row = chance.randrange(len(lines))
            text = lines[row]
            at = chance.randrange(len(text) + 1)
            new = chance.choice([" ", "(", ")", ",", "'", '"', "\n", "    "])
            drop = chance.randint(0, 1)
            lines[row] = text[:at] + new + text[at + drop :]
        old, new = "\n".join(rows) + "\n", "\n".join(lines) + "\n"
        facts = facts_between("a.py", old, new)
        if facts and all(hunk.is_equal for hunk in facts):
            called += 1
            assert ast.dump(ast.parse(old)) == ast.dump(ast.parse(new))
    assert called >= 10
