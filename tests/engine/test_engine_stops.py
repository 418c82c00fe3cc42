"""Stop strings: the text ends in front of the first one, however it is cut into tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.engine.plan import PromptError, StopStrings


class Written:
    """A text decoder with a text for every token, and one for the end."""

    def __init__(self, texts: list[str], rest: str = "") -> None:
        self.texts = texts
        self.rest = rest

    def feed(self, token_id: int) -> str:
        return self.texts[token_id]

    def finish(self) -> str:
        return self.rest


def read(texts: list[str], stops: list[str], rest: str = "") -> tuple[list[str], bool]:
    decoder = StopStrings(Written(texts, rest), stops)
    pieces = [decoder.feed(token) for token in range(len(texts))]
    return [*pieces, decoder.finish()], decoder.hit


def first_stop(text: str, stops: list[str]) -> str:
    """What is in front of the first stop string, reading letter by letter."""
    for end in range(len(text) + 1):
        met = [stop for stop in stops if text[:end].endswith(stop)]
        if met:
            return text[: end - len(max(met, key=len))]
    return text


def test_text_that_may_become_a_stop_string_waits() -> None:
    assert read(["ab", "cX", "Y", "Zd"], ["XYW", "YZd"]) == (["ab", "c", "", "X", ""], True)
    assert read(["ab", "cX", "Y"], ["XYW"]) == (["ab", "c", "", "XY"], False)


def test_nothing_comes_out_behind_it() -> None:
    assert read(["a.b", "c"], ["."], "d") == (["a", "", ""], True)


def test_the_end_of_the_text_is_searched_as_well() -> None:
    assert read(["a", "<en"], ["<end>"], "d>!") == (["a", "", ""], True)


def test_no_stop_strings_hold_nothing_back() -> None:
    assert read(["a", "b"], [], "c") == (["a", "b", "c"], False)


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(PromptError, match="empty"):
        StopStrings(Written([]), ["x", ""])


LETTERS = st.text("ab", max_size=6)


@given(st.lists(LETTERS, max_size=12), st.lists(st.text("ab", min_size=1, max_size=5)), LETTERS)
def test_the_cuts_do_not_matter(texts: list[str], stops: list[str], rest: str) -> None:
    pieces, hit = read(texts, stops, rest)
    whole = "".join(texts) + rest
    assert "".join(pieces) == first_stop(whole, stops)
    assert hit is any(stop in whole for stop in stops)
