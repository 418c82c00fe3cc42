"""Export trained weights as a model folder: ONNX graph, GenAI configuration, tokenizer,
`midstream.toml`.

The card and the exact-match table are written by `card` from what `evaluate` measured.
"""

# pyright: reportMissingImports=false
# (torch belongs to the `train` extra only)
from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from midstream.engine.vocabulary import CodecLimits
from models.training.calibration import calibrated
from models.training.graphs import DecoderShape, build_decoder, genai_config
from models.training.model import Decoder, ModelConfig
from models.training.regression import section

MAX_OUTPUT_TOKENS = 768
SEQUENCES = 200
"""Training examples on which activations are measured for integer products."""


def graph_weights(model: Decoder) -> dict[str, np.ndarray]:
    """Return a decoder's weights under the names of `graphs.weight_shapes`."""
    state = {name: value.detach().float().numpy() for name, value in model.state_dict().items()}
    weights: dict[str, np.ndarray] = {
        "embedding": state["embedding.weight"] * model.config.embedding_scale,
        "head": np.ascontiguousarray(state["embedding.weight"].T),
        "final_norm": state["final_norm.gain"],
        "cos": model.cos.numpy(),
        "sin": model.sin.numpy(),
    }
    for layer in range(model.config.layers):
        at, to = f"blocks.{layer}", f"layers.{layer}"
        weights[f"{to}.attention_norm"] = state[f"{at}.attention_norm.gain"]
        weights[f"{to}.hidden_norm"] = state[f"{at}.hidden_norm.gain"]
        weights[f"{to}.qkv_bias"] = state[f"{at}.qkv.bias"]
        for name in ("qkv", "out", "gate_up", "down"):
            weights[f"{to}.{name}"] = np.ascontiguousarray(state[f"{at}.{name}.weight"].T)
    return weights


def load_run(run: Path) -> tuple[Decoder, dict[str, Any]]:
    """Load the weights of a training run and its facts (tokens seen, seconds)."""
    config = ModelConfig(**json.loads((run / "config.json").read_text()))
    model = Decoder(config)
    saved = torch.load(run / "last.pt", map_location="cpu")
    model.load_state_dict(saved["weights"])
    return model, {
        "tokens": int(saved["tokens"]),
        "seconds": float(saved["seconds"]),
        "tokens_before": int(saved["progress"]["tokens_before"]),
    }


def some_examples(data: Path, count: int = SEQUENCES) -> list[list[int]]:
    """Return the tokens of some training examples, from a folder's first shard."""
    shard = next(iter(sorted(data.glob("shard-*.npz"))), None)
    if shard is None:
        raise SystemExit(f"{data} has no shard-*.npz: activations are measured on its examples.")
    part = np.load(shard)
    tokens, starts = part["tokens"], part["starts"]
    chosen = np.random.default_rng(0).choice(len(starts) - 1, count, replace=False)
    return [tokens[starts[k] : starts[k + 1]].tolist() for k in chosen]


def toml_text(value: object) -> str:
    """Write one TOML value: a string, number, truth value, list or flat table."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(toml_text(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml_text(v)}" for k, v in value.items()) + " }"
    return json.dumps(str(value), ensure_ascii=False)


def midstream_toml(
    name: str,
    config: ModelConfig,
    parameters: int,
    tokens: int,
    measured: dict[str, Any] | None,
    *,
    appended: int,
) -> str:
    """Return the contents of `midstream.toml`; `measured` is the report of `evaluate`, None before
    there is one, `appended` as in `CodecLimits`.
    """
    limits = CodecLimits(appended=appended)
    tasks: list[dict[str, Any]] = []
    suggestions: list[str] = []
    calibration: list[str] = []
    if measured is not None:
        for task, row in measured["sets"]["eval_known"]["tasks"].items():
            tasks.append({"name": task, "exact_match": row["exact_match"], "n": row["n"]})
        suggestions = measured.get("suggestions", [])
        if "confidence" in measured:
            calibration = section(measured["confidence"]).splitlines()
    rows = [
        "schema = 1",
        f"name = {toml_text(name)}",
        f'title = "Small Python edit model, {parameters / 1e6:.1f} M parameters"',
        'prompt = "edit-codec"',
        'edit_format = "region"',
        'languages = ["python"]',
        f"max_region_lines = {limits.lines}",
        "",
        "[limits]",
        f"max_region_lines = {limits.lines}",
        f"max_prompt_tokens = {config.context - MAX_OUTPUT_TOKENS}",
        f"max_output_tokens = {MAX_OUTPUT_TOKENS}",
        "",
        "[drafting]",
        "enabled = true",
        "most = 32",
        "",
        "[codec]",
        *(f"{key} = {getattr(limits, key)}" for key in CodecLimits.__slots__),
        "",
        *calibration,
        "[card]",
        f"parameters = {parameters}",
        f"trained_tokens = {tokens}",
        "tasks = [",
        *(f"    {toml_text(task)}," for task in tasks),
        "]",
        "suggestions = [",
        *(f"    {toml_text(text)}," for text in suggestions),
        "]",
    ]
    return "\n".join(rows) + "\n"


def main() -> None:
    """Write the model folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--run", type=Path, default=Path("models/training/runs/brook"))
    parser.add_argument("--data", type=Path, default=Path("models/training/data"))
    parser.add_argument("--out", type=Path, default=Path("models/brook-4m"))
    parser.add_argument(
        "--bits", type=int, default=8, choices=(4, 8, 32), help="8 gives integer products"
    )
    parser.add_argument(
        "--appended",
        type=int,
        default=0,
        choices=(0, 1),
        help="whether redirects are appended to what is in the cache, or read first",
    )
    arguments = parser.parse_args()
    model, facts = load_run(arguments.run)
    c = model.config
    shape = DecoderShape(
        c.vocab, c.width, c.layers, c.heads, c.kv_heads, c.head_size, c.hidden, c.context, c.epsilon
    )
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    weights, steps = graph_weights(model), None
    if arguments.bits == 8:
        weights, steps = calibrated(shape, weights, some_examples(arguments.data))
    graph = build_decoder(shape, weights, bits=arguments.bits, steps=steps)
    (out / "model.onnx").write_bytes(graph.SerializeToString())
    (out / "genai_config.json").write_text(
        json.dumps(genai_config(shape, end=4, pad=0), indent=2) + "\n"
    )
    shutil.copy(arguments.data / "tokenizer.json", out / "tokenizer.json")
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": c.context}
    (out / "tokenizer_config.json").write_text(json.dumps(kind, indent=2) + "\n")
    parameters = sum(p.numel() for p in model.parameters())
    measured_path = out / "evaluation.json"
    measured = json.loads(measured_path.read_text()) if measured_path.exists() else None
    text = midstream_toml(
        out.name, c, parameters, facts["tokens"], measured, appended=arguments.appended
    )
    (out / "midstream.toml").write_text(text, "utf-8")
    size = (out / "model.onnx").stat().st_size / 1e6
    print(
        f"{out}: {parameters / 1e6:.2f} M parameters, {size:.1f} MB, "
        f"{facts['tokens'] / 1e6:.1f} M tokens seen"
    )


if __name__ == "__main__":
    main()
