"""The linear mode: what lines mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.plain.words import help_lines, lines_of, numbers_of, place_of, understand


def word(line: str) -> tuple[str, str]:
    said = understand(line, lambda name: name in ("a.py", "Makefile"))
    return said.word.name, said.rest


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("accept 3", ("accept", "3")),
        ("Accept all", ("accept", "all")),
        ("keep 1, 3", ("accept", "1, 3")),
        ("put back 2 not wanted", ("reject", "2 not wanted")),
        ("keep the old name", ("do", "keep the old name")),
        ("accept 1, 3-4", ("accept", "1, 3-4")),
        ("accept the offer in count", ("do", "accept the offer in count")),
        ("reject 2 too clever", ("reject", "2 too clever")),
        ("reject empty names", ("do", "reject empty names")),
        ("accept 3:2-4", ("accept", "3:2-4")),
        ("reject 3:2 too clever", ("reject", "3:2 too clever")),
        ("edit 3", ("edit", "3")),
        ("edit the docstring", ("do", "edit the docstring")),
        ("show 3", ("show", "3")),
        ("show a.py:3-4", ("show", "a.py:3-4")),
        ("show missing.py", ("show", "missing.py")),
        ("show errors", ("do", "show errors")),
        ("open Makefile", ("open", "Makefile")),
        ("open it twice", ("do", "open it twice")),
        ("stop", ("stop", "")),
        ("a", ("help", "")),
        ("?", ("help", "")),
        ("2", ("do", "2")),
        ("stop the loop early", ("do", "stop the loop early")),
        ("redirect use a set", ("redirect", "use a set")),
        ("do accept all", ("do", "accept all")),
        ("release 2 it is a test", ("release", "2 it is a test")),
        ("release 2", ("release", "2")),  # which asks for the reason
        ("add a docstring", ("do", "add a docstring")),
        ("model", ("model", "")),
        ("model hosted/deep-1.5", ("model", "hosted/deep-1.5")),
        ("model the rows as a dataclass", ("do", "model the rows as a dataclass")),
        ("effort high", ("effort", "high")),
        ("effort should be a float", ("do", "effort should be a float")),
        ("review on", ("review", "on")),
        ("review the names", ("do", "review the names")),
        ("tell", ("tell", "")),
        ("tell the caller what failed", ("do", "tell the caller what failed")),
        ("commit", ("commit", "")),
        ('commit "Say it in full"', ("commit", '"Say it in full"')),
        (
            "commit the transaction before it closes",
            ("do", "commit the transaction before it closes"),
        ),
    ],
)
def test_what_a_line_means(line: str, meant: tuple[str, str]) -> None:
    assert word(line) == meant


@given(st.text(min_size=1).filter(str.strip))
def test_every_line_means_something(line: str) -> None:
    name, rest = word(line)
    assert name == "do" or len(line.strip()) == 1 or line.strip().lower().startswith(name)
    assert rest == rest.strip()


def test_numbers_and_places() -> None:
    assert lines_of("3:2-5") == (3, 2, 5)
    assert lines_of("3:2") == (3, 2, 2)
    assert lines_of("3") is None
    assert numbers_of("4, 1-3 2") == [4, 1, 2, 3]
    assert place_of("a.py:10-20") == ("a.py", (9, 20))
    assert place_of("a.py:7") == ("a.py", (6, 7))
    assert place_of("a b.py") == ("a b.py", None)
    assert all("  " in line for line in help_lines())


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("check", ("check", "")),
        ("check stop", ("check", "stop")),
        ("check the arguments", ("do", "check the arguments")),
        ("places 2", ("places", "2")),
        ("places where it fails", ("do", "places where it fails")),
        ("mend 1", ("mend", "1")),
        ("mend the loop", ("do", "mend the loop")),
    ],
)
def test_words_about_the_tests(line: str, meant: tuple[str, str]) -> None:
    assert word(line) == meant
