"""Every line prefix of real code parses after repair, or says that it must wait."""

from __future__ import annotations

import ast
import sysconfig
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.guard.prefix import PrefixLexer, complete_prefix
from tests.helpers.property import examples

LIBRARY = Path(sysconfig.get_path("stdlib"))
NAMES = ["argparse.py", "ast.py", "dataclasses.py", "subprocess.py", "typing.py", "http/server.py"]


@pytest.mark.system
@pytest.mark.parametrize("name", NAMES)
def test_every_prefix_of_a_library_module_parses(name: str) -> None:
    lines = (LIBRARY / name).read_text("utf-8").split("\n")
    lexer = PrefixLexer()
    waiting = 0
    for count, line in enumerate(lines, 1):
        lexer.feed(line)
        if lexer.open:
            waiting += 1
        elif count % 23 == 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse("\n".join([*lines[:count], *lexer.closing(), ""]))
    assert not lexer.open
    assert waiting < len(lines) / 2


@pytest.mark.parametrize(
    ("lines", "closing"),
    [
        (["if a:"], [" pass"]),
        (["def f():", "\tif x:"], ["\t\tpass"]),
        (["@cached"], ["def _(): pass"]),
        (["try:"], [" pass", "finally: pass"]),
        (["try:", "    a()"], ["finally: pass"]),
        (["try:", "    a()", "except E:", "    b()"], []),
        (["try: a()"], ["finally: pass"]),
        (["match x:"], [" case _: pass"]),
        (["x = 1  # if:"], []),
        (["for a in b:  # comment"], [" pass"]),
    ],
)
def test_closing(lines: list[str], closing: list[str]) -> None:
    lexer = PrefixLexer()
    for line in lines:
        lexer.feed(line)
    assert lexer.closing() == closing
    ast.parse("\n".join([*lines, *closing, ""]))


@pytest.mark.parametrize(
    "lines",
    [
        ["x = ("],
        ["x = '''"],
        ["x = 1 + \\"],
        ["f'''{a"],
        ["call(", "    '''text", "    ''',"],
    ],
)
def test_waits_while_a_statement_is_open(lines: list[str]) -> None:
    assert complete_prefix(lines) is None


def test_brackets_and_quotes_inside_strings_do_not_count() -> None:
    lines = ["a = '(['", 'b = "it\'s"', "c = f'{d[\"k\"]!r:>{w}}'", "e = r'\\n'", "f = f'{{{x}}}'"]
    text = complete_prefix(lines)
    assert text is not None
    ast.parse(text)


@examples(200)
@given(st.lists(st.text(max_size=40), max_size=20))
def test_garbage_never_raises(lines: list[str]) -> None:
    complete_prefix(lines)
