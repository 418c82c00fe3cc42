"""A weighted mean of weights: of snapshots of one trunk it does some of what a decaying rate does.

python average.py out.safetensors first.safetensors=0.5 second.safetensors=0.5
"""

from __future__ import annotations

import argparse

import torch
from safetensors.torch import load_file, save_file


def main() -> None:
    """Write the mean."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out")
    parser.add_argument("weights", nargs="+", help="FILE=SHARE")
    options = parser.parse_args()
    pairs = [pair.rsplit("=", 1) for pair in options.weights]
    total = sum(float(share) for _, share in pairs)
    mean: dict[str, torch.Tensor] = {}
    for file, share in pairs:
        for name, weight in load_file(file).items():
            part = weight.float() * (float(share) / total)
            mean[name] = mean[name] + part if name in mean else part
    save_file({n: w.to(torch.bfloat16).contiguous() for n, w in mean.items()}, options.out)


if __name__ == "__main__":
    main()
