"""From a published row to a simulated number with a band: which formula answers which kind of row.

``validate`` (frozen parameters) and the fit (trial parameters) use the same code.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from midstream.wafer import gpu as gpus
from midstream.wafer.cost import Rectangle, decode_cost, prefill_cost
from midstream.wafer.errors import RowError, WaferError
from midstream.wafer.estimate import (
    PREFILL_BAND,
    benchmark_step,
    decode_step,
    machine,
    prefill_seconds,
)
from midstream.wafer.kernels import KernelGeneration, generation
from midstream.wafer.machines import Gpu, Wafer, hardware
from midstream.wafer.models import resolve
from midstream.wafer.operators import product_of
from midstream.wafer.parameters import Parameters
from midstream.wafer.placement import place
from midstream.wafer.plan import Plan
from midstream.wafer.quantity import Band, Mark, weakest
from midstream.wafer.rows import PublishedRow
from midstream.wafer.shape import ModelShape
from midstream.wafer.speculation import tokens_per_step

DEFAULT_CONTEXT = 1024
"""Context of a vendor row that names none: what public throughput tests use."""

BENCHMARK_CONTEXT = 4096
"""Context and prompt of a layer benchmark or GPU row that names none, as in the academic tables."""

FITTED_SOFTWARE = "sglang"
"""The engine of the GPU rows used for calibration."""

DEFAULT_GRID = {"prefill": 720, "decode": 420, "gemv": 750, "gemm": 720}
"""Grid of a benchmark row that names none: published configurations on WSE-2."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A simulated value in the row's unit.

    Attributes:
        point: Centre of the band.
        band: The band; a ``published`` value inside counts as covered.
        group: Name of the group in which the row is judged.
        notes: What was assumed for this row.
    """

    point: float
    band: Band
    group: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Time:
    """Simulated seconds of one request (or one token), and the amount that a rate counts."""

    seconds: float
    tokens: float
    factor: float
    mark: Mark
    group: str
    notes: list[str]
    clock_hz: float = 1e9


def predict(row: PublishedRow, parameters: Parameters | None = None) -> Prediction:
    """Predict one row.

    Args:
        row: The row; its published value is not looked at.
        parameters: Other than the frozen ones (used by the fit).

    Raises:
        RowError: The row names something that is not modelled.
    """
    machine_ = hardware(row.hardware)
    if isinstance(machine_, Gpu):
        time = _on_gpu(row, machine_, parameters)
    else:
        time = _on_wafer(row, machine_, parameters)
    if row.quantity == "rate":
        point = time.tokens / time.seconds / row.scale
    else:
        spent = time.seconds * (time.clock_hz if row.quantity == "cycles" else 1.0)
        point = spent / (time.tokens if row.per_token else 1.0) / row.scale
    band = Band.around(point, time.factor, row.unit, time.mark)
    return Prediction(point, band, time.group, (*row.notes, *time.notes))


def configuration(row: PublishedRow) -> tuple[object, ...]:
    """What a row measures, with everything left open filled in as ``predict`` does.

    Two rows with the same configuration measure the same thing, however their cells are written;
    source, published value, unit and speculation do not matter.

    Raises:
        RowError: The row names something that is not modelled.
    """
    machine_ = hardware(row.hardware)
    what: object = row.matrix or replace(
        _shape(row), name="", trust="published", source="", native_bits=0
    )
    if isinstance(machine_, Gpu):
        software = row.kernels or FITTED_SOFTWARE
        sizes = _sizes(row, BENCHMARK_CONTEXT)
        return machine_.name, machine_.count_gpus, software, what, row.phase, sizes
    kernels = _kernels(row)
    if row.matrix is None and not _on_grid(row, kernels):
        sizes = _sizes(row, DEFAULT_CONTEXT)
        context = _lengths(row, DEFAULT_CONTEXT)[0]
        plan, _ = _production_plan(row, _shape(row), machine_, kernels, context)
        return machine_.name, kernels.name, what, row.phase, sizes, plan.wafers
    grids, sizes = _grids(row), _sizes(row, BENCHMARK_CONTEXT)
    used = {"prefill": grids[:1], "end-to-end": grids}.get(row.phase, grids[1:])
    return machine_.name, kernels.name, what, row.phase, sizes, used


def _sizes(row: PublishedRow, nominal: int) -> tuple[int, ...]:
    context, prompt, output = _lengths(row, nominal)
    lengths = {"decode": (context,), "prefill": (prompt,)}.get(row.phase, (context, prompt, output))
    return row.batch, *(lengths if row.matrix is None else ())


def _on_grid(row: PublishedRow, kernels: KernelGeneration) -> bool:
    """Whether a row is a benchmark of layers on a PE grid and not of a service."""
    return kernels.benchmark_shape or (row.grids is not None and row.wafers is None)


@contextmanager
def _blaming(column: str) -> Generator[None]:
    """Report what the simulator refuses as a fault of one column."""
    try:
        yield
    except WaferError as error:
        raise RowError(column, str(error)) from error


def _kernels(row: PublishedRow) -> KernelGeneration:
    with _blaming("kernels"):
        return generation(row.kernels)


def _shape(row: PublishedRow) -> ModelShape:
    with _blaming("model"):
        return resolve(row.model).shape


def _grids(row: PublishedRow) -> tuple[Rectangle, Rectangle]:
    if row.grids is not None:
        return row.grids
    first = DEFAULT_GRID.get(row.phase, DEFAULT_GRID["prefill"])
    last = DEFAULT_GRID.get(row.phase, DEFAULT_GRID["decode"])
    return Rectangle(first, first), Rectangle(last, last)


def _lengths(row: PublishedRow, nominal: int) -> tuple[int, int, int]:
    """Context, prompt and output tokens; without any length it is ``nominal`` tokens."""
    prompt, output = row.prompt or row.context or nominal, row.output or 1
    halfway = prompt + output // 2 if row.phase == "end-to-end" else prompt
    return row.context or halfway, prompt, output


def _on_wafer(row: PublishedRow, hw: Wafer, parameters: Parameters | None) -> _Time:
    kernels = _kernels(row)
    if row.matrix is not None:
        return _microbenchmark(row, row.matrix, hw, kernels, parameters)
    shape = _shape(row)
    if _on_grid(row, kernels):
        return _layer_benchmark(row, shape, hw, kernels, parameters)
    return _production(row, shape, hw, kernels, parameters)


def _microbenchmark(
    row: PublishedRow,
    matrix: tuple[int, int],
    hw: Wafer,
    kernels: KernelGeneration,
    parameters: Parameters | None,
) -> _Time:
    """One product on a grid: local work and one all-reduce (matrix-vector), or P shifts."""
    grid = _grids(row)[1]
    notes = [f"grid {grid.width} assumed"] if row.grids is None else []
    ((op,),) = product_of(*matrix).kinds
    m = machine(hw, kernels, parameters)
    if row.phase == "gemm":
        tokens = row.prompt or row.batch if (row.prompt or row.batch > 1) else op.k
        cost = prefill_cost(op, grid, m, tokens, tokens)
    else:
        cost = decode_cost(op, grid, m, 1, row.batch)
    seconds = cost.cycles * m.costs.scale / hw.clock_hz
    group = f"{_family(kernels, hw)} {row.phase.upper()}"
    return _Time(seconds, 1.0, kernels.band, kernels.mark, group, notes, hw.clock_hz)


def _layer_benchmark(
    row: PublishedRow,
    shape: ModelShape,
    hw: Wafer,
    kernels: KernelGeneration,
    parameters: Parameters | None,
) -> _Time:
    notes: list[str] = []
    if hw.name != "wse2" and kernels.benchmark_shape:
        notes.append("kernels fitted on WSE-2; WSE-3 assumed equal per cycle")
    grids = _grids(row)
    if row.grids is None:
        notes.append(f"grid {grids[0].width}/{grids[1].width} assumed")
    width, height = hw.fabric(halo=kernels.halo)
    if any(grid.width > width or grid.height > height for grid in grids):
        notes.append(f"larger than the {width} x {height} PEs of {hw.label}")
    context, prompt, output = _lengths(row, BENCHMARK_CONTEXT)

    def step(grid: Rectangle, tokens: int) -> float:
        return benchmark_step(
            shape,
            hw,
            kernels,
            grid,
            context=context,
            batch=row.batch,
            prompt=tokens,
            parameters=parameters,
        ).seconds

    if row.phase == "prefill":
        seconds, tokens = step(grids[0], prompt), float(prompt)
    elif row.phase == "end-to-end":
        seconds, tokens = step(grids[0], prompt) + output * step(grids[1], 0), float(output)
    else:
        seconds, tokens = step(grids[1], 0), 1.0
    mark = weakest([kernels.mark, "assumed"] if notes else [kernels.mark])
    group = f"{_family(kernels, hw)} {row.phase}"
    return _Time(seconds, tokens, kernels.band, mark, group, notes, hw.clock_hz)


def _production(
    row: PublishedRow,
    shape: ModelShape,
    hw: Wafer,
    kernels: KernelGeneration,
    parameters: Parameters | None,
) -> _Time:
    context, prompt, output = _lengths(row, DEFAULT_CONTEXT)
    plan, notes = _production_plan(row, shape, hw, kernels, context)
    step = decode_step(plan, context=context, batch=row.batch, parameters=parameters).seconds
    with _blaming("speculation"):
        gain, assumed = tokens_per_step(row.speculation, shape, kernels, parameters)
    marks: list[Mark] = ["assumed"] if assumed else []
    notes += [assumed] if assumed else []
    decode = step / gain
    factor = kernels.band
    if row.phase == "decode":
        seconds, tokens = decode, 1.0
    else:
        first = prefill_seconds(plan, prompt, parameters)
        marks.append("assumed")
        if row.phase == "prefill":
            factor = max(factor, PREFILL_BAND)
            seconds, tokens = first, float(prompt)
        else:
            seconds, tokens = first + output * decode, float(output)
    mark = weakest([kernels.mark, *marks])
    group = f"{_family(kernels, hw)} {row.phase}"
    return _Time(seconds, tokens, factor, mark, group, notes, hw.clock_hz)


def _production_plan(
    row: PublishedRow, shape: ModelShape, hw: Wafer, kernels: KernelGeneration, context: int
) -> tuple[Plan, list[str]]:
    notes: list[str] = []
    if shape.trust == "assumed":
        notes.append("shape assumed")
    wanted = row.weight_bits or shape.native_bits

    def attempt(bits: int) -> Plan:
        with _blaming("model" if row.wafers is None else "wafers"):
            return place(
                shape,
                hw,
                kernels,
                wafers=row.wafers,
                weight_bits=bits,
                context=context,
                check=False,
            )

    plan = attempt(wanted)
    if row.wafers is None:
        unit = "wafer" if plan.wafers == 1 else "wafers"
        notes.append(f"{plan.wafers} {unit} assumed (smallest that fits at {wanted} bit)")
        return plan, notes
    problem = plan.problem(1)
    for bits in (8, 4) if row.weight_bits is None else ():
        if problem is not None and bits < plan.weight_bits:
            plan = attempt(bits)
            problem = plan.problem(1)
    if problem is not None:
        notes.append(f"does not fit at {plan.weight_bits} bit: {problem}")
    elif plan.weight_bits < wanted:
        notes.append(f"{plan.weight_bits}-bit weights inferred: {wanted} bit does not fit")
    return plan, notes


def _on_gpu(row: PublishedRow, gpu: Gpu, parameters: Parameters | None) -> _Time:
    notes: list[str] = []
    group = f"GPU {row.phase}"
    if row.matrix is not None:
        if row.phase != "gemv":
            raise RowError("phase", "GEMM on GPUs is not modelled; leave the row out.")
        seconds = gpus.gemv_us(*row.matrix, gpu, parameters) * 1e-6
        return _Time(seconds, 1.0, gpus.BAND_OTHER_GPU, "assumed", "GPU GEMV", notes)
    shape = _shape(row)
    factor, mark = gpus.band_factor(gpu, shape)
    if row.kernels not in ("", FITTED_SOFTWARE) and mark == "calibrated":
        factor, mark = gpus.BAND_OTHER_GPU, "assumed"
        notes.append("constants fitted on SGLang")
    context, prompt, output = _lengths(row, BENCHMARK_CONTEXT)
    token = gpus.decode(
        shape,
        gpu,
        context=context,
        batch=row.batch,
        weight_bits=row.weight_bits or 16,
        parameters=parameters,
    )
    if not token.fits_memory:
        notes.append("weights exceed GPU memory; rows like this are layer subsets scaled up")
    if row.phase == "decode":
        return _Time(token.seconds, 1.0, factor, mark, group, notes)
    first = gpus.prefill(shape, gpu, prompt=prompt, parameters=parameters).seconds
    wide = max(factor, gpus.BAND_OTHER_GPU)
    if row.phase == "prefill":
        return _Time(first, float(prompt), wide, "assumed", group, notes)
    seconds = first + output * token.seconds
    return _Time(seconds, float(output), wide, "assumed", group, notes)


def _family(kernels: KernelGeneration, hw: Wafer) -> str:
    if kernels.benchmark_shape and hw.name != "wse2":
        return f"WaferLLM on {hw.name.upper()}"
    return {
        "waferllm-wse2": "WaferLLM",
        "cerebras-2024-08": "Aug-2024 production",
        "cerebras-2025": "2025+ production",
        "spec-limit": "Specification limit",
    }[kernels.name]
