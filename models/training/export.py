"""From adapters to a model folder: merge, cut the vocabulary, build the graph, round, split.

    PYTHONPATH=app:. python -m models.training.export run.safetensors OUT \
        --base base --cut cut --data shards [--graph models/river-391m --frozen 6]

The graph is that of the ONNX Runtime GenAI builder (packages onnxruntime-genai, onnx, onnx-ir); its
weights are replaced by those of ``rounding``. The table of tokens keeps 8 bits and serves as output
too. Weights lie in several files, none above 90 MB. With ``--graph`` and ``--frozen``, the lowest
layers and the table keep the bytes that they have in that folder, so that less changes in git.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnx.external_data_helper import load_external_data_for_model, set_external_data
from safetensors.torch import load_file, save_file

from models.training.blocks import (
    BlockFormat,
    QuantisedBlocks,
    quantise_range,
    unpack_blocks,
)
from models.training.examples import Batch, Codec, Packer, batch_of
from models.training.mixture import Mixture
from models.training.network import PARTS, Network, Shape
from models.training.rounding import EIGHT, rounded_layers
from models.training.train import SHARES

CONTEXT = 8_192
EXAMPLES = 24
"""Sequences that weights are rounded by."""
MAX_FILE_BYTES = 90_000_000
BUILDER = "onnxruntime_genai.models.builder"
CARD = """\
schema = 1
name = "{name}"
title = "Edit model for requests in free words, {millions} M parameters"
prompt = "edit-rewrite"
edit_format = "region"
languages = ["python", "javascript", "typescript", "go", "rust", "java"]
max_region_lines = 200

[facts]
region_first = "1"

[limits]
max_prompt_tokens = 3584
max_output_tokens = 2048

[drafting]
enabled = true
most = 24

[card]
parameters = {parameters}
"""


def merge(base: Path, adapters: Path | None, cut: Path, out: Path) -> int:
    """Write a Hugging Face folder, adapters merged and vocabulary cut; return its parameters."""
    state = load_file(base / "model.safetensors")
    shape = Shape(base)
    heads, keys = shape.heads * shape.head, shape.keys * shape.head
    sizes = {
        "qkv": [heads, keys, keys],
        "o": [shape.width],
        "gu": [shape.inner, shape.inner],
        "dn": [shape.width],
    }
    learnt = load_file(adapters) if adapters else {}
    for layer in range(shape.layers if learnt else 0):
        for name, parts in PARTS.items():
            at = f"layers.{layer}.{name}"
            change = learnt[f"{at}.bb"].float() @ learnt[f"{at}.a"].float()
            for part, piece in zip(parts, change.split(sizes[name]), strict=True):
                key = f"model.layers.{layer}.{part}.weight"
                state[key] = (state[key].float() + piece).contiguous()
    rows = json.loads((cut / "rows.json").read_text("utf-8"))
    table = "model.embed_tokens.weight"
    state[table] = state[table][torch.tensor(rows)].contiguous()
    state.pop("lm_head.weight", None)
    out.mkdir(parents=True, exist_ok=True)
    save_file(state, out / "model.safetensors", metadata={"format": "pt"})
    tokenizer = json.loads((cut / "tokenizer.json").read_text("utf-8"))
    ids = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    end, text_end = ids["<|im_end|>"], ids["<|endoftext|>"]
    changes: dict[str, dict[str, Any]] = {
        "config.json": {
            "vocab_size": len(rows),
            "eos_token_id": end,
            "bos_token_id": text_end,
            "pad_token_id": text_end,
            "max_position_embeddings": CONTEXT,
        },
        "generation_config.json": {
            "eos_token_id": [end, text_end],
            "bos_token_id": text_end,
            "pad_token_id": text_end,
        },
    }
    for name, more in changes.items():
        known = json.loads((base / name).read_text("utf-8"))
        (out / name).write_text(json.dumps(known | more, indent=1), "utf-8")
    shutil.copy(cut / "tokenizer.json", out)
    for name in ("tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(base / name, out)
    return sum(value.numel() for value in state.values())


def build(merged: Path, out: Path) -> None:
    """Run the GenAI builder; its rounding is replaced afterwards."""
    options = ["accuracy_level=4", "algo_config=k_quant", "matmul_mixed_precision=last_matmul:int8"]
    subprocess.run(
        [
            *(sys.executable, "-m", BUILDER, "-i", merged, "-o", out, "-p", "int4", "-e", "cpu"),
            *("--extra_options", *options, "shared_embeddings=true"),
        ],
        check=True,
        capture_output=True,
    )


class GraphWeights:
    """The quantised matrices of a builder's graph."""

    def __init__(self, path: Path) -> None:
        self.model = onnx.load(str(path), load_external_data=False)
        load_external_data_for_model(self.model, str(path.parent))
        self._constants = {each.name: each for each in self.model.graph.initializer}

    def replace(self, name: str, form: BlockFormat, blocks: QuantisedBlocks, rows: int) -> None:
        """Give the nodes that use a matrix other blocks.

        Args:
            name: As in ``model.layers.0.attn.o_proj`` or ``lm_head``.
            form: How the blocks are stored.
            blocks: The matrix.
            rows: Its outputs.
        """
        scales = blocks.scales.astype(np.float32).reshape(rows, -1)
        values = blocks.stored.reshape(rows, scales.shape[1], -1)
        points = blocks.zeros.reshape(rows, -1)
        for suffix, value in (("weight_scale", scales), ("weight_zp", points)):
            self._set(f"{name}.MatMul.{suffix}", value)
        stored = next(k for k in self._constants if k.startswith(f"{name}.MatMul.weight_Q"))
        self._set(stored, values)
        for node in self.model.graph.node:
            if f"{name}.MatMul.weight_scale" in node.input:
                for attribute in node.attribute:
                    if attribute.name == "bits":
                        attribute.i = form.bits
                    elif attribute.name == "block_size":
                        attribute.i = form.block

    def matrices(self) -> Iterator[tuple[str, BlockFormat, QuantisedBlocks]]:
        """Yield the matrices, as ``replace`` takes them."""
        for node in self.model.graph.node:
            scales = next((name for name in node.input if name.endswith("weight_scale")), None)
            if scales is None or node.op_type != "MatMulNBits":
                continue
            name = scales.removesuffix(".MatMul.weight_scale")
            sizes = {each.name: each.i for each in node.attribute}
            stored = next(k for k in self._constants if k.startswith(f"{name}.MatMul.weight_Q"))
            values, scale, zeros = (
                numpy_helper.to_array(self._constants[each])
                for each in (stored, scales, f"{name}.MatMul.weight_zp")
            )
            blocks = QuantisedBlocks(values, scale.astype(np.float16).ravel(), zeros.ravel())
            yield name, BlockFormat(sizes["bits"], sizes["block_size"]), blocks

    def _set(self, name: str, value: Any) -> None:
        made = numpy_helper.from_array(np.ascontiguousarray(value), name)
        self._constants[name].CopyFrom(made)

    def save(self, folder: Path) -> None:
        """Write the graph, and its weights into files of at most ``MAX_FILE_BYTES``."""
        for old in folder.glob("model.onnx*"):
            old.unlink()
        number, used = 0, 0
        file = (folder / "model.onnx.data").open("wb")
        for constant in self.model.graph.initializer:
            raw = numpy_helper.to_array(constant).tobytes()
            if len(raw) < 1024:
                continue
            if used + len(raw) > MAX_FILE_BYTES:
                file.close()
                number, used = number + 1, 0
                file = (folder / f"model.onnx.data{number}").open("wb")
            constant.raw_data = raw
            set_external_data(constant, Path(file.name).name, used, len(raw))
            file.write(raw)
            used += len(raw)
            constant.ClearField("raw_data")
        file.close()
        onnx.save(self.model, str(folder / "model.onnx"))


def examples(cut: Path, data: Path, count: int = EXAMPLES, length: int = 640) -> list[Batch]:
    """Return sequences of training data."""
    packer = Packer(Codec(cut / "tokenizer.json"), Mixture(data, SHARES), length, seed=0)
    return [batch_of([packer.sequence()], length) for _ in range(count)]


def main() -> None:
    """Write a model folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("adapters", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--base", type=Path, default=Path("base"))
    parser.add_argument("--cut", type=Path, default=Path("cut"))
    parser.add_argument("--data", type=Path, default=Path("shards"))
    parser.add_argument("--graph", type=Path, help="an export with the same cut, to be built on")
    parser.add_argument(
        "--frozen",
        type=int,
        default=0,
        help="with --graph: the lowest layers, which stay as they are there (train --frozen)",
    )
    parser.add_argument("--name", default="river-391m")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.frozen and not options.graph:
        parser.error("--frozen needs --graph: the export whose lowest layers are kept")
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        merged = Path(folder) / "merged"
        parameters = merge(options.base, options.adapters, options.cut, merged)
        if options.graph:  # adapters change no other weights than those that are replaced
            shutil.copytree(options.graph, options.out, dirs_exist_ok=True)
        else:
            build(merged, options.out)
        table = load_file(merged / "model.safetensors")["model.embed_tokens.weight"].numpy()
        network = Network(merged)
    weights = GraphWeights(options.out / "model.onnx")
    lowest = tuple(f"model.layers.{layer}." for layer in range(options.frozen))
    kept = {
        name: unpack_blocks(blocks, len(blocks.stored), form)
        for name, form, blocks in weights.matrices()
        if name.startswith(lowest)
    }
    sequences = examples(options.cut, options.data)
    for name, form, blocks in rounded_layers(network, sequences, kept):
        print(name, form, flush=True)
        weights.replace(name, form, blocks, blocks.stored.shape[0])
    if not options.frozen:
        weights.replace("lm_head", EIGHT, quantise_range(table.T, EIGHT), len(table))
    weights.save(options.out)
    card = CARD.format(name=options.name, millions=round(parameters / 1e6), parameters=parameters)
    (options.out / "midstream.toml").write_text(card, "utf-8")


if __name__ == "__main__":
    main()
