"""Looking at folders: info, check and add."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from folders import write_folder

from midstream.engine.folder import ModelFolderError
from midstream.engine.inspect import add, check, describe, installed


def test_info_counts_external_data(tmp_path: Path) -> None:
    write_folder(tmp_path, card='edit_format = "region"\n')
    info = describe(tmp_path)
    assert (info.name, info.layout, info.prompt) == ("tiny", "genai", "edit-codec")
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


def test_a_bad_folder_says_why(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    results = list(check(tmp_path))
    assert not results[-1].ok
    assert "model.onnx cannot be loaded" in results[-1].detail


def test_add_copies_once(tmp_path: Path) -> None:
    source, models = tmp_path / "source", tmp_path / "models"
    write_folder(source)
    info = add(source, models)
    assert info.path == models / "tiny"
    shutil.rmtree(source)
    assert [found.name for found in installed([models, tmp_path / "nowhere"])] == ["tiny"]
    with pytest.raises(ModelFolderError, match="is there already"):
        add(models / "tiny", models)


def test_add_refuses_what_does_not_run(tmp_path: Path) -> None:
    write_folder(tmp_path / "source")
    (tmp_path / "source" / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelFolderError, match="tokenizer"):
        add(tmp_path / "source", tmp_path / "models")
    assert not (tmp_path / "models").exists()
