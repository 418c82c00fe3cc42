"""One simulation as a report: rates, times and energy with bands, marks, breakdown and assumptions.

Every number in a report is simulated and says so; wall-clock time never enters.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache

from midstream.wafer.cost import HOST_OPERATOR_US, CycleCost
from midstream.wafer.estimate import (
    CHUNK_TOKENS,
    PREFILL_BAND,
    Step,
    decode_step,
    machine,
    prefill_seconds,
)
from midstream.wafer.kernels import SCALAR_CYCLES
from midstream.wafer.models import preset
from midstream.wafer.operators import Operator, Workload
from midstream.wafer.options import Options
from midstream.wafer.parameters import frozen_document
from midstream.wafer.pipeline import stages_of
from midstream.wafer.plan import Plan
from midstream.wafer.quantity import Band, Mark, weakest
from midstream.wafer.speculation import tokens_per_step

REPORTS = 8
"""Size of the report cache."""

DRAFT_MODEL = "llama3.2-1b"
"""Size of draft whose weights are weighed against the SRAM that is left."""


@dataclass(frozen=True, slots=True)
class OperatorLine:
    """One line of the operator table: cycles of all its layers in one step, by cause."""

    name: str
    kind: str
    layers: int
    cycles: float
    share: float
    bound_by: str
    host_us: float
    causes: dict[str, float]

    def as_dict(self) -> dict[str, object]:
        values = asdict(self)
        causes = values.pop("causes")
        return {**values, **causes}


@dataclass(frozen=True, slots=True)
class Report:
    """A simulated model on simulated wafers.

    Attributes:
        plan: The placement.
        options: What was asked for.
        step: The decode step, without speculation.
        rate: Tokens per second of one sequence.
        total_rate: Tokens per second of all sequences of the batch.
        first_token: Seconds until the first token of the prompt.
        tokens_per_step: Expected tokens per decode step (1 without speculation).
        occupancy: Share of stages that work at any time.
        joules_per_token: Nameplate energy per token of one stream with everything else idle.
        joules_per_token_full: The same with all stages filled.
        breakdown_us: Microseconds per step by cause, off-wafer parts included.
        sram_share: Share of the advertised SRAM bandwidth that reading one step's weights uses.
        operators: Operator table.
        notes: Assumptions.
    """

    plan: Plan
    options: Options
    step: Step
    rate: Band
    total_rate: Band
    first_token: Band
    tokens_per_step: float
    occupancy: float
    joules_per_token: float
    joules_per_token_full: float
    breakdown_us: dict[str, float]
    sram_share: float
    operators: tuple[OperatorLine, ...]
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        """One line for people: rate, band, mark and the main assumptions."""
        return f"simulated {self.rate.text()}" + "".join(f", {note}" for note in self.notes)

    def as_dict(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        plan = self.plan
        return {
            "simulated": True,
            "clock": "wafer",
            "model": plan.shape.name,
            "shape_trust": plan.shape.trust,
            "hardware": plan.hw.name,
            "kernels": plan.kernels.name,
            "provenance": plan.kernels.provenance,
            "wafers": plan.wafers,
            "mode": plan.mode,
            "weight_bits": plan.weight_bits,
            "kv_bits": plan.kv_bits,
            "context": self.options.context,
            "batch": self.options.batch,
            "tokens_per_s": self.rate.as_dict(),
            "tokens_per_s_all": self.total_rate.as_dict(),
            "first_token_s": self.first_token.as_dict(),
            "cycles_per_step": self.step.cycles,
            "clock_ghz": plan.hw.number("clock_ghz"),
            "tokens_per_step": self.tokens_per_step,
            "breakdown_us": self.breakdown_us,
            "occupancy": self.occupancy,
            "joules_per_token": self.joules_per_token,
            "joules_per_token_full": self.joules_per_token_full,
            "energy_basis": "nameplate power",
            "sram_bandwidth_share": self.sram_share,
            "sram_fill": plan.fill,
            "padding": plan.padding,
            "colours": plan.colours,
            "kv_tokens": plan.kv.shift,
            "kv_tokens_without_shift": plan.kv.concat,
            "operators": [line.as_dict() for line in self.operators],
            "notes": list(self.notes),
            "constants": constants(self.plan),
        }


def constants(plan: Plan) -> dict[str, dict[str, object]]:
    """Every constant behind a report with its value, unit, mark and source."""
    found: dict[str, dict[str, object]] = {
        name: {**number.as_dict(), "mark": "assumed" if number.trust == "D" else "spec"}
        for name, number in plan.hw.numbers.items()
    }
    fitted = frozen_document()["parameters"]
    used = _FITTED.get(plan.kernels.name, ())
    for name in used:
        entry = fitted[name]
        found[name] = {
            "value": entry["value"],
            "unit": entry["unit"],
            "mark": entry["mark"],
            "source": f"{entry['meaning']}; fitted on the {entry['stage']} rows",
        }
    assumed: tuple[tuple[str, float, str, str], ...] = (
        ("scalar_cycles", SCALAR_CYCLES, "cycles", "scalar code of softmax and activation"),
        ("host_operator_us", HOST_OPERATOR_US, "us", "an operator on the host, without its links"),
        ("chunk_tokens", CHUNK_TOKENS, "tokens", "prompt tokens that travel together"),
        ("reserve_bytes", plan.kernels.reserve_bytes, "B/PE", plan.kernels.reserve_source),
    )
    for name, value, unit, source in assumed:
        found[name] = {"value": value, "unit": unit, "mark": "assumed", "source": source}
    return found


_CYCLES = ("issue_cycles", "shift_cycles", "collective_cycles")
_FITTED: dict[str, tuple[str, ...]] = {
    "waferllm-wse2": _CYCLES,
    "cerebras-2024-08": (*_CYCLES, "scale_2024_08"),
    "cerebras-2025": (*_CYCLES, "scale_2025", "gain_2025"),
}
"""Fitted constants that each kernel generation uses."""


@lru_cache(maxsize=REPORTS)
def simulate(workload: Workload, options: Options) -> Report:
    """Place a model and price a decode step, a prefill and the energy of a token.

    Cached: a screen asks for a report and for its comparison with GPUs.

    Raises:
        DoesNotFitError: It does not fit where it was asked to.
        WaferUsageError: An option makes no sense.
    """
    kernels = options.generation
    prompt = options.prompt or (1 if workload.product else options.context)
    plan = options.place(workload)
    step = decode_step(plan, context=options.context)
    stages = stages_of(plan, step)
    slowest = max(stage.seconds for stage in stages)
    speculation = options.speculating(plan.shape.layers)
    seconds, served = step.seconds, ""
    if speculation is not None:
        tokens = speculation.expected_tokens()
        seconds = speculation.step(step.seconds, slowest)
        passes = speculation.draft + 1.0
    else:
        tokens, served = tokens_per_step(options.speculation, plan.shape, kernels)
        passes = tokens  # at least the emitted tokens were computed
    notes, marks = _notes(plan, options, speculation is not None, served)
    # A batch fills idle stages first; once they are full, the slowest stage sets the pace.
    busy_until = max(seconds, options.batch * passes * slowest)
    mark = weakest([kernels.mark, *marks])
    rate = Band.around(tokens / busy_until, kernels.band, unit_of(workload), mark)
    power = plan.hw.number("power_kw") * 1e3 * plan.wafers
    work = sum(stage.seconds for stage in stages) * passes * options.batch
    occupancy = min(1.0, work / (busy_until * len(stages)))
    joules = power * busy_until / (tokens * options.batch)
    first = Band.around(
        prefill_seconds(plan, prompt) + step.seconds,
        max(PREFILL_BAND, kernels.band),
        "s",
        weakest([kernels.mark, "assumed"]),
    )
    return Report(
        plan=plan,
        options=options,
        step=step,
        rate=rate,
        total_rate=rate.scaled(options.batch),
        first_token=first,
        tokens_per_step=tokens,
        occupancy=occupancy,
        joules_per_token=joules,
        joules_per_token_full=joules * occupancy,
        breakdown_us=_breakdown(plan, step),
        sram_share=_sram_share(plan, step),
        operators=_operator_table(plan, step),
        notes=tuple(notes),
    )


def unit_of(workload: Workload) -> str:
    """Unit of a rate: what one step of the workload yields."""
    return "products/s" if workload.product else "tok/s"


def _notes(
    plan: Plan, options: Options, speculating: bool, served: str
) -> tuple[list[str], list[Mark]]:
    notes: list[str] = []
    marks: list[Mark] = []
    if plan.shape.trust == "assumed":
        notes.append("shape assumed")
        marks.append("assumed")
    if plan.workload.product:
        rect = plan.layer_items[0].rect
        notes.append(f"one product on {rect.width} x {rect.height} PEs, the grid chosen here")
        marks.append("assumed")
    elif plan.kernels.benchmark_shape:
        notes.append("WaferLLM kernels on a placed model (no published row)")
        marks.append("assumed")
    covered = not (plan.shape.is_moe or plan.shape.latent)
    if plan.kernels.mark == "calibrated" and not covered:
        notes.append("mixtures and latent attention are outside this generation's calibration")
        marks.append("assumed")
    if speculating:
        draft = preset(DRAFT_MODEL).weights() * plan.weight_bits / 8
        room = (
            "fits" if draft <= plan.spare_bytes(options.context, options.batch) else "does not fit"
        )
        notes.append(
            f"speculation {options.speculation} assumed (a {DRAFT_MODEL}-sized draft of "
            f"{draft / 1e9:.1f} GB {room} beside the target)"
        )
        marks.append("assumed")
    elif served:
        notes.append(served)
        marks.append("assumed")
    elif not plan.workload.product:
        notes.append("no speculation")
    if options.wafers is None:
        notes.append(
            f"{plan.wafers} {'wafer' if plan.wafers == 1 else 'wafers'} (smallest that fits)"
        )
    host = sum(1 for row in plan.workload.kinds for op in row if op.kind == "host")
    host += sum(1 for op in plan.workload.head if op.kind == "host")
    if host:
        notes.append(f"{host} unpriced graph operators on the host")
        marks.append("assumed")
    return notes, marks


def _breakdown(plan: Plan, step: Step) -> dict[str, float]:
    clock = plan.hw.clock_hz * 1e-6
    parts = {cause: cycles / clock for cause, cycles in step.breakdown.items()}
    host = sum(row.cost.host_us * row.layers for row in step.operators)
    parts["links"] = step.off_wafer_us - host
    parts["host"] = host
    return parts


def _sram_share(plan: Plan, step: Step) -> float:
    """Weight bytes of a step over its time, relative to the advertised SRAM bandwidth."""
    active = sum(
        count * sum(op.active_weights for op in plan.workload.operators(kind))
        for (kind, _), count in plan.groups.items()
    )
    read = active * plan.weight_bits / 8 / step.seconds
    return read / (plan.hw.number("sram_pb_s") * 1e15 * plan.wafers)


def _operator_table(plan: Plan, step: Step) -> tuple[OperatorLine, ...]:
    scale = machine(plan.hw, plan.kernels).costs.scale
    totals: dict[tuple[int, str], tuple[Operator, int, float, CycleCost]] = {}
    for row in step.operators:
        key = (1 if row.kind is None else 0, row.operator.name)
        cost = row.cost.repeated(row.layers).scaled(scale)
        operator, layers, cycles, before = totals.get(key, (row.operator, 0, 0.0, CycleCost()))
        totals[key] = operator, layers + row.layers, cost.cycles + cycles, cost + before
    lines: dict[tuple[int, str], OperatorLine] = {}
    for key, (operator, layers, cycles, cost) in totals.items():
        causes = cost.as_dict()
        lines[key] = OperatorLine(
            operator.name,
            operator.kind,
            layers,
            cycles,
            cycles / step.cycles if step.cycles else 0.0,
            "host" if cost.host_us else max(causes, key=causes.__getitem__),
            cost.host_us,
            causes,
        )
    return tuple(lines[key] for key in sorted(lines, key=lambda key: key[0]))
