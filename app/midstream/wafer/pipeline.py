"""The stages of a placed model: rectangles and links, in seconds of the simulated wafer clock.

Stages are the layers of a plan and its output head, each busy with one token at a time; links
between wafers add latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from midstream.wafer.cost import Rectangle
from midstream.wafer.estimate import Step
from midstream.wafer.plan import Plan


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
