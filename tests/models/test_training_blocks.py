"""Matrices in blocks stand for what they were made of."""

from __future__ import annotations

import numpy as np

from models.training.blocks import BlockFormat, quantise_range, unpack_blocks


def test_blocks_with_an_odd_number_of_zero_points() -> None:
    matrix = np.random.default_rng(2).normal(size=(96, 5)).astype(np.float32)  # three blocks
    form = BlockFormat(4)
    unpacked = unpack_blocks(quantise_range(matrix, form), 5, form)
    assert np.abs(unpacked - matrix.T).max() < 0.5
