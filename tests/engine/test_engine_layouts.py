"""The same weights in the three layouts of model folders: loaded as found, they write one text."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto
from onnxruntime.quantization import QuantType, quantize_dynamic

from midstream.engine.folder import ModelFolderError, read_folder
from midstream.engine.inspect import check
from midstream.engine.model import OnnxModel
from midstream.engine.types import GenerateRequest, Message
from tests.helpers.folders import write_folder
from tests.helpers.tiny import build, random_weights

REQUEST = GenerateRequest(
    messages=(Message("user", "def area(width, height): ..."),), max_output_tokens=24
)


def text_of(path: Path) -> str:
    generation = OnnxModel(read_folder(path), threads=1).start(REQUEST)
    return "".join(piece.text for piece in generation)


def rewrite(path: Path, graph: str, *, dialect: str, cache: int, external: bool) -> None:
    """Put a GenAI folder's weights into another layout."""
    shape = write_folder(path, prompt="chat")
    (path / "genai_config.json").unlink()
    (path / "model.onnx").unlink()
    config = {"max_position_embeddings": shape.context, "eos_token_id": 1}
    (path / "config.json").write_text(json.dumps(config))
    target = path / graph
    target.parent.mkdir(exist_ok=True)
    onnx.save(
        build(shape, random_weights(shape), 32, dialect, cache),
        str(target),
        save_as_external_data=external,
        location=f"{target.name}_data",
        size_threshold=1024,
    )


@pytest.mark.parametrize(
    ("graph", "dialect", "cache", "external"),
    [
        ("model.onnx", "positions", TensorProto.FLOAT, False),
        ("decoder_model_merged.onnx", "positions", TensorProto.FLOAT, True),
        ("onnx/model_q4.onnx", "mask", TensorProto.FLOAT, True),
        ("onnx/model_q4f16.onnx", "positions", TensorProto.FLOAT16, False),
    ],
)
def test_layouts_agree(
    tmp_path: Path, graph: str, dialect: str, cache: int, external: bool
) -> None:
    write_folder(tmp_path / "genai", prompt="chat")
    rewrite(tmp_path / "other", graph, dialect=dialect, cache=cache, external=external)
    expected = text_of(tmp_path / "genai")
    assert len(expected) > 10
    assert text_of(tmp_path / "other") == expected


def test_a_graph_with_one_scale_for_all_rows_is_not_drafted_for(tmp_path: Path) -> None:
    """Drafts would change the rows before them."""
    rewrite(
        tmp_path, "onnx/model.onnx", dialect="positions", cache=TensorProto.FLOAT, external=False
    )
    whole = OnnxModel(read_folder(tmp_path), threads=1)
    assert whole.decoder.causal
    assert whole.drafting is not None
    graph = tmp_path / "onnx" / "model.onnx"
    quantize_dynamic(
        graph,
        graph.with_name("model_quantized.onnx"),
        weight_type=QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT},
    )
    model = OnnxModel(read_folder(tmp_path), threads=1)
    assert model.folder.graph.name == "model_quantized.onnx"
    assert not model.decoder.causal
    assert model.drafting is None
    assert text_of(tmp_path)
    *_, cache, speed = check(tmp_path)
    assert (cache.name, cache.ok, speed.ok) == ("cache", True, True)
    assert "no drafting" in cache.detail


def test_missing_external_data_is_named(tmp_path: Path) -> None:
    rewrite(tmp_path, "onnx/model.onnx", dialect="mask", cache=TensorProto.FLOAT, external=True)
    (tmp_path / "onnx" / "model.onnx_data").unlink()
    with pytest.raises(ModelFolderError, match=r"model\.onnx_data"):
        OnnxModel(read_folder(tmp_path))


def leave_sizes_open(path: Path) -> None:
    """Name the sizes of the cache instead of fixing them, as ONNX Runtime GenAI's builder does."""
    model = onnx.load(path / "model.onnx")
    for value in (*model.graph.input, *model.graph.output):
        if value.name.startswith(("past", "present")):
            value.type.tensor_type.shape.dim[1].dim_param = "kv_num_heads"
            value.type.tensor_type.shape.dim[3].dim_param = "kv_cache_dim"
    onnx.save(model, path / "model.onnx")


def test_the_configuration_has_the_sizes_that_a_graph_leaves_open(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat")
    expected = text_of(tmp_path)
    leave_sizes_open(tmp_path)
    assert text_of(tmp_path) == expected


def test_sizes_that_nothing_says_are_named(tmp_path: Path) -> None:
    write_folder(tmp_path, prompt="chat")
    leave_sizes_open(tmp_path)
    config = json.loads((tmp_path / "genai_config.json").read_text())
    del config["model"]["decoder"]["num_hidden_layers"]
    (tmp_path / "genai_config.json").write_text(json.dumps(config))
    with pytest.raises(ModelFolderError, match="does not fix heads and width of past"):
        OnnxModel(read_folder(tmp_path))
