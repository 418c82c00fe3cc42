"""Commands as a user runs them: exit codes, JSON, text that fits, errors in one sentence; a cheap
import.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from midstream.wafer import commands
from midstream.wafer.rows import COLUMNS
from tests.helpers.wafer_checks import check_trace
from tests.helpers.wafer_graphs import fused_decoder


def run(capsys, *argv: str) -> tuple[int, str, str]:
    code = commands.main(list(argv))
    out = capsys.readouterr()
    return code, out.out, out.err


def test_profile_text_and_json(capsys) -> None:
    code, text, _ = run(capsys, "profile", "llama3.1-8b", "--context", "2k")
    assert code == 0
    assert "simulated" in text.splitlines()[1]
    assert all(len(line) <= 110 for line in text.splitlines())
    code, text, _ = run(capsys, "profile", "llama3.1-8b", "--context", "2k", "--json", "--map")
    content = json.loads(text)
    assert content["simulated"] is True
    assert content["context"] == 2048
    rate = content["tokens_per_s"]
    assert rate["low"] < rate["mid"] < rate["high"]
    assert rate["mark"] == "assumed"
    assert {item["name"] for item in content["map"]} >= {"layer 0", "lm_head"}


def test_profile_of_an_onnx_file_with_trace_and_map(capsys, tmp_path: Path) -> None:
    model, trace = fused_decoder(tmp_path / "model.onnx"), tmp_path / "trace.json"
    arguments = ("profile", str(model), "--context", "64", "--trace", str(trace), "--map")
    code, text, _ = run(capsys, *arguments, "--tokens", "3")
    assert code == 0
    assert "Perfetto" in text
    events = json.loads(trace.read_text())
    check_trace(events)
    assert sum(e["name"] == "model_run" for e in events) == 3


def test_a_trace_over_many_wafers_nests_to_the_nanosecond(capsys, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    for model in ("qwen3-235b", "llama3.1-8b"):
        assert run(capsys, "profile", model, "--trace", str(trace), "--tokens", "4")[0] == 0
        events = json.loads(trace.read_text())
        check_trace(events)
        passes = [e for e in events if e["name"] == "model_run"]
        assert len(passes) == 4
        assert passes[0]["ts"] + passes[0]["dur"] == passes[1]["ts"]


def test_options_reach_the_simulation(capsys) -> None:
    def rate(*argv: str) -> float:
        _, text, _ = run(capsys, "profile", "llama3.1-70b", *argv, "--json")
        return json.loads(text)["tokens_per_s"]["mid"]

    plain = rate("--kernels", "cerebras-2024-08")
    assert rate("--kernels", "cerebras-2024-08", "--context", "16k") < plain
    assert rate("--kernels", "cerebras-2025") > plain
    assert rate("--kernels", "cerebras-2024-08", "--clock-ghz", "0.85") < plain
    assert rate("--kernels", "cerebras-2024-08", "--spec", "draft=4,alpha=0.8") > plain
    assert rate("--kernels", "cerebras-2024-08", "--wafers", "8") != plain


def test_refusals_are_exit_code_one_with_the_count(capsys) -> None:
    code, out, err = run(capsys, "profile", "llama3.1-70b", "--wafers", "1")
    assert (code, out) == (1, "")
    assert "smallest count that fits is 4" in err
    assert err.count("\n") == 1
    code, out, _ = run(capsys, "profile", "llama3.1-70b", "--wafers", "1", "--json")
    error = json.loads(out)["error"]
    assert (code, error["code"], error["smallest_wafers"]) == (1, "does_not_fit", 4)


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["profile", "no-such-model"], 2),
        (["profile", "missing.onnx"], 3),
        (["profile", "llama3.1-8b", "--kernels", "t10"], 2),
        (["profile", "llama3.1-8b", "--context", "soon"], 2),
        (["profile", "llama3.1-8b", "--weight-bits", "5"], 2),
        (["profile", "llama3.1-8b", "--spec", "magic"], 2),
        (["profile", "llama3.1-8b", "--hardware", "h100"], 2),
        (["profile"], 2),
        (["fly"], 2),
        ([], 2),
        (["map", "llama3.1-8b", "--wafer", "4"], 2),
        (["map", "llama3.1-8b", "--view", "x-ray"], 2),
        (["compare", "llama3.1-8b", "--on", "tpu"], 2),
        (["validate", "--rows", "missing.csv"], 2),
        (["profile", "llama3.1-8b", "--clock-ghz", "0"], 2),
        (["profile", "llama3.1-8b", "--trace", "no/folder.json"], 2),
        (["profile", "llama3.1-8b", "--trace", "t.json", "--tokens", "0"], 2),
    ],
)
def test_errors_have_codes_and_one_sentence(capsys, argv: list[str], code: int) -> None:
    got, out, err = run(capsys, *argv)
    assert got == code
    assert out == ""
    assert err.startswith("midstream wafer: ")
    assert err.count("\n") == 1
    got, out, _ = run(capsys, *argv, "--json")
    assert got == code
    assert json.loads(out)["error"]["message"]


def test_compare(capsys) -> None:
    code, text, _ = run(capsys, "compare", "llama3.1-70b", "--on", "wse3,h200x8,b200x8", "--json")
    assert code == 0
    wafer, h200, b200 = json.loads(text)["machines"]
    assert wafer["tokens_per_s"]["mid"] > 5 * h200["tokens_per_s"]["mid"]
    assert b200["tokens_per_s"]["mid"] > h200["tokens_per_s"]["mid"]
    assert h200["nameplate_w"] == 5600
    code, text, _ = run(capsys, "compare", "spark-like")
    assert code == 0
    assert "all figures simulated" in text


def test_map(capsys) -> None:
    code, text, _ = run(capsys, "map", "llama3.1-70b", "--columns", "40")
    assert code == 0
    assert text.count("simulated placement") == 4
    code, text, _ = run(capsys, "map", "llama3.1-70b", "--wafer", "2", "--view", "fill")
    assert text.count("simulated placement") == 1
    code, text, _ = run(capsys, "map", "llama3.1-8b", "--json")
    assert len(json.loads(text)["items"]) == 34


def test_validate(capsys, tmp_path: Path) -> None:
    code, text, _ = run(capsys, "validate")
    assert code == 0
    assert "Aug-2024 production decode" in text
    table = tmp_path / "rows.csv"
    header = ",".join(COLUMNS)
    table.write_text(
        f"{header}\nwse3,cerebras-2024-08,llama3.1-70b,decode,,4,1024,,,,none,45,tok/s,x\n"
    )
    code, text, _ = run(capsys, "validate", "--rows", str(table), "--json")
    content = json.loads(text)
    assert (code, content["passed"]) == (1, False)
    assert content["rows"][0]["in_band"] is False
    assert content["groups"][0]["mape"] == pytest.approx(content["rows"][0]["error"])
    table.write_text(f"{header}\nwse9,,llama3.1-70b,decode,,4,1024,,,,none,45,tok/s,x\n")
    code, out, err = run(capsys, "validate", "--rows", str(table))
    assert code == 2
    assert "wse9" in out + err
    code, text, _ = run(capsys, "validate", "--columns")
    assert code == 0
    assert all(column in text for column in COLUMNS)


def test_module_runs_alone_and_imports_little() -> None:
    script = (
        "import sys, midstream.wafer as w\n"
        "heavy = [m for m in ('numpy', 'onnx', 'onnxruntime') if m in sys.modules]\n"
        "w.simulate('spark-like'); w.validate()\n"
        "later = [m for m in ('numpy', 'onnx', 'onnxruntime') if m in sys.modules]\n"
        "ours = {'midstream', 'midstream._version'}\n"
        "others = [m for m in sys.modules if m.startswith('midstream.')\n"
        "          and not m.startswith('midstream.wafer') and m not in ours]\n"
        "print(heavy, later, others)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[] [] []"
    command = [sys.executable, "-m", "midstream.wafer", "validate", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["passed"] is True
