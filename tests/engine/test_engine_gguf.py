"""A folder's model as GGUF: read back here, and by llama.cpp where that is installed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from midstream.bench.peers import LlamaCpp, NotWritableError, PeerMissing, write_gguf
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


def test_other_graphs_are_refused(tmp_path: Path) -> None:
    graph = build(SHAPE, random_weights(SHAPE), dialect="positions")
    with pytest.raises(NotWritableError, match="not built by Midstream"):
        write_gguf(bare_folder(tmp_path, SHAPE, graph), tmp_path / "model.gguf")


@pytest.mark.parametrize("bits", [32, 8])
def test_llama_cpp_writes_what_the_engine_writes(tmp_path: Path, bits: int) -> None:
    pytest.importorskip("llama_cpp")
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
