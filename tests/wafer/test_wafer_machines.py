"""Hardware as data, and the GPU baseline that rests on it."""

from __future__ import annotations

import pytest

from midstream import wafer
from midstream.wafer import gpu
from midstream.wafer.machines import Gpu, Wafer, hardware_names


def test_every_number_has_a_unit_a_source_and_a_trust_mark() -> None:
    assert set(hardware_names()) == {"wse2", "wse3", "a100", "h100", "h200", "b200"}
    for name in hardware_names():
        for key, number in wafer.hardware(name).numbers.items():
            assert number.value > 0, (name, key)
            assert number.trust in ("P", "A", "S", "D"), (name, key)
            assert len(number.source) > 8, (name, key)
            assert number.unit, (name, key)


def test_wafers_are_consistent_with_their_headlines() -> None:
    for name, gigabytes, pflops in (("wse2", 40, 7.5), ("wse3", 44, 15.6)):
        machine = wafer.hardware(name)
        assert isinstance(machine, Wafer)
        cores = machine.count("cores_sold")
        assert cores * machine.count("sram_bytes") / 1e9 == pytest.approx(gigabytes, rel=0.05)
        width, height = machine.fabric(halo=False)
        assert 0.85 < width * height / cores < 1.0
        dense = 2 * machine.number("simd_fp16") * cores * machine.clock_hz / 1e15
        assert dense == pytest.approx(pflops, rel=0.05), "dense, not the sparse headline"
    whole = wafer.hardware("wse2")
    assert isinstance(whole, Wafer)
    assert whole.fabric(halo=True) == (750, 994)


def test_names() -> None:
    for spelling in ("WSE-3", "cs3", "CS-3", "Cerebras WSE3"):
        assert wafer.hardware(spelling).name == "wse3"
    eight = wafer.hardware("8xH200")
    assert isinstance(eight, Gpu)
    assert (eight.name, eight.count_gpus, eight.nodes) == ("h200", 8, 1)
    sixteen = wafer.hardware("a100x16")
    assert isinstance(sixteen, Gpu)
    assert sixteen.nodes == 2
    for wrong in ("tpu", "h100x0", "", "x8"):
        with pytest.raises(wafer.WaferUsageError):
            wafer.hardware(wrong)


def test_clock_changes_seconds_not_cycles() -> None:
    fast = wafer.simulate("llama3.1-8b", kernels="cerebras-2024-08")
    slow = wafer.simulate("llama3.1-8b", kernels="cerebras-2024-08", clock_ghz=0.55)
    assert slow.step.cycles == fast.step.cycles
    assert slow.step.seconds == pytest.approx(2 * fast.step.seconds)
    with pytest.raises(wafer.WaferUsageError):
        wafer.simulate("llama3.1-8b", clock_ghz=50.0)


def decode(machine: str, model: str = "llama3.1-70b", **options):
    found = wafer.hardware(machine)
    assert isinstance(found, Gpu)
    return gpu.decode(wafer.preset(model), found, context=4096, **options)


def test_gpu_decode_is_bounded_by_its_memory() -> None:
    for machine in ("a100x8", "h100x8", "h200x8", "b200x8"):
        estimate = decode(machine)
        found = wafer.hardware(machine)
        assert isinstance(found, Gpu)
        peak = found.count_gpus * found.number("bandwidth_tb_s") * 1e12
        assert estimate.seconds > wafer.preset("llama3.1-70b").weights() * 2 / peak
        assert sum(estimate.breakdown_us.values()) == pytest.approx(estimate.seconds * 1e6)
    assert decode("b200x8").seconds < decode("h200x8").seconds < decode("h100x8").seconds
    assert not decode("h100").fits_memory
    assert decode("h100", weight_bits=4).fits_memory
    assert decode("a100").rate.mark == "calibrated"
    assert decode("h100").rate.mark == "assumed"


def test_more_gpus_stop_helping_across_nodes() -> None:
    """The published 8B rows: eight GPUs help, sixteen over two nodes hurt."""
    rates = [decode(f"a100x{n}", "llama3-8b").rate.mid for n in (1, 8, 16)]
    assert rates[1] > 3 * rates[0]
    assert rates[2] < rates[1]


def test_mixtures_read_only_active_experts() -> None:
    dense = decode("h200x8", "llama3.1-70b").breakdown_us["weights"]
    mixture = decode("h200x8", "gpt-oss-120b").breakdown_us["weights"]
    assert mixture < 0.1 * dense
