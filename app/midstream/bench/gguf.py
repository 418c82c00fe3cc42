"""A model folder as GGUF (version 3), so that llama.cpp is timed with exactly the same model.

Two kinds of graphs can be written, because their tensors have known names: those that the training
recipe builds and those of ONNX Runtime GenAI's builder, both what llama.cpp calls "llama" (rotary
grouped-query attention, RMSNorm, SwiGLU; biases or none). Matrices keep their bits: 8 become Q8_0
and 4 become Q4_0, both in blocks of 32 with a half-precision scale, 32 stay float32. Needs the
``onnx`` package.
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
"""Weights per scale in Q8_0 and Q4_0."""

UINT32, FLOAT32, STRING = 4, 6, 8
"""Value types of the metadata."""

STILL = 1e-30
"""Radians per position that turn nothing."""

KINDS = {32: 0, 4: 2, 8: 8}
"""Tensor types by bits: F32, Q4_0, Q8_0."""


class NotWritableError(Exception):
    """A folder's model cannot be written as GGUF; the text says why."""


def write_gguf(folder: ModelFolder, target: Path) -> None:
    """Write a folder's model.

    Raises:
        NotWritableError: The training recipe did not build it, or the ``onnx`` package is missing.
    """
    if find_spec("onnx") is None:
        raise NotWritableError("the onnx package, which reads the weights, is not installed")
    onnx: Any = import_module("onnx")
    graph = onnx.load(str(folder.graph)).graph
    built_by_us = any(node.name == "layers.0.attention" for node in graph.node)
    try:
        model = _Model(folder, graph) if built_by_us else _BuilderModel(folder, graph)
        tensors = model.tensors()
    except KeyError as error:
        raise NotWritableError(
            "its graph comes neither from Midstream nor from the builder of onnxruntime-genai"
        ) from error
    inputs = {_shape(values)[-1] for values, bits in tensors.values() if bits != 32}
    if any(count % BLOCK for count in inputs):
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


Tensors = Mapping[str, tuple[Array | _Blocks, int]]
"""By name: values, [outputs, inputs] or [values], and their bits."""


def _shape(values: Array | _Blocks) -> tuple[int, ...]:
    return values.steps.shape if isinstance(values, _Blocks) else values.shape


class _BuilderModel:
    """The same of a graph by ONNX Runtime GenAI's builder, with symmetric 4-bit blocks of 32."""

    def __init__(self, folder: ModelFolder, graph: Any) -> None:
        """Read everything; raises KeyError where a name is missing."""
        onnx: Any = import_module("onnx")
        self._to_array: Any = onnx.numpy_helper.to_array
        self._base = str(folder.graph.parent)
        self._held = {item.name: item for item in graph.initializer}
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
        found: dict[str, tuple[Array | _Blocks, int]] = {
            "token_embd.weight": (head, 4),
            "output_norm.weight": (
                self._array(f"model.layers.{self._layers}.final_norm_layernorm.weight"),
                32,
            ),
            "rope_freqs.weight": (_slowness(self._cos, self._sin), 32),
        }
        if embedding.input[2] != self._nodes["/lm_head/MatMul_Q4"].input[2]:
            raise KeyError(embedding.name)
        heads = (self._heads * self._width, *2 * (self._kept * self._width,))
        for layer in range(self._layers):
            at, to = f"model.layers.{layer}", f"blk.{layer}"
            found[f"{to}.attn_norm.weight"] = (self._array(f"{at}.input_layernorm.weight"), 32)
            after = self._array(f"{at}.post_attention_layernorm.weight")
            found[f"{to}.ffn_norm.weight"] = (after, 32)
            packed = self._blocks(f"/model/layers.{layer}/attn/qkv_proj/MatMul_Q4")
            for part, end, size in zip("qkv", accumulate(heads), heads, strict=True):
                rows = _rows(end - size, end, self._width if part != "v" else None)
                found[f"{to}.attn_{part}.weight"] = (packed.taken(rows), 4)
            for theirs, ours in (
                ("attn/o_proj", "attn_output"),
                ("mlp/gate_proj", "ffn_gate"),
                ("mlp/up_proj", "ffn_up"),
                ("mlp/down_proj", "ffn_down"),
            ):
                blocks = self._blocks(f"/model/layers.{layer}/{theirs}/MatMul_Q4")
                found[f"{to}.{ours}.weight"] = (blocks, 4)
        return found

    def _array(self, name: str) -> Array:
        return self._to_array(self._held[name], self._base)

    def _blocks(self, name: str) -> _Blocks:
        node, said = self._nodes[name], self._said[name]
        if said["bits"] != 4 or said["block_size"] != BLOCK or len(node.input) > 3:
            raise KeyError(name)
        stored = self._array(node.input[1])
        steps = np.stack([stored & 15, stored >> 4], axis=-1).reshape(len(stored), -1)
        scales = self._array(node.input[2]).reshape(len(stored), -1)
        return _Blocks(steps[:, : int(said["K"])], scales)


class _Model:
    """A folder's weights and sizes, by the names that the training recipe gives."""

    def __init__(self, folder: ModelFolder, graph: Any) -> None:
        """Read everything; raises KeyError where a name is missing."""
        onnx: Any = import_module("onnx")
        self._context = folder.context_length
        self._held = {item.name: onnx.numpy_helper.to_array(item) for item in graph.initializer}
        self._said: dict[str, dict[str, Any]] = {
            node.name: {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            for node in graph.node
        }
        self._layers = sum(node.op_type == "GroupQueryAttention" for node in graph.node)
        attention = self._said["layers.0.attention"]
        self._heads, self._kept = int(attention["num_heads"]), int(attention["kv_num_heads"])
        self._width = 2 * int(self._held["cos_cache"].shape[1])
        self._hidden = len(self._matrix("layers.0.gate_up")[0]) // 2

    def facts(self) -> dict[str, str | int | float]:
        vocabulary, length = self._held["embedding"].shape
        return _facts(
            vocabulary=vocabulary,
            context=self._context,
            length=length,
            hidden=self._hidden,
            layers=self._layers,
            heads=self._heads,
            kept=self._kept,
            width=self._width,
            epsilon=float(self._said["final_norm"]["epsilon"]),
        )

    def tensors(self) -> Tensors:
        """Return every tensor."""
        found: dict[str, tuple[Array | _Blocks, int]] = {
            "token_embd.weight": (self._held["embedding"], 32),
            "output_norm.weight": (self._held["final_norm.gain"], 32),
            "output.weight": self._matrix("logits"),
            "rope_freqs.weight": (
                _slowness(self._held["cos_cache"], self._held["sin_cache"]),
                32,
            ),
        }
        heads = (self._heads * self._width, *2 * (self._kept * self._width,))
        for layer in range(self._layers):
            at, to = f"layers.{layer}", f"blk.{layer}"
            found[f"{to}.attn_norm.weight"] = (self._held[f"{at}.attention_norm.gain"], 32)
            found[f"{to}.ffn_norm.weight"] = (self._held[f"{at}.hidden_norm.gain"], 32)
            found[f"{to}.attn_output.weight"] = self._matrix(f"{at}.out")
            found[f"{to}.ffn_down.weight"] = self._matrix(f"{at}.down")
            packed, bits = self._matrix(f"{at}.qkv")
            bias = self._held[f"{at}.qkv.bias"]
            for part, end, size in zip("qkv", accumulate(heads), heads, strict=True):
                rows = _rows(end - size, end, self._width if part != "v" else None)
                found[f"{to}.attn_{part}.weight"] = (packed[rows], bits)
                found[f"{to}.attn_{part}.bias"] = (bias[rows], 32)
            both, bits = self._matrix(f"{at}.gate_up")
            found[f"{to}.ffn_gate.weight"] = (both[: self._hidden], bits)
            found[f"{to}.ffn_up.weight"] = (both[self._hidden :], bits)
        return found

    def _matrix(self, name: str) -> tuple[Array, int]:
        """Return a product's float32 weights, [outputs, inputs], and how many bits they take."""
        stored, said = self._held[f"{name}.weight"], self._said[name]
        if stored.dtype == np.int8:
            return stored.T * self._held[f"{name}.scales"][:, None], 8
        if "bits" not in said:
            return stored.T, 32
        bits, outputs = int(said["bits"]), len(stored)
        if bits == 4:
            stored = np.stack([stored & 15, stored >> 4], axis=-1)
        blocks = stored.reshape(outputs, -1, int(said["block_size"])).astype(np.float32)
        scales = self._held[f"{name}.scales"].reshape(outputs, -1, 1)
        values = (blocks - (1 << (bits - 1))) * scales
        return values.reshape(outputs, -1)[:, : int(said["K"])], bits


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
    for name, (values, bits) in tensors.items():
        # The innermost dimension comes first.
        sizes = _shape(values)[::-1]
        head += _string(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        head += struct.pack("<IQ", KINDS[bits], len(body))
        body += _packed(values, bits)
        body += bytes(-len(body) % ALIGNMENT)
    head += bytes(-len(head) % ALIGNMENT)
    target.write_bytes(bytes(head + body))


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _packed(values: Array | _Blocks, bits: int) -> bytes:
    """Return a tensor's bytes: float32, or blocks of a half-precision scale and its weights."""
    if isinstance(values, _Blocks):
        steps = values.steps.reshape(-1, BLOCK)
        scales = values.scales.reshape(-1, 1).astype("<f2")
        # The first half of a block is in the low bits.
        whole = steps[:, : BLOCK // 2] | (steps[:, BLOCK // 2 :] << 4)
        return np.hstack([scales.view(np.uint8), whole]).tobytes()
    if bits == 32:
        return np.ascontiguousarray(values, "<f4").tobytes()
    blocks = values.reshape(-1, BLOCK)
    top = 127 if bits == 8 else 7
    scales = (np.abs(blocks).max(axis=1, keepdims=True) / top).astype("<f2")
    steps = np.divide(blocks, scales, out=np.zeros_like(blocks), where=scales > 0)
    whole = np.clip(np.rint(steps), -top, top).astype(np.int8)
    if bits == 4:
        # The first half of a block is in the low bits, shifted to be above zero.
        raised = (whole + 8).astype(np.uint8)
        whole = raised[:, : BLOCK // 2] | (raised[:, BLOCK // 2 :] << 4)
    return np.hstack([scales.view(np.uint8), whole.view(np.uint8)]).tobytes()
