"""Placement: the rectangles of wafers that hold a model, and whether memory and colours suffice.

A model is cut at layer boundaries over wafers; on a wafer every layer, the embedding and the output
projection get a rectangle of PEs in proportion to their weights (``layer-rect``), or all layers of
the wafer share the whole fabric in turn (``time-mux``).  Weights stay where they are; only
activations move.

Memory (48 KB per PE, 24 colours) is counted for the fullest PE: padded weight tiles (``ceil`` in
both directions), activation buffers, the generation's reserve for code, and the rest for keys and
values.  A plan that does not fit is refused with the reason and the smallest sufficient number of
wafers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from midstream.wafer.cost import Rectangle, ceil_div
from midstream.wafer.errors import DoesNotFitError, WaferUsageError
from midstream.wafer.kernels import KernelGeneration
from midstream.wafer.machines import Wafer
from midstream.wafer.operators import Operator, Workload, at_one_precision, workload_of
from midstream.wafer.plan import MODES, Mode, Placed, Plan, stored_bytes
from midstream.wafer.shape import ModelShape

PLANS = 256
"""Size of the placement cache."""

MAX_WAFERS = 2048
"""Largest installation the vendor names."""

WEIGHT_FILL = 0.9
"""Share of the room (SRAM without reserve) that weights may take before spare PEs are handed out
(assumed).
"""

PADDING_MARGIN = 1.15
"""Room left for padding when a wafer is not used whole (assumed; measured padding is 2-13 %)."""

NOMINAL_CONTEXT = 4096
"""Context at which a rectangle's work is weighed when a wafer is not used whole."""

COLLECTIVES_PER_LAYER = 10
"""All-reduces of a dense layer."""


def padded_weight_bytes(operators: tuple[Operator, ...], rect: Rectangle, weight_bits: int) -> int:
    """Weight bytes on the fullest PE of a rectangle: every tile rounded up in both directions.

    Experts of a mixture layer rotate their remainders, so they are rounded up together.
    """
    total = 0
    for op in operators:
        if op.kind in ("linear", "head", "lookup"):
            columns = ceil_div(op.stored * op.n, rect.across(op.axis))
            tile = ceil_div(op.k, rect.along(op.axis)) * columns
            total += ceil_div(tile * (op.weight_bits or weight_bits), 8)
        elif op.kind == "norm":
            total += 2 * ceil_div(op.k, rect.height)
    return total


def buffer_bytes(operators: tuple[Operator, ...], rect: Rectangle) -> int:
    """Activation buffers on the fullest PE: the widest operator's tiles, twice, at 16 bit."""
    widest = max(
        (
            (0 if op.kind == "lookup" else ceil_div(op.k, rect.along(op.axis)))
            + ceil_div(max(op.reduced, op.n), rect.across(op.axis))
            for op in operators
        ),
        default=0,
    )
    return 2 * 2 * widest


def place(
    model: ModelShape | Workload,
    hw: Wafer,
    kernels: KernelGeneration,
    *,
    wafers: int | None = None,
    mode: Mode = "layer-rect",
    weight_bits: int | None = None,
    kv_bits: int = 16,
    context: int = 1,
    batch: int = 1,
    check: bool = True,
) -> Plan:
    """Place a model on wafers.

    Args:
        model: A shape, or the operators of a graph.
        hw: The wafer.
        kernels: The kernel generation (decides the reserve per PE).
        wafers: How many wafers; None finds the smallest number that fits.
        mode: ``layer-rect`` or ``time-mux``.
        weight_bits: Bits per stored weight, 16, 8 or 4; None takes the model's native precision.
        kv_bits: Bits per cached value, 16 or 8.
        context: Tokens that must fit in the cache, per sequence.
        batch: Sequences.
        check: Refuse a plan that does not fit.

    Raises:
        DoesNotFitError: It does not fit; has the reason and the smallest wafer count.
        WaferUsageError: A value is out of range.
    """
    workload = model if isinstance(model, Workload) else workload_of(model)
    if weight_bits is not None and workload.nodes:  # a graph has precisions of its own
        workload = at_one_precision(workload)
    wanted = _Demand(
        workload,
        hw,
        kernels,
        mode,
        weight_bits or workload.shape.native_bits,
        kv_bits,
        context,
        batch,
    )
    _check_arguments(wanted, wafers)
    name = workload.shape.name
    if wafers is None:
        found = _smallest(wanted)
        if found is None:
            reason = wanted.problem(_attempt(wanted, 1, compact=False)) or "it does not fit"
            raise DoesNotFitError(
                f"{name} does not fit on any number of {hw.label} wafers: on one, {reason}.",
                reason=reason,
                smallest_wafers=None,
            )
        return found
    plan = _best(wanted, wafers)
    reason = wanted.problem(plan)
    if reason is None or not check:
        return plan
    found = _smallest(wanted)
    smallest = found.wafers if found else None
    way_out = (
        f"the smallest count that fits is {smallest}" if smallest else "no number of wafers fits"
    )
    raise DoesNotFitError(
        f"{name} at {wanted.weight_bits} bit does not fit on {wafers} {hw.label} "
        f"{'wafer' if wafers == 1 else 'wafers'}: {reason}; {way_out}.",
        reason=reason,
        smallest_wafers=smallest,
    )


@dataclass(frozen=True, slots=True)
class _Demand:
    """A model and the demands on its placement, for any number of wafers; see ``place``."""

    workload: Workload
    hw: Wafer
    kernels: KernelGeneration
    mode: Mode
    weight_bits: int
    kv_bits: int
    context: int
    batch: int

    @property
    def fabric(self) -> tuple[int, int]:
        return self.hw.fabric(halo=self.kernels.halo)

    @property
    def room(self) -> int:
        """Bytes of a PE without the reserve for code."""
        return self.hw.count("sram_bytes") - self.kernels.reserve_bytes

    def problem(self, plan: Plan) -> str | None:
        return plan.problem(self.context, self.batch)


def _check_arguments(wanted: _Demand, wafers: int | None) -> None:
    if wafers is not None and not 1 <= wafers <= MAX_WAFERS:
        raise WaferUsageError(
            f"Wafer count {wafers} is outside 1-{MAX_WAFERS}; leave it out to find one."
        )
    bits, kv_bits, context, batch = (
        wanted.weight_bits,
        wanted.kv_bits,
        wanted.context,
        wanted.batch,
    )
    if wanted.mode not in MODES:
        raise WaferUsageError(
            f"Placement mode '{wanted.mode}' is unknown; use {' or '.join(MODES)}."
        )
    if bits not in (4, 8, 16):
        raise WaferUsageError(f"Weights of {bits} bit are not supported; use 16, 8 or 4.")
    if kv_bits not in (8, 16):
        raise WaferUsageError(f"A cache of {kv_bits} bit is not supported; use 16 or 8.")
    if context < 1 or batch < 1:
        raise WaferUsageError(f"Context {context} and batch {batch} must be at least 1.")


@lru_cache(maxsize=PLANS)
def _smallest(wanted: _Demand) -> Plan | None:
    width, height = wanted.fabric
    room = width * height * wanted.room
    if room <= 0:
        return None
    workload, bits = wanted.workload, wanted.weight_bits
    cache = wanted.batch * workload.shape.kv_bytes(wanted.context, wanted.kv_bits)
    need = stored_bytes(workload, bits) + cache
    sizes = tuple(part.weights * bits / 8 for part in _parts(workload))
    most = min(MAX_WAFERS, len(sizes))  # a layer is never cut over two wafers
    for count in range(max(1, math.ceil(need / room)), most + 1):
        fullest = max(sum(sizes[i] for i in indices) for indices in partition(sizes, count))
        if fullest > room:
            continue
        plan = _best(wanted, count)
        if wanted.problem(plan) is None:
            return plan
    return None


def _best(wanted: _Demand, wafers: int) -> Plan:
    """The compact placement when it fits, the one that uses whole wafers otherwise."""
    plan = _attempt(wanted, wafers, compact=True)
    if wanted.problem(plan) is None:
        return plan
    return _attempt(wanted, wafers, compact=False)


@dataclass(frozen=True, slots=True)
class _PlacedStage:
    """An item to place: its operators, stored weights, and the weights that one token touches."""

    name: str
    layer: int | None
    kind: int | None
    operators: tuple[Operator, ...]
    weights: int
    active: int


@lru_cache(maxsize=PLANS)
def _parts(workload: Workload) -> tuple[_PlacedStage, ...]:
    shape = workload.shape
    parts: list[_PlacedStage] = []
    if shape.embedding_weights:
        lookup = (Operator("embedding", "lookup", shape.vocab, shape.hidden),)
        parts.append(_PlacedStage("embedding", None, None, lookup, shape.embedding_weights, 0))
    totals = [
        (sum(op.weights for op in kind), sum(op.active_weights for op in kind))
        for kind in workload.kinds
    ]
    for index, kind in enumerate(workload.layer_kinds):
        parts.append(
            _PlacedStage(f"layer {index}", index, kind, workload.kinds[kind], *totals[kind])
        )
    if any(op.weights for op in workload.head):
        weights = sum(op.weights for op in workload.head)
        parts.append(_PlacedStage("lm_head", None, None, workload.head, weights, weights))
    return tuple(parts)


@lru_cache(maxsize=PLANS)
def _attempt(wanted: _Demand, wafers: int, *, compact: bool) -> Plan:
    """A placement on exactly ``wafers`` wafers, whether it fits or not."""
    parts, weight_bits, mode = _parts(wanted.workload), wanted.weight_bits, wanted.mode
    (width, height), room = wanted.fabric, wanted.room
    measured: dict[tuple[str | int, int, int], tuple[int, int]] = {}

    def measure(part: _PlacedStage, rect: Rectangle) -> tuple[int, int]:
        key = (part.name if part.kind is None else part.kind, rect.width, rect.height)
        if key not in measured:
            measured[key] = (
                padded_weight_bytes(part.operators, rect, weight_bits),
                buffer_bytes(part.operators, rect),
            )
        return measured[key]

    items: list[Placed] = []
    weights = tuple(float(part.weights) for part in parts)
    for number, indices in enumerate(partition(weights, wafers)):
        members = [parts[i] for i in indices]
        wide, high = width, height
        if compact:
            wide, high = _compact(members, width, height, room, weight_bits, mode)
        rects = [Rectangle(wide, high)] * len(members)
        if mode == "layer-rect":
            rects = treemap([float(part.weights) for part in members], wide, high) or rects
            rects = _recut(members, rects, measure, wide, high, room)
        items.extend(
            Placed(part.name, part.layer, part.kind, number, rect, *measure(part, rect))
            for part, rect in zip(members, rects, strict=True)
        )
    return Plan(
        wanted.workload,
        wanted.hw,
        wanted.kernels,
        wafers,
        mode,
        weight_bits,
        wanted.kv_bits,
        tuple(items),
    )


def _recut(
    members: list[_PlacedStage],
    rects: list[Rectangle],
    measure: Callable[[_PlacedStage, Rectangle], tuple[int, int]],
    width: int,
    height: int,
    room: int,
) -> list[Rectangle]:
    """Cut a wafer again, knowing the padded bytes of a first cut.

    Every item gets the PEs that its padded weights need at ``WEIGHT_FILL``; the rest goes to
    the weights that a token touches, so that an embedding table or idle experts take no area that
    would shorten a step.  If neither cut fits, the emptier one is kept.
    """
    padded = [measure(*pair)[0] * pair[1].pes for pair in zip(members, rects, strict=True)]
    needed = [size / (room * WEIGHT_FILL) for size in padded]
    spare = width * height - sum(needed)
    areas = [float(size) for size in padded]
    active = sum(part.active for part in members)
    if spare > 0 and active:
        areas = [n + spare * m.active / active for n, m in zip(needed, members, strict=True)]
    again = treemap(areas, width, height) or rects

    def fullest(cut: list[Rectangle]) -> int:
        return max(sum(measure(*pair)) for pair in zip(members, cut, strict=True))

    if fullest(again) <= room or fullest(again) <= fullest(rects):
        return again
    return rects


def _compact(
    members: list[_PlacedStage], width: int, height: int, room: int, weight_bits: int, mode: Mode
) -> tuple[int, int]:
    """The part of a wafer worth using: more PEs shorten arithmetic but lengthen every collective.

    With W multiply-adds on P x P PEs a layer costs about ``W / (2 P^2)`` cycles of arithmetic and
    ``10 P`` of hops in its ten collectives, least at ``P = (W / 10)^(1/3)``.
    """
    areas: list[float] = []
    for part in members:
        needed = part.weights * weight_bits / 8 / (room * WEIGHT_FILL)
        collectives = COLLECTIVES_PER_LAYER if len(part.operators) > 1 else 1  # a lone product
        areas.append(max(needed * PADDING_MARGIN, (_work(part) / collectives) ** (2 / 3)))
    wanted = sum(areas)
    if mode == "time-mux":
        stored = sum(part.weights for part in members) * weight_bits / 8
        wanted = max(*areas, PADDING_MARGIN * stored / (room * WEIGHT_FILL))
    share = wanted / (width * height)
    if share >= 1.0:
        return width, height
    return max(1, math.ceil(width * share**0.5)), max(1, math.ceil(height * share**0.5))


def _work(part: _PlacedStage) -> int:
    return sum(op.macs(NOMINAL_CONTEXT) for op in part.operators) if part.active else 0


TIE = 1e-6
"""Costs closer than this are equal: the earlier cut stays, whatever the rounding."""


def treemap(weights: Sequence[float], width: int, height: int) -> list[Rectangle]:
    """Cut ``width x height`` PEs into one rectangle per weight, in order, as square as rows allow.

    Rows alternate in direction, so consecutive items always touch.  They minimise the sum of
    squared log aspect ratios (dynamic programme over contiguous rows).

    Returns:
        One rectangle per weight; empty when an item would get no PE.
    """
    if not weights:
        return []
    weights = [max(weight, 1.0) for weight in weights]  # every item gets at least a PE's worth
    groups = _best_rows(weights, width, height)
    total = sum(weights)
    cut: list[Rectangle] = []
    top, used = 0, 0.0
    for index, group in enumerate(groups):
        used += sum(group)
        bottom = height if index == len(groups) - 1 else round(height * used / total)
        row = _row(group, width, top, bottom)
        if not row:
            return []
        if index % 2:
            row = [Rectangle(r.width, r.height, width - r.x - r.width, r.y) for r in row]
        cut.extend(row)
        top = bottom
    return cut


def _row(group: Sequence[float], width: int, top: int, bottom: int) -> list[Rectangle]:
    row: list[Rectangle] = []
    left, placed, whole = 0, 0.0, sum(group)
    for position, weight in enumerate(group):
        placed += weight
        right = width if position == len(group) - 1 else round(width * placed / whole)
        if right <= left or bottom <= top:
            return []
        row.append(Rectangle(right - left, bottom - top, left, top))
        left = right
    return row


def _best_rows(weights: Sequence[float], width: int, height: int) -> list[Sequence[float]]:
    """Contiguous rows with the squarest rectangles.

    A rectangle of weight w in a row of weight s is ``width w / s`` by ``height s / total``; its log
    aspect ratio is ``log w + f`` with ``f = log(width total / (height s^2))``, so a row of n costs
    ``sum((log w)^2) + 2 f sum(log w) + n f^2``, which running totals give at once.
    """
    count, total = len(weights), sum(weights)
    longest = 2 * math.ceil(math.sqrt(count * width / height)) + 2
    logs = [math.log(weight) for weight in weights]
    sums = [0.0, *accumulate(weights)]
    log_sums = [0.0, *accumulate(logs)]
    square_sums = [0.0, *accumulate(value * value for value in logs)]
    shape = math.log(width * total / height)
    best = [0.0] + [math.inf] * count
    start = [0] * (count + 1)
    for end in range(1, count + 1):
        for begin in range(max(0, end - longest), end):
            factor = shape - 2 * math.log(sums[end] - sums[begin])
            cost = best[begin] + square_sums[end] - square_sums[begin]
            cost += factor * (2 * (log_sums[end] - log_sums[begin]) + (end - begin) * factor)
            if cost < best[end] - TIE:
                best[end], start[end] = cost, begin
    rows: list[Sequence[float]] = []
    end = count
    while end:
        rows.append(weights[start[end] : end])
        end = start[end]
    return rows[::-1]


@lru_cache(maxsize=1024)
def partition(sizes: tuple[float, ...], parts: int) -> tuple[range, ...]:
    """Cut a sequence into at most ``parts`` contiguous parts whose largest is as small as possible.

    Returns:
        Indices per part; there may be fewer parts than asked for.
    """
    sums = [0.0, *accumulate(sizes)]
    low, high = max(sizes), sums[-1]
    while high - low > 1e-7 * high:
        limit = (low + high) / 2
        if len(_greedy(sums, limit)) <= parts:
            high = limit
        else:
            low = limit
    return tuple(_greedy(sums, high * (1 + 1e-9)))


def _greedy(sums: list[float], limit: float) -> list[range]:
    """Fill part after part up to ``limit``; ``sums`` are running totals starting with 0."""
    parts: list[range] = []
    start, last = 0, len(sums) - 1
    while start < last:
        stop = max(start + 1, bisect_right(sums, sums[start] + limit, start) - 1)
        parts.append(range(start, stop))
        start = stop
    return parts
