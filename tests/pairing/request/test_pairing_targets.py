"""Which region an instruction is about, on files as people have them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from midstream import demo
from midstream.code.outline import PARSED_LINES, outline
from midstream.edits.documents import SourceText
from midstream.pairing.request.target import (
    Candidate,
    Target,
    TargetUnclearError,
    find_in_files,
    find_target,
)

SHOP = textwrap.dedent('''\
    """A shop."""

    import os

    LIMIT = 10


    def load(path):
        total = 0
        for line in open(path):
            total += int(line)
        return total


    class Cart:
        size: int = 0

        @property
        def total(self):
            return sum(self.items)

        def add(self, item, count=1):
            def note():
                print(item)

            note()
            self.items.append(item)


    class Order:
        def add(self, line):
            amount = line
            return amount


    async def fetch_all(urls):
        return [url for url in urls]
''')


def target(instruction: str, text: str = SHOP, **where: object) -> Target:
    source = SourceText.from_bytes(text.encode())
    return find_target(source, instruction=instruction, path="shop.py", **where)  # type: ignore[arg-type]


def labels(error: TargetUnclearError) -> list[str]:
    return [candidate.label for candidate in error.candidates]


def line_of(text: str, source: str = SHOP) -> int:
    return next(n for n, line in enumerate(source.splitlines()) if text in line)


@pytest.mark.parametrize(
    ("instruction", "symbol"),
    [
        ("add a docstring to load", "load"),
        ("add a docstring to `load`", "load"),
        ("load() should skip blank lines", "load"),
        ("make fetch_all take a timeout", "fetch_all"),
        ("add type hints to Cart.add", "Cart.add"),
        ("add type hints to the add method in Cart", "Cart.add"),
        ("in Order, simplify add", "Order.add"),
        ("wrap the body of load in try/except using `fetch_all`", "load"),
        ("raise ValueError in fetch_all", "fetch_all"),
        ("rename path to source in load", "load"),
        ("rename urls to links", "fetch_all"),
        ("rename amount to value", "Order.add"),
        ("sort the keys of Order", "Order"),
        ("increase `LIMIT` by ten", "LIMIT"),
        ("extract a function `read` out of load", "load"),
        ("fetch_all: rename urls to links", "fetch_all"),
        ("`load`: rename path to source", "load"),
        ("load: skip blank lines", "load"),
        ("remove the parameter urls from fetch_all", "fetch_all"),
        ("delete the else branch from load", "load"),
        ("in load, import deque from collections and delete total", "load"),
        ("Order.add adds one more than the total of load", "Order.add"),
    ],
)
def test_named_symbol(instruction: str, symbol: str) -> None:
    assert target(instruction).symbol == symbol


def test_region_takes_decorators_and_the_whole_body() -> None:
    found = target("add a docstring to Cart.total")
    assert (found.start, found.stop) == (line_of("@property"), line_of("sum(self.items)") + 1)


def test_cursor_means_the_innermost_function() -> None:
    assert target("simplify", cursor=line_of("total += int")).symbol == "load"
    assert target("simplify", cursor=line_of("print(item)")).symbol == "Cart.add.note"
    assert target("simplify", cursor=line_of("size: int")).symbol == "Cart.size"
    assert target("use pathlib", cursor=line_of("import os")).why == "the statement at the cursor"


def test_named_symbol_wins_over_the_cursor() -> None:
    assert target("add a docstring to load", cursor=line_of("amount = line")).symbol == "load"


def test_cursor_tells_namesakes_apart() -> None:
    cursor = line_of("amount = line")
    assert target("add a docstring to `add`", cursor=cursor).symbol == "Order.add"
    assert target("rename total to sum_", cursor=line_of("total += int")).symbol == "load"


def test_selection_overrides_everything() -> None:
    found = target("add a docstring to load", selection=(2, 5), cursor=30)
    assert (found.start, found.stop) == (2, 5)
    start, stop = line_of("class Order"), line_of("return amount") + 1
    assert target("tidy", selection=(start, stop)).symbol == "Order"


def test_selection_outside_the_file_is_refused() -> None:
    with pytest.raises(TargetUnclearError, match=r"Lines 91-95 are not in shop\.py, which has 37"):
        target("tidy", selection=(90, 95))


def test_a_rename_means_the_namesake_that_has_the_name() -> None:
    assert target("rename amount to value in add").symbol == "Order.add"


def test_namesakes_are_a_question() -> None:
    with pytest.raises(TargetUnclearError, match=r"`Cart\.add` or `Order\.add`\?") as caught:
        target("add a docstring to `add`")
    assert labels(caught.value) == ["Cart.add", "Order.add"]


def test_two_targets_are_a_question() -> None:
    with pytest.raises(TargetUnclearError, match="One place at a time"):
        target("add type hints to load and fetch_all")


def test_rename_of_a_name_with_two_homes_is_a_question() -> None:
    with pytest.raises(TargetUnclearError, match="`total` is a name in several places"):
        target("rename total to amount")


def test_a_function_with_a_local_variable_of_its_name_is_one_place() -> None:
    text = "def total(rows):\n    total = sum(rows)\n    return total\n"
    found = target("rename total to amount in total", text)
    assert (found.start, found.stop) == (0, 3)


@pytest.mark.parametrize("cursor", [None, 8])
def test_missing_symbol_says_so_and_gives_the_nearest(cursor: int | None) -> None:
    with pytest.raises(
        TargetUnclearError, match=r"no `fetch_al` in shop\.py; nearest: `fetch_all`"
    ):
        target("add a docstring to fetch_al", cursor=cursor)


def test_names_a_change_brings_in_need_not_exist() -> None:
    cursor = line_of("total += int")
    for instruction in (
        "convert the loop to `asyncio.gather`",
        "rename total to grand_total",
        "add a parameter `encoding`",
        "raise `FileNotFoundError` when the file is missing",
    ):
        assert target(instruction, cursor=cursor).symbol == "load"


def test_nothing_named_lists_what_could_be_meant() -> None:
    with pytest.raises(TargetUnclearError, match=r"Which part of shop\.py .*`load`") as caught:
        target("make it faster")
    assert "Cart.add" in labels(caught.value)


def test_near_miss_of_a_plain_word_comes_first() -> None:
    with pytest.raises(TargetUnclearError) as caught:
        target("add a docstring to lod")
    assert labels(caught.value)[0] == "load"


def test_single_function_and_small_script_need_no_name() -> None:
    assert target("make it faster", "import os\n\ndef f(a):\n    return a\n").symbol == "f"
    assert target("make it faster", "x = 1\nprint(x)\n").why == "the whole file"


def test_too_long_names_the_smaller_parts() -> None:
    with pytest.raises(TargetUnclearError, match=r"`Cart` has 13 lines and the model takes 8") as c:
        target("add docstrings to Cart", max_lines=8)
    assert labels(c.value) == ["Cart.total", "Cart.add", "Cart.add.note"]
    twice = "class Big:\n" + "    def f(self):\n        return 1\n\n" * 2
    with pytest.raises(TargetUnclearError, match="smaller part") as c:
        target("tidy Big", twice, max_lines=4)
    assert labels(c.value) == ["Big.f"]
    with pytest.raises(TargetUnclearError, match="mark fewer"):
        target("tidy", selection=(0, 5), max_lines=3)


def test_class_cursor_without_room_for_the_class_asks() -> None:
    with pytest.raises(TargetUnclearError, match="`Cart` has"):
        target("tidy", cursor=line_of("class Cart"), max_lines=3)


def test_file_with_a_syntax_error_still_has_functions() -> None:
    broken = (
        "def f(a:\n    return a\n\n\nclass K:\n    def g(self):\n        return (\n\n    x = 1\n"
    )
    assert target("fix the signature of f", broken) == Target(0, 2, "f", "named in the instruction")
    found = target("tidy", broken, cursor=6)
    assert (found.symbol, found.start, found.stop) == ("K.g", 5, 7)


def test_folder_search_finds_the_one_definition() -> None:
    files = [("a.py", "def one():\n    pass\n"), ("b/c.py", SHOP), ("bad.py", "def two(:\n  x\n")]
    path, found = find_in_files(files, instruction="add a docstring to fetch_all")
    assert (path, found.symbol) == ("b/c.py", "fetch_all")
    path, found = find_in_files(files, instruction="rename total to amount in load")
    assert (path, found.symbol) == ("b/c.py", "load")
    assert find_in_files(files, instruction="fix two")[0] == "bad.py"
    with pytest.raises(TargetUnclearError, match=r"`b/c\.py: Cart\.add` or `b/c\.py: Order\.add`"):
        find_in_files(files, instruction="add a docstring to `add`")
    with pytest.raises(TargetUnclearError, match=r"Nothing here is called `fetch_al`; nearest"):
        find_in_files(files, instruction="add a docstring to fetch_al")
    with pytest.raises(TargetUnclearError, match="Which file is this about"):
        find_in_files(files, instruction="make it faster")
    with pytest.raises(TargetUnclearError, match="Which file is this about"):
        find_in_files([], instruction="make it faster")


def test_what_the_demo_suggests_is_clear_with_and_without_a_file() -> None:
    project = Path(demo.__file__).parent / "project"
    files = [
        (str(path.relative_to(project)), path.read_text("utf-8"))
        for path in sorted(project.rglob("*.py"))
    ]
    assert len(demo.SUGGESTIONS) > 0, "the loop below proves something"
    for suggestion in demo.SUGGESTIONS:
        found = target(suggestion.instruction, dict(files)[suggestion.path])
        anywhere = find_in_files(files, instruction=suggestion.instruction)
        assert anywhere[0] == suggestion.path
        assert (anywhere[1].start, anywhere[1].stop) == (found.start, found.stop)


def test_long_files_are_outlined_without_parsing_and_alike() -> None:
    code = (
        'TEXT = """\ndef not_a_function():\n    pass\n"""\n\n\n'
        "@decorated\n@more(\n    1,\n)\ndef first(\n    a,\n):\n"
        '    """Doc.\n\nclass Nothing:\n    """\n    x = a  # it\'s fine\n    return x\n\n\n'
        "class K:\n    # a comment\n    async def m(self):\n        def inner():\n"
        "            return 1\n\n        return inner\n# end\n\n\n"
        "def last(b): return b\n"
    )
    lines = code.split("\n")
    parsed = outline(lines)
    assert parsed.parsed
    padding = [f"# {n}" for n in range(PARSED_LINES)]
    read = outline([*lines, *padding])
    assert not read.parsed
    functions = [d for d in parsed.definitions if d.kind != "assignment"]
    assert [d.name for d in functions] == ["first", "K", "K.m", "K.m.inner", "last"]
    assert list(read.definitions) == functions
    assert [d.name for d in read.binding("x")] == ["first"]
    assert [d.name for d in read.binding("b")] == ["last"]
    assert read.binding("inner") == []


@pytest.mark.parametrize("cursor", [None, 6])
def test_a_method_that_its_class_lacks_is_not_looked_for_at_the_cursor(cursor: int | None) -> None:
    text = SourceText.from_text(
        "class Cart:\n    def __total__(self):\n        self.sum = 1\n\n\n"
        "def area(total):\n    return total\n"
    )
    with pytest.raises(TargetUnclearError, match=r"no `Cart.total`.*nearest: `Cart.__total__`"):
        find_target(text, instruction="add a docstring to Cart.total", cursor=cursor)
    target = find_target(text, instruction="make it an int in Cart.sum", cursor=2)
    assert target.symbol == "Cart.__total__"


@pytest.mark.parametrize("asked", ["add a docstring to perimeter", "in perimeter, rename w to x"])
def test_a_plain_word_that_names_a_missing_place_is_not_guessed(asked: str) -> None:
    text = SourceText.from_text("def area(w, h):\n    return w * h\n")
    with pytest.raises(TargetUnclearError, match="There is no `perimeter`"):
        find_target(text, instruction=asked, cursor=None, selection=None, max_lines=40)


@pytest.mark.parametrize("asked", ["add a docstring to it", "sort in order", "add a type in here"])
def test_words_that_are_no_names_mean_the_only_function(asked: str) -> None:
    text = SourceText.from_text("def area(w, h):\n    return w * h\n")
    target = find_target(text, instruction=asked, cursor=None, selection=None, max_lines=40)
    assert target.symbol == "area"


def test_in_a_folder_the_nearest_names_come_with_their_files() -> None:
    files = [("a.py", "def encode(x):\n    return x\n"), ("b.py", "def fetch_all():\n    pass\n")]
    with pytest.raises(
        TargetUnclearError, match=r"called `fetch_al`; nearest: `fetch_all`"
    ) as raised:
        find_in_files(files, instruction="rename `encoded` to `out` in fetch_al")
    assert raised.value.candidates == (Candidate("b.py", "fetch_all"),)


def test_definitions_of_one_name_are_told_apart_by_their_lines() -> None:
    twice = "class A:\n    def f(self):\n        return 1\n\n    def f(self):\n        return 2\n"
    with pytest.raises(
        TargetUnclearError, match=r"`A\.f \(lines 2-3\)` or `A\.f \(lines 5-6\)`"
    ) as c:
        target("add a docstring to A.f", twice)
    assert labels(c.value) == ["A.f (lines 2-3)", "A.f (lines 5-6)"]
    now = ["import os", "", *twice.splitlines()]
    assert [candidate.locate(now, "a.py") for candidate in c.value.candidates] == [(3, 5), (6, 8)]
    assert c.value.candidates[0].locate(["x = 1"], "a.py") is None


def test_a_misspelt_method_is_told_with_the_nearest() -> None:
    with pytest.raises(TargetUnclearError, match=r"no `ad_d` in shop\.py; nearest: `Cart\.add`"):
        target("change `ad_d`", SHOP.replace("class Order", "class Other"))


def test_a_plain_word_does_not_offer_what_is_spelled_like_it() -> None:
    files = [("report.py", "def footer(rows):\n    return len(rows)\n")]
    with pytest.raises(TargetUnclearError, match="or name a file, function or class") as caught:
        find_in_files(files, instruction="make it faster")
    assert caught.value.candidates == ()
    assert "footer" not in str(caught.value)
