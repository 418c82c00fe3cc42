"""Random-weight decoders for engine tests: weights, a NumPy reference, graphs in several dialects.

Graphs come from `decoders`; other exporters' ways of feeding lengths and of keeping
a cache are made by rewriting them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.helpers.decoders import (
    BLOCK_SIZE,
    DecoderShape,
    build_decoder,
    product_names,
    quantise,
    weight_shapes,
)

Array = np.ndarray[Any, Any]


def make_shape(**sizes: Any) -> DecoderShape:
    """A small decoder; `head_size` is what `width` and `heads` leave unless given."""
    small: dict[str, Any] = {
        "vocab": 300,
        "width": 64,
        "layers": 2,
        "heads": 4,
        "kv_heads": 2,
        "hidden": 160,
        "context": 512,
    }
    merged = {**small, **sizes}
    merged.setdefault("head_size", merged["width"] // merged["heads"])
    return DecoderShape(**merged)


def random_weights(shape: DecoderShape, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    half = shape.head_size // 2
    angle = np.arange(shape.context)[:, None] / 10000.0 ** (np.arange(half) / half)
    weights: dict[str, Array] = {}
    for name, size in weight_shapes(shape).items():
        if name in ("cos", "sin"):
            value = np.cos(angle) if name == "cos" else np.sin(angle)
        elif name.endswith("norm"):
            value = rng.uniform(0.5, 1.5, size)
        elif name == "embedding":
            value = rng.standard_normal(size)
        else:
            value = rng.standard_normal(size) / np.sqrt(size[0])
        weights[name] = value.astype(np.float32)
    return weights


def dequantised(matrix: Array, bits: int, block: int = BLOCK_SIZE) -> Array:
    """The matrix that its quantised form stands for."""
    inputs, outputs = matrix.shape
    stored, scales = quantise(matrix, bits, block)
    if bits == 4:
        stored = np.stack([stored & 15, stored >> 4], axis=-1).reshape(outputs, -1, block)
    values = (stored.astype(np.float32) - (1 << (bits - 1))) * scales.reshape(outputs, -1, 1)
    return np.ascontiguousarray(values.reshape(outputs, -1)[:, :inputs].T)


class _Precise(Mapping[str, Array]):
    """Weights in float64, made one by one when they are read, to save memory."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self._weights = weights

    def __getitem__(self, name: str) -> Array:
        return self._weights[name].astype(np.float64)

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)


def reference_logits(
    shape: DecoderShape, weights: Mapping[str, Array], ids: list[int], cache: Any = np.float32
) -> Array:
    """Logits [len(ids), vocab] of the whole sequence, in float64.

    Keys and values are rounded to float16 if the cache is of that type.
    """
    w = _Precise(weights)
    count, size, half = len(ids), shape.head_size, shape.head_size // 2
    cos, sin = (weights[name][:count, None].astype(np.float64) for name in ("cos", "sin"))

    def kept(rows: Array) -> Array:
        return rows.astype(cache).astype(np.float64) if cache == np.float16 else rows

    def norm(x: Array, gain: Array) -> Array:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + shape.epsilon) * gain

    def rotate(x: Array) -> Array:
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    x = weights["embedding"][ids].astype(np.float64)
    future = np.triu(np.full((count, count), -np.inf), 1)
    repeat = shape.heads // shape.kv_heads
    for layer in range(shape.layers):
        at = f"layers.{layer}"
        packed = norm(x, w[f"{at}.attention_norm"]) @ w[f"{at}.qkv"] + w[f"{at}.qkv_bias"]
        cuts = [shape.heads * size, (shape.heads + shape.kv_heads) * size]
        q, k, v = (part.reshape(count, -1, size) for part in np.split(packed, cuts, -1))
        k, v = kept(rotate(k)).repeat(repeat, 1), kept(v).repeat(repeat, 1)
        score = np.einsum("qhd,khd->hqk", rotate(q), k) / np.sqrt(size) + future
        share = np.exp(score - score.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        x = x + np.einsum("hqk,khd->qhd", share, v).reshape(count, -1) @ w[f"{at}.out"]
        both = norm(x, w[f"{at}.hidden_norm"]) @ w[f"{at}.gate_up"]
        gate, up = np.split(both, 2, -1)
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[f"{at}.down"]
    return norm(x, w["final_norm"]) @ w["head"]


def build(
    shape: DecoderShape,
    weights: dict[str, Array],
    bits: int = 32,
    dialect: str = "mask",
    cache: int = TensorProto.FLOAT,
    block: int = BLOCK_SIZE,
) -> onnx.ModelProto:
    """A graph that is fed lengths as a "mask", as "seqlens", or as "positions".

    With "positions", attention is made of plain operators and the cache (of element type `cache`)
    is concatenated at every step, as most exporters write it.
    """
    model = build_decoder(shape, weights, bits=bits, block=block)
    if dialect == "seqlens":
        _lengths_as_inputs(model)
    elif dialect == "positions":
        _plain_attention(model, shape, cache)
    return model


def build_integer(shape: DecoderShape, weights: dict[str, Array]) -> onnx.ModelProto:
    """A graph of integer products, activations of which are rounded in equal steps."""
    return build_decoder(shape, weights, steps=dict.fromkeys(product_names(shape), 0.05))


def _value(name: str, kind: int, dims: list[Any]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def _drop(model: onnx.ModelProto, outputs: set[str]) -> None:
    """Remove the nodes that make these tensors."""
    kept = [node for node in model.graph.node if not outputs & set(node.output)]
    del model.graph.node[:]
    model.graph.node.extend(kept)


def _lengths_as_inputs(model: onnx.ModelProto) -> None:
    mask = {"mask_sum", "last_position", "seqlens_k", "mask_shape", "mask_length"}
    _drop(model, mask | {"total_sequence_length"})
    model.graph.input.remove(next(i for i in model.graph.input if i.name == "attention_mask"))
    model.graph.input.append(_value("seqlens_k", TensorProto.INT32, [1]))
    model.graph.input.append(_value("total_sequence_length", TensorProto.INT32, []))


class _Writer:
    """Adds nodes and constants to a list."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.nodes: list[onnx.NodeProto] = []

    def constant(self, name: str, value: Any, dtype: Any = np.int64) -> str:
        tensor = numpy_helper.from_array(np.asarray(value, dtype), name)
        self.graph.initializer.append(tensor)
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output


def _plain_attention(model: onnx.ModelProto, shape: DecoderShape, cache: int) -> None:
    """Replace every GroupQueryAttention by what it means."""
    graph = model.graph
    _drop(model, {"mask_sum", "last_position", "seqlens_k", "total_sequence_length"})
    graph.input.append(_value("position_ids", TensorProto.INT64, [1, "sequence_length"]))
    for info in [*graph.input, *graph.output]:
        if "past_key" in info.name or "present" in info.name:
            info.type.tensor_type.elem_type = cache
    w = _Writer(graph)
    _masks(w)
    for node in graph.node:
        if node.op_type == "GroupQueryAttention":
            _attend(w, node, shape, cache)
        else:
            w.nodes.append(node)
    # The length of the mask is made before anything that uses it.
    first = [n for n in w.nodes if n.name in ("mask_shape", "mask_length")]
    rest = [n for n in w.nodes if n.name not in ("mask_shape", "mask_length")]
    del graph.node[:]
    graph.node.extend([*first, *rest])


def _masks(w: _Writer) -> None:
    """Additive mask and the rotary rows of this run's positions."""
    w.node("Range", [w.constant("nil", 0), "mask_length", "one_index"], "keys")
    w.node("Unsqueeze", ["position_ids", w.constant("axes_1_3", [1, 3])], "queries")
    w.node("LessOrEqual", ["keys", "queries"], "seen")
    zero, low = w.constant("zero", 0, np.float32), w.constant("low", -1e9, np.float32)
    w.node("Where", ["seen", zero, low], "bias")
    for table in ("cos", "sin"):
        w.node("Gather", [f"{table}_cache", "position_ids"], f"{table}_rows")
        w.node("Unsqueeze", [f"{table}_rows", "one"], f"{table}_here")


def _rotate(w: _Writer, x: str) -> str:
    halves = [f"{x}.a", f"{x}.b"]
    w.nodes.append(helper.make_node("Split", [x], halves, axis=-1, num_outputs=2))
    for half, other, kind in (("a", "b", "Sub"), ("b", "a", "Add")):
        w.node("Mul", [f"{x}.{half}", "cos_here"], f"{x}.{half}cos")
        w.node("Mul", [f"{x}.{other}", "sin_here"], f"{x}.{other}sin{half}")
        w.node(kind, [f"{x}.{half}cos", f"{x}.{other}sin{half}"], f"{x}.{half}turned")
    return w.node("Concat", [f"{x}.aturned", f"{x}.bturned"], f"{x}.turned", axis=-1)


def _attend(w: _Writer, node: onnx.NodeProto, shape: DecoderShape, cache: int) -> None:
    at, size = node.output[0], shape.head_size
    counts = {"q": shape.heads, "k": shape.kv_heads, "v": shape.kv_heads}
    cuts = w.constant(f"{at}.cuts", [count * size for count in counts.values()])
    parts = [f"{at}.{part}" for part in counts]
    w.nodes.append(helper.make_node("Split", [node.input[0], cuts], parts, axis=-1))
    for part, count in counts.items():
        dims = w.constant(f"{at}.{part}.dims", [0, -1, count, size])
        w.node("Reshape", [f"{at}.{part}", dims], f"{at}.{part}4")
        w.node("Transpose", [f"{at}.{part}4"], f"{at}.{part}h", perm=[0, 2, 1, 3])
    new = [_rotate(w, f"{at}.kh"), f"{at}.vh"]
    rows = [
        _with_past(w, f"{at}.{index}", node.input[3 + index], part, node.output[1 + index], cache)
        for index, part in enumerate(new)
    ]
    keys, values = (_repeat(w, name, shape) for name in rows)
    w.node("Transpose", [keys], f"{at}.kt", perm=[0, 1, 3, 2])
    w.node("MatMul", [_rotate(w, f"{at}.qh"), f"{at}.kt"], f"{at}.raw")
    w.node("Mul", [f"{at}.raw", w.constant(f"{at}.by", size**-0.5, np.float32)], f"{at}.scaled")
    w.node("Add", [f"{at}.scaled", "bias"], f"{at}.masked")
    w.node("Softmax", [f"{at}.masked"], f"{at}.share", axis=-1)
    w.node("MatMul", [f"{at}.share", values], f"{at}.mixed")
    w.node("Transpose", [f"{at}.mixed"], f"{at}.mixed4", perm=[0, 2, 1, 3])
    w.node("Reshape", [f"{at}.mixed4", w.constant(f"{at}.flat", [0, -1, shape.heads * size])], at)


def _with_past(w: _Writer, at: str, past: str, rows: str, present: str, cache: int) -> str:
    w.node("Cast", [rows], f"{at}.cast", to=cache)
    w.node("Concat", [past, f"{at}.cast"], present, axis=2)
    return w.node("Cast", [present], f"{at}.all", to=TensorProto.FLOAT)


def _repeat(w: _Writer, rows: str, shape: DecoderShape) -> str:
    """Give every query head its rows."""
    times = [1, 1, shape.heads // shape.kv_heads, 1, 1]
    w.node("Unsqueeze", [rows, w.constant(f"{rows}.axis", [2])], f"{rows}.5")
    w.node("Tile", [f"{rows}.5", w.constant(f"{rows}.times", times)], f"{rows}.tiled")
    dims = w.constant(f"{rows}.dims", [0, shape.heads, -1, shape.head_size])
    return w.node("Reshape", [f"{rows}.tiled", dims], f"{rows}.full")
