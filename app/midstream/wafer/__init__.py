"""Midstream's wafer-scale simulation provider, usable on its own.

    from midstream import wafer

    shape = wafer.preset("spark-like")
    plan = wafer.place(shape, wafer.hardware("wse3"), wafer.generation("cerebras-2025"))
    print(wafer.simulate("spark-like", context=32768).headline)

Every number it gives is simulated, carries a band and says whether it rests on a specification, a
calibration or an assumption.  ``MODEL.md`` in this folder is the page to read: model, equations,
constants with sources, errors, limits. Importing this package loads no other part of Midstream, no
NumPy and no ONNX Runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from midstream.wafer.errors import DoesNotFitError as DoesNotFitError
    from midstream.wafer.errors import ModelUnavailableError as ModelUnavailableError
    from midstream.wafer.errors import WaferError as WaferError
    from midstream.wafer.errors import WaferUsageError as WaferUsageError
    from midstream.wafer.imitations import Imitation as Imitation
    from midstream.wafer.imitations import imitation as imitation
    from midstream.wafer.kernels import KernelGeneration as KernelGeneration
    from midstream.wafer.kernels import generation as generation
    from midstream.wafer.machines import Gpu as Gpu
    from midstream.wafer.machines import Wafer as Wafer
    from midstream.wafer.machines import hardware as hardware
    from midstream.wafer.machines import hardware_names as hardware_names
    from midstream.wafer.models import preset as preset
    from midstream.wafer.models import preset_names as preset_names
    from midstream.wafer.models import resolve as resolve
    from midstream.wafer.onnx_shape import workload_from_onnx as workload_from_onnx
    from midstream.wafer.operators import Workload as Workload
    from midstream.wafer.options import Options as Options
    from midstream.wafer.pacing import Pace as Pace
    from midstream.wafer.placement import place as place
    from midstream.wafer.plan import Plan as Plan
    from midstream.wafer.plan import kv_capacity as kv_capacity
    from midstream.wafer.quantity import Band as Band
    from midstream.wafer.quantity import Quantity as Quantity
    from midstream.wafer.report import Report as Report
    from midstream.wafer.session import Clocks as Clocks
    from midstream.wafer.session import InferenceSession as InferenceSession
    from midstream.wafer.session import IOBinding as IOBinding
    from midstream.wafer.shape import ModelShape as ModelShape
    from midstream.wafer.speculation import Speculation as Speculation
    from midstream.wafer.text import wafer_text as wafer_text
    from midstream.wafer.validation import validate as validate

_HOME = {
    "errors": ("DoesNotFitError", "ModelUnavailableError", "WaferError", "WaferUsageError"),
    "machines": ("Gpu", "Wafer", "hardware", "hardware_names"),
    "kernels": ("KernelGeneration", "generation"),
    "models": ("preset", "preset_names", "resolve"),
    "onnx_shape": ("workload_from_onnx",),
    "operators": ("Workload",),
    "options": ("Options",),
    "imitations": ("Imitation", "imitation"),
    "pacing": ("Pace",),
    "placement": ("place",),
    "plan": ("Plan", "kv_capacity"),
    "quantity": ("Band", "Quantity"),
    "report": ("Report",),
    "session": ("Clocks", "IOBinding", "InferenceSession"),
    "shape": ("ModelShape",),
    "speculation": ("Speculation",),
    "text": ("wafer_text",),
    "validation": ("validate",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def simulate(model: str | Workload, **options: Any) -> Report:
    """Simulate a model by name, path or workload.

    Args:
        model: A preset, a path, or a workload from ``resolve``.
        **options: Fields of ``Options``.

    Raises:
        DoesNotFitError: It does not fit where it was asked to.
        WaferUsageError: A name or value is wrong.
        ModelUnavailableError: The model cannot be read.
    """
    from midstream.wafer.models import resolve
    from midstream.wafer.options import Options
    from midstream.wafer.report import simulate as run

    return run(resolve(model) if isinstance(model, str) else model, Options(**options))


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'midstream.wafer' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f"midstream.wafer.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
