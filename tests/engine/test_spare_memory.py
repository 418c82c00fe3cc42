"""Memory that nothing needs goes back to the system, and what is in use stays as it is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from mmap import ACCESS_COPY, mmap
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from midstream.engine import model as models
from midstream.engine import spare_memory
from midstream.engine.decoder import Decoder
from midstream.engine.folder import ModelFolder, read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.packed_attention import pack_attention
from midstream.engine.spare_memory import drop_read, unwritten_ranges
from midstream.engine.types import GenerateRequest, Message
from midstream.processes import resident_bytes, return_freed
from tests.helpers.decoders import DecoderShape
from tests.helpers.qwen import LAYOUTS, qwen_weights, write_qwen
from tests.helpers.waiting import PATIENCE_S

SHAPE = DecoderShape(
    vocab=300, width=128, layers=2, heads=8, kv_heads=2, head_size=16, hidden=96, context=2048,
    epsilon=1e-6,
)  # fmt: skip
IDS = [int(i) for i in np.random.default_rng(5).integers(3, 300, 1500)]

linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux's system calls")


def write_folder(path: Path) -> ModelFolder:
    write_qwen(path, SHAPE, qwen_weights(SHAPE, seed=2), LAYOUTS[0])
    return read_folder(path)


def mapped_kb(name: str, what: str) -> list[int]:
    """A figure of all mappings of a file."""
    found: list[int] = []
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            inside = line.endswith(name)
        elif inside and line.startswith(f"{what}:"):
            found.append(int(line.split()[1]))
    return found


@linux
def test_what_was_read_of_a_file_is_dropped_and_what_was_written_stays(tmp_path: Path) -> None:
    weights = tmp_path / "model.onnx.data"
    weights.write_bytes(bytes(range(256)) * 4096)
    with weights.open("rb") as file:
        read, written = (mmap(file.fileno(), 0, access=ACCESS_COPY) for _ in range(2))
    assert read[:] == written[:]
    written[7] = 99
    assert mapped_kb(str(weights), "Rss") == [1024, 1024]
    drop_read([weights, tmp_path / "model.onnx"])
    assert sorted(mapped_kb(str(weights), "Rss")) == [0, 1024]
    assert written[:10] == bytes([0, 1, 2, 3, 4, 5, 6, 99, 8, 9])
    assert read[250:260] == bytes([250, 251, 252, 253, 254, 255, 0, 1, 2, 3])


def test_only_the_named_files_are_chosen() -> None:
    def mapping(begin: int, name: str, anonymous: int = 0) -> Iterable[str]:
        yield f"{begin:x}-{begin + 4096:x} r--p 00000000 fe:00 77      {name}"
        yield from ("Rss:    4 kB", f"Anonymous:    {anonymous} kB", "LazyFree:   0 kB")

    lines = [
        *mapping(0x7F00_0000_0000, "/m/a b.data"),
        *mapping(0x7F00_0001_0000, "/m/a b.data.old"),
        *mapping(0x7F00_0002_0000, "/m/a b.data", 4),
        *mapping(0x7F00_0003_0000, ""),
    ]
    assert list(unwritten_ranges(lines, ["/m/a b.data"])) == [(0x7F00_0000_0000, 0x7F00_0000_1000)]


def reshape_embedding(graph: Path, shape: list[int]) -> None:
    """Store the embedding by blocks, as builders do that tie it to a quantised projection."""
    model = onnx.load(str(graph), load_external_data=False)
    table = next(i for i in model.graph.initializer if i.name == "embedding")
    table.name = "table"
    table.dims[:] = [SHAPE.vocab, 8, 16]
    model.graph.initializer.append(numpy_helper.from_array(np.array(shape), "shape"))
    model.graph.node.insert(0, helper.make_node("Reshape", ["table", "shape"], ["embedding"]))
    graph.write_bytes(model.SerializeToString())


@pytest.mark.parametrize(("shape", "left"), [([300, 128], 0), ([300, -1], 1)])
def test_weights_in_two_shapes_are_read_from_the_file_in_both(
    tmp_path: Path, shape: list[int], left: int
) -> None:
    folder = write_folder(tmp_path)
    expected = Decoder(folder, threads=1).run(IDS[:20], 0, exact=True).copy()
    reshape_embedding(folder.graph, shape)
    packed = pack_attention(folder.graph, tokens="input_ids", threads=1)
    assert packed is not None
    graph = onnx.ModelProto.FromString(packed).graph
    assert sum("table" in node.input for node in graph.node) == left
    found = Decoder(folder, threads=1).run(IDS[:20], 0, exact=True)
    np.testing.assert_array_equal(found, expected)


@linux
def test_what_long_runs_take_is_given_back(tmp_path: Path) -> None:
    decoder = Decoder(write_folder(tmp_path), threads=1)
    expected = decoder.run(IDS[:40], 0, exact=True).copy()
    decoder.give_back()
    return_freed()
    before = resident_bytes()
    decoder.fill(IDS[:1000], 0)
    used = resident_bytes() - before
    assert used > 64 << 20
    decoder.give_back()
    return_freed()
    assert resident_bytes() - before < used / 4
    np.testing.assert_array_equal(decoder.run(IDS[:40], 0, exact=True), expected)


def test_memory_is_given_back_behind_the_last_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rested = threading.Event()
    monkeypatch.setattr(models, "REST_SECONDS", 0.01)
    model = OnnxModel(write_folder(tmp_path), threads=1)
    monkeypatch.setattr(model.decoder, "give_back", rested.set)
    generation = iter(
        model.start(GenerateRequest((Message("user", "hello"),), max_output_tokens=8))
    )
    next(generation)
    assert not rested.is_set(), "a generation was running"
    assert sum(piece.tokens for piece in generation) <= 8
    assert rested.wait(PATIENCE_S)
    model.close()


def test_a_model_that_was_just_loaded_has_the_processor_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = threading.Event()
    monkeypatch.setattr(spare_memory, "collapse", done.set)
    spare_memory.arrange_later([])
    (later,) = (thread for thread in threading.enumerate() if thread.name == "memory")
    assert isinstance(later, threading.Timer)
    assert later.daemon  # A program that asks once ends without it.
    assert not done.is_set()
    later.cancel()
    monkeypatch.setattr(spare_memory, "LATER_S", 0.0)
    spare_memory.arrange_later([])
    assert done.wait(PATIENCE_S)
