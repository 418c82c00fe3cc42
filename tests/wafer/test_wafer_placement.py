"""Placement: exact counts, refusals with the right number, rectangles that tile, cache shift,
drawings.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream import wafer
from midstream.wafer.machines import wafer as find_wafer
from midstream.wafer.operators import workload_of
from midstream.wafer.picture import filling
from midstream.wafer.placement import partition, treemap
from midstream.wafer.plan import kv_capacity, stored_bytes
from midstream.wafer.quantity import Quantity
from midstream.wafer.text import wafer_text
from tests.helpers.property import examples

WSE3 = find_wafer("wse3")
LAUNCH = wafer.generation("cerebras-2024-08")
BILLIONS = {
    "llama2-13b": 13.0,
    "llama3.1-8b": 8.03,
    "llama3.1-70b": 70.6,
    "llama3.1-405b": 405.9,
    "qwen2-72b": 72.7,
    "qwen3-32b": 32.8,
    "qwen3-235b-a22b": 235.1,
    "qwen3-coder-480b": 480.2,
    "gpt-oss-120b": 116.8,
    "llama4-scout": 107.8,
    "llama4-maverick": 400.7,
    "deepseek-v3": 671.0,
    "codellama-34b": 33.7,
}


def test_parameter_counts_of_presets() -> None:
    for name, billions in BILLIONS.items():
        assert wafer.preset(name).weights() / 1e9 == pytest.approx(billions, rel=0.01), name


def test_operators_hold_exactly_the_weights_of_the_shape() -> None:
    for name in wafer.preset_names():
        shape = wafer.preset(name)
        workload = workload_of(shape)
        held = sum(op.weights for kind in workload.layer_kinds for op in workload.kinds[kind])
        held += sum(op.weights for op in workload.head) - shape.hidden  # final norm
        extra = 0
        if shape.latent:  # norms of the compressed query and cache
            extra = shape.layers * (shape.latent.query_rank + shape.latent.kv_rank)
        assert held + shape.embedding_weights == shape.weights() + extra, name


@pytest.mark.parametrize(
    ("model", "wafers"),
    [("llama3.1-8b", 1), ("llama3.1-70b", 4), ("gpt-oss-120b", 2), ("llama3.2-1b", 1)],
)
def test_smallest_wafer_count(model: str, wafers: int) -> None:
    """8B on one and 70B on four systems at 16 bit are the vendor's own counts."""
    shape = wafer.preset(model)
    assert wafer.place(shape, WSE3, LAUNCH, context=2048).wafers == wafers
    if wafers > 1:
        with pytest.raises(wafer.DoesNotFitError) as refused:
            wafer.place(shape, WSE3, LAUNCH, wafers=wafers - 1, context=2048)
        assert refused.value.smallest_wafers == wafers
        assert "KB" in str(refused.value)


def test_almost_twenty_billion_at_16_bit_fit_one_wafer() -> None:
    """The launch blog says about 20 B; padding and buffers cost us the last two."""
    small = replace(wafer.preset("llama3.1-70b"), name="cut", layers=19)
    assert 18e9 < small.weights() < 21e9
    assert wafer.place(small, WSE3, LAUNCH).wafers == 1
    assert wafer.place(replace(small, layers=22), WSE3, LAUNCH).wafers == 2


def test_long_context_is_refused_with_the_count_that_holds_it() -> None:
    shape = wafer.preset("llama3.1-70b")
    with pytest.raises(wafer.DoesNotFitError, match="cache holds") as refused:
        wafer.place(shape, WSE3, LAUNCH, wafers=4, context=131072)
    count = refused.value.smallest_wafers
    assert count is not None
    plan = wafer.place(shape, WSE3, LAUNCH, wafers=count, context=131072)
    assert plan.kv.shift >= 131072
    with pytest.raises(wafer.DoesNotFitError):
        wafer.place(shape, WSE3, LAUNCH, wafers=count - 1, context=131072)


def test_impossible_models_are_refused_without_a_count() -> None:
    giant = replace(wafer.preset("llama3.1-405b"), name="giant", ffn=3_000_000)
    with pytest.raises(wafer.DoesNotFitError) as refused:
        wafer.place(giant, WSE3, LAUNCH)
    assert refused.value.smallest_wafers is None


def test_colours_are_a_limit() -> None:
    numbers = {**WSE3.numbers, "colours": Quantity(20, "colours", "D", "test")}
    with pytest.raises(wafer.DoesNotFitError, match="colours"):
        wafer.place(wafer.preset("llama3.2-1b"), replace(WSE3, name="few", numbers=numbers), LAUNCH)


@pytest.mark.parametrize("model", ["llama3.1-8b", "llama3.1-70b", "llama4-maverick", "kimi-k2.6"])
@pytest.mark.parametrize("mode", ["layer-rect", "time-mux"])
def test_every_pe_holds_what_is_counted(model: str, mode: str) -> None:
    plan = wafer.place(wafer.preset(model), WSE3, LAUNCH, mode=mode, context=1024)
    room = WSE3.count("sram_bytes")
    width, height = WSE3.fabric(halo=False)
    assert [item.layer for item in plan.layer_items] == list(range(plan.shape.layers))
    for item in plan.items:
        assert plan.used_bytes(item) <= room
        assert item.rect.x + item.rect.width <= width
        assert item.rect.y + item.rect.height <= height
    assert 0 <= plan.padding < 0.2
    stored = sum(i.weight_bytes * i.rect.pes for i in plan.items)
    assert stored >= plan.shape.weights() * plan.weight_bits / 8
    assert plan.colours <= WSE3.count("colours")
    assert [i.wafer for i in plan.items] == sorted(i.wafer for i in plan.items)


def test_padded_bytes_by_hand() -> None:
    """One layer of 8B on a 100 x 100 rectangle: every tile rounded up in both directions."""
    from midstream.wafer.cost import Rectangle
    from midstream.wafer.placement import padded_weight_bytes

    operators = workload_of(wafer.preset("llama3.1-8b")).kinds[0]
    c = lambda a: -(-a // 100)  # noqa: E731
    tiles = c(4096) * c(6144) + c(4096) * c(4096) + c(4096) * c(28672) + c(14336) * c(4096)
    norms = 2 * 2 * c(4096)
    assert padded_weight_bytes(operators, Rectangle(100, 100), 16) == 2 * tiles + norms


def test_cache_shift_ratios_of_waferllm() -> None:
    """Published capacities: 137,548 against 382 tokens on 360 rows, 6,168 against 16 on 375."""
    for rows, shift, concat in ((360, 137_548, 382), (375, 6_168, 16)):
        per_row = shift / rows
        capacity = kv_capacity(per_row * 24.0, 24.0, rows)
        assert (capacity.shift, capacity.concat) == (shift, concat)
    plan = wafer.place(wafer.preset("llama3.1-8b"), WSE3, LAUNCH)
    assert plan.kv.rows * plan.kv.concat <= plan.kv.shift < plan.kv.rows * (plan.kv.concat + 1)


def test_cache_bytes_by_hand() -> None:
    assert wafer.preset("llama3.1-8b").kv_bytes(4096) == 4096 * 2 * 1024 * 2 * 32
    assert wafer.preset("kimi-k2.6").kv_bytes(1000) == 1000 * 576 * 2 * 61
    oss = wafer.preset("gpt-oss-120b")
    assert oss.kv_bytes(8192) == 2 * 2 * 512 * (18 * 8192 + 18 * 128)


def test_padding_is_within_the_published_range_on_odd_grids() -> None:
    for model in ("llama3.1-8b", "llama3.1-70b", "qwen3-32b"):
        plan = wafer.place(wafer.preset(model), WSE3, LAUNCH)
        assert plan.padding <= 0.13, model


@examples(80)
@given(
    weights=st.lists(st.floats(0.2, 5.0), min_size=1, max_size=60),
    width=st.integers(60, 800),
    height=st.integers(60, 1200),
)
def test_treemap_tiles_the_wafer(weights: list[float], width: int, height: int) -> None:
    cut = treemap(weights, width, height)
    assert len(cut) == len(weights)
    assert sum(r.pes for r in cut) == width * height
    for a, b in pairwise(cut):
        apart_x = max(a.x, b.x) - min(a.x + a.width, b.x + b.width)
        apart_y = max(a.y, b.y) - min(a.y + a.height, b.y + b.height)
        assert apart_x <= 0, "neighbours touch or overlap in one direction"
        assert apart_y <= 0, "and meet in the other"
    for i, a in enumerate(cut):
        for b in cut[i + 1 :]:
            across = a.x < b.x + b.width and b.x < a.x + a.width
            assert not (across and a.y < b.y + b.height and b.y < a.y + a.height), "no overlap"


@given(
    sizes=st.lists(st.floats(0.1, 9.0), min_size=1, max_size=40).map(tuple),
    parts=st.integers(1, 12),
)
def test_partition_is_contiguous_and_no_worse_than_even(
    sizes: tuple[float, ...], parts: int
) -> None:
    cut = partition(sizes, parts)
    assert [i for part in cut for i in part] == list(range(len(sizes)))
    assert len(cut) <= parts
    largest = max(sum(sizes[i] for i in part) for part in cut)
    assert largest <= max(max(sizes), sum(sizes) / parts + max(sizes)) * (1 + 1e-6)


def test_drawings() -> None:
    plan = wafer.place(wafer.preset("llama3.1-8b"), WSE3, LAUNCH)
    text = wafer_text(plan, columns=60)
    lines = text.splitlines()
    assert {len(line) for line in lines} == {60}
    assert set("0123456789abcdefghijklmnopqrstuv~^") == set(text) - {"\n"}
    assert wafer_text(plan, columns=40, colour=True).count("▀") == 40 * len(
        wafer_text(plan, columns=40, colour=True).splitlines()
    )
    empty, full = (
        max(filling(plan, item, "kv", context) for item in plan.items)
        for context in (0, plan.kv.shift)
    )
    assert empty == 0.0
    assert full == pytest.approx(1.0, abs=0.05)


def test_wrong_values_are_refused() -> None:
    shape = wafer.preset("llama3.2-1b")
    for wrong in (
        {"wafers": 0},
        {"weight_bits": 3},
        {"kv_bits": 4},
        {"context": 0},
        {"mode": "pile"},
    ):
        with pytest.raises(wafer.WaferUsageError):
            wafer.place(shape, WSE3, LAUNCH, **wrong)


@pytest.mark.parametrize("model", ["llama3.1-70b", "gpt-oss-120b", "kimi-k2.6"])
@pytest.mark.parametrize("context", [1, 4096, 32768])
def test_sram_in_use_adds_up_over_wafers(model: str, context: int) -> None:
    plan = wafer.place(wafer.preset(model), WSE3, LAUNCH, weight_bits=8)
    per_wafer = [plan.sram_bytes(number, context) for number in range(plan.wafers)]
    assert sum(cache for _, cache in per_wafer) == pytest.approx(plan.shape.kv_bytes(context))
    weights = sum(weights for weights, _ in per_wafer)
    assert weights * (1 - plan.padding) == pytest.approx(stored_bytes(plan.workload, 8))
