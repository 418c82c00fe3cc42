"""Tables of strangers: forgiving about order, names, units and gaps; precise about rows that
were left out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.wafer import validation
from midstream.wafer.baselines import compare
from midstream.wafer.cost import Rectangle, decode_cost
from midstream.wafer.errors import DoesNotFitError, WaferUsageError
from midstream.wafer.estimate import machine
from midstream.wafer.kernels import generation
from midstream.wafer.machines import Wafer
from midstream.wafer.machines import hardware as machine_of
from midstream.wafer.models import preset, preset_names, resolve
from midstream.wafer.options import Options
from midstream.wafer.predict import predict
from midstream.wafer.report import simulate
from midstream.wafer.rows import COLUMNS, parse_grid, read_rows
from midstream.wafer.speculation import speculation_kind
from tests.helpers.property import examples

HEADER = ",".join(COLUMNS)


def only(text: str):
    rows, problems = read_rows(text)
    assert not problems, problems
    assert len(rows) == 1
    return rows[0]


def point(text: str) -> float:
    return predict(only(text)).point


def test_column_order_case_delimiter_and_gaps_do_not_matter() -> None:
    plain = f"{HEADER}\nwse2,waferllm-wse2,llama3-8b,decode,420,1,4096,1,,,,2699.9,tok/s,paper"
    shuffled = "Published;MODEL; Grid ;extra;Hardware\n2699.9;Llama-3-8B;420;hello;WSE-2\n"
    assert point(plain) == point(shuffled)
    tabs = (
        "\ufeff# a comment\n\nhw\tmodel\tstage\tmesh\tctx\tmeasured\n"
        "cs-2\tllama3_8b\tDecoding\t420x420\t4k\t~2,700 tok/s\n"
    )
    assert only(tabs).published == 2700
    assert point(tabs) == point(plain)


@pytest.mark.parametrize(
    "grid",
    [
        "660/360",
        "660;360",
        "660 / 360",
        "660^2/360^2",
        "660x660 / 360x360",
        "prefill=660 decode=360",
        "decode: 360, prefill: 660",
        "660² | 360²",
        "prefill 660x660; decode 360x360",
        "660 -> 360",
    ],
)
def test_grids_per_phase(grid: str) -> None:
    row = only(f'{HEADER}\nwse2,waferllm,llama3-8b,e2e,"{grid}",,4096,1,2048,128,,700,tok/s,x')
    assert row.grids == (Rectangle(660, 660), Rectangle(360, 360))
    assert row.phase == "end-to-end"


@pytest.mark.parametrize(
    ("cells", "attribute", "value"),
    [
        ({"wafers": "6 (assumed)"}, "wafers", 6),
        ({"wafers": "~12"}, "wafers", 12),
        ({"wafers": "n/a"}, "wafers", None),
        ({"wafers": "20-26"}, "wafers", 23),
        ({"wafers": "20-26"}, "notes", ("wafers 20-26 read as 23",)),
        ({"hardware": "4 x CS-3"}, "wafers", 4),
        ({"hardware": "Cerebras CS-3"}, "hardware", "wse3"),
        ({"hardware": "4 CS-3 systems"}, "wafers", 4),
        ({"hardware": "WSE3x6", "wafers": "12"}, "wafers", 12),
        ({"hardware": "WSE-2 (850k cores)"}, "hardware", "wse2"),
        ({"hardware": "H100 SXM"}, "hardware", "h100x1"),
        ({"context": "128k"}, "context", 131072),
        ({"context": "4,096 tokens"}, "context", 4096),
        ({"published": ">1,000"}, "published_range", (1000.0, math.inf)),
        ({"published": "1,800+ tok/s"}, "published_range", (1800.0, math.inf)),
        ({"published": "up to 2000"}, "published_range", (0.0, 2000.0)),
        ({"published": "1-2k"}, "published_range", (1000.0, 2000.0)),
        ({"published": "2.4e3"}, "published", 2400.0),
        ({"published": "1.8k tok/s"}, "published", 1800.0),
        ({"published": "1,400-1,500"}, "published", 1450.0),
        ({"published": "1,400 to 1,500 tok/s"}, "published_range", (1400.0, 1500.0)),
        ({"phase": "TTFT", "unit": "ms"}, "phase", "prefill"),
        ({"phase": "TPOT", "unit": "ms"}, "phase", "decode"),
        ({"grid": "660-360"}, "grids", (Rectangle(660, 660), Rectangle(360, 360))),
        ({"grid": "P 660, D 360"}, "grids", (Rectangle(660, 660), Rectangle(360, 360))),
        ({"grid": "D:360 P:660"}, "grids", (Rectangle(660, 660), Rectangle(360, 360))),
        ({"unit": "toks/sec/req"}, "quantity", "rate"),
        ({"unit": "tokens/s/user"}, "quantity", "rate"),
        ({"unit": "ms per token"}, "per_token", True),
        ({"unit": "kcycles"}, "scale", 1000.0),
        ({"weight_bits": "fp8"}, "weight_bits", 8),
        ({"weight_bits": "undisclosed"}, "weight_bits", None),
    ],
)
def test_cells_as_people_write_them(cells: dict[str, str], attribute: str, value: object) -> None:
    import csv
    import io

    record = {
        "hardware": "wse3",
        "kernels": "cerebras-2025",
        "model": "qwen3-32b",
        "phase": "decode",
        "published": "2400",
        **cells,
    }
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, record)
    writer.writeheader()
    writer.writerow(record)
    assert getattr(only(buffer.getvalue()), attribute) == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "undisclosed"),
        ("undisclosed", "undisclosed"),
        ("none", "none"),
        ("no speculation", "none"),
        ("not used", "none"),
        ("yes", "undisclosed draft"),
        ("confirmed, draft undisclosed", "undisclosed draft"),
        ("speculative decoding", "undisclosed draft"),
        ("draft=4,alpha=0.8", "given"),
        ("4x0.8", "given"),
    ],
)
def test_speculation_cells(text: str, kind: str) -> None:
    assert speculation_kind(text) == kind


@pytest.mark.parametrize(
    "name",
    [
        "a100x8",
        "8xA100",
        "A100 x8",
        "8 x a100",
        "A100-80GB x8",
        "nvidia a100×8",
        "8xA100-SXM4-80GB",
        "a100-80g x 8",
        "8xA100 (1 node)",
    ],
)
def test_gpu_names(name: str) -> None:
    line = "{},sglang,llama3-8b,decode,,,4096,1,,,,260.4,tok/s,x"
    assert point(f"{HEADER}\n{line.format(name)}") == point(f"{HEADER}\n{line.format('a100x8')}")


def test_waferllm_on_wse3_is_a_prediction_of_its_own() -> None:
    line = "wse3,waferllm,llama3-8b,decode,420,,4096,1,,,,2700,tok/s,unpublished"
    prediction = predict(only(f"{HEADER}\n{line}"))
    assert prediction.group == "WaferLLM on WSE3 decode"
    assert prediction.band.mark == "assumed"
    assert any("WSE-2" in note for note in prediction.notes)
    too_large = predict(only(f"{HEADER}\n{line.replace('420', '900')}"))
    assert any("larger than" in note for note in too_large.notes)


def test_grids_in_two_columns() -> None:
    text = "hardware,model,prefill_grid,decode_grid,prompt,output,published\n"
    row = only(text + "wse2,llama2-13b,750,375,2048,2048,1500")
    assert row.grids == (Rectangle(750, 750), Rectangle(375, 375))
    assert row.phase == "end-to-end"
    assert parse_grid("480×360") == Rectangle(480, 360)


def test_units_describe_the_same_time() -> None:
    base = f"{HEADER}\nwse2,waferllm,llama3-8b,decode,420,,4096,1,,,,1,{{}},x"
    rate = point(base.format("tok/s"))
    assert point(base.format("us")) == pytest.approx(1e6 / rate)
    assert point(base.format("ms/token")) == pytest.approx(1e3 / rate)
    assert point(base.format("s")) == pytest.approx(1 / rate)
    assert point(base.format("cycles")) == pytest.approx(1.1e9 / rate)
    assert point(base.format("Tokens per second")) == pytest.approx(rate)
    assert point(base.format("")) == pytest.approx(rate)


def test_end_to_end_is_prefill_then_decode() -> None:
    row = "wse2,waferllm,llama3-8b,{},{},,4096,1,{},{},,1,{},x"
    prefill = point(f"{HEADER}\n" + row.format("prefill", 660, 2048, "", "s"))
    step = point(f"{HEADER}\n" + row.format("decode", 360, "", "", "s"))
    rate = point(f"{HEADER}\n" + row.format("end-to-end", "660/360", 2048, 128, "tok/s"))
    assert rate == pytest.approx(128 / (prefill + 128 * step))


def test_gemv_rows() -> None:
    for name in ("gemv-16384", "GEMV-16k", "gemv-16384x16384", "gemv 16384", "GEMV 16K x 16K"):
        row = only(f"{HEADER}\nwse2,waferllm-wse2,{name},,750,,,,,,,1.7,us,x")
        assert (row.matrix, row.phase) == ((16384, 16384), "gemv")
    wafer = predict(row)
    assert wafer.group == "WaferLLM GEMV"
    assert 1.0 < wafer.point < 3.0
    for count in (1, 8):
        text = f"{HEADER}\na100x{count},sglang,gemv-16384,gemv,,,,,,,,0.3,ms,x"
        assert 0.04 < point(text) < 0.6
    assert point(f"{HEADER}\nwse2,waferllm,gemm-4096,,480,,,,,,,1,ms,x") > 0


@pytest.mark.parametrize(("size", "milliseconds"), [("16k", 0.0012), ("32k", 0.00203)])
@pytest.mark.parametrize("side", [720, 750])
def test_a_product_pays_no_software_of_a_layer(size: str, milliseconds: float, side: int) -> None:
    """Table 6 of WaferLLM, on its largest grids."""
    row = f"wse2,waferllm,gemv-{size},gemv,{side},,,,,,,{milliseconds},ms,x"
    assert point(f"{HEADER}\n{row}") == pytest.approx(milliseconds, rel=0.1)
    (product,) = resolve(f"gemv-{size}").kinds[0]
    grid = Rectangle(side, side)
    wafer = machine_of("wse2")
    assert isinstance(wafer, Wafer)
    at = machine(wafer, generation("waferllm-wse2"))
    assert decode_cost(product, grid, at, 1).software == 0
    inside = decode_cost(replace(product, alone=False), grid, at, 1)
    assert inside.software == at.costs.collective


def test_a_product_is_a_model_like_any_other() -> None:
    workload = resolve("gemv-16k")
    report = simulate(workload, Options(hardware="wse2", kernels="waferllm-wse2"))
    assert report.rate.unit == "products/s"
    rect = report.plan.layer_items[0].rect
    row = f"wse2,waferllm,gemv-16384,gemv,{rect.width}x{rect.height},,,,,,,1,cycles,x"
    assert report.step.cycles == pytest.approx(point(f"{HEADER}\n{row}"))
    assert report.step.off_wafer_us == 0, "nothing serves it"
    for side in (rect.width // 2, 2 * rect.width):
        other = row.replace(f"{rect.width}x{rect.height}", f"{side}")
        assert point(f"{HEADER}\n{other}") > report.step.cycles, "the grid chosen is a good one"
    wafer, gpu = compare(workload, Options(), ["wse3", "a100"])
    assert gpu.rate.unit == "products/s"
    text = f"{HEADER}\na100,sglang,gemv-16384,gemv,,,,,,,,1,s,x"
    assert 1 / gpu.rate.mid == pytest.approx(point(text))
    assert wafer.rate.low > 20 * gpu.rate.high
    with pytest.raises(DoesNotFitError):
        simulate(resolve("gemv-200000"), Options())
    with pytest.raises(WaferUsageError):
        resolve("gemm-4096")


def test_a_range_or_a_bound_is_covered_by_any_of_it(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    line = "wse3,cerebras-2025,llama3.3-70b,decode,,4,1024,1,,,,{},tok/s,x\n"
    cells = (">1000", '"1,000-2,000"', "1000", "<1200", "up to 2000")
    table.write_text(f"{HEADER}\n" + "".join(line.format(cell) for cell in cells))
    low = validation.validate(table).checked[0].prediction.band.low
    assert 1200 < low < 2000, "the cells above are chosen around the band's lower end"
    errors = [item.error for item in validation.validate(table).checked]
    assert errors[0] == errors[-1] == 0.0, "a bound that is kept"
    assert errors[3] > 0.4, "one that is not"
    assert [item.covered for item in validation.validate(table).checked] == [
        True, True, False, False, True,
    ]  # fmt: skip


def test_left_out_rows_have_a_line_and_a_reason(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text(
        f"{HEADER}\n"
        "wse2,waferllm,llama3-8b,decode,420,,4096,,,,,2699.9,tok/s,good\n"
        "wse2,t10,llama3-8b,decode,420,,4096,,,,,100,tok/s,bad mapping\n"
        "wse9,waferllm,llama3-8b,decode,420,,4096,,,,,100,tok/s,no such wafer\n"
        "wse3,cerebras-2025,gpt-5.6-sol,decode,,,1024,,,,,750,tok/s,shape unknown\n"
        "wse2,waferllm,llama3-8b,decode,420,,4096,,,,,fast,tok/s,no number\n"
        "wse2,waferllm,llama3-8b,decode,420,,4096,,,,,37.5,x,ratio\n"
        "wse2,waferllm,llama3-8b,training,420,,4096,,,,,37.5,tok/s,phase\n"
        "wse2,waferllm,llama3-8b,ttft,660,,4096,,4096,,,0.2,,no unit\n"
        "wse2,waferllm,llama3-8b,decode,big,,4096,,,,,37.5,tok/s,grid\n"
        "wse3,cerebras-2025,llama3.1-8b,decode,,5000,1024,,,,,37.5,tok/s,wafers\n"
        "wse3,cerebras-2025,llama3.1-8b,decode,,1,1024,,,,draft=two,37.5,tok/s,speculation\n"
        "wse3,cerebras-2025\n"
        "H100 (8x),vllm,llama3.1-8b,decode,,,1024,,,,,37.5,tok/s,a count in brackets\n"
    )
    result = validation.validate(table)
    assert [item.row.line for item in result.checked] == [2]
    assert [(p.line, p.column) for p in result.problems] == [
        (3, "kernels"), (4, "hardware"), (5, "model"), (6, "published"), (7, "unit"), (8, "phase"),
        (9, "unit"), (10, "grid"), (11, "wafers"), (12, "speculation"), (13, "model"),
        (14, "hardware"),
    ]  # fmt: skip
    assert all(p.reason[-1] == "." and len(p.reason) > 20 for p in result.problems)
    assert result.problems[0].where == "line 3, column kernels"


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(WaferUsageError, match="cannot be read"):
        validation.validate(tmp_path / "missing.csv")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(WaferUsageError, match="empty"):
        validation.validate(empty)
    empty.write_text("a,b\n1,2\n")
    with pytest.raises(WaferUsageError, match="has no column"):
        validation.validate(empty)


def test_calibration_rows_are_not_judged(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text(validation.shipped_text("calibration.csv"))
    result = validation.validate(table)
    assert all(item.calibration for item in result.checked)
    assert all(group.rows == 0 for group in result.groups)
    others = tmp_path / "others.csv"
    others.write_text(
        "hardware,model,phase,grid,published\n"
        "CS-2,LLaMA3-8B,decode,420x420,~2700\n"
        "Cerebras CS-3,Llama-3.1-8B-Instruct,decode,,2.2k\n"
        "CS-2,llama3-8b,prefill,480^2,20321\n"
        "A100,Llama 3 8B,decode,,78.9\n"
    )
    assert all(item.calibration for item in validation.validate(others).checked)
    doubled = tmp_path / "doubled.csv"
    doubled.write_text(
        f"{HEADER}\nwse2,waferllm-wse2,llama3-8b,decode,420,1,4096,1,,,,1349.9,tok/s,wrong\n"
    )
    assert not validation.validate(doubled).passed


@pytest.mark.system
def test_every_preset_answers_on_every_machine() -> None:
    for model in preset_names():
        for hardware, kernels in (
            ("wse3", "cerebras-2025"),
            ("wse3", "cerebras-2024-08"),
            ("wse2", "waferllm-wse2"),
            ("wse3", "spec-limit"),
            ("h100x8", "sglang"),
            ("b200", ""),
        ):
            for phase, extra in (
                ("decode", ",,"),
                ("prefill", ",2000,"),
                ("end-to-end", ",2000,300"),
            ):
                line = f"{hardware},{kernels},{model},{phase},,,2048,1{extra},,100,tok/s,x"
                prediction = predict(only(f"{HEADER}\n{line}"))
                assert 0 < prediction.point < 1e8
                assert prediction.band.low <= prediction.point <= prediction.band.high


def test_open_wafer_counts_hold_the_context() -> None:
    line = f"{HEADER}\nwse3,cerebras-2025,llama3.1-70b,decode,,{{}},{{}},1,,,none,1,tok/s,x"
    short = predict(only(line.format("", 1024))).notes
    long = predict(only(line.format("", "128k"))).notes
    assert any(note.startswith("4 wafers assumed") for note in short)
    assert not any(note.startswith("4 wafers assumed") for note in long)
    too_few = predict(only(line.format(4, "128k")))
    assert too_few.point > 0, "a published row is predicted even where our memory model says no"


def test_longer_contexts_and_larger_models_are_slower() -> None:
    line = f"{HEADER}\nwse3,cerebras-2024-08,{{}},decode,,,{{}},1,,,none,1,tok/s,x"
    rates = [point(line.format("llama3.1-8b", context)) for context in (512, 4096, 32768, 131072)]
    assert rates == sorted(rates, reverse=True)
    sizes = [point(line.format(m, 1024)) for m in ("llama3.2-1b", "llama3.1-8b", "llama3.1-70b")]
    assert sizes == sorted(sizes, reverse=True)
    grids = f"{HEADER}\nwse2,waferllm,llama3-8b,prefill,{{}},,4096,1,4096,,,1,tok/s,x"
    assert point(grids.format(480)) < point(grids.format(600)) < point(grids.format(720))


@examples(150)
@given(
    cells=st.lists(
        st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=12),
        min_size=14,
        max_size=14,
    )
)
def test_any_cells_give_rows_or_reasons(cells: list[str]) -> None:
    import csv
    import io

    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    rows, problems = read_rows(f"{HEADER}\n{buffer.getvalue()}")
    assert len(rows) + len(problems) <= 1
    for row in rows:
        assert row.published > 0
        assert math.isfinite(row.scale)


@examples(100)
@given(
    hardware=st.sampled_from(["wse2", "wse3", "a100x8", "h200", "b200x4"]),
    model=st.sampled_from([*preset_names(), "gemv-4096", "gemv-1000x70000"]),
    phase=st.sampled_from(["prefill", "decode", "end-to-end", ""]),
    grid=st.sampled_from(["", "7", "97", "375", "300x500", "720/360"]),
    context=st.sampled_from(["", "1", "129", "8191", "131072"]),
    prompt=st.sampled_from(["", "1", "2047"]),
    output=st.sampled_from(["", "1", "333"]),
    wafers=st.sampled_from(["", "1", "9"]),
    speculation=st.sampled_from(["", "none", "undisclosed", "yes", "3x0.6"]),
)
def test_any_sensible_row_is_predicted(
    hardware: str, model: str, phase: str, grid: str, context: str, prompt: str, output: str,
    wafers: str, speculation: str,
) -> None:  # fmt: skip
    line = (
        f"{hardware},,{model},{phase},{grid},{wafers},{context},1,{prompt},{output},{speculation},"
        "100,,x"
    )
    prediction = predict(only(f"{HEADER}\n{line}"))
    assert math.isfinite(prediction.point)
    assert prediction.point > 0
    assert prediction.band.low <= prediction.point <= prediction.band.high


def test_presets_cover_the_issue() -> None:
    names = (
        "llama2-13b llama3-8b llama3.1-8b llama3.1-70b llama3.1-405b llama3.3-70b llama4-scout "
        "llama4-maverick codellama-34b qwen2-72b qwen3-32b qwen3-235b-a22b qwen3-coder-480b "
        "gpt-oss-120b glm-4.7 kimi-k2.6 gemma-4-31b spark-like"
    )
    for name in names.split(" "):
        assert preset(name).name == name
        assert preset(name).source
    assert preset("spark-like").trust == "assumed"
    for spelling, name in (
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3.1-8b"),
        ("LLaMA3-8B", "llama3-8b"),
        ("LLaMA2-13B", "llama2-13b"),
        ("CodeLLaMA-34B", "codellama-34b"),
        ("Qwen2-72B", "qwen2-72b"),
        ("Llama 3.3 70B", "llama3.3-70b"),
        ("deepseek-r1-distill-llama-70b", "llama3.3-70b"),
        ("qwen-3-235b-a22b-thinking-2507", "qwen3-235b-a22b"),
        ("Qwen3-Coder-480B-A35B-Instruct", "qwen3-coder-480b"),
        ("zai-org/GLM-4.7", "glm-4.7"),
    ):
        assert preset(spelling).name == name
