"""L0 estimates: decode, prefill and end-to-end time of a placed model, in cycles and seconds.

A decode step walks the layers in order (one rectangle works, the others wait), then the output
head.  On the wafer it takes ``scale * sum(operator cycles)`` plus one hand-off per layer; links
between wafers are added off the wafer.  All of this is closed form; overlap, batching and
speculation are in ``wafer.pipeline``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from midstream.wafer.cost import CycleCost, Machine, Rectangle, ceil_div, decode_cost, prefill_cost
from midstream.wafer.kernels import KernelGeneration, costs
from midstream.wafer.machines import Wafer
from midstream.wafer.operators import Operator, workload_of
from midstream.wafer.parameters import Parameters
from midstream.wafer.plan import Plan
from midstream.wafer.shape import ModelShape

CHUNK_TOKENS = 32
"""Prompt tokens that travel together through a layer pipeline with stationary weights (assumed).

Enough to make the software of collectives small, few enough to fill the pipeline quickly.
"""

PREFILL_BAND = 2.0
"""Half-width of prefill times in a layer pipeline: no published row constrains them (assumed)."""

CHUNK_ROWS = 2
"""Prompt tokens per PE row of a chunk where prefill runs MeshGEMM (assumed)."""


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """One operator of a layer kind (None: the head) on one size of rectangle, before the scale."""

    kind: int | None
    operator: Operator
    cost: CycleCost
    layers: int
    rect: Rectangle


@dataclass(frozen=True, slots=True)
class Step:
    """One pass over the model: cycles on the wafer, microseconds off it.

    Attributes:
        cycles: On-wafer cycles, scale and hand-offs included.
        breakdown: The same by cause.
        off_wafer_us: Links, host operators and fixed time, in microseconds.
        stages: Cycles of one rectangle, by layer kind and size.
        operators: Cost per operator and layer kind, in execution order.
        clock_hz: Clock that turns cycles into seconds.
    """

    cycles: float
    breakdown: dict[str, float]
    off_wafer_us: float
    stages: dict[tuple[int | None, Rectangle], float]
    operators: tuple[OperatorCost, ...]
    clock_hz: float

    @property
    def seconds(self) -> float:
        """Simulated time of the pass."""
        return self.cycles / self.clock_hz + self.off_wafer_us * 1e-6

    @property
    def stage_cycles(self) -> float:
        """Cycles of the slowest rectangle, which bounds pipelined throughput."""
        return max(self.stages.values(), default=0.0)


@cache
def machine(hw: Wafer, kernels: KernelGeneration, parameters: Parameters | None = None) -> Machine:
    """Cost constants of a generation on a wafer, ready for pricing."""
    return Machine(
        costs(kernels, hw, parameters),
        kernels.benchmark_shape,
        hw.count("ramp_cycles"),
        hw.fp16_per_wavelet,
        hw.number("io_gb_s") * 1e3,
        hw.number("link_us"),
    )


def benchmark_step(
    shape: ModelShape,
    hw: Wafer,
    kernels: KernelGeneration,
    grid: Rectangle,
    *,
    context: int,
    batch: int = 1,
    prompt: int = 0,
    parameters: Parameters | None = None,
) -> Step:
    """The layer benchmark of WaferLLM: all layers on one grid, no embedding, head, hand-off or
    host.

    Args:
        shape: The model; keys and values are widened to the query width, as those kernels do.
        hw: The wafer.
        kernels: The kernel generation.
        grid: The PE rectangle.
        context: Cached tokens (decode).
        batch: Sequences per pass.
        prompt: Prompt tokens; 0 prices decode.
        parameters: Other than the frozen parameters (used by the fit).
    """
    target = shape.as_benchmarked() if kernels.benchmark_shape else shape
    m = machine(hw, kernels, parameters)
    rows: list[OperatorCost] = []
    workload = workload_of(target)
    for kind, operators in enumerate(workload.kinds):
        count = workload.layer_kinds.count(kind)
        for op in operators:
            if prompt:
                cost = prefill_cost(op, grid, m, prompt, prompt)
            else:
                cost = decode_cost(op, grid, m, context, batch)
            rows.append(OperatorCost(kind, op, cost, count, grid))
    return _step(rows, m, hw, 0.0, 0.0)


def decode_step(
    plan: Plan, *, context: int, batch: int = 1, parameters: Parameters | None = None
) -> Step:
    """One decode pass of a placed model; ``batch`` tokens travel together and share collectives."""
    return _plan_step(plan, context, batch, 0, parameters)


def prefill_pass(
    plan: Plan, *, tokens: int, context: int, parameters: Parameters | None = None
) -> Step:
    """One prefill chunk of ``tokens`` prompt tokens through all layers of a placed model."""
    return _plan_step(plan, context, 1, tokens, parameters)


def _plan_step(
    plan: Plan, context: int, batch: int, prompt: int, parameters: Parameters | None
) -> Step:
    m = machine(plan.hw, plan.kernels, parameters)
    rows: list[OperatorCost] = []
    handoff = 0.0
    for (kind, rect), count in plan.groups.items():
        for op in plan.workload.operators(kind):
            seen = context if op.kind == "attention" else 1  # only attention depends on the context
            if prompt:
                cost = prefill_cost(op, rect, m, prompt, seen)
            else:
                cost = decode_cost(op, rect, m, seen, batch)
            rows.append(OperatorCost(kind, op, cost, count, rect))
        if plan.mode == "layer-rect" and not plan.workload.product:
            tokens = prompt or batch
            wavelets = ceil_div(
                tokens * ceil_div(plan.shape.hidden, rect.height), m.values_per_wavelet
            )
            handoff += count * ((rect.width + rect.height) / 2 + wavelets)
    links = plan.wafers if plan.wafers > 1 else 0  # The new token returns to the first wafer.
    link_bytes = (prompt or batch) * plan.shape.hidden * 2
    off_wafer = links * (m.link_us + link_bytes / m.io_bytes_per_us)
    return _step(rows, m, plan.hw, handoff, off_wafer)


def _step(
    rows: list[OperatorCost], m: Machine, hw: Wafer, handoff: float, off_wafer_us: float
) -> Step:
    scale = m.costs.scale
    total = CycleCost()
    stages: dict[tuple[int | None, Rectangle], float] = {}
    for row in rows:
        total += row.cost.repeated(row.layers)
        key = (row.kind, row.rect)
        stages[key] = stages.get(key, 0.0) + row.cost.cycles * scale
    scaled = total.scaled(scale)
    return Step(
        cycles=scaled.cycles + handoff * scale,
        breakdown={**scaled.as_dict(), "handoff": handoff * scale},
        off_wafer_us=off_wafer_us + total.host_us,
        stages=stages,
        operators=tuple(rows),
        clock_hz=hw.clock_hz,
    )


def chunk_tokens(plan: Plan, prompt: int) -> int:
    """Prompt tokens that travel together in prefill; the whole prompt in ``time-mux`` mode."""
    if plan.mode == "time-mux":
        return prompt
    chunk = CHUNK_TOKENS
    if plan.kernels.benchmark_shape:
        chunk = max(1, CHUNK_ROWS * round(plan.layer_items[0].rect.pes ** 0.5))
    return min(prompt, chunk)


def prefill_seconds(plan: Plan, prompt: int, parameters: Parameters | None = None) -> float:
    """Time until the first token of a prompt: chunks follow each other through the layer pipeline.

    ``stages + chunks - 1`` slots of the slowest stage, each chunk seeing the prompt so far; in
    ``time-mux`` mode one chunk holds the whole prompt.
    """
    chunk = chunk_tokens(plan, prompt)
    chunks = ceil_div(prompt, chunk)
    first = prefill_pass(plan, tokens=chunk, context=chunk, parameters=parameters)
    last = prefill_pass(plan, tokens=chunk, context=prompt, parameters=parameters)
    slot = (first.stage_cycles + last.stage_cycles) / 2 / plan.hw.clock_hz
    return last.seconds + (chunks - 1) * slot
