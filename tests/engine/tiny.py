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
) -> onnx.ModelProto:
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
        if weights == "dynamic":
            scale = np.abs(weight).max(0) / 63
            q = np.round(weight / scale).astype(np.int8)
            return node(
                "DynamicQuantizeMatMul",
                [x, const(name + ".w", q), const(name + ".s", scale.astype(np.float32))],
                [name],
                ms,
            )
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
    if lengths == "mask":
        inputs.append(
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total"])
        )
        one = const("one", np.array([1], np.int64))
        node("ReduceSum", ["attention_mask", one], ["mask_sum"], keepdims=1)
        node("Sub", ["mask_sum", one], ["last"])
        node("Cast", ["last"], ["seqlens_k"], to=TensorProto.INT32)
        node("Shape", ["attention_mask"], ["mask_shape"])
        node("Gather", ["mask_shape", const("one_s", np.array(1, np.int64))], ["total64"], axis=0)
        node("Cast", ["total64"], ["total_sequence_length"], to=TensorProto.INT32)
    else:
        inputs += [
            helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, ["batch"]),
            helper.make_tensor_value_info("total_sequence_length", TensorProto.INT32, []),
        ]
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
        cache = ["batch", shape.kv_heads, "past", shape.head_dim]
        for kind in ("key", "value"):
            inputs.append(
                helper.make_tensor_value_info(
                    f"past_key_values.{i}.{kind}", TensorProto.FLOAT, cache
                )
            )
            outputs.append(
                helper.make_tensor_value_info(
                    f"present.{i}.{kind}",
                    TensorProto.FLOAT,
                    ["batch", shape.kv_heads, "total", shape.head_dim],
                )
            )
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
