"""What is shown of a line: never raw control characters, and token columns still fit."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from midstream.tui.visible import MARK, visible, visible_with_columns

LINES = st.text(st.characters(exclude_characters="\n\r"), max_size=60)


@given(LINES)
def test_nothing_that_acts_on_a_terminal_is_left(text: str) -> None:
    for character in visible(text):
        assert unicodedata.category(character) not in ("Cc", "Cs")
        assert (
            character
            not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u200b\ufeff"
        )


INVISIBLE = (
    *((0x00, 0x08), (0x0A, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C)),
    *((0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x2028, 0x202E)),
    *((0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0E), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0)),
    *((0xFFF0, 0xFFFB), (0xD800, 0xDFFF), (0xE0000, 0xE0FFF)),
)
"""Ranges of code points that a terminal obeys or hides, or that reorder a line."""


@pytest.mark.parametrize(("first", "last"), INVISIBLE)
@pytest.mark.parametrize("around", ["{}", "a{}b", "{}\t", "\t{}", "é{}"])
def test_every_invisible_character_is_marked(first: int, last: int, around: str) -> None:
    for code in (*range(first, last, max(1, (last - first) // 64)), last):
        shown = visible(around.format(chr(code)))
        assert chr(code) not in shown
        assert MARK in shown or "\u2400" <= shown.strip("abé ") <= "\u2421"


@given(LINES)
def test_ascii_mode_shows_ascii_only(text: str) -> None:
    assert visible(text, ascii_only=True).isascii()


@given(LINES)
def test_columns_lead_to_the_same_characters(text: str) -> None:
    shown, columns = visible_with_columns(text)
    if columns is None:
        assert len(shown) == len(text)
        return
    assert len(columns) == len(text) + 1
    assert columns[-1] == len(shown)
    for index, character in enumerate(text):
        part = shown[columns[index] : columns[index + 1]]
        assert part == character or part == visible(character) or part.isspace()


def test_tabs_reach_the_next_stop() -> None:
    assert visible("\tx") == "    x"
    assert visible("ab\tx") == "ab  x"
    assert cell_len(visible("\u4f60\tx")) == 5


def test_trojan_source_is_seen() -> None:
    shown = visible("if access != '\u202e \u2066# admin\u2069'")
    assert not {"\u202e", "\u2066", "\u2069"} & set(shown)
    assert shown.index("# admin") > len("if access != '")
