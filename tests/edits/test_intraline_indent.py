"""Word differences, line pairing and the repair of indentation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.documents import SourceText, join_lines
from midstream.edits.hunk_store import HunkStore
from midstream.edits.indent import IndentRepair, find_shift
from midstream.edits.intraline import pair_lines, word_difference
from midstream.edits.proposal import FileProposal

WORDS = st.lists(st.sampled_from(["a", "bc", " ", "  ", "(", "+", "déf"]), max_size=8).map("".join)


def marked(old: str, new: str) -> tuple[str, str] | None:
    found = word_difference(old, new)
    if found is None:
        return None
    texts: list[str] = []
    for line, spans in zip((old, new), found, strict=True):
        for start, stop in reversed(spans):
            line = f"{line[:start]}[{line[start:stop]}]{line[stop:]}"
        texts.append(line)
    return texts[0], texts[1]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return a * 2", "return a * count", ("return a * [2]", "return a * [count]")),
        ("    x = f(a)", "    x = f(a, b)", ("    x = f(a)", "    x = f(a[, b])")),
        ("same", "same", ("same", "same")),
        ("aaaa bbbb cc dd(x)", "aaaa yyyy zz dd(x)",
         ("aaaa [bbbb cc] dd(x)", "aaaa [yyyy zz] dd(x)")),
        ("import os", "def totally_different():", None),
        ("    limit = 30", "    limit = read_settings(path).limit_of(name)",
         ("    limit = [30]", "    limit = [read_settings(path).limit_of(name)]")),
        ('"size": 1,', '"size": count_of_all_the_things(there),',
         ('"size": [1],', '"size": [count_of_all_the_things(there)],')),
        ("size = 1", "found == read_settings(path).limit_of(name)", None),
    ],
)  # fmt: skip
def test_word_difference(old: str, new: str, expected: tuple[str, str] | None) -> None:
    assert marked(old, new) == expected


@given(WORDS, WORDS)
def test_what_is_not_marked_is_equal(old: str, new: str) -> None:
    found = word_difference(old, new)
    if found is None:
        return
    rests: list[str] = []
    for line, spans in zip((old, new), found, strict=True):
        at, rest = 0, ""
        for start, stop in spans:
            assert at <= start < stop <= len(line)
            rest += line[at:start]
            at = stop
        rests.append(rest + line[at:])
    assert "".join(rests[0].split()) == "".join(rests[1].split())


def test_pairs_follow_similarity_and_order() -> None:
    old = ["total = price * 2", "print(total)", "return None"]
    new = ["# compute", "total = price * count", "return total or None"]
    assert pair_lines(old, new) == [(0, 1), (2, 2)]
    value = "limit = read_settings(path).limit_of(name)"
    assert pair_lines(["limit = 30"], ["import logging", value]) == [(0, 1)]
    assert pair_lines(["x"] * 100, ["x"] * 50) == [(n, n) for n in range(50)]


@pytest.mark.parametrize(
    ("quoted", "found", "new", "expected"),
    [
        (["a", "  b"], ["    a", "      b"], ["c", "  d"], ["    c", "      d"]),
        (["    a"], ["a"], ["    c", "      d"], ["c", "  d"]),
        (["a", "    b"], ["  a", "    b"], ["c", "    d"], ["  c", "    d"]),
        (["a"], ["    a"], ["c", "        d"], ["    c", "        d"]),
        (["    a", "        b"], ["\ta", "\t\tb"], ["    c", "            d"], ["\tc", "\t\t\td"]),
        (["\ta"], ["    a"], ["\tc", "", "\t\td"], ["    c", "", "        d"]),
    ],
)
def test_shift(quoted: list[str], found: list[str], new: list[str], expected: list[str]) -> None:
    shift = find_shift(quoted, found, new)
    assert shift is not None
    assert shift.apply(new) == expected


@pytest.mark.parametrize(
    ("quoted", "found", "new"),
    [
        (["a", "b", "c"], ["  a", "  b", "   c"], []),
        ([" a"], ["\ta"], []),
        (["    a", "    b"], ["a", "b"], ["    c", "  d"]),
        ([""], [""], ["x"]),
    ],
)
def test_no_uniform_shift(quoted: list[str], found: list[str], new: list[str]) -> None:
    assert find_shift(quoted, found, new) is None


OLD = ["    def f(self):", "        x = 1", "", "        return x"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["def f(self):", "    x = 2", "", "    return x"],
         ["    def f(self):", "        x = 2", "", "        return x"]),
        (["def f(self):", "        x = 2", "        return x"],
         ["    def f(self):", "        x = 2", "        return x"]),
        (OLD, OLD),
        (["    async def f(self):", "        x = 1"], ["    async def f(self):", "        x = 1"]),
    ],
)  # fmt: skip
def test_repair_streams(written: list[str], expected: list[str]) -> None:
    repair = IndentRepair(OLD)
    assert [repair.line(line) for line in written] == expected


def test_repaired_rewrite_keeps_what_the_model_wrote() -> None:
    proposal = FileProposal("a", SourceText.from_text(join_lines(OLD)), HunkStore())
    proposal.begin(0, 4, repair_indentation=True)
    text = "def f(self):\n    x = 2\n\n    return x\n"
    proposal.feed(text)
    assert proposal.freeze() == text
    proposal.resume()
    proposal.finish()
    (hunk,) = proposal.hunks
    assert (hunk.old, hunk.new) == (("        x = 1",), ("        x = 2",))


def test_spaces_for_tabs_are_mended_while_they_stream() -> None:
    old = ["func main() {", "\tif x {", "\t\tfoo()", "\t}", "}"]
    for unit in (2, 4, 8):
        repair = IndentRepair(old)
        new = ["func main() {", "\tif x {", "\t\tbar()", "\t\tbaz()", "\t}", "}"]
        assert [repair.line(line.expandtabs(unit)) for line in new] == new


def test_tabs_for_spaces_are_mended_while_they_stream() -> None:
    old = ["def f():", "  if x:", "    g()"]
    repair = IndentRepair(old)
    assert [repair.line(line) for line in ["def f():", "\tif x:", "\t\th()", "", "\treturn"]] == [
        "def f():",
        "  if x:",
        "    h()",
        "",
        "  return",
    ]
    mixed = IndentRepair(["a:", "\tb", "    c"])
    assert mixed.line("    d") == "    d", "a region of both tells nothing"
