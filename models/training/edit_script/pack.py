"""Weights to int8 rows with float16 scales and back: half the size of bf16.

python pack.py pack weights.safetensors weights.int8
python pack.py unpack weights.int8 weights.safetensors
"""

from __future__ import annotations

import argparse

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

SCALE = ".scale"


def pack(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return matrices as int8 with a scale a row; vectors stay float32."""
    out: dict[str, Tensor] = {}
    for name, weight in weights.items():
        values = weight.float()
        if values.dim() != 2:
            out[name] = values
            continue
        scale = (values.abs().amax(1, keepdim=True) / 127).clamp(min=1e-8).half()
        out[name] = (values / scale.float()).round().clamp(-127, 127).to(torch.int8)
        out[name + SCALE] = scale
    return out


def unpack(packed: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return bf16 weights."""
    out: dict[str, Tensor] = {}
    for name, values in packed.items():
        if not name.endswith(SCALE):
            scale = packed.get(name + SCALE)
            weight = values.float() if scale is None else values.float() * scale.float()
            out[name] = weight.to(torch.bfloat16)
    return out


def main() -> None:
    """Convert a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("mode", choices=["pack", "unpack"])
    parser.add_argument("source")
    parser.add_argument("target")
    options = parser.parse_args()
    convert = pack if options.mode == "pack" else unpack
    result = convert(load_file(options.source))
    save_file({name: w.contiguous() for name, w in result.items()}, options.target)


if __name__ == "__main__":
    main()
