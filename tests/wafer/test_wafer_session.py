"""The provider: ONNX Runtime's face, CPU numerics bit for bit, two clocks, a profile that Perfetto
opens.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from midstream import wafer
from tests.helpers.wafer_checks import check_trace
from tests.helpers.wafer_graphs import Sizes, fused_decoder, qwen2_like

SIM = "WaferSimExecutionProvider"
CPU = "CPUExecutionProvider"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return fused_decoder(tmp_path / "model.onnx")


def open_session(path: Path, options: dict[str, str] | None = None, sess_options=None):
    return wafer.InferenceSession(
        str(path), sess_options, providers=[(SIM, options or {"context": "64"}), CPU]
    )


def feed(session, tokens: int, past: int) -> dict[str, np.ndarray]:
    values: dict[str, np.ndarray] = {
        "input_ids": np.arange(1, tokens + 1, dtype=np.int64)[None],
        "seqlens_k": np.array([past + tokens - 1], np.int32),
        "total_sequence_length": np.array(past + tokens, np.int32),
    }
    for info in session.get_inputs():
        if "past" in info.name:
            values[info.name] = np.zeros(info.shape, np.float32)
    return values


def test_numerics_are_onnx_runtimes(model: Path) -> None:
    session = open_session(model)
    plain = onnxruntime.InferenceSession(str(model), providers=[CPU])
    inputs = feed(session, 3, 0)
    ours, theirs = session.run(["logits"], inputs), plain.run(["logits"], inputs)
    assert np.array_equal(ours[0], theirs[0])
    assert [i.name for i in session.get_inputs()] == [i.name for i in plain.get_inputs()]
    assert [o.name for o in session.get_outputs()] == [o.name for o in plain.get_outputs()]
    assert session.get_modelmeta().graph_name == plain.get_modelmeta().graph_name


def test_it_says_the_truth_about_who_computes(model: Path) -> None:
    session = open_session(model, {"wafers": "1", "kernels": "cerebras-2024-08", "context": "64"})
    assert session.get_providers() == [SIM, CPU]
    ours = session.get_provider_options()[SIM]
    assert ours["is_virtual"] == "1"
    assert ours["simulated"] == "timing"
    assert ours["numerics_provider"] == CPU
    assert ours["kernels"] == "cerebras-2024-08"


def test_two_clocks(model: Path) -> None:
    session = open_session(model)
    assert session.clocks.wafer_s == 0.0
    session.run(["logits"], feed(session, 8, 0))
    after_prompt = session.clocks
    session.run(["logits"], feed(session, 1, 8))
    clocks = session.clocks
    assert clocks.simulated
    assert (clocks.runs, clocks.tokens) == (2, 9)
    assert clocks.wall_s > after_prompt.wall_s > 0
    one_step = session.simulate(context=64).step.seconds
    assert clocks.wafer_s - after_prompt.wafer_s == pytest.approx(one_step)


def test_io_binding_countstokens_and_context(model: Path) -> None:
    session = open_session(model)
    inputs = feed(session, 1, 0)
    binding = session.io_binding()
    for name, value in inputs.items():
        if "past" in name:
            cache = onnxruntime.OrtValue.ortvalue_from_numpy(value)
            binding.bind_ortvalue_input(name, cache)
            binding.bind_ortvalue_output(name.replace("past_key_values", "present"), cache)
        elif name == "input_ids":
            binding.bind_cpu_input(name, value)
        else:
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
    binding.bind_output("logits")
    session.run_with_iobinding(binding)
    by_binding = session.clocks.wafer_s
    logits = binding.copy_outputs_to_cpu()[-1]
    other = open_session(model)
    assert np.allclose(logits, other.run(["logits"], inputs)[0], atol=1e-6)
    assert other.clocks.wafer_s == pytest.approx(by_binding)
    binding.clear_binding_inputs()
    assert not binding.bound


def test_context_is_read_from_masks_and_caches(tmp_path: Path) -> None:
    from midstream.wafer.session import tokens_and_context

    ids = np.zeros((1, 4), np.int64)
    assert tokens_and_context({"input_ids": ids}, []) == (4, 4)
    mask = np.ones((1, 20), np.int64)
    assert tokens_and_context({"input_ids": ids, "attention_mask": mask}, []) == (4, 20)
    mask[0, 12:] = 0
    assert tokens_and_context({"input_ids": ids, "attention_mask": mask}, []) == (4, 12)
    past = np.zeros((1, 2, 30, 16), np.float32)
    assert tokens_and_context({"input_ids": ids, "past.0.key": past}, ["past.0.key"]) == (4, 34)
    session = open_session(qwen2_like(tmp_path / "plain.onnx"))
    z = Sizes()
    cache = np.zeros((1, z.kv_heads, 10, z.head), np.float32)
    inputs: dict[str, np.ndarray] = {"input_ids": np.array([[3]], np.int64)}
    inputs |= {i.name: cache for i in session.get_inputs() if "past" in i.name}
    session.run(None, inputs)
    assert session.clocks.tokens == 1


def test_profile_opens_in_perfetto(model: Path, tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "prof")
    session = open_session(model, sess_options=options)
    session.run(["logits"], feed(session, 4, 0))
    session.run(["logits"], feed(session, 1, 4))
    path = Path(session.end_profiling())
    events = json.loads(path.read_text())
    check_trace(events)
    nodes = [e for e in events if e.get("cat") == "Node"]
    assert {e["args"]["provider"] for e in nodes} == {SIM}
    assert {e["args"]["numerics_provider"] for e in nodes} == {CPU}
    assert "/model/layers.0/attn/GroupQueryAttention_kernel_time" in {e["name"] for e in nodes}
    span = max(e["ts"] + e["dur"] for e in events if e["ph"] == "X")
    assert span == pytest.approx(session.clocks.wafer_s * 1e6, rel=0.05), "wafer clock, not wall"
    assert session.numerics_profile
    assert Path(session.numerics_profile).is_file()
    assert session.end_profiling() == ""


def test_our_name_never_reaches_onnx_runtime(model: Path) -> None:
    with pytest.raises(wafer.WaferUsageError, match="does not name"):
        wafer.InferenceSession(str(model), providers=[CPU])
    with pytest.raises(wafer.WaferUsageError, match="not available"):
        wafer.InferenceSession(str(model), providers=[SIM, "MoonExecutionProvider"])
    with pytest.raises(wafer.WaferUsageError, match="Option 'wavers'"):
        open_session(model, {"wavers": "2"})
    with pytest.raises(wafer.ModelUnavailableError):
        open_session(model.with_name("missing.onnx"))
    session = wafer.InferenceSession(str(model), providers=[SIM])
    assert session.get_providers() == [SIM, CPU]
    by_list = wafer.InferenceSession(
        str(model), providers=[SIM, CPU], provider_options=[{"context": "32"}, {}]
    )
    assert by_list.options.context == 32


def test_a_model_that_does_not_fit_is_refused(model: Path) -> None:
    with pytest.raises(wafer.DoesNotFitError) as refused:
        open_session(model, {"wafers": "1", "context": "90000000"})
    assert "cache holds" in str(refused.value)


def test_bytes_and_changed_options(model: Path) -> None:
    session = wafer.InferenceSession(model.read_bytes(), providers=[(SIM, {"context": "64"}), CPU])
    session.run(["logits"], feed(session, 1, 0))
    before = session.clocks.wafer_s
    session.set_providers([(SIM, {"context": "64", "clock_ghz": "0.55"}), CPU])
    assert session.clocks.runs == 0
    session.run(["logits"], feed(session, 1, 0))
    assert session.clocks.wafer_s > before
    original = open_session(model, {"context": "64", "graph": "original"})
    assert original.workload.shape.layers == session.workload.shape.layers
