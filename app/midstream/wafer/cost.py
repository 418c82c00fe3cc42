"""L0: the price of one operator on one rectangle of PEs, in cycles, split by cause.

Notation: ``c(a, b) = ceil(a / b)``.  A weight matrix of k x n on a rectangle of w columns and h
rows lies in tiles k' x n'; reducing along y its k is split over the h rows and its n over the w
columns, reducing along x the other way round.

Decode, one token:

* local GEMV: ``k' * (issue + A * n')``, k' vector instructions of n' multiply-adds;
* collective: two-level tree of ``c(n', 2)`` wavelets along the axis, plus the software around it;
* a product alone: its result is cleared by one vector instruction, and the collective has no
  software around it, because no layer is there (WaferLLM's ``meshgemv.csl``);
* attention: a GEMV against the key tile (all-reduce of scores), softmax (two scalar all-reduces,
  exp in scalar code), a GEMV against the value tile (all-reduce of the output).

Prefill, S tokens, s' = c(S, P) per PE:

* MeshGEMM: P shift steps of ``k' * n' * (issue + A * s') + shift`` per product; weights and
  activations move two hops a step and stream under the arithmetic;
* stationary weights: S GEMVs that share one long collective, cheaper than MeshGEMM when a chunk
  leaves few tokens per PE (vendor generations take the cheaper of the two).

This module knows neither wafers in series nor host time; ``wafer.estimate`` adds
those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from midstream.wafer.collectives import two_level_allreduce
from midstream.wafer.kernels import KernelCosts
from midstream.wafer.operators import Operator

PRICES = 32768
"""Size of the price cache: bounded, because a growing context needs ever new prices."""

CAUSES = ("compute", "hops", "stages", "streaming", "software")
"""Causes of cycles; fields of ``CycleCost``."""

HOST_OPERATOR_US = 20.0
"""Assumed time of one operator that has to run on the host: kernel launch and a small tensor."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle of PEs: ``width`` columns by ``height`` rows, its corner at (``x``, ``y``)."""

    width: int
    height: int
    x: int = 0
    y: int = 0

    @property
    def pes(self) -> int:
        return self.width * self.height

    @property
    def size(self) -> Rectangle:
        """A rectangle of the same size at the origin."""
        return Rectangle(self.width, self.height)

    @property
    def corners(self) -> list[int]:
        """Column, row, width and height, as in traces and JSON."""
        return [self.x, self.y, self.width, self.height]

    def along(self, axis: str) -> int:
        return self.width if axis == "x" else self.height

    def across(self, axis: str) -> int:
        return self.height if axis == "x" else self.width


@dataclass(frozen=True, slots=True)
class CycleCost:
    """Cycles by cause: arithmetic, hops, router-PE turns, streaming of vectors, software.

    ``host_us`` is wall time off the wafer, never converted to cycles; ``depth`` counts router-PE
    turns.
    """

    compute: float = 0.0
    hops: float = 0.0
    stages: float = 0.0
    streaming: float = 0.0
    software: float = 0.0
    host_us: float = 0.0
    depth: int = 0

    @property
    def cycles(self) -> float:
        return self.compute + self.hops + self.stages + self.streaming + self.software

    def __add__(self, other: CycleCost) -> CycleCost:
        return CycleCost(
            **{cause: getattr(self, cause) + getattr(other, cause) for cause in CAUSES},
            host_us=self.host_us + other.host_us,
            depth=self.depth + other.depth,
        )

    def scaled(self, factor: float) -> CycleCost:
        """The same work with every cause of cycles scaled by a generation; host time stays."""
        return replace(self, **{cause: v * factor for cause, v in self.as_dict().items()})

    def repeated(self, times: int) -> CycleCost:
        """The cost of doing it ``times`` times in a row."""
        once = self.scaled(times)
        return replace(once, host_us=self.host_us * times, depth=self.depth * times)

    def as_dict(self) -> dict[str, float]:
        """Cycles by cause, for tables and JSON."""
        return {cause: getattr(self, cause) for cause in CAUSES}


@dataclass(frozen=True, slots=True)
class Machine:
    """Everything that decides an operator's price, except its rectangle.

    ``mesh_gemm_only`` makes prefill run MeshGEMM at any cost, as WaferLLM's kernels do; otherwise
    the cheaper of MeshGEMM and stationary weights is taken.
    """

    costs: KernelCosts
    mesh_gemm_only: bool
    ramp: int
    values_per_wavelet: int
    io_bytes_per_us: float
    link_us: float


def ceil_div(a: int, b: int) -> int:
    """``ceil(a / b)`` for integers."""
    return -(-a // b)


@lru_cache(maxsize=PRICES)
def decode_cost(
    op: Operator, rect: Rectangle, machine: Machine, context: int, batch: int = 1
) -> CycleCost:
    """Price of one operator for ``batch`` tokens of equal context, before the generation's scale.

    ``batch`` tokens share the collective (longer vectors), as in WaferLLM's ``bsz`` loops.
    """
    k = machine.costs
    if op.kind == "host":
        moved = 2 * op.k * 2 * batch
        return CycleCost(
            host_us=2 * machine.link_us + HOST_OPERATOR_US + moved / machine.io_bytes_per_us
        )
    if op.kind == "folded":
        return CycleCost()
    if op.kind == "attention":
        return _decode_attention(op, rect, machine, context, batch)
    along, across = rect.along(op.axis), rect.across(op.axis)
    if op.kind in ("linear", "head"):
        rows, columns = ceil_div(op.k, along), ceil_div(op.n, across)
        compute = batch * op.copies * _gemv(rows, columns, k)
        if op.alone:
            compute += batch * (k.issue + k.cycles_per_mac * columns)
        total = CycleCost(compute=compute)
        if op.kind == "head":
            # Arg-max over the local logits, then two scalar all-reduces (value and place).
            total += CycleCost(compute=batch * (k.issue + columns))
            total += _allreduce(batch, rect.along("x"), machine) + _allreduce(batch, along, machine)
    else:
        width = ceil_div(op.k, across)
        vectors = op.vectors * (k.issue + k.cycles_per_mac * width)
        scalars = ceil_div(op.scalars, across) * k.scalar
        total = CycleCost(compute=batch * (vectors + scalars))
    if op.reduced:
        values = 1 if op.kind == "norm" else ceil_div(op.reduced, across)
        total += _allreduce(batch * values, along, machine, bare=op.alone)
    return total


def _gemv(rows: int, columns: int, k: KernelCosts) -> float:
    return rows * (k.issue + k.cycles_per_mac * columns)


def _allreduce(values: int, length: int, machine: Machine, *, bare: bool = False) -> CycleCost:
    """Price of a collective; ``bare`` leaves the software around it out."""
    wavelets = ceil_div(values, machine.values_per_wavelet)
    tree = two_level_allreduce(length, wavelets, machine.ramp)
    software = machine.costs.collective if length > 1 and not bare else 0.0
    return CycleCost(0.0, tree.hops, tree.stages, tree.streaming, software, 0.0, tree.depth)


def _decode_attention(
    op: Operator, rect: Rectangle, machine: Machine, context: int, batch: int
) -> CycleCost:
    """Keys and values: feature dimension over the columns, tokens over the rows."""
    k = machine.costs
    seen = min(context, op.window) if op.window else context
    tokens = ceil_div(max(1, seen), rect.height)
    query, value = ceil_div(op.k, rect.width), ceil_div(op.n, rect.width)
    compute = _gemv(query, tokens, k) + _gemv(tokens, value, k) + k.scalar * tokens
    # Scale, subtract the maximum, divide by the sum.
    compute += 3 * (k.issue + k.cycles_per_mac * tokens)
    total = CycleCost(compute=batch * compute)
    total += _allreduce(batch * tokens, rect.width, machine)
    total += _allreduce(batch, rect.height, machine) + _allreduce(batch, rect.height, machine)
    return total + _allreduce(batch * value, rect.height, machine)


@lru_cache(maxsize=PRICES)
def prefill_cost(
    op: Operator, rect: Rectangle, machine: Machine, tokens: int, context: int
) -> CycleCost:
    """Price of one operator for a chunk of ``tokens`` that sees ``context`` tokens, before the
    scale.
    """
    if op.kind in ("host", "folded"):
        return decode_cost(op, rect, machine, context, tokens)
    if op.kind == "head":  # only the last position needs logits
        return decode_cost(op, rect, machine, context)
    moving = _moving_weights(op, rect, machine, tokens, context)
    if machine.mesh_gemm_only:
        return moving
    return min(
        moving, decode_cost(op, rect, machine, context, tokens), key=lambda cost: cost.cycles
    )


def _moving_weights(
    op: Operator, rect: Rectangle, machine: Machine, tokens: int, context: int
) -> CycleCost:
    k = machine.costs
    side = max(1, round(rect.pes**0.5))
    rows = ceil_div(tokens, side)
    if op.kind == "attention":
        seen = ceil_div(min(context, op.window + tokens) if op.window else context, side)
        scores = _mesh_gemm(ceil_div(op.k, side) * seen, rows, side, 1, machine)
        output = _mesh_gemm(seen * ceil_div(op.n, side), rows, side, 1, machine)
        softmax = CycleCost(compute=rows * seen * k.scalar)
        reduce = _allreduce(rows, side, machine)
        return scores + output + softmax + reduce + reduce
    if op.kind == "linear":
        visited = min(op.stored, op.copies * tokens) if op.stored > 1 else 1
        share = ceil_div(ceil_div(tokens * op.copies, visited), side) if op.stored > 1 else rows
        tile = visited * ceil_div(op.k, side) * ceil_div(op.n, side)
        return _mesh_gemm(tile, share, side, op.products, machine)
    vectors = op.vectors * ceil_div(op.k, side) * (k.issue + k.cycles_per_mac * rows)
    total = CycleCost(compute=vectors + rows * ceil_div(op.scalars, side) * k.scalar)
    if op.reduced:
        values = rows * (1 if op.kind == "norm" else ceil_div(op.reduced, side))
        total += _allreduce(values, side, machine)
    return total


def _mesh_gemm(tile: int, rows: int, side: int, products: int, machine: Machine) -> CycleCost:
    """``side`` shift steps per product, each ``tile`` vector instructions of length ``rows``.

    The moving tiles stream under the arithmetic; only the rest is charged as streaming.
    """
    k = machine.costs
    arithmetic = tile * (k.issue + k.cycles_per_mac * rows)
    uncovered = max(0.0, tile / machine.values_per_wavelet - arithmetic)
    return CycleCost(
        compute=side * arithmetic,
        hops=2.0 * side * products,
        streaming=side * uncovered,
        software=side * products * k.shift,
    )
