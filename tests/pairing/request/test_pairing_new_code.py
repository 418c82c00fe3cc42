"""A function or a test for a file that is named: the model writes only that, and it lands there."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.events import NewText, Problem
from midstream.pairing.headless import Job, Outcome, run_job
from midstream.pairing.request.new_code import find_new_code, place_in_file
from midstream.pairing.request.question import Question
from midstream.pairing.request.tests_home import home_of_tests
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.quirky import Asked, Quirky, Reply
from tests.helpers.reading import answer
from tests.pairing.turn.test_pairing_cut_answers import Quiet

TESTS = '''\
"""Tests of money."""

import pytest

from shop.money import parse


@pytest.fixture
def amount():
    return parse("3 EUR")


class TestParse:
    def test_whole(self, amount):
        assert amount == 300


def test_cents():
    assert parse("3.20 EUR") == 320


if __name__ == "__main__":
    pytest.main()
'''
MONEY = """\
def parse(text):
    return round(float(text.split()[0]) * 100)


class Purse:
    def __init__(self, limit):
        self.limit = limit
        self.coins = []

    def add(self, amount):
        if amount > self.limit:
            raise ValueError(amount)
        self.coins.append(amount)
"""
NEW = 'def test_zero():\n    assert parse("0 EUR") == 0\n'
END = '\n\nif __name__ == "__main__":\n    pytest.main()\n'
BEFORE = TESTS.removesuffix(END)


@pytest.mark.parametrize(
    ("instruction", "file", "name"),
    [
        ("write a test for parse in tests/test_money.py", "tests/test_money.py", ""),
        ("Please add another unit test to @tests/test_money.py for `Purse.add`", "", ""),
        ("write tests for parse in shop/money.py in a new file test_new.py", "test_new.py", ""),
        ("add a function slugify to util.py that makes a slug", "util.py", "slugify"),
        ("add a helper function is_empty(text) to `shop/util.py`", "shop/util.py", "is_empty"),
        ("add a chunks(data, size) function to util.py", "util.py", "chunks"),
        ("create a class Cart in the file shop/cart.py", "shop/cart.py", "Cart"),
        ("put a small helper into util.py that reads a file", "util.py", ""),
    ],
)
def test_what_an_instruction_adds_to_a_file(instruction: str, file: str, name: str) -> None:
    new = find_new_code(instruction)
    assert new is not None
    assert (new.file, new.name) == (file or "tests/test_money.py", name)
    assert new.tests == ("test" in instruction)


@pytest.mark.parametrize(
    "instruction",
    [
        "add a docstring to the function parse in money.py",
        "add type hints to the helper function in money.py",
        "add a parameter to parse in money.py",
        "add a function argument limit to parse in money.py",
        "add a method total to Purse in money.py",
        "rename the function parse in money.py to read",
        "add a function slugify to util.py and use it in parse",
        "fix the test in test_money.py",
        "add a function to parse",
    ],
)
def test_anything_else_is_no_new_code_for_a_file(instruction: str) -> None:
    assert find_new_code(instruction) is None


def test_tests_need_no_file() -> None:
    for instruction in ("write a test for parse", "write a test for parse in money.py"):
        new = find_new_code(instruction)
        assert new is not None
        assert (new.file, new.tests) == ("", True)


def parsed(
    reply: str,
    text: str = TESTS,
    *,
    size: int = 9999,
    path: str = "test_money.py",
    known: tuple[str, ...] = (),
) -> tuple[str, list[Problem]]:
    old = text.split("\n")[:-1]
    parser = place_in_file(old, path, known).parser(old, path)
    events = [e for at in range(0, len(reply), size) for e in parser.feed(reply[at : at + size])]
    events += parser.finish()
    problems = [e for e in events if isinstance(e, Problem)]
    return "".join(e.text for e in events if isinstance(e, NewText)), problems


@pytest.mark.parametrize("size", [1, 7, 9999])
@pytest.mark.parametrize(
    "code",
    [
        NEW,
        f"# tests/test_money.py\nimport pytest\nfrom shop.money import parse\n\n\n{NEW}",
        f"{NEW}\n\n# ...\n",
        f"{NEW}\n\ntest_zero()\n",
        f'{NEW}\n\nif __name__ == "__main__":\n    test_zero()\n',
        f'def test_cents():\n    assert parse("3.20 EUR") == 320\n\n\n{NEW}',
        f'@pytest.fixture\ndef amount():\n    return "other"\n\n\n{NEW}',
        TESTS.replace("if __name__", f"{NEW}\n\nif __name__"),
    ],
)
def test_only_the_new_test_is_added_behind_the_last_one(code: str, size: int) -> None:
    text, problems = parsed(f"Sure:\n\n```python\n{code}```\nThat is all.\n", size=size)
    assert (text, problems) == (f"{BEFORE}\n\n{NEW}{END}", [])


def test_new_imports_come_behind_the_others() -> None:
    imports = "import math\nfrom shop.money import Purse, parse\n"
    text, _ = parsed(f"```\n{imports}\n{NEW}```\n")
    line = "from shop.money import parse\n"
    assert text == f"{BEFORE}\n\n{NEW}{END}".replace(line, f"{line}{imports}")


@pytest.mark.parametrize(
    "heading", ["", '"""All."""\n', "#!/bin/python\n# All.\n", '"""All\n\nof it.\n"""\n']
)
def test_the_first_imports_come_behind_the_heading(heading: str) -> None:
    text, _ = parsed(f"```\nimport math\n\n{NEW}```\n", f"{heading}x = 1\n")
    gap = "\n" if heading else ""
    assert text == f"{heading}{gap}import math\n\nx = 1\n\n\n{NEW}"


def test_a_file_that_is_new_has_what_the_model_wrote() -> None:
    code = f"import pytest\n\nfrom shop.money import parse\n\nLIMIT = 3\n\n\n{NEW}"
    text, problems = parsed(f"```python\n{code}```\n", "")
    assert problems == []
    assert text == f"import pytest\nfrom shop.money import parse\n\n\nLIMIT = 3\n\n\n{NEW}"


def test_a_test_that_has_the_name_of_another_gets_a_number() -> None:
    other = 'def test_cents():\n    assert parse("0.01 EUR") == 1\n'
    text, problems = parsed(f"```\n{other}```\n")
    assert text == f"{BEFORE}\n\n{other.replace('cents', 'cents_2')}{END}"
    assert problems == []


def test_a_method_goes_into_the_class_of_the_file() -> None:
    method = "    def test_none(self, amount):\n        assert amount\n"
    added = TESTS.replace("== 300\n", f"== 300\n\n{method}")
    for code in (f"class TestParse:\n{method}", method.replace("\n    ", "\n").lstrip(" ")):
        assert parsed(f"```\n{code}```\n") == (added, [])


def test_what_the_tests_are_for_is_not_written_into_them() -> None:
    text, _ = parsed(f"```\n{MONEY}\n\n{NEW}```\n", known=("parse", "Purse"))
    assert text == f"{BEFORE}\n\n{NEW}{END}"


def test_an_answer_with_nothing_new_says_so() -> None:
    text, problems = parsed(f"```\n{TESTS}```\n")
    assert text == ""
    assert any(problem.fatal for problem in problems)


SCRIPT = (
    "const assert = require('assert');\n\n"
    "function one() {\n  return 1;\n}\n\nmodule.exports = { one };\n"
)
FIRST = "function two() {\n  return 2;\n}\n"


def test_a_script_gets_a_function_in_front_of_its_exports() -> None:
    text, _ = parsed(
        f"```js\nconst assert = require('assert');\n\n{FIRST}```\n", SCRIPT, path="a.js"
    )
    assert text == SCRIPT.replace("\n\nmodule", f"\n\n{FIRST}\nmodule")


@pytest.mark.parametrize("size", [1, 7, 9999])
def test_each_definition_in_a_block_of_its_own(size: int) -> None:
    more = "def test_one():\n    assert parse('1 EUR')\n"
    reply = f"```python\n{NEW}```\n\nAnd:\n\n```python\n{more}```\n\nRun it:\n```sh\npytest\n```\n"
    text, problems = parsed(reply, size=size)
    assert (text, problems) == (f"{BEFORE}\n\n{NEW}\n\n{more}{END}", [])


def test_an_example_of_use_is_no_part_of_it() -> None:
    text, _ = parsed(f"```python\n{NEW}```\nUse:\n```python\nx = 1\ntest_zero()\n```\n")
    assert text == f"{BEFORE}\n\n{NEW}{END}"


def test_a_code_block_after_long_prose_is_ignored() -> None:
    talk = "This is it.\n" * 5
    text, _ = parsed(f"```python\n{NEW}```\n{talk}```python\ndef test_b():\n    pass\n```\n")
    assert text == f"{BEFORE}\n\n{NEW}{END}"


@pytest.mark.parametrize("size", [1, 7, 9999])
@pytest.mark.parametrize(
    "code",
    [
        '@pytest.mark.parametrize(\n    "text",\n    ["("],\n)\ndef test_a(text):\n    pass\n',
        'def test_a():\n    text = """\na,b\n\n1,2\n"""\n    assert parse(text)\n',
    ],
)
def test_lines_of_decorators_and_strings_belong_to_what_is_new(code: str, size: int) -> None:
    added = f"{BEFORE}\n\n{code}{END}"
    assert parsed(f"```python\n{code}```\n", size=size) == (added, [])
    both = f"```python\n{NEW}```\n\n```python\n{code}```\n"
    assert parsed(both, size=size) == (f"{BEFORE}\n\n{NEW}\n\n{code}{END}", [])


def test_a_test_with_a_decorator_of_several_lines_gets_a_number() -> None:
    other = '@pytest.mark.x(\n    1,\n)\ndef test_cents():\n    assert parse("0.01 EUR") == 1\n'
    text, _ = parsed(f"```\n{other}```\n")
    assert text == f"{BEFORE}\n\n{other.replace('cents', 'cents_2')}{END}"


def test_a_constant_of_several_lines_is_new() -> None:
    code = f'TEXT = """\na\n  b\n"""\n\n\n{NEW}'
    assert parsed(f"```python\n{code}```\n") == (f"{BEFORE}\n\n{code}{END}", [])


def test_a_comment_in_a_block_stands_above_what_it_is_for() -> None:
    code = f"/**\n * Two.\n */\n{FIRST}"
    text, problems = parsed(f"```js\n{code}```\n", SCRIPT, path="a.js")
    assert (text, problems) == (SCRIPT.replace("\n\nmodule", f"\n\n{code}\nmodule"), [])


def test_a_method_does_not_land_in_a_class_within_the_class() -> None:
    old = "class Purse:\n    class Meta:\n        def a(self):\n            pass\n"
    text, _ = parsed("```\ndef add(self):\n    pass\n```\n", old, path="money.py")
    assert text == f"{old}\n    def add(self):\n        pass\n"


LIBRARY = """\
pub fn one() -> u32 {
    1
}

impl Page {
    fn is_new(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones() {
        assert_eq!(one(), 1);
    }
}
"""


def test_a_function_of_rust_comes_behind_a_block_and_in_front_of_the_tests() -> None:
    two = "pub fn two() -> u32 {\n    2\n}\n"
    added = LIBRARY.replace("#[cfg(test)]", f"{two}\n#[cfg(test)]")
    for code in (two, LIBRARY.replace("impl Page", f"{two}\nimpl Page")):
        assert parsed(f"```rust\n{code}```\n", LIBRARY, path="lib.rs") == (added, [])


NEXT = "    fn next(&self) -> u32 {\n        self.at\n    }\n"


def test_only_the_new_methods_of_a_rust_block_count() -> None:
    block = f"impl Page {{\n{NEXT}}}\n"
    added = LIBRARY.replace("#[cfg(test)]", f"{block}\n#[cfg(test)]")
    known = "    fn is_new(&self) -> bool {\n        false\n    }\n"
    for code in (f"impl Page {{\n{known}\n{NEXT}}}\n", f"impl Page {{\n{NEXT}\n{known}}}\n", block):
        assert parsed(f"```rust\n{code}```\n", LIBRARY, path="lib.rs") == (added, [])
    show = "impl Show for Page {\n    fn is_new(&self) -> bool {\n        false\n    }\n}\n"
    text = LIBRARY.replace("#[cfg(test)]", f"{show}\n#[cfg(test)]")
    assert parsed(f"```rust\n{show}```\n", LIBRARY, path="lib.rs") == (text, [])
    again = f"{show.replace('false', 'true')}\n{block}"
    text, problems = parsed(f"```rust\n{again}```\n", text, path="lib.rs")
    assert (text.count("impl Show"), text.count("fn next"), problems) == (1, 1, [])


@pytest.mark.parametrize("between", ["\n\n", "```\nAll of it:\n```python\n"])
def test_the_file_behind_what_is_new_is_not_written_again(between: str) -> None:
    group = f"class TestZero:\n    def test_zero(self):\n        assert parse('0')\n\n\n{NEW}"
    reply = f"```python\n{group}{between}{BEFORE}\n\n{group}{END}```\n"
    assert parsed(reply) == (f"{BEFORE}\n\n{group}{END}", [])


def test_a_string_at_the_margin_keeps_its_text() -> None:
    method = '    def test_rows(self):\n        assert parse("""\na\n  b\n""")\n'
    added = TESTS.replace("== 300\n", f"== 300\n\n{method}")
    bare = 'def test_rows(self):\n    assert parse("""\na\n  b\n""")\n'
    for code in (f"class TestParse:\n{method}", bare):
        assert parsed(f"```\n{code}```\n") == (added, [])


@pytest.mark.parametrize(("text", "path"), [(TESTS, "a.py"), (SCRIPT, "a.js"), (LIBRARY, "a.rs")])
def test_a_file_that_is_written_again_has_nothing_new(text: str, path: str) -> None:
    assert parsed(f"```\n{text}```\n", text, path=path)[0] == ""


def test_code_that_nothing_surrounds_is_complete_by_its_structure() -> None:
    assert parsed(NEW) == (f"{BEFORE}\n\n{NEW}{END}", [])
    assert parsed(f"{NEW}\nThis tests that zero is read as zero.\n")[1] == []
    text, problems = parsed(NEW.removesuffix(") == 0\n"))
    assert [problem.unfinished for problem in problems] == [True]
    assert parsed(FIRST, SCRIPT, path="a.js")[1] == []
    assert parsed(FIRST.removesuffix("}\n"), SCRIPT, path="a.js")[1] != []
    assert text


LINES = st.sampled_from([
    "x = 1", "    y = 2", "", "@mark", "# a", "def f(self):", "def g():", "    pass", "import math",
    "class TestParse:", "    def h(self):", "        pass", "from a import (", "    b,", ")",
    "def test_cents():", "if x:", "```", "```python", "Talk.", "else:",
])  # fmt: skip


@given(st.lists(LINES), st.integers(1, 30))
def test_no_line_of_the_file_is_lost(body: list[str], size: int) -> None:
    reply = "```python\n" + "".join(f"{line}\n" for line in body) + "```\n"
    text, _ = parsed(reply, size=size)
    assert text == parsed(reply)[0]
    lines = iter(text.split("\n"))
    assert not text or all(line in lines for line in TESTS.split("\n"))


async def ask(root: Path, question: Question, code: str) -> tuple[Outcome, list[Asked]]:
    sent: list[Asked] = []

    def reply(asked: Asked) -> Reply:
        sent.append(asked)
        return Reply(answer("chat", f"```python\n{code}```\n"))

    async with Quirky(reply).running() as url:
        endpoint = Endpoint(url, None, "m", "custom", "chat")
        job = Job(root, question, apply=True)
        outcome = await run_job(job, Quiet(), settings=Settings(), endpoint=endpoint)
    return outcome, [asked for asked in sent if "messages" in str(asked)]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/__init__.py").write_text("")
    (tmp_path / "shop/money.py").write_text(MONEY)
    (tmp_path / "test_money.py").write_text(TESTS)
    return tmp_path


@pytest.mark.parametrize("path", ["shop/money.py", "test_money.py", None])
async def test_a_test_is_added_to_the_file_that_is_named(shop: Path, path: str | None) -> None:
    question = Question("write a test for parse in test_money.py", path, cursor=1)
    outcome, (asked,) = await ask(shop, question, NEW)
    assert outcome.written
    assert (shop / "test_money.py").read_text() == f"{BEFORE}\n\n{NEW}{END}"
    assert (shop / "shop/money.py").read_text() == MONEY
    said = str(asked)
    assert "### shop/money.py" in said
    assert "return round(float" in said
    assert "amount == 300" in said
    assert "It has these names already: parse, pytest, amount, TestParse, test_cents." in said


async def test_a_file_that_is_not_there_is_made(shop: Path) -> None:
    code = "from shop.money import Purse\n\n\ndef test_add():\n    assert not Purse(3).coins\n"
    question = Question("write tests for Purse.add in tests/test_purse.py", "shop/money.py", 0)
    outcome, (asked,) = await ask(shop, question, code)
    assert outcome.written
    assert (shop / "tests/test_purse.py").read_text() == code
    said = str(asked)
    assert "It is a new file. Import with `from shop.money import Purse`." in said
    assert "class Purse:" in said
    assert "self.coins.append" in said
    assert "round" not in said


LAYOUTS = [
    ("shop/money.py", ["shop/money.py", "tests/test_money.py"], "tests/test_money.py"),
    ("shop/money.py", ["shop/money.py", "money_test.py", "test_money.py"], "money_test.py"),
    ("a/io.py", ["tests/a/test_io.py", "tests/b/test_io.py"], "tests/a/test_io.py"),
    ("a/io.py", ["tests/b/test_one.py", "tests/a/test_two.py"], "tests/a/test_io.py"),
    ("a/io.py", ["t/test_a.py", "t/test_b.py", "u/test_c.py"], "t/test_io.py"),
    ("a/io.py", ["a/io.py", "web/cart.test.js"], "tests/test_io.py"),
    ("tests/test_io.py", [], "tests/test_io.py"),
    ("src/cart.ts", ["src/cart.ts", "src/store.ts", "src/store.spec.ts"], "src/cart.spec.ts"),
    ("src/cart.js", ["test/store.test.js", "src/store.js"], "test/cart.test.js"),
    ("src/cart.js", [], "src/cart.test.js"),
    ("cart.go", ["cart.go", "store.go", "store_test.go"], "cart_test.go"),
    ("pkg/cart.go", ["main.go"], "pkg/cart_test.go"),
    ("lib/cart.rb", ["lib/store.rb", "spec/store_spec.rb"], "spec/cart_spec.rb"),
    ("Cart.java", ["a/StoreTest.java"], "a/CartTest.java"),
    ("src/lib.rs", ["src/lib.rs"], None),
]


@pytest.mark.parametrize(("path", "files", "home"), LAYOUTS)
def test_the_tests_of_a_file_go_where_others_are(
    path: str, files: list[str], home: str | None
) -> None:
    assert home_of_tests(path, files) == home
    assert home_of_tests(path, files[::-1]) == home


@pytest.mark.parametrize(
    ("question", "home"),
    [
        (Question("write a test for parse", "shop/money.py", 0), "test_money.py"),
        (Question("add a unit test for parse", None), "test_money.py"),
        (Question("write a test for this", "shop/rates.py", 1), "test_rates.py"),
        (Question("write a test for this", "shop/rates.py", None, (0, 2)), "test_rates.py"),
        (Question("add a test for negative amounts", "test_money.py", 14), "test_money.py"),
    ],
)
async def test_a_test_goes_to_the_tests_of_its_module(
    shop: Path, question: Question, home: str
) -> None:
    (shop / "shop/rates.py").write_text("def rate(name):\n    return 1\n")
    before = (shop / home).read_text() if (shop / home).exists() else ""
    own = "from shop.rates import rate\n\n\ndef test_rate():\n    assert rate('x') == 1\n"
    outcome, _ = await ask(shop, question, NEW if before else own)
    assert outcome.written
    text = (shop / home).read_text()
    assert text == (f"{BEFORE}\n\n{NEW}{END}" if before else own)
    assert (shop / "shop/money.py").read_text() == MONEY


async def test_a_function_that_the_file_has_is_changed_there(shop: Path) -> None:
    question = Question("implement the function parse in shop/money.py", "test_money.py", 3)
    code = "def parse(text):\n    return len(text)\n"
    outcome, (asked,) = await ask(shop, question, code)
    assert outcome.written
    assert (shop / "shop/money.py").read_text().startswith(code)
    assert "complete edited code" in cast("str", str(asked))


async def test_the_selection_is_what_a_test_is_for(shop: Path) -> None:
    start = MONEY.split("\n").index("    def add(self, amount):")
    question = Question(
        "write a test for this in test_money.py", "shop/money.py", 0, (start, start + 2)
    )
    _, (asked,) = await ask(shop, question, NEW)
    assert "raise ValueError(amount)" in str(asked)
    assert "return round" not in str(asked)
    assert "<selection" not in str(asked)


GO = """\
package shop

import "fmt"

// Cart holds coins.
type Cart struct {
	coins []int
}

// Add adds a coin.
func (c *Cart) Add(coin int) {
	fmt.Println(coin)
	c.coins = append(c.coins, coin)
}

type Purse struct{}

func (p Purse) Total() int { return 0 }
"""
SUM = "// Sum returns the sum.\nfunc (c *Cart) Sum() int {\n\treturn 0\n}\n"


@pytest.mark.parametrize(
    "code",
    [
        SUM,
        f"package shop\n\n{SUM}",
        f'package shop\n\nimport "fmt"\n\ntype Cart struct {{\n\tcoins []int\n}}\n\n{SUM}',
        f"func (c *Cart) Add(coin int) {{\n\tpanic(0)\n}}\n\n{SUM}",
    ],
)
async def test_a_method_of_go_comes_behind_those_of_its_type(tmp_path: Path, code: str) -> None:
    (tmp_path / "cart.go").write_text(GO)
    question = Question("add a method Sum to Cart that sums the coins", "cart.go", 17)
    outcome, (asked,) = await ask(tmp_path, question, code)
    assert outcome.written
    at = GO.index("\n\ntype Purse")
    assert (tmp_path / "cart.go").read_text() == f"{GO[:at]}\n\n{SUM}{GO[at + 1 :]}"
    assert "c.coins []int" in str(asked).replace("\\t", "c.").replace("\t", "c.")


async def test_the_next_type_of_go_is_left_to_another_instruction(tmp_path: Path) -> None:
    (tmp_path / "cart.go").write_text(GO)
    question = Question("add a method Sum to Cart and Purse", "cart.go", 17)
    outcome, (asked,) = await ask(tmp_path, question, SUM)
    assert outcome.written
    assert 'Ask for it next: "add a method Sum to Purse".' in (outcome.later or "")
    assert "Cart and Purse" not in str(asked)


RUST = """\
/// A cart.
pub struct Cart {
    coins: Vec<u32>,
}

impl Cart {
    pub fn add(&mut self, coin: u32) {
        self.coins.push(coin);
    }
}

impl Default for Cart {
    fn default() -> Self {
        Cart { coins: vec![] }
    }
}
"""
TOTAL = "pub fn total(&self) -> u32 {\n    self.coins.iter().sum()\n}\n"
IN_IMPL = "".join(f"    {line}\n" for line in TOTAL.split("\n")[:-1])


@pytest.mark.parametrize(
    "code",
    [
        TOTAL,
        f"impl Cart {{\n{IN_IMPL}}}\n",
        f"pub struct Cart {{\n    coins: Vec<u32>,\n}}\n\nimpl Cart {{\n{IN_IMPL}}}\n",
        RUST.replace("coin);\n    }\n", f"coin);\n    }}\n\n{IN_IMPL}"),
        RUST[RUST.index("impl Cart") :].replace("coin);\n    }\n", f"coin);\n    }}\n\n{IN_IMPL}"),
    ],
)
@pytest.mark.parametrize("line", [1, 7, None])
async def test_a_method_of_rust_goes_into_the_block_of_its_type(
    tmp_path: Path, code: str, line: int | None
) -> None:
    (tmp_path / "cart.rs").write_text(RUST)
    outcome, (asked,) = await ask(
        tmp_path, Question("add a method total to Cart", "cart.rs", line), code
    )
    assert outcome.written
    added = RUST.replace("coin);\n    }\n", f"coin);\n    }}\n\n{IN_IMPL}")
    assert (tmp_path / "cart.rs").read_text() == added
    assert "pub struct Cart" in str(asked)
