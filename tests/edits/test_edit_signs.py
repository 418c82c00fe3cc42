"""Signs that a rewrite was misunderstood, one by one, and properties that hold for any text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.signs import MAX_LINES, Signs, read_signs, strangers, vanished

HINTED = '''\
def pick(self, names: list[str], quiet: bool = False) -> None:
    """Pick what is named."""
    for name in self.known:
        if name in names:
            self.add(name)
        elif not quiet:
            self.drop(name)
'''


def test_hints_that_go_when_hints_are_to_come() -> None:
    after = HINTED.replace("names: list[str], quiet: bool = False) -> None", "names=False)")
    found = read_signs("add type hints to pick", HINTED, after)
    assert found.lost == ("type hint", "type hint", "type hint")
    assert found.unbound == ("quiet",)
    assert read_signs("remove the type hints", HINTED, after).lost == ()


def test_a_docstring_and_a_decorator_that_go() -> None:
    before = f"@cached\n{HINTED}"
    after = HINTED.replace('    """Pick what is named."""\n', "")
    assert set(read_signs("add a guard", before, after).lost) == {"docstring", "decorator"}


def test_lines_that_go_though_nobody_said_so() -> None:
    after = "".join(HINTED.splitlines(keepends=True)[:-4])
    found = read_signs("names is a set", HINTED, after)
    assert found.deleted == 4
    assert read_signs("get rid of the loop", HINTED, after).deleted == 0
    # A quoted removal does not count.
    assert read_signs("call it `drop the rest`", HINTED, after).deleted == 4
    # Lines with others in their place are changed, not deleted.
    assert read_signs("names is a set", HINTED, HINTED.replace("names", "things")).deleted == 0


@pytest.mark.parametrize(
    ("asked", "untouched"),
    [
        ("rename `names` to `wanted`", ("names",)),
        ("quiet should be called silent", ("quiet",)),
        ("rename `name` to `label` in `pick`", ()),  # the place, and what changes
        ("raise ValueError after `names`", ()),
    ],
)
def test_names_that_no_changed_line_has(asked: str, untouched: tuple[str, ...]) -> None:
    after = HINTED.replace("            self.add(name)\n", "            self.add(label)\n")
    assert read_signs(asked, HINTED, after).untouched == untouched


def test_what_is_quoted_and_nowhere_to_be_found() -> None:
    after = HINTED.replace("known", "others")
    assert read_signs("rename `known` to `others`", HINTED, after).missing == ()
    assert read_signs("rename `known` to `all_names`", HINTED, after).missing == ("all_names",)
    assert read_signs("decorate it with `@cached`", HINTED, f"@cached\n{HINTED}").missing == ()


@pytest.mark.parametrize(
    ("asked", "name", "borrowed"),
    [
        ("split it in two", "two", ("two",)),
        ("log how many there are", "log", ("log",)),
        ("rename it to two", "two", ()),
        ("add a parameter two", "two", ()),
        ("call it `two`", "two", ()),
    ],
)
def test_words_that_become_names(asked: str, name: str, borrowed: tuple[str, ...]) -> None:
    assert read_signs(asked, HINTED, HINTED.replace("pick", name)).borrowed == borrowed


def test_what_is_no_python_any_more() -> None:
    after = HINTED.replace("for name in self.known:", "for name in self.known")
    assert read_signs("tidy", HINTED, after).broken
    assert not read_signs("tidy", HINTED, after, python=False).broken
    # Text that did not parse before cannot be broken.
    assert not read_signs("tidy", "else:\n    pass\n", "else\n").broken
    # An indented block is read without its indentation.
    assert not read_signs("tidy", "    a = 1\n", "    a = 2\n").broken


def test_counts_name_every_sign() -> None:
    found = Signs(broken=True, deleted=3, lost=("docstring", "type hint"))
    assert found.counts == {
        "broken": 1,
        "deleted": 3,
        "unbound": 0,
        "lost": 2,
        "untouched": 0,
        "missing": 0,
        "borrowed": 0,
    }


LINES = st.lists(
    st.one_of(
        st.text(max_size=20).map(
            lambda text: re.sub(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]", "", text)
        ),
        st.sampled_from(HINTED.splitlines()),
    ),
    max_size=12,
)
WORDS = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from(["add", "remove", "`quiet`", "names", "two", "to", "in", "'x'"]),
    ),
    max_size=8,
).map(" ".join)


@given(WORDS, LINES, LINES)
def test_signs_of_any_text(asked: str, old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    found = read_signs(asked, before, after)
    assert 0 <= found.deleted <= len([line for line in old if line.strip()])
    for name in found.untouched:
        assert name in asked
        assert name in before
    for text in found.missing:
        assert text in asked
        assert text not in before
    for name in found.borrowed:
        assert name in asked
        assert name in after
        assert not re.search(rf"(?<!\w){name}(?!\w)", before)
    assert read_signs(asked, before, before) == Signs()


def test_a_long_text_is_not_looked_at() -> None:
    assert read_signs("x", "a\n" * (MAX_LINES + 1), "b\n") == Signs()


def test_names_that_come_from_nowhere_and_functions_that_go() -> None:
    before = "def load(path):\n    return open(path)  # quick\n"
    after = 'def fetch(path):\n    return retry(open(path), "some text")\n'
    assert strangers("make it better", "import os\n" + before, after) == ("fetch", "retry")
    assert strangers("call it fetch, retry twice", before, after) == ()
    more = "from a.b import (\n    c,\n)\nimport d as e\ndef load(path):\n    return c(e, f)\n"
    assert strangers("make it better", before, more) == ("f",)
    assert vanished("rename path to fetch instead", before, after) == ("load",)
    assert vanished("it returns bytes", before, after) == ("load",)
    assert vanished("it should be called fetch", before, after) == ()
    assert vanished("call this function fetch", before, after) == ()
    assert vanished("get rid of the wrapper", before, after) == ()
    assert vanished("rename load to fetch", before, after) == ()
