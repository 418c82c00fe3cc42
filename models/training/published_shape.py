"""Make a model folder of a published model's shape with random weights, to measure speed with.

    python models/training/published_shape.py 0.5b FOLDER --tokenizer TOKENIZER_FOLDER

Shapes are those of Qwen2.5-Coder; the layout is that of ONNX Runtime GenAI's builder, in 4 bits by
blocks of 32, for 32,768 tokens. Needs torch, transformers, onnxruntime-genai and onnx-ir in an
environment of their own. The tokenizer is any other model's with a chat template and fewer tokens:
texts mean nothing to random weights.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

SHAPES = {
    "0.5b": (896, 24, 14, 2, 4864),
    "1.5b": (1536, 28, 12, 2, 8960),
    "3b": (2048, 36, 16, 2, 11008),
}
"""Width, layers, query heads, key/value heads and inner width."""

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def make_model(shape: str, folder: Path) -> None:
    """Write a model of a shape as transformers does."""
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    width, layers, heads, kept, inner = SHAPES[shape]
    config = transformers.Qwen2Config(
        vocab_size=151_936,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kept,
        intermediate_size=inner,
        max_position_embeddings=32_768,
        rope_theta=1e6,
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        bos_token_id=151_643,
        eos_token_id=151_643,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)  # The builder quantizes it; it needs half the memory.
    transformers.Qwen2ForCausalLM(config).save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--tokenizer", type=Path, required=True, help="a folder with tokenizer.json"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "model"
        make_model(options.shape, source)
        for name in TOKENIZER:
            shutil.copy(options.tokenizer / name, source / name)
        builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(source)]
        chosen = ["-o", str(options.folder), "-p", "int4", "-e", "cpu", "-c", f"{scratch}/cache"]
        subprocess.run([*builder, *chosen], check=True)
    for name in TOKENIZER:
        if not (options.folder / name).exists():
            shutil.copy(options.tokenizer / name, options.folder / name)


if __name__ == "__main__":
    main()
