"""The fitted parameters, as ``python -m midstream.wafer.fit`` wrote them.

``data/parameters.json`` is computed from the calibration rows alone and committed together with the
residuals of the fit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Any

PARAMETERS_FILE = "data/parameters.json"


def _fitted(unit: str, meaning: str) -> float:
    return field(metadata={"unit": unit, "meaning": meaning})


@dataclass(frozen=True, slots=True)
class Parameters:
    """All fitted numbers of the package; the metadata of a field says what it measures.

    The scales are relative to WaferLLM's kernels, whose cycles the first three constants give: the
    software of one vector instruction, of one MeshGEMM shift step, and of one collective (function
    entry, role tests, descriptor set-up and the scalar arithmetic between collectives).
    """

    issue_cycles: float = _fitted("cycles", "issue of one vector instruction")
    shift_cycles: float = _fitted("cycles", "software of one MeshGEMM shift step")
    collective_cycles: float = _fitted("cycles", "software around one collective")
    scale_2024_08: float = _fitted("x", "Aug-2024 on-wafer cycles relative to WaferLLM's constants")
    scale_2025: float = _fitted(
        "x",
        "2025 on-wafer cycles relative to WaferLLM's constants, products at a 64-bit port's speed",
    )
    gain_2025: float = _fitted(
        "tokens/step", "at which mixtures are served since 2025, by means undisclosed"
    )
    gpu_efficiency: float = _fitted("share", "nameplate bandwidth reached by batch-1 decode")
    gpu_layer_us: float = _fitted("us/layer", "launches and synchronisation")
    gpu_allreduce_us: float = _fitted("us", "one all-reduce within a node")
    gpu_internode_us: float = _fitted("us", "one all-reduce across nodes")


@cache
def frozen_document() -> dict[str, Any]:
    """The whole committed document: parameters, rows used, residuals."""
    text = resources.files("midstream.wafer").joinpath(PARAMETERS_FILE).read_text("utf-8")
    return json.loads(text)


@cache
def frozen() -> Parameters:
    """The committed parameters."""
    values = frozen_document()["parameters"]
    return Parameters(**{f.name: float(values[f.name]["value"]) for f in fields(Parameters)})
