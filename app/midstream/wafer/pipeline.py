"""L1: an event-driven pipeline of rectangles and links, in seconds of the simulated wafer clock.

Stages are the layers of a plan and its output head, each busy with one token at a time; links
between wafers add latency.  Requests queue at the first stage, a sequence's next pass starts when
its previous one has left, and with speculation a pass carries the draft's tokens in a row.  This
shows what closed forms average: bubbles, occupancy, batching until the stages are full, and bursts.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from midstream.wafer.cost import Rectangle
from midstream.wafer.estimate import Step, chunk_tokens, decode_step, prefill_pass
from midstream.wafer.plan import Plan
from midstream.wafer.speculation import Speculation


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the pipeline.

    Attributes:
        name: ``layer 3`` or ``lm_head``.
        wafer: Wafer it is on.
        seconds: Time of one token.
        entry_seconds: Delay before it: a hand-off, or a link from another wafer.
        rect: Its PEs.
    """

    name: str
    wafer: int
    seconds: float
    entry_seconds: float
    rect: Rectangle


@dataclass(frozen=True, slots=True)
class Burst:
    """Tokens that become visible together."""

    seconds: float
    sequence: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Work:
    """A stage busy with one pass: for traces and activity maps."""

    stage: int
    start: float
    end: float
    sequence: int
    tokens: int


@dataclass(slots=True)
class PipelineResult:
    """The result of a simulation.

    Attributes:
        bursts: Emissions in time order.
        work: Busy intervals of stages, as far as recorded.
        seconds: Time of the last emission.
        occupancy: Share of stage time that was busy during decode.
        tokens: Tokens emitted.
        first_token_seconds: Time of the first emission.
    """

    bursts: list[Burst]
    work: list[Work]
    seconds: float
    occupancy: float
    tokens: int
    first_token_seconds: float

    @property
    def tokens_per_second(self) -> float:
        """All sequences together, from the first emission on."""
        span = self.seconds - self.first_token_seconds
        after_first = self.tokens - self.bursts[0].tokens if self.bursts else 0
        return after_first / span if span > 0 else 0.0


def stages_of(plan: Plan, step: Step) -> list[Stage]:
    """The stages of a plan; their times and delays add up to the closed form of ``step``.

    In ``time-mux`` mode all layers of a wafer share its PEs, so each wafer is one stage.
    """
    items = plan.working_items
    clock = plan.hw.clock_hz
    handoff = step.breakdown["handoff"] / len(items) / clock
    per_link = step.off_wafer_us * 1e-6 / plan.wafers if plan.wafers > 1 else 0.0
    stages: list[Stage] = []
    for index, item in enumerate(items):
        crossing = index > 0 and items[index - 1].wafer != item.wafer
        entry = handoff + (per_link if crossing else 0.0)
        seconds = step.stages[item.kind, item.rect.size] / clock
        stages.append(Stage(item.name, item.wafer, seconds, entry, item.rect))
    return _merged(stages) if plan.mode == "time-mux" else stages


def stage_at(stages: Sequence[Stage], seconds: float) -> int | None:
    """Which stage works at a moment of a single stream's step, for activity maps.

    Args:
        stages: The stages of a plan.
        seconds: Simulated seconds since the step began.

    Returns:
        Index of the stage, or None while the token travels or is off the wafer.
    """
    now = 0.0
    for index, stage in enumerate(stages):
        now += stage.entry_seconds
        if seconds < now:
            return None
        now += stage.seconds
        if seconds < now:
            return index
    return None


def _merged(stages: list[Stage]) -> list[Stage]:
    merged: list[Stage] = []
    for stage in stages:
        if merged and merged[-1].wafer == stage.wafer:
            last = merged[-1]
            seconds = last.seconds + stage.entry_seconds + stage.seconds
            merged[-1] = Stage(
                f"wafer {last.wafer}", last.wafer, seconds, last.entry_seconds, last.rect
            )
        else:
            merged.append(stage)
    return merged


@dataclass(frozen=True, slots=True)
class _Pass:
    """Tokens of one sequence in the stages; ``weight`` is the time of one relative to decode."""

    sequence: int
    tokens: int
    weight: float = 1.0
    prefill: bool = False
    emits: bool = True


@dataclass(slots=True)
class _Simulation:
    """State of one run; see ``simulate``."""

    stages: Sequence[Stage]
    return_seconds: float
    speculation: Speculation | None
    draws: random.Random
    record: bool
    step_seconds: float
    remaining: list[int]
    free_at: list[float]
    draft_ready: list[bool]
    events: list[tuple[float, int, int, _Pass]] = field(
        default_factory=list[tuple[float, int, int, _Pass]]
    )
    order: int = 0
    busy: float = 0.0
    bursts: list[Burst] = field(default_factory=list[Burst])
    work: list[Work] = field(default_factory=list[Work])

    def push(self, when: float, stage: int, item: _Pass) -> None:
        """A pass arrives at a stage (or, past the last one, at the host)."""
        self.order += 1
        heapq.heappush(self.events, (when, self.order, stage, item))

    def run(self) -> None:
        """Process arrivals in time order; a stage serves passes first come, first served."""
        last = len(self.stages) - 1
        while self.events:
            now, _, index, item = heapq.heappop(self.events)
            if index > last:
                self.leave(now, item)
                continue
            stage = self.stages[index]
            per_token = stage.seconds * item.weight
            start = max(now, self.free_at[index])
            end = start + per_token * item.tokens
            self.free_at[index] = end
            if not item.prefill:
                self.busy += end - start
            if self.record:
                self.work.append(Work(index, start, end, item.sequence, item.tokens))
            if index < last:
                # Tokens of a pass follow each other: the next stage starts with the first one.
                self.push(start + per_token + self.stages[index + 1].entry_seconds, index + 1, item)
            else:
                self.push(end + self.return_seconds, index + 1, item)

    def leave(self, now: float, item: _Pass) -> None:
        """A pass has come out: emit, then start the next one."""
        if not item.emits:
            return
        number = item.sequence
        emitted = 1 if item.prefill else min(self.accepted(number), self.remaining[number])
        self.remaining[number] -= emitted
        self.bursts.append(Burst(now, number, emitted))
        if self.remaining[number] > 0:
            self.start_decode(now, number)

    def accepted(self, number: int) -> int:
        """Tokens one verification emits: accepted draft tokens and the target's own."""
        if self.speculation is None:
            return 1
        count = 0
        while (
            count < self.speculation.draft
            and self.draws.random() < self.speculation.acceptance_at(count)
        ):
            count += 1
        self.draft_ready[number] = count == self.speculation.draft
        return count + 1

    def start_decode(self, now: float, number: int) -> None:
        """Draft if needed, then send the next pass to the first stage."""
        if self.speculation is None:
            self.push(now, 0, _Pass(number, 1))
            return
        draft = self.speculation.draft
        drafting = draft * self.speculation.cost * self.step_seconds
        if self.speculation.schedule == "overlapped" and self.draft_ready[number]:
            # Drafting overlapped the verification; wait only for what exceeds it.
            verify = self.step_seconds + draft * max(stage.seconds for stage in self.stages)
            drafting = max(0.0, drafting - verify)
        self.push(now + drafting, 0, _Pass(number, draft + 1))


def simulate(
    plan: Plan,
    *,
    context: int,
    prompt: int = 1,
    output: int = 64,
    batch: int = 1,
    speculation: Speculation | None = None,
    seed: int = 0,
    record: bool = False,
) -> PipelineResult:
    """Run prefill and decode of ``batch`` equal requests through the pipeline.

    Args:
        plan: The placement.
        context: Cached tokens that attention is priced at.
        prompt: Prompt tokens per request; 1 skips prefill.
        output: Tokens to emit per request.
        batch: Requests, all present from the start.
        speculation: Drafting, or None.
        seed: Seed of the acceptance draws.
        record: Keep busy intervals (for traces and maps).
    """
    step = decode_step(plan, context=context)
    stages = stages_of(plan, step)
    link = step.off_wafer_us / plan.wafers if plan.wafers > 1 else 0.0
    simulation = _Simulation(
        stages,
        link * 1e-6,
        speculation,
        random.Random(seed),
        record,
        step.seconds,
        remaining=[output] * batch,
        free_at=[0.0] * len(stages),
        draft_ready=[False] * batch,
    )
    chunk = chunk_tokens(plan, prompt)
    first, last = (
        prefill_pass(plan, tokens=chunk, context=seen).cycles / step.cycles
        for seen in (chunk, max(chunk, prompt))
    )
    for number in range(batch):
        if prompt <= 1:
            simulation.start_decode(0.0, number)
            continue
        for start in range(0, prompt, chunk):
            seen = min(start + chunk, prompt)
            weight = first + (last - first) * seen / prompt  # attention grows with the prompt
            simulation.push(0.0, 0, _Pass(number, 1, weight, prefill=True, emits=seen == prompt))
    simulation.run()
    bursts = sorted(simulation.bursts, key=lambda burst: burst.seconds)
    begin = bursts[0].seconds if prompt > 1 else 0.0
    span = max(bursts[-1].seconds - begin, 1e-12)
    return PipelineResult(
        bursts,
        simulation.work,
        bursts[-1].seconds,
        min(1.0, simulation.busy / (span * len(stages))),
        sum(burst.tokens for burst in bursts),
        bursts[0].seconds,
    )
