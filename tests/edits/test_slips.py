"""Slips that flag a rewrite by themselves, and nonsense that withholds it."""

from __future__ import annotations

import pytest

from midstream.edits.doubt.rewrite import WantedCode
from midstream.edits.doubt.slips import neighbours_again, nonsense, slips, slips_of_addition
from tests.helpers.judged import rewrite

REPORT = """\
def report(role, line, name):
    print(role)
    if not name:
        return line
    elif role:
        return role
    else:
        pass
    for part in line:
        print(part)
    total = len(line)
    kept = total + 1
    return str(kept)
"""


@pytest.mark.parametrize(
    ("asked", "old", "new", "said"),
    [
        ("a keyword sep used between", "line, name)", 'line, name, sep=" ")', "never uses"),
        ("add type hints", "(role,", "(role: role,", "`role` for a type"),
        ("add type hints", "(role,", "(role: line,", "`line` for a type"),
        ("add type hints", "(role,", "(role: [str],", "`[str]` for a type"),
        ("add type hints", "name):", "name) -> any:", "`any` for a type"),
        ("return early if name is empty", "return line\n", "return\n", "returns nothing"),
        ("use logging instead of print", "    print(role)\n", "", "does not use `logging`"),
        ("remove the elifs after return", "    else:\n        pass\n", "", "left a `elif`"),
        (
            "remove the prints",
            "    total = len(line)\n    kept = total + 1\n    return str(kept)\n",
            "",
            "left a `print`",
        ),
        (
            "handle nan",
            "return str(kept)\n",
            "return str(kept)\n    kept = 0\n",
            "after a `return`, where it never runs",
        ),
        (
            "remove the print of the role",
            REPORT.partition("    for part")[0].partition("\n    if")[2],
            "",
            "deleted",
        ),
    ],
)
def test_a_slip_is_said(asked: str, old: str, new: str, said: str) -> None:
    assert old in REPORT
    found = slips(rewrite(asked, REPORT, REPORT.replace(old, new, 1)))
    assert any(said in slip for slip in found)


@pytest.mark.parametrize(
    ("asked", "old", "new"),
    [
        ("give it a width", "line, name):\n", "line, name, width=2):\n    role = width\n"),
        ("add a parameter `used` of 2", "line, name)", "line, name, used=2)"),
        ("add type hints", "(role,", "(role: str | None,"),
        ("add type hints", "(role, line", '(role: "Role", line: list[int]'),
        ("use a helper instead of print", "    print(role)\n", "    repr(role)\n"),
        ("use str instead of role", "return role\n", "return str(role)\n"),
        ("remove the print of the role", "    print(role)\n", ""),
        ("return None for no line", "    total", "    if not line:\n        return ''\n    total"),
        ("remove the loop", "    for part in line:\n        print(part)\n", ""),
        ("rename role to kind", "role", "kind"),
    ],
)
def test_what_was_asked_for_is_no_slip(asked: str, old: str, new: str) -> None:
    count = -1 if asked.startswith("rename") else 1
    assert slips(rewrite(asked, REPORT, REPORT.replace(old, new, count))) == []


CLOCK = """\
class Clock:
    def now(self):
        return 1

    def date(self, seconds):
        return seconds

    @property
    def zone(self):
        return "UTC"


def date(seconds):
    return seconds
"""
NOW = "    def now(self):\n        return 1\n"


@pytest.mark.parametrize(
    ("more", "twice"),
    [
        ("\n    def date(self, millis):\n        return millis / 1000\n", "Clock.date"),
        ("\n    class date:\n        pass\n", "Clock.date"),
        ("\n    @zone.setter\n    def zone(self, name):\n        pass\n", ""),
        ("\n    def today(self):\n        def date(seconds):\n            return seconds\n", ""),
    ],
)
def test_a_second_definition_of_a_name_is_said(more: str, twice: str) -> None:
    after = NOW.replace("1", "1000") + more
    found = slips(rewrite("return milliseconds", NOW, after, CLOCK))
    assert [slip for slip in found if "second time" in slip] == (
        [f"defines `{twice}` a second time"] if twice else []
    )


@pytest.mark.parametrize(
    ("asked", "new", "why"),
    [
        ('add a parameter encoding with default "utf-8"', "name, encoding=utf-8)", "`utf`"),
        ("show bar to people", "bar(name), name)", ""),
        ("people want the bars", "name, bars=people)", "`people`"),
        ("make it better", "name, partpartpart)", "`partpartpart`"),
        ("add a limit of `most`", "name, limit=most)", ""),
        ("use width", "name, limit=width)", ""),
    ],
)
def test_nonsense(asked: str, new: str, why: str) -> None:
    after = REPORT.replace("name)", new, 1)
    found = nonsense(rewrite(asked, REPORT, after))
    assert (why in found) if why else not found


def test_a_decorator_named_by_a_word_is_no_nonsense() -> None:
    assert not nonsense(rewrite("cache it", REPORT, f"@cache\n{REPORT}"))


SHOP = """\
TAX = 0.19
ROUNDING = 2


def total(items):
    return sum(items)


def with_tax(items):
    return total(items) * (1 + TAX)
"""
TOTAL = "def total(items):\n    return sum(items)\n"


def test_a_whole_file_for_a_region_is_noticed() -> None:
    def again(after: str, before: str = TOTAL) -> bool:
        return neighbours_again(rewrite("", before, after, SHOP))

    changed = "def total(items):\n    return sum(item.price for item in items)\n"
    assert not again(changed)
    assert again(changed + "\n\ndef with_tax(items):\n    return total(items) * (1 + TAX)\n")
    assert again("TAX = 0.19\nROUNDING = 2\n\n\n" + changed)
    assert not again(SHOP, SHOP), "nothing is beside it"


def test_brackets_beside_a_region_are_no_neighbours() -> None:
    file = "f(\n    1,\n)\n)\n}\n]\n"
    after = "f(\n    2,\n)\n)\n}\n]\n"
    assert not neighbours_again(rewrite("", "f(\n    1,\n)\n", after, file))


TESTS = "from money import parse\n\n\ndef test_one():\n    assert parse('1')\n"


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("def test_two():\n    assert parse('2') == 2\n", ""),
        ("def test_two():\n    with pytest.raises(ValueError):\n        parse('')\n", ""),
        (
            "class TestB(TestCase):\n    def test_a(self):\n        self.assertTrue(parse('2'))\n",
            "",
        ),
        ("def test_two():\n    parse('2')\n", "checks nothing in `test_two`"),
        ("def test_two():\n    assert 1 + 1 == 2\n", "does not use `parse`"),
        ("def two():\n    return parse('2')\n", "wrote no test"),
    ],
)
def test_tests_check_what_they_are_for(code: str, fault: str) -> None:
    after = f"{TESTS}\n\n{code}"
    found = slips_of_addition(rewrite("", TESTS, after), WantedCode(tests=True, subject=("parse",)))
    assert found == ([fault] if fault else [])


@pytest.mark.parametrize(
    ("after", "name", "found"),
    [
        (f"{TESTS}\n\ndef halve(x):\n    return x / 2\n", "halve", []),
        (f"{TESTS}\n\ndef halve(x):\n    return x / 2\n", "half", ["does not define `half`"]),
        ("def (", "half", []),
    ],
)
def test_a_function_has_the_name_that_was_asked_for(
    after: str, name: str, found: list[str]
) -> None:
    assert slips_of_addition(rewrite("", TESTS, after), WantedCode(name)) == found


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("(args, kwargs)", "takes `kwargs` for a key, which is a dict"),
        ("kwargs", "takes `kwargs` for a key, which is a dict"),
        ("(args, tuple(kwargs.items()))", ""),
        ("kwargs['key']", ""),
    ],
)
def test_a_dict_is_no_key(key: str, fault: str) -> None:
    before = "def load(*args):\n    return known[args]\n"
    after = f"def load(*args, **kwargs):\n    return known[{key}]\n"
    made = rewrite("accept keyword arguments", before, after, f"known = {{}}\n{before}")
    assert slips(made) == ([fault] if fault else [])
