"""What lines leave open for the next one, and what an answer may not do with it."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.engine.codec import EditCodec
from midstream.engine.edit_request import EditRequest
from midstream.engine.python_lines import LineState, fitted, is_regular, may_come, states

MODEL = Path(__file__).parents[2] / "models" / "brook-4m"


def behind(text: str) -> LineState:
    return states(text.split("\n"))[-1]


@pytest.mark.parametrize(
    ("text", "depth", "quote", "joined", "header"),
    [
        ("x = f(a,", 1, "", False, -1),
        ("x = f(a,\n      b)", 0, "", False, -1),
        ("x = '(' + \"[\"  # {", 0, "", False, -1),
        ('    """Say', 0, '"""', False, -1),
        ('    """Say\n    (this):\n    """', 0, "", False, -1),
        ("x = '''a''' + '''b", 0, "'''", False, -1),
        ("assert x, \\", 0, "", True, -1),
        ("def f(a):  # type: ignore", 0, "", False, 0),
        ("    def f(\n            a,\n            b):", 0, "", False, 4),
        ("    else:  # no break", 0, "", False, 4),
        ("x = {1:", 1, "", False, -1),
        ("if a: b", 0, "", False, -1),
    ],
)
def test_what_is_open_behind_lines(
    text: str, depth: int, quote: str, joined: bool, header: int
) -> None:
    state = behind(text)
    assert (state.depth, state.quote, state.joined, state.header) == (depth, quote, joined, header)


@pytest.mark.parametrize(
    ("text", "line", "may"),
    [
        ("def f():", "return 1", False),
        ("def f():", "    return 1", True),
        ("def f():\n    x = 1", "        y = 2", False),
        ("def f():\n    x = 1", "  y = 2", False),
        ("def f():\n    x = 1", "y = 2", True),
        ("if a:\n    b", "else:", True),
        ("if a:\n    b\nc", "else:", False),
        ("for a in b:\n    c", "else:", True),
        ("if a:\n    b", "except E:", False),
        ("try:\n    a", "b", False),
        ("try:\n    a", "    b", True),
        ("try:\n    a", "except E:", True),
        ("def f():\n    try:\n        a", "x = 1", False),
        ("f(a,", "b)", True),
        ("if a:\n    b", "# a remark", True),
        ("if a:\n    b", "", True),
        ("async with a:\n    b", "finally:", False),
    ],
)
def test_which_line_may_follow(text: str, line: str, may: bool) -> None:
    assert behind(text).may_follow(line) is may


def test_a_try_without_handler_is_unfinished() -> None:
    assert behind("try:\n    a").unfinished
    assert behind("if a:").unfinished
    assert not behind("try:\n    a\nfinally:\n    b").unfinished


def test_the_engine_itself_is_regular() -> None:
    folder = Path(__file__).parents[2] / "app" / "midstream" / "engine"
    files = sorted(folder.glob("*.py"))
    assert len(files) > 10
    texts = {file.name: file.read_text("utf-8").split("\n") for file in files}
    assert [name for name, lines in texts.items() if not is_regular(lines, states(lines))] == []


@given(st.text("ab()[]\"'#:\\ \n", max_size=60))
def test_any_text_can_be_scanned(text: str) -> None:
    state = behind(text)
    assert state.depth >= 0
    assert state.quote in ("", '"""', "'''")


@pytest.mark.parametrize(
    ("line", "above", "fits"),
    [
        ("    f()", ["    def g(self):  # type: ignore"], "        f()"),
        ("    f()", ["    else:  # no break"], "        f()"),
        ('          """Say"""', ["    def g(a,", "          b):"], '          """Say"""'),
        ('    """Say"""', ["    def g(a,", "          b):"], '        """Say"""'),
        ("      f()", ["    if x:", "        y"], "    f()"),
    ],
)
def test_a_new_line_stands_in_the_block_that_is_open(
    line: str, above: list[str], fits: str
) -> None:
    assert fitted(line, above, None) == fits


@pytest.mark.parametrize(
    ("line", "may"),
    [
        ("      size=3,", True),
        ("      , size=3,", False),
        ("      size=,", False),
        ("      size=1 depth=2,", False),
    ],
)
def test_a_line_is_judged_with_the_rest_of_its_statement(line: str, may: bool) -> None:
    source = ["x = f(a,", "      size=1,", "      b=2)", "return x"]
    old, above = source[1], source[:1]
    assert may_come(line, old, above=above, source=source, used=2) is may


def test_a_docstring_that_is_opened_must_be_closed_further_down() -> None:
    source = ["def f():", '    """Say.', "", '    More."""', "    return 1"]
    above = source[:1]
    assert may_come('    """Tell."""', source[1], above=above, source=source, used=2)
    assert not may_come('    """Tell', None, above=source[:4], source=source, used=4)


REGION = 'def show(items):\n    assert all(\n        items\n    ), "none"\n    return items\n'


@pytest.fixture(scope="module")
def codec() -> EditCodec:
    return EditCodec.load(MODEL)


def answer(codec: EditCodec, region: str, *wanted: str) -> str:
    """Write an answer whose model likes one token after the other best, and anchors after it."""
    names = {codec.vocab.special_name(k): k for k in range(codec.vocab.first_text_id)}
    names["("] = next(k for k in range(codec.vocab.size) if codec.vocab.bytes_of(k) == b"(")
    encoded = codec.encode(EditRequest("drop the assert", region))
    text = ""
    for step in range(600):
        row = np.full(codec.vocab.size, -30.0, np.float32)
        for k in range(region.count("\n") + 1):
            row[names[f"<L{k + 1}>"]] = -1.0 - k / 10
        row[names[wanted[min(step, len(wanted) - 1)]]] = 20.0
        token = encoded.choice.pick(row)
        encoded.choice.feed(token)
        text += encoded.decoder.feed(token)
        if token in encoded.stop_ids:
            return text
    raise AssertionError("the answer does not end")


def test_a_part_of_a_statement_is_not_deleted(codec: EditCodec) -> None:
    ast.parse(answer(codec, REGION, "<L1>", "<L3>", "<L4>", "<L5>", "<L6>"))
    whole = answer(codec, REGION, "<L1>", "<L5>", "<L6>")
    assert whole == "def show(items):\n    return items\n"


def test_an_answer_does_not_end_where_a_block_is_missing(codec: EditCodec) -> None:
    assert answer(codec, REGION, "<L1>", "<L6>").count("\n") > 1


def test_a_line_that_runs_in_circles_ends(codec: EditCodec) -> None:
    assert answer(codec, REGION, "<L1>", "<L2>", "<L3>", "(") == REGION
