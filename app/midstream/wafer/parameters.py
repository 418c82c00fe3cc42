"""The fitted parameters, as ``python -m midstream.wafer.fit`` wrote them.

``data/parameters.json`` is computed from the calibration rows alone and committed together with the
residuals of the fit.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

PARAMETERS_FILE = "data/parameters.json"


@dataclass(frozen=True, slots=True)
class Parameters:
    """All fitted numbers of the package.

    Attributes:
        issue_cycles: Cost of issuing one vector instruction (cycles).
        shift_cycles: Software overhead of one MeshGEMM shift step (cycles).
        collective_cycles: Software around one collective: function entry, role tests, descriptor
            set-up and the scalar arithmetic between collectives (cycles).
        scale_2024_08: All on-wafer cycles of the vendor's first production stack, relative to the
        kernels above. scale_2025: The same for the stack of 2025 and later, arithmetic aside.
        gain_2025: Tokens per step at which that stack serves mixtures, by means undisclosed.
        gpu_efficiency: Share of nameplate memory bandwidth that batch-1 decode reaches.
        gpu_layer_us: Kernel launch and synchronisation per layer (microseconds).
        gpu_allreduce_us: One all-reduce inside a node (microseconds).
        gpu_internode_us: One all-reduce across nodes (microseconds).
    """

    issue_cycles: float
    shift_cycles: float
    collective_cycles: float
    scale_2024_08: float
    scale_2025: float
    gain_2025: float
    gpu_efficiency: float
    gpu_layer_us: float
    gpu_allreduce_us: float
    gpu_internode_us: float

    def as_dict(self) -> dict[str, float]:
        """Name to value."""
        return asdict(self)


@cache
def frozen_document() -> dict[str, Any]:
    """The whole committed document: parameters, rows used, residuals."""
    text = resources.files("midstream.wafer").joinpath(PARAMETERS_FILE).read_text("utf-8")
    return json.loads(text)


@cache
def frozen() -> Parameters:
    """The committed parameters."""
    values = frozen_document()["parameters"]
    return Parameters(
        **{field.name: float(values[field.name]["value"]) for field in fields(Parameters)}
    )
