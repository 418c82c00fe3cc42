"""What is shown of a line: never raw control characters, and token columns still fit."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from midstream.tui.visible import visible, visible_with_columns

LINES = st.text(st.characters(exclude_characters="\n\r"), max_size=60)


@given(LINES)
def test_nothing_that_acts_on_a_terminal_is_left(text: str) -> None:
    for character in visible(text):
        assert unicodedata.category(character) not in ("Cc", "Cs")
        assert (
            character
            not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u200b\ufeff"
        )


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
