"""Signs that a rewrite was misunderstood, one by one, and properties that hold for any text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.doubt import signs
from midstream.edits.doubt.judge import RewriteEvidence, judged
from midstream.edits.doubt.rewrite import MAX_LINES
from midstream.edits.doubt.signs import strangers, vanished
from tests.helpers.judged import rewrite

HINTED = '''\
def pick(self, names: list[str], quiet: bool = False) -> None:
    """Pick what is named."""
    for name in self.known:
        if name in names:
            self.add(name)
        elif not quiet:
            self.drop(name)
'''


def found(asked: str, before: str, after: str, path: str = "a.py") -> RewriteEvidence:
    return judged(rewrite(asked, before, after, path=path))


def test_hints_that_go_when_hints_are_to_come() -> None:
    after = HINTED.replace("names: list[str], quiet: bool = False) -> None", "names=False)")
    seen = found("add type hints to pick", HINTED, after)
    assert "took 3 type hints away" in seen.signs
    assert "still uses `quiet` and no longer defines it" in seen.wrong
    assert not signs.lost(rewrite("remove the type hints", HINTED, after))


def test_a_docstring_and_a_decorator_that_go() -> None:
    before = f"@cached\n{HINTED}"
    after = HINTED.replace('    """Pick what is named."""\n', "")
    assert found("add a guard", before, after).signs[0] == "took 1 decorator and 1 docstring away"


def test_lines_that_go_though_nobody_said_so() -> None:
    def deleted(asked: str, after: str) -> int:
        return signs.deleted(rewrite(asked, HINTED, after))

    after = "".join(HINTED.splitlines(keepends=True)[:-4])
    assert found("names is a set", HINTED, after).signs == ["deleted 4 lines"]
    assert deleted("get rid of the loop", after) == 0
    # A quoted removal does not count.
    assert deleted("call it `drop the rest`", after) == 4
    # Lines with others in their place are changed, not deleted.
    assert deleted("names is a set", HINTED.replace("names", "things")) == 0


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
    assert signs.untouched(rewrite(asked, HINTED, after)) == untouched


@pytest.mark.parametrize(
    ("asked", "after", "missing"),
    [
        ("rename `known` to `others`", HINTED.replace("known", "others"), ()),
        ("rename `known` to `all_names`", HINTED.replace("known", "others"), ("all_names",)),
        ("decorate it with `@cached`", f"@cached\n{HINTED}", ()),
    ],
)
def test_what_is_quoted_and_nowhere_to_be_found(
    asked: str, after: str, missing: tuple[str, ...]
) -> None:
    assert signs.missing(rewrite(asked, HINTED, after)) == missing


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
    after = HINTED.replace("pick", name)
    assert signs.borrowed(rewrite(asked, HINTED, after)) == borrowed


@pytest.mark.parametrize(
    ("before", "after", "path", "broken"),
    [
        (HINTED, HINTED.replace("self.known:", "self.known"), "a.py", True),
        (HINTED, HINTED.replace("self.known:", "self.known"), "a.txt", False),
        # Text that did not parse before cannot be broken.
        ("else:\n    pass\n", "else\n", "a.py", False),
        # An indented block is read without its indentation.
        ("    a = 1\n", "    a = 2\n", "a.py", False),
    ],
)
def test_what_is_no_python_any_more(before: str, after: str, path: str, broken: bool) -> None:
    assert found("tidy", before, after, path).broken == broken


def test_signs_in_words() -> None:
    before = "def load(path: str):\n    return path\n\n\ndef save(path):\n    a = b\n    return a\n"
    after = "def load(path):\n    return two(path)\n"
    seen = found("add `X` in two hints for a", before, after)
    assert seen.signs == [
        "left out `X`",
        "took 1 type hint away",
        "no longer defines `save`",
        "deleted 3 lines",
        "took the word `two` for a name",
        "uses `two` and does not define it",
    ]


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
    made = rewrite(asked, before, after)
    assert 0 <= signs.deleted(made) <= len([line for line in old if line.strip()])
    for name in signs.untouched(made):
        assert name in asked
        assert name in before
    for text in signs.missing(made):
        assert text in asked
        assert text not in before
    for name in signs.borrowed(made):
        assert name in asked
        assert name in after
        assert not re.search(rf"(?<!\w){name}(?!\w)", before)
    same = found(asked, before, before)
    assert (same.broken, same.undefined, same.gone, same.torn) == (False, [], (), ())


def test_a_long_text_is_not_looked_at() -> None:
    seen = found("x", "a\n" * (MAX_LINES + 1), "b = c\n")
    assert (seen.undefined, seen.signs) == ([], ["uses `b` and `c`, which nothing defines"])


def test_names_that_come_from_nowhere_and_functions_that_go() -> None:
    before = "def load(path):\n    return open(path)  # quick\n"
    after = 'def fetch(path):\n    return retry(open(path), "some text")\n'
    assert strangers(rewrite("make it better", before, after, "import os\n" + before)) == (
        "fetch",
        "retry",
    )
    assert strangers(rewrite("call it fetch, retry twice", before, after)) == ()
    more = "from a.b import (\n    c,\n)\nimport d as e\ndef load(path):\n    return c(e, f)\n"
    assert strangers(rewrite("make it better", before, more)) == ("f",)
    assert vanished("rename path to fetch instead", before, after) == ("load",)
    assert vanished("it returns bytes", before, after) == ("load",)
    assert vanished("it should be called fetch", before, after) == ()
    assert vanished("call this function fetch", before, after) == ()
    assert vanished("get rid of the wrapper", before, after) == ()
    assert vanished("rename load to fetch", before, after) == ()
