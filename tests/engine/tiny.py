"""Random-weight decoder graphs and a NumPy reference of the same mathematics, for engine tests.

Llama shape: RMS norms, grouped-query attention with rotary embeddings, SwiGLU, and an output matrix
of its own (a random tied one only repeats its input).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Shape:
    vocab: int = 300
    dim: int = 64
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    ffn: int = 160
    max_len: int = 512
    eps: float = 1e-5

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads


def random_weights(shape: Shape, seed: int = 0, gain: float = 1.0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    hd = shape.head_dim

    def matrix(n_in: int, n_out: int) -> Array:
        return (rng.standard_normal((n_in, n_out)) * gain / np.sqrt(n_in)).astype(np.float32)

    w: dict[str, Array] = {
        "embed": rng.standard_normal((shape.vocab, shape.dim)).astype(np.float32),
        "norm": np.ones(shape.dim, np.float32),
        "head": matrix(shape.dim, shape.vocab),
    }
    for i in range(shape.layers):
        w[f"{i}.norm1"] = rng.uniform(0.5, 1.5, shape.dim).astype(np.float32)
        w[f"{i}.norm2"] = rng.uniform(0.5, 1.5, shape.dim).astype(np.float32)
        w[f"{i}.qkv"] = matrix(shape.dim, (shape.heads + 2 * shape.kv_heads) * hd)
        w[f"{i}.out"] = matrix(shape.heads * hd, shape.dim)
        w[f"{i}.gate_up"] = matrix(shape.dim, 2 * shape.ffn)
        w[f"{i}.down"] = matrix(shape.ffn, shape.dim)
    return w


def rope_tables(shape: Shape) -> tuple[Array, Array]:
    half = shape.head_dim // 2
    freq = 1.0 / 10000.0 ** (np.arange(half) / half)
    angle = np.arange(shape.max_len)[:, None] * freq[None]
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def reference_logits(shape: Shape, w: dict[str, Array], ids: list[int]) -> Array:
    """Logits [len(ids), vocab] of the whole sequence, float64 NumPy."""
    cos, sin = (t[: len(ids)].astype(np.float64)[:, None] for t in rope_tables(shape))
    hd, half = shape.head_dim, shape.head_dim // 2
    w64 = {k: v.astype(np.float64) for k, v in w.items()}

    def norm(x: Array, g: Array) -> Array:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + shape.eps) * g

    def rope(x: Array) -> Array:
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    x = w64["embed"][ids]
    n = len(ids)
    mask = np.triu(np.full((n, n), -np.inf), 1)
    for i in range(shape.layers):
        h = norm(x, w64[f"{i}.norm1"]) @ w64[f"{i}.qkv"]
        q, k, v = np.split(h, [shape.heads * hd, (shape.heads + shape.kv_heads) * hd], -1)
        q = rope(q.reshape(n, shape.heads, hd))
        k = rope(k.reshape(n, shape.kv_heads, hd)).repeat(shape.heads // shape.kv_heads, 1)
        v = v.reshape(n, shape.kv_heads, hd).repeat(shape.heads // shape.kv_heads, 1)
        score = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(hd) + mask
        p = np.exp(score - score.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + np.einsum("hqk,khd->qhd", p, v).reshape(n, -1) @ w64[f"{i}.out"]
        gate, up = np.split(norm(x, w64[f"{i}.norm2"]) @ w64[f"{i}.gate_up"], 2, -1)
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w64[f"{i}.down"]
    return norm(x, w64["norm"]) @ w64["head"]


def quantize(weight: Array, bits: int, block: int) -> tuple[Array, Array]:
    """[K, N] to MatMulNBits' packed B [N, K/block, block*bits/8] and scales [N, K/block]."""
    k, n = weight.shape
    blocks = weight.T.reshape(n, k // block, block)
    top = 2 ** (bits - 1)
    scale = np.abs(blocks).max(-1) / (top - 1)
    q = np.clip(np.round(blocks / np.maximum(scale, 1e-9)[..., None]), -top, top - 1) + top
    q = q.astype(np.uint8)
    if bits == 4:
        q = q[..., 0::2] | (q[..., 1::2] << 4)
    return q, scale.astype(np.float32)


def build(
    shape: Shape,
    w: dict[str, Array],
    weights: str = "fp32",
    lengths: str = "mask",
    accuracy: int = 4,
    block: int = 32,
    cache: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """Build a graph.

    `weights`: fp32, int4, int8 (MatMulNBits). `lengths`: "mask" and "seqlens" use
    GroupQueryAttention, "positions" plain operators with a cache that is concatenated.
    """
    nodes: list[onnx.NodeProto] = []
    inits: list[onnx.TensorProto] = []

    def const(name: str, value: Array) -> str:
        inits.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(op: str, inputs: list[str], outputs: list[str], domain: str = "", **attrs: Any) -> str:
        nodes.append(helper.make_node(op, inputs, outputs, domain=domain, name=outputs[0], **attrs))
        return outputs[0]

    ms = "com.microsoft"

    def matmul(x: str, weight: Array, name: str) -> str:
        if weights == "fp32":
            return node("MatMul", [x, const(name + ".w", weight)], [name])
        bits = int(weights[3:])
        q, scale = quantize(weight, bits, block)
        return node(
            "MatMulNBits",
            [x, const(name + ".q", q), const(name + ".s", scale.reshape(-1))],
            [name],
            ms,
            K=weight.shape[0],
            N=weight.shape[1],
            bits=bits,
            block_size=block,
            accuracy_level=accuracy,
        )

    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "seq"])]

    def take(name: str, kind: int, dims: list[Any]) -> None:
        inputs.append(helper.make_tensor_value_info(name, kind, dims))

    one = const("one", np.array([1], np.int64))
    if lengths != "seqlens":
        take("attention_mask", TensorProto.INT64, ["batch", "total"])
        node("Shape", ["attention_mask"], ["mask_shape"])
        node("Gather", ["mask_shape", const("one_s", np.array(1, np.int64))], ["total64"], axis=0)
    if lengths == "mask":
        node("ReduceSum", ["attention_mask", one], ["mask_sum"], keepdims=1)
        node("Sub", ["mask_sum", one], ["last"])
        node("Cast", ["last"], ["seqlens_k"], to=TensorProto.INT32)
        node("Cast", ["total64"], ["total_sequence_length"], to=TensorProto.INT32)
    elif lengths == "seqlens":
        take("seqlens_k", TensorProto.INT32, ["batch"])
        take("total_sequence_length", TensorProto.INT32, [])
    else:
        take("position_ids", TensorProto.INT64, ["batch", "seq"])
        zero = const("zero_s", np.array(0, np.int64))
        node("Range", [zero, "total64", "one_s"], ["keys"])
        node("Unsqueeze", ["position_ids", const("ax13", np.array([1, 3], np.int64))], ["queries"])
        node("LessOrEqual", ["keys", "queries"], ["seen"])
        node(
            "Where",
            ["seen", const("nought", np.float32(0)), const("low", np.float32(-1e9))],
            ["bias"],
        )
        for table in ("cos", "sin"):
            node("Gather", [table, "position_ids"], [table + "_rows"])
            node("Unsqueeze", [table + "_rows", one], [table + "_here"])

    def rotated(x: str) -> str:
        node("Split", [x], [x + ".a", x + ".b"], axis=-1, num_outputs=2)
        for half, other, op in (("a", "b", "Sub"), ("b", "a", "Add")):
            node("Mul", [f"{x}.{half}", "cos_here"], [f"{x}.{half}c"])
            node("Mul", [f"{x}.{other}", "sin_here"], [f"{x}.{other}s"])
            node(op, [f"{x}.{half}c", f"{x}.{other}s"], [f"{x}.{half}r"])
        return node("Concat", [x + ".ar", x + ".br"], [x + ".rot"], axis=-1)

    def plain_attention(i: int, qkv: str) -> str:
        """Softmax attention over past and new rows, in operators that every exporter uses."""
        hd, repeat = shape.head_dim, shape.heads // shape.kv_heads
        sizes = np.array([shape.heads * hd, shape.kv_heads * hd, shape.kv_heads * hd], np.int64)
        node("Split", [qkv, const(f"{i}.sizes", sizes)], [f"{i}.{n}" for n in "qkv"], axis=-1)
        for name, count in (("q", shape.heads), ("k", shape.kv_heads), ("v", shape.kv_heads)):
            dims = const(f"{i}.{name}.dims", np.array([0, -1, count, hd], np.int64))
            node("Reshape", [f"{i}.{name}", dims], [f"{i}.{name}4"])
            node("Transpose", [f"{i}.{name}4"], [f"{i}.{name}h"], perm=[0, 2, 1, 3])
        new = {"key": rotated(f"{i}.kh"), "value": f"{i}.vh"}
        full: dict[str, str] = {}
        for kind, rows in new.items():
            node("Cast", [rows], [f"{i}.{kind}.cast"], to=cache)
            node(
                "Concat",
                [f"past_key_values.{i}.{kind}", f"{i}.{kind}.cast"],
                [f"present.{i}.{kind}"],
                axis=2,
            )
            node("Cast", [f"present.{i}.{kind}"], [f"{i}.{kind}.all"], to=TensorProto.FLOAT)
            node(
                "Unsqueeze",
                [f"{i}.{kind}.all", const(f"{i}.{kind}.ax", np.array([2], np.int64))],
                [f"{i}.{kind}.5"],
            )
            times = np.array([1, 1, repeat, 1, 1], np.int64)
            node("Tile", [f"{i}.{kind}.5", const(f"{i}.{kind}.times", times)], [f"{i}.{kind}.rep"])
            dims = const(f"{i}.{kind}.dims", np.array([0, shape.heads, -1, hd], np.int64))
            full[kind] = node("Reshape", [f"{i}.{kind}.rep", dims], [f"{i}.{kind}.full"])
        node("Transpose", [full["key"]], [f"{i}.kt"], perm=[0, 1, 3, 2])
        node("MatMul", [rotated(f"{i}.qh"), f"{i}.kt"], [f"{i}.raw"])
        node("Mul", [f"{i}.raw", const(f"{i}.scale", np.float32(hd**-0.5))], [f"{i}.scaled"])
        node("Add", [f"{i}.scaled", "bias"], [f"{i}.masked"])
        node("Softmax", [f"{i}.masked"], [f"{i}.p"], axis=-1)
        node("MatMul", [f"{i}.p", full["value"]], [f"{i}.ctx"])
        node("Transpose", [f"{i}.ctx"], [f"{i}.ctx4"], perm=[0, 2, 1, 3])
        dims = const(f"{i}.flat", np.array([0, -1, shape.heads * hd], np.int64))
        return node("Reshape", [f"{i}.ctx4", dims], [f"{i}.attn"])

    cos, sin = rope_tables(shape)
    const("cos", cos)
    const("sin", sin)
    outputs = [
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "seq", shape.vocab])
    ]
    x = node("Gather", [const("embed", w["embed"]), "input_ids"], ["x0"])
    h = node(
        "SimplifiedLayerNormalization",
        [x, const("0.norm1", w["0.norm1"])],
        ["0.n1"],
        axis=-1,
        epsilon=shape.eps,
        stash_type=1,
    )
    for i in range(shape.layers):
        qkv = matmul(h, w[f"{i}.qkv"], f"{i}.qkv_out")
        dims = ["batch", shape.kv_heads, "past", shape.head_dim]
        for kind in ("key", "value"):
            take(f"past_key_values.{i}.{kind}", cache, dims)
            outputs.append(
                helper.make_tensor_value_info(
                    f"present.{i}.{kind}", cache, ["batch", shape.kv_heads, "all", shape.head_dim]
                )
            )
        if lengths == "positions":
            a = plain_attention(i, qkv)
        else:
            a = node(
                "GroupQueryAttention",
                [
                    qkv,
                    "",
                    "",
                    f"past_key_values.{i}.key",
                    f"past_key_values.{i}.value",
                    "seqlens_k",
                    "total_sequence_length",
                    "cos",
                    "sin",
                ],
                [f"{i}.attn", f"present.{i}.key", f"present.{i}.value"],
                ms,
                num_heads=shape.heads,
                kv_num_heads=shape.kv_heads,
                do_rotary=1,
            )
        o = matmul(a, w[f"{i}.out"], f"{i}.proj")
        node(
            "SkipSimplifiedLayerNormalization",
            [x, o, const(f"{i}.norm2", w[f"{i}.norm2"])],
            [f"{i}.n2", "", "", f"{i}.mid"],
            ms,
            epsilon=shape.eps,
        )
        x = f"{i}.mid"
        gu = matmul(f"{i}.n2", w[f"{i}.gate_up"], f"{i}.gu")
        node("Split", [gu], [f"{i}.gate", f"{i}.up"], axis=-1, num_outputs=2)
        node("Sigmoid", [f"{i}.gate"], [f"{i}.sig"])
        node("Mul", [f"{i}.gate", f"{i}.sig"], [f"{i}.silu"])
        node("Mul", [f"{i}.silu", f"{i}.up"], [f"{i}.act"])
        d = matmul(f"{i}.act", w[f"{i}.down"], f"{i}.down_out")
        last = i + 1 == shape.layers
        gname = "norm" if last else f"{i + 1}.norm1"
        node(
            "SkipSimplifiedLayerNormalization",
            [x, d, const(gname, w[gname])],
            [f"{i}.next", "", "", f"{i}.res"],
            ms,
            epsilon=shape.eps,
        )
        h, x = f"{i}.next", f"{i}.res"
    logits = matmul(h, w["head"], "logits_out")
    node("Identity", [logits], ["logits"])
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, inits)
    return helper.make_model(
        graph,
        ir_version=10,
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(ms, 1)],
    )
