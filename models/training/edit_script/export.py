"""Export edit-script weights as a model folder: ONNX graph, GenAI configuration, tokenizer, card.

    python -m models.training.edit_script.export WEIGHTS.safetensors OUT --base base --shards shards

Weights are read with numpy, so that the command needs neither PyTorch nor safetensors. `--recipe`
chooses how matrices are quantised (`RECIPES`); `measure` says what each costs in accuracy.
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from models.training.edit_script import rounding
from models.training.graphs import (
    Array,
    BlockFormat,
    DecoderShape,
    build_decoder,
    genai_config,
)

CONTEXT = 4096
"""Tokens of prompt and answer: a region of 200 lines has 3,000 at most."""
MAX_OUTPUT_TOKENS = 512
MAX_REGION_LINES = 200
NAME = "rill-116m"

RECIPES: dict[str, dict[str, BlockFormat]] = {
    "float32": {},
    "int8": {kind: BlockFormat(8) for kind in ("embedding", "qkv", "out", "gate_up", "down")},
    "int4": {kind: BlockFormat(4) for kind in ("embedding", "qkv", "out", "gate_up", "down")},
    "mixed": {
        "embedding": BlockFormat(8, 64),
        **{kind: BlockFormat(4) for kind in ("qkv", "out", "gate_up", "down")},
    },
    "mixed64": {
        "embedding": BlockFormat(8, 64),
        **{kind: BlockFormat(4, 64) for kind in ("qkv", "out", "gate_up", "down")},
    },
}
"""Quantisation by kind of matrix. int8 is the yardstick: it does not fit a wheel of 100 MB."""

_TYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}


def read_safetensors(path: Path) -> dict[str, Array]:
    """Read a safetensors file as float32; bf16 is widened.

    Format: https://github.com/huggingface/safetensors#format.
    """
    data = np.memmap(path, np.uint8, mode="r")
    (size,) = struct.unpack("<Q", data[:8].tobytes())
    header: dict[str, Any] = json.loads(data[8 : 8 + size].tobytes())
    found: dict[str, Array] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[8 + size + begin : 8 + size + end].view(_TYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        found[name.removeprefix("model.")] = raw.astype(np.float32).reshape(entry["shape"])
    return found


def shape_of(config: Mapping[str, Any], context: int = CONTEXT) -> DecoderShape:
    """Return the sizes in a `config.json` of a Llama model with tied embeddings."""
    heads = config["num_attention_heads"]
    return DecoderShape(
        vocab=config["vocab_size"],
        width=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=heads,
        kv_heads=config["num_key_value_heads"],
        head_size=config.get("head_dim") or config["hidden_size"] // heads,
        hidden=config["intermediate_size"],
        context=min(context, config["max_position_embeddings"]),
        epsilon=config["rms_norm_eps"],
        tied=True,
        qkv_bias=False,
    )


def rope_base(config: Mapping[str, Any]) -> float:
    """Return the base of the rotary frequencies; newer configurations keep it in a table."""
    return float(config.get("rope_theta") or config["rope_parameters"]["rope_theta"])


def graph_weights(
    stored: Mapping[str, Array], shape: DecoderShape, base: float
) -> dict[str, Array]:
    """Return weights with Hugging Face names under the names of `graphs.weight_shapes`."""
    half = shape.head_size // 2
    angles = np.outer(np.arange(shape.context), base ** (-np.arange(half) / half))
    weights: dict[str, Array] = {
        "embedding": stored["embed_tokens.weight"],
        "final_norm": stored["norm.weight"],
        "cos": np.cos(angles).astype(np.float32),
        "sin": np.sin(angles).astype(np.float32),
    }
    for layer in range(shape.layers):
        at = f"layers.{layer}"
        weights[f"{at}.attention_norm"] = stored[f"{at}.input_layernorm.weight"]
        weights[f"{at}.hidden_norm"] = stored[f"{at}.post_attention_layernorm.weight"]
        for own, parts in (
            ("qkv", [f"self_attn.{name}_proj" for name in "qkv"]),
            ("out", ["self_attn.o_proj"]),
            ("gate_up", ["mlp.gate_proj", "mlp.up_proj"]),
            ("down", ["mlp.down_proj"]),
        ):
            rows = [stored[f"{at}.{part}.weight"] for part in parts]
            weights[f"{at}.{own}"] = np.ascontiguousarray(np.concatenate(rows).T)
    return weights


def midstream_toml(name: str, shape: DecoderShape, parameters: int, measured: str = "") -> str:
    """Return the contents of `midstream.toml`.

    Args:
        name: the model's name in requests.
        shape: sizes.
        parameters: weights in all.
        measured: the tables `[confidence]` and `[takeover]` as text, "" before they were fitted.
    """
    lines = min(MAX_REGION_LINES, shape.context // 4)
    output = min(MAX_OUTPUT_TOKENS, shape.context // 4)
    return f"""schema = 1
name = "{name}"
title = "Python edit model for requests in free words, {parameters / 1e6:.0f} M parameters"
prompt = "edit-script"
edit_format = "region"
languages = ["python"]
max_region_lines = {lines}

[facts]
region_first = "1"

[limits]
max_prompt_tokens = {shape.context - output}
max_output_tokens = {output}

[drafting]
enabled = true
most = 24

{measured}[card]
parameters = {parameters}
"""


def write_folder(
    out: Path,
    shape: DecoderShape,
    weights: Mapping[str, Array],
    tokenizer: Path,
    *,
    recipe: str = "mixed",
    name: str = NAME,
    sums: Mapping[str, Array] | None = None,
) -> int:
    """Write a model folder; returns the size of its graph in bytes.

    The tables `[confidence]` and `[takeover]` of a `midstream.toml` that is there already stay. With `sums`, the
    `rounding.correlations` of examples, 4 bits are rounded by them, else each weight to its nearest.
    """
    import onnx

    from models.training import regression
    from models.training.edit_script import takeover

    out.mkdir(parents=True, exist_ok=True)
    forms = RECIPES[recipe]
    known = None if sums is None else rounding.quantised(weights, sums, forms)
    graph = build_decoder(shape, weights, bits=32, forms=forms, quantised=known)
    for stale in out.glob("model.onnx*"):
        stale.unlink()
    # Beside the graph, weights are mapped into memory instead of being read (25 MB less).
    onnx.save(
        graph,
        out / "model.onnx",
        save_as_external_data=True,
        location="model.onnx.data",
        size_threshold=1024,
    )
    (out / "model.onnx.data").chmod(0o644)  # onnx makes it readable by its owner only
    end = Tokenizer.from_file(str(tokenizer)).token_to_id("<|im_end|>")
    (out / "genai_config.json").write_text(
        json.dumps(genai_config(shape, end, end), indent=2) + "\n", "utf-8"
    )
    shutil.copy(tokenizer, out / "tokenizer.json")
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": shape.context}
    (out / "tokenizer_config.json").write_text(json.dumps(kind, indent=2) + "\n", "utf-8")
    card = out / "midstream.toml"
    old = card.read_text("utf-8") if card.exists() else ""
    found = [part.SECTION.search(old) for part in (regression, takeover)]
    measured = "".join(table[0] for table in found if table)
    tables = [value for key, value in weights.items() if key not in ("cos", "sin")]
    card.write_text(midstream_toml(name, shape, sum(w.size for w in tables), measured), "utf-8")
    return sum(file.stat().st_size for file in out.glob("model.onnx*"))


def main() -> None:
    """Write one model folder for every recipe that is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--base", type=Path, default=Path("base"), help="config and tokenizer")
    parser.add_argument("--recipe", nargs="+", choices=sorted(RECIPES), default=["mixed"])
    parser.add_argument("--name", default=NAME)
    parser.add_argument("--shards", type=Path, help="training rows that 4 bits are rounded by")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    config = json.loads((options.base / "config.json").read_text("utf-8"))
    shape = shape_of(config)
    weights = graph_weights(read_safetensors(options.weights), shape, rope_base(config))
    tokenizer = options.base / "tokenizer.json"
    sums: dict[str, Array] | None = None
    if options.shards is not None:
        known = rounding.examples(options.shards, Tokenizer.from_file(str(tokenizer)))
        sums = rounding.correlations(shape, weights, known, options.threads)
    for recipe in options.recipe:
        several = len(options.recipe) > 1
        out = options.out / recipe if several else options.out
        size = write_folder(
            out,
            shape,
            weights,
            tokenizer,
            recipe=recipe,
            name=options.name,
            sums=sums,
        )
        print(f"{out}: {recipe}, {size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
