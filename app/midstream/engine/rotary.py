"""Rotary position embedding, measured from outside: how far a model rotates a key per position,
inferred from computed keys, and rotating keys to other positions.

A rotary key at position p is the token's key, whose numbers are taken in pairs and turned, each
pair by p times a speed of its own. So a key at p becomes the key at q by turning it on by q - p
(https://arxiv.org/abs/2104.09864). Nothing is taken from a configuration, because many folders do
not say it: speeds and pairs are measured, and what does not fit is no rotation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

FIRST_LAYER_SLACK = 1e-2
"""Largest spread of a pair that was turned back, relative to its length, where it depends on token
and position only (measured on float32: 1e-6; tables for long contexts are rounded more)."""

LAYER_SLACK = 0.25
"""Likewise behind other layers, whose activations may be quantised (measured at 4 bits: 0.08). A
layer that does not turn its keys, or does so at other speeds, has 1."""

MIN_SPEED = 0.1
"""Radians per position by which the fastest pair turns at least, or nothing is turned."""


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """How keys are rotated.

    Attributes:
        first, second: Indices of the numbers of each pair, int [pairs].
        speed: Radians per position, float64 [pairs].
    """

    first: Array
    second: Array
    speed: Array

    def turned(self, keys: Array, by: int) -> Array:
        """Return keys [..., width] as they are ``by`` positions later (or earlier)."""
        cos, sin = (f(self.speed * by).astype(np.float32) for f in (np.cos, np.sin))
        one = keys[..., self.first].astype(np.float32)
        other = keys[..., self.second].astype(np.float32)
        result = keys.copy()
        result[..., self.first] = one * cos - other * sin
        result[..., self.second] = other * cos + one * sin
        return result

    def alike(self, keys: Array, others: Array) -> bool:
        """Whether keys of the first layer [heads, rows, width] are the same but for rounding."""
        gap = np.abs(self._pairs(keys) - self._pairs(others))
        return _small(gap, self._pairs(others), FIRST_LAYER_SLACK)

    def explains(self, keys: Array, slack: float) -> bool:
        """Whether keys [heads, rows, width] of equal tokens are one key, turned by position."""
        angle: Array = np.multiply.outer(np.arange(len(keys[0]), dtype=np.float64), self.speed)
        back: Array = self._pairs(keys) * np.exp(-1j * angle)
        rest = np.ones(keys.shape[-1], bool)
        rest[self.first] = rest[self.second] = False
        still = keys[..., rest].astype(np.float64)
        return all(
            _small(values - values.mean(1, keepdims=True), values, slack)
            for values in (back, still)
        )

    def _pairs(self, keys: Array) -> Array:
        return _complex(keys, self.first, self.second)


def read_rotation(layers: Sequence[Array]) -> Rotation | None:
    """Find out how a model turns its keys.

    In a sequence of one token over and over, every row attends to equal values, so at every layer
    all rows have the same key before it is turned.

    Args:
        layers: The keys of such a sequence from position 0 on, [heads, rows, width] per layer; 16
            rows are enough.

    Returns:
        The rotation that explains all of them; None if none does.
    """
    for first, second in _pairings(layers[0].shape[-1]):
        found = Rotation(first, second, _speed(_complex(layers[0], first, second)))
        if found.explains(layers[0], FIRST_LAYER_SLACK):
            turns = float(np.abs(found.speed).max()) >= MIN_SPEED
            rest = all(found.explains(keys, LAYER_SLACK) for keys in layers[1:])
            return found if turns and rest else None
    return None


def _pairings(width: int) -> Iterator[tuple[Array, Array]]:
    """The ways to pair the first numbers of a head: halves, or neighbours; all of them first."""
    for count in range(width - width % 2, 0, -2):
        half = np.arange(count // 2)
        yield half, half + count // 2
        yield 2 * half, 2 * half + 1


def _complex(keys: Array, first: Array, second: Array) -> Array:
    return keys[..., first].astype(np.float64) + 1j * keys[..., second]


def _speed(pairs: Array) -> Array:
    """Radians per row of [heads, rows, pairs]; the further apart two rows are, the more exact."""

    def angle(step: int) -> Array:
        return np.angle((pairs[:, step:] * pairs[:, :-step].conj()).sum((0, 1)))

    speed, step = angle(1), 2
    while step < pairs.shape[1]:
        # The shorter step says how many times the longer one goes round.
        rounds = np.round((step * speed - angle(step)) / (2 * np.pi))
        speed = (angle(step) + 2 * np.pi * rounds) / step
        step *= 2
    return speed


def _small(gap: Array, values: Array, slack: float) -> bool:
    """Whether gaps [heads, rows, n] are small beside values, for each of the n."""
    power = (np.abs(values) ** 2).sum((0, 1))
    return bool(((np.abs(gap) ** 2).sum((0, 1)) <= slack**2 * power).all())
