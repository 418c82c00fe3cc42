"""Sampling: what the filters keep, and that a drafted token does not bend the distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.engine.sampling import Array, Sampler

LOGITS = np.log(np.array([0.5, 0.2, 0.15, 0.1, 0.05], np.float32))


def test_greedy_takes_the_likeliest_and_the_first_of_equals() -> None:
    assert Sampler().pick(LOGITS) == 0
    assert Sampler().pick(np.array([1, 3, 3, 2], np.float32)) == 1


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, [0.5, 0.2, 0.15, 0.1, 0.05]),
        ({"top_k": 2}, [5 / 7, 2 / 7, 0, 0, 0]),
        ({"top_p": 0.6}, [5 / 7, 2 / 7, 0, 0, 0]),
        ({"top_p": 0.0001}, [1, 0, 0, 0, 0]),
        ({"min_p": 0.25}, [0.5 / 0.85, 0.2 / 0.85, 0.15 / 0.85, 0, 0]),
        ({"top_k": 3, "top_p": 0.5}, [1, 0, 0, 0, 0]),
        ({"top_k": 99}, [0.5, 0.2, 0.15, 0.1, 0.05]),
    ],
)
def test_filters(options: dict[str, float], kept: list[float]) -> None:
    sampler = Sampler(temperature=1.0, **options)  # type: ignore[arg-type]
    np.testing.assert_allclose(sampler.probabilities(LOGITS), kept, atol=1e-6)


def test_temperature_sharpens() -> None:
    chances = Sampler(temperature=0.5).probabilities(LOGITS)
    squares = np.exp(LOGITS) ** 2
    np.testing.assert_allclose(chances, squares / squares.sum(), atol=1e-6)


def test_a_seed_repeats_itself() -> None:
    def draw(seed: int) -> list[int]:
        sampler = Sampler(temperature=1.0, seed=seed)
        return [sampler.pick(LOGITS) for _ in range(50)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


@given(st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=30), st.integers(0, 2**32))
def test_what_is_picked_had_a_chance(values: list[float], seed: int) -> None:
    logits: Array = np.array(values, np.float32)
    sampler = Sampler(temperature=0.7, top_k=5, top_p=0.9, min_p=0.01, seed=seed)
    chances = sampler.probabilities(logits)
    assert chances.sum() == pytest.approx(1)
    assert chances[sampler.pick(logits)] > 0


def test_accepting_drafts_keeps_the_distribution() -> None:
    """Token 1 is drafted every time: kept with its own chance, else replaced by the others' mix."""
    sampler = Sampler(temperature=1.0, seed=3)
    draws = 20_000
    counts = np.bincount([sampler.pick(LOGITS) for _ in range(draws)], minlength=5)
    expected = np.exp(LOGITS)
    # Five standard deviations of a binomial count.
    slack = 5 * np.sqrt(expected * (1 - expected) / draws)
    assert np.all(np.abs(counts / draws - expected) < slack)
    accepted = counts[1] / draws
    assert abs(accepted - expected[1]) < slack[1]
    others = counts[[0, 2, 3, 4]] / counts[[0, 2, 3, 4]].sum()
    np.testing.assert_allclose(others, expected[[0, 2, 3, 4]] / 0.8, atol=0.03)


@pytest.mark.parametrize("seed", [-(2**63), -3, -1, 0, 2**64 - 1])
def test_any_seed_of_a_client_is_one(seed: int) -> None:
    logits = np.zeros(64, np.float32)
    first, again = (Sampler(temperature=1.0, seed=seed) for _ in range(2))
    assert [first.pick(logits) for _ in range(9)] == [again.pick(logits) for _ in range(9)]


@pytest.mark.parametrize("options", [{"top_p": 0.0}, {"temperature": 5e-324}, {"top_k": 1}])
def test_at_their_bounds_options_leave_the_likeliest(options: dict[str, Any]) -> None:
    logits = np.array([0.0, 3.0, -np.inf, 2.0], np.float32)
    sampler = Sampler(**{"temperature": 1.0, "seed": 1, **options})
    assert sampler.probabilities(logits).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert {sampler.pick(logits) for _ in range(20)} == {1}
