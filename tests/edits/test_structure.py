"""The tokens of a hunk that differ: what is not marked is the same on both sides."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.code.lexing import LineLexer, Span
from midstream.edits.structure import MAX_TOKENS, LexedLine, token_difference
from tests.helpers.property import examples


def lexed(path: str, text: str) -> list[LexedLine]:
    lines = text.split("\n")
    lexer = LineLexer(path, lines)
    lexer.advance(len(lines))
    return [LexedLine(line, lexer.spans(number)) for number, line in enumerate(lines)]


def marked(old: str, new: str, path: str = "a.py") -> tuple[str, str] | None:
    """Both sides with brackets around what is marked."""
    marks = token_difference(path, lexed(path, old), lexed(path, new))
    if marks is None:
        return None
    sides: list[str] = []
    for text, spans in ((old, marks.old), (new, marks.new)):
        lines = text.split("\n")
        for number, line in enumerate(lines):
            for start, stop in reversed(spans[number]):
                line = f"{line[:start]}«{line[start:stop]}»{line[stop:]}"
            lines[number] = line
        sides.append("\n".join(lines))
    return sides[0], sides[1]


def test_arguments_on_lines_of_their_own_are_no_change() -> None:
    old = "total = work(first, second)"
    new = "total = work(\n    first,\n    third,\n)"
    assert marked(old, new) == (
        "total = work(first, «second»)",
        "total = work(\n    first,\n    «third,»\n)",
    )


def test_indentation_within_brackets_is_no_change() -> None:
    old = "x = {\n  'a': 1,\n  'b': 2,\n}"
    new = "x = {\n    'a': 1,\n    'b': 3,\n}"
    found = marked(old, new)
    assert found is not None
    assert found[1] == "x = {\n    'a': 1,\n    'b': «3»,\n}"


def test_indentation_that_means_something_is_marked() -> None:
    old = "    if a:\n        work(1)\n        stop(2)"
    new = "    if a:\n        work(1)\n    stop(2)"
    assert marked(old, new) == (
        "    if a:\n        work(1)\n«        »stop(2)",
        "    if a:\n        work(1)\n«    »stop(2)",
    )
    assert marked("  if (a) {\n  b(c)\n}", "if (a) {\n    b(c)\n}", "a.ts") == (
        "  if (a) {\n  b(c)\n}",
        "if (a) {\n    b(c)\n}",
    )


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.rs", "let x = a.b().c();", "let x = a\n    .b()\n    .c();"),
        ("a.rs", "f::<'a>(P { x: 1, y })", "f::<'a>(P {\n    x: 1,\n    y\n})"),
        (
            "a.rs",
            "#[derive(Debug, Clone)]\nx(&'a y)",
            "    #[derive(Debug, Clone)]\n    x(\n&'a y)",
        ),
        ("A.java", "int[] x = {1, 2};", "int[] x = {\n    1,\n    2\n};"),
        ("A.java", "return a.b().c();", "return a\n    .b()\n    .c();"),
        ("a.c", "if (a) { b(); }", "if (a)\n{\n    b();\n}"),
        ("a.c", "/* one\n   two */\nf(a);", "    /* one\n       two */\n    f(\n        a);"),
        ("a.go", "f(P{x: 1, y: 2})", "f(P{\n\tx: 1,\n\ty: 2})"),
        ("a.go", "x := a.b(c) + d", "x := a.\n\tb(c) +\n\td"),
        ("a.js", "const x = {a: 1, b};", "const x = {\n  a: 1,\n  b\n};"),
        ("a.js", "x = a.b().c()", "x = a\n  .b()\n  .c()"),
        ("a.js", "if (a) b()", "if (a)\n  b()"),
        ("a.ts", "type T = A | B;", "type T =\n  | A\n  | B;".replace("\n  | A", "\n  A")),
        ("a.ts", "f = async (a) => b && c;", "f = async (a) =>\n  b\n  && c;"),
    ],
)
def test_breaks_that_end_no_statement_are_no_change(path: str, old: str, new: str) -> None:
    assert marked(old, new, path) == (old, new)
    assert marked(new, old, path) == (new, old)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.js", "return a + b", "return\na + b"),
        ("a.js", "a = b(c)", "a = b\n(c)"),
        ("a.js", "x = a\n++b", "x = a++\nb"),
        ("a.js", "x = `a\n\nb`", "x = `a\nb`"),
        ("a.ts", "class A { a\n b }", "class A { a b }"),
        ("a.go", "const (\n\tA\n\tB\n)", "const (\n\tA B\n)"),
        ("a.go", "x := `a\n\nb`", "x := `a\nb`"),
        ("A.java", 'x = """\n\n  a""";', 'x = """\n  a""";'),
    ],
)
def test_plain_marks_decide_between_breaks_that_may_end_a_statement(
    path: str, old: str, new: str
) -> None:
    assert marked(old, new, path) in (None, ("x = a\n«++»b", "x = a«++»\nb"))


def test_a_block_around_statements_is_marked_alone_in_languages_with_braces() -> None:
    for path, head in (
        ("a.js", "if (a)"),
        ("a.ts", "for (const a of b)"),
        ("a.go", "if a"),
        ("a.rs", "if a"),
        ("A.java", "while (a)"),
        ("a.c", "if (a)"),
    ):
        old = "    work(1);\n    stop(2);"
        new = f"    {head} {{\n        work(1);\n        stop(2);\n    }}"
        wrapped = f"    «{head} {{»\n        work(1);\n        stop(2);\n    «}}»"
        assert marked(old, new, path) == (old, wrapped), path
        assert marked(new, old, path) == (wrapped, old), path


WRAPPED = [
    ("«if a:»", ["work(1)", "stop(2)"]),
    ("«if a:»", ["if b:", "    work(1)", "stop(2)"]),
    ("«for a in work(1):»", ["work(1)", "stop(2)"]),
    ("«with a:»", ["total = work(", "  1,", ")", "# said", "stop(2)"]),
    ("«def f():»", ["try:", "    work(1)", "except OSError:", "    stop(2)"]),
    ("«if a:»", ["text = '''", "  kept", "'''", "stop(2)"]),
]


@pytest.mark.parametrize(("head", "lines"), WRAPPED)
@pytest.mark.parametrize("indent", ["", "    ", "\t"])
def test_statements_that_a_block_was_written_around_are_no_change(
    head: str, lines: list[str], indent: str
) -> None:
    # What is within a text keeps its spaces.
    within = [n for n, line in enumerate(lines) if n and "'''" in "".join(lines[:n])]
    inner = ["" if n in within and n < 3 else "    " for n in range(len(lines))]
    outer = ["" if n in within and n < 3 else indent for n in range(len(lines))]
    old = "\n".join(f"{space}{line}" for space, line in zip(outer, lines, strict=True))
    body = [f"{i}{o}{line}" for i, o, line in zip(inner, outer, lines, strict=True)]
    new = "\n".join([f"{indent}{head.strip('«»')}", *body])
    # The indentation of a line that came is marked with it.
    wrapped = "\n".join([f"«{indent}{head.strip('«»')}»", *body])
    assert marked(old, new) == (old, wrapped)
    assert marked(new, old) == (wrapped, old)


def test_handlers_and_branches_around_statements_are_marked_alone() -> None:
    old = "    with open(a) as f:\n        x = f.read()\n    y = 1"
    new = (
        "    try:\n        with open(a) as f:\n            x = f.read()\n        y = 1\n"
        "    except OSError:\n        x = None"
    )
    assert marked(old, new) == (
        old,
        "«    try:»\n        with open(a) as f:\n            x = f.read()\n        y = 1\n"
        "«    except OSError:»\n«        x = None»",
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Into or out of a block that is there on both sides.
        (" if a:\n    work(1)\n    stop(2)", " if a:\n    work(1)\n« »stop(2)"),
        (" if a:\n    work(1)\n stop(2)", " if a:\n    work(1)\n«    »stop(2)"),
        ("    stop(2)\n    work(1)", "«  »stop(2)\n«  »work(1)"),
        (
            "  if a:\n    if b:\n      work(1)\n    else:\n      stop(2)",
            "  if a:\n    if b:\n      work(1)\n«  »else:\n«    »stop(2)",
        ),
        # The new block is not all that is new.
        (
            "  if a:\n    work(1)\n    stop(2)",
            "  if a:\n    work(1)\n«  for b in a:»\n«      »stop(2)",
        ),
    ],
)
def test_statements_in_another_block_are_marked(old: str, new: str) -> None:
    found = marked(old, new.replace("«", "").replace("»", ""))
    assert found is not None
    assert found[1] == new


def test_where_nothing_can_be_seen_of_a_mark_the_plain_ones_stand() -> None:
    assert marked("if a:\n    work(1)\n    stop(2)", "if a:\n    work(1)\nstop(2)") is None


def test_lines_that_are_no_whole_blocks_keep_their_indentation() -> None:
    old = "        if a:\n            work(1)\n    stop(2)\n        go(3)"
    new = "        if a:\n            work(1)\n    stop(2)\n            go(3)"
    found = marked(old, new)
    assert found is not None
    assert found[1].endswith("«            »go(3)")


def test_what_came_is_whole_lines_and_whole_brackets() -> None:
    old = "one();\nif (b) {\n  two();\n}"
    new = "if (a) {\n  one();\n  if (b) {\n    two();\n  }\n}"
    assert marked(old, new, "a.js") == (
        old,
        "«if (a) {»\n  one();\n  if (b) {\n    two();\n  }\n«}»",
    )
    old = "on('x', () => {\n  one(1);\n  two(2);\n});"
    new = "on('x', () => {\n  if (a) {\n    one(1);\n    two(3);\n  }\n});"
    found = marked(old, new, "a.js")
    assert found is not None
    assert found[1] == ("on('x', () => {\n  «if (a) {»\n    one(1);\n    two(«3»);\n  «}»\n});")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("say('a b', here, there)", "say('a  b', here, there)"),
        ("x = 1  # a b", "x = 1  # a  b"),
        ("say('''\n  a''', here)", "say('''\n    a''', here)"),
        ("say('%d items', here, there)", "say('% d items', here, there)"),
        ("say('{:d}', here, there)", "say('{: d}', here, there)"),
        ("say('{}{:d}', here, there)", "say('{}{: d}', here, there)"),
    ],
)
def test_spaces_in_strings_and_comments_count(old: str, new: str) -> None:
    found = marked(old, new)
    assert found is not None
    assert all("«" in side for side in found)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.js", "return value + 1", "return\nvalue + 1"),
        ("a.js", "a = <b>{x}</b> y", "a = <b>{x}</b>y"),
        ("a.js", "on(() => { b(); a })", "on(() => {\n  b()\n  a\n})"),
        ("a.c", "#define F (x) (y)", "#define F(x) (y)"),
        ("a.py", 'say(f"{total = }", other)', 'say(f"{total =}", other)'),
        ("a.py", "a = b + \\\n    c", "a = b + c"),
        ("a.py", "import os, sys", "class Other(Thing): pass"),
        ("a.rb", "work [1], 2", "work[1], 2"),
        ("a.md", "one (two)", "one\n(two)"),
    ],
)
def test_in_doubt_nothing_is_said(path: str, old: str, new: str) -> None:
    assert marked(old, new, path) is None


def test_operators_that_are_written_apart_are_not_the_same() -> None:
    assert marked("x = a - -b", "x = a --b", "a.js") == ("x = a «- -»b", "x = a «--»b")


def test_a_bracket_in_a_text_of_several_lines_opens_nothing() -> None:
    before = "say(1)\n'''\n(\n'''\n    if a:\n        work(1)\n"
    old, new = f"{before}        stop(2)", f"{before}    stop(2)"
    found = marked(old, new)
    assert found is not None
    assert found[0].endswith("«        »stop(2)")


def test_a_line_is_read_once_however_many_strings_it_has() -> None:
    class Spans(tuple[Span, ...]):
        reads = 0

        def __iter__(self) -> Iterator[Span]:
            Spans.reads += 1
            return super().__iter__()

    strings = ", ".join(["'a'"] * 60)
    (line,) = lexed("a.py", f"x = [1, {strings}]")
    old = [LexedLine(line.text, Spans(line.spans))]
    assert token_difference("a.py", old, [line]) is not None
    assert Spans.reads == 1


def test_a_hunk_with_too_many_tokens_is_not_read_to_its_end() -> None:
    class Unread(tuple[Span, ...]):
        def __iter__(self) -> Iterator[Span]:
            raise AssertionError("read beyond the bound")

    lines = lexed("a.py", "\n".join(["x = 1"] * MAX_TOKENS))
    lines.append(LexedLine("y = 'a'", Unread([(4, 7, "string")])))
    assert token_difference("a.py", lines, lines) is None


PIECES = st.sampled_from([
    *("a", "bc", "(", ")", "[", "]", "{", "}", ",", "=", "- ", "-", " ", "   ", "\n", "\n    "),
    *("if a:", "'s t'", "'s  t'", '"', '"""', "# c", "// c", "/*", "*/", "1.5", "f(a, b)", "é"),
])  # fmt: skip
TEXTS = st.lists(PIECES, min_size=1, max_size=14).map("".join)


@given(TEXTS, TEXTS, st.sampled_from(["a.py", "a.js", "a.go", "a.rs", "A.java", "a.c"]))
@examples(1_000)
def test_what_is_not_marked_is_equal_in_order(old: str, new: str, path: str) -> None:
    olds, news = lexed(path, old), lexed(path, new)
    marks = token_difference(path, olds, news)
    if marks is None:
        return
    rests: list[str] = []
    for lines, spans in ((olds, marks.old), (news, marks.new)):
        assert len(spans) == len(lines)
        rest = ""
        for line, mine in zip(lines, spans, strict=True):
            at = 0
            for start, stop in mine:
                assert at <= start < stop <= len(line.text)
                rest += line.text[at:start]
                at = stop
            rest += line.text[at:]
        rests.append("".join(rest.split()))
    assert rests[0] == rests[1]


Block = list["str | tuple[str, Block]"]
"""Statements, and headers with the statements below them."""


@st.composite
def programs(draw: st.DrawFn) -> tuple[Block, Block]:
    """Two programs of statements that each have, of which some lie in other blocks."""
    count = iter(range(1_000))

    def block(depth: int) -> Block:
        found: Block = []
        for _ in range(draw(st.integers(1, 4))):
            number = next(count)
            if depth < 3 and draw(st.booleans()):
                head = draw(st.sampled_from(["if c{}:", "for c{} in x:", "with c{}(x):"]))
                found.append((head.format(number), block(depth + 1)))
            else:
                found.append(draw(st.sampled_from(["s{}()", "s{} = (1,)"])).format(number))
        return found

    def changed(old: Block) -> Block:
        new: Block = []
        for each in old:
            if isinstance(each, str):
                new.append(each)
            else:
                inner = changed(each[1])
                how = draw(st.integers(0, 5))
                if how == 0:
                    new += inner  # the block is gone
                elif how == 1 and len(inner) > 1:
                    new += [(each[0], inner[:-1]), inner[-1]]
                elif how == 2 and new:
                    new[-1:] = [(each[0], [new[-1], *inner])]
                else:
                    new.append((each[0], inner))
        if not draw(st.integers(0, 3)):
            at, number = draw(st.integers(0, len(new) - 1)), next(count)
            stop = draw(st.integers(at + 1, len(new)))
            new[at:stop] = [(f"while c{number}:", new[at:stop])]
        return new

    old = block(0)
    return old, changed(old)


def written(block: Block, indent: str = "") -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Each line with its indentation and the headers around it."""
    for each in block:
        if isinstance(each, str):
            yield each, indent, ()
        else:
            yield each[0], indent, ()
            for line, deeper, around in written(each[1], f"{indent}    "):
                yield line, deeper, (each[0], *around)


@given(programs())
@examples(500)
def test_a_line_without_a_mark_is_in_the_blocks_that_have_none(both: tuple[Block, Block]) -> None:
    sides = [list(written(block)) for block in both]
    olds, news = (lexed("a.py", "\n".join(i + line for line, i, _ in side)) for side in sides)
    marks = token_difference("a.py", olds, news)
    if marks is None:
        return
    clean: list[dict[str, tuple[str, tuple[str, ...]]]] = []
    for side, spans in zip(sides, marks, strict=True):
        touched = {line for (line, _, _), mine in zip(side, spans, strict=True) if mine}
        clean.append(
            {
                line: (indent, tuple(each for each in around if each not in touched))
                for line, indent, around in side
                if line not in touched
            }
        )
    for line in clean[0].keys() & clean[1].keys():
        (one, around), (two, within) = clean[0][line], clean[1][line]
        assert one == two or around == within


@given(TEXTS)
def test_equal_sides_have_no_marks(text: str) -> None:
    marks = token_difference("a.py", lexed("a.py", text), lexed("a.py", text))
    assert marks is None or not any((*marks.old, *marks.new))


def test_equal_calls_are_compared_and_have_no_marks() -> None:
    text = "total = work(first, 'second')  # third"
    assert marked(text, text) == (text, text)
