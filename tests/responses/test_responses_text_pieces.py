"""Pieces of a message that repeat earlier text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.responses.text_pieces import TextPieces
from tests.helpers.reading import answer, read_answer

APIS = ("responses", "chat", "messages")
CODE = "```python\ndef total(items):\n    return sum(items)\n```\n"
SO_FAR = [CODE[:end] for end in range(3, len(CODE) + 3, 3)]


@pytest.mark.parametrize("api", APIS)
def test_pieces_that_hold_all_so_far_are_told_once(api: str) -> None:
    assert read_answer(api, answer(api, CODE, parts=SO_FAR)).text == CODE


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("again", [CODE, CODE.strip()])
def test_a_last_piece_that_repeats_everything_adds_nothing(api: str, again: str) -> None:
    parts = [CODE[at : at + 5] for at in range(0, len(CODE), 5)]
    read = read_answer(api, answer(api, CODE, parts=[*parts, again]))
    assert (read.text, read.ended) == (CODE, "completed")


@pytest.mark.parametrize(
    "parts",
    [["ha", "haha", "haha"], ["a", "ab", "c"], [" ", "  ", "   x"], ["0, " * 20] * 2, ["x\n"] * 60,
     ["```", "```"], ["a = 1\n", "a = 1\nb = 2\n"]],
)  # fmt: skip
@pytest.mark.parametrize("api", APIS)
def test_pieces_that_repeat_by_chance_are_all_text(api: str, parts: list[str]) -> None:
    text = "".join(parts)
    assert read_answer(api, answer(api, text, parts=parts)).text == text


@pytest.mark.parametrize("api", ["chat", "messages"])
def test_pieces_that_contradict_each_other_make_an_answer_incomplete(api: str) -> None:
    read = read_answer(api, answer(api, CODE, parts=[*SO_FAR[:5], "def other():\n"]))
    assert read.ended == "incomplete"


@given(st.lists(st.sampled_from(["a", "b", " ", "\n", "ab", "x = 1\n"]), max_size=30))
def test_no_text_in_short_pieces_is_lost(parts: list[str]) -> None:
    told = TextPieces()
    text = "".join((*map(told.new, parts), told.end()))
    growing = len(parts) > 2 and parts[2].startswith(parts[1]) and parts[1].startswith(parts[0])
    assert growing or text == "".join(parts)
