"""Weights that come out of a model folder are those that went into it, but for the rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models.training.edit_script.export import graph_weights, write_folder
from models.training.edit_script.shipped import read
from models.training.graphs import BlockFormat, DecoderShape, quantise_range, unpack_blocks

FOLDER = Path(__file__).parents[2] / "models" / "rill-116m"
SHAPE = DecoderShape(
    vocab=320,
    width=128,
    layers=2,
    heads=4,
    kv_heads=2,
    head_size=32,
    hidden=192,
    context=64,
    epsilon=1e-5,
    tied=True,
    qkv_bias=False,
)


def test_a_folder_gives_its_weights_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sizes = {
        "self_attn.q_proj": (128, 128),
        "self_attn.k_proj": (64, 128),
        "self_attn.v_proj": (64, 128),
        "self_attn.o_proj": (128, 128),
        "mlp.gate_proj": (192, 128),
        "mlp.up_proj": (192, 128),
        "mlp.down_proj": (128, 192),
        "input_layernorm": (128,),
        "post_attention_layernorm": (128,),
    }
    stored = {
        f"layers.{layer}.{name}.weight": rng.normal(size=size).astype(np.float32)
        for layer in range(2)
        for name, size in sizes.items()
    }
    stored["embed_tokens.weight"] = rng.normal(size=(320, 128)).astype(np.float32)
    stored["norm.weight"] = rng.normal(size=128).astype(np.float32)
    folder = tmp_path / "model"
    write_folder(folder, SHAPE, graph_weights(stored, SHAPE, 1e5), FOLDER / "tokenizer.json")
    found = read(folder)
    assert found.keys() == {f"model.{name}" for name in stored}
    for name, wanted in stored.items():
        error = np.linalg.norm(found[f"model.{name}"] - wanted) / np.linalg.norm(wanted)
        assert error < (0.1 if wanted.ndim == 2 else 1e-7), name


def test_blocks_with_an_odd_number_of_zero_points() -> None:
    matrix = np.random.default_rng(2).normal(size=(96, 5)).astype(np.float32)  # three blocks
    form = BlockFormat(4)
    unpacked = unpack_blocks(quantise_range(matrix, form), 5, form)
    assert np.abs(unpacked - matrix.T).max() < 0.5
