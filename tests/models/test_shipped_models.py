"""Every shipped model folder: complete, and it does what its card says it does best."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ort = pytest.importorskip("onnxruntime")

from midstream.engine.codec import EditCodec  # noqa: E402
from midstream.engine.edit_request import EditRequest  # noqa: E402

pytestmark = pytest.mark.system

FOLDERS = [
    p.parent for p in sorted((Path(__file__).parents[2] / "models").glob("*/midstream.toml"))
]


def facts(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "midstream.toml").read_text("utf-8"))


CODEC_FOLDERS = [folder for folder in FOLDERS if facts(folder)["prompt"] == "edit-codec"]

FUNCTION = """def load_settings(path, encoding="utf-8"):
    if not path:
        return {}
    with open(path, encoding=encoding) as file:
        return json.load(file)
"""


def greedy(folder: Path, request: EditRequest) -> str:
    config = json.loads((folder / "genai_config.json").read_text())["model"]
    decoder = config["decoder"]
    session = ort.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    encoded = EditCodec.load(folder).encode(request)
    layers = range(decoder["num_hidden_layers"])
    names = [f"past_key_values.{n}.{part}" for n in layers for part in ("key", "value")]
    shape = (1, decoder["num_key_value_heads"], 0, decoder["head_size"])
    past = dict.fromkeys(names, np.zeros(shape, np.float32))
    feed, total, text = encoded.prompt_ids, 0, ""
    for _ in range(200):
        total += len(feed)
        mask = np.ones((1, total), np.int64)
        inputs = {"input_ids": np.array([feed], np.int64), "attention_mask": mask}
        logits, *present = session.run(None, inputs | past)
        past = dict(zip(names, present, strict=True))
        feed = [int(logits[0, -1].argmax())]
        text += encoded.decoder.feed(feed[0])
        if feed[0] in encoded.stop_ids:
            break
    return text + encoded.decoder.finish()


def test_a_model_that_takes_over_names_a_shipped_one() -> None:
    names = {folder.name for folder in FOLDERS}
    for folder in FOLDERS:
        table = facts(folder)
        if "takeover" in table:
            assert table["takeover"]["first"] in names - {folder.name}
            assert 0 <= table["takeover"]["compare"] <= table["takeover"]["threshold"] <= 1
            assert 0 <= table["takeover"]["decline"] < table["confidence"]["threshold"] < 1
            assert 0 <= table["takeover"]["hold"] <= 1


@pytest.mark.parametrize("folder", CODEC_FOLDERS, ids=lambda p: p.name)
def test_at_least_six_edits_reach_seventy_per_cent_rename_among_them(folder: Path) -> None:
    tasks = {task["name"]: task for task in facts(folder)["card"]["tasks"]}
    good = [name for name, task in tasks.items() if task["exact_match"] >= 70 and task["n"] >= 30]
    assert len(good) >= 6, good
    assert any(name.startswith("rename") for name in good), good


@pytest.mark.parametrize("folder", CODEC_FOLDERS, ids=lambda p: p.name)
@pytest.mark.parametrize(
    ("instruction", "old", "new"),
    [
        ("rename the parameter path to settings_path", "path", "settings_path"),
        ("rename `encoding` to `charset`", None, None),
        ("rename load_settings to read_settings", "load_settings", "read_settings"),
    ],
)
def test_it_renames(folder: Path, instruction: str, old: str | None, new: str | None) -> None:
    expected = FUNCTION
    if old is not None and new is not None:
        expected = FUNCTION.replace(old, new)
    else:
        expected = FUNCTION.replace('(path, encoding="', '(path, charset="').replace(
            "encoding=encoding", "encoding=charset"
        )
    assert greedy(folder, EditRequest(instruction, FUNCTION)) == expected
