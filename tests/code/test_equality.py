"""Equal syntax trees: a proof from parts of a text holds for all of it."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.code.equality import Replacement, applied, prove

TEXT = '''\
"""A module."""
import os; import sys

@mark(1)
class Shop:
    """A shop."""

    # its prices
    price = {'a': 1,
             'b': 2}; rate = 3

    def total(self, net):
        """The total."""
        if net: return 0
        elif self.rate:
            text = \'\'\'
  no code
\'\'\'
            return text, \\
                net
        else:
            try:
                net = (self
                       .price)
            except KeyError:
                pass
            # done
        return net
x = 1
'''
LINES = TEXT.split("\n")
SPACED = [
    lambda line: line.replace("'", '"'),
    lambda line: line.replace(" = ", "  ="),
    lambda line: f"{line}  # said" if line.strip() else line,
    lambda line: line.replace("(", "((").replace(")", "))"),
    lambda line: f"  {line}",
    lambda line: line.removeprefix("    "),
    lambda line: f"{line}\\",
    lambda line: f"\f{line}",
    lambda line: line.replace("net", "(net)"),
    lambda line: line.replace("(", "(\n"),
    lambda line: line.replace("; ", f"\n{line[: len(line) - len(line.lstrip())]}"),
    lambda line: f"{line}\n# said",
    lambda line: f"{line}\n{line[: len(line) - len(line.lstrip())]}else:",
    lambda line: f"if 1:\n{line}",
    lambda line: f"{line}\n0",
    lambda line: "",
]


@st.composite
def changes(draw: st.DrawFn) -> list[Replacement]:
    """Changes of neighbouring lines; most of them are of spaces, quotes or brackets."""
    found: list[Replacement] = []
    at = 0
    while (at := at + draw(st.integers(0, 12))) < len(LINES):
        stop = min(len(LINES), at + draw(st.integers(0, 3)))
        how = draw(st.sampled_from(SPACED))
        lines = "\n".join(map(how, LINES[at:stop] or ["  # new"])).split("\n")
        found.append(Replacement(at, stop, tuple(lines)))
        at = stop + 1
    return found


def tree(lines: list[str]) -> str:
    try:
        root = ast.parse("\n".join(lines))
    except SyntaxError:
        return "none"
    for node in ast.walk(root):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node
        ):
            assert body is not None
            body[0] = ast.Pass()
    return ast.dump(root)


@given(changes())
def test_what_is_proven_is_equal_for_python_itself(some: list[Replacement]) -> None:
    proven = prove("a.py", LINES, some)
    assert not proven or tree(applied(LINES, [some[i] for i in proven])) == tree(LINES)
    for i in proven:  # each by itself, if it does not need another one
        assert tree(applied(LINES, [some[i]])) in ("none", tree(LINES))


@given(changes())
def test_what_is_equal_for_python_itself_is_proven(some: list[Replacement]) -> None:
    if tree(applied(LINES, some)) == tree(LINES):
        assert set(prove("a.py", LINES, some)) == set(range(len(some)))


@pytest.mark.parametrize("head", ["", "def f():\n", "class A:\n    def f(self):\n", "if x:\n"])
def test_a_change_of_indentation_is_read_with_all_that_it_moves(head: str) -> None:
    indent = "    " * head.count("\n")
    old = [*head.splitlines(), f"{indent}if a:", f"{indent}    b", f"{indent}    c"]
    at = head.count("\n") + 1
    equal = [Replacement(at, at + 2, (f"{indent}  b", f"{indent}  c"))]
    assert set(prove("a.py", old, equal)) == {0}
    assert not prove("a.py", old, [Replacement(at + 1, at + 2, (f"{indent}c",))])
    assert not prove("a.py", old, [Replacement(at, at + 1, (f"{indent}  b",))])


def test_lines_that_a_parser_counts_otherwise_are_in_doubt() -> None:
    lines = ["a = 'x\ry'", "b = 'c'"]
    assert prove("a.py", lines, [Replacement(1, 2, ('b = "c"',))]) == {}


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.ts", "f(a, ...b);", "f(\n  a,\n  ...b,\n);"),
        ("a.ts", "const { a, b } = { c, ...d };", "const { a, b, } = { c, ...d, };"),
        ("a.ts", "function f<T>(a: T, b: U) {}", "function f<T,>(a: T, b: U,) {}"),
        ("a.js", "import { a } from 'b'; x = [1, [2]];", "import { a, } from 'b'; x = [1, [2,],];"),
        ("a.go", "package a\nvar b = T{1, f(2)}", "package a\nvar b = T{\n1,\nf(\n2,\n),\n}"),
        (
            "a.rs",
            "fn f(a: A) -> (A, B) { P { a: g(1) } }",
            "fn f(a: A,) -> (A, B,) { P { a: g(1,), } }",
        ),
        (
            "a.rs",
            "fn f() { match a { A => {} B => b } }",
            "fn f() { match a { A => {}, B => b, } }",
        ),
        ("a.rs", "fn f<T>(t: T) where T: A { (a, b) }", "fn f<T>(t: T,) where T: A, { (a, b,) }"),
    ],
)
def test_a_comma_at_the_end_of_a_list_says_nothing(path: str, old: str, new: str) -> None:
    for one, two in ((old, new), (new, old)):
        lines = tuple(one.split("\n"))
        change = Replacement(0, len(lines), tuple(two.split("\n")))
        assert set(prove(path, lines, [change])) == {0}


def test_literals_of_go_are_made_of_parts() -> None:
    lines = ["package a", "var b = []T{{A: 1, Bcd: 2}, {func() int { return 1 }, `a b`}}"]
    new = ("var b = []T{", "\t{A:   1,", "\t Bcd: 2},", "\t{func() int {", "\t\treturn 1", "\t},")
    assert set(prove("a.go", lines, [Replacement(1, 2, (*new, "\t `a b`}}"))])) == {0}
    for last in ("`a  b`", '"a b"', "`a b`, 1", "`a b` + c"):
        assert not prove("a.go", lines, [Replacement(1, 2, (*new, f"\t {last}}}}}"))])


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.js", "x = [a,];", "x = [a,,];"),
        ("a.js", "x = [];", "x = [,];"),
        ("a.js", "function f(...a) {}", "function f(...a,) {}"),
        ("a.js", "const [...a] = b;", "const [...a,] = b;"),
        ("a.rs", "fn f() { (a) }", "fn f() { (a,) }"),
        ("a.rs", "fn f(a: (A)) {}", "fn f(a: (A,)) {}"),
        ("a.rs", "fn f() { let (a) = b; }", "fn f() { let (a,) = b; }"),
        ("a.rs", "fn f() { m!(a) }", "fn f() { m!(a,) }"),
        ("a.c", "void f() { M(a); }", "void f() { M(a,); }"),
    ],
)
def test_a_comma_that_says_something(path: str, old: str, new: str) -> None:
    for one, two in ((old, new), (new, old)):
        assert prove(path, [one], [Replacement(0, 1, (two,))]) == {}
