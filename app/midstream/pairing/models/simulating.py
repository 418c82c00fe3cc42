"""Simulated telemetry: what a wafer and some GPUs would do with a model.

Blocking, with a cache; call it in a thread.  Nothing here is measured, and wall time is not used.
``midstream.wafer`` is imported at the first call.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from midstream.errors import UnavailableError

if TYPE_CHECKING:
    from midstream.pairing.status import Cost
    from midstream.responses.model_info import Pacing
    from midstream.wafer.baselines import Contender
    from midstream.wafer.pipeline import Stage
    from midstream.wafer.report import Report

PRESETS: Final = (
    "llama3.1-8b",
    "llama3.3-70b",
    "gpt-oss-120b",
    "qwen3-coder-480b",
    "kimi-k2.6",
    "spark-like",
)
"""Models with a public shape to compare with the one that runs."""

CONTEXT_STEP: Final = 64
"""Contexts are rounded up to a multiple of this, so that a growing one often hits the cache."""


def preset_of(model: str) -> str | None:
    """The preset of a model that an endpoint names, however it writes the name."""
    return next((preset for preset in PRESETS if _bare(preset) == _bare(model)), None)


def _bare(name: str) -> str:
    return "".join(filter(str.isalnum, name.rpartition("/")[2].lower()))


class SimulationError(UnavailableError):
    """A model cannot be simulated."""

    code = "simulation"


class Simulated(Struct, frozen=True):
    """One model at one context.

    Attributes:
        report: Rates, times, energy and the placement on wafers.
        contenders: The same model on the wafers and on GPUs.
        stages: The layers and the output head that a token passes.
    """

    report: Report
    contenders: tuple[Contender, ...]
    stages: tuple[Stage, ...]

    @property
    def stage_items(self) -> tuple[int, ...]:
        """Index in ``report.plan.items`` of every stage."""
        items = self.report.plan.items
        return tuple(i for i, item in enumerate(items) if item.name != "embedding")

    @property
    def on_wafer_s(self) -> float:
        """Seconds of a step spent in the stages and between them."""
        return sum(stage.entry_seconds + stage.seconds for stage in self.stages)

    def working_item(self, share: float) -> int | None:
        """Index in ``report.plan.items`` of the item that a token has reached.

        Args:
            share: How much of the way over the stages it has covered, 0 to 1.

        Returns:
            ``None`` while the token is between two items.
        """
        from midstream.wafer.pipeline import stage_at

        stage = stage_at(self.stages, share * self.on_wafer_s)
        return None if stage is None else self.stage_items[stage]


def rounded_context(tokens: int) -> int:
    """The context that stands for ``tokens`` tokens."""
    return max(CONTEXT_STEP, -(-tokens // CONTEXT_STEP) * CONTEXT_STEP)


@lru_cache(maxsize=128)
def simulate_model(model: str, context: int) -> Simulated:
    """Simulate a model (blocking, milliseconds; a model folder takes longer the first time).

    Args:
        model: A preset of the simulator, or the path of a model folder or ONNX file.
        context: Tokens in the cache.

    Raises:
        SimulationError: It cannot be read, or fits on no number of wafers.
    """
    from midstream.wafer.baselines import compare
    from midstream.wafer.errors import WaferError
    from midstream.wafer.models import resolve
    from midstream.wafer.options import Options
    from midstream.wafer.pipeline import stages_of
    from midstream.wafer.report import simulate

    options = Options(context=context)
    try:
        workload = resolve(model)
        report = simulate(workload, options)
        contenders = compare(workload, options)
    except WaferError as error:
        raise SimulationError(str(error)) from error
    return Simulated(report, tuple(contenders), tuple(stages_of(report.plan, report.step)))


def pacing_words(pacing: Pacing | None, cost: Cost) -> str:
    """What a paced server imitates and whether it keeps up, ``""`` where nothing is imitated.

    Args:
        pacing: What the server says it imitates.
        cost: What the last answer has cost; all unknown while it runs.
    """
    if pacing is None:
        return ""
    machine = pacing.machine.replace("NVIDIA ", "").replace("Cerebras ", "")
    what = f"{pacing.model} on {machine}"
    if pacing.tokens_per_second is not None:
        what += f", {pacing.tokens_per_second:,.0f} tok/s simulated"
    if not cost.due_s or cost.passed_s is None:
        return f"{'whole, then replayed' if pacing.replayed else 'paced'} as {what}"
    from midstream.wafer.pacing import LATE_TOLERANCE

    late = cost.passed_s / cost.due_s
    if pacing.replayed and late <= LATE_TOLERANCE:
        return f"replayed as {what}"
    return f"{late:.1f}x slower than {what}" if late > LATE_TOLERANCE else f"as fast as {what}"


def pace_sentence(simulated_rate: float, measured_rate: float) -> str:
    """How a measured rate compares with the simulated one, in the words of the pacing.

    Args:
        simulated_rate: Tokens per second of the simulated wafer clock.
        measured_rate: Tokens per second of the wall clock.
    """
    from midstream.wafer.pacing import LATE_TOLERANCE
    from midstream.wafer.quantity import compact

    rate = f"({compact(simulated_rate)} tok/s simulated)"
    faster = max(1, round(measured_rate)) / simulated_rate
    if faster > LATE_TOLERANCE:
        return f"{faster:.1f}x faster than the wafer {rate}"
    if (slower := 1 / faster) > LATE_TOLERANCE:
        return f"{slower:,.{int(slower < 100)}f}x slower than the wafer {rate}"
    return f"at wafer speed {rate}"
