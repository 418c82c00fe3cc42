"""Replacements made by a change, and other places that need the same one."""

from __future__ import annotations

from midstream.codebase.similar_edits import (
    EditPlace,
    Substitution,
    places,
    renamed_import,
    similar_places,
    substitutions,
)

FILE = """\
RATE = 3


def load(path):
    rows = read(path)
    for row in rows:
        row.cost = RATE * 2
    return rows


class Bill:
    def __init__(self, rows):
        self.rows = rows
        self.cost = 0

    def total(self):
        log("cost of", self.cost)
        return sum(row.cost for row in self.rows)

    def rate(self, RATE):
        return RATE


print(load("x")[0].cost, RATE)
""".splitlines()


def edited(line: int, old: str, new: str) -> list[str]:
    lines: list[str] = list(FILE)
    assert old in lines[line]
    lines[line] = lines[line].replace(old, new)
    return lines


def test_a_local_name_is_wanted_in_its_function_only() -> None:
    after = edited(4, "rows", "entries")
    (found,) = substitutions(FILE, after)
    assert found == Substitution("name", "rows", "entries", "load")
    assert found.instruction == "rename `rows` to `entries`"
    assert places(after, found) == [EditPlace(3, 8, "load")]


def test_an_import_of_the_name_is_renamed_exactly() -> None:
    wanted = Substitution("name", "load", "read_all")
    for text in (
        "from m import {}",
        "from .load import a, {} as load, loads  # load",
        "from m import (\n    {},  # the\n    save,\n)",
    ):
        before, after = (text.format(name).split("\n") for name in ("load", "read_all"))
        assert renamed_import(before, wanted) == after
        assert [place.start for place in places(before, wanted)] == [0]
    for other in ("import load", "from load import save", "from m import save as load", "load()"):
        assert renamed_import([other], wanted) is None
        assert bool(places([other], wanted)) == (other == "load()"), "a module is no function"


def test_an_attribute_is_wanted_in_the_whole_file() -> None:
    after = edited(13, "self.cost", "self.amount")
    (found,) = substitutions(FILE, after)
    assert found == Substitution("attribute", "cost", "amount")
    assert [place.symbol for place in places(after, found)] == ["load", "Bill.total", ""]
    assert [place.symbol for place in places(after, found, longest=3)] == ["Bill.total", ""]


def test_an_attribute_is_wanted_where_its_class_defines_it() -> None:
    before = [
        "class Token:",
        "    kind: str",
        "    nesting: int = 0",
        "",
        "    @property",
        "    def kind_of(self):",
        "        return self.nesting",
        "",
        "def walk(nesting):",
        "    return [token.nesting for token in nesting]",
    ]
    after = [line.replace("token.nesting", "token.level") for line in before]
    (found,) = substitutions(before, after)
    assert places(after, found) == [
        EditPlace(2, 3, "Token.nesting"),
        EditPlace(4, 7, "Token.kind_of"),
    ]
    defined = [line.replace("nesting: int", "level: int") for line in before]
    assert substitutions(before, defined) == [found]
    method = [line.replace("def kind_of", "def sort_of") for line in before]
    assert substitutions(before, method) == [Substitution("attribute", "kind_of", "sort_of")]


def test_a_global_is_not_wanted_where_a_parameter_hides_it() -> None:
    after = edited(0, "RATE", "FACTOR")
    (found,) = substitutions(FILE, after)
    assert found.scope == ""
    assert [place.symbol for place in places(after, found)] == ["load", ""]


def test_words_in_strings_and_comments_are_no_uses() -> None:
    lines = ["cost = 1", "# cost", 'print("cost")', "total = 2"]
    assert places(lines, Substitution("name", "cost", "price")) == [EditPlace(0, 1, "")]


def test_a_literal_is_wanted_in_the_same_function() -> None:
    before = ["def f(x):", "    a = x * 60", "    return a + 60", "", "def g():", "    return 60"]
    after = [*before[:1], "    a = x * 3600", *before[2:]]
    (found,) = substitutions(before, after)
    assert found.instruction == "replace 60 with 3600"
    assert places(after, found) == [EditPlace(0, 3, "f")]


def test_other_changes_are_no_substitution() -> None:
    assert substitutions(FILE, FILE) == []
    assert substitutions(FILE, edited(4, "read(path)", "read(path, 1)")) == []
    assert substitutions(FILE, FILE[:4] + FILE[5:]) == []
    assert substitutions(["a(b, c, d, e)"], ["f(g, h, i, j)"]) == []
    assert substitutions(["for x in y:"], ["if x in y:"]) == []


def test_a_file_that_does_not_parse_gives_what_can_be_read() -> None:
    after = ["def f(amount):", "    return cost", "", "def g(", "    x = (cost"]
    (found,) = substitutions(["def f(cost):", *after[1:]], after)
    assert places(after, found)[0].start == 0


def test_functions_with_a_line_alike() -> None:
    lines = [
        "def a():",
        '    db.run("select 1", timeout=3)',
        "",
        "def b():",
        '    db.run("select 2", timeout=3)',
        "    return 1",
    ]
    assert similar_places(lines, ['    db.run("select 9", timeout=3)', "    return"]) == [
        EditPlace(0, 2, "a"),
        EditPlace(3, 6, "b"),
    ]
    assert similar_places(lines, ["    return"]) == []
