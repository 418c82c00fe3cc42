"""``midstream config``: lists, explanations, and the file that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midstream.cli import main
from midstream.resources import themes_dir
from midstream.settings import load_settings


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("MIDSTREAM_CONFIG", str(path))
    return path


def test_every_setting_is_listed_with_its_source(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('theme = "paper"\n')
    monkeypatch.setenv("MIDSTREAM_LAYOUT", "split")
    assert main(["config"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert f"your file {file}" in lines["theme"]
    assert "environment MIDSTREAM_LAYOUT" in lines["layout"]
    assert lines["ascii"].split() == ["ascii", "off"]
    assert lines["Your"] == f"Your file: {file}"


def test_one_setting_tells_every_place(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text('[keys]\npreset = "vim"\n')
    assert main(["config", "keys.preset"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("keys.preset = vim\n")
    assert "default: default" in said
    assert f"your file {file}: vim" in said


def test_a_theme_is_one_that_there_is(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("# mine\n")
    shipped = (themes_dir() / "paper.toml").read_text()
    (file.parent / "themes").mkdir()
    (file.parent / "themes" / "sand.toml").write_text(shipped)
    (file.parent / "themes" / "half.toml").write_text('label = "Half"\n')
    assert main(["config", "theme"]) == 0
    listed = capsys.readouterr().out
    assert "contrast (High contrast)" in listed
    assert "sand" in listed
    for wrong, words in (
        ("nosuch", "known are ansi, contrast, "),
        ("midnite", 'did you mean "midnight"?'),
        ("half", "half.toml: the table [colors] is missing."),
    ):
        assert main(["config", "theme", wrong]) == 2
        assert words in capsys.readouterr().err
    assert file.read_text() == "# mine\n"
    assert main(["config", "theme", "high contrast"]) == 0
    assert load_settings().theme == "contrast"
    assert main(["config", "theme", "sand"]) == 0
    assert load_settings().theme == "sand"


@pytest.mark.parametrize(
    ("name", "value", "field", "held"),
    [
        ("theme", "paper", "theme", "paper"),
        ("keys.preset", "emacs", "keys", "emacs"),
        ("guard", "off", "guard", False),
        ("model.threads", "2", "threads", 2),
        ("model.pace", "40", "pace", 40.0),
        ("continuous", "yes", "continuous", True),
    ],
)
def test_a_value_is_written_and_taken_out_again(
    file: Path, name: str, value: str, field: str, held: object
) -> None:
    file.write_text("# mine\nascii = true\n")
    before = getattr(load_settings(), field)
    assert main(["config", name, value]) == 0
    assert getattr(load_settings(), field) == held
    assert file.read_text().startswith("# mine\nascii = true\n")
    assert main(["config", "--unset", name]) == 0
    assert getattr(load_settings(), field) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["theem"], 'did you mean "theme"'),
        (["pace", "3"], 'did you mean "model.pace"'),
        (["keys.preset", "nope"], "choose one of"),
        (["model.pace", "fast"], "must be a number"),
        (["guard.*", "x"], "has several values"),
        (["--unset"], "Name the setting to remove"),
        (["theme", "paper", "--unset"], "not both"),
    ],
)
def test_what_does_not_fit_is_said_and_nothing_written(
    file: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    file.write_text("ascii = true\n")
    assert main(["config", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert file.read_text() == "ascii = true\n"


def test_an_overruled_value_is_said(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSTREAM_THEME", "paper")
    assert main(["config", "theme", "midnight"]) == 0
    assert "but environment MIDSTREAM_THEME wins here: theme = paper." in capsys.readouterr().out
    assert 'theme = "midnight"' in file.read_text()


def test_json_has_an_object_for_each(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text('[guard]\nS608 = "warn"\n')
    assert main(["config", "--json"]) == 0
    found = {
        one["name"]: one for one in map(json.loads, capsys.readouterr().out.strip().splitlines())
    }
    assert found["guard.*"]["value"] == {"S608": "warn"}
    assert found["guard"]["source"] == "default"


def test_the_schema_names_every_key(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["keys"]["properties"]["preset"]["enum"]
    assert properties["endpoint"]["type"] == ["string", "object"]
    assert "url" in properties["endpoint"]["properties"]
    assert properties["guard"]["type"] == ["boolean", "object"]
    assert properties["model"]["properties"]["threads"]["type"] == "number"
