"""Settings with their sources, and the file they are written to: comments and order are kept."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.errors import UsageError
from midstream.settings import (
    SETTINGS,
    ConfigFileError,
    Kind,
    Settings,
    Source,
    change_file,
    load_settings,
    resolve_settings,
)
from midstream.settings.endpoints import ENDPOINT_FIELDS

FILE = """\
# how I like it
layout = "split"  # side by side

[keys]
preset = "vim"
[keys.bind]
# y as in yes
"hunk.accept" = "a,y"

[endpoints.desk]
url = "http://127.0.0.1:8080/v1"  # under the desk
model = "qwen"
"""


def written(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    return path


def test_every_setting_is_described() -> None:
    names = {name for name in Settings.__dataclass_fields__ if not name.endswith("endpoints")}
    assert names == {setting.name for setting in SETTINGS}
    for setting in SETTINGS:
        assert setting.help.endswith(".")
        assert setting.format(getattr(Settings(), setting.name))


def test_a_value_is_changed_in_its_line(config: Path) -> None:
    change_file(config, {("layout",): "unified"})
    assert config.read_text() == FILE.replace('"split"', '"unified"')


def test_a_new_value_goes_above_the_tables(config: Path) -> None:
    change_file(config, {("theme",): "paper"})
    assert written(config)["theme"] == "paper"
    for line in FILE.splitlines():
        assert line in config.read_text()


def test_tables_are_made_and_taken_away_again(config: Path) -> None:
    change_file(config, {("model", "pace"): 40})
    assert written(config)["model"] == {"pace": 40}
    assert change_file(config, {("model", "pace"): None})
    assert "model" not in written(config)
    assert not change_file(config, {("model", "pace"): None})
    for line in FILE.splitlines():
        assert line in config.read_text()


def test_a_table_with_a_comment_stays(config: Path) -> None:
    assert change_file(config, {("keys", "bind", "hunk.accept"): None})
    assert "# y as in yes" in config.read_text()


def test_guard_is_a_switch_and_a_table(config: Path) -> None:
    change_file(config, {("guard",): False})
    assert written(config)["guard"] is False
    change_file(config, {("guard", "S608"): "warn"})
    assert written(config)["guard"] == {"on": False, "S608": "warn"}
    change_file(config, {("guard",): True})
    assert written(config)["guard"] == {"on": True, "S608": "warn"}
    assert change_file(config, {("guard",): None})
    assert written(config)["guard"] == {"S608": "warn"}
    assert change_file(config, {("guard", "S608"): None})
    assert "guard" not in written(config)


def test_an_endpoint_is_a_name_or_a_table(config: Path) -> None:
    change_file(config, {("endpoint",): "desk"})
    assert load_settings(environ={"MIDSTREAM_CONFIG": str(config)}).endpoint == "desk"
    change_file(config, {("endpoint", "url"): "wss://api.openai.com/v1"})
    assert written(config)["endpoint"] == {"url": "wss://api.openai.com/v1"}
    change_file(config, {("endpoint",): "desk"})
    assert written(config)["endpoint"] == "desk"


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (("layout",), "spilt", r'did you mean "split"\?'),
        (("layuot",), "split", r'did you mean "layout"\?'),
        (("endpoint",), "dessk", r'did you mean "desk"\?'),
        (("endpoints", "new", "model"), "x", "has no address"),
        (("model", "threads"), "many", "must be a whole number"),
    ],
)
def test_what_could_not_be_loaded_is_not_written(
    config: Path, key: tuple[str, ...], value: object, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        change_file(config, {key: value})
    assert config.read_text() == FILE


def test_an_endpoint_that_is_wrong_does_not_keep_the_file_from_changing(config: Path) -> None:
    broken = FILE + '[endpoints.typo]\nurl = "https://b.example/v1"\nmodle = "m"\n'
    config.write_text(broken)
    change_file(config, {("theme",): "paper"})
    assert written(config)["theme"] == "paper"
    with pytest.raises(UsageError, match=r"endpoints\.desk\.context"):
        change_file(config, {("endpoints", "desk", "context"): "long"})
    change_file(config, {("endpoints", "typo", "modle"): None})
    assert written(config)["endpoints"]["typo"] == {"url": "https://b.example/v1"}


def test_a_broken_file_is_left_alone(config: Path) -> None:
    config.write_text("layout = \n")
    with pytest.raises(UsageError, match="is not valid TOML"):
        change_file(config, {("theme",): "paper"})
    assert config.read_text() == "layout = \n"


def test_a_link_and_the_mode_survive(config: Path, tmp_path: Path) -> None:
    config.chmod(0o640)
    link = tmp_path / "link.toml"
    link.symlink_to(config)
    change_file(link, {("theme",): "paper"})
    assert link.is_symlink()
    assert written(config)["theme"] == "paper"
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_new_file_is_private_and_its_folder_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    change_file(path, {("theme",): "paper"})
    assert path.read_text() == 'theme = "paper"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigFileError, match=r"config\.toml cannot be"):
        change_file(tmp_path / "file" / "config.toml", {("theme",): "paper"})


@given(
    st.lists(
        st.sampled_from(
            [
                (("theme",), "paper"),
                (("layout",), "split"),
                (("ascii",), True),
                (("keys", "preset"), "git"),
                (("keys", "bind", "hunk.accept"), "y"),
                (("model", "pace"), 40),
                (("guard",), False),
                (("guard", "S608"), "warn"),
                (("endpoints", "desk", "context"), 8192),
                (("endpoint",), "desk"),
            ]
        ),
        max_size=12,
    ),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_any_order_of_changes_keeps_comments_and_loads(
    steps: list[tuple[tuple[str, ...], object]], sets: list[bool]
) -> None:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"midstream-config-{os.getpid()}.toml"
    path.write_text(FILE)
    try:
        for (key, value), sets_it in zip(steps, sets, strict=False):
            if sets_it:
                change_file(path, {key: value})
                table: Any = written(path)
                for part in key[:-1]:
                    table = table[part]
                found = table[key[-1]]
                assert (found["on"] if isinstance(found, dict) else found) == value
            else:
                change_file(path, {key: None})
            load_settings(environ={"MIDSTREAM_CONFIG": str(path)})
        text = path.read_text()
        assert text.startswith("# how I like it\n")
        assert "# y as in yes\n" in text
        assert "# under the desk\n" in text
    finally:
        path.unlink()


def test_trace_names_every_place(config: Path, tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / ".midstream.toml").write_text('layout = "unified"\n')
    config.write_text(FILE + f'\n[projects."{root}"]\njournal = false\n')
    environ = {"MIDSTREAM_CONFIG": str(config), "MIDSTREAM_ASCII": "yes"}
    found = resolve_settings(root, flags={"threads": 3}, environ=environ)
    sources = {name: item.source for name, item in found.items()}
    assert sources["theme"] is Source.DEFAULT
    assert sources["keys"] is Source.USER
    assert sources["layout"] is Source.PROJECT
    assert sources["journal"] is Source.FOLDER
    assert sources["ascii"] is Source.ENVIRONMENT
    assert sources["threads"] is Source.FLAG
    assert [(s, v) for s, _, v in found["layout"].steps] == [
        (Source.DEFAULT, "auto"),
        (Source.USER, "split"),
        (Source.PROJECT, "unified"),
    ]
    assert found["ascii"].where == "MIDSTREAM_ASCII"
    assert found["threads"].value == 3
    for item in found.values():
        if item.source is not Source.FLAG:
            settings = load_settings(root, environ=environ)
            assert item.value == getattr(settings, item.setting.name)


def test_changed_fields_are_those_of_the_command_line() -> None:
    from dataclasses import replace

    assert replace(Settings(), pace=40.0, theme="paper").changes_since(Settings()) == {
        "pace": 40.0,
        "theme": "paper",
    }
    assert {one.type.kind for one in (*SETTINGS, *ENDPOINT_FIELDS)} == set(Kind)


@pytest.mark.parametrize(
    "text", ["a" + ".a" * 50_000 + " = 1\n", "[" + "a." * 50_000 + "a]\n", "1" + " . 1.1" * 9_000]
)
def test_a_key_of_very_many_parts_is_refused_at_once(tmp_path: Path, text: str) -> None:
    """Python's reader would take minutes: the time grows with the square of the parts."""
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match="nested too deeply"):
        load_settings(environ={"MIDSTREAM_CONFIG": str(path)})
