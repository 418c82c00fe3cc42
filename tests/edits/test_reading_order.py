"""The order to read in: definitions before uses, tests behind the code that they test."""

from __future__ import annotations

import pytest

from midstream.edits.groups import arrange
from midstream.edits.kinds import ChangedBlock, HunkFacts, facts_of
from midstream.edits.reading_order import definitions_first, reading_order
from tests.helpers.changes import walked


def _order(code: list[str], tests: list[tuple[str, str]]) -> list[str]:
    """The paths of hunks in reading order; each test with the line that it adds."""
    paths = [(path, "x") for path in code] + tests
    facts = {n: HunkFacts(n, path, (), (line,)) for n, (path, line) in enumerate(paths)}
    first = len(code)
    found = reading_order(range(first), range(first, len(paths)), facts)
    assert sorted(found) == list(range(len(paths)))
    return [facts[hunk_id].path for hunk_id in found]


@pytest.mark.parametrize(
    ("code", "test"),
    [
        ("src/money.py", "tests/test_money.py"),
        ("src/money.go", "src/money_test.go"),
        ("src/money.ts", "src/money.spec.ts"),
        ("src/Money.java", "test/MoneyTest.java"),
        ("src/money.c", "tests/TestMoney.c"),
    ],
)
def test_by_name(code: str, test: str) -> None:
    before, behind = "src/a.py", "src/z.py"
    assert _order([before, code, behind], [(test, "x = 1")]) == [before, code, test, behind]


def test_by_import_and_else_at_the_end() -> None:
    tests = [("tests/test_all.py", "from pkg.money import total"), ("tests/test_b.py", "money = 1")]
    assert _order(["pkg/money.py", "pkg/a.py"], tests) == [
        "pkg/money.py",
        "tests/test_all.py",
        "pkg/a.py",
        "tests/test_b.py",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "import {total} from './money'",
        "import money",
        "from pkg import money",
        "use crate::money;",
        "#include <money.h>",
        "# include <money.h>",
        "const m = require('./money')",
        'export * from "./money"',
    ],
)
def test_a_line_that_imports(line: str) -> None:
    tests = [("tests/test_all.py", line)]
    assert _order(["money.py", "a.py"], tests) == ["money.py", "tests/test_all.py", "a.py"]


@pytest.mark.parametrize(
    "line", ["users = money", "important = money", "# taken from money", "#included = money"]
)
def test_a_line_that_only_resembles_an_import(line: str) -> None:
    tests = [("tests/test_all.py", line)]
    assert _order(["money.py", "a.py"], tests) == ["money.py", "a.py", "tests/test_all.py"]


def test_each_of_many_tests_stands_behind_its_file() -> None:
    names = [f"f{n}" for n in range(1_000)]
    tests = [(f"tests/test_{name}.py", "x") for name in names]
    expected = [path for name in names for path in (f"{name}.py", f"tests/test_{name}.py")]
    assert _order([f"{name}.py" for name in names], tests) == expected


def test_the_nearest_of_several_files_or_none() -> None:
    code = ["web/views.py", "shop/views.py"]
    assert _order(code, [("shop/tests/test_views.py", "x")]) == [*code, "shop/tests/test_views.py"]
    assert _order(code, [("web/tests/test_views.py", "x")]) == [
        "web/views.py",
        "web/tests/test_views.py",
        "shop/views.py",
    ]
    assert _order(code, [("tests/test_views.py", "x")])[-1] == "tests/test_views.py"


def test_a_walk_reads_code_with_its_tests_before_the_next_file() -> None:
    facts: list[HunkFacts] = []
    for n, path in enumerate(("a.py", "b.py", "tests/test_a.py", "README.md")):
        facts += facts_of(path, (), [ChangedBlock(n, 0, (), (f"x{n} = {n}",))])
    walk = arrange(facts)
    order = [facts[hunk_id].path for hunk_id in walk.order]
    assert order.index("tests/test_a.py") == order.index("a.py") + 1
    assert sorted(walk.order) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "definition",
    [
        "def fresh(one):",
        "class fresh:",
        "export async function fresh(one) {",
        "export const fresh = 1",
        "func (s *Shop) fresh() int {",
        "pub fn fresh() {",
    ],
)
def test_a_definition_comes_before_its_uses(definition: str) -> None:
    lines = [("a", "y = b.fresh(1)"), ("b", "other = 2"), ("c", definition), ("a", "z = fresh")]
    lines.sort()
    facts = {n: HunkFacts(n, path, (), (line,)) for n, (path, line) in enumerate(lines)}
    assert [facts[n].path for n in definitions_first(range(4), facts)] == ["c", "a", "a", "b"]


def test_definitions_that_use_each_other_stay_as_they_are() -> None:
    lines = [("a", "def one(): two()"), ("b", "def two(): three()"), ("c", "def three(): one()")]
    facts = {n: HunkFacts(n, path, (), (line,)) for n, (path, line) in enumerate(lines)}
    assert sorted(definitions_first(range(3), facts)) == [0, 1, 2]
    assert definitions_first([0, 2], facts) == [0, 2]
    # A name that two files define says nothing.
    facts[1] = HunkFacts(1, "b", (), ("def three(): pass",))
    assert definitions_first(range(3), facts) == [0, 1, 2]


def test_the_walk_reads_a_new_function_first() -> None:
    before = {"a.py": "import z\n\nx = 1\n", "z.py": "y = 1\n"}
    after = {"a.py": "import z\n\nx = z.fresh(1)\n", "z.py": "y = 1\n\n\ndef fresh(n):\n    pass\n"}
    walk, facts = walked(before, after)
    paths = {hunk.id: hunk.path for hunk in facts}
    assert [paths[each] for each in walk.order] == ["z.py", "a.py"]
