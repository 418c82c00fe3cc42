"""Looking at folders: info, check and add."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from midstream.engine.folder import ModelFolderError
from midstream.engine.inspect import add, check, describe, installed
from tests.helpers.folders import CHAT_SPECIAL, make_tokenizer, write_folder


def test_info_counts_external_data(tmp_path: Path) -> None:
    write_folder(tmp_path, card='edit_format = "region"\n')
    info = describe(tmp_path)
    assert (info.name, info.layout, info.prompt) == ("tiny", "genai", "edit-rewrite")
    assert info.facts["edit_format"] == "region"
    assert info.bytes == (tmp_path / "model.onnx").stat().st_size
    (tmp_path / "model.onnx.data").write_bytes(bytes(1000))
    assert describe(tmp_path).bytes == info.bytes + 1000


def test_a_good_folder_passes(tmp_path: Path) -> None:
    write_folder(tmp_path)
    results = list(check(tmp_path))
    assert [result.name for result in results] == [
        "files",
        "prompt",
        "graph",
        "vocabulary",
        "interface",
        "memory",
        "cache",
        "speed",
    ]
    assert all(result.ok for result in results)
    details = {result.name: result.detail for result in results}
    assert details["cache"] == "drafting is exact"
    assert "one shared buffer" in details["interface"]


def test_a_cache_that_is_not_kept_is_found_out(tmp_path: Path) -> None:
    write_folder(tmp_path, dialect="positions")
    graph = onnx.load(str(tmp_path / "model.onnx"))
    half = onnx.numpy_helper.from_array(np.array(0.5, np.float32), "half")
    graph.graph.initializer.append(half)
    # A graph that forgets: what comes back from the cache is half of what went in.
    for node in list(graph.graph.node):
        if node.op_type == "Concat" and node.input[0].startswith("past"):
            forget = onnx.helper.make_node("Mul", [node.input[0], "half"], [node.name + ".half"])
            node.input[0] = forget.output[0]
            graph.graph.node.insert(0, forget)
    onnx.save(graph, str(tmp_path / "model.onnx"))
    results = list(check(tmp_path))
    assert not results[-1].ok
    assert "cut in two" in results[-1].detail


def change_config(path: Path, **changes: Any) -> None:
    """Change the "model" table of a folder's genai_config.json."""
    file = path / "genai_config.json"
    config = json.loads(file.read_text())
    config["model"] |= changes
    file.write_text(json.dumps(config))


def weights_beside(path: Path, kept: int | None) -> None:
    """Move the weights into a file beside the graph, of which the first bytes stay."""
    onnx.save(
        onnx.load(str(path / "model.onnx")),
        str(path / "model.onnx"),
        save_as_external_data=True,
        location="model.onnx.data",
        size_threshold=256,
    )
    data = path / "model.onnx.data"
    if kept is None:
        data.unlink()
    else:
        data.write_bytes(data.read_bytes()[:kept])


def to_optimum(path: Path, names: tuple[str, ...], **config: Any) -> None:
    """Turn a folder into one with config.json and the graph under other names."""
    (path / "genai_config.json").unlink()
    (path / "config.json").write_text(json.dumps({"max_position_embeddings": 64, **config}))
    for name in names:
        shutil.copy(path / "model.onnx", path / name)
    (path / "model.onnx").unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:5000])


def with_template(path: Path, template: str) -> None:
    (path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))


FAULTS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "graph missing": (lambda p: (p / "model.onnx").unlink(), "files", r"model\.onnx, named by"),
    "graph cut short": (lambda p: cut(p / "model.onnx"), "graph", "cut short or no ONNX"),
    "pointer": (
        lambda p: (p / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1"),
        "graph",
        "git lfs pull",
    ),
    "weights missing": (lambda p: weights_beside(p, None), "graph", r"model\.onnx\.data, are mis"),
    "weights cut short": (lambda p: weights_beside(p, 99), "graph", "external data is cut short"),
    "wrong input": (
        lambda p: change_config(p, decoder={"inputs": {"input_ids": "words"}}),
        "graph",
        "no input words for token ids, only input_ids, attention_mask and a cache",
    ),
    "wrong output": (
        lambda p: change_config(p, decoder={"outputs": {"logits": "scores"}}),
        "graph",
        "no output scores, only logits and a cache",
    ),
    "unknown end": (lambda p: change_config(p, eos_token_id=9999), "vocabulary", "id: 9999"),
    "no end": (lambda p: change_config(p, eos_token_id=None), "vocabulary", "id: none"),
    "other vocabulary": (
        lambda p: make_tokenizer([*CHAT_SPECIAL, *(f"<{i}>" for i in range(99))]).save(
            str(p / "tokenizer.json")
        ),
        "vocabulary",
        r"tokenizer\.json knows 404 tokens and model\.onnx only 305",
    ),
    "no tokenizer": (lambda p: (p / "tokenizer.json").unlink(), "files", "json is missing"),
    "bad tokenizer": (lambda p: (p / "tokenizer.json").write_text("{}"), "prompt", "cannot be loa"),
    "bad template": (lambda p: with_template(p, "{% for %}"), "prompt", "not valid jinja2"),
    "failing template": (lambda p: with_template(p, "{{ 1 + 'a' }}"), "prompt", "refuses"),
    "two graphs": (
        lambda p: to_optimum(p, ("a.onnx", "b.onnx")),
        "files",
        r"if a\.onnx or b\.onnx is meant",
    ),
    "speech": (
        lambda p: change_config(p, type="whisper", encoder={}),
        "files",
        "type whisper with encoder beside its decoder",
    ),
    "translation": (
        lambda p: to_optimum(p, ("model_q4.onnx",), model_type="t5", is_encoder_decoder=True),
        "files",
        "type t5 with encoder",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_said_where_it_is(tmp_path: Path, fault: str) -> None:
    write_folder(tmp_path, prompt="chat")
    breakage, step, sentence = FAULTS[fault]
    breakage(tmp_path)
    failed = next(result for result in check(tmp_path) if not result.ok)
    assert failed.name == step
    assert re.search(sentence, failed.detail)
    assert "ONNXRuntimeError" not in failed.detail


def test_a_graph_of_another_name_is_taken_if_the_card_says_so(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat", card='graph = "b.onnx"\n')
    to_optimum(tmp_path, ("a.onnx", "b.onnx"), eos_token_id=1)
    assert describe(tmp_path).graph == "b.onnx"
    assert all(result.ok for result in check(tmp_path))


def test_add_copies_once(tmp_path: Path) -> None:
    source, models = tmp_path / "source", tmp_path / "models"
    write_folder(source)
    info = add(source, models)
    assert info.path == models / "tiny"
    shutil.rmtree(source)
    assert [found.name for found in installed([models, tmp_path / "nowhere"])] == ["tiny"]
    with pytest.raises(ModelFolderError, match="already exists"):
        add(models / "tiny", models)


def test_add_refuses_what_does_not_run(tmp_path: Path) -> None:
    write_folder(tmp_path / "source")
    (tmp_path / "source" / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelFolderError, match="tokenizer"):
        add(tmp_path / "source", tmp_path / "models")
    assert not (tmp_path / "models").exists()
