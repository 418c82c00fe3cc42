"""Decoders of Qwen2's shape (24 layers, 14 query and 2 key/value heads, biases, tied embeddings)
with random weights, written as model folders in the three layouts that people have.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.helpers.decoders import DecoderShape, weight_shapes
from tests.helpers.folders import CHAT_SPECIAL, CHAT_TEMPLATE, make_tokenizer
from tests.helpers.tiny import Array, build, dequantised

FULL = DecoderShape(
    vocab=151_936,
    width=896,
    layers=24,
    heads=14,
    kv_heads=2,
    head_size=64,
    hidden=4864,
    context=32_768,
    epsilon=1e-6,
)
"""Qwen2 0.5 B."""

REDUCED = DecoderShape(
    vocab=1187,
    width=224,
    layers=24,
    heads=14,
    kv_heads=2,
    head_size=16,
    hidden=608,
    context=2048,
    epsilon=1e-6,
)
"""The same topology, small enough for every test run."""


@dataclass(frozen=True)
class Layout:
    """How an exporter writes the model: graph file, weights, cache and what else it feeds."""

    name: str
    graph: str
    bits: int = 32
    dialect: str = "mask"
    cache: int = TensorProto.FLOAT

    @property
    def tolerance(self) -> float:
        """How far logits may be from the reference's, which computes in float64.

        It rounds keys and values to halves as well, but a value between two of them may fall to the
        other side; at full size 4 of a million logits are off by a little more than 0.001 then.
        """
        return 1e-3 if self.cache == TensorProto.FLOAT else 2e-3

    @property
    def cache_type(self) -> Any:
        return np.float16 if self.cache == TensorProto.FLOAT16 else np.float32


LAYOUTS = (
    Layout("genai", "model.onnx"),
    Layout("optimum", "model.onnx", dialect="positions"),
    Layout("transformers.js", "onnx/model_q4.onnx", 4, "positions"),
    Layout("transformers.js", "onnx/model_q4f16.onnx", 4, "positions", TensorProto.FLOAT16),
)


def qwen_weights(shape: DecoderShape, seed: int = 0) -> dict[str, Array]:
    """Random weights with which logits are of size one; the head is the embedding, transposed."""
    rng = np.random.default_rng(seed)
    half = shape.head_size // 2
    angle = np.arange(shape.context)[:, None] / 1e6 ** (np.arange(half) / half)
    weights: dict[str, Array] = {
        "cos": np.cos(angle).astype(np.float32),
        "sin": np.sin(angle).astype(np.float32),
    }
    for name, size in weight_shapes(shape).items():
        if name.endswith("norm"):
            weights[name] = rng.uniform(0.5, 1.5, size).astype(np.float32)
        elif name not in ("cos", "sin", "head"):
            fan_in = shape.width if name == "embedding" else size[0]
            weights[name] = rng.standard_normal(size, np.float32) / np.float32(fan_in**0.5)
    weights["head"] = weights["embedding"].T
    return weights


def as_computed(weights: dict[str, Array], layout: Layout) -> dict[str, Array]:
    """The weights that a layout's graph stands for: quantised matrices read back."""
    if layout.bits == 32:
        return weights
    matrices = ("qkv", "out", "gate_up", "down", "head")
    return {
        name: dequantised(value, layout.bits) if name.split(".")[-1] in matrices else value
        for name, value in weights.items()
    }


def write_qwen(path: Path, shape: DecoderShape, weights: dict[str, Array], layout: Layout) -> None:
    """Write a folder that loads, weights beside the graph."""
    make_tokenizer(CHAT_SPECIAL).save(str(path / "tokenizer.json"))
    texts = {"chat_template": CHAT_TEMPLATE, "eos_token": "<eos>"}
    (path / "tokenizer_config.json").write_text(json.dumps(texts))
    name, text = _configuration(shape, layout)
    (path / name).write_text(json.dumps(text))
    model = build(shape, weights, layout.bits, layout.dialect, layout.cache)
    if layout.bits == 32:
        _tie(model)
    for node in model.graph.node:
        for attribute in node.attribute:
            # Quantisers leave it out: activations stay float32.
            if attribute.name == "accuracy_level":
                attribute.i = 0
    graph = path / layout.graph
    graph.parent.mkdir(exist_ok=True)
    onnx.save(
        model,
        str(graph),
        save_as_external_data=True,
        location=f"{graph.name}_data" if layout.name == "transformers.js" else f"{graph.name}.data",
        size_threshold=1024,
    )


def _configuration(shape: DecoderShape, layout: Layout) -> tuple[str, dict[str, Any]]:
    """The configuration file of a layout: its name and what it says."""
    if layout.name != "genai":
        return "config.json", {
            "architectures": ["Qwen2ForCausalLM"],
            "eos_token_id": 1,
            "hidden_size": shape.width,
            "max_position_embeddings": shape.context,
            "num_attention_heads": shape.heads,
            "num_hidden_layers": shape.layers,
            "num_key_value_heads": shape.kv_heads,
            "tie_word_embeddings": True,
        }
    return "genai_config.json", {
        "model": {
            "type": "qwen2",
            "context_length": shape.context,
            "eos_token_id": [1, 2],
            "vocab_size": shape.vocab,
            "decoder": {
                "filename": layout.graph,
                "head_size": shape.head_size,
                "hidden_size": shape.width,
                "num_attention_heads": shape.heads,
                "num_hidden_layers": shape.layers,
                "num_key_value_heads": shape.kv_heads,
                "inputs": {
                    "input_ids": "input_ids",
                    "attention_mask": "attention_mask",
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {"logits": "logits"},
            },
        },
        "search": {"past_present_share_buffer": True, "max_length": shape.context},
    }


def _tie(model: onnx.ModelProto) -> None:
    """Let the vocabulary projection read the embedding table."""
    graph = model.graph
    head = next(node for node in graph.node if "logits" in node.output)
    graph.initializer.remove(next(i for i in graph.initializer if i.name == head.input[1]))
    tied = helper.make_node(
        "FusedMatMul",
        [head.input[0], "embedding"],
        ["logits"],
        name="logits",
        domain="com.microsoft",
        transB=1,
    )
    graph.node.remove(head)
    graph.node.append(tied)
