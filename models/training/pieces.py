"""The base model in small pieces, for a machine with a GPU that takes little at a time.

    PYTHONPATH=app:. python -m models.training.pieces pack base.gguf BASE CUT PIECES \
        --kept models/river-391m --frozen 6 --start models/training/rewriting/adapters.safetensors
    PYTHONPATH=app:. python -m models.training.pieces unpack PIECES BASE CUT

``pack`` writes the blocks of the GGUF file as they are, some 280 MB, but for the lowest layers and
the table of tokens: these are what an exported folder holds, so that the layers above learn beside
the weights that they will run with (``train --frozen``, ``export --graph --frozen``). Adapters to
start from are written without those of the lowest layers. ``unpack`` makes a Hugging Face folder of
them whose table is already cut, and the folder of the vocabulary for it. Both need gguf,
``pack`` onnx as well.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from models.training.blocks import Array, BlockFormat, QuantisedBlocks, unpack_blocks

NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
"""Names of a layer's matrices in GGUF and in Hugging Face folders."""
TABLE = "model.embed_tokens.weight"
PARTS_OF_BLOCKS = ("stored", "scales", "zeros")


def name_of(name: str) -> str | None:
    """Return a GGUF tensor's name in a Hugging Face folder, or None where it is not needed."""
    if name == "output_norm.weight":
        return "model.norm.weight"
    if name == "output.weight":
        # Stored with more bits than the table that it equals: it serves for both.
        return TABLE
    if not name.startswith("blk."):
        return None
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{NAMES[part]}.{kind}"


class _Writer:
    """The pieces' bytes and their index."""

    def __init__(self) -> None:
        self.index: list[dict[str, Any]] = []
        self.whole = bytearray()

    def add(self, name: str, kind: int | str, values: Any, **more: int) -> None:
        """Append an array.

        Args:
            name: The tensor's name in a Hugging Face folder.
            kind: A type of GGUF, or which part of ``QuantisedBlocks`` the array is.
            values: The array.
            **more: What else the index says of it.
        """
        data = np.ascontiguousarray(values)
        about = {"name": name, "type": kind, "shape": list(data.shape), "dtype": str(data.dtype)}
        self.index.append(about | {"at": len(self.whole), "bytes": data.nbytes} | more)
        self.whole += data.tobytes()

    def add_blocks(self, name: str, form: BlockFormat, blocks: QuantisedBlocks) -> None:
        """Append the parts of a matrix in blocks."""
        for part in PARTS_OF_BLOCKS:
            self.add(name, part, getattr(blocks, part), bits=form.bits, block=form.block)


def pack(gguf: Path, kept: Path, frozen: int, out: Path, size: int) -> None:
    """Write the pieces: ``index.json`` and files.

    Args:
        gguf: The base model.
        kept: An exported folder.
        frozen: How many of its lowest layers are taken instead of the base model's.
        out: The folder for the pieces.
        size: Bytes of a file, at most.
    """
    from gguf import GGUFReader

    from models.training.export import GraphWeights

    writer = _Writer()
    lowest = tuple(f"model.layers.{layer}." for layer in range(frozen))
    for tensor in GGUFReader(gguf).tensors:
        name = name_of(tensor.name)
        below = name is not None and name.startswith(lowest) and name.endswith("_proj.weight")
        if name is not None and name != TABLE and not below:
            writer.add(name, int(tensor.tensor_type), np.asarray(tensor.data))
    for name, form, blocks in GraphWeights(kept / "model.onnx").matrices():
        if name == "lm_head":
            writer.add_blocks(TABLE, form, blocks)
        elif f"{name}.".startswith(lowest):
            writer.add_blocks(f"{name}.weight", form, blocks)
    out.mkdir(parents=True, exist_ok=True)
    (out / "index.json").write_text(json.dumps(writer.index), "utf-8")
    for number, begin in enumerate(range(0, len(writer.whole), size)):
        (out / f"piece-{number:02d}").write_bytes(writer.whole[begin : begin + size])


def unpack(pieces: Path, base: Path, cut: Path) -> None:
    """Write the folders of the base model and of its vocabulary."""
    import torch
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize
    from safetensors.torch import save_file

    config = (pieces / "config.json").read_text("utf-8")
    whole = b"".join(path.read_bytes() for path in sorted(pieces.glob("piece-*")))
    values: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    forms: dict[str, BlockFormat] = {}
    for entry in json.loads((pieces / "index.json").read_text("utf-8")):
        data = np.frombuffer(whole, np.uint8, entry["bytes"], entry["at"])
        data = data.view(entry["dtype"]).reshape(entry["shape"])
        name, kind = entry["name"], entry["type"]
        if kind in PARTS_OF_BLOCKS:
            parts.setdefault(name, {})[kind] = data
            forms[name] = BlockFormat(entry["bits"], entry["block"])
        else:
            values[name] = dequantize(data, GGMLQuantizationType(kind))
    for name, found in parts.items():
        matrix = unpack_blocks(QuantisedBlocks(**found), len(found["stored"]), forms[name])
        values |= split_rows(name, matrix, json.loads(config))
    state = {name: torch.from_numpy(np.array(value, np.float32)) for name, value in values.items()}
    base.mkdir(parents=True, exist_ok=True)
    save_file(state, base / "model.safetensors")
    (base / "config.json").write_text(config, "utf-8")
    cut.mkdir(parents=True, exist_ok=True)
    (cut / "rows.json").write_text(json.dumps(list(range(len(state[TABLE])))), "utf-8")
    (cut / "tokenizer.json").write_bytes((pieces / "tokenizer.json").read_bytes())


def split_rows(name: str, matrix: Array, config: dict[str, Any]) -> dict[str, Array]:
    """Return a matrix of the graph by its names in a Hugging Face folder."""
    if "qkv_proj" not in name:
        return {name.replace(".attn.", ".self_attn."): matrix}
    hidden = config["hidden_size"]
    keys = hidden * config["num_key_value_heads"] // config["num_attention_heads"]
    at = name.replace("attn.qkv_proj", "self_attn.{}_proj")
    parts = np.split(matrix, [hidden, hidden + keys])
    return {at.format(letter): part for letter, part in zip("qkv", parts, strict=True)}


def start_of(adapters: Path, frozen: int, out: Path) -> None:
    """Write adapters without those of the lowest layers."""
    from safetensors.torch import load_file, save_file

    found = {k: v for k, v in load_file(adapters).items() if int(k.split(".")[1]) >= frozen}
    save_file(found, out)


def main() -> None:
    """Pack or unpack."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    packing = steps.add_parser("pack")
    packing.add_argument("gguf", type=Path)
    packing.add_argument("base", type=Path, help="the base model's folder, for its configuration")
    packing.add_argument("cut", type=Path)
    packing.add_argument("out", type=Path)
    packing.add_argument("--kept", type=Path, required=True, help="an exported folder")
    packing.add_argument("--frozen", type=int, default=0, help="its lowest layers are taken")
    packing.add_argument("--start", type=Path, help="adapters to start from")
    packing.add_argument("--size", type=int, default=50, help="MiB of a piece, at most")
    unpacking = steps.add_parser("unpack")
    unpacking.add_argument("pieces", type=Path)
    unpacking.add_argument("base", type=Path)
    unpacking.add_argument("cut", type=Path)
    options = parser.parse_args()
    if options.step == "unpack":
        unpack(options.pieces, options.base, options.cut)
        return
    pack(options.gguf, options.kept, options.frozen, options.out, options.size << 20)
    if options.start:
        start_of(options.start, options.frozen, options.out / "start.safetensors")
    for source in (options.base / "config.json", options.cut / "tokenizer.json"):
        (options.out / source.name).write_bytes(source.read_bytes())


if __name__ == "__main__":
    main()
