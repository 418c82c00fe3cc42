"""The cost model against a simpler, independent closed form of the same kernels, and against the
shortcuts that must not be in it.

The closed form below is ten lines: no event simulation, no placement, own constants (issue 3.65,
shift 370, collective 590 cycles, fitted by somebody else to the same five rows).  Where both agree,
an error would have to be in the physics that they share.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from midstream import wafer
from midstream.wafer.estimate import decode_step
from midstream.wafer.kernels import GENERATIONS
from midstream.wafer.predict import predict
from midstream.wafer.quantity import Quantity
from midstream.wafer.rows import COLUMNS, read_rows

ISSUE, SHIFT, COLLECTIVE, CLOCK, CONTEXT = 3.65, 370, 590, 1.1e9, 4096
GROUPS = {360: 20, 375: 25, 420: 21, 480: 24, 540: 27, 600: 25, 660: 30, 720: 30, 750: 30}
MODELS = ("llama3-8b", "llama2-13b", "codellama-34b", "qwen2-72b")


def c(a: int, b: int) -> int:
    return -(-a // b)


def gemv(rows: int, columns: int) -> float:
    return rows * (ISSUE + 0.5 * columns)


def tree(values: int, side: int) -> float:
    group = GROUPS[side]
    hops, stages = group / 2 + side, 5 * (group / 2 + side / (2 * group))
    return hops + stages + 6 * c(values, 2)


def allreduce(values: int, side: int) -> float:
    return tree(values, side) + COLLECTIVE


def decode_rate(model: str, side: int) -> float:
    shape = wafer.preset(model)
    d, f, s = c(shape.hidden, side), c(shape.ffn, side), c(CONTEXT, side)
    cycles = 4 * gemv(d, d) + gemv(d, s) + gemv(s, d) + 2 * gemv(d, f) + gemv(f, d)
    cycles += sum(allreduce(n, side) for n in (1, 1, 1, 1, 3 * d, s, d, d, 2 * f, d))
    return CLOCK / (shape.layers * (cycles + 10 * (s + f)))


def prefill_rate(model: str, side: int, tokens: int = CONTEXT) -> float:
    shape = wafer.preset(model)
    d, f, s = c(shape.hidden, side), c(shape.ffn, side), c(tokens, side)
    vectors = 4 * d * d + 2 * d * s + 3 * d * f
    cycles = side * (vectors * (ISSUE + 0.5 * s) + 9 * SHIFT)
    return tokens * CLOCK / (shape.layers * cycles)


def ours(**cells: object) -> float:
    record = {"hardware": "wse2", "kernels": "waferllm-wse2", "published": 1, **cells}
    line = ",".join(str(record.get(column, "")) for column in COLUMNS)
    rows, problems = read_rows(",".join(COLUMNS) + "\n" + line)
    assert not problems
    return predict(rows[0]).point


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("side", [360, 375, 420, 540, 660])
def test_decode_agrees_with_the_closed_form(model: str, side: int) -> None:
    point = ours(model=model, phase="decode", grid=side, context=CONTEXT)
    assert point == pytest.approx(decode_rate(model, side), rel=0.02)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("side", [480, 600, 660, 720, 750])
def test_prefill_agrees_with_the_closed_form(model: str, side: int) -> None:
    point = ours(model=model, phase="prefill", grid=side, context=CONTEXT, prompt=CONTEXT)
    assert point == pytest.approx(prefill_rate(model, side), rel=0.03)


@pytest.mark.parametrize(
    ("model", "grids"), [("llama3-8b", (660, 360)), ("llama2-13b", (750, 375))]
)
@pytest.mark.parametrize(("prompt", "output"), [(2048, 128), (4096, 128), (2048, 2048)])
def test_end_to_end_agrees_with_the_closed_form(
    model: str, grids: tuple[int, int], prompt: int, output: int
) -> None:
    first = prompt / prefill_rate(model, grids[0], prompt)
    then = output / decode_rate(model, grids[1])
    grid = f"{grids[0]}/{grids[1]}"
    point = ours(model=model, phase="end-to-end", grid=grid, prompt=prompt, output=output)
    assert point == pytest.approx(output / (first + then), rel=0.03)


@pytest.mark.parametrize("size", [4096, 8192, 16384, 32768])
@pytest.mark.parametrize("side", [720, 750])
def test_a_product_agrees_with_the_closed_form(size: int, side: int) -> None:
    tile = c(size, side)
    # One more vector instruction clears the result; no layer is there to run between collectives.
    cycles = gemv(tile + 1, tile) + tree(tile, side)
    point = ours(model=f"gemv-{size}", grid=side, unit="cycles")
    assert point == pytest.approx(cycles, rel=0.03)


def changed(**numbers: float):
    """A WSE-3 with other headline numbers."""
    machine = wafer.hardware("wse3")
    assert isinstance(machine, wafer.Wafer)
    new = {name: Quantity(value, "", "D", "test") for name, value in numbers.items()}
    name = "wse3-" + "-".join(numbers)  # machines are told apart by name where prices are kept
    return replace(machine, name=name, numbers={**machine.numbers, **new})


@pytest.mark.parametrize("kernels", sorted(GENERATIONS))
@pytest.mark.parametrize("model", ["llama3.1-8b", "gpt-oss-120b"])
def test_no_shortcut_is_in_the_model(model: str, kernels: str) -> None:
    """Neither the advertised SRAM bandwidth nor the sparse peak moves a decode step by a cycle, and
    a faster I/O only shortens the hand-over of activations: nothing streams weights through it.
    """

    def step(machine: wafer.Wafer):
        plan = wafer.place(
            wafer.preset(model), machine, GENERATIONS[kernels], check=False, wafers=2
        )
        return decode_step(plan, context=CONTEXT)

    plain = wafer.hardware("wse3")
    assert isinstance(plain, wafer.Wafer)
    base = step(plain)
    for numbers in ({"sram_pb_s": 2100.0}, {"dense_pflops": 125.0}):
        other = step(changed(**numbers))
        assert (other.cycles, other.seconds) == (base.cycles, base.seconds), numbers
    io = step(changed(io_gb_s=150e9))
    assert io.cycles == base.cycles
    activation_us = 2 * 2 * wafer.preset(model).hidden / 150e3
    assert base.off_wafer_us - io.off_wafer_us == pytest.approx(activation_us, rel=1e-6)
    assert activation_us < 0.01 * base.seconds * 1e6


def test_the_peak_that_is_shown_is_the_dense_one() -> None:
    for name, dense in (("wse2", 7.5), ("wse3", 15.6)):
        machine = wafer.hardware(name)
        peak = machine.number("cores_sold") * machine.number("simd_fp16") * 2
        assert machine.number("dense_pflops") == dense
        assert peak * machine.number("clock_ghz") * 1e9 == pytest.approx(dense * 1e15, rel=0.02)
    report = wafer.simulate("llama3.1-8b", context=1024)
    constants = report.as_dict()["constants"]
    assert isinstance(constants, dict)
    values = [entry["value"] for entry in constants.values()]
    assert 125.0 not in values
    assert report.sram_share < 0.01, "one stream is bound by latency"
