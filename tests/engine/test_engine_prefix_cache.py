"""What is remembered of earlier prompts, and what it may cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from midstream.engine.decoder import Decoder
from midstream.engine.prefix_cache import PrefixCache
from midstream.engine.prefix_files import shared_length
from tests.helpers.folders import bare_folder
from tests.helpers.tiny import build, make_shape, random_weights

SHAPE = make_shape()


@pytest.fixture
def decoder(tmp_path: Path) -> Decoder:
    graph = build(SHAPE, random_weights(SHAPE))
    return Decoder(bare_folder(tmp_path, SHAPE, graph), threads=1)


def read(decoder: Decoder, cache: PrefixCache, prompt: list[int]) -> int:
    """Bring a prompt into the cache and return how much of it was there."""
    known = cache.open(prompt)
    if known < len(prompt):
        decoder.fill(prompt[known:], known, exact=True)
        cache.extend(prompt[known:])
    return known


def sequence(seed: int, length: int) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).integers(0, SHAPE.vocab, length)]


def test_going_on_costs_nothing(decoder: Decoder) -> None:
    cache = PrefixCache(decoder)
    prompt = sequence(1, 100)
    assert read(decoder, cache, prompt[:60]) == 0
    assert read(decoder, cache, prompt) == 60
    assert read(decoder, cache, prompt[:80]) == 80
    assert cache.saved_bytes == 0


def test_forks_find_their_own_past(decoder: Decoder) -> None:
    cache = PrefixCache(decoder)
    stem, one, other = sequence(1, 40), sequence(2, 120), sequence(3, 120)
    read(decoder, cache, stem + one)
    assert read(decoder, cache, stem + other) == 40
    assert read(decoder, cache, [*stem, *one, 7]) == 160
    assert read(decoder, cache, [*stem, *other, 8]) == 160
    # Rows that were put back are the rows that were computed.
    warm = decoder.run([9, 9], 161).copy()
    decoder.fill([*stem, *other, 8], 0, exact=True)
    np.testing.assert_array_equal(decoder.run([9, 9], 161), warm)


def test_a_short_tail_is_not_worth_keeping(decoder: Decoder) -> None:
    cache = PrefixCache(decoder)
    read(decoder, cache, sequence(1, 100))
    read(decoder, cache, [*sequence(1, 90), 5])
    assert cache.saved_bytes == 0


def test_the_budget_holds_and_the_oldest_goes_first(decoder: Decoder) -> None:
    row = decoder.io.row_bytes
    assert row == 2 * SHAPE.layers * SHAPE.kv_heads * SHAPE.head_size * 4
    cache = PrefixCache(decoder, budget=250 * row)
    first, second, third = (sequence(seed, 100) for seed in (1, 2, 3))
    for prompt in (first, second, third, sequence(4, 100)):
        read(decoder, cache, prompt)
        assert cache.saved_bytes <= 250 * row
    assert read(decoder, cache, third) == 100
    assert read(decoder, cache, first) <= 1


def test_nothing_larger_than_the_budget_is_kept(decoder: Decoder) -> None:
    cache = PrefixCache(decoder, budget=50 * decoder.io.row_bytes)
    read(decoder, cache, sequence(1, 100))
    read(decoder, cache, sequence(2, 100))
    assert cache.saved_bytes == 0


def test_shared_length() -> None:
    assert shared_length([1, 2, 3], [1, 2, 4]) == 2
    assert shared_length([1, 2], [1, 2, 4]) == 2
    assert shared_length([], [1]) == 0
