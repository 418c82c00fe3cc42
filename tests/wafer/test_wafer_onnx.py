"""From ONNX graphs and folders to operators: fused, written out, mixtures, unknown operators,
broken files.
"""

from __future__ import annotations

import json
from pathlib import Path

import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from midstream import wafer
from midstream.wafer.models import shape_from_config
from midstream.wafer.onnx_file import read_graph
from midstream.wafer.onnx_shape import workload_from_onnx
from midstream.wafer.operators import Workload, workload_of
from tests.helpers.property import examples
from tests.helpers.wafer_graphs import Builder, Sizes, fused_decoder, mixture, qwen2_like


def check_dimensions(workload: Workload, z: Sizes) -> None:
    shape = workload.shape
    assert (shape.layers, shape.hidden, shape.vocab, shape.ffn) == (
        z.layers,
        z.width,
        z.vocab,
        z.ffn,
    )
    assert (shape.heads, shape.kv_heads, shape.head_dim) == (z.heads, z.kv_heads, z.head)
    assert len(workload.layer_kinds) == z.layers
    linear = [op for op in workload.kinds[-1] if op.kind == "linear"]
    weights = sum(op.weights for op in linear)
    kv = z.kv_heads * z.head
    assert weights == z.width * (2 * z.width + 2 * kv + 3 * z.ffn)
    assert [op.kind for op in workload.head].count("head") == 1


@pytest.mark.parametrize("build", [fused_decoder, qwen2_like])
def test_dimensions_come_out_of_the_graph(build, tmp_path: Path) -> None:
    z = Sizes(layers=4, width=192, heads=6, kv_heads=3, ffn=320, vocab=640)
    check_dimensions(workload_from_onnx(build(tmp_path / "model.onnx", z)), z)


def test_projections_of_one_tensor_share_a_collective(tmp_path: Path) -> None:
    workload = workload_from_onnx(qwen2_like(tmp_path / "q.onnx"))
    qkv, out, gate_up, down = [op for op in workload.kinds[0] if op.kind == "linear"]
    assert (qkv.products, qkv.n, qkv.axis) == (3, 128 + 2 * 64, "y")
    assert (out.products, out.n, out.axis) == (1, 128, "x")
    assert (gate_up.products, gate_up.n, gate_up.axis) == (2, 512, "y")
    assert (down.k, down.n, down.axis) == (256, 128, "x")
    assert len(workload.nodes[2, qkv.name]) == 3
    assert sum(op.kind == "attention" for op in workload.kinds[0]) == 1
    assert not any(op.kind == "host" for kind in workload.kinds for op in kind)


def test_graph_and_shape_agree_on_the_price(tmp_path: Path) -> None:
    """A graph with the layout of a preset costs what the preset costs, up to extra vector work."""
    workload = workload_from_onnx(fused_decoder(tmp_path / "model.onnx"))
    by_graph = wafer.simulate(workload, context=1024, kernels="cerebras-2024-08")
    by_shape = wafer.simulate(workload_of(workload.shape), context=1024, kernels="cerebras-2024-08")
    assert by_graph.step.cycles == pytest.approx(by_shape.step.cycles, rel=0.1)


def test_optimised_graph_is_read_as_well(tmp_path: Path) -> None:
    z = Sizes()
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    for build in (fused_decoder, qwen2_like):
        source = build(tmp_path / "source.onnx", z)
        onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
        workload = workload_from_onnx(tmp_path / "optimised.onnx")
        check_dimensions(workload, z)


def test_unknown_operator_costs_a_round_trip_to_the_host(tmp_path: Path) -> None:
    plain = workload_from_onnx(qwen2_like(tmp_path / "plain.onnx"))
    odd = workload_from_onnx(qwen2_like(tmp_path / "odd.onnx", unknown="SpectralWhatsit"))
    assert [op.name for kind in odd.kinds for op in kind if op.kind == "host"] == ["mlp/odd"]
    before = wafer.simulate(plain, context=512)
    after = wafer.simulate(odd, context=512)
    assert after.breakdown_us["host"] >= 2 * 5.0
    assert after.step.seconds > before.step.seconds + 10e-6
    assert any("on the host" in note for note in after.notes)


@pytest.mark.parametrize("quantised", [False, True])
def test_mixture_nodes_are_priced_as_sliced_experts(quantised: bool, tmp_path: Path) -> None:
    workload = workload_from_onnx(mixture(tmp_path / "moe.onnx", quantised))
    up = next(op for op in workload.kinds[0] if op.name == "experts_gate_up")
    down = next(op for op in workload.kinds[0] if op.name == "experts_down")
    assert (up.k, up.n, up.copies, up.stored) == (128, 128, 2, 8)
    assert (down.k, down.n, down.reduced) == (64, 128, 128)
    assert up.weight_bits == (4 if quantised else 16)


def test_gpt2_like_graph_with_projections_inside_attention(tmp_path: Path) -> None:
    b, d = Builder(), 128
    b.inputs.append(helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "s"]))
    b.random("wte", 512, d)
    x = b.op("Gather", ["wte", "input_ids"], "x0", "/wte/Gather")
    for i in range(2):
        p = f"/h.{i}"
        scale, bias = b.random(f"s{i}", d), b.random(f"b{i}", d)
        a = b.op("LayerNormalization", [x, scale, bias], f"a{i}", p + "/ln_1")
        inputs = [a, b.random(f"qkv{i}", d, 3 * d), b.random(f"qkvb{i}", 3 * d)]
        y = b.contrib("Attention", inputs, f"y{i}", p + "/attn", num_heads=4, unidirectional=1)
        y = b.op(
            "Gemm", [y, b.random(f"o{i}", d, d), b.random(f"ob{i}", d)], f"o{i}.y", p + "/proj"
        )
        outs, more = [f"n{i}", "", "", f"r{i}"], [b.random(f"t{i}", d), b.random(f"u{i}", d)]
        n = b.contrib("SkipLayerNormalization", [x, y, *more], outs, p + "/ln_2")
        up, bias = b.random(f"up{i}", d, 4 * d), b.random(f"ub{i}", 4 * d)
        m = b.contrib(
            "FastGelu", [b.op("MatMul", [n, up], f"m{i}", p + "/fc"), bias], f"g{i}", p + "/g"
        )
        down = b.op("MatMul", [m, b.random(f"down{i}", 4 * d, d)], f"d{i}", p + "/fc2")
        x = b.op("Add", [f"r{i}", down], f"x{i + 1}", p + "/Add")
    scale, bias = b.random("sf", d), b.random("bf", d)
    x = b.op("LayerNormalization", [x, scale, bias], "f", "/ln_f")
    head = b.op("Transpose", ["wte"], "wteT", "/T", perm=[1, 0])
    b.op("MatMul", [x, head], "logits", "/lm_head/MatMul")
    b.outputs.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "s", 512]))
    workload = workload_from_onnx(b.save(tmp_path / "gpt2.onnx"))
    shape = workload.shape
    assert (shape.layers, shape.hidden, shape.heads, shape.vocab) == (2, d, 4, 512)
    assert shape.tied
    held = sum(op.weights for op in workload.kinds[0] if op.kind == "linear")
    assert held == 12 * d * d
    assert wafer.simulate(workload, context=512).rate.mid > 0


def test_reader_matches_the_onnx_package(tmp_path: Path) -> None:
    import onnx

    path = qwen2_like(tmp_path / "q.onnx")
    ours, theirs = read_graph(path), onnx.load(str(path)).graph
    assert [n.op_type for n in ours.nodes] == [n.op_type for n in theirs.node]
    assert [n.inputs for n in ours.nodes] == [tuple(n.input) for n in theirs.node]
    dims = {t.name: tuple(t.dims) for t in theirs.initializer}
    assert {name: t.dims for name, t in ours.initializers.items()} == dims
    assert ours.inputs[1].dims == ("batch", 2, "past", 32)


@examples(60)
@given(data=st.binary(max_size=400))
def test_rubbish_is_refused_with_a_sentence(data: bytes, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("rubbish") / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(wafer.ModelUnavailableError, match=r"model\.onnx"):
        workload_from_onnx(path)


@examples(30)
@given(cut=st.integers(64, 5000))  # less only loses the opset list behind the graph
def test_truncated_models_never_crash(cut: int, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = fused_decoder(folder / "whole.onnx", Sizes(layers=1)).read_bytes()
    path = folder / "model.onnx"
    path.write_bytes(whole[: max(1, len(whole) - cut)])
    with pytest.raises(wafer.ModelUnavailableError):
        workload_from_onnx(path)


def test_a_given_precision_overrides_the_graphs(tmp_path: Path) -> None:
    workload = workload_from_onnx(fused_decoder(tmp_path / "model.onnx", Sizes(width=512)))
    assert workload.shape.native_bits == 4
    native = wafer.simulate(workload, context=64).plan
    wide = wafer.simulate(workload, context=64, weight_bits=16).plan
    assert (native.weight_bits, wide.weight_bits) == (4, 16)
    assert sum(i.weight_bytes * i.rect.pes for i in wide.layer_items) > 3 * sum(
        i.weight_bytes * i.rect.pes for i in native.layer_items
    )


def test_folders(tmp_path: Path) -> None:
    config = {
        "num_hidden_layers": 61,
        "hidden_size": 7168,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "vocab_size": 163840,
        "intermediate_size": 18432,
        "n_routed_experts": 384,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert wafer.resolve(str(tmp_path)).shape.weights() == wafer.preset("kimi-k2.6").weights()
    genai = {"model": {"decoder": {"filename": "decoder.onnx"}}}
    (tmp_path / "genai_config.json").write_text(json.dumps(genai))
    fused_decoder(tmp_path / "decoder.onnx")
    wafer.resolve.cache_clear()
    assert wafer.resolve(str(tmp_path)).shape.hidden == 128, "a graph is preferred"
    with pytest.raises(wafer.ModelUnavailableError, match="lacks"):
        shape_from_config({"hidden_size": 8}, "x", "config.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(wafer.ModelUnavailableError, match="no ONNX graph"):
        wafer.resolve(str(tmp_path / "empty"))
