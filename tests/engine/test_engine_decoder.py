"""The decoder against a NumPy reference: chunks, roll-back, copies, exact rows, termination."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from midstream.engine.decoder import Decoder, RunTerminatedError
from midstream.engine.folder import ModelFolderError
from midstream.errors import UnavailableError
from tests.helpers.folders import bare_folder
from tests.helpers.tiny import build, make_shape, random_weights, reference_logits

SHAPE = make_shape()
WEIGHTS = random_weights(SHAPE)
IDS = [int(i) for i in np.random.default_rng(1).integers(0, SHAPE.vocab, 120)]
REFERENCE = reference_logits(SHAPE, WEIGHTS, IDS)


@pytest.mark.parametrize("dialect", ["mask", "seqlens"])
@pytest.mark.parametrize("shares", [True, False, None])
def test_agrees_with_the_reference(tmp_path: Path, dialect: str, shares: bool | None) -> None:
    folder = bare_folder(
        tmp_path, SHAPE, build(SHAPE, WEIGHTS, dialect=dialect), shares_cache=shares
    )
    decoder = Decoder(folder, threads=1)
    assert decoder.shared is (shares is not False)
    assert decoder.vocab == SHAPE.vocab
    decoder.fill(IDS[:50], 0)
    np.testing.assert_allclose(decoder.run(IDS[50:60], 50), REFERENCE[50:60], atol=1e-3)
    # Tokens that were tried and dropped leave no trace.
    decoder.run([3, 4, 5], 60)
    np.testing.assert_allclose(decoder.run(IDS[55:58], 55), REFERENCE[55:58], atol=1e-3)
    # A copied prefix can be put back after something else was run.
    saved = decoder.save_rows(40)
    decoder.fill(IDS[::-1][:60], 0)
    decoder.load_rows(saved, 40)
    np.testing.assert_allclose(decoder.run(IDS[40:60], 40), REFERENCE[40:60], atol=1e-3)
    # A padded row changes nothing for the one that was asked for.
    padded = decoder.run(IDS[60:61], 60, exact=True)
    assert padded.shape == (1, SHAPE.vocab)
    np.testing.assert_allclose(padded[0], REFERENCE[60], atol=1e-3)


@pytest.mark.parametrize("dialect", ["mask", "positions"])
def test_a_cache_in_a_device_s_memory(tmp_path: Path, dialect: str) -> None:
    folder = bare_folder(tmp_path, SHAPE, build(SHAPE, WEIGHTS, dialect=dialect))
    host, device = Decoder(folder, threads=1), Decoder(folder, threads=1, device="cpu")
    assert device.shared is (dialect == "mask")

    def same(ids: list[int], past: int) -> None:
        np.testing.assert_array_equal(device.run(ids, past), host.run(ids, past))

    for decoder in (host, device):
        decoder.fill(IDS[:50], 0)
    same(IDS[50:60], 50)
    same([3, 4, 5], 60)
    same(IDS[55:58], 55)
    saved = device.save_rows(40)
    for one, other in zip(saved, host.save_rows(40), strict=True):
        np.testing.assert_array_equal(one, other)
    device.fill(IDS[::-1][:60], 0)
    device.load_rows(saved, 40)
    same(IDS[40:60], 40)
    assert device.cache_bytes >= 60 * device.io.row_bytes


def test_a_device_s_cache_grows(tmp_path: Path) -> None:
    shape = make_shape(context=1500)
    weights = random_weights(shape)
    decoder = Decoder(bare_folder(tmp_path, shape, build(shape, weights)), device="cpu")
    ids = IDS + [int(i) for i in np.random.default_rng(2).integers(0, shape.vocab, 680)]
    small = decoder.cache_bytes
    decoder.fill(ids[:120], 0)
    decoder.fill(ids[120:790], 120)
    assert decoder.cache_bytes > small
    np.testing.assert_allclose(
        decoder.run(ids[790:], 790), reference_logits(shape, weights, ids)[790:], atol=1e-3
    )


@pytest.mark.parametrize(
    ("cache", "slack"), [(TensorProto.FLOAT, 1e-3), (TensorProto.FLOAT16, 2e-2)]
)
def test_plain_attention_agrees_with_the_reference(
    tmp_path: Path, cache: int, slack: float
) -> None:
    graph = build(SHAPE, WEIGHTS, dialect="positions", cache=cache)
    decoder = Decoder(bare_folder(tmp_path, SHAPE, graph), threads=1)
    assert not decoder.shared
    assert decoder.io.cache[0].dtype == (np.float16 if cache == TensorProto.FLOAT16 else np.float32)
    decoder.fill(IDS[:50], 0)
    np.testing.assert_allclose(decoder.run(IDS[50:60], 50), REFERENCE[50:60], atol=slack)
    decoder.run([3, 4, 5], 60)
    np.testing.assert_allclose(decoder.run(IDS[55:58], 55), REFERENCE[55:58], atol=slack)
    saved = decoder.save_rows(40)
    decoder.fill(IDS[::-1][:60], 0)
    decoder.load_rows(saved, 40)
    np.testing.assert_allclose(decoder.run(IDS[40:41], 40), REFERENCE[40:41], atol=slack)


def test_other_inputs_of_exporters_are_fed(tmp_path: Path) -> None:
    graph = build(SHAPE, WEIGHTS)
    nodes, inputs = graph.graph.node, graph.graph.input
    inputs.append(helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1]))
    inputs.append(helper.make_tensor_value_info("num_logits_to_keep", TensorProto.INT64, []))
    # Only the last rows reach the output matrix, as many as are asked for.
    last = next(node for node in nodes if "final_norm" in node.input)
    last.input[list(last.input).index("final_norm")] = "kept"
    place = list(nodes).index(last)
    nodes.insert(place, helper.make_node("Slice", ["final_norm", "from", "far", "one"], ["kept"]))
    nodes.insert(place, helper.make_node("Unsqueeze", ["minus", "axis_0"], ["from"]))
    nodes.insert(place, helper.make_node("Neg", ["num_logits_to_keep"], ["minus"]))
    for name, value in (("far", 2**31), ("axis_0", 0)):
        graph.graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), name))
    decoder = Decoder(bare_folder(tmp_path, SHAPE, graph), threads=1)
    assert decoder.all_rows
    decoder.fill(IDS[:50], 0)
    np.testing.assert_allclose(decoder.run(IDS[50:60], 50), REFERENCE[50:60], atol=1e-3)


def test_a_graph_with_logits_of_the_last_row_only(tmp_path: Path) -> None:
    graph = build(SHAPE, WEIGHTS)
    nodes = graph.graph.node
    last = next(node for node in nodes if "final_norm" in node.input)
    last.input[list(last.input).index("final_norm")] = "kept"
    cut = helper.make_node("Slice", ["final_norm", "minus_one", "far", "one"], ["kept"])
    nodes.insert(list(nodes).index(last), cut)
    for name, value in (("far", 2**31), ("minus_one", -1)):
        graph.graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), name))
    decoder = Decoder(bare_folder(tmp_path, SHAPE, graph), threads=1)
    assert not decoder.all_rows
    decoder.fill(IDS[:50], 0, exact=True)
    for row in (50, 51):
        logits = decoder.run(IDS[row : row + 1], row, exact=True)
        np.testing.assert_allclose(logits, REFERENCE[row : row + 1], atol=1e-3)
    np.testing.assert_allclose(decoder.run(IDS[52:60], 52), REFERENCE[59:60], atol=1e-3)


@pytest.mark.parametrize("shares", [True, False])
def test_the_cache_grows_with_what_it_holds(tmp_path: Path, shares: bool) -> None:
    shape = make_shape(context=1500)
    weights = random_weights(shape)
    folder = bare_folder(tmp_path, shape, build(shape, weights), shares_cache=shares)
    decoder = Decoder(folder, threads=1)
    small = decoder.cache_bytes
    decoder.fill(IDS, 0)
    ids = IDS + [int(i) for i in np.random.default_rng(2).integers(0, shape.vocab, 680)]
    decoder.fill(ids[120:], 120)
    assert decoder.cache_bytes > small
    np.testing.assert_allclose(
        decoder.run(ids[790:], 790), reference_logits(shape, weights, ids)[790:], atol=1e-3
    )
    with pytest.raises(ValueError, match="1500"):
        decoder.run([1], 1500)


@pytest.mark.parametrize(("bits", "block"), [(32, 32), (4, 32), (4, 128), (8, 32), (8, 128)])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_do_not_depend_on_their_number(
    tmp_path: Path, bits: int, block: int, threads: int
) -> None:
    shape = make_shape(width=128, hidden=256)
    graph = build(shape, random_weights(shape, 3), bits, block=block)
    decoder = Decoder(bare_folder(tmp_path, shape, graph), threads=threads)
    pairs = np.concatenate([decoder.run(IDS[p : p + 2], p).copy() for p in range(0, 120, 2)])
    padded = np.concatenate([decoder.run(IDS[p : p + 1], p, exact=True).copy() for p in range(120)])
    np.testing.assert_array_equal(pairs, padded)
    for count in (3, 5, 8, 17, 33, 65, 97, 120):
        rows = [decoder.run(IDS[p : p + count], p, exact=True).copy() for p in range(0, 120, count)]
        np.testing.assert_array_equal(np.concatenate(rows), pairs)
    # Rows that were only filled in are the same rows.
    decoder.fill(IDS[:100], 0)
    np.testing.assert_array_equal(decoder.run(IDS[100:], 100), pairs[100:])


def test_a_long_run_can_be_ended(tmp_path: Path) -> None:
    shape = make_shape(width=256, layers=6, hidden=512, context=2048)
    folder = bare_folder(tmp_path, shape, build(shape, random_weights(shape)))
    decoder = Decoder(folder, threads=1)
    ids = [5] * 1500
    started = time.thread_time()
    decoder.fill(ids, 0)
    whole = time.thread_time() - started
    timer = threading.Timer(whole / 5, decoder.terminate)
    timer.start()
    started = time.thread_time()
    with pytest.raises(RunTerminatedError):
        decoder.fill(ids, 0)
    assert time.thread_time() - started < 0.8 * whole
    with pytest.raises(RunTerminatedError):
        decoder.run([1], 0)
    decoder.rearm()
    assert decoder.run([1], 0).shape == (1, shape.vocab)


def test_an_unknown_input_is_named(tmp_path: Path) -> None:
    graph = build(SHAPE, WEIGHTS)
    graph.graph.input.append(helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, [1]))
    with pytest.raises(ModelFolderError, match="pixel_values"):
        Decoder(bare_folder(tmp_path, SHAPE, graph))


def test_a_broken_graph_is_named(tmp_path: Path) -> None:
    folder = bare_folder(tmp_path, SHAPE, build(SHAPE, WEIGHTS))
    folder.graph.write_bytes(b"not a graph")
    with pytest.raises(ModelFolderError, match=r"model\.onnx cannot be loaded"):
        Decoder(folder)


def test_an_absent_provider_is_named(tmp_path: Path) -> None:
    folder = bare_folder(tmp_path, SHAPE, build(SHAPE, WEIGHTS))
    with pytest.raises(UnavailableError, match="it has cpu, "):
        Decoder(folder, provider="abacus")
