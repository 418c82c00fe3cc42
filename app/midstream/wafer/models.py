"""One door to model shapes: a preset name, an ONNX file, or a model folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from midstream.wafer.errors import ModelUnavailableError
from midstream.wafer.presets import preset
from midstream.wafer.shape import ModelShape


@cache
def resolve_shape(name: str) -> ModelShape:
    """The shape behind a name or path.

    Args:
        name: A preset (any usual spelling), a path of an ``.onnx`` file, or of a folder with ``genai_config.json`` or
            ``config.json``.

    Raises:
        ModelUnavailableError: The path exists but holds no readable model, or looks like a path and does not exist.
        WaferUsageError: It is neither a path nor a preset.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        from midstream.wafer.folder import shape_from_folder

        return shape_from_folder(path)
    if path.is_file():
        from midstream.wafer.onnx_shape import shape_from_onnx

        return shape_from_onnx(path)
    if name.endswith(".onnx") or name.startswith((".", "/", "~")):
        raise ModelUnavailableError(f"There is no model at '{name}'; check the path.")
    return preset(name)
