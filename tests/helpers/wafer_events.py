"""An event-driven pipeline of stages and links: the oracle of the simulator's closed forms.

Requests queue at the first stage, a sequence's next pass starts when its previous one has left, and
with speculation a pass carries the draft's tokens in a row.  This shows what closed forms average:
bubbles, occupancy, batching until the stages are full, and bursts.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from midstream.wafer.estimate import chunk_tokens, decode_step, prefill_pass
from midstream.wafer.pipeline import Stage, stages_of
from midstream.wafer.plan import Plan
from midstream.wafer.speculation import Speculation


@dataclass(frozen=True, slots=True)
class Burst:
    """Tokens that become visible together."""

    seconds: float
    sequence: int
    tokens: int


@dataclass(slots=True)
class PipelineResult:
    """The result of a simulation.

    Attributes:
        bursts: Emissions in time order.
        seconds: Time of the last emission.
        occupancy: Share of stage time that was busy during decode.
        tokens: Tokens emitted.
        first_token_seconds: Time of the first emission.
    """

    bursts: list[Burst]
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
    """
    step = decode_step(plan, context=context)
    stages = stages_of(plan, step)
    link = step.off_wafer_us / plan.wafers if plan.wafers > 1 else 0.0
    simulation = _Simulation(
        stages,
        link * 1e-6,
        speculation,
        random.Random(seed),
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
        bursts[-1].seconds,
        min(1.0, simulation.busy / (span * len(stages))),
        sum(burst.tokens for burst in bursts),
        bursts[0].seconds,
    )
