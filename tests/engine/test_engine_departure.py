"""Where an answer best leaves the copy of its region."""

from __future__ import annotations

import string
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from midstream.engine.departure import MIN_CHANCE, Departure

WORDS = ("```", "py", "\n", " ", "`", "ab", "a", "b", "", " ab", *string.ascii_lowercase[2:])
"""What each token spells; the one without text ends answers."""
END = WORDS.index("")


def text_of(tokens: Sequence[int]) -> str:
    return "".join(WORDS[token] for token in tokens)


def ids(*words: str) -> list[int]:
    return [WORDS.index(word) for word in words]


def found(draft: list[int], likely: dict[tuple[int, str], float]) -> tuple[int, str] | None:
    """Where a copy is left if other words have these probabilities, and all else the copy."""
    logits = np.full((len(draft), len(WORDS)), -30.0, np.float32)
    for row, token in enumerate(draft):
        others = {WORDS.index(word): p for (at, word), p in likely.items() if at == row}
        logits[row, token] = np.log(1 - sum(others.values()))
        for other, chance in others.items():
            logits[row, other] = np.log(chance)
    departure = Departure(draft, text_of, frozenset({END}))
    departure.take(logits[:3])
    departure.take(logits[3:])
    best = departure.best()
    return None if best is None else (best[0], WORDS[best[1]])


COPY = ids("```", "py", "\n", "c", " ", "ab", "\n", "```")


def test_the_likeliest_other_word_is_taken() -> None:
    assert found(COPY, {(3, "d"): 0.2, (5, "e"): 0.4, (6, "f"): 0.3}) == (5, "e")
    assert found(COPY, {(3, "d"): 0.4, (5, "e"): 0.4}) == (3, "d")


def test_a_model_without_another_idea_has_none() -> None:
    assert found(COPY, {}) is None
    assert found(COPY, {(3, "d"): MIN_CHANCE - 0.01}) is None


def test_what_is_no_other_code_does_not_count() -> None:
    same = {(5, "a"): 0.4}  # "a" and "b" spell what the one token spells
    space = {(4, "\n"): 0.4, (5, " ab"): 0.4}
    end = {(7, ""): 0.4, (3, ""): 0.4}
    fences = {(0, "c"): 0.4, (1, "d"): 0.4, (2, "e"): 0.4, (7, "`"): 0.4}
    for likely in (same, space, end, fences):
        assert found(COPY, likely) is None


def test_code_may_be_added_behind_the_copy() -> None:
    assert found(COPY, {(7, "c"): 0.3}) == (7, "c")


def test_an_edit_model_has_no_opening_fence() -> None:
    assert found([*ids("c", "\n", "```"), END], {(0, "d"): 0.3}) == (0, "d")


@given(
    st.lists(st.integers(5, len(WORDS) - 1).filter(lambda t: t != END), min_size=1, max_size=60),
    st.integers(0, 2**32 - 1),
)
def test_it_is_the_best_place_of_all(body: list[int], seed: int) -> None:
    draft = [*ids("```", "\n"), *body, *ids("\n", "```")]
    logits = np.random.default_rng(seed).normal(size=(len(draft), len(WORDS))) * 4
    departure = Departure(draft, text_of, frozenset({END}))
    departure.take(logits.astype(np.float32))
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    chances[np.arange(len(draft)), draft] = 0
    offered = [
        (float(chances[at].max()), at, int(chances[at].argmax())) for at in range(2, len(draft))
    ]
    allowed = [
        (chance, at, token)
        for chance, at, token in offered
        if chance >= MIN_CHANCE
        and (word := WORDS[token]).strip()
        and word[0] != "`"
        and not text_of(draft[at:]).lstrip().startswith(word.lstrip())
    ]
    best = departure.best()
    assert best == (max(allowed)[1:] if allowed else None)
