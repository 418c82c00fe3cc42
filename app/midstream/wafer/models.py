"""Models by name: presets, ONNX files and model folders, each as the operators that it computes.

Presets are the shapes in ``data/models.toml``, found under the many spellings that people use.  In
a folder an ONNX graph says more than a configuration (fusions, precisions, operators without a
price), so it is preferred; a Hugging Face folder without one is described by its ``config.json``.
"""

from __future__ import annotations

import json
import re
import tomllib
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

from midstream.wafer.errors import ModelUnavailableError, WaferUsageError
from midstream.wafer.onnx_shape import workload_from_onnx
from midstream.wafer.operators import Workload, product_of, workload_of
from midstream.wafer.shape import LatentAttention, ModelShape


@cache
def resolve(name: str) -> Workload:
    """The operators of the model behind a name or path.

    Args:
        name: A preset (any usual spelling), ``gemv-N`` or ``gemv-MxN`` for one product, the path of
            an ``.onnx`` file, or of a folder with an ONNX graph, ``genai_config.json`` or
            ``config.json``.

    Raises:
        ModelUnavailableError: The path does not exist or holds no readable model.
        WaferUsageError: It is neither a path nor a preset.
    """
    if name in preset_names():  # a folder of that name is written ./name
        return workload_of(preset(name))
    path = Path(name).expanduser()
    if path.is_dir():
        return workload_from_folder(path.resolve())
    if path.is_file():
        return workload_from_onnx(path.resolve())
    if name.endswith(".onnx") or name.startswith((".", "/", "~")):
        raise ModelUnavailableError(f"There is no model at '{name}'; check the path.")
    matrix = matrix_of(name)
    if matrix is not None and min(matrix) > 0 and name.strip().lower().startswith("gemv"):
        return product_of(*matrix)
    return workload_of(preset(name))


_SAME_SHAPE = {
    "r1distill70b": "llama3.3-70b",
    "r1distillllama70b": "llama3.3-70b",
    "deepseekr1distill70b": "llama3.3-70b",
    "deepseekr1distillllama70b": "llama3.3-70b",
    "llama370b": "llama3.1-70b",
    "mistrallarge": "mistral-large-2",
    "deepseekr1": "deepseek-v3",
    "qwen3235b": "qwen3-235b-a22b",
    "qwen3480b": "qwen3-coder-480b",
    "qwen3coder": "qwen3-coder-480b",
    "kimik2": "kimi-k2.6",
    "kimik25": "kimi-k2.6",
    "glm45": "glm-4.7",
    "glm46": "glm-4.7",
    "spark": "spark-like",
    "codexspark": "spark-like",
    "gpt53codexspark": "spark-like",
}
"""Other names of models with a preset's shape, without punctuation and variant suffixes."""

_VENDORS = re.compile(r"^(meta|openai|zai|google|nvidia|deepseekai)(?=[a-z])")
_VARIANTS = re.compile(
    r"(instruct|chat|thinking|preview|base|turbo|versatile|hf|it|2507|0905|a35b|(17b)?(16|128)e)$"
)


_PRODUCT = re.compile(r"^(gemv|gemm)[-_ ]?(\d+)(k?)(?:[x×*](\d+)(k?))?$")


def matrix_of(name: str) -> tuple[int, int] | None:
    """Rows and columns of ``gemv-16384``, ``GEMV 16k`` or ``gemm-4096x1024``, else None."""
    plain = re.sub(r"\s*([x×*])\s*", r"\1", re.sub(r"[()]", "", name.strip().lower()))
    match = _PRODUCT.match(plain.replace(" ", "-"))
    if match is None:
        return None
    rows = int(match[2]) * (1024 if match[3] else 1)
    columns = int(match[4]) * (1024 if match[5] else 1) if match[4] else rows
    return rows, columns


@cache
def _table() -> dict[str, dict[str, Any]]:
    text = resources.files("midstream.wafer").joinpath("data/models.toml").read_text("utf-8")
    return tomllib.loads(text)


def preset_names() -> list[str]:
    return list(_table())


def _plain(name: str) -> str:
    """A spelling without vendor, punctuation, bracketed remarks and variant suffixes."""
    text = re.sub(r"\(.*?\)", "", name.strip().lower().rsplit("/", 1)[-1])
    text = _VENDORS.sub("", re.sub(r"[\s._:-]", "", text))
    while (shorter := _VARIANTS.sub("", text)) != text:
        text = shorter
    return text


@cache
def _by_plain_name() -> dict[str, str]:
    return {_plain(name): name for name in _table()} | _SAME_SHAPE


@cache
def preset(name: str) -> ModelShape:
    """The shape of a named model; ``Llama-3.1-8B-Instruct`` and ``llama3.1-8b`` are the same.

    Raises:
        WaferUsageError: No preset has that name.
    """
    key = name if name in _table() else _by_plain_name().get(_plain(name))
    if key is None:
        near = get_close_matches(_plain(name), _by_plain_name(), n=3, cutoff=0.7)
        known = ", ".join(dict.fromkeys(_by_plain_name()[match] for match in near) or _table())
        raise WaferUsageError(
            f"Model '{name}' is neither a preset nor a file; {'near' if near else 'the'} presets "
            f"are {known}, or give the path of an ONNX file or model folder."
        )
    entry = dict(_table()[key])
    latent = entry.pop("latent", None)
    return ModelShape(name=key, latent=LatentAttention(**latent) if latent else None, **entry)


Json = dict[str, Any]


def onnx_file_of(folder: Path) -> Path | None:
    """The decoder graph in a folder: as ``genai_config.json`` says, ``model.onnx``, or the only
    one.
    """
    genai = folder / "genai_config.json"
    if genai.is_file():
        decoder = cast("Json", _read(genai).get("model", {})).get("decoder", {})
        named = folder / str(decoder.get("filename", "model.onnx"))
        if named.is_file():
            return named
    for candidate in (folder / "model.onnx", folder / "onnx" / "model.onnx"):
        if candidate.is_file():
            return candidate
    graphs = sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])
    return graphs[0] if graphs else None


def workload_from_folder(folder: Path) -> Workload:
    """The operators of the model in a folder, from its graph or else from its configuration.

    Raises:
        ModelUnavailableError: The folder holds neither a usable configuration nor an ONNX graph.
    """
    graph = onnx_file_of(folder)
    if graph is not None:
        return workload_from_onnx(graph, folder.name)
    config = folder / "config.json"
    if config.is_file():
        content = _read(config)
        text = content.get("text_config", content)
        return workload_of(shape_from_config(cast("Json", text), folder.name, "config.json"))
    raise ModelUnavailableError(
        f"'{folder}' holds no ONNX graph and no config.json; give a model folder."
    )


def _read(path: Path) -> Json:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnavailableError(f"'{path}' cannot be read as JSON; check the file.") from error
    if not isinstance(content, dict):
        raise ModelUnavailableError(f"'{path}' is not a JSON object; check the file.")
    return cast("Json", content)


def shape_from_config(config: Json, name: str, source: str) -> ModelShape:
    """A shape from the fields of a Hugging Face configuration.

    Raises:
        ModelUnavailableError: A needed field is missing.
    """
    try:
        hidden = int(config["hidden_size"])
        heads = int(config["num_attention_heads"])
        layers = int(config["num_hidden_layers"])
        vocab = int(config["vocab_size"])
        ffn = int(config.get("intermediate_size") or 4 * hidden)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelUnavailableError(f"The {source} of '{name}' lacks the field {error}.") from error

    def number(*names: str, default: int = 0) -> int:
        """The first of some fields that is set."""
        return int(next(filter(None, map(config.get, names)), default))

    latent = None
    if config.get("kv_lora_rank"):
        latent = LatentAttention(
            query_rank=number("q_lora_rank", default=hidden),
            kv_rank=number("kv_lora_rank"),
            rope_dim=int(config.get("qk_rope_head_dim", 64)),
            nope_dim=int(config.get("qk_nope_head_dim", 128)),
            value_dim=int(config.get("v_head_dim", 128)),
        )
    experts = number("num_local_experts", "num_experts", "n_routed_experts")
    expert_ffn = number("moe_intermediate_size", default=ffn if experts else 0)
    shared = number("shared_expert_intermediate_size") or number("n_shared_experts") * expert_ffn
    window = number("sliding_window") if config.get("use_sliding_window", True) else 0
    active = number("num_experts_per_tok", "experts_per_token", default=1)
    try:
        return ModelShape(
            name=name,
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=number("num_key_value_heads", default=heads),
            head_dim=number("head_dim", default=hidden // heads),
            ffn=ffn,
            vocab=vocab,
            gated=config.get("hidden_act", "silu") not in ("gelu", "gelu_new", "relu"),
            tied=bool(config.get("tie_word_embeddings", False)),
            experts=experts,
            experts_active=active if experts else 0,
            expert_ffn=expert_ffn if experts else 0,
            shared_ffn=shared if experts else 0,
            dense_layers=number("first_k_dense_replace") if experts else 0,
            moe_every=number("interleave_moe_layer_step", "decoder_sparse_step", default=1),
            window=window,
            full_every=_full_every(config),
            latent=latent,
            source=source,
        )
    except WaferUsageError as error:
        raise ModelUnavailableError(str(error)) from error


def _full_every(config: Json) -> int:
    """Period of full-attention layers among windowed ones; 0 means every layer has the window."""
    types = config.get("layer_types")
    if isinstance(types, list) and "full_attention" in types:
        return cast("list[str]", types).index("full_attention") + 1
    return int(config.get("sliding_window_pattern") or 0)
