"""One door to models: a preset name, an ONNX file, or a model folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from midstream.wafer.errors import ModelUnavailableError
from midstream.wafer.operators import Workload, product_of, workload_of
from midstream.wafer.presets import matrix_of, preset, preset_names


@cache
def resolve(name: str) -> Workload:
    """The operators of the model behind a name or path.

    Args:
        name: A preset (any usual spelling), ``gemv-N`` or ``gemv-MxN`` for one product, the path of
            an ``.onnx`` file, or of a folder with an ONNX graph, ``genai_config.json`` or
            ``config.json``.

    Raises:
        ModelUnavailableError: The path holds no readable model, or looks like a path and does not
        exist. WaferUsageError: It is neither a path nor a preset.
    """
    if name in preset_names():  # a folder of that name is written ./name
        return workload_of(preset(name))
    path = Path(name).expanduser()
    if path.is_dir():
        from midstream.wafer.folder import workload_from_folder

        return workload_from_folder(path.resolve())
    if path.is_file():
        from midstream.wafer.onnx_shape import workload_from_onnx

        return workload_from_onnx(path.resolve())
    if name.endswith(".onnx") or name.startswith((".", "/", "~")):
        raise ModelUnavailableError(f"There is no model at '{name}'; check the path.")
    matrix = matrix_of(name)
    if matrix is not None and min(matrix) > 0 and name.strip().lower().startswith("gemv"):
        return product_of(*matrix)
    return workload_of(preset(name))
