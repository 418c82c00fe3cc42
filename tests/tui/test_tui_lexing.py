"""Lexing with checkpoints gives what pygments gives, in any order and while the text grows."""

from __future__ import annotations

import inspect
import re
import textwrap
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers import get_lexer_for_filename

from midstream.code import lexing
from midstream.code.lexing import KINDS, LineLexer, language_of, plain_runs
from midstream.code.lexing_rules import RulesByCharacter, first_characters
from tests.helpers.property import examples

PYTHON = inspect.getsource(textwrap) + inspect.getsource(lexing)
SNIPPETS = {
    "a.py": PYTHON,
    "a.js": "/* two\nlines */\nconst f = (x) => `a ${x}\nb`; // end\n",
    "a.c": '#include <stdio.h>\n/* c\n*/\nint main(void) { return printf("%d\\n", 3); }\n',
    "a.html": "<!-- x\n-->\n<p class='a'>\n<script>let x = 1;</script></p>\n",
    "a.sh": "cat <<EOF\n$HOME\nEOF\nfor i in 1 2; do echo $i; done\n",
}


def kinds_by_pygments(path: str, text: str) -> dict[int, str]:
    kinds: dict[int, str] = {}
    for at, token, value in get_lexer_for_filename(path).get_tokens_unprocessed(text):
        kind = lexing._kind(token)
        if kind != "plain":
            kinds.update({at + i: kind for i, c in enumerate(value) if c != "\n"})
    return kinds


def kinds_by_us(lexer: LineLexer, lines: list[str]) -> dict[int, str]:
    kinds: dict[int, str] = {}
    at = 0
    for number, line in enumerate(lines):
        for start, stop, kind in lexer.spans(number):
            assert 0 <= start < stop <= len(line)
            kinds.update(dict.fromkeys(range(at + start, at + stop), kind))
        at += len(line) + 1
    return kinds


@pytest.mark.parametrize("path", SNIPPETS)
def test_same_as_pygments(path: str) -> None:
    text = SNIPPETS[path]
    lines = text.split("\n")[:-1]
    lexer = LineLexer(path, lines)
    assert lexer.advance(len(lines))
    assert kinds_by_us(lexer, lines) == kinds_by_pygments(path, text)


def test_any_order_and_small_steps_give_the_same() -> None:
    lines = PYTHON.split("\n")
    whole = LineLexer("a.py", lines)
    whole.advance(len(lines))
    steps = LineLexer("a.py", lines)
    while not steps.advance(len(lines), limit=7):
        pass
    for number in reversed(range(len(lines))):
        assert colours(steps, number) == colours(whole, number)


def colours(lexer: LineLexer, line: int) -> dict[int, str]:
    return {c: kind for start, stop, kind in lexer.spans(line) for c in range(start, stop)}


# A docstring that is not closed yet is a plain string to the lexer; only that may differ.
CODE = [line for line in PYTHON.split("\n") if '"""' not in line]


@given(st.lists(st.sampled_from(CODE[:400]), max_size=40), st.data())
@examples(60)
def test_growing_gives_the_same_as_all_at_once(lines: list[str], data: st.DataObject) -> None:
    growing = LineLexer("a.py")
    done = 0
    while done < len(lines):
        step = data.draw(st.integers(1, 5))
        growing.append(lines[done : done + step])
        growing.advance(len(growing))
        growing.preview("x = 'half")
        done = min(done + step, len(lines))
    whole = LineLexer("a.py", lines)
    whole.advance(len(lines))
    for number in range(len(lines)):
        assert colours(growing, number) == colours(whole, number)


def test_a_part_begins_in_the_state_above_it() -> None:
    lines = ['"""A docstring', "def not_code():", '"""', "def code(): pass"]
    whole = LineLexer("a.py", lines)
    first, stack = whole.resume_at(1)
    part = LineLexer("a.py", lines[first:], stack=stack)
    part.advance(4)
    assert colours(part, 1 - first) == dict.fromkeys(range(15), "string")
    assert whole.resume_at(3) == (3, ("root",))


def test_unknown_and_minified_files_are_plain() -> None:
    assert LineLexer("data.unknown-kind", ["def x"]).spans(0) == ()
    wide = LineLexer("a.js", ["x" * (lexing.MAX_LINE_LENGTH + 1), "let x"])
    assert wide.advance(2)
    assert wide.spans(1) == ()
    assert language_of("pkg/things.py") == "Python"
    assert language_of("data.unknown-kind") == ""


def test_plain_runs_cover_the_line() -> None:
    lexer = LineLexer("a.py", ["def f(x): return 'a'  # c"])
    lexer.advance(1)
    assert plain_runs(((1, 2, "string"), (2, 3, "string"), (4, 5, "string")), 6) == [
        *((0, 1, "plain"), (1, 3, "string"), (3, 4, "plain"), (4, 5, "string"), (5, 6, "plain")),
    ]
    runs = plain_runs(lexer.spans(0), 25)
    assert runs[0][0] == 0
    assert runs[-1][1] == 25
    assert all(a[1] == b[0] for a, b in pairwise(runs))
    assert {kind for *_, kind in runs} <= {*KINDS, "plain"}


PATTERNS = st.from_regex(
    r"\A(\(\?i\))?((\[\^?[a-ds-w_0-9\\]{1,4}\]|[a-d.]|\\[dDsSwWb]|\(\?[:=!]a\)|\(a\|bc?\|\))[*+?]?){1,4}\Z"
)


@given(PATTERNS, st.text("abcdkswAKS_09 \t\n\x1c\u017f\u212a", min_size=1, max_size=6))
@examples(400)
def test_no_match_begins_with_a_character_that_was_ruled_out(source: str, text: str) -> None:
    try:
        pattern = re.compile(source)
    except re.error:
        return
    if pattern.match(text) and ord(text[0]) < 128:
        assert ord(text[0]) in first_characters(source, pattern.flags)


@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.go", "a.rs", "a.c", "a.css", "a.toml", "a.sh"])
def test_every_rule_that_matches_is_among_those_tried(path: str) -> None:
    rules = getattr(get_lexer_for_filename(path), "_tokens")  # noqa: B009
    text = "".join(SNIPPETS.values()) + PYTHON[:3_000]
    tried = all_rules = 0
    for state, of_state in rules.items():
        table = RulesByCharacter(of_state)
        for position in range(0, len(text), 7):
            worth = table[text[position]]
            tried, all_rules = tried + len(worth), all_rules + len(of_state)
            matching = [rule for rule in of_state if rule[0](text, position)]
            assert [rule for rule in worth if rule in matching] == matching, state
    assert tried < all_rules / 2


def test_runs_of_a_shorter_line_end_with_it() -> None:
    spans = ((1, 2, "string"), (4, 9, "string"), (12, 13, "name"))
    assert plain_runs(spans, 3) == [(0, 1, "plain"), (1, 2, "string"), (2, 3, "plain")]
    assert plain_runs(spans, 6)[-1] == (4, 6, "string")
