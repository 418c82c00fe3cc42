"""``midstream guard`` as the command line runs it."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest

from midstream.commands.guard import add_arguments, run
from midstream.errors import UsageError
from tests.helpers.broken_ruff import REAL, BrokenRuff


def guard(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args(arguments))


@pytest.fixture
def bad(tmp_path: Path) -> str:
    path = tmp_path / "bad.py"
    path.write_text("import os\ndef f(x):\n    os.system(x)\n")
    return str(path)


def test_a_halt_finding_exits_1(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guard(bad) == 1
    assert f"{bad}:3: halt S605" in capsys.readouterr().out


def test_a_clean_file_exits_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "good.py"
    path.write_text("print('hello')\n")
    assert guard(str(path)) == 0
    assert capsys.readouterr().out == ""


def test_what_ruff_has_not_read_is_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One file is not read, a later one is."""
    folder = tmp_path / "src"
    folder.mkdir()
    for name in ("a.py", "b.py"):
        (folder / name).write_text("x = 1\n")
    body = f'if [ -e "{tmp_path}/tried" ]; then exec "{REAL}" "$@"; fi\n[ $1 = check ] && '
    BrokenRuff(tmp_path, f'{body} : > "{tmp_path}/tried"\nexit 2', monkeypatch)
    assert guard(str(folder)) == 3
    said = capsys.readouterr().err
    assert said == (
        "midstream guard: ruff does not work (exit code 2), so of Python only credentials and "
        f"queries are checked in {folder}/a.py.\n"
    )


def test_no_baseline_is_made_of_what_ruff_has_not_read(
    bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    BrokenRuff(tmp_path, "exit 2", monkeypatch)
    assert guard("--write-baseline", str(tmp_path / "known.json"), bad) == 3
    assert not (tmp_path / "known.json").exists()


def test_what_is_not_looked_for_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rust, data = tmp_path / "lib.rs", tmp_path / "data.py"
    rust.write_text("fn main() {}\n")
    data.write_bytes(b"\x7fELF\0\0\0")
    assert guard(str(rust), str(data)) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"Only credentials are looked for in {rust}.\n" in shown.err
    assert f"{data} cannot be read as UTF-8 text" in shown.err


def test_files_of_a_folder_that_git_does_not_ignore(
    bad: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("build/\n")
    for folder in ("build", "src"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "worse.py").write_text("import os\nos.system(input())\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0os.system(x)")
    (tmp_path / "data.py").write_bytes(b"x = 1\n" * 200_000)
    assert guard(str(tmp_path)) == 1
    shown = capsys.readouterr()
    found = [line.split(":")[0] for line in shown.out.splitlines()]
    assert found == [bad, str(tmp_path / "src" / "worse.py")]
    assert "cannot be read" not in shown.err


def test_json_and_sarif(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    guard(bad, "--json")
    finding = json.loads(capsys.readouterr().out)
    assert (finding["rule"], finding["line"], finding["level"]) == ("S605", 3, "halt")
    guard(bad, "--sarif")
    document = json.loads(capsys.readouterr().out)
    result = document["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "endLine": 3}


def test_names_in_sarif_are_uri_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a b#.py").write_text("import os\ndef f(x):\n    os.system(x)\n")
    guard("a b#.py", "--sarif")
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "a%20b%23.py"}


@pytest.mark.parametrize("name", [b"\x1b]0;x\x07.py", b"a\nb.py", b"\xff.py"])
def test_a_name_with_control_characters_is_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: bytes
) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
    Path(path).write_text("import os\ndef f(x):\n    os.system(x)\n")
    guard(path)
    (line,) = capsys.readouterr().out.removesuffix("\n").split("\n")
    assert line.isprintable()
    guard(path, "--sarif")
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote_to_bytes(uri) == os.fsencode(path)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(UsageError, match=r"nowhere\.py cannot be read"):
        guard("nowhere.py")


def test_a_baseline_leaves_out_what_was_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, baseline = tmp_path / "m.py", tmp_path / "baseline.json"
    code.write_text("def f(t):\n    return eval(t)\n")
    assert guard(str(code), "--write-baseline", str(baseline)) == 0
    assert guard(str(code), "--baseline", str(baseline)) == 0
    code.write_text("import os\n\n\ndef f(t):\n    os.system(t)\n    return eval(t)\n")
    capsys.readouterr()
    assert guard(str(code), "--baseline", str(baseline)) == 1
    assert "S605" in (out := capsys.readouterr().out)
    assert "S307" not in out
    baseline.write_text("[]")
    with pytest.raises(UsageError, match="not a baseline"):
        guard(str(code), "--baseline", str(baseline))


def test_lines_that_end_in_a_carriage_return_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.py"
    path.write_bytes(b"import os\rdef f(x):\r    os.system(x)\r")
    assert guard(str(path)) == 1
    assert f"{path}:3: halt S605" in capsys.readouterr().out
