"""Matrices in blocks of 4 or 8 bits with zero points, in the layout of `MatMulNBits`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

SHRINKS = (1.0, 0.96, 0.92, 0.88, 0.84, 0.8)
"""Shares of a block's range that are tried as its quantised range."""


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """How a matrix is quantised in blocks with zero points.

    Attributes:
        bits: 4 or 8.
        block: weights per scale and zero point, a power of two from 16 on.
    """

    bits: int
    block: int = 32


@dataclass(frozen=True, slots=True)
class QuantisedBlocks:
    """A matrix `[inputs, outputs]` in the layout of `MatMulNBits`.

    A stored value `s` means `(s - zero) * scale`.

    Attributes:
        stored: uint8 `[outputs, blocks, block * bits / 8]`.
        scales: float16 `[outputs * blocks]`.
        zeros: uint8 `[outputs * ceil(blocks * bits / 8)]`, packed as the weights are.
    """

    stored: npt.NDArray[np.uint8]
    scales: npt.NDArray[np.float16]
    zeros: npt.NDArray[np.uint8]


def block_ranges(parts: Array, bits: int) -> tuple[Array, Array]:
    """Return scale and zero point of each block, `[..., 1]`, over the range with the least error.

    Args:
        parts: weights `[..., block]`.
        bits: 4 or 8.
    """
    most = (1 << bits) - 1
    low = np.minimum(parts.min(axis=-1, keepdims=True), 0)
    high = np.maximum(parts.max(axis=-1, keepdims=True), 0)
    best = np.full(low.shape, np.inf, np.float32)
    scales, zeros = np.ones_like(low), np.zeros_like(low)
    for shrink in SHRINKS if bits < 8 else SHRINKS[:1]:
        scale = ((high - low) * shrink / most).astype(np.float16).astype(np.float32)
        scale[scale == 0] = 1
        zero = np.clip(np.round(-low * shrink / scale), 0, most)
        values = (np.clip(np.round(parts / scale) + zero, 0, most) - zero) * scale
        error = np.square(values - parts).sum(axis=-1, keepdims=True)
        better = error < best
        best = np.where(better, error, best)
        scales, zeros = np.where(better, scale, scales), np.where(better, zero, zeros)
    return scales, zeros


def pack_blocks(stored: Array, scales: Array, zeros: Array, bits: int) -> QuantisedBlocks:
    """Pack quantised values `[outputs, blocks, block]` with scales and zero points `[..., 1]`."""
    values, points = stored.astype(np.uint8), zeros[..., 0].astype(np.uint8)
    if bits == 4:
        values = np.asarray(values[..., 0::2] | (values[..., 1::2] << 4), np.uint8)
        points = np.pad(points, ((0, 0), (0, points.shape[1] % 2)))
        points = np.asarray(points[:, 0::2] | (points[:, 1::2] << 4), np.uint8)
    return QuantisedBlocks(values, scales.astype(np.float16).reshape(-1), points.reshape(-1))


def unpack_blocks(parts: QuantisedBlocks, outputs: int, form: BlockFormat) -> Array:
    """Return the weights that blocks stand for, `[outputs, inputs]`."""
    values = parts.stored.reshape(outputs, -1, form.block * form.bits // 8)
    blocks = values.shape[1]
    points = parts.zeros.reshape(outputs, -1)
    if form.bits == 4:
        values = np.stack([values & 15, values >> 4], axis=-1).reshape(outputs, blocks, form.block)
        points = np.stack([points & 15, points >> 4], axis=-1).reshape(outputs, -1)[:, :blocks]
    scales = parts.scales.astype(np.float32).reshape(outputs, blocks, 1)
    shifted = values.astype(np.float32) - points[..., None].astype(np.float32)
    return np.asarray(shifted * scales, np.float32).reshape(outputs, -1)


def quantise_range(matrix: Array, form: BlockFormat) -> QuantisedBlocks:
    """Quantise `[inputs, outputs]` in blocks, each over the range with the least squared error."""
    inputs, outputs = matrix.shape
    if inputs % form.block:
        raise ValueError(f"{inputs} inputs do not divide into blocks of {form.block}")
    parts = np.ascontiguousarray(matrix.T, np.float32).reshape(outputs, -1, form.block)
    scales, zeros = block_ranges(parts, form.bits)
    stored = np.clip(np.round(parts / scales) + zeros, 0, (1 << form.bits) - 1)
    return pack_blocks(stored, scales, zeros, form.bits)
