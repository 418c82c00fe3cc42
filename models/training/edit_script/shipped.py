"""Weights out of a model folder again: training goes on from what is shipped, wherever it is.

    python -m models.training.edit_script.shipped models/rill-116m start.safetensors

Checkpoints with an optimiser's state stay on the machine that trained; the shipped folder is in
every checkout. Its 4-bit weights are the trained ones with the noise of rounding, which the first
steps of training remove. The tokenizer for it is the folder's own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from models.training.graphs import Array, BlockFormat, QuantisedBlocks, unpack_blocks

_PARTS = {
    "qkv": [f"self_attn.{name}_proj" for name in "qkv"],
    "out": ["self_attn.o_proj"],
    "gate_up": ["mlp.gate_proj", "mlp.up_proj"],
    "down": ["mlp.down_proj"],
}
_NORMS = {"attention_norm": "input_layernorm", "hidden_norm": "post_attention_layernorm"}


def read(folder: Path) -> dict[str, Array]:
    """Return the float32 weights of a folder that `export` has written, by Hugging Face names.

    Raises:
        ValueError: the graph has matrices that are not `MatMulNBits` with zero points.
    """
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(folder / "model.onnx").graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    sizes: dict[str, tuple[int, int, BlockFormat]] = {}
    for node in graph.node:
        if node.op_type == "MatMulNBits":
            given = {a.name: a.i for a in node.attribute}
            form = BlockFormat(given["bits"], given["block_size"])
            sizes[node.output[0]] = given["K"], given["N"], form
        elif node.op_type == "MatMul":
            raise ValueError(f"{folder}: {node.output[0]} is not quantised; train from its source")

    def matrix(product: str, name: str) -> Array:
        """Return a product's matrix, `[outputs, inputs]`."""
        _, outputs, form = sizes[product]
        parts = (stored[f"{name}.{part}"] for part in ("weight", "half_scales", "zeros"))
        return unpack_blocks(QuantisedBlocks(*parts), outputs, form)

    found = {
        "model.embed_tokens.weight": matrix("logits", "table"),
        "model.norm.weight": stored["final_norm.gain"],
    }
    layers = 1 + max(int(name.split(".")[1]) for name in sizes if name.startswith("layers."))
    for layer in range(layers):
        at = f"layers.{layer}"
        for own, theirs in _NORMS.items():
            found[f"model.{at}.{theirs}.weight"] = stored[f"{at}.{own}.gain"]
        for own, parts in _PARTS.items():
            whole = matrix(f"{at}.{own}", f"{at}.{own}")
            rows = len(whole)
            # Keys and values are narrower than queries; the width is a query's.
            ends = np.cumsum(_rows(own, rows, sizes[f"{at}.out"][0]))[:-1]
            for part, piece in zip(parts, np.split(whole, ends), strict=True):
                found[f"model.{at}.{part}.weight"] = np.ascontiguousarray(piece)
    return found


def _rows(kind: str, rows: int, width: int) -> list[int]:
    """Return the rows of the matrices that are joined in one."""
    if kind == "qkv":
        return [width, (rows - width) // 2, (rows - width) // 2]
    return [rows // 2, rows // 2] if kind == "gate_up" else [rows]


def main() -> None:
    """Write a folder's weights as safetensors."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    from safetensors.numpy import save_file

    save_file(read(options.folder), options.out, metadata={"format": "np"})


if __name__ == "__main__":
    main()
