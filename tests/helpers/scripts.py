"""A model with random weights that writes edit scripts, exported like the shipped one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from midstream.edits.request import RegionRequest, render_request
from midstream.engine.types import GenerateRequest, Message
from models.training.edit_script import export, rounding
from tests.helpers.folders import make_tokenizer

REGION = """    def total(self, items, tax):
        result = 0
        for item in items:
            result += item.price * item.count

        return result * (1 + tax)
"""
CONFIG: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 128,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0,
}


def random_tensors(vocab: int, seed: int = 0, louder: int | None = None) -> dict[str, Any]:
    """Weights with Hugging Face names, of the architecture that is shipped.

    Args:
        vocab: tokens.
        seed: of the randomness.
        louder: a token that is written wherever the weights do not speak against it.
    """
    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> Any:
        return (rng.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)

    tensors = {
        "embed_tokens.weight": rng.standard_normal((vocab, 64)).astype(np.float32),
        "norm.weight": np.ones(64, np.float32),
    }
    if louder is not None:
        tensors["embed_tokens.weight"][louder] *= 30
    for layer in range(2):
        at = f"layers.{layer}"
        tensors[f"{at}.input_layernorm.weight"] = np.ones(64, np.float32)
        tensors[f"{at}.post_attention_layernorm.weight"] = np.ones(64, np.float32)
        for name, rows, columns in (
            ("self_attn.q_proj", 64, 64),
            ("self_attn.k_proj", 32, 64),
            ("self_attn.v_proj", 32, 64),
            ("self_attn.o_proj", 64, 64),
            ("mlp.gate_proj", 128, 64),
            ("mlp.up_proj", 128, 64),
            ("mlp.down_proj", 64, 128),
        ):
            tensors[f"{at}.{name}.weight"] = matrix(rows, columns)
    return tensors


def folder_of(path: Path, recipe: str = "mixed", *, rounds: bool = False, louder: str = "") -> Path:
    """Write a model folder with random weights by the exporter; see `random_tensors`."""
    path.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.save(str(path / "made.json"))
    shape = export.shape_of(CONFIG | {"vocab_size": tokenizer.get_vocab_size()})
    loud = tokenizer.token_to_id(louder) if louder else None
    tensors = random_tensors(shape.vocab, louder=loud)
    weights = export.graph_weights(tensors, shape, export.rope_base(CONFIG))
    sums = rounding.correlations(shape, weights, [list(range(3, 60))]) if rounds else None
    export.write_folder(
        path / "model",
        shape,
        weights,
        path / "made.json",
        recipe=recipe,
        name="tiny-script",
        sums=sums,
    )
    return path / "model"


def asked(instruction: str, region: str = REGION, *more: Message) -> GenerateRequest:
    text = render_request(RegionRequest(instruction, region, language="python"))
    return GenerateRequest((Message("user", text), *more))
