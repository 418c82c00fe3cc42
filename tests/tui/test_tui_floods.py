"""A conversation in pieces: each text is there once, and no piece takes long to show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import is_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.agents.messages import AgentToolCall
from midstream.pairing.chat.entries import Entry, Speech, ToolUse
from midstream.tui.conversation.pieces import (
    MAX_FENCE,
    MAX_PIECE,
    MAX_WEIGHT,
    PIECE_LENGTH,
    PIECE_LINES,
    Pieces,
    SpeechPiece,
    is_heavy,
    tail,
    weight,
)

LINES = ["", "word " * 20, "- item", "```", "```python", "~~~", "> quoted", "x" * 7_000, "  - deep"]


def spoken(pieces: Pieces) -> list[SpeechPiece]:
    return [piece for piece in pieces.all if isinstance(piece, SpeechPiece)]


def follow(pieces: Pieces, entries: Sequence[Entry]) -> None:
    """Take all that is new."""
    assert pieces.continues(entries)
    for _ in pieces.follow(entries):
        pass


def whole(pieces: Pieces) -> str:
    """The text of all pieces, without the fences that are repeated."""
    return "".join(piece.text[len(piece.fence) :] for piece in spoken(pieces))


@given(st.lists(st.lists(st.sampled_from(LINES), max_size=40), max_size=12))
def test_pieces_are_the_text_and_short_however_it_comes(chunks: list[list[str]]) -> None:
    speech = Speech("agent", "")
    entries: list[Entry] = [ToolUse(AgentToolCall("t", "Look")), speech]
    pieces = Pieces()
    for chunk in chunks:
        before = [piece.text for piece in pieces.all if isinstance(piece, SpeechPiece)][:-1]
        speech.text += "\n".join(chunk)
        follow(pieces, entries)
        assert whole(pieces) == speech.text
        assert [piece.text for piece in spoken(pieces)][: len(before)] == before
    for piece in spoken(pieces):
        assert piece.length <= MAX_PIECE * PIECE_LENGTH + MAX_FENCE + 1
        assert piece.text.count("\n") <= MAX_PIECE * PIECE_LINES + 1
        assert piece.length == len(piece.text)


def test_a_cut_is_made_at_a_blank_line_and_code_stays_code() -> None:
    paragraph = "word " * 100 + "\n\n"
    code = "```py\n" + "x = 1\n" * 200 + "```\n"
    pieces = Pieces()
    follow(pieces, [Speech("agent", paragraph * 20 + code)])
    first, *_, last = spoken(pieces)
    assert first.text.endswith("\n\n")
    assert last.text.startswith("```py\n")
    assert {piece.fence for piece in spoken(pieces)} == {"", "```py\n"}


def test_another_conversation_is_noticed() -> None:
    pieces = Pieces()
    said: list[Entry] = [Speech("agent", "a"), Speech("user", "b")]
    follow(pieces, said)
    assert pieces.continues([*said, Speech("agent", "d")])
    assert not pieces.continues(said[:1])
    assert not pieces.continues([said[0], Speech("user", "c"), Speech("agent", "d")])


@given(st.lists(st.lists(st.sampled_from("ws"), max_size=50), max_size=5))
def test_uses_that_follow_each_other_share_pieces_however_they_come(looks: list[list[str]]) -> None:
    entries: list[Entry] = []
    pieces = Pieces()
    for look in looks:
        for what in look:
            use = ToolUse(AgentToolCall(f"t{len(entries)}", "Look"))
            entries.append(use if what == "w" else Speech("agent", "said"))
        follow(pieces, entries)
        found: list[Entry] = []
        for piece, owner in zip(pieces.all, pieces.owners, strict=True):
            assert owner == len(found)
            found += [piece.speech] if isinstance(piece, SpeechPiece) else piece.uses
        assert all(map(is_, found, entries))
        assert len(found) == len(entries)
    shared = [piece for piece in pieces.all if not isinstance(piece, SpeechPiece)]
    runs = [len(list(run)) for key, run in groupby(map(type, entries)) if key is ToolUse]
    assert len(shared) == sum(-(-run // PIECE_LINES) for run in runs)


def test_a_long_answer_is_taken_a_piece_at_a_time() -> None:
    pieces = Pieces()
    speech = Speech("agent", "word " * 100_000)
    taken = pieces.follow([speech])
    for number in range(1, 20):
        next(taken)
        assert len(pieces.all) == number
    follow(pieces, [speech])  # a reader who left early starts at that point
    assert whole(pieces) == speech.text


@pytest.mark.parametrize(
    "text",
    ["[" * 6_000, "> " * 500 + "x", "|a" * 500, "- " * 300 + "x", "*_" * 3_000, "<a " * 2_000],
)
def test_what_takes_markdown_long_is_shown_as_it_is(text: str) -> None:
    assert is_heavy(text)
    assert not is_heavy(f"```\n{text}\n```")


def test_an_ordinary_answer_is_markdown() -> None:
    answer = "# Title\n\nSome `code` and **words**, see [a](b.py).\n\n" + "- an item\n" * 20
    assert weight(answer) < MAX_WEIGHT
    assert not is_heavy(answer)


def test_the_end_of_a_flood() -> None:
    entries: list[Entry] = [Speech("agent", f"line {n}\n") for n in range(100)]
    entries.append(ToolUse(AgentToolCall("t", "Look")))
    pieces = Pieces()
    follow(pieces, entries)
    assert tail(pieces.all, 3, 20) == ["line 98", "line 99", "› Look"]
    assert tail(pieces.all[:1], 3, 20) == ["line 0"]
