"""Model folders for engine tests: random-weight graph, small tokenizer, configuration files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from midstream.engine.folder import ModelFolder
from midstream.engine.rewrite_codec import BEGIN, END
from tests.helpers.decoders import DecoderShape
from tests.helpers.tiny import build, make_shape, random_weights

SAMPLE = """
def total(items, tax):
    result = 0
    for item in items:
        if item is None:
            continue
        result += item.price * item.count
    return result * (1 + tax)
"""

CHAT_SPECIAL = ["<pad>", "<eos>", "<user>", "<assistant>", "<system>"]
CHAT_TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def make_tokenizer(special: list[str]) -> Tokenizer:
    """A byte-level BPE whose first ids are the special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=len(special) + 300,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([SAMPLE] * 3, trainer)
    return tokenizer


def write_folder(
    path: Path,
    *,
    prompt: str = "edit-rewrite",
    bits: int = 32,
    dialect: str = "mask",
    seed: int = 0,
    card: str = "",
    **shape: Any,
) -> DecoderShape:
    """Write a loadable GenAI-layout folder and return the graph's shape."""
    path.mkdir(parents=True, exist_ok=True)
    chat = prompt == "chat"
    tokenizer = make_tokenizer(CHAT_SPECIAL if chat else [BEGIN, END])
    tokenizer.save(str(path / "tokenizer.json"))
    size = make_shape(vocab=tokenizer.get_vocab_size(), **shape)
    onnx.save(build(size, random_weights(size, seed), bits, dialect), str(path / "model.onnx"))
    eos = tokenizer.token_to_id("<eos>" if chat else END)
    genai = {
        "model": {
            "context_length": size.context,
            "eos_token_id": eos,
            "decoder": {
                "filename": "model.onnx",
                "head_size": size.head_size,
                "hidden_size": size.width,
                "num_attention_heads": size.heads,
                "num_hidden_layers": size.layers,
                "num_key_value_heads": size.kv_heads,
            },
        },
        "search": {"past_present_share_buffer": True},
    }
    (path / "genai_config.json").write_text(json.dumps(genai))
    if chat:
        config = {"chat_template": CHAT_TEMPLATE, "eos_token": "<eos>"}
        (path / "tokenizer_config.json").write_text(json.dumps(config))
    (path / "midstream.toml").write_text(f'name = "tiny"\nprompt = "{prompt}"\n{card}')
    return size


def bare_folder(
    path: Path, shape: DecoderShape, graph: onnx.ModelProto, **more: Any
) -> ModelFolder:
    """A folder of which only the graph exists, for tests of the decoder alone."""
    onnx.save(graph, str(path / "model.onnx"))
    return ModelFolder(
        path=path,
        name="bare",
        layout="genai",
        graph=path / "model.onnx",
        tokenizer=path / "tokenizer.json",
        context_length=shape.context,
        eos_ids=frozenset(),
        prompt="chat",
        **more,
    )
