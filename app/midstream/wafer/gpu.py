"""GPU baselines in the same manner: a closed form with few fitted constants, and a band.

Batch-1 decode on tensor-parallel GPUs reads the weights of a token and the cache once, and pays per
layer for kernel launches and two all-reduces:

    ``t = bytes / (n * BW * e) + layers * t_layer + 2 * layers * t_allreduce``

The constants are fitted on A100 rows of one engine (SGLang); for other GPUs the bandwidth changes
and the latencies stay, which is marked as an assumption.  Prefill is compute bound at an assumed
utilisation.
"""

from __future__ import annotations

from dataclasses import dataclass

from midstream.wafer.machines import Gpu
from midstream.wafer.parameters import Parameters, frozen
from midstream.wafer.quantity import Band, Mark
from midstream.wafer.shape import ModelShape

PREFILL_UTILISATION = 0.5
"""Share of dense peak that prefill of a few thousand tokens reaches (assumed)."""

BAND_FITTED = 1.2
BAND_OTHER_GPU = 1.35
"""Factors between the estimate and either end of its band: near the fitted rows (calibrated), and
elsewhere (assumed)."""
FITTED_GPU = "a100"
FITTED_WEIGHTS = (4e9, 150e9)
"""Weights of dense models near the fitted rows (8 and 72 billion), a factor of two around them."""


@dataclass(frozen=True, slots=True)
class GpuEstimate:
    """Simulated GPU time per token (decode) or prompt (prefill), and its parts in microseconds."""

    seconds: float
    breakdown_us: dict[str, float]
    rate: Band
    fits_memory: bool


def band_factor(gpu: Gpu, shape: ModelShape) -> tuple[float, Mark]:
    """Half-width and mark of decode on this GPU: calibrated only for what its rows cover."""
    least, most = FITTED_WEIGHTS
    covered = not shape.is_moe and shape.latent is None and least <= shape.weights() <= most
    fitted = gpu.name == FITTED_GPU and covered
    return (BAND_FITTED, "calibrated") if fitted else (BAND_OTHER_GPU, "assumed")


def allreduce_us(gpu: Gpu, parameters: Parameters) -> float:
    """One small all-reduce over all GPUs, in microseconds."""
    if gpu.count_gpus == 1:
        return 0.0
    return parameters.gpu_allreduce_us if gpu.nodes == 1 else parameters.gpu_internode_us


def decode(
    shape: ModelShape,
    gpu: Gpu,
    *,
    context: int,
    batch: int = 1,
    weight_bits: int = 16,
    kv_bits: int = 16,
    parameters: Parameters | None = None,
) -> GpuEstimate:
    """Time per decode step; ``rate`` counts all sequences of the batch."""
    p = parameters or frozen()
    bandwidth = _bandwidth(gpu, p)
    weights = shape.weights(active_only=True) * weight_bits / 8
    cache = batch * shape.kv_bytes(context, kv_bits)
    parts = {
        "weights": weights / bandwidth * 1e6,
        "cache": cache / bandwidth * 1e6,
        "launch": shape.layers * p.gpu_layer_us,
        "allreduce": 2 * shape.layers * allreduce_us(gpu, p),
    }
    stored = shape.weights() * weight_bits / 8 + cache
    fits = stored <= gpu.count_gpus * gpu.number("memory_gb") * 1e9
    return _estimate(parts, batch, band_factor(gpu, shape), fits)


def prefill(
    shape: ModelShape, gpu: Gpu, *, prompt: int, parameters: Parameters | None = None
) -> GpuEstimate:
    """Time of a prompt; ``rate`` is prompt tokens per second."""
    p = parameters or frozen()
    active = shape.weights(active_only=True) - shape.head_weights
    attention = 2 * 2 * shape.layers * shape.query_width * prompt * prompt / 2
    flops = 2.0 * active * prompt + attention
    peak = gpu.count_gpus * gpu.number("dense_tflops") * 1e12 * PREFILL_UTILISATION
    moved = prompt * shape.hidden * 2 * 2 * shape.layers
    link = 2 * moved / (gpu.number("nvlink_gb_s") * 1e9) if gpu.count_gpus > 1 else 0.0
    parts = {
        "arithmetic": flops / peak * 1e6,
        "launch": shape.layers * p.gpu_layer_us,
        "allreduce": 2 * shape.layers * allreduce_us(gpu, p) + link * 1e6,
    }
    return _estimate(parts, prompt, (BAND_OTHER_GPU, "assumed"), True)


def gemv_us(rows: int, columns: int, gpu: Gpu, parameters: Parameters | None = None) -> float:
    """Microseconds of one fp16 matrix-vector product: bytes over bandwidth, a launch, an
    all-reduce.

    A launch is a tenth of a layer's launches, which are about ten kernels.
    """
    p = parameters or frozen()
    read = rows * columns * 2 / _bandwidth(gpu, p) * 1e6
    return read + p.gpu_layer_us / 10 + allreduce_us(gpu, p)


def _bandwidth(gpu: Gpu, parameters: Parameters) -> float:
    return gpu.count_gpus * gpu.number("bandwidth_tb_s") * 1e12 * parameters.gpu_efficiency


def _estimate(
    parts: dict[str, float], tokens: int, band: tuple[float, Mark], fits: bool
) -> GpuEstimate:
    seconds = sum(parts.values()) * 1e-6
    factor, mark = band
    return GpuEstimate(seconds, parts, Band.around(tokens / seconds, factor, "tok/s", mark), fits)


def energy_joules(gpu: Gpu, seconds: float) -> float:
    """Nameplate energy of all GPUs over a time."""
    return gpu.count_gpus * gpu.number("tdp_w") * seconds
