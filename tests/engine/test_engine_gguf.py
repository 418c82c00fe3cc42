"""A folder's model as GGUF, read back."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from midstream.bench.gguf import NotWritableError, write_gguf
from tests.helpers.folders import bare_folder
from tests.helpers.tiny import Array, build, make_shape, random_weights

SHAPE = make_shape(width=64, hidden=96, context=256)


class Reader:
    """Reads a GGUF file as its specification says."""

    def __init__(self, path: Path) -> None:
        self._data, self._at = path.read_bytes(), 0
        assert self._take("4s") == b"GGUF"
        version, tensors, facts = (self._take(kind) for kind in "IQQ")
        assert version == 3
        self.facts: dict[str, Any] = {}
        for _ in range(facts):
            key = self._string()
            kind = self._take("I")
            self.facts[key] = self._string() if kind == 8 else self._take({4: "I", 6: "f"}[kind])
        table: dict[str, tuple[tuple[int, ...], int, int]] = {}
        for _ in range(tensors):
            name = self._string()
            sizes = tuple(self._take("Q") for _ in range(self._take("I")))
            table[name] = (sizes[::-1], self._take("I"), self._take("Q"))
        start = -(-self._at // 32) * 32
        self.tensors = {
            name: self._tensor(start + offset, sizes, kind)
            for name, (sizes, kind, offset) in table.items()
        }

    def _take(self, kind: str) -> Any:
        value = struct.unpack_from(f"<{kind}", self._data, self._at)[0]
        self._at += struct.calcsize(f"<{kind}")
        return value

    def _string(self) -> str:
        return self._take(f"{self._take('Q')}s").decode()

    def _tensor(self, offset: int, sizes: tuple[int, ...], kind: int) -> Array:
        assert offset % 32 == 0
        count = int(np.prod(sizes))
        if kind == 0:
            return np.frombuffer(self._data, "<f4", count, offset).reshape(sizes)
        assert kind == 2
        block = [("scale", "<f2"), ("steps", "u1", 16)]
        blocks = np.frombuffer(self._data, block, count // 32, offset)
        steps = blocks["steps"].astype(np.int16)
        steps = np.hstack([steps & 15, steps >> 4]) - 8
        return (steps * blocks["scale"][:, None].astype(np.float32)).reshape(sizes)


class Built:
    """A graph of one layer with the names and the 4-bit blocks of ONNX Runtime GenAI's builder."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(8)
        self._nodes: list[onnx.NodeProto] = []
        self._held: list[onnx.TensorProto] = []
        self.weights: dict[str, Array] = {}
        width, kept = SHAPE.width, SHAPE.kv_heads * SHAPE.head_size
        self._product("/lm_head/MatMul_Q4", "lm_head", SHAPE.vocab, width)
        at = "/model/layers.0"
        self._product(f"{at}/attn/qkv_proj/MatMul_Q4", "qkv", width + 2 * kept, width)
        self._product(f"{at}/attn/o_proj/MatMul_Q4", "out", width, width)
        self._product(f"{at}/mlp/gate_proj/MatMul_Q4", "gate", SHAPE.hidden, width)
        self._product(f"{at}/mlp/up_proj/MatMul_Q4", "up", SHAPE.hidden, width)
        self._product(f"{at}/mlp/down_proj/MatMul_Q4", "down", width, SHAPE.hidden)
        heads = {"num_heads": SHAPE.heads, "kv_num_heads": SHAPE.kv_heads}
        self._node("GroupQueryAttention", f"{at}/attn/GroupQueryAttention", [], **heads)
        self._node("LayerNorm", f"{at}/input_layernorm/LayerNorm", [], epsilon=1e-5)
        tied = ["lm_head.weight", "input_ids", "lm_head.scales"]
        self._node("GatherBlockQuantized", "/model/embed_tokens/GatherBlockQuantized", tied)
        for place in ("0.input", "0.post_attention", "1.final_norm"):
            name = f"model.layers.{place}_layernorm.weight"
            self._keep(name, self._random.random(width, np.float32))
        self.bias = self._random.random(width + 2 * kept, np.float32)
        self._keep("model.layers.0.attn.qkv_proj.Add.bias", self.bias)
        angles = np.outer(np.arange(4), 10.0 ** -np.arange(SHAPE.head_size // 2))
        self._keep("cos_cache", np.cos(angles).astype(np.float32))
        self._keep("sin_cache", np.sin(angles).astype(np.float32))

    def model(self) -> onnx.ModelProto:
        return helper.make_model(helper.make_graph(self._nodes, "built", [], [], self._held))

    def _product(self, node: str, name: str, outputs: int, inputs: int) -> None:
        steps = self._random.integers(0, 16, (outputs, inputs), np.uint8)
        scales = self._random.random((outputs, inputs // 32)).astype(np.float16).astype(np.float32)
        packed = steps[:, ::2] | (steps[:, 1::2] << 4)
        self._keep(f"{name}.weight", packed.reshape(outputs, inputs // 32, 16))
        self._keep(f"{name}.scales", scales)
        self.weights[name] = (steps.astype(np.float32) - 8) * scales.repeat(32, axis=1)
        sizes = {"K": inputs, "N": outputs, "bits": 4, "block_size": 32}
        self._node("MatMulNBits", node, ["x", f"{name}.weight", f"{name}.scales"], **sizes)

    def _node(self, kind: str, name: str, given: list[str], **said: Any) -> None:
        self._nodes.append(helper.make_node(kind, given, [f"{name}/output"], name, **said))

    def _keep(self, name: str, values: Array) -> None:
        self._held.append(onnx.numpy_helper.from_array(values, name))


def test_weights_of_the_builder_come_back_exactly(tmp_path: Path) -> None:
    built = Built()
    write_gguf(bare_folder(tmp_path, SHAPE, built.model()), tmp_path / "model.gguf")
    read = Reader(tmp_path / "model.gguf")
    assert read.facts["llama.feed_forward_length"] == SHAPE.hidden
    assert read.facts["llama.embedding_length"] == SHAPE.width
    for theirs, ours in (
        ("lm_head", "token_embd"),
        ("out", "blk.0.attn_output"),
        ("gate", "blk.0.ffn_gate"),
        ("up", "blk.0.ffn_up"),
        ("down", "blk.0.ffn_down"),
    ):
        np.testing.assert_array_equal(read.tensors[f"{ours}.weight"], built.weights[theirs])
    qkv, half = built.weights["qkv"], SHAPE.head_size // 2
    query, value = (read.tensors[f"blk.0.attn_{part}.weight"] for part in "qv")
    np.testing.assert_array_equal(query[:4], qkv[[0, half, 1, half + 1]])
    np.testing.assert_array_equal(value, qkv[-len(value) :])
    query, value = (read.tensors[f"blk.0.attn_{part}.bias"] for part in "qv")
    np.testing.assert_array_equal(query[:4], built.bias[[0, half, 1, half + 1]])
    np.testing.assert_array_equal(value, built.bias[-len(value) :])
    angles = 1 / read.tensors["rope_freqs.weight"]
    np.testing.assert_allclose(angles[:3], [1, 0.1, 0.01], rtol=1e-3)


def test_other_graphs_are_refused(tmp_path: Path) -> None:
    graph = build(SHAPE, random_weights(SHAPE), dialect="positions")
    with pytest.raises(NotWritableError, match="only 4-bit graphs by the builder"):
        write_gguf(bare_folder(tmp_path, SHAPE, graph), tmp_path / "model.gguf")
