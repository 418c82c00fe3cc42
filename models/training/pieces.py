"""The base model in small pieces, for a machine with a GPU that takes little at a time.

    PYTHONPATH=app:. python -m models.training.pieces pack base.gguf BASE CUT PIECES
    PYTHONPATH=app:. python -m models.training.pieces unpack PIECES BASE CUT

``pack`` writes the blocks of the GGUF file as they are, some 280 MB, with the rows of the table
that the vocabulary keeps. ``unpack`` makes a Hugging Face folder of them whose table is already
cut, and the folder of the vocabulary for it. Both need the package gguf.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

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


def pack(gguf: Path, cut: Path, out: Path, size: int) -> None:
    """Write the pieces: ``index.json`` and files of at most ``size`` bytes."""
    from gguf import GGUFReader

    kept: list[int] = json.loads((cut / "rows.json").read_text("utf-8"))
    index: list[dict[str, Any]] = []
    whole = bytearray()
    for tensor in GGUFReader(gguf).tensors:
        name = name_of(tensor.name)
        if name is None:
            continue
        data = np.asarray(tensor.data)
        if name == TABLE:
            data = data[kept]
        index.append(
            {
                "name": name,
                "type": int(tensor.tensor_type),
                "shape": list(data.shape),
                "dtype": str(data.dtype),
                "at": len(whole),
                "bytes": data.nbytes,
            }
        )
        whole += np.ascontiguousarray(data).tobytes()
    out.mkdir(parents=True, exist_ok=True)
    (out / "index.json").write_text(json.dumps(index), "utf-8")
    for number, begin in enumerate(range(0, len(whole), size)):
        (out / f"piece-{number:02d}").write_bytes(whole[begin : begin + size])


def unpack(pieces: Path, base: Path, cut: Path) -> None:
    """Write the folders of the base model and of its vocabulary."""
    import torch
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize
    from safetensors.torch import save_file

    whole = b"".join(path.read_bytes() for path in sorted(pieces.glob("piece-*")))
    state = {}
    for entry in json.loads((pieces / "index.json").read_text("utf-8")):
        data = np.frombuffer(whole, np.uint8, entry["bytes"], entry["at"])
        data = data.view(entry["dtype"]).reshape(entry["shape"])
        values = dequantize(data, GGMLQuantizationType(entry["type"]))
        state[entry["name"]] = torch.from_numpy(np.array(values, np.float32))
    base.mkdir(parents=True, exist_ok=True)
    save_file(state, base / "model.safetensors")
    (base / "config.json").write_bytes((pieces / "config.json").read_bytes())
    cut.mkdir(parents=True, exist_ok=True)
    (cut / "rows.json").write_text(json.dumps(list(range(len(state[TABLE])))), "utf-8")
    (cut / "tokenizer.json").write_bytes((pieces / "tokenizer.json").read_bytes())


def main() -> None:
    """Pack or unpack."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    packing = steps.add_parser("pack")
    packing.add_argument("gguf", type=Path)
    packing.add_argument("base", type=Path, help="the base model's folder, for its configuration")
    packing.add_argument("cut", type=Path)
    packing.add_argument("out", type=Path)
    packing.add_argument("--size", type=int, default=50, help="MiB of a piece, at most")
    unpacking = steps.add_parser("unpack")
    unpacking.add_argument("pieces", type=Path)
    unpacking.add_argument("base", type=Path)
    unpacking.add_argument("cut", type=Path)
    options = parser.parse_args()
    if options.step == "unpack":
        unpack(options.pieces, options.base, options.cut)
        return
    pack(options.gguf, options.cut, options.out, options.size << 20)
    for source in (options.base / "config.json", options.cut / "tokenizer.json"):
        (options.out / source.name).write_bytes(source.read_bytes())


if __name__ == "__main__":
    main()
