"""Profiles in ONNX Runtime's format: a JSON array of Chrome trace events that opens in Perfetto.

One process per wafer, one thread per rectangle, one event per operator with ONNX Runtime's argument
names plus cycles by cause, rectangle, bytes and the bottleneck.  Counters per wafer show the PEs at
work, SRAM used by weights and by keys and values, nameplate power, and energy.  Time stamps are
microseconds of the simulated wafer clock, fractional because most operators take a few; no wall
clock time enters the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from midstream.wafer.cost import CycleCost, Rectangle
from midstream.wafer.estimate import OperatorCost, Step, machine
from midstream.wafer.pipeline import Stage, stages_of
from midstream.wafer.plan import Placed, Plan

PROVIDER = "WaferSimExecutionProvider"
HOST_PID = 9999
"""Process of the session in the trace; those before are the wafers."""
TICKS_PER_US = 1024
"""Grid of the times; see ``_tick``."""
ACTIVE = "active PEs (simulated)"
Event = dict[str, object]


@dataclass(frozen=True, slots=True)
class TracedPass:
    """One pass to draw: when it starts on the wafer clock, and its price."""

    start_us: float
    step: Step
    tokens: int
    context: int


def trace_events(
    plan: Plan, passes: Sequence[TracedPass], *, numerics_provider: str = "none", dropped: int = 0
) -> list[Event]:
    """Events of some passes through a plan, in time order per thread.

    Args:
        plan: The placement.
        passes: Passes in time order.
        numerics_provider: What computed the values (``none`` if nothing ran).
        dropped: Number of simulated passes that were left out, noted in the file.
    """
    items = plan.working_items
    events = _metadata(plan, items, dropped)
    for number, traced in enumerate(passes):
        events.extend(_wafer_counters(plan, traced.start_us, traced.context))
        events.extend(_pass_events(plan, items, traced, number, numerics_provider))
    if passes:
        last = passes[-1]
        end = last.start_us + last.step.seconds * 1e6
        events.extend(_wafer_counters(plan, end, last.context))
    return events


def _wafer_counters(plan: Plan, now: float, context: int) -> list[Event]:
    """SRAM, power and energy of every wafer at a moment.

    Power is nameplate power at any load: nothing finer is published.
    """
    watts = plan.hw.number("power_kw") * 1e3
    events: list[Event] = []
    for wafer in range(plan.wafers):
        weights, cache = plan.sram_bytes(wafer, context)
        sram = {"weights MB": round(weights / 1e6, 3), "keys and values MB": round(cache / 1e6, 3)}
        energy = {"J": round(watts * now * 1e-6, 9)}
        events.append(_counter(wafer, now, "SRAM in use (simulated)", sram))
        events.append(_counter(wafer, now, "nameplate power", {"W": watts}))
        events.append(_counter(wafer, now, "energy at nameplate power (simulated)", energy))
    return events


def _metadata(plan: Plan, items: list[Placed], dropped: int) -> list[Event]:
    events: list[Event] = []
    for wafer in range(plan.wafers):
        name = f"{plan.hw.label} {wafer} (simulated clock)"
        events.append(_meta("process_name", wafer, 0, {"name": name}))
    events.append(_meta("process_name", HOST_PID, 0, {"name": "session (simulated clock)"}))
    for tid, name in enumerate(("passes", "off the wafer")):
        events.append(_meta("thread_name", HOST_PID, tid, {"name": name}))
    for tid, item in enumerate(items):
        rect = item.rect
        label = f"{item.name} {rect.width}x{rect.height} at {rect.x},{rect.y}"
        events.append(_meta("thread_name", item.wafer, tid + 1, {"name": label}))
    if dropped:
        events.append(
            _meta("process_labels", HOST_PID, 0, {"labels": f"{dropped} later passes left out"})
        )
    return events


def _meta(kind: str, pid: int, tid: int, args: dict[str, object]) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _pass_events(
    plan: Plan, items: list[Placed], traced: TracedPass, number: int, numerics: str
) -> list[Event]:
    step = traced.step
    clock = plan.hw.clock_hz * 1e-6
    scale = machine(plan.hw, plan.kernels).costs.scale
    rows: dict[tuple[int | None, Rectangle], list[OperatorCost]] = {}
    for row in step.operators:
        rows.setdefault((row.kind, row.rect), []).append(row)
    stages = _delays(plan, step, items)
    events: list[Event] = []
    now = traced.start_us
    node_index = 0
    for tid, (item, entry_us) in enumerate(zip(items, stages, strict=True)):
        now += entry_us
        began = now
        for row in rows[item.kind, item.rect.size]:
            cost = row.cost.scaled(scale)
            name, args = _node(plan, item, row, cost, traced, node_index, numerics)
            duration = cost.cycles / clock + cost.host_us
            events.append(_complete("Node", name, item.wafer, tid + 1, now, duration, args))
            now += duration
            node_index += 1
        events.append(_counter(item.wafer, began, ACTIVE, {"PEs": item.rect.pes}))
        events.append(_counter(item.wafer, now, ACTIVE, {"PEs": 0}))
    end = max(now, traced.start_us + step.seconds * 1e6)
    rest: Event = {"simulated": True, "what": "return link and time no placement explains"}
    events.append(_complete("Session", "off_wafer", HOST_PID, 1, now, end - now, rest))
    about: Event = {
        "simulated": True,
        "pass": number,
        "tokens": traced.tokens,
        "context": traced.context,
    }
    events.extend(
        _complete("Session", name, HOST_PID, 0, traced.start_us, end - traced.start_us, about)
        for name in ("model_run", "SequentialExecutor::Execute")
    )
    return events


def _delays(plan: Plan, step: Step, items: list[Placed]) -> list[float]:
    """Microseconds before each item starts: hand-off, or a link when it is on another wafer."""
    stages: list[Stage] = stages_of(plan, step)
    if plan.mode == "layer-rect":
        return [stage.entry_seconds * 1e6 for stage in stages]
    delays: list[float] = []
    by_wafer = {stage.wafer: stage.entry_seconds * 1e6 for stage in stages}
    for index, item in enumerate(items):
        first = index == 0 or items[index - 1].wafer != item.wafer
        delays.append(by_wafer[item.wafer] if first else 0.0)
    return delays


def _complete(
    category: str, name: str, pid: int, tid: int, ts: float, dur: float, args: dict[str, object]
) -> Event:
    begin = _tick(ts)
    when: Event = {"dur": _tick(ts + dur) - begin, "ts": begin}
    return {"cat": category, "pid": pid, "tid": tid, **when, "ph": "X", "name": name, "args": args}


def _counter(pid: int, ts: float, name: str, values: Mapping[str, float]) -> Event:
    args = dict(values)
    return {"ph": "C", "pid": pid, "tid": 0, "ts": _tick(ts), "name": name, "args": args}


def _tick(microseconds: float) -> float:
    """The time on a grid of 1/1024 us, about a cycle.

    Binary fractions are exact, so an event ends where the next one begins even after a viewer has
    cut both to nanoseconds; an overlap of one nanosecond would look like broken nesting.
    """
    return round(microseconds * TICKS_PER_US) / TICKS_PER_US


def _node(
    plan: Plan,
    item: Placed,
    row: OperatorCost,
    cost: CycleCost,
    traced: TracedPass,
    node_index: int,
    numerics: str,
) -> tuple[str, dict[str, object]]:
    """Name and arguments of the event of one operator; ``cost`` has the generation's scale."""
    op = row.operator
    names = plan.workload.nodes.get((item.layer, op.name), ())
    name = names[0] if names else f"/{item.name.replace(' ', '.')}/{op.name}"
    causes = cost.as_dict()
    bytes_read = op.active_weights * (op.weight_bits or plan.weight_bits) // 8
    macs = op.macs(traced.context) * traced.tokens
    peak = row.rect.pes * plan.hw.number("simd_fp16") * max(cost.cycles, 1e-9)
    args: dict[str, object] = {
        "op_name": op.op_types[0] if op.op_types else op.kind,
        "provider": PROVIDER,
        "node_index": str(node_index),
        "input_type_shape": [{"float16": [traced.tokens, op.k]}],
        "output_type_shape": [{"float16": [traced.tokens, op.n or op.k]}],
        "output_size": str(2 * traced.tokens * (op.copies * op.n or op.k)),
        "parameter_size": str(int(op.stored_bytes(plan.weight_bits))),
        "activation_size": str(2 * traced.tokens * op.k),
        "thread_scheduling_stats": "",
        "simulated": True,
        "numerics_provider": numerics,
        "fused_nodes": list(names[1:]),
        "cycles": round(cost.cycles, 1),
        **{f"{cause}_cycles": round(value, 1) for cause, value in causes.items()},
        "depth": cost.depth,
        "rect": item.rect.corners,
        "bytes_sram": bytes_read,
        "util": round(macs / peak, 6),
        "bound_by": "host" if cost.host_us else max(causes, key=causes.__getitem__),
        "kernels": plan.kernels.name,
    }
    return f"{name}_kernel_time", args
