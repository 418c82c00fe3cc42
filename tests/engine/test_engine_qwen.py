"""A Qwen2-shaped model in all three layouts: it loads, runs and agrees with a NumPy reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from midstream.bench.progress import BenchProgress
from midstream.bench.timing import stops
from midstream.engine.folder import read_folder
from midstream.engine.inspect import describe
from midstream.engine.model import OnnxModel
from midstream.engine.types import FinishReason, GenerateRequest, Message
from tests.helpers.decoders import DecoderShape
from tests.helpers.qwen import FULL, LAYOUTS, REDUCED, Layout, as_computed, qwen_weights, write_qwen
from tests.helpers.tiny import Array, reference_logits


def check(path: Path, shape: DecoderShape, weights: dict[str, Array], layout: Layout) -> OnnxModel:
    write_qwen(path, shape, weights, layout)
    folder = read_folder(path)
    assert (folder.layout, folder.graph) == (layout.name, path / layout.graph)
    assert folder.context_length == shape.context
    model = OnnxModel(folder)
    decoder = model.decoder
    assert decoder.shared is (layout.name == "genai")
    assert decoder.vocab == shape.vocab
    assert len(decoder.io.cache) == 2 * shape.layers
    assert all(pair.dtype == layout.cache_type for pair in decoder.io.cache)
    assert describe(path).cache_bytes == shape.context * decoder.io.row_bytes
    ids = [int(i) for i in np.random.default_rng(3).integers(0, shape.vocab, 24)]
    expected = reference_logits(shape, as_computed(weights, layout), ids, layout.cache_type)
    # Were they small, agreeing to the tolerance would say little.
    assert expected.std() > 0.5
    decoder.fill(ids[:15], 0)
    found = [decoder.run(ids[15:22], 15).copy()]
    found += [decoder.run(ids[at : at + 1], at).copy() for at in (22, 23)]
    np.testing.assert_allclose(np.concatenate(found), expected[15:], atol=layout.tolerance, rtol=0)
    request = GenerateRequest((Message("user", "total"),), max_output_tokens=5)
    generation = model.start(request)
    assert sum(piece.tokens for piece in generation) == generation.usage.output_tokens > 0
    assert generation.finish_reason in (FinishReason.LENGTH, FinishReason.STOP)
    return model


@pytest.mark.system
@pytest.mark.parametrize(
    "layout", LAYOUTS, ids=lambda layout: f"{layout.name}-{Path(layout.graph).stem}"
)
def test_reduced(tmp_path: Path, reduced_weights: dict[str, Array], layout: Layout) -> None:
    check(tmp_path, REDUCED, reduced_weights, layout).close()


@pytest.fixture(scope="module")
def reduced_weights() -> dict[str, Array]:
    return qwen_weights(REDUCED)


@pytest.fixture(scope="module")
def full_weights() -> dict[str, Array]:
    return qwen_weights(FULL)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "layout", LAYOUTS, ids=lambda layout: f"{layout.name}-{Path(layout.graph).stem}"
)
def test_full_size(tmp_path: Path, full_weights: dict[str, Array], layout: Layout) -> None:
    model = check(tmp_path, FULL, full_weights, layout)
    took, forwards = stops(model, BenchProgress(), chunks=3, turns=4)
    model.close()
    print(f"stopped within {forwards} forwards, {took} ms")
    assert set(forwards) == {"reading", "writing"}
    assert max(forwards.values()) <= 2
    # Two gigabytes each.
    for file in tmp_path.rglob("*data"):
        file.unlink()
