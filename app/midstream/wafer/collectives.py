"""L0 collectives: closed forms in cycles for chains and the two-level tree all-reduce on one axis.

The general form is that of the HPDC'24 reduce study (arXiv 2404.15888): ``T = max(C, E / N) + L +
(2 T_R + 1) D`` with contention C, energy E over N links, distance L and depth D.  On one axis to
which every PE contributes, the contention term is the streaming of the vector, L counts hops, and D
counts the PEs at which a partial sum leaves the fabric, is added and goes back.

The two-level tree is the one of WaferLLM's ``comm_pe.csl`` (K = 2): groups of ``g`` PEs reduce
towards their middle PE over two arms, the group roots reduce towards the middle group over two
arms, and the final root multicasts both ways.  The phases do not overlap, because each is a
blocking vector instruction; at a root the two arms and the two multicast directions are served one
after the other.  The tests execute the same program wavelet by wavelet and hold these forms to
within 5 %.

The software around a collective is a fitted parameter (``wafer.kernels``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache


@dataclass(frozen=True, slots=True)
class Collective:
    """Cycles of one collective, split by cause; ``depth`` counts serial router-PE-router turns."""

    hops: int
    stages: int
    streaming: int
    depth: int
    colours: int

    @property
    def cycles(self) -> int:
        return self.hops + self.stages + self.streaming


NOTHING = Collective(0, 0, 0, 0, 0)


@cache
def group_size(length: int) -> int:
    """PEs per group of the two-level tree on an axis of ``length`` PEs.

    The smallest divisor not below the square root, as WaferLLM uses on every published grid (420:
    21, 540: 27, 660: 30); without such a divisor near the root, the root rounded up and a shorter
    last group.
    """
    root = math.ceil(math.sqrt(length))
    for size in range(root, 2 * root):
        if length % size == 0:
            return size
    return root


@lru_cache(maxsize=32768)
def two_level_allreduce(length: int, wavelets: int, ramp: int) -> Collective:
    """Cycles of an all-reduce of ``wavelets`` wavelets per PE along an axis of ``length`` PEs.

    They count from the first PE's first send until the last PE holds the last wavelet.
    """
    if length <= 1:
        return NOTHING
    size = group_size(length)
    turn = 2 * ramp + 1
    starts = range(0, length, size)
    roots = [start + min(size, length - start) // 2 for start in starts]
    first = _group(size, turn, wavelets)
    above, below = len(roots) // 2, len(roots) - 1 - len(roots) // 2
    late = 0
    if below and (last := length - starts[-1]) < size:
        # A short last group is nearer and ready earlier.
        ready = _group(last, turn, wavelets).cycles - first.cycles
        late = max(-(size + turn), ready + roots[-1] - roots[-2] - size)
    second = _arms(above, below, size, turn, wavelets, late)

    root = roots[above]
    rest = length - 1 - root
    up = root + turn + wavelets if root else 0
    down = rest + turn + 2 * wavelets if rest else 0
    total = first.cycles + second.cycles + max(up, down)

    hops = first.hops + second.hops + (root if up >= down else rest)
    depth = first.depth + second.depth + 1
    return Collective(hops, turn * depth, total - hops - turn * depth, depth, 10)


INBOX = 8
"""Wavelets of one colour that fit between router and PE (queue and ramp registers); assumed."""


@dataclass(frozen=True, slots=True)
class _Arms:
    hops: int
    depth: int
    cycles: int


def _group(size: int, turn: int, wavelets: int) -> _Arms:
    """Reduction inside one group of neighbours towards its middle PE."""
    return _arms(size // 2, size - 1 - size // 2, 1, turn, wavelets)


def _arms(long: int, short: int, spacing: int, turn: int, wavelets: int, late: int = 0) -> _Arms:
    """Cycles until a root has added two arms of ``long`` and ``short`` senders, the short one
    first.

    An arm of k senders delivers its first wavelet after ``k * (spacing + turn)`` cycles and one per
    cycle after that; the root needs one pass of ``wavelets`` cycles per arm.  Arms that arrive
    together share the ramp until the inbox of the arm that has to wait is full.

    Args:
        long: Senders of the longer arm.
        short: Senders of the shorter arm.
        spacing: Hops between neighbours of an arm.
        turn: Cycles of one router-PE-router turn.
        wavelets: Vector length.
        late: Cycles by which the short arm arrives later than equal spacing would make it.
    """
    if long == 0:
        return _Arms(0, 0, 0)
    pitch = spacing + turn
    first_at = long * pitch
    if short == 0:
        return _Arms(long * spacing, long, first_at + wavelets)
    arrives = short * pitch + late
    queued_at = arrives + wavelets
    if arrives == first_at:
        queued_at += min(wavelets, INBOX)
    if queued_at > first_at:
        return _Arms(short * spacing, short, queued_at + wavelets)
    return _Arms(long * spacing, long, first_at + wavelets)
