"""Reading model folders: the three layouts, and a sentence that names what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from midstream.engine.folder import (
    MAX_NAME_LENGTH,
    Drafting,
    ModelFolderError,
    TokenLimits,
    read_folder,
)
from tests.helpers.folders import write_folder


def edit_json(path: Path, **changes: Any) -> None:
    value = json.loads(path.read_text())
    for key, change in changes.items():
        if change is None:
            value.pop(key, None)
        else:
            value[key] = change
    path.write_text(json.dumps(value))


def name_graph(path: Path, name: str) -> None:
    model = json.loads((path / "genai_config.json").read_text())["model"]
    model["decoder"]["filename"] = name
    edit_json(path / "genai_config.json", model=model)


def test_genai_layout(tmp_path: Path) -> None:
    write_folder(tmp_path, card='languages = ["python", "rust"]\n[drafting]\nmost = 9\n')
    folder = read_folder(tmp_path)
    assert folder.layout == "genai"
    assert folder.graph == tmp_path / "model.onnx"
    assert folder.context_length == 512
    assert folder.shares_cache is True
    assert folder.drafting == Drafting(9)
    assert folder.facts["languages"] == "python,rust"
    assert len(folder.eos_ids) == 1


def test_limits_and_drafting_come_from_the_card(tmp_path: Path) -> None:
    write_folder(tmp_path)
    assert read_folder(tmp_path).limits == TokenLimits()
    assert read_folder(tmp_path).drafting == Drafting()
    card = "[drafting]\nenabled = false\n[limits]\nmax_prompt_tokens = 7\nmax_output_tokens = 8\n"
    (tmp_path / "midstream.toml").write_text(card)
    assert read_folder(tmp_path).limits == TokenLimits(prompt=7, output=8)
    assert read_folder(tmp_path).drafting is None


def test_a_name_is_short_and_can_be_shown(tmp_path: Path) -> None:
    write_folder(tmp_path)
    name = f"\\u001b]0;a\\u202e{'b' * 200_000}"
    (tmp_path / "midstream.toml").write_text(f'name = "{name}"\n')
    assert read_folder(tmp_path).name == "]0;a" + "b" * (MAX_NAME_LENGTH - 4)


def to_hub_layout(path: Path, graph: str) -> None:
    """Turn a GenAI folder into one as exporters to the model hub write it."""
    (path / "genai_config.json").unlink()
    config = {"max_position_embeddings": 256, "eos_token_id": 1}
    (path / "config.json").write_text(json.dumps(config))
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 4]}))
    (path / graph).parent.mkdir(exist_ok=True)
    (path / "model.onnx").rename(path / graph)


@pytest.mark.parametrize(
    ("graph", "layout"),
    [
        ("model.onnx", "optimum"),
        ("decoder_model_merged.onnx", "optimum"),
        ("onnx/model_q4.onnx", "transformers.js"),
        ("onnx/model.onnx", "transformers.js"),
    ],
)
def test_hub_layouts(tmp_path: Path, graph: str, layout: str) -> None:
    write_folder(tmp_path, prompt="chat")
    to_hub_layout(tmp_path, graph)
    folder = read_folder(tmp_path)
    assert folder.layout == layout
    assert folder.graph == tmp_path / graph
    assert folder.context_length == 256
    assert folder.eos_ids == {1, 4}
    assert folder.shares_cache is None
    assert folder.special_tokens == {"eos_token": "<eos>"}


def test_the_cheapest_graph_is_taken_unless_the_card_names_one(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat")
    to_hub_layout(tmp_path, "onnx/model_q4.onnx")
    (tmp_path / "onnx" / "model.onnx").write_bytes(b"")
    assert read_folder(tmp_path).graph.name == "model_q4.onnx"
    (tmp_path / "midstream.toml").write_text('graph = "model.onnx"\n')
    assert read_folder(tmp_path).graph.name == "model.onnx"


def test_templates_are_found(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat")
    named = [{"name": "tool_use", "template": "A"}, {"name": "default", "template": "B"}]
    edit_json(tmp_path / "tokenizer_config.json", chat_template=named)
    assert read_folder(tmp_path).chat_template == "B"
    (tmp_path / "chat_template.jinja").write_text("C")
    assert read_folder(tmp_path).chat_template == "C"


@pytest.mark.parametrize(
    ("breakage", "sentence"),
    [
        (lambda p: (p / "tokenizer.json").unlink(), r"tokenizer\.json is missing"),
        (lambda p: (p / "model.onnx").unlink(), r"model\.onnx, named by .*genai_config"),
        (lambda p: name_graph(p, "../model.onnx"), "names a graph outside of itself"),
        (lambda p: name_graph(p, "/etc/hostname"), "names a graph outside of itself"),
        (lambda p: (p / "genai_config.json").write_text("{"), r"genai_config\.json cannot be read"),
        (lambda p: (p / "genai_config.json").write_text("[]"), "one JSON object"),
        (lambda p: edit_json(p / "genai_config.json", model={}), r"context may be \(model\.cont"),
        (lambda p: edit_json(p / "genai_config.json", model=7), 'a table "model"'),
        (
            lambda p: (p / "midstream.toml").write_text("[limits]\nmax_output_tokens = 'many'"),
            "max_output_tokens should be",
        ),
        (lambda p: (p / "midstream.toml").write_text("="), r"midstream\.toml cannot be read"),
        (lambda p: (p / "midstream.toml").write_text('prompt = "tea"'), 'prompt = "tea"'),
        (lambda p: (p / "midstream.toml").write_text("[drafting]\nmost = 0"), "most, in .drafting"),
        (
            lambda p: (p / "genai_config.json").unlink(),
            r"config\.json is missing; model\.onnx needs",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, breakage: Any, sentence: str) -> None:
    write_folder(tmp_path)
    breakage(tmp_path)
    with pytest.raises(ModelFolderError, match=sentence):
        read_folder(tmp_path)


def test_no_folder_and_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match="no model folder at"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(ModelFolderError, match="holds no model"):
        read_folder(tmp_path)
