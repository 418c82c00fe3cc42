"""Kernel generations: named sets of cost constants with their provenance.

A generation says whose software runs on the wafer.  The academic kernels (WaferLLM) are known down
to the source line; the vendor's only by their published rates, so their generations are scale
factors with a band.  ``spec-limit`` has no software at all: a bound, not a prediction.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from midstream.wafer.errors import WaferUsageError
from midstream.wafer.machines import Wafer
from midstream.wafer.parameters import Parameters, frozen
from midstream.wafer.quantity import Mark

SCALAR_CYCLES = 10
"""Cycles per scalar element of softmax and activation (assumed: exp by a short polynomial, one
divide).
"""


@dataclass(frozen=True, slots=True)
class KernelCosts:
    """Cost constants in cycles; ``scale`` multiplies every on-wafer cycle.

    It is never below 1 in a fitted generation: a wavelet does not cross a hop in less than a cycle.
    """

    cycles_per_mac: float
    issue: float
    shift: float
    collective: float
    scalar: float
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class KernelGeneration:
    """One software generation.

    Attributes:
        name: Identifier.
        provenance: Where its constants come from, in a sentence.
        mark: What results of this generation rest on.
        band: Multiplicative half-width of the prediction band for a fully specified row.
        reserve_bytes: SRAM per PE for code, stacks and buffers.
        reserve_source: Why that much.
        halo: Whether programs leave the SDK's memcpy halo free.
        benchmark_shape: Whether a given grid means WaferLLM's layer benchmark (full-width keys and
            values, no embedding, head or hand-off).
    """

    name: str
    provenance: str
    mark: Mark
    band: float
    reserve_bytes: int
    reserve_source: str
    halo: bool = False
    benchmark_shape: bool = False


_PRODUCTION_RESERVE = (
    4 * 1024,
    "derived: 'about 20 B parameters at 16 bit fit one wafer' (launch blog) leaves at most 4.3 KB "
    "of 48 per PE",
)

GENERATIONS: dict[str, KernelGeneration] = {
    generation.name: generation
    for generation in (
        KernelGeneration(
            "waferllm-wse2",
            "WaferLLM (OSDI'25) CSL kernels; three constants fitted on five published rows",
            "calibrated",
            1.12,
            14 * 1024,
            "assumed: about 14 KB of code and buffers per PE in SDK programs",
            halo=True,
            benchmark_shape=True,
        ),
        KernelGeneration(
            "cerebras-2024-08",
            "vendor's launch stack, before speculation: WaferLLM's constants times one scale set "
            "on the 8B row",
            "calibrated",
            1.2,
            *_PRODUCTION_RESERVE,
        ),
        KernelGeneration(
            "cerebras-2025",
            "vendor's rewritten kernels: products at the speed of a 64-bit read port, one scale "
            "set on the 8B row, and the tokens per step of mixtures set on two catalogue rows; "
            "precision, wafer count, load and speculation are undisclosed, so results are bands",
            "assumed",
            1.41,
            *_PRODUCTION_RESERVE,
        ),
        KernelGeneration(
            "spec-limit",
            "no software cost and full SIMD width: an upper bound, not a prediction",
            "spec",
            1.0,
            *_PRODUCTION_RESERVE,
        ),
    )
}

_NOT_MODELLED = {"t10", "ladder", "summa", "cannon", "vendor-gemv", "sglang", "vllm"}


def generation(name: str) -> KernelGeneration:
    """Find a kernel generation by name; vendor dates map to the generation of that date.

    Raises:
        WaferUsageError: The name is unknown, or its software is not modelled on a wafer.
    """
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    if key in GENERATIONS:
        return GENERATIONS[key]
    if key.startswith("waferllm"):
        return GENERATIONS["waferllm-wse2"]
    if key.startswith("spec"):
        return GENERATIONS["spec-limit"]
    if dated := re.match(r"(?:cerebras|vendor|production)-?(\d{4})(?:-(\d{1,2}))?", key):
        year, month = int(dated[1]), int(dated[2] or 12)
        launch = (year, month) < (2024, 10)  # the rewrite of kernels was announced in October 2024
        return GENERATIONS["cerebras-2024-08" if launch else "cerebras-2025"]
    if key in ("cerebras", "vendor", "production"):
        return GENERATIONS["cerebras-2025"]
    if key in _NOT_MODELLED:
        raise WaferUsageError(
            f"Kernels '{name}' are not modelled on a wafer; use one of {', '.join(GENERATIONS)}."
        )
    raise WaferUsageError(f"Kernels '{name}' are unknown; use one of {', '.join(GENERATIONS)}.")


def costs(
    kernels: KernelGeneration, hw: Wafer, parameters: Parameters | None = None
) -> KernelCosts:
    """The cost constants of a generation on a wafer, by default from the frozen parameters."""
    p = parameters or frozen()
    if kernels.name == "spec-limit":
        return KernelCosts(1.0 / hw.number("simd_fp16"), 0.0, 0.0, 0.0, 1.0)
    mac, scale = hw.cycles_per_mac, 1.0
    if kernels.name == "cerebras-2024-08":
        scale = p.scale_2024_08
    elif kernels.name == "cerebras-2025":
        mac, scale = hw.cycles_per_streamed_mac, p.scale_2025
    return KernelCosts(
        mac, p.issue_cycles, p.shift_cycles, p.collective_cycles, SCALAR_CYCLES, scale
    )
