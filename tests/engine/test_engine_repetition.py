"""Answers that only repeat themselves end, drafted or not; copies and long tables do not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.engine.folder import Drafting, read_folder
from midstream.engine.loop import ModelGeneration, Runtime
from midstream.engine.model import OnnxModel
from midstream.engine.plan import EncodedRequest
from midstream.engine.repetition import (
    EVERY,
    MAX_PERIOD,
    MIN_REPEATED,
    ROUNDS,
    RepetitionWatch,
    circles,
)
from midstream.engine.sampling import Sampler
from midstream.engine.types import FinishReason
from tests.helpers.folders import write_folder

TAG = [7, 8, 9]


def read(tokens: Sequence[int], prompt: Sequence[int] = ()) -> int | None:
    """How many tokens a watch lets pass; None for all."""
    watch = RepetitionWatch(prompt)
    return next((count for count, token in enumerate(tokens, 1) if watch.feed(token)), None)


@given(
    st.lists(st.integers(0, 5), max_size=50),
    st.lists(st.integers(0, 5), min_size=1, max_size=MAX_PERIOD),
)
def test_a_stretch_that_comes_again_and_again_ends_an_answer(
    start: list[int], stretch: list[int]
) -> None:
    count = read(start + stretch * 1000)
    assert count is not None
    assert count <= len(start) + max(MIN_REPEATED, ROUNDS * len(stretch)) + EVERY


@given(st.lists(st.integers(0, 3), min_size=1, max_size=400))
def test_circles_are_what_a_plain_search_finds(tokens: list[int]) -> None:
    slow = any(
        all(tokens[-at] == tokens[-at - period] for at in range(1, size - period + 1))
        for period in range(1, min(MAX_PERIOD, len(tokens)) + 1)
        for size in [max(MIN_REPEATED, ROUNDS * period)]
        if size <= len(tokens)
    )
    assert circles(tokens) == slow


def test_a_table_with_a_counter_goes_on() -> None:
    rows = [token for number in range(500) for token in (1, 2, 100 + number, 3)]
    assert read(rows) is None


def test_less_than_that_goes_on() -> None:
    assert read([*TAG * (MIN_REPEATED // 3 - 1), *range(100, 400)]) is None


def test_a_copy_of_what_the_prompt_repeats_goes_on() -> None:
    assert read(TAG * 100, [1, *TAG * 100, 2]) is None
    assert read(TAG * 100, [1, *TAG * 20, 2]) is not None


class _Circling(Sampler):
    """Writes a stretch forever."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def pick(self, logits: np.ndarray) -> int:
        self._count += 1
        return TAG[self._count % 3]


class _Names:
    def feed(self, token_id: int) -> str:
        return f"{token_id} "

    def finish(self) -> str:
        return ""


@pytest.mark.parametrize("drafting", [None, Drafting()])
def test_a_generation_ends_and_says_why(tmp_path: Path, drafting: Drafting | None) -> None:
    write_folder(tmp_path)
    model = OnnxModel(read_folder(tmp_path), threads=1)
    plan = EncodedRequest(list(range(5, 30)), [], frozenset(), _Names())
    runtime = Runtime(model.decoder, model.cache, drafting, exact=True)
    generation = ModelGeneration(plan, runtime, _Circling(), limit=400)
    text = "".join(piece.text for piece in generation)
    assert generation.finish_reason is FinishReason.REPETITION
    assert generation.usage.output_tokens == MIN_REPEATED
    assert text == "8 9 7 " * (MIN_REPEATED // 3)
    model.close()
