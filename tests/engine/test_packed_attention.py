"""Packed attention: the logits of the graph that it replaces, and bits that do not depend on how
rows are run together, on the cache's capacity or on threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.engine.decoder import Decoder
from midstream.engine.folder import ModelFolder, read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.packed_attention import pack_attention
from midstream.engine.types import GenerateRequest, Message
from tests.helpers.decoders import DecoderShape
from tests.helpers.qwen import LAYOUTS, qwen_weights, write_qwen
from tests.helpers.tiny import Array, reference_logits

IDS = [int(i) for i in np.random.default_rng(5).integers(3, 300, 600)]


def make_folder(path: Path, *, heads: int = 8, keys: int = 2, width: int = 16) -> ModelFolder:
    write_qwen(path, shape_of(heads, keys, width), weights_of(heads, keys, width), LAYOUTS[0])
    return read_folder(path)


def shape_of(heads: int, keys: int, width: int) -> DecoderShape:
    return DecoderShape(
        vocab=300, width=heads * width, layers=2, heads=heads, kv_heads=keys, head_size=width,
        hidden=96, context=1024, epsilon=1e-6,
    )  # fmt: skip


def weights_of(heads: int, keys: int, width: int) -> dict[str, Array]:
    return qwen_weights(shape_of(heads, keys, width), seed=2)


def rows_of(decoder: Decoder, begin: int, count: int, *, end: int = len(IDS)) -> Array:
    """Logits from `begin` on, run `count` tokens at a time."""
    parts = [
        decoder.run(IDS[at : min(at + count, end)], at, exact=True).copy()
        for at in range(begin, end, count)
    ]
    return np.concatenate(parts)


@pytest.mark.parametrize(("heads", "keys", "width"), [(8, 2, 16), (7, 1, 64), (4, 1, 128)])
@pytest.mark.parametrize("threads", [1, 2])
def test_logits_are_those_of_the_reference(
    tmp_path: Path, heads: int, keys: int, width: int, threads: int
) -> None:
    decoder = Decoder(make_folder(tmp_path, heads=heads, keys=keys, width=width), threads=threads)
    assert decoder.packed
    shape, weights = shape_of(heads, keys, width), weights_of(heads, keys, width)
    expected = reference_logits(shape, weights, IDS[:300])
    assert expected.std() > 0.5, "agreeing to the tolerance would say little"
    decoder.fill(IDS[:200], 0)
    found = [decoder.run(IDS[at : at + 1], at).copy() for at in range(200, 220)]
    found.append(decoder.run(IDS[220:300], 220).copy())
    np.testing.assert_allclose(np.concatenate(found), expected[200:], atol=1e-3)
    # Rolling back leaves rows behind that nothing may look at.
    again = decoder.run(IDS[210:230], 210)
    np.testing.assert_allclose(again, expected[210:230], atol=1e-3)


@pytest.mark.parametrize(
    "threads", [1, *(pytest.param(n, marks=pytest.mark.system) for n in (2, 8))]
)
def test_a_row_has_the_same_bits_however_many_run_and_whatever_the_capacity(
    tmp_path: Path, threads: int
) -> None:
    folder = make_folder(tmp_path, width=64)
    decoder = Decoder(folder, threads=threads)
    assert decoder.packed
    decoder.fill(IDS[:100], 0, exact=True)
    pairs = rows_of(decoder, 100, 2)
    for count in (1, 7, 16, 17, 128):
        # Some capacities are those that the runs before have grown the cache to, some are new.
        if count % 2:
            decoder = Decoder(folder, threads=threads)
            decoder.fill(IDS[:100], 0, exact=True)
        np.testing.assert_array_equal(rows_of(decoder, 100, count), pairs, str(count))


@given(cuts=st.lists(st.integers(1, len(IDS) - 1), max_size=12), roomy=st.booleans())
def test_prompts_have_the_same_bits_in_all_pieces(
    decoders: Callable[[], tuple[Decoder, Array]], cuts: Sequence[int], roomy: bool
) -> None:
    decoder, expected = decoders()
    decoder.fit(len(IDS) if roomy else 0, 0)
    ends = [*sorted(set(cuts)), len(IDS)]
    for begin, end in zip([0, *ends], ends, strict=False):
        last = decoder.run(IDS[begin:end], begin, exact=True).copy()
    np.testing.assert_array_equal(last[-1], expected)


@pytest.fixture(scope="module")
def decoders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], tuple[Decoder, Array]]:
    decoder = Decoder(make_folder(tmp_path_factory.mktemp("packed")), threads=1)
    expected = rows_of(decoder, 0, 64)[-1]
    return lambda: (decoder, expected)


def test_the_capacity_follows_what_is_used(tmp_path: Path) -> None:
    """Every run goes over all of it."""
    decoder = Decoder(make_folder(tmp_path), threads=1)
    of_row = decoder.row_bytes
    for end in (50, 300, 600):
        decoder.fit(end, 0)
        decoder.fill(IDS[:end], 0)
        assert end <= decoder.cache_bytes // of_row <= 1.3 * end + 256
    decoder.fit(60, 0)
    assert decoder.cache_bytes // of_row <= 256


def test_long_contexts_are_read_in_smaller_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder(tmp_path)
    decoder = Decoder(folder, threads=1)
    assert decoder.chunk(128, 0) == decoder.chunk(128, 600) == 128
    request = GenerateRequest((Message("user", "total items tax " * 60),), max_output_tokens=8)
    model = OnnxModel(folder, threads=1)
    whole = "".join(piece.text for piece in model.start(request))
    model.close()
    monkeypatch.setattr("midstream.engine.decoder.SCRATCH_BYTES", 1 << 20)
    assert decoder.chunk(128, 0) > decoder.chunk(128, 600) >= 16
    assert decoder.chunk(4, 600) == 4
    model = OnnxModel(folder, threads=1)
    assert "".join(piece.text for piece in model.start(request)) == whole
    model.close()


def test_drafts_do_not_change_a_text(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    request = GenerateRequest((Message("user", "total items tax " * 60),), max_output_tokens=60)
    model = OnnxModel(folder, threads=1)
    assert model.decoder.packed
    assert model.exact

    def written() -> tuple[str, int]:
        generation = model.start(request)
        return "".join(piece.text for piece in generation), generation.usage.accepted_tokens

    drafted, accepted = written()
    assert accepted > 0
    model.drafting = None
    assert written() == (drafted, 0)
    model.close()


def with_attribute(name: str, value: float) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        for node in model.graph.node:
            if node.op_type == "GroupQueryAttention":
                node.attribute.append(onnx.helper.make_attribute(name, value))

    return change


def with_bias(model: onnx.ModelProto) -> None:
    node = next(n for n in model.graph.node if n.op_type == "GroupQueryAttention")
    node.input.extend(["", "bias"])


def with_halves(model: onnx.ModelProto) -> None:
    for value in model.graph.input:
        if value.name.startswith("past"):
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16


def without_attention(model: onnx.ModelProto) -> None:
    kept = [n for n in model.graph.node if n.op_type != "GroupQueryAttention"]
    del model.graph.node[:]
    model.graph.node.extend(kept)


@pytest.mark.parametrize(
    "change",
    [
        with_attribute("local_window_size", 64),
        with_attribute("softcap", 30.0),
        with_attribute("smooth_softmax", 1),
        with_attribute("causal", 0),
        with_bias,
        with_halves,
        without_attention,
    ],
)
def test_other_attention_stays_as_it_is(
    tmp_path: Path, change: Callable[[onnx.ModelProto], None]
) -> None:
    graph = make_folder(tmp_path).graph
    assert pack_attention(graph, tokens="input_ids", threads=1) is not None
    model = onnx.load(graph, load_external_data=False)
    change(model)
    onnx.save(model, graph)
    assert pack_attention(graph, tokens="input_ids", threads=1) is None


def test_a_window_is_kept(tmp_path: Path) -> None:
    """The folder runs with ONNX Runtime's own attention, which cannot see what is behind it."""
    folder = make_folder(tmp_path)
    model = onnx.load(folder.graph, load_external_data=False)
    with_attribute("local_window_size", 8)(model)
    onnx.save(model, folder.graph)
    decoder = Decoder(folder, threads=1)
    assert not decoder.packed
    decoder.fill(IDS[:40], 0)
    near = decoder.run(IDS[40:41], 40).copy()
    decoder.fill([*IDS[100:110], *IDS[10:40]], 0)
    np.testing.assert_allclose(decoder.run(IDS[40:41], 40), near, atol=1e-4)


def test_without_drafts_the_graph_runs_as_it_is(tmp_path: Path) -> None:
    """Then the text has to be that of other runtimes, to the token."""
    folder = make_folder(tmp_path)
    (tmp_path / "midstream.toml").write_text("[drafting]\nenabled = false\n")
    assert Decoder(folder, threads=1).packed
    assert not Decoder(read_folder(tmp_path), threads=1).packed


def test_small_groups_and_more_threads_than_heads_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "large").mkdir()
    assert not Decoder(make_folder(tmp_path / "small", heads=6), threads=1).packed
    folder = make_folder(tmp_path / "large")
    assert Decoder(folder, threads=8).packed
    assert not Decoder(folder, threads=9).packed
