"""Edit scripts as they stream: the same region as the trainer's format, and no line is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from midstream.engine.edit_script import ScriptApplier, ScriptGrammar, ScriptRegion, ScriptState
from models.training.edit_script import script_format as fmt

ROWS = ["def f(a):", "    b = a", "    return b", "", "x = 1", "    y = a", "        z = b"]
WORDS = ["a", "b", "total", "    return a", "", "x = 1", "    pass", "é"]

regions = st.lists(st.sampled_from(ROWS), min_size=1, max_size=9)
script_lines = st.one_of(
    st.builds("{}{}".format, st.integers(0, 11), st.sampled_from(["-", ">", "<", "", "+"])),
    st.builds(
        "{}{}{}".format, st.integers(0, 11), st.sampled_from(["|", "+|"]), st.sampled_from(WORDS)
    ),
    st.builds("*{}=>{}".format, st.sampled_from("ab"), st.sampled_from("xyz")),
    st.sampled_from(["=", "?", "", "nonsense", "3 |x", "-", "007|x", "*a=>", "*=>b"]),
)
cuts = st.lists(st.integers(1, 7), max_size=30)


def streamed(region: ScriptRegion, script: str, sizes: list[int], used: int = 0) -> str:
    applier = ScriptApplier(region, used)
    out, at = "", 0
    for size in [*sizes, len(script) + 1]:
        out += applier.feed(script[at : at + size])
        at += size
    return out + applier.finish()


def ordered(lines: list[str], count: int) -> list[str]:
    """The lines of a script whose numbers ascend; a rename is one only in front of all others."""
    passed, chosen = 0, list[str]()
    for line in lines:
        if line.startswith("*") and "=>" in line:
            if not chosen:
                return [line]
            continue
        found = re.fullmatch(r"(\d+)(\+\||\||-|>|<)(.*)", line)
        if found is None:
            continue
        number = int(found[1])
        if passed + (found[2] != "+|") <= number <= count:
            chosen.append(line)
            passed = number
    return chosen


@given(regions, st.lists(script_lines, max_size=8), cuts, st.sampled_from(["", "    "]))
@example(["def f(a):"], ["*a=>x", "1+|a"], [], "")
def test_any_chunking_gives_what_the_trainer_applies(
    rows: list[str], lines: list[str], sizes: list[int], margin: str
) -> None:
    text = "".join(margin + row + "\n" if row else "\n" for row in rows)
    region = ScriptRegion.of(text.split("\n")[:-1])
    known = fmt.margin_of(text)
    source = fmt.strip(text, known)
    kept = ordered(lines, len(rows))
    expected = fmt.place(fmt.apply(source, "\n".join(kept)), known)
    assert streamed(region, "\n".join(lines), sizes) == expected
    assert region.margin == known


@given(regions, regions, cuts)
def test_scripts_of_the_trainer_give_the_text_that_they_were_made_of(
    before: list[str], after: list[str], sizes: list[int]
) -> None:
    old, new = ("".join(row + "\n" for row in rows) for rows in (before, after))
    margin = fmt.margin_of(old)
    source = fmt.strip(old, margin)
    if fmt.margin_of(new)[: len(margin)] != margin:
        return
    script = fmt.script(source, fmt.strip(new, margin))
    region = ScriptRegion.of(before)
    assert streamed(region, script, sizes) == fmt.place(fmt.apply(source, script), margin)


@given(regions, regions)
def test_the_grammar_takes_every_script_of_the_trainer(before: list[str], after: list[str]) -> None:
    old, new = ("".join(row + "\n" for row in rows) for rows in (before, after))
    if fmt.margin_of(old):
        return
    grammar = ScriptGrammar(ScriptRegion.of(before))
    state = grammar.after(fmt.script(old, new).rstrip("\n"))
    if new == "":  # all lines go
        state = grammar.after(fmt.script(old, new).rstrip("\n"))
    assert state is not None
    grammar.state = state
    assert grammar.may_end()


@given(regions, st.text("0123456789|+-<>*=?ab \n", max_size=40))
def test_what_the_grammar_allows_is_applied_line_by_line(rows: list[str], text: str) -> None:
    region = ScriptRegion.of(rows)
    grammar = ScriptGrammar(region)
    script = ""
    for char in text:
        state = grammar.after(char)
        if state is not None:
            grammar.state = state
            script += char
    if not grammar.may_end():
        return
    lines = script.split("\n")
    if lines[0][:1] not in ("*", "=", "?"):
        assert ordered(lines, len(rows)) == [line for line in lines if line]
    known = fmt.margin_of("".join(row + "\n" for row in rows))
    source = "".join(row + "\n" for row in region.rows)
    assert streamed(region, script, []) == fmt.place(fmt.apply(source, script), known)


@given(regions, st.lists(script_lines, max_size=6), st.integers(0, 9))
@example(["    b = a", ""], ["2>"], 2)
def test_lines_that_stay_are_told_in_a_script_that_makes_them(
    rows: list[str], lines: list[str], count: int
) -> None:
    region = ScriptRegion.of(rows)
    answer = streamed(region, "\n".join(lines), [])
    kept = answer.splitlines(keepends=True)[:count]
    script, used = region.kept_script([line[:-1] for line in kept])
    applier = ScriptApplier(region)
    made = applier.feed(script) + applier.finish()
    assert made.startswith("".join(kept))
    assert made == "".join(kept) + streamed(region, "", [], used)


def test_unchanged_lines_come_out_as_soon_as_the_number_is_known() -> None:
    applier = ScriptApplier(ScriptRegion.of(ROWS[:3]))
    assert applier.feed("3") == ""
    assert applier.feed("|") == "def f(a):\n    b = a\n"
    assert applier.feed("    ") == ""
    assert applier.feed("return a") == "    return a"
    assert applier.feed("\n") == "\n"
    assert applier.finish() == ""


def test_a_line_comes_out_as_it_is_written_with_its_margin() -> None:
    applier = ScriptApplier(ScriptRegion.of(["    a", "    b"]))
    assert [
        applier.feed(piece) for piece in ("1", "+|", "  ", "c(", ")\n1", "+|", " ", "\n2|")
    ] == [
        *("", "    a\n", "", "      c(", ")\n", "", "", " \n"),
    ]
    assert applier.feed("d") == "    d"
    assert applier.finish() == "\n"


@given(regions, st.lists(script_lines, max_size=8))
def test_what_came_out_of_a_script_that_is_cut_begins_its_answer(
    rows: list[str], lines: list[str]
) -> None:
    region = ScriptRegion.of(rows)
    whole = streamed(region, "\n".join(lines), [])
    applier, out = ScriptApplier(region), ""
    for char in "\n".join(lines):
        out += applier.feed(char)
        assert whole.startswith(out)


def test_declining_leaves_the_region_as_it_was() -> None:
    applier = ScriptApplier(ScriptRegion.of(ROWS[:3]))
    assert applier.feed("?") + applier.finish() == "".join(row + "\n" for row in ROWS[:3])
    assert applier.gave_up


@pytest.mark.parametrize(
    ("script", "fits"),
    [
        ("1", True),
        ("12", True),
        ("13", False),
        ("01", False),
        ("0|", False),
        ("0+|", True),
        ("3|a\n2", False),
        ("3|a\n3|", False),
        ("3|a\n3+|b\n3+|c\n12", True),
        ("12<", False),
        ("2<", True),
        ("=\n", False),
        ("*a=>b", True),
        ("*nowhere=", False),
        ("1|a\n*a", False),
        ("1+a", False),
    ],
)
def test_what_may_come(script: str, fits: bool) -> None:
    grammar = ScriptGrammar(ScriptRegion.of(["def f(a):", *["    a"] * 10, "a"]))
    assert (grammar.after(script) is not None) == fits


def test_behind_kept_lines_numbers_go_on() -> None:
    grammar = ScriptGrammar(ScriptRegion.of(ROWS), ScriptState("line", passed=2))
    assert grammar.after("2|") is None
    assert grammar.after("2+|x\n3-") is not None
