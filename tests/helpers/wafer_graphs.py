"""Small ONNX decoders for the wafer tests: fused as the shipped model, and written out like an
export of Qwen2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]


@dataclass
class Sizes:
    """Dimensions of a test decoder."""

    layers: int = 3
    width: int = 128
    heads: int = 4
    kv_heads: int = 2
    ffn: int = 256
    vocab: int = 512
    capacity: int = 64

    @property
    def head(self) -> int:
        return self.width // self.heads


@dataclass
class Builder:
    """Collects nodes, initialisers, inputs and outputs."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    nodes: list[Any] = field(default_factory=list)
    tensors: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def tensor(self, name: str, value: Array) -> str:
        self.tensors.append(numpy_helper.from_array(value, name))
        return name

    def random(self, name: str, *shape: int) -> str:
        return self.tensor(name, (self.rng.standard_normal(shape) * 0.05).astype(np.float32))

    def op(
        self, kind: str, inputs: list[str], output: str | list[str], name: str, **attrs: Any
    ) -> str:
        outputs = [output] if isinstance(output, str) else output
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, **attrs))
        return outputs[0]

    def contrib(
        self, kind: str, inputs: list[str], output: str | list[str], name: str, **attrs: Any
    ) -> str:
        return self.op(kind, inputs, output, name, domain="com.microsoft", **attrs)

    def save(self, path: Path) -> Path:
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.tensors)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)],
            ir_version=10,
        )
        onnx.save(model, str(path))
        return path


def fused_decoder(path: Path, sizes: Sizes | None = None) -> Path:
    """GroupQueryAttention with packed QKV, MatMulNBits (4 bit), skip norms: the shipped model's
    layout.
    """
    z, b = sizes or Sizes(), Builder()
    d, hd, kv = z.width, z.head, z.kv_heads
    b.inputs += [
        helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "s"]),
        helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, [1]),
        helper.make_tensor_value_info("total_sequence_length", TensorProto.INT32, []),
    ]

    def project(x: str, y: str, k: int, n: int, name: str) -> None:
        blocks = k // 32
        quantised = b.rng.integers(0, 255, (n, blocks, 16), dtype=np.uint8)
        weights = b.tensor(name + ".q", quantised)
        scales = b.tensor(name + ".s", np.full(n * blocks, 0.01, np.float32))
        b.contrib("MatMulNBits", [x, weights, scales], y, name, K=k, N=n, bits=4, block_size=32)

    b.random("embed", z.vocab, d)
    b.random("cos", z.capacity, hd // 2)
    b.random("sin", z.capacity, hd // 2)
    x = residual = b.op("Gather", ["embed", "input_ids"], "x0", "/model/embed_tokens/Gather")
    for i in range(z.layers):
        p = f"/model/layers.{i}"
        one, two = b.random(f"n1.{i}", d), b.random(f"n2.{i}", d)
        if i == 0:
            b.op("SimplifiedLayerNormalization", [x, one], f"a{i}", p + "/input_norm", epsilon=1e-6)
        else:
            outs = [f"a{i}", "", "", f"r{i}"]
            b.contrib(
                "SkipSimplifiedLayerNormalization", [residual, x, one], outs, p + "/input_norm"
            )
            residual = f"r{i}"
        project(f"a{i}", f"qkv{i}", d, d + 2 * kv * hd, p + "/attn/qkv_proj/MatMul_Q4")
        cache = [f"past_key_values.{i}.key", f"past_key_values.{i}.value"]
        fresh = [f"present.{i}.key", f"present.{i}.value"]
        for name in cache:
            info = helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, kv, z.capacity, hd])
            b.inputs.append(info)
        for name in fresh:
            info = helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, kv, z.capacity, hd])
            b.outputs.append(info)
        b.contrib(
            "GroupQueryAttention",
            [f"qkv{i}", "", "", *cache, "seqlens_k", "total_sequence_length", "cos", "sin"],
            [f"att{i}", *fresh],
            p + "/attn/GroupQueryAttention",
            num_heads=z.heads,
            kv_num_heads=kv,
            do_rotary=1,
        )
        project(f"att{i}", f"o{i}", d, d, p + "/attn/o_proj/MatMul_Q4")
        outs = [f"b{i}", "", "", f"rr{i}"]
        b.contrib(
            "SkipSimplifiedLayerNormalization", [residual, f"o{i}", two], outs, p + "/post_norm"
        )
        residual = f"rr{i}"
        project(f"b{i}", f"g{i}", d, z.ffn, p + "/mlp/gate_proj/MatMul_Q4")
        project(f"b{i}", f"u{i}", d, z.ffn, p + "/mlp/up_proj/MatMul_Q4")
        b.op("Sigmoid", [f"g{i}"], f"sg{i}", p + "/mlp/act_fn/Sigmoid")
        b.op("Mul", [f"g{i}", f"sg{i}"], f"si{i}", p + "/mlp/act_fn/Mul")
        b.op("Mul", [f"si{i}", f"u{i}"], f"m{i}", p + "/mlp/Mul")
        project(f"m{i}", f"x{i + 1}", z.ffn, d, p + "/mlp/down_proj/MatMul_Q4")
        x = f"x{i + 1}"
    b.random("nf", d)
    b.contrib(
        "SkipSimplifiedLayerNormalization",
        [residual, x, "nf"],
        ["final", "", "", ""],
        f"/model/layers.{z.layers}/final_norm",
    )
    project("final", "logits", d, z.vocab, "/lm_head/MatMul_Q4")
    b.outputs.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "s", z.vocab]))
    return b.save(path)


def qwen2_like(path: Path, sizes: Sizes | None = None, unknown: str = "") -> Path:
    """Written out: RMS norm from Pow and ReduceMean, biased q/k/v, rotary by halves, Concat cache,
    Softmax.

    Args:
        path: Where to save.
        sizes: Dimensions.
        unknown: Operator type inserted before the down projection of layer 0 (in a foreign domain).
    """
    z, b = sizes or Sizes(), Builder()
    d, hd = z.width, z.head
    group = z.heads // z.kv_heads
    b.inputs.append(helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "seq"]))
    b.random("embed", z.vocab, d)
    b.tensor("two", np.array(2.0, np.float32))
    b.tensor("eps", np.array(1e-6, np.float32))
    b.tensor("scale", np.array(hd**-0.5, np.float32))
    b.tensor("half", np.array([hd // 2], np.int64))
    b.tensor("zero", np.array([0], np.int64))
    b.tensor("end", np.array([2**31 - 1], np.int64))
    b.tensor("last", np.array([-1], np.int64))
    b.tensor("q.shape", np.array([0, 0, z.heads, hd], np.int64))
    b.tensor("kv.shape", np.array([0, 0, z.kv_heads, hd], np.int64))
    b.tensor("kv.group", np.array([0, z.heads, -1, hd], np.int64))
    b.tensor("group.axis", np.array([2], np.int64))
    b.tensor("group.tile", np.array([1, 1, group, 1, 1], np.int64))
    b.tensor("flat", np.array([0, 0, d], np.int64))
    b.random("cos", 1, 1, 1, hd)
    b.random("sin", 1, 1, 1, hd)

    def norm(x: str, tag: str, name: str) -> str:
        b.op("Pow", [x, "two"], f"{tag}.sq", name + "/Pow")
        b.op("ReduceMean", [f"{tag}.sq", "last"], f"{tag}.mean", name + "/ReduceMean", keepdims=1)
        b.op("Add", [f"{tag}.mean", "eps"], f"{tag}.eps", name + "/Add")
        b.op("Sqrt", [f"{tag}.eps"], f"{tag}.root", name + "/Sqrt")
        b.op("Div", [x, f"{tag}.root"], f"{tag}.unit", name + "/Div")
        return b.op("Mul", [f"{tag}.unit", b.random(f"{tag}.w", d)], f"{tag}.out", name + "/Mul")

    def linear(x: str, tag: str, k: int, n: int, name: str, bias: bool = False) -> str:
        y = b.op("MatMul", [x, b.random(f"{tag}.w", k, n)], f"{tag}.mm", name + "/MatMul")
        return b.op("Add", [y, b.random(f"{tag}.b", n)], f"{tag}.out", name + "/Add") if bias else y

    def rotate(x: str, tag: str, name: str) -> str:
        axis = b.tensor(f"{tag}.axis", np.array([3], np.int64))
        b.op("Slice", [x, "zero", "half", axis], f"{tag}.lo", name + "/Slice")
        b.op("Slice", [x, "half", "end", axis], f"{tag}.hi", name + "/Slice_1")
        b.op("Neg", [f"{tag}.hi"], f"{tag}.neg", name + "/Neg")
        b.op("Concat", [f"{tag}.neg", f"{tag}.lo"], f"{tag}.rot", name + "/Concat", axis=3)
        b.op("Mul", [x, "cos"], f"{tag}.c", name + "/Mul")
        b.op("Mul", [f"{tag}.rot", "sin"], f"{tag}.s", name + "/Mul_1")
        return b.op("Add", [f"{tag}.c", f"{tag}.s"], f"{tag}.pos", name + "/Add")

    x = b.op("Gather", ["embed", "input_ids"], "x0", "/model/embed_tokens/Gather")
    for i in range(z.layers):
        p = f"/model/layers.{i}"
        a = norm(x, f"n1.{i}", p + "/input_layernorm")
        heads: dict[str, str] = {}
        for part, count in (("q", z.heads), ("k", z.kv_heads), ("v", z.kv_heads)):
            base = f"{p}/self_attn/{part}_proj"
            y = linear(a, f"{part}.{i}", d, count * hd, base, bias=True)
            shape = "q.shape" if part == "q" else "kv.shape"
            y = b.op("Reshape", [y, shape], f"{part}.{i}.4d", base + "/Reshape")
            heads[part] = b.op(
                "Transpose", [y], f"{part}.{i}.t", base + "/Transpose", perm=[0, 2, 1, 3]
            )
        for part in ("q", "k"):
            heads[part] = rotate(heads[part], f"{part}.{i}", f"{p}/self_attn/{part}_rotary")
        for part, long in (("k", "key"), ("v", "value")):
            dims = ["batch", z.kv_heads, "past", hd]
            info = helper.make_tensor_value_info(
                f"past_key_values.{i}.{long}", TensorProto.FLOAT, dims
            )
            b.inputs.append(info)
            name = f"present.{i}.{long}"
            past = f"past_key_values.{i}.{long}"
            b.op("Concat", [past, heads[part]], name, f"{p}/self_attn/{part}_cache", axis=2)
            out = helper.make_tensor_value_info(
                name, TensorProto.FLOAT, ["batch", z.kv_heads, "t", hd]
            )
            b.outputs.append(out)
            y = b.op("Unsqueeze", [name, "group.axis"], f"{part}.{i}.u", f"{p}/self_attn/{part}_u")
            y = b.op("Tile", [y, "group.tile"], f"{part}.{i}.tile", f"{p}/self_attn/{part}_tile")
            heads[part] = b.op(
                "Reshape", [y, "kv.group"], f"{part}.{i}.all", f"{p}/self_attn/{part}_r"
            )
        key = b.op("Transpose", [heads["k"]], f"k.{i}.T", p + "/self_attn/kT", perm=[0, 1, 3, 2])
        s = b.op("MatMul", [heads["q"], key], f"s.{i}", p + "/self_attn/scores/MatMul")
        s = b.op("Mul", [s, "scale"], f"s.{i}.scaled", p + "/self_attn/scale/Mul")
        s = b.op("Softmax", [s], f"s.{i}.soft", p + "/self_attn/Softmax", axis=-1)
        y = b.op("MatMul", [s, heads["v"]], f"y.{i}", p + "/self_attn/values/MatMul")
        y = b.op("Transpose", [y], f"y.{i}.t", p + "/self_attn/back", perm=[0, 2, 1, 3])
        y = b.op("Reshape", [y, "flat"], f"y.{i}.flat", p + "/self_attn/Reshape")
        y = linear(y, f"o.{i}", d, d, p + "/self_attn/o_proj")
        x = b.op("Add", [x, y], f"res1.{i}", p + "/Add")
        h = norm(x, f"n2.{i}", p + "/post_attention_layernorm")
        gate = linear(h, f"gate.{i}", d, z.ffn, p + "/mlp/gate_proj")
        up = linear(h, f"up.{i}", d, z.ffn, p + "/mlp/up_proj")
        act = b.op("Sigmoid", [gate], f"sig.{i}", p + "/mlp/act_fn/Sigmoid")
        act = b.op("Mul", [gate, act], f"silu.{i}", p + "/mlp/act_fn/Mul")
        m = b.op("Mul", [act, up], f"m.{i}", p + "/mlp/Mul")
        if unknown and i == 0:
            m = b.contrib(unknown, [m], "odd.out", p + "/mlp/odd")
        y = linear(m, f"down.{i}", z.ffn, d, p + "/mlp/down_proj")
        x = b.op("Add", [x, y], f"res2.{i}", p + "/Add_1")
    x = norm(x, "nf", "/model/norm")
    b.op("MatMul", [x, b.random("head.w", d, z.vocab)], "logits", "/lm_head/MatMul")
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "seq", z.vocab])
    b.outputs.append(out)
    return b.save(path)


def mixture(path: Path, quantised: bool) -> Path:
    """One attention and one MoE or QMoE node between projections; structure only, never run."""
    d, inner, experts, b = 128, 64, 8, Builder()
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "s"])
    b.inputs.append(ids)
    b.random("embed", 300, d)
    x = b.op("Gather", ["embed", "input_ids"], "x0", "/model/embed_tokens/Gather")
    p = "/model/layers.0"
    a = b.op("SimplifiedLayerNormalization", [x, b.random("n1", d)], "a", p + "/norm")
    q = b.op("MatMul", [a, b.random("qkv.w", d, 3 * d)], "qkv", p + "/qkv/MatMul")
    y = b.contrib(
        "GroupQueryAttention", [q, "", ""], "att", p + "/gqa", num_heads=4, kv_num_heads=4
    )
    y = b.op("MatMul", [y, b.random("o.w", d, d)], "o", p + "/o/MatMul")
    outs = ["b", "", "", "r"]
    h = b.contrib("SkipSimplifiedLayerNormalization", [x, y, b.random("n2", d)], outs, p + "/post")
    r = b.op("MatMul", [h, b.random("router.w", d, experts)], "router", p + "/router/MatMul")
    if quantised:
        up = b.tensor("up", np.zeros((experts, d, inner), np.uint8))  # two 4-bit weights a byte
        down = b.tensor("down", np.zeros((experts, inner, d // 2), np.uint8))
        inputs = [
            h,
            r,
            up,
            b.random("us", experts, 2 * inner),
            "",
            down,
            b.random("ds", experts, d),
        ]
        m = b.contrib("QMoE", inputs, "m", p + "/moe", k=2, expert_weight_bits=4)
    else:
        up = b.random("up", experts, 2 * inner, d)
        down = b.random("down", experts, d, inner)
        m = b.contrib("MoE", [h, r, up, "", down, ""], "m", p + "/moe", k=2)
    outs = ["f", "", "", ""]
    f = b.contrib(
        "SkipSimplifiedLayerNormalization", ["r", m, b.random("nf", d)], outs, "/model/norm"
    )
    b.op("MatMul", [f, b.random("head.w", d, 300)], "logits", "/lm_head/MatMul")
    b.outputs.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "s", 300]))
    return b.save(path)
