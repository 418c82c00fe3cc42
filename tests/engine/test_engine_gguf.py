"""A folder's model as GGUF: read back here, and by llama.cpp where that is installed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from midstream.bench.gguf import NotWritableError, write_gguf
from midstream.bench.peers import LlamaCpp, PeerMissing, llama_installed
from midstream.engine.decoder import Decoder
from tests.helpers.folders import bare_folder
from tests.helpers.tiny import Array, build, build_integer, dequantised, make_shape, random_weights

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
        packed = {8: ("i1", 32), 2: ("u1", 16)}[kind]
        blocks = np.frombuffer(
            self._data, [("scale", "<f2"), ("steps", *packed)], count // 32, offset
        )
        steps = blocks["steps"].astype(np.int16)
        if kind == 2:
            steps = np.hstack([steps & 15, steps >> 4]) - 8
        return (steps * blocks["scale"][:, None].astype(np.float32)).reshape(sizes)


@pytest.mark.parametrize(("bits", "slack"), [(32, 0.0), (8, 0.01), (4, 0.16)])
def test_weights_come_back(tmp_path: Path, bits: int, slack: float) -> None:
    weights = random_weights(SHAPE)
    folder = bare_folder(tmp_path, SHAPE, build(SHAPE, weights, bits, block=32))
    write_gguf(folder, tmp_path / "model.gguf")
    read = Reader(tmp_path / "model.gguf")
    assert read.facts["general.architecture"] == "llama"
    assert read.facts["llama.attention.head_count_kv"] == SHAPE.kv_heads
    assert read.facts["llama.feed_forward_length"] == SHAPE.hidden

    def stands_for(name: str) -> Array:
        return weights[name] if bits == 32 else dequantised(weights[name], bits, 32)

    down = stands_for("layers.1.down").T
    assert np.abs(read.tensors["blk.1.ffn_down.weight"] - down).max() <= slack * np.abs(down).max()
    both = stands_for("layers.0.gate_up").T
    up = read.tensors["blk.0.ffn_up.weight"]
    assert np.abs(up - both[SHAPE.hidden :]).max() <= slack * np.abs(both).max()
    # Queries: the two rows that turn together are neighbours.
    packed, half = stands_for("layers.0.qkv").T, SHAPE.head_size // 2
    query = read.tensors["blk.0.attn_q.weight"]
    wanted = packed[[0, half, 1, half + 1]]
    assert np.abs(query[:4] - wanted).max() <= slack * np.abs(packed).max()
    np.testing.assert_array_equal(read.tensors["token_embd.weight"], weights["embedding"])
    # A pair's angle at position 1 is a radian divided by this.
    angles = 1 / read.tensors["rope_freqs.weight"]
    np.testing.assert_allclose(np.cos(angles), weights["cos"][1], atol=1e-6)


def test_weights_of_integer_products_come_back(tmp_path: Path) -> None:
    weights = random_weights(SHAPE)
    folder = bare_folder(tmp_path, SHAPE, build_integer(SHAPE, weights))
    write_gguf(folder, tmp_path / "model.gguf")
    read = Reader(tmp_path / "model.gguf")
    # What the norm's channels were divided by, the matrix was multiplied with.
    gain, matrix = read.tensors["output_norm.weight"], read.tensors["output.weight"]
    wanted = weights["final_norm"] * weights["head"].T
    assert np.abs(gain * matrix - wanted).max() <= 0.02 * np.abs(wanted).max()


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
    angles = 1 / read.tensors["rope_freqs.weight"]
    np.testing.assert_allclose(angles[:3], [1, 0.1, 0.01], rtol=1e-3)


def test_other_graphs_are_refused(tmp_path: Path) -> None:
    graph = build(SHAPE, random_weights(SHAPE), dialect="positions")
    with pytest.raises(NotWritableError, match="comes neither from Midstream nor from the builder"):
        write_gguf(bare_folder(tmp_path, SHAPE, graph), tmp_path / "model.gguf")


@pytest.mark.parametrize("bits", [32, 8])
def test_llama_cpp_writes_what_the_engine_writes(tmp_path: Path, bits: int) -> None:
    if not llama_installed():
        pytest.skip("llama.cpp is not installed")
    folder = bare_folder(tmp_path, SHAPE, build(SHAPE, random_weights(SHAPE), bits))
    write_gguf(folder, tmp_path / "model.gguf")
    try:
        peer = LlamaCpp(tmp_path / "model.gguf", 1, SHAPE.context)
    except PeerMissing as reason:
        pytest.skip(str(reason))
    decoder = Decoder(folder, threads=1)
    ids = [int(i) for i in np.random.default_rng(5).integers(0, SHAPE.vocab, 60)]
    agreed = 0
    for length in range(20, 60):
        peer.read(ids[:length], 1)
        agreed += peer.step() == int(decoder.run(ids[:length], 0)[-1].argmax())
    # Activations are rounded differently; near ties may fall to the other side.
    assert agreed >= (40 if bits == 32 else 36)
