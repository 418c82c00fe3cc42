"""A model folder as GGUF (version 3), so that llama.cpp is timed with exactly the same model.

Graphs of ONNX Runtime GenAI's builder can be written, because their tensors have known names: what
llama.cpp calls "llama" (rotary grouped-query attention, RMSNorm, SwiGLU; biases of queries, keys
and values or none) with symmetric 4-bit blocks of 32. Matrices become Q4_0, in blocks of 32 with a
half-precision scale; the rest is float32. Needs the ``onnx`` package.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from midstream.engine.folder import ModelFolder

Array = np.ndarray[Any, Any]

ALIGNMENT = 32
"""Bytes to whose multiples tensors are aligned unless a file says otherwise."""

BLOCK = 32
"""Weights per scale in Q4_0."""

UINT32, FLOAT32, STRING = 4, 6, 8
"""Value types of the metadata."""

STILL = 1e-30
"""Radians per position that turn nothing."""

F32, Q4_0 = 0, 2
"""Types of tensors."""


class NotWritableError(Exception):
    """A folder's model cannot be written as GGUF; the text says why."""


def write_gguf(folder: ModelFolder, target: Path) -> None:
    """Write a folder's model.

    Raises:
        NotWritableError: It is another kind of graph, or the ``onnx`` package is missing.
    """
    if find_spec("onnx") is None:
        raise NotWritableError("the onnx package, which reads the weights, is not installed")
    onnx: Any = import_module("onnx")
    graph = onnx.load(str(folder.graph)).graph
    try:
        model = _Model(folder, graph)
        tensors = model.tensors()
    except KeyError as error:
        raise NotWritableError(
            "only 4-bit graphs by the builder of onnxruntime-genai can be written"
        ) from error
    if any(v.steps.shape[-1] % BLOCK for v in tensors.values() if isinstance(v, _Blocks)):
        raise NotWritableError(f"a matrix has a number of inputs that is no multiple of {BLOCK}")
    _write(target, model.facts(), tensors)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """A matrix in 4 bits as ONNX Runtime stores it.

    Attributes:
        steps: uint8 [outputs, inputs], 0 to 15 around 8.
        scales: float32 [outputs, blocks of 32 inputs].
    """

    steps: Array
    scales: Array

    def taken(self, rows: Array) -> _Blocks:
        return _Blocks(self.steps[rows], self.scales[rows])


Tensors = Mapping[str, Array | _Blocks]
"""By name: [outputs, inputs] in 4 bits, or [values] in float32."""


class _Model:
    """A folder's weights and sizes, by the names that ONNX Runtime GenAI's builder gives."""

    def __init__(self, folder: ModelFolder, graph: Any) -> None:
        """Read everything; raises KeyError where a name is missing."""
        onnx: Any = import_module("onnx")
        self._to_array: Any = onnx.numpy_helper.to_array
        self._base = str(folder.graph.parent)
        self._tensors = {item.name: item for item in graph.initializer}
        self._nodes = {node.name: node for node in graph.node}
        self._said: dict[str, dict[str, Any]] = {
            node.name: {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            for node in graph.node
        }
        self._context = folder.context_length
        attention = self._said["/model/layers.0/attn/GroupQueryAttention"]
        self._heads, self._kept = int(attention["num_heads"]), int(attention["kv_num_heads"])
        self._layers = sum(node.op_type == "GroupQueryAttention" for node in graph.node)
        self._cos, self._sin = self._array("cos_cache"), self._array("sin_cache")
        self._width = 2 * self._cos.shape[1]
        self._epsilon = float(self._said["/model/layers.0/input_layernorm/LayerNorm"]["epsilon"])

    def facts(self) -> dict[str, str | int | float]:
        head = self._said["/lm_head/MatMul_Q4"]
        return _facts(
            vocabulary=int(head["N"]),
            context=self._context,
            length=int(head["K"]),
            hidden=int(self._said["/model/layers.0/mlp/gate_proj/MatMul_Q4"]["N"]),
            layers=self._layers,
            heads=self._heads,
            kept=self._kept,
            width=self._width,
            epsilon=self._epsilon,
        )

    def tensors(self) -> Tensors:
        """Return every tensor; embedding and head are one tensor where the graph shares them."""
        embedding = self._nodes["/model/embed_tokens/GatherBlockQuantized"]
        head = self._blocks("/lm_head/MatMul_Q4")
        norm = self._array(f"model.layers.{self._layers}.final_norm_layernorm.weight")
        found: dict[str, Array | _Blocks] = {
            "token_embd.weight": head,
            "output_norm.weight": norm,
            "rope_freqs.weight": _slowness(self._cos, self._sin),
        }
        if embedding.input[2] != self._nodes["/lm_head/MatMul_Q4"].input[2]:
            raise KeyError(embedding.name)
        heads = (self._heads * self._width, *2 * (self._kept * self._width,))
        for layer in range(self._layers):
            at, to = f"model.layers.{layer}", f"blk.{layer}"
            found[f"{to}.attn_norm.weight"] = self._array(f"{at}.input_layernorm.weight")
            after = self._array(f"{at}.post_attention_layernorm.weight")
            found[f"{to}.ffn_norm.weight"] = after
            bias = f"{at}.attn.qkv_proj.Add.bias"
            packed = self._blocks(f"/model/layers.{layer}/attn/qkv_proj/MatMul_Q4")
            for part, end, size in zip("qkv", accumulate(heads), heads, strict=True):
                rows = _rows(end - size, end, self._width if part != "v" else None)
                found[f"{to}.attn_{part}.weight"] = packed.taken(rows)
                if bias in self._tensors:
                    found[f"{to}.attn_{part}.bias"] = self._array(bias)[rows]
            for theirs, ours in (
                ("attn/o_proj", "attn_output"),
                ("mlp/gate_proj", "ffn_gate"),
                ("mlp/up_proj", "ffn_up"),
                ("mlp/down_proj", "ffn_down"),
            ):
                blocks = self._blocks(f"/model/layers.{layer}/{theirs}/MatMul_Q4")
                found[f"{to}.{ours}.weight"] = blocks
        return found

    def _array(self, name: str) -> Array:
        return self._to_array(self._tensors[name], self._base)

    def _blocks(self, name: str) -> _Blocks:
        node, said = self._nodes[name], self._said[name]
        if said["bits"] != 4 or said["block_size"] != BLOCK or len(node.input) > 3:
            raise KeyError(name)
        stored = self._array(node.input[1])
        steps = np.stack([stored & 15, stored >> 4], axis=-1).reshape(len(stored), -1)
        scales = self._array(node.input[2]).reshape(len(stored), -1)
        return _Blocks(steps[:, : int(said["K"])], scales)


def _facts(
    *,
    vocabulary: int,
    context: int,
    length: int,
    hidden: int,
    layers: int,
    heads: int,
    kept: int,
    width: int,
    epsilon: float,
) -> dict[str, str | int | float]:
    sizes = {
        "vocab_size": vocabulary,
        "context_length": context,
        "embedding_length": length,
        "feed_forward_length": hidden,
        "block_count": layers,
        "attention.head_count": heads,
        "attention.head_count_kv": kept,
        "attention.key_length": width,
        "attention.value_length": width,
        "attention.layer_norm_rms_epsilon": epsilon,
        "rope.dimension_count": width,
        "rope.freq_base": 1.0,
    }
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "none",
        **{f"llama.{key}": value for key, value in sizes.items()},
    }


def _slowness(cos: Array, sin: Array) -> Array:
    """Return the divisor of a radian that gives each pair's angle at position 1."""
    angles = np.arctan2(sin[1], cos[1])
    return np.where(angles > 0, 1 / np.maximum(angles, STILL), 1 / STILL).astype(np.float32)


def _rows(begin: int, end: int, width: int | None) -> Array:
    """Number rows; those of heads such that pairs that turn together stand side by side."""
    rows: Array = np.arange(begin, end)
    return rows if width is None else rows.reshape(-1, 2, width // 2).swapaxes(1, 2).reshape(-1)


def _write(target: Path, facts: Mapping[str, str | int | float], tensors: Tensors) -> None:
    head = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts)))
    for key, value in facts.items():
        head += _string(key)
        if isinstance(value, str):
            head += struct.pack("<I", STRING) + _string(value)
        elif isinstance(value, int):
            head += struct.pack("<II", UINT32, value)
        else:
            head += struct.pack("<If", FLOAT32, value)
    body = bytearray()
    for name, values in tensors.items():
        # The innermost dimension comes first.
        blocks = isinstance(values, _Blocks)
        sizes = (values.steps.shape if blocks else values.shape)[::-1]
        head += _string(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        head += struct.pack("<IQ", Q4_0 if blocks else F32, len(body))
        body += _packed(values)
        body += bytes(-len(body) % ALIGNMENT)
    head += bytes(-len(head) % ALIGNMENT)
    target.write_bytes(bytes(head + body))


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _packed(values: Array | _Blocks) -> bytes:
    """Return a tensor's bytes: float32, or blocks of a half-precision scale and its weights."""
    if not isinstance(values, _Blocks):
        return np.ascontiguousarray(values, "<f4").tobytes()
    steps = values.steps.reshape(-1, BLOCK)
    scales = values.scales.reshape(-1, 1).astype("<f2")
    # The first half of a block is in the low bits.
    whole = steps[:, : BLOCK // 2] | (steps[:, BLOCK // 2 :] << 4)
    return np.hstack([scales.view(np.uint8), whole]).tobytes()
