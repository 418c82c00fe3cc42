"""Renames of parameters and local variables, and those that are left to the model."""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import textwrap
import types
from collections.abc import Iterator

import pytest

from midstream.codebase.local_names import calls_by_keyword, rename_local


def renamed(text: str, old: str, new: str, path: str = "a.py") -> str | None:
    lines = textwrap.dedent(text).strip("\n").split("\n")
    after = rename_local(lines, 0, len(lines), path, old, new)
    return None if after is None else "\n".join(after)


def test_every_use_is_renamed_and_nothing_else() -> None:
    text = """
        @cached
        def area(self, width, *, höhe=1):
            box = Box(width=width)
            self.width = [width * höhe for höhe in box.width]
            if (half := width / 2) > 1: width = half
            return lambda: "ü" * width + f"{width:{width}}"
    """
    assert renamed(text, "width", "w") == textwrap.dedent("""
        @cached
        def area(self, w, *, höhe=1):
            box = Box(width=w)
            self.width = [w * höhe for höhe in box.width]
            if (half := w / 2) > 1: w = half
            return lambda: "ü" * w + f"{w:{w}}"
    """).strip("\n")


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("def f(a):\n    # a is first\n    return a", "a"),
        ("def f(a):\n    'Return a.'\n    return a", "a"),
        ("def f(a):\n    return b", "a"),
        ("def f(a=a):\n    return a", "a"),
        ("def f():\n    global a\n    a = 1", "a"),
        ("def f():\n    return a", "a"),
        ("def f():\n    import a\n    return a", "a"),
        ("def f(a):\n    return [a for a in a]", "a"),
        ("def f(a):\n    return lambda a: a", "a"),
        ("def f(a):\n    class C:\n        a = 1\n    return a", "a"),
        ("def f(a):\n    return locals()", "a"),
        ("def f(f):\n    return f", "f"),
        ("def f(x):\n    match x:\n        case [a]:\n            return a", "a"),
        ("def f():\n    try:\n        g()\n    except E as a:\n        raise a", "a"),
        ("def f(a):\n    return a\n\ndef g(a):\n    return a", "a"),
        ("class C:\n    a = 1", "a"),
        ("def f(a:\n    return a", "a"),
    ],
)
def test_what_is_not_certain_is_left_to_the_model(text: str, old: str) -> None:
    assert renamed(text, old, "b") is None


@pytest.mark.parametrize("new", ["b", "class", "1st", "a.b", ""])
def test_a_name_that_does_not_fit_is_left_to_the_model(new: str) -> None:
    assert renamed("def f(a, b):\n    return a", "a", new) is None


@pytest.mark.parametrize(
    ("path", "text", "old", "after"),
    [
        (
            "a.go",
            "package p\n\nfunc Area(width int) int {\n\tb.width = width\n\treturn width\n}",
            "width",
            "package p\n\nfunc Area(n int) int {\n\tb.width = n\n\treturn n\n}",
        ),
        ("a.go", "package p\n\nfunc F() {\n\turl := url.Parse(x)\n\tg(url)\n}", "url", None),
        (
            "a.js",
            "function f(total) {\n  for (const a of total) g(a.total, total);\n}",
            "total",
            "function f(n) {\n  for (const a of n) g(a.total, n);\n}",
        ),
        ("a.js", "function f(total) {\n  return { total };\n}", "total", None),
        ("a.js", "function f(a) {\n  return (a) => a;\n}", "a", None),
        ("a.js", "function f(a) {\n  return `${a} a`;\n}", "a", None),
        ("a.rs", "fn f(a: u8) -> u8 {\n    let a = a + 1;\n    a\n}", "a", None),
        (
            "a.rs",
            "fn f(len: u8) -> u8 {\n    x.len() + len\n}",
            "len",
            "fn f(n: u8) -> u8 {\n    x.len() + n\n}",
        ),
        ("a.txt", "rename a", "a", None),
    ],
)
def test_other_languages(path: str, text: str, old: str, after: str | None) -> None:
    assert renamed(text, old, "n", path) == after


def _functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for module in (argparse, json.decoder, textwrap):
        source = inspect.getsource(module)
        lines = source.split("\n")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                yield "\n".join(lines[first - 1 : node.end_lineno]), node


def _codes(code: types.CodeType) -> list[tuple[bytes, tuple[str, ...]]]:
    """The bytecode of a function and of those in it, with the names that it looks up outside."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return [(code.co_code, code.co_names), *(c for each in inner for c in _codes(each))]


def test_functions_of_the_standard_library_stay_the_same_programs() -> None:
    count = 0
    for text, node in _functions():
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        names |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        for name in sorted(names):
            # Cells are in the order of their names.
            if (after := renamed(text, name, f"{name}0")) is None:
                continue
            before = compile(textwrap.dedent(text), "f", "exec", dont_inherit=True)
            assert _codes(compile(after, "f", "exec", dont_inherit=True)) == _codes(before)
            count += 1
    assert count > 300


def test_calls_that_pass_a_parameter_by_name() -> None:
    lines = [
        "def area(width):",
        "    return area(width=width)",
        "area(width=1)",
        "shape.area(1, width=2)",
        "other(width=3)",
        "area(1)",
    ]
    assert calls_by_keyword(lines, 0, 2, "a.py", "width") == [2, 3]
    assert calls_by_keyword(lines, 0, 2, "a.py", "height") == []
    assert calls_by_keyword(lines, 0, 2, "a.go", "width") == []
    assert calls_by_keyword([*lines, "def"], 0, 2, "a.py", "width") == []
