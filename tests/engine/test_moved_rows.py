"""Rows that are used at other positions: which ones, that they are right, and when they are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, numpy_helper

from midstream.engine.decoder import Decoder
from midstream.engine.folder import read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.moved_rows import MIN_RUN, find_runs
from midstream.engine.prefix_cache import PrefixCache
from midstream.engine.prefix_files import shared_length
from midstream.engine.types import GenerateRequest, Message
from tests.helpers.folders import bare_folder, write_folder
from tests.helpers.property import examples
from tests.helpers.tiny import Array, build, make_shape, random_weights

SHALLOW = make_shape(layers=1)
"""Keys and values of one layer depend on their token and its position only, so moved rows are the
very rows that are read."""
DEEP = make_shape(layers=3)
SYSTEM, FIRST, SECOND, THIRD, LAST = (
    [int(i) for i in np.random.default_rng(seed).integers(0, SHALLOW.vocab, length)]
    for seed, length in enumerate((20, 30, 140, 150, 40))
)


def decoder_of(path: Path, graph: onnx.ModelProto, shape: Any = SHALLOW, **more: Any) -> Decoder:
    device = more.pop("device", None)
    return Decoder(bare_folder(path, shape, graph, **more), threads=1, device=device)


def read(decoder: Decoder, cache: PrefixCache, prompt: list[int], *, moved: bool = False) -> int:
    """Bring a prompt into the cache and return how much of it was there."""
    known = cache.open(prompt, moved=moved)
    if known < len(prompt):
        decoder.fill(prompt[known:], known, exact=True)
        cache.extend(prompt[known:])
    return known


def logits_after(decoder: Decoder, count: int) -> Array:
    return decoder.run([7, 8], count).copy()


tokens = st.lists(st.integers(0, 2), max_size=40)


@examples(300)
@given(tokens, tokens, st.integers(1, 6), st.data())
def test_runs_are_the_prompts_continuation(
    cached: list[int], prompt: list[int], least: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(prompt)))
    runs = find_runs(cached, prompt, start, least)
    at = start
    for run in [*runs, None]:
        longest = max(
            (shared_length(cached[source:], prompt[at:]) for source in range(len(cached))),
            default=0,
        )
        if run is None:
            assert longest < least
            break
        assert run.target == at
        assert run.length == longest >= least
        assert cached[run.source : run.source + run.length] == prompt[at : at + run.length]
        at += run.length


@pytest.mark.parametrize(
    ("dialect", "more"),
    [
        ("mask", {}),
        ("seqlens", {}),
        ("mask", {"shares_cache": False}),
        ("positions", {}),
    ],
)
def test_moved_rows_are_the_rows_of_their_new_places(
    tmp_path: Path, dialect: str, more: dict[str, Any]
) -> None:
    weights = random_weights(SHALLOW)
    decoder = decoder_of(tmp_path, build(SHALLOW, weights, dialect=dialect), **more)
    cache = PrefixCache(decoder)
    read(decoder, cache, SYSTEM + FIRST + SECOND + THIRD)
    prompt = SYSTEM + THIRD + SECOND + LAST
    assert read(decoder, cache, prompt, moved=True) == len(prompt) - len(LAST)
    moved = logits_after(decoder, len(prompt))
    # As read: the rows that are there do not count for a request that wants none moved.
    assert read(decoder, cache, prompt) == len(SYSTEM)
    np.testing.assert_allclose(logits_after(decoder, len(prompt)), moved, atol=1e-3)


def test_rows_in_halves_are_moved(tmp_path: Path) -> None:
    graph = build(SHALLOW, random_weights(SHALLOW), dialect="positions", cache=TensorProto.FLOAT16)
    decoder = decoder_of(tmp_path, graph)
    cache = PrefixCache(decoder)
    read(decoder, cache, SYSTEM + FIRST + SECOND)
    prompt = SYSTEM + SECOND + LAST
    assert read(decoder, cache, prompt, moved=True) == len(SYSTEM + SECOND)
    moved = logits_after(decoder, len(prompt))
    read(decoder, cache, prompt)
    np.testing.assert_allclose(logits_after(decoder, len(prompt)), moved, atol=2e-2)


def _interleaved(graph: onnx.GraphProto) -> None:
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "rotary_interleaved":
                attribute.i = 1


def _table(graph: onnx.GraphProto, name: str, change: Callable[[Array], Array]) -> None:
    tensor = next(each for each in graph.initializer if each.name == name)
    value = np.ascontiguousarray(change(numpy_helper.to_array(tensor)))
    tensor.CopyFrom(numpy_helper.from_array(value, name))


def _partial(graph: onnx.GraphProto) -> None:
    for name in ("cos_cache", "sin_cache"):
        _table(graph, name, lambda table: table[:, : table.shape[1] // 2])


@pytest.mark.parametrize("change", [_interleaved, _partial])
def test_other_ways_of_turning(tmp_path: Path, change: Callable[[onnx.GraphProto], None]) -> None:
    shape = make_shape(layers=1, head_size=32)
    model = build(shape, random_weights(shape))
    change(model.graph)
    decoder = decoder_of(tmp_path, model, shape)
    rotation = decoder.read_rotation(5)
    assert rotation is not None
    half = 16 if change is _interleaved else 8
    speed = 10000.0 ** -(np.arange(half) / 16)
    np.testing.assert_allclose(rotation.speed[:half], speed, atol=1e-5)
    cache = PrefixCache(decoder)
    read(decoder, cache, SYSTEM + FIRST + SECOND)
    prompt = SYSTEM + SECOND + LAST
    assert read(decoder, cache, prompt, moved=True) == len(SYSTEM + SECOND)
    moved = logits_after(decoder, len(prompt))
    read(decoder, cache, prompt)
    np.testing.assert_allclose(logits_after(decoder, len(prompt)), moved, atol=1e-3)


def test_a_later_request_that_is_exact_gets_what_is_read(tmp_path: Path) -> None:
    graph = build(DEEP, random_weights(DEEP), 4)
    decoder = decoder_of(tmp_path, graph, DEEP)
    cache = PrefixCache(decoder)
    prompt = SYSTEM + SECOND + LAST
    read(decoder, cache, prompt)
    fresh = logits_after(decoder, len(prompt))
    cache.clear()
    read(decoder, cache, SYSTEM + FIRST + SECOND)
    assert read(decoder, cache, prompt, moved=True) == len(SYSTEM + SECOND)
    assert np.abs(logits_after(decoder, len(prompt)) - fresh).max() > 0
    cache.keep(len(prompt))
    assert cache.sound == len(SYSTEM)
    # Not from the live rows, nor from the copy that is made of them when they are left.
    other = SYSTEM + LAST + THIRD
    read(decoder, cache, other)
    assert read(decoder, cache, prompt) == len(SYSTEM)
    np.testing.assert_array_equal(logits_after(decoder, len(prompt)), fresh)
    # A conversation goes on from whatever goes furthest.
    assert read(decoder, cache, other, moved=True) == len(other)
    assert read(decoder, cache, [*prompt, 3], moved=True) == len(prompt)


def test_whatever_was_moved_an_exact_request_gets_what_is_read(tmp_path: Path) -> None:
    graph = build(DEEP, random_weights(DEEP), 4)
    (tmp_path / "other").mkdir()
    decoder = decoder_of(tmp_path, graph, DEEP)
    fresh = decoder_of(tmp_path / "other", graph, DEEP)
    cache = PrefixCache(decoder, budget=500 * decoder.io.row_bytes)
    rng = np.random.default_rng(11)
    parts = [FIRST, SECOND, THIRD, LAST, SECOND[:130]]
    moved = 0
    for _ in range(80):
        chosen = [parts[i] for i in rng.permutation(len(parts))[: rng.integers(1, 4)]]
        prompt = SYSTEM + [token for part in chosen for token in part]
        if rng.random() < 0.6:
            before = cache.sound
            read(decoder, cache, prompt, moved=True)
            moved += cache.sound < len(prompt) and before > 0
            continue
        read(decoder, cache, prompt)
        fresh.fill(prompt, 0, exact=True)
        np.testing.assert_array_equal(
            logits_after(decoder, len(prompt)), logits_after(fresh, len(prompt))
        )
    assert moved > 10


@pytest.mark.parametrize("rows", [250, 10_000])
def test_rows_come_from_copies_too(tmp_path: Path, rows: int) -> None:
    """Also from one that has to make room for another."""
    decoder = decoder_of(tmp_path, build(SHALLOW, random_weights(SHALLOW)))
    cache = PrefixCache(decoder, budget=rows * decoder.io.row_bytes)
    read(decoder, cache, SYSTEM + FIRST + SECOND)
    read(decoder, cache, SYSTEM + LAST + THIRD)
    prompt = SYSTEM + SECOND + LAST
    assert read(decoder, cache, prompt, moved=True) == len(SYSTEM + SECOND)
    moved = logits_after(decoder, len(prompt))
    read(decoder, cache, prompt)
    np.testing.assert_allclose(logits_after(decoder, len(prompt)), moved, atol=1e-3)


def test_what_is_short_or_has_nothing_in_front_is_read(tmp_path: Path) -> None:
    decoder = decoder_of(tmp_path, build(SHALLOW, random_weights(SHALLOW)))
    cache = PrefixCache(decoder)
    short = SECOND[: MIN_RUN - 1]
    read(decoder, cache, SYSTEM + FIRST + short)
    assert read(decoder, cache, SYSTEM + short + LAST, moved=True) == len(SYSTEM)
    cache.clear()
    read(decoder, cache, FIRST + SECOND)
    assert read(decoder, cache, SECOND + LAST, moved=True) == 0


def _unturned(graph: onnx.GraphProto) -> None:
    """No rotation in the last layer."""
    last = [node for node in graph.node if node.op_type == "GroupQueryAttention"][-1]
    for attribute in last.attribute:
        if attribute.name == "do_rotary":
            attribute.i = 0


def _two_tables(graph: onnx.GraphProto) -> None:
    """Other angles from position 150 on."""
    angle = np.arange(150, 512)[:, None] / 500.0 ** (np.arange(8) / 8)
    for name, later in (("cos_cache", np.cos(angle)), ("sin_cache", np.sin(angle))):

        def changed(table: Array, later: Array = later) -> Array:
            return np.concatenate([table[:150], later.astype(np.float32)])

        _table(graph, name, changed)


@pytest.mark.parametrize("change", [_unturned, _two_tables])
def test_without_a_proof_nothing_is_moved(
    tmp_path: Path, change: Callable[[onnx.GraphProto], None]
) -> None:
    model = build(DEEP, random_weights(DEEP))
    change(model.graph)
    decoder = decoder_of(tmp_path, model, DEEP)
    cache = PrefixCache(decoder)
    prompt = SYSTEM + SECOND + LAST
    read(decoder, cache, prompt)
    fresh = logits_after(decoder, len(prompt))
    for _ in range(2):
        cache.clear()
        read(decoder, cache, SYSTEM + FIRST + SECOND)
        assert read(decoder, cache, prompt, moved=True) == len(SYSTEM)
        np.testing.assert_array_equal(logits_after(decoder, len(prompt)), fresh)


def test_a_device_s_cache_and_cut_attention_move_nothing(tmp_path: Path) -> None:
    graph = build(SHALLOW, random_weights(SHALLOW))
    prompt = SYSTEM + SECOND + LAST
    for device, moves in (("cpu", True), (None, False)):
        decoder = decoder_of(tmp_path, graph, device=device)
        cache = PrefixCache(decoder, moves=moves)
        read(decoder, cache, SYSTEM + FIRST + SECOND)
        assert read(decoder, cache, prompt, moved=True) == len(SYSTEM)
        moved = logits_after(decoder, len(prompt))
        cache.clear()
        read(decoder, cache, prompt)
        np.testing.assert_array_equal(logits_after(decoder, len(prompt)), moved)


@pytest.mark.parametrize(
    ("config", "plain"),
    [
        ({}, True),
        ({"sliding_window": None}, True),
        ({"sliding_window": 4096}, False),
        ({"sliding_window": 4096, "use_sliding_window": False}, True),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, True),
        ({"rope_scaling": {"type": "longrope"}}, False),
        ({"text_config": {"rope_parameters": {"rope_type": "dynamic"}}}, False),
    ],
)
def test_configurations_say_what_attention_is(
    tmp_path: Path, config: dict[str, Any], plain: bool
) -> None:
    write_folder(tmp_path, prompt="chat")
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_folder(tmp_path).plain_attention is plain


def test_a_conversation_goes_on_without_its_oldest_turn(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat", layers=3, context=2048)
    model = OnnxModel(read_folder(tmp_path), threads=1)
    turns = [
        Message(role, f"{number} {role} " * 30)
        for number in range(4)
        for role in ("user", "assistant")
    ]

    def ask(first: int, *, prose: bool) -> tuple[str, int, int]:
        said = (*turns[2 * first :], Message("user", "and now?"))
        request = GenerateRequest(said, "Be brief.", max_output_tokens=8, prose=prose)
        generation = model.start(request)
        text = "".join(piece.text for piece in generation)
        return text, generation.usage.cached_tokens, generation.usage.input_tokens

    model.cache.clear()
    fresh, _, whole = ask(1, prose=False)
    model.cache.clear()
    ask(0, prose=True)
    _, cached, _ = ask(1, prose=True)
    assert whole - cached < 40
    # An edit that follows is not written behind moved rows.
    text, cached, _ = ask(1, prose=False)
    assert cached < 40
    assert text == fresh
